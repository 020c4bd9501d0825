//! FROM, in two phases: first every item and its columns, then the joins.
//!
//! **Order of joins.** Items joined by commas and inner joins are one pool: the one that has conditions of its own goes first, then
//! always one that an equality connects to what is there. With a lateral item the order stays as written, since its columns are
//! bound to the row of the items before it.
//!
//! **Conditions** go down as far as their names allow: to one item, where they may become keys; to the join where their last item
//! comes in. Conditions of an outer join's ON go only to its inner side, those of WHERE only to its outer side.

use super::bind::{Binder, Output};
use super::join_tree::{Conjunct, Item, ItemSource, Tree, conjuncts, own_names};
use super::node::Node;
use super::presence::{has_outer_join, is_mark, names_alone};
use super::scope::{Place, Scope, ScopeColumn, ScopeRelation, item_expr};
use super::take::{Clause, call_args, call_expr, function_name, list_args};
use crate::catalog::Relation;
use crate::identifier::fold;
use crate::pg_catalog::{self, VirtualTable};
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use sqlparser::ast::{self, Expr, JoinConstraint, JoinOperator, ObjectName, TableAlias, TableFactor, TableWithJoins};
use std::sync::Arc;

/// Items in one FROM, at most: conditions keep them as bits.
const ITEMS_MAX: usize = 60;

/// The items of one FROM.
#[derive(Default)]
pub(super) struct Items {
    pub(super) list: Vec<Item>,
    /// Columns hidden by USING: item and column.
    pub(super) shadowed: Vec<(usize, usize)>,
    /// Columns shown first by `*`.
    pub(super) front: Vec<(usize, usize)>,
    /// Columns merged by USING in a full join.
    pub(super) merged: Vec<(String, Expr)>,
    /// An item depends on those before it: the order stays.
    pub(super) fixed: bool,
    /// An outer join puts NULLs in the place of rows.
    outer_joined: bool,
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
        for (relation, item) in self.list.iter().enumerate() {
            scope.relations.push(ScopeRelation {
                alias: item.alias.clone(),
                schema: item.schema.clone(),
                table: item.table.clone(),
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
                    merged: self.front.contains(&(relation, number)),
                });
            }
        }
        self.add_merged(&mut scope);
        scope
    }

    fn add_merged(&self, scope: &mut Scope<'_>) {
        for (name, expr) in &self.merged {
            let Expr::Function(function) = expr else { continue };
            let Ok(args) = call_args(function) else { continue };
            let Some(slots) = args.iter().map(|arg| scope.item(arg)).collect::<Option<Vec<_>>>() else { continue };
            let place = Place::Merged(Box::new(call_expr("coalesce", slots)));
            let name = name.clone();
            scope.columns.push(ScopeColumn {
                relation: 0,
                number: usize::MAX,
                name,
                place,
                origin: None,
                shadowed: false,
                merged: true,
            });
        }
    }

    /// All items, as written.
    pub(super) fn written(&self) -> Vec<usize> {
        (0..self.list.len()).collect()
    }
}

