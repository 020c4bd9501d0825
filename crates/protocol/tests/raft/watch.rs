//! What must hold, looked at after every step. Knows nothing of how it is brought about.

use super::app::App;
use clock::Timestamp;
use protocol::log::raft::{Body, GroupId, LogEntry, Proposed, Replicas, Role, StoreId};
use std::collections::BTreeMap;

/// A committed entry, as the first store that handed it out had it.
#[derive(Debug, PartialEq)]
struct Fact {
    entry: LogEntry,
    chain: u64,
}

/// What a leader was granted, and what it served.
#[derive(Debug)]
struct Grant {
    on: StoreId,
    start: Timestamp,
    end: Timestamp,
    served: Timestamp,
    stamped: (Timestamp, Timestamp),
    handed_over: bool,
}

#[derive(Default)]
pub struct Checks {
    leaders: BTreeMap<(GroupId, u64), StoreId>,
    facts: BTreeMap<GroupId, BTreeMap<u64, Fact>>,
    grants: BTreeMap<GroupId, BTreeMap<u64, Grant>>,
    closed: BTreeMap<GroupId, BTreeMap<u64, Timestamp>>,
    pub acknowledged: u64,
    pub leases: u64,
    pub changes: u64,
    pub handovers: u64,
    pub snapshots: u64,
    pub absent: u64,
    pub asleep: u64,
}

pub type Verdict = Result<(), String>;

macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(format!($($why)+));
        }
    };
}

impl Checks {
    pub fn add(&mut self, of: &Checks) {
        self.leases += of.leases;
        self.acknowledged += of.acknowledged;
        self.changes += of.changes;
        self.handovers += of.handovers;
        self.snapshots += of.snapshots;
        self.absent += of.absent;
        self.asleep += of.asleep;
    }

    pub fn counts(&self) -> String {
        format!(
            "{} leases, {} commands, {} changes of voters, {} handovers, {} snapshots, {} absent, {} asleep",
            self.leases, self.acknowledged, self.changes, self.handovers, self.snapshots, self.absent, self.asleep
        )
    }

    /// One leader per term; and its log has everything committed.
    pub fn leads(&mut self, on: StoreId, group: GroupId, term: u64, replicas: &Replicas) -> Verdict {
        let first = *self.leaders.entry((group, term)).or_insert(on);
        ensure!(first == on, "{group}: {first} and {on} both lead in term {term}");
        let status = replicas.status(group).expect("it leads");
        let log: BTreeMap<u64, u64> = replicas.entries(group).into_iter().map(|(i, t, _)| (i, t)).collect();
        for (index, fact) in self.facts.entry(group).or_default().range(status.truncated + 1..) {
            // A fact of a later term than this leader's is not its business: it is deposed.
            if fact.entry.term <= term && self.leaders.range((group, 0)..).all(|((g, t), _)| *g != group || *t <= term)
            {
                ensure!(
                    log.get(index) == Some(&fact.entry.term),
                    "{group}: {on} leads in {term} without the committed {index}"
                );
            }
        }
        Ok(())
    }

    /// Committed entries never change; timestamps rise; equal prefixes make equal states.
    pub fn applied(&mut self, on: StoreId, group: GroupId, entry: &LogEntry, app: &App) -> Verdict {
        let facts = self.facts.entry(group).or_default();
        match facts.get(&entry.index) {
            Some(fact) => {
                ensure!(
                    fact.entry == *entry,
                    "{group}: {} changed on {on}: {:?} to {entry:?}",
                    entry.index,
                    fact.entry
                );
                ensure!(fact.chain == app.chain, "{group}: {on} has another state at {}", entry.index);
            }
            None => {
                let before = facts.range(..entry.index).rev().find_map(|(_, fact)| fact.entry.at);
                ensure!(entry.at.is_none() || entry.at > before, "{group}: {entry:?} after {before:?}");
                let after = facts.range(entry.index..).find_map(|(_, fact)| fact.entry.at);
                ensure!(
                    entry.at.is_none() || after.is_none() || entry.at < after,
                    "{group}: {entry:?} before {after:?}"
                );
                facts.insert(entry.index, Fact { entry: entry.clone(), chain: app.chain });
                if let Some(at) = entry.at {
                    let closed = self.closed.entry(group).or_default().range(..entry.index).map(|(_, c)| *c).max();
                    ensure!(closed.is_none_or(|c| c < at), "{group}: {entry:?} below the closed {closed:?}");
                }
                if matches!(entry.body, Body::Command(_)) {
                    self.acknowledged += 1;
                }
                if matches!(entry.body, Body::Leave { .. }) {
                    self.changes += 1;
                }
            }
        }
        Ok(())
    }

