//! INSERT of one row of literals, by its shape.
//!
//! **Problem.** Drivers that put values into the text themselves, and people, send `INSERT INTO t (k, c) VALUES (7, 'a')`: each text is another one, and was
//! parsed, bound and planned for itself. Measured, that was half of what such a statement took. **Idea.** Its literals are parameters that have their
//! values already: what is left, `INSERT INTO t (k, c) VALUES ($1, $2)`, comes again, and is prepared once.
//!
//! 1. Only of INSERT with one row of VALUES and nothing behind it but ON CONFLICT and RETURNING, as the only statement of its text, and only of what is nothing
//!    but a literal: a number that PostgreSQL takes for an int4, an int8 or a numeric, or a plain string. What else a row may have in its way (NULL, TRUE,
//!    FALSE, DEFAULT) stays where it is; so does what stands around the row, letter by letter. A text with anything else is read as ever.
//! 2. A number is a parameter of the type that it would have as a literal, a string one of no type: it takes that of its column, as the literal does.
//! 3. Nobody learns of an error by way of a shape: whoever cannot plan it, or cannot read a value by it, takes the text as it was sent. What goes wrong later
//!    is told with its place in that text ([`Lifted::place`]).

use super::literal_rows::{literal, space};
use super::operator::{Walk, starts_comment};
use sql_value::types::SqlType;

/// Longest text, bytes, that is looked at so: of a longer one reading is the greater part anyway.
pub const LIFTED_BYTES_MAX: usize = 16 << 10;
/// Most values of a row.
const VALUES_MAX: usize = 256;
/// Words that begin another query than VALUES.
const QUERIES: [&str; 3] = ["SELECT", "TABLE", "WITH"];
/// What SQL takes for nothing.
const BLANKS: [char; 4] = [' ', '\n', '\r', '\t'];

/// What is left of a text, and what was taken out of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Lifted {
    /// With `$1`, `$2`, .. in the place of the literals.
    pub shape: String,
    /// Of each the OID of its type (0: none of its own), and its value's text.
    pub values: Vec<(u32, String)>,
    /// Bytes of the shape up to where something of the text begins, and bytes of that: of each item of the row, and of what is behind it.
    begins: Vec<(usize, usize)>,
}

impl Lifted {
    /// A place in the shape, in characters from 1 on, as one in the text that it was made of.
    pub fn place(&self, position: u32, text: &str) -> u32 {
        let at = self.shape.char_indices().nth((position as usize).saturating_sub(1));
        let at = at.map_or(self.shape.len(), |(at, _)| at);
        let before = self.begins.iter().rev().find(|(shape, _)| *shape <= at);
        let place = before.map_or(at, |(shape, begin)| begin + (at - shape));
        let passed = text.get(..place).unwrap_or(text).chars().count();
        u32::try_from(passed + 1).unwrap_or(position)
    }
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
    let (mut at, mut values, mut begins) = (row + 1, Vec::new(), Vec::new());
    let end = loop {
        let start = space(bytes, at);
        let end = literal(bytes, start)?;
        begins.push((shape.len(), start));
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
    let behind = text[end..].trim_end_matches(BLANKS).trim_end_matches(';');
    let next = behind.trim_start_matches(BLANKS);
    let word = next.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let goes_on = next.is_empty() || ["ON", "RETURNING"].iter().any(|known| word.eq_ignore_ascii_case(known));
    // Another row, a set operation, another statement; or a parameter, which a text that is not prepared cannot have.
    if values.is_empty() || !goes_on || behind.contains([';', '$']) {
        return None;
    }
    begins.push((shape.len(), end));
    shape.push_str(behind);
    Some(Lifted { shape, values, begins })
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
        if start == begin {
            token.eq_ignore_ascii_case("INSERT").then_some(())?;
            continue;
        }
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' | b',' | b'"' | 0x80.. => {}
            b'(' => depth += 1,
            b')' => depth = depth.checked_sub(1)?,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' if token.contains(['\'', '$']) => return None,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' if QUERIES.iter().any(|word| token.eq_ignore_ascii_case(word)) => {
                return None;
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
    let literal = literal.strip_prefix('+').unwrap_or(literal);
    // (The sign is part of the constant: PostgreSQL's grammar folds it.)
    let ty = match literal.parse::<i64>() {
        Ok(number) if i32::try_from(number).is_ok() => SqlType::Int4,
        Ok(_) => SqlType::Int8,
        Err(_) => SqlType::Numeric(None),
    };
    Some((ty.oid(), literal.to_owned()))
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
            " insert INTO \"a b\".t (k, \"C\") VALUES ( 7,'it''s' , NULL,-2147483648, -9223372036854775808, 1.50,default,+3 )\n RETURNING id; ",
        );
        let (int4, int8, numeric) = (SqlType::Int4.oid(), SqlType::Int8.oid(), SqlType::Numeric(None).oid());
        let lifted = lifted.expect("it is of the kind");
        assert_eq!(
            lifted.shape,
            " insert INTO \"a b\".t (k, \"C\") VALUES ($1,$2,NULL,$3,$4,$5,default,$6)\n RETURNING id"
        );
        let values: Vec<(u32, &str)> = lifted.values.iter().map(|(oid, text)| (*oid, text.as_str())).collect();
        assert_eq!(
            values,
            [
                (int4, "7"),
                (0, "it's"),
                (int4, "-2147483648"),
                (int8, "-9223372036854775808"),
                (numeric, "1.50"),
                (int4, "3")
            ]
        );
        assert_eq!(shape("INSERT INTO t VALUES (99999999999999999999)").as_deref(), Some("INSERT INTO t VALUES ($1)"));
        let upsert = "INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET n = t.n + 1";
        assert_eq!(shape(upsert), Some(upsert.replacen('1', "$1", 1)));
    }

    #[test]
    fn places_are_those_of_the_text() {
        let text = " INSERT INTO \u{fc} (a, b) VALUES ( 'l\u{f6}ng''er' ,  7) RETURNING *, nosuch;";
        let lifted = lift(text).expect("it is of the kind");
        let at = |text: &str, word: &str| {
            let before = text.find(word).expect("it is there");
            u32::try_from(text[..before].chars().count() + 1).expect("it is short")
        };
        for word in ["INSERT", "(a, b)", "RETURNING", "nosuch"] {
            assert_eq!(lifted.place(at(&lifted.shape, word), text), at(text, word), "{word}");
        }
        assert_eq!(lifted.place(at(&lifted.shape, "$1"), text), at(text, "'l"));
        assert_eq!(lifted.place(at(&lifted.shape, "$2"), text), at(text, "7"));
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
            "INSERT INTO t SELECT a FROM s UNION ALL VALUES (9)",
            "INSERT INTO t VALUES (1) UNION ALL VALUES (9)",
            "INSERT INTO t VALUES (1) LIMIT 1",
            "INSERT INTO t VALUES (1) /**/, (2)",
            "INSERT INTO t VALUES (1)\u{a0}",
            "(SELECT a FROM s) UNION ALL VALUES (9)",
            "VALUES (9)",
            "\"INSERT\" VALUES (9)",
            "INSERT INTO values (a) VALUES (1)",
            "WITH a AS (SELECT 1) INSERT INTO t VALUES (1)",
            "EXPLAIN INSERT INTO t VALUES (1)",
            "",
        ] {
            assert_eq!(shape(text), None, "{text}");
        }
    }
}
