//! Access paths: an index, and what its leading columns are compared with. Chosen when a statement is planned
//! (`plan::access`), folded to keys each time it runs, from constants, parameters and the rows of tables read before.

use super::span::{self, Keys};
use super::table::{IndexAccess, TableAccess};
use super::ways;
use crate::SqlError;
use crate::context::StatementContext;
use crate::exec::evaluate;
use crate::expr::Expr;
use crate::types::calendar::DAY_US;
use crate::types::{SqlType, Value};
use std::cmp::Ordering;
use std::ops::Bound;

/// How the rows of one table are found.
#[derive(Debug, Clone)]
pub struct Path {
    /// Which index: see [`TableAccess::index`].
    pub index: usize,
    /// Which part of it; several where conditions are alternatives (`a BETWEEN 1 AND 5 OR a > 90`), which may overlap.
    pub reaches: Vec<Reach>,
    /// Highest key first.
    pub reverse: bool,
    /// Instead: its rows are those that any of these leads to ([`super::ways`]). `index` is the primary key then, and `reaches` is empty.
    pub ways: Vec<Path>,
}

/// A part of an index: what its leading columns are compared with. With nothing to compare, all of it.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// What the first columns equal. At most one of them is a list, so keys do not multiply.
    pub prefix: Vec<Term>,
    /// What the column after them lies between.
    pub range: Option<Range>,
}

/// What one column equals.
#[derive(Debug, Clone)]
pub enum Term {
    /// A value.
    One(Operand),
    /// Any of a list.
    Any(Vec<Operand>),
    /// Any element of an array.
    AnyOf(Operand),
    /// IS NULL.
    Null,
}

/// An expression without columns of the table read, and the type of the column that it is compared with.
#[derive(Debug, Clone)]
pub struct Operand {
    /// The expression.
    pub expr: Expr,
    /// The column's type.
    pub ty: SqlType,
}

/// Bounds of a column; `true` is inclusive.
#[derive(Debug, Clone, Default)]
pub struct Range {
    /// Lower.
    pub low: Option<(Operand, bool)>,
    /// Upper.
    pub high: Option<(Operand, bool)>,
}

/// Where an operand's value stands among the values of a column's type.
#[derive(Debug, Clone, PartialEq)]
pub enum Fit {
    /// It is one of them.
    Exact(Value),
    /// Below them all.
    Below,
    /// Above them all.
    Above,
    /// NULL: no comparison holds.
    Null,
}

/// Places a value in a column's type. Planning admits only pairs of types that this function knows.
pub fn fit(value: Value, ty: &SqlType) -> Fit {
    let integer = match &value {
        Value::Null => return Fit::Null,
        Value::Int2(v) => Some(*v as i64),
        Value::Int4(v) => Some(*v as i64),
        Value::Int8(v) => Some(*v),
        _ => None,
    };
    let ranged = |low: i64, high: i64, make: fn(i64) -> Value| match integer {
        Some(v) if v < low => Fit::Below,
        Some(v) if v > high => Fit::Above,
        Some(v) => Fit::Exact(make(v)),
        None => Fit::Exact(value.clone()),
    };
    match ty {
        SqlType::Int2 => ranged(i16::MIN as i64, i16::MAX as i64, |v| Value::Int2(v as i16)),
        SqlType::Int4 => ranged(i32::MIN as i64, i32::MAX as i64, |v| Value::Int4(v as i32)),
        SqlType::Int8 => ranged(i64::MIN, i64::MAX, Value::Int8),
        SqlType::Char(length) => match &value {
            Value::Text(text) => Fit::Exact(pad(text, *length)),
            _ => Fit::Exact(value),
        },
        SqlType::Numeric(_) => match integer {
            Some(v) => Fit::Exact(Value::Numeric(crate::types::Numeric::from(v))),
            None => Fit::Exact(value),
        },
        _ => Fit::Exact(value),
    }
}

/// Where an operand's value stands among the values of a column that is compared with it in a wider type.
#[derive(Debug, Clone, PartialEq)]
enum Place {
    /// See [`Fit`].
    Fits(Fit),
    /// Above this one and below the next: no value of the column equals it.
    Behind(Value),
    /// What equals it, if anything, lies between these; so does where it stands.
    Between(Value, Value),
}

