//! Runtime filters: the keys that a hash join has in memory, handed down to where the rows of its other side come from.
//!
//! **Problem.** The side of a hash join that passes by is looked at where it stands if it is a table ([`TableRows::step_to`]). If it is a join itself, its rows
//! are made whole, joined and handed on, to find that nothing is beside them: TPC-H's query 8 joined 35,705 rows of `lineitem` with their orders, of which
//! 282 were of a part that was asked for.
//!
//! **Idea.** When a join has its table of keys, it offers it to the source of the other side ([`Rows::restrict`]). A source that joins passes it on to
//! the side from which the columns come; a table asks it of each row, when its key is decoded and nothing else. It is not a Bloom filter, but the
//! join's own table: exact, no memory of its own, and what is equal is told by the same bytes ([`crate::engine::keys`]), whatever the two types are.
//!
//! ```text
//!   join: part ⋈ ┌──── offers part's keys, over lineitem.l_partkey
//!                ▼
//!        join: orders ⋈ lineitem       the column is of its right side: passed on there
//!                           ▼
//!                    table: lineitem   a row whose key is not there is not made
//! ```
//!
//! **Invariants.**
//! 1. A filter leaves out rows only that the join which offers it would leave out, whatever is between them: it is offered by inner joins to both sides, by
//!    left joins to their right side. The join asks again: a filter that nobody takes, or that is given up, changes nothing.
//! 2. It goes through what gives the columns that it reads unchanged, row by row: conditions, select lists, an inner join to each side, a left join to its
//!    left side. Never through LIMIT, DISTINCT, groups, windows, sets, shared queries, a full join, nor by what must see each row (volatile expressions).
//! 3. It is over columns, not expressions: nothing is computed of a row that a condition would have left out before, so no error appears that was not there.
//! 4. It lives as long as the join that offered it: what begins anew for the next row around it ([`Rows::reopen`]) has no join within.
//!
//! **Bounds.** A table asks [`FILTERS_MAX`] filters; a filter that has let more than [`PASSING_MAX`] of eight rows through, of all so far, is not asked any more,
//! from [`TRIAL_ROWS`] on.
//!
//! **Caveats.** Rows that were read ahead, to find out which side is shorter, were made before there was a filter. One that would leave out none but late rows is
//! given up before these come. A join in temporary files hands nothing down.

use super::Rows;
use super::key_bits::KeyBits;
use super::key_place::write_integers;
use crate::SqlError;
use crate::engine::key_table::KeyTable;
use crate::engine::keys::{self, KeyKind};
use crate::types::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Filters that one source asks of its rows.
pub(super) const FILTERS_MAX: usize = 4;
/// Rows from which on it is looked at whether a filter is worth asking.
const TRIAL_ROWS: u32 = 1024;
/// It is, if no more than so many of eight have passed so far.
const PASSING_MAX: u32 = 7;

/// See the module. Cheap to copy.
#[derive(Clone)]
pub(in crate::engine) struct RuntimeFilter {
    /// The columns of the key, in rows of the source that it is for.
    columns: Arc<[usize]>,
    kinds: Arc<[KeyKind]>,
    keys: Arc<KeyTable>,
    bits: Option<Arc<KeyBits>>,
    tally: Arc<Tally>,
}

/// What came of asking it, wherever it went. One thread runs a statement's sources.
#[derive(Default)]
struct Tally {
    asked: AtomicU32,
    passed: AtomicU32,
}

impl RuntimeFilter {
    /// Over the columns of one side's key: those whose keys are in the table, which is of the other side.
    pub(super) fn new(
        columns: Vec<usize>,
        kinds: Arc<[KeyKind]>,
        keys: Arc<KeyTable>,
        bits: Option<Arc<KeyBits>>,
    ) -> RuntimeFilter {
        RuntimeFilter { columns: Arc::from(columns), kinds, keys, bits, tally: Arc::default() }
    }

    /// Over the rows that those of the source are made of: `to` says where each column comes from.
    pub(super) fn mapped(&self, to: impl Fn(usize) -> Option<usize>) -> Option<RuntimeFilter> {
        let columns = self.columns.iter().map(|column| to(*column)).collect::<Option<Vec<_>>>()?;
        Some(RuntimeFilter { columns: Arc::from(columns), ..self.clone() })
    }

