//! Numbers.

use super::super::function::{Arguments, Function, Sig};
use super::{float_at, int_at, mix, numeric_at, wrong_type};
use crate::types::{
    Decimal, Numeric, SqlType as T, Value, division_by_zero, float_overflow, float_underflow, out_of_range,
};
use crate::{SqlError, SqlState};
use bigdecimal::num_bigint::BigInt;
use std::cmp::Ordering;

type R = Result<Value, SqlError>;

const I2: Sig = Sig::Is(T::Int2);
const I4: Sig = Sig::Is(T::Int4);
const I8: Sig = Sig::Is(T::Int8);
const F4: Sig = Sig::Is(T::Float4);
const F8: Sig = Sig::Is(T::Float8);
const N: Sig = Sig::Is(T::Numeric(None));

pub(super) static TABLE: &[Function] = &[
    Function::pure("abs", &[I2], I2, abs),
    Function::pure("abs", &[I4], I4, abs),
    Function::pure("abs", &[I8], I8, abs),
    Function::pure("abs", &[F4], F4, abs),
    Function::pure("abs", &[F8], F8, abs),
    Function::pure("abs", &[N], N, abs),
    Function::pure("ceil", &[F8], F8, |v, _| f8(float_at(v, 0)?.ceil())),
    Function::pure("ceil", &[N], N, |v, _| Ok(Value::Numeric(numeric_at(v, 0)?.ceil()?))),
    Function::pure("ceiling", &[F8], F8, |v, _| f8(float_at(v, 0)?.ceil())),
    Function::pure("ceiling", &[N], N, |v, _| Ok(Value::Numeric(numeric_at(v, 0)?.ceil()?))),
    Function::pure("floor", &[F8], F8, |v, _| f8(float_at(v, 0)?.floor())),
    Function::pure("floor", &[N], N, |v, _| Ok(Value::Numeric(numeric_at(v, 0)?.floor()?))),
    Function::pure("round", &[F8], F8, |v, _| f8(float_at(v, 0)?.round_ties_even())),
    Function::pure("round", &[N], N, |v, _| Ok(Value::Numeric(numeric_at(v, 0)?.round(0)?))),
    Function::pure("round", &[N, I4], N, |v, _| Ok(Value::Numeric(numeric_at(v, 0)?.round(int_at(v, 1)?)?))),
    Function::pure("trunc", &[F8], F8, |v, _| f8(float_at(v, 0)?.trunc())),
    Function::pure("trunc", &[N], N, |v, _| Ok(Value::Numeric(numeric_at(v, 0)?.trunc(0)?))),
    Function::pure("trunc", &[N, I4], N, |v, _| Ok(Value::Numeric(numeric_at(v, 0)?.trunc(int_at(v, 1)?)?))),
    Function::pure("sign", &[F8], F8, |v, _| {
        let x = float_at(v, 0)?;
        f8(if x == 0.0 || x.is_nan() { x } else { x.signum() })
    }),
    Function::pure("sign", &[N], N, |v, _| match numeric_at(v, 0)? {
        Numeric::NaN => Ok(Value::Numeric(Numeric::NaN)),
        n => Ok(Value::Numeric(Numeric::from(i64::from(n.signum())))),
    }),
    Function::pure("sqrt", &[F8], F8, sqrt),
    Function::pure("sqrt", &[N], N, sqrt_numeric),
    Function::pure("cbrt", &[F8], F8, |v, _| f8(float_at(v, 0)?.cbrt())),
    Function::pure("power", &[F8, F8], F8, power),
    Function::pure("power", &[N, N], N, power_numeric),
    Function::pure("pow", &[F8, F8], F8, power),
    Function::pure("pow", &[N, N], N, power_numeric),
    Function::pure("exp", &[F8], F8, |v, _| checked(float_at(v, 0)?.exp(), float_at(v, 0)?)),
    Function::pure("exp", &[N], N, |v, _| {
        let x = numeric_at(v, 0)?;
        exact(x.exp()?, || x.to_f64().exp())
    }),
    Function::pure("ln", &[F8], F8, |v, _| logarithm(float_at(v, 0)?, f64::ln)),
    Function::pure("ln", &[N], N, |v, _| numeric_logarithm(numeric_at(v, 0)?, None)),
    Function::pure("log", &[F8], F8, |v, _| logarithm(float_at(v, 0)?, f64::log10)),
    Function::pure("log", &[N], N, |v, _| numeric_logarithm(numeric_at(v, 0)?, Some(&Numeric::from(10)))),
    Function::pure("log10", &[F8], F8, |v, _| logarithm(float_at(v, 0)?, f64::log10)),
    Function::pure("log10", &[N], N, |v, _| numeric_logarithm(numeric_at(v, 0)?, Some(&Numeric::from(10)))),
    Function::pure("log", &[N, N], N, |v, _| {
        let (base, x) = (numeric_at(v, 0)?, numeric_at(v, 1)?);
        has_logarithm(base.signum())?;
        has_logarithm(x.signum())?;
        if base.compare(&Numeric::from(1)) == Ordering::Equal {
            return Err(division_by_zero());
        }
        numeric_logarithm(x, Some(base))
    }),
    Function::pure("mod", &[I2, I2], I2, modulo),
    Function::pure("mod", &[I4, I4], I4, modulo),
    Function::pure("mod", &[I8, I8], I8, modulo),
    Function::pure("mod", &[N, N], N, |v, _| Ok(Value::Numeric(numeric_at(v, 0)?.rem(numeric_at(v, 1)?)?))),
    Function::pure("div", &[N, N], N, |v, _| {
        let (a, b) = (numeric_at(v, 0)?, numeric_at(v, 1)?);
        Ok(Value::Numeric(a.sub(&a.rem(b)?)?.div(b)?.trunc(0)?))
    }),
    Function::pure("gcd", &[I4, I4], I4, gcd),
    Function::pure("gcd", &[I8, I8], I8, gcd),
    Function::pure("lcm", &[I4, I4], I4, lcm),
    Function::pure("lcm", &[I8, I8], I8, lcm),
    Function::pure("gcd", &[N, N], N, |v, _| Ok(Value::Numeric(numeric_gcd(numeric_at(v, 0)?, numeric_at(v, 1)?)?))),
    Function::pure("lcm", &[N, N], N, numeric_lcm),
    Function::pure("factorial", &[I8], N, factorial),
    Function::pure("pi", &[], F8, |_, _| f8(std::f64::consts::PI)),
    Function::pure("degrees", &[F8], F8, |v, _| f8(float_at(v, 0)?.to_degrees())),
    Function::pure("radians", &[F8], F8, |v, _| f8(float_at(v, 0)?.to_radians())),
    Function::pure("sin", &[F8], F8, |v, _| trigonometric(float_at(v, 0)?, f64::sin)),
    Function::pure("cos", &[F8], F8, |v, _| trigonometric(float_at(v, 0)?, f64::cos)),
    Function::pure("tan", &[F8], F8, |v, _| trigonometric(float_at(v, 0)?, f64::tan)),
    Function::pure("cot", &[F8], F8, |v, _| trigonometric(float_at(v, 0)?, |x| 1.0 / x.tan())),
    Function::pure("asin", &[F8], F8, |v, _| bounded(float_at(v, 0)?, f64::asin)),
    Function::pure("acos", &[F8], F8, |v, _| bounded(float_at(v, 0)?, f64::acos)),
    Function::pure("atan", &[F8], F8, |v, _| f8(float_at(v, 0)?.atan())),
    Function::pure("atan2", &[F8, F8], F8, |v, _| f8(float_at(v, 0)?.atan2(float_at(v, 1)?))),
    Function::pure("asinh", &[F8], F8, |v, _| f8(float_at(v, 0)?.asinh())),
    Function::pure("acosh", &[F8], F8, |v, _| within(float_at(v, 0)?, 1.0, f64::INFINITY, f64::acosh)),
    Function::pure("atanh", &[F8], F8, |v, _| within(float_at(v, 0)?, -1.0, 1.0, f64::atanh)),
    Function::pure("sind", &[F8], F8, |v, _| turned(float_at(v, 0)?, sin_degrees)),
    Function::pure("cosd", &[F8], F8, |v, _| turned(float_at(v, 0)?, cos_degrees)),
    Function::pure("tand", &[F8], F8, |v, _| turned(float_at(v, 0)?, |x| sin_degrees(x) / cos_degrees(x))),
    Function::pure("cotd", &[F8], F8, |v, _| turned(float_at(v, 0)?, |x| cos_degrees(x) / sin_degrees(x))),
    Function::pure("asind", &[F8], F8, |v, _| within(float_at(v, 0)?, -1.0, 1.0, |x| to_degrees(x.asin()))),
    Function::pure("acosd", &[F8], F8, |v, _| within(float_at(v, 0)?, -1.0, 1.0, |x| to_degrees(x.acos()))),
    Function::pure("atand", &[F8], F8, |v, _| f8(to_degrees(float_at(v, 0)?.atan()))),
    Function::pure("atan2d", &[F8, F8], F8, |v, _| f8(to_degrees(float_at(v, 0)?.atan2(float_at(v, 1)?)))),
    Function::pure("sinh", &[F8], F8, |v, _| f8(float_at(v, 0)?.sinh())),
    Function::pure("cosh", &[F8], F8, |v, _| f8(float_at(v, 0)?.cosh())),
    Function::pure("tanh", &[F8], F8, |v, _| f8(float_at(v, 0)?.tanh())),
    Function::pure("scale", &[N], I4, |v, _| match numeric_at(v, 0)? {
        n @ Numeric::Finite(_) => Ok(Value::Int4(n.scale() as i32)),
        _ => Ok(Value::Null),
    }),
    Function::pure("min_scale", &[N], I4, |v, _| match numeric_at(v, 0)? {
        n @ Numeric::Finite(_) => Ok(Value::Int4(n.scale_min() as i32)),
        _ => Ok(Value::Null),
    }),
    Function::pure("trim_scale", &[N], N, |v, _| {
        let n = numeric_at(v, 0)?;
        Ok(Value::Numeric(n.trunc(n.scale_min())?))
    }),
    Function::pure("width_bucket", &[F8, F8, F8, I4], I4, width_bucket),
    Function::pure("to_hex", &[I4], Sig::Is(T::Text), |v, _| Ok(Value::text(format!("{:x}", int_at(v, 0)? as i32)))),
    Function::pure("to_hex", &[I8], Sig::Is(T::Text), |v, _| Ok(Value::text(format!("{:x}", int_at(v, 0)?)))),
    Function::volatile("random", &[], F8, random),
    Function::volatile("setseed", &[F8], Sig::Is(T::Void), |_, _| Ok(Value::text(""))),
];

