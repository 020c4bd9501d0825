//! Types in the catalog's records. Types of times had no modifiers once: `"Time"` is a `time` without one, then as now.

use super::SqlType;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

impl Serialize for SqlType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            SqlType::Time(None) => serializer.serialize_str("Time"),
            SqlType::Timetz(None) => serializer.serialize_str("Timetz"),
            SqlType::Timestamp(None) => serializer.serialize_str("Timestamp"),
            SqlType::Timestamptz(None) => serializer.serialize_str("Timestamptz"),
            SqlType::Interval(None) => serializer.serialize_str("Interval"),
            other => SqlType::serialize(other, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SqlType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SqlType, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

/// Reads a name, or a map of one name and its modifiers.
struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = SqlType;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a type")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<SqlType, E> {
        match name {
            "Time" => Ok(SqlType::Time(None)),
            "Timetz" => Ok(SqlType::Timetz(None)),
            "Timestamp" => Ok(SqlType::Timestamp(None)),
            "Timestamptz" => Ok(SqlType::Timestamptz(None)),
            "Interval" => Ok(SqlType::Interval(None)),
            other => SqlType::deserialize(IntoDeserializer::<E>::into_deserializer(other)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SqlType, A::Error> {
        SqlType::deserialize(MapAccessDeserializer::new(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Field, IntervalModifier};

    #[test]
    fn records_of_before_there_were_modifiers_are_read() {
        for (text, ty) in [
            ("\"Time\"", SqlType::Time(None)),
            ("\"Timestamptz\"", SqlType::Timestamptz(None)),
            ("{\"Array\":\"Interval\"}", SqlType::Array(Box::new(SqlType::Interval(None)))),
            ("\"Int4\"", SqlType::Int4),
            ("{\"Varchar\":7}", SqlType::Varchar(Some(7))),
        ] {
            assert_eq!(serde_json::from_str::<SqlType>(text).unwrap(), ty);
            assert_eq!(serde_json::to_string(&ty).unwrap(), text);
        }
        let day_to_second = IntervalModifier { fields: Some((Field::Day, Field::Second)), precision: Some(2) };
        let (time, zoned, timestamp) = (SqlType::Time(Some(0)), SqlType::Timetz(Some(3)), SqlType::Timestamp(Some(6)));
        for ty in [time, zoned, timestamp, SqlType::Timetz(None), SqlType::Interval(Some(day_to_second))] {
            let ty = SqlType::Array(Box::new(ty));
            let text = serde_json::to_string(&ty).unwrap();
            assert_eq!(serde_json::from_str::<SqlType>(&text).unwrap(), ty);
            assert_eq!(ty.clone().base().with_typmod(ty.typmod()), ty, "{text}");
        }
        assert!(serde_json::from_str::<SqlType>("\"Tim\"").is_err());
    }
}
