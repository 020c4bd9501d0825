//! Conditions that are asked of a row's bytes.
//!
//! **Problem.** Of a large scan most rows are left out by a comparison of a number, a date or a short text with a constant. To ask it the column was made
//! a value (a text: an allocation), the expression walked for each row, and its answer wrapped as a value again: more than half of what such a scan costs.
//!
//! **Idea.** When a scan starts, the conditions that compare a column with a constant (LIKE, too: [`like`]), or with another column of its kind, are compiled ([`compile`]): what
//! was an expression over values becomes a test over the bytes of [`super::row`], whose constants stand as the bytes do. A row that fails has nothing
//! decoded.
//!
//! **Invariants.**
//! 1. A test says what the expression would: true, false, or NULL (a property test holds the evaluator beside it). It raises no error
//!    but that the statement was ended, and allocates nothing but where digits beyond a word are compared.
//! 2. Conditions are asked in their order. So tests are made of those in front, up to the first that cannot be one; the rest stay with the evaluator, and
//!    are asked of rows that passed.
//! 3. What is a constant is settled when the scan starts: literals, parameters, columns of the row around it.
//!
//! Caveat: a date that is no timestamp, being too late, is compared with one as PostgreSQL does it: it is later. (The cast that is left out would fail.)

mod compile;
mod like;
#[cfg(test)]
mod tests;

pub(crate) use compile::Around;

use super::row::{self, RowView, Stored};
use crate::SqlError;
use crate::expr::CompareOp;
use crate::types::{Numeric, SqlType, Value};
use std::cmp::Ordering;

/// Microseconds of a day.
const DAY_US: i64 = 86_400_000_000;

/// Conditions all of which must be true.
#[derive(Debug, Default)]
pub(crate) struct ByteFilter {
    tests: Vec<Test>,
}

/// How the bytes of a column are read as a number of 64 bits that orders as its values do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    /// Days as the microseconds at which they begin; the infinities stay what they are.
    Midnight,
}

/// A column, and how it is read.
#[derive(Clone, Copy, Debug)]
struct Column {
    /// Its id: where it stands in a row.
    id: u16,
}

/// A constant decimal.
#[derive(Debug)]
struct Number {
    value: Numeric,
    /// The same as digits at the column's own scale, if it has one there: most values have just that.
    scale: i32,
    digits: Option<i64>,
}

#[derive(Debug)]
enum Test {
    /// It is known.
    Known(Option<bool>),
    Word(Column, Word, CompareOp, i64),
    Words(Column, Word, CompareOp, Column, Word),
    Number(Column, CompareOp, Number),
    Numbers(Column, CompareOp, Column),
    /// `padded`: trailing blanks do not count.
    Text {
        column: Column,
        op: CompareOp,
        with: Box<[u8]>,
        padded: bool,
    },
    Texts {
        left: Column,
        op: CompareOp,
        right: Column,
        padded: bool,
    },
    /// `with_null`: a NULL stands in the list.
    WordIn {
        column: Column,
        word: Word,
        list: Box<[i64]>,
        with_null: bool,
    },
    TextIn {
        column: Column,
        list: Box<[Box<[u8]>]>,
        padded: bool,
        with_null: bool,
    },
    Like(Column, like::Pattern),
    IsNull(Column),
    Not(Box<Test>),
    And(Vec<Test>),
    Or(Vec<Test>),
}

impl ByteFilter {
    /// Whether there is nothing to ask.
    pub(crate) fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    /// Whether all hold for a stored row.
    ///
    /// # Errors
    /// XX000: it is no row.
    #[inline]
    pub(crate) fn passes(&self, stored: &[u8]) -> Result<bool, SqlError> {
        let view = RowView::new(stored)?;
        for test in &self.tests {
            if test.answer(&view)? != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Column {
    /// Its bytes; `None`: NULL. (Columns that older rows may lack have no test, but those that are NULL there.)
    #[inline]
    fn bytes<'a>(self, view: &RowView<'a>) -> Result<Option<&'a [u8]>, SqlError> {
        Ok(match view.column(self.id)? {
            Stored::Bytes(bytes) => Some(bytes),
            Stored::Null | Stored::Missing => None,
        })
    }
}

impl Word {
    /// How values of a type are read; none: they are no words.
    fn of(ty: &SqlType) -> Option<Word> {
        Some(match ty {
            SqlType::Bool => Word::Bool,
            SqlType::Int2 => Word::Int2,
            SqlType::Int4 | SqlType::Date => Word::Int4,
            SqlType::Int8 | SqlType::Time(_) | SqlType::Timestamp(_) | SqlType::Timestamptz(_) => Word::Int8,
            SqlType::Oid => Word::Oid,
            _ => return None,
        })
    }

    #[inline]
    fn read(self, bytes: &[u8]) -> Result<i64, SqlError> {
        fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], SqlError> {
            bytes.try_into().map_err(|_| row::wrong_length())
        }
        Ok(match self {
            Word::Bool => i64::from(fixed::<1>(bytes)?[0] != 0),
            Word::Int2 => i64::from(i16::from_le_bytes(fixed(bytes)?)),
            Word::Int4 => i64::from(i32::from_le_bytes(fixed(bytes)?)),
            Word::Int8 => i64::from_le_bytes(fixed(bytes)?),
            Word::Oid => i64::from(u32::from_le_bytes(fixed(bytes)?)),
            Word::Midnight => midnight_us(i32::from_le_bytes(fixed(bytes)?)),
        })
    }
}

