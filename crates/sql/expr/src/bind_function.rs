//! Calls of functions, and the special forms that SQL has for some (EXTRACT, SUBSTRING, TRIM, ...).

use super::aggregate;
use super::bind::{BindError, Binder, syntax};
use super::fold::fold;
use super::function::{Sig, by_name, is_set_returning};
use super::resolve::{self, Candidate, Failure};
use super::{Expr, Volatility};
use crate::identifier;
use crate::syntax::forms::VARIADIC;
use crate::types::{CastKind, SqlType, Value, cast_kind};
use crate::{SqlError, SqlState};
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments};

/// Most arguments of a function, as in PostgreSQL.
const ARGUMENTS_MAX: usize = 100;
/// Columns of a ROW, at most.
const ROW_COLUMNS_MAX: usize = 1664;

/// Binds a call as written.
pub(super) fn bind(binder: &mut Binder<'_>, function: &ast::Function) -> Result<Expr, BindError> {
    let parts: Vec<String> = function.name.0.iter().filter_map(|part| part.as_ident()).map(identifier::fold).collect();
    let name = match parts.as_slice() {
        [name] => name.clone(),
        [schema, name] if schema == "pg_catalog" || schema == "public" => name.clone(),
        [schema, _] => {
            return Err(
                SqlError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist")).into()
            );
        }
        _ => return Err(syntax("a function's name is malformed").into()),
    };
    if function.over.is_some() {
        return Err(BindError::NeedsEngine("a window function"));
    }
    if aggregate::Function::named(&name).is_some() || function.filter.is_some() || !function.within_group.is_empty() {
        return Err(BindError::NeedsEngine("an aggregate function"));
    }
    if is_set_returning(&name) {
        return Err(BindError::NeedsEngine("a set-returning function"));
    }
    let list: &[FunctionArg] = match &function.args {
        FunctionArguments::None => &[],
        FunctionArguments::Subquery(_) => return Err(BindError::NeedsEngine("a subquery")),
        FunctionArguments::List(list) => {
            if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
                return Err(BindError::NeedsEngine("an aggregate function"));
            }
            &list.args
        }
    };
    let mut args = Vec::with_capacity(list.len());
    let mut spread = false;
    for arg in list {
        if spread {
            return Err(syntax("VARIADIC must be the last argument").into());
        }
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg
            && let Some(array) = variadic(expr)
        {
            args.push(binder.expr(array)?);
            spread = true;
            continue;
        }
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => args.push(binder.expr(expr)?),
            FunctionArg::Named { arg: FunctionArgExpr::Expr(expr), name: arg_name, .. } => {
                let bound = binder.expr(expr)?;
                place_named(&name, &identifier::fold(arg_name), bound, &mut args)?;
            }
            FunctionArg::ExprNamed {
                arg: FunctionArgExpr::Expr(expr), name: ast::Expr::Identifier(arg_name), ..
            } => {
                let bound = binder.expr(expr)?;
                place_named(&name, &identifier::fold(arg_name), bound, &mut args)?;
            }
            _ => return Err(BindError::NeedsEngine("an aggregate function")),
        }
    }
    if spread {
        return spread_call(binder, &name, args);
    }
    if name == "row" && args.len() > ROW_COLUMNS_MAX {
        let message = format!("ROW expressions can have at most {ROW_COLUMNS_MAX} entries");
        return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message).into());
    }
    // These are expressions with a list, not functions.
    let listed = matches!(name.as_str(), "coalesce" | "greatest" | "least" | "row");
    if args.len() > ARGUMENTS_MAX && !listed {
        return Err(SqlError::new(
            SqlState(*b"54023"),
            format!("cannot pass more than {ARGUMENTS_MAX} arguments to a function"),
        )
        .into());
    }
    match name.as_str() {
        "coalesce" => coalesce(binder, args),
        "nullif" => nullif(binder, args),
        "greatest" | "least" => extreme(binder, args, name == "greatest"),
        "row" => Ok(Expr::Row(args)),
        "date_part" if args.len() == 2 => call(binder, "date_part", args),
        _ => call(binder, &name, args),
    }
}

/// The array behind VARIADIC.
fn variadic(expr: &ast::Expr) -> Option<&ast::Expr> {
    let ast::Expr::Function(mark) = expr else { return None };
    let [ast::ObjectNamePart::Identifier(name)] = mark.name.0.as_slice() else { return None };
    let FunctionArguments::List(list) = &mark.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))] if name.value == VARIADIC => Some(array),
        _ => None,
    }
}

