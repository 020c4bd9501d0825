//! Long lists of rows of literals.
//!
//! **Problem.** `INSERT INTO t VALUES (1, 'a'), (2, 'b'), ..` by the ten thousand is what dumps and mappers send. Each literal became two tokens, a tree and an
//! expression: some 900 bytes for a number of five digits. **Idea.** Where VALUES has many rows that are nothing but literals, all but the first are kept as the
//! text that they are: one token, which is one literal of a kind that no text of ours can hold ([`kept`]), alone in a row. Who binds VALUES reads the rows from it
//! one after the other ([`rows`]), and holds one tree at a time.
//!
//! 1. Only of INSERT .. VALUES and of queries that only read, and only between two rows: what stands around is read as ever, and tells what is wrong with it.
//! 2. A row that has anything but numbers, strings, NULL, TRUE, FALSE and DEFAULT, or a comment, is read as ever, and so is the first row.
//! 3. What is kept begins with the comma before its first row, and its rows have as many literals as that.
//! 4. Only of a text as a client sent it. What is printed by us is read again with all its rows, and [`super::marks::written`] prints them all.

use super::operator::{Walk, starts_comment};
use crate::SqlError;
use crate::work::{Pooled, step};
use sqlparser::ast::{Expr, Parens, SetExpr, UnaryOperator, Value, Values};
use std::borrow::Cow;
use std::ops::Range;

/// Shortest text, bytes, that is kept so: a tree of less is small.
const KEPT_BYTES_MIN: usize = 4 << 10;

/// Words of queries that do more than read: those are taken apart and put together as text.
const WRITES: [&str; 6] = ["FOR", "UPDATE", "DELETE", "INSERT", "MERGE", "INTO"];

/// Where rows of a text are that are kept as text.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if text.len() < KEPT_BYTES_MIN {
        return found;
    }
    let bytes = text.as_bytes();
    let mut walk = Walk::new(bytes);
    let mut at = Statement::default();
    while let Some(&byte) = bytes.get(walk.at) {
        let start = walk.at;
        walk.token();
        if matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b'\x0b' | b'\x0c') || starts_comment(&bytes[start..]) {
            continue;
        }
        let before = std::mem::take(&mut at.before);
        match byte {
            b';' => at = Statement { first: found.len(), ..Statement::default() },
            b'(' => {
                if before == Before::Values {
                    at.rows = Some(at.depth);
                }
                at.depth += 1;
            }
            b')' => at.closes(),
            b'.' => at.before = Before::Point,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'"' | 0x80.. => at.word(&text[start..walk.at], before, &mut found),
            b',' if at.rows == Some(at.depth) => {
                let end = literals(bytes, start);
                if end - start >= KEPT_BYTES_MIN {
                    found.push(start..end);
                }
                walk.at = walk.at.max(end);
            }
            _ => {}
        }
    }
    found
}

/// What is known of the statement that the walk is in.
#[derive(Default)]
struct Statement {
    /// What was found before it.
    first: usize,
    /// Its first word has come.
    begun: bool,
    inserts: bool,
    reads: bool,
    /// Brackets that are open.
    depth: usize,
    /// How many of them are where rows of VALUES come now.
    rows: Option<usize>,
    before: Before,
}

/// What stands before, blanks and comments aside.
#[derive(Default, PartialEq, Eq)]
enum Before {
    #[default]
    Anything,
    /// A name that goes on.
    Point,
    /// VALUES, which begins rows if a bracket follows. No name of a column or function alone may stand before one.
    Values,
}

impl Statement {
    /// A word.
    fn word(&mut self, word: &str, before: Before, found: &mut Vec<Range<usize>>) {
        let is = |known: &str| word.eq_ignore_ascii_case(known);
        if !self.begun {
            self.begun = true;
            self.inserts = is("INSERT");
            self.reads = ["SELECT", "VALUES", "WITH"].iter().any(|known| is(known));
        } else if self.reads && WRITES.iter().any(|known| is(known)) {
            found.truncate(self.first);
            self.reads = false;
        }
        if self.rows == Some(self.depth) {
            self.rows = None;
        }
        if before != Before::Point && is("VALUES") && (self.reads || self.inserts && self.depth == 0) {
            self.before = Before::Values;
        }
    }

