//! Functions that return sets: in FROM, and in the select list.

use super::bind::Binder;
use super::node::Node;
use super::scalar::Scalar;
use super::scope::{Scope, slot_expr};
use super::set_function::{SetCall, SetFunction};
use super::take::{Clause, Held, call_args, call_expr, function_name};
use super::types::cast_expr;
use crate::expr::function::is_set_returning;
use crate::pg_catalog::functions;
use crate::types::{CastKind, SqlType};
use crate::{SqlError, SqlState};
use sqlparser::ast::{self, Expr};
use std::sync::Arc;

/// A call in FROM, and the names of its columns.
pub(super) struct FromCall {
    pub(super) call: SetCall,
    pub(super) names: Vec<String>,
}

/// The place of a field of a set function's composite rows.
pub(super) fn field_place(name: &str, field: &str) -> Option<usize> {
    match (name, field) {
        ("_pg_expandarray", "x") => Some(0),
        ("_pg_expandarray", "n") => Some(1),
        ("json_each" | "jsonb_each" | "json_each_text" | "jsonb_each_text", "key") => Some(0),
        ("json_each" | "jsonb_each" | "json_each_text" | "jsonb_each_text", "value") => Some(1),
        _ => functions::set_columns(name)?.iter().position(|(column, _)| *column == field),
    }
}

/// The fields of a set function's composite rows.
pub(super) fn fields_of(name: &str) -> Option<Vec<&'static str>> {
    match name {
        "_pg_expandarray" => Some(vec!["x", "n"]),
        "json_each" | "jsonb_each" | "json_each_text" | "jsonb_each_text" => Some(vec!["key", "value"]),
        _ => Some(functions::set_columns(name)?.iter().map(|(column, _)| *column).collect()),
    }
}

fn undefined(name: &str, types: &[SqlType]) -> SqlError {
    let list = types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("function {name}({list}) does not exist"))
        .hint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

