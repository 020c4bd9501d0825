//! Many ranges, many leaders, everything goes wrong: money stays, what was acknowledged is seen, nothing is left behind.

use super::client::{Txn, value};
use super::world::{Env, Rng, Weather, World, founding, key};
use node::cluster::{LogLimits, STAGED_US, SpanAhead};
use node::{BeginOptions, Consistency, Isolation, LockMode, RangeId, TxnError};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::task::Waker;
use store::VersionsConfig;
use store::versions::SHOW_MIN;

const ACCOUNTS: u64 = 9;
const EACH: i64 = 100;
/// Longer than proofs against a clock are remembered.
const PROOFS_LAST_US: u64 = 100_000_000;

fn account(n: u64) -> String {
    format!("{}{n}", ["a", "h", "p"][(n % 3) as usize])
}

/// What clients know.
#[derive(Default)]
pub struct Notes {
    /// By counter: the greatest value of which an increment was acknowledged.
    acked: BTreeMap<String, i64>,
    /// By counter: increments that were acknowledged, and those of which that may be or not (yet).
    done: BTreeMap<String, i64>,
    perhaps: BTreeMap<String, i64>,
    pub commits: u64,
    pub unknown: u64,
    pub refused: u64,
    pub clocks: u64,
    pub reads: u64,
    /// What went wrong.
    pub wrong: Vec<String>,
}

type Shared = Rc<RefCell<Notes>>;

fn options(rng: &mut Rng) -> BeginOptions {
    let consistency = [Consistency::Strict, Consistency::Hybrid, Consistency::Auto][rng.below(3) as usize];
    let isolation = [Isolation::Serializable, Isolation::Snapshot][rng.below(2) as usize];
    BeginOptions { consistency, isolation, ..BeginOptions::default() }
}

/// Moves money between two accounts, mostly of two ranges.
async fn transfer(env: &Env, rng: &mut Rng) -> Result<(), TxnError> {
    let (from, to) = (rng.below(ACCOUNTS), rng.below(ACCOUNTS));
    if from == to {
        return Ok(());
    }
    let (from, to) = (account(from), account(to));
    let mut txn = Txn::with(env, options(rng))?;
    let (first, second) = if from < to { (&from, &to) } else { (&to, &from) };
    let both = [key(first), key(second)];
    if rng.percent(50) {
        txn.txn.read_ahead(&env.now(), &both, Waker::noop())?;
    }
    if rng.percent(30) {
        if rng.percent(50) {
            txn.txn.lock_ahead(&both, LockMode::Update);
        }
        txn.lock(first).await?;
        txn.lock(second).await?;
    }
    let (a, b) = (txn.number(&from).await?, txn.number(&to).await?);
    let sum = rng.below(10) as i64;
    txn.put(&from, a - sum);
    txn.put(&to, b + sum);
    txn.commit().await.map(drop)
}

/// One snapshot of all accounts has all the money.
async fn audit(env: &Env, rng: &mut Rng, notes: &Shared) -> Result<(), TxnError> {
    let mut txn = Txn::with(env, BeginOptions { read_only: rng.percent(50), ..options(rng) })?;
    let mut rows = Vec::new();
    match rng.below(3) {
        direction @ 0..2 => {
            let reverse = direction == 1;
            if rng.percent(50) {
                let part = |from, to| SpanAhead { span: key(from)..key(to), reverse, rows: 2 };
                let parts = [part("a", "h"), part("h", "p"), part("p", "q")];
                txn.txn.scan_ahead(&env.now(), &parts, Waker::noop())?;
            }
            rows = txn.scan("a", "q", reverse).await?;
        }
        _ => {
            if rng.percent(50) {
                let all: Vec<_> = (0..ACCOUNTS).map(|n| key(&account(n))).collect();
                txn.txn.read_ahead(&env.now(), &all, Waker::noop())?;
            }
            for n in 0..ACCOUNTS {
                let name = account(n);
                rows.extend(txn.get(&name).await?.map(|value| (name, value)));
            }
        }
    }
    rows.retain(|(name, _)| !name.ends_with("count"));
    let total: i64 = rows.iter().map(|(_, value)| value.parse::<i64>().unwrap()).sum();
    if total != EACH * ACCOUNTS as i64 || rows.len() != ACCOUNTS as usize {
        notes.borrow_mut().wrong.push(format!("a snapshot has {total}: {rows:?} at {}", txn.txn.snapshot()));
    }
    Ok(())
}

