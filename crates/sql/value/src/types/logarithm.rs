//! Logarithms, exponentials and powers of numeric, exact to the digits that PostgreSQL shows.
//!
//! Values are integers in units of `10^-places` here. Logarithms go by the series of atanh, of an argument brought between 3/4 and 3/2 by
//! powers of ten and two; exponentials by their own series, of an argument brought below `ln(10) / 256`.
//!
//! The scale of a result follows PostgreSQL's estimates: at least [`SIGNIFICANT`] digits that count, and no less than its arguments show.

use super::numeric::overflow;
use super::{Decimal, Numeric};
use crate::work::step;
use crate::{SqlError, SqlState};
use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::{BigInt, Sign};

/// Digits that count, at least.
const SIGNIFICANT: i64 = 16;
/// Most digits after the point.
const SCALE_MAX: i64 = 1_000;
/// Places beyond those asked for, which take up what rounding loses.
const GUARD: i64 = 20;
/// Places of a calculation, at most: time grows with their cube. It allows all results that have
/// [`SCALE_MAX`] digits after the point, of all but bases so near 1 that only enormous exponents bring them away from it.
const PLACES_MAX: i64 = 4_000;
/// Beyond it an exponential overflows, below its negative it is zero.
const EXPONENT_MAX: f64 = 6_000.0;
/// log10(e)
const LOG10_E: f64 = std::f64::consts::LOG10_E;

fn ten_to(exponent: i64) -> BigInt {
    BigInt::from(10u8).pow(exponent.max(0) as u32)
}

/// Units of work of a product and a quotient of numbers so large.
fn product_units(one: &BigInt) -> usize {
    let limbs = one.bits() as usize / 64 + 1;
    2 * limbs * limbs
}

/// A value in units of `10^-places`.
fn fixed(value: &BigDecimal, places: i64) -> BigInt {
    let (digits, scale) = value.as_bigint_and_exponent();
    if places >= scale { digits * ten_to(places - scale) } else { digits / ten_to(scale - places) }
}

/// How many digits a value has before the point (or, negative, how many zeros behind it); its digits, its scale.
fn weight(value: &BigDecimal) -> (i64, BigInt, i64) {
    let (digits, scale) = value.as_bigint_and_exponent();
    let count = digits.magnitude().to_string().len() as i64;
    (count - scale, digits, count)
}

/// The places of a calculation, if they are not too many.
fn bounded(places: i64) -> Result<i64, SqlError> {
    if places <= PLACES_MAX {
        return Ok(places);
    }
    let message = format!("the calculation needs {places} digits after the point, more than the limit of {PLACES_MAX}");
    Err(SqlError::new(SqlState::OUT_OF_RANGE, message).hint("Round the arguments, or calculate with double precision."))
}

/// atanh of `1 / n`.
fn atanh_of_inverse(n: u32, one: &BigInt) -> Result<BigInt, SqlError> {
    let mut power = one / n;
    let (mut sum, mut divisor) = (power.clone(), 1u32);
    while power.sign() != Sign::NoSign {
        step(power.bits() as usize / 16)?;
        power /= n * n;
        divisor += 2;
        sum += &power / divisor;
    }
    Ok(sum)
}

/// atanh of a value between -1/5 and 1/5.
fn atanh(z: BigInt, one: &BigInt) -> Result<BigInt, SqlError> {
    let square = &z * &z / one;
    let (mut sum, mut term, mut divisor) = (z.clone(), z, 1u32);
    while term.sign() != Sign::NoSign {
        step(product_units(one))?;
        term = term * &square / one;
        divisor += 2;
        sum += &term / divisor;
    }
    Ok(sum)
}

/// ln(2) and ln(10).
fn constants(one: &BigInt) -> Result<(BigInt, BigInt), SqlError> {
    let ln2 = atanh_of_inverse(3, one)? * 2;
    let ln10 = &ln2 * 3 + atanh_of_inverse(9, one)? * 2;
    Ok((ln2, ln10))
}

/// The logarithm of a positive value, in units of `10^-places`.
fn ln_fixed(value: &BigDecimal, places: i64) -> Result<BigInt, SqlError> {
    let places_within = places + GUARD;
    let one = ten_to(places_within);
    let (tens, digits, count) = weight(value);
    let shift = places_within - count;
    let mut part = if shift >= 0 { digits * ten_to(shift) } else { digits / ten_to(-shift) };
    let mut twos = 0;
    while &part * 4 < &one * 3 {
        part *= 2;
        twos += 1;
    }
    let (ln2, ln10) = constants(&one)?;
    let z = (&part - &one) * &one / (&part + &one);
    Ok((atanh(z, &one)? * 2 + ln10 * tens - ln2 * twos) / ten_to(GUARD))
}

/// The exponential of a value in units of `10^-places`.
fn exp_fixed(value: &BigInt, places: i64) -> Result<BigDecimal, SqlError> {
    /// The argument is halved so often, the result squared as often.
    const HALVINGS: u32 = 8;
    let one = ten_to(places);
    let (_, ln10) = constants(&one)?;
    let mut tens = value / &ln10;
    let mut rest = value - &tens * &ln10;
    if rest.sign() == Sign::Minus {
        rest += &ln10;
        tens -= 1;
    }
    rest >>= HALVINGS;
    let (mut sum, mut term, mut n) = (one.clone(), one.clone(), 0u32);
    while term.sign() != Sign::NoSign {
        step(product_units(&one))?;
        n += 1;
        term = term * &rest / &one / n;
        sum += &term;
    }
    for _ in 0..HALVINGS {
        sum = &sum * &sum / &one;
    }
    let tens = i64::try_from(tens).unwrap_or(0);
    Ok(BigDecimal::new(sum, places - tens))
}

