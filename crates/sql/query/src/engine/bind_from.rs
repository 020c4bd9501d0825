//! FROM, in two phases: first every item and its columns, then the joins.
//!
//! **Order of joins.** Items joined by commas and inner joins are one pool. Statistics order them ([`super::arrange`]); without any the one that
//! has conditions of its own goes first, then always one that an equality connects to what is there. With a lateral item the order stays as written, since its columns are
//! bound to the row of the items before it.
//!
//! **Conditions** go down as far as their names allow: to one item, where they may become keys; to the join where their last item
//! comes in. Conditions of an outer join's ON go only to its inner side, those of WHERE only to its outer side.

use super::bind::{Binder, Output};
use super::bind_select::has_aggregate;
use super::bounds::holds_query;
use super::item_set::{ITEMS_MAX, ItemSet};
use super::join_tree::{Conjunct, Item, ItemSource, Tree, conjuncts, own_names};
use super::journal::Named;
use super::merged::{COPIES, EXPR_BYTES, EXPR_UNITS, Merged, Shown, over_slots};
use super::node::Node;
use super::presence::{WITH_SCHEMA, has_outer_join, is_hidden, names_alone};
use super::reduce::reduced;
use super::scope::{Place, Scope, ScopeColumn, ScopeRelation, Visible, item_expr, slot_expr};
use super::take::{Clause, function_name, list_args};
use crate::catalog::{Oid, Relation, snapshot};
use crate::expr::hidden_relation;
use crate::identifier::fold;
use crate::internal;
use crate::pg_catalog::{self, VirtualTable};
use crate::plan::located::KEY_NAME;
use crate::syntax::tree::constraint_of;
use crate::types::SqlType;
use crate::work;
use crate::{SqlError, SqlState};
use sqlparser::ast::{self, Expr, JoinConstraint, JoinOperator, ObjectName, TableAlias, TableFactor, TableWithJoins};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A part of FROM, and what `*` shows of it.
struct Side {
    tree: Tree,
    shown: Vec<Shown>,
}

/// The items of one FROM.
#[derive(Default)]
pub(super) struct Items {
    pub(super) list: Vec<Item>,
    /// Columns hidden by USING: item and column.
    shadowed: BTreeSet<(usize, usize)>,
    pub(super) merged: Vec<Merged>,
    /// Where `*` shows columns, if not in the order of the items.
    ranks: BTreeMap<Shown, usize>,
    /// An item depends on those before it: the order stays.
    pub(super) fixed: bool,
    /// What is bound now may not name the items before it: it is on the right of a RIGHT or FULL JOIN.
    apart: bool,
    /// An outer join puts NULLs in the place of rows.
    outer_joined: bool,
    /// USING or NATURAL may give a name another meaning later.
    merging: bool,
}

impl Items {
    /// The scope of some items, in the order in which their columns lie in a row.
    pub(super) fn scope<'p>(&self, order: &[usize], outer: &'p Scope<'p>) -> Scope<'p> {
        let mut scope = Scope::inside(Some(outer));
        let mut bases = vec![None; self.list.len()];
        for &item in order {
            bases[item] = Some(scope.width());
            scope.types.extend(self.list[item].columns.iter().map(|column| column.ty.clone()));
        }
        let rank = |shown: Shown| self.ranks.get(&shown).copied().unwrap_or(0);
        for (relation, item) in self.list.iter().enumerate() {
            scope.relations.push(ScopeRelation {
                alias: item.alias.clone(),
                schema: item.schema.clone(),
                table: item.table.clone(),
                scalar: item.scalar,
                of: item.of,
                unnamed: item.unnamed,
                visible: Visible::Yes,
            });
            let Some(base) = bases[relation] else { continue };
            for (number, column) in item.columns.iter().enumerate() {
                scope.columns.push(ScopeColumn {
                    relation,
                    number,
                    name: column.name.clone(),
                    place: Place::Slot(base + number),
                    origin: column.origin,
                    shadowed: self.shadowed.contains(&(relation, number)),
                    rank: rank(Shown::Column(relation, number)),
                });
            }
        }
        let slot = |item: usize, number: usize| Some(slot_expr(bases.get(item).copied().flatten()? + number));
        for (number, merged) in self.merged.iter().enumerate() {
            // What is merged into another has no name to be found by.
            if merged.hidden {
                continue;
            }
            let Some(expr) = over_slots(&merged.expr, &slot) else { continue };
            scope.columns.push(ScopeColumn {
                relation: usize::MAX,
                number,
                name: merged.name.clone(),
                place: Place::Merged(Arc::new(expr), merged.items),
                origin: None,
                shadowed: false,
                rank: rank(Shown::Merged(number)),
            });
        }
        scope.bases = bases;
        scope
    }