/// A call whose last argument is an array of arguments.
fn spread_call(binder: &mut Binder<'_>, name: &str, args: Vec<Expr>) -> Result<Expr, BindError> {
    let types: Vec<SqlType> = args.iter().map(Expr::ty).collect();
    let Some(function) = super::functions::variadic::named(name) else {
        // A function that repeats nothing takes it as it stands.
        return if by_name(name).iter().any(|f| f.variadic) {
            Err(undefined(name, &types).into())
        } else {
            call(binder, name, args)
        };
    };
    let takes_any = function.args.last() == Some(&Sig::ArrayOfElement);
    if types.len() == function.args.len() && takes_any && !matches!(types.last(), Some(SqlType::Array(_))) {
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, "VARIADIC argument must be an array").into());
    }
    match resolve::choose(&[function], &types) {
        Ok(chosen) => make_call(binder, chosen, args),
        Err(_) => Err(undefined(name, &types).into()),
    }
}

/// Puts an argument given by name in its place; those left out before it are 0. Only `make_interval` is called that way in practice.
fn place_named(function: &str, name: &str, value: Expr, args: &mut Vec<Expr>) -> Result<(), BindError> {
    let names: &[&str] = match function {
        "make_interval" => &["years", "months", "weeks", "days", "hours", "mins", "secs"],
        _ => return Err(SqlError::unsupported(format!("calling {function} with arguments by name")).into()),
    };
    let Some(place) = names.iter().position(|known| *known == name) else {
        return Err(undefined(function, &[value.ty()]).into());
    };
    let zero = || Expr::Literal(Value::Int4(0), SqlType::Int4);
    while args.len() <= place {
        args.push(zero());
    }
    args[place] = value;
    Ok(())
}

/// A function that is written without parentheses.
pub(super) fn bare_name(binder: &mut Binder<'_>, name: &str) -> Option<Result<Expr, BindError>> {
    const BARE: &[&str] = &[
        "current_catalog",
        "current_date",
        "current_role",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "localtime",
        "localtimestamp",
        "session_user",
        "user",
    ];
    BARE.contains(&name).then(|| call(binder, name, vec![]))
}

fn undefined(name: &str, types: &[SqlType]) -> SqlError {
    if let Some(missing) = super::functions::digest::missing(name) {
        return missing;
    }
    let shown: Vec<String> = types.iter().map(|ty| ty.base().to_string()).collect();
    SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("function {name}({}) does not exist", shown.join(", ")))
        .hint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

/// Finds the function that is meant and calls it.
pub(super) fn call(binder: &mut Binder<'_>, name: &str, args: Vec<Expr>) -> Result<Expr, BindError> {
    let types: Vec<SqlType> = args.iter().map(Expr::ty).collect();
    match resolve::choose(by_name(name), &types) {
        Ok(chosen) => make_call(binder, chosen, args),
        Err(failure) => {
            // A type's name as a function is a cast: `int4('3')`, `text(x)`.
            if let ([from], Some(to)) = (types.as_slice(), SqlType::from_name(name))
                && (*from == SqlType::Unknown || cast_kind(from, &to).is_some_and(|kind| kind <= CastKind::Explicit))
            {
                let mut args = args;
                if let Some(arg) = args.pop() {
                    return binder.explicit(arg, &to.base());
                }
            }
            Err(match failure {
                Failure::None => undefined(name, &types),
                Failure::Ambiguous => {
                    let shown: Vec<String> = types.iter().map(|ty| ty.base().to_string()).collect();
                    SqlError::new(
                        SqlState::AMBIGUOUS_FUNCTION,
                        format!("function {name}({}) is not unique", shown.join(", ")),
                    )
                    .hint("Could not choose a best candidate function. You might need to add explicit type casts.")
                }
            }
            .into())
        }
    }
}

/// Casts the arguments to what the function takes.
pub(super) fn make_call(binder: &mut Binder<'_>, chosen: Candidate, args: Vec<Expr>) -> Result<Expr, BindError> {
    let Candidate { function, args: wanted, result, .. } = chosen;
    let mut cast = Vec::with_capacity(args.len());
    let mut types = Vec::with_capacity(args.len());
    for (arg, to) in args.into_iter().zip(&wanted) {
        let from = arg.ty();
        let arg = if from.base() == *to { arg } else { binder.must(arg, to)? };
        types.push(if from == SqlType::Unknown {
            to.clone()
        } else if from.base() == *to {
            from
        } else {
            to.clone()
        });
        cast.push(arg);
    }
    let expr = Expr::Call { function, args: cast, types, ty: result };
    Ok(if function.volatility == Volatility::Immutable { fold(expr)? } else { expr })
}

