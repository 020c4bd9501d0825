//! Window functions: what is computed over the rows of a partition around the current one.

use super::aggregate::AggregateCall;
use super::node::SortKey;
use super::scalar::Scalar;
use crate::types::SqlType;

/// Which.
#[derive(Clone, Debug)]
pub(super) enum Function {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    /// lag and lead: the sign of their offset.
    Shift(i64),
    FirstValue,
    LastValue,
    NthValue,
    Aggregate(AggregateCall),
}

impl Function {
    /// A pure window function by name.
    pub(super) fn named(name: &str) -> Option<Function> {
        Some(match name {
            "row_number" => Function::RowNumber,
            "rank" => Function::Rank,
            "dense_rank" => Function::DenseRank,
            "percent_rank" => Function::PercentRank,
            "cume_dist" => Function::CumeDist,
            "ntile" => Function::Ntile,
            "lag" => Function::Shift(-1),
            "lead" => Function::Shift(1),
            "first_value" => Function::FirstValue,
            "last_value" => Function::LastValue,
            "nth_value" => Function::NthValue,
            _ => return None,
        })
    }

    /// Type of the result.
    pub(super) fn result(&self, args: &[SqlType]) -> Option<SqlType> {
        Some(match self {
            Function::RowNumber | Function::Rank | Function::DenseRank if args.is_empty() => SqlType::Int8,
            Function::PercentRank | Function::CumeDist if args.is_empty() => SqlType::Float8,
            Function::Ntile if args.len() == 1 => SqlType::Int4,
            Function::Shift(_) | Function::FirstValue | Function::LastValue | Function::NthValue => {
                args.first()?.clone()
            }
            Function::Aggregate(call) => call.ty.clone(),
            _ => return None,
        })
    }
}

/// How a frame counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Units {
    Rows,
    Range,
    Groups,
}

/// One end of a frame.
#[derive(Clone, Debug)]
pub(super) enum Bound {
    /// The partition's first or last row.
    Unbounded,
    Current,
    /// Rows, groups, or (for RANGE) a distance of the sort key.
    Preceding(Scalar),
    Following(Scalar),
}

/// What EXCLUDE leaves out of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exclude {
    Nothing,
    CurrentRow,
    /// The row and its peers.
    Group,
    /// Its peers, not itself.
    Ties,
}

impl Exclude {
    /// By the number that stands for it in a statement's tokens.
    pub(super) fn numbered(number: &str) -> Exclude {
        match number {
            "1" => Exclude::CurrentRow,
            "2" => Exclude::Group,
            "3" => Exclude::Ties,
            _ => Exclude::Nothing,
        }
    }
}

/// A frame.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) units: Units,
    pub(super) start: Bound,
    pub(super) end: Bound,
    pub(super) exclude: Exclude,
}

/// The type that the offset of a RANGE frame is brought to, over a sort key of a type: that of PostgreSQL's `in_range`.
pub(super) fn distance_type(key: &SqlType, offset: &SqlType) -> Option<SqlType> {
    match (key, offset) {
        (SqlType::Int2 | SqlType::Int4 | SqlType::Int8, SqlType::Int2 | SqlType::Int4 | SqlType::Int8) => {
            Some(offset.clone())
        }
        (SqlType::Int2 | SqlType::Int4 | SqlType::Int8, SqlType::Unknown) => Some(key.clone()),
        (SqlType::Float4 | SqlType::Float8, _) => Some(SqlType::Float8),
        (SqlType::Numeric(_), _) => Some(SqlType::Numeric(None)),
        (
            SqlType::Date
            | SqlType::Time(_)
            | SqlType::Timetz(_)
            | SqlType::Timestamp(_)
            | SqlType::Timestamptz(_)
            | SqlType::Interval(_),
            _,
        ) => Some(SqlType::Interval(None)),
        _ => None,
    }
}

/// One call.
#[derive(Clone, Debug)]
pub(super) struct WindowCall {
    pub(super) function: Function,
    pub(super) args: Vec<Scalar>,
    pub(super) partition: Vec<Scalar>,
    pub(super) order: Vec<SortKey>,
    pub(super) frame: Frame,
}
