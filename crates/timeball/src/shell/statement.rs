//! Where a statement ends, and where in it an error lies.

/// Whether the last statement of the text ends with a semicolon, outside of strings and comments.
pub fn is_complete(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (mut at, mut ended) = (0, false);
    while at < bytes.len() {
        let rest = &text[at..];
        let skipped = match bytes[at] {
            b'\'' => quoted(rest, '\''),
            b'"' => quoted(rest, '"'),
            b'$' => dollar_quoted(rest),
            b'-' if rest.starts_with("--") => Some(rest.find('\n').unwrap_or(rest.len())),
            b'/' if rest.starts_with("/*") => block_comment(rest),
            _ => Some(0),
        };
        // Inside of a string or comment that does not end.
        let Some(skipped) = skipped else { return false };
        if skipped > 0 {
            let comment = rest.starts_with("--") || rest.starts_with("/*");
            ended &= comment;
            at += skipped;
            continue;
        }
        match bytes[at] {
            b';' => ended = true,
            c if c.is_ascii_whitespace() => {}
            _ => ended = false,
        }
        at += rest.chars().next().map_or(1, char::len_utf8);
    }
    ended
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
        ] {
            assert!(is_complete(whole), "{whole}");
        }
        for part in ["SELECT 1", "SELECT ';", "SELECT ';'", "SELECT $$;", "SELECT 1; SELECT", "/* x;", "SELECT 1 -- ;"]
        {
            assert!(!is_complete(part), "{part}");
        }
    }

    #[test]
    fn errors_are_pointed_at() {
        assert_eq!(point_at("SELECT\n  x", 10), Some(("LINE 2:   x".into(), "          ^".into())));
        assert_eq!(point_at("SELECT", 99), None);
    }
}