pub(super) static OPERATORS: &[Function] = &[
    Function::pure("-", &[F4], F4, negate),
    Function::pure("-", &[F8], F8, negate),
    Function::pure("-", &[N], N, negate),
    Function::pure("@", &[I2], I2, abs),
    Function::pure("@", &[F4], F4, abs),
    Function::pure("@", &[I4], I4, abs),
    Function::pure("@", &[I8], I8, abs),
    Function::pure("@", &[F8], F8, abs),
    Function::pure("@", &[N], N, abs),
    Function::pure("|/", &[F8], F8, sqrt),
    Function::pure("||/", &[F8], F8, |v, _| f8(float_at(v, 0)?.cbrt())),
    Function::pure("^", &[F8, F8], F8, power),
    Function::pure("^", &[N, N], N, power_numeric),
    Function::pure("&", &[I2, I2], I2, |v, _| bits(v, |a, b| a & b)),
    Function::pure("&", &[I4, I4], I4, |v, _| bits(v, |a, b| a & b)),
    Function::pure("&", &[I8, I8], I8, |v, _| bits(v, |a, b| a & b)),
    Function::pure("|", &[I2, I2], I2, |v, _| bits(v, |a, b| a | b)),
    Function::pure("|", &[I4, I4], I4, |v, _| bits(v, |a, b| a | b)),
    Function::pure("|", &[I8, I8], I8, |v, _| bits(v, |a, b| a | b)),
    Function::pure("#", &[I2, I2], I2, |v, _| bits(v, |a, b| a ^ b)),
    Function::pure("#", &[I4, I4], I4, |v, _| bits(v, |a, b| a ^ b)),
    Function::pure("#", &[I8, I8], I8, |v, _| bits(v, |a, b| a ^ b)),
    Function::pure("~", &[I2], I2, |v, _| same_width(&v[0], !int_at(v, 0)?)),
    Function::pure("~", &[I4], I4, |v, _| same_width(&v[0], !int_at(v, 0)?)),
    Function::pure("~", &[I8], I8, |v, _| same_width(&v[0], !int_at(v, 0)?)),
    Function::pure("<<", &[I2, I4], I2, shift_left),
    Function::pure("<<", &[I4, I4], I4, shift_left),
    Function::pure("<<", &[I8, I4], I8, shift_left),
    Function::pure(">>", &[I2, I4], I2, shift_right),
    Function::pure(">>", &[I4, I4], I4, shift_right),
    Function::pure(">>", &[I8, I4], I8, shift_right),
];

