//! Expressions made tests.

use super::like::Pattern;
use super::{ByteFilter, Column, Number, Test, Word, text, word_of};
use crate::exec::table::ColumnAccess;
use crate::expr::function::MIDNIGHT;
use crate::expr::{CompareOp, Expr};
use crate::types::{Numeric, SqlType, Value};

/// Longer lists stay with the evaluator, which searches them otherwise.
const LIST_ITEMS_MAX: usize = 16;

/// What expressions speak of: a table whose columns begin at place `base` of the row, what is known of that row before them, and parameters.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) columns: &'a [ColumnAccess],
    pub(crate) base: usize,
    pub(crate) row: &'a [Value],
    pub(crate) params: &'a [Value],
}

/// One side of a comparison.
enum Side<'a> {
    Constant(&'a Value),
    Column { column: Column, ty: &'a SqlType, midnight: bool },
}

impl ByteFilter {
    /// Tests for the conditions in front, up to the first that cannot be one; and how many those are.
    pub(crate) fn compile<'a>(conditions: impl Iterator<Item = &'a Expr>, around: Around<'_>) -> (ByteFilter, usize) {
        let tests: Vec<Test> = conditions.map_while(|condition| around.test(condition)).collect();
        let count = tests.len();
        (ByteFilter { tests }, count)
    }
}

impl<'a> Around<'a> {
    fn test(self, expr: &Expr) -> Option<Test> {
        Some(match expr {
            Expr::Compare { op, ty, left, right } => match (self.side(left)?, self.side(right)?) {
                (Side::Column { column, ty: of, midnight }, Side::Constant(with)) => {
                    compared(column, of, midnight, *op, with, ty)?
                }
                (Side::Constant(with), Side::Column { column, ty: of, midnight }) => {
                    compared(column, of, midnight, op.flipped(), with, ty)?
                }
                (Side::Constant(a), Side::Constant(b)) => match a.is_null() || b.is_null() {
                    true => Test::Known(None),
                    false => return None,
                },
                (
                    Side::Column { column: left, ty: left_type, midnight },
                    Side::Column { column: right, ty: right_type, midnight: right_midnight },
                ) => {
                    if let (Some(left_word), Some(right_word)) =
                        (word(left_type, midnight), word(right_type, right_midnight))
                    {
                        let same = (midnight || right_midnight || same_kind(left_type, right_type)) && {
                            // A midnight is compared with timestamps only.
                            let stamp = |ty: &SqlType, midnight| midnight || matches!(ty, SqlType::Timestamp(_));
                            !(midnight || right_midnight)
                                || stamp(left_type, midnight) && stamp(right_type, right_midnight)
                        };
                        return same.then_some(Test::Words(left, left_word, *op, right, right_word));
                    }
                    match (kind(left_type)?, kind(right_type)?) {
                        (Kind::Number, Kind::Number) => Test::Numbers(left, *op, right),
                        (Kind::Text, Kind::Text) => {
                            Test::Texts { left, op: *op, right, padded: matches!(ty, SqlType::Char(_)) }
                        }
                        _ => return None,
                    }
                }
            },
            Expr::InList { ty, expr, list, negated } => {
                let Side::Column { column, ty: of, midnight: false } = self.side(expr)? else { return None };
                let found = self.within(column, of, list, ty)?;
                if *negated { Test::Not(Box::new(found)) } else { found }
            }
            Expr::Call { function, args, .. } if matches!(function.name, "~~" | "!~~") => {
                let [expr, pattern] = args.as_slice() else { return None };
                let Side::Column { column, ty: of, midnight: false } = self.side(expr)? else { return None };
                let (Kind::Text, Side::Constant(pattern)) = (kind(of)?, self.side(pattern)?) else { return None };
                let found = match pattern {
                    Value::Null => Test::Known(None),
                    Value::Text(pattern) => Test::Like(column, Pattern::new(pattern)?),
                    _ => return None,
                };
                if function.name == "!~~" { Test::Not(Box::new(found)) } else { found }
            }
            Expr::IsNull { expr, negated } => {
                let Side::Column { column, midnight: false, .. } = self.side(expr)? else { return None };
                let is_null = Test::IsNull(column);
                if *negated { Test::Not(Box::new(is_null)) } else { is_null }
            }
            Expr::Not(expr) => Test::Not(Box::new(self.test(expr)?)),
            Expr::And(parts) => Test::And(parts.iter().map(|part| self.test(part)).collect::<Option<_>>()?),
            Expr::Or(parts) => self.either(parts)?,
            Expr::Column { ty: SqlType::Bool, .. } => {
                let Side::Column { column, ty: SqlType::Bool, .. } = self.side(expr)? else { return None };
                Test::Word(column, Word::Bool, CompareOp::Eq, 1)
            }
            _ => return None,
        })
    }

