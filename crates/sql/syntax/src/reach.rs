//! What AS OF SYSTEM TIME reaches.
//!
//! Problem: a statement reads one snapshot, so a time that stands at one of its tables is taken for all of them. Idea: that is right
//! where the writer meant all: the clause stands behind the whole FROM of a SELECT, which then holds for everything inside that SELECT,
//! or at each of its tables. Everything else is refused, for it would be answered wrongly without a word.
//!
//! Caveat: this looks at tokens, of which the clause has been taken out; what the library refuses afterwards may pass here.

use super::reader::word_of;
use crate::SqlError;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::collections::BTreeSet;

/// What comes behind a FROM and all that belongs to it.
const BEHIND_FROM: [&str; 11] =
    ["WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "UNION", "EXCEPT", "INTERSECT"];
/// What comes behind a table and is no alias, beside those.
const BEHIND_TABLE: [&str; 11] =
    ["FOR", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "ON", "USING", "TABLESAMPLE"];
/// What stands between two SELECTs of one query.
const BETWEEN_SELECTS: [&str; 3] = ["UNION", "EXCEPT", "INTERSECT"];

fn is(token: Option<&TokenWithSpan>, words: &[&str]) -> bool {
    let word = token.and_then(|token| word_of(&token.token));
    word.is_some_and(|word| words.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

fn is_token(token: Option<&TokenWithSpan>, known: &Token) -> bool {
    token.is_some_and(|token| token.token == *known)
}

/// One SELECT.
#[derive(Default)]
struct Select {
    /// The one around it.
    outer: Option<usize>,
    /// Tables of its FROM, and how many of them have a time.
    tables: usize,
    timed: usize,
    /// A time behind the whole FROM.
    whole: bool,
}

/// A pair of parentheses, or the whole text.
#[derive(Default)]
struct Level {
    select: Option<usize>,
    /// The SELECT around it.
    outer: Option<usize>,
    /// WITH has made its SELECT known before it came.
    announced: bool,
    in_from: bool,
    /// A table comes next.
    expects: bool,
}

struct Walk<'a> {
    tokens: &'a [TokenWithSpan],
    selects: Vec<Select>,
    levels: Vec<Level>,
    parts: BTreeSet<String>,
}

/// Checks that the times written before the tokens `marks` (ascending) hold for all tables of the statement, or for none.
///
/// # Errors
/// 0A000.
pub(super) fn check(tokens: &[TokenWithSpan], marks: &[usize]) -> Result<(), SqlError> {
    if marks.is_empty() {
        return Ok(());
    }
    let mut walk = Walk { tokens, selects: Vec::new(), levels: vec![Level::default()], parts: parts_of_with(tokens) };
    let mut marks = marks.iter().copied().peekable();
    for at in 0..=tokens.len() {
        while marks.next_if_eq(&at).is_some() {
            walk.time(at);
        }
        if at < tokens.len() {
            walk.token(at);
        }
    }
    if (0..walk.selects.len()).all(|select| walk.is_reached(select)) {
        return Ok(());
    }
    Err(SqlError::unsupported("AS OF SYSTEM TIME for some of a statement's tables and not for others").hint(
        "A statement reads one snapshot. Give all its tables the same time, or read it inside BEGIN AS OF SYSTEM TIME .. or after \
         SET TRANSACTION AS OF SYSTEM TIME ..",
    ))
}

impl Walk<'_> {
    fn is_reached(&self, select: usize) -> bool {
        let mut at = Some(select);
        let own = &self.selects[select];
        if own.tables <= own.timed {
            return true;
        }
        while let Some(select) = at {
            if self.selects[select].whole {
                return true;
            }
            at = self.selects[select].outer;
        }
        false
    }

    fn begin(&mut self, level: &mut Level) {
        level.select = Some(self.selects.len());
        self.selects.push(Select { outer: level.outer, ..Select::default() });
    }

    /// A time stands before token `at`.
    fn time(&mut self, at: usize) {
        let Some(Level { select: Some(select), .. }) = self.levels.last() else { return };
        let alias = |at: usize| {
            let next = self.tokens.get(at);
            let word = next.is_some_and(|token| matches!(token.token, Token::Word(_)));
            word && !is(next, &BEHIND_FROM) && !is(next, &BEHIND_TABLE)
        };
        let mut next = at;
        if is(self.tokens.get(at), &["AS"]) {
            next += 2;
        } else if alias(at) {
            next += 1;
        }
        let next = self.tokens.get(next);
        let last = next.is_none()
            || is(next, &BEHIND_FROM)
            || is(next, &["FOR"])
            || is_token(next, &Token::RParen)
            || is_token(next, &Token::SemiColon);
        let select = &mut self.selects[*select];
        select.timed += 1;
        select.whole |= last;
    }

    fn token(&mut self, at: usize) {
        let Some(mut level) = self.levels.pop() else { return };
        let token = &self.tokens[at];
        match &token.token {
            Token::LParen => {
                let mut inner = Level { outer: level.select.or(level.outer), ..Level::default() };
                if std::mem::take(&mut level.expects)
                    && !is(self.tokens.get(at + 1), &["SELECT", "WITH", "VALUES", "TABLE"])
                {
                    // Tables that are joined inside parentheses belong to the FROM around them.
                    inner = Level {
                        select: level.select,
                        outer: level.outer,
                        in_from: true,
                        expects: true,
                        announced: false,
                    };
                }
                self.levels.push(level);
                self.levels.push(inner);
                return;
            }
            Token::RParen => {
                if self.levels.is_empty() {
                    self.levels.push(level);
                }
                return;
            }
            Token::Comma if level.in_from => level.expects = true,
            _ if level.expects => self.table(at, &mut level),
            Token::Word(_) => self.word(at, &mut level),
            _ => {}
        }
        self.levels.push(level);
    }

    fn word(&mut self, at: usize, level: &mut Level) {
        let token = Some(&self.tokens[at]);
        let before = at.checked_sub(1).and_then(|at| self.tokens.get(at));
        if is(token, &["WITH"]) && level.select.is_none() {
            self.begin(level);
            level.announced = true;
        } else if is(token, &["SELECT"]) {
            if !std::mem::take(&mut level.announced) {
                self.begin(level);
            }
            (level.in_from, level.expects) = (false, false);
        } else if is(token, &["TABLE"]) && (level.select.is_none() || is(before, &BETWEEN_SELECTS)) {
            self.begin(level);
            (level.in_from, level.expects) = (true, true);
        } else if is(token, &["FROM"]) && level.select.is_some() && !is(before, &["DISTINCT"]) {
            (level.in_from, level.expects) = (true, true);
        } else if is(token, &["JOIN"]) && level.in_from {
            level.expects = true;
        } else if is(token, &BEHIND_FROM) {
            level.in_from = false;
        }
    }

    /// Where a table may stand.
    fn table(&mut self, at: usize, level: &mut Level) {
        let token = Some(&self.tokens[at]);
        if is(token, &["LATERAL", "ONLY"]) {
            return;
        }
        level.expects = false;
        let Token::Word(word) = &self.tokens[at].token else { return };
        let mut end = at + 1;
        while is_token(self.tokens.get(end), &Token::Period) {
            end += 2;
        }
        let is_function = is_token(self.tokens.get(end), &Token::LParen);
        let is_part = end == at + 1 && self.parts.contains(&word.value.to_ascii_lowercase());
        if let Some(select) = level.select.filter(|_| !is_function && !is_part) {
            self.selects[select].tables += 1;
        }
    }
}

/// Names, in lower case, that a WITH of the statement defines. (Gathered once: a text may have as many tables as words.)
fn parts_of_with(tokens: &[TokenWithSpan]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Word(word) = &token.token else { continue };
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        if !is(before, &["WITH", "RECURSIVE"]) && !is_token(before, &Token::Comma) {
            continue;
        }
        let mut next = at + 1;
        if is_token(tokens.get(next), &Token::LParen) {
            let columns = tokens[next + 1..].iter().take_while(|t| matches!(t.token, Token::Word(_) | Token::Comma));
            next += columns.count() + 2;
        }
        let body = is(tokens.get(next), &["AS"])
            && (is_token(tokens.get(next + 1), &Token::LParen) || is(tokens.get(next + 1), &["MATERIALIZED", "NOT"]));
        if body {
            names.insert(word.value.to_ascii_lowercase());
        }
    }
    names
}
