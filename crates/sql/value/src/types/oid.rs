//! Types by OID, and what `pg_type` says of each.

use super::{IntervalModifier, RegKind, SqlType};
use crate::{SqlError, SqlState};

/// OID of any object: tables, indexes, schemas, databases, sequences and types share one space. PostgreSQL's built-in ones come first.
pub type Oid = u32;

/// (type, oid, oid of its array type, length, pg_type.typname)
const SCALARS: &[(SqlType, Oid, Oid, i16, &str)] = &[
    (SqlType::Bool, 16, 1000, 1, "bool"),
    (SqlType::Bytea, 17, 1001, -1, "bytea"),
    (SqlType::SingleChar, 18, 1002, 1, "char"),
    (SqlType::Name, 19, 1003, 64, "name"),
    (SqlType::Int8, 20, 1016, 8, "int8"),
    (SqlType::Int2, 21, 1005, 2, "int2"),
    (SqlType::Int2Vector, 22, 1006, -1, "int2vector"),
    (SqlType::Int4, 23, 1007, 4, "int4"),
    (SqlType::Reg(RegKind::Proc), 24, 1008, 4, "regproc"),
    (SqlType::Text, 25, 1009, -1, "text"),
    (SqlType::Oid, 26, 1028, 4, "oid"),
    (SqlType::OidVector, 30, 1013, -1, "oidvector"),
    (SqlType::Json, 114, 199, -1, "json"),
    (SqlType::Float4, 700, 1021, 4, "float4"),
    (SqlType::Float8, 701, 1022, 8, "float8"),
    (SqlType::Unknown, 705, 0, -2, "unknown"),
    (SqlType::Char(0), 1042, 1014, -1, "bpchar"),
    (SqlType::Varchar(None), 1043, 1015, -1, "varchar"),
    (SqlType::Date, 1082, 1182, 4, "date"),
    (SqlType::Time(None), 1083, 1183, 8, "time"),
    (SqlType::Timestamp(None), 1114, 1115, 8, "timestamp"),
    (SqlType::Timestamptz(None), 1184, 1185, 8, "timestamptz"),
    (SqlType::Interval(None), 1186, 1187, 16, "interval"),
    (SqlType::Timetz(None), 1266, 1270, 12, "timetz"),
    (SqlType::Numeric(None), 1700, 1231, -1, "numeric"),
    (SqlType::Reg(RegKind::Procedure), 2202, 2207, 4, "regprocedure"),
    (SqlType::Reg(RegKind::Operator), 2204, 2209, 4, "regoperator"),
    (SqlType::Reg(RegKind::Class), 2205, 2210, 4, "regclass"),
    (SqlType::Reg(RegKind::Type), 2206, 2211, 4, "regtype"),
    (SqlType::Record, 2249, 2287, -1, "record"),
    (SqlType::Void, 2278, 0, 4, "void"),
    (SqlType::Uuid, 2950, 2951, 16, "uuid"),
    (SqlType::Jsonb, 3802, 3807, -1, "jsonb"),
    (SqlType::Reg(RegKind::Namespace), 4089, 4090, 4, "regnamespace"),
    (SqlType::Reg(RegKind::Role), 4096, 4097, 4, "regrole"),
];

impl SqlType {
    /// What kind of object a value of the type names, or each element of an array.
    pub fn names(&self) -> Option<RegKind> {
        match self {
            SqlType::Reg(kind) => Some(*kind),
            SqlType::Array(element) => element.names(),
            _ => None,
        }
    }

    /// Every scalar type, without modifiers, in the order of OIDs: for `pg_type`.
    pub fn scalars() -> impl Iterator<Item = SqlType> {
        SCALARS.iter().map(|row| row.0.clone())
    }

    /// The type without its modifiers: `varchar(3)` is `varchar`; arrays likewise.
    pub fn base(&self) -> SqlType {
        match self {
            SqlType::Numeric(_) => SqlType::Numeric(None),
            SqlType::Varchar(_) => SqlType::Varchar(None),
            SqlType::Char(_) => SqlType::Char(0),
            SqlType::Time(_) => SqlType::Time(None),
            SqlType::Timetz(_) => SqlType::Timetz(None),
            SqlType::Timestamp(_) => SqlType::Timestamp(None),
            SqlType::Timestamptz(_) => SqlType::Timestamptz(None),
            SqlType::Interval(_) => SqlType::Interval(None),
            SqlType::Array(element) => SqlType::Array(Box::new(element.base())),
            other => other.clone(),
        }
    }

