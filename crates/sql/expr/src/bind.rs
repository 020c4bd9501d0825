//! From the syntax tree to bound expressions.

pub mod element;

use super::coerce::coerce;
use super::fold::{fold, settle};
use super::{Expr, Parameters, Scope, bind_function, bind_operator, resolve};
use crate::syntax::depth;
use crate::syntax::forms::{no_fields_here, spread};
use crate::types::EvalSettings;
use crate::types::{
    CastKind, Field, Interval, IntervalModifier, Numeric, ObjectNames, SqlType, Value, cannot_cast, fits_dimensions,
};
use crate::work::Pace;
use crate::{SqlError, SqlState};
use sqlparser::ast;

/// Deepest nesting of an expression: each level needs much of the stack while it is bound.
pub const DEPTH_MAX: usize = 1_000;

/// What binding needs beside names and parameters.
#[derive(Clone, Copy)]
pub struct BindContext<'a> {
    /// Settings.
    pub settings: &'a EvalSettings,
    /// Objects, for their names in literals (`'t'::regclass`, `nextval('s')`).
    pub objects: Option<&'a dyn ObjectNames>,
    /// Of the statement: each expression within an expression is a step.
    pub pace: &'a Pace,
}

/// Why an expression was not bound.
#[derive(Clone, Debug, PartialEq)]
pub enum BindError {
    /// It needs the general engine: what for, in words.
    NeedsEngine(&'static str),
    /// It is wrong. 42883 may still be a function that only the engine knows.
    Sql(SqlError),
}

impl From<SqlError> for BindError {
    fn from(error: SqlError) -> Self {
        BindError::Sql(error)
    }
}

impl BindError {
    /// The error where there is no engine to fall back to.
    pub fn into_sql(self) -> SqlError {
        match self {
            BindError::Sql(error) => error,
            BindError::NeedsEngine(what) => SqlError::unsupported(format!("{what} here")),
        }
    }
}

/// A binder at work.
pub(super) struct Binder<'a> {
    pub scope: &'a Scope,
    pub parameters: &'a mut Parameters,
    pub context: &'a BindContext<'a>,
    pub depth: usize,
}

/// Binds an expression.
///
/// # Errors
/// See [`BindError`]; what evaluation finds wrong with a constant that will be asked for.
pub fn bind(
    expr: &ast::Expr,
    scope: &Scope,
    parameters: &mut Parameters,
    context: &BindContext<'_>,
) -> Result<Expr, BindError> {
    let bound = bind_lazily(expr, scope, parameters, context)?;
    settle(&bound)?;
    Ok(bound)
}

/// Binds an expression that may never be asked for: a constant in it may fail when it is.
///
/// # Errors
/// See [`BindError`].
pub fn bind_lazily(
    expr: &ast::Expr,
    scope: &Scope,
    parameters: &mut Parameters,
    context: &BindContext<'_>,
) -> Result<Expr, BindError> {
    Binder { scope, parameters, context, depth: 0 }.expr(expr)
}

/// Binds a condition; `clause` (`WHERE`) is named if it is not boolean.
///
/// # Errors
/// See [`BindError`]; 42804 if it is not boolean.
pub fn bind_condition(
    expr: &ast::Expr,
    clause: &str,
    scope: &Scope,
    parameters: &mut Parameters,
    context: &BindContext<'_>,
) -> Result<Expr, BindError> {
    let mut binder = Binder { scope, parameters, context, depth: 0 };
    let bound = binder.expr(expr)?;
    let bound = binder.boolean(bound, clause)?;
    settle(&bound)?;
    Ok(bound)
}

