//! Left rows that are few beside the right side's, each looked up in its index, unless that finds more than reading the right side would.
//!
//! **Problem.** Four rows looked up in an index of a column with four values find the whole table, row by row, each by a way of its own:
//! 400,000 rows took seconds, which a scan reads in a twentieth of one.
//!
//! **Idea.** Statistics say beforehand how many lookups are worth the while ([`worth`]), and how much they find ([`finds_too_much`]). They may be missing, or the values of the left rows be the
//! frequent ones; so what is found is counted, and no row is given out before its left row's lookup is complete. When it has found
//! [`FOUND_FIRST`] rows, the right side is read as a whole, but no further than what was spent: if it ends there, the left rows that have given nothing
//! out yet are joined by hash. If not, lookups go on until they have found [`FOUND_GROWTH`] times as much.
//!
//! Statistics may be wrong: the table was emptied, or filled, since. Lookups that find nothing cost, too. So before more than
//! [`LOOKUP_ROWS_MAX`](super::join::LOOKUP_ROWS_MAX) are begun the right side is read for [`ASKED_ROWS`] of each ([`super::join`]), and if it ends there, it is the hash join's;
//! and where statistics say that a trial would not end, an eighth of it is begun nevertheless.
//!
//! **Invariants.**
//! 1. A left row gives all its rows from a lookup, or all from the hash join.
//! 2. Where statistics know the right side's rows, it all costs at most about twice the scan that would have done; without them, where trials
//!    are begun in vain, five times. Where statistics are wrong, lookups begun cost at most about ten times that scan, and what they find sixteen times.
//!
//! **Caveat.** One left row that finds more than [`AHEAD_BYTES_MAX`] of rows is looked up to its end.

use super::hashed::{Buckets, Turned, side_left};
use super::join::{AHEAD_BYTES_MAX, ROWS_PER_LOOKUP, add_nulls, join_of};
use super::runtime_filter::{Filters, RuntimeFilter};
use super::{Prefix, Reservation, Rows, Run, Source, Step, open as open_node};
use crate::engine::node::{Join, JoinKind, Node};
use crate::engine::reach::is_sparing;
use crate::engine::scalar::all_true;
use crate::exec::ahead::{AHEAD_ROWS, is_far, rows_of_keys};
use crate::exec::cursor::Level;
use crate::exec::sort::row_bytes;
use crate::exec::spill::Share;
use crate::types::{Row, Value};
use crate::{SqlError, SqlState};
use std::collections::VecDeque;
use std::sync::Arc;

/// Rows that lookups may find before the right side is tried as a whole.
const FOUND_FIRST: u64 = 256;
/// After a trial that did not end they may find so many times as many.
const FOUND_GROWTH: u64 = 2;
/// Rows that are read in order, and left out, in the time that a lookup of a stretch takes beside what it finds, where statistics decide. Measured: 4.5 µs beside
/// 0.06 to 0.07.
const BEGUN_ROWS: f64 = 60.0;
/// The same of a lookup by a whole unique key.
const BEGUN_POINT_ROWS: f64 = 32.0;
/// What statistics make worth many lookups may be short now: before they are begun, so many right rows are read for each.
pub(super) const ASKED_ROWS: usize = 8;
/// Where statistics say that a trial does not end, this part of what was spent is tried.
const DOUBTED_PART: u64 = 8;

/// Rows that are read in order in the time in which a lookup leads to one row.
fn cost_of_found(lookup: &Node) -> u64 {
    match lookup {
        Node::Filter { input, .. } | Node::Project { input, .. } => cost_of_found(input),
        // A secondary index whose entries do not hold all columns leads to each row by its key; so do several.
        Node::Table(scan) => {
            let by_key = |l: &Level| l.path.index != 0 && l.entries.is_none() || !l.path.ways.is_empty();
            if scan.reading().levels.iter().any(by_key) { ROWS_PER_LOOKUP as u64 } else { 1 }
        }
        _ => 1,
    }
}

/// Rows that are read in order in the time in which a lookup begins.
fn cost_of_begun(lookup: &Node) -> f64 {
    match lookup {
        Node::Filter { input, .. } | Node::Project { input, .. } => cost_of_begun(input),
        Node::Table(scan) if scan.way().path.is_point(&scan.access) => BEGUN_POINT_ROWS,
        _ => BEGUN_ROWS,
    }
}

/// What statistics say of a join whose right side can be looked up.
pub(super) struct Worth {
    /// Up to how many left rows looking them up costs less than reading the right side.
    pub(super) lookups: usize,
    /// The right side's rows where it is a whole table: they are known, and not guessed; otherwise 0.
    pub(super) whole: usize,
}

/// Rows that a right side reads, about, if conditions narrow it.
fn narrowed(right: &Node) -> Option<f64> {
    match right {
        Node::Filter { input, .. } | Node::Project { input, .. } => narrowed(input),
        Node::Table(scan) if scan.way().path.is_narrowed() => Some(scan.way().found * cost_of_found(right) as f64),
        _ => None,
    }
}