fn f8(value: f64) -> R {
    Ok(Value::Float8(value))
}

fn checked(result: f64, input: f64) -> R {
    if result.is_infinite() && input.is_finite() {
        return Err(float_overflow());
    }
    if result == 0.0 && input.is_finite() {
        return Err(float_underflow());
    }
    f8(result)
}

/// A transcendental function of a numeric is computed as a float8: 15 digits, where PostgreSQL has 16 or more.
fn from_float(value: f64) -> R {
    let scale = if value == 0.0 { 16 } else { (15 - value.abs().log10().floor() as i64).clamp(0, 1000) };
    Ok(Value::Numeric(Numeric::from_f64(value).round(scale)?))
}

fn same_width(like: &Value, value: i64) -> R {
    Ok(match like {
        Value::Int2(_) => Value::Int2(value as i16),
        Value::Int4(_) => Value::Int4(value as i32),
        _ => Value::Int8(value),
    })
}

fn bits(values: &[Value], f: fn(i64, i64) -> i64) -> R {
    same_width(values.first().ok_or_else(wrong_type)?, f(int_at(values, 0)?, int_at(values, 1)?))
}

fn shift_left(values: &[Value], _: &Arguments<'_>) -> R {
    let by = int_at(values, 1)? as u32;
    Ok(match values.first() {
        Some(Value::Int2(v)) => Value::Int2(i32::from(*v).wrapping_shl(by) as i16),
        Some(Value::Int4(v)) => Value::Int4(v.wrapping_shl(by)),
        Some(Value::Int8(v)) => Value::Int8(v.wrapping_shl(by)),
        _ => return Err(wrong_type()),
    })
}

