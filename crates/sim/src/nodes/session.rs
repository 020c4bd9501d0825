//! A session at a machine: one transaction after another, one operation at a time, and what it saw.

use super::chronicle::{Chronicle, Done};
use super::load::{Deed, Task, appended, draw, fill, list_key, values};
use super::table::{self, Change};
use super::{Nodes, Workload};
use crate::cluster::Place;
use crate::machine::Engine;
use crate::references;
use crate::rng::Rng;
use crate::workload::{ACCOUNTS, FIRST_BALANCE, Step, decode_key, decode_value, encode_key, encode_value};
use bytes::Bytes;
use checker::appends;
use checker::{Action, Isolation, Key, Op, Outcome, Recency, Txn, Value};
use clock::Timestamp;
use node::cluster::{Member, Transaction};
use node::{BeginOptions, Consistency, LockMode, TxnError, WhenLocked};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Poll, Waker};
use store::Span;

/// An operation that waits longer is given up, nanoseconds; a commit only when it is certain, and the clock says not when it is past.
const PATIENCE_NS: u64 = 3_000_000_000;
/// A transaction that is still at its client's first message begins anew by itself so often, as a statement of SQL does, and is given up then.
const ANEW_MAX: u32 = 5;
/// A session whose node is not ready, or not filled yet, looks again so much later, nanoseconds.
const AGAIN_NS: u64 = 50_000_000;

/// What it needs for one call.
pub struct Turn<'t, 'w> {
    pub member: &'t Arc<Member<Engine>>,
    pub place: &'t mut Place<'w, ()>,
    pub waker: &'t Waker,
    /// It is the first of its machine: it fills what is empty.
    pub first: bool,
}

struct Running {
    txn: Transaction<Engine>,
    deeds: VecDeque<Deed>,
    /// All that it is to do, and how many messages of its client it has come to so far.
    all: VecDeque<Deed>,
    messages: u32,
    /// How often it began anew.
    anew: u32,
    record: Txn,
    lists: Option<Vec<appends::Step>>,
    read: BTreeMap<Key, Value>,
    statement: u64,
    rows: Vec<(Key, Value)>,
    rest: Option<Span>,
    committing: bool,
    waits_since: Option<u64>,
    fills: bool,
    /// The version of the table that was seen, and the snapshot at which it was.
    seen: (u64, Timestamp),
    change: Option<Change>,
    /// The snapshot at which the read that is waited for began, and the restarts before it.
    asked_at: Option<u64>,
    restarts: u64,
    /// How old a negotiated snapshot may be, microseconds, and how it began.
    past_us: u64,
    options: BeginOptions,
}

/// A session.
pub struct Session {
    number: u32,
    rng: Rng,
    token: Timestamp,
    /// It was told at once that a range is silent: it begins nothing before this time, whoever wakes it.
    rests_until_ns: u64,
    running: Option<Running>,
}

impl Session {
    /// Session `number`.
    pub fn new(number: u32, seed: u64) -> Self {
        let rng = Rng::new(seed.wrapping_mul(1_000_003) ^ u64::from(number));
        Session { number, rng, token: Timestamp::MIN, rests_until_ns: 0, running: None }
    }

    /// Whether a transaction runs.
    pub fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    /// What it is at, for a report.
    pub fn describe(&self) -> String {
        let running = self.running.as_ref();
        let at = running.map(|r| (r.record.id, r.deeds.front(), r.record.isolation, r.record.recency));
        format!("session {} is at {at:?}", self.number)
    }

    /// Its node died.
    pub fn disconnected(&mut self, chronicle: &mut Chronicle, _true_ns: u64) {
        if let Some(running) = self.running.take() {
            let outcome = if running.committing { Outcome::Unknown } else { Outcome::Aborted };
            self.finish(chronicle, running, outcome, 0, u64::MAX);
        }
    }

