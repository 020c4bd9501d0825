//! What a tree of nodes is made of, for EXPLAIN.
//!
//! Nodes that PostgreSQL has no operators for are shown where it shows what they do: conditions at what they are asked of, select lists as what the operator below gives.

use super::aggregate::AggregateCall;
use super::estimate::Estimates;
use super::node::{CteScan, Join, JoinKey, JoinKind, Node, SetKind, SortKey};
use super::probe::Looked;
use super::scalar::{Scalar, Step};
use super::scan::TableScan;
use super::window::WindowCall;
use crate::explain::{Fact, Operator, Role, Shown, all_of, bounded, nameless};
use crate::expr::Expr;
use crate::expr::deparse::Deparse;
use crate::identifier::quote_identifier;
use crate::plan::explain::{Access, numbered, snake, sort_key};
use crate::statistics::TableStatistics;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// Removes nodes that do nothing.
pub(super) fn simplify(node: Arc<Node>) -> Arc<Node> {
    match node.as_ref() {
        Node::Filter { input, conditions } if conditions.is_empty() => simplify(input.clone()),
        _ => node,
    }
}

/// By what [`crate::explain::Meters`] know a node.
pub(super) fn place(node: &Node) -> usize {
    std::ptr::from_ref(node).addr()
}

/// What a plan is made of.
pub(super) fn operator(node: &Node) -> Operator {
    crate::stack::roomy(|| {
        let (mut known, mut tables) = (BTreeMap::new(), 0);
        super::walk::tables(node, &mut |scan| {
            tables += 1;
            if let Some(statistics) = scan.statistics() {
                known.insert(scan.access.table.id, statistics.clone());
            }
        });
        let (estimates, waiting, common) = (Estimates::default(), Vec::new(), BTreeMap::new());
        let several = tables > 1;
        let mut tree = Tree { known, estimates, several, aliases: Vec::new(), subplans: 0, waiting, common };
        let mut whole = tree.describe(node, &[]).0;
        // One after the other, and each once: a chain of them may be long.
        while let Some((scan, around)) = tree.waiting.pop() {
            let (operator, _) = tree.describe(&scan.plan, &around);
            tree.common.insert(scan.id, (format!("CTE {}", scan.name), Some(operator)));
        }
        let common = std::mem::take(&mut tree.common).into_values();
        for (name, operator) in common.filter_map(|(name, operator)| Some((name, operator?))) {
            whole.cost += operator.cost;
            whole.inputs.push((Role::InitPlan(name), operator));
        }
        whole
    })
}

/// Names of the columns of a row.
type Columns = Vec<String>;

struct Tree<'n> {
    known: BTreeMap<u32, Arc<TableStatistics>>,
    estimates: Estimates,
    /// Columns are named with their tables.
    several: bool,
    aliases: Vec<String>,
    subplans: usize,
    /// Common table expressions that were named and are not described yet, with the columns around them.
    waiting: Vec<(&'n CteScan, Columns)>,
    /// Those that were named, in the order in which they were said.
    common: BTreeMap<usize, (String, Option<Operator>)>,
}

fn name_of(columns: &[String]) -> impl Fn(usize) -> String + '_ {
    |place| columns.get(place).cloned().unwrap_or_else(|| nameless(place))
}

impl<'n> Tree<'n> {
    fn rows(&self, node: &Node) -> f64 {
        self.estimates.rows(node, &|table| self.known.get(&table).cloned())
    }

    /// An expression over rows with these columns; its queries go below `under`.
    fn scalar(&mut self, scalar: &'n Scalar, columns: &[String], under: &mut Vec<(Role, Operator)>) -> String {
        let mut columns: Columns = columns.to_vec();
        columns.resize_with(scalar.width, String::new);
        for (place, name) in columns.iter_mut().enumerate().filter(|(_, name)| name.is_empty()) {
            *name = nameless(place);
        }
        for step in &scalar.steps {
            let text = self.step(step, &columns, under);
            columns.push(text);
        }
        expression(&scalar.expr, &columns)
    }

