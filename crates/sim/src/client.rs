//! One session: runs scripts, one operation at a time, and writes down what it saw.

use crate::machine::{Engine, SimNode};
use crate::probes::Probes;
use crate::references;
use crate::rng::Rng;
use crate::workload::{
    ACCOUNTS, FIRST_BALANCE, Script, Step, decode_key, decode_value, encode_key, encode_value, script,
};
use checker::{Action, Isolation, Key, Op, Outcome, Recency, Txn, Value};
use clock::{Reading, Timestamp};
use node::{BeginOptions, Consistency, LockMode, Transaction, TxnError, WhenLocked};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Poll, Waker};
use store::Span;

/// What a session wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To be called again at this time.
    At(u64),
    /// To be woken.
    Wait,
}

struct Running {
    txn: Transaction<Engine>,
    steps: VecDeque<Step>,
    record: Txn,
    read: BTreeMap<Key, Value>,
    /// When the statement that runs began.
    statement: u64,
    /// Rows of a scan that is not at its end, and what is left of it.
    rows: Vec<(Key, Value)>,
    rest: Option<Span>,
    committing: bool,
    /// How long it waits for a commit that the clock holds back, nanoseconds, and since when it waits.
    patience_ns: u64,
    waits_since: Option<u64>,
}

/// A session.
pub struct Client {
    number: u32,
    rng: Rng,
    token: Timestamp,
    running: Option<Running>,
    /// Scripts are repeated after a restart error, as a driver does.
    again: Option<Script>,
    current: Option<Script>,
    /// What it did.
    pub done: Vec<Txn>,
}

/// What a session needs of the world for one call.
pub struct Turn<'w> {
    /// True time, nanoseconds.
    pub true_ns: u64,
    /// What the machine's clock says.
    pub now: Reading,
    /// The node.
    pub node: &'w Arc<SimNode>,
    /// To be woken by.
    pub waker: &'w Waker,
    /// The last number given to a transaction or value.
    pub last_id: &'w mut u64,
    /// Rare paths.
    pub probes: &'w mut Probes,
    /// No new transactions.
    pub draining: bool,
    /// How long the machine was awake in its time, nanoseconds.
    pub awake_ns: u64,
    /// What this life of the node acknowledged: when, by `awake_ns`, and at which timestamp.
    pub acknowledged: &'w [(u64, Timestamp)],
    /// Peers have proved for a while that the node's bound is wrong.
    pub fenced: bool,
    /// What the node served and must not.
    pub broken: &'w mut Option<String>,
}

impl Turn<'_> {
    /// What needs the bound must not begin without one, nor while peers prove it wrong.
    fn check_promise(&mut self, recency: Recency) {
        let options = self.node.options();
        let needs_bound = recency == Recency::Strict || (recency == Recency::Hybrid && !options.alone);
        let limit_ns = options.ladder.hybrid_error_ns;
        if needs_bound && self.now.trusted().is_none_or(|interval| interval.error_ns() > limit_ns) {
            *self.broken =
                Some(format!("{recency:?} was served on a clock that gives no bound for it: {:?}", self.now));
        }
        if needs_bound && self.fenced {
            *self.broken =
                Some(format!("{recency:?} was served although the peers prove the bound wrong: {:?}", self.now));
        }
    }
    /// So long ago is not before what was acknowledged longer ago than that, wherever the clock was set.
    fn check_past(&mut self, past_us: u64, at: Timestamp) {
        // Ticks and samples come a while apart, and oscillators drift.
        let reach_ns = past_us * 1020 + 1_500_000_000;
        let Some(before_ns) = self.awake_ns.checked_sub(reach_ns) else { return };
        let known = self.acknowledged.partition_point(|(when, _)| *when <= before_ns);
        let missed = self.acknowledged[..known].iter().map(|(_, commit)| *commit).max().filter(|commit| *commit > at);
        if let Some(commit) = missed {
            *self.broken = Some(format!("{past_us} us ago is {at}, and {commit} was acknowledged before"));
        }
        if known > 0 {
            self.probes.hit("past checked against what was acknowledged");
        }
    }
    fn id(&mut self) -> u64 {
        *self.last_id += 1;
        *self.last_id
    }
}

impl Client {
    /// Session `number`.
    pub fn new(number: u32, rng: Rng) -> Self {
        let (token, running, again, current, done) = Default::default();
        Client { number, rng, token, running, again, current, done }
    }

    /// Whether a transaction runs.
    pub fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    /// What it is at, for a report.
    pub fn describe(&self) -> String {
        match &self.running {
            None => format!("session {} rests", self.number),
            Some(r) => {
                let (step, id, began) = (r.steps.front(), r.record.id, r.record.began);
                let options = self.current.as_ref().map(|s| &s.options);
                format!("session {} in {id} since {began} at {step:?} of {options:?}", self.number)
            }
        }
    }

    /// Queues a script to run before any drawn one.
    pub fn run(&mut self, script: Script) {
        self.again = Some(script);
    }

