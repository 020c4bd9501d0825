//! Types that must agree: the columns of set operations and of VALUES.

use crate::types::SqlType;
use crate::{SqlError, SqlState};
use sqlparser::ast::{CastKind, DataType, Expr, Ident, ObjectName, ObjectNamePart};

/// A cast, as a syntax tree.
pub(super) fn cast_expr(expr: Expr, ty: &SqlType) -> Expr {
    let name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(ty.typname()))]);
    Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(Expr::Nested(Box::new(expr))),
        data_type: DataType::Custom(name, Vec::new()),
        array: false,
        format: None,
    }
}

/// How far a type of numbers reaches: the greater one is the common type.
fn rank(ty: &SqlType) -> Option<u8> {
    Some(match ty {
        SqlType::Int2 => 0,
        SqlType::Int4 => 1,
        SqlType::Int8 => 2,
        SqlType::Numeric(_) => 3,
        SqlType::Float4 => 4,
        SqlType::Float8 => 5,
        _ => return None,
    })
}

/// The type that values of both can take, by PostgreSQL's rules for UNION and CASE; `what` is for the error.
///
/// # Errors
/// 42804 if there is none.
pub(super) fn common(left: &SqlType, right: &SqlType, what: &str) -> Result<SqlType, SqlError> {
    use SqlType::{Date, Name, Oid, Reg, Text, Timestamp, Timestamptz, Unknown, Varchar};
    if left == right {
        return Ok(left.clone());
    }
    if let (Some(l), Some(r)) = (rank(left), rank(right)) {
        return Ok(if l >= r { left.base() } else { right.base() });
    }
    Ok(match (left, right) {
        // A literal has no length.
        (Unknown, other) | (other, Unknown) => other.base(),
        (l, r) if l.base() == r.base() => l.base(),
        (Name | Varchar(_), Text) | (Text, Name | Varchar(_)) | (Name, Varchar(_)) | (Varchar(_), Name) => Text,
        // Each can be the other: the first is meant.
        (SqlType::Char(_), Text | Varchar(_)) | (Text | Varchar(_), SqlType::Char(_)) => left.base(),
        (SqlType::SingleChar, Text) | (Text, SqlType::SingleChar) => Text,
        (Oid | Reg(_), Oid | Reg(_)) => Oid,
        (Oid, SqlType::Int2 | SqlType::Int4 | SqlType::Int8) | (SqlType::Int2 | SqlType::Int4 | SqlType::Int8, Oid) => {
            Oid
        }
        (Date, Timestamp(_)) | (Timestamp(_), Date) => Timestamp(None),
        (Date | Timestamp(_), Timestamptz(_)) | (Timestamptz(_), Date | Timestamp(_)) => Timestamptz(None),
        _ => {
            let message = format!("{what} types {} and {} cannot be matched", left.base(), right.base());
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
    })
}
