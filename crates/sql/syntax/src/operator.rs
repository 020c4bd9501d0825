//! Where one operator ends and the next begins, by PostgreSQL's rule.
//!
//! The library takes as many characters as may stand in an operator: `1>=-1` has its `>=-`, which nobody defined. PostgreSQL takes as
//! many, but not the start of a comment, and no `+` or `-` at the end, unless one of ``~ ! @ # % ^ & | ` ?`` stands before it. So the text is
//! walked once, beside strings, names, numbers and comments; where the library would cut otherwise, it is given the text in pieces.

use crate::SqlError;
use crate::work::Pooled;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, TokenizerError};
use std::ops::Range;

/// Operators of several characters that the library reads as PostgreSQL does, if no other operator's character follows.
const KNOWN: &[&str] = &[
    "<=", ">=", "<>", "!=", "=>", "<<", ">>", "||", "&&", "->", "->>", "#>", "#>>", "#-", "@>", "<@", "@@", "@?", "?|",
    "?&", "~*", "!~", "!~*", "~~", "~~*", "!~~", "!~~*", "^@", "|/", "||/",
];

fn is_part(byte: u8) -> bool {
    matches!(
        byte,
        b'+' | b'-'
            | b'*'
            | b'/'
            | b'<'
            | b'>'
            | b'='
            | b'~'
            | b'!'
            | b'@'
            | b'#'
            | b'%'
            | b'^'
            | b'&'
            | b'|'
            | b'`'
            | b'?'
    )
}

fn frees_sign(byte: u8) -> bool {
    matches!(byte, b'~' | b'!' | b'@' | b'#' | b'%' | b'^' | b'&' | b'|' | b'`' | b'?')
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// Operator characters without a space, up to a comment: one operator or several.
#[derive(Clone, Copy, Default)]
struct Together {
    end: usize,
    /// The last that is no sign, and the last but the last character that frees signs.
    no_sign: Option<usize>,
    frees: Option<usize>,
}

impl Together {
    fn from(bytes: &[u8], at: usize) -> Together {
        let mut end = at;
        while end < bytes.len() && is_part(bytes[end]) && !(end > at && starts_comment(&bytes[end..])) {
            end += 1;
        }
        let last = |from: usize, until: usize, is: fn(u8) -> bool| (from..until).rev().find(|i| is(bytes[*i]));
        Together {
            end,
            no_sign: last(at, end, |byte| !matches!(byte, b'+' | b'-')),
            frees: last(at, end - 1, frees_sign),
        }
    }

    /// Where the operator that begins at `at`, within these, ends.
    fn operator_end(&self, at: usize) -> usize {
        if self.frees.is_some_and(|frees| frees >= at) {
            return self.end;
        }
        self.no_sign.map_or(0, |i| i + 1).max(at + 1)
    }
}

pub(super) fn starts_comment(bytes: &[u8]) -> bool {
    bytes.starts_with(b"--") || bytes.starts_with(b"/*")
}

/// Bytes of text that the library reads at once, but for what a single literal has: between two pieces somebody looks whether the
/// statement was ended.
const PIECE_BYTES: usize = 64 << 10;

/// Why a text has no tokens.
#[derive(Debug)]
pub(super) enum Unread {
    /// The library cannot read it.
    Text(TokenizerError),
    /// A number or a parameter that goes on with letters.
    Junk { what: &'static str, at: Range<usize> },
    /// The statement was ended.
    Ended(SqlError),
}

/// Walks a text and names the operators in it.
pub(super) struct Walk<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    /// What is passed unseen: rows of literals.
    kept: &'a [Range<usize>],
    /// The first number or parameter with letters behind it.
    junk: Option<(&'static str, Range<usize>)>,
    /// Places between tokens, so far apart that the text is read in pieces.
    cuts: Vec<usize>,
    /// Ends of statements, as far apart.
    ends: Vec<usize>,
    /// What was looked at last: signs that stand together are one operator each.
    together: Together,
}

impl Iterator for Walk<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        while self.at < self.bytes.len() {
            if let Some(kept) = self.kept.first()
                && self.at >= kept.start
            {
                self.at = kept.end;
                self.kept = &self.kept[1..];
                continue;
            }
            if let Some(operator) = self.token() {
                return Some(operator);
            }
        }
        None
    }
}

