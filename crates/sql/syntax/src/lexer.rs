//! Tokens of a text, with places in bytes and characters.

use super::depth::{self, Depth};
use super::literal_rows;
use super::operator::{self, Unread};
use super::{STATEMENTS_MAX, TEXT_BYTES_MAX};
use crate::work::Pooled;
use crate::{SqlError, SqlState};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Whitespace};
use std::ops::Range;

/// A text in tokens; white space and comments are left out.
pub(super) struct Lexed<'a> {
    text: &'a str,
    pub(super) tokens: Vec<TokenWithSpan>,
    pub(super) depth: Depth,
    /// Byte and character where each line begins.
    lines: Vec<(usize, u32)>,
    /// The byte of each character whose number is a multiple of [`MARK_CHARACTERS`]: a text may be one line.
    marks: Vec<usize>,
    /// What the tokens take.
    memory: Pooled,
}

/// Characters between two that are known by place.
const MARK_CHARACTERS: usize = 256;

/// A byte and a character of a text.
pub(super) type Place = (usize, u32);

/// Whether a text may have so many statements: of one that has more, none runs.
///
/// # Errors
/// 54000 beyond [`STATEMENTS_MAX`].
pub(super) fn counted(statements: usize) -> Result<(), SqlError> {
    if statements <= STATEMENTS_MAX {
        return Ok(());
    }
    let message = format!("the text has more than {STATEMENTS_MAX} statements");
    Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
        .hint("None of them was run. Send them in several messages, or load data with COPY."))
}

/// Whether a text may be so long.
///
/// # Errors
/// 54000 beyond [`TEXT_BYTES_MAX`].
pub(super) fn fits(text: &str) -> Result<(), SqlError> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    let message = format!("the statement text has {} bytes, more than the limit of {TEXT_BYTES_MAX}", text.len());
    Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint("Split it, or load data with COPY."))
}

impl<'a> Lexed<'a> {
    /// Of a text as a client sent it: of many rows of literals there is one token ([`literal_rows`]).
    pub(super) fn new(text: &'a str) -> Result<Self, SqlError> {
        Lexed::with(text, true)
    }

    /// Of a text that was printed by us: what comes of it is printed again, so it has all its tokens.
    pub(super) fn of_printed(text: &'a str) -> Result<Self, SqlError> {
        Lexed::with(text, false)
    }

    fn with(text: &'a str, keeps: bool) -> Result<Self, SqlError> {
        fits(text)?;
        let mut lexed = Lexed {
            text,
            tokens: Vec::new(),
            depth: Depth::default(),
            lines: lines(text),
            marks: marks(text),
            memory: super::memory_of(text),
        };
        let kept = if keeps { literal_rows::find(text) } else { Vec::new() };
        crate::work::step(text.len())?;
        match operator::tokens(text, &kept, &lexed.memory) {
            Ok(tokens) => {
                lexed.tokens = continued(tokens).map_err(|at| {
                    let (start, place) = lexed.place(at.start);
                    let shown = &text[start..lexed.place(at.end).0];
                    let message = format!("syntax error at or near \"{}\"", shown.trim_end());
                    let mut error = SqlError::new(SqlState::SYNTAX_ERROR, message);
                    error.position = Some(place + 1);
                    error
                })?;
                super::passed(lexed.tokens.len())?;
                lexed.tokens.retain(|t| !matches!(t.token, Token::Whitespace(_) | Token::EOF));
                super::passed(lexed.tokens.len())?;
                lexed.names()?;
                super::passed(lexed.tokens.len())?;
                // Before anything looks within brackets: those forms are read anew at each level.
                lexed.depth = depth::measure(&lexed.tokens)?;
                super::passed(lexed.tokens.len())?;
                super::forms::tell(&mut lexed.tokens);
                super::passed(lexed.tokens.len())?;
                Ok(lexed)
            }
            Err(Unread::Ended(error)) => Err(error),
            Err(Unread::Junk { what, at }) => {
                let message = format!("trailing junk after {what} at or near \"{}\"", &text[at.clone()]);
                let mut error = SqlError::new(SqlState::SYNTAX_ERROR, message);
                error.position = u32::try_from(text[..at.start].chars().count() + 1).ok();
                Err(error)
            }
            Err(Unread::Text(e)) => {
                let mut error = SqlError::new(SqlState::SYNTAX_ERROR, lower_first(&e.message));
                error.position = Some(lexed.place(e.location).1 + 1);
                Err(error)
            }
        }
    }

    /// Refuses names that the planner keeps for itself: the empty one, and those with a zero character.
    fn names(&self) -> Result<(), SqlError> {
        for token in &self.tokens {
            let Token::Word(word) = &token.token else { continue };
            let message = match word.value.as_str() {
                "" => "zero-length delimited identifier at or near \"\"\"\"",
                name if name.contains('\0') => "an identifier holds a zero character",
                _ => continue,
            };
            let mut error = SqlError::new(SqlState::SYNTAX_ERROR, message);
            error.position = Some(self.place(token.span.start).1 + 1);
            return Err(error);
        }
        Ok(())
    }

