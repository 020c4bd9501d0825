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

/// A frame.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) units: Units,
    pub(super) start: Bound,
    pub(super) end: Bound,
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
