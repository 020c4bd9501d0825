//! The numbers of all sequences, as one process holds them.

use crate::catalog::{Oid, Sequence, key};
use crate::transaction::{Isolation, Kv, LockWait, Patience};
use crate::{SqlError, SqlState};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Numbers in the first block that a process takes of a sequence; each further block is twice as long.
pub const BLOCK_MIN: u64 = 32;
/// Most numbers in one block.
pub const BLOCK_MAX: u64 = 1024;
/// Attempts to move a sequence against others.
pub const ATTEMPTS_MAX: usize = 16;

const FORM: u8 = 1;
const RECORD_BYTES: usize = 10;

/// Where a sequence stands, as PostgreSQL shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// `last_value`
    pub value: i64,
    /// `is_called`: whether `value` was handed out.
    pub is_called: bool,
}

impl Position {
    fn encode(self) -> Bytes {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0] = FORM;
        bytes[1..9].copy_from_slice(&self.value.to_be_bytes());
        bytes[9] = u8::from(self.is_called);
        Bytes::copy_from_slice(&bytes)
    }
    fn decode(bytes: &[u8]) -> Result<Position, SqlError> {
        match bytes {
            [FORM, value @ .., called] if bytes.len() == RECORD_BYTES => {
                let mut number = [0; 8];
                number.copy_from_slice(value);
                Ok(Position { value: i64::from_be_bytes(number), is_called: *called != 0 })
            }
            _ => Err(SqlError::new(SqlState::IO_ERROR, "the record of a sequence cannot be read")),
        }
    }
    fn initial(sequence: &Sequence) -> Position {
        Position { value: sequence.start, is_called: false }
    }
}

/// Numbers taken and not yet handed out.
#[derive(Debug)]
struct Block {
    /// The sequence when they were taken; another descriptor makes them void.
    sequence: Sequence,
    last: Position,
    left: u64,
    next_length: u64,
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
        if let Some(block) = slot.as_mut().filter(|b| b.left > 0 && same_numbers(&b.sequence, sequence)) {
            block.last = step(sequence, block.last)?;
            block.left -= 1;
            return Ok(block.last.value);
        }
        let length = slot.as_ref().map_or(BLOCK_MIN, |b| b.next_length);
        if let Some(block) = slot.take() {
            // The sequence was altered: it goes on from where it stands, not from the end of the block.
            return_rest(kv, patience, sequence.id, &block)?;
        }
        let (last, taken) = update(kv, patience, sequence.id, |stored| take(sequence, stored, length))?;
        let first = step(sequence, last)?;
        *slot = Some(Block {
            sequence: sequence.clone(),
            last: first,
            left: taken - 1,
            next_length: (length * 2).min(BLOCK_MAX),
        });
        Ok(first.value)
    }

    /// Moves a sequence.
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
        update(kv, patience, sequence.id, |_| Ok((Position { value, is_called }, ())))
    }

    /// Where a sequence stands.
    ///
    /// # Errors
    /// Those of the layers below.
    pub fn position(&self, kv: &dyn Kv, patience: &Patience, sequence: &Sequence) -> Result<Position, SqlError> {
        let slot = self.slot(sequence.id);
        let slot = patience.lock(kv, &slot)?;
        if let Some(block) = slot.as_ref().filter(|b| same_numbers(&b.sequence, sequence)) {
            return Ok(block.last);
        }
        let mut txn = patience.begin(kv, Isolation::default())?;
        match txn.get(&key::object(key::SEQUENCES, sequence.id))? {
            Some(bytes) => Position::decode(&bytes),
            None => Ok(Position::initial(sequence)),
        }
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
    let end = advance(&block.sequence, block.last, block.left);
    update(kv, patience, id, |stored| Ok((if stored == end { block.last } else { stored.unwrap_or(block.last) }, ())))
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

/// Changes the record of a sequence in a transaction of its own.
fn update<R>(
    kv: &dyn Kv,
    patience: &Patience,
    id: Oid,
    change: impl Fn(Option<Position>) -> Result<(Position, R), SqlError>,
) -> Result<R, SqlError> {
    let record = key::object(key::SEQUENCES, id);
    let attempt = || {
        let mut txn = patience.begin(kv, Isolation::default())?;
        txn.lock(&record, LockWait::Wait)?;
        let stored = txn.get_certified(&record)?.map(|bytes| Position::decode(&bytes)).transpose()?;
        let (position, result) = change(stored)?;
        txn.put(Bytes::copy_from_slice(&record), position.encode())?;
        patience.commit(txn.as_mut())?;
        Ok(result)
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
