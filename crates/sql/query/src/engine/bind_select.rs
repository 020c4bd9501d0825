//! One SELECT: FROM, WHERE, grouping, the select list, DISTINCT, ORDER BY.

use super::aggregate::AggregateCall;
use super::bind::{Binder, Grouping, Output, Planned, canonical, direction};
use super::bind_query::{Tail, limited, order_keys, ordinal};
use super::bind_set::fields_of;
use super::early;
use super::keys::own_kinds;
use super::node::{Node, SortKey};
use super::scalar::Scalar;
use super::scope::{Place, Scope, slot_expr, slot_of, slot_of_text};
use super::take::{Clause, Held, Taker, function_name};
use super::unused;
use super::walk;
use crate::catalog::{Oid, Relation};
use crate::expr::row_fields;
use crate::identifier::fold;
use crate::plan::select::fits_a_list;
use crate::syntax::forms::spread;
use crate::syntax::view::column_label;
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    self, AccessExpr, Distinct, Expr, GroupByExpr, Select, SelectItem, SelectItemQualifiedWildcardKind, Visit, Visitor,
};
use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::sync::Arc;

/// One item of the select list.
pub(super) struct Item {
    pub(super) name: String,
    pub(super) expr: Expr,
    pub(super) origin: Option<(Oid, u16)>,
}

/// A sort key before it is compiled: an output column, or an expression of its own, also in the spelling that it is compared by.
pub(super) enum OrderKey {
    Output(usize),
    Hidden { expr: Expr, plain: Expr },
}

impl PartialEq for OrderKey {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (OrderKey::Output(a), OrderKey::Output(b)) => a == b,
            (OrderKey::Hidden { plain: a, .. }, OrderKey::Hidden { plain: b, .. }) => a == b,
            _ => false,
        }
    }
}

/// Finds aggregates that belong to the query itself.
struct FindsAggregate {
    depth: usize,
}

impl Visitor for FindsAggregate {
    type Break = ();

    fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) if self.depth == 0 && function.over.is_none() => {
                match function_name(&function.name) {
                    Some((_, name)) if super::aggregate::Function::named(&name).is_some() => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Finds aggregates within subqueries.
struct FindsInside {
    depth: usize,
}

impl Visitor for FindsInside {
    type Break = ();

    fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.depth > 0 { FindsAggregate { depth: 0 }.pre_visit_expr(expr) } else { ControlFlow::Continue(()) }
    }
}

/// Whether a subquery of a node holds an aggregate.
pub(super) fn has_aggregate_inside<T: Visit>(node: &T) -> bool {
    node.visit(&mut FindsInside { depth: 0 }).is_break()
}

/// Whether a node holds an aggregate outside of its subqueries.
pub(super) fn has_aggregate<T: Visit>(node: &T) -> bool {
    node.visit(&mut FindsAggregate { depth: 0 }).is_break()
}

fn refuse(select: &Select) -> Result<(), SqlError> {
    let foreign = select.top.is_some()
        || !select.lateral_views.is_empty()
        || select.prewhere.is_some()
        || !select.connect_by.is_empty()
        || !select.cluster_by.is_empty()
        || !select.distribute_by.is_empty()
        || !select.sort_by.is_empty()
        || select.qualify.is_some()
        || select.value_table_mode.is_some()
        || select.exclude.is_some();
    if foreign {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error: this clause is not PostgreSQL's"));
    }
    if select.into.is_some() {
        return Err(SqlError::unsupported("SELECT INTO").hint("Use CREATE TABLE, then INSERT .. SELECT."));
    }
    Ok(())
}

/// `(f(x)).*`: a column for each field. The call stands in each of them, as with PostgreSQL.
fn fields(value: &Expr) -> Result<Vec<Item>, SqlError> {
    let mut inner = value;
    while let Expr::Nested(nested) = inner {
        inner = nested;
    }
    if let Some(fields) = row_fields(inner) {
        let item = |(at, expr): (usize, &Expr)| Item { name: format!("f{}", at + 1), origin: None, expr: expr.clone() };
        return Ok(fields.iter().enumerate().map(item).collect());
    }
    let names = match inner {
        Expr::Function(call) => function_name(&call.name).and_then(|(_, name)| fields_of(&name)),
        _ => None,
    };
    let Some(names) = names else {
        let message = format!("{} is of no composite type whose columns are known", column_label(inner));
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
    };
    let item = |name: &str| {
        let access_chain = vec![AccessExpr::Dot(Expr::Identifier(ast::Ident::with_quote('"', name)))];
        let expr = Expr::CompoundFieldAccess { root: Box::new(value.clone()), access_chain };
        Item { name: name.into(), origin: None, expr }
    };
    Ok(names.into_iter().map(item).collect())
}

impl Binder<'_> {
    pub(super) fn select(&mut self, select: &Select, tail: Tail<'_>, outer: &Scope<'_>) -> Result<Planned, SqlError> {
        refuse(select)?;
        let (mut node, from) = self.from(&select.from, select.selection.as_ref(), outer)?;
        let Bound { scope, groups, list } = self.list(select, tail, from, outer)?;
        if let Some(Groups { keys, calls, sets, .. }) = groups {
            let rows = unused::below_grouping(node, &keys, &calls);
            let (input, calls) = early::below_join(&rows, outer.width(), &keys, &calls).unwrap_or((rows, calls));
            node = Arc::new(Node::Aggregate { input, keys, calls, sets });
        }
        self.project(node, scope, list, select, tail, outer)
    }

    /// Binds what stands beside FROM and WHERE: grouping, the select list, HAVING, DISTINCT ON, ORDER BY, over the rows of `from`.
    pub(super) fn list<'p>(
        &mut self,
        select: &Select,
        tail: Tail<'_>,
        from: Scope<'p>,
        outer: &'p Scope<'p>,
    ) -> Result<Bound<'p>, SqlError> {
        let mut items = self.items(select, &from)?;
        let mut order = Vec::new();
        for key in tail.order.map(order_keys).transpose()?.unwrap_or_default() {
            order.push(self.copy(key)?);
        }
        let mut having = self.copy(&select.having)?;
        let mut lifted = false;
        for item in &mut items {
            lifted |= self.lift(&mut item.expr, &from)?;
        }
        lifted |= self.lift(&mut order, &from)?;
        lifted |= self.lift(&mut having, &from)?;
        if let Some(selection) = &select.selection {
            self.refuse_lifted(selection, &from, "WHERE")?;
        }
        self.refuse_lifted(&select.group_by, &from, "GROUP BY")?;
        let (keys, sets) = self.group_keys(&select.group_by, &items, &from)?;
        // GROUP BY () has no key, and makes a group all the same.
        let said =
            !matches!(&select.group_by, GroupByExpr::Expressions(keys, sets) if keys.is_empty() && sets.is_empty());
        let grouped = said
            || lifted
            || select.having.is_some()
            || items.iter().any(|item| has_aggregate(&item.expr))
            || order.iter().any(|key| has_aggregate(&key.expr));
        let having = having.as_ref().filter(|_| grouped);
        let mut list = List { items, order: &order, on: distinct_on(select), having };
        if grouped {
            return self.grouped(select, list, &from, keys, sets, outer);
        }
        let list = self.take_list(&mut list, select, &from, None)?;
        Ok(Bound { scope: from, groups: None, list })
    }

    /// The select list, `*` expanded to slots.
    fn items(&mut self, select: &Select, from: &Scope<'_>) -> Result<Vec<Item>, SqlError> {
        let mut items = Vec::with_capacity(select.projection.len());
        for item in &select.projection {
            let (qualifiers, place) = match item {
                SelectItem::UnnamedExpr(expr) if let Some(value) = spread(expr) => {
                    items.extend(fields(value)?);
                    continue;
                }
                SelectItem::UnnamedExpr(expr) => {
                    items.push(Item { name: column_label(expr), origin: origin(expr, from), expr: self.copy(expr)? });
                    continue;
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    items.push(Item { name: fold(alias), origin: origin(expr, from), expr: self.copy(expr)? });
                    continue;
                }
                SelectItem::Wildcard(_) if from.relations.is_empty() => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "SELECT * with no tables specified is not valid",
                    ));
                }
                SelectItem::Wildcard(options) => (Vec::new(), options.wildcard_token.0.span.start),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    let parts = name.0.iter().filter_map(|part| part.as_ident().map(fold)).collect();
                    (parts, options.wildcard_token.0.span.start)
                }
                other => return Err(SqlError::unsupported(format!("{other} in the select list"))),
            };
            from.note_star(place, &qualifiers);
            let columns = from.star(&qualifiers)?;
            self.read_unsaid(columns.iter().map(|(name, _)| name));
            for (name, found) in columns {
                items.push(Item { name, expr: found.expr, origin: found.origin });
            }
        }
        fits_a_list(items.len())?;
        Ok(items)
    }

    /// Resolves the names of the select list and what goes with it.
    fn take_list(
        &mut self,
        list: &mut List<'_>,
        select: &Select,
        scope: &Scope<'_>,
        mut grouping: Option<&mut Grouping<'_>>,
    ) -> Result<Taken, SqlError> {
        let mut items = Vec::with_capacity(list.items.len());
        for item in std::mem::take(&mut list.items) {
            let mut expr = item.expr;
            Taker { binder: self, scope, grouping: grouping.as_deref_mut(), clause: Clause::SELECT }.run(&mut expr)?;
            items.push(Item { expr, ..item });
        }
        let mut having = list.having.cloned();
        if let Some(having) = &mut having {
            Taker { binder: self, scope, grouping: grouping.as_deref_mut(), clause: Clause::plain("HAVING") }
                .run(having)?;
        }
        // Most lists are never compared.
        let spelled: Vec<OnceCell<Expr>> = vec![OnceCell::new(); items.len()];
        let plain = |binder: &Self, place: usize| spelled[place].get_or_init(|| binder.plain(&items[place].expr));
        let said =
            if self.is_outermost() { items.len().saturating_sub(self.context.keyed.behind) } else { items.len() };
        let mut own = |binder: &mut Self, expr: &Expr, clause: &'static str| -> Result<OrderKey, SqlError> {
            if let Some(place) = ordinal(expr, said, clause)? {
                return Ok(OrderKey::Output(place));
            }
            if let Expr::Identifier(name) = expr {
                let name = fold(name);
                let mut named = (0..items.len()).filter(|place| items[*place].name == name);
                if let Some(first) = named.next() {
                    if named.any(|other| plain(binder, other) != plain(binder, first)) {
                        let message = format!("{clause} \"{name}\" is ambiguous");
                        return Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, message));
                    }
                    return Ok(OrderKey::Output(first));
                }
            }
            let mut expr = expr.clone();
            let clause = Clause { name: clause, ..Clause::SELECT };
            if let Some(grouping) = &mut grouping {
                grouping.repeats = true;
            }
            Taker { binder, scope, grouping: grouping.as_deref_mut(), clause }.run(&mut expr)?;
            let key = binder.plain(&expr);
            Ok(match (0..items.len()).find(|place| *plain(binder, *place) == key) {
                Some(place) => OrderKey::Output(place),
                None => OrderKey::Hidden { expr, plain: key },
            })
        };
        let mut order = Vec::with_capacity(list.order.len());
        for key in list.order {
            order.push((own(self, &key.expr, "ORDER BY")?, direction(key)));
        }
        let mut on = Vec::with_capacity(list.on.len());
        for expr in list.on {
            on.push(own(self, expr, "DISTINCT ON")?);
        }
        if matches!(select.distinct, Some(Distinct::Distinct))
            && order.iter().any(|(key, _)| matches!(key, OrderKey::Hidden { .. }))
        {
            let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        if !on.is_empty() && !order.is_empty() {
            lead_with(&on, &order)?;
        }
        Ok(Taken { items, having, order, on })
    }

    fn grouped<'p>(
        &mut self,
        select: &Select,
        mut list: List<'_>,
        from: &Scope<'p>,
        mut keys: Vec<Expr>,
        sets: Vec<Vec<bool>>,
        outer: &'p Scope<'p>,
    ) -> Result<Bound<'p>, SqlError> {
        let said = keys.len();
        if sets.is_empty() {
            keys.extend(dependent_columns(from, &keys)?);
        }
        let mut after = Scope::inside(Some(outer));
        after.relations.clone_from(&from.relations);
        let mut scalars: Vec<Scalar> = Vec::with_capacity(keys.len());
        let mut named = Vec::with_capacity(keys.len());
        for key in &keys {
            // Keys may be slots already: the text they are found by is the one before their names were resolved.
            let text = canonical(key, from)?;
            let taken = self.take(key.clone(), from, Clause::plain("GROUP BY"))?;
            let scalar = self.compile(taken, from)?;
            let scalar = self.known(scalar)?;
            // What depends on the others tells no groups apart.
            if scalars.len() < said {
                scalar.ty.check_equality()?;
            }
            named.push((text.unwrap_or_default(), after.width()));
            after.types.push(scalar.ty.clone());
            scalars.push(scalar);
        }
        after.columns = grouped_columns(from, &named);
        let mut grouping = Grouping::new(from, named, after.width());
        let list = self.take_list(&mut list, select, &after, Some(&mut grouping))?;
        let calls = grouping.calls;
        after.types.extend(calls.iter().map(|call| call.ty.clone()));
        let sets = if sets.is_empty() { vec![vec![true; keys.len()]] } else { sets };
        debug_assert!(sets.iter().all(|set| set.len() >= said));
        Ok(Bound { scope: after, groups: Some(Groups { keys: scalars, said, calls, sets }), list })
    }

    /// HAVING, windows, sets, the select list, DISTINCT, ORDER BY, LIMIT.
    fn project(
        &mut self,
        mut node: Arc<Node>,
        mut scope: Scope<'_>,
        taken: Taken,
        select: &Select,
        tail: Tail<'_>,
        outer: &Scope<'_>,
    ) -> Result<Planned, SqlError> {
        if let Some(having) = taken.having {
            let having = self.compile(having, &scope)?;
            let conditions = vec![self.condition(having, "HAVING")?];
            node = Arc::new(Node::Filter { input: node, conditions });
        }
        node = self.plan_windows(node, &mut scope, select)?;
        node = self.plan_sets(node, &mut scope)?;
        let prefix = outer.width();
        let mut columns = Vec::with_capacity(taken.items.len());
        let mut outputs = Vec::with_capacity(taken.items.len());
        for item in taken.items {
            let mut scalar = self.compile(item.expr, &scope)?;
            // A literal may still become what a set operation or an INSERT makes of it; nothing else tells a parameter's type.
            if !matches!(scalar.expr, crate::expr::Expr::Literal(..)) {
                scalar = self.known(scalar)?;
            }
            outputs.push(Output { name: item.name, ty: scalar.ty.clone(), origin: item.origin });
            columns.push(scalar);
        }
        let visible = columns.len();
        let mut slots = Vec::new();
        for (key, direction) in taken.order {
            slots.push((self.order_slot(key, &mut columns, &scope)?, direction));
        }
        let mut on = Vec::new();
        for key in taken.on {
            on.push(self.order_slot(key, &mut columns, &scope)?);
        }
        let is_limited = tail.limit.is_some() || (self.is_outermost() && self.context.keyed.is_limited);
        if on.is_empty() && select.distinct.is_none() && postponed(&columns, visible, &slots, is_limited) {
            slots.iter().try_for_each(|(place, _)| columns[*place].ty.check_order())?;
            let limits = self.limits(&tail, &scope, outer)?;
            let key = |(place, (descending, nulls_first)): &(usize, (bool, bool))| {
                let (descending, nulls_first) = (*descending, *nulls_first);
                SortKey { by: columns[*place].clone(), descending, nulls_first }
            };
            let keys: Vec<SortKey> = slots.iter().map(key).collect();
            let ties = if tail.with_ties { keys.iter().map(|key| key.by.clone()).collect() } else { Vec::new() };
            node = self.sorted(node, prefix, keys, tail.of_sort(&limits));
            node = limited(node, limits, ties);
            columns.truncate(visible);
            let node = Arc::new(Node::Project { input: node, prefix, columns });
            return Ok(Planned { node, columns: outputs });
        }
        let types: Vec<SqlType> = columns.iter().map(|column| column.ty.clone()).collect();
        let width = prefix + columns.len();
        let slot = |place: usize| Self::slot(prefix + place, &types[place], width);
        node = Arc::new(Node::Project { input: unused::below_list(node, &columns), prefix, columns });
        if matches!(select.distinct, Some(Distinct::Distinct)) {
            outputs.iter().try_for_each(|output| output.ty.check_equality())?;
            let kinds = own_kinds(&types);
            node = Arc::new(Node::Distinct { input: node, prefix, kinds, on: None });
        }
        let keys = |slots: &[(usize, (bool, bool))]| -> Vec<SortKey> {
            slots
                .iter()
                .map(|(place, (descending, nulls_first))| SortKey {
                    by: slot(*place),
                    descending: *descending,
                    nulls_first: *nulls_first,
                })
                .collect()
        };
        on.iter().try_for_each(|place| types[*place].check_equality())?;
        slots.iter().try_for_each(|(place, _)| types[*place].check_order())?;
        let limits = self.limits(&tail, &scope, outer)?;
        if !slots.is_empty() {
            let limit = if on.is_empty() { tail.of_sort(&limits) } else { None };
            node = self.sorted(node, prefix, keys(&slots), limit);
        }
        if !on.is_empty() {
            let on = Some(on.into_iter().map(slot).collect());
            node = Arc::new(Node::Distinct { input: node, prefix, kinds: Vec::new(), on });
        }
        let ties = if tail.with_ties { keys(&slots).into_iter().map(|key| key.by).collect() } else { Vec::new() };
        node = limited(node, limits, ties);
        if types.len() > visible {
            node = Arc::new(Node::Cut { input: node, width: prefix + visible });
        }
        Ok(Planned { node, columns: outputs })
    }

    /// The column of a sort key: an output's, or a new one behind them.
    fn order_slot(&mut self, key: OrderKey, columns: &mut Vec<Scalar>, scope: &Scope<'_>) -> Result<usize, SqlError> {
        match key {
            OrderKey::Output(place) => Ok(place),
            OrderKey::Hidden { expr, .. } => {
                columns.push(self.compile(expr, scope)?);
                Ok(columns.len() - 1)
            }
        }
    }

    /// Replaces what a mark stands for by a slot.
    pub(super) fn settle(&mut self, place: usize, slot: usize) {
        self.held[place] = Held::Slot(slot);
    }
}