    /// The machine crashed under it.
    pub fn disconnected(&mut self) {
        if let Some(running) = self.running.take() {
            let outcome = if running.committing { Outcome::Unknown } else { Outcome::Aborted };
            self.finish(running, outcome, 0, u64::MAX);
        }
    }

    /// Goes on as far as it can.
    pub fn turn(&mut self, turn: &mut Turn<'_>) -> Next {
        if self.running.is_none() {
            if turn.draining && self.again.is_none() {
                return Next::Wait;
            }
            if !self.begin(turn) {
                return Next::At(turn.true_ns + self.rng.range(100_000, 2_000_000));
            }
        }
        loop {
            let Some(mut running) = self.running.take() else {
                return Next::At(turn.true_ns + self.rng.range(10_000, 3_000_000));
            };
            let Some(step) = running.steps.front().cloned() else {
                self.finish(running, Outcome::Aborted, 0, turn.true_ns);
                continue;
            };
            if let Step::Think(ns) = step {
                running.steps.pop_front();
                self.running = Some(running);
                return Next::At(turn.true_ns + ns + 1);
            }
            match running.step(&step, turn) {
                Poll::Pending => {
                    if let Some(error) = running.lose_patience(turn) {
                        self.failed(running, &error, turn);
                        continue;
                    }
                    let held = running.committing && running.txn.is_held_back(&turn.now);
                    let next = if held { Next::At(turn.true_ns + running.patience_ns) } else { Next::Wait };
                    self.running = Some(running);
                    return next;
                }
                Poll::Ready(Ok(None)) => {
                    running.steps.pop_front();
                    self.running = Some(running);
                }
                Poll::Ready(Ok(Some(position))) => {
                    self.finish(running, Outcome::Committed, position.as_u64(), turn.true_ns);
                }
                Poll::Ready(Err(error)) => self.failed(running, &error, turn),
            }
        }
    }

    fn begin(&mut self, turn: &mut Turn<'_>) -> bool {
        let script = self.again.take().unwrap_or_else(|| script(&mut self.rng));
        let mut options = BeginOptions { token: self.token, ..script.options.clone() };
        if script.past_us > 0 {
            // Half of them name the time.
            let named_us = turn.now.interval.earliest().physical_us().saturating_sub(script.past_us);
            let mut at = Timestamp::new(named_us, 0);
            if script.past_us.is_multiple_of(2) {
                at = turn.node.ago(&turn.now, script.past_us);
                turn.check_past(script.past_us, at);
            }
            options.as_of = Some(at);
        }
        let txn = match Transaction::begin(turn.node, &turn.now, &options) {
            Ok(txn) => txn,
            Err(TxnError::SnapshotUnavailable { .. }) if script.past_us > 0 => {
                turn.probes.hit("past refused as collected");
                return false;
            }
            Err(TxnError::ClockUnavailable(_)) => {
                turn.probes.hit("refused for the clock");
                return false;
            }
            Err(_) => return false,
        };
        if txn.snapshot() < turn.node.versions().collected() {
            turn.probes.hit("past of a table that is kept longer");
        }
        let recency = if script.past_us > 0 { Recency::Any } else { recency(txn.stats().consistency) };
        turn.check_promise(recency);
        let record = Txn {
            id: turn.id(),
            session: self.number,
            isolation: match options.isolation {
                node::Isolation::Serializable => Isolation::Serializable,
                node::Isolation::Snapshot => Isolation::Snapshot,
                node::Isolation::ReadCommitted => Isolation::ReadCommitted,
            },
            recency,
            began: turn.true_ns,
            ended: u64::MAX,
            outcome: Outcome::Unknown,
            position: 0,
            ops: Vec::new(),
        };
        let steps = script.steps.iter().cloned().collect();
        let statement = turn.true_ns;
        let (read, rows, rest) = Default::default();
        let patience_ns = self.rng.range(1_000_000, 500_000_000);
        let (committing, waits_since) = (false, None);
        self.running =
            Some(Running { txn, steps, record, read, statement, rows, rest, committing, patience_ns, waits_since });
        self.current = Some(script);
        true
    }

    fn failed(&mut self, running: Running, error: &TxnError, turn: &mut Turn<'_>) {
        if let TxnError::Unacknowledged { at, .. } = error {
            // It is told that it has committed, and that nobody may rely on that yet.
            turn.probes.hit("gave up a commit that waited to be shown");
            return self.finish(running, Outcome::Committed, at.as_u64(), u64::MAX);
        }
        let retry = matches!(error, TxnError::Restart { .. } | TxnError::Deadlock { .. });
        let unknown = running.committing && matches!(error, TxnError::Storage(_));
        let outcome = if unknown { Outcome::Unknown } else { Outcome::Aborted };
        self.finish(running, outcome, 0, turn.true_ns);
        if retry && self.rng.chance(60) && !turn.draining {
            self.again = self.current.take();
        }
    }

