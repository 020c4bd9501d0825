//! Operator classes that CREATE INDEX names. Text is in byte order and a type has one order: the classes of a type differ in nothing, and
//! are checked and forgotten.

use crate::syntax::Name;
use crate::types::SqlType;
use crate::{SqlError, SqlState};

/// PostgreSQL's classes for B-trees, sorted.
const CLASSES: [&str; 43] = [
    "array_ops",
    "bit_ops",
    "bool_ops",
    "bpchar_ops",
    "bpchar_pattern_ops",
    "bytea_ops",
    "char_ops",
    "cidr_ops",
    "date_ops",
    "enum_ops",
    "float4_ops",
    "float8_ops",
    "inet_ops",
    "int2_ops",
    "int4_ops",
    "int8_ops",
    "interval_ops",
    "jsonb_ops",
    "macaddr8_ops",
    "macaddr_ops",
    "money_ops",
    "multirange_ops",
    "name_ops",
    "numeric_ops",
    "oid_ops",
    "oidvector_ops",
    "pg_lsn_ops",
    "range_ops",
    "record_image_ops",
    "record_ops",
    "text_ops",
    "text_pattern_ops",
    "tid_ops",
    "time_ops",
    "timestamp_ops",
    "timestamptz_ops",
    "timetz_ops",
    "tsquery_ops",
    "tsvector_ops",
    "uuid_ops",
    "varbit_ops",
    "varchar_ops",
    "varchar_pattern_ops",
];

/// Whether there is such a class.
pub fn is_operator_class(class: &Name) -> bool {
    let elsewhere = class.schema.as_deref().is_some_and(|schema| schema != "pg_catalog");
    !elsewhere && CLASSES.binary_search(&class.name.as_str()).is_ok()
}

/// Checks the class that an index names for a key of a type.
///
/// # Errors
/// 42704 if there is none of that name, 42804 if it is another type's.
pub(super) fn check(class: &Name, ty: &SqlType) -> Result<(), SqlError> {
    let name = class.name.as_str();
    if !is_operator_class(class) {
        return Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("operator class \"{class}\" does not exist for access method \"btree\""),
        )
        .hint("Leave it out: an index orders by the type of its key."));
    }
    if accepts(name, ty) {
        return Ok(());
    }
    let told = format!("operator class \"{class}\" does not accept data type {}", ty.base());
    Err(SqlError::new(SqlState::DATATYPE_MISMATCH, told))
}

/// Whether values of a type are those of the class, or are read as such as they stand (binary-coercible, as PostgreSQL says).
fn accepts(class: &str, ty: &SqlType) -> bool {
    match class {
        "text_ops" | "text_pattern_ops" | "varchar_ops" | "varchar_pattern_ops" => {
            matches!(ty, SqlType::Text | SqlType::Varchar(_) | SqlType::Unknown)
        }
        "bpchar_ops" | "bpchar_pattern_ops" => matches!(ty, SqlType::Char(_) | SqlType::Text | SqlType::Varchar(_)),
        "array_ops" => matches!(ty, SqlType::Array(_)),
        "record_ops" | "record_image_ops" => *ty == SqlType::Record,
        "bool_ops" => *ty == SqlType::Bool,
        "bytea_ops" => *ty == SqlType::Bytea,
        "char_ops" => *ty == SqlType::SingleChar,
        "date_ops" => *ty == SqlType::Date,
        "float4_ops" => *ty == SqlType::Float4,
        "float8_ops" => *ty == SqlType::Float8,
        "int2_ops" => *ty == SqlType::Int2,
        "int4_ops" => *ty == SqlType::Int4,
        "int8_ops" => *ty == SqlType::Int8,
        "interval_ops" => matches!(ty, SqlType::Interval(_)),
        "jsonb_ops" => *ty == SqlType::Jsonb,
        "name_ops" => *ty == SqlType::Name,
        "numeric_ops" => matches!(ty, SqlType::Numeric(_)),
        "oid_ops" => matches!(ty, SqlType::Oid | SqlType::Reg(_) | SqlType::Int4),
        "oidvector_ops" => *ty == SqlType::OidVector,
        "time_ops" => matches!(ty, SqlType::Time(_)),
        "timestamp_ops" => matches!(ty, SqlType::Timestamp(_)),
        "timestamptz_ops" => matches!(ty, SqlType::Timestamptz(_)),
        "timetz_ops" => matches!(ty, SqlType::Timetz(_)),
        "uuid_ops" => *ty == SqlType::Uuid,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::CLASSES;

    #[test]
    fn classes_are_sorted() {
        assert!(CLASSES.is_sorted());
    }
}