/// Whether the select list is computed of what is left after ORDER BY and LIMIT, as PostgreSQL does it: where something volatile is in it, and where
/// a LIMIT spares it subqueries. What is sorted by must give the same once more, and without a LIMIT cost nothing.
fn postponed(columns: &[Scalar], visible: usize, slots: &[(usize, (bool, bool))], is_limited: bool) -> bool {
    let is_key = |place: usize| slots.iter().any(|(key, _)| *key == place);
    let asks = |scalar: &Scalar| scalar.steps.iter().any(|step| step.plan().is_some());
    let volatile = |place: usize| walk::scalar_is_volatile(&columns[place]);
    let others = || (0..visible).filter(|place| !is_key(*place));
    !slots.is_empty()
        && (is_limited && others().any(|place| asks(&columns[place])) || others().any(volatile))
        && slots.iter().all(|(key, _)| !volatile(*key) && (is_limited || columns[*key].steps.is_empty()))
}

/// DISTINCT ON keeps the first row of each group, so ORDER BY begins with its expressions, in whatever order.
fn lead_with(on: &[OrderKey], order: &[(OrderKey, (bool, bool))]) -> Result<(), SqlError> {
    let leading = order.iter().take_while(|(key, _)| on.contains(key)).count();
    let later = order[leading..].iter().any(|(key, _)| on.contains(key));
    let missing = on.iter().any(|key| !order.iter().any(|(other, _)| other == key));
    if leading < order.len() && (later || missing) {
        let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
        return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
    }
    Ok(())
}

