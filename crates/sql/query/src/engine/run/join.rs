//! Joins: by hash where there are equalities, by a lookup for each left row where the right side has an index on them and the left
//! side turns out to be the shorter by far, nested loops otherwise.
//!
//! **How the choice is made.** It is made while running ([`open`]), since estimates are wrong. Up to [`LOOKUP_ROWS_MAX`] left rows are
//! looked up at once, and where statistics know the right side as many as cost less than reading it, if it does not end within [`ASKED_ROWS`] for each; as long as
//! that does not find too much ([`super::lookup`]). Beyond, both sides are read in turns, twice as many rows each time, until one of them ends: it is the side
//! that is kept in memory. (Where statistics know the right side, and it does not end in its first turn, the left one goes first, up to a quarter of its rows.) What it has in memory it hands down to the other:
//! [`super::runtime_filter`]. If that is the left side and there is an index, up to [`ROWS_PER_LOOKUP`] right rows are read for each of
//! its rows (and where statistics know the right side, twice what they know: they say that it is worth reading all of it); if the right side has
//! more, its rows so far are forgotten, and the left rows are looked up. So the way that is chosen costs at most about twice as much as the best, and where statistics
//! are wrong a few times as much: they say where to begin, and what is counted says where to end.

use super::hashed::{Buckets, Hashed, Turned, side_left, side_right};
use super::leaf::TableRows;
use super::lookup::{ASKED_ROWS, Lookups};
use super::memo::{Question, ROWS_MAX as ANSWER_ROWS_MAX};
use super::runtime_filter::{Filters, RuntimeFilter};
use super::{Prefix, Rows, Run, Source, grace, held, listed, open as open_node};
use crate::SqlError;
use crate::engine::estimate;
use crate::engine::in_order::{self, Allowed};
use crate::engine::node::{Join, JoinKind, Node};
use crate::engine::reach::is_sparing;
use crate::engine::scalar::all_true;
use crate::exec::sort::row_bytes;
use crate::exec::spill::Share;
use crate::types::{Row, Value};
use std::sync::Arc;

/// Left rows up to which each is looked up in the right side's index, whatever is behind it.
pub(super) const LOOKUP_ROWS_MAX: usize = 100;
/// Right rows that are read in order in the time of one lookup.
pub(in crate::engine) const ROWS_PER_LOOKUP: usize = 16;
/// An answer of the right side of LATERAL that is kept, bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Rows of each side that are read in the first turn.
const TURN_ROWS: usize = 1024;
/// Where statistics know the right side's rows it may have so many times as many, and is still read.
const GROWN: usize = 2;
/// Of a right side that statistics know no more than a turn is read before the left side has this part of its rows.
const SHORTER: f64 = 4.0;
/// What is read of the left side then, bytes: it is kept, and not the right side.
const SHORTER_BYTES_MAX: usize = 32 << 20;
/// What may be read ahead of the left side, bytes: the right side, which is kept then, was to have this memory to itself.
pub(super) const AHEAD_BYTES_MAX: usize = 16 << 20;