/// See [`Worth`]; `None` without statistics.
pub(super) fn worth(join: &Join, lookup: &Node) -> Option<Worth> {
    let foreseen = join.foreseen.filter(|_| !join.keys.is_empty())?;
    let narrowed = narrowed(&join.right);
    let read = narrowed.map_or(foreseen.whole, |rows| rows.min(foreseen.whole));
    let each = cost_of_begun(lookup) + foreseen.found * cost_of_found(lookup) as f64;
    let whole = if narrowed.is_none() { foreseen.whole as usize } else { 0 };
    Some(Worth { lookups: (read / each) as usize, whole })
}

/// Whether statistics say that looking so many rows up costs more than reading the right side.
pub(super) fn finds_too_much(join: &Join, lookup: &Node, left_rows: usize) -> bool {
    let Some(foreseen) = join.foreseen.filter(|_| !join.keys.is_empty()) else { return false };
    let found = left_rows as f64 * foreseen.found;
    found > FOUND_FIRST as f64 && found * cost_of_found(lookup) as f64 > foreseen.whole
}

/// Says which keys the next lookups read, where they may have to be asked for elsewhere; of how many left rows.
fn ask_ahead(lookup: &Node, lefts: &VecDeque<Row>, run: &Run) -> Result<usize, SqlError> {
    let mut node = lookup;
    while let Node::Filter { input, .. } | Node::Project { input, .. } = node {
        node = input;
    }
    let Node::Table(scan) = node else { return Ok(usize::MAX) };
    let [level] = scan.reading().levels.as_ref() else { return Ok(usize::MAX) };
    // (What several ways lead to is read to be known.)
    if !level.path.ways.is_empty() || !is_far(run.context.reads()) {
        return Ok(usize::MAX);
    }
    let mut keys = Vec::new();
    for left in lefts.iter().take(AHEAD_ROWS) {
        let mut row = left.clone();
        row.resize(scan.width.max(row.len()), Value::Null);
        keys.extend(level.path.keys(&level.access, &row, &run.context)?);
    }
    // (As many as a cursor asks for first.)
    rows_of_keys(level, keys.iter(), false, AHEAD_ROWS, &run.context)?;
    Ok(AHEAD_ROWS)
}

/// A left row that is being looked up.
struct Current {
    left: Row,
    source: Source,
    matched: bool,
}

/// See the module.
pub(super) struct Lookups {
    node: Arc<Node>,
    lookup: Arc<Node>,
    run: Arc<Run>,
    prefix: Prefix,
    /// Left rows of which nothing was given out.
    lefts: VecDeque<Row>,
    current: Option<Current>,
    /// The source of a lookup that is over, for the next one.
    spare: Option<Source>,
    /// Joined rows of left rows whose lookup is complete, or of the current one.
    ready: VecDeque<Row>,
    ready_bytes: usize,
    /// Rows that may be found before the next trial; and how many that were since the beginning when it comes.
    left_to_find: u64,
    found_until: u64,
    /// The right side was read so far, and has more: no trial need be as short.
    has_more_than: u64,
    /// `false`: lookups go on to the end.
    careful: bool,
    hashed: Option<Source>,
    /// Left rows whose lookups were said to come.
    ahead: usize,
    /// Of joins above: over left rows, which are not looked up then, and over joined ones.
    of_left: Filters,
    filters: Filters,
    /// For the left rows, and for what is ready of one.
    reserved: Reservation,
    ready_reserved: Reservation,
}

impl Lookups {
    /// `lefts` are all left rows, `reserved` is theirs; the right side was read for so many rows and has more.
    pub(super) fn start(
        node: &Arc<Node>,
        lookup: &Arc<Node>,
        lefts: Vec<Row>,
        has_more_than: usize,
        reserved: Reservation,
        prefix: &Prefix,
        run: &Arc<Run>,
    ) -> Lookups {
        Lookups {
            careful: join_of(node).is_some_and(|join| !join.keys.is_empty()),
            node: node.clone(),
            lookup: lookup.clone(),
            run: run.clone(),
            prefix: prefix.clone(),
            lefts: lefts.into(),
            current: None,
            spare: None,
            ready: VecDeque::new(),
            ready_bytes: 0,
            left_to_find: FOUND_FIRST,
            found_until: FOUND_FIRST,
            has_more_than: has_more_than as u64,
            hashed: None,
            ahead: 0,
            of_left: Filters::default(),
            filters: Filters::default(),
            reserved,
            ready_reserved: run.reserve(),
        }
    }