/// The select list and its companions, before names are resolved.
struct List<'a> {
    items: Vec<Item>,
    order: &'a [ast::OrderByExpr],
    on: &'a [Expr],
    having: Option<&'a Expr>,
}

/// The same afterwards.
pub(super) struct Taken {
    pub(super) items: Vec<Item>,
    pub(super) having: Option<Expr>,
    pub(super) order: Vec<(OrderKey, (bool, bool))>,
    on: Vec<OrderKey>,
}

/// A SELECT whose names are resolved, over the rows of its FROM, whoever reads those.
pub(super) struct Bound<'p> {
    /// Of the rows that the list is computed of: those of FROM, or of the groups.
    pub(super) scope: Scope<'p>,
    pub(super) groups: Option<Groups>,
    pub(super) list: Taken,
}

/// GROUP BY and the aggregates: rows of the prefix, the keys, the aggregates.
pub(super) struct Groups {
    pub(super) keys: Vec<Scalar>,
    /// Keys that were said; those behind depend on them.
    pub(super) said: usize,
    pub(super) calls: Vec<AggregateCall>,
    sets: Vec<Vec<bool>>,
}

impl Groups {
    /// Whether rows are grouped by other sets than that of all keys.
    pub(super) fn are_several(&self) -> bool {
        self.sets.len() != 1 || self.sets.iter().flatten().any(|key| !key)
    }
}

