//! Statements are kept as their trees are printed, so that they read as they were meant: the functions that mark what the library has no
//! form for ([`super::forms`], [`super::reshape`]) are printed as what they mark, and every quote within quotes is doubled. The library
//! takes two quotes in a row, and one behind a backslash, for what is doubled already.

use super::forms::{STAR, VARIADIC};
use super::grouping::DISTINCT;
use super::literal_rows;
use super::reshape::EXCLUDED;
use crate::SqlError;
use crate::work::Pooled;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{Expr, LimitClause, Query, SetExpr, UnaryOperator, Value, ValueWithSpan, VisitMut, VisitorMut};
use std::fmt::{Display, Write};
use std::ops::ControlFlow;

/// Units of work of a byte that is printed and looked through.
const BYTE_UNITS: usize = 4;

/// A tree in SQL that reads as that tree.
///
/// # Errors
/// Those of whoever ends the statement.
pub fn written<T: Display + VisitMut>(mut tree: T) -> Result<String, SqlError> {
    let mut literals = Literals { unfolded: Pooled::new() };
    if let ControlFlow::Break(error) = tree.visit(&mut literals) {
        return Err(error);
    }
    let mut printed = Printed::default();
    // A string takes whatever it is given.
    let _ = write!(printed, "{tree}");
    crate::work::step(printed.text.len() * BYTE_UNITS)?;
    if printed.text.contains('\0') { unmarked(&printed.text) } else { Ok(printed.text) }
}

/// As [`written`], of what stands in a query's place without its ORDER BY and all that.
///
/// # Errors
/// As [`written`].
pub fn written_body(mut body: SetExpr) -> Result<String, SqlError> {
    let unfolded = Pooled::new();
    literal_rows::unfold(&mut body, &unfolded)?;
    written(body)
}

/// Puts literals whose quotes the library would not double, or would print as those of names, into a value that it prints as it is. Puts what
/// the library prints into something that reads as something else (`- - x` as a comment) into parentheses, or where it stood in the text. Puts
/// trees in the place of rows that are kept as text.
struct Literals {
    /// What those trees take.
    unfolded: Pooled,
}

/// Whether a sign stands before its operand without a blank between.
fn is_sign(expr: &Expr) -> bool {
    matches!(expr, Expr::UnaryOp { op, .. } if *op != UnaryOperator::Not)
}