impl Binder<'_> {
    /// Brings an expression to bool for AND, WHERE and their kind.
    pub(super) fn boolean(&mut self, expr: Expr, clause: &str) -> Result<Expr, BindError> {
        let ty = expr.ty();
        self.implicit(expr, &SqlType::Bool)?.ok_or_else(|| {
            BindError::Sql(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of {clause} must be type boolean, not type {}", ty.base()),
            ))
        })
    }

    pub(super) fn implicit(&mut self, expr: Expr, to: &SqlType) -> Result<Option<Expr>, BindError> {
        Ok(coerce(expr, to, CastKind::Implicit, self.parameters, self.context)?)
    }

    /// Brings an expression to a type that resolution has found to fit.
    pub(super) fn must(&mut self, expr: Expr, to: &SqlType) -> Result<Expr, BindError> {
        let from = expr.ty();
        self.implicit(expr, to)?.ok_or_else(|| BindError::Sql(cannot_cast(&from, to)))
    }

    pub(super) fn explicit(&mut self, expr: Expr, to: &SqlType) -> Result<Expr, BindError> {
        let from = expr.ty();
        coerce(expr, to, CastKind::Explicit, self.parameters, self.context)?
            .ok_or_else(|| BindError::Sql(cannot_cast(&from, to)))
    }

    pub(super) fn list(&mut self, list: &[ast::Expr]) -> Result<Vec<Expr>, BindError> {
        list.iter().map(|expr| self.expr(expr)).collect()
    }

    /// Brings branches of `what` (CASE, COALESCE) to one type.
    pub(super) fn common(&mut self, list: Vec<Expr>, what: &str) -> Result<(Vec<Expr>, SqlType), BindError> {
        let types: Vec<SqlType> = list.iter().map(Expr::ty).collect();
        let ty = resolve::common_type(&types).map_err(|(a, b)| {
            SqlError::new(SqlState::DATATYPE_MISMATCH, format!("{what} types {a} and {b} cannot be matched"))
        })?;
        let list: Result<Vec<Expr>, BindError> = list.into_iter().map(|expr| self.must(expr, &ty)).collect();
        Ok((list?, ty))
    }

    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Result<Expr, BindError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(depth::too_deep().hint(format!("An expression nests at most {DEPTH_MAX} levels.")).into());
        }
        self.context.pace.step()?;
        let bound = self.expr_at_depth(expr)?;
        self.depth -= 1;
        Ok(fold(bound)?)
    }

    fn expr_at_depth(&mut self, expr: &ast::Expr) -> Result<Expr, BindError> {
        use ast::Expr as E;
        match expr {
            E::Identifier(ident) => self.column(std::slice::from_ref(ident)),
            E::CompoundIdentifier(parts) => self.column(parts),
            E::Value(value) => self.value(&value.value),
            E::Nested(inner) => self.expr(inner),
            E::BinaryOp { left, op, right } => self.binary(left, op, right),
            E::UnaryOp { op, expr } => self.unary(*op, expr),
            E::IsNull(inner) => Ok(Expr::IsNull { expr: Box::new(self.null_test(inner)?), negated: false }),
            E::IsNotNull(inner) => Ok(Expr::IsNull { expr: Box::new(self.null_test(inner)?), negated: true }),
            E::IsTrue(inner) => self.bool_test(inner, true, false),
            E::IsNotTrue(inner) => self.bool_test(inner, true, true),
            E::IsFalse(inner) => self.bool_test(inner, false, false),
            E::IsNotFalse(inner) => self.bool_test(inner, false, true),
            E::IsUnknown(inner) | E::IsNotUnknown(inner) => {
                let inner = self.expr(inner)?;
                let inner = self.boolean(inner, "IS UNKNOWN")?;
                Ok(Expr::IsNull { expr: Box::new(inner), negated: matches!(expr, E::IsNotUnknown(_)) })
            }
            E::IsDistinctFrom(left, right) => self.distinct(left, right, false),
            E::IsNotDistinctFrom(left, right) => self.distinct(left, right, true),
            E::Between { expr, negated, low, high } => self.between(expr, *negated, low, high),
            E::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            E::AnyOp { left, compare_op, right, .. } => self.any_all(left, compare_op, right, false),
            E::AllOp { left, compare_op, right } => self.any_all(left, compare_op, right, true),
            E::Like { negated, expr, pattern, escape_char, any: false } => {
                self.like("~~", *negated, expr, pattern, escape_char.as_ref())
            }
            E::ILike { negated, expr, pattern, escape_char, any: false } => {
                self.like("~~*", *negated, expr, pattern, escape_char.as_ref())
            }
            E::Like { negated, expr, pattern, any: true, .. } => self.like_any("~~", *negated, expr, pattern),
            E::ILike { negated, expr, pattern, any: true, .. } => self.like_any("~~*", *negated, expr, pattern),
            E::SimilarTo { negated, expr, pattern, escape_char } => {
                self.like("similar to", *negated, expr, pattern, escape_char.as_ref())
            }
            E::Cast { expr, data_type, .. } => self.cast(expr, data_type),
            E::TypedString(typed) => {
                let text = text_of(&typed.value.value).ok_or_else(|| syntax("a typed literal needs a string"))?;
                self.cast_bound(Expr::Literal(Value::text(text), SqlType::Unknown), &typed.data_type)
            }
            E::Interval(interval) => self.interval(interval),
            E::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            E::Function(function) => bind_function::bind(self, function),
            E::Tuple(fields) => Ok(Expr::Row(self.row_fields(fields)?)),
            E::Array(array) => self.array(&array.elem, None),
            E::CompoundFieldAccess { .. } if spread(expr).is_some() => Err(no_fields_here().into()),
            E::CompoundFieldAccess { root, access_chain } => self.subscripts(root, access_chain),
            E::Collate { expr, collation } => self.collate(expr, collation),
            E::Exists { .. } | E::Subquery(_) | E::InSubquery { .. } => Err(BindError::NeedsEngine("a subquery")),
            E::InUnnest { .. } => Err(BindError::NeedsEngine("unnest")),
            E::GroupingSets(_) | E::Cube(_) | E::Rollup(_) => Err(BindError::NeedsEngine("a grouping set")),
            E::Wildcard(_) | E::QualifiedWildcard(..) => Err(syntax("\"*\" is not allowed here").into()),
            other => bind_function::bind_special(self, other),
        }
    }

    fn column(&mut self, parts: &[ast::Ident]) -> Result<Expr, BindError> {
        match self.scope.resolve(parts) {
            Ok(index) => Ok(Expr::Column { index, ty: self.scope.ty(index).clone() }),
            Err(error) => {
                // Some functions are written without parentheses and may reach us as names.
                if let [ident] = parts
                    && ident.quote_style.is_none()
                    && let Some(call) = bind_function::bare_name(self, &ident.value.to_lowercase())
                {
                    return call;
                }
                Err(error.into())
            }
        }
    }

    pub(super) fn value(&mut self, value: &ast::Value) -> Result<Expr, BindError> {
        Ok(match value {
            ast::Value::Number(text, _) => number(text)?,
            ast::Value::Boolean(value) => Expr::Literal(Value::Bool(*value), SqlType::Bool),
            ast::Value::Null => Expr::Literal(Value::Null, SqlType::Unknown),
            ast::Value::Placeholder(text) => self.parameters.expression(text)?,
            ast::Value::HexStringLiteral(_) | ast::Value::SingleQuotedByteStringLiteral(_) => {
                return Err(SqlError::unsupported("a bit string").into());
            }
            // N'..' is a character(n) of its own length, as the standard has it.
            ast::Value::NationalStringLiteral(text) => Expr::Literal(Value::text(text.as_str()), SqlType::Char(0)),
            other => match text_of(other) {
                Some(text) => Expr::Literal(Value::text(text), SqlType::Unknown),
                None => return Err(syntax(&format!("the literal {other} is not understood")).into()),
            },
        })
    }

    fn null_test(&mut self, expr: &ast::Expr) -> Result<Expr, BindError> {
        let inner = self.expr(expr)?;
        // A bare parameter tells nothing about its type here; text is what PostgreSQL settles on.
        if inner.ty() == SqlType::Unknown { self.must(inner, &SqlType::Text) } else { Ok(inner) }
    }

    fn bool_test(&mut self, inner: &ast::Expr, value: bool, negated: bool) -> Result<Expr, BindError> {
        let inner = self.expr(inner)?;
        let clause = match (value, negated) {
            (true, false) => "IS TRUE",
            (true, true) => "IS NOT TRUE",
            (false, false) => "IS FALSE",
            (false, true) => "IS NOT FALSE",
        };
        Ok(Expr::IsBool { expr: Box::new(self.boolean(inner, clause)?), value, negated })
    }

    fn distinct(&mut self, left: &ast::Expr, right: &ast::Expr, negated: bool) -> Result<Expr, BindError> {
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        let (left, right, ty) = self.comparable(left, right, "=")?;
        Ok(Expr::IsDistinct { ty, left: Box::new(left), right: Box::new(right), negated })
    }

    fn cast(&mut self, expr: &ast::Expr, data_type: &ast::DataType) -> Result<Expr, BindError> {
        if let ast::Expr::Array(array) = expr
            && let SqlType::Array(element) = SqlType::from_ast(data_type)?
        {
            return self.array(&array.elem, Some(&element));
        }
        let inner = self.expr(expr)?;
        self.cast_bound(inner, data_type)
    }

    fn cast_bound(&mut self, inner: Expr, data_type: &ast::DataType) -> Result<Expr, BindError> {
        let ty = SqlType::from_ast(data_type)?;
        self.explicit(inner, &ty)
    }

    fn interval(&mut self, interval: &ast::Interval) -> Result<Expr, BindError> {
        let text = match interval.value.as_ref() {
            ast::Expr::Value(value) => match &value.value {
                ast::Value::Number(text, _) => text.clone(),
                other => text_of(other).ok_or_else(|| syntax("an interval needs a string"))?.to_owned(),
            },
            _ => return Err(SqlError::unsupported("an interval of an expression").into()),
        };
        let field = |field: &Option<ast::DateTimeField>| field.as_ref().map(interval_field).transpose();
        let (first, last) = (field(&interval.leading_field)?, field(&interval.last_field)?);
        if let (Some(from), Some(to)) = (first, last)
            && !IntervalModifier::may_span(from, to)
        {
            let to = interval.last_field.as_ref().map_or_else(String::new, ToString::to_string);
            return Err(syntax(&format!("syntax error at or near \"{}\"", to.to_lowercase())).into());
        }
        let digits = interval.fractional_seconds_precision.or(interval.leading_precision);
        let modifier = IntervalModifier {
            fields: first.map(|first| (first, last.unwrap_or(first))),
            precision: digits.map(|digits| digits.min(6) as u32),
        };
        let value = Interval::parse(&text, modifier, self.context.settings.styles.interval)?;
        Ok(Expr::Literal(Value::Interval(value), SqlType::Interval(None)))
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Expr, BindError> {
        let mut whens = Vec::new();
        let mut results = Vec::new();
        let mut operand = operand.map(|expr| self.expr(expr)).transpose()?;
        let mut compared = None;
        for branch in conditions {
            let when = self.expr(&branch.condition)?;
            whens.push(when);
            results.push(self.expr(&branch.result)?);
        }
        if let Some(value) = operand.take() {
            let mut ty = value.ty();
            for when in &whens {
                ty = resolve::comparison_type(&ty, &when.ty()).ok_or_else(|| no_operator("=", &[&ty, &when.ty()]))?;
            }
            whens = whens.into_iter().map(|when| self.must(when, &ty)).collect::<Result<_, _>>()?;
            compared = Some((Box::new(self.must(value, &ty)?), ty));
        } else {
            whens = whens.into_iter().map(|when| self.boolean(when, "CASE/WHEN")).collect::<Result<_, _>>()?;
        }
        let has_else = otherwise.is_some();
        if let Some(otherwise) = otherwise {
            results.push(self.expr(otherwise)?);
        }
        let (mut results, ty) = self.common(results, "CASE")?;
        let otherwise = if has_else { results.pop().map(Box::new) } else { None };
        Ok(Expr::Case { operand: compared, branches: whens.into_iter().zip(results).collect(), otherwise, ty })
    }

    /// Fields of a row: unknown ones are text.
    fn row_fields(&mut self, fields: &[ast::Expr]) -> Result<Vec<Expr>, BindError> {
        let fields = self.list(fields)?;
        fields
            .into_iter()
            .map(|field| if field.ty() == SqlType::Unknown { self.must(field, &SqlType::Text) } else { Ok(field) })
            .collect()
    }

    fn array(&mut self, items: &[ast::Expr], element: Option<&SqlType>) -> Result<Expr, BindError> {
        if items.is_empty() {
            let Some(element) = element else {
                return Err(SqlError::new(SqlState::INDETERMINATE_DATATYPE, "cannot determine type of empty array")
                    .hint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
                    .into());
            };
            return Ok(Expr::Array { items: vec![], element: element.clone() });
        }
        let nested = |item: &ast::Expr| matches!(item, ast::Expr::Array(_));
        if items.iter().all(nested) {
            let mut bound = Vec::new();
            for item in items {
                if let ast::Expr::Array(inner) = item {
                    bound.push(self.array(&inner.elem, element)?);
                }
            }
            let (bound, ty) = self.common(bound, "ARRAY")?;
            let SqlType::Array(element) = ty else { return Err(syntax("malformed array").into()) };
            return Ok(Expr::Array { items: bound, element: *element });
        }
        let bound = self.list(items)?;
        if let Some(element) = element {
            let items: Result<Vec<Expr>, BindError> = bound
                .into_iter()
                .map(|item| match item.ty() {
                    SqlType::Array(_) => self.explicit(item, &SqlType::Array(Box::new(element.clone()))),
                    _ => self.explicit(item, element),
                })
                .collect();
            return Ok(Expr::Array { items: items?, element: element.clone() });
        }
        let (items, ty) = self.common(bound, "ARRAY")?;
        let element = match ty {
            SqlType::Array(inner) => *inner,
            scalar => scalar,
        };
        Ok(Expr::Array { items, element })
    }

    fn subscripts(&mut self, root: &ast::Expr, chain: &[ast::AccessExpr]) -> Result<Expr, BindError> {
        // The library reads `t.column[1]` as a chain that begins at t.
        let mut parts = match root {
            ast::Expr::Identifier(ident) => vec![ident.clone()],
            ast::Expr::CompoundIdentifier(parts) => parts.clone(),
            _ => Vec::new(),
        };
        let mut chain = chain;
        while let (false, [ast::AccessExpr::Dot(ast::Expr::Identifier(field)), rest @ ..]) = (parts.is_empty(), chain) {
            parts.push(field.clone());
            chain = rest;
        }
        let array = if parts.len() > 1 { self.column(&parts)? } else { self.expr(root)? };
        if chain.is_empty() {
            return Ok(array);
        }
        let mut bounds = Vec::new();
        // Which of them are no slices.
        let mut alone = Vec::new();
        let mut is_slice = false;
        for access in chain {
            alone.push(matches!(access, ast::AccessExpr::Subscript(ast::Subscript::Index { .. })));
            match access {
                ast::AccessExpr::Subscript(ast::Subscript::Index { index }) => bounds.push((None, Some(index))),
                ast::AccessExpr::Subscript(ast::Subscript::Slice { lower_bound, upper_bound, stride: None }) => {
                    is_slice = true;
                    bounds.push((lower_bound.as_ref(), upper_bound.as_ref()));
                }
                _ => return Err(SqlError::unsupported("a field of a composite value").into()),
            }
        }
        if matches!(array.ty(), SqlType::Array(_) | SqlType::Int2Vector | SqlType::OidVector) {
            fits_dimensions(bounds.len())?;
        }
        match array.ty() {
            SqlType::Array(element) if !is_slice => self.element_of(array, *element, &bounds),
            SqlType::Int2Vector if !is_slice => self.element_of(array, SqlType::Int2, &bounds),
            SqlType::OidVector if !is_slice => self.element_of(array, SqlType::Oid, &bounds),
            SqlType::Name if !is_slice => self.element_of(array, SqlType::SingleChar, &bounds),
            SqlType::Jsonb if !is_slice => {
                let mut value = array;
                for (_, index) in bounds {
                    let Some(index) = index else { continue };
                    let index = self.expr(index)?;
                    value = self.operator("->", vec![value, index])?;
                }
                Ok(value)
            }
            SqlType::Array(_) => element::slice(self, array, &bounds, &alone),
            ty => Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("cannot subscript type {ty} because it does not support subscripting"),
            )
            .into()),
        }
    }

    fn element_of(
        &mut self,
        array: Expr,
        element: SqlType,
        bounds: &[(Option<&ast::Expr>, Option<&ast::Expr>)],
    ) -> Result<Expr, BindError> {
        let mut indexes = Vec::new();
        for (_, index) in bounds {
            let Some(index) = index else { continue };
            let index = self.expr(index)?;
            let ty = index.ty();
            let index = coerce(index, &SqlType::Int4, CastKind::Assignment, self.parameters, self.context)?
                .ok_or_else(|| {
                    SqlError::new(
                        SqlState::DATATYPE_MISMATCH,
                        format!("array subscript must have type integer, not {ty}"),
                    )
                })?;
            indexes.push(index);
        }
        Ok(Expr::Subscript { array: Box::new(array), indexes, ty: element })
    }

    fn collate(&mut self, expr: &ast::Expr, collation: &ast::ObjectName) -> Result<Expr, BindError> {
        known_collation(collation)?;
        self.expr(expr)
    }
}

