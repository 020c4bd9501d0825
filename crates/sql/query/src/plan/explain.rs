//! What direct plans are made of, for EXPLAIN.

use super::Plan;
use super::share::GROUP_SHARE;
use crate::exec::aggregate::Aggregate;
use crate::exec::cursor::Level;
use crate::exec::insert::{Insert, Source};
use crate::exec::metered::{JOIN, SCAN, Stage, place};
use crate::exec::modify::{Action, Find, Modify};
use crate::exec::path::{Operand, Path, Reach, Term};
use crate::exec::select::{Grouping, Select};
use crate::exec::table::TableAccess;
use crate::explain::{Fact, Operator, Role, Shown, all_of, nameless};
use crate::expr::Expr;
use crate::expr::deparse::Deparse;
use crate::identifier::quote_identifier;

/// Names of places in a row, as EXPLAIN shows them.
pub type Names<'a> = dyn Fn(usize) -> String + 'a;

/// An expression as text.
pub fn shown(expr: &Expr, names: &Names<'_>) -> String {
    Deparse { names, pretty: false }.text(expr)
}

/// A key of ORDER BY as text: what differs from PostgreSQL's usual order is said.
pub(crate) fn sort_key(text: String, descending: bool, nulls_first: bool) -> String {
    let order = if descending { " DESC" } else { "" };
    let nulls = match (descending, nulls_first) {
        (false, true) => " NULLS FIRST",
        (true, false) => " NULLS LAST",
        _ => "",
    };
    format!("{text}{order}{nulls}")
}

/// How one table is read.
pub struct Access<'a> {
    /// The table.
    pub access: &'a TableAccess,
    /// The index, and which part of it.
    pub path: &'a Path,
    /// Rows come from the index's entries.
    pub entries: bool,
    /// What the statement calls the table.
    pub alias: &'a str,
    /// Rows that come, each time.
    pub rows: f64,
}

impl Access<'_> {
    /// The operator: `Index Scan Backward using t_pkey on t`. `names`: of what its keys are made from.
    pub fn operator(&self, names: &Names<'_>) -> Operator {
        if !self.path.ways.is_empty() {
            return self.union(names);
        }
        let Access { access, path, entries, alias, rows } = *self;
        let index = access.index(path.index);
        let table = access.table.name.as_str();
        let on = self.on();
        let backward = if path.reverse { " Backward" } else { "" };
        let whole = !path.is_narrowed();
        let point = !whole && path.reaches.iter().all(|reach| reach.is_point(index));
        let (kind, says) = match (whole && path.index == 0, point, entries) {
            (true, ..) => ("Seq Scan", "Seq Scan"),
            (false, true, false) => ("Index Scan", "Point Lookup"),
            (false, true, true) => ("Index Only Scan", "Index Only Lookup"),
            (false, false, false) => ("Index Scan", "Index Scan"),
            (false, false, true) => ("Index Only Scan", "Index Only Scan"),
        };
        let title = match kind {
            "Seq Scan" => format!("{says}{backward} on {on}"),
            _ => format!("{says}{backward} using {} on {on}", quote_identifier(&index.name)),
        };
        let operator = Operator::leaf(kind, title, rows.max(1.0));
        let operator = match kind {
            "Seq Scan" => operator,
            _ => operator
                .tool("Scan Direction", if path.reverse { "Backward" } else { "Forward" })
                .tool("Index Name", &index.name),
        };
        operator
            .tool("Relation Name", table)
            .tool("Alias", alias)
            .condition("Index Cond", index_condition(access, path, names))
    }
}

impl Access<'_> {
    /// The table, and what it is called if that is something else.
    fn on(&self) -> String {
        let table = self.access.table.name.as_str();
        match self.alias == table {
            true => quote_identifier(table),
            false => format!("{} {}", quote_identifier(table), quote_identifier(self.alias)),
        }
    }

    /// Rows that several indexes lead to.
    fn union(&self, names: &Names<'_>) -> Operator {
        let Access { access, path, alias, rows, .. } = *self;
        let each = rows / path.ways.len() as f64;
        let way = |way: &Path| {
            let name = &access.index(way.index).name;
            let title = format!("Bitmap Index Scan on {}", quote_identifier(name));
            let scan = Operator::leaf("Bitmap Index Scan", title, each.max(1.0)).tool("Index Name", name);
            (Role::Member, scan.at(place(way, SCAN)).condition("Index Cond", index_condition(access, way, names)))
        };
        let mut ways: Vec<(Role, Operator)> = path.ways.iter().map(way).collect();
        if ways.len() > 1 {
            let cost = ways.iter().map(|(_, way)| way.cost).sum();
            let either = Operator { cost, inputs: ways, ..Operator::leaf("BitmapOr", "BitmapOr", rows.max(1.0)) };
            let either = match path.ways.first() {
                Some(first) => either.at(place(first, JOIN)),
                None => either,
            };
            ways = vec![(Role::Outer, either)];
        }
        let cost = rows + ways.iter().map(|(_, way)| way.cost).sum::<f64>();
        let title = format!("Bitmap Heap Scan on {}", self.on());
        let whole = Operator::leaf("Bitmap Heap Scan", title, rows.max(1.0));
        Operator { cost, inputs: ways, ..whole }.tool("Relation Name", &access.table.name).tool("Alias", alias)
    }
}

