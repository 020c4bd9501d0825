//! Variances and standard deviations. Those of integers are numeric, as in PostgreSQL.

use super::aggregate::as_float;
use crate::SqlError;
use crate::types::{Decimal, Numeric, SqlType, Value, float_overflow};

/// The values so far: sums of them and of their squares, exact or in floats.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    count: i64,
    float: f64,
    squares: f64,
    /// Sums of integers, until they are too large; then they are added to those of numerics.
    integer: i128,
    integer_squares: i128,
    numeric: Numeric,
    numeric_squares: Numeric,
}

impl Default for Spread {
    fn default() -> Self {
        let zero = || Numeric::from(0);
        let (numeric, numeric_squares) = (zero(), zero());
        Spread { count: 0, float: 0.0, squares: 0.0, integer: 0, integer_squares: 0, numeric, numeric_squares }
    }
}

fn exact(n: i128) -> Numeric {
    Numeric::Finite(Decimal::from(n))
}

impl Spread {
    /// Takes a value.
    pub(super) fn add(&mut self, value: &Value) -> Result<(), SqlError> {
        self.count += 1;
        match (value, value.as_i64()) {
            (_, Some(n)) => {
                let square = i128::from(n) * i128::from(n);
                match self.integer_squares.checked_add(square) {
                    Some(sum) => self.integer_squares = sum,
                    None => {
                        self.numeric_squares = self.numeric_squares.add(&exact(self.integer_squares))?;
                        self.integer_squares = square;
                    }
                }
                // 2^64 values of int8 do not overflow it.
                self.integer += i128::from(n);
            }
            (Value::Numeric(n), None) => {
                self.numeric.add_to(n)?;
                self.numeric_squares.add_to(&n.mul(n)?)?;
            }
            _ => {
                // Youngs and Cramer, as PostgreSQL does: no cancellation between two large sums.
                let x = as_float(value);
                let n = self.count as f64;
                let before = self.float;
                self.float += x;
                if self.count > 1 {
                    let deviation = x * n - self.float;
                    self.squares += deviation * deviation / (n * (n - 1.0));
                    if self.float.is_infinite() || self.squares.is_infinite() {
                        if !before.is_infinite() && !x.is_infinite() {
                            return Err(float_overflow());
                        }
                        self.squares = f64::NAN;
                    }
                } else if !x.is_finite() {
                    // What is not finite has no distance from anything.
                    self.squares = f64::NAN;
                }
            }
        }
        Ok(())
    }

    /// The variance, or its root, of a sample or of all there is.
    pub(super) fn finish(&self, result: &SqlType, sample: bool, root: bool) -> Result<Value, SqlError> {
        if sample && self.count < 2 {
            return Ok(Value::Null);
        }
        let divisor = if sample { self.count - 1 } else { self.count };
        if *result == SqlType::Float8 {
            let variance = self.squares / divisor as f64;
            return Ok(Value::Float8(if root { variance.sqrt() } else { variance }));
        }
        let n = Numeric::from(self.count);
        let sum = self.numeric.add(&exact(self.integer))?;
        let squares = self.numeric_squares.add(&exact(self.integer_squares))?;
        let spread = n.mul(&squares)?.sub(&sum.mul(&sum)?)?;
        if spread.signum() <= 0 {
            return Ok(Value::Numeric(Numeric::from(0)));
        }
        let variance = spread.div(&n.mul(&Numeric::from(divisor))?)?;
        Ok(Value::Numeric(match (root, &variance) {
            (true, Numeric::Finite(value)) => {
                // As many places as the variance's division gave, as in PostgreSQL.
                let scale = variance.scale();
                let root = value.to_big().sqrt().map(|root| Numeric::Finite(root.round(scale).into()));
                root.unwrap_or_else(|| variance.clone())
            }
            _ => variance,
        }))
    }
}
