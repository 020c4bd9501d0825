//! Bringing expressions to a type.

use super::fold::{fold, unless_ended};
use super::{BindContext, Expr, Parameters};
use crate::types::{CastContext, CastKind, SqlType, Value, cast_kind};
use crate::{SqlError, SqlState};

/// Whether values of one type are values of the other as they stand.
fn same_values(from: &SqlType, to: &SqlType) -> bool {
    let plain = |ty: &SqlType| matches!(ty, SqlType::Text | SqlType::Varchar(None) | SqlType::Unknown);
    let open = |ty: &SqlType| matches!(ty, SqlType::Text | SqlType::Varchar(_) | SqlType::Name);
    let oid = |ty: &SqlType| matches!(ty, SqlType::Oid | SqlType::Reg(_));
    from == to
        || (open(from) && plain(to))
        || (oid(from) && oid(to))
        || match (from, to) {
            // Without a modifier nothing is left to do.
            (
                _,
                SqlType::Char(0)
                | SqlType::Varchar(None)
                | SqlType::Numeric(None)
                | SqlType::Time(None)
                | SqlType::Timetz(None)
                | SqlType::Timestamp(None)
                | SqlType::Timestamptz(None)
                | SqlType::Interval(None),
            ) => from.base() == *to,
            (SqlType::Array(from), SqlType::Array(to)) => same_values(from, to),
            (SqlType::Int2Vector, SqlType::Array(to)) => **to == SqlType::Int2,
            (SqlType::OidVector, SqlType::Array(to)) => **to == SqlType::Oid,
            _ => false,
        }
}

/// Brings an expression to a type by casts of at most this kind; `None` if there is no such cast. Unknown literals are read as
/// values of the type, parameters without a type take it.
///
/// # Errors
/// What is wrong with a literal.
pub fn coerce(
    expr: Expr,
    to: &SqlType,
    kind: CastKind,
    parameters: &mut Parameters,
    context: &BindContext<'_>,
) -> Result<Option<Expr>, SqlError> {
    let explicit = kind == CastKind::Explicit;
    match expr {
        Expr::Literal(Value::Null, _) => Ok(Some(Expr::Literal(Value::Null, to.clone()))),
        Expr::Literal(Value::Text(text), SqlType::Unknown) => literal(&text, to, explicit, context).map(Some),
        Expr::Parameter { index, ty: SqlType::Unknown } => {
            // Another mention may have told the type meanwhile.
            let known = parameters.types().get(index).cloned().unwrap_or(SqlType::Unknown);
            if known != SqlType::Unknown {
                return coerce(Expr::Parameter { index, ty: known }, to, kind, parameters, context);
            }
            // Names of relations come as text: binary and text forms alike would need the catalog to be read.
            let ty = if matches!(to, SqlType::Reg(_)) { SqlType::Text } else { to.base() };
            parameters.set(index, &ty);
            Ok(Some(with_modifier(Expr::Parameter { index, ty: ty.clone() }, &ty, to, explicit)))
        }
        expr => {
            let from = expr.ty();
            if from == *to || (!explicit && same_values(&from, to)) {
                return Ok(Some(expr));
            }
            match cast_kind(&from, to) {
                Some(needed) if needed <= kind => {
                    let cast = Expr::Cast { expr: Box::new(expr), from, to: to.clone(), explicit };
                    fold(cast).map(Some)
                }
                _ => Ok(None),
            }
        }
    }
}

fn with_modifier(expr: Expr, from: &SqlType, to: &SqlType, explicit: bool) -> Expr {
    if same_values(from, to) {
        return expr;
    }
    Expr::Cast { expr: Box::new(expr), from: from.clone(), to: to.clone(), explicit }
}

/// Reads an unknown literal. What depends on the session or the time of execution stays a cast.
fn literal(text: &str, to: &SqlType, explicit: bool, context: &BindContext<'_>) -> Result<Expr, SqlError> {
    let later = || Expr::Cast {
        expr: Box::new(Expr::Literal(Value::text(text), SqlType::Text)),
        from: SqlType::Text,
        to: to.clone(),
        explicit,
    };
    super::literals::note(text, to, context.settings);
    let depends = match to {
        SqlType::Date | SqlType::Time(_) | SqlType::Timestamp(_) => crate::types::is_special_time(text),
        SqlType::Timestamptz(_) | SqlType::Timetz(_) => {
            if crate::types::is_special_time(text) {
                true
            } else {
                // Read once for its errors.
                Value::parse_text(to, text, context.settings)?;
                !crate::types::has_zone(to, text, context.settings.styles.order)
            }
        }
        SqlType::Reg(_) => context.objects.is_none(),
        SqlType::Array(element) => match &**element {
            SqlType::Timestamptz(_) | SqlType::Timetz(_) => true,
            SqlType::Date | SqlType::Time(_) | SqlType::Timestamp(_) => {
                text.split(|c: char| !c.is_ascii_alphabetic()).any(crate::types::is_special_time)
            }
            _ => false,
        },
        _ => false,
    };
    if depends {
        return Ok(later());
    }
    let unnamed = CastContext::new(context.settings);
    let casts = CastContext { objects: context.objects.unwrap_or(unnamed.objects), ..unnamed };
    let source = Value::text(text);
    let value = match to {
        // What is too long for the type is an error only where it is asked for: a DEFAULT may never be.
        SqlType::Varchar(_) | SqlType::Char(_) => {
            match unless_ended(source.cast(&SqlType::Text, to, explicit, &casts))? {
                Some(value) => value,
                None => return Ok(later()),
            }
        }
        SqlType::Numeric(Some(_)) => {
            let open = SqlType::Numeric(None);
            let value = Value::parse_text(&open, text, context.settings)?;
            match unless_ended(value.cast(&open, to, explicit, &casts))? {
                Some(value) => value,
                None => {
                    let expr = Box::new(Expr::Literal(value, open.clone()));
                    return Ok(Expr::Cast { expr, from: open, to: to.clone(), explicit });
                }
            }
        }
        SqlType::Unknown => return Ok(Expr::Literal(source, SqlType::Unknown)),
        _ => source.cast(&SqlType::Text, to, explicit, &casts)?,
    };
    Ok(Expr::Literal(value, to.clone()))
}

/// Brings an expression to the type of the column that it is assigned to.
///
/// # Errors
/// 42804 if there is no assignment cast, else as [`coerce`].
pub fn assign(
    expr: Expr,
    column: &str,
    to: &SqlType,
    parameters: &mut Parameters,
    context: &BindContext<'_>,
) -> Result<Expr, SqlError> {
    let from = expr.ty();
    coerce(expr, to, CastKind::Assignment, parameters, context)?.ok_or_else(|| {
        SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("column \"{column}\" is of type {} but expression is of type {}", to.base(), from.base()),
        )
        .hint("You will need to rewrite or cast the expression.")
    })
}