    /// What is wrong with a name that an item cannot see, since it is of another one.
    fn unseen(&self, error: SqlError) -> SqlError {
        let missing = error.message.strip_prefix("missing FROM-clause entry for table \"");
        let alias = missing.and_then(|rest| rest.strip_suffix('"'));
        let Some(item) = alias.and_then(|alias| self.list.iter().find(|item| item.alias == alias)) else {
            return error;
        };
        let position = error.position;
        let told = match self.apart {
            false => hidden_relation(&item.alias),
            true => {
                let message = format!("invalid reference to FROM-clause entry for table \"{}\"", item.alias);
                SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message)
                    .detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
            }
        };
        told.with(|told| told.position = position)
    }

    /// A merged column over the columns of items.
    pub(super) fn merged_expr(&self, column: &ScopeColumn) -> Option<Expr> {
        self.merged.get(column.number).map(|merged| merged.expr.as_ref().clone())
    }

    /// All items, as written.
    pub(super) fn written(&self) -> Vec<usize> {
        (0..self.list.len()).collect()
    }

    fn name(&self, shown: Shown) -> &str {
        match shown {
            Shown::Column(item, number) => &self.list[item].columns[number].name,
            Shown::Merged(number) => &self.merged[number].name,
        }
    }

    pub(super) fn ty(&self, shown: Shown) -> SqlType {
        match shown {
            Shown::Column(item, number) => self.list[item].columns[number].ty.clone(),
            Shown::Merged(number) => self.merged[number].ty.clone(),
        }
    }

    pub(super) fn expr(&self, shown: Shown) -> Expr {
        match shown {
            Shown::Column(item, number) => item_expr(item, number),
            Shown::Merged(number) => self.merged[number].expr.as_ref().clone(),
        }
    }

    pub(super) fn items_of(&self, shown: Shown) -> ItemSet {
        match shown {
            Shown::Column(item, _) => ItemSet::one(item),
            Shown::Merged(number) => self.merged[number].items,
        }
    }

    /// The names that both sides show.
    fn common_names(&self, left: &Side, right: &Side) -> Vec<String> {
        let named = |side: &Side| -> Vec<&str> {
            let names = side.shown.iter().map(|shown| self.name(*shown));
            names.filter(|name| !is_hidden(name) && *name != KEY_NAME).collect()
        };
        let others: BTreeSet<&str> = named(right).into_iter().collect();
        named(left).into_iter().filter(|name| others.contains(name)).map(str::to_string).collect()
    }

    pub(super) fn hide(&mut self, shown: Shown) {
        match shown {
            Shown::Column(item, number) => {
                self.shadowed.insert((item, number));
            }
            Shown::Merged(number) => self.merged[number].hidden = true,
        }
    }
}

/// Whether a join in FROM merges columns.
fn merges(from: &[TableWithJoins]) -> bool {
    let nested = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => merges(std::slice::from_ref(table_with_joins)),
        _ => false,
    };
    let merging = |operator: &JoinOperator| {
        matches!(constraint_of(operator), Some(JoinConstraint::Using(_) | JoinConstraint::Natural))
    };
    from.iter().any(|table| {
        nested(&table.relation) || table.joins.iter().any(|join| merging(&join.join_operator) || nested(&join.relation))
    })
}

