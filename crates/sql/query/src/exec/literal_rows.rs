//! Rows of literals, as they wait to be inserted: a value is three words, where an expression is ten and more.

use super::evaluate;
use crate::SqlError;
use crate::context::StatementContext;
use crate::expr::Expr;
use crate::types::{Row, Value, heap_bytes};
use crate::work::{Pooled, Share};
use std::sync::Arc;

/// What a column gets.
enum Cell {
    /// A literal that needs nothing more.
    Is(Value),
    /// Anything else, as a literal that is read by the settings of who runs it, or DEFAULT.
    Of(Box<Expr>),
}

const _: () = assert!(size_of::<Cell>() == size_of::<Value>());

/// The rows of VALUES by column of the table.
pub struct LiteralRows {
    /// Slots that each row has a value for.
    slots: Vec<usize>,
    /// What the other columns get, by slot.
    others: Vec<Option<Expr>>,
    /// Row by row, as many as there are `slots`.
    cells: Vec<Cell>,
    rows: usize,
    held: Share,
}

impl LiteralRows {
    /// None yet, of `rows` that come.
    ///
    /// # Errors
    /// 53200
    pub fn new(slots: Vec<usize>, others: Vec<Option<Expr>>, rows: usize) -> Result<LiteralRows, SqlError> {
        let mut held = Share::of(&Arc::new(Pooled::exact()));
        let cells = slots.len().saturating_mul(rows);
        held.take(cells.saturating_mul(size_of::<Cell>()))?;
        Ok(LiteralRows { slots, others, cells: Vec::with_capacity(cells), rows: 0, held })
    }

    /// Adds a row, by slot.
    ///
    /// # Errors
    /// 53200
    pub fn push(&mut self, mut row: Vec<Option<Expr>>) -> Result<(), SqlError> {
        let mut bytes = 0;
        for slot in &self.slots {
            self.cells.push(match row[*slot].take() {
                None => Cell::Is(Value::Null),
                Some(Expr::Literal(value, _)) => {
                    bytes += heap_bytes(&value);
                    Cell::Is(value)
                }
                Some(expr) => {
                    expr.visit(&mut |_| bytes += size_of::<Expr>());
                    Cell::Of(Box::new(expr))
                }
            });
        }
        self.rows += 1;
        self.held.take_little(bytes)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.rows
    }

    /// The rows, one after the other.
    pub fn rows<'a>(&'a self, context: &'a StatementContext) -> impl Iterator<Item = Result<Row, SqlError>> + 'a {
        let width = self.slots.len();
        // In the order of columns, as DEFAULTs that draw numbers do.
        let place = |slot: usize| self.slots.iter().position(|known| *known == slot);
        let places: Vec<Option<usize>> = (0..self.others.len()).map(place).collect();
        (0..self.rows).map(move |row| {
            let cells = &self.cells[row * width..][..width];
            let value =
                |(place, other): (&Option<usize>, &Option<Expr>)| match (place.map(|place| &cells[place]), other) {
                    (Some(Cell::Is(value)), _) => Ok(value.clone()),
                    (Some(Cell::Of(expr)), _) => evaluate::value(expr, &[], context),
                    (None, Some(expr)) => evaluate::value(expr, &[], context),
                    (None, None) => Ok(Value::Null),
                };
            places.iter().zip(&self.others).map(value).collect()
        })
    }
}
