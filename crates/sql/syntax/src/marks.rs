//! Statements are kept as their trees are printed; the functions that mark what the library has no form for ([`super::forms`],
//! [`super::reshape`]) are printed as what they mark.

use super::forms::VARIADIC;
use super::reshape::EXCLUDED;

/// A printed tree in SQL.
pub fn written(mut text: String) -> String {
    if !text.contains('\0') {
        return text;
    }
    let variadic = format!("\"{VARIADIC}\"(");
    while let Some(start) = text.find(&variadic) {
        let Some(end) = closing(&text, start + variadic.len()) else { break };
        text.replace_range(end..=end, "");
        text.replace_range(start..start + variadic.len(), "VARIADIC ");
    }
    let excluded = format!("\"{EXCLUDED}\"(");
    while let Some(start) = text.find(&excluded) {
        let number = start + excluded.len();
        let words = match text.as_bytes().get(number) {
            Some(b'1') => " EXCLUDE CURRENT ROW",
            Some(b'2') => " EXCLUDE GROUP",
            Some(b'3') => " EXCLUDE TIES",
            _ => "",
        };
        let Some(end) = closing(&text, number).and_then(|mark| closing(&text, mark + 1)) else { break };
        text.insert_str(end, words);
        let from =
            [", ", "ORDER BY "].iter().find_map(|before| text[..start].strip_suffix(before)).map_or(start, str::len);
        // The mark is a digit, and its parenthesis.
        text.replace_range(from..number + 2, "");
    }
    text
}

/// The parenthesis that closes what a place in a text stands in.
fn closing(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0usize, from);
    while at < bytes.len() {
        match bytes[at] {
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(at),
            b')' => depth -= 1,
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
                    at += tag.len() + text[at + tag.len()..].find(tag)? + tag.len() - 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
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

    #[test]
    fn marks_are_written_as_what_they_mark() {
        for (text, read) in [
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
            let parsed = super::super::parse(text).expect("a statement");
            let Some(Command::Planned(planned)) = parsed.into_iter().next().map(|one| one.command) else {
                panic!("{text}")
            };
            assert_eq!(written(planned.statement.to_string()).replace("  ", " "), read);
        }
    }
}