/// What the keys are made of: `(aid = 5)`.
fn index_condition(access: &TableAccess, path: &Path, names: &Names<'_>) -> Option<String> {
    let mut said: Vec<String> = Vec::new();
    for reach in &path.reaches {
        let condition = reach_condition(access, path.index, reach, names)?;
        if !said.contains(&condition) {
            said.push(condition);
        }
    }
    match said.len() {
        0 | 1 => said.pop(),
        _ => Some(format!("({})", said.join(" OR "))),
    }
}

fn reach_condition(access: &TableAccess, at: usize, reach: &Reach, names: &Names<'_>) -> Option<String> {
    let index = access.index(at);
    let column = |at: usize| Some(index.column_name(access, index.columns.get(at)?));
    let text = |operand: &Operand| shown(&operand.expr, names);
    let mut parts = Vec::new();
    for (at, term) in reach.prefix.iter().enumerate() {
        let name = column(at)?;
        parts.push(match term {
            Term::One(operand) => format!("({name} = {})", text(operand)),
            Term::Any(list) => {
                let list: Vec<String> = list.iter().map(text).collect();
                format!("({name} = ANY (ARRAY[{}]))", list.join(", "))
            }
            Term::AnyOf(operand) => format!("({name} = ANY ({}))", text(operand)),
            Term::Null => format!("({name} IS NULL)"),
        });
    }
    if let Some(range) = &reach.range {
        let name = column(reach.prefix.len())?;
        if let Some((low, inclusive)) = &range.low {
            parts.push(format!("({name} {} {})", if *inclusive { ">=" } else { ">" }, text(low)));
        }
        if let Some((high, inclusive)) = &range.high {
            parts.push(format!("({name} {} {})", if *inclusive { "<=" } else { "<" }, text(high)));
        }
    }
    all_of(parts)
}

/// Names of the places of a joined row.
fn joined(levels: &[Level]) -> impl Fn(usize) -> String {
    let several = levels.len() > 1;
    let aliases = aliases(levels);
    let names: Vec<(usize, Vec<String>)> = levels
        .iter()
        .zip(&aliases)
        .map(|(level, alias)| {
            let name = |name: &str| match several {
                true => format!("{}.{}", quote_identifier(alias), quote_identifier(name)),
                false => quote_identifier(name),
            };
            (level.base, level.access.table.columns.iter().map(|column| name(&column.name)).collect())
        })
        .collect();
    move |place| {
        let found = names.iter().find_map(|(base, names)| names.get(place.checked_sub(*base)?));
        found.cloned().unwrap_or_else(|| nameless(place))
    }
}

/// What tables are called: one that is read twice has a number the second time.
fn aliases(levels: &[Level]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for level in levels {
        out.push(numbered(&level.alias, &out));
    }
    out
}

/// A name that none of the others is.
pub fn numbered(name: &str, others: &[String]) -> String {
    let is_free = |name: &String| !others.contains(name);
    let numbered = (1..).map(|number| format!("{name}_{number}"));
    std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_else(|| name.to_owned())
}

/// How one table is read, by itself.
pub fn level(level: &Level) -> Operator {
    loops(std::slice::from_ref(level))
}

fn loops(levels: &[Level]) -> Operator {
    let names = joined(levels);
    let mut whole: Option<Operator> = None;
    for (level, alias) in levels.iter().zip(aliases(levels)) {
        let access = Access {
            access: &level.access,
            path: &level.path,
            entries: level.entries.is_some(),
            alias: &alias,
            rows: level.expected,
        };
        let filter = level.filter.as_ref().map(|filter| shown(filter, &names));
        let mut scan = access.operator(&names).at(place(level, SCAN)).condition("Filter", filter);
        if level.lock.is_some() {
            scan = scan.with("Locks rows", Fact::Flag(true), Shown::Always);
        }
        whole = Some(match whole {
            None => scan,
            Some(outer) => {
                let (title, kind) =
                    if level.outer { ("Nested Loop Left Join", "Left") } else { ("Nested Loop", "Inner") };
                let rows = outer.rows * scan.rows;
                // The inner side runs once for each row of the outer one.
                let cost = outer.cost + outer.rows * scan.cost + rows;
                let after = level.after.as_ref().map(|after| shown(after, &names));
                let join = Operator::both("Nested Loop", title, rows, outer, scan);
                Operator { cost, ..join }.at(place(level, JOIN)).tool("Join Type", kind).condition("Filter", after)
            }
        });
    }
    whole.unwrap_or_else(|| Operator::leaf("Result", "Result", 1.0))
}

fn call(aggregate: &Aggregate, names: &Names<'_>) -> String {
    let argument = aggregate.argument.as_ref().map_or_else(|| "*".to_owned(), |argument| shown(argument, names));
    format!("{}({argument})", aggregate.function.name())
}

