//! The runs of a fjall tree, read in order, highest key first. (Upwards: [`super::blocks`].)
//!
//! Problem: fjall's own reader hands each entry from iterator to iterator (of a table, of a run, through a heap, past what is hidden, past
//! removals), and looks for both ends of the range in each block. Most stretches lie in one run, and none of that is needed there: it was
//! half of what a scan of many rows cost. Idea: the tree's tables are read directly. What the runs hold next stands in a list, of which the
//! first by key goes out; only the end at which reading begins is looked for in a table, the other one is met.
//!
//! Invariants:
//! 1. Of entries with one key the one with the greatest number goes out, or nothing if that is a removal.
//! 2. One state of the tree is read: the list of its tables, which keeps their files.
//!
//! Caveat: the tree's memtables are not looked at. They are empty, as all comes by ingestion (decision 87).

use super::Visit;
use bytes::Bytes;
use fjall::{AbstractTree, LsmError, Slice};
use std::ops::Bound;

/// An entry as it is stored; without a value it is a removal.
struct Entry {
    key: Slice,
    number: u64,
    value: Option<Slice>,
}

type Entries<'a> = Box<dyn DoubleEndedIterator<Item = Result<Entry, LsmError>> + Send + 'a>;

/// One run, or what is left of it.
struct Run<'a> {
    entries: Entries<'a>,
    /// Where reading ends, if the run goes on beyond.
    far: Option<&'a [u8]>,
    /// What comes next.
    head: Option<Entry>,
}

impl Run<'_> {
    /// Gives what came next, and reads what comes then.
    fn step(&mut self) -> Result<Option<Entry>, LsmError> {
        let next = self.entries.next_back().transpose()?;
        let next = next.filter(|entry| self.far.is_none_or(|far| entry.key[..] >= *far));
        Ok(std::mem::replace(&mut self.head, next))
    }
}

/// Visits the entries with `from <= key < to`, highest first, until the visitor breaks.
pub(super) fn scan(tree: &impl AbstractTree, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), LsmError> {
    let version = tree.current_version();
    let range = Slice::from(from)..Slice::from(to);
    let mut runs = Vec::new();
    for run in version.iter_levels().flat_map(|level| level.iter()) {
        let Some((first, last)) = run.range_overlap_indexes::<Slice, _>(&range) else { continue };
        let Some(tables) = run.get(first..=last) else { continue };
        let crosses = tables.first().is_some_and(|table| *table.metadata.key_range.min() < range.start);
        let entries = tables.iter().flat_map(|table| {
            let bounds = match *table.metadata.key_range.max() >= range.end {
                true => (Bound::Unbounded, Bound::Excluded(range.end.clone())),
                false => (Bound::Unbounded, Bound::Unbounded),
            };
            table.range(bounds).map(|item| {
                let item = item?;
                let value = (!item.is_tombstone()).then_some(item.value);
                Ok(Entry { key: item.key.user_key, number: item.key.seqno, value })
            })
        });
        let mut run = Run { entries: Box::new(entries), far: crosses.then_some(from), head: None };
        run.step()?;
        runs.push(run);
    }
    runs.retain(|run| run.head.is_some());
    while let Some(at) = first(&runs) {
        let Some(run) = runs.get_mut(at) else { break };
        let Some(mut entry) = run.step()? else { break };
        let mut spent = false;
        for run in &mut runs {
            while run.head.as_ref().is_some_and(|head| head.key == entry.key) {
                match run.step()? {
                    Some(other) if other.number > entry.number => entry = other,
                    _ => {}
                }
            }
            spent |= run.head.is_none();
        }
        if spent {
            runs.retain(|run| run.head.is_some());
        }
        if let Some(value) = entry.value
            && visit(Bytes::from(entry.key), Bytes::from(value)).is_break()
        {
            break;
        }
    }
    Ok(())
}

/// The run whose next entry comes first.
fn first(runs: &[Run<'_>]) -> Option<usize> {
    let mut heads = runs.iter().enumerate().filter_map(|(place, run)| Some((place, &run.head.as_ref()?.key)));
    let (mut first, mut greatest) = heads.next()?;
    for (place, key) in heads {
        if key > greatest {
            (first, greatest) = (place, key);
        }
    }
    Some(first)
}