impl Walk<'_> {
    /// Passes what comes next, if anything does; gives it if it is an operator.
    pub(super) fn token(&mut self) -> Option<Range<usize>> {
        let &byte = self.bytes.get(self.at)?;
        match byte {
            b'\'' => self.quoted(b'\'', false),
            b'"' => self.quoted(b'"', false),
            b'$' => self.dollar(),
            b'0'..=b'9' => self.number(),
            b'.' if self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit) => self.number(),
            byte if is_name_start(byte) => self.name(),
            b'-' if self.bytes[self.at..].starts_with(b"--") => self.line(),
            b'/' if self.bytes[self.at..].starts_with(b"/*") => self.block(),
            byte if is_part(byte) => {
                let start = self.at;
                if start >= self.together.end {
                    self.together = Together::from(self.bytes, start);
                }
                self.at = self.together.operator_end(start);
                return Some(start..self.at);
            }
            _ => {
                self.at += 1;
                if byte == b';' && self.at >= self.ends.last().copied().unwrap_or(0) + PIECE_BYTES {
                    self.ends.push(self.at);
                }
                if matches!(byte, b' ' | b',' | b'\n')
                    && self.at >= self.cuts.last().copied().unwrap_or(0) + PIECE_BYTES
                {
                    self.cuts.push(self.at);
                }
            }
        }
        None
    }
}

impl Walk<'_> {
    fn quoted(&mut self, quote: u8, escapes: bool) {
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += if escapes && byte == b'\\' { 2 } else { 1 };
            if byte == quote {
                if self.bytes.get(self.at) != Some(&quote) {
                    return;
                }
                self.at += 1;
            }
        }
    }

    /// `$tag$ ... $tag$`, or a parameter.
    fn dollar(&mut self) {
        let rest = &self.bytes[self.at + 1..];
        let is_tag = |byte: &u8| is_name_start(*byte) || byte.is_ascii_digit();
        let length = rest.iter().take_while(|byte| is_tag(byte)).count();
        let opens = rest.get(length) == Some(&b'$') && !rest.first().is_some_and(u8::is_ascii_digit);
        if !opens {
            if rest.first().is_some_and(u8::is_ascii_digit) {
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                self.check_end("parameter", self.at, self.at + 1 + digits);
            }
            self.at += 1 + length;
            return;
        }
        let tag = &self.bytes[self.at..self.at + length + 2];
        let body = self.at + tag.len();
        self.at = memchr::memmem::find(&self.bytes[body..], tag).map_or(self.bytes.len(), |end| body + end + tag.len());
    }

    fn number(&mut self) {
        let digits =
            |at: usize| self.bytes[at.min(self.bytes.len())..].iter().take_while(|b| b.is_ascii_digit()).count();
        let mut at = self.at + digits(self.at);
        if self.bytes.get(at) == Some(&b'.') {
            at += 1 + digits(at + 1);
        }
        if matches!(self.bytes.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.bytes.get(at + 1), Some(b'+' | b'-')));
            let exponent = digits(at + 1 + sign);
            if exponent > 0 {
                at += 1 + sign + exponent;
            }
        }
        self.check_end("numeric literal", self.at, at);
        self.at = at;
    }

    /// Notes a token that a name follows at once.
    fn check_end(&mut self, what: &'static str, start: usize, end: usize) {
        if self.junk.is_none() && self.bytes.get(end).is_some_and(|byte| is_name_start(*byte)) {
            let part = |byte: &&u8| is_name_start(**byte) || byte.is_ascii_digit() || **byte == b'$';
            let length = self.bytes[end..].iter().take_while(part).count();
            self.junk = Some((what, start..end + length));
        }
    }

    fn name(&mut self) {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|b| is_name_start(*b) || b.is_ascii_digit() || *b == b'$') {
            self.at += 1;
        }
        let word = &self.bytes[start..self.at];
        match (word, self.bytes.get(self.at), self.bytes.get(self.at + 1)) {
            (b"e" | b"E", Some(b'\''), _) => self.quoted(b'\'', true),
            // U&'...' and U&"..." have no operator.
            (b"u" | b"U", Some(b'&'), Some(b'\'' | b'"')) => self.at += 1,
            _ => {}
        }
    }

    fn line(&mut self) {
        self.at = memchr::memchr(b'\n', &self.bytes[self.at..]).map_or(self.bytes.len(), |end| self.at + end + 1);
    }

    fn block(&mut self) {
        let mut depth = 0usize;
        while self.at < self.bytes.len() {
            let rest = &self.bytes[self.at..];
            if rest.starts_with(b"/*") {
                depth += 1;
                self.at += 2;
            } else if rest.starts_with(b"*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.at += 1;
            }
        }
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Walk<'a> {
        Walk { bytes, at: 0, kept: &[], junk: None, cuts: Vec::new(), ends: Vec::new(), together: Together::default() }
    }
}