    /// Goes on with a lookup until a row of it is ready, or all; `false` if no left row is left.
    fn look(&mut self, join: &Join) -> Result<bool, SqlError> {
        let Lookups { current, lefts, run, left_to_find, .. } = self;
        if current.is_none() {
            if self.ahead == 0 {
                self.ahead = ask_ahead(&self.lookup, lefts, run)?;
            }
            let Some(left) = lefts.pop_front() else { return Ok(false) };
            self.ahead = self.ahead.saturating_sub(1);
            run.tick()?;
            if !self.of_left.let_in(&left) {
                return Ok(true);
            }
            self.ready_reserved = run.reserve();
            let source = match self.spare.take() {
                Some(mut source) => {
                    source.reopen(&left);
                    source
                }
                None => {
                    let mut source = open_node(&self.lookup, &Arc::from(left.as_slice()), run)?;
                    self.filters.hand_to(source.as_mut());
                    source
                }
            };
            *current = Some(Current { left, source, matched: false });
        }
        let Some(now) = current else { return Ok(false) };
        let mut row = Row::new();
        loop {
            let mut unbounded = u64::MAX;
            let most = if self.careful { &mut *left_to_find } else { &mut unbounded };
            match now.source.next_within(&mut row, most)? {
                Step::Row => {
                    run.tick()?;
                    if all_true(&join.on, &row, run)? {
                        now.matched = true;
                        if !self.careful {
                            self.ready.push_back(row);
                            return Ok(true);
                        }
                        let bytes = row_bytes(&row);
                        self.ready_reserved.bytes(bytes)?;
                        self.ready_bytes += bytes;
                        self.ready.push_back(std::mem::take(&mut row));
                        if self.ready_bytes > AHEAD_BYTES_MAX {
                            self.careful = false;
                            return Ok(true);
                        }
                    } else {
                        run.unjoined(&self.node);
                    }
                }
                Step::End => {
                    let Some(Current { mut left, source, matched }) = current.take() else { return Ok(true) };
                    self.spare = Some(source).filter(|source| source.reopens());
                    if !matched && join.kind == JoinKind::Left {
                        add_nulls(&mut left, join.right_width);
                        self.ready.push_back(left);
                    }
                    return Ok(true);
                }
                Step::Spent => {}
            }
            if self.careful && *left_to_find == 0 {
                return self.try_whole(join).map(|()| true);
            }
        }
    }

    /// Reads the right side as far as what was spent on lookups; if it ends there, the rest is a hash join.
    fn try_whole(&mut self, join: &Join) -> Result<(), SqlError> {
        let spent = self.found_until.saturating_mul(cost_of_found(&self.lookup));
        let (rows_max, rows_min) = match join.foreseen {
            Some(foreseen) if foreseen.whole > spent as f64 => (spent / DOUBTED_PART, FOUND_FIRST),
            _ => (spent, 0),
        };
        // A trial that cannot end is not begun.
        if rows_max > self.has_more_than.max(rows_min) {
            if self.hash(join, rows_max)? {
                return Ok(());
            }
            self.has_more_than = rows_max;
        }
        self.left_to_find = self.found_until.saturating_mul(FOUND_GROWTH - 1);
        self.found_until = self.found_until.saturating_mul(FOUND_GROWTH);
        Ok(())
    }

    fn hash(&mut self, join: &Join, rows_max: u64) -> Result<bool, SqlError> {
        let rows: Vec<Row> = self.current.iter().map(|current| &current.left).chain(&self.lefts).cloned().collect();
        let right = open_node(&join.right, &self.prefix, &self.run)?;
        let mut share = Share::new(&self.run.context);
        let Some(buckets) = Buckets::new(join, side_left, &rows, &mut share, true, &self.run)? else {
            return Ok(false);
        };
        let mut turned = Turned::start(&self.node, rows, buckets, right, share, &self.prefix, &self.run);
        match turned.read_ahead(usize::try_from(rows_max).unwrap_or(usize::MAX)) {
            Ok(true) => {}
            Ok(false) => {
                // If there is no memory for it, it is not tried again.
                self.careful &= !turned.lacks_room();
                return Ok(false);
            }
            Err(error) if error.state == SqlState::OUT_OF_MEMORY => {
                self.careful = false;
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        self.filters.hand_to(&mut turned);
        self.current = None;
        self.ready.clear();
        self.lefts.clear();
        (self.reserved, self.ready_reserved) = (self.run.reserve(), self.run.reserve());
        self.hashed = Some(Box::new(turned));
        Ok(true)
    }
}

impl Rows for Lookups {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let node = self.node.clone();
        let Some(join) = join_of(&node) else { return Ok(false) };
        loop {
            if let Some(hashed) = &mut self.hashed {
                return hashed.next(row);
            }
            // Rows of a lookup that may yet be given up are not given out.
            if (self.current.is_none() || !self.careful)
                && let Some(first) = self.ready.pop_front()
            {
                self.ready_bytes = self.ready_bytes.saturating_sub(row_bytes(&first));
                *row = first;
                return Ok(true);
            }
            if !self.look(join)? {
                return Ok(false);
            }
        }
    }

    fn restrict(&mut self, filter: &RuntimeFilter) -> bool {
        let Some(join) = join_of(&self.node).filter(|join| is_sparing(join)) else { return false };
        let below = filter.is_below(join.left_width);
        if let Some(hashed) = &mut self.hashed {
            return hashed.restrict(filter);
        }
        match join.kind {
            JoinKind::Inner | JoinKind::Left if below => self.of_left.add(filter),
            JoinKind::Inner => {
                // What is open is used for further rows.
                let sources = self.current.iter_mut().map(|now| &mut now.source).chain(&mut self.spare);
                sources.for_each(|source| {
                    source.restrict(filter);
                });
                self.filters.add(filter)
            }
            _ => false,
        }
    }
}