fn distinct_on(select: &Select) -> &[Expr] {
    match &select.distinct {
        Some(Distinct::On(exprs)) => exprs,
        _ => &[],
    }
}

/// Table and column of an item that is a plain column.
fn origin(expr: &Expr, from: &Scope<'_>) -> Option<(Oid, u16)> {
    let parts: Vec<String> = match expr {
        Expr::Identifier(ident) => vec![fold(ident)],
        Expr::CompoundIdentifier(parts) => parts.iter().map(fold).collect(),
        Expr::Nested(inner) => return origin(inner, from),
        _ => return None,
    };
    from.find(&parts).ok().flatten()?.origin
}

/// Columns that depend on the keys: those of tables whose whole primary key is among them.
fn dependent_columns(from: &Scope<'_>, keys: &[Expr]) -> Result<Vec<Expr>, SqlError> {
    let mut slots = Vec::new();
    for key in keys {
        slots.extend(canonical(key, from)?.and_then(|text| slot_of_text(&text)));
    }
    let mut out = Vec::new();
    for (number, relation) in from.relations.iter().enumerate() {
        let Some(Relation::Table(table)) = relation.table.as_deref() else { continue };
        if !table.has_primary_key {
            continue;
        }
        let columns = || from.columns.iter().filter(|column| column.relation == number);
        let slot = |id: u16| columns().find(|c| c.origin == Some((table.id, id))).and_then(|c| place_slot(&c.place));
        let whole =
            table.primary.columns.iter().all(|part| slot(part.column).is_some_and(|slot| slots.contains(&slot)));
        if whole {
            out.extend(
                columns().filter_map(|c| place_slot(&c.place)).filter(|slot| !slots.contains(slot)).map(slot_expr),
            );
        }
    }
    Ok(out)
}

