//! What a session does in one transaction.

use super::{Workload, table};
use crate::references::{PARENTS, child, parent};
use crate::rng::Rng;
use crate::workload::{ACCOUNTS, REGISTERS, Script, Step, encode_key, script};
use bytes::Bytes;
use checker::Key;
use node::{BeginOptions, Consistency, Isolation};

/// Lists: few, so that transactions meet.
pub const LISTS: std::ops::Range<Key> = 300..304;
/// The index of lists.
const LISTS_INDEX: [u8; 4] = [0, 0, 0, 9];
const IDLE_INDEX: [u8; 4] = [0, 0, 1, 0];

/// One step of a transaction.
#[derive(Clone, Debug)]
pub enum Deed {
    /// As of one node alone.
    Plain(Step),
    /// Ask all leaders for a snapshot, and go on at it.
    Negotiate,
    /// Read a list.
    List(Key),
    /// Append to a list.
    Append(Key),
    /// Look which version of the table there is.
    See,
    /// Write a row by the version that was seen.
    Row(u64),
    /// Make the next version of the table.
    Next,
    /// End the version before the one that was seen.
    End,
}

impl Deed {
    /// Whether it takes no lock and writes nothing.
    pub fn only_reads(&self) -> bool {
        match self {
            Deed::Plain(step) => {
                !matches!(step, Step::Lock(_) | Step::Put(_) | Step::Add(..) | Step::Parent(..) | Step::Refer(_))
            }
            Deed::Negotiate | Deed::List(_) | Deed::See => true,
            Deed::Append(_) | Deed::Row(_) | Deed::Next | Deed::End => false,
        }
    }
}

/// What a session will do.
#[derive(Clone, Debug)]
pub struct Task {
    /// Isolation and consistency.
    pub options: BeginOptions,
    /// How far in the past it reads, microseconds; 0: in the present.
    pub past_us: u64,
    /// In order.
    pub deeds: Vec<Deed>,
    /// Its history is one of lists.
    pub lists: bool,
}

/// The first keys of the ranges: they cut through registers, accounts and lists.
pub fn cuts() -> Vec<Bytes> {
    vec![
        Bytes::new(),
        encode_key(REGISTERS / 2),
        encode_key(ACCOUNTS.start + (ACCOUNTS.end - ACCOUNTS.start) / 2),
        list_key(LISTS.start + 2),
    ]
}

/// The first keys of ranges that nobody uses: behind all others.
pub fn idle(count: u64) -> impl Iterator<Item = Bytes> {
    (0..count).map(|n| Bytes::from([&IDLE_INDEX[..], &n.to_be_bytes()].concat()))
}

/// All keys that are ever written.
pub fn keys() -> Vec<Bytes> {
    let plain = (0..REGISTERS).chain(ACCOUNTS).map(encode_key);
    let references = (0..PARENTS).flat_map(|n| [parent(n), child(n)]);
    let of_table = (0..table::ROWS).map(table::row).chain([table::number()]);
    plain.chain(references).chain(of_table).chain(LISTS.map(list_key)).collect()
}

/// The part between two of the cuts that a key lies in.
pub fn part_of(key: &Bytes) -> usize {
    cuts().partition_point(|start| start <= key) - 1
}

/// A list's key as the database sees it.
pub fn list_key(key: Key) -> Bytes {
    Bytes::from([&LISTS_INDEX[..], &key.to_be_bytes()].concat())
}

/// A list as the database sees it, with one value more.
pub fn appended(list: &[u64], value: u64) -> Bytes {
    list.iter().chain([&value]).flat_map(|value| value.to_be_bytes()).collect()
}

/// The values of a list.
pub fn values(raw: &[u8]) -> Vec<u64> {
    raw.chunks_exact(8).filter_map(|chunk| chunk.try_into().ok()).map(u64::from_be_bytes).collect()
}