    /// The columns that it reads.
    pub(super) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Its columns, with how they are compared.
    pub(super) fn parts(&self) -> impl Iterator<Item = (Option<usize>, KeyKind)> {
        self.columns.iter().map(|column| Some(*column)).zip(self.kinds.iter().copied())
    }

    /// As [`RuntimeFilter::lets`], for a stored row that has its columns, which are integers, at these ids.
    #[inline]
    pub(super) fn lets_stored(&self, ids: &[u16], stored: &[u8], key: &mut Vec<u8>) -> Result<bool, SqlError> {
        let found = write_integers(ids, self.bits.as_deref(), stored, key)? && self.keys.find(key).is_some();
        self.count(found);
        Ok(found)
    }

    /// Whether it reads nothing at `width` and behind.
    pub(super) fn is_below(&self, width: usize) -> bool {
        self.columns.iter().all(|column| *column < width)
    }

    /// Whether enough of the rows so far did not pass.
    pub(super) fn is_worth(&self) -> bool {
        let asked = self.tally.asked.load(Relaxed);
        asked < TRIAL_ROWS
            || u64::from(self.tally.passed.load(Relaxed)) * 8 <= u64::from(asked) * u64::from(PASSING_MAX)
    }

    /// Whether a row may have a partner; `key` is room for its key.
    pub(super) fn lets(&self, row: &[Value], key: &mut Vec<u8>) -> bool {
        self.lets_by(|column| row.get(column), key)
    }

    /// As [`RuntimeFilter::lets`], for a row of which the columns from `width` on stand apart.
    pub(super) fn lets_pair(&self, left: &[Value], own: &[Value], width: usize, key: &mut Vec<u8>) -> bool {
        self.lets_by(|column| if column < width { left.get(column) } else { own.get(column - width) }, key)
    }

    fn lets_by<'a>(&self, value: impl Fn(usize) -> Option<&'a Value>, key: &mut Vec<u8>) -> bool {
        let found = self.finds(value, key);
        self.count(found);
        found
    }

    fn finds<'a>(&self, value: impl Fn(usize) -> Option<&'a Value>, key: &mut Vec<u8>) -> bool {
        key.clear();
        for (column, kind) in self.columns.iter().zip(self.kinds.iter()) {
            match value(*column) {
                Some(value) if !value.is_null() => keys::encode(value, *kind, key),
                Some(_) => return false,
                // A row that is shorter than it should be is the join's.
                None => return true,
            }
        }
        self.keys.find(key).is_some()
    }

    #[inline]
    fn count(&self, passed: bool) {
        self.tally.asked.store(self.tally.asked.load(Relaxed).saturating_add(1), Relaxed);
        if passed {
            self.tally.passed.store(self.tally.passed.load(Relaxed).saturating_add(1), Relaxed);
        }
    }
}

/// Filters that are asked by a source itself, and room for a key.
#[derive(Default)]
pub(super) struct Filters {
    all: Vec<RuntimeFilter>,
    key: Vec<u8>,
}

impl Filters {
    /// Takes one more; `false`: there are enough.
    pub(super) fn add(&mut self, filter: &RuntimeFilter) -> bool {
        let room = self.all.len() < FILTERS_MAX;
        if room {
            self.all.push(filter.clone());
        }
        room
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether a row passes all.
    #[inline]
    pub(super) fn let_in(&mut self, row: &[Value]) -> bool {
        let Filters { all, key } = self;
        all.iter().all(|filter| !filter.is_worth() || filter.lets(row, key))
    }

    /// Whether a row whose columns from `width` on stand apart passes all.
    #[inline]
    pub(super) fn let_pair_in(&mut self, left: &[Value], own: &[Value], width: usize) -> bool {
        let Filters { all, key } = self;
        all.iter().all(|filter| !filter.is_worth() || filter.lets_pair(left, own, width, key))
    }

    /// Hands those that are worth it to a source with the same rows.
    pub(super) fn hand_to(&self, source: &mut dyn Rows) {
        self.all.iter().filter(|filter| filter.is_worth()).for_each(|filter| {
            source.restrict(filter);
        });
    }
}