impl Binder<'_> {
    /// Plans FROM and WHERE; gives the names that the rest of the query may use.
    pub(super) fn from<'p>(
        &mut self,
        from: &[TableWithJoins],
        selection: Option<&Expr>,
        outer: &'p Scope<'p>,
    ) -> Result<(Arc<Node>, Scope<'p>), SqlError> {
        let mut items = Items { outer_joined: has_outer_join(from), ..Items::default() };
        let mut tree: Option<Tree> = None;
        for table in from {
            let next = self.table_with_joins(table, &mut items, outer)?;
            tree = Some(match tree {
                None => next,
                Some(before) => Tree::comma(before, next, &items)?,
            });
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
        let pool: Vec<Conjunct> = selection.map_or_else(Vec::new, |selection| conjuncts(selection, &all));
        let built = self.build(&tree, pool, &items, outer)?;
        let scope = items.scope(&built.order, outer);
        Ok((built.node, scope))
    }

    fn table_with_joins(
        &mut self,
        table: &TableWithJoins,
        items: &mut Items,
        outer: &Scope<'_>,
    ) -> Result<Tree, SqlError> {
        let mut tree = self.factor(&table.relation, items, outer)?;
        for join in &table.joins {
            let right = self.factor(&join.relation, items, outer)?;
            tree = self.join(tree, right, &join.join_operator, items, outer)?;
        }
        Ok(tree)
    }

    fn join(
        &mut self,
        left: Tree,
        right: Tree,
        operator: &JoinOperator,
        items: &mut Items,
        outer: &Scope<'_>,
    ) -> Result<Tree, SqlError> {
        use JoinOperator as J;
        let none = JoinConstraint::None;
        let constraint = match operator {
            J::Join(c)
            | J::Inner(c)
            | J::Left(c)
            | J::LeftOuter(c)
            | J::Right(c)
            | J::RightOuter(c)
            | J::FullOuter(c) => c,
            J::CrossJoin(_) => &none,
            other => {
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error at this join: {other:?}")));
            }
        };
        let full = matches!(operator, J::FullOuter(_));
        let on = self.constraint(
            constraint,
            &left,
            &right,
            items,
            full,
            matches!(operator, J::Right(_) | J::RightOuter(_)),
            outer,
        )?;
        Ok(match operator {
            J::Left(_) | J::LeftOuter(_) => Tree::left(left, right, on),
            J::Right(_) | J::RightOuter(_) if right.is_lateral(items) || items.fixed => {
                return Err(SqlError::unsupported("RIGHT JOIN beside LATERAL").hint("Write it as a LEFT JOIN."));
            }
            J::Right(_) | J::RightOuter(_) => Tree::left(right, left, on),
            J::FullOuter(_) if matches!(&right, Tree::Leaf(item) if items.list[*item].lateral) => {
                return Err(SqlError::unsupported("FULL JOIN of a LATERAL item")
                    .hint("The combining JOIN type must be INNER or LEFT for a LATERAL reference."));
            }
            J::FullOuter(_) => Tree::full(left, right, on),
            _ => Tree::inner(left, right, on),
        })
    }

    /// ON, USING and NATURAL as conjuncts.
    #[allow(clippy::too_many_arguments)]
    fn constraint(
        &mut self,
        constraint: &JoinConstraint,
        left: &Tree,
        right: &Tree,
        items: &mut Items,
        full: bool,
        keep_right: bool,
        outer: &Scope<'_>,
    ) -> Result<Vec<Conjunct>, SqlError> {
        let (l, r) = (left.items(), right.items());
        let names: Vec<String> = match constraint {
            JoinConstraint::None => return Ok(Vec::new()),
            JoinConstraint::On(expr) => {
                let order: Vec<usize> = l.iter().chain(&r).copied().collect();
                let scope = items.scope(&order, outer);
                if order.len() == items.list.len() {
                    return Ok(conjuncts(expr, &scope));
                }
                let own = own_names(expr, &scope, &items.scope(&items.written(), outer))?;
                return Ok(conjuncts(&own, &scope));
            }
            JoinConstraint::Using(names) => {
                names.iter().filter_map(|name| name.0.last()?.as_ident().map(fold)).collect()
            }
            JoinConstraint::Natural => {
                let visible = |side: &[usize]| -> Vec<String> {
                    let columns = side
                        .iter()
                        .flat_map(|item| items.list[*item].columns.iter().enumerate().map(move |(n, c)| (*item, n, c)));
                    columns
                        .filter(|(item, n, c)| !items.shadowed.contains(&(*item, *n)) && !is_mark(&c.name))
                        .map(|(_, _, c)| c.name.clone())
                        .collect()
                };
                let right = visible(&r);
                let both: Vec<String> = visible(&l).into_iter().filter(|name| right.contains(name)).collect();
                self.read_unsaid(&both);
                both
            }
        };
        let mut on = Vec::new();
        for name in names {
            let a = using_column(items, &l, &name, "left")?;
            let b = using_column(items, &r, &name, "right")?;
            let expr = Expr::BinaryOp {
                left: Box::new(item_expr(a.0, a.1)),
                op: ast::BinaryOperator::Eq,
                right: Box::new(item_expr(b.0, b.1)),
            };
            on.push(Conjunct { expr, items: 1 << a.0 | 1 << b.0 });
            if full {
                items.shadowed.extend([a, b]);
                items.merged.push((name, call_expr("coalesce", vec![item_expr(a.0, a.1), item_expr(b.0, b.1)])));
            } else {
                let (shown, hidden) = if keep_right { (b, a) } else { (a, b) };
                items.shadowed.push(hidden);
                items.front.push(shown);
            }
        }
        Ok(on)
    }

    fn factor(&mut self, factor: &TableFactor, items: &mut Items, outer: &Scope<'_>) -> Result<Tree, SqlError> {
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
                    None => self.table(name, alias.as_ref(), outer)?,
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
            TableFactor::NestedJoin { table_with_joins, alias } => {
                if alias.is_some() {
                    return Err(SqlError::unsupported("an alias of a join in parentheses"));
                }
                self.table_with_joins(table_with_joins, items, outer)
            }
            other => Err(SqlError::unsupported(format!("{other} in FROM"))),
        }
    }

    fn leaf(&mut self, mut item: Item, items: &mut Items, outer: &Scope<'_>) -> Result<Tree, SqlError> {
        if items.list.iter().any(|other| {
            other.alias == item.alias
                && (other.schema == item.schema || other.schema.is_none() || item.schema.is_none())
        }) {
            let message = format!("table name \"{}\" specified more than once", item.alias);
            return Err(SqlError::new(SqlState(*b"42712"), message));
        }
        items.fixed |= item.lateral;
        if items.outer_joined && self.alone.contains(&item.alias) {
            item.add_mark();
            if let ItemSource::Node(node) = &item.source {
                let prefix = if item.lateral { items.scope(&items.written(), outer).width() } else { outer.width() };
                item.source = ItemSource::Node(item.marked(node.clone(), prefix));
            }
        }
        items.list.push(item);
        Ok(Tree::Leaf(items.list.len() - 1))
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
        let lateral = lateral && !items.list.is_empty();
        let (planned, width) = if lateral {
            let left = items.scope(&items.written(), outer);
            let frame = Scope::inside(Some(&left));
            (self.query(query, &frame)?, left.width())
        } else {
            let frame = Scope::inside(Some(outer));
            (self.query(query, &frame)?, outer.width())
        };
        let planned = self.known_columns(planned, width);
        let name = alias.map_or_else(|| format!("unnamed_subquery_{}", items.list.len()), |alias| fold(&alias.name));
        let columns = super::bind_query::renamed(planned.columns, alias.map_or(&[], |alias| &alias.columns), &name)?;
        Ok(Item { alias: name, schema: None, table: None, columns, source: ItemSource::Node(planned.node), lateral })
    }

    /// `TABLE name`
    pub(super) fn whole_table(
        &mut self,
        name: &ObjectName,
        outer: &Scope<'_>,
    ) -> Result<super::bind::Planned, SqlError> {
        let item = self.table(name, None, outer)?;
        let mut items = Items::default();
        let tree = self.leaf(item, &mut items, outer)?;
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
        let (columns, source, relation) = self.resolve_table(schema, table, outer).map_err(|mut error| {
            error.position = super::take::place_of(name.0.first().and_then(|part| part.as_ident()));
            error
        })?;
        if alias.is_some_and(|alias| !alias.columns.is_empty()) {
            // Its columns go by other names than their own.
            self.every = true;
        }
        let shown = alias.map_or_else(|| table.to_string(), |alias| fold(&alias.name));
        let columns = super::bind_query::renamed(columns, alias.map_or(&[], |alias| &alias.columns), &shown)?;
        let schema = if alias.is_some() { None } else { schema.map(str::to_string) };
        Ok(Item { alias: shown, schema, table: relation, columns, source, lateral: false })
    }

    fn resolve_table(
        &mut self,
        schema: Option<&str>,
        table: &str,
        outer: &Scope<'_>,
    ) -> Result<(Vec<Output>, ItemSource, Option<Arc<Relation>>), SqlError> {
        if schema.is_none()
            && let Some(cte) = self.ctes.iter().rev().find(|cte| cte.name == table)
        {
            return Ok((cte.columns.clone(), ItemSource::Node(cte.node.clone()), None));
        }
        if let Some(found) = pg_catalog::lookup(schema, table) {
            return Ok((virtual_columns(found), ItemSource::Virtual(found), None));
        }
        if schema == Some("timeball_internal")
            && let Some((names, _)) = self.context.kv.internal_table(table)
        {
            let column = |name| Output { name, ty: SqlType::Text, origin: None };
            let columns = names.into_iter().map(column).collect();
            return Ok((columns, ItemSource::Node(Arc::new(Node::Internal { name: table.to_string() })), None));
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
                Ok((found.columns.iter().map(column).collect(), ItemSource::Table(access), Some(relation.clone())))
            }
            Relation::View(view) => {
                let planned = self.view(view, outer)?;
                let column = |(name, _): &(String, SqlType)| name.clone();
                let mut columns = planned.columns;
                for (output, name) in columns.iter_mut().zip(view.columns.iter().map(column)) {
                    output.name = name;
                    output.origin = None;
                }
                Ok((columns, ItemSource::Node(planned.node), None))
            }
            Relation::Sequence(sequence) => {
                let column = |(name, ty): (&str, SqlType)| Output { name: name.to_string(), ty, origin: None };
                let columns = [("last_value", SqlType::Int8), ("log_cnt", SqlType::Int8), ("is_called", SqlType::Bool)];
                let node = Arc::new(Node::Sequence { id: sequence.id });
                Ok((columns.into_iter().map(column).collect(), ItemSource::Node(node), None))
            }
        }
    }

    /// A view's query: it sees none of the names around it.
    fn view(&mut self, view: &crate::catalog::View, outer: &Scope<'_>) -> Result<super::bind::Planned, SqlError> {
        let unreadable =
            || SqlError::new(SqlState::INTERNAL_ERROR, format!("the query of view \"{}\" cannot be read", view.name));
        let command = crate::syntax::parse(&view.query)?.pop().map(|parsed| parsed.command);
        let Some(crate::syntax::Command::Planned(mut planned)) = command else { return Err(unreadable()) };
        let ast::Statement::Query(query) = &mut planned.statement else { return Err(unreadable()) };
        self.add_words(&view.query);
        self.alone.append(&mut names_alone(query));
        let ctes = std::mem::take(&mut self.ctes);
        let opaque = Scope::opaque(Some(outer));
        let planned = self.query(query, &opaque);
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
        let mut lateral = false;
        let calls = match self.from_calls(&bare, args.clone(), &frame) {
            Err(error)
                if !items.list.is_empty()
                    && matches!(error.state, SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_TABLE) =>
            {
                lateral = true;
                let left = items.scope(&items.written(), outer);
                self.from_calls(&bare, args, &left)?
            }
            other => other?,
        };
        let alias_name = alias.map(|alias| fold(&alias.name));
        let mut columns: Vec<Output> = Vec::new();
        for call in &calls {
            for (column, ty) in call.names.iter().zip(&call.call.columns) {
                // One column takes the alias as its name.
                let single = calls.len() == 1 && call.names.len() == 1;
                let name = if single { alias_name.clone().unwrap_or_else(|| column.clone()) } else { column.clone() };
                columns.push(Output { name, ty: ty.clone(), origin: None });
            }
        }
        if ordinality {
            columns.push(Output { name: "ordinality".into(), ty: SqlType::Int8, origin: None });
        }
        let shown = alias_name.unwrap_or(bare);
        let columns = super::bind_query::renamed(columns, alias.map_or(&[], |alias| &alias.columns), &shown)?;
        let calls = calls.into_iter().map(|call| call.call).collect();
        let node = Arc::new(Node::Function { calls, ordinality });
        Ok(Item { alias: shown, schema: None, table: None, columns, source: ItemSource::Node(node), lateral })
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

/// The column that USING names on one side.
fn using_column(items: &Items, side: &[usize], name: &str, which: &str) -> Result<(usize, usize), SqlError> {
    let mut found = None;
    for &item in side {
        for (number, column) in items.list[item].columns.iter().enumerate() {
            if column.name == name && !items.shadowed.contains(&(item, number)) {
                if found.is_some() {
                    let message = format!("common column name \"{name}\" appears more than once in {which} table");
                    return Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, message));
                }
                found = Some((item, number));
            }
        }
    }
    found.ok_or_else(|| {
        let message = format!("column \"{name}\" specified in USING clause does not exist in {which} table");
        SqlError::new(SqlState::UNDEFINED_COLUMN, message)
    })
}
