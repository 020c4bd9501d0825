//! EXPLAIN: what a plan is made of, as PostgreSQL shows plans, so that people and their tools can read it.
//!
//! A plan describes itself as a tree of [`Operator`]s ([`crate::plan::explain`] for direct plans, `engine::explain` for the others). [`text`] and [`json`] write it down. With ANALYZE the statement runs with
//! [`Meters`], and each operator has what it did.
//!
//! Costs count rows: what is read of tables and indexes, and what goes from one operator to the next. They are for comparing plans of one statement; no time follows from them.

mod json;
mod meter;
mod text;

pub use meter::{Done, Meters, Removed, Written};

pub use crate::syntax::explain::{Format, Options};

use serde_json::Value;

/// A condition's text ends here, bytes: lists of thousands say nothing more.
const TEXT_BYTES_MAX: usize = 4096;

/// Something that is known of an operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A name or a condition.
    Text(String),
    /// Several.
    List(Vec<String>),
    /// A switch.
    Flag(bool),
}

/// Who sees a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Everybody.
    Always,
    /// Who asks for VERBOSE.
    Verbose,
    /// Tools: the text says it in the operator's title.
    Json,
}

/// What an operator is to the one above it.
#[derive(Clone, Debug, PartialEq)]
pub enum Role {
    /// Its input, or the first of two.
    Outer,
    /// The second of two.
    Inner,
    /// One of several alike.
    Member,
    /// A query inside an expression, by its name: `SubPlan 1`.
    SubPlan(String),
    /// A query that runs once, by its name: `CTE a`.
    InitPlan(String),
}

/// One operator of a plan.
#[derive(Clone, Debug)]
pub struct Operator {
    /// As PostgreSQL's JSON names it: `Index Scan`.
    pub kind: &'static str,
    /// As the text names it: `Index Scan using t_pkey on t`.
    pub title: String,
    /// What is known of it, in order.
    pub facts: Vec<(&'static str, Fact, Shown)>,
    /// Rows that it is thought to give each time it runs.
    pub rows: f64,
    /// Rows that it and all below it are thought to read and hand on.
    pub cost: f64,
    /// By what [`Meters`] know it.
    pub place: usize,
    /// By what they know of what it wrote.
    pub writer: usize,
    /// By what they know of the rows that its condition left out.
    pub sieve: usize,
    /// What it reads from.
    pub inputs: Vec<(Role, Operator)>,
}

impl Operator {
    /// What it did; `None` if nobody has measured it. Nothing runs an Append by itself: it did what its members did.
    fn done(&self, meters: &Meters) -> Option<Done> {
        if self.place != 0 {
            return Some(meters.of(self.place).unwrap_or_default());
        }
        let members: Option<Vec<Done>> = self.inputs.iter().map(|(_, member)| member.done(meters)).collect();
        let add = |sum: Done, next: Done| Done {
            loops: sum.loops.max(next.loops),
            rows: sum.rows + next.rows,
            first_us: if sum.loops == 0 { next.first_us } else { sum.first_us },
            us: sum.us + next.us,
        };
        members.filter(|_| self.kind == "Append").map(|members| members.into_iter().fold(Done::default(), add))
    }

    /// Rows that it left out for a condition that is said of it: what PostgreSQL calls that, and how many each time that it ran.
    fn removed(&self, fact: &str, meters: &Meters) -> Option<(&'static str, f64)> {
        let (name, count): (_, fn(&Removed) -> u64) = match fact {
            "Filter" => ("Rows Removed by Filter", |removed| removed.filter),
            "Join Filter" => ("Rows Removed by Join Filter", |removed| removed.join_filter),
            _ => return None,
        };
        self.per_loop(meters, count).map(|rows| (name, rows))
    }

    /// Rows that it left out since a join above had nothing beside them, each time that it ran.
    fn removed_ahead(&self, meters: &Meters) -> Option<f64> {
        self.per_loop(meters, |removed| removed.runtime).filter(|rows| *rows > 0.0)
    }

    fn per_loop(&self, meters: &Meters, count: impl Fn(&Removed) -> u64) -> Option<f64> {
        let (done, removed) = (meters.of(self.sieve), meters.removed_of(self.sieve));
        (self.sieve != 0).then(|| count(&removed) as f64 / done.map_or(1, |done| done.loops.max(1)) as f64)
    }

    /// It is one that the meters know by this.
    #[must_use]
    pub fn at(self, place: usize) -> Operator {
        Operator { place, writer: place, sieve: place, ..self }
    }

