//! Tables read by several indexes: where one of several conditions must hold, and each of them has an index of its own.

use super::access::{ASSUMED_ROWS, Choice, WHOLE_PART, WHOLE_ROWS_MIN, Wish, is_single, narrowest};
use crate::exec::path::Path;
use crate::expr::{Expr, split_conjuncts};

/// Conditions of one OR that have a way each, at most: the table is not read as often as there are rows that it has.
const WAYS_MAX: usize = 16;

/// The way of each branch of an OR, if there is one for each, and rows are few enough to be read by their keys. `None`: all is to be read.
pub(super) fn union(wish: &Wish<'_>) -> Option<Choice> {
    let beside: Vec<Expr> = wish.conditions.iter().filter(|condition| is_single(condition)).cloned().collect();
    let unions = wish.conditions.iter().filter_map(|condition| {
        let Expr::Or(branches) = condition else { return None };
        if branches.len() > WAYS_MAX {
            return None;
        }
        let (mut ways, mut rows) = (Vec::<Path>::new(), 0.0);
        for branch in branches {
            let conditions: Vec<Expr> = split_conjuncts(branch.clone()).into_iter().chain(beside.clone()).collect();
            let way = narrowest(&Wish { conditions: &conditions, order: &[], limited: false, ..*wish })?;
            rows += way.rows;
            match ways.iter_mut().find(|known| known.index == way.path.index) {
                Some(known) => known.reaches.extend(way.path.reaches),
                None => ways.push(way.path),
            }
        }
        Some((ways, rows))
    });
    let (ways, rows) = unions.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (all, small) = match wish.statistics {
        Some(known) => (known.rows as f64, known.rows < WHOLE_ROWS_MIN),
        None => (ASSUMED_ROWS, false),
    };
    if rows * WHOLE_PART > all && !small {
        return None;
    }
    let path = Path { index: 0, reaches: Vec::new(), reverse: false, ways };
    let ordered = wish.order.is_empty();
    Some(Choice { path, used: Vec::new(), ordered, point: false, rows, cost: 4.0 * rows.max(1.0), is_dear: false })
}