    /// A subquery that is run once for all rows, which look into what it gave.
    fn looked(&mut self, table: &Looked<'n>, around: &[String]) -> Operator {
        let (below, columns) = self.describe(table.node, around);
        let tie = |(outer, inner): &(&Expr, &Expr)| {
            format!("({} = {})", expression(outer, around), expression(inner, &columns))
        };
        let ties = all_of(table.ties.iter().map(tie).collect());
        let mut under = Vec::new();
        let rest = all_of(self.scalars(table.rest, &columns, &mut under));
        let rows = below.rows;
        let mut operator = Operator::over("Hash", "Hash", rows, below);
        operator = operator.condition("Hash Cond", ties).condition("Join Filter", rest);
        operator.inputs.append(&mut under);
        operator
    }

    fn step(&mut self, step: &'n Step, columns: &[String], under: &mut Vec<(Role, Operator)>) -> String {
        let name = step.plan().map(|plan| {
            self.subplans += 1;
            let name = format!("SubPlan {}", self.subplans);
            let around = &columns[..plan.prefix.min(columns.len())];
            let operator = match plan.probe.as_ref().and_then(|probe| probe.looked()) {
                Some(table) => self.looked(&table, around),
                None => self.describe(&plan.node, around).0,
            };
            under.push((Role::SubPlan(name.clone()), operator));
            name
        });
        let name = name.unwrap_or_default();
        let parts: Vec<String> = step.parts().into_iter().map(|part| expression(part, columns)).collect();
        let list = bounded(parts.join(", "));
        match step {
            Step::Subquery(_) | Step::Shared(..) => format!("({name})"),
            Step::Exists(_) => format!("EXISTS({name})"),
            Step::Array(..) => format!("ARRAY({name})"),
            Step::In { .. } => format!("({list} = ANY ({name}))"),
            Step::Quantified { .. } => format!("({list} .. ({name}))"),
            Step::Catalog { name, .. } => format!("{name}({list})"),
            Step::ToReg(kind, _) => format!("({list})::{}", kind.name()),
            Step::FromReg(..) => format!("({list})::text"),
            Step::Field(_, field) => format!("({list}).f{}", field + 1),
            Step::Record { .. } => format!("ROW({list})"),
            Step::RowJson { .. } => format!("row_to_json(ROW({list}))"),
        }
    }

    fn scalars(&mut self, all: &'n [Scalar], columns: &[String], under: &mut Vec<(Role, Operator)>) -> Vec<String> {
        all.iter().map(|one| self.scalar(one, columns, under)).collect()
    }

    fn sort_keys(&mut self, keys: &'n [SortKey], columns: &[String], under: &mut Vec<(Role, Operator)>) -> Vec<String> {
        let mut key =
            |key: &'n SortKey| sort_key(self.scalar(&key.by, columns, under), key.descending, key.nulls_first);
        keys.iter().map(&mut key).collect()
    }

    fn call(&mut self, call: &'n AggregateCall, columns: &[String], under: &mut Vec<(Role, Operator)>) -> String {
        let distinct = if call.distinct { "DISTINCT " } else { "" };
        let args = self.scalars(&call.args, columns, under);
        let args = if args.is_empty() { "*".to_owned() } else { args.join(", ") };
        let order = self.sort_keys(&call.order, columns, under);
        let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
        let filter = call.filter.as_ref().map(|filter| self.scalar(filter, columns, under));
        let filter = filter.map_or_else(String::new, |filter| format!(" FILTER (WHERE {filter})"));
        bounded(format!("{}({distinct}{args}{order}){filter}", call.function.name()))
    }

    fn window(&mut self, call: &'n WindowCall, columns: &[String], under: &mut Vec<(Role, Operator)>) -> String {
        use super::window::Function as W;
        let name = match &call.function {
            W::Aggregate(aggregate) => return format!("{} OVER (?)", self.call(aggregate, columns, under)),
            W::Shift(by) => if *by < 0 { "lag" } else { "lead" }.to_owned(),
            function => snake(&format!("{function:?}")),
        };
        bounded(format!("{name}({}) OVER (?)", self.scalars(&call.args, columns, under).join(", ")))
    }