fn shift_right(values: &[Value], _: &Arguments<'_>) -> R {
    let by = int_at(values, 1)? as u32;
    Ok(match values.first() {
        Some(Value::Int2(v)) => Value::Int2(i32::from(*v).wrapping_shr(by) as i16),
        Some(Value::Int4(v)) => Value::Int4(v.wrapping_shr(by)),
        Some(Value::Int8(v)) => Value::Int8(v.wrapping_shr(by)),
        _ => return Err(wrong_type()),
    })
}

fn negate(values: &[Value], _: &Arguments<'_>) -> R {
    Ok(match values.first() {
        Some(Value::Float4(v)) => Value::Float4(-v),
        Some(Value::Float8(v)) => Value::Float8(-v),
        Some(Value::Numeric(v)) => Value::Numeric(v.neg()),
        _ => return Err(wrong_type()),
    })
}

fn abs(values: &[Value], _: &Arguments<'_>) -> R {
    Ok(match values.first() {
        Some(Value::Int2(v)) => Value::Int2(v.checked_abs().ok_or_else(|| out_of_range(&T::Int2))?),
        Some(Value::Int4(v)) => Value::Int4(v.checked_abs().ok_or_else(|| out_of_range(&T::Int4))?),
        Some(Value::Int8(v)) => Value::Int8(v.checked_abs().ok_or_else(|| out_of_range(&T::Int8))?),
        Some(Value::Float4(v)) => Value::Float4(v.abs()),
        Some(Value::Float8(v)) => Value::Float8(v.abs()),
        Some(Value::Numeric(v)) => Value::Numeric(if v.signum() < 0 { v.neg() } else { v.clone() }),
        _ => return Err(wrong_type()),
    })
}

fn modulo(values: &[Value], _: &Arguments<'_>) -> R {
    let (a, b) = (int_at(values, 0)?, int_at(values, 1)?);
    if b == 0 {
        return Err(division_by_zero());
    }
    same_width(&values[0], a.checked_rem(b).unwrap_or(0))
}

fn gcd_of(a: i64, b: i64) -> u64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn gcd(values: &[Value], arguments: &Arguments<'_>) -> R {
    let result = i64::try_from(gcd_of(int_at(values, 0)?, int_at(values, 1)?)).map_err(|_| out_of_range(&T::Int8))?;
    fit(&values[0], result, arguments)
}