    /// Bytes of rows that are kept as text among tokens.
    pub(super) fn kept_bytes(&self, tokens: Range<usize>) -> usize {
        let bytes = |token: &TokenWithSpan| match &token.token {
            Token::TripleDoubleQuotedRawStringLiteral(rows) => rows.len(),
            _ => 0,
        };
        self.tokens[tokens].iter().map(bytes).sum()
    }

    /// The statements' tokens, between semicolons.
    pub(super) fn statements(&self) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        let mut ranges = Vec::new();
        for (i, token) in self.tokens.iter().enumerate() {
            if token.token == Token::SemiColon {
                ranges.push(start..i);
                start = i + 1;
            }
        }
        ranges.push(start..self.tokens.len());
        ranges.into_iter().filter(|r| !r.is_empty())
    }

    /// Where tokens begin, and the byte where they end.
    pub(super) fn extent(&self, tokens: Range<usize>) -> (Place, usize) {
        let start = self.tokens.get(tokens.start).map_or((self.text.len(), 0), |t| self.place(t.span.start));
        // A span's end is where the next token or space begins; the last token may reach to the end of the text.
        let end = match tokens.end.checked_sub(1).and_then(|last| self.tokens.get(last)) {
            Some(last) => self.place(last.span.end).0,
            None => start.0,
        };
        (start, end.max(start.0))
    }

    pub(super) fn slice(&self, tokens: Range<usize>) -> &'a str {
        let (start, end) = self.extent(tokens);
        &self.text[start.0..end]
    }

    /// A line and column, both from 1, as a byte and a character.
    pub(super) fn place(&self, location: Location) -> Place {
        let line = (location.line.max(1) as usize - 1).min(self.lines.len() - 1);
        let (byte, character) = self.lines[line];
        let column = location.column.max(1) as usize - 1;
        let wanted = character as usize + column;
        // From the mark before it, or from the line's beginning if that is nearer.
        let known = match self.marks.get(wanted / MARK_CHARACTERS).or(self.marks.last()) {
            Some(mark) if *mark > byte => {
                (*mark, (wanted / MARK_CHARACTERS).min(self.marks.len() - 1) * MARK_CHARACTERS)
            }
            _ => (byte, character as usize),
        };
        let rest = &self.text[known.0..];
        match rest.char_indices().nth(wanted - known.1) {
            Some((offset, _)) => (known.0 + offset, wanted as u32),
            None => (self.text.len(), (known.1 + rest.chars().count()) as u32),
        }
    }
}

fn marks(text: &str) -> Vec<usize> {
    text.char_indices().step_by(MARK_CHARACTERS).map(|(byte, _)| byte).collect()
}

fn lines(text: &str) -> Vec<Place> {
    let mut lines = vec![(0, 0)];
    let mut characters = 0;
    for (byte, c) in text.char_indices() {
        characters += 1;
        if c == '\n' {
            lines.push((byte + 1, characters));
        }
    }
    lines
}

fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    chars.next().map_or(String::new(), |c| c.to_lowercase().chain(chars).collect())
}

/// Literals that go on in another line: `'multi'`, a line break, `'line'` is one. In the same line they are an error: the place of the
/// second.
fn continued(mut tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, Span> {
    // Those before `kept` are the result: a second list would be as large.
    let mut kept = 0;
    // The place of the literal that may go on, and whether a line break came since.
    let mut open: Option<(usize, bool)> = None;
    for at in 0..tokens.len() {
        match (&tokens[at].token, open) {
            (Token::SingleQuotedString(more), Some((first, true))) => {
                let (more, end) = (more.clone(), tokens[at].span.end);
                if let Token::SingleQuotedString(text)
                | Token::EscapedStringLiteral(text)
                | Token::NationalStringLiteral(text) = &mut tokens[first].token
                {
                    text.push_str(&more);
                }
                tokens[first].span.end = end;
                kept = first + 1;
                open = Some((first, false));
                continue;
            }
            (Token::SingleQuotedString(_), Some((_, false))) => return Err(tokens[at].span),
            (Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::NationalStringLiteral(_), _) => {
                open = Some((kept, false))
            }
            (Token::Whitespace(Whitespace::Newline | Whitespace::SingleLineComment { .. }), Some((first, _))) => {
                open = Some((first, true));
            }
            (Token::Whitespace(_), _) => {}
            _ => open = None,
        }
        tokens.swap(kept, at);
        kept += 1;
    }
    tokens.truncate(kept);
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place is found without walking through its line, and is the one that walking finds.
    #[test]
    fn places_are_those_of_characters() {
        for text in [
            "select 1;".repeat(500),
            "select 'ü€', 1;\n".repeat(500),
            format!("\n\n{}\n1", "é".repeat(5_000)),
            String::new(),
        ] {
            let (lines, marks) = (lines(&text), marks(&text));
            let lexed = Lexed {
                text: &text,
                tokens: Vec::new(),
                depth: Depth::default(),
                lines,
                marks,
                memory: Pooled::default(),
            };
            let (mut line, mut column) = (1, 1);
            let ends = std::iter::once((text.len(), ' '));
            for (character, (byte, c)) in text.char_indices().chain(ends).enumerate() {
                let place = lexed.place(Location { line, column });
                assert_eq!(place, (byte, character as u32), "line {line} column {column}");
                (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
            }
        }
    }
}