    /// Goes on as far as it can; it is to be called again in so many nanoseconds, if it is not woken before.
    pub fn turn(&mut self, system: &mut Nodes, turn: &mut Turn<'_, '_>) -> u64 {
        if self.running.is_none() {
            if let Some(left_ns) = self.rests_until_ns.checked_sub(turn.place.true_ns).filter(|left_ns| *left_ns > 0) {
                return left_ns;
            }
            let fills = !system.loaded;
            let is_filler = (turn.place.machine, turn.first) == (system.filler, true);
            if system.draining || fills && !(is_filler && turn.place.true_ns >= system.fill_from_ns) {
                return AGAIN_NS;
            }
            let task = if fills { fill() } else { draw(&system.workload, &mut self.rng) };
            if !self.begin(system, turn, &task, fills) {
                system.next_filler(fills, turn.place.true_ns);
                return AGAIN_NS;
            }
        }
        loop {
            let Some(mut running) = self.running.take() else { return self.think_ns(&system.workload) };
            let Some(deed) = running.deeds.front().cloned() else {
                self.finish(&mut system.chronicle, running, Outcome::Aborted, 0, turn.place.true_ns);
                continue;
            };
            if let Deed::Plain(Step::Think(ns)) = deed {
                // Its client has an answer, and thinks about it.
                running.messages += 1;
                running.deeds.pop_front();
                self.running = Some(running);
                return ns + 1;
            }
            let done = running.deed(&deed, system, turn);
            let waits = done.is_pending();
            match done {
                Poll::Pending => {
                    let since = *running.waits_since.get_or_insert(turn.place.true_ns);
                    if !running.committing && turn.place.true_ns - since > PATIENCE_NS {
                        turn.place.probes.hit("a session lost its patience");
                        running.txn.rollback();
                        self.finish(&mut system.chronicle, running, Outcome::Aborted, 0, turn.place.true_ns);
                        continue;
                    }
                    // A commit that is certain, and that nobody knows when to show.
                    if running.committing
                        && turn.place.true_ns - since > PATIENCE_NS
                        && let Some(error) = running.txn.give_up_commit(&turn.place.now)
                    {
                        self.failed(system, turn, running, &error);
                        continue;
                    }
                    self.running = Some(running);
                    // It looks at its own watch now and then.
                    return PATIENCE_NS / 4;
                }
                Poll::Ready(Ok(None)) => {
                    running.deeds.pop_front();
                    self.running = Some(running);
                }
                Poll::Ready(Ok(Some(at))) => {
                    system.loaded |= running.fills;
                    let lines = (running.record.id, running.record.isolation, running.record.recency);
                    turn.place.note(format!("session {}: {lines:?} committed at {at}", self.number));
                    for op in &running.record.ops {
                        if let Action::Write { key, .. } = op.action {
                            system.acknowledged.entry(key).or_default().push((at.as_u64(), turn.place.true_ns));
                        }
                    }
                    self.finish(&mut system.chronicle, running, Outcome::Committed, at.as_u64(), turn.place.true_ns);
                }
                Poll::Ready(Err(error)) => match running.begins_anew(turn, &error) {
                    true => self.running = Some(running),
                    false => self.failed(system, turn, running, &error),
                },
            }
            if !waits && let Some(running) = &mut self.running {
                running.waits_since = None;
            }
        }
    }

    fn think_ns(&mut self, workload: &Workload) -> u64 {
        self.rng.below(workload.think_ms * 1_000_000 + 1) + 10_000
    }