/// A text in pieces of whole statements, each of which is read by itself.
///
/// # Errors
/// 57014
pub(super) fn pieces(text: &str) -> Result<Vec<Range<usize>>, SqlError> {
    let mut ends = Vec::new();
    if text.len() > PIECE_BYTES {
        crate::work::step(text.len())?;
        let mut walk = Walk::new(text.as_bytes());
        walk.by_ref().for_each(drop);
        ends = walk.ends;
    }
    if ends.last() != Some(&text.len()) {
        ends.push(text.len());
    }
    let mut start = 0;
    Ok(ends.into_iter().map(|end| std::mem::replace(&mut start, end)..end).collect())
}

/// The operators of a text that the library would cut otherwise, and among them empty places between tokens, and rows that are kept as they are.
fn misread(text: &str, kept: &[Range<usize>]) -> Result<Vec<Range<usize>>, Unread> {
    let bytes = text.as_bytes();
    let mut walk = Walk { kept, ..Walk::new(bytes) };
    let mut found = Vec::new();
    for operator in walk.by_ref() {
        let followed = bytes.get(operator.end).is_some_and(|byte| is_part(*byte));
        if followed || (operator.len() > 1 && !KNOWN.contains(&&text[operator.clone()])) {
            found.push(operator);
        }
    }
    if let Some((what, at)) = walk.junk {
        return Err(Unread::Junk { what, at });
    }
    if !walk.cuts.is_empty() || !kept.is_empty() {
        found.extend(walk.cuts.iter().map(|cut| *cut..*cut));
        found.extend_from_slice(kept);
        // (A text may be cut where a stretch begins: the cut comes first.)
        found.sort_unstable_by_key(|range| (range.start, range.end));
    }
    Ok(found)
}

/// An operator alone: the library's token if it has one.
fn token(operator: &str) -> Token {
    let alone = Tokenizer::new(&PostgreSqlDialect {}, operator).tokenize();
    match alone.as_deref() {
        Ok([token]) if operator.len() == 1 || KNOWN.contains(&operator) => token.clone(),
        _ => Token::CustomBinaryOperator(operator.to_owned()),
    }
}

/// A place in a text, moved along pieces of it.
struct Cursor {
    line: u64,
    column: u64,
}

impl Cursor {
    fn location(&self) -> Location {
        Location { line: self.line, column: self.column }
    }
    fn pass(&mut self, piece: &str) {
        match piece.rfind('\n') {
            Some(last) => {
                self.line += memchr::memchr_iter(b'\n', piece.as_bytes()).count() as u64;
                self.column = 1 + piece[last + 1..].chars().count() as u64;
            }
            None => self.column += piece.chars().count() as u64,
        }
    }
    /// A place in the piece that begins here, as one in the whole text.
    fn moved(&self, at: Location) -> Location {
        let column = if at.line == 1 { at.column + self.column - 1 } else { at.column };
        Location { line: at.line + self.line - 1, column }
    }
}

