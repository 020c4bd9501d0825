//! LIKE, SIMILAR TO and regular expressions.
//!
//! LIKE is matched by walking pattern and text once, going back only to the last `%`. Regular expressions are run by a library without
//! backtracking, so no pattern can take exponential time; what it lacks (back-references, look-around) is refused.

use crate::{SqlError, SqlState};
use regex::{Regex, RegexBuilder};
use std::cell::RefCell;

/// Compiled expressions kept by each thread.
const CACHE_MAX: usize = 32;
/// Greatest size of a compiled expression, bytes.
const REGEX_BYTES_MAX: usize = 4 << 20;

/// Whether a text matches a LIKE pattern. `escape` is backslash unless said otherwise, `None` for no escape at all.
///
/// # Errors
/// 22025 if the pattern ends with the escape character.
pub(super) fn like(text: &str, pattern: &str, escape: Option<char>) -> Result<bool, SqlError> {
    let bad = || SqlError::new(SqlState(*b"22025"), "LIKE pattern must not end with escape character");
    let (mut t, mut p) = (text, pattern);
    let mut retry: Option<(&str, &str)> = None;
    loop {
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

/// Runs `f` with the compiled expression.
///
/// # Errors
/// 2201B if it cannot be compiled.
pub(super) fn with_regex<R>(pattern: &str, flags: &str, f: impl FnOnce(&Regex) -> R) -> Result<R, SqlError> {
    thread_local! {
        static CACHE: RefCell<Vec<(String, String, Regex)>> = const { RefCell::new(Vec::new()) };
    }
    let found = CACHE.with_borrow(|cache| {
        cache.iter().find(|(p, g, _)| p == pattern && g == flags).map(|(_, _, regex)| regex.clone())
    });
    let regex = match found {
        Some(regex) => regex,
        None => {
            let regex = compile(pattern, flags)?;
            CACHE.with_borrow_mut(|cache| {
                if cache.len() >= CACHE_MAX {
                    cache.remove(0);
                }
                cache.push((pattern.to_owned(), flags.to_owned(), regex.clone()));
            });
            regex
        }
    };
    Ok(f(&regex))
}

fn invalid(what: impl std::fmt::Display) -> SqlError {
    SqlError::new(SqlState(*b"2201B"), format!("invalid regular expression: {what}"))
}

fn compile(pattern: &str, flags: &str) -> Result<Regex, SqlError> {
    let (mut pattern, mut flags) = (pattern, flags.to_owned());
    if let Some(rest) = pattern.strip_prefix("***=") {
        return RegexBuilder::new(&regex::escape(rest)).build().map_err(invalid);
    }
    // (?i) and its kind at the start are options of the whole.
    if let Some(rest) = pattern.strip_prefix("(?")
        && let Some((options, body)) = rest.split_once(')')
        && !options.is_empty()
        && options.bytes().all(|b| b.is_ascii_alphabetic())
    {
        flags.push_str(options);
        pattern = body;
    }
    let literal = flags.contains('q');
    let translated = if literal { regex::escape(pattern) } else { translate(pattern) };
    let newline_sensitive = flags.contains('n') || flags.contains('m');
    RegexBuilder::new(&translated)
        .case_insensitive(flags.contains('i'))
        // A point matches a newline too, unless asked otherwise.
        .dot_matches_new_line(!newline_sensitive && !flags.contains('p'))
        .multi_line(newline_sensitive || flags.contains('w'))
        .ignore_whitespace(flags.contains('x'))
        .size_limit(REGEX_BYTES_MAX)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => invalid("regular expression is too complex"),
            other => invalid(
                other.to_string().lines().last().unwrap_or("syntax error").trim_start_matches("error: ").to_owned(),
            ),
        })
}

/// Writes PostgreSQL's escapes as the library's: word boundaries `\m`, `\M`, `\y`, `\Y`, end `\Z`.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut chars = pattern.chars();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('m') if !in_class => out.push_str("\\b{start}"),
                Some('M') if !in_class => out.push_str("\\b{end}"),
                Some('y') if !in_class => out.push_str("\\b"),
                Some('Y') if !in_class => out.push_str("\\B"),
                Some('Z') if !in_class => out.push_str("\\z"),
                Some(other) => {
                    out.push('\\');
                    out.push(other);
                }
                None => out.push('\\'),
            },
            '[' if in_class => {
                // [[:alpha:]] is known; a bare bracket within a class is itself.
                if chars.as_str().starts_with(':') { out.push('[') } else { out.push_str("\\[") }
            }
            '[' => {
                in_class = true;
                out.push('[');
                if let Some(rest) = chars.as_str().strip_prefix('^') {
                    out.push('^');
                    chars = rest.chars();
                }
                if let Some(rest) = chars.as_str().strip_prefix(']') {
                    out.push_str("\\]");
                    chars = rest.chars();
                }
            }
            ']' if in_class => {
                // The end of [:alpha:] is not the end of the class.
                if !out.ends_with(':') {
                    in_class = false;
                }
                out.push(']');
            }
            '&' | '~' | '-' if in_class && chars.as_str().starts_with(c) => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Turns a SIMILAR TO pattern into a regular expression.
///
/// # Errors
/// 22025 if it ends with the escape character.
pub(super) fn similar_to_regex(pattern: &str, escape: Option<char>) -> Result<String, SqlError> {
    let mut out = String::from("^(?:");
    let mut chars = pattern.chars();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            let next = chars
                .next()
                .ok_or_else(|| SqlError::new(SqlState(*b"22025"), "LIKE pattern must not end with escape character"))?;
            out.push_str(&regex::escape(&next.to_string()));
            continue;
        }
        match c {
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            c if in_class => out.push(c),
            '[' => {
                in_class = true;
                out.push('[');
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '.' | '^' | '$' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.push_str(")$");
    Ok(out)
}