    fn begin(&mut self, system: &mut Nodes, turn: &mut Turn<'_, '_>, task: &Task, fills: bool) -> bool {
        let now = turn.place.now;
        let mut options = BeginOptions { token: self.token, ..task.options.clone() };
        let choice = system.choice.filter(|_| !fills && !task.lists);
        if let Some(choice) = choice {
            (options.consistency, options.uncertainty) = (choice.consistency, choice.uncertainty);
        }
        let stale = choice.is_some_and(|choice| choice.stale);
        let only_reads = task.deeds.iter().all(Deed::only_reads);
        let negotiates = matches!(task.deeds.first(), Some(Deed::Negotiate));
        if negotiates {
            // What it begins as only asks.
            options.consistency = Consistency::None;
        } else if task.past_us > 0 {
            let at = match turn.member.in_doubt(&now) {
                true => turn.member.ago(&now, task.past_us),
                false => Timestamp::new(now.interval.earliest().physical_us().saturating_sub(task.past_us), 0),
            };
            options.as_of = Some(at);
        } else if stale && only_reads {
            options.as_of = Some(turn.member.freshest_alone(&now, self.token));
        }
        let txn = match Transaction::begin(turn.member, &now, &options) {
            Ok(txn) => txn,
            Err(TxnError::ClockUnavailable(_)) => {
                turn.place.probes.hit("refused for the clock");
                return false;
            }
            Err(_) => return false,
        };
        system.last_id += 1;
        let record = Txn {
            id: system.last_id,
            session: self.number,
            isolation: match options.isolation {
                node::Isolation::Serializable => Isolation::Serializable,
                node::Isolation::Snapshot => Isolation::Snapshot,
                node::Isolation::ReadCommitted => Isolation::ReadCommitted,
            },
            recency: match choice {
                _ if task.past_us > 0 => Recency::Any,
                Some(choice) if only_reads || !stale => choice.judged_as,
                Some(choice) => recency(choice.consistency),
                None => recency(txn.stats().consistency),
            },
            began: turn.place.true_ns,
            ended: u64::MAX,
            outcome: Outcome::Unknown,
            position: 0,
            ops: Vec::new(),
        };
        let (read, rows, rest) = Default::default();
        self.running = Some(Running {
            txn,
            deeds: task.deeds.iter().cloned().collect(),
            all: task.deeds.iter().cloned().collect(),
            messages: 0,
            anew: 0,
            record,
            lists: task.lists.then(Vec::new),
            read,
            statement: turn.place.true_ns,
            rows,
            rest,
            committing: false,
            waits_since: None,
            fills,
            seen: (0, Timestamp::MIN),
            change: None,
            asked_at: None,
            restarts: 0,
            past_us: task.past_us,
            options,
        });
        true
    }

    fn failed(&mut self, system: &mut Nodes, turn: &mut Turn<'_, '_>, running: Running, error: &TxnError) {
        turn.place.note(format!("session {}: {} failed: {error}", self.number, running.record.id));
        let (outcome, at, probe) = match error {
            // It is told that it has committed, and that nobody may rely on that yet.
            TxnError::Unacknowledged { at, .. } => (Outcome::Committed, at.as_u64(), "a commit was not acknowledged"),
            TxnError::CommitUnknown => (Outcome::Unknown, 0, "a commit's outcome was unknown"),
            TxnError::Storage(_) if running.committing => (Outcome::Unknown, 0, "a commit met a failed store"),
            TxnError::Unavailable { .. } => (Outcome::Aborted, 0, "a range gave no sign of life"),
            TxnError::Restart { .. } => (Outcome::Aborted, 0, "a transaction met another"),
            _ => (Outcome::Aborted, 0, "a transaction failed otherwise"),
        };
        turn.place.probes.hit(probe);
        if matches!(error, TxnError::Unavailable { .. }) {
            self.rests_until_ns = turn.place.true_ns + AGAIN_NS;
        }
        system.loaded |= running.fills && outcome == Outcome::Committed;
        system.next_filler(running.fills, turn.place.true_ns);
        let ended = if outcome == Outcome::Aborted { turn.place.true_ns } else { u64::MAX };
        self.finish(&mut system.chronicle, running, outcome, at, ended);
    }

    fn finish(&mut self, chronicle: &mut Chronicle, running: Running, outcome: Outcome, position: u64, ended: u64) {
        let Running { mut record, lists, change, .. } = running;
        if let Some(change) = change.filter(|_| outcome == Outcome::Committed) {
            chronicle.table.note(change, Timestamp::from_u64(position));
        }
        if outcome == Outcome::Committed && ended != u64::MAX {
            // What `Any` reads moves no token; what it writes does.
            let counts = record.recency != Recency::Any || record.writes() || lists.is_some();
            if counts {
                self.token = self.token.max(Timestamp::from_u64(position));
            }
        }
        (record.outcome, record.position, record.ended) = (outcome, position, ended);
        chronicle.done(Done { record, lists });
    }
}

