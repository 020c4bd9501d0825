//! What happened, written down for the judge.

use super::load::{LISTS, list_key, part_of, values};
use super::table::Table;
use crate::machine::{Engine, Failure};
use crate::workload::{ACCOUNTS, FIRST_BALANCE, REGISTERS, decode_value, encode_key};
use bytes::Bytes;
use checker::appends;
use checker::bank::Bank;
use checker::leases::Leases;
use checker::replicas::Replicas;
use checker::storage::{Stored, settle};
use checker::{Action, History, Key, Outcome, Promises, Txn, Verdict, shown};
use clock::Timestamp;
use node::cluster::{Member, NodeId};
use protocol::txn::RangeId;
use std::collections::BTreeMap;
use store::Version;

/// A transaction that has ended.
pub struct Done {
    /// What it did to registers and accounts.
    pub record: Txn,
    /// What it did to lists, if it is one of lists.
    pub lists: Option<Vec<appends::Step>>,
}

/// What happened.
pub struct Chronicle {
    bounds_hold: bool,
    leases: Leases,
    replicas: Replicas,
    history: History,
    lists: Vec<appends::Txn>,
    /// The latest beginning of a transaction that wrote to a part of the keys and was acknowledged.
    served: BTreeMap<usize, u64>,
    /// Identities and timestamps of what was stored at some time: it may be forgotten by the end.
    earlier: BTreeMap<u64, u64>,
    /// What became of the table.
    pub table: Table,
    /// What was found wrong meanwhile.
    pub verdict: Verdict,
}

/// What was judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// What was found wrong.
    pub verdict: Verdict,
    /// Transactions that committed, and all.
    pub committed: usize,
    /// See above.
    pub begun: usize,
    /// Unknown outcomes that were committed after all.
    pub unknown: usize,
    /// Where bounds are broken, what became of recency: all that would be wrong if they held.
    pub recency: Verdict,
}

impl Chronicle {
    /// Nothing has happened.
    pub fn new(bounds_hold: bool) -> Self {
        let (leases, replicas, history, lists, served, earlier, table, verdict) = Default::default();
        Chronicle { bounds_hold, leases, replicas, history, lists, served, earlier, table, verdict }
    }

    /// Remembers what a node stores now: it is about to forget.
    pub fn remember(&mut self, member: &Member<Engine>) -> Result<(), Failure> {
        for key in (0..REGISTERS).chain(ACCOUNTS).map(encode_key) {
            let found = member.versions().history(&key).map_err(|e| Failure(format!("{key:?} cannot be read: {e}")))?;
            for version in found {
                if let Some(value) = version.value.as_deref().and_then(decode_value) {
                    self.earlier.insert(value.id, version.ts.as_u64());
                }
            }
        }
        Ok(())
    }

    /// A transaction has ended.
    pub fn done(&mut self, Done { record, lists }: Done) {
        if record.outcome == Outcome::Committed && record.ended != u64::MAX {
            let written = record.ops.iter().filter_map(|op| match op.action {
                Action::Write { key, .. } => Some(encode_key(key)),
                _ => None,
            });
            let appended = lists.iter().flatten().filter_map(|step| match step {
                appends::Step::Append(key, _) => Some(list_key(*key)),
                appends::Step::Read(..) => None,
            });
            let all: Vec<Bytes> = written.chain(appended).collect();
            for key in &all {
                self.served
                    .entry(part_of(key))
                    .and_modify(|last| *last = record.began.max(*last))
                    .or_insert(record.began);
            }
            if self.bounds_hold && !all.is_empty() {
                let at = Timestamp::from_u64(record.position).physical_us();
                shown::judge("a commit", at, record.ended / 1000, &mut self.verdict);
            }
        }
        match lists {
            None => self.history.txns.push(record),
            Some(steps) => {
                let Txn { id, began, ended, outcome, .. } = record;
                self.lists.push(appends::Txn { id, began, ended, outcome, steps });
            }
        }
    }

    /// A look at what a node leads.
    pub fn look(&mut self, member: &Member<Engine>) {
        let node = u64::from(member.node().0);
        for range in member.ranges() {
            let Some(status) = member.status(range) else { continue };
            if let Some((start, end)) = status.lease {
                let lease = (start.as_u64(), end.as_u64());
                self.leases.note((range.0, status.term, node), lease, 0, &mut self.verdict);
            }
        }
    }

    /// A leader hands over.
    pub fn released(&mut self, range: RangeId, term: u64) {
        self.leases.released(range.0, term);
    }

    /// The checksum of a replica.
    pub fn digest(&mut self, range: RangeId, node: NodeId, applied: u64, digest: u64) {
        self.replicas.note(range.0, applied, u64::from(node.0), digest, &mut self.verdict);
    }

    /// Whether a write to a part of the keys was acknowledged whose transaction began since then.
    pub fn served_since(&self, part: usize, since_ns: u64) -> bool {
        self.served.get(&part).is_some_and(|began| *began >= since_ns)
    }

    /// Judges all of it, against what is stored at the end, and can be read from `collected` on.
    pub fn judge(
        mut self,
        history: impl Fn(&Bytes) -> Result<Vec<Version>, Failure>,
        collected: impl Fn(&Bytes) -> Timestamp,
    ) -> Result<Judged, Failure> {
        self.table.see(&history)?;
        if let Some(why) = self.table.broken() {
            return Err(Failure(why));
        }
        let mut stored = Stored { earlier: std::mem::take(&mut self.earlier), ..Stored::default() };
        for key in (0..REGISTERS).chain(ACCOUNTS) {
            let chain = history(&encode_key(key))?.into_iter().map(|version| {
                (version.ts.as_u64(), version.value.as_deref().and_then(decode_value).map_or(0, |value| value.id))
            });
            stored.versions.insert(key, chain.collect());
            stored.collected_apart.insert(key, collected(&encode_key(key)).as_u64());
        }
        let mut last: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
        for key in LISTS {
            let newest = history(&list_key(key))?.into_iter().max_by_key(|version| version.ts);
            last.insert(key, newest.and_then(|v| v.value).map(|raw| values(&raw)).unwrap_or_default());
        }
        let mut verdict = std::mem::take(&mut self.verdict);
        self.history.txns.sort_by_key(|txn| txn.id);
        let unknown = |txns: &[Txn]| txns.iter().filter(|txn| txn.outcome == Outcome::Unknown).count();
        let unknown = unknown(&self.history.txns);
        settle(&mut self.history, &stored, &mut verdict);
        let total = FIRST_BALANCE * (ACCOUNTS.end - ACCOUNTS.start).cast_signed();
        let bank = Some(Bank { accounts: ACCOUNTS, total });
        let judge = |bounds_hold: bool| {
            let mut found = checker::judge(&self.history, &Promises { bounds_hold, bank: bank.clone() }).found;
            let lists = appends::judge(&self.lists, &last, appends::Promises { real_time: bounds_hold });
            found.extend(lists.found);
            found
        };
        let found = judge(self.bounds_hold);
        let mut recency = Verdict::default();
        if !self.bounds_hold {
            recency.found = judge(true);
            recency.found.retain(|case| !found.contains(case));
        }
        verdict.found.extend(found);
        let outcomes = self.history.txns.iter().map(|txn| txn.outcome).chain(self.lists.iter().map(|txn| txn.outcome));
        let committed = outcomes.filter(|outcome| *outcome == Outcome::Committed).count();
        let begun = self.history.txns.len() + self.lists.len();
        Ok(Judged { verdict, committed, begun, unknown, recency })
    }
}
