//! Aggregates over pairs of numbers: covariance, correlation, the line of least squares. All in floats, as in PostgreSQL.

use crate::SqlError;
use crate::expr::aggregate::Measure;
use crate::types::{Value, float_overflow};

/// The pairs so far: their number, sums, and sums of the products of their distances from the means (Youngs and Cramer, 1971).
#[derive(Clone, Debug, Default)]
pub(super) struct Regression {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Regression {
    /// Takes a pair: the dependent number comes first.
    ///
    /// # Errors
    /// 22003 where finite numbers have sums that are not.
    pub(super) fn add(&mut self, y: f64, x: f64) -> Result<(), SqlError> {
        let (before, x_before, y_before) = (self.count, self.x, self.y);
        self.count += 1.0;
        self.x += x;
        self.y += y;
        if before > 0.0 {
            let (dx, dy) = (x * self.count - self.x, y * self.count - self.y);
            let scale = 1.0 / (self.count * before);
            self.xx += dx * dx * scale;
            self.yy += dy * dy * scale;
            self.xy += dx * dy * scale;
            let x_left = (self.x.is_infinite() || self.xx.is_infinite()) && !x_before.is_infinite() && !x.is_infinite();
            let y_left = (self.y.is_infinite() || self.yy.is_infinite()) && !y_before.is_infinite() && !y.is_infinite();
            let all_finite = [x_before, x, y_before, y].iter().all(|n| !n.is_infinite());
            if x_left || y_left || self.xy.is_infinite() && all_finite {
                return Err(float_overflow());
            }
            for sum in [&mut self.xx, &mut self.yy, &mut self.xy] {
                if sum.is_infinite() {
                    *sum = f64::NAN;
                }
            }
            return Ok(());
        }
        // What is not finite has no distance from anything.
        if !x.is_finite() {
            (self.xx, self.xy) = (f64::NAN, f64::NAN);
        }
        if !y.is_finite() {
            (self.yy, self.xy) = (f64::NAN, f64::NAN);
        }
        Ok(())
    }

    /// NULL where it is not defined.
    pub(super) fn finish(&self, measure: Measure) -> Value {
        let Regression { count, x, y, xx, yy, xy } = *self;
        let least = if measure == Measure::CovarianceSample { 2.0 } else { 1.0 };
        if measure == Measure::Count {
            return Value::Int8(count as i64);
        }
        if count < least {
            return Value::Null;
        }
        let found = match measure {
            Measure::Count => None,
            Measure::Correlation => (xx != 0.0 && yy != 0.0).then(|| xy / (xx * yy).sqrt()),
            Measure::CovariancePopulation => Some(xy / count),
            Measure::CovarianceSample => Some(xy / (count - 1.0)),
            Measure::AverageX => Some(x / count),
            Measure::AverageY => Some(y / count),
            Measure::Intercept => (xx != 0.0).then(|| (y - x * xy / xx) / count),
            Measure::R2 if yy == 0.0 => (xx != 0.0).then_some(1.0),
            Measure::R2 => (xx != 0.0).then(|| (xy * xy) / (xx * yy)),
            Measure::Slope => (xx != 0.0).then(|| xy / xx),
            Measure::Sxx => Some(xx),
            Measure::Sxy => Some(xy),
            Measure::Syy => Some(yy),
        };
        found.map_or(Value::Null, Value::Float8)
    }
}