    fn closes(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.rows = self.rows.filter(|at| *at <= self.depth);
    }
}

/// The end of the rows of literals that follow, each behind a comma, the first of which is here.
fn literals(bytes: &[u8], start: usize) -> usize {
    let (mut end, mut width) = (start, None);
    while let Some((next, count)) = next_row(bytes, end).and_then(|at| row(bytes, at)) {
        if *width.get_or_insert(count) != count {
            break;
        }
        end = next;
    }
    end
}

pub(super) fn space(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count()
}

/// The end of a row of literals, and how many it has.
fn row(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    if bytes.get(at) != Some(&b'(') {
        return None;
    }
    let (mut at, mut count) = (at + 1, 0);
    loop {
        let start = space(bytes, at);
        let end = literal(bytes, start)?;
        count += 1;
        let next = space(bytes, end);
        match bytes.get(next)? {
            b',' => at = next + 1,
            b')' => return Some((next + 1, count)),
            _ => return None,
        }
    }
}

/// The end of a literal.
pub(super) fn literal(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'\'' => string(bytes, at),
        b'+' | b'-' => number(bytes, at + 1),
        b'0'..=b'9' | b'.' => number(bytes, at),
        byte if byte.is_ascii_alphabetic() => {
            let end = at + bytes[at..].iter().take_while(|byte| is_part_of_word(**byte)).count();
            word(std::str::from_utf8(&bytes[at..end]).ok()?).map(|_| end)
        }
        _ => None,
    }
}

fn is_part_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'\'') || byte >= 0x80
}

/// `'..'`, quotes in it doubled. Zero characters are for others to refuse.
fn string(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'\'', 0, &bytes[at..])?;
        match (bytes[at], bytes.get(at + 1)) {
            (0, _) => return None,
            (_, Some(b'\'')) => at += 2,
            _ => return Some(at + 1),
        }
    }
}

/// Digits, perhaps with a point among or before them and an exponent behind; what else numbers can be is read as ever.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let digits = |at: usize| bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(at);
    let mut end = at + whole;
    if bytes.get(end) == Some(&b'.') {
        let part = digits(end + 1);
        if whole + part == 0 {
            return None;
        }
        end += 1 + part;
    } else if whole == 0 {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent == 0 {
            return None;
        }
        end += 1 + sign + exponent;
    }
    Some(end)
}

fn word(word: &str) -> Option<Expr> {
    let is = |known: &str| word.eq_ignore_ascii_case(known);
    Some(if is("NULL") {
        Expr::value(Value::Null)
    } else if is("TRUE") {
        Expr::value(Value::Boolean(true))
    } else if is("FALSE") {
        Expr::value(Value::Boolean(false))
    } else if is("DEFAULT") {
        Expr::Identifier("DEFAULT".into())
    } else {
        return None;
    })
}

/// The text of rows that a row of VALUES stands for, if it stands for others.
pub fn kept(row: &[Expr]) -> Option<&str> {
    let [Expr::Value(value)] = row else { return None };
    match &value.value {
        Value::TripleDoubleQuotedRawStringLiteral(text) => Some(text),
        _ => None,
    }
}

/// All rows of VALUES, those that are kept as text among them.
pub fn all(values: &Values) -> impl Iterator<Item = Cow<'_, [Expr]>> {
    values.rows.iter().flat_map(|row| {
        let text = kept(&row.content);
        let itself = text.is_none().then_some(Cow::Borrowed(row.content.as_slice()));
        itself.into_iter().chain(text.into_iter().flat_map(|text| rows(text).map(Cow::Owned)))
    })
}

