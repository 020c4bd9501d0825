//! Whole rows on the NULL side of an outer join: NULL, and not a row of NULLs.
//!
//! A row that was really there may hold nothing but NULLs, so its columns cannot tell. An item of FROM whose whole row the statement may
//! read, in a FROM with an outer join, gets one more column without a name, its *mark*: true in every row of the item, hence NULL
//! where the join has put NULLs.

use super::bind::{Binder, Output};
use super::join_tree::Item;
use super::node::Node;
use super::scalar::Scalar;
use super::scope::Scope;
use crate::SqlError;
use crate::expr;
use crate::identifier::fold;
use crate::types::{SqlType, Value};
use sqlparser::ast::{Expr, JoinOperator, TableFactor, TableWithJoins, Visit, Visitor};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The name of a mark: no user can write it.
const MARK: &str = "";

/// Whether a column is a mark.
pub(super) fn is_mark(name: &str) -> bool {
    name == MARK
}

/// Whether a join in FROM puts NULLs in the place of rows.
pub(super) fn has_outer_join(from: &[TableWithJoins]) -> bool {
    use JoinOperator as J;
    let nested = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => has_outer_join(std::slice::from_ref(table_with_joins)),
        _ => false,
    };
    let outer = |operator: &J| {
        matches!(operator, J::Left(_) | J::LeftOuter(_) | J::Right(_) | J::RightOuter(_) | J::FullOuter(_))
    };
    from.iter().any(|table| {
        nested(&table.relation) || table.joins.iter().any(|join| outer(&join.join_operator) || nested(&join.relation))
    })
}

/// Gathers the names that stand alone: one of a relation means its whole row.
struct Alone<'a>(&'a mut BTreeSet<String>);

impl Visitor for Alone<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Identifier(ident) = expr {
            self.0.insert(fold(ident));
        }
        ControlFlow::Continue(())
    }
}

/// The names that stand alone in a statement.
pub(super) fn names_alone<T: Visit>(node: &T) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let _ = node.visit(&mut Alone(&mut names));
    names
}

impl Item {
    /// Gives it a column for its mark.
    pub(super) fn add_mark(&mut self) {
        self.columns.push(Output { name: MARK.into(), ty: SqlType::Bool, origin: None });
    }

    /// A node of its rows, behind a prefix of `prefix` slots, with the mark if it has one.
    pub(super) fn marked(&self, node: Arc<Node>, prefix: usize) -> Arc<Node> {
        let Some((_, columns)) = self.columns.split_last().filter(|(last, _)| is_mark(&last.name)) else { return node };
        let width = prefix + columns.len();
        let mut scalars: Vec<Scalar> =
            columns.iter().enumerate().map(|(place, column)| Binder::slot(prefix + place, &column.ty, width)).collect();
        let expr = expr::Expr::Literal(Value::Bool(true), SqlType::Bool);
        scalars.push(Scalar { steps: Vec::new(), expr, ty: SqlType::Bool, width });
        Arc::new(Node::Project { input: node, prefix, columns: scalars })
    }

    /// Cuts conditions into those on rows without the mark, and those that a step reads the whole row for.
    pub(super) fn beside_mark(&self, conditions: Vec<Scalar>) -> (Vec<Scalar>, Vec<Scalar>) {
        let marked = self.columns.last().is_some_and(|last| is_mark(&last.name));
        conditions.into_iter().partition(|scalar| !(marked || self.keyed) || scalar.steps.is_empty())
    }
}

impl Scope<'_> {
    /// The mark of a relation, if it has one.
    ///
    /// # Errors
    /// 42803 if the query is grouped and the row is not.
    pub(super) fn mark(&self, alias: &str) -> Result<Option<Expr>, SqlError> {
        let Some(place) = self.relations.iter().position(|relation| relation.alias == alias) else {
            return self.parent.map_or(Ok(None), |parent| parent.mark(alias));
        };
        let mark = self.columns.iter().find(|column| column.relation == place && is_mark(&column.name));
        mark.map(|column| Ok(self.place(column)?.expr)).transpose()
    }
}

/// Conditions above a node, if there are any.
pub(super) fn above(node: Arc<Node>, conditions: Vec<Scalar>) -> Arc<Node> {
    if conditions.is_empty() { node } else { Arc::new(Node::Filter { input: node, conditions }) }
}
