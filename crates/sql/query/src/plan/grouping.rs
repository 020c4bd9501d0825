//! Groupings that an index settles.

use crate::exec::aggregate::{Aggregate, Function};
use crate::exec::select::Grouping;
use crate::expr::Expr;

/// If a grouping is nothing but min and max of columns, for each the order whose first value settles it.
pub fn extremes(grouping: &Grouping) -> Option<Vec<(usize, bool, bool)>> {
    let order = |aggregate: &Aggregate| {
        let Some(Expr::Column { index, .. }) = aggregate.argument else { return None };
        match aggregate.function {
            Function::Min => Some((index, false, false)),
            Function::Max => Some((index, true, true)),
            _ => None,
        }
    };
    grouping.keys.is_empty().then(|| grouping.aggregates.iter().map(order).collect()).flatten()
}