/// Fills registers and accounts.
pub fn fill() -> Task {
    let puts = (0..REGISTERS).chain(ACCOUNTS).map(|key| Deed::Plain(Step::Put(key)));
    let deeds = std::iter::once(Deed::Plain(Step::Statement)).chain(puts).chain([Deed::Plain(Step::Commit)]).collect();
    let options = BeginOptions { consistency: Consistency::Token, ..BeginOptions::default() };
    Task { options, past_us: 0, deeds, lists: false }
}

/// Draws one.
pub fn draw(workload: &Workload, rng: &mut Rng) -> Task {
    if workload.table_percent > 0 && rng.chance(workload.table_percent) {
        return of_table(rng);
    }
    let percent = rng.below(100);
    if percent < workload.lists_percent {
        return lists(rng);
    }
    let bank = percent < workload.lists_percent + workload.bank_percent;
    let mut drawn = script(rng);
    for _ in 0..20 {
        if is_bank(&drawn) == bank {
            break;
        }
        drawn = script(rng);
    }
    let Script { options, past_us, steps } = drawn;
    let share = workload.negotiated_percent;
    let negotiates = share > 0 && past_us > 0 && rng.chance(share);
    let first = negotiates.then_some(Deed::Negotiate);
    let deeds = first.into_iter().chain(steps.into_iter().map(Deed::Plain)).collect();
    // Beyond what leaders close, half the time.
    Task { options, past_us: 2 * past_us, deeds, lists: false }
}

fn is_bank(script: &Script) -> bool {
    script
        .steps
        .iter()
        .any(|step| matches!(step, Step::Add(..)) || matches!(step, Step::Scan(span, _) if *span == ACCOUNTS))
}

/// Reads and appends: always serializable and strict, so that the order respects real time across keys.
fn lists(rng: &mut Rng) -> Task {
    let (isolation, consistency) = (Isolation::Serializable, Consistency::Strict);
    let options = BeginOptions { isolation, consistency, ..BeginOptions::default() };
    let mut deeds = Vec::new();
    for _ in 0..rng.range(1, 4) {
        let key = rng.range(LISTS.start, LISTS.end);
        deeds.push(Deed::Plain(Step::Statement));
        deeds.push(if rng.chance(50) { Deed::List(key) } else { Deed::Append(key) });
        if rng.chance(30) {
            deeds.push(Deed::Plain(Step::Think(rng.below(5_000_000))));
        }
    }
    deeds.push(Deed::Plain(Step::Commit));
    Task { options, past_us: 0, deeds, lists: true }
}

/// A row, mostly; or a step of a change that goes on meanwhile. What was seen may be old by the time at which it is used.
fn of_table(rng: &mut Rng) -> Task {
    let isolation = [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];
    let consistency =
        [Consistency::Auto, Consistency::Strict, Consistency::Hybrid, Consistency::Token, Consistency::None];
    let options = BeginOptions {
        isolation: rng.pick(&isolation).unwrap_or_default(),
        consistency: rng.pick(&consistency).unwrap_or_default(),
        ..BeginOptions::default()
    };
    let mut deeds = vec![Deed::Plain(Step::Statement), Deed::See];
    if rng.chance(50) {
        deeds.push(Deed::Plain(Step::Think(rng.below(20_000_000))));
    }
    deeds.push(Deed::Plain(Step::Statement));
    deeds.push(match rng.below(10) {
        0 => Deed::Next,
        1..=2 => Deed::End,
        _ => Deed::Row(rng.below(table::ROWS)),
    });
    if rng.chance(30) {
        deeds.push(Deed::Plain(Step::Think(rng.below(20_000_000))));
    }
    deeds.push(Deed::Plain(Step::Commit));
    Task { options, past_us: 0, deeds, lists: false }
}

#[cfg(test)]
mod tests {
    use super::{appended, cuts, values};

    #[test]
    fn lists_are_read_as_they_were_appended() {
        let two = appended(&values(&appended(&[], 7)), 9);
        assert_eq!(values(&two), [7, 9]);
        assert!(cuts().is_sorted(), "ranges are in key order");
    }
}
