//! Reading one table: the conditions that become keys, and those that stay.

use super::node::Foreseen;
use super::scalar::Scalar;
use crate::exec::cursor::Level;
use crate::exec::evaluate;
use crate::exec::path::{Path, Term};
use crate::exec::table::{KeyColumn, TableAccess};
use crate::expr::Expr;
use crate::plan::access::{self, Order, Wish, choose};
use crate::plan::negation;
use crate::plan::watch::Watch;
use crate::statistics::TableStatistics;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// Names of columns that a statement may read, in lower case: known when the whole of it is bound. All its scans share them.
pub(super) type Names = Arc<OnceLock<BTreeSet<String>>>;

/// A scan of a table. Its rows are the prefix and all columns of the table; columns that the statement does not read are NULL.
#[derive(Debug)]
pub(super) struct TableScan {
    pub(super) access: Arc<TableAccess>,
    pub(super) width: usize,
    /// How it is read by its keys.
    pub(super) planned: Way,
    /// How it is read if the index of its keys does not hold all that the statement reads, where that is less work.
    whole: Option<Way>,
    /// All that was asked of its rows, by keys or not.
    asked: Vec<Scalar>,
    base: usize,
    /// What the statement calls it.
    pub(super) alias: Arc<str>,
    /// Its rows end in their keys.
    pub(super) keyed: bool,
    /// None: every column is read.
    names: Option<Names>,
    /// What is known of the table's contents.
    statistics: Option<Arc<TableStatistics>>,
    reading: OnceLock<Reading>,
}

/// A way to read a table.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) path: Path,
    /// What the keys do not say.
    pub(super) filter: Vec<Scalar>,
    /// Rows that its keys are thought to lead to.
    pub(super) found: f64,
}

/// What a scan decodes.
#[derive(Debug)]
pub(super) struct Reading {
    /// One level of the direct path's nested loops: the path and the columns that the filter needs.
    pub(super) levels: Arc<[Level]>,
    /// Columns that only rows which pass the filter need.
    pub(super) late: Vec<usize>,
    is_whole: bool,
}

impl TableScan {
    /// What it decodes. Not to be asked before the statement is bound.
    pub(super) fn reading(&self) -> &Reading {
        self.reading.get_or_init(|| self.read())
    }

    /// How it is read. Not to be asked before the statement is bound.
    pub(super) fn way(&self) -> &Way {
        match &self.whole {
            Some(whole) if self.reading().is_whole => whole,
            _ => &self.planned,
        }
    }

    /// The slot of a column of its rows, if that is one of the table.
    pub(super) fn slot(&self, column: usize) -> Option<usize> {
        column.checked_sub(self.base).filter(|slot| *slot < self.access.columns.len())
    }

    /// What is known of the table's contents.
    pub(super) fn statistics(&self) -> Option<&Arc<TableStatistics>> {
        self.statistics.as_ref()
    }

    /// All that was asked of its rows.
    pub(super) fn asked(&self) -> &[Scalar] {
        &self.asked
    }

    /// Whether no two rows have the same values of these expressions, all of which are columns of a unique key.
    pub(super) fn is_unique_by(&self, exprs: &[&Expr]) -> bool {
        self.access.is_unique_by(|slot| exprs.iter().any(|expr| evaluate::column(expr) == Some(self.base + slot)))
    }

    /// The scan under further conditions over its rows; `None` if they speak of more than the table's columns, or of steps.
    pub(super) fn under(&self, conditions: &[Scalar]) -> Option<TableScan> {
        let end = self.base + self.access.columns.len();
        let plain = |scalar: &Scalar| scalar.steps.is_empty() && scalar.expr.columns().iter().all(|slot| *slot < end);
        if !conditions.iter().all(plain) {
            return None;
        }
        Some(self.asking(self.asked.iter().chain(conditions).cloned().collect()))
    }

