//! Conditions that others imply and that keys can use: `c LIKE 'ab%'` lies between 'ab' and 'ac'.

use super::loops::Source;
use crate::expr::{CompareOp, Expr};
use crate::types::{SqlType, Value};

/// Adds to a conjunction the bounds that follow from it, where an index may use them.
pub fn add(conditions: &mut Vec<Expr>, sources: &[Source]) {
    let bounds: Vec<Expr> = conditions.iter().flat_map(|condition| like_bounds(condition, sources)).collect();
    conditions.extend(bounds);
}

fn like_bounds(condition: &Expr, sources: &[Source]) -> Vec<Expr> {
    let Expr::Call { function, args, .. } = condition else { return Vec::new() };
    let ("~~", [column, Expr::Literal(Value::Text(pattern), _)]) = (function.name, args.as_slice()) else {
        return Vec::new();
    };
    if !is_indexed(column, sources) {
        return Vec::new();
    }
    let prefix = literal_prefix(pattern);
    let bound = |op, text: String| Expr::Compare {
        op,
        ty: SqlType::Text,
        left: Box::new(column.clone()),
        right: Box::new(Expr::Literal(Value::Text(text.into()), SqlType::Text)),
    };
    let mut out = Vec::new();
    if let Some(above) = next_text(&prefix) {
        out.push(bound(CompareOp::GtEq, prefix));
        out.push(bound(CompareOp::Lt, above));
    }
    out
}

/// Whether an expression is a text column in some index of its table.
fn is_indexed(expr: &Expr, sources: &[Source]) -> bool {
    let place = match expr {
        Expr::Column { index, ty: SqlType::Text | SqlType::Varchar(_) } => *index,
        Expr::Cast { expr, from: SqlType::Varchar(_), to: SqlType::Text, .. } => match expr.as_ref() {
            Expr::Column { index, .. } => *index,
            _ => return false,
        },
        _ => return false,
    };
    sources.iter().any(|source| {
        let indexes = std::iter::once(&source.access.primary).chain(&source.access.indexes);
        let mut columns = indexes.flat_map(|index| &index.columns);
        columns.any(|column| column.slot.is_some_and(|slot| source.base + slot == place))
    })
}

/// The text that every match of a pattern starts with.
fn literal_prefix(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' | '_' => break,
            '\\' => out.extend(chars.next()),
            c => out.push(c),
        }
    }
    out
}

/// The least text above every text that starts with `prefix`; `None` if there is none.
fn next_text(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        // The code points of surrogates are no characters.
        let next = if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(last as u32 + 1) };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_starts_with_its_text_before_the_first_wildcard() {
        assert_eq!(literal_prefix("ab%c"), "ab");
        assert_eq!(literal_prefix(r"a\%b_"), "a%b");
        assert_eq!(literal_prefix("%"), "");
    }

    #[test]
    fn the_next_text_is_above_all_that_start_alike() {
        assert_eq!(next_text("ab").as_deref(), Some("ac"));
        assert_eq!(next_text("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(next_text("\u{d7ff}").as_deref(), Some("\u{e000}"));
        assert_eq!(next_text(""), None);
    }
}