fn place_slot(place: &Place) -> Option<usize> {
    if let Place::Slot(slot) = place { Some(*slot) } else { None }
}

/// The columns as they can be named after grouping.
fn grouped_columns(from: &Scope<'_>, keys: &[(String, usize)]) -> Vec<super::scope::ScopeColumn> {
    let place = |column: &super::scope::ScopeColumn| {
        let text = match &column.place {
            Place::Slot(slot) => slot_expr(*slot).to_string(),
            Place::Merged(expr, _) => expr.to_string(),
            Place::Ungrouped => String::new(),
        };
        keys.iter().find(|(key, _)| *key == text).map_or(Place::Ungrouped, |(_, slot)| Place::Slot(*slot))
    };
    from.columns.iter().map(|column| super::scope::ScopeColumn { place: place(column), ..column.clone() }).collect()
}

/// Slots that stand in a select list before it is grouped come from `*`; one that is no key is an error.
pub(super) fn ungrouped(from: &Scope<'_>, expr: &Expr) -> Option<SqlError> {
    let slot = slot_of(expr)?;
    let column = from.columns.iter().find(|column| place_slot(&column.place) == Some(slot))?;
    let name = format!("{}.{}", from.relations[column.relation].alias, column.name);
    let message = format!("column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function");
    Some(SqlError::new(SqlState::GROUPING_ERROR, message))
}