    fn finish(&mut self, mut running: Running, outcome: Outcome, position: u64, ended: u64) {
        if outcome == Outcome::Committed && ended != u64::MAX {
            // What `Any` reads moves no token; what it writes does.
            let counts = running.record.recency != Recency::Any || running.record.writes();
            if counts {
                self.token = self.token.max(Timestamp::from_u64(position));
            }
        }
        running.record.outcome = outcome;
        running.record.position = position;
        running.record.ended = ended;
        self.done.push(running.record);
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

impl Running {
    /// One step; `Some` when the transaction committed.
    fn step(&mut self, step: &Step, turn: &mut Turn<'_>) -> Poll<Result<Option<Timestamp>, TxnError>> {
        match step {
            Step::Statement => {
                self.statement = turn.true_ns;
                let begun = self.txn.begin_statement(&turn.now);
                // `auto` may have settled for less since the transaction began.
                if self.record.recency == Recency::Strict {
                    self.record.recency = recency(self.txn.stats().consistency);
                }
                Poll::Ready(begun.map(|()| None))
            }
            Step::Lock(key) => {
                let locked =
                    self.txn.lock(&turn.now, &encode_key(*key), LockMode::Update, WhenLocked::Wait, turn.waker);
                locked.map(|done| done.map(|_| None))
            }
            Step::Get(key) => self.get(*key, turn),
            Step::Scan(span, reverse) => self.scan(span.start, span.end, *reverse, turn),
            Step::Put(key) => {
                let amount = if ACCOUNTS.contains(key) { FIRST_BALANCE } else { 0 };
                let value = Value { id: turn.id(), amount };
                Poll::Ready(self.put(*key, value).map(|()| None))
            }
            Step::Add(key, change) => {
                let Some(old) = self.read.get(key).copied() else { return self.give_up() };
                let value = Value { id: turn.id(), amount: old.amount + change };
                Poll::Ready(self.put(*key, value).map(|()| None))
            }
            Step::Parent(references::KEPT, false) => {
                match self.txn.observe(&turn.now, &references::child(references::KEPT), turn.waker) {
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
            Step::Refer(n) => match self.txn.present(&references::parent(*n), turn.waker) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok(true)) => {
                    turn.probes.hit("reference to a row");
                    let key = references::child(*n);
                    Poll::Ready(self.txn.put(key.clone(), key).map(|()| None))
                }
                Poll::Ready(found) => Poll::Ready(found.map(|_| None)),
            },
            Step::Think(_) => Poll::Ready(Ok(None)),
            Step::Rollback => self.give_up(),
            Step::Commit => {
                self.committing = self.txn.has_writes() || self.committing;
                self.txn.commit(&turn.now, turn.waker).map(|done| done.map(Some))
            }
        }
    }

    /// Gives up a commit that the clock holds back for too long.
    fn lose_patience(&mut self, turn: &mut Turn<'_>) -> Option<TxnError> {
        if !self.committing {
            return None;
        }
        let since = *self.waits_since.get_or_insert(turn.true_ns);
        if turn.true_ns - since < self.patience_ns {
            return None;
        }
        let error = self.txn.give_up_commit(&turn.now)?;
        if matches!(error, TxnError::ClockUnavailable(_)) {
            turn.probes.hit("gave up a commit that was held back");
        }
        Some(error)
    }

    /// Takes all back: it was to, or an account is not there.
    fn give_up(&mut self) -> Poll<Result<Option<Timestamp>, TxnError>> {
        self.txn.rollback();
        self.steps.clear();
        self.steps.push_back(Step::Rollback);
        Poll::Ready(Ok(None))
    }

    fn note(&mut self, action: Action) {
        self.record.ops.push(Op { began: self.statement, action });
    }

    fn wrote(&self, wanted: Key) -> bool {
        self.record.ops.iter().any(|op| matches!(op.action, Action::Write { key, .. } if key == wanted))
    }

    fn get(&mut self, key: Key, turn: &mut Turn<'_>) -> Poll<Result<Option<Timestamp>, TxnError>> {
        let Poll::Ready(result) = self.txn.get(&turn.now, &encode_key(key), false, turn.waker) else {
            return Poll::Pending;
        };
        Poll::Ready(result.map(|found| {
            let found = found.map(|raw| decode_value(&raw).unwrap_or(Value { id: u64::MAX, amount: 0 }));
            let snapshot = (!self.wrote(key)).then(|| self.txn.snapshot().as_u64());
            if let Some(value) = found {
                self.read.insert(key, value);
            }
            if self.record.recency == Recency::Any {
                turn.probes.hit("one row read from the past");
            }
            self.note(Action::Read { key, snapshot, found });
            None
        }))
    }

    fn scan(
        &mut self,
        from: Key,
        to: Key,
        reverse: bool,
        turn: &mut Turn<'_>,
    ) -> Poll<Result<Option<Timestamp>, TxnError>> {
        loop {
            let span = self.rest.clone().unwrap_or_else(|| encode_key(from)..encode_key(to));
            let chunk = match self.txn.scan(&turn.now, &span, reverse, 3, false, turn.waker) {
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
