//! numeric: text and binary forms, and arithmetic with PostgreSQL's result scales.
//!
//! A finite value is kept as an integer and a scale (digits after the point), and the scale is what it shows.
//!
//! Invariants:
//! 1. The scale of a finite value is between 0 and [`MAX_SCALE`]; an exponent in a text is multiplied out.
//! 2. A finite value has at most [`MAX_WHOLE_DIGITS`] digits before the point, so that a short text such as `1e999999999`
//!    can never make a long number.

use super::number::{invalid_syntax, trim};
use super::{Numeric, SqlType};
use crate::work::step;
use crate::{SqlError, SqlState};
use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::{BigInt, Sign};
use bytes::{Buf, BufMut};
use std::cmp::Ordering;

/// Greatest number of digits after the point.
pub(crate) const MAX_SCALE: i64 = 16_383;
/// Greatest number of digits before the point.
pub(crate) const MAX_WHOLE_DIGITS: i64 = 131_072;
/// A quotient has at least this many significant digits.
const MIN_SIGNIFICANT_DIGITS: i64 = 16;
/// Greatest scale of a quotient and its kind.
const MAX_DISPLAY_SCALE: i64 = 1_000;

/// 22003
pub fn overflow() -> SqlError {
    SqlError::new(SqlState::OUT_OF_RANGE, "value overflows numeric format")
}

/// 22012
pub fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// A product or a quotient of these is about to be made.
fn work(a: &BigInt, b: &BigInt) -> Result<(), SqlError> {
    step((a.bits() / 64 + 1).saturating_mul(b.bits() / 64 + 1) as usize)
}

fn power_of_ten(exponent: i64) -> BigInt {
    BigInt::from(10u8).pow(exponent.max(0) as u32)
}

