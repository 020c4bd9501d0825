//! Texts of many statements.
//!
//! **Problem.** A text is parsed before any of it runs, and a tree is hundreds of times as large as what it was read from: `select 1;` a
//! hundred thousand times was two gigabytes. **Idea.** A long text is read in pieces of whole statements, and of more than
//! [`TREES_MAX`] statements only the places are kept: each is parsed again when its turn comes.

use super::{Author, Command, Parsed, each_statement, parse_at};
use crate::SqlError;
use crate::work::Pace;
use std::ops::Range;

/// Statements of one text whose trees are kept until they run.
pub const TREES_MAX: usize = 64;

/// The statements of a text.
pub enum Script {
    /// A few.
    Parsed(Vec<Parsed>),
    /// Many: where they are.
    Places(Vec<Place>),
}

/// Where a statement is in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its bytes, without the semicolon.
    pub bytes: Range<usize>,
    /// Characters of the text before it.
    pub offset: u32,
    /// What was asked about it.
    pub answer: bool,
}

impl Script {
    /// Parses a text; of each statement, `ask` is answered.
    ///
    /// # Errors
    /// As [`parse_at`].
    pub fn parse(text: &str, pace: &Pace, ask: fn(&Command) -> bool) -> Result<Script, SqlError> {
        let (mut parsed, mut places) = (Vec::new(), Vec::new());
        each_statement(text, Author::Client, pace, |command, bytes, offset, held| {
            let these = match command {
                Command::ShowQuery(query) => parse_at(&query, pace)?,
                command => vec![Parsed { command, text: text[bytes.clone()].into(), offset, _held: held }],
            };
            places.push(Place { bytes, offset, answer: these.iter().all(|parsed| ask(&parsed.command)) });
            match places.len() {
                ..=TREES_MAX => parsed.extend(these),
                // None of them is wanted any more.
                _ => parsed = Vec::new(),
            }
            Ok(())
        })?;
        Ok(if places.len() > TREES_MAX { Script::Places(places) } else { Script::Parsed(parsed) })
    }
}