    /// The scan with other conditions.
    pub(super) fn asking(&self, conditions: Vec<Scalar>) -> TableScan {
        let (names, statistics) = (self.names.clone(), self.statistics.clone());
        plan(&self.access, &self.alias, self.base, conditions, self.keyed, names, statistics).scan
    }

    /// The scan by an index that gives its rows in an order of the table's slots, and the rows that it reads; `None`: no index has that order.
    pub(super) fn in_order(&self, order: &[Order], limited: bool) -> Option<(TableScan, f64)> {
        let (plain, mut filter): (Vec<Scalar>, Vec<Scalar>) =
            self.asked.iter().cloned().flat_map(parts).partition(|scalar| scalar.steps.is_empty());
        let exprs: Vec<Expr> = plain.iter().map(|scalar| scalar.expr.clone()).collect();
        let known = |slot: usize| slot < self.base;
        let (base, statistics) = (self.base, self.statistics.as_deref());
        let wish = Wish {
            access: &self.access,
            base,
            conditions: &exprs,
            known: &known,
            order,
            limited,
            unions: false,
            statistics,
        };
        let choice = access::in_order(&wish).filter(|choice| choice.path.reaches.len() <= 1)?;
        let rest = plain.into_iter().enumerate().filter(|(place, _)| !choice.used.contains(place));
        let mut kept: Vec<Scalar> = rest.map(|(_, scalar)| scalar).collect();
        kept.append(&mut filter);
        let rows = match (choice.path.is_narrowed(), statistics) {
            (false, Some(known)) => known.rows as f64,
            _ => choice.rows,
        };
        let scan = TableScan {
            access: self.access.clone(),
            width: self.width,
            planned: Way { path: choice.path, filter: kept, found: choice.rows },
            whole: None,
            asked: self.asked.clone(),
            base,
            alias: self.alias.clone(),
            keyed: self.keyed,
            names: self.names.clone(),
            statistics: self.statistics.clone(),
            reading: OnceLock::new(),
        };
        Some((scan, rows))
    }

    /// The columns of its rows that these are in the order of, as it is read: the first of them highest first where that is said. Not to be asked before the statement is bound.
    pub(super) fn order(&self) -> Vec<(usize, bool)> {
        let path = &self.way().path;
        let reach = match path.reaches.as_slice() {
            _ if !path.ways.is_empty() => return Vec::new(),
            [] => None,
            [reach] => Some(reach),
            _ => return Vec::new(),
        };
        let prefix = reach.map_or(&[][..], |reach| &reach.prefix);
        if !prefix.iter().all(|term| matches!(term, Term::One(_) | Term::Null)) {
            return Vec::new();
        }
        let columns = self.access.index(path.index).columns.iter().skip(prefix.len());
        let column = |column: &KeyColumn| Some((self.base + column.slot?, column.descending != path.reverse));
        columns.map_while(column).collect()
    }

    /// What of it hangs on values that come with an execution.
    pub(super) fn watch(&self) -> Option<Watch> {
        let asked = self.asked.iter().filter(|scalar| scalar.steps.is_empty()).map(|scalar| &scalar.expr);
        Watch::of(&self.access, self.base, self.statistics.as_ref(), asked)
    }

    fn read(&self) -> Reading {
        let planned = self.read_by(&self.planned);
        match &self.whole {
            Some(whole) if planned.levels.iter().all(|level| level.entries.is_none()) => {
                Reading { is_whole: true, ..self.read_by(whole) }
            }
            _ => planned,
        }
    }

