//! Reads one statement's tokens: by our own words, or by the library for expressions, types and queries.

use super::grammar::Grammar;
use super::lexer::Lexed;
use super::name::Name;
use super::{TEXT_BYTES_MAX, distinct_from};
use crate::identifier::fold;
use crate::work::Pace;
use crate::{SqlError, SqlState};
use sqlparser::ast::{DataType, Expr, Statement};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use std::ops::Range;

/// See the module. A cursor over tokens; `at` is the next one.
pub(super) struct Reader<'a> {
    pub(super) lexed: &'a Lexed<'a>,
    pub(super) at: usize,
    end: usize,
    pub(super) pace: &'a Pace,
}

impl<'a> Reader<'a> {
    pub(super) fn new(lexed: &'a Lexed<'a>, tokens: Range<usize>, pace: &'a Pace) -> Self {
        Reader { lexed, at: tokens.start, end: tokens.end, pace }
    }
    pub(super) fn peek(&self) -> Option<&'a Token> {
        self.peek_nth(0)
    }
    pub(super) fn peek_nth(&self, n: usize) -> Option<&'a Token> {
        let at = self.at + n;
        if at < self.end { Some(&self.lexed.tokens[at].token) } else { None }
    }
    pub(super) fn next(&mut self) -> Option<&'a Token> {
        let token = self.peek();
        self.at = (self.at + 1).min(self.end);
        token
    }
    pub(super) fn at_end(&self) -> bool {
        self.at >= self.end
    }
    pub(super) fn rest(&self) -> Range<usize> {
        self.at..self.end
    }
    pub(super) fn skip_all(&mut self) {
        self.at = self.end;
    }

    /// The next token if it is an unquoted word.
    pub(super) fn peek_word(&self) -> Option<&'a str> {
        word_of(self.peek()?)
    }
    pub(super) fn is_word_at(&self, n: usize, word: &str) -> bool {
        self.peek_nth(n).and_then(word_of).is_some_and(|w| w.eq_ignore_ascii_case(word))
    }
    /// Takes these words, all or none. `words` are separated by one space.
    pub(super) fn take(&mut self, words: &str) -> bool {
        let count = words.split(' ').count();
        let found = words.split(' ').enumerate().all(|(n, word)| self.is_word_at(n, word));
        if found {
            self.at += count;
        }
        found
    }
    pub(super) fn peek_words(&self, words: &str) -> bool {
        words.split(' ').enumerate().all(|(n, word)| self.is_word_at(n, word))
    }
    pub(super) fn expect(&mut self, words: &str) -> Result<(), SqlError> {
        if self.take(words) { Ok(()) } else { Err(self.error_here()) }
    }
    pub(super) fn take_token(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        if found {
            self.at += 1;
        }
        found
    }
    pub(super) fn expect_token(&mut self, token: &Token) -> Result<(), SqlError> {
        if self.take_token(token) { Ok(()) } else { Err(self.error_here()) }
    }
    pub(super) fn expect_end(&self) -> Result<(), SqlError> {
        if self.at_end() { Ok(()) } else { Err(self.error_here()) }
    }

    /// `syntax error at or near` the next token.
    pub(super) fn error_here(&self) -> SqlError {
        self.error_at(self.at)
    }
    pub(super) fn error_at(&self, at: usize) -> SqlError {
        let (message, place) = if at < self.end {
            let token = &self.lexed.tokens[at];
            let text = self.lexed.slice(at..at + 1);
            // (Rows that are kept as text begin with their comma.)
            let text = if text.starts_with(',') { "," } else { text };
            (format!("syntax error at or near \"{text}\""), self.lexed.place(token.span.start))
        } else {
            let (_, end) = self.lexed.extent(0..self.end);
            let location = self.end.checked_sub(1).map(|last| self.lexed.tokens[last].span.end);
            let place = location.map_or((end, 0), |l| self.lexed.place(l));
            ("syntax error at end of input".into(), place)
        };
        let mut error = SqlError::new(SqlState::SYNTAX_ERROR, message);
        error.position = Some(place.1 + 1);
        error
    }

    /// An identifier, folded.
    pub(super) fn identifier(&mut self) -> Result<String, SqlError> {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.at += 1;
                Ok(fold(&word.clone().into_ident(sqlparser::tokenizer::Span::empty())))
            }
            _ => Err(self.error_here()),
        }
    }
    /// A qualified name.
    pub(super) fn name(&mut self) -> Result<Name, SqlError> {
        let start = self.at;
        let mut parts = vec![self.identifier()?];
        while self.take_token(&Token::Period) {
            parts.push(self.identifier()?);
        }
        Name::from_parts(parts).ok_or_else(|| self.error_at(start))
    }
    /// Names separated by commas.
    pub(super) fn names(&mut self) -> Result<Vec<Name>, SqlError> {
        self.separated(Reader::name)
    }
    /// Items separated by commas; at least one.
    pub(super) fn separated<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, SqlError>,
    ) -> Result<Vec<T>, SqlError> {
        let mut items = vec![item(self)?];
        while self.take_token(&Token::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }
    /// `[ONLY] a [*], b, ..`: tables have no children, so both words say nothing.
    pub(super) fn tables(&mut self) -> Result<Vec<Name>, SqlError> {
        self.separated(|r| {
            r.take("ONLY");
            let name = r.name()?;
            r.take_token(&Token::Mul);
            Ok(name)
        })
    }
    /// `( a, b, .. )` of identifiers.
    pub(super) fn identifiers_in_parens(&mut self) -> Result<Vec<String>, SqlError> {
        self.expect_token(&Token::LParen)?;
        let items = self.separated(Reader::identifier)?;
        self.expect_token(&Token::RParen)?;
        Ok(items)
    }
    /// A string literal.
    pub(super) fn string(&mut self) -> Result<String, SqlError> {
        let text = self.peek().and_then(string_of).ok_or_else(|| self.error_here())?;
        self.at += 1;
        Ok(text)
    }
    /// A whole number, with a sign or without.
    pub(super) fn integer(&mut self) -> Result<i64, SqlError> {
        let start = self.at;
        let sign = if self.take_token(&Token::Minus) {
            "-"
        } else {
            self.take_token(&Token::Plus);
            ""
        };
        match self.next() {
            Some(Token::Number(digits, _)) => format!("{sign}{digits}").parse().map_err(|_| self.error_at(start)),
            _ => Err(self.error_at(start)),
        }
    }

    /// Skips a parenthesised group, the next token being its opening parenthesis; gives the tokens inside.
    pub(super) fn parens(&mut self) -> Result<Range<usize>, SqlError> {
        self.expect_token(&Token::LParen)?;
        let start = self.at;
        let mut depth = 1;
        while let Some(token) = self.next() {
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(start..self.at - 1);
            }
        }
        Err(self.error_here())
    }

    /// An expression, read by the library.
    pub(super) fn expression(&mut self) -> Result<Expr, SqlError> {
        let mut expr = self.library(|p| p.parse_expr())?;
        distinct_from::mend(&mut expr);
        Ok(expr)
    }
    /// An expression with the text that it was written as.
    pub(super) fn expression_text(&mut self) -> Result<(Expr, String), SqlError> {
        let start = self.at;
        let expr = self.expression()?;
        Ok((expr, self.lexed.slice(start..self.at).to_string()))
    }
    /// The text of a DEFAULT: it ends, at the latest, before a NOT NULL or a COLLATE outside of parentheses, which are the column's.
    pub(super) fn default_text(&mut self) -> Result<String, SqlError> {
        let whole = self.end;
        let mut depth = 0usize;
        for at in self.at..whole {
            match &self.lexed.tokens[at].token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 0 => break,
                Token::RParen => depth -= 1,
                Token::Comma if depth == 0 => break,
                _ => {}
            }
            let n = at - self.at;
            let ends = self.is_word_at(n, "NOT") && self.is_word_at(n + 1, "NULL") || self.is_word_at(n, "COLLATE");
            if depth == 0 && n > 0 && ends {
                self.end = at;
                break;
            }
        }
        let text = self.expression_text();
        self.end = whole;
        Ok(text?.1)
    }
    /// A type, read by the library.
    pub(super) fn data_type(&mut self) -> Result<DataType, SqlError> {
        self.library(|p| p.parse_data_type())
    }
    /// Lets the library read from here on.
    fn library<T>(&mut self, read: impl FnOnce(&mut Parser) -> Result<T, ParserError>) -> Result<T, SqlError> {
        let tokens = self.lexed.tokens[self.part()].to_vec();
        let (value, used) = self.library_on(tokens, read)?;
        self.at = (self.at + used).min(self.end);
        Ok(value)
    }

    /// From here to the comma or bracket that ends a part of a list, and that one: the rest of a long list is not copied for each.
    fn part(&self) -> Range<usize> {
        let mut depth = 0usize;
        let ends = |token: &TokenWithSpan| {
            match &token.token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket | Token::Comma if depth == 0 => return true,
                Token::RParen | Token::RBracket => depth -= 1,
                _ => {}
            }
            false
        };
        let end = self.lexed.tokens[self.rest()].iter().position(ends).map_or(self.end, |n| self.at + n + 1);
        self.at..end
    }

    /// Lets the library read a whole statement from tokens that may have been rewritten.
    pub(super) fn library_statement(&mut self, tokens: Vec<TokenWithSpan>) -> Result<Statement, SqlError> {
        let end = tokens.len();
        let spans: Vec<Location> = tokens.iter().map(|t| t.span.start).collect();
        let mend = distinct_from::is_in(&tokens);
        super::passed(end)?;
        let (mut statement, used) = self.library_on(tokens, |p| p.parse_statement())?;
        if mend {
            super::passed(end)?;
            distinct_from::mend(&mut statement);
        }
        if used < end {
            return Err(self.error_at_location(spans[used]));
        }
        self.skip_all();
        Ok(statement)
    }

    fn library_on<T>(
        &self,
        tokens: Vec<TokenWithSpan>,
        read: impl FnOnce(&mut Parser) -> Result<T, ParserError>,
    ) -> Result<(T, usize), SqlError> {
        let grammar = Grammar::new(tokens.len(), self.pace);
        // How deep the tokens nest is bounded already.
        let mut parser = Parser::new(&grammar).with_recursion_limit(usize::MAX).with_tokens_with_locations(tokens);
        match read(&mut parser) {
            Ok(value) => Ok((value, parser.index())),
            Err(ParserError::RecursionLimitExceeded) => Err(grammar.ended()),
            Err(e) => Err(self.library_error(e, &parser)),
        }
    }

    fn library_error(&self, error: ParserError, parser: &Parser) -> SqlError {
        match error {
            ParserError::RecursionLimitExceeded => super::depth::too_deep(),
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
                let (words, location) = split_location(&message);
                let next = parser.peek_token_ref();
                let location = location.unwrap_or(next.span.start);
                let mut error =
                    if location.line == 0 { self.error_at(self.end) } else { self.error_at_location(location) };
                if words.len() < TEXT_BYTES_MAX / 1024 && !words.is_empty() {
                    error.detail = Some(words.to_string());
                }
                error
            }
        }
    }

    fn error_at_location(&self, location: Location) -> SqlError {
        let at = (self.at..self.end).find(|i| self.lexed.tokens[*i].span.start >= location).unwrap_or(self.end);
        self.error_at(at)
    }
}

pub(super) fn word_of(token: &Token) -> Option<&str> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(&word.value),
        _ => None,
    }
}

pub(super) fn string_of(token: &Token) -> Option<String> {
    match token {
        Token::SingleQuotedString(s) | Token::EscapedStringLiteral(s) | Token::UnicodeStringLiteral(s) => {
            Some(s.clone())
        }
        Token::DollarQuotedString(s) => Some(s.value.clone()),
        _ => None,
    }
}

/// Splits the library's ` at Line: 1, Column: 2` off.
fn split_location(message: &str) -> (&str, Option<Location>) {
    let Some((words, place)) = message.rsplit_once(" at Line: ") else { return (message, None) };
    let Some((line, column)) = place.split_once(", Column: ") else { return (message, None) };
    match (line.trim().parse(), column.trim().parse()) {
        (Ok(line), Ok(column)) => (words, Some(Location { line, column })),
        _ => (message, None),
    }
}
