//! Sums and averages, with PostgreSQL's widths: the direct path's and the engine's.
//!
//! Sums of integers run in 128 bits, which 2^64 values of int8 cannot overflow. A sum of float4 is rounded to float4 at each step, its
//! average is not: PostgreSQL has no wider state for the one, and has for the other.

use crate::types::{Decimal, Interval, Numeric, SqlType, Value, float_overflow};
use crate::{SqlError, SqlState};

/// The values of one type of number, or of intervals, so far. NULLs are not given to it.
#[derive(Clone, Debug)]
pub struct Total {
    count: i64,
    integer: i128,
    single: f32,
    double: f64,
    numeric: Numeric,
    interval: Interval,
}

impl Default for Total {
    fn default() -> Self {
        Total {
            count: 0,
            integer: 0,
            single: 0.0,
            double: 0.0,
            numeric: Numeric::from(0),
            interval: Interval::default(),
        }
    }
}

impl Total {
    /// Takes a value.
    ///
    /// # Errors
    /// 22003, 22008 on overflow.
    pub fn add(&mut self, value: &Value) -> Result<(), SqlError> {
        self.count += 1;
        match value {
            Value::Float4(v) => {
                self.single += v;
                self.double += f64::from(*v);
            }
            Value::Float8(v) => {
                let sum = self.double + v;
                if sum.is_infinite() && v.is_finite() && self.double.is_finite() {
                    return Err(float_overflow());
                }
                self.double = sum;
            }
            Value::Numeric(v) => self.numeric.add_to(v)?,
            Value::Interval(v) => self.interval = self.interval.add(v)?,
            other => match other.as_i64() {
                Some(v) => self.integer += i128::from(v),
                None => {
                    return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a sum met a value that is no number"));
                }
            },
        }
        Ok(())
    }

    fn exact(&self) -> Numeric {
        Numeric::Finite(Decimal::from(self.integer))
    }

    /// The sum of values of a type.
    ///
    /// # Errors
    /// 22003 beyond the type of the sum.
    pub fn sum(&self, ty: &SqlType) -> Result<Value, SqlError> {
        Ok(match ty {
            SqlType::Int2 | SqlType::Int4 => Value::Int8(
                i64::try_from(self.integer)
                    .map_err(|_| SqlError::new(SqlState::OUT_OF_RANGE, "bigint out of range"))?,
            ),
            SqlType::Int8 => Value::Numeric(self.exact()),
            // 2^127 values of float4 do not overflow the float8 beside it: an infinite sum there was an infinite value.
            SqlType::Float4 if self.single.is_infinite() && self.double.is_finite() => return Err(float_overflow()),
            SqlType::Float4 => Value::Float4(self.single),
            SqlType::Numeric(_) => Value::Numeric(self.numeric.clone()),
            SqlType::Interval(_) => Value::Interval(self.interval),
            _ => Value::Float8(self.double),
        })
    }

    /// The average of values of a type; there must be one.
    ///
    /// # Errors
    /// 22008 for intervals out of range.
    pub fn average(&self, ty: &SqlType) -> Result<Value, SqlError> {
        let count = self.count as f64;
        Ok(match ty {
            SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => {
                Value::Numeric(self.exact().div(&Numeric::from(self.count))?)
            }
            SqlType::Numeric(_) => Value::Numeric(self.numeric.div(&Numeric::from(self.count))?),
            SqlType::Interval(_) => Value::Interval(self.interval.mul(1.0 / count)?),
            _ => Value::Float8(self.double / count),
        })
    }
}
