//! LIKE: matched by walking pattern and text once, going back only to the last `%`.

use crate::{SqlError, SqlState, work};

/// LIKE says so often what it has done, characters.
const STEPS_COUNTED: usize = 4 << 10;

/// Whether a text matches a LIKE pattern. `escape` is backslash unless said otherwise, `None` for no escape at all.
///
/// # Errors
/// 22025 if the pattern ends with the escape character.
pub(super) fn like(text: &str, pattern: &str, escape: Option<char>) -> Result<bool, SqlError> {
    let bad = || SqlError::new(SqlState(*b"22025"), "LIKE pattern must not end with escape character");
    let (mut t, mut p) = (text, pattern);
    let mut retry: Option<(&str, &str)> = None;
    let mut steps = 0;
    loop {
        // Each character of the text may be tried with each of the pattern.
        steps += 1;
        if steps == STEPS_COUNTED {
            work::step(4 * STEPS_COUNTED)?;
            steps = 0;
        }
        let mut rest = p.chars();
        let step = match rest.next() {
            Some('%') if escape != Some('%') => {
                p = rest.as_str();
                retry = Some((t, p));
                if p.is_empty() {
                    return Ok(true);
                }
                continue;
            }
            Some('_') if escape != Some('_') => t.chars().next().map(|c| c.len_utf8()),
            Some(c) => {
                let wanted = if Some(c) != escape {
                    c
                } else {
                    match rest.next() {
                        Some(escaped) => escaped,
                        None if t.is_empty() => return Ok(false),
                        None => return Err(bad()),
                    }
                };
                t.starts_with(wanted).then_some(wanted.len_utf8())
            }
            None if t.is_empty() => return Ok(true),
            None => None,
        };
        match step {
            Some(width) => {
                t = &t[width..];
                p = rest.as_str();
            }
            None => {
                // Give the last % one character more.
                let Some((from, after)) = retry else { return Ok(false) };
                let Some(c) = from.chars().next() else { return Ok(false) };
                let from = &from[c.len_utf8()..];
                retry = Some((from, after));
                t = from;
                p = after;
            }
        }
    }
}
