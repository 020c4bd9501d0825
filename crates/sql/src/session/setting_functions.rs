//! `current_setting` and `set_config` with literal arguments: answered before planning, because plans know no session.

use super::Session;
use crate::SqlError;
use crate::output::Nowhere;
use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart, SelectItem, SetExpr, Statement,
    Value as Literal, ValueWithSpan, visit_expressions, visit_expressions_mut,
};
use sqlparser::tokenizer::Span;
use std::ops::ControlFlow;

impl Session {
    /// The statement with those calls replaced by their values; `None` if it has none.
    ///
    /// # Errors
    /// As for SHOW and SET.
    pub(super) fn setting_functions(&mut self, statement: &Statement) -> Result<Option<Statement>, SqlError> {
        let mut calls = Vec::new();
        let _ = visit_expressions(statement, |e| {
            calls.extend(call_of(e));
            ControlFlow::<()>::Continue(())
        });
        if calls.is_empty() {
            return Ok(None);
        }
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            answers.push(match call {
                Call::Get { name, missing_ok } => match self.show(&name.to_lowercase()) {
                    Ok(value) => Literal::SingleQuotedString(value),
                    Err(_) if missing_ok => Literal::Null,
                    Err(e) => return Err(e),
                },
                Call::Set { name, value, local } => {
                    self.set_setting(local, &name.to_lowercase(), Some(&value), &mut Nowhere)?;
                    Literal::SingleQuotedString(value)
                }
            });
        }
        let mut answered = statement.clone();
        keep_names(&mut answered);
        let mut answers = answers.into_iter();
        let _ = visit_expressions_mut(&mut answered, |e| {
            if call_of(e).is_some()
                && let Some(value) = answers.next()
            {
                *e = Expr::Value(ValueWithSpan { value, span: Span::empty() });
            }
            ControlFlow::<()>::Continue(())
        });
        Ok(Some(answered))
    }
}

/// A column without an alias is named after its function, also when only the value is left.
fn keep_names(statement: &mut Statement) {
    let Statement::Query(query) = statement else { return };
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && let Expr::Function(function) = expr
            && let Some(ObjectNamePart::Identifier(alias)) = function.name.0.last()
        {
            *item = SelectItem::ExprWithAlias { alias: alias.clone(), expr: expr.clone() };
        }
    }
}

enum Call {
    Get { name: String, missing_ok: bool },
    Set { name: String, value: String, local: bool },
}

fn call_of(e: &Expr) -> Option<Call> {
    let Expr::Function(function) = e else { return None };
    let ObjectNamePart::Identifier(name) = function.name.0.last()? else { return None };
    let get = name.value.eq_ignore_ascii_case("current_setting");
    if !get && !name.value.eq_ignore_ascii_case("set_config") {
        return None;
    }
    let arguments = literals(function)?;
    match (get, arguments.as_slice()) {
        (true, [name]) => Some(Call::Get { name: text(name)?, missing_ok: false }),
        (true, [name, missing_ok]) => Some(Call::Get { name: text(name)?, missing_ok: flag(missing_ok)? }),
        (false, [name, value, local]) => {
            Some(Call::Set { name: text(name)?, value: text(value)?, local: flag(local)? })
        }
        _ => None,
    }
}

fn literals(function: &Function) -> Option<Vec<&Literal>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    list.args
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(v))) => Some(&v.value),
            _ => None,
        })
        .collect()
}

fn text(literal: &Literal) -> Option<String> {
    match literal {
        Literal::SingleQuotedString(s) | Literal::EscapedStringLiteral(s) => Some(s.clone()),
        _ => None,
    }
}

fn flag(literal: &Literal) -> Option<bool> {
    match literal {
        Literal::Boolean(b) => Some(*b),
        Literal::SingleQuotedString(s) => Some(matches!(s.as_str(), "t" | "true" | "on")),
        _ => None,
    }
}
