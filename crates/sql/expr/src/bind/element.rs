//! Subscripts: what they are of, and arrays with another element or slice.

use super::super::coerce::coerce;
use super::super::fold::fold;
use super::super::function::{Function, by_name};
use super::super::functions::element::{SLICE, WITH_ELEMENT, WITH_SLICE};
use super::super::{Expr, Parameters};
use super::{BindContext, BindError, Binder};
use crate::syntax::element::Place;
use crate::types::{CastKind, SqlType, Value, fits_dimensions};
use crate::{SqlError, SqlState};
use sqlparser::ast;

fn no_subscripts(ty: &SqlType) -> SqlError {
    let message = format!("cannot subscript type {ty} because it does not support subscripting");
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

fn is_slice(places: &[Place]) -> bool {
    places.iter().any(|place| matches!(place, Place::Slice(..)))
}

/// The type of what is put at these places of a column of a type.
///
/// # Errors
/// 42804 if it has no places; 0A000 for jsonb.
pub fn type_at(ty: &SqlType, places: &[Place]) -> Result<SqlType, SqlError> {
    match ty {
        SqlType::Array(element) if !is_slice(places) => Ok(element.as_ref().clone()),
        SqlType::Array(_) => Ok(ty.clone()),
        SqlType::Jsonb => Err(SqlError::unsupported("assignment to a part of a jsonb").hint("Use jsonb_set.")),
        other => Err(no_subscripts(other)),
    }
}

/// The subscripts at these places, in the order in which [`assigned`] takes them.
pub fn subscripts(places: &[Place]) -> impl Iterator<Item = &ast::Expr> {
    places
        .iter()
        .flat_map(|place| match place {
            Place::At(index) => [Some(index), None],
            Place::Slice(low, high) => [low.as_ref(), high.as_ref()],
        })
        .flatten()
}

/// A subscript is an integer.
fn integer(index: Expr, parameters: &mut Parameters, context: &BindContext<'_>) -> Result<Expr, BindError> {
    let ty = index.ty();
    Ok(coerce(index, &SqlType::Int4, CastKind::Assignment, parameters, context)?.ok_or_else(|| {
        SqlError::new(SqlState::DATATYPE_MISMATCH, format!("array subscript must have type integer, not {ty}"))
    })?)
}

fn number(value: i32) -> Expr {
    Expr::Literal(Value::Int4(value), SqlType::Int4)
}

fn function(name: &str) -> Result<&'static Function, SqlError> {
    by_name(name).first().copied().ok_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, "a function is missing"))
}

/// An array that differs from another by what is put at these places. `value` is of the type that [`type_at`] says, `bound` are the
/// [`subscripts`].
///
/// # Errors
/// What is wrong with the subscripts.
pub fn assigned(
    array: Expr,
    value: Expr,
    places: &[Place],
    bound: Vec<Expr>,
    parameters: &mut Parameters,
    context: &BindContext<'_>,
) -> Result<Expr, BindError> {
    fits_dimensions(places.len())?;
    let ty = array.ty();
    type_at(&ty, places)?;
    let mut bound = bound.into_iter();
    let slice = is_slice(places);
    let mut args = vec![array, value];
    let mut given = 0;
    let mut bounds = Vec::new();
    for (place, at) in places.iter().enumerate() {
        let mut edge = |edge: usize, said: bool| {
            let Some(index) = said.then(|| bound.next()).flatten() else { return Ok(number(0)) };
            given |= 1 << (2 * place + edge);
            integer(index, parameters, context)
        };
        match at {
            Place::At(_) if !slice => bounds.push(edge(0, true)?),
            // Beside a slice a subscript alone is one from 1 on.
            Place::At(_) => {
                bounds.push(number(1));
                bounds.push(edge(1, true)?);
                given |= 1 << (2 * place);
            }
            Place::Slice(low, high) => {
                bounds.push(edge(0, low.is_some())?);
                bounds.push(edge(1, high.is_some())?);
            }
        }
    }
    if slice {
        args.push(number(given));
    }
    args.extend(bounds);
    let types = args.iter().map(Expr::ty).collect();
    let function = function(if slice { WITH_SLICE } else { WITH_ELEMENT })?;
    Ok(Expr::Call { function, args, types, ty })
}

/// Whether an expression is an array with another element or slice.
pub fn is_assigned(expr: &Expr) -> bool {
    matches!(expr, Expr::Call { function, .. } if function.name == WITH_ELEMENT || function.name == WITH_SLICE)
}

/// `array[low:high]..`: bounds that are left out are `None`.
pub(super) fn slice(
    binder: &mut Binder<'_>,
    array: Expr,
    bounds: &[(Option<&ast::Expr>, Option<&ast::Expr>)],
    subscripts_alone: &[bool],
) -> Result<Expr, BindError> {
    fits_dimensions(bounds.len())?;
    let ty = array.ty();
    let mut args = vec![array, number(0)];
    let mut given = 0;
    for (place, ((low, high), alone)) in bounds.iter().zip(subscripts_alone).enumerate() {
        for (edge, bound) in [(0, low), (1, high)] {
            match bound {
                Some(bound) => {
                    given |= 1 << (2 * place + edge);
                    let bound = binder.expr(bound)?;
                    args.push(integer(bound, binder.parameters, binder.context)?);
                }
                // Beside a slice a subscript alone is one from 1 on.
                None if *alone => {
                    given |= 1 << (2 * place + edge);
                    args.push(number(1));
                }
                None => args.push(number(0)),
            }
        }
    }
    args[1] = number(given);
    let types = args.iter().map(Expr::ty).collect();
    Ok(fold(Expr::Call { function: function(SLICE)?, args, types, ty })?)
}
