//! Groupings that an index settles, or gives in order.

use crate::exec::aggregate::{Aggregate, Function};
use crate::exec::select::Grouping;
use crate::exec::sort::SortKey;
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

/// An order of groups as one of rows, if it is an order of all keys, which are columns: then the rows of a group come together.
pub fn order_of_groups(grouping: &Grouping, order: &[SortKey]) -> Option<Vec<(usize, bool, bool)>> {
    let column = |place: usize| match grouping.keys.get(place)? {
        (Expr::Column { index, .. }, _) => Some(*index),
        _ => None,
    };
    let of_row = |key: &SortKey| match key.expr {
        Expr::Column { index, .. } => Some((column(index)?, key.descending, key.nulls_first)),
        _ => None,
    };
    let order: Vec<(usize, bool, bool)> = order.iter().map(of_row).collect::<Option<_>>()?;
    let all = (0..grouping.keys.len())
        .all(|place| column(place).is_some_and(|index| order.iter().any(|(ordered, ..)| *ordered == index)));
    (all && !order.is_empty() && grouping.having.is_none()).then_some(order)
}