/// `BoolAnd` as `bool_and`.
pub(crate) fn snake(name: &str) -> String {
    let mut out = String::new();
    for (at, c) in name.chars().enumerate() {
        if c.is_uppercase() && at > 0 {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// Names of a grouped row.
fn grouped(grouping: &Grouping, names: &Names<'_>) -> Vec<String> {
    let keys = grouping.keys.iter().map(|(key, _)| shown(key, names));
    keys.chain(grouping.aggregates.iter().map(|aggregate| call(aggregate, names))).collect()
}

/// A SELECT.
pub fn select(select: &Select) -> Operator {
    let mut plan = loops(&select.levels);
    if select.levels.is_empty() {
        plan = plan.at(Stage::Result.place(select));
    }
    let of_joined = joined(&select.levels);
    let of_grouped = select.grouping.as_ref().map(|grouping| grouped(grouping, &of_joined));
    let names = |place: usize| match &of_grouped {
        Some(names) => names.get(place).cloned().unwrap_or_else(|| nameless(place)),
        None => of_joined(place),
    };
    if let Some(constant) = &select.constant {
        plan = plan.condition("One-Time Filter", Some(shown(constant, &of_joined)));
    }
    if let Some(grouping) = &select.grouping {
        let keys: Vec<String> = grouping.keys.iter().map(|(key, _)| shown(key, &of_joined)).collect();
        let having = grouping.having.as_ref().map(|having| shown(having, &names));
        let rows = if keys.is_empty() { 1.0 } else { (plan.rows * GROUP_SHARE).max(1.0) };
        let (title, strategy) = if keys.is_empty() { ("Aggregate", "Plain") } else { ("HashAggregate", "Hashed") };
        plan = Operator::over("Aggregate", title, rows, plan)
            .at(Stage::Aggregate.place(select))
            .tool("Strategy", strategy)
            .list("Group Key", keys, Shown::Always)
            .condition("Filter", having);
        if !grouping.ends.is_empty() {
            plan.inputs = grouping.ends.iter().map(|levels| (Role::Member, loops(levels))).collect();
            plan.cost = plan.rows + plan.inputs.iter().map(|(_, input)| input.cost).sum::<f64>();
        }
    }
    if select.distinct.is_some() {
        plan = over("Unique", plan).at(Stage::Unique.place(select));
    }
    if !select.order.is_empty() {
        let key = |key: &crate::exec::sort::SortKey| {
            // Under DISTINCT the order is over what is selected.
            let text = if select.distinct.is_some() { shown(&key.expr, &nameless) } else { shown(&key.expr, &names) };
            sort_key(text, key.descending, key.nulls_first)
        };
        plan = over("Sort", plan).at(Stage::Sort.place(select)).list(
            "Sort Key",
            select.order.iter().map(key).collect(),
            Shown::Always,
        );
    }
    if !select.locks.is_empty() {
        plan = over("LockRows", plan).at(Stage::LockRows.place(select));
    }
    if select.limit.is_some() || select.offset.is_some() {
        let most = select.limit.as_ref().and_then(Expr::constant).and_then(|limit| limit.as_i64());
        let rows = most.map_or(plan.rows, |most| plan.rows.min(most as f64));
        plan = Operator::over("Limit", "Limit", rows, plan).at(Stage::Limit.place(select));
    }
    plan
}

pub(super) fn over(kind: &'static str, input: Operator) -> Operator {
    Operator::over(kind, kind, input.rows, input)
}

/// An UPDATE or DELETE.
pub fn modify(modify: &Modify) -> Operator {
    let verb = if matches!(modify.action, Action::Delete) { "Delete" } else { "Update" };
    let found = match &modify.find {
        Find::Loops { levels, .. } => loops(levels),
        Find::Plan(plan) => plan.explain(),
    };
    written(verb, &modify.target.access.table.name, found).at(place(modify, 0))
}

/// An INSERT.
pub fn insert(insert: &Insert) -> Operator {
    let at = place(&insert.source, 0);
    let from = match &insert.source {
        Source::Values { rows, .. } if rows.len() > 1 => {
            Operator::leaf("Values Scan", "Values Scan", rows.len() as f64).at(at)
        }
        Source::Values { .. } => Operator::leaf("Result", "Result", 1.0).at(at),
        Source::Literals(rows) => Operator::leaf("Values Scan", "Values Scan", rows.count() as f64).at(at),
        Source::Plan { plan, .. } => plan.explain(),
    };
    written("Insert", &insert.target.access.table.name, from).at(place(insert, 0))
}

fn written(verb: &'static str, table: &str, from: Operator) -> Operator {
    let title = format!("{verb} on {}", quote_identifier(table));
    Operator::over("ModifyTable", title, from.rows, from).tool("Operation", verb).tool("Relation Name", table)
}

/// A statement with parts: its main query, with the others by their names.
pub fn parts<'a>(main: &dyn Plan, parts: impl Iterator<Item = (&'a str, &'a dyn Plan)>) -> Operator {
    let mut plan = main.explain();
    for (name, part) in parts {
        plan.inputs.push((Role::InitPlan(format!("CTE {name}")), part.explain()));
    }
    plan
}
