//! Decimals of any length: what words are measured by, and what they overflow to.

use super::word::{MAX_DISPLAY_SCALE, MIN_SIGNIFICANT_DIGITS};
use super::{Decimal, SCALE_MAX};
use crate::SqlError;
use crate::types::numeric::{MAX_WHOLE_DIGITS, overflow};
use crate::work::step;
use bigdecimal::num_bigint::{BigInt, Sign};
use std::cmp::Ordering;

/// A product or a quotient of these is about to be made.
fn work(a: &BigInt, b: &BigInt) -> Result<(), SqlError> {
    step((a.bits() / 64 + 1).saturating_mul(b.bits() / 64 + 1) as usize)
}

fn power_of_ten(exponent: i64) -> BigInt {
    BigInt::from(10u8).pow(exponent.max(0) as u32)
}

/// `digits * 10^-scale`, brought within the invariants of `numeric`.
pub(crate) fn checked(digits: BigInt, scale: i64) -> Result<Decimal, SqlError> {
    let (digits, scale) = if scale < 0 {
        if -scale > MAX_WHOLE_DIGITS {
            if digits.sign() == Sign::NoSign {
                return Ok(Decimal::from(0));
            }
            return Err(overflow());
        }
        (digits * power_of_ten(-scale), 0)
    } else {
        (digits, scale)
    };
    let value = if scale > SCALE_MAX { round_digits(&digits, scale, SCALE_MAX) } else { digits };
    let scale = scale.min(SCALE_MAX);
    // 0.3 is below log10(2): only numbers near the limit are compared with it.
    let may_be_long = value.bits() * 3 / 10 > (MAX_WHOLE_DIGITS + scale) as u64 - 1_000;
    if may_be_long && value.magnitude() >= power_of_ten(MAX_WHOLE_DIGITS + scale).magnitude() {
        return Err(overflow());
    }
    Ok(Decimal::new(value, scale))
}

/// Rounds half away from zero from one scale to a smaller one.
fn round_digits(digits: &BigInt, scale: i64, to: i64) -> BigInt {
    if to >= scale {
        return digits * power_of_ten(to - scale);
    }
    let unit = power_of_ten(scale - to);
    let half = &unit / 2;
    let rounded: BigInt = if digits.sign() == Sign::Minus { (digits - half) / unit } else { (digits + half) / unit };
    rounded
}

pub(super) fn compare(a: &Decimal, b: &Decimal) -> Ordering {
    let ((da, sa), (db, sb)) = (a.parts(), b.parts());
    if sa == sb { da.cmp(&db) } else { a.to_big().cmp(&b.to_big()) }
}

pub(super) fn neg(a: &Decimal) -> Decimal {
    let (digits, scale) = a.parts();
    Decimal::new(-digits.into_owned(), scale)
}

pub(super) fn round(a: &Decimal, scale: i64) -> Result<Decimal, SqlError> {
    let (digits, from) = a.parts();
    checked(round_digits(&digits, from, scale), scale)
}

pub(super) fn trunc(a: &Decimal, scale: i64) -> Result<Decimal, SqlError> {
    let (digits, from) = a.parts();
    if scale >= from {
        return checked(digits.into_owned() * power_of_ten(scale - from), scale);
    }
    checked(digits.into_owned() / power_of_ten(from - scale), scale)
}

pub(super) fn add(a: &Decimal, b: &Decimal) -> Result<Decimal, SqlError> {
    let ((da, sa), (db, sb)) = (a.parts(), b.parts());
    let scale = sa.max(sb);
    let (da, db) = (round_digits(&da, sa, scale), round_digits(&db, sb, scale));
    checked(da + db, scale)
}

pub(super) fn mul(a: &Decimal, b: &Decimal) -> Result<Decimal, SqlError> {
    let ((da, sa), (db, sb)) = (a.parts(), b.parts());
    work(&da, &db)?;
    checked(da.into_owned() * db.as_ref(), sa + sb)
}

pub(super) fn div(a: &Decimal, b: &Decimal) -> Result<Decimal, SqlError> {
    let scale = quotient_scale(a, b);
    let ((da, sa), (db, sb)) = (a.parts(), b.parts());
    // One digit more than wanted, and a sticky remainder, would not change rounding half away from zero:
    // the exact quotient is compared with one half instead.
    let shift = scale + sb - sa;
    let (numerator, denominator) = if shift >= 0 {
        (da.into_owned() * power_of_ten(shift), db.into_owned())
    } else {
        (da.into_owned(), db.into_owned() * power_of_ten(-shift))
    };
    work(&numerator, &denominator)?;
    checked(divide_rounded(&numerator, &denominator), scale)
}

pub(super) fn rem(a: &Decimal, b: &Decimal) -> Result<Decimal, SqlError> {
    let ((da, sa), (db, sb)) = (a.parts(), b.parts());
    let scale = sa.max(sb);
    let (da, db) = (round_digits(&da, sa, scale), round_digits(&db, sb, scale));
    work(&da, &db)?;
    checked(da % db, scale)
}

pub(super) fn whole(a: &Decimal) -> Option<i64> {
    let (digits, scale) = a.to_big().normalized().into_bigint_and_exponent();
    // Of 100 the digits are 1, and the scale is -2.
    i64::try_from(&digits).ok()?.checked_mul(10_i64.checked_pow(u32::try_from(-scale).ok()?)?)
}

pub(super) fn to_i64(a: &Decimal) -> Option<i64> {
    let (digits, scale) = a.parts();
    i64::try_from(&round_digits(&digits, scale, 0)).ok()
}

fn divide_rounded(numerator: &BigInt, denominator: &BigInt) -> BigInt {
    let quotient = numerator / denominator;
    let remainder = numerator - &quotient * denominator;
    let twice: BigInt = remainder * 2;
    if twice.magnitude() >= denominator.magnitude() {
        let up = if (numerator.sign() == Sign::Minus) == (denominator.sign() == Sign::Minus) { 1 } else { -1 };
        quotient + up
    } else {
        quotient
    }
}

/// See [`Decimal::leading_digit`].
pub(super) fn leading_digit(value: &Decimal) -> (i64, i64) {
    if value.signum() == 0 {
        return (0, 0);
    }
    let scale = value.scale();
    value.with_text(|text| {
        let top = text.len() as i64 - 1 - scale;
        let weight = top.div_euclid(4);
        let width = (top - weight * 4 + 1) as usize;
        let shown = &text[..width.min(text.len())];
        let first = shown.iter().fold(0, |first, digit| first * 10 + i64::from(digit - b'0'));
        (weight, first * 10_i64.pow((width - shown.len()) as u32))
    })
}

fn quotient_scale(a: &Decimal, b: &Decimal) -> i64 {
    let ((weight_a, first_a), (weight_b, first_b)) = (leading_digit(a), leading_digit(b));
    let mut weight = weight_a - weight_b;
    if first_a <= first_b {
        weight -= 1;
    }
    (MIN_SIGNIFICANT_DIGITS - weight * 4).max(a.scale()).max(b.scale()).clamp(0, MAX_DISPLAY_SCALE)
}