/// `digits * 10^-scale`, brought within the invariants.
fn checked(digits: BigInt, scale: i64) -> Result<Numeric, SqlError> {
    let (digits, scale) = if scale < 0 {
        if -scale > MAX_WHOLE_DIGITS {
            if digits.sign() == Sign::NoSign {
                return Ok(Numeric::from(0));
            }
            return Err(overflow());
        }
        (digits * power_of_ten(-scale), 0)
    } else {
        (digits, scale)
    };
    let value = if scale > MAX_SCALE { round_digits(&digits, scale, MAX_SCALE) } else { digits };
    let scale = scale.min(MAX_SCALE);
    // 0.3 is below log10(2): only numbers near the limit are compared with it.
    let may_be_long = value.bits() * 3 / 10 > (MAX_WHOLE_DIGITS + scale) as u64 - 1_000;
    if may_be_long && value.magnitude() >= power_of_ten(MAX_WHOLE_DIGITS + scale).magnitude() {
        return Err(overflow());
    }
    Ok(Numeric::Finite(BigDecimal::new(value, scale)))
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

impl From<i64> for Numeric {
    fn from(value: i64) -> Self {
        Numeric::Finite(BigDecimal::new(BigInt::from(value), 0))
    }
}

impl Numeric {
    /// Reads a number.
    ///
    /// # Errors
    /// 22P02 for what is no number, 22003 for one with too many digits.
    pub fn parse(text: &str) -> Result<Numeric, SqlError> {
        let bad = || invalid_syntax(&SqlType::Numeric(None), text);
        let body = trim(text);
        let (negative, unsigned) = match body.as_bytes().first() {
            Some(b'-') => (true, &body[1..]),
            Some(b'+') => (false, &body[1..]),
            _ => (false, body),
        };
        if body.eq_ignore_ascii_case("nan") {
            return Ok(Numeric::NaN);
        }
        if unsigned.eq_ignore_ascii_case("infinity") || unsigned.eq_ignore_ascii_case("inf") {
            return Ok(if negative { Numeric::NegInfinity } else { Numeric::Infinity });
        }
        let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
            Some(at) => (&unsigned[..at], parse_exponent(&unsigned[at + 1..]).ok_or_else(bad)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() {
            return Err(bad());
        }
        if !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        let scale = (fraction.len() as i64).saturating_sub(exponent);
        let whole = whole.trim_start_matches('0');
        let mut digits = Vec::with_capacity(whole.len() + fraction.len());
        digits.extend_from_slice(whole.as_bytes());
        digits.extend_from_slice(fraction.as_bytes());
        if scale > MAX_SCALE {
            return Err(overflow());
        }
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..zeros);
        if digits.is_empty() {
            digits.push(b'0');
        } else if digits.len() as i64 - scale > MAX_WHOLE_DIGITS {
            return Err(overflow());
        }
        let mut value =
            match std::str::from_utf8(&digits).ok().filter(|d| d.len() <= 18).and_then(|d| d.parse::<i64>().ok()) {
                Some(small) => BigInt::from(small),
                None => BigInt::parse_bytes(&digits, 10).ok_or_else(bad)?,
            };
        if negative {
            value = -value;
        }
        checked(value, scale)
    }

    /// Writes it with all digits of its scale.
    pub fn write_text(&self, out: &mut impl BufMut) {
        match self {
            Numeric::NaN => out.put_slice(b"NaN"),
            Numeric::Infinity => out.put_slice(b"Infinity"),
            Numeric::NegInfinity => out.put_slice(b"-Infinity"),
            Numeric::Finite(value) => {
                let (digits, scale) = value.as_bigint_and_scale();
                let scale = scale.max(0) as usize;
                let text = digits.magnitude().to_str_radix(10);
                if digits.sign() == Sign::Minus {
                    out.put_u8(b'-');
                }
                if scale == 0 {
                    return out.put_slice(text.as_bytes());
                }
                if text.len() > scale {
                    out.put_slice(&text.as_bytes()[..text.len() - scale]);
                    out.put_u8(b'.');
                    out.put_slice(&text.as_bytes()[text.len() - scale..]);
                } else {
                    out.put_slice(b"0.");
                    for _ in 0..scale - text.len() {
                        out.put_u8(b'0');
                    }
                    out.put_slice(text.as_bytes());
                }
            }
        }
    }

    /// Digits after the point; 0 for the special values.
    pub fn scale(&self) -> i64 {
        match self {
            Numeric::Finite(value) => value.as_bigint_and_scale().1,
            _ => 0,
        }
    }

    /// Rounds half away from zero to `scale` digits after the point (before it, if negative).
    pub fn round(&self, scale: i64) -> Result<Numeric, SqlError> {
        let Numeric::Finite(value) = self else { return Ok(self.clone()) };
        let scale = scale.clamp(-MAX_WHOLE_DIGITS, MAX_SCALE);
        let (digits, from) = value.as_bigint_and_scale();
        if scale >= 0 {
            return checked(round_digits(&digits, from, scale), scale);
        }
        checked(round_digits(&digits, from, scale), scale)
    }

    /// Cuts to `scale` digits after the point.
    pub fn trunc(&self, scale: i64) -> Result<Numeric, SqlError> {
        let Numeric::Finite(value) = self else { return Ok(self.clone()) };
        let scale = scale.clamp(-MAX_WHOLE_DIGITS, MAX_SCALE);
        let (digits, from) = value.as_bigint_and_scale();
        if scale >= from {
            return checked(digits.into_owned() * power_of_ten(scale - from), scale);
        }
        checked(digits.into_owned() / power_of_ten(from - scale), scale)
    }

    /// The greatest whole number not above it.
    pub fn floor(&self) -> Result<Numeric, SqlError> {
        let cut = self.trunc(0)?;
        if cut.compare(self) == Ordering::Greater { cut.sub(&Numeric::from(1)) } else { Ok(cut) }
    }

    /// The least whole number not below it.
    pub fn ceil(&self) -> Result<Numeric, SqlError> {
        let cut = self.trunc(0)?;
        if cut.compare(self) == Ordering::Less { cut.add(&Numeric::from(1)) } else { Ok(cut) }
    }

    /// Total order: -Infinity, numbers, Infinity, NaN.
    pub fn compare(&self, other: &Numeric) -> Ordering {
        fn rank(n: &Numeric) -> u8 {
            match n {
                Numeric::NegInfinity => 0,
                Numeric::Finite(_) => 1,
                Numeric::Infinity => 2,
                Numeric::NaN => 3,
            }
        }
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => {
                let ((da, sa), (db, sb)) = (a.as_bigint_and_scale(), b.as_bigint_and_scale());
                if sa == sb { da.cmp(&db) } else { a.cmp(b) }
            }
            _ => rank(self).cmp(&rank(other)),
        }
    }

    /// -1, 0 or 1; NaN gives 1.
    pub fn signum(&self) -> i32 {
        match self {
            Numeric::NegInfinity => -1,
            Numeric::Infinity | Numeric::NaN => 1,
            Numeric::Finite(value) => match value.sign() {
                Sign::Minus => -1,
                Sign::NoSign => 0,
                Sign::Plus => 1,
            },
        }
    }

    /// The opposite.
    pub fn neg(&self) -> Numeric {
        match self {
            Numeric::NaN => Numeric::NaN,
            Numeric::Infinity => Numeric::NegInfinity,
            Numeric::NegInfinity => Numeric::Infinity,
            Numeric::Finite(value) => Numeric::Finite(-value),
        }
    }

    /// Sum; its scale is the greater of the two.
    pub fn add(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => {
                let ((da, sa), (db, sb)) = (a.as_bigint_and_scale(), b.as_bigint_and_scale());
                let scale = sa.max(sb);
                let (da, db) = (round_digits(&da, sa, scale), round_digits(&db, sb, scale));
                checked(da + db, scale)
            }
            (Numeric::NaN, _) | (_, Numeric::NaN) => Ok(Numeric::NaN),
            (Numeric::Finite(_), special) | (special, Numeric::Finite(_)) => Ok(special.clone()),
            (a, b) => Ok(if a == b { a.clone() } else { Numeric::NaN }),
        }
    }

    /// Difference; its scale is the greater of the two.
    pub fn sub(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        self.add(&other.neg())
    }

    /// Product; its scale is the sum of the two.
    pub fn mul(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => {
                let ((da, sa), (db, sb)) = (a.as_bigint_and_scale(), b.as_bigint_and_scale());
                work(&da, &db)?;
                checked(da.into_owned() * db.as_ref(), sa + sb)
            }
            (Numeric::NaN, _) | (_, Numeric::NaN) => Ok(Numeric::NaN),
            _ => Ok(infinity_of_sign(self.signum() * other.signum())),
        }
    }

    /// Quotient, with at least 16 significant digits.
    pub fn div(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        match (self, other) {
            (Numeric::NaN, _) | (_, Numeric::NaN) => Ok(Numeric::NaN),
            (_, Numeric::Finite(b)) if b.sign() == Sign::NoSign => Err(division_by_zero()),
            (Numeric::Finite(a), Numeric::Finite(b)) => {
                let scale = quotient_scale(a, b);
                let ((da, sa), (db, sb)) = (a.as_bigint_and_scale(), b.as_bigint_and_scale());
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
            (Numeric::Finite(_), _) => Ok(Numeric::from(0)),
            (_, Numeric::Finite(_)) => Ok(infinity_of_sign(self.signum() * other.signum())),
            _ => Ok(Numeric::NaN),
        }
    }

    /// Remainder with the sign of the dividend.
    pub fn rem(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        match (self, other) {
            (Numeric::NaN, _) | (_, Numeric::NaN) => Ok(Numeric::NaN),
            (_, Numeric::Finite(b)) if b.sign() == Sign::NoSign => Err(division_by_zero()),
            (Numeric::Finite(a), Numeric::Finite(b)) => {
                let ((da, sa), (db, sb)) = (a.as_bigint_and_scale(), b.as_bigint_and_scale());
                let scale = sa.max(sb);
                let (da, db) = (round_digits(&da, sa, scale), round_digits(&db, sb, scale));
                work(&da, &db)?;
                checked(da % db, scale)
            }
            (Numeric::Finite(_), _) => Ok(self.clone()),
            _ => Ok(Numeric::NaN),
        }
    }

    /// Brings it to `numeric(precision, scale)`.
    ///
    /// # Errors
    /// 22003 if it has too many digits before the point.
    pub fn fit(&self, precision: u16, scale: i16) -> Result<Numeric, SqlError> {
        let field_overflow =
            |limit: String| SqlError::new(SqlState::OUT_OF_RANGE, "numeric field overflow").detail(limit);
        match self {
            Numeric::NaN => Ok(Numeric::NaN),
            Numeric::Infinity | Numeric::NegInfinity => Err(field_overflow(format!(
                "A field with precision {precision}, scale {scale} cannot hold an infinite value."
            ))),
            Numeric::Finite(_) => {
                let rounded = self.round(i64::from(scale))?;
                let Numeric::Finite(value) = &rounded else { return Ok(rounded) };
                let whole = i64::from(precision) - i64::from(scale);
                let (digits, have) = value.as_bigint_and_scale();
                let limit = power_of_ten((whole + have).max(0));
                if digits.sign() != Sign::NoSign && (whole + have < 0 || digits.magnitude() >= limit.magnitude()) {
                    let (base, power) = if whole == 0 { ("", "1".to_owned()) } else { ("10^", whole.to_string()) };
                    return Err(field_overflow(format!(
                        "A field with precision {precision}, scale {scale} must round to an absolute value less than {base}{power}."
                    )));
                }
                Ok(rounded)
            }
        }
    }

    /// The nearest float8.
    pub fn to_f64(&self) -> f64 {
        match self {
            Numeric::NaN => f64::NAN,
            Numeric::Infinity => f64::INFINITY,
            Numeric::NegInfinity => f64::NEG_INFINITY,
            Numeric::Finite(_) => self.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    /// The nearest whole number, if it fits.
    pub fn to_i64(&self) -> Option<i64> {
        let Numeric::Finite(value) = self else { return None };
        let (digits, scale) = value.as_bigint_and_scale();
        i64::try_from(&round_digits(&digits, scale, 0)).ok()
    }

    /// From a float8, with the 15 digits that it surely has.
    pub fn from_f64(value: f64) -> Numeric {
        float_digits(value, 15)
    }

    /// From a float4, with the 6 digits that it surely has.
    pub(crate) fn from_f32(value: f32) -> Numeric {
        float_digits(f64::from(value), 6)
    }

    /// Without the zeros at the end of its fraction: equal values get equal forms.
    pub fn normalized(&self) -> (BigInt, i64) {
        match self {
            Numeric::Finite(value) => value.normalized().into_bigint_and_exponent(),
            _ => (BigInt::from(0), 0),
        }
    }

    /// Reads the wire's form: base-10000 digits.
    ///
    /// # Errors
    /// 22P03 for a malformed message.
    pub fn parse_binary(mut bytes: &[u8]) -> Result<Numeric, SqlError> {
        let bad = || SqlError::new(SqlState::INVALID_BINARY, "invalid binary numeric");
        if bytes.len() < 8 {
            return Err(bad());
        }
        let (count, weight) = (bytes.get_u16() as usize, i64::from(bytes.get_i16()));
        let (sign, scale) = (bytes.get_u16(), i64::from(bytes.get_u16()));
        match sign {
            0xC000 => return Ok(Numeric::NaN),
            0xD000 => return Ok(Numeric::Infinity),
            0xF000 => return Ok(Numeric::NegInfinity),
            0 | 0x4000 => {}
            _ => return Err(SqlError::new(SqlState::INVALID_BINARY, "invalid sign in external \"numeric\" value")),
        }
        if bytes.len() != count * 2 || scale > MAX_SCALE {
            return Err(bad());
        }
        let mut text = Vec::with_capacity(count * 4 + 1);
        text.push(b'0');
        for _ in 0..count {
            let digit = bytes.get_u16();
            if digit >= 10_000 {
                return Err(SqlError::new(SqlState::INVALID_BINARY, "invalid digit in external \"numeric\" value"));
            }
            text.extend_from_slice(format!("{digit:04}").as_bytes());
        }
        let mut value = BigInt::parse_bytes(&text, 10).ok_or_else(bad)?;
        if sign == 0x4000 {
            value = -value;
        }
        // The last digit stands for 10000^(weight - count + 1).
        let have = (count as i64 - 1 - weight) * 4;
        let Numeric::Finite(exact) = checked(value, have)? else { return Err(bad()) };
        let (digits, have) = exact.into_bigint_and_scale();
        let digits =
            if have > scale { digits / power_of_ten(have - scale) } else { digits * power_of_ten(scale - have) };
        checked(digits, scale)
    }

    /// Writes the wire's form.
    pub fn write_binary(&self, out: &mut impl BufMut) {
        let special = |sign: u16, out: &mut dyn BufMut| {
            out.put_u32(0);
            out.put_u16(sign);
            out.put_u16(0);
        };
        let value = match self {
            Numeric::NaN => return special(0xC000, out),
            Numeric::Infinity => return special(0xD000, out),
            Numeric::NegInfinity => return special(0xF000, out),
            Numeric::Finite(value) => value,
        };
        let (digits, scale) = value.as_bigint_and_scale();
        // Pad the fraction to whole base-10000 digits.
        let padded = (scale + 3) / 4 * 4;
        let text = (digits.magnitude() * power_of_ten(padded - scale).magnitude()).to_str_radix(10);
        let lead = (4 - text.len() % 4) % 4;
        let text = format!("{}{text}", &"000"[..lead]);
        let mut groups: Vec<u16> = text
            .as_bytes()
            .chunks(4)
            .map(|chunk| chunk.iter().fold(0u16, |sum, b| sum * 10 + u16::from(b - b'0')))
            .collect();
        let mut weight = groups.len() as i64 - 1 - padded / 4;
        let zeros = groups.iter().take_while(|g| **g == 0).count();
        groups.drain(..zeros);
        weight -= zeros as i64;
        while groups.last() == Some(&0) {
            groups.pop();
        }
        if groups.is_empty() {
            weight = 0;
        }
        out.put_u16(groups.len() as u16);
        out.put_i16(weight as i16);
        out.put_u16(if digits.sign() == Sign::Minus { 0x4000 } else { 0 });
        out.put_u16(scale as u16);
        for group in groups {
            out.put_u16(group);
        }
    }
}

impl std::fmt::Display for Numeric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = Vec::new();
        self.write_text(&mut out);
        f.write_str(std::str::from_utf8(&out).unwrap_or("NaN"))
    }
}

