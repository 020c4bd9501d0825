//! What clients do: registers, transfers, audits, looks into the past; isolation and consistency mixed.
//!
//! Key names: registers are 0..REGISTERS, accounts ACCOUNTS_FROM.. ; both lie in one ordered space, so that splits cut
//! through either.

use crate::references::PARENTS;
use crate::rng::Rng;
use bytes::Bytes;
use checker::{Key, Value};
use node::{BeginOptions, Consistency, Isolation};
use std::ops::Range;

/// Registers: few, so that transactions meet.
pub const REGISTERS: u64 = 12;
/// Accounts of the bank.
pub const ACCOUNTS: Range<Key> = 100..108;
/// What each account holds at first.
pub const FIRST_BALANCE: i64 = 100;

/// One step of a transaction.
#[derive(Clone, Debug)]
pub enum Step {
    /// A statement begins.
    Statement,
    /// Lock a key.
    Lock(Key),
    /// Read a key.
    Get(Key),
    /// Read all keys of a span.
    Scan(Range<Key>, bool),
    /// Write a key; the identity is given when it runs.
    Put(Key),
    /// Write what the last read of an account found, and so much more.
    Add(Key, i64),
    /// Write or delete a parent; of [`crate::references::KEPT`] delete the child where there is one.
    Parent(u64, bool),
    /// Write a child, if its parent is there.
    Refer(u64),
    /// Do nothing for so many nanoseconds.
    Think(u64),
    /// Give up.
    Rollback,
    /// Commit.
    Commit,
}

/// What a client will do in one transaction.
#[derive(Clone, Debug)]
pub struct Script {
    /// Isolation and consistency.
    pub options: BeginOptions,
    /// How far in the past it reads, microseconds; 0: in the present.
    pub past_us: u64,
    /// In order; ends with `Commit` or `Rollback`.
    pub steps: Vec<Step>,
}

/// A key as the database sees it.
pub fn encode_key(key: Key) -> Bytes {
    let mut raw = if key < ACCOUNTS.start { REGISTERS_INDEX } else { ACCOUNTS_INDEX }.to_vec();
    raw.extend_from_slice(&key.to_be_bytes());
    Bytes::from(raw)
}

/// The index of keys below the accounts.
const REGISTERS_INDEX: [u8; 4] = [0, 0, 0, 7];
/// The index of all others: its past is kept for another time.
pub const ACCOUNTS_INDEX: [u8; 4] = [0, 0, 0, 8];

/// The name of a key.
pub fn decode_key(raw: &[u8]) -> Option<Key> {
    Some(Key::from_be_bytes(*raw.get(REGISTERS_INDEX.len()..)?.first_chunk()?))
}

/// Some values are long, so that a record spans sectors and a torn write leaves a part of it.
const PADDING: [usize; 5] = [0, 0, 0, 300, 2000];

/// A value as the database sees it.
pub fn encode_value(value: Value) -> Bytes {
    let mut raw = value.id.to_be_bytes().to_vec();
    raw.extend_from_slice(&value.amount.to_be_bytes());
    raw.resize(raw.len() + PADDING[usize::try_from(value.id % 5).unwrap_or(0)], 0xee);
    Bytes::from(raw)
}

/// What a value says; `None` where it is none of ours.
pub fn decode_value(raw: &[u8]) -> Option<Value> {
    let (id, rest) = raw.split_first_chunk::<8>()?;
    Some(Value { id: u64::from_be_bytes(*id), amount: i64::from_be_bytes(*rest.first_chunk()?) })
}

/// Draws a transaction.
pub fn script(rng: &mut Rng) -> Script {
    let isolation =
        rng.pick(&[Isolation::Serializable, Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted]);
    let consistency = rng.pick(&[
        Consistency::Auto,
        Consistency::Strict,
        Consistency::Hybrid,
        Consistency::Hybrid,
        Consistency::Token,
        Consistency::None,
    ]);
    let options = BeginOptions {
        isolation: isolation.unwrap_or_default(),
        consistency: consistency.unwrap_or_default(),
        ..BeginOptions::default()
    };
    let mut script = Script { options, past_us: 0, steps: Vec::new() };
    match rng.below(10) {
        0..=2 => update(&mut script, rng),
        3 => blind(&mut script, rng),
        4 => skew(&mut script, rng),
        5..=6 => transfer(&mut script, rng),
        7 => audit(&mut script, rng),
        8 => read_only(&mut script, rng),
        _ => past(&mut script, rng),
    }
    script.steps.push(if rng.chance(5) { Step::Rollback } else { Step::Commit });
    script
}