/// PostgreSQL's estimate of the place of a logarithm's first digit.
fn logarithm_weight(value: &BigDecimal) -> i64 {
    let near = BigDecimal::new(BigInt::from(9), 1)..=BigDecimal::new(BigInt::from(11), 1);
    if near.contains(value) {
        let (tens, digits, _) = weight(&(value - BigDecimal::from(1)));
        return if digits.sign() == Sign::NoSign { 0 } else { tens - 1 };
    }
    let (tens, digits, count) = weight(value);
    let leading = digits / ten_to(count - SIGNIFICANT);
    let leading = leading.to_string();
    let ln =
        leading.parse::<f64>().unwrap_or(1.0).ln() + (tens - leading.len() as i64) as f64 * std::f64::consts::LN_10;
    ln.abs().log10() as i64
}

fn scale_of(weight: i64, shown: &[&Numeric]) -> i64 {
    let shown = shown.iter().map(|value| value.scale()).max().unwrap_or(0);
    (SIGNIFICANT - weight).max(shown).clamp(0, SCALE_MAX)
}

fn rounded(value: BigDecimal, scale: i64) -> Result<Numeric, SqlError> {
    Numeric::Finite(Decimal::from(value)).round(scale)
}

impl Numeric {
    /// The natural logarithm; `None` if it is not a positive finite value.
    ///
    /// # Errors
    /// 22003 on overflow.
    pub fn ln(&self) -> Result<Option<Numeric>, SqlError> {
        let Some(value) = &self.positive() else { return Ok(None) };
        let scale = scale_of(logarithm_weight(value), &[self]);
        let places = scale + GUARD;
        rounded(BigDecimal::new(ln_fixed(value, places)?, places), scale).map(Some)
    }

    /// The logarithm to a base other than 1; `None` unless both are positive finite values.
    ///
    /// # Errors
    /// 22003 on overflow, and for what needs too many digits.
    pub fn log(&self, base: &Numeric) -> Result<Option<Numeric>, SqlError> {
        let (Some(value), Some(by)) = (&self.positive(), &base.positive()) else { return Ok(None) };
        let scale = scale_of(logarithm_weight(value) - logarithm_weight(by), &[self, base]);
        // A base near 1 has a small logarithm: its zeros must not cost digits.
        let places = bounded(scale + GUARD + 2 * logarithm_weight(by).abs() + logarithm_weight(value).abs())?;
        let quotient = ln_fixed(value, places)? * ten_to(places) / ln_fixed(by, places)?;
        rounded(BigDecimal::new(quotient, places), scale).map(Some)
    }

    /// `e` to the power of a value; `None` for infinity and NaN.
    ///
    /// # Errors
    /// 22003 on overflow.
    pub fn exp(&self) -> Result<Option<Numeric>, SqlError> {
        let value = match self {
            Numeric::Finite(value) => value.to_big(),
            Numeric::NegInfinity => return Ok(Some(Numeric::from(0))),
            Numeric::Infinity | Numeric::NaN => return Ok(None),
        };
        let estimate = self.to_f64();
        let tens = (estimate * LOG10_E).clamp(-2_000.0, 2_000.0) as i64;
        let scale = scale_of(tens, &[self]);
        if estimate.abs() >= EXPONENT_MAX {
            return if estimate > 0.0 { Err(overflow()) } else { Numeric::from(0).round(scale).map(Some) };
        }
        let places = (scale + (estimate * LOG10_E) as i64).max(0) + GUARD;
        rounded(exp_fixed(&fixed(&value, places), places)?, scale).map(Some)
    }

    /// A power whose base is positive; `None` unless both are finite and the base is positive.
    ///
    /// # Errors
    /// 22003 on overflow, and for what needs too many digits.
    pub fn power(&self, exponent: &Numeric) -> Result<Option<Numeric>, SqlError> {
        let (Some(base), Numeric::Finite(by)) = (self.positive(), exponent) else { return Ok(None) };
        let (base, by) = (&base, &by.to_big());
        let near = logarithm_weight(base);
        // What the power differs from 1 by cannot be shown.
        if self.compare(&Numeric::from(1)).is_eq() || near + weight(by).0 < -SCALE_MAX - GUARD {
            return rounded(BigDecimal::from(1), scale_of(0, &[self, exponent])).map(Some);
        }
        let estimate = {
            let places = bounded(8 + near.abs())?;
            Numeric::Finite(Decimal::from(BigDecimal::new(ln_fixed(base, places)?, places) * by)).to_f64()
        };
        if estimate.abs() > EXPONENT_MAX * 1.003 {
            return if estimate > 0.0 { Err(overflow()) } else { Numeric::from(0).round(SCALE_MAX).map(Some) };
        }
        let tens = (estimate * LOG10_E) as i64;
        let scale = scale_of(tens, &[self, exponent]);
        let places = (scale + tens).max(0) + GUARD;
        // The exponent multiplies the error of the logarithm.
        let within = bounded(places + weight(by).0.max(0) + GUARD)?;
        let product = BigDecimal::new(ln_fixed(base, within)?, within) * by;
        rounded(exp_fixed(&fixed(&product, places), places)?, scale).map(Some)
    }

    fn positive(&self) -> Option<BigDecimal> {
        match self {
            Numeric::Finite(value) if self.signum() > 0 => Some(value.to_big()),
            _ => None,
        }
    }
}
