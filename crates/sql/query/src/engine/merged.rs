//! Columns that USING and NATURAL merge.
//!
//! Of an inner or left join the column of the side that is kept is the merged one, if it has the type of both. That of a full join is `coalesce` of both; a
//! chain of full joins merges a column again and again, and each join, each scope and each `*` asks for it: so it is one call over all of them.

use super::bind_from::Items;
use super::item_set::ItemSet;
use super::scope::item_column;
use super::take::call_expr;
use super::types::{cast_expr, common};
use crate::SqlError;
use crate::types::SqlType;
use sqlparser::ast::{self, Expr};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What a merged column costs for each column that it is made of: copies of it in conditions, in what `*` shows and in the scopes of its joins.
pub(super) const COPIES: usize = 4;
/// Units of work of one.
pub(super) const EXPR_UNITS: usize = 256;
/// Bytes of one.
pub(super) const EXPR_BYTES: usize = 512;

/// A column of a FROM that `*` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shown {
    /// Item and column.
    Column(usize, usize),
    /// A column merged by USING.
    Merged(usize),
}

/// A column merged by USING that is not simply one of the two.
pub(super) struct Merged {
    pub(super) name: String,
    /// Over columns of items.
    pub(super) expr: Arc<Expr>,
    /// What `coalesce` is called with, if that is what it is: one more column of the same type is one more argument, so a chain of
    /// full joins is one call, and not as deep as it is long.
    pub(super) parts: Vec<Expr>,
    pub(super) ty: SqlType,
    pub(super) items: ItemSet,
    /// Merged into another in its turn.
    pub(super) hidden: bool,
}

impl Items {
    /// How many columns of items a column is made of.
    pub(super) fn size(&self, shown: Shown) -> usize {
        match shown {
            Shown::Column(..) => 1,
            Shown::Merged(number) => self.merged[number].parts.len().max(1),
        }
    }

    /// What a column gives to `coalesce`, of a result of this type.
    fn parts(&self, shown: Shown, ty: &SqlType) -> Vec<Expr> {
        match shown {
            Shown::Merged(number) if !self.merged[number].parts.is_empty() && self.merged[number].ty == *ty => {
                self.merged[number].parts.clone()
            }
            _ => vec![self.expr(shown)],
        }
    }

    /// What USING makes of two columns: the kept one as it is, if that has the type of both, else an expression.
    pub(super) fn merge(&mut self, name: &str, kept: Shown, other: Shown, full: bool) -> Result<Shown, SqlError> {
        let ty = common(&self.ty(kept), &self.ty(other), "JOIN/USING")?;
        self.hide(other);
        if !full && self.ty(kept) == ty {
            return Ok(kept);
        }
        let (expr, parts, items) = if full {
            let mut parts = self.parts(kept, &ty);
            parts.extend(self.parts(other, &ty));
            (call_expr("coalesce", parts.clone()), parts, self.items_of(kept).and(self.items_of(other)))
        } else {
            (cast_expr(self.expr(kept), &ty), Vec::new(), self.items_of(kept))
        };
        self.hide(kept);
        self.merged.push(Merged { name: name.to_string(), expr: Arc::new(expr), parts, ty, items, hidden: false });
        Ok(Shown::Merged(self.merged.len() - 1))
    }
}

/// An expression over columns of items, over slots, by item and column; `None` if not all of them are in the row.
pub(super) fn over_slots(expr: &Expr, slot: &dyn Fn(usize, usize) -> Option<Expr>) -> Option<Expr> {
    let mut copy = expr.clone();
    let slots = ast::visit_expressions_mut(&mut copy, |part| {
        let Some((item, number)) = item_column(part) else { return ControlFlow::Continue(()) };
        match slot(item, number) {
            Some(slot) => {
                *part = slot;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    });
    slots.is_continue().then_some(copy)
}
