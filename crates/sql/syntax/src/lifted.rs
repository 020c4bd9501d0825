//! INSERT of one row of literals, by its shape.
//!
//! **Problem.** Drivers that put values into the text themselves, and people, send `INSERT INTO t (k, c) VALUES (7, 'a')`: each text is another one, and was
//! parsed, bound and planned for itself. Measured, that was half of what such a statement took. **Idea.** Its literals are parameters that have their
//! values already: what is left, `INSERT INTO t (k, c) VALUES ($1, $2)`, comes again, and is prepared once.
//!
//! 1. Only of INSERT with one row of VALUES, as the only statement of its text, and only of what is nothing but a literal: a number that PostgreSQL takes for an
//!    int4, an int8 or a numeric, or a plain string. What else a row may have in its way (NULL, TRUE, FALSE, DEFAULT) stays where it is; so does what stands
//!    around the row, letter by letter. A text with anything else is read as ever.
//! 2. A number is a parameter of the type that it would have as a literal, a string one of no type: it takes that of its column, as the literal does.
//! 3. Nobody learns of an error by way of a shape: whoever cannot plan it, or cannot read a value by it, takes the text as it was sent.

use super::literal_rows::{literal, space};
use super::operator::{Walk, starts_comment};
use sql_value::types::SqlType;

/// Longest text, bytes, that is looked at so: of a longer one reading is the greater part anyway.
pub const LIFTED_BYTES_MAX: usize = 16 << 10;
/// Most values of a row.
const VALUES_MAX: usize = 256;

/// What is left of a text, and what was taken out of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Lifted {
    /// With `$1`, `$2`, .. in the place of the literals.
    pub shape: String,
    /// Of each the OID of its type (0: none of its own), and its value's text.
    pub values: Vec<(u32, String)>,
}

/// Takes the literals out of a text; `None` where it is none of those of the module.
pub fn lift(text: &str) -> Option<Lifted> {
    let bytes = text.as_bytes();
    if bytes.len() > LIFTED_BYTES_MAX {
        return None;
    }
    let row = row_of(text)?;
    let mut shape = String::with_capacity(text.len().min(1 << 10));
    shape.push_str(&text[..=row]);
    let (mut at, mut values) = (row + 1, Vec::new());
    let end = loop {
        let start = space(bytes, at);
        let end = literal(bytes, start)?;
        match value(&text[start..end]) {
            Some(value) if values.len() < VALUES_MAX => {
                values.push(value);
                shape.push('$');
                shape.push_str(&values.len().to_string());
            }
            Some(_) => return None,
            None => shape.push_str(word(&text[start..end])?),
        }
        let next = space(bytes, end);
        let separator = *bytes.get(next)?;
        shape.push(char::from(separator));
        match separator {
            b',' => at = next + 1,
            b')' => break next + 1,
            _ => return None,
        }
    };
    let rest = text[end..].trim_end().trim_end_matches(';');
    // Another row, another statement, or a parameter, which a text that is not prepared cannot have.
    if values.is_empty() || rest.trim_start().starts_with(',') || rest.contains([';', '$']) {
        return None;
    }
    shape.push_str(rest);
    Some(Lifted { shape, values })
}

/// Where the bracket of the first row of an INSERT's VALUES stands.
fn row_of(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let begin = space(bytes, 0);
    let mut walk = Walk::new(bytes);
    walk.at = begin;
    let (mut depth, mut point) = (0usize, false);
    while let Some(&byte) = bytes.get(walk.at) {
        let start = walk.at;
        walk.token();
        let token = &text[start..walk.at];
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' | b',' | b'"' | 0x80.. => {}
            b'(' => depth += 1,
            b')' => depth = depth.checked_sub(1)?,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' if token.contains(['\'', '$']) => return None,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' if start == begin => {
                token.eq_ignore_ascii_case("INSERT").then_some(())?;
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                if depth == 0 && !point && token.eq_ignore_ascii_case("VALUES") {
                    let row = space(bytes, walk.at);
                    return (bytes.get(row) == Some(&b'(')).then_some(row);
                }
            }
            b'.' if !starts_comment(&bytes[start..]) => {}
            _ => return None,
        }
        point = byte == b'.';
    }
    None
}