pub(super) fn open(node: &Arc<Node>, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
    let Node::Join(join) = node.as_ref() else { return Ok(listed(Vec::new())) };
    if let Some(by) = &join.merge {
        return super::merge::open(node, join, by, prefix, run);
    }
    let allowed = Allowed::by(&run.context.settings);
    if !allowed.hash
        && allowed.merge
        && let Some(by) = in_order::given(join)
    {
        return super::merge::open(node, join, &by, prefix, run);
    }
    let mut left = Ahead::new(open_node(&join.left, prefix, run)?, AHEAD_BYTES_MAX);
    let lateral = |left: Source, right: &Arc<Node>| -> Result<Source, SqlError> {
        let (node, right, run, filters) = (node.clone(), right.clone(), run.clone(), Filters::default());
        Ok(Box::new(Lateral { left, node, right, run, current: None, gathered: None, spare: None, filters }))
    };
    if join.lateral {
        return lateral(left.into_source(), &join.right);
    }
    let mut share = Share::new(&run.context);
    let worth = join.lookup.as_ref().and_then(|lookup| super::lookup::worth(join, lookup));
    if let Some(lookup) = &join.lookup {
        let rows_max = worth.as_ref().map_or(0, |worth| worth.lookups).max(LOOKUP_ROWS_MAX);
        if left.read(rows_max, &mut share, run)? && !super::lookup::finds_too_much(join, lookup, left.rows.len()) {
            return looked_up(node, join, lookup, left.rows, share, prefix, run);
        }
    }
    let mut right = Ahead::new(open_node(&join.right, prefix, run)?, usize::MAX);
    if let Some(rows) = foreseen_right(join)
        // Statistics may be wrong: a side that ends at once is kept.
        && !right.read(TURN_ROWS, &mut share, run)?
        && !right.full
    {
        // Where the right side is thought to be the longer, no more of it is read, to be kept, until the left side has shown to be not much shorter.
        left.bytes_max = SHORTER_BYTES_MAX;
        if !left.read((rows / SHORTER) as usize, &mut share, run)? {
            left.bytes_max = AHEAD_BYTES_MAX;
        }
    }
    if join.kind == JoinKind::Full || join.keys.is_empty() || !left.is_shorter(&mut right, &mut share, run)? {
        let buckets = match (right.read(usize::MAX, &mut share, run)?, join.keys.is_empty()) {
            (false, _) => None,
            (true, true) => Some(None),
            (true, false) => Buckets::new(join, side_right, &right.rows, &mut share, false, run)?.map(Some),
        };
        let Some(buckets) = buckets else {
            return beyond_memory(node, join, left, right, share, prefix, run);
        };
        return Ok(Box::new(Hashed::start(node, left.into_source(), right.rows, buckets, share, prefix, run)));
    }
    let Some(buckets) = Buckets::new(join, side_left, &left.rows, &mut share, false, run)? else {
        return beyond_memory(node, join, left, right, share, prefix, run);
    };
    let (rows, known) = (left.rows, right.rows.len());
    let whole = worth.map_or(0, |worth| worth.whole);
    let rows_max = (rows.len() * ROWS_PER_LOOKUP).max(known).max(whole.saturating_mul(GROWN));
    let mut turned = Turned::start(node, rows, buckets, right.into_source(), share, prefix, run);
    match &join.lookup {
        // Where statistics know them, a lack of room to keep them is no sign that there are more.
        Some(lookup) if !(turned.read_ahead(rows_max)? || whole > 0 && turned.lacks_room()) => {
            let (rows, share) = turned.into_left();
            lateral(held(rows.into_iter(), share.into()), lookup)
        }
        _ => Ok(Box::new(turned.offering())),
    }
}

/// Neither side has room: they are merged if they come in the order of the keys, else divided.
fn beyond_memory(
    node: &Arc<Node>,
    join: &Join,
    left: Ahead,
    right: Ahead,
    share: Share,
    prefix: &Prefix,
    run: &Arc<Run>,
) -> Result<Source, SqlError> {
    let by = in_order::given(join).filter(|_| Allowed::by(&run.context.settings).merge);
    let (lefts, rights) = (left.rows.len(), right.rows.len());
    let (left, right) = (left.into_source(), right.into_source());
    match by {
        Some(by) => Ok(super::merge::start(node, &by, (left, lefts), (right, rights), share, prefix, run)),
        None => grace::start(node, left, right, share, prefix, run),
    }
}

/// Rows of a right side that would be kept, or looked at where they stand, where statistics know it; `None`: it is not one table, or is no hash join's.
fn foreseen_right(join: &Join) -> Option<f64> {
    let Node::Table(scan) = join.right.as_ref() else { return None };
    if join.kind == JoinKind::Full || join.keys.is_empty() || scan.way().path.is_narrowed() {
        return None;
    }
    let known = scan.statistics()?;
    Some(estimate::rows(&join.right, &|_| Some(known.clone())))
}

