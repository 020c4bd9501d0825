//! Finite decimals: an integer, and how many of its digits stand after the point.
//!
//! **Problem.** Almost all decimals in a table fit a machine word, and digits without a limit cost an allocation for each of them: to
//! decode, to add, to copy, to drop.
//!
//! **Idea.** One type with two forms behind one door. What fits 128 bits is held in place ([`word`]); all else, and what an operation on
//! words would overflow to, is held with as many digits as it needs ([`exact`]). Who uses a [`Decimal`] does not see which it is.
//!
//! **Invariants.**
//! 1. Digits that fit 128 bits, with a scale between 0 and [`SCALE_MAX`], are a word: a value with its scale has one form.
//! 2. An operation in words gives what the exact one gives, to the digit and the scale, or nothing at all (`tests`).
//! 3. Equality and order are those of numbers: `1.0` equals `1.00`.

pub(crate) mod exact;
#[cfg(test)]
mod tests;
pub(crate) mod word;

use crate::SqlError;
use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::{BigInt, Sign};
use std::borrow::Cow;
use std::cmp::Ordering;
use word::Word;

/// Greatest number of digits after the point.
pub(crate) const SCALE_MAX: i64 = 16_383;

/// A finite decimal and the scale that it shows.
#[derive(Clone, Debug)]
pub struct Decimal(Form);

/// Halves rather than one integer of 16 bytes, which would have to stand at a multiple of 16 in every value.
#[derive(Clone, Debug)]
enum Form {
    Word { scale: u16, low: u64, high: i64 },
    Long(Box<BigDecimal>),
}

impl Decimal {
    /// `digits * 10^-scale`.
    pub fn new(digits: BigInt, scale: i64) -> Decimal {
        match (i128::try_from(&digits), u16::try_from(scale)) {
            (Ok(digits), Ok(scale)) if i64::from(scale) <= SCALE_MAX => Word { digits, scale }.into(),
            _ => Decimal(Form::Long(Box::new(BigDecimal::new(digits, scale)))),
        }
    }

    /// From decimal digits, and nothing else; `None`: there are none.
    pub(crate) fn from_text(negative: bool, text: &[u8], scale: i64) -> Option<Decimal> {
        if let (Some(digits), Ok(scale)) = (word::from_text(text), u16::try_from(scale))
            && i64::from(scale) <= SCALE_MAX
        {
            return Some(Word { digits: if negative { -digits } else { digits }, scale }.into());
        }
        let digits = BigInt::parse_bytes(text, 10)?;
        Some(Decimal::new(if negative { -digits } else { digits }, scale))
    }

    /// Reads what [`Decimal::write_le_bytes`] wrote.
    #[inline]
    pub fn from_le_bytes(digits: &[u8], scale: i32) -> Decimal {
        match u16::try_from(scale) {
            Ok(scale) if i64::from(scale) <= SCALE_MAX && digits.len() <= 16 => {
                Word { digits: word::from_le_bytes(digits), scale }.into()
            }
            _ => Decimal::new(BigInt::from_signed_bytes_le(digits), i64::from(scale)),
        }
    }

