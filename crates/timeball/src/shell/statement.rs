//! Where a statement ends, what in it is a variable or a command, and where in it an error lies.

use std::collections::BTreeMap;

/// Whether the last statement of the text ends with a semicolon, or with a command of the shell, outside of strings and comments.
pub fn is_complete(text: &str) -> bool {
    let mut ended = false;
    for token in tokens(text) {
        match token {
            Token::Character(_, ';') => ended = true,
            Token::Character(_, '\\') => return true,
            Token::Character(_, c) => ended &= c.is_whitespace(),
            Token::Comment => {}
            Token::Quoted => ended = false,
            // Inside of a string or comment that does not end.
            Token::Open => return false,
        }
    }
    ended
}

/// The statements of a text, each with its semicolon; what stands behind the last one belongs to it if it says nothing.
pub fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut says) = (Vec::new(), 0, false);
    for token in tokens(text) {
        match token {
            // The rest is a command of the shell.
            Token::Character(_, '\\') => {
                says = true;
                break;
            }
            Token::Character(at, ';') => {
                parts.push(&text[from..=at]);
                (from, says) = (at + 1, false);
            }
            Token::Character(_, c) => says |= !c.is_whitespace(),
            Token::Comment => {}
            Token::Quoted | Token::Open => says = true,
        }
    }
    if says || parts.is_empty() {
        parts.push(&text[from..]);
    }
    parts
}

/// The text from its first word on; empty where a string comes first.
pub fn behind_comments(text: &str) -> &str {
    let first = tokens(text).find(|token| match token {
        Token::Character(_, c) => !c.is_whitespace(),
        Token::Comment => false,
        Token::Quoted | Token::Open => true,
    });
    match first {
        Some(Token::Character(at, _)) => &text[at..],
        _ => "",
    }
}

/// A text that ends with a command, such as `SELECT 1 \gx`: the statement and the command.
pub fn split_command(text: &str) -> Option<(&str, &str)> {
    let at = tokens(text).find_map(|token| match token {
        Token::Character(at, '\\') => Some(at),
        _ => None,
    })?;
    Some(text.split_at(at))
}

/// The text with the values of `:name`, `:'name'` (as a literal) and `:"name"` (as an identifier); `::` is a cast, and what is not set stays.
pub fn interpolate(text: &str, variables: &BTreeMap<String, String>) -> String {
    if variables.is_empty() {
        return text.to_owned();
    }
    let (mut out, mut copied, mut before) = (String::new(), 0, ' ');
    for token in tokens(text) {
        let Token::Character(at, c) = token else {
            before = ' ';
            continue;
        };
        if at < copied {
            continue;
        }
        if c == ':'
            && before != ':'
            && let Some((value, length)) = reference(&text[at + 1..], variables)
        {
            out.push_str(&text[copied..at]);
            out.push_str(&value);
            copied = at + 1 + length;
        }
        before = c;
    }
    out + &text[copied..]
}

/// The value that a reference stands for, and the length of the reference after its colon.
fn reference(text: &str, variables: &BTreeMap<String, String>) -> Option<(String, usize)> {
    let quote = text.chars().next().filter(|c| ['\'', '"'].contains(c));
    let body = &text[quote.map_or(0, char::len_utf8)..];
    let length = body.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(body.len());
    let value = variables.get(&body[..length])?;
    match quote {
        None => Some((value.clone(), length)),
        Some(quote) if body[length..].starts_with(quote) => {
            let doubled = value.replace(quote, &format!("{quote}{quote}"));
            Some((format!("{quote}{doubled}{quote}"), length + 2))
        }
        Some(_) => None,
    }
}

/// A piece of a text of statements.
enum Token {
    /// Neither quoted nor commented: where, and what.
    Character(usize, char),
    Comment,
    Quoted,
    /// A string or comment that does not end.
    Open,
}

