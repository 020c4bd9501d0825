//! Values that grow under their bounds.

use super::size::{ELEMENT_BYTES, heap_bytes, value_bytes, value_fits};
use super::{Array, SqlType, Value};
use crate::SqlError;
use crate::work::{Held, step};

/// A buffer is counted in pieces of so many bytes; smaller ones are not counted.
const PIECE_BYTES: usize = 64 << 10;

/// A text that is being built. It never grows past the bound of a value, and what it holds is the statement's.
#[derive(Debug, Default)]
pub struct Text {
    text: String,
    held: Held,
    held_bytes: usize,
}

impl Text {
    /// An empty one.
    pub fn new() -> Text {
        Text::default()
    }

    /// One that will have so many bytes, or somewhat fewer.
    ///
    /// # Errors
    /// As [`Text::push_str`].
    pub fn with_bytes(bytes: usize) -> Result<Text, SqlError> {
        let mut text = Text::new();
        text.make_room(bytes)?;
        text.text.reserve_exact(bytes);
        Ok(text)
    }

    #[inline]
    fn make_room(&mut self, bytes: usize) -> Result<(), SqlError> {
        step(bytes)?;
        let wanted = self.text.len().saturating_add(bytes);
        if wanted > self.held_bytes.max(PIECE_BYTES) { self.grow(wanted) } else { Ok(()) }
    }

    #[cold]
    fn grow(&mut self, wanted: usize) -> Result<(), SqlError> {
        value_fits(wanted)?;
        // As the buffer does: by half of what it has, or more.
        let target = wanted.max(self.held_bytes + self.held_bytes / 2).next_multiple_of(PIECE_BYTES);
        self.held.take(target - self.held_bytes)?;
        self.held_bytes = target;
        Ok(())
    }

    /// Appends.
    ///
    /// # Errors
    /// 54000 if a value would become too large, 53200 beyond the statement's memory, 57014.
    #[inline]
    pub fn push_str(&mut self, part: &str) -> Result<(), SqlError> {
        self.make_room(part.len())?;
        self.text.push_str(part);
        Ok(())
    }

    /// Appends one character.
    ///
    /// # Errors
    /// As [`Text::push_str`].
    #[inline]
    pub fn push(&mut self, c: char) -> Result<(), SqlError> {
        self.make_room(c.len_utf8())?;
        self.text.push(c);
        Ok(())
    }

    /// Appends a text several times.
    ///
    /// # Errors
    /// As [`Text::push_str`].
    pub fn push_repeated(&mut self, part: &str, times: usize) -> Result<(), SqlError> {
        let bytes = part.len().saturating_mul(times);
        value_fits(self.text.len().saturating_add(bytes))?;
        self.make_room(bytes)?;
        self.text.reserve(bytes);
        let (start, end) = (self.text.len(), self.text.len() + bytes);
        self.text.push_str(if times > 0 { part } else { "" });
        while self.text.len() < end {
            let copied = (self.text.len() - start).min(end - self.text.len());
            self.text.extend_from_within(start..start + copied);
        }
        Ok(())
    }

    /// Appends characters.
    ///
    /// # Errors
    /// As [`Text::push_str`].
    pub fn extend(&mut self, chars: impl Iterator<Item = char>) -> Result<(), SqlError> {
        for c in chars {
            self.push(c)?;
        }
        Ok(())
    }

    /// What it is so far.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text as a value.
    pub fn into_value(self) -> Value {
        Value::Text(self.text.into())
    }

    /// The text.
    pub fn into_string(self) -> String {
        self.text
    }
}

/// Elements of an array that is being built.
#[derive(Debug, Default)]
pub struct Items {
    values: Vec<Value>,
    bytes: usize,
    held: Held,
    unheld_bytes: usize,
}

impl Items {
    /// None yet.
    pub fn new() -> Items {
        Items::default()
    }

    /// Appends one.
    ///
    /// # Errors
    /// 54000 if the array would become too large, 53200 beyond the statement's memory, 57014.
    pub fn push(&mut self, value: Value) -> Result<(), SqlError> {
        self.bytes += ELEMENT_BYTES + value_bytes(&value);
        value_fits(self.bytes)?;
        let held_bytes = size_of::<Value>() + heap_bytes(&value);
        step(held_bytes)?;
        self.unheld_bytes += held_bytes;
        if self.unheld_bytes >= PIECE_BYTES {
            self.held.take(std::mem::take(&mut self.unheld_bytes))?;
        }
        self.values.push(value);
        Ok(())
    }

    /// Appends all of them.
    ///
    /// # Errors
    /// As [`Items::push`].
    pub fn extend(&mut self, values: impl Iterator<Item = Value>) -> Result<(), SqlError> {
        for value in values {
            self.push(value)?;
        }
        Ok(())
    }

    /// The elements.
    pub fn into_values(self) -> Vec<Value> {
        self.values
    }

    /// An array of one dimension.
    pub fn into_array(self, element: SqlType) -> Value {
        Value::Array(Array::from_values(element, self.values).into())
    }
}