fn register(rng: &mut Rng) -> Key {
    // Some are hotter than others.
    let n = rng.below(REGISTERS);
    if rng.chance(40) { n % 3 } else { n }
}

fn think(rng: &mut Rng) -> Step {
    Step::Think(if rng.chance(20) { rng.below(20_000_000) } else { rng.below(300_000) })
}

fn span(rng: &mut Rng) -> Range<Key> {
    let from = rng.below(REGISTERS);
    from..rng.range(from + 1, REGISTERS + 1)
}

fn update(script: &mut Script, rng: &mut Rng) {
    for _ in 0..rng.range(1, 4) {
        let key = register(rng);
        script.steps.push(Step::Statement);
        if rng.chance(50) {
            script.steps.push(Step::Lock(key));
        }
        script.steps.extend([Step::Get(key), Step::Put(key)]);
        if rng.chance(50) {
            script.steps.push(think(rng));
        }
    }
}

fn blind(script: &mut Script, rng: &mut Rng) {
    script.steps.push(Step::Statement);
    for _ in 0..rng.range(1, 5) {
        script.steps.push(Step::Put(register(rng)));
    }
    let n = rng.below(PARENTS);
    match rng.below(4) {
        0 => script.steps.push(Step::Parent(n, true)),
        1 => script.steps.push(Step::Parent(n, false)),
        _ => script.steps.extend([Step::Refer(n), think(rng)]),
    }
}

/// Reads two, writes one: what write skew is made of; sometimes by a span.
fn skew(script: &mut Script, rng: &mut Rng) {
    let (a, b) = (register(rng), register(rng));
    script.steps.push(Step::Statement);
    if rng.chance(40) {
        script.steps.push(Step::Scan(span(rng), rng.chance(30)));
    } else {
        script.steps.extend([Step::Get(a), Step::Statement, Step::Get(b)]);
    }
    script.steps.extend([think(rng), Step::Put(if rng.chance(50) { a } else { b })]);
}

fn transfer(script: &mut Script, rng: &mut Rng) {
    let from = rng.range(ACCOUNTS.start, ACCOUNTS.end);
    let to = ACCOUNTS.start + (from - ACCOUNTS.start + rng.range(1, ACCOUNTS.end - ACCOUNTS.start)) % 8;
    let amount = rng.range(1, 20).cast_signed();
    let lock = rng.chance(50);
    let committed = script.options.isolation == Isolation::ReadCommitted;
    for (key, change) in [(from, -amount), (to, amount)] {
        script.steps.push(Step::Statement);
        if lock {
            script.steps.push(Step::Lock(key));
        }
        script.steps.push(Step::Get(key));
        // READ COMMITTED promises a change only within one statement.
        if committed {
            script.steps.push(Step::Add(key, change));
        }
    }
    if rng.chance(50) {
        script.steps.push(think(rng));
    }
    if !committed {
        script.steps.extend([Step::Add(from, -amount), Step::Add(to, amount)]);
    }
}

fn audit(script: &mut Script, rng: &mut Rng) {
    script.options.read_only = rng.chance(50);
    script.steps.extend([Step::Statement, Step::Scan(ACCOUNTS, rng.chance(30))]);
}

fn read_only(script: &mut Script, rng: &mut Rng) {
    script.options.read_only = true;
    for _ in 0..rng.range(1, 4) {
        script.steps.push(Step::Statement);
        let scan = rng.chance(40);
        script.steps.push(if scan { Step::Scan(span(rng), rng.chance(30)) } else { Step::Get(register(rng)) });
        script.steps.push(think(rng));
    }
}

fn past(script: &mut Script, rng: &mut Rng) {
    script.past_us = rng.range(1, 3_000_000);
    script.steps.extend([Step::Statement, Step::Get(register(rng)), Step::Scan(ACCOUNTS, false)]);
}
