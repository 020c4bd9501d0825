//! What is known of the contents of tables: how many rows, and of each column how many values are NULL, how many differ, which are frequent,
//! and how the others are spread. Plans go by it; no answer does.
//!
//! **Problem.** Which table a join begins with decides between milliseconds and minutes, and depends on how many rows pass the conditions.
//!
//! **Idea.** As PostgreSQL has it: a sample of a table's rows, now and then; from it frequent values with their share, and bounds between
//! which the others lie in equal numbers. Values are kept as keys of an index ([`crate::encoding::key`]): bytes that order as they do, so
//! nothing here knows types.
//!
//! **Invariants.**
//! 1. The same rows give the same statistics: the sample is drawn by a generator seeded with the table's OID.
//! 2. They are no part of a table's descriptor: gathering them disturbs no transaction, and a transaction relies on none of them.
//! 3. What is unknown has no number. Who finds none plans as if there were no statistics.
//!
//! **Caveats.** The number of different values is estimated from the sample (Haas and Stokes, "Estimating the number of classes in a finite
//! population", 1998, estimator Duj1, which PostgreSQL uses, too): where few rows of a large table share a value it may be wrong by an order of
//! magnitude. Columns are taken for independent of each other.

mod frequent;
mod known;

pub use frequent::ByKey;
pub use known::{Found, Known};

use crate::SqlError;
use crate::types::{SqlType, Value};
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Share of rows that a condition lets through of which nothing is known.
pub const UNKNOWN_SHARE: f64 = 1.0 / 3.0;
/// Keys are cut behind so many bytes: what differs there only is taken for the same.
pub(crate) const KEY_BYTES_MAX: usize = 64;

/// See the module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableStatistics {
    /// Rows when it was gathered.
    pub rows: u64,
    /// Rows that were looked into.
    pub sampled: u64,
    /// When, microseconds since 1970.
    pub at_us: i64,
    /// When ANALYZE gathered it last, microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analyzed_us: Option<i64>,
    /// When a node did so by itself last, microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoanalyzed_us: Option<i64>,
    /// By column, in no order.
    pub columns: Vec<ColumnStatistics>,
}

/// Of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnStatistics {
    /// The column's id.
    pub id: u16,
    /// Share of rows in which it is NULL.
    pub nulls: f64,
    /// Different values, about.
    pub distinct: f64,
    /// Bytes of a value's key, on average.
    pub width_bytes: u32,
    /// Frequent values, the most frequent first, and their share of all rows.
    pub common: Vec<(Key, f64)>,
    /// Between two of these lie equally many of the values that are neither NULL nor frequent; ascending.
    pub bounds: Vec<Key>,
    /// The frequent ones as they are looked up, once somebody does.
    #[serde(skip)]
    pub by_key: ByKey,
}

/// A value as a key of an index, cut.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(pub Bytes);

impl Key {
    /// The key of a value of a type; `None` for NULL, and for a type that has no order.
    pub fn of(value: &Value, ty: &SqlType) -> Option<Key> {
        if value.is_null() || !ty.is_orderable() {
            return None;
        }
        let mut key = Vec::new();
        crate::encoding::key::encode_value(value, ty, false, &mut key);
        key.truncate(KEY_BYTES_MAX);
        Some(Key(key.into()))
    }

    /// The value, unless it was cut.
    pub fn value(&self, ty: &SqlType) -> Option<Value> {
        let mut rest = self.0.as_ref();
        let value = crate::encoding::key::decode_value(&mut rest, ty, false).ok()?;
        rest.is_empty().then_some(value)
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        let text = String::deserialize(deserializer)?;
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        bytes.map(|bytes| Key(bytes.into())).ok_or_else(|| serde::de::Error::custom("a key is not in hexadecimal"))
    }
}

impl TableStatistics {
    /// Of a column.
    pub fn column(&self, id: u16) -> Option<&ColumnStatistics> {
        self.columns.iter().find(|column| column.id == id)
    }

    /// As bytes.
    ///
    /// # Errors
    /// XX000 if it cannot be written as JSON, which none causes.
    pub fn encode(&self) -> Result<Bytes, SqlError> {
        crate::catalog::codec::encode(self)
    }

    /// From bytes.
    ///
    /// # Errors
    /// 58030: a newer version wrote it, or it is damaged.
    pub fn decode(bytes: &[u8]) -> Result<TableStatistics, SqlError> {
        crate::catalog::codec::decode(bytes)
    }
}

impl ColumnStatistics {
    /// Share of rows whose value is neither NULL nor frequent.
    fn other_share(&self) -> f64 {
        (1.0 - self.nulls - self.by_key.total(&self.common)).max(0.0)
    }

    /// Share of rows with this value; of one that is not known, on average.
    pub fn equal(&self, key: Option<&Key>) -> f64 {
        let values = self.distinct.max(1.0);
        let Some(key) = key else { return (1.0 - self.nulls).max(0.0) / values };
        if let Some(share) = self.by_key.share(&self.common, key) {
            return share;
        }
        let others = (values - self.common.len() as f64).max(1.0);
        let least = self.common.last().map_or(1.0, |(_, share)| *share);
        (self.other_share() / others).min(least)
    }

    /// Share of rows below a value.
    pub fn below(&self, key: &Key) -> f64 {
        self.by_key.below(&self.common, key) + self.other_share() * self.position(key)
    }

    /// The part of the bounds that lies below a value, from 0 to 1.
    fn position(&self, key: &Key) -> f64 {
        let Some(parts) = self.bounds.len().checked_sub(1).filter(|parts| *parts > 0) else { return UNKNOWN_SHARE };
        match self.bounds.partition_point(|bound| bound < key) {
            0 => 0.0,
            above if above > parts => 1.0,
            // Somewhere between two bounds.
            above => (above as f64 - 0.5) / parts as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: i32) -> Key {
        Key::of(&Value::Int4(n), &SqlType::Int4).unwrap()
    }

    fn column() -> ColumnStatistics {
        ColumnStatistics {
            id: 1,
            nulls: 0.1,
            distinct: 102.0,
            width_bytes: 4,
            common: vec![(key(7), 0.3), (key(500), 0.1)],
            bounds: (0..=10).map(|n| key(n * 100)).collect(),
            by_key: ByKey::default(),
        }
    }

    fn about(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 1e-9, "{found}, not {wanted}");
    }

    #[test]
    fn frequent_values_count_by_themselves() {
        let column = column();
        about(column.equal(Some(&key(7))), 0.3);
        about(column.equal(Some(&key(8))), 0.005);
        about(column.equal(None), 0.9 / 102.0);
        about(column.below(&key(-5)), 0.0);
        about(column.below(&key(7)), 0.5 * 0.05);
        about(column.below(&key(8)), 0.3 + 0.5 * 0.05);
        about(column.below(&key(5000)), 0.9);
    }

    #[test]
    fn bytes_give_back_what_they_were_made_of() {
        let table = TableStatistics {
            rows: 12,
            sampled: 12,
            at_us: 5,
            analyzed_us: Some(5),
            autoanalyzed_us: None,
            columns: vec![column()],
        };
        assert_eq!(TableStatistics::decode(&table.encode().unwrap()).unwrap(), table);
        assert!(TableStatistics::decode(br#"{"rows":1}"#).is_err());
    }

    #[test]
    fn values_without_an_order_have_no_key() {
        assert_eq!(Key::of(&Value::Null, &SqlType::Int4), None);
        assert_eq!(Key::of(&Value::Text("{}".into()), &SqlType::Json), None);
    }
}