/// Adds one to a counter; nobody loses it.
async fn count(env: &Env, rng: &mut Rng, notes: &Shared) -> Result<(), TxnError> {
    let name = format!("{}count", ["c", "j", "r"][rng.below(3) as usize]);
    let mut txn = Txn::with(env, options(rng))?;
    let n = txn.number(&name).await? + 1;
    txn.put(&name, n);
    // Who dies here does not know.
    *notes.borrow_mut().perhaps.entry(name.clone()).or_default() += 1;
    let committed = txn.commit().await;
    let mut notes = notes.borrow_mut();
    if committed != Err(TxnError::CommitUnknown) {
        *notes.perhaps.entry(name.clone()).or_default() -= 1;
    }
    committed?;
    *notes.done.entry(name.clone()).or_default() += 1;
    let acked = notes.acked.entry(name).or_default();
    *acked = n.max(*acked);
    Ok(())
}

/// What was acknowledged before a read began is seen by it.
async fn look(env: &Env, rng: &mut Rng, notes: &Shared) -> Result<(), TxnError> {
    let name = format!("{}count", ["c", "j", "r"][rng.below(3) as usize]);
    let least = notes.borrow().acked.get(&name).copied().unwrap_or(0);
    let mut txn = Txn::with(env, options(rng))?;
    let seen = txn.number(&name).await?;
    notes.borrow_mut().reads += 1;
    if seen < least {
        let at = txn.txn.snapshot();
        let mode = txn.txn.stats().consistency;
        notes
            .borrow_mut()
            .wrong
            .push(format!("{name}: {seen} was read at {at} ({mode:?}), {least} was acknowledged before"));
    }
    Ok(())
}

async fn client(env: Env, seed: u64, rounds: usize, notes: Shared) {
    let mut rng = Rng::new(seed);
    for _ in 0..rounds {
        let done = match rng.below(10) {
            0..4 => transfer(&env, &mut rng).await,
            4..6 => audit(&env, &mut rng, &notes).await,
            6..8 => count(&env, &mut rng, &notes).await,
            _ => look(&env, &mut rng, &notes).await,
        };
        let mut notes = notes.borrow_mut();
        match done {
            Ok(()) => notes.commits += 1,
            Err(TxnError::CommitUnknown) => notes.unknown += 1,
            Err(TxnError::Restart { .. } | TxnError::Deadlock { .. } | TxnError::Unavailable { .. }) => {
                notes.refused += 1;
            }
            // What clocks that lie bring about.
            Err(TxnError::ClockUnavailable(_) | TxnError::SnapshotUnavailable { .. }) => notes.clocks += 1,
            Err(other) => notes.wrong.push(other.to_string()),
        }
    }
}

async fn open_accounts(env: Env) {
    loop {
        let mut txn = Txn::begin(&env).unwrap();
        for n in 0..ACCOUNTS {
            txn.put(&account(n), EACH);
        }
        if txn.commit().await.is_ok() {
            return;
        }
    }
}

/// What befalls the nodes.
pub struct Trouble {
    pub weather: Weather,
    pub crashes: bool,
    pub pauses: bool,
    pub cuts: bool,
    pub flushes: bool,
    pub splits: bool,
    /// Clocks are off by seconds, and say that they are not.
    pub lies: bool,
    /// An entry is so small that most commits are sent in parts.
    pub parts: bool,
}

impl Trouble {
    pub fn all() -> Self {
        Trouble {
            weather: Weather::rough(),
            crashes: true,
            pauses: true,
            cuts: true,
            flushes: true,
            splits: true,
            lies: false,
            parts: false,
        }
    }
}

