//! Variances and standard deviations. Those of integers are numeric, as in PostgreSQL.

use super::aggregate::as_float;
use crate::SqlError;
use crate::types::{Numeric, SqlType, Value};

/// The values so far: sums of them and of their squares, exact or in floats.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    count: i64,
    float: f64,
    squares: f64,
    numeric: Numeric,
    numeric_squares: Numeric,
}

impl Default for Spread {
    fn default() -> Self {
        Spread { count: 0, float: 0.0, squares: 0.0, numeric: Numeric::from(0), numeric_squares: Numeric::from(0) }
    }
}

fn as_numeric(value: &Value) -> Option<Numeric> {
    match value {
        Value::Numeric(n) => Some(n.clone()),
        other => other.as_i64().map(Numeric::from),
    }
}

impl Spread {
    /// Takes a value.
    pub(super) fn add(&mut self, value: &Value) -> Result<(), SqlError> {
        self.count += 1;
        match as_numeric(value) {
            Some(n) => {
                self.numeric = self.numeric.add(&n)?;
                self.numeric_squares = self.numeric_squares.add(&n.mul(&n)?)?;
            }
            None => {
                // Youngs and Cramer, as PostgreSQL does: no cancellation between two large sums.
                let x = as_float(value);
                let n = self.count as f64;
                self.float += x;
                if self.count > 1 {
                    let deviation = x * n - self.float;
                    self.squares += deviation * deviation / (n * (n - 1.0));
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
        let spread = n.mul(&self.numeric_squares)?.sub(&self.numeric.mul(&self.numeric)?)?;
        if spread.signum() <= 0 {
            return Ok(Value::Numeric(Numeric::from(0)));
        }
        let variance = spread.div(&n.mul(&Numeric::from(divisor))?)?;
        Ok(Value::Numeric(match (root, &variance) {
            (true, Numeric::Finite(value)) => {
                let scale = variance.scale().max(16);
                value.sqrt().map_or(variance.clone(), |root| Numeric::Finite(root.round(scale)))
            }
            _ => variance,
        }))
    }
}