fn lcm(values: &[Value], arguments: &Arguments<'_>) -> R {
    let (a, b) = (int_at(values, 0)?, int_at(values, 1)?);
    if a == 0 || b == 0 {
        return same_width(&values[0], 0);
    }
    let result = (a / gcd_of(a, b) as i64)
        .checked_mul(b)
        .and_then(i64::checked_abs)
        .ok_or_else(|| out_of_range(arguments.result))?;
    fit(&values[0], result, arguments)
}

/// Digits after the point that a result of both has.
fn common_scale(a: &Numeric, b: &Numeric) -> i64 {
    a.scale().max(b.scale())
}

fn magnitude(value: &Numeric) -> Numeric {
    if value.signum() < 0 { value.neg() } else { value.clone() }
}

fn numeric_gcd(a: &Numeric, b: &Numeric) -> Result<Numeric, SqlError> {
    if !matches!((a, b), (Numeric::Finite(_), Numeric::Finite(_))) {
        return Ok(Numeric::NaN);
    }
    let scale = common_scale(a, b);
    let (mut a, mut b) = (magnitude(a).round(scale)?, magnitude(b).round(scale)?);
    while b.signum() != 0 {
        // Each remainder is less than half of the one before the last: as many rounds as there are digits, four times or so.
        let rest = a.rem(&b)?;
        (a, b) = (b, rest);
    }
    a.round(scale)
}

fn numeric_lcm(values: &[Value], _: &Arguments<'_>) -> R {
    let (a, b) = (numeric_at(values, 0)?, numeric_at(values, 1)?);
    let gcd = numeric_gcd(a, b)?;
    if !matches!(gcd, Numeric::Finite(_)) {
        return Ok(Value::Numeric(Numeric::NaN));
    }
    let scale = common_scale(a, b);
    if a.signum() == 0 || b.signum() == 0 {
        return Ok(Value::Numeric(Numeric::from(0).round(scale)?));
    }
    // What is left is a whole number: nothing is lost.
    let left = magnitude(a);
    let times = left.sub(&left.rem(&gcd)?)?.div(&gcd)?.round(0)?;
    Ok(Value::Numeric(times.mul(&magnitude(b))?.round(scale)?))
}

fn fit(like: &Value, value: i64, arguments: &Arguments<'_>) -> R {
    match like {
        Value::Int4(_) => Ok(Value::Int4(i32::try_from(value).map_err(|_| out_of_range(arguments.result))?)),
        _ => Ok(Value::Int8(value)),
    }
}

fn factorial(values: &[Value], arguments: &Arguments<'_>) -> R {
    // The last whose digits a numeric holds.
    const MAX: i64 = 32_177;
    /// Factors that are multiplied before the long product is.
    const CHUNK: i64 = 64;
    let n = int_at(values, 0)?;
    if n < 0 {
        return Err(SqlError::new(SqlState::OUT_OF_RANGE, "factorial of a negative number is undefined"));
    }
    if n > MAX {
        return Err(SqlError::new(SqlState::OUT_OF_RANGE, "value overflows numeric format"));
    }
    let mut product = BigInt::from(1);
    let mut next = 2;
    while next <= n {
        if let Some(statement) = arguments.statement {
            statement.check()?;
        }
        let end = n.min(next + CHUNK - 1);
        product *= (next..=end).map(BigInt::from).product::<BigInt>();
        next = end + 1;
    }
    Ok(Value::Numeric(Numeric::Finite(Decimal::new(product, 0))))
}

/// A function of the numbers between two bounds.
fn within(x: f64, least: f64, most: f64, f: impl Fn(f64) -> f64) -> R {
    if x < least || x > most {
        return Err(SqlError::new(SqlState::OUT_OF_RANGE, "input is out of range"));
    }
    f8(f(x))
}

/// A function of an angle in degrees, which has no value at infinity.
fn turned(x: f64, f: impl Fn(f64) -> f64) -> R {
    if x.is_infinite() {
        return Err(SqlError::new(SqlState::OUT_OF_RANGE, "input is out of range"));
    }
    f8(f(x))
}

/// Degrees, exact where an angle is a whole number of them.
fn to_degrees(radians: f64) -> f64 {
    let degrees = radians.to_degrees();
    if (degrees - degrees.round()).abs() < 1e-13 { degrees.round() } else { degrees }
}