/// Days by which a moment of a time zone may miss its day of UTC, and some: zones of POSIX go up to 167 hours.
const ZONED_DAYS: i32 = 8;

/// Places a value as [`fit`] does, where the two are compared in a wider type than the column's: a date beside a moment, a real beside a
/// double precision. Exactly, but for moments of a time zone, whose conditions are asked again.
fn place(value: Value, ty: &SqlType) -> Place {
    match (&value, ty) {
        (Value::Timestamp(us), SqlType::Date) => {
            let (day, is_whole) = day_of(*us);
            if is_whole { Place::Fits(Fit::Exact(Value::Date(day))) } else { Place::Behind(Value::Date(day)) }
        }
        (Value::Timestamptz(us), SqlType::Date) => match *us {
            i64::MIN | i64::MAX => Place::Fits(Fit::Exact(Value::Date(day_of(*us).0))),
            us => {
                let (day, _) = day_of(us);
                Place::Between(Value::Date(day - ZONED_DAYS), Value::Date(day + ZONED_DAYS))
            }
        },
        (Value::Float4(v), SqlType::Float8) => Place::Fits(Fit::Exact(Value::Float8(f64::from(*v)))),
        (Value::Float8(v), SqlType::Float4) => {
            let near = *v as f32;
            match f64::from(near).partial_cmp(v) {
                // NaN, which equals itself.
                None | Some(Ordering::Equal) => Place::Fits(Fit::Exact(Value::Float4(near))),
                Some(Ordering::Less) => Place::Behind(Value::Float4(near)),
                Some(Ordering::Greater) => Place::Behind(Value::Float4(near.next_down())),
            }
        }
        _ => Place::Fits(fit(value, ty)),
    }
}

/// The day that a moment is within, and whether the moment is where it begins.
fn day_of(us: i64) -> (i32, bool) {
    match us {
        i64::MIN => (i32::MIN, true),
        i64::MAX => (i32::MAX, true),
        // No moment lies so far that its day were no i32.
        us => (us.div_euclid(DAY_US) as i32, us.rem_euclid(DAY_US) == 0),
    }
}

/// A char(n) as it is stored. A longer text stays as it is: it equals no stored one.
fn pad(text: &str, length: u32) -> Value {
    let trimmed = text.trim_end_matches(' ');
    let missing = (length as usize).saturating_sub(trimmed.chars().count());
    let mut out = String::with_capacity(trimmed.len() + missing);
    out.push_str(trimmed);
    out.extend(std::iter::repeat_n(' ', missing));
    Value::Text(out.into())
}

impl Operand {
    fn place(&self, row: &[Value], context: &StatementContext) -> Result<Place, SqlError> {
        Ok(place(evaluate::value(&self.expr, row, context)?, &self.ty))
    }
}

impl Path {
    /// All of a table, in the order of its primary key.
    pub(crate) fn whole() -> Path {
        Path { index: 0, reaches: vec![Reach::default()], reverse: false, ways: Vec::new() }
    }

    /// Whether conditions narrow it: it does not read the whole index.
    pub(crate) fn is_narrowed(&self) -> bool {
        !self.reaches.iter().any(Reach::is_whole)
    }

    /// Whether in every alternative something equals the first column. Of several ways each is gone to its end before the first row is read: that is not
    /// for who asks often.
    pub(crate) fn has_prefix(&self) -> bool {
        self.ways.is_empty() && !self.reaches.iter().any(|reach| reach.prefix.is_empty())
    }

    /// Whether it leads to one row at most, by a whole unique key.
    pub(crate) fn is_point(&self, access: &TableAccess) -> bool {
        matches!(self.reaches.as_slice(), [reach] if reach.is_point(access.index(self.index)))
    }