/// All left rows are few enough to be looked up; but if there are many, only statistics say so: then the right side is asked first whether it is short.
fn looked_up(
    node: &Arc<Node>,
    join: &Join,
    lookup: &Arc<Node>,
    mut lefts: Vec<Row>,
    mut share: Share,
    prefix: &Prefix,
    run: &Arc<Run>,
) -> Result<Source, SqlError> {
    let mut asked = 0;
    if lefts.len() > LOOKUP_ROWS_MAX
        && let Some(buckets) = Buckets::new(join, side_left, &lefts, &mut share, false, run)?
    {
        let right = open_node(&join.right, prefix, run)?;
        let mut turned = Turned::start(node, lefts, buckets, right, share, prefix, run);
        asked = turned.left_rows() * ASKED_ROWS;
        if turned.read_ahead(asked)? {
            return Ok(Box::new(turned));
        }
        if turned.lacks_room() {
            asked = 0;
        }
        (lefts, share) = turned.into_left();
    }
    Ok(Box::new(Lookups::start(node, lookup, lefts, asked, share.into(), prefix, run)))
}

/// A source of which rows were read ahead.
struct Ahead {
    rows: Vec<Row>,
    bytes: usize,
    bytes_max: usize,
    ended: bool,
    /// There was no room for more.
    full: bool,
    source: Source,
}

impl Ahead {
    fn new(source: Source, bytes_max: usize) -> Ahead {
        Ahead { rows: Vec::new(), bytes: 0, bytes_max, ended: false, full: false, source }
    }

    /// Reads until there are more than so many rows, or they are too large, or there is no room for them; whether there are no more.
    fn read(&mut self, rows_max: usize, share: &mut Share, run: &Run) -> Result<bool, SqlError> {
        let mut row = Row::new();
        while !self.ended && !self.full && self.rows.len() <= rows_max && self.bytes < self.bytes_max {
            if !self.source.next(&mut row)? {
                self.ended = true;
                break;
            }
            run.tick()?;
            let bytes = row_bytes(&row);
            if !share.take(bytes) {
                share.take_anyway(bytes);
                self.full = true;
            }
            self.bytes += bytes;
            self.rows.push(std::mem::take(&mut row));
        }
        Ok(self.ended)
    }

    /// Reads both until one ends, or this one is too large to be read ahead; whether this one has ended and the other has not.
    fn is_shorter(&mut self, other: &mut Ahead, share: &mut Share, run: &Run) -> Result<bool, SqlError> {
        let mut turn = TURN_ROWS;
        while self.bytes < self.bytes_max && !self.full && !other.full {
            if other.read(turn, share, run)? {
                return Ok(false);
            }
            if self.read(turn, share, run)? {
                return Ok(true);
            }
            turn = turn.saturating_mul(2);
        }
        Ok(false)
    }

    /// All its rows again.
    fn into_source(self) -> Source {
        if self.rows.is_empty() {
            return self.source;
        }
        chained(listed(self.rows), self.source)
    }
}

/// Rows, then those of a source.
pub(super) fn chained(first: Source, rest: Source) -> Source {
    Box::new(Chained { first: Some(first), rest })
}

/// Rows read ahead, then the rest of their source.
struct Chained {
    /// Gone, with its memory, once it is read.
    first: Option<Source>,
    rest: Source,
}

impl Rows for Chained {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        if let Some(first) = &mut self.first {
            if first.next(row)? {
                return Ok(true);
            }
            self.first = None;
        }
        self.rest.next(row)
    }

    fn restrict(&mut self, filter: &RuntimeFilter) -> bool {
        self.rest.restrict(filter)
    }

    fn table(&mut self) -> Option<&mut TableRows> {
        if self.first.is_none() { self.rest.table() } else { None }
    }
}

pub(super) fn join_of(node: &Node) -> Option<&Join> {
    if let Node::Join(join) = node { Some(join) } else { None }
}

pub(super) fn add_nulls(row: &mut Row, width: usize) {
    row.resize(row.len() + width, Value::Null);
}