    /// Appends the digits as the fewest bytes that hold them and their sign, the lowest first.
    pub fn write_le_bytes(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Form::Word { low, high, .. } => word::write_le_bytes(join(*low, *high), out),
            Form::Long(value) => out.extend_from_slice(&value.as_bigint_and_scale().0.to_signed_bytes_le()),
        }
    }

    /// Digits after the point.
    #[inline]
    pub fn scale(&self) -> i64 {
        match &self.0 {
            Form::Word { scale, .. } => i64::from(*scale),
            Form::Long(value) => value.as_bigint_and_scale().1,
        }
    }

    /// -1, 0 or 1.
    pub fn signum(&self) -> i32 {
        match &self.0 {
            Form::Word { low, high, .. } => join(*low, *high).signum() as i32,
            Form::Long(value) => match value.sign() {
                Sign::Minus => -1,
                Sign::NoSign => 0,
                Sign::Plus => 1,
            },
        }
    }

    /// Bits of the digits.
    pub(crate) fn bits(&self) -> u64 {
        match &self.0 {
            Form::Word { low, high, .. } => u64::from(u128::BITS - join(*low, *high).unsigned_abs().leading_zeros()),
            Form::Long(value) => value.as_bigint_and_scale().0.bits(),
        }
    }

    /// Whether it holds memory beside its own place.
    pub(crate) fn is_long(&self) -> bool {
        matches!(self.0, Form::Long(_))
    }

    /// Digits and scale, without a limit.
    pub fn parts(&self) -> (Cow<'_, BigInt>, i64) {
        match &self.0 {
            Form::Word { scale, low, high } => (Cow::Owned(BigInt::from(join(*low, *high))), i64::from(*scale)),
            Form::Long(value) => value.as_bigint_and_scale(),
        }
    }

    /// As a number of the library's.
    pub fn to_big(&self) -> BigDecimal {
        match &self.0 {
            Form::Word { .. } => {
                let (digits, scale) = self.parts();
                BigDecimal::new(digits.into_owned(), scale)
            }
            Form::Long(value) => value.as_ref().clone(),
        }
    }

    #[inline]
    pub(crate) fn word(&self) -> Option<Word> {
        match &self.0 {
            Form::Word { scale, low, high } => Some(Word { digits: join(*low, *high), scale: *scale }),
            Form::Long(_) => None,
        }
    }

    /// Shows the decimal digits of its absolute value, without zeros in front; of 0 one.
    pub(crate) fn with_text<R>(&self, show: impl FnOnce(&[u8]) -> R) -> R {
        match &self.0 {
            Form::Word { low, high, .. } => word::with_text(join(*low, *high).unsigned_abs(), show),
            Form::Long(value) => show(value.as_bigint_and_scale().0.magnitude().to_str_radix(10).as_bytes()),
        }
    }

    /// Whether its digits are fewer than `count`, but for zeros in front.
    pub(crate) fn has_at_most(&self, count: i64) -> bool {
        match self.word() {
            Some(word) => {
                let digits = word.digits.unsigned_abs().checked_ilog10();
                digits.is_none_or(|tens| i64::from(tens) < count)
            }
            None => self.with_text(|text| text.len() as i64 <= count),
        }
    }

    /// If it is a whole number that fits.
    #[inline]
    pub fn whole(&self) -> Option<i64> {
        match self.word() {
            Some(word) => word::whole(word),
            None => exact::whole(self),
        }
    }

    /// Weight of the first base-10000 digit, and that digit, as PostgreSQL's `select_div_scale` sees them.
    pub fn leading_digit(&self) -> (i64, i64) {
        exact::leading_digit(self)
    }

    /// In the one form of all that equal it, zeros at the end left out: the digits as [`Decimal::write_le_bytes`] writes them, and the scale,
    /// which may be negative.
    pub fn write_normalized(&self, out: &mut Vec<u8>) -> i64 {
        match &self.0 {
            Form::Word { scale, low, high } => {
                let (digits, scale) = word::normalized(join(*low, *high), i64::from(*scale));
                word::write_le_bytes(digits, out);
                scale
            }
            Form::Long(value) => {
                let (digits, scale) = value.normalized().into_bigint_and_exponent();
                out.extend_from_slice(&digits.to_signed_bytes_le());
                scale
            }
        }
    }

    /// Its digits with so many of them after the point, if that is exact and fits 64 bits.
    pub fn digits_at(&self, scale: i64) -> Option<i64> {
        let word = self.word()?;
        let digits = word::at_scale(word, u16::try_from(scale).ok()?)?;
        i64::try_from(digits).ok()
    }

    /// The order of numbers.
    #[inline]
    pub fn compare(&self, other: &Decimal) -> Ordering {
        let quick = match (self.word(), other.word()) {
            (Some(a), Some(b)) => word::compare(a, b),
            _ => None,
        };
        quick.unwrap_or_else(|| exact::compare(self, other))
    }

    /// The opposite.
    pub fn neg(&self) -> Decimal {
        self.word().and_then(word::neg).map_or_else(|| exact::neg(self), Decimal::from)
    }

    /// Sum; its scale is the greater of the two.
    #[inline]
    pub(crate) fn add(&self, other: &Decimal) -> Result<Decimal, SqlError> {
        self.by(other, word::add, exact::add)
    }

    /// Adds in place; `false`: nothing was done, for the sum is no word.
    #[inline]
    pub(crate) fn add_word(&mut self, other: &Decimal) -> bool {
        let sum = match (self.word(), other.word()) {
            (Some(a), Some(b)) => word::add(a, b),
            _ => None,
        };
        sum.is_some_and(|sum| {
            *self = sum.into();
            true
        })
    }

    /// Difference; its scale is the greater of the two.
    #[inline]
    pub(crate) fn sub(&self, other: &Decimal) -> Result<Decimal, SqlError> {
        self.by(other, word::sub, |a, b| exact::add(a, &b.neg()))
    }

    /// Product; its scale is the sum of the two.
    #[inline]
    pub(crate) fn mul(&self, other: &Decimal) -> Result<Decimal, SqlError> {
        self.by(other, word::mul, exact::mul)
    }

    /// Quotient, with at least 16 significant digits. `other` is not 0.
    pub(crate) fn div(&self, other: &Decimal) -> Result<Decimal, SqlError> {
        self.by(other, word::div, exact::div)
    }

    /// Remainder with the sign of the dividend. `other` is not 0.
    pub(crate) fn rem(&self, other: &Decimal) -> Result<Decimal, SqlError> {
        self.by(other, word::rem, exact::rem)
    }

    /// Rounds half away from zero to `scale` digits after the point (before it, if negative).
    pub(crate) fn round(&self, scale: i64) -> Result<Decimal, SqlError> {
        let quick = self.word().zip(u16::try_from(scale).ok()).and_then(|(a, scale)| word::round(a, scale));
        quick.map_or_else(|| exact::round(self, scale), |rounded| Ok(rounded.into()))
    }

    /// Cuts to `scale` digits after the point.
    pub(crate) fn trunc(&self, scale: i64) -> Result<Decimal, SqlError> {
        let quick = self.word().zip(u16::try_from(scale).ok()).and_then(|(a, scale)| word::trunc(a, scale));
        quick.map_or_else(|| exact::trunc(self, scale), |cut| Ok(cut.into()))
    }

    /// The nearest whole number, if it fits.
    pub(crate) fn to_i64(&self) -> Option<i64> {
        match self.word().and_then(|a| word::round(a, 0)) {
            Some(rounded) => i64::try_from(rounded.digits).ok(),
            None => exact::to_i64(self),
        }
    }

    #[inline(always)]
    fn by(
        &self,
        other: &Decimal,
        quick: impl Fn(Word, Word) -> Option<Word>,
        slow: impl Fn(&Decimal, &Decimal) -> Result<Decimal, SqlError>,
    ) -> Result<Decimal, SqlError> {
        if let (Some(a), Some(b)) = (self.word(), other.word())
            && let Some(result) = quick(a, b)
        {
            return Ok(result.into());
        }
        slow(self, other)
    }
}

#[inline]
fn join(low: u64, high: i64) -> i128 {
    i128::from(high) << 64 | i128::from(low)
}

impl From<Word> for Decimal {
    #[inline]
    fn from(word: Word) -> Decimal {
        Decimal(Form::Word { scale: word.scale, low: word.digits as u64, high: (word.digits >> 64) as i64 })
    }
}

impl From<i128> for Decimal {
    #[inline]
    fn from(digits: i128) -> Decimal {
        Word { digits, scale: 0 }.into()
    }
}

impl From<BigDecimal> for Decimal {
    fn from(value: BigDecimal) -> Decimal {
        let (digits, scale) = value.into_bigint_and_scale();
        Decimal::new(digits, scale)
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.compare(other).is_eq()
    }
}