fn tokens(text: &str) -> impl Iterator<Item = Token> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let c = rest.chars().next()?;
        let skipped = match c {
            '\'' => quoted(rest, '\''),
            '"' => quoted(rest, '"'),
            '$' => dollar_quoted(rest),
            '-' if rest.starts_with("--") => Some(rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => block_comment(rest),
            _ => Some(0),
        };
        let began = at;
        at += match skipped {
            None => rest.len(),
            Some(0) => c.len_utf8(),
            Some(length) => length,
        };
        Some(match skipped {
            None => Token::Open,
            Some(0) => Token::Character(began, c),
            Some(_) if c == '-' || c == '/' => Token::Comment,
            Some(_) => Token::Quoted,
        })
    })
}

/// Length of a quoted string or identifier at the start of the text; doubled quotes are two of them in a row.
fn quoted(text: &str, quote: char) -> Option<usize> {
    text[1..].find(quote).map(|end| end + 2)
}

/// Length of `$tag$ ... $tag$`; 0 if none begins here.
fn dollar_quoted(text: &str) -> Option<usize> {
    let Some(tag_end) = text[1..].find('$').map(|end| end + 2) else { return Some(0) };
    let tag = &text[..tag_end];
    let name = &tag[1..tag_end - 1];
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.contains(|c: char| !(c.is_alphanumeric() || c == '_')) {
        return Some(0);
    }
    text[tag_end..].find(tag).map(|end| tag_end + end + tag_end)
}

/// Length of a block comment; they nest.
fn block_comment(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += 1;
        }
    }
    None
}

/// The line that holds a 1-based character, and a pointer below it.
pub fn point_at(text: &str, position: usize) -> Option<(String, String)> {
    let mut left = position.checked_sub(1)?;
    for (number, line) in text.split('\n').enumerate() {
        let length = line.chars().count();
        if left <= length {
            let label = format!("LINE {}: ", number + 1);
            let pointer = format!("{}^", " ".repeat(label.len() + left));
            return Some((label + line, pointer));
        }
        left -= length + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_with_a_semicolon() {
        for whole in [
            "SELECT 1;",
            "SELECT ';';",
            "SELECT 'it''s';  -- done",
            "SELECT $a$;$a$;",
            "/* ; /* */ */ x;",
            "SELECT $1;",
            "ä;",
            "SELECT 1 \\gx",
        ] {
            assert!(is_complete(whole), "{whole}");
        }
        for part in ["SELECT 1", "SELECT ';", "SELECT ';'", "SELECT $$;", "SELECT 1; SELECT", "/* x;", "SELECT 1 -- ;"]
        {
            assert!(!is_complete(part), "{part}");
        }
    }

    #[test]
    fn statements_are_sent_one_by_one() {
        assert_eq!(split("SELECT 1; SELECT ';' ; -- ;\n"), ["SELECT 1;", " SELECT ';' ;"]);
        assert_eq!(split("-- a;\nSELECT $$;$$; SELECT 2"), ["-- a;\nSELECT $$;$$;", " SELECT 2"]);
        assert_eq!(split("SELECT 'a;"), ["SELECT 'a;"]);
        assert_eq!(split(";;"), [";", ";"]);
        assert_eq!(split("SELECT 1; \\set a 1;2"), ["SELECT 1;", " \\set a 1;2"]);
    }

    #[test]
    fn commands_end_statements() {
        assert_eq!(split_command("SELECT '\\', 1 \\watch 2"), Some(("SELECT '\\', 1 ", "\\watch 2")));
        assert_eq!(split_command("SELECT 1; -- \\x"), None);
    }

    #[test]
    fn variables_stand_for_their_values() {
        let variables = [("n", "7"), ("name", "O'Neill"), ("t", "a \"b\"")];
        let variables = variables.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let text = "SELECT :n::int, :'name', ':n', a[1:2], :other -- :n\nFROM :\"t\" WHERE x=:n";
        let expected = "SELECT 7::int, 'O''Neill', ':n', a[1:2], :other -- :n\nFROM \"a \"\"b\"\"\" WHERE x=7";
        assert_eq!(interpolate(text, &variables), expected);
    }

    #[test]
    fn errors_are_pointed_at() {
        assert_eq!(point_at("SELECT\n  x", 10), Some(("LINE 2:   x".into(), "          ^".into())));
        assert_eq!(point_at("SELECT", 99), None);
    }
}