/// Rows of an answer that may be kept, without the row that asked, and their bytes.
struct Gathered {
    question: Question,
    rows: Vec<Row>,
    bytes: usize,
}

impl Gathered {
    /// Adds a row; `None`: the answer is too large to be kept.
    fn with(mut self, row: &[Value]) -> Option<Gathered> {
        self.bytes += row_bytes(row);
        if self.rows.len() >= ANSWER_ROWS_MAX || self.bytes > ANSWER_BYTES_MAX {
            return None;
        }
        self.rows.push(row.to_vec());
        Some(self)
    }
}

/// The right side runs once for each left row, which is its prefix, unless it is known what it gave to one that looked the same.
struct Lateral {
    left: Source,
    node: Arc<Node>,
    right: Arc<Node>,
    run: Arc<Run>,
    current: Option<(Row, Source, bool)>,
    /// What the right side gives to the current row, to be kept for others that ask the same ([`super::memo`]): all of it, so nothing while there are filters.
    gathered: Option<Gathered>,
    /// The right side's source of a left row that is done, for the next one.
    spare: Option<Source>,
    /// For the right side's rows of each left row.
    filters: Filters,
}

impl Rows for Lateral {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let Some(join) = join_of(&self.node) else { return Ok(false) };
        loop {
            if let Some((left, source, matched)) = &mut self.current {
                while source.next(row)? {
                    self.run.tick()?;
                    self.gathered = self.gathered.take().and_then(|gathered| gathered.with(&row[left.len()..]));
                    if all_true(&join.on, row, &self.run)? {
                        *matched = true;
                        return Ok(true);
                    }
                    self.run.unjoined(&self.node);
                }
                let (unmatched, left) = (!*matched, std::mem::take(left));
                if let Some(Gathered { question, rows, .. }) = self.gathered.take() {
                    self.run.remember(&self.right, question, &Arc::new(rows));
                }
                let source = self.current.take().map(|(_, source, _)| source).filter(|source| source.reopens());
                // (What came from memory leaves that of another row where it is.)
                self.spare = source.or(self.spare.take());
                if unmatched && join.kind == JoinKind::Left {
                    *row = left;
                    add_nulls(row, join.right_width);
                    return Ok(true);
                }
            }
            let mut left = Row::new();
            if !self.left.next(&mut left)? {
                return Ok(false);
            }
            self.run.tick()?;
            // A lookup asks for what is seldom asked twice.
            if join.lateral {
                match self.run.recall(&self.right, &left) {
                    Ok(rows) => {
                        let joined = rows.iter().map(|row| left.iter().chain(row).cloned().collect()).collect();
                        self.current = Some((left, listed(joined), false));
                        continue;
                    }
                    Err(question) => {
                        let question = question.filter(|_| self.filters.is_empty());
                        self.gathered = question.map(|question| Gathered { question, rows: Vec::new(), bytes: 0 });
                    }
                }
            }
            let source = match self.spare.take() {
                Some(mut source) => {
                    source.reopen(&left);
                    source
                }
                None => {
                    let mut source = open_node(&self.right, &Arc::from(left.as_slice()), &self.run)?;
                    self.filters.hand_to(source.as_mut());
                    source
                }
            };
            self.current = Some((left, source, false));
        }
    }

    fn restrict(&mut self, filter: &RuntimeFilter) -> bool {
        let Some(join) = join_of(&self.node).filter(|join| is_sparing(join)) else { return false };
        match join.kind {
            JoinKind::Inner | JoinKind::Left if filter.is_below(join.left_width) => self.left.restrict(filter),
            JoinKind::Inner => {
                // What it gives from here on is not all: of another row around it the filter is another one, and what is remembered is the same.
                self.gathered = None;
                // What is open is used for further rows.
                let sources = self.current.iter_mut().map(|(_, source, _)| source).chain(&mut self.spare);
                sources.for_each(|source| {
                    source.restrict(filter);
                });
                self.filters.add(filter)
            }
            _ => false,
        }
    }
}