    /// What it held, and wrote to temporary files, by the names that PostgreSQL has for it: in lines of the text, and as facts for tools.
    fn written(&self, meters: &Meters) -> Option<(String, Vec<(&'static str, Value)>)> {
        let written = meters.written(self.writer)?;
        let (disk_kb, memory_kb) = (written.bytes.div_ceil(1024), written.memory_bytes.div_ceil(1024));
        if self.kind == "Aggregate" && disk_kb == 0 && !self.facts.iter().any(|(name, ..)| *name == "Group Key") {
            // One group is no table of groups.
            return None;
        }
        Some(match self.kind {
            "Sort" => {
                let top = written.first_rows || self.facts.iter().any(|(name, ..)| *name == "Sort Method");
                let (method, kind, kb) = match (disk_kb, top) {
                    (0, true) => ("top-N heapsort", "Memory", memory_kb),
                    (0, false) => ("quicksort", "Memory", memory_kb),
                    _ => ("external merge", "Disk", disk_kb),
                };
                (
                    format!("Sort Method: {method}  {kind}: {kb}kB"),
                    vec![
                        ("Sort Method", method.into()),
                        ("Sort Space Used", kb.into()),
                        ("Sort Space Type", kind.into()),
                    ],
                )
            }
            kind => {
                let name = if kind == "Aggregate" { "HashAgg Batches" } else { "Hash Batches" };
                let batches = written.batches.max(1);
                let mut text = format!("Batches: {batches}  Memory Usage: {memory_kb}kB");
                let mut facts = vec![(name, batches.into()), ("Peak Memory Usage", memory_kb.into())];
                if disk_kb > 0 {
                    text += &format!("  Disk Usage: {disk_kb}kB");
                    facts.push(("Disk Usage", disk_kb.into()));
                }
                (text, facts)
            }
        })
    }

    /// One that gives so many rows of its own.
    pub fn leaf(kind: &'static str, title: impl Into<String>, rows: f64) -> Operator {
        let (facts, inputs) = (Vec::new(), Vec::new());
        Operator { kind, title: title.into(), facts, rows, cost: rows, place: 0, writer: 0, sieve: 0, inputs }
    }

    /// One over another.
    pub fn over(kind: &'static str, title: impl Into<String>, rows: f64, input: Operator) -> Operator {
        Operator { cost: input.cost + rows, inputs: vec![(Role::Outer, input)], ..Operator::leaf(kind, title, rows) }
    }

    /// One over two.
    pub fn both(kind: &'static str, title: impl Into<String>, rows: f64, left: Operator, right: Operator) -> Operator {
        let cost = left.cost + right.cost + rows;
        Operator { cost, inputs: vec![(Role::Outer, left), (Role::Inner, right)], ..Operator::leaf(kind, title, rows) }
    }

    /// Says something of it.
    #[must_use]
    pub fn with(mut self, name: &'static str, fact: Fact, shown: Shown) -> Operator {
        self.facts.push((name, fact, shown));
        self
    }

    /// Says a condition, if there is one.
    #[must_use]
    pub fn condition(self, name: &'static str, text: Option<String>) -> Operator {
        match text {
            Some(text) => self.with(name, Fact::Text(bounded(text)), Shown::Always),
            None => self,
        }
    }

    /// Says a list, if it is not empty.
    #[must_use]
    pub fn list(self, name: &'static str, list: Vec<String>, shown: Shown) -> Operator {
        if list.is_empty() { self } else { self.with(name, Fact::List(list.into_iter().map(bounded).collect()), shown) }
    }

    /// Says something for tools.
    #[must_use]
    pub fn tool(self, name: &'static str, text: impl Into<String>) -> Operator {
        self.with(name, Fact::Text(text.into()), Shown::Json)
    }
}

/// A text, if it is short, else its beginning.
pub(crate) fn bounded(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        let end = (0..=TEXT_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str(" ..");
    }
    text
}

/// Several conditions that all hold, as one.
pub fn all_of(mut conditions: Vec<String>) -> Option<String> {
    match conditions.len() {
        0 => None,
        1 => conditions.pop(),
        _ => Some(format!("({})", conditions.join(" AND "))),
    }
}

/// The name of a column that is not known by any other.
pub(crate) fn nameless(place: usize) -> String {
    format!("column{}", place + 1)
}

/// What EXPLAIN ANALYZE measured of the whole.
#[derive(Debug)]
pub struct Total {
    /// Rows that came, or were written.
    pub rows: u64,
    /// From the first to the last of them.
    pub execution_us: i64,
    /// What each operator did.
    pub meters: std::sync::Arc<Meters>,
    /// What time cost: names and values, with their units.
    pub time: Vec<(&'static str, String)>,
}

/// An explained plan.
#[derive(Debug)]
pub struct Explained {
    /// The plan.
    pub plan: Operator,
    /// Planning took so long.
    pub planning_us: i64,
    /// With ANALYZE.
    pub total: Option<Total>,
}

impl Explained {
    /// As EXPLAIN gives it: rows of one column.
    pub fn write(&self, options: &Options) -> Vec<String> {
        match options.format {
            Format::Text => text::lines(self, options),
            Format::Json => vec![json::document(self, options)],
        }
    }
}

/// The plan alone, without estimates.
pub fn lines(plan: Operator) -> Vec<String> {
    let options = Options { costs: false, ..Options::default() };
    Explained { plan, planning_us: 0, total: None }.write(&options)
}