    fn scalar_row(&self) -> Option<&'static (SqlType, Oid, Oid, i16, &'static str)> {
        let base = self.base();
        SCALARS.iter().find(|row| row.0 == base)
    }

    /// Its OID in `pg_type`, as sent to clients.
    pub fn oid(&self) -> Oid {
        match self {
            SqlType::Int4 => 23,
            SqlType::Int8 => 20,
            SqlType::Text => 25,
            SqlType::Char(_) => 1042,
            SqlType::Varchar(_) => 1043,
            SqlType::Timestamp(_) => 1114,
            SqlType::Timestamptz(_) => 1184,
            SqlType::Numeric(_) => 1700,
            SqlType::Array(element) => element.scalar_row().map_or(0, |row| row.2),
            other => other.scalar_row().map_or(0, |row| row.1),
        }
    }

    /// The type of an OID, without modifiers. OID 0 is unknown.
    pub fn from_oid(oid: Oid) -> Option<SqlType> {
        if oid == 0 {
            return Some(SqlType::Unknown);
        }
        SCALARS.iter().find_map(|row| {
            if row.1 == oid {
                Some(row.0.clone())
            } else if row.2 == oid {
                Some(SqlType::Array(Box::new(row.0.clone())))
            } else {
                None
            }
        })
    }

    /// `pg_attribute.atttypmod`: -1 without a modifier.
    pub fn typmod(&self) -> i32 {
        match self {
            SqlType::Varchar(Some(n)) => i32::try_from(*n).map_or(-1, |n| n.saturating_add(4)),
            SqlType::Char(n) if *n > 0 => i32::try_from(*n).map_or(-1, |n| n.saturating_add(4)),
            SqlType::Numeric(Some((precision, scale))) => {
                ((i32::from(*precision) << 16) | (i32::from(*scale) & 0x7ff)) + 4
            }
            SqlType::Time(Some(digits))
            | SqlType::Timetz(Some(digits))
            | SqlType::Timestamp(Some(digits))
            | SqlType::Timestamptz(Some(digits)) => i32::from(*digits),
            SqlType::Interval(Some(modifier)) => modifier.to_number(),
            SqlType::Array(element) => element.typmod(),
            _ => -1,
        }
    }

    /// The same type with the modifier that `typmod` describes; see [`SqlType::typmod`].
    pub fn with_typmod(self, typmod: i32) -> SqlType {
        if typmod < 0 {
            return self;
        }
        let digits = Some(typmod.clamp(0, 6) as u8);
        match self {
            SqlType::Time(_) => return SqlType::Time(digits),
            SqlType::Timetz(_) => return SqlType::Timetz(digits),
            SqlType::Timestamp(_) => return SqlType::Timestamp(digits),
            SqlType::Timestamptz(_) => return SqlType::Timestamptz(digits),
            SqlType::Interval(_) => return SqlType::Interval(Some(IntervalModifier::from_number(typmod))),
            SqlType::Array(element) => return SqlType::Array(Box::new(element.with_typmod(typmod))),
            _ if typmod < 4 => return self,
            _ => {}
        }
        let bare = typmod - 4;
        match self {
            SqlType::Varchar(_) => SqlType::Varchar(u32::try_from(bare).ok()),
            SqlType::Char(_) => SqlType::Char(u32::try_from(bare).unwrap_or(0)),
            SqlType::Numeric(_) => {
                let scale = ((bare & 0x7ff) ^ 1024) - 1024;
                SqlType::Numeric(Some(((bare >> 16) as u16, scale as i16)))
            }
            other => other,
        }
    }

    /// `pg_type.typlen`: bytes, -1 variable, -2 a C string.
    pub fn typlen(&self) -> i16 {
        match self {
            // What most results are of, without a search.
            SqlType::Int4 => 4,
            SqlType::Int8 => 8,
            SqlType::Text | SqlType::Array(_) | SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Numeric(_) => -1,
            SqlType::Timestamp(_) | SqlType::Timestamptz(_) => 8,
            other => other.scalar_row().map_or(-1, |row| row.3),
        }
    }

    /// `pg_type.typname`: `int4`, `_int4`.
    pub fn typname(&self) -> String {
        match self {
            SqlType::Array(element) => format!("_{}", element.typname()),
            other => other.scalar_row().map_or_else(|| "unknown".into(), |row| row.4.into()),
        }
    }

    /// `pg_type.typcategory`: the letter by which implicit casts prefer types.
    pub fn category(&self) -> char {
        match self {
            SqlType::Bool => 'B',
            SqlType::Int2
            | SqlType::Int4
            | SqlType::Int8
            | SqlType::Float4
            | SqlType::Float8
            | SqlType::Numeric(_)
            | SqlType::Oid
            | SqlType::Reg(_) => 'N',
            SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Name => 'S',
            SqlType::SingleChar => 'Z',
            SqlType::Date | SqlType::Time(_) | SqlType::Timetz(_) | SqlType::Timestamp(_) | SqlType::Timestamptz(_) => {
                'D'
            }
            SqlType::Interval(_) => 'T',
            SqlType::Bytea | SqlType::Uuid | SqlType::Json | SqlType::Jsonb => 'U',
            SqlType::Array(_) | SqlType::Int2Vector | SqlType::OidVector => 'A',
            SqlType::Record | SqlType::Void => 'P',
            SqlType::Unknown => 'X',
        }
    }

    /// Whether it is the preferred type of its category.
    pub fn is_preferred(&self) -> bool {
        matches!(
            self,
            SqlType::Bool
                | SqlType::Float8
                | SqlType::Oid
                | SqlType::Text
                | SqlType::Timestamptz(_)
                | SqlType::Interval(_)
        )
    }

    /// Whether values of the type can be ordered, hence be keys.
    pub fn is_orderable(&self) -> bool {
        match self {
            SqlType::Json | SqlType::Unknown | SqlType::Void | SqlType::Record => false,
            SqlType::Array(element) => element.is_orderable(),
            _ => true,
        }
    }

    /// Whether COLLATE may stand behind it.
    pub fn is_collatable(&self) -> bool {
        match self {
            SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Name => true,
            SqlType::Array(element) => element.is_collatable(),
            _ => false,
        }
    }

    /// Whether its values can be told apart: to be made distinct, grouped, matched by a set operation.
    ///
    /// # Errors
    /// 42883 for json.
    pub fn check_equality(&self) -> Result<(), SqlError> {
        if self.is_comparable() {
            return Ok(());
        }
        let message = format!("could not identify an equality operator for type {self}");
        Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
    }

    /// Whether its values can be sorted.
    ///
    /// # Errors
    /// 42883 for json.
    pub fn check_order(&self) -> Result<(), SqlError> {
        if self.is_comparable() {
            return Ok(());
        }
        let message = format!("could not identify an ordering operator for type {self}");
        let hint = "Use an explicit ordering operator or modify the query.";
        Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(hint))
    }

    fn is_comparable(&self) -> bool {
        match self {
            SqlType::Json => false,
            SqlType::Array(element) => element.is_comparable(),
            _ => true,
        }
    }

    /// Whether it is text, varchar, char or name: values are [`super::Value::Text`].
    pub fn is_string(&self) -> bool {
        matches!(
            self,
            SqlType::Text
                | SqlType::Varchar(_)
                | SqlType::Char(_)
                | SqlType::Name
                | SqlType::SingleChar
                | SqlType::Unknown
        )
    }

    /// Whether it is a date, a time, a timestamp or an interval, or an array of them.
    pub fn is_time(&self) -> bool {
        match self {
            SqlType::Array(element) => element.is_time(),
            SqlType::Date
            | SqlType::Time(_)
            | SqlType::Timetz(_)
            | SqlType::Timestamp(_)
            | SqlType::Timestamptz(_)
            | SqlType::Interval(_) => true,
            _ => false,
        }
    }

    /// Whether it is int2, int4, int8, float4, float8 or numeric.
    pub fn is_number(&self) -> bool {
        matches!(
            self,
            SqlType::Int2 | SqlType::Int4 | SqlType::Int8 | SqlType::Float4 | SqlType::Float8 | SqlType::Numeric(_)
        )
    }
}
