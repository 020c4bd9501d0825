//! Rows as bytes in temporary files. Each value says what it is: the operators do not know the types of all that they hold.
//!
//! ```text
//! row:   length u32 of what follows | value | value ..
//! value: tag u8 | its bytes, behind their length u32 where that differs
//! ```
//!
//! Element types of arrays and names of records are in memory, by number: all rows of a query share them.

use crate::types::{Array, Decimal, Interval, Names, Numeric, Record, Row, SqlType, Value, ZonedTime};
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// Bytes in front of a row.
pub(super) const HEADER_BYTES: usize = 4;

/// Types and names that values of a file refer to.
#[derive(Clone, Default)]
pub(super) struct Shapes {
    types: Arc<Vec<SqlType>>,
    names: Arc<Vec<Names>>,
}

/// Number of a record without names.
const NAMELESS: u32 = u32::MAX;

mod tag {
    pub const NULL: u8 = 0;
    pub const FALSE: u8 = 1;
    pub const TRUE: u8 = 2;
    pub const INT2: u8 = 3;
    pub const INT4: u8 = 4;
    pub const INT8: u8 = 5;
    pub const FLOAT4: u8 = 6;
    pub const FLOAT8: u8 = 7;
    pub const NUMBER: u8 = 8;
    pub const NAN: u8 = 9;
    pub const INFINITY: u8 = 10;
    pub const NEG_INFINITY: u8 = 11;
    pub const TEXT: u8 = 12;
    pub const BYTEA: u8 = 13;
    pub const DATE: u8 = 14;
    pub const TIME: u8 = 15;
    pub const TIMETZ: u8 = 16;
    pub const TIMESTAMP: u8 = 17;
    pub const TIMESTAMPTZ: u8 = 18;
    pub const INTERVAL: u8 = 19;
    pub const UUID: u8 = 20;
    pub const JSON: u8 = 21;
    pub const JSONB: u8 = 22;
    pub const OID: u8 = 23;
    pub const ARRAY: u8 = 24;
    pub const RECORD: u8 = 25;
}

/// The number of an item that is equal, or of a new one.
fn number<T: Clone>(all: &mut Arc<Vec<T>>, item: &T, same: impl Fn(&T) -> bool) -> u32 {
    let known = all.iter().position(same);
    known.unwrap_or_else(|| {
        Arc::make_mut(all).push(item.clone());
        all.len() - 1
    }) as u32
}

impl Shapes {
    /// Appends a row.
    ///
    /// # Errors
    /// 54000: it takes 4 GiB or more, and nothing is appended.
    pub(super) fn write_row(&mut self, row: &[Value], out: &mut Vec<u8>) -> Result<(), SqlError> {
        let at = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        row.iter().for_each(|value| self.write(value, out));
        // (No length within it is larger.)
        let Ok(length) = u32::try_from(out.len() - at - HEADER_BYTES) else {
            out.truncate(at);
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a row is too large for a temporary file")
                .hint("A row there has less than 4 GiB: select fewer or shorter values."));
        };
        out[at..at + HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
        Ok(())
    }

