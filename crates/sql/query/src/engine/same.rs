//! Whether two expressions are the same one: DISTINCT and ORDER BY must agree on what they sort by.
//!
//! As in PostgreSQL, spelling does not count: not parentheses, not the case of names, not the way a cast or a type is written. What was
//! taken out of an expression is compared by what it is, since each place where it stands has a mark of its own.

use super::bind::Binder;
use super::scope::slot_expr;
use super::take::{Held, call_expr, mark_of};
use crate::identifier::fold;
use crate::types::SqlType;
use sqlparser::ast::{self, CastKind, DataType, Expr, Ident, ObjectName, ObjectNamePart, Query, VisitMut, VisitorMut};
use std::ops::ControlFlow;

/// Brings expressions into one spelling. It is for comparison alone and cannot be compiled.
struct Plain<'a> {
    held: &'a [Held],
    /// Queries around: names in them are as written, so nothing in them is a mark.
    depth: usize,
}

fn folded(ident: &mut Ident) {
    *ident = Ident::with_quote('"', fold(ident));
}

fn folded_name(name: &mut ObjectName) {
    for part in &mut name.0 {
        if let ObjectNamePart::Identifier(ident) = part {
            folded(ident);
        }
    }
}

/// A call that no query can hold, for what has no syntax.
fn shown(what: String, args: Vec<Expr>) -> Expr {
    call_expr(&format!("?{what}"), args)
}

fn null() -> Expr {
    Expr::value(ast::Value::Null)
}

/// What a mark stands for, as an expression.
fn spelled(held: &Held) -> Expr {
    let subquery = |query: &Query| Expr::Subquery(Box::new(query.clone()));
    match held {
        Held::Subquery(query) => subquery(query),
        Held::Exists(query) => shown("exists".into(), vec![subquery(query)]),
        Held::Array(query) => shown("array".into(), vec![subquery(query)]),
        Held::Quantified { left, op, of, query } => {
            shown(format!("{op} {of:?}"), vec![Expr::Tuple(left.clone()), subquery(query)])
        }
        Held::Catalog(name, args) => call_expr(name, args.clone()),
        Held::ToReg(kind, arg) => shown(format!("{kind:?}"), vec![arg.clone()]),
        Held::Field(arg, index) => shown(format!("field {index}"), vec![arg.clone()]),
        Held::Record { fields, mark, .. } => shown("record".into(), fields.iter().chain(mark).cloned().collect()),
        Held::RowJson { names, values, mark, binary, .. } => {
            let names = names.iter().map(|name| Expr::Identifier(Ident::with_quote('"', name)));
            let values = Expr::Tuple(values.clone());
            let mark = mark.clone().unwrap_or_else(null);
            shown(format!("json {binary}"), vec![Expr::Tuple(names.collect()), values, mark])
        }
        Held::Window(function) => Expr::Function((**function).clone()),
        Held::Set(function, place) => shown(format!("set {place}"), vec![Expr::Function((**function).clone())]),
        Held::Slot(slot) => slot_expr(*slot),
    }
}

impl VisitorMut for Plain<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &mut ObjectName) -> ControlFlow<()> {
        folded_name(name);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        loop {
            let mark = mark_of(expr).filter(|_| self.depth == 0);
            *expr = match expr {
                Expr::Nested(inner) => std::mem::replace(inner.as_mut(), null()),
                _ => match mark.and_then(|place| self.held.get(place)) {
                    Some(held) => spelled(held),
                    None => break,
                },
            };
        }
        match expr {
            Expr::Identifier(ident) => folded(ident),
            Expr::CompoundIdentifier(parts) => parts.iter_mut().for_each(folded),
            Expr::Function(function) => folded_name(&mut function.name),
            Expr::Cast { kind, data_type, .. } => {
                *kind = CastKind::Cast;
                if let Ok(ty) = SqlType::from_ast(data_type) {
                    let name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(format!("{ty:?}")))]);
                    *data_type = DataType::Custom(name, Vec::new());
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Binder<'_> {
    /// An expression whose names are resolved, in a spelling that is equal for all that mean the same.
    pub(super) fn plain(&self, expr: &Expr) -> Expr {
        let mut plain = expr.clone();
        // It never breaks off.
        let _ = plain.visit(&mut Plain { held: &self.held, depth: 0 });
        plain
    }
}
