//! Arithmetic on numbers of one type.

use super::ArithmeticOp;
use crate::types::{SqlType, Value, division_by_zero, float_overflow, float_underflow, out_of_range};
use crate::{SqlError, SqlState};

macro_rules! integers {
    ($op:expr, $a:expr, $b:expr, $make:path, $ty:expr) => {{
        let (a, b) = ($a, $b);
        let result = match $op {
            ArithmeticOp::Add => a.checked_add(b),
            ArithmeticOp::Sub => a.checked_sub(b),
            ArithmeticOp::Mul => a.checked_mul(b),
            ArithmeticOp::Div | ArithmeticOp::Mod if b == 0 => return Err(division_by_zero()),
            ArithmeticOp::Div => a.checked_div(b),
            // The least integer modulo -1 is 0, not an overflow.
            ArithmeticOp::Mod => Some(a.checked_rem(b).unwrap_or(0)),
        };
        result.map($make).ok_or_else(|| out_of_range(&$ty))
    }};
}

/// Applies an operator to two values of one number type.
///
/// # Errors
/// 22003 on overflow, 22012 on division by zero.
#[inline]
pub(super) fn apply(op: ArithmeticOp, left: &Value, right: &Value) -> Result<Value, SqlError> {
    match (left, right) {
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        (Value::Int4(a), Value::Int4(b)) => integers!(op, *a, *b, Value::Int4, SqlType::Int4),
        (Value::Int8(a), Value::Int8(b)) => integers!(op, *a, *b, Value::Int8, SqlType::Int8),
        (Value::Int2(a), Value::Int2(b)) => integers!(op, *a, *b, Value::Int2, SqlType::Int2),
        (Value::Float8(a), Value::Float8(b)) => float(op, *a, *b, |v| v).map(Value::Float8),
        (Value::Float4(a), Value::Float4(b)) => {
            let narrow = |v: f64| f64::from(v as f32);
            float(op, f64::from(*a), f64::from(*b), narrow).map(|v| Value::Float4(v as f32))
        }
        (Value::Numeric(a), Value::Numeric(b)) => Ok(Value::Numeric(match op {
            ArithmeticOp::Add => a.add(b)?,
            ArithmeticOp::Sub => a.sub(b)?,
            ArithmeticOp::Mul => a.mul(b)?,
            ArithmeticOp::Div => a.div(b)?,
            ArithmeticOp::Mod => a.rem(b)?,
        })),
        (a, b) => Err(SqlError::new(
            SqlState::INTERNAL_ERROR,
            format!("arithmetic on {} and {}", a.natural_type(), b.natural_type()),
        )),
    }
}

/// Floats of both widths: `round` cuts a float8 to the width. A float4's result rounded twice is the one rounded once, since 53 bits
/// are more than two times 24 and two.
#[inline]
fn float(op: ArithmeticOp, a: f64, b: f64, round: impl Fn(f64) -> f64) -> Result<f64, SqlError> {
    let result = round(match op {
        ArithmeticOp::Add => a + b,
        ArithmeticOp::Sub => a - b,
        ArithmeticOp::Mul => a * b,
        ArithmeticOp::Div if b == 0.0 && !a.is_nan() => return Err(division_by_zero()),
        ArithmeticOp::Div => a / b,
        ArithmeticOp::Mod => a % b,
    });
    if result.is_infinite() && a.is_finite() && b.is_finite() {
        return Err(float_overflow());
    }
    let vanished = match op {
        ArithmeticOp::Mul => a != 0.0 && b != 0.0,
        ArithmeticOp::Div => a != 0.0 && b.is_finite(),
        _ => false,
    };
    if result == 0.0 && vanished {
        return Err(float_underflow());
    }
    Ok(result)
}