impl Binder<'_> {
    /// Plans FROM and WHERE; gives the names that the rest of the query may use.
    pub(super) fn from<'p>(
        &mut self,
        from: &[TableWithJoins],
        selection: Option<&Expr>,
        outer: &'p Scope<'p>,
    ) -> Result<(Arc<Node>, Scope<'p>), SqlError> {
        let mut items = Items { outer_joined: has_outer_join(from), merging: merges(from), ..Items::default() };
        let mut tree: Option<Tree> = None;
        let mut shown = Vec::new();
        for table in from {
            let next = self.table_with_joins(table, &mut items, outer)?;
            shown.extend(next.shown);
            tree = Some(match tree {
                None => next.tree,
                Some(before) => Tree::comma(before, next.tree, &items),
            });
        }
        if items.merging {
            items.ranks = shown.into_iter().zip(0..).collect();
        }
        let Some(tree) = tree else {
            let scope = Scope::inside(Some(outer));
            let mut node = Arc::new(Node::One);
            if let Some(selection) = selection {
                let condition = self.scalar(selection, &scope, Clause::plain("WHERE"))?;
                let conditions = vec![self.condition(condition, "WHERE")?];
                node = Arc::new(Node::Filter { input: node, conditions });
            }
            return Ok((node, scope));
        };
        let all = items.scope(&items.written(), outer);
        let pool: Vec<Conjunct> = selection.map_or_else(Vec::new, |selection| conjuncts(selection, &all, None));
        let tree = if items.outer_joined && !items.fixed { reduced(tree, &pool, &all) } else { tree };
        let built = self.build(&tree, pool, &items, outer)?;
        let scope = items.scope(&built.order, outer);
        Ok((built.node, scope))
    }

    fn table_with_joins(
        &mut self,
        table: &TableWithJoins,
        items: &mut Items,
        outer: &Scope<'_>,
    ) -> Result<Side, SqlError> {
        let mut side = self.factor(&table.relation, items, outer)?;
        for join in &table.joins {
            use JoinOperator as J;
            let apart = matches!(join.join_operator, J::Right(_) | J::RightOuter(_) | J::FullOuter(_));
            items.apart = apart && !matches!(join.relation, TableFactor::NestedJoin { alias: None, .. });
            let right = self.factor(&join.relation, items, outer)?;
            items.apart = false;
            if let Some(JoinConstraint::Natural) = constraint_of(&join.join_operator) {
                outer.note_natural(&join.relation, &items.common_names(&side, &right));
            }
            side = self.join(side, right, &join.join_operator, items, outer)?;
        }
        Ok(side)
    }

    fn join(
        &mut self,
        left: Side,
        right: Side,
        operator: &JoinOperator,
        items: &mut Items,
        outer: &Scope<'_>,
    ) -> Result<Side, SqlError> {
        use JoinOperator as J;
        let Some(constraint) = constraint_of(operator) else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error at this join: {operator:?}")));
        };
        let kept = match operator {
            J::FullOuter(_) => Kept::Both,
            J::Right(_) | J::RightOuter(_) => Kept::Right,
            _ => Kept::Left,
        };
        let (on, shown) = self.constraint(constraint, &left, &right, items, kept, outer)?;
        let (left, right) = (left.tree, right.tree);
        let tree = match operator {
            J::Left(_) | J::LeftOuter(_) => Tree::left(left, right, on),
            J::Right(_) | J::RightOuter(_) => Tree::left(right, left, on),
            J::FullOuter(_) => Tree::full(left, right, on),
            _ => Tree::inner(left, right, on),
        };
        Ok(Side { tree, shown })
    }

    /// ON, USING and NATURAL as conjuncts, and what `*` shows of the join.
    fn constraint(
        &mut self,
        constraint: &JoinConstraint,
        left: &Side,
        right: &Side,
        items: &mut Items,
        kept: Kept,
        outer: &Scope<'_>,
    ) -> Result<(Vec<Conjunct>, Vec<Shown>), SqlError> {
        let both = || [left.shown.as_slice(), right.shown.as_slice()].concat();
        let names: Vec<String> = match constraint {
            JoinConstraint::None => return Ok((Vec::new(), both())),
            JoinConstraint::On(expr) => {
                let order = [left.tree.items(), right.tree.items()].concat();
                let own = Some(order.iter().copied().collect());
                let scope = items.scope(&order, outer);
                if has_aggregate(expr) {
                    let message = "aggregate functions are not allowed in JOIN conditions";
                    return Err(SqlError::new(SqlState::GROUPING_ERROR, message));
                }
                self.refuse_lifted(expr, &scope, "JOIN conditions")?;
                if order.len() == items.list.len() && !items.merging {
                    return Ok((conjuncts(expr, &scope, own), both()));
                }
                let resolved = own_names(expr, &scope, &items.scope(&items.written(), outer), items)?;
                return Ok((conjuncts(&resolved, &scope, own), both()));
            }
            JoinConstraint::Using(names) => {
                names.iter().filter_map(|name| name.0.last()?.as_ident().map(fold)).collect()
            }
            JoinConstraint::Natural => {
                let common = items.common_names(left, right);
                self.read_unsaid(&common);
                common
            }
        };
        let (mut on, mut shown, mut used, mut said) = (Vec::new(), Vec::new(), BTreeSet::new(), BTreeSet::new());
        for name in &names {
            if !said.insert(name) {
                let message = format!("column name \"{name}\" appears more than once in USING clause");
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
            }
            let l = using_column(items, &left.shown, name, "left")?;
            let r = using_column(items, &right.shown, name, "right")?;
            // It is asked for, and shown, and bound for both.
            let size = items.size(l) + items.size(r);
            self.context.pace.step()?;
            work::step(size * COPIES * EXPR_UNITS)?;
            self.copied.take(size * COPIES * EXPR_BYTES)?;
            let expr = Expr::BinaryOp {
                left: Box::new(items.expr(l)),
                op: ast::BinaryOperator::Eq,
                right: Box::new(items.expr(r)),
            };
            on.push(Conjunct { expr, items: items.items_of(l).and(items.items_of(r)), own: None });
            shown.push(match kept {
                Kept::Left => items.merge(name, l, r, false)?,
                Kept::Right => items.merge(name, r, l, false)?,
                Kept::Both => items.merge(name, l, r, true)?,
            });
            used.extend([l, r]);
        }
        shown.extend(both().into_iter().filter(|column| !used.contains(column)));
        Ok((on, shown))
    }

    fn factor(&mut self, factor: &TableFactor, items: &mut Items, outer: &Scope<'_>) -> Result<Side, SqlError> {
        if items.list.len() >= ITEMS_MAX {
            return Err(SqlError::new(SqlState::TOO_COMPLEX, format!("a FROM has more than {ITEMS_MAX} items")));
        }
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
            } => {
                if sample.is_some() {
                    return Err(SqlError::unsupported("TABLESAMPLE"));
                }
                if version.is_some()
                    || !with_hints.is_empty()
                    || !partitions.is_empty()
                    || json_path.is_some()
                    || !index_hints.is_empty()
                {
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{factor}\"")));
                }
                let item = match args {
                    None => {
                        let mut item = self.table(name, alias.as_ref(), outer)?;
                        let first = self.context.locates && items.list.is_empty();
                        if self.is_outermost() && (first || self.context.keyed.tables.contains(&item.alias)) {
                            item.columns.push(Output { name: KEY_NAME.into(), ty: SqlType::Bytea, origin: None });
                            item.keyed = true;
                        }
                        item
                    }
                    Some(args) => {
                        let exprs = list_args(&args.args)?;
                        self.function_item(name, exprs, *with_ordinality, alias.as_ref(), items, outer)?
                    }
                };
                self.leaf(item, items, outer)
            }
            TableFactor::Function { name, args, with_ordinality, alias, .. } => {
                let exprs = list_args(args)?;
                let item = self.function_item(name, exprs, *with_ordinality, alias.as_ref(), items, outer)?;
                self.leaf(item, items, outer)
            }
            TableFactor::UNNEST { alias, array_exprs, with_offset, with_ordinality, .. } => {
                if *with_offset {
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \"OFFSET\""));
                }
                let name = ObjectName(vec![ast::ObjectNamePart::Identifier(ast::Ident::new("unnest"))]);
                let item =
                    self.function_item(&name, array_exprs.clone(), *with_ordinality, alias.as_ref(), items, outer)?;
                self.leaf(item, items, outer)
            }
            TableFactor::Derived { lateral, subquery, alias, sample } => {
                if sample.is_some() {
                    return Err(SqlError::unsupported("TABLESAMPLE"));
                }
                let item = self.derived(*lateral, subquery, alias.as_ref(), items, outer)?;
                self.leaf(item, items, outer)
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.table_with_joins(table_with_joins, items, outer)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                // Under an alias it is one relation, of the columns that `*` shows.
                let query = whole_join(table_with_joins)?;
                let item = self.derived(false, &query, alias.as_ref(), items, outer)?;
                self.leaf(item, items, outer)
            }
            other => Err(SqlError::unsupported(format!("{other} in FROM"))),
        }
    }

    fn leaf(&mut self, mut item: Item, items: &mut Items, outer: &Scope<'_>) -> Result<Side, SqlError> {
        if items.list.iter().any(|other| {
            other.alias == item.alias
                && (other.schema == item.schema || other.schema.is_none() || item.schema.is_none())
        }) {
            let message = format!("table name \"{}\" specified more than once", item.alias);
            return Err(SqlError::new(SqlState(*b"42712"), message));
        }
        items.fixed |= item.lateral;
        item.add_table(self.words());
        if items.outer_joined && self.alone.contains(&item.alias) {
            item.add_mark();
            if let ItemSource::Node(node) = &item.source {
                let prefix = if item.lateral { items.scope(&items.written(), outer).width() } else { outer.width() };
                item.source = ItemSource::Node(item.marked(node.clone(), prefix));
            }
        }
        let place = items.list.len();
        let shown = (0..item.columns.len()).map(|number| Shown::Column(place, number)).collect();
        items.list.push(item);
        Ok(Side { tree: Tree::Leaf(place), shown })
    }

    /// A subquery in FROM; a lateral one sees the items before it.
    fn derived(
        &mut self,
        lateral: bool,
        query: &ast::Query,
        alias: Option<&TableAlias>,
        items: &Items,
        outer: &Scope<'_>,
    ) -> Result<Item, SqlError> {
        let lateral = lateral && !items.list.is_empty() && !items.apart;
        let (planned, width) = if lateral {
            let left = items.scope(&items.written(), outer);
            self.refuse_lifted(query, &left, "FROM clause of their own query level")?;
            let frame = Scope::inside(Some(&left));
            (self.query(query, &frame)?, left.width())
        } else {
            let frame = Scope::inside(Some(outer));
            (self.query(query, &frame).map_err(|error| items.unseen(error))?, outer.width())
        };
        let planned = self.known_columns(planned, width);
        let name = alias.map_or_else(|| format!("unnamed_subquery_{}", items.list.len()), |alias| fold(&alias.name));
        let columns = super::bind_query::renamed(planned.columns, alias.map_or(&[], |alias| &alias.columns), &name)?;
        Ok(Item {
            alias: name,
            schema: None,
            table: None,
            columns,
            source: ItemSource::Node(planned.node),
            lateral,
            scalar: false,
            keyed: false,
            of: None,
            unnamed: alias.is_none(),
        })
    }

    /// `TABLE name`
    pub(super) fn whole_table(
        &mut self,
        name: &ObjectName,
        outer: &Scope<'_>,
    ) -> Result<super::bind::Planned, SqlError> {
        let item = self.table(name, None, outer)?;
        let mut items = Items::default();
        let tree = self.leaf(item, &mut items, outer)?.tree;
        let every = std::mem::replace(&mut self.every, true);
        let built = self.build(&tree, Vec::new(), &items, outer);
        self.every = every;
        Ok(super::bind::Planned { node: built?.node, columns: items.list[0].columns.clone() })
    }

    /// A table, a view, a common table expression, a virtual table.
    fn table(&mut self, name: &ObjectName, alias: Option<&TableAlias>, outer: &Scope<'_>) -> Result<Item, SqlError> {
        let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident().map(fold)).collect();
        let (schema, table) = match parts.as_slice() {
            [table] => (None, table.as_str()),
            [schema, table] => (Some(schema.as_str()), table.as_str()),
            [database, schema, table] if *database == self.context.settings.database => {
                (Some(schema.as_str()), table.as_str())
            }
            _ => {
                let message = format!("cross-database references are not implemented: \"{}\"", parts.join("."));
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
        };
        let (columns, source, relation, oid) = self.resolve_table(schema, table, outer).map_err(|mut error| {
            error.position = super::take::place_of(name.0.first().and_then(|part| part.as_ident()));
            error
        })?;
        if alias.is_some_and(|alias| !alias.columns.is_empty()) {
            // Its columns go by other names than their own.
            self.every = true;
        }
        let shown = alias.map_or_else(|| table.to_string(), |alias| fold(&alias.name));
        let columns = super::bind_query::renamed(columns, alias.map_or(&[], |alias| &alias.columns), &shown)?;
        let schema = match (alias, schema) {
            (Some(_), _) => None,
            (None, Some(schema)) => Some(schema.to_string()),
            (None, None) => self.schema_found(&source, oid)?,
        };
        let of = oid.map(|oid| Named { oid, aliased: alias.is_some(), listed: alias.map_or(0, |a| a.columns.len()) });
        outer.note_table(name.0.first().and_then(|part| part.as_ident()), of);
        let (lateral, scalar, keyed, unnamed) = (false, false, false, false);
        Ok(Item { alias: shown, schema, table: relation, columns, source, lateral, scalar, keyed, of, unnamed })
    }

    /// The schema of a table that was named without one, if names of the statement begin with schemas.
    fn schema_found(&self, source: &ItemSource, oid: Option<Oid>) -> Result<Option<String>, SqlError> {
        if !self.alone.contains(WITH_SCHEMA) {
            return Ok(None);
        }
        if let ItemSource::Virtual(table) = source {
            return Ok(Some(table.schema.to_string()));
        }
        let catalog = &self.context.catalog;
        let Some(relation) = oid.map(|oid| catalog.relation_by_id(oid)).transpose()?.flatten() else { return Ok(None) };
        let id = snapshot::schema_of(&relation);
        Ok(catalog.schemas()?.into_iter().find(|schema| schema.id == id).map(|schema| schema.name))
    }

    fn resolve_table(
        &mut self,
        schema: Option<&str>,
        table: &str,
        outer: &Scope<'_>,
    ) -> Result<(Vec<Output>, ItemSource, Option<Arc<Relation>>, Option<Oid>), SqlError> {
        if schema.is_none()
            && let Some(cte) = self.ctes.iter().rev().find(|cte| cte.name == table)
        {
            if let Node::Cte(scan) = cte.node.as_ref()
                && !scan.shared
                && let Some(last) = scan.prefix.checked_sub(1)
            {
                // Who reads it reads what it reads: of a row around both.
                outer.read_slot(last);
            }
            let node = match cte.inlined.as_ref().filter(|_| outer.width() == 0) {
                Some(inlined) => {
                    self.bounds.weight += cte.weight;
                    inlined
                }
                None => &cte.node,
            };
            return Ok((cte.columns.clone(), ItemSource::Node(node.clone()), None, None));
        }
        if let Some(found) = pg_catalog::lookup(schema, table) {
            return Ok((virtual_columns(found), ItemSource::Virtual(found), None, None));
        }
        if schema == Some("timeball_internal")
            && let Some(found) = internal::columns(self.context.kv.as_ref(), table)
        {
            let column = |(name, ty): (&str, SqlType)| Output { name: name.to_owned(), ty, origin: None };
            let columns = found.into_iter().map(column).collect();
            let node = Arc::new(Node::Internal { name: table.to_string() });
            return Ok((columns, ItemSource::Node(node), None, None));
        }
        let Some(relation) = self.context.catalog.relation(schema, table)? else {
            let name = schema.map_or_else(|| table.to_string(), |schema| format!("{schema}.{table}"));
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist")));
        };
        match relation.as_ref() {
            Relation::Table(found) => {
                let column = |c: &crate::catalog::Column| Output {
                    name: c.name.clone(),
                    ty: c.ty.clone(),
                    origin: Some((found.id, c.id)),
                };
                let access = Arc::new(crate::exec::table::TableAccess::new(found)?);
                let columns = found.columns.iter().map(column).collect();
                Ok((columns, ItemSource::Table(access), Some(relation.clone()), Some(found.id)))
            }
            Relation::View(view) => {
                let planned = self.view(view, outer)?;
                let column = |(name, _): &(String, SqlType)| name.clone();
                let mut columns = planned.columns;
                for (output, name) in columns.iter_mut().zip(view.columns.iter().map(column)) {
                    output.name = name;
                    output.origin = None;
                }
                Ok((columns, ItemSource::Node(planned.node), None, Some(view.id)))
            }
            Relation::Sequence(sequence) => {
                let column = |(name, ty): (&str, SqlType)| Output { name: name.to_string(), ty, origin: None };
                let columns = [("last_value", SqlType::Int8), ("log_cnt", SqlType::Int8), ("is_called", SqlType::Bool)];
                let node = Arc::new(Node::Sequence { id: sequence.id });
                Ok((columns.into_iter().map(column).collect(), ItemSource::Node(node), None, Some(sequence.id)))
            }
        }
    }

    /// A view's query: it sees none of the names around it.
    fn view(&mut self, view: &crate::catalog::View, outer: &Scope<'_>) -> Result<super::bind::Planned, SqlError> {
        let (query, depth) = crate::syntax::parse_query(&view.query, &self.context.pace).map_err(|error| {
            let message = format!("the query of view \"{}\" cannot be read", view.name);
            if error.state == SqlState::SYNTAX_ERROR { SqlError::new(SqlState::INTERNAL_ERROR, message) } else { error }
        })?;
        self.add_words(&view.query)?;
        self.alone.append(&mut names_alone(&query)?);
        let ctes = std::mem::take(&mut self.ctes);
        let opaque = Scope::opaque(Some(outer));
        let planned = self.unfold(view, depth, |binder| binder.query(&query, &opaque));
        self.ctes = ctes;
        Ok(self.known_columns(planned?, outer.width()))
    }

    /// A function in FROM. It is lateral if its arguments name columns of the items before it.
    fn function_item(
        &mut self,
        name: &ObjectName,
        args: Vec<Expr>,
        ordinality: bool,
        alias: Option<&TableAlias>,
        items: &Items,
        outer: &Scope<'_>,
    ) -> Result<Item, SqlError> {
        let Some((_, bare)) = function_name(name) else {
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("function {name} does not exist")));
        };
        let frame = Scope::inside(Some(outer));
        // What holds a query is bound once: as a lateral item, which it may be.
        let may_be_lateral = !items.list.is_empty() && !items.apart;
        let mut lateral = may_be_lateral && args.iter().any(holds_query);
        let first = match lateral {
            true => self.from_calls(&bare, args.clone(), &items.scope(&items.written(), outer)),
            false => self.from_calls(&bare, args.clone(), &frame),
        };
        let calls = match first {
            Err(error)
                if !lateral
                    && may_be_lateral
                    && matches!(error.state, SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_TABLE) =>
            {
                lateral = true;
                let left = items.scope(&items.written(), outer);
                self.from_calls(&bare, args, &left)?
            }
            other => other.map_err(|error| items.unseen(error))?,
        };
        let alias_name = alias.map(|alias| fold(&alias.name));
        let mut columns: Vec<Output> = Vec::new();
        for call in &calls {
            for (column, ty) in call.names.iter().zip(&call.call.columns) {
                // One column takes the alias as its name, unless the function names it.
                let single = calls.len() == 1 && call.names.len() == 1 && *column == bare;
                let name = if single { alias_name.clone().unwrap_or_else(|| column.clone()) } else { column.clone() };
                columns.push(Output { name, ty: ty.clone(), origin: None });
            }
        }
        if ordinality {
            columns.push(Output { name: "ordinality".into(), ty: SqlType::Int8, origin: None });
        }
        let scalar = columns.len() == 1 && !ordinality;
        let shown = alias_name.unwrap_or(bare);
        let columns = super::bind_query::renamed(columns, alias.map_or(&[], |alias| &alias.columns), &shown)?;
        let calls = calls.into_iter().map(|call| call.call).collect();
        let node = Arc::new(Node::Function { calls, ordinality });
        Ok(Item {
            alias: shown,
            schema: None,
            table: None,
            columns,
            source: ItemSource::Node(node),
            lateral,
            scalar,
            keyed: false,
            of: None,
            unnamed: false,
        })
    }
}

