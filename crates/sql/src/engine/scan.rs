//! Reading one table: the conditions that become keys, and those that stay.

use super::scalar::Scalar;
use crate::SqlError;
use crate::exec::cursor::Level;
use crate::exec::evaluate;
use crate::exec::table::TableAccess;
use crate::expr::Expr;
use crate::plan::access::{Wish, choose};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A scan of a table. Its rows are the prefix and all columns of the table; columns that the statement does not name are NULL.
#[derive(Debug)]
pub(super) struct TableScan {
    /// One level of sqlc's nested loops: the path and the columns to decode.
    pub(super) levels: Arc<[Level]>,
    pub(super) width: usize,
    /// Columns that only rows which pass the filter need.
    pub(super) late: Vec<usize>,
    /// What the keys do not say.
    pub(super) filter: Vec<Scalar>,
}

/// A scan, and what is known of it.
pub(super) struct Chosen {
    pub(super) scan: TableScan,
    /// Whether the keys narrow it: it does not read the whole table.
    pub(super) by_key: bool,
}

/// Plans a scan of a table whose columns begin at slot `base`, under conditions over its rows.
pub(super) fn plan(
    access: &Arc<TableAccess>,
    base: usize,
    conditions: Vec<Scalar>,
    words: Option<&BTreeSet<String>>,
) -> Result<Chosen, SqlError> {
    // A condition with a step (a subquery) cannot be a key.
    let (plain, mut filter): (Vec<Scalar>, Vec<Scalar>) =
        conditions.into_iter().partition(|scalar| scalar.steps.is_empty());
    let exprs: Vec<Expr> = plain.iter().map(|scalar| scalar.expr.clone()).collect();
    let known = |slot: usize| slot < base;
    let choice = choose(&Wish { access, base, conditions: &exprs, known: &known, order: &[], limited: false });
    let by_key = !choice.path.prefix.is_empty() || choice.path.range.is_some();
    let rest =
        plain.into_iter().enumerate().filter(|(place, _)| !choice.used.contains(place)).map(|(_, scalar)| scalar);
    // Cheap conditions first.
    let mut kept: Vec<Scalar> = rest.collect();
    kept.append(&mut filter);
    let named =
        |slot: &usize| words.is_none_or(|words| words.contains(&access.table.columns[*slot].name.to_lowercase()));
    let mut places: Vec<usize> = Vec::new();
    kept.iter().for_each(|scalar| evaluate::columns(&scalar.expr, &mut places));
    // A step may look at the whole row.
    let all = kept.is_empty() || kept.iter().any(|scalar| !scalar.steps.is_empty());
    let (slots, late): (Vec<usize>, Vec<usize>) =
        (0..access.columns.len()).filter(named).partition(|slot| all || places.contains(&(base + slot)));
    let level = Level {
        access: access.clone(),
        base,
        slots,
        path: choice.path,
        filter: None,
        outer: false,
        after: None,
        lock: None,
    };
    let width = base + access.columns.len();
    Ok(Chosen { scan: TableScan { levels: Arc::from(vec![level]), width, late, filter: kept }, by_key })
}