fn recency(mode: Consistency) -> Recency {
    match mode {
        Consistency::Strict => Recency::Strict,
        Consistency::Hybrid | Consistency::Auto => Recency::Hybrid,
        Consistency::Token => Recency::Token,
        Consistency::None => Recency::Any,
    }
}

type Polled = Poll<Result<Option<Timestamp>, TxnError>>;

impl Running {
    /// What has met an uncertain version that it cannot move past begins again without word to its client, where that has sent one message so far: it is the same transaction, and
    /// sees what was acknowledged before that (decision 213).
    fn begins_anew(&mut self, turn: &mut Turn<'_, '_>, error: &TxnError) -> bool {
        let Some(kept) = self.txn.kept_uncertainty() else { return false };
        let may = self.messages <= 1 && self.anew < ANEW_MAX && self.past_us == 0;
        if !may || !matches!(error, TxnError::Restart { .. }) {
            return false;
        }
        let options = BeginOptions { kept: Some(kept), ..self.options.clone() };
        let Ok(txn) = Transaction::begin(turn.member, &turn.place.now, &options) else { return false };
        turn.place.probes.hit("a transaction began anew by itself");
        (self.txn, self.deeds, self.messages, self.anew) = (txn, self.all.clone(), 0, self.anew + 1);
        self.record.ops.clear();
        self.lists = self.lists.take().map(|_| Vec::new());
        (self.read, self.rows, self.rest) = Default::default();
        (self.change, self.asked_at, self.restarts, self.waits_since) = (None, None, 0, None);
        (self.committing, self.seen) = (false, (0, Timestamp::MIN));
        true
    }