fn virtual_columns(table: &'static VirtualTable) -> Vec<Output> {
    let columns = table.columns.iter().zip(1..);
    columns
        .map(|(column, number)| Output {
            name: column.name.into(),
            ty: column.ty.clone(),
            origin: Some((table.oid, number)),
        })
        .collect()
}

/// Whose rows an outer join keeps: USING shows their column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Left,
    Right,
    Both,
}

/// `SELECT * FROM` a join.
fn whole_join(join: &TableWithJoins) -> Result<ast::Query, SqlError> {
    let dialect = sqlparser::dialect::PostgreSqlDialect {};
    let parsed =
        sqlparser::parser::Parser::new(&dialect).try_with_sql("SELECT * FROM x").and_then(|mut p| p.parse_query());
    let mut query = *parsed.map_err(|error| SqlError::new(SqlState::INTERNAL_ERROR, error.to_string()))?;
    if let ast::SetExpr::Select(select) = query.body.as_mut() {
        select.from = vec![join.clone()];
    }
    Ok(query)
}

/// The column that USING names on one side.
fn using_column(items: &Items, side: &[Shown], name: &str, which: &str) -> Result<Shown, SqlError> {
    let mut found = side.iter().filter(|shown| items.name(**shown) == name);
    let first = found.next().ok_or_else(|| {
        let message = format!("column \"{name}\" specified in USING clause does not exist in {which} table");
        SqlError::new(SqlState::UNDEFINED_COLUMN, message)
    })?;
    if found.next().is_some() {
        let message = format!("common column name \"{name}\" appears more than once in {which} table");
        return Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, message));
    }
    Ok(*first)
}