/// A literal that becomes a parameter.
fn value(literal: &str) -> Option<(u32, String)> {
    if let [b'\'', .., b'\''] = literal.as_bytes() {
        let inner = &literal[1..literal.len() - 1];
        return Some((0, if inner.contains('\'') { inner.replace("''", "'") } else { inner.to_owned() }));
    }
    let digits = literal.strip_prefix(['-', '+']).unwrap_or(literal);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    if [whole, part].iter().any(|digits| digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    // The sign is an operator: the least int4 is the negative of an int8.
    let ty = match digits.parse::<u64>() {
        Ok(number) if i32::try_from(number).is_ok() => SqlType::Int4,
        Ok(number) if i64::try_from(number).is_ok() => SqlType::Int8,
        _ => SqlType::Numeric(None),
    };
    Some((ty.oid(), literal.strip_prefix('+').unwrap_or(literal).to_owned()))
}

/// A word that stays in the shape.
fn word(literal: &str) -> Option<&str> {
    literal.starts_with(|first: char| first.is_ascii_alphabetic()).then_some(literal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Option<String> {
        lift(text).map(|lifted| lifted.shape)
    }

    #[test]
    fn literals_become_parameters() {
        let lifted = lift(
            " insert INTO \"a b\".t (k, \"C\") VALUES ( 7,'it''s' , NULL,-2147483648, 1.50,default,+3 )\n RETURNING id; ",
        );
        let (int4, int8, numeric) = (SqlType::Int4.oid(), SqlType::Int8.oid(), SqlType::Numeric(None).oid());
        let lifted = lifted.expect("it is of the kind");
        assert_eq!(
            lifted.shape,
            " insert INTO \"a b\".t (k, \"C\") VALUES ($1,$2,NULL,$3,$4,default,$5)\n RETURNING id"
        );
        let values: Vec<(u32, &str)> = lifted.values.iter().map(|(oid, text)| (*oid, text.as_str())).collect();
        assert_eq!(values, [(int4, "7"), (0, "it's"), (int8, "-2147483648"), (numeric, "1.50"), (int4, "3")]);
        assert_eq!(shape("INSERT INTO t VALUES (99999999999999999999)").as_deref(), Some("INSERT INTO t VALUES ($1)"));
        let upsert = "INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET n = t.n + 1";
        assert_eq!(shape(upsert), Some(upsert.replacen('1', "$1", 1)));
    }

    #[test]
    fn what_is_more_than_literals_is_left_alone() {
        for text in [
            "SELECT 1",
            "INSERT INTO t VALUES (1), (2)",
            "INSERT INTO t VALUES (1); SELECT 2",
            "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2);",
            "INSERT INTO t VALUES (1 + 1)",
            "INSERT INTO t VALUES (now(), 1)",
            "INSERT INTO t VALUES (date '2020-01-01')",
            "INSERT INTO t VALUES ('1'::int)",
            "INSERT INTO t VALUES (E'a\\n')",
            "INSERT INTO t VALUES ('a'\n'b')",
            "INSERT INTO t VALUES (1, $1)",
            "INSERT INTO t VALUES (1) RETURNING $1",
            "INSERT INTO t VALUES (1) RETURNING $$a$$",
            "INSERT INTO t VALUES (1 /* one */)",
            "INSERT INTO t /* one */ VALUES (1)",
            "INSERT INTO t VALUES (null, DEFAULT)",
            "INSERT INTO t VALUES (1e3)",
            "INSERT INTO t VALUES (1.)",
            "INSERT INTO t VALUES (0x1F)",
            "INSERT INTO t VALUES (1_000)",
            "INSERT INTO t VALUES ('open",
            "INSERT INTO t VALUES (1",
            "INSERT INTO t SELECT 1",
            "INSERT INTO t DEFAULT VALUES",
            "INSERT INTO values (a) VALUES (1)",
            "WITH a AS (SELECT 1) INSERT INTO t VALUES (1)",
            "EXPLAIN INSERT INTO t VALUES (1)",
            "",
        ] {
            assert_eq!(shape(text), None, "{text}");
        }
    }
}
