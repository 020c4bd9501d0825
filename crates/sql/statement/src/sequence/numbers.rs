//! The numbers of all sequences, as one process holds them.

use crate::catalog::{Oid, Sequence, key};
use crate::transaction::{Isolation, Kv, LockWait, Patience};
use crate::{SqlError, SqlState};
use bytes::{Buf, BufMut, Bytes};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Numbers in the first block that a process takes of a sequence; each further block is twice as long.
pub const BLOCK_MIN: u64 = 32;
/// Most numbers in one block.
pub const BLOCK_MAX: u64 = 1024;
/// Attempts to move a sequence against others.
pub const ATTEMPTS_MAX: usize = 16;

/// In a cluster a node hands out a block for so long, microseconds: it does not hear that the sequence was moved.
pub const GRANT_US: i64 = 1_000_000;
/// Whoever moves a sequence waits somewhat longer, as two clocks do not go alike; microseconds.
const GRANTED_US: i64 = GRANT_US + GRANT_US / 10;
/// Whoever took numbers so long ago has none left, whatever is between the clocks of two nodes; microseconds.
const LONG_AGO_US: i64 = 60_000_000;

/// A position alone.
const FORM_BARE: u8 = 1;
const BARE_BYTES: usize = 10;
/// And who took numbers.
const FORM: u8 = 2;
const RECORD_BYTES: usize = BARE_BYTES + 20;
/// In place of a node: several took some, or nobody did.
const SEVERAL: u32 = u32::MAX;

/// Where a sequence stands, as PostgreSQL shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// `last_value`
    pub value: i64,
    /// `is_called`: whether `value` was handed out.
    pub is_called: bool,
}

impl Position {
    fn initial(sequence: &Sequence) -> Position {
        Position { value: sequence.start, is_called: false }
    }
}

/// Who took numbers last, and when by the clock of that node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Drawn {
    node: u32,
    at_us: i64,
}

impl Drawn {
    /// Whether a node other than this one may hand out numbers from a block that it took.
    fn by_another(self, node: u32, now_us: i64) -> bool {
        self.node != node && self.at_us.saturating_add(LONG_AGO_US) > now_us
    }
}

/// A sequence as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    position: Position,
    /// How often it was changed: who finds what he left knows that nobody was here.
    changes: u64,
    drawn: Option<Drawn>,
}

impl Record {
    fn encode(self) -> Bytes {
        let Drawn { node, at_us } = self.drawn.unwrap_or(Drawn { node: SEVERAL, at_us: i64::MIN });
        let mut bytes = Vec::with_capacity(RECORD_BYTES);
        bytes.put_u8(FORM);
        bytes.put_i64(self.position.value);
        bytes.put_u8(u8::from(self.position.is_called));
        bytes.put_u64(self.changes);
        bytes.put_u32(node);
        bytes.put_i64(at_us);
        bytes.into()
    }

    fn decode(bytes: &[u8]) -> Result<Record, SqlError> {
        let broken = || SqlError::new(SqlState::IO_ERROR, "the record of a sequence cannot be read");
        let mut rest = bytes;
        let form = rest.try_get_u8().map_err(|_| broken())?;
        if (form, bytes.len()) != (FORM_BARE, BARE_BYTES) && (form, bytes.len()) != (FORM, RECORD_BYTES) {
            return Err(broken());
        }
        let position = Position { value: rest.get_i64(), is_called: rest.get_u8() != 0 };
        if form == FORM_BARE {
            return Ok(Record { position, changes: 0, drawn: None });
        }
        let changes = rest.get_u64();
        let drawn = Drawn { node: rest.get_u32(), at_us: rest.get_i64() };
        Ok(Record { position, changes, drawn: (drawn.at_us != i64::MIN).then_some(drawn) })
    }
}

/// Numbers taken and not yet handed out.
#[derive(Debug)]
struct Block {
    /// The sequence when they were taken; another descriptor makes them void.
    sequence: Sequence,
    last: Position,
    left: u64,
    length: u64,
    /// The record's, as this block left it.
    changes: u64,
    /// It is handed out until then, of [`Kv::monotonic_us`]; `None`: nobody else has the sequence.
    until_us: Option<i64>,
}

impl Block {
    fn is_good(&self, kv: &dyn Kv) -> bool {
        self.until_us.is_none_or(|until_us| kv.monotonic_us() < until_us)
    }