    /// A store took over a snapshot.
    pub fn installed(&mut self, on: StoreId, group: GroupId, app: &App) -> Verdict {
        self.snapshots += 1;
        let fact = self.facts.entry(group).or_default().get(&app.applied);
        ensure!(fact.is_none_or(|fact| fact.chain == app.chain), "{group}: a foreign snapshot on {on}");
        Ok(())
    }

    pub fn closed(&mut self, group: GroupId, at: Timestamp, index: u64) -> Verdict {
        let later = self.facts.entry(group).or_default().range(index + 1..).find_map(|(_, fact)| fact.entry.at);
        ensure!(later.is_none_or(|later| later > at), "{group}: closed {at} at {index}, but there is {later:?}");
        let known = self.closed.entry(group).or_default().entry(index).or_default();
        *known = at.max(*known);
        Ok(())
    }

    pub fn hands_over(&mut self, group: GroupId, term: u64) {
        if let Some(grant) = self.grants.entry(group).or_default().get_mut(&term) {
            grant.handed_over = true;
            self.handovers += 1;
        }
    }

    /// A leader has a lease, and serves a read at `at`.
    pub fn serves(
        &mut self,
        on: StoreId,
        group: GroupId,
        term: u64,
        (start, end): (Timestamp, Timestamp),
        at: Timestamp,
    ) -> Verdict {
        let grants = self.grants.entry(group).or_default();
        let grant = grants.entry(term).or_insert_with(|| {
            self.leases += 1;
            let stamped = (Timestamp::MAX, Timestamp::MIN);
            Grant { on, start, end, served: start, stamped, handed_over: false }
        });
        ensure!(
            grant.on == on && grant.start == start,
            "{group}: the lease of {term} changed: {grant:?}, {start} on {on}"
        );
        grant.end = grant.end.max(end);
        if at > start && at <= end {
            grant.served = grant.served.max(at);
        }
        self.disjoint(group, term)
    }

    pub fn stamped(&mut self, group: GroupId, proposed: &Proposed) -> Verdict {
        let grants = self.grants.entry(group).or_default();
        let Some(grant) = grants.get_mut(&proposed.term) else {
            return Err(format!("{group}: a timestamp without a lease: {proposed:?}"));
        };
        ensure!(proposed.at > grant.start && proposed.at <= grant.end, "{group}: {proposed:?} outside of {grant:?}");
        grant.stamped = (grant.stamped.0.min(proposed.at), grant.stamped.1.max(proposed.at));
        self.disjoint(group, proposed.term)
    }

    fn disjoint(&self, group: GroupId, term: u64) -> Verdict {
        let grants = &self.grants[&group];
        let this = &grants[&term];
        for (other, that) in grants.iter().filter(|(other, _)| **other != term) {
            let (early, late) = if *other < term { (that, this) } else { (this, that) };
            let used = early.served.max(early.stamped.1);
            ensure!(used <= late.start, "{group}: served in two terms: {early:?}, {late:?}");
            ensure!(early.handed_over || early.end <= late.start, "{group}: granted in two terms: {early:?}, {late:?}");
        }
        Ok(())
    }

    /// The greatest committed place of a group.
    pub fn committed(&self, group: GroupId) -> u64 {
        self.facts.get(&group).and_then(|facts| facts.keys().next_back()).copied().unwrap_or(0)
    }

    /// Every proposal that was acknowledged, or said to be absent, is.
    pub fn is_absent(&mut self, group: GroupId, term: u64, from: u64) -> Verdict {
        self.absent += 1;
        let there = self.facts.entry(group).or_default().range(from..).find(|(_, fact)| fact.entry.term == term);
        ensure!(there.is_none(), "{group}: said to be absent: {there:?}");
        Ok(())
    }
}

/// The role, for traces.
pub fn short(role: Role) -> &'static str {
    match role {
        Role::Follower => "follower",
        Role::Candidate => "candidate",
        Role::Leader => "leader",
    }
}