/// Whether a collation is one of those that there are: all comparisons are by bytes, which is what they mean.
///
/// # Errors
/// 42704 for another.
pub fn known_collation(collation: &ast::ObjectName) -> Result<(), SqlError> {
    let name = collation.0.last().and_then(|part| part.as_ident()).map(crate::identifier::fold).unwrap_or_default();
    if matches!(name.as_str(), "C" | "POSIX" | "default" | "ucs_basic") {
        return Ok(());
    }
    let message = format!("collation \"{name}\" for encoding \"UTF8\" does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message).hint("Texts are compared by bytes: the collation \"C\"."))
}

pub(super) fn syntax(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

pub(super) fn no_operator(symbol: &str, types: &[&SqlType]) -> SqlError {
    bind_operator::not_found(symbol, &types.iter().map(|ty| (*ty).clone()).collect::<Vec<_>>())
}

/// The text of a string literal.
fn interval_field(field: &ast::DateTimeField) -> Result<Field, SqlError> {
    Ok(match field {
        ast::DateTimeField::Year => Field::Year,
        ast::DateTimeField::Month => Field::Month,
        ast::DateTimeField::Day => Field::Day,
        ast::DateTimeField::Hour => Field::Hour,
        ast::DateTimeField::Minute => Field::Minute,
        ast::DateTimeField::Second => Field::Second,
        other => return Err(syntax(&format!("syntax error at or near \"{other}\""))),
    })
}

pub(super) fn text_of(value: &ast::Value) -> Option<&str> {
    match value {
        ast::Value::SingleQuotedString(text)
        | ast::Value::EscapedStringLiteral(text)
        | ast::Value::UnicodeStringLiteral(text)
        | ast::Value::NationalStringLiteral(text)
        | ast::Value::TripleSingleQuotedString(text)
        | ast::Value::SingleQuotedRawStringLiteral(text) => Some(text),
        ast::Value::DollarQuotedString(dollar) => Some(&dollar.value),
        _ => None,
    }
}

/// The least type that holds a number as written: int4, int8, numeric.
pub(super) fn number(text: &str) -> Result<Expr, SqlError> {
    let clean = text.replace('_', "");
    if let Ok(value) = clean.parse::<i64>() {
        return Ok(match i32::try_from(value) {
            Ok(small) => Expr::Literal(Value::Int4(small), SqlType::Int4),
            Err(_) => Expr::Literal(Value::Int8(value), SqlType::Int8),
        });
    }
    Ok(Expr::Literal(Value::Numeric(Numeric::parse(&clean)?), SqlType::Numeric(None)))
}