    /// The keys to read, in the order to read them. Empty if no row can match.
    pub fn keys(&self, access: &TableAccess, row: &[Value], context: &StatementContext) -> Result<Vec<Keys>, SqlError> {
        let index = access.index(self.index);
        if let [Reach { prefix, range: None }] = self.reaches.as_slice()
            && let [Term::One(operand)] = prefix.as_slice()
        {
            // The hot path: one key column, one value.
            return Ok(match operand.place(row, context)? {
                Place::Fits(Fit::Exact(value)) => vec![span::equal(index, &[value])],
                _ => Vec::new(),
            });
        }
        if !self.ways.is_empty() {
            return ways::keys(&self.ways, access, row, context);
        }
        let mut out = Vec::with_capacity(self.reaches.len());
        for reach in &self.reaches {
            reach.keys(index, row, context, &mut out)?;
        }
        if out.len() > 1 {
            out.sort_unstable_by(|a, b| a.start().cmp(b.start()));
            out = span::apart(out);
            if self.reverse {
                out.reverse();
            }
        }
        Ok(out)
    }

    /// Calls `visit` for each operand.
    pub fn operands<'a>(&'a self, visit: &mut dyn FnMut(&'a Operand)) {
        self.reaches.iter().for_each(|reach| reach.operands(visit));
        self.ways.iter().for_each(|way| way.operands(visit));
    }
}

impl Reach {
    /// Whether nothing narrows it.
    pub fn is_whole(&self) -> bool {
        self.prefix.is_empty() && self.range.is_none()
    }

    /// Whether it is bounded on both sides.
    pub fn is_closed(&self) -> bool {
        !self.prefix.is_empty() || self.range.as_ref().is_some_and(|range| range.low.is_some() && range.high.is_some())
    }

    /// Whether it is one row at most of one set of keys, in a unique index.
    pub(crate) fn is_point(&self, index: &IndexAccess) -> bool {
        index.unique
            && self.prefix.len() == index.columns.len()
            && !self.prefix.iter().any(|term| matches!(term, Term::Null))
    }

    fn keys(
        &self,
        index: &IndexAccess,
        row: &[Value],
        context: &StatementContext,
        out: &mut Vec<Keys>,
    ) -> Result<(), SqlError> {
        let Some(prefixes) = self.prefixes(row, context)? else { return Ok(()) };
        match &self.range {
            None if self.prefix.is_empty() => out.push(Keys::Span(index.span())),
            None => out.extend(prefixes.iter().map(|prefix| span::equal(index, prefix))),
            Some(range) => range.unfold(index, &prefixes, row, context, out)?,
        }
        Ok(())
    }

    fn operands<'a>(&'a self, visit: &mut dyn FnMut(&'a Operand)) {
        for term in &self.prefix {
            match term {
                Term::One(operand) | Term::AnyOf(operand) => visit(operand),
                Term::Any(operands) => operands.iter().for_each(&mut *visit),
                Term::Null => {}
            }
        }
        if let Some(range) = &self.range {
            range.low.iter().chain(&range.high).for_each(|(operand, _)| visit(operand));
        }
    }

    /// Every combination of the prefix's values; `None` if one of them cannot be.
    fn prefixes(&self, row: &[Value], context: &StatementContext) -> Result<Option<Vec<Vec<Value>>>, SqlError> {
        let mut out: Vec<Vec<Value>> = vec![Vec::with_capacity(self.prefix.len())];
        for term in &self.prefix {
            let values = term.values(row, context)?;
            match values.as_slice() {
                [] => return Ok(None),
                [value] => out.iter_mut().for_each(|prefix| prefix.push(value.clone())),
                many => {
                    out = out
                        .iter()
                        .flat_map(|prefix| {
                            many.iter().map(move |value| {
                                let mut longer = prefix.clone();
                                longer.push(value.clone());
                                longer
                            })
                        })
                        .collect();
                }
            }
        }
        Ok(Some(out))
    }
}

impl Term {
    fn values(&self, row: &[Value], context: &StatementContext) -> Result<Vec<Value>, SqlError> {
        let mut out = Vec::new();
        let mut take = |place: Place| {
            if let Place::Fits(Fit::Exact(value)) = place {
                out.push(value);
            }
        };
        match self {
            Term::Null => out.push(Value::Null),
            Term::One(operand) => take(operand.place(row, context)?),
            Term::Any(operands) => {
                for operand in operands {
                    take(operand.place(row, context)?);
                }
            }
            Term::AnyOf(operand) => {
                if let Value::Array(array) = evaluate::value(&operand.expr, row, context)? {
                    for value in &array.values {
                        take(place(value.clone(), &operand.ty));
                    }
                }
            }
        }
        Ok(out)
    }
}