/// When a day begins. Beyond all timestamps it is short of infinity by one.
#[inline]
fn midnight_us(days: i32) -> i64 {
    match days {
        i32::MAX => i64::MAX,
        i32::MIN => i64::MIN,
        days => i64::from(days).saturating_mul(DAY_US).clamp(i64::MIN + 1, i64::MAX - 1),
    }
}

#[inline]
fn text(bytes: &[u8], padded: bool) -> &[u8] {
    let end = if padded { bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |at| at + 1) } else { bytes.len() };
    &bytes[..end]
}

/// The digits of a finite decimal at this scale, if it has it and they fit 64 bits.
#[inline]
fn digits_at(bytes: &[u8], scale: i32) -> Option<i64> {
    let (own, digits) = row::finite(bytes)?;
    if own != scale || digits.len() > 8 {
        return None;
    }
    let sign = if digits.last().is_some_and(|last| last & 0x80 != 0) { 0xff } else { 0 };
    let mut word = [sign; 8];
    word[..digits.len()].copy_from_slice(digits);
    Some(i64::from_le_bytes(word))
}

impl Number {
    #[inline]
    fn order(&self, bytes: &[u8]) -> Result<Ordering, SqlError> {
        if let Some(digits) = self.digits
            && let Some(other) = digits_at(bytes, self.scale)
        {
            return Ok(other.cmp(&digits));
        }
        Ok(row::decode_numeric(bytes)?.compare(&self.value))
    }
}

impl Test {
    /// True, false, or NULL.
    #[inline]
    fn answer(&self, view: &RowView<'_>) -> Result<Option<bool>, SqlError> {
        Ok(match self {
            Test::Word(column, word, op, with) => match column.bytes(view)? {
                Some(bytes) => Some(op.holds(word.read(bytes)?.cmp(with))),
                None => None,
            },
            Test::Number(column, op, with) => match column.bytes(view)? {
                Some(bytes) => Some(op.holds(with.order(bytes)?)),
                None => None,
            },
            Test::Text { column, op, with, padded } => {
                column.bytes(view)?.map(|bytes| op.holds(text(bytes, *padded).cmp(with)))
            }
            Test::Words(left, left_word, op, right, right_word) => match (left.bytes(view)?, right.bytes(view)?) {
                (Some(left), Some(right)) => Some(op.holds(left_word.read(left)?.cmp(&right_word.read(right)?))),
                _ => None,
            },
            other => other.answer_rest(view)?,
        })
    }

    fn answer_rest(&self, view: &RowView<'_>) -> Result<Option<bool>, SqlError> {
        Ok(match self {
            Test::Known(answer) => *answer,
            Test::Numbers(left, op, right) => match (left.bytes(view)?, right.bytes(view)?) {
                (Some(left), Some(right)) => {
                    Some(op.holds(row::decode_numeric(left)?.compare(&row::decode_numeric(right)?)))
                }
                _ => None,
            },
            Test::Texts { left, op, right, padded } => match (left.bytes(view)?, right.bytes(view)?) {
                (Some(left), Some(right)) => Some(op.holds(text(left, *padded).cmp(text(right, *padded)))),
                _ => None,
            },
            Test::WordIn { column, word, list, with_null } => match column.bytes(view)? {
                Some(bytes) => is_in(list.contains(&word.read(bytes)?), *with_null),
                None => None,
            },
            Test::TextIn { column, list, padded, with_null } => column.bytes(view)?.and_then(|bytes| {
                let bytes = text(bytes, *padded);
                is_in(list.iter().any(|item| **item == *bytes), *with_null)
            }),
            Test::Like(column, pattern) => match column.bytes(view)? {
                Some(bytes) => Some(pattern.matches(bytes)?),
                None => None,
            },
            Test::IsNull(column) => Some(column.bytes(view)?.is_none()),
            Test::Not(test) => test.answer(view)?.map(|answer| !answer),
            Test::And(tests) => all_of(tests, false, view)?,
            Test::Or(tests) => all_of(tests, true, view)?,
            // The rest is in `answer`.
            Test::Word(..) | Test::Number(..) | Test::Text { .. } | Test::Words(..) => None,
        })
    }
}

/// What IN says of a value that was found in its list, or was not.
#[inline]
fn is_in(found: bool, with_null: bool) -> Option<bool> {
    match (found, with_null) {
        (true, _) => Some(true),
        (false, true) => None,
        (false, false) => Some(false),
    }
}

/// AND (`until` false) and OR (`until` true).
fn all_of(tests: &[Test], until: bool, view: &RowView<'_>) -> Result<Option<bool>, SqlError> {
    let mut unknown = false;
    for test in tests {
        match test.answer(view)? {
            Some(answer) if answer == until => return Ok(Some(until)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(!until) })
}

/// A value as a word, for a comparison with one that is read so.
fn word_of(value: &Value, word: Word) -> Option<i64> {
    Some(match (value, word) {
        (Value::Bool(v), Word::Bool) => i64::from(*v),
        (Value::Int2(v), Word::Int2) => i64::from(*v),
        (Value::Int4(v) | Value::Date(v), Word::Int4) => i64::from(*v),
        (Value::Int8(v) | Value::Time(v) | Value::Timestamp(v) | Value::Timestamptz(v), Word::Int8) => *v,
        (Value::Timestamp(v), Word::Midnight) => *v,
        (Value::Oid(v), Word::Oid) => i64::from(*v),
        _ => return None,
    })
}