    fn read_by(&self, way: &Way) -> Reading {
        let names = self.names.as_ref().map(|names| names.get_or_init(BTreeSet::new));
        let columns = &self.access.table.columns;
        let named = |slot: &usize| names.is_none_or(|names| names.contains(&columns[*slot].name.to_lowercase()));
        let mut places: Vec<usize> = Vec::new();
        way.filter.iter().for_each(|scalar| evaluate::columns(&scalar.expr, &mut places));
        // A step may look at the whole row.
        let all = way.filter.is_empty() || way.filter.iter().any(|scalar| !scalar.steps.is_empty());
        let (slots, late): (Vec<usize>, Vec<usize>) =
            (0..self.access.columns.len()).filter(named).partition(|slot| all || places.contains(&(self.base + slot)));
        let mut level = Level {
            access: self.access.clone(),
            alias: self.alias.clone(),
            base: self.base,
            slots,
            path: way.path.clone(),
            filter: None,
            outer: false,
            after: None,
            lock: None,
            key_lock: None,
            entries: None,
            skips: false,
            expected: way.found,
        };
        if !self.keyed && late.is_empty() {
            level.read_entries();
        }
        Reading { levels: Arc::from(vec![level]), late, is_whole: false }
    }
}

/// A scan, and what is known of it.
pub(super) struct Chosen {
    pub(super) scan: TableScan,
    /// Whether the keys narrow it: it does not read the whole table.
    pub(super) by_key: bool,
    /// What its keys lead to, by statistics.
    pub(super) foreseen: Option<Foreseen>,
}

/// The conditions that one is made of: BETWEEN is two.
fn parts(scalar: Scalar) -> Vec<Scalar> {
    match scalar.expr {
        Expr::And(_) | Expr::Not(_) if scalar.steps.is_empty() => conjuncts(scalar.expr)
            .into_iter()
            .map(|expr| Scalar { steps: Vec::new(), expr, ty: scalar.ty.clone(), width: scalar.width })
            .collect(),
        _ => vec![scalar],
    }
}

fn conjuncts(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::And(parts) => parts.into_iter().flat_map(negation::inward).collect(),
        one => negation::inward(one),
    }
}

/// Plans a scan of a table whose columns begin at slot `base`, under conditions over its rows.
pub(super) fn plan(
    access: &Arc<TableAccess>,
    alias: &Arc<str>,
    base: usize,
    conditions: Vec<Scalar>,
    keyed: bool,
    names: Option<Names>,
    statistics: Option<Arc<TableStatistics>>,
) -> Chosen {
    let asked = conditions.clone();
    // A condition with a step (a subquery) cannot be a key.
    let (plain, mut filter): (Vec<Scalar>, Vec<Scalar>) =
        conditions.into_iter().flat_map(parts).partition(|scalar| scalar.steps.is_empty());
    let exprs: Vec<Expr> = plain.iter().map(|scalar| scalar.expr.clone()).collect();
    let known = |slot: usize| slot < base;
    let known_of = statistics.as_deref();
    let wish = Wish {
        access,
        base,
        conditions: &exprs,
        known: &known,
        order: &[],
        limited: false,
        unions: true,
        statistics: known_of,
    };
    let choice = choose(&wish);
    let by_key = choice.path.is_narrowed();
    let foreseen = known_of.map(|known| Foreseen { found: choice.rows, whole: known.rows as f64 });
    // Rows that are locked are read by their keys: what is read is what may conflict.
    let whole = known_of.filter(|_| choice.is_dear && !keyed).map(|known| Way {
        path: Path::whole(),
        filter: plain.iter().chain(&filter).cloned().collect(),
        found: known.rows as f64,
    });
    let rest =
        plain.into_iter().enumerate().filter(|(place, _)| !choice.used.contains(place)).map(|(_, scalar)| scalar);
    // Cheap conditions first.
    let mut kept: Vec<Scalar> = rest.collect();
    kept.append(&mut filter);
    let width = base + access.columns.len();
    let planned = Way { path: choice.path, filter: kept, found: choice.rows };
    let (access, alias, reading) = (access.clone(), alias.clone(), OnceLock::new());
    let scan = TableScan { access, alias, width, planned, whole, asked, base, keyed, names, statistics, reading };
    Chosen { scan, by_key, foreseen }
}