impl Binder<'_> {
    /// Calls in FROM: one, or one for each array of unnest.
    pub(super) fn from_calls(
        &mut self,
        name: &str,
        args: Vec<Expr>,
        scope: &Scope<'_>,
    ) -> Result<Vec<FromCall>, SqlError> {
        let clause = Clause::plain("functions in FROM");
        if name == "unnest" && args.len() > 1 {
            let mut calls = Vec::with_capacity(args.len());
            for arg in args {
                calls.extend(self.from_calls(name, vec![arg], scope)?);
            }
            return Ok(calls);
        }
        let mut taken = Vec::with_capacity(args.len());
        for arg in args {
            taken.push(self.take(arg, scope, clause)?);
        }
        if is_set_returning(name) {
            return Ok(vec![self.set_call(name, taken, scope)?]);
        }
        // A function that gives one value: a table of one row.
        let call = self.take(call_expr(name, taken), scope, clause)?;
        let scalar = self.compile(call, scope)?;
        let scalar = self.known(scalar)?;
        let columns = vec![scalar.ty.clone()];
        let call = SetCall { function: SetFunction::Value, args: vec![scalar], columns };
        Ok(vec![FromCall { call, names: vec![name.to_string()] }])
    }

    fn compiled(&mut self, args: Vec<Expr>, scope: &Scope<'_>) -> Result<Vec<Scalar>, SqlError> {
        args.into_iter().map(|arg| self.compile(arg, scope)).collect()
    }

    /// A set function whose arguments have their names resolved.
    fn set_call(&mut self, name: &str, args: Vec<Expr>, scope: &Scope<'_>) -> Result<FromCall, SqlError> {
        if let Some(columns) = functions::set_columns(name) {
            let args = self.compiled(args, scope)?;
            let args = args.into_iter().map(|arg| self.known(arg)).collect::<Result<_, _>>()?;
            let function = functions::find_set(name).map_or(SetFunction::Value, SetFunction::Catalog);
            let (labels, types): (Vec<&str>, Vec<SqlType>) = columns.into_iter().unzip();
            return Ok(FromCall { call: SetCall { function, args, columns: types }, names: owned(&labels) });
        }
        match name {
            "generate_series" => self.series(args, scope),
            // Sets that are an array's elements in disguise.
            "regexp_split_to_table" | "string_to_table" => {
                let array = if name == "string_to_table" { "string_to_array" } else { "regexp_split_to_array" };
                let inner = self.set_call("unnest", vec![call_expr(array, args)], scope)?;
                Ok(FromCall { names: owned(&[name]), ..inner })
            }
            "regexp_matches" if (2..=3).contains(&args.len()) => {
                let args = self.compiled(args, scope)?;
                let types: Vec<SqlType> = args.iter().map(|arg| arg.ty.clone()).collect();
                let mut texts = Vec::with_capacity(args.len());
                for arg in args {
                    let text = self.coerce(arg, &SqlType::Text, CastKind::Implicit)?;
                    texts.push(text.ok_or_else(|| undefined(name, &types))?);
                }
                let columns = vec![SqlType::Array(Box::new(SqlType::Text))];
                let call = SetCall { function: SetFunction::Matches, args: texts, columns };
                Ok(FromCall { call, names: owned(&[name]) })
            }
            _ => self.elements(name, args, scope),
        }
    }

    /// The elements or members of an array or a json value.
    fn elements(&mut self, name: &str, args: Vec<Expr>, scope: &Scope<'_>) -> Result<FromCall, SqlError> {
        let args = self.compiled(args, scope)?;
        let types: Vec<SqlType> = args.iter().map(|arg| arg.ty.clone()).collect();
        let wrong = || undefined(name, &types);
        let binary = name.starts_with("jsonb");
        let json = if binary { SqlType::Jsonb } else { SqlType::Json };
        let text = name.ends_with("_text");
        let value = if text { SqlType::Text } else { json.clone() };
        let first = types.first().ok_or_else(wrong)?;
        let of_array = || element(first).ok_or_else(wrong);
        let (function, columns, labels): (SetFunction, Vec<SqlType>, &[&str]) = match name {
            "unnest" => (SetFunction::Unnest, vec![of_array()?], &["unnest"]),
            "_pg_expandarray" => (SetFunction::Expand, vec![of_array()?, SqlType::Int4], &["x", "n"]),
            "generate_subscripts" if types.len() >= 2 => {
                of_array()?;
                (SetFunction::Subscripts, vec![SqlType::Int4], &["generate_subscripts"])
            }
            "json_object_keys" | "jsonb_object_keys" => (SetFunction::JsonKeys, vec![SqlType::Text], &[name]),
            _ if name.contains("array_elements") => {
                (SetFunction::JsonElements { text, binary }, vec![value], &["value"])
            }
            _ if name.contains("_each") => {
                (SetFunction::JsonEach { text, binary }, vec![SqlType::Text, value], &["key", "value"])
            }
            _ => return Err(wrong()),
        };
        let mut out = Vec::with_capacity(args.len());
        for arg in args {
            out.push(if name.starts_with("json") {
                self.coerce(arg, &json, CastKind::Implicit)?.ok_or_else(wrong)?
            } else {
                self.known(arg)?
            });
        }
        Ok(FromCall { call: SetCall { function, args: out, columns }, names: owned(labels) })
    }

    fn series(&mut self, args: Vec<Expr>, scope: &Scope<'_>) -> Result<FromCall, SqlError> {
        use SqlType as T;
        let compiled = self.compiled(args.clone(), scope)?;
        let types: Vec<SqlType> = compiled.iter().map(|arg| arg.ty.clone()).collect();
        let name = "generate_series";
        if !(2..=3).contains(&types.len()) {
            return Err(undefined(name, &types));
        }
        let any = |wanted: fn(&SqlType) -> bool| types.iter().any(wanted);
        let (ty, step) = if any(|ty| matches!(ty, T::Timestamptz(_))) {
            (T::Timestamptz(None), T::Interval(None))
        } else if any(|ty| matches!(ty, T::Timestamp(_))) {
            (T::Timestamp(None), T::Interval(None))
        } else if any(|ty| matches!(ty, T::Date)) {
            (T::Timestamptz(None), T::Interval(None))
        } else if any(|ty| matches!(ty, T::Numeric(_))) {
            (T::Numeric(None), T::Numeric(None))
        } else if any(|ty| *ty == T::Int8) {
            (T::Int8, T::Int8)
        } else {
            (T::Int4, T::Int4)
        };
        let mut out = Vec::with_capacity(args.len());
        for (place, arg) in compiled.into_iter().enumerate() {
            let to = if place == 2 { &step } else { &ty };
            let types = types.clone();
            out.push(self.coerce(arg, to, CastKind::Implicit)?.ok_or_else(|| undefined(name, &types))?);
        }
        let function = match ty {
            T::Int4 | T::Int8 => SetFunction::Integers,
            T::Numeric(_) => SetFunction::Numerics,
            _ => {
                let sum = Expr::BinaryOp {
                    left: Box::new(slot_expr(0)),
                    op: ast::BinaryOperator::Plus,
                    right: Box::new(slot_expr(1)),
                };
                let sum = cast_expr(sum, &ty);
                SetFunction::Times(self.bind(&sum, &[ty.clone(), T::Interval(None)])?)
            }
        };
        Ok(FromCall { call: SetCall { function, args: out, columns: vec![ty] }, names: vec![name.to_string()] })
    }

    /// Plans the set functions taken out of a select list: their columns come after the row.
    pub(super) fn plan_sets(&mut self, node: Arc<Node>, scope: &mut Scope<'_>) -> Result<Arc<Node>, SqlError> {
        let places = std::mem::take(&mut self.sets);
        if places.is_empty() {
            return Ok(node);
        }
        let mut calls: Vec<SetCall> = Vec::with_capacity(places.len());
        let mut known: Vec<(String, usize, Vec<String>)> = Vec::new();
        let mut next = scope.width();
        let mut added = Vec::new();
        for place in places {
            let Held::Set(function, column) = self.held[place].clone() else { continue };
            let text = function.to_string();
            let (first, names) = match known.iter().find(|(other, ..)| *other == text) {
                Some((_, first, names)) => (*first, names.clone()),
                None => {
                    let name = function_name(&function.name).map_or_else(String::new, |(_, name)| name);
                    let FromCall { call, names } = self.set_call(&name, call_args(&function)?, scope)?;
                    let first = next;
                    next += call.columns.len();
                    added.extend(call.columns.iter().cloned());
                    known.push((text, first, names.clone()));
                    calls.push(call);
                    (first, names)
                }
            };
            // A composite in the select list becomes a record of its columns.
            self.held[place] = match column {
                usize::MAX if names.len() > 1 => {
                    let fields = (first..first + names.len()).map(slot_expr).collect();
                    Held::Record { fields, names, mark: None }
                }
                usize::MAX => Held::Slot(first),
                column => Held::Slot(first + column),
            };
        }
        scope.types.extend(added);
        Ok(Arc::new(Node::ProjectSet { input: node, calls }))
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// The element type of an array.
fn element(ty: &SqlType) -> Option<SqlType> {
    match ty {
        SqlType::Array(element) => Some(element.as_ref().clone()),
        SqlType::Int2Vector => Some(SqlType::Int2),
        SqlType::OidVector => Some(SqlType::Oid),
        _ => None,
    }
}
