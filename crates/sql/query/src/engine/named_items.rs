//! Which items of FROM an expression names: their columns, or their whole rows.

use super::item_set::ItemSet;
use super::scope::{Scope, item_of};
use super::take::relation_parts;
use crate::identifier::fold;
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, Select, SelectItem,
    SelectItemQualifiedWildcardKind, Visit, Visitor,
};
use std::ops::ControlFlow;

/// Finds the items that an expression names.
pub(super) struct Names<'a, 's> {
    scope: &'a Scope<'s>,
    items: ItemSet,
}

impl<'a, 's> Names<'a, 's> {
    /// The items that something names.
    pub(super) fn of(what: &impl Visit, scope: &'a Scope<'s>) -> ItemSet {
        let mut names = Names { scope, items: ItemSet::NONE };
        let _ = what.visit(&mut names);
        names.items
    }
}

impl Visitor for Names<'_, '_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        // `t.column[1]` is read as a chain from `t`.
        match (item_of(expr), name_parts(expr)) {
            (Some(item), _) => self.items.add(item),
            (None, Some(parts)) => self.items = self.items.and(self.scope.relations_of(&parts)),
            (None, None) => {}
        }
        match expr {
            Expr::QualifiedWildcard(name, _) => self.row(name),
            Expr::Function(function) => {
                let FunctionArguments::List(list) = &function.args else { return ControlFlow::Continue(()) };
                for arg in &list.args {
                    if let FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) = arg {
                        self.row(name);
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item {
                self.row(name);
            }
        }
        ControlFlow::Continue(())
    }
}

impl Names<'_, '_> {
    /// `t.*`
    fn row(&mut self, name: &ObjectName) {
        self.items = self.items.and(self.scope.relations_called(&relation_parts(name)));
    }
}

/// The parts of a name that an expression is.
pub(super) fn name_parts(expr: &Expr) -> Option<Vec<String>> {
    match expr {
        Expr::Identifier(ident) => Some(vec![fold(ident)]),
        Expr::CompoundIdentifier(parts) => Some(parts.iter().map(fold).collect()),
        _ => None,
    }
}
