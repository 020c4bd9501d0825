//! numeric: text and binary forms, and arithmetic with PostgreSQL's result scales.
//!
//! A finite value is a [`Decimal`]: an integer and a scale (digits after the point), and the scale is what it shows.
//!
//! Invariants:
//! 1. The scale of a finite value is between 0 and [`SCALE_MAX`]; an exponent in a text is multiplied out.
//! 2. A finite value has at most [`MAX_WHOLE_DIGITS`] digits before the point, so that a short text such as `1e999999999`
//!    can never make a long number.

pub(crate) use super::decimal::SCALE_MAX;
use super::decimal::exact::checked;
use super::decimal::{Decimal, word::Word};
use super::number::{invalid_syntax, trim};
use super::{Numeric, SqlType};
use crate::{SqlError, SqlState};
use bigdecimal::num_bigint::BigInt;
use bytes::{Buf, BufMut};
use std::cmp::Ordering;

/// Greatest number of digits before the point.
pub(crate) const MAX_WHOLE_DIGITS: i64 = 131_072;
/// 22003
pub fn overflow() -> SqlError {
    SqlError::new(SqlState::OUT_OF_RANGE, "value overflows numeric format")
}

/// 22012
pub fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Self {
        Numeric::Finite(Decimal::from(i128::from(value)))
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
        if scale > SCALE_MAX {
            return Err(overflow());
        }
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..zeros);
        if digits.is_empty() {
            digits.push(b'0');
        } else if digits.len() as i64 - scale > MAX_WHOLE_DIGITS {
            return Err(overflow());
        }
        let value = Decimal::from_text(negative, &digits, scale.max(0)).ok_or_else(bad)?;
        let value = if scale < 0 || value.is_long() { checked(value.parts().0.into_owned(), scale)? } else { value };
        Ok(Numeric::Finite(value))
    }

    /// Writes it with all digits of its scale.
    pub fn write_text(&self, out: &mut impl BufMut) {
        match self {
            Numeric::NaN => out.put_slice(b"NaN"),
            Numeric::Infinity => out.put_slice(b"Infinity"),
            Numeric::NegInfinity => out.put_slice(b"-Infinity"),
            Numeric::Finite(value) => {
                let scale = value.scale().max(0) as usize;
                if value.signum() < 0 {
                    out.put_u8(b'-');
                }
                value.with_text(|text| {
                    if scale == 0 {
                        return out.put_slice(text);
                    }
                    if text.len() > scale {
                        out.put_slice(&text[..text.len() - scale]);
                        out.put_u8(b'.');
                        out.put_slice(&text[text.len() - scale..]);
                    } else {
                        out.put_slice(b"0.");
                        for _ in 0..scale - text.len() {
                            out.put_u8(b'0');
                        }
                        out.put_slice(text);
                    }
                });
            }
        }
    }

    /// Digits after the point; 0 for the special values.
    pub fn scale(&self) -> i64 {
        match self {
            Numeric::Finite(value) => value.scale(),
            _ => 0,
        }
    }

    /// Rounds half away from zero to `scale` digits after the point (before it, if negative).
    pub fn round(&self, scale: i64) -> Result<Numeric, SqlError> {
        let Numeric::Finite(value) = self else { return Ok(self.clone()) };
        value.round(scale.clamp(-MAX_WHOLE_DIGITS, SCALE_MAX)).map(Numeric::Finite)
    }

    /// Cuts to `scale` digits after the point.
    pub fn trunc(&self, scale: i64) -> Result<Numeric, SqlError> {
        let Numeric::Finite(value) = self else { return Ok(self.clone()) };
        value.trunc(scale.clamp(-MAX_WHOLE_DIGITS, SCALE_MAX)).map(Numeric::Finite)
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
    #[inline]
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
            (Numeric::Finite(a), Numeric::Finite(b)) => a.compare(b),
            _ => rank(self).cmp(&rank(other)),
        }
    }

    /// -1, 0 or 1; NaN gives 1.
    pub fn signum(&self) -> i32 {
        match self {
            Numeric::NegInfinity => -1,
            Numeric::Infinity | Numeric::NaN => 1,
            Numeric::Finite(value) => value.signum(),
        }
    }

    /// The opposite.
    pub fn neg(&self) -> Numeric {
        match self {
            Numeric::NaN => Numeric::NaN,
            Numeric::Infinity => Numeric::NegInfinity,
            Numeric::NegInfinity => Numeric::Infinity,
            Numeric::Finite(value) => Numeric::Finite(value.neg()),
        }
    }

    /// Sum; its scale is the greater of the two.
    #[inline]
    pub fn add(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => a.add(b).map(Numeric::Finite),
            (Numeric::NaN, _) | (_, Numeric::NaN) => Ok(Numeric::NaN),
            (Numeric::Finite(_), special) | (special, Numeric::Finite(_)) => Ok(special.clone()),
            (a, b) => Ok(if a == b { a.clone() } else { Numeric::NaN }),
        }
    }

    /// As [`Numeric::add`], in place.
    #[inline]
    pub fn add_to(&mut self, other: &Numeric) -> Result<(), SqlError> {
        if let (Numeric::Finite(a), Numeric::Finite(b)) = (&mut *self, other)
            && a.add_word(b)
        {
            return Ok(());
        }
        *self = self.add(other)?;
        Ok(())
    }

    /// Difference; its scale is the greater of the two.
    #[inline]
    pub fn sub(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => a.sub(b).map(Numeric::Finite),
            _ => self.add(&other.neg()),
        }
    }

    /// Product; its scale is the sum of the two.
    #[inline]
    pub fn mul(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => a.mul(b).map(Numeric::Finite),
            (Numeric::NaN, _) | (_, Numeric::NaN) => Ok(Numeric::NaN),
            _ => Ok(infinity_of_sign(self.signum() * other.signum())),
        }
    }

    /// Quotient, with at least 16 significant digits.
    pub fn div(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        match (self, other) {
            (Numeric::NaN, _) | (_, Numeric::NaN) => Ok(Numeric::NaN),
            (_, Numeric::Finite(b)) if b.signum() == 0 => Err(division_by_zero()),
            (Numeric::Finite(a), Numeric::Finite(b)) => a.div(b).map(Numeric::Finite),
            (Numeric::Finite(_), _) => Ok(Numeric::from(0)),
            (_, Numeric::Finite(_)) => Ok(infinity_of_sign(self.signum() * other.signum())),
            _ => Ok(Numeric::NaN),
        }
    }

    /// Remainder with the sign of the dividend.
    pub fn rem(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        match (self, other) {
            (Numeric::NaN, _) | (_, Numeric::NaN) => Ok(Numeric::NaN),
            (_, Numeric::Finite(b)) if b.signum() == 0 => Err(division_by_zero()),
            (Numeric::Finite(a), Numeric::Finite(b)) => a.rem(b).map(Numeric::Finite),
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
                if !value.has_at_most(whole + value.scale()) {
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
            Numeric::Finite(value) => match value.word().and_then(Word::to_f64) {
                Some(float) => float,
                None => self.to_string().parse().unwrap_or(f64::NAN),
            },
        }
    }

    /// The nearest whole number, if it fits.
    pub fn to_i64(&self) -> Option<i64> {
        let Numeric::Finite(value) = self else { return None };
        value.to_i64()
    }

    /// From a float8, with the 15 digits that it surely has.
    pub fn from_f64(value: f64) -> Numeric {
        float_digits(value, 15)
    }

    /// From a float4, with the 6 digits that it surely has.
    pub(crate) fn from_f32(value: f32) -> Numeric {
        float_digits(f64::from(value), 6)
    }

    /// The least scale that shows all of it.
    pub fn scale_min(&self) -> i64 {
        match self {
            Numeric::Finite(value) => value.write_normalized(&mut Vec::new()).max(0),
            _ => 0,
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
        if bytes.len() != count * 2 || scale > SCALE_MAX {
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
        checked(value, have)?.trunc(scale).map(Numeric::Finite)
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
        let scale = value.scale();
        // Pad the fraction to whole base-10000 digits.
        let padded = (scale + 3) / 4 * 4;
        let zeros = &"000".as_bytes()[..(padded - scale) as usize];
        let text = value.with_text(|text| [text, zeros].concat());
        let lead = (4 - text.len() % 4) % 4;
        let text = [&"000".as_bytes()[..lead], &text].concat();
        let mut groups: Vec<u16> =
            text.chunks(4).map(|chunk| chunk.iter().fold(0u16, |sum, b| sum * 10 + u16::from(b - b'0'))).collect();
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
        out.put_u16(if value.signum() < 0 { 0x4000 } else { 0 });
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
