//! Which casts there are (`pg_cast`), and when they may be applied.

use crate::types::{RegKind, SqlType};
use crate::{SqlError, SqlState};

/// When a cast may be applied without being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastKind {
    /// Anywhere.
    Implicit,
    /// When a value is assigned to a column.
    Assignment,
    /// Only when written.
    Explicit,
}

fn is_stringlike(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Name)
}

/// How values of a type become values of another: `None` if they never do. Modifiers do not matter here.
pub fn cast_kind(from: &SqlType, to: &SqlType) -> Option<CastKind> {
    use CastKind::{Assignment, Explicit, Implicit};
    use SqlType as T;
    if from == to || from.base() == to.base() {
        return Some(Implicit);
    }
    Some(match (from, to) {
        (T::Unknown, _) => Implicit,
        (T::Void, _) | (_, T::Void | T::Unknown) => return None,
        (T::Int2, T::Int4 | T::Int8 | T::Float4 | T::Float8 | T::Numeric(_) | T::Oid | T::Reg(_)) => Implicit,
        (T::Int4, T::Int8 | T::Float4 | T::Float8 | T::Numeric(_) | T::Oid | T::Reg(_)) => Implicit,
        (T::Int8, T::Float4 | T::Float8 | T::Numeric(_) | T::Oid | T::Reg(_)) => Implicit,
        (T::Float4, T::Float8) | (T::Numeric(_), T::Float4 | T::Float8) => Implicit,
        (a, b) if a.is_number() && b.is_number() => Assignment,
        (T::Int4, T::Bool | T::SingleChar) | (T::Bool | T::SingleChar, T::Int4) => Explicit,
        (T::Oid, T::Reg(_)) | (T::Reg(_), T::Oid) => Implicit,
        (T::Reg(_), T::Reg(_)) => return None,
        (T::Oid | T::Reg(_), T::Int4 | T::Int8) => Assignment,
        (T::Name, T::Varchar(_) | T::Char(_)) => Assignment,
        (T::Text, T::Reg(RegKind::Class)) => Implicit,
        (a, b) if is_stringlike(a) && is_stringlike(b) => Implicit,
        (T::SingleChar, b) if is_stringlike(b) => {
            if *to == T::Text {
                Implicit
            } else {
                Assignment
            }
        }
        (a, T::SingleChar) if is_stringlike(a) => Assignment,
        (T::Date, T::Timestamp(_) | T::Timestamptz(_))
        | (T::Timestamp(_), T::Timestamptz(_))
        | (T::Time(_), T::Timetz(_) | T::Interval(_)) => Implicit,
        (T::Timestamp(_), T::Date | T::Time(_))
        | (T::Timestamptz(_), T::Date | T::Time(_) | T::Timetz(_) | T::Timestamp(_))
        | (T::Timetz(_), T::Time(_))
        | (T::Interval(_), T::Time(_)) => Assignment,
        (T::Json, T::Jsonb) | (T::Jsonb, T::Json) => Assignment,
        (T::Jsonb, T::Bool) => Explicit,
        (T::Jsonb, b) if b.is_number() => Explicit,
        (T::Int2Vector | T::OidVector, T::Array(_)) => Implicit,
        (T::Array(a), T::Array(b)) => return cast_kind(a, b),
        // Through text, as PostgreSQL's I/O conversions.
        (_, b) if is_stringlike(b) => Assignment,
        (a, _) if is_stringlike(a) => Explicit,
        _ => return None,
    })
}

/// 42846 in PostgreSQL's words.
pub fn cannot_cast(from: &SqlType, to: &SqlType) -> SqlError {
    SqlError::new(SqlState::CANNOT_COERCE, format!("cannot cast type {} to {}", from.base(), to.base()))
}