/// How many values a row of VALUES has, or each of those that it stands for.
pub fn width(row: &[Expr]) -> usize {
    kept(row).map_or(row.len(), |text| rows(text).next().map_or(0, |row| row.len()))
}

/// How many rows VALUES has.
pub fn count(values: &Values) -> usize {
    values.rows.iter().map(|row| kept(&row.content).map_or(1, |text| rows(text).count_rows())).sum()
}

/// Bytes that literals of VALUES come to that are kept as text, where each takes so many beside its text.
pub fn kept_bytes(values: &Values, each: usize) -> usize {
    let bytes = |text: &str| text.len() + rows(text).next().map_or(0, |row| row.len()) * rows(text).count_rows() * each;
    values.rows.iter().filter_map(|row| kept(&row.content)).map(bytes).sum()
}

/// Puts trees in the place of all rows of a query that are kept as text, for those who print it. They count for what is `held`.
///
/// # Errors
/// 53200, 57014
pub fn unfold(body: &mut SetExpr, held: &Pooled) -> Result<(), SqlError> {
    match body {
        SetExpr::Values(values) if values.rows.iter().any(|row| kept(&row.content).is_some()) => {
            for row in std::mem::take(&mut values.rows) {
                let Some(text) = kept(&row.content) else {
                    values.rows.push(row);
                    continue;
                };
                for literals in rows(text) {
                    step(literals.len())?;
                    held.take(literals.len() * 2 * super::TREE_BYTES)?;
                    values.rows.push(Parens::with_empty_span(literals));
                }
            }
            Ok(())
        }
        SetExpr::SetOperation { left, right, .. } => {
            unfold(left, held)?;
            unfold(right, held)
        }
        SetExpr::Query(query) => unfold(&mut query.body, held),
        _ => Ok(()),
    }
}

/// The rows of a text that was [`kept`], each as the library would have read it.
pub fn rows(text: &str) -> Rows<'_> {
    Rows { text, at: 0 }
}

/// See [`rows`].
pub struct Rows<'a> {
    text: &'a str,
    at: usize,
}

impl Rows<'_> {
    /// How many there are.
    pub fn count_rows(&self) -> usize {
        let (bytes, mut at, mut count) = (self.text.as_bytes(), self.at, 0);
        while let Some(end) = next_row(bytes, at).and_then(|start| row(bytes, start)) {
            at = end.0;
            count += 1;
        }
        count
    }
}

/// Where a row begins behind a comma.
fn next_row(bytes: &[u8], at: usize) -> Option<usize> {
    let comma = space(bytes, at);
    (bytes.get(comma) == Some(&b',')).then(|| space(bytes, comma + 1))
}

impl Iterator for Rows<'_> {
    type Item = Vec<Expr>;

    fn next(&mut self) -> Option<Vec<Expr>> {
        let bytes = self.text.as_bytes();
        let mut at = next_row(bytes, self.at)? + 1;
        let mut out = Vec::new();
        loop {
            let start = space(bytes, at);
            let end = literal(bytes, start)?;
            out.push(tree(&self.text[start..end]));
            let next = space(bytes, end);
            at = next + 1;
            if bytes.get(next) != Some(&b',') {
                self.at = at;
                return Some(out);
            }
        }
    }
}

/// A literal as the library reads it.
fn tree(text: &str) -> Expr {
    let number = |text: &str| Expr::value(Value::Number(text.to_owned(), false));
    let signed = |op, text: &str| Expr::UnaryOp { op, expr: Box::new(number(text)) };
    match text.as_bytes() {
        [b'\'', inner @ .., b'\''] => {
            let inner = &text[1..=inner.len()];
            let plain = if inner.contains('\'') { inner.replace("''", "'") } else { inner.to_owned() };
            Expr::value(Value::SingleQuotedString(plain))
        }
        [b'-', ..] => signed(UnaryOperator::Minus, &text[1..]),
        [b'+', ..] => signed(UnaryOperator::Plus, &text[1..]),
        _ => word(text).unwrap_or_else(|| number(text)),
    }
}