impl Range {
    fn unfold(
        &self,
        index: &IndexAccess,
        prefixes: &[Vec<Value>],
        row: &[Value],
        context: &StatementContext,
        out: &mut Vec<Keys>,
    ) -> Result<(), SqlError> {
        let mut low = Bound::Unbounded;
        if let Some((operand, inclusive)) = &self.low {
            low = match operand.place(row, context)? {
                Place::Fits(Fit::Exact(value)) if *inclusive => Bound::Included(value),
                Place::Fits(Fit::Exact(value)) | Place::Behind(value) => Bound::Excluded(value),
                Place::Between(value, _) => Bound::Included(value),
                Place::Fits(Fit::Below) => Bound::Unbounded,
                Place::Fits(Fit::Above | Fit::Null) => return Ok(()),
            };
        }
        let mut high = Bound::Unbounded;
        if let Some((operand, inclusive)) = &self.high {
            high = match operand.place(row, context)? {
                Place::Fits(Fit::Exact(value)) if !*inclusive => Bound::Excluded(value),
                Place::Fits(Fit::Exact(value)) | Place::Behind(value) | Place::Between(_, value) => {
                    Bound::Included(value)
                }
                Place::Fits(Fit::Above) => Bound::Unbounded,
                Place::Fits(Fit::Below | Fit::Null) => return Ok(()),
            };
        }
        for prefix in prefixes {
            out.extend(span::between(index, prefix, low.as_ref(), high.as_ref()).map(Keys::Span));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float4(v: f32) -> Value {
        Value::Float4(v)
    }

    #[test]
    fn a_double_stands_behind_the_real_below_it() {
        let exact = |v: f64| Place::Fits(Fit::Exact(float4(v as f32)));
        for v in [0.0, 1.5, -2.25, f64::INFINITY, f64::NEG_INFINITY, f64::from(f32::MAX), f64::from(f32::MIN)] {
            assert_eq!(place(Value::Float8(v), &SqlType::Float4), exact(v), "{v}");
        }
        assert!(
            matches!(place(Value::Float8(f64::NAN), &SqlType::Float4), Place::Fits(Fit::Exact(Value::Float4(v))) if v.is_nan())
        );
        for v in [
            0.1,
            -0.1,
            0.3,
            -0.3,
            1e-300,
            -1e-300,
            1e300,
            -1e300,
            16_777_217.0,
            -16_777_217.0,
            f64::from(f32::MAX) * 1.000_000_001,
        ] {
            let Place::Behind(Value::Float4(below)) = place(Value::Float8(v), &SqlType::Float4) else {
                panic!("{v} is no real")
            };
            assert!(f64::from(below) < v && v < f64::from(below.next_up()), "{v} is not right behind {below}");
        }
    }

    #[test]
    fn a_moment_stands_behind_the_day_that_it_is_within() {
        let day = |us| place(Value::Timestamp(us), &SqlType::Date);
        let exact = |day| Place::Fits(Fit::Exact(Value::Date(day)));
        assert_eq!(day(0), exact(0));
        assert_eq!(day(1), Place::Behind(Value::Date(0)));
        assert_eq!(day(-1), Place::Behind(Value::Date(-1)));
        assert_eq!(day(-DAY_US), exact(-1));
        assert_eq!(day(DAY_US - 1), Place::Behind(Value::Date(0)));
        assert_eq!(day(i64::MAX), exact(i32::MAX));
        assert_eq!(day(i64::MIN), exact(i32::MIN));
        let zoned = |us| place(Value::Timestamptz(us), &SqlType::Date);
        assert_eq!(zoned(1), Place::Between(Value::Date(-8), Value::Date(8)));
        assert_eq!(zoned(i64::MAX), exact(i32::MAX));
    }
}
