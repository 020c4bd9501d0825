//! Identifiers: what one means, and how a name is written so that it is read back.
//!
//! The only place that folds, cuts, quotes and splits names. Quoting follows PostgreSQL's `quote_identifier`: a name stands bare if
//! it is of small letters, digits and `_` (not `$`, which some readers of SQL do not take) and no key word but an unreserved one.

pub mod keyword;

use crate::{SqlError, SqlState};
use keyword::Category;
use sqlparser::ast::Ident;

/// Longest name, bytes; the rest is cut off, as in PostgreSQL.
pub const NAME_BYTES_MAX: usize = 63;

/// The beginning of a text that fits into `bytes_max`, in whole characters.
pub fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// The name that an identifier stands for: lower case unless quoted, cut to [`NAME_BYTES_MAX`].
pub fn fold(ident: &Ident) -> String {
    let mut name = if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() };
    name.truncate(cut(&name, NAME_BYTES_MAX).len());
    name
}

/// Whether a name is read back without quotes.
pub fn is_bare(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && keyword::find(name).is_none_or(|word| word.category == Category::Unreserved)
}

/// A name as PostgreSQL's `quote_ident` writes it: quoted only if it must be.
pub fn quote_identifier(name: &str) -> String {
    if is_bare(name) { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// `name`, or `schema.name`, each quoted if it must be.
pub fn quote_qualified(schema: Option<&str>, name: &str) -> String {
    match schema {
        Some(schema) => format!("{}.{}", quote_identifier(schema), quote_identifier(name)),
        None => quote_identifier(name),
    }
}

/// The parts of `schema.name`, unquoted, folded and cut.
///
/// # Errors
/// 42602 for an empty or open part, and for anything beside it but a dot.
pub fn split_name(text: &str) -> Result<Vec<String>, SqlError> {
    let invalid = || SqlError::new(SqlState(*b"42602"), "invalid name syntax");
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let part = if let Some(quoted) = rest.strip_prefix('"') {
            let (part, length) = unquote(quoted).ok_or_else(invalid)?;
            rest = &quoted[length..];
            part
        } else {
            let (part, after) = rest.split_at(rest.find(|c: char| c == '.' || c.is_whitespace()).unwrap_or(rest.len()));
            rest = after;
            if part.is_empty() {
                return Err(invalid());
            }
            part.to_lowercase()
        };
        parts.push(cut(&part, NAME_BYTES_MAX).to_owned());
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(after) => rest = after.trim_start(),
            None if rest.is_empty() => return Ok(parts),
            None => return Err(invalid()),
        }
    }
}

/// The name in a text that begins behind a quote, and the bytes up to behind the closing one.
fn unquote(text: &str) -> Option<(String, usize)> {
    let mut name = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c != '"' {
            name.push(c);
        } else if chars.next_if(|(_, next)| *next == '"').is_some() {
            name.push('"');
        } else {
            return Some((name, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests;