    fn write(&mut self, value: &Value, out: &mut Vec<u8>) {
        let mut put = |tag: u8, bytes: &[u8]| {
            out.push(tag);
            out.extend_from_slice(bytes);
        };
        match value {
            Value::Null => put(tag::NULL, &[]),
            Value::Bool(v) => put(if *v { tag::TRUE } else { tag::FALSE }, &[]),
            Value::Int2(v) => put(tag::INT2, &v.to_le_bytes()),
            Value::Int4(v) => put(tag::INT4, &v.to_le_bytes()),
            Value::Int8(v) => put(tag::INT8, &v.to_le_bytes()),
            Value::Float4(v) => put(tag::FLOAT4, &v.to_le_bytes()),
            Value::Float8(v) => put(tag::FLOAT8, &v.to_le_bytes()),
            Value::Date(v) => put(tag::DATE, &v.to_le_bytes()),
            Value::Time(v) => put(tag::TIME, &v.to_le_bytes()),
            Value::Timestamp(v) => put(tag::TIMESTAMP, &v.to_le_bytes()),
            Value::Timestamptz(v) => put(tag::TIMESTAMPTZ, &v.to_le_bytes()),
            Value::Oid(v) => put(tag::OID, &v.to_le_bytes()),
            Value::Uuid(v) => put(tag::UUID, v),
            Value::Timetz(v) => {
                put(tag::TIMETZ, &v.micros.to_le_bytes());
                out.extend_from_slice(&v.west_s.to_le_bytes());
            }
            Value::Interval(v) => {
                put(tag::INTERVAL, &v.months.to_le_bytes());
                out.extend_from_slice(&v.days.to_le_bytes());
                out.extend_from_slice(&v.micros.to_le_bytes());
            }
            Value::Numeric(Numeric::NaN) => put(tag::NAN, &[]),
            Value::Numeric(Numeric::Infinity) => put(tag::INFINITY, &[]),
            Value::Numeric(Numeric::NegInfinity) => put(tag::NEG_INFINITY, &[]),
            Value::Numeric(Numeric::Finite(v)) => {
                put(tag::NUMBER, &(v.scale() as i32).to_le_bytes());
                let at = out.len();
                out.extend_from_slice(&[0; 4]);
                v.write_le_bytes(out);
                let length = (out.len() - at - 4) as u32;
                out[at..at + 4].copy_from_slice(&length.to_le_bytes());
            }
            Value::Text(v) => sized(tag::TEXT, v.as_bytes(), out),
            Value::Json(v) => sized(tag::JSON, v.as_bytes(), out),
            Value::Jsonb(v) => sized(tag::JSONB, v.as_bytes(), out),
            Value::Bytea(v) => sized(tag::BYTEA, v, out),
            Value::Array(v) => {
                put(tag::ARRAY, &number(&mut self.types, &v.element, |ty| *ty == v.element).to_le_bytes());
                out.push(v.dimensions.len() as u8);
                for (length, lower) in &v.dimensions {
                    out.extend_from_slice(&length.to_le_bytes());
                    out.extend_from_slice(&lower.to_le_bytes());
                }
                out.extend_from_slice(&(v.values.len() as u32).to_le_bytes());
                v.values.iter().for_each(|value| self.write(value, out));
            }
            Value::Record(v) => {
                let same = |a: &Names, b: &Names| Arc::ptr_eq(a, b) || a == b;
                let names = v.names().map_or(NAMELESS, |n| number(&mut self.names, n, |known| same(known, n)));
                put(tag::RECORD, &names.to_le_bytes());
                out.extend_from_slice(&(v.len() as u32).to_le_bytes());
                v.iter().for_each(|value| self.write(value, out));
            }
        }
    }
}

fn sized(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// How many bytes follow the header of a row.
pub(super) fn length(header: &[u8]) -> usize {
    header.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
}

/// Reads a row, without its header, in place of what `row` held. `shapes` are asked for at its first array or record.
///
/// # Errors
/// XX000: they are no row.
pub(super) fn read_row(bytes: &[u8], shapes: impl Fn() -> Shapes, row: &mut Row) -> Result<(), SqlError> {
    row.clear();
    let mut reader = Reader { rest: bytes, shapes, known: None };
    while !reader.rest.is_empty() {
        row.push(reader.value()?);
    }
    Ok(())
}

struct Reader<'a, S> {
    rest: &'a [u8],
    shapes: S,
    known: Option<Shapes>,
}

fn corrupt() -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, "a row of a temporary file cannot be read")
}