/// Runs a bank through trouble, heals everything, and looks at what is left.
pub fn run(seed: u64, nodes: u32, trouble: &Trouble, prepare: super::world::Prepare) -> (World, Notes) {
    let all: Vec<u32> = (1..=nodes).collect();
    let mut ranges = founding(&["", "h", "p"], &all);
    for range in &mut ranges {
        // Different first replicas, three of however many there are.
        let turn = (range.range.0 as usize - 1) % all.len();
        range.replicas.rotate_left(turn);
        range.replicas.truncate(3);
    }
    let limits = LogLimits { entries_kept: seed % 3 * 20, records_kept: 200, ..LogLimits::default() };
    let small = LogLimits { entry_bytes: 30, part_bytes: 24, ..limits };
    let limits = if trouble.parts { small } else { limits };
    // Commits in parts, and prepares, are seen before they are in their places.
    let show_min = if trouble.parts && seed.is_multiple_of(2) { 2 } else { SHOW_MIN };
    let versions = VersionsConfig { show_min, ..VersionsConfig::default() };
    let mut w = World::stored(seed, nodes, ranges, prepare, limits, versions);
    for range in 1..=3 {
        w.await_leader(range);
    }
    w.ask(1, open_accounts);
    w.weather = trouble.weather.clone();
    let notes = Shared::default();
    let mut rng = Rng::new(seed ^ 0xabc);
    let mut jobs = 0;
    for round in 0..40 {
        if trouble.lies && round % 4 == 0 {
            let node = 1 + rng.below(u64::from(nodes)) as u32;
            let offset_us = rng.below(6_000_000) as i64 - 3_000_000;
            w.machines.get_mut(&node).unwrap().watch.offset_us = offset_us;
        }
        for node in 1..=nodes {
            while w.runs(node) && w.jobs() < 8 && rng.percent(60) {
                jobs += 1;
                let notes = notes.clone();
                w.spawn(node, move |env| Box::pin(client(env, seed * 1000 + jobs, 6, notes)));
            }
        }
        let node = 1 + rng.below(u64::from(nodes)) as u32;
        if trouble.splits && rng.percent(15) && w.runs(node) {
            let at = ["a2", "a3", "ccount", "h4", "h5", "jcount", "p3", "p5", "rcount"][rng.below(9) as usize];
            let now = w.env(node).now();
            drop(w.member(node).split(&now, key(at), Waker::noop()));
            w.drain(node);
        }
        match rng.below(8) {
            0 if trouble.crashes && w.runs(node) => w.crash(node),
            1 | 2 if !w.runs(node) => w.start(node),
            3 if trouble.pauses && w.runs(node) => w.pause(node),
            4 if w.runs(node) => w.resume(node),
            5 if trouble.cuts => {
                let other = 1 + rng.below(u64::from(nodes)) as u32;
                w.weather.cuts.insert((node, other));
                if rng.percent(50) {
                    w.weather.cuts.insert((other, node));
                }
            }
            6 => w.heal(),
            7 if trouble.flushes && w.runs(node) => w.flush(node),
            _ => {}
        }
        w.run(400_000);
        w.check_replicas();
    }
    if trouble.lies {
        w.machines.values_mut().for_each(|machine| machine.watch.offset_us = 0);
    }
    // Everything heals, and then it serves again.
    w.weather = Weather::calm();
    for node in 1..=nodes {
        if w.runs(node) {
            w.resume(node);
        } else {
            w.start(node);
        }
    }
    if trouble.lies {
        // What was stamped ahead of time is past, and proofs are forgotten.
        w.run(PROOFS_LAST_US);
    }
    w.until("all clients have come to an end", |world| world.jobs() == 0);
    w.run(5_000_000);
    let ranges: BTreeSet<RangeId> = all.iter().flat_map(|node| w.member(*node).ranges()).collect();
    for range in &ranges {
        w.await_leader(range.0);
    }
    // Parts of a gateway that died go when nobody can send their commit any more.
    w.run(if trouble.parts { STAGED_US + 5_000_000 } else { 20_000_000 });
    let rng = Rng::new(seed);
    let last = notes.clone();
    for node in 1..=nodes {
        let (last, mut rng) = (last.clone(), rng.clone());
        let done = w.ask(node, async move |env| audit(&env, &mut rng, &last).await);
        if let Err(why) = done {
            notes.borrow_mut().wrong.push(format!("after healing n{node} says: {why}"));
        }
    }
    for name in ["ccount", "jcount", "rcount"] {
        let seen = w.ask(1, async move |env| value(env, name).await).map_or(0, |text| text.parse().unwrap());
        let mut notes = notes.borrow_mut();
        let done = notes.done.get(name).copied().unwrap_or(0);
        let perhaps = notes.perhaps.get(name).copied().unwrap_or(0);
        if !(done..=done + perhaps).contains(&seen) {
            notes.wrong.push(format!("{name} is {seen}: {done} increments were acknowledged, {perhaps} unknown"));
        }
    }
    w.run(1_000_000);
    w.check_replicas();
    for node in 1..=nodes {
        let member = w.member(node).clone();
        for range in ranges.iter().copied() {
            let Some(status) = member.status(range) else { continue };
            let left = (status.prepared, status.untold, status.flights, status.parked, status.staged_bytes);
            if left != (0, 0, 0, 0, 0) {
                notes.borrow_mut().wrong.push(format!("left behind on n{node} of {range}: {status:?}"));
            }
        }
        if member.lock_counts() != (0, 0) || member.committing() != 0 {
            let locks = member.lock_counts();
            let what = format!("left behind on n{node}: locks {locks:?}, {} transactions", member.committing());
            notes.borrow_mut().wrong.push(what);
        }
    }
    drop(last);
    (w, notes.take())
}