    /// One step; `Some` when the transaction committed.
    fn deed(&mut self, deed: &Deed, system: &mut Nodes, turn: &mut Turn<'_, '_>) -> Polled {
        // What writes before it has read is certified from its snapshot on.
        if !self.committing && !matches!(deed, Deed::Negotiate) {
            match self.txn.place(&turn.place.now, turn.waker) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) => {}
            }
        }
        match deed {
            Deed::Plain(step) => self.step(step, system, turn),
            Deed::Negotiate => self.negotiate(turn),
            Deed::See => {
                let Poll::Ready(found) = self.txn.observe(&turn.place.now, &table::number(), turn.waker) else {
                    return Poll::Pending;
                };
                Poll::Ready(found.map(|raw| {
                    self.seen = (table::decode(raw.as_deref()), self.txn.snapshot());
                    None
                }))
            }
            Deed::Row(n) => {
                let (version, since) = self.seen;
                match self.txn.rely(&turn.place.now, &table::token(version), since, true, turn.waker) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                    Poll::Ready(Ok(())) => {
                        self.change = Some(Change::Row(version));
                        Poll::Ready(self.txn.put(table::row(*n), table::encode(version)).map(|()| None))
                    }
                }
            }
            Deed::Next => {
                let Poll::Ready(found) = self.txn.get(&turn.place.now, &table::number(), true, turn.waker) else {
                    return Poll::Pending;
                };
                let next = |raw: Option<Bytes>| table::encode(table::decode(raw.as_deref()) + 1);
                Poll::Ready(found.and_then(|raw| self.txn.put(table::number(), next(raw))).map(|()| None))
            }
            Deed::End => {
                let Some(before) = self.seen.0.checked_sub(1) else { return self.give_up() };
                turn.place.probes.hit("a version of a table ended");
                self.change = Some(Change::End(before));
                Poll::Ready(self.txn.overwrite(table::token(before), None).map(|()| None))
            }
            Deed::List(key) => self.list(*key, turn).map(|found| found.map(|_| None)),
            Deed::Append(key) => {
                let Poll::Ready(found) = self.list(*key, turn) else { return Poll::Pending };
                system.last_id += 1;
                let value = system.last_id;
                let put = |list: Vec<u64>| self.txn.put(list_key(*key), appended(&list, value));
                Poll::Ready(found.and_then(put).map(|()| {
                    self.lists.get_or_insert_default().push(appends::Step::Append(*key, value));
                    None
                }))
            }
        }
    }

    /// All leaders are asked at once for the whole of what anybody reads.
    fn negotiate(&mut self, turn: &mut Turn<'_, '_>) -> Polled {
        let now = turn.place.now;
        let ago = match turn.member.in_doubt(&now) {
            true => turn.member.ago(&now, self.past_us),
            false => Timestamp::new(now.interval.earliest().physical_us().saturating_sub(self.past_us), 0),
        };
        let least = ago.max(self.options.token);
        let at = match self.txn.negotiate(&now, &[Bytes::new()..Bytes::new()], least, turn.waker) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Ready(Ok(at)) => at,
        };
        if at < least {
            turn.place.probes.hit("a negotiated snapshot was too old");
            return self.give_up();
        }
        turn.place.probes.hit("a snapshot was negotiated");
        let options = BeginOptions { as_of: Some(at), ..self.options.clone() };
        Poll::Ready(Transaction::begin(turn.member, &now, &options).map(|txn| {
            self.txn = txn;
            None
        }))
    }

    fn list(&mut self, key: Key, turn: &mut Turn<'_, '_>) -> Poll<Result<Vec<u64>, TxnError>> {
        let Poll::Ready(found) = self.txn.get(&turn.place.now, &list_key(key), false, turn.waker) else {
            return Poll::Pending;
        };
        Poll::Ready(found.map(|raw| {
            let list = raw.as_deref().map(values).unwrap_or_default();
            self.lists.get_or_insert_default().push(appends::Step::Read(key, list.clone()));
            list
        }))
    }

    fn step(&mut self, step: &Step, system: &mut Nodes, turn: &mut Turn<'_, '_>) -> Polled {
        let (now, waker) = (turn.place.now, turn.waker);
        match step {
            Step::Statement => {
                self.messages += 1;
                let repeats = self.anew > 0 && self.messages == 1;
                if !repeats {
                    self.statement = turn.place.true_ns;
                }
                let begun = if repeats { self.txn.repeat_statement(&now) } else { self.txn.begin_statement(&now) };
                // `auto` may have settled for less since the transaction began.
                if self.record.recency == Recency::Strict && system.choice.is_none() {
                    self.record.recency = recency(self.txn.stats().consistency);
                }
                Poll::Ready(begun.map(|()| None))
            }
            Step::Lock(key) => {
                let locked = self.txn.lock(&now, &encode_key(*key), LockMode::Update, WhenLocked::Wait, waker);
                locked.map(|done| done.map(|_| None))
            }
            Step::Get(key) => self.get(*key, system, turn),
            Step::Scan(span, reverse) => self.scan(span.start, span.end, *reverse, turn),
            Step::Put(key) => {
                let amount = if ACCOUNTS.contains(key) { FIRST_BALANCE } else { 0 };
                system.last_id += 1;
                let value = Value { id: system.last_id, amount };
                Poll::Ready(self.put(*key, value).map(|()| None))
            }
            Step::Add(key, change) => {
                let Some(old) = self.read.get(key).copied() else { return self.give_up() };
                system.last_id += 1;
                let value = Value { id: system.last_id, amount: old.amount + change };
                Poll::Ready(self.put(*key, value).map(|()| None))
            }
            Step::Parent(references::KEPT, false) => {
                match self.txn.observe(&now, &references::child(references::KEPT), waker) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(Ok(Some(_))) => {
                        Poll::Ready(self.txn.delete(references::child(references::KEPT)).map(|()| None))
                    }
                    Poll::Ready(Ok(None)) => {
                        let (parent, looked) = (references::parent(references::KEPT), self.txn.snapshot());
                        let done = if self.txn.unreferred(&parent, looked) { self.txn.delete(parent) } else { Ok(()) };
                        Poll::Ready(done.map(|()| None))
                    }
                    Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
                }
            }
            Step::Parent(n, there) => {
                let key = references::parent(*n);
                let done = if *there { self.txn.put(key.clone(), key) } else { self.txn.delete(key) };
                Poll::Ready(done.map(|()| None))
            }
            Step::Refer(n) => match self.txn.present(&now, &references::parent(*n), waker) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok(true)) => {
                    turn.place.probes.hit("reference to a row");
                    let key = references::child(*n);
                    Poll::Ready(self.txn.put(key.clone(), key).map(|()| None))
                }
                Poll::Ready(found) => Poll::Ready(found.map(|_| None)),
            },
            Step::Think(_) => Poll::Ready(Ok(None)),
            Step::Rollback => self.give_up(),
            Step::Commit => {
                self.committing = self.txn.has_writes() || self.committing;
                self.txn.commit(&now, waker).map(|done| done.map(Some))
            }
        }
    }

    /// Takes all back: it was to, or an account is not there. (A snapshot by a clock that is behind may lie before all was filled.)
    fn give_up(&mut self) -> Polled {
        self.txn.rollback();
        self.deeds.clear();
        self.deeds.push_back(Deed::Plain(Step::Rollback));
        Poll::Ready(Ok(None))
    }

    fn note(&mut self, action: Action) {
        self.record.ops.push(Op { began: self.statement, action });
    }

    fn wrote(&self, wanted: Key) -> bool {
        self.record.ops.iter().any(|op| matches!(op.action, Action::Write { key, .. } if key == wanted))
    }

    fn get(&mut self, key: Key, system: &Nodes, turn: &mut Turn<'_, '_>) -> Polled {
        let snapshot = *self.asked_at.get_or_insert(self.txn.snapshot().as_u64());
        let Poll::Ready(result) = self.txn.get(&turn.place.now, &encode_key(key), false, turn.waker) else {
            return Poll::Pending;
        };
        self.asked_at = None;
        if self.txn.stats().uncertainty_restarts > self.restarts {
            self.restarts = self.txn.stats().uncertainty_restarts;
            // 000 section 2.5: necessary where the snapshot missed what was acknowledged before.
            let now = self.txn.snapshot().as_u64();
            let missed = |&(at, ended): &(u64, u64)| at > snapshot && at <= now && ended < self.record.began;
            let was_necessary = system.acknowledged.get(&key).is_some_and(|known| known.iter().any(missed));
            turn.place.probes.hit(match was_necessary {
                true => "an uncertainty restart was necessary",
                false => "an uncertainty restart was not necessary",
            });
        }
        Poll::Ready(result.map(|found| {
            let found = found.map(|raw| decode_value(&raw).unwrap_or(Value { id: u64::MAX, amount: 0 }));
            let snapshot = (!self.wrote(key)).then(|| self.txn.snapshot().as_u64());
            if let Some(value) = found {
                self.read.insert(key, value);
            }
            self.note(Action::Read { key, snapshot, found });
            None
        }))
    }

    fn scan(&mut self, from: Key, to: Key, reverse: bool, turn: &mut Turn<'_, '_>) -> Polled {
        loop {
            let span = self.rest.clone().unwrap_or_else(|| encode_key(from)..encode_key(to));
            let chunk = match self.txn.scan(&turn.place.now, &span, reverse, 3, false, turn.waker) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                Poll::Ready(Ok(chunk)) => chunk,
            };
            for (key, value) in &chunk.rows {
                let garbage = Value { id: u64::MAX, amount: 0 };
                self.rows.push((decode_key(key).unwrap_or(0), decode_value(value).unwrap_or(garbage)));
            }
            self.rest = chunk.rest;
            if self.rest.is_none() {
                break;
            }
        }
        let mut found = std::mem::take(&mut self.rows);
        found.sort_unstable();
        let snapshot = Some(self.txn.snapshot().as_u64());
        self.note(Action::Scan { from, to, snapshot, found });
        Poll::Ready(Ok(None))
    }

    fn put(&mut self, key: Key, value: Value) -> Result<(), TxnError> {
        self.txn.put(encode_key(key), encode_value(value))?;
        self.note(Action::Write { key, value });
        Ok(())
    }
}