impl<S: Fn() -> Shapes> Reader<'_, S> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], SqlError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or_else(corrupt)?;
        self.rest = rest;
        Ok(*head)
    }

    fn u32(&mut self) -> Result<u32, SqlError> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn sized(&mut self) -> Result<&[u8], SqlError> {
        let length = self.u32()? as usize;
        let (head, rest) = self.rest.split_at_checked(length).ok_or_else(corrupt)?;
        self.rest = rest;
        Ok(head)
    }

    fn text(&mut self) -> Result<Arc<str>, SqlError> {
        std::str::from_utf8(self.sized()?).map(Arc::from).map_err(|_| corrupt())
    }

    fn shapes(&mut self) -> &Shapes {
        self.known.get_or_insert_with(&self.shapes)
    }

    fn values(&mut self) -> Result<Vec<Value>, SqlError> {
        let count = self.u32()? as usize;
        let mut values = Vec::with_capacity(count.min(self.rest.len()));
        for _ in 0..count {
            values.push(self.value()?);
        }
        Ok(values)
    }

    fn value(&mut self) -> Result<Value, SqlError> {
        Ok(match self.take::<1>()?[0] {
            tag::NULL => Value::Null,
            tag::FALSE => Value::Bool(false),
            tag::TRUE => Value::Bool(true),
            tag::INT2 => Value::Int2(i16::from_le_bytes(self.take()?)),
            tag::INT4 => Value::Int4(i32::from_le_bytes(self.take()?)),
            tag::INT8 => Value::Int8(i64::from_le_bytes(self.take()?)),
            tag::FLOAT4 => Value::Float4(f32::from_le_bytes(self.take()?)),
            tag::FLOAT8 => Value::Float8(f64::from_le_bytes(self.take()?)),
            tag::NUMBER => {
                let scale = i32::from_le_bytes(self.take()?);
                Value::Numeric(Numeric::Finite(Decimal::from_le_bytes(self.sized()?, scale)))
            }
            tag::NAN => Value::Numeric(Numeric::NaN),
            tag::INFINITY => Value::Numeric(Numeric::Infinity),
            tag::NEG_INFINITY => Value::Numeric(Numeric::NegInfinity),
            tag::TEXT => Value::Text(self.text()?),
            tag::BYTEA => Value::Bytea(self.sized()?.into()),
            tag::DATE => Value::Date(i32::from_le_bytes(self.take()?)),
            tag::TIME => Value::Time(i64::from_le_bytes(self.take()?)),
            tag::TIMETZ => Value::Timetz(ZonedTime {
                micros: i64::from_le_bytes(self.take()?),
                west_s: i32::from_le_bytes(self.take()?),
            }),
            tag::TIMESTAMP => Value::Timestamp(i64::from_le_bytes(self.take()?)),
            tag::TIMESTAMPTZ => Value::Timestamptz(i64::from_le_bytes(self.take()?)),
            tag::INTERVAL => Value::Interval(Interval {
                months: i32::from_le_bytes(self.take()?),
                days: i32::from_le_bytes(self.take()?),
                micros: i64::from_le_bytes(self.take()?),
            }),
            tag::UUID => Value::Uuid(self.take()?),
            tag::JSON => Value::Json(self.text()?),
            tag::JSONB => Value::Jsonb(self.text()?),
            tag::OID => Value::Oid(self.u32()?),
            tag::ARRAY => {
                let ty = self.u32()? as usize;
                let element = self.shapes().types.get(ty).cloned().ok_or_else(corrupt)?;
                let count = self.take::<1>()?[0];
                let mut dimensions = Vec::with_capacity(count.into());
                for _ in 0..count {
                    dimensions.push((i32::from_le_bytes(self.take()?), i32::from_le_bytes(self.take()?)));
                }
                Value::Array(Arc::new(Array { element, dimensions, values: self.values()? }))
            }
            tag::RECORD => {
                let names = match self.u32()? {
                    NAMELESS => None,
                    number => Some(self.shapes().names.get(number as usize).cloned().ok_or_else(corrupt)?),
                };
                Value::Record(Arc::new(Record::new(self.values()?, names)))
            }
            _ => return Err(corrupt()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_back_as_it_was() {
        let decimal = |digits: i128, scale: i32| {
            Value::Numeric(Numeric::Finite(Decimal::from_le_bytes(&digits.to_le_bytes(), scale)))
        };
        let names: Names = Arc::from(vec![("a".to_owned(), SqlType::Int4), ("b".to_owned(), SqlType::Text)]);
        let array = |element: SqlType, values| Value::Array(Arc::new(Array::from_values(element, values)));
        let row = vec![
            Value::Null,
            Value::Bool(true),
            Value::Bool(false),
            Value::Int2(-3),
            Value::Int4(i32::MIN),
            Value::Int8(i64::MAX),
            Value::Float4(-0.0),
            Value::Float8(f64::NEG_INFINITY),
            decimal(-12_345, 2),
            decimal(100, 0),
            decimal(i128::MAX, 40),
            Value::Numeric(Numeric::NaN),
            Value::Numeric(Numeric::Infinity),
            Value::Numeric(Numeric::NegInfinity),
            Value::Text("".into()),
            Value::Text("grün".into()),
            Value::Bytea([0, 1, 255].into()),
            Value::Date(-1),
            Value::Time(1),
            Value::Timetz(ZonedTime { micros: 5, west_s: -3600 }),
            Value::Timestamp(i64::MIN),
            Value::Timestamptz(7),
            Value::Interval(Interval { months: 1, days: -2, micros: 3 }),
            Value::Uuid([9; 16]),
            Value::Json("{\"a\": 1 }".into()),
            Value::Jsonb("[1.0]".into()),
            Value::Oid(u32::MAX),
            array(SqlType::Text, vec![Value::Null, Value::Text("x".into())]),
            array(SqlType::Int4, Vec::new()),
            Value::Record(Arc::new(Record::new(vec![Value::Int4(1), Value::Text("y".into())], Some(names)))),
            Value::Record(Arc::new(Record::new(vec![array(SqlType::Int4, vec![Value::Int4(2)])], None))),
        ];
        let (mut shapes, mut bytes) = (Shapes::default(), Vec::new());
        shapes.write_row(&row, &mut bytes).unwrap();
        shapes.write_row(&row, &mut bytes).unwrap();
        let length = length(&bytes);
        assert_eq!(bytes.len(), 2 * (HEADER_BYTES + length));
        let mut back = vec![Value::Int4(0)];
        read_row(&bytes[HEADER_BYTES..][..length], || shapes.clone(), &mut back).unwrap();
        assert_eq!(back, row);
        assert_eq!(format!("{back:?}"), format!("{row:?}"), "the sign of zero and the names, too");
        assert_eq!((shapes.types.len(), shapes.names.len()), (2, 1));
        let cut = &bytes[HEADER_BYTES..][..length - 1];
        assert!(read_row(cut, || shapes.clone(), &mut back).is_err());
    }
}