/// All tokens of a text, white space and comments among them; they count for `memory`. Of rows of literals that are `kept` as text there is one token.
pub(super) fn tokens(text: &str, kept: &[Range<usize>], memory: &Pooled) -> Result<Vec<TokenWithSpan>, Unread> {
    let misread = misread(text, kept)?;
    crate::work::step(text.len()).map_err(Unread::Ended)?;
    let mut all = Vec::new();
    let mut counted = 0;
    if misread.is_empty() {
        Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location_into_buf(&mut all).map_err(Unread::Text)?;
        return Ok(all);
    }
    let mut cursor = Cursor { line: 1, column: 1 };
    let mut at = 0;
    let mut stretches = kept.iter().peekable();
    for operator in misread.into_iter().map(Some).chain([None]) {
        let piece = &text[at..operator.as_ref().map_or(text.len(), |o| o.start)];
        let moved = |t: TokenWithSpan| TokenWithSpan {
            token: t.token,
            span: Span { start: cursor.moved(t.span.start), end: cursor.moved(t.span.end) },
        };
        Tokenizer::new(&PostgreSqlDialect {}, piece)
            .tokenize_with_location_into_buf_with_mapper(&mut all, moved)
            .map_err(|e| Unread::Text(TokenizerError { message: e.message, location: cursor.moved(e.location) }))?;
        crate::work::step(piece.len()).map_err(Unread::Ended)?;
        memory.take((all.len() - counted) * size_of::<TokenWithSpan>()).map_err(Unread::Ended)?;
        counted = all.len();
        cursor.pass(piece);
        let Some(operator) = operator else { break };
        at = operator.end;
        if operator.is_empty() {
            continue;
        }
        let start = cursor.location();
        cursor.pass(&text[operator.clone()]);
        let span = Span { start, end: cursor.location() };
        let text = &text[operator.clone()];
        if stretches.next_if_eq(&&operator).is_some() {
            memory.take(text.len()).map_err(Unread::Ended)?;
            let rows = Token::TripleDoubleQuotedRawStringLiteral(text.to_owned());
            let tokens = [Token::Comma, Token::LParen, rows, Token::RParen];
            all.extend(tokens.map(|token| TokenWithSpan { token, span }));
        } else {
            all.push(TokenWithSpan { token: token(text), span });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<String> {
        let all = tokens(text, &[], &Pooled::default()).expect("the text has tokens");
        all.iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).map(|t| t.token.to_string()).collect()
    }

    #[test]
    fn signs_end_an_operator_only_behind_special_characters() {
        assert_eq!(cut("1>=-1"), ["1", ">=", "-", "1"]);
        assert_eq!(cut("a*-b"), ["a", "*", "-", "b"]);
        assert_eq!(cut("1+-+-1"), ["1", "+", "-", "+", "-", "1"]);
        assert_eq!(cut("a<@-b"), ["a", "<@-", "b"]);
        assert_eq!(cut("a#-b"), ["a", "#-", "b"]);
        assert_eq!(cut("2^-1"), ["2", "^-", "1"]);
        assert_eq!(cut("1e-5-2e+3"), ["1e-5", "-", "2e+3"]);
        assert_eq!(cut("'a>-b'>-$1"), ["'a>-b'", ">", "-", "$1"]);
        assert_eq!(cut("$x$ >- $$ >- $x$>-1"), ["$x$ >- $$ >- $x$", ">", "-", "1"]);
        assert_eq!(cut("E'\\'>-'>-1"), ["E''>-'", ">", "-", "1"]);
    }

    #[test]
    fn signs_that_stand_together_are_looked_at_once() {
        let signs = 200_000;
        assert_eq!(cut(&"+".repeat(signs)).len(), signs);
        assert_eq!(cut(&"+-@+".repeat(signs)).len(), 1);
    }

    #[test]
    fn comments_end_an_operator() {
        assert_eq!(cut("1>/* ' */=2"), ["1", ">", "=", "2"]);
        assert_eq!(cut("1+--'\n-1"), ["1", "+", "-", "1"]);
        assert_eq!(cut("1+/* /* >- */ */-1"), ["1", "+", "-", "1"]);
    }

    #[test]
    fn pieces_know_their_places() {
        let all = tokens("é >-\n  1 >- 'ü' x", &[], &Pooled::default()).expect("the text has tokens");
        let last = all.last().expect("a last one");
        assert_eq!((last.span.start.line, last.span.start.column), (2, 12));
        let Err(Unread::Text(error)) = tokens("1 >-\n >- 'open", &[], &Pooled::default()) else {
            panic!("the string has no end")
        };
        assert_eq!(error.location.line, 2);
    }
}
