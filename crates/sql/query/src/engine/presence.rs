//! Whole rows on the NULL side of an outer join: NULL, and not a row of NULLs.
//!
//! A row that was really there may hold nothing but NULLs, so its columns cannot tell. An item of FROM whose whole row the statement may
//! read, in a FROM with an outer join, gets one more column without a name, its *mark*: true in every row of the item, hence NULL
//! where the join has put NULLs.
//!
//! The OID of the table that a row is of (`tableoid`) is such a column too, of a table in a statement with that word. So an outer join
//! makes it NULL as it should.

use super::bind::{Binder, Output};
use super::join_tree::{Item, ItemSource};
use super::node::Node;
use super::scalar::Scalar;
use super::scope::Scope;
use super::take::relation_parts;
use crate::SqlError;
use crate::catalog::Oid;
use crate::exec::evaluate;
use crate::expr;
use crate::identifier::fold;
use crate::types::{SqlType, Value};
use crate::work;
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, JoinOperator, Select, SelectItem,
    SelectItemQualifiedWildcardKind, TableFactor, TableWithJoins, Visit, Visitor,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The name of a mark: no user can write it.
const MARK: &str = "";

/// The name of the table's OID behind its columns: no user can write it.
const TABLE: &str = "\0tableoid";
/// The name that users know it by.
const TABLEOID: &str = "tableoid";

/// Whether a column is one that `*` leaves out.
pub(super) fn is_hidden(name: &str) -> bool {
    name == MARK || name == TABLE
}

/// The hidden column that a name means where no other is called so.
pub(super) fn hidden_name(name: &str) -> Option<&'static str> {
    (name == TABLEOID).then_some(TABLE)
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

/// Units of work of looking at an expression.
const EXPRESSION_UNITS: usize = 64;

/// Stands among the names of [`names_alone`] where a name of the statement begins with a schema.
pub(super) const WITH_SCHEMA: &str = "\0schema";

/// Gathers the names that stand alone: one of a relation means its whole row.
struct Alone(BTreeSet<String>);

impl Visitor for Alone {
    type Break = SqlError;

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<SqlError> {
        let with_schema = |item: &SelectItem| match item {
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => name.0.len() > 1,
            _ => false,
        };
        if select.projection.iter().any(with_schema) {
            self.0.insert(WITH_SCHEMA.into());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        if let Err(ended) = work::step(EXPRESSION_UNITS) {
            return ControlFlow::Break(ended);
        }
        let with_schema = match expr {
            Expr::CompoundIdentifier(parts) => parts.len() > 2,
            Expr::QualifiedWildcard(name, _) => name.0.len() > 1,
            _ => false,
        };
        if with_schema {
            self.0.insert(WITH_SCHEMA.into());
        }
        if let Expr::Identifier(ident) = expr {
            self.0.insert(fold(ident));
        }
        if let Expr::Function(function) = expr
            && let FunctionArguments::List(list) = &function.args
        {
            for arg in &list.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) = arg {
                    if name.0.len() > 1 {
                        self.0.insert(WITH_SCHEMA.into());
                    }
                    self.0.extend(relation_parts(name));
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// The names that stand alone in a statement.
///
/// # Errors
/// 57014 where the statement was ended meanwhile.
pub(super) fn names_alone<T: Visit>(node: &T) -> Result<BTreeSet<String>, SqlError> {
    let mut names = Alone(BTreeSet::new());
    match node.visit(&mut names) {
        ControlFlow::Continue(()) => Ok(names.0),
        ControlFlow::Break(ended) => Err(ended),
    }
}

impl Item {
    /// Gives it a column for its table's OID, if it is a table's and a statement of these words may ask.
    pub(super) fn add_table(&mut self, words: Option<&BTreeSet<String>>) {
        let asked = words.is_none_or(|words| words.contains(TABLEOID));
        if asked && self.table_oid().is_some() {
            self.columns.push(Output { name: TABLE.into(), ty: SqlType::Oid, origin: None });
        }
    }

    fn table_oid(&self) -> Option<Oid> {
        match &self.source {
            ItemSource::Table(access) => Some(access.table.id),
            ItemSource::Virtual(table) => (!table.is_view).then_some(table.oid),
            ItemSource::Node(_) => None,
        }
    }

    /// How many of its columns its source gives.
    fn given(&self) -> usize {
        self.columns.iter().take_while(|column| !is_hidden(&column.name)).count()
    }

    /// Gives it a column for its mark.
    pub(super) fn add_mark(&mut self) {
        self.columns.push(Output { name: MARK.into(), ty: SqlType::Bool, origin: None });
    }

    /// A node of its rows, behind a prefix of `prefix` slots, with the hidden columns that it has.
    pub(super) fn marked(&self, node: Arc<Node>, prefix: usize) -> Arc<Node> {
        let (columns, hidden) = self.columns.split_at(self.given());
        if hidden.is_empty() {
            return node;
        }
        let width = prefix + columns.len();
        let mut scalars: Vec<Scalar> =
            columns.iter().enumerate().map(|(place, column)| Binder::slot(prefix + place, &column.ty, width)).collect();
        for Output { name, ty, .. } in hidden {
            let value = match (name.as_str(), self.table_oid()) {
                (TABLE, Some(oid)) => Value::Oid(oid),
                _ => Value::Bool(true),
            };
            let expr = expr::Expr::Literal(value, ty.clone());
            scalars.push(Scalar { steps: Vec::new(), expr, ty: ty.clone(), width });
        }
        Arc::new(Node::Project { input: node, prefix, columns: scalars })
    }

    /// Cuts conditions over its rows behind a prefix into those on what its source gives, and those that a step reads the
    /// whole row for or that read a hidden column.
    pub(super) fn beside_hidden(&self, prefix: usize, conditions: Vec<Scalar>) -> (Vec<Scalar>, Vec<Scalar>) {
        let given = self.given();
        let whole = given < self.columns.len() || self.keyed;
        let reads_hidden = |scalar: &Scalar| {
            let mut places = Vec::new();
            evaluate::columns(&scalar.expr, &mut places);
            places.iter().any(|place| *place >= prefix + given)
        };
        conditions.into_iter().partition(|scalar| !whole || (scalar.steps.is_empty() && !reads_hidden(scalar)))
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
        let mark = self.columns.iter().find(|column| column.relation == place && column.name == MARK);
        mark.map(|column| Ok(self.place(column)?.expr)).transpose()
    }
}

/// Conditions above a node, if there are any.
pub(super) fn above(node: Arc<Node>, conditions: Vec<Scalar>) -> Arc<Node> {
    if conditions.is_empty() { node } else { Arc::new(Node::Filter { input: node, conditions }) }
}
