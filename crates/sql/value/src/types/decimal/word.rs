//! Decimals of at most 128 bits. `None`: the result is none of them, or it is not worth a way of its own; the exact way knows it.
//!
//! Most operands fit 64 bits, whose products and quotients are instructions: they are asked for first.

use super::SCALE_MAX;
use std::cmp::Ordering;

/// A quotient has at least this many significant digits.
pub(super) const MIN_SIGNIFICANT_DIGITS: i64 = 16;
/// Greatest scale of a quotient and its kind.
pub(super) const MAX_DISPLAY_SCALE: i64 = 1_000;
/// Decimal digits of the greatest word.
const DIGITS_MAX: usize = 39;

const POWERS_OF_TEN: [i128; DIGITS_MAX] = {
    let mut powers = [1; DIGITS_MAX];
    let mut at = 1;
    while at < DIGITS_MAX {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// `digits * 10^-scale`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) digits: i128,
    pub(crate) scale: u16,
}

impl Word {
    /// The nearest float8; `None` if one division does not give it.
    pub(crate) fn to_f64(self) -> Option<f64> {
        /// Integers below it, and powers of ten up to the scale, are floats without an error.
        const EXACT: i128 = 1 << 53;
        const EXACT_SCALE: u16 = 22;
        let exact = -EXACT < self.digits && self.digits < EXACT && self.scale <= EXACT_SCALE;
        exact.then(|| self.digits as f64 / POWERS_OF_TEN[usize::from(self.scale)] as f64)
    }
}

#[inline]
fn power_of_ten(exponent: u16) -> Option<i128> {
    POWERS_OF_TEN.get(usize::from(exponent)).copied()
}

#[inline]
fn product(a: i128, b: i128) -> Option<i128> {
    if a == i128::from(a as i64) && b == i128::from(b as i64) {
        return Some(i128::from(a as i64) * i128::from(b as i64));
    }
    a.checked_mul(b)
}

/// Both with the greater scale of the two.
#[inline]
fn aligned(a: Word, b: Word) -> Option<(i128, i128, u16)> {
    match a.scale.cmp(&b.scale) {
        Ordering::Equal => Some((a.digits, b.digits, a.scale)),
        Ordering::Less => Some((product(a.digits, power_of_ten(b.scale - a.scale)?)?, b.digits, b.scale)),
        Ordering::Greater => Some((a.digits, product(b.digits, power_of_ten(a.scale - b.scale)?)?, a.scale)),
    }
}

/// The digits of a number at a scale that is not less than its own.
pub(super) fn at_scale(a: Word, scale: u16) -> Option<i128> {
    product(a.digits, power_of_ten(scale.checked_sub(a.scale)?)?)
}

#[inline]
pub(super) fn compare(a: Word, b: Word) -> Option<Ordering> {
    aligned(a, b).map(|(a, b, _)| a.cmp(&b))
}

pub(super) fn neg(a: Word) -> Option<Word> {
    Some(Word { digits: a.digits.checked_neg()?, ..a })
}

#[inline]
pub(super) fn add(a: Word, b: Word) -> Option<Word> {
    let (a, b, scale) = aligned(a, b)?;
    Some(Word { digits: a.checked_add(b)?, scale })
}

#[inline]
pub(super) fn sub(a: Word, b: Word) -> Option<Word> {
    let (a, b, scale) = aligned(a, b)?;
    Some(Word { digits: a.checked_sub(b)?, scale })
}

#[inline]
pub(super) fn mul(a: Word, b: Word) -> Option<Word> {
    let scale = a.scale + b.scale;
    let digits = product(a.digits, b.digits)?;
    (i64::from(scale) <= SCALE_MAX).then_some(Word { digits, scale })
}

/// `a / b`, rounded half away from zero.
fn quotient(a: i128, b: i128) -> Option<i128> {
    let cut = a.checked_div(b)?;
    let (rest, whole) = (a.checked_rem(b)?.unsigned_abs(), b.unsigned_abs());
    if rest < whole - rest {
        return Some(cut);
    }
    cut.checked_add(if (a < 0) == (b < 0) { 1 } else { -1 })
}

pub(super) fn div(a: Word, b: Word) -> Option<Word> {
    let scale = quotient_scale(a, b);
    let shift = u16::try_from(scale + i64::from(b.scale) - i64::from(a.scale)).ok()?;
    Some(Word { digits: quotient(product(a.digits, power_of_ten(shift)?)?, b.digits)?, scale: scale as u16 })
}

pub(super) fn rem(a: Word, b: Word) -> Option<Word> {
    let (a, b, scale) = aligned(a, b)?;
    Some(Word { digits: a.checked_rem(b)?, scale })
}

pub(super) fn round(a: Word, scale: u16) -> Option<Word> {
    let digits = match scale.checked_sub(a.scale) {
        Some(more) => product(a.digits, power_of_ten(more)?)?,
        None => quotient(a.digits, power_of_ten(a.scale - scale)?)?,
    };
    Some(Word { digits, scale })
}

pub(super) fn trunc(a: Word, scale: u16) -> Option<Word> {
    let digits = match scale.checked_sub(a.scale) {
        Some(more) => product(a.digits, power_of_ten(more)?)?,
        None => a.digits / power_of_ten(a.scale - scale)?,
    };
    Some(Word { digits, scale })
}

/// Weight of the first base-10000 digit, and that digit, as PostgreSQL's `select_div_scale` sees them.
fn leading_digit(a: Word) -> (i64, i128) {
    let digits = a.digits.unsigned_abs();
    let Some(tens) = digits.checked_ilog10() else { return (0, 0) };
    let top = i64::from(tens) - i64::from(a.scale);
    let weight = top.div_euclid(4);
    // Of its digits so many are the first base-10000 digit's.
    let width = (top - weight * 4 + 1) as u32;
    let power = |exponent: u32| POWERS_OF_TEN[exponent as usize] as u128;
    let first = if tens + 1 >= width { digits / power(tens + 1 - width) } else { digits * power(width - tens - 1) };
    (weight, first as i128)
}

/// PostgreSQL's scale of a quotient.
fn quotient_scale(a: Word, b: Word) -> i64 {
    let ((weight_a, first_a), (weight_b, first_b)) = (leading_digit(a), leading_digit(b));
    let weight = weight_a - weight_b - i64::from(first_a <= first_b);
    let shown = i64::from(a.scale.max(b.scale));
    (MIN_SIGNIFICANT_DIGITS - weight * 4).max(shown).clamp(0, MAX_DISPLAY_SCALE)
}

#[inline]
pub(super) fn whole(a: Word) -> Option<i64> {
    if a.digits == 0 {
        return Some(0);
    }
    let unit = power_of_ten(a.scale)?;
    let digits = if a.scale == 0 {
        a.digits
    } else if let (Ok(digits), Ok(unit)) = (i64::try_from(a.digits), i64::try_from(unit)) {
        (digits % unit == 0).then_some(i128::from(digits / unit))?
    } else {
        (a.digits % unit == 0).then_some(a.digits / unit)?
    };
    i64::try_from(digits).ok()
}

/// Without zeros at the end; 0 has the scale 0.
pub(super) fn normalized(digits: i128, scale: i64) -> (i128, i64) {
    if digits == 0 {
        return (0, 0);
    }
    let (mut digits, mut scale) = (digits, scale);
    while let Ok(short) = i64::try_from(digits) {
        if short % 10 != 0 {
            return (digits, scale);
        }
        (digits, scale) = (i128::from(short / 10), scale - 1);
    }
    while digits % 10 == 0 {
        (digits, scale) = (digits / 10, scale - 1);
    }
    // What was long may end in more zeros than it takes to be short: they are all gone by now.
    (digits, scale)
}

/// From decimal digits; `None`: they may be too many, or there are none.
pub(super) fn from_text(text: &[u8]) -> Option<i128> {
    if text.is_empty() || text.len() >= DIGITS_MAX {
        return None;
    }
    let part = |text: &[u8]| text.iter().fold(0, |sum: u64, digit| sum * 10 + u64::from(digit - b'0'));
    let (front, last) = text.split_at(text.len().saturating_sub(19));
    Some(i128::from(part(front)) * POWERS_OF_TEN[last.len()] + i128::from(part(last)))
}

/// At most 16 bytes, with their sign.
#[inline]
pub(super) fn from_le_bytes(bytes: &[u8]) -> i128 {
    let sign = if bytes.last().is_some_and(|last| last & 0x80 != 0) { 0xff } else { 0 };
    if bytes.len() <= 8 {
        let mut word = [sign; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        return i128::from(i64::from_le_bytes(word));
    }
    let mut word = [sign; 16];
    word[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(word)
}

/// The fewest bytes that hold a number and its sign; of 0 one.
#[inline]
pub(super) fn write_le_bytes(digits: i128, out: &mut Vec<u8>) {
    // Bits beside the sign that say nothing: as many as repeat it.
    let same = (digits ^ digits >> 127).leading_zeros() - 1;
    let count = 16 - same as usize / 8;
    out.extend_from_slice(&digits.to_le_bytes()[..count]);
}

/// Shows the decimal digits of a number.
pub(super) fn with_text<R>(number: u128, show: impl FnOnce(&[u8]) -> R) -> R {
    /// Ten to the power of nineteen is the greatest in 64 bits.
    const CHUNK: u128 = 10_000_000_000_000_000_000;
    let mut text = [b'0'; DIGITS_MAX];
    let mut at = DIGITS_MAX;
    let mut left = number;
    while left > u128::from(u64::MAX) {
        let mut part = (left % CHUNK) as u64;
        left /= CHUNK;
        for place in text[at - 19..at].iter_mut().rev() {
            *place = b'0' + (part % 10) as u8;
            part /= 10;
        }
        at -= 19;
    }
    let mut part = left as u64;
    loop {
        at -= 1;
        text[at] = b'0' + (part % 10) as u8;
        part /= 10;
        if part == 0 {
            break;
        }
    }
    show(&text[at..])
}