/// The sine of an angle in degrees, exact where that is a well-known number.
fn sin_degrees(degrees: f64) -> f64 {
    let turn = degrees % 360.0;
    let (sign, turn) = if turn < 0.0 { (-1.0, -turn) } else { (1.0, turn) };
    let (sign, turn) = if turn > 180.0 { (-sign, turn - 180.0) } else { (sign, turn) };
    let turn = if turn > 90.0 { 180.0 - turn } else { turn };
    let exact = if turn == 0.0 {
        0.0
    } else if turn == 30.0 {
        0.5
    } else if turn == 90.0 {
        1.0
    } else {
        turn.to_radians().sin()
    };
    if exact == 0.0 { 0.0 } else { sign * exact }
}

fn cos_degrees(degrees: f64) -> f64 {
    let turn = (degrees % 360.0).abs();
    let turn = if turn > 180.0 { 360.0 - turn } else { turn };
    let (sign, turn) = if turn > 90.0 { (-1.0, 180.0 - turn) } else { (1.0, turn) };
    if turn == 60.0 {
        sign * 0.5
    } else if turn == 90.0 {
        0.0
    } else if turn == 45.0 {
        sign * sin_degrees(45.0)
    } else {
        sign * turn.to_radians().cos()
    }
}

fn negative_root() -> SqlError {
    SqlError::new(SqlState(*b"2201F"), "cannot take square root of a negative number")
}

fn sqrt(values: &[Value], _: &Arguments<'_>) -> R {
    let x = float_at(values, 0)?;
    if x < 0.0 { Err(negative_root()) } else { f8(x.sqrt()) }
}

fn sqrt_numeric(values: &[Value], _: &Arguments<'_>) -> R {
    let x = numeric_at(values, 0)?;
    match x {
        Numeric::NaN | Numeric::Infinity => return Ok(Value::Numeric(x.clone())),
        x if x.signum() < 0 => return Err(negative_root()),
        _ => {}
    }
    let Numeric::Finite(number) = x else { return Err(negative_root()) };
    // At least 16 significant digits, as PostgreSQL has it: half the weight of the argument.
    let (weight, _) = number.leading_digit();
    let scale = (16 - (weight * 4 / 2 + 1)).max(x.scale()).clamp(0, 1000);
    let (digits, have) = number.parts();
    // The root of digits * 10^(2 * (scale + 1)) has one digit more than wanted, to round by.
    let shift = 2 * (scale + 1) - have;
    let ten = BigInt::from(10u8);
    let scaled = if shift >= 0 {
        digits.into_owned() * ten.pow(shift as u32)
    } else {
        digits.into_owned() / ten.pow(-shift as u32)
    };
    let root = Numeric::Finite(Decimal::new(scaled.sqrt(), scale + 1));
    Ok(Value::Numeric(root.round(scale)?))
}

fn power_error(base: f64, exponent: f64) -> Option<SqlError> {
    if base == 0.0 && exponent < 0.0 {
        return Some(SqlError::new(SqlState(*b"2201F"), "zero raised to a negative power is undefined"));
    }
    if base < 0.0 && base.is_finite() && exponent.is_finite() && exponent.fract() != 0.0 {
        return Some(SqlError::new(
            SqlState(*b"2201F"),
            "a negative number raised to a non-integer power yields a complex result",
        ));
    }
    None
}

fn power(values: &[Value], _: &Arguments<'_>) -> R {
    let (base, exponent) = (float_at(values, 0)?, float_at(values, 1)?);
    if let Some(error) = power_error(base, exponent) {
        return Err(error);
    }
    let result = base.powf(exponent);
    if result.is_infinite() && base.is_finite() && exponent.is_finite() {
        return Err(float_overflow());
    }
    if result == 0.0 && base != 0.0 && base.is_finite() && exponent.is_finite() {
        return Err(float_underflow());
    }
    f8(result)
}