impl VisitorMut for Literals {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        if is_sign(expr)
            && let Expr::UnaryOp { expr: inner, .. } = expr
            && is_sign(inner)
        {
            let sign = std::mem::replace(inner.as_mut(), Expr::Wildcard(AttachedToken::empty()));
            **inner = Expr::Nested(Box::new(sign));
        }
        ControlFlow::Continue(())
    }

    /// WITH TIES has its count: it is a LIMIT in the tree (see [`super::reshape`]).
    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        if let Err(error) = literal_rows::unfold(&mut query.body, &self.unfolded) {
            return ControlFlow::Break(error);
        }
        if let Some(fetch) = &mut query.fetch
            && fetch.quantity.is_none()
            && let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause
        {
            fetch.quantity = limit.take().map(|count| match count {
                Expr::Value(_) | Expr::Nested(_) => count,
                other => Expr::Nested(Box::new(other)),
            });
            if offset.is_none() {
                query.limit_clause = None;
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<SqlError> {
        let quoted = |prefix, text: &String| format!("{prefix}'{}'", text.replace('\'', "''"));
        let text = match &value.value {
            Value::SingleQuotedString(text) if text.contains('\'') => quoted("", text),
            Value::NationalStringLiteral(text) if text.contains('\'') => quoted("N", text),
            // Printed by characters, as the quotes around names are.
            Value::EscapedStringLiteral(_) | Value::UnicodeStringLiteral(_) => value.value.to_string(),
            _ => return ControlFlow::Continue(()),
        };
        value.value = Value::Placeholder(text);
        ControlFlow::Continue(())
    }
}

/// What the library prints. Its quotes around a name come as characters, all else as pieces of text; within them each piece but the first
/// begins with the quote that ended the one before it.
#[derive(Default)]
struct Printed {
    text: String,
    /// The quoted name that has begun.
    name: Option<String>,
}

impl Write for Printed {
    fn write_str(&mut self, piece: &str) -> std::fmt::Result {
        match &mut self.name {
            None => self.text.push_str(piece),
            Some(name) if name.is_empty() => name.push_str(piece),
            Some(name) => name.push_str(piece.strip_prefix('"').unwrap_or(piece)),
        }
        Ok(())
    }

    fn write_char(&mut self, c: char) -> std::fmt::Result {
        match (c, self.name.take()) {
            ('"', None) => self.name = Some(String::new()),
            ('"', Some(name)) => {
                self.text.push('"');
                self.text.push_str(&name.replace('"', "\"\""));
                self.text.push('"');
            }
            (c, None) => self.text.push(c),
            (c, Some(mut name)) => {
                name.push(c);
                self.name = Some(name);
            }
        }
        Ok(())
    }
}

/// What a parenthesis that is open ends as.
enum Open {
    Plain,
    /// The parenthesis of a mark, which is not written.
    Mark,
    /// A window's, with the words at its end.
    Window(&'static str),
}

/// A text without marks: one pass.
fn unmarked(text: &str) -> Result<String, SqlError> {
    let star = format!("\"{STAR}\"");
    let (variadic, excluded) = (format!("\"{VARIADIC}\"("), format!("\"{EXCLUDED}\"("));
    let distinct = format!("\"{DISTINCT}\", ");
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut open = Vec::new();
    // What is read, and what of it is written.
    let (mut at, mut done) = (0, 0);
    while at < bytes.len() {
        let from = at;
        match bytes[at] {
            b'(' => open.push(Open::Plain),
            b')' => match open.pop() {
                Some(Open::Mark) => {
                    out.push_str(&text[done..at]);
                    done = at + 1;
                }
                Some(Open::Window(words)) => {
                    out.push_str(&text[done..at]);
                    out.push_str(words);
                    done = at;
                }
                _ => {}
            },
            b'"' if text[at..].starts_with(&variadic) => {
                out.push_str(&text[done..at]);
                out.push_str("VARIADIC ");
                open.push(Open::Mark);
                at += variadic.len() - 1;
                done = at + 1;
            }
            b'"' if text[at..].starts_with(&star) => {
                out.push_str(&text[done..at]);
                out.push('*');
                at += star.len() - 1;
                done = at + 1;
            }
            b'"' if text[at..].starts_with(&distinct) => {
                out.push_str(&text[done..at]);
                out.push_str("DISTINCT ");
                at += distinct.len() - 1;
                done = at + 1;
            }
            b'"' if text[at..].starts_with(&excluded) => {
                out.push_str(&text[done..at]);
                let before = [", ", "ORDER BY "].iter().find_map(|before| out.strip_suffix(before)).map(str::len);
                out.truncate(before.unwrap_or(out.len()));
                let number = at + excluded.len();
                if let Some(window) = open.last_mut() {
                    *window = Open::Window(match bytes.get(number) {
                        Some(b'1') => " EXCLUDE CURRENT ROW",
                        Some(b'2') => " EXCLUDE GROUP",
                        Some(b'3') => " EXCLUDE TIES",
                        _ => "",
                    });
                }
                // The mark is a digit, and its parenthesis.
                at = number + 1;
                done = at + 1;
            }
            quote @ (b'\'' | b'"') => {
                let escapes = quote == b'\'' && at > 0 && matches!(bytes[at - 1], b'E' | b'e');
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += if escapes && bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            // Printed as they came: whatever stands between two such tags is text.
            b'$' if at == 0 || !is_of_word(bytes[at - 1]) => {
                let tag = tag(&text[at..]);
                if !tag.is_empty() {
                    let inside = at + tag.len();
                    at = text[inside..].find(tag).map_or(bytes.len(), |end| inside + end + tag.len() - 1);
                }
            }
            _ => {}
        }
        at += 1;
        crate::work::step((at - from) * BYTE_UNITS)?;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Ok(out)
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// `$$` or `$name$` at the beginning of a text; empty: it is no such tag (a parameter is `$` and digits).
fn tag(text: &str) -> &str {
    let name = text.bytes().skip(1).take_while(|byte| is_of_word(*byte)).count();
    match text.as_bytes().get(1..name + 2) {
        Some(tag) if tag[name] == b'$' && !tag[0].is_ascii_digit() => &text[..name + 2],
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::Command;
    use super::written;
    use sqlparser::ast::Statement;

    #[test]
    fn marks_are_written_as_what_they_mark() {
        for (text, read) in [
            (
                r#"select 'a''''b', '\''', N'it''s', N'''''', E'\\\'', $$''$$ "a""""b", "\""" as """", x."'" from "\"""."""""" x"#,
                r#"SELECT 'a''''b', '\''', N'it''s', N'''''', E'\\\'', $$''$$ AS "a""""b", "\""" AS """", x."'" FROM "\"""."""""" x"#,
            ),
            (
                "select concat(variadic array[''')']), count(*) over (order by f(variadic a) rows 1 preceding exclude group)",
                "SELECT concat(VARIADIC ARRAY[''')']), count(*) OVER (ORDER BY f(VARIADIC a) ROWS 1 PRECEDING EXCLUDE GROUP)",
            ),
            (
                "select count(*), (t.*) is null from t group by distinct rollup(a), b having count(*) > 0",
                "SELECT count(*), (ROW(t.*)) IS NULL FROM t GROUP BY DISTINCT ROLLUP (a), b HAVING count(*) > 0",
            ),
            (
                "select j.a, j.* from t join u using (a, b) as j",
                "SELECT a AS a, a AS a, b AS b FROM t JOIN u USING(a, b)",
            ),
            ("select (jsonb_each('{}')).*, (t).* from t", "SELECT (jsonb_each('{}')).*, t.* FROM t"),
            ("select concat(variadic array[')', 'it''s ('])", "SELECT concat(VARIADIC ARRAY[')', 'it''s ('])"),
            (
                "select concat(variadic array[$$it's )$$, $a$ )'( $a$, $1])",
                "SELECT concat(VARIADIC ARRAY[$$it's )$$, $a$ )'( $a$, $1])",
            ),
            (
                "select sum(a) over (order by a rows 1 preceding exclude ties) from t",
                "SELECT sum(a) OVER (ORDER BY a ROWS 1 PRECEDING EXCLUDE TIES) FROM t",
            ),
            (
                "select sum(a) over (partition by (b) groups 1 preceding exclude no others) from t",
                "SELECT sum(a) OVER (PARTITION BY (b) GROUPS 1 PRECEDING) FROM t",
            ),
        ] {
            assert_eq!(written(statement(text)).expect("a text").replace("  ", " "), read);
        }
    }

    fn statement(text: &str) -> Statement {
        let parsed = super::super::parse(text).unwrap_or_else(|error| panic!("{}: {text}", error.message));
        match parsed.into_iter().next().map(|one| one.command) {
            Some(Command::Planned(planned)) => planned.statement,
            _ => panic!("{text}"),
        }
    }

    /// Looks are what work is counted by, and what sees that the statement is ended.
    #[test]
    fn work_is_linear_in_marks() {
        let looks = |marks: usize| {
            let calls = vec!["f(variadic a)"; marks].join(", ");
            let tree = statement(&format!("select {calls}"));
            let before = crate::work::looks();
            written(tree).expect("a text");
            crate::work::looks() - before
        };
        let (few, many) = (looks(50_000), looks(200_000));
        assert!(few >= 4 && many >= 3 * few && many <= 5 * few, "{few} looks, {many} for four times as many marks");
    }

    /// Names and literals of all that could be taken for a quote, an escape or a mark.
    #[test]
    fn what_is_written_reads_as_it_was() {
        let mut seed = 7u64;
        let mut chance = |of: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % of
        };
        let alphabet =
            ["'", "'", "\"", "\\", "$", "$$", "(", ")", "a", "E", " ", "\n", "é", "--", "/*", "$a$", "\t", "%", "&"];
        for _ in 0..2_000 {
            let mut word = || (0..=chance(6)).map(|_| alphabet[chance(alphabet.len())]).collect::<String>();
            let (text, other, name, alias) = (word(), word(), word(), word());
            let (doubled, escaped) = (text.replace('\'', "''"), text.replace('\\', "\\\\").replace('\'', "''"));
            let literals = [
                format!("'{doubled}'"),
                format!("N'{doubled}'"),
                format!("E'{escaped}'"),
                format!("U&'{escaped}'"),
                format!("$tag${text}$tag$"),
            ];
            let (name, alias) = (name.replace('"', "\"\""), alias.replace('"', "\"\""));
            let (n, a, o) = (format!("\"{name}\""), format!("\"{alias}\""), format!("'{}'", other.replace('\'', "''")));
            let (one, all) = (&literals[chance(literals.len())], literals.join(", "));
            let read = format!(
                "WITH {a} ({n}) AS (SELECT {one} LIKE {o} ESCAPE {o} AS {a} FROM {n}.{a} AS {n} ({a})) \
                 SELECT {a}.{n}, {n}({o}, concat(VARIADIC {a})) FROM {a} JOIN {n} USING ({a}) \
                 WHERE {n} IN ({all}) AND {n} = INTERVAL {o} COLLATE {a}"
            );
            let tree = statement(&read);
            let text = written(tree.clone()).expect("a text");
            assert_eq!(statement(&text), tree, "{read}");
            assert_eq!(written(statement(&text)).expect("a text"), text);
        }
    }
}
