//! Sums and averages, with PostgreSQL's widths: the direct path's and the engine's.
//!
//! Sums of integers run in 128 bits, which 2^64 values of int8 cannot overflow. A sum of float4 is rounded to float4 at each step, its
//! average is not: PostgreSQL has no wider state for the one, and has for the other.

use crate::types::{Decimal, Interval, Numeric, SqlType, Value, float_overflow};
use crate::{SqlError, SqlState};

/// The values of one type of number, or of intervals, so far. NULLs are not given to it.
#[derive(Clone, Debug, Default)]
pub struct Total {
    count: i64,
    sum: Sum,
}

/// Groups may be many, so each has room for what is summed, and no more.
#[derive(Clone, Debug, Default)]
enum Sum {
    #[default]
    Nothing,
    /// Halves of 128 bits, which need not stand at a multiple of 16.
    Integer {
        low: u64,
        high: i64,
    },
    /// float4: as it is summed, and wider.
    Single(f32, f64),
    Double(f64),
    Numeric(Numeric),
    Interval(Interval),
}

impl Total {
    /// Takes a value.
    ///
    /// # Errors
    /// 22003, 22008 on overflow.
    #[inline]
    pub fn add(&mut self, value: &Value) -> Result<(), SqlError> {
        self.count += 1;
        match (&mut self.sum, value) {
            (Sum::Numeric(sum), Value::Numeric(v)) => sum.add_to(v)?,
            (Sum::Double(sum), Value::Float8(v)) => {
                let next = *sum + v;
                if next.is_infinite() && v.is_finite() && sum.is_finite() {
                    return Err(float_overflow());
                }
                *sum = next;
            }
            (Sum::Single(single, double), Value::Float4(v)) => {
                *single += v;
                *double += f64::from(*v);
            }
            (Sum::Interval(sum), Value::Interval(v)) => *sum = sum.add(v)?,
            (_, Value::Numeric(v)) => self.sum = Sum::Numeric(v.clone()),
            (_, Value::Float8(v)) => self.sum = Sum::Double(0.0 + v),
            (_, Value::Float4(v)) => self.sum = Sum::Single(0.0 + v, 0.0 + f64::from(*v)),
            (_, Value::Interval(v)) => self.sum = Sum::Interval(*v),
            (_, other) => match other.as_i64() {
                Some(v) => {
                    let sum = self.integer() + i128::from(v);
                    self.sum = Sum::Integer { low: sum as u64, high: (sum >> 64) as i64 };
                }
                None => {
                    return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a sum met a value that is no number"));
                }
            },
        }
        Ok(())
    }

    /// Whether it was given no value.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn integer(&self) -> i128 {
        match &self.sum {
            Sum::Integer { low, high } => i128::from(*high) << 64 | i128::from(*low),
            _ => 0,
        }
    }

    fn exact(&self) -> Numeric {
        Numeric::Finite(Decimal::from(self.integer()))
    }

    /// Of float8, and what is wider than float4.
    fn double(&self) -> f64 {
        match &self.sum {
            Sum::Single(_, double) | Sum::Double(double) => *double,
            _ => 0.0,
        }
    }

    fn single(&self) -> f32 {
        if let Sum::Single(single, _) = &self.sum { *single } else { 0.0 }
    }

    fn numeric(&self) -> Numeric {
        if let Sum::Numeric(sum) = &self.sum { sum.clone() } else { Numeric::from(0) }
    }

    fn interval(&self) -> Interval {
        if let Sum::Interval(sum) = &self.sum { *sum } else { Interval::default() }
    }

    /// The sum of values of a type.
    ///
    /// # Errors
    /// 22003 beyond the type of the sum.
    pub fn sum(&self, ty: &SqlType) -> Result<Value, SqlError> {
        Ok(match ty {
            SqlType::Int2 | SqlType::Int4 => Value::Int8(
                i64::try_from(self.integer())
                    .map_err(|_| SqlError::new(SqlState::OUT_OF_RANGE, "bigint out of range"))?,
            ),
            SqlType::Int8 => Value::Numeric(self.exact()),
            // 2^127 values of float4 do not overflow the float8 beside it: an infinite sum there was an infinite value.
            SqlType::Float4 if self.single().is_infinite() && self.double().is_finite() => return Err(float_overflow()),
            SqlType::Float4 => Value::Float4(self.single()),
            SqlType::Numeric(_) => Value::Numeric(self.numeric()),
            SqlType::Interval(_) => Value::Interval(self.interval()),
            _ => Value::Float8(self.double()),
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
            SqlType::Numeric(_) => Value::Numeric(self.numeric().div(&Numeric::from(self.count))?),
            SqlType::Interval(_) => Value::Interval(self.interval().mul(1.0 / count)?),
            _ => Value::Float8(self.double() / count),
        })
    }
}
