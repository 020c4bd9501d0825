//! LIKE over the bytes of a text.
//!
//! A pattern of letters and `%` is its parts between the `%`: the first one begins the text, the last one ends it, and the others lie between them in
//! their order, each as early as it can be. Parts are whole characters, and no character of UTF-8 begins within another: what is found among the
//! bytes is found among the characters. Patterns with `_` or a backslash stay with the evaluator.

use crate::SqlError;
use crate::work;
use memchr::memmem::Finder;

/// A longer part is the evaluator's: each of its bytes may be tried at each place of a text.
const PART_BYTES_MAX: usize = 64;
/// Of texts from here on it is said that they were looked through, so that the statement can be ended.
const COUNTED_BYTES_MIN: usize = 4 << 10;

/// A pattern of LIKE with the backslash for its escape.
#[derive(Debug)]
pub(super) struct Pattern {
    /// What the text begins with.
    first: Box<[u8]>,
    middle: Box<[Finder<'static>]>,
    /// What it ends with behind them; `None`: there is no `%`, the text is the pattern.
    last: Option<Box<[u8]>>,
}

impl Pattern {
    /// `None`: it is the evaluator's.
    pub(super) fn new(pattern: &str) -> Option<Pattern> {
        if pattern.contains(['_', '\\']) || pattern.split('%').any(|part| part.len() > PART_BYTES_MAX) {
            return None;
        }
        let mut parts = pattern.split('%').map(str::as_bytes);
        let first = parts.next()?.into();
        let last = parts.next_back().map(Box::from);
        // Two `%` are as one.
        let middle = parts.filter(|part| !part.is_empty()).map(|part| Finder::new(part).into_owned()).collect();
        Some(Pattern { first, middle, last })
    }

    /// Whether a text matches.
    ///
    /// # Errors
    /// Those of a statement that is ended.
    pub(super) fn matches(&self, text: &[u8]) -> Result<bool, SqlError> {
        let Some(last) = &self.last else { return Ok(*text == *self.first) };
        let Some(rest) = text.strip_prefix(self.first.as_ref()) else { return Ok(false) };
        let Some(mut rest) = rest.strip_suffix(last.as_ref()) else { return Ok(false) };
        if text.len() >= COUNTED_BYTES_MIN {
            work::step(text.len())?;
        }
        for part in &self.middle {
            let Some(at) = part.find(rest) else { return Ok(false) };
            rest = &rest[at + part.needle().len()..];
        }
        Ok(true)
    }
}
