//! Building rows by column name, and reading them from data files.

use super::VirtualTable;
use crate::types::EvalSettings;
use crate::types::{Array, Row, SqlType, Value};
use std::sync::Arc;

/// What a cell may be given as; it is fitted to the column's type.
pub(super) trait Cell {
    /// The value, before fitting.
    fn value(self) -> Value;
}

impl Cell for Value {
    fn value(self) -> Value {
        self
    }
}
impl Cell for bool {
    fn value(self) -> Value {
        Value::Bool(self)
    }
}
impl Cell for i64 {
    fn value(self) -> Value {
        Value::Int8(self)
    }
}
impl Cell for i32 {
    fn value(self) -> Value {
        Value::Int8(i64::from(self))
    }
}
impl Cell for u32 {
    fn value(self) -> Value {
        Value::Int8(i64::from(self))
    }
}
impl Cell for &str {
    fn value(self) -> Value {
        Value::Text(Arc::from(self))
    }
}
impl Cell for String {
    fn value(self) -> Value {
        Value::Text(Arc::from(self))
    }
}
impl<T: Cell> Cell for Option<T> {
    fn value(self) -> Value {
        self.map_or(Value::Null, Cell::value)
    }
}

/// A row under construction. Columns not set hold false, 0, '' or NULL, by type.
pub(super) struct RowBuilder<'t> {
    table: &'t VirtualTable,
    row: Row,
}

impl<'t> RowBuilder<'t> {
    pub(super) fn new(table: &'t VirtualTable) -> Self {
        let blank = |ty: &SqlType| if table.schema == "information_schema" { Value::Null } else { blank(ty) };
        RowBuilder { table, row: table.columns.iter().map(|column| blank(&column.ty)).collect() }
    }

    pub(super) fn set(mut self, name: &str, cell: impl Cell) -> Self {
        let place = self.table.columns.iter().position(|column| column.name == name);
        debug_assert!(place.is_some(), "{} has no column {name}", self.table.name);
        if let Some(place) = place {
            self.row[place] = fit(cell.value(), &self.table.columns[place].ty);
        }
        self
    }

    pub(super) fn done(self) -> Row {
        self.row
    }
}

fn blank(ty: &SqlType) -> Value {
    match ty {
        SqlType::Bool => Value::Bool(false),
        SqlType::Int2 => Value::Int2(0),
        SqlType::Int4 => Value::Int4(0),
        SqlType::Int8 => Value::Int8(0),
        SqlType::Float4 => Value::Float4(0.0),
        SqlType::Float8 => Value::Float8(0.0),
        SqlType::Oid | SqlType::Reg(_) => Value::Oid(0),
        SqlType::SingleChar => Value::Text(Arc::from("")),
        _ => Value::Null,
    }
}

fn fit(value: Value, ty: &SqlType) -> Value {
    match (value, ty) {
        (Value::Int8(n), SqlType::Int2) => Value::Int2(n as i16),
        (Value::Int8(n), SqlType::Int4) => Value::Int4(n as i32),
        (Value::Int8(n), SqlType::Oid | SqlType::Reg(_)) => Value::Oid(n as u32),
        (Value::Int8(n), SqlType::Float4) => Value::Float4(n as f32),
        (Value::Int8(n), SqlType::Float8) => Value::Float8(n as f64),
        (value, _) => value,
    }
}

/// An array value; `int2vector` and `oidvector` count from 0.
fn array(element: SqlType, values: Vec<Value>, lower: i32) -> Value {
    let dimensions = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, lower)] };
    Value::Array(Arc::new(Array { element, dimensions, values }))
}

pub(super) fn text_array(values: impl IntoIterator<Item = String>) -> Value {
    array(SqlType::Text, values.into_iter().map(|text| Value::Text(Arc::from(text))).collect(), 1)
}

pub(super) fn float4_array(values: impl IntoIterator<Item = f64>) -> Value {
    array(SqlType::Float4, values.into_iter().map(|value| Value::Float4(value as f32)).collect(), 1)
}

/// An array of values as the text that it is shown as.
pub(super) fn array_text(element: &SqlType, values: Vec<Value>, settings: &EvalSettings) -> String {
    let ty = SqlType::Array(Box::new(element.clone()));
    array(element.clone(), values, 1).to_text(&ty, settings)
}

pub(super) fn int2_vector(values: impl IntoIterator<Item = i16>) -> Value {
    array(SqlType::Int2, values.into_iter().map(Value::Int2).collect(), 0)
}

pub(super) fn oid_vector(values: impl IntoIterator<Item = u32>) -> Value {
    array(SqlType::Oid, values.into_iter().map(Value::Oid).collect(), 0)
}

pub(super) fn int2_array(values: impl IntoIterator<Item = i16>) -> Value {
    array(SqlType::Int2, values.into_iter().map(Value::Int2).collect(), 1)
}

/// Rows of a data file in COPY's text form.
pub(super) fn parse_file(table: &VirtualTable, text: &str) -> Vec<Row> {
    text.lines()
        .map(|line| {
            let cells = line.split('\t').zip(&table.columns);
            let mut row: Row = cells.map(|(cell, column)| parse_cell(cell, &column.ty)).collect();
            row.resize(table.columns.len(), Value::Null);
            row
        })
        .collect()
}

fn parse_cell(cell: &str, ty: &SqlType) -> Value {
    if cell == "\\N" {
        return Value::Null;
    }
    match ty {
        SqlType::Bool => Value::Bool(cell == "t"),
        SqlType::Int2Vector => int2_vector(cell.split_ascii_whitespace().filter_map(|word| word.parse().ok())),
        SqlType::OidVector => oid_vector(cell.split_ascii_whitespace().filter_map(|word| word.parse().ok())),
        SqlType::Int2 | SqlType::Int4 | SqlType::Int8 | SqlType::Oid | SqlType::Reg(_) => {
            cell.parse::<i64>().map_or_else(|_| blank(ty), |n| fit(Value::Int8(n), ty))
        }
        SqlType::Float4 => cell.parse().map_or(Value::Null, Value::Float4),
        SqlType::Float8 => cell.parse().map_or(Value::Null, Value::Float8),
        SqlType::Text | SqlType::Name | SqlType::SingleChar | SqlType::Varchar(_) => cell.value(),
        _ => Value::Null,
    }
}