fn power_numeric(values: &[Value], _: &Arguments<'_>) -> R {
    let (base, exponent) = (numeric_at(values, 0)?, numeric_at(values, 1)?);
    if let Some(error) = power_error(base.to_f64(), exponent.to_f64()) {
        return Err(error);
    }
    if !matches!((base, exponent), (Numeric::Finite(_), Numeric::Finite(_))) {
        // Without NaN and infinity it is 0, 1 or -1, and has no digits after the point.
        let power = base.to_f64().powf(exponent.to_f64());
        if power.is_finite() {
            return Ok(Value::Numeric(Numeric::from(power as i64)));
        }
    }
    let whole = exponent
        .to_i64()
        .filter(|n| Numeric::from(*n).compare(exponent) == Ordering::Equal && i32::try_from(*n).is_ok());
    let (Some(whole), Numeric::Finite(_)) = (whole, base) else {
        if matches!((base, exponent), (Numeric::Finite(_), Numeric::Finite(_))) && base.signum() == 0 {
            return Ok(Value::Numeric(Numeric::from(0).round(16)?));
        }
        return exact(base.power(exponent)?, || base.to_f64().powf(exponent.to_f64()));
    };
    let magnitude = (base.to_f64().abs().log10() * whole as f64).clamp(-2_000.0, 200_000.0);
    if magnitude > 131_072.0 {
        return Err(SqlError::new(SqlState::OUT_OF_RANGE, "value overflows numeric format"));
    }
    let scale = base.scale().clamp(16, 1000);
    let mut result = Numeric::from(1);
    let mut square = base.clone();
    let mut rest = whole.unsigned_abs();
    let working = scale + 20 + magnitude.abs() as i64;
    while rest > 0 {
        if rest & 1 == 1 {
            result = shorten(result.mul(&square)?, working)?;
        }
        rest >>= 1;
        if rest > 0 {
            square = shorten(square.mul(&square)?, working)?;
        }
    }
    if whole < 0 {
        result = Numeric::from(1).round(scale + 8)?.div(&result)?;
    }
    Ok(Value::Numeric(result.round(scale)?))
}

/// Drops digits after the point that can no longer matter.
fn shorten(value: Numeric, scale: i64) -> Result<Numeric, SqlError> {
    if value.scale() > scale { value.round(scale) } else { Ok(value) }
}

fn logarithm(x: f64, f: fn(f64) -> f64) -> R {
    has_logarithm(if x < 0.0 { -1 } else { i32::from(x != 0.0) })?;
    f8(f(x))
}

fn has_logarithm(sign: i32) -> Result<(), SqlError> {
    let what = match sign {
        0 => "zero",
        1.. => return Ok(()),
        _ => "a negative number",
    };
    Err(SqlError::new(SqlState(*b"2201E"), format!("cannot take logarithm of {what}")))
}

/// To a base, or natural.
fn numeric_logarithm(x: &Numeric, base: Option<&Numeric>) -> R {
    has_logarithm(x.signum())?;
    match base {
        None => exact(x.ln()?, || x.to_f64().ln()),
        Some(base) => exact(x.log(base)?, || x.to_f64().ln() / base.to_f64().ln()),
    }
}

/// A number, or what floats say where there is none: of infinities and NaN.
fn exact(known: Option<Numeric>, float: impl Fn() -> f64) -> R {
    known.map_or_else(|| from_float(float()), |known| Ok(Value::Numeric(known)))
}

fn trigonometric(x: f64, f: fn(f64) -> f64) -> R {
    if x.is_infinite() {
        return Err(SqlError::new(SqlState::OUT_OF_RANGE, "input is out of range"));
    }
    f8(f(x))
}

fn bounded(x: f64, f: fn(f64) -> f64) -> R {
    if x.abs() > 1.0 {
        return Err(SqlError::new(SqlState::OUT_OF_RANGE, "input is out of range"));
    }
    f8(f(x))
}

fn width_bucket(values: &[Value], _: &Arguments<'_>) -> R {
    let (x, low, high) = (float_at(values, 0)?, float_at(values, 1)?, float_at(values, 2)?);
    let count = int_at(values, 3)?;
    let invalid = |text: &str| SqlError::new(SqlState(*b"2201G"), text.to_owned());
    if count <= 0 {
        return Err(invalid("count must be greater than zero"));
    }
    if low == high {
        return Err(invalid("lower bound cannot equal upper bound"));
    }
    let place = (x - low) / (high - low);
    let bucket = if place < 0.0 {
        0
    } else if place >= 1.0 {
        count + 1
    } else {
        (place * count as f64) as i64 + 1
    };
    Ok(Value::Int4(i32::try_from(bucket).map_err(|_| out_of_range(&T::Int4))?))
}

fn random(_: &[Value], arguments: &Arguments<'_>) -> R {
    let statement = arguments.statement()?;
    let seed = mix(statement.kv.unique_id()) ^ mix(statement.kv.now_us() as u64);
    f8((mix(seed) >> 11) as f64 / (1u64 << 53) as f64)
}