    /// Twice what was needed of this one.
    fn next_length(&self) -> u64 {
        ((self.length - self.left) * 2).clamp(1, BLOCK_MAX)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Numbers(Mutex<HashMap<Oid, Arc<Mutex<Option<Block>>>>>);

impl Numbers {
    fn slot(&self, id: Oid) -> Arc<Mutex<Option<Block>>> {
        self.0.lock().entry(id).or_default().clone()
    }

    /// The next number.
    ///
    /// # Errors
    /// 2200H at the end of a sequence that does not cycle; those of the layers below.
    pub fn next(&self, kv: &dyn Kv, patience: &Patience, sequence: &Sequence) -> Result<i64, SqlError> {
        let slot = self.slot(sequence.id);
        let mut slot = patience.lock(kv, &slot)?;
        if let Some(block) =
            slot.as_mut().filter(|b| b.left > 0 && same_numbers(&b.sequence, sequence) && b.is_good(kv))
        {
            block.last = step(sequence, block.last)?;
            block.left -= 1;
            return Ok(block.last.value);
        }
        let length = slot.as_ref().map_or(BLOCK_MIN, Block::next_length);
        let mut rest = slot.take();
        if let Some(block) = rest.take_if(|block| !same_numbers(&block.sequence, sequence)) {
            // The sequence was altered: it goes on from where it stands, not from the end of the block.
            return_rest(kv, patience, sequence.id, &block)?;
        }
        let node = kv.node();
        // Before the numbers are taken: whoever moves the sequence afterwards counts from then on.
        let until_us = (node != 0).then(|| kv.monotonic_us().saturating_add(GRANT_US));
        let ((last, taken), changes) = update(kv, patience, sequence.id, |stored| {
            // What is left of a block whose time was over goes first, if nobody was here meanwhile.
            let left = rest.as_ref().filter(|block| stored.is_some_and(|stored| stored.changes == block.changes));
            let position = left.map(|block| block.last).or(stored.map(|stored| stored.position));
            let (end, result) = take(sequence, position, length)?;
            let at_us = kv.now_us();
            let shared = stored.and_then(|stored| stored.drawn).is_some_and(|drawn| drawn.by_another(node, at_us));
            Ok((end, Some(Drawn { node: if shared { SEVERAL } else { node }, at_us }), result))
        })?;
        let first = step(sequence, last)?;
        *slot =
            Some(Block { sequence: sequence.clone(), last: first, left: taken - 1, length: taken, changes, until_us });
        Ok(first.value)
    }

    /// Moves a sequence: who asks for a number afterwards gets one from there, at whatever node.
    ///
    /// # Errors
    /// 22003 outside its bounds; those of the layers below.
    pub fn set(
        &self,
        kv: &dyn Kv,
        patience: &Patience,
        sequence: &Sequence,
        value: i64,
        is_called: bool,
    ) -> Result<(), SqlError> {
        if value < sequence.min || value > sequence.max {
            return Err(SqlError::new(
                SqlState::OUT_OF_RANGE,
                format!(
                    "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
                    sequence.name, sequence.min, sequence.max
                ),
            ));
        }
        let slot = self.slot(sequence.id);
        let mut slot = patience.lock(kv, &slot)?;
        *slot = None;
        let node = kv.node();
        let (shared, _) = update(kv, patience, sequence.id, |stored| {
            let drawn = stored.and_then(|stored| stored.drawn);
            let shared = drawn.is_some_and(|drawn| drawn.by_another(node, kv.now_us()));
            Ok((Position { value, is_called }, drawn, shared))
        })?;
        drop(slot);
        if node == 0 || !shared {
            return Ok(());
        }
        Ok(patience.wait_until(kv, kv.monotonic_us().saturating_add(GRANTED_US))?)
    }

    /// Where a sequence stands.
    ///
    /// # Errors
    /// Those of the layers below.
    pub fn position(&self, kv: &dyn Kv, patience: &Patience, sequence: &Sequence) -> Result<Position, SqlError> {
        let slot = self.slot(sequence.id);
        let slot = patience.lock(kv, &slot)?;
        let block = slot.as_ref().filter(|b| same_numbers(&b.sequence, sequence));
        if let Some(block) = block.filter(|block| block.is_good(kv)) {
            return Ok(block.last);
        }
        let mut txn = patience.begin(kv, Isolation::default())?;
        let stored = txn.get(&key::object(key::SEQUENCES, sequence.id))?;
        let Some(stored) = stored.map(|bytes| Record::decode(&bytes)).transpose()? else {
            return Ok(Position::initial(sequence));
        };
        Ok(block.filter(|block| block.changes == stored.changes).map_or(stored.position, |block| block.last))
    }

    /// Returns what is left of every block: at a clean stop, when no session is left.
    ///
    /// # Errors
    /// Those of the layers below.
    pub fn give_back(&self, kv: &dyn Kv, patience: &Patience) -> Result<(), SqlError> {
        let slots: Vec<_> = self.0.lock().iter().map(|(id, slot)| (*id, slot.clone())).collect();
        for (id, slot) in slots {
            if let Some(block) = patience.lock(kv, &slot)?.take() {
                return_rest(kv, patience, id, &block)?;
            }
        }
        Ok(())
    }
}

/// Gives back what is left of a block, unless somebody has moved the sequence since it was taken.
fn return_rest(kv: &dyn Kv, patience: &Patience, id: Oid, block: &Block) -> Result<(), SqlError> {
    if block.left == 0 {
        return Ok(());
    }
    let given = |stored: Option<Record>| match stored {
        Some(stored) if stored.changes == block.changes => (block.last, stored.drawn, ()),
        Some(stored) => (stored.position, stored.drawn, ()),
        None => (block.last, None, ()),
    };
    update(kv, patience, id, |stored| Ok(given(stored))).map(drop)
}

/// Whether two descriptors of a sequence give the same numbers.
fn same_numbers(a: &Sequence, b: &Sequence) -> bool {
    (a.increment, a.min, a.max, a.start, a.cycle) == (b.increment, b.min, b.max, b.start, b.cycle)
}

/// The position after the next number.
fn step(sequence: &Sequence, last: Position) -> Result<Position, SqlError> {
    if !last.is_called {
        return Ok(Position { value: last.value, is_called: true });
    }
    let next = last.value.checked_add(sequence.increment).filter(|v| *v >= sequence.min && *v <= sequence.max);
    match next {
        Some(value) => Ok(Position { value, is_called: true }),
        None if sequence.cycle => {
            let value = if sequence.increment > 0 { sequence.min } else { sequence.max };
            Ok(Position { value, is_called: true })
        }
        None => {
            let (word, bound) =
                if sequence.increment > 0 { ("maximum", sequence.max) } else { ("minimum", sequence.min) };
            Err(SqlError::new(
                SqlState::SEQUENCE_LIMIT,
                format!("nextval: reached {word} value of sequence \"{}\" ({bound})", sequence.name),
            ))
        }
    }
}

/// The position after `count` numbers, which are known not to pass the end.
fn advance(sequence: &Sequence, last: Position, count: u64) -> Option<Position> {
    let steps = if last.is_called { count } else { count.checked_sub(1)? };
    let value = i128::from(last.value) + i128::from(steps) * i128::from(sequence.increment);
    Some(Position { value: i64::try_from(value).ok()?, is_called: true })
}

/// Takes up to `length` numbers without passing the end: where the sequence stood, and how many were taken.
fn take(sequence: &Sequence, stored: Option<Position>, length: u64) -> Result<(Position, (Position, u64)), SqlError> {
    let last = stored.unwrap_or(Position::initial(sequence));
    let first = step(sequence, last)?;
    let room = if sequence.increment > 0 {
        (i128::from(sequence.max) - i128::from(first.value)) / i128::from(sequence.increment)
    } else {
        (i128::from(first.value) - i128::from(sequence.min)) / -i128::from(sequence.increment)
    };
    let taken = (room + 1).clamp(1, i128::from(length)) as u64;
    let end = advance(sequence, first, taken - 1).unwrap_or(first);
    Ok((end, (last, taken)))
}

/// Changes the record of a sequence in a transaction of its own. Also gives how often it was changed by then.
fn update<R>(
    kv: &dyn Kv,
    patience: &Patience,
    id: Oid,
    change: impl Fn(Option<Record>) -> Result<(Position, Option<Drawn>, R), SqlError>,
) -> Result<(R, u64), SqlError> {
    let key = key::object(key::SEQUENCES, id);
    let attempt = || {
        let mut txn = patience.begin(kv, Isolation::default())?;
        txn.lock(&key, LockWait::Wait)?;
        let stored = txn.get_certified(&key)?.map(|bytes| Record::decode(&bytes)).transpose()?;
        let (position, drawn, result) = change(stored)?;
        let changes = stored.map_or(0, |stored| stored.changes) + 1;
        txn.put(Bytes::copy_from_slice(&key), Record { position, changes, drawn }.encode())?;
        patience.commit(txn.as_mut())?;
        Ok((result, changes))
    };
    let mut last = attempt();
    for _ in 1..ATTEMPTS_MAX {
        match &last {
            Err(e) if SqlError::retry(e) => last = attempt(),
            _ => break,
        }
    }
    last
}