    fn table(&mut self, scan: &'n TableScan, around: &[String]) -> (Operator, Columns) {
        let table = &scan.access.table;
        let alias = numbered(&scan.alias, &self.aliases);
        self.aliases.push(alias.clone());
        let own = table.columns.iter().map(|column| match self.several {
            true => format!("{}.{}", quote_identifier(&alias), quote_identifier(&column.name)),
            false => quote_identifier(&column.name),
        });
        let columns: Columns = around.iter().cloned().chain(own).collect();
        let reading = scan.reading();
        let access = Access {
            access: &scan.access,
            // (The levels are what is read: the meters know its ways by their places.)
            path: reading.levels.first().map_or(&scan.way().path, |level| &level.path),
            entries: reading.levels.iter().all(|level| level.entries.is_some()),
            alias: &alias,
            rows: scan.way().found,
        };
        let mut operator = access.operator(&name_of(around));
        let mut under = Vec::new();
        let filter = all_of(self.scalars(&scan.way().filter, &columns, &mut under));
        operator = operator.condition("Filter", filter);
        operator.inputs.append(&mut under);
        (operator, columns)
    }

    fn join(&mut self, join: &'n Join, rows: f64, around: &[String]) -> (Operator, Columns) {
        let (left, mut columns) = self.describe(&join.left, around);
        let of_left = columns.clone();
        let before = if join.lateral { columns.clone() } else { around.to_vec() };
        let aliases = self.aliases.clone();
        let (right, of_right) = self.describe(&join.right, &before);
        let own = of_right.len().saturating_sub(join.right_width);
        columns.resize_with(join.left_width, String::new);
        columns.extend(of_right.iter().skip(own).cloned());
        let mut under = Vec::new();
        let mut key = |key: &'n JoinKey| {
            let (l, r) = (self.scalar(&key.left, &of_left, &mut under), self.scalar(&key.right, &of_right, &mut under));
            let op = if key.null_equal { "IS NOT DISTINCT FROM" } else { "=" };
            format!("({l} {op} {r})")
        };
        let keys = all_of(join.keys.iter().map(&mut key).collect());
        let on = all_of(self.scalars(&join.on, &columns, &mut under));
        let (kind, of) = match (join.lateral || join.keys.is_empty(), &join.lookup) {
            _ if join.merge.is_some() => ("Merge Join", "Merge"),
            (true, _) => ("Nested Loop", "Nested Loop"),
            (_, Some(_)) => ("Hash Join", "Lookup or Hash"),
            (_, None) => ("Hash Join", "Hash"),
        };
        let (outer, word) = match join.kind {
            JoinKind::Inner => ("Inner", ""),
            JoinKind::Left => ("Left", "Left "),
            JoinKind::Full => ("Full", "Full "),
        };
        let title = match (kind, word) {
            ("Nested Loop", "") => "Nested Loop".to_owned(),
            _ => format!("{of} {word}Join"),
        };
        let mut operator = Operator::both(kind, title, rows, left, right).tool("Join Type", outer);
        let name = match kind {
            "Hash Join" => "Hash Cond",
            "Merge Join" => "Merge Cond",
            _ => "Join Cond",
        };
        let (to_left, to_right) = super::reach::offered(join, around.len());
        let offered =
            [(to_left, &of_left), (to_right, &of_right)].into_iter().filter(|(columns, _)| !columns.is_empty());
        let named = |(columns, of): (Vec<usize>, &Columns)| {
            let names: Vec<String> = columns.into_iter().map(name_of(of)).collect();
            format!("({})", names.join(", "))
        };
        let filters: Vec<String> = offered.map(named).collect();
        let filters = Some(filters.join(" or ")).filter(|text| !text.is_empty());
        operator = operator.condition(name, keys).condition("Join Filter", on).condition("Runtime Filter", filters);
        if let Some(lookup) = &join.lookup {
            // What is found by key instead while there are few rows on the left.
            self.aliases = aliases;
            let (lookup, _) = self.describe(lookup, &of_left);
            operator.inputs.push((Role::SubPlan("Lookup".to_owned()), lookup));
        }
        operator.inputs.append(&mut under);
        (operator, columns)
    }

    /// An operator over one, whose rows have the same columns.
    fn over(&mut self, kind: &'static str, node: &'n Node, input: &'n Node, around: &[String]) -> (Operator, Columns) {
        let (below, columns) = self.describe(input, around);
        (Operator::over(kind, kind, self.rows(node), below), columns)
    }

    /// A node whose rows begin with those of `around`.
    fn describe(&mut self, node: &'n Node, around: &[String]) -> (Operator, Columns) {
        let rows = self.rows(node);
        let leaf = |kind: &'static str, title: String| Operator::leaf(kind, title, rows);
        let with = |own: Vec<String>| -> Columns { around.iter().cloned().chain(own).collect() };
        let mut under = Vec::new();
        let (mut operator, columns) = match node {
            Node::One => (leaf("Result", "Result".to_owned()), around.to_vec()),
            Node::Values { rows, .. } => {
                let width = rows.first().map_or(0, Vec::len);
                (leaf("Values Scan", "Values Scan".to_owned()), with((0..width).map(nameless).collect()))
            }
            Node::Literals(rows) => {
                (leaf("Values Scan", "Values Scan".to_owned()), with((0..rows.width()).map(nameless).collect()))
            }
            Node::Table(scan) => {
                let (mut operator, columns) = self.table(scan, around);
                operator.rows = rows;
                (operator, columns)
            }
            Node::Virtual { table, filter, .. } => {
                let columns = with(table.columns.iter().map(|column| column.name.to_string()).collect());
                let filter = all_of(self.scalars(filter, &columns, &mut under));
                let title = format!("Catalog Scan on {}.{}", table.schema, table.name);
                (leaf("Seq Scan", title).tool("Relation Name", table.name).condition("Filter", filter), columns)
            }
            Node::Internal { name } => {
                (leaf("Seq Scan", format!("Internal Scan on {name}")).tool("Relation Name", name), around.to_vec())
            }
            Node::Sequence { .. } => (leaf("Seq Scan", "Sequence".to_owned()), with(vec!["last_value".to_owned()])),
            Node::Function { calls, .. } => {
                let width = calls.iter().map(|call| call.columns.len()).sum();
                (leaf("Function Scan", "Function Scan".to_owned()), with((0..width).map(nameless).collect()))
            }
            Node::Filter { input, conditions } => {
                let (below, columns) = self.describe(input, around);
                let filter = all_of(self.scalars(conditions, &columns, &mut under));
                // What is asked of rows is said where they come from, if nothing is asked of them there.
                match below.facts.iter().any(|(name, ..)| *name == "Filter") {
                    true => (Operator::over("Result", "Filter", rows, below).condition("Filter", filter), columns),
                    false => (Operator { rows, sieve: place(node), ..below.condition("Filter", filter) }, columns),
                }
            }
            Node::Project { input, prefix, columns: list } => {
                let (below, columns) = self.describe(input, around);
                let mut given: Columns = columns.iter().take(*prefix).cloned().collect();
                given.extend(self.scalars(list, &columns, &mut under));
                let own = given.iter().skip(*prefix).cloned().collect();
                let is_said = below.facts.iter().any(|(name, ..)| *name == "Output");
                let below = if is_said { below } else { below.list("Output", own, Shown::Verbose) };
                (below, given)
            }
            Node::Cut { input, width } => {
                let (below, mut columns) = self.describe(input, around);
                columns.truncate(*width);
                (below, columns)
            }
            Node::ProjectSet { input, calls } => {
                let (operator, mut columns) = self.over("ProjectSet", node, input, around);
                let width: usize = calls.iter().map(|call| call.columns.len()).sum();
                let end = columns.len();
                columns.extend((end..end + width).map(nameless));
                (operator, columns)
            }
            Node::Join(join) => self.join(join, rows, around),
            Node::Aggregate { input, keys, calls, sets } => {
                let (below, columns) = self.describe(input, around);
                let keys = self.scalars(keys, &columns, &mut under);
                let calls: Vec<String> = calls.iter().map(|call| self.call(call, &columns, &mut under)).collect();
                let (title, strategy) = match (keys.is_empty(), sets.len()) {
                    (true, _) => ("Aggregate", "Plain"),
                    (false, 0 | 1) => ("HashAggregate", "Hashed"),
                    (false, _) => ("MixedAggregate", "Mixed"),
                };
                let operator = Operator::over("Aggregate", title, rows, below).tool("Strategy", strategy).list(
                    "Group Key",
                    keys.clone(),
                    Shown::Always,
                );
                (operator, with(keys.into_iter().chain(calls).collect()))
            }
            Node::Window { input, calls } => {
                let (operator, mut columns) = self.over("WindowAgg", node, input, around);
                let of = columns.clone();
                columns.extend(calls.iter().map(|call| self.window(call, &of, &mut under)));
                (operator, columns)
            }
            Node::Sort { input, keys, limit } => {
                let (mut operator, columns) = self.over("Sort", node, input, around);
                let keys = self.sort_keys(keys, &columns, &mut under);
                operator = operator.list("Sort Key", keys, Shown::Always);
                if limit.is_some() {
                    operator = operator.with("Sort Method", Fact::Text("top-N heapsort".to_owned()), Shown::Always);
                }
                (operator, columns)
            }
            Node::Limit { input, .. } => self.over("Limit", node, input, around),
            Node::Distinct { input, on, .. } => {
                let (operator, columns) = self.over("Unique", node, input, around);
                let on = self.scalars(on.as_deref().unwrap_or_default(), &columns, &mut under);
                (operator.list("Group Key", on, Shown::Always), columns)
            }
            Node::Set { kind: SetKind::Union, all, .. } => self.union(node, *all, around),
            Node::Set { kind, all, left, right, .. } => {
                let name = if *kind == SetKind::Intersect { "Intersect" } else { "Except" };
                let command = format!("{name}{}", if *all { " All" } else { "" });
                let (left, columns) = self.describe(left, around);
                let (right, _) = self.describe(right, around);
                let operator = Operator::both("SetOp", format!("HashSetOp {command}"), rows, left, right);
                (operator.tool("Command", command), columns)
            }
            Node::Cte(scan) => {
                if let Entry::Vacant(first) = self.common.entry(scan.id) {
                    first.insert((String::new(), None));
                    self.waiting.push((scan, around[..scan.prefix.min(around.len())].to_vec()));
                }
                let own = scan.columns.iter().map(|column| match self.several {
                    true => format!("{}.{}", quote_identifier(&scan.name), quote_identifier(column)),
                    false => quote_identifier(column),
                });
                let title = format!("CTE Scan on {}", scan.name);
                (leaf("CTE Scan", title).tool("CTE Name", scan.name.clone()), with(own.collect()))
            }
            Node::Recursive { base, step, prefix, .. } => {
                let before = &around[..(*prefix).min(around.len())];
                let (base, columns) = self.describe(base, before);
                let (step, _) = self.describe(step, before);
                let own = columns.into_iter().skip(*prefix).collect();
                (Operator::both("Recursive Union", "Recursive Union", rows, base, step), with(own))
            }
            Node::Given { .. } => (leaf("CTE Scan", "CTE Scan".to_owned()), around.to_vec()),
            Node::Working { .. } => (leaf("WorkTable Scan", "WorkTable Scan".to_owned()), around.to_vec()),
        };
        operator.inputs.append(&mut under);
        operator.place = place(node);
        // A list of columns over it is part of it, and neither writes anything nor leaves rows out.
        for known in [&mut operator.writer, &mut operator.sieve] {
            if *known == 0 {
                *known = operator.place;
            }
        }
        (operator, columns)
    }

    /// UNION of as many as there are, whichever way they lean.
    fn union(&mut self, node: &'n Node, all: bool, around: &[String]) -> (Operator, Columns) {
        let (mut members, mut columns) = (Vec::new(), None);
        let mut rest = vec![node];
        while let Some(next) = rest.pop() {
            match next {
                Node::Set { kind: SetKind::Union, all: alike, left, right, .. } if *alike == all => {
                    rest.extend([right.as_ref(), left.as_ref()]);
                }
                one => {
                    let (member, of) = self.describe(one, around);
                    columns.get_or_insert(of);
                    members.push((Role::Member, member));
                }
            }
        }
        let rows: f64 = members.iter().map(|(_, member)| member.rows).sum();
        let cost = rows + members.iter().map(|(_, member)| member.cost).sum::<f64>();
        let append = Operator { cost, inputs: members, ..Operator::leaf("Append", "Append", rows) };
        let operator = if all { append } else { Operator::over("Unique", "Unique", rows, append) };
        (operator, columns.unwrap_or_default())
    }
}

/// An expression over rows whose columns are named so. It may name a column of the next query, and that twice: so its length is bounded.
fn expression(expr: &Expr, columns: &[String]) -> String {
    bounded(Deparse { names: &name_of(columns), pretty: false }.text(expr))
}