fn coalesce(binder: &mut Binder<'_>, args: Vec<Expr>) -> Result<Expr, BindError> {
    if args.is_empty() {
        return Err(syntax("COALESCE needs an argument").into());
    }
    let (list, ty) = binder.common(args, "COALESCE")?;
    Ok(Expr::Coalesce(list, ty))
}

fn nullif(binder: &mut Binder<'_>, args: Vec<Expr>) -> Result<Expr, BindError> {
    let Ok([left, right]) = <[Expr; 2]>::try_from(args) else {
        return Err(syntax("NULLIF needs two arguments").into());
    };
    // The result has the type in which the two are compared, as in PostgreSQL.
    let (left, right, ty) = binder.comparable(left, right, "=")?;
    Ok(Expr::NullIf { left: Box::new(left), right: Box::new(right), ty })
}

fn extreme(binder: &mut Binder<'_>, args: Vec<Expr>, greatest: bool) -> Result<Expr, BindError> {
    let what = if greatest { "GREATEST" } else { "LEAST" };
    if args.is_empty() {
        return Err(syntax(&format!("{what} needs an argument")).into());
    }
    let (list, ty) = binder.common(args, what)?;
    if !ty.is_orderable() {
        return Err(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("could not identify a comparison function for type {ty}"),
        )
        .into());
    }
    Ok(Expr::Extreme { list, ty, greatest })
}

fn text(value: &str) -> Expr {
    Expr::Literal(Value::text(value), SqlType::Text)
}

/// Special forms.
pub(super) fn bind_special(binder: &mut Binder<'_>, expr: &ast::Expr) -> Result<Expr, BindError> {
    use ast::Expr as E;
    match expr {
        E::Extract { field, expr, .. } => {
            let value = binder.expr(expr)?;
            // The field may be written as a string, or as a name in quotes.
            let field = match field {
                ast::DateTimeField::Custom(name) => name.value.clone(),
                field => field.to_string(),
            };
            call(binder, "extract", vec![text(&field.to_lowercase()), value])
        }
        E::AtTimeZone { timestamp, time_zone } => {
            let (value, zone) = (binder.expr(timestamp)?, binder.expr(time_zone)?);
            call(binder, "timezone", vec![zone, value])
        }
        E::Ceil { expr, field } => rounding(binder, "ceil", expr, field),
        E::Floor { expr, field } => rounding(binder, "floor", expr, field),
        E::Position { expr, r#in } => {
            let (needle, hay) = (binder.expr(expr)?, binder.expr(r#in)?);
            call(binder, "position", vec![hay, needle])
        }
        E::Substring { expr, substring_from, substring_for, shorthand, .. } => {
            let mut args = vec![binder.expr(expr)?];
            match (substring_from, substring_for) {
                (Some(from), Some(length)) => args.extend([binder.expr(from)?, binder.expr(length)?]),
                (Some(from), None) => args.push(binder.expr(from)?),
                (None, Some(length)) => {
                    args.push(Expr::Literal(Value::Int4(1), SqlType::Int4));
                    args.push(binder.expr(length)?);
                }
                (None, None) => return Err(syntax("SUBSTRING needs FROM or FOR").into()),
            }
            call(binder, if *shorthand { "substr" } else { "substring" }, args)
        }
        E::Trim { expr, trim_where, trim_what, trim_characters } => {
            let name = match trim_where {
                Some(ast::TrimWhereField::Leading) => "ltrim",
                Some(ast::TrimWhereField::Trailing) => "rtrim",
                _ => "btrim",
            };
            let mut args = vec![binder.expr(expr)?];
            if let Some(what) = trim_what {
                args.push(binder.expr(what)?);
            } else if let Some([what]) = trim_characters.as_deref() {
                args.push(binder.expr(what)?);
            }
            call(binder, name, args)
        }
        E::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
            let mut args = vec![binder.expr(expr)?, binder.expr(overlay_what)?, binder.expr(overlay_from)?];
            if let Some(length) = overlay_for {
                args.push(binder.expr(length)?);
            }
            call(binder, "overlay", args)
        }
        other => Err(SqlError::unsupported(format!("the expression {other}")).into()),
    }
}

fn rounding(
    binder: &mut Binder<'_>,
    name: &str,
    expr: &ast::Expr,
    field: &ast::CeilFloorKind,
) -> Result<Expr, BindError> {
    if !matches!(field, ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime)) {
        return Err(SqlError::unsupported("CEIL and FLOOR to a field").into());
    }
    let value = binder.expr(expr)?;
    call(binder, name, vec![value])
}