#[track_caller]
fn passes(seeds: std::ops::Range<u64>, nodes: u32, trouble: &Trouble) {
    let (mut sums, mut splits) = ((0, 0, 0, 0), 0);
    for seed in seeds {
        let (w, notes) = run(seed, nodes, trouble, |_| {});
        splits += w.machines.values().map(|m| m.member.as_ref().map_or(0, |m| m.counters().splits.get())).sum::<u64>();
        assert!(notes.wrong.is_empty(), "seed {seed}: {:#?}", notes.wrong);
        sums = (sums.0 + notes.commits, sums.1 + notes.refused, sums.2 + notes.unknown, sums.3 + notes.reads);
    }
    eprintln!(
        "done {}, refused {}, unknown {}, counters read {}, splits applied {splits}",
        sums.0, sums.1, sums.2, sums.3
    );
    assert!(sums.0 > sums.1, "more is done than refused: {sums:?}");
}

#[test]
fn a_bank_in_fair_weather() {
    let calm = Trouble {
        weather: Weather::calm(),
        crashes: false,
        pauses: false,
        cuts: false,
        flushes: false,
        splits: false,
        lies: false,
        parts: false,
    };
    passes(0..3, 3, &calm);
}

#[test]
fn a_bank_over_a_rough_network() {
    let rough = Trouble {
        weather: Weather::rough(),
        crashes: false,
        pauses: false,
        cuts: false,
        flushes: true,
        splits: false,
        lies: false,
        parts: false,
    };
    passes(0..5, 3, &rough);
}

#[test]
fn a_bank_through_all_trouble() {
    passes(0..10, 3, &Trouble::all());
}

#[test]
fn a_bank_of_five_nodes_through_all_trouble() {
    passes(0..5, 5, &Trouble::all());
}

/// Clocks jump by seconds and say that they are right: what is read may be old, and is never torn; nothing is lost, nothing is done twice, replicas are equal.
#[test]
fn a_bank_with_clocks_that_lie() {
    for seed in 0..30 {
        let (_, notes) = run(seed, 3, &Trouble { lies: true, ..Trouble::all() }, |_| {});
        // Before the accounts were opened there was nothing.
        let stale = |what: &String| what.contains("was acknowledged before") || what.contains("has 0: []");
        let wrong: Vec<&String> = notes.wrong.iter().filter(|what| !stale(what)).collect();
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
        assert!(notes.commits > 0, "seed {seed}");
    }
}

/// Parts of transactions meet crashes, leaders that change, splits and snapshots.
#[test]
fn a_bank_whose_commits_come_in_parts() {
    let mut parts = 0;
    for seed in 0..12 {
        let (w, notes) = run(seed, 3, &Trouble { parts: true, ..Trouble::all() }, |_| {});
        assert!(notes.wrong.is_empty(), "seed {seed}: {:#?}", notes.wrong);
        assert!(notes.commits > notes.refused, "seed {seed}: {} done, {} refused", notes.commits, notes.refused);
        parts +=
            w.machines.values().map(|m| m.member.as_ref().map_or(0, |m| m.counters().parts_sent.get())).sum::<u64>();
    }
    assert!(parts > 1000, "{parts}");
}

#[test]
#[ignore = "minutes: run it after a change of the protocols"]
fn many_banks() {
    passes(100..300, 3, &Trouble::all());
    passes(100..200, 5, &Trouble::all());
    passes(100..300, 3, &Trouble { parts: true, ..Trouble::all() });
}