fn float_digits(value: f64, digits: usize) -> Numeric {
    if value.is_nan() {
        return Numeric::NaN;
    }
    if value.is_infinite() {
        return if value > 0.0 { Numeric::Infinity } else { Numeric::NegInfinity };
    }
    let text = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    Numeric::parse(&format!("{mantissa}e{exponent}")).unwrap_or(Numeric::NaN)
}

fn infinity_of_sign(sign: i32) -> Numeric {
    match sign.cmp(&0) {
        Ordering::Less => Numeric::NegInfinity,
        Ordering::Equal => Numeric::NaN,
        Ordering::Greater => Numeric::Infinity,
    }
}

fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let value = digits.parse::<i64>().unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
    Some(if text.starts_with('-') { -value } else { value })
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

/// Weight of the first base-10000 digit, and that digit, as PostgreSQL's `select_div_scale` sees them.
pub fn leading_digit(value: &BigDecimal) -> (i64, i64) {
    let (digits, scale) = value.as_bigint_and_scale();
    if digits.sign() == Sign::NoSign {
        return (0, 0);
    }
    let text = digits.magnitude().to_str_radix(10);
    let top = text.len() as i64 - 1 - scale;
    let weight = top.div_euclid(4);
    let width = (top - weight * 4 + 1) as usize;
    let mut first: i64 = text[..width.min(text.len())].parse().unwrap_or(0);
    for _ in text.len()..width {
        first *= 10;
    }
    (weight, first)
}

fn quotient_scale(a: &BigDecimal, b: &BigDecimal) -> i64 {
    let ((weight_a, first_a), (weight_b, first_b)) = (leading_digit(a), leading_digit(b));
    let mut weight = weight_a - weight_b;
    if first_a <= first_b {
        weight -= 1;
    }
    let (sa, sb) = (a.as_bigint_and_scale().1, b.as_bigint_and_scale().1);
    (MIN_SIGNIFICANT_DIGITS - weight * 4).max(sa).max(sb).clamp(0, MAX_DISPLAY_SCALE)
}