    /// Alternatives. What all of them ask is asked once, before: it is the same in logic of three values, and most rows fail it.
    fn either(self, parts: &[Expr]) -> Option<Test> {
        let asked: Vec<&[Expr]> = parts.iter().map(conjuncts).collect();
        let (first, others) = asked.split_first()?;
        let is_common = |part: &&Expr| others.iter().all(|other| other.contains(part));
        let common: Vec<&Expr> = first.iter().filter(is_common).collect();
        let tests = |parts: &mut dyn Iterator<Item = &Expr>| -> Option<Vec<Test>> {
            parts.map(|part| self.test(part)).collect()
        };
        if common.is_empty() {
            return tests(&mut parts.iter()).map(Test::Or);
        }
        let mut all = tests(&mut common.iter().copied())?;
        let left = asked.iter().map(|part| tests(&mut part.iter().filter(|part| !common.contains(part))));
        let left = left.collect::<Option<Vec<_>>>()?;
        // One that asks nothing more is true where the others may be.
        if left.iter().all(|tests| !tests.is_empty()) {
            all.push(Test::Or(left.into_iter().map(Test::And).collect()));
        }
        Some(Test::And(all))
    }

    fn side<'b>(self, expr: &'b Expr) -> Option<Side<'b>>
    where
        'a: 'b,
    {
        match expr {
            Expr::Literal(value, _) => Some(Side::Constant(value)),
            Expr::Parameter { index, .. } => self.params.get(*index).map(Side::Constant),
            Expr::Column { index, .. } => match index.checked_sub(self.base) {
                None => self.row.get(*index).map(Side::Constant),
                Some(slot) => {
                    let column = self.columns.get(slot)?;
                    // What older rows hold for it has no bytes, unless it is NULL.
                    column.missing.is_null().then_some(Side::Column {
                        column: Column { id: column.place },
                        ty: &column.ty,
                        midnight: false,
                    })
                }
            },
            // What changes no byte.
            Expr::Cast { expr, from: SqlType::Varchar(_), to: SqlType::Text, .. } => self.side(expr),
            // A date beside a timestamp. A cast that was asked for is the evaluator's: it may fail.
            Expr::Call { function, args, .. } if function.name == MIDNIGHT => match self.side(args.first()?)? {
                Side::Column { column, ty: ty @ SqlType::Date, .. } => {
                    Some(Side::Column { column, ty, midnight: true })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// IN.
    fn within(self, column: Column, of: &SqlType, list: &[Expr], ty: &SqlType) -> Option<Test> {
        if list.len() > LIST_ITEMS_MAX {
            return None;
        }
        let mut items = Vec::with_capacity(list.len());
        for item in list {
            let Side::Constant(value) = self.side(item)? else { return None };
            items.push(value);
        }
        let with_null = items.iter().any(|item| item.is_null());
        items.retain(|item| !item.is_null());
        if let Some(word) = Word::of(of) {
            let list = items.iter().map(|item| same_value(item, of).then(|| word_of(item, word))?);
            return Some(Test::WordIn { column, word, list: list.collect::<Option<_>>()?, with_null });
        }
        let Kind::Text = kind(of)? else { return None };
        let padded = matches!(ty, SqlType::Char(_));
        let list = items.iter().map(|item| Some(Box::from(text(letters(item)?, padded))));
        Some(Test::TextIn { column, list: list.collect::<Option<_>>()?, padded, with_null })
    }
}

/// What a condition asks together.
fn conjuncts(expr: &Expr) -> &[Expr] {
    match expr {
        Expr::And(parts) => parts,
        one => std::slice::from_ref(one),
    }
}

/// What is no word.
enum Kind {
    Number,
    Text,
}

fn kind(ty: &SqlType) -> Option<Kind> {
    match ty {
        SqlType::Numeric(_) => Some(Kind::Number),
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => Some(Kind::Text),
        _ => None,
    }
}

fn word(ty: &SqlType, midnight: bool) -> Option<Word> {
    if midnight { Some(Word::Midnight) } else { Word::of(ty) }
}

fn same_kind(a: &SqlType, b: &SqlType) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// Whether a value is one of a column's type.
fn same_value(value: &Value, ty: &SqlType) -> bool {
    same_kind(&value.natural_type(), ty)
}

fn letters(value: &Value) -> Option<&[u8]> {
    if let Value::Text(text) = value { Some(text.as_bytes()) } else { None }
}

/// The comparison of a column with a constant.
fn compared(column: Column, of: &SqlType, midnight: bool, op: CompareOp, with: &Value, ty: &SqlType) -> Option<Test> {
    if with.is_null() {
        return Some(Test::Known(None));
    }
    if let Some(word) = word(of, midnight) {
        let same = if midnight { matches!(with, Value::Timestamp(_)) } else { same_value(with, of) };
        return same.then(|| word_of(with, word))?.map(|with| Test::Word(column, word, op, with));
    }
    Some(match (kind(of)?, with) {
        (Kind::Number, Value::Numeric(value)) => Test::Number(column, op, Number::new(value, of)),
        (Kind::Text, Value::Text(_)) => {
            let padded = matches!(ty, SqlType::Char(_));
            Test::Text { column, op, with: Box::from(text(letters(with)?, padded)), padded }
        }
        _ => return None,
    })
}

impl Number {
    fn new(value: &Numeric, of: &SqlType) -> Number {
        let own = if let Numeric::Finite(value) = value { value.scale() } else { 0 };
        let scale = if let SqlType::Numeric(Some((_, scale))) = of { i64::from(*scale) } else { own };
        let digits = match value {
            Numeric::Finite(value) if own <= scale => value.digits_at(scale),
            _ => None,
        };
        Number { value: value.clone(), scale: scale as i32, digits }
    }
}
