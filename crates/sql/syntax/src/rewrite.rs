//! Queries and DML: what the library cannot read is taken out of the tokens first, and remembered.

use super::command::{Command, Planned};
use super::control::as_of;
use super::ddl::Ddl;
use super::locking::KEY_LOCK;
use super::name::Name;
use super::reader::{Reader, word_of};
use super::{Inference, Overriding};
use super::{reach, reshape, tokens, unmark};
use crate::SqlError;
use sqlparser::ast::{Query, SetExpr, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::sync::Arc;

/// What queries and statements that write rows begin with, beside a parenthesis.
const QUERY_OR_DML: [&str; 7] = ["SELECT", "VALUES", "TABLE", "WITH", "INSERT", "UPDATE", "DELETE"];

/// Reads a query or DML statement to its end.
pub(super) fn query_or_dml(r: &mut Reader) -> Result<Command, SqlError> {
    // The library reads statements that hold statements (EXPLAIN EXPLAIN ..), as deep as they are many.
    let begins = |word: &str| QUERY_OR_DML.iter().any(|known| word.eq_ignore_ascii_case(known));
    if !r.peek_word().map_or(r.peek() == Some(&Token::LParen), begins) {
        return Err(r.error_here());
    }
    let start = r.at;
    let text: Arc<str> = r.lexed.slice(r.rest()).into();
    let mut found = Found::default();
    let rewritten = rewrite(r, &mut found)?;
    super::passed(rewritten.len())?;
    let (tokens, marked) = reshape::apply(rewritten);
    super::passed(tokens.len())?;
    r.at = start;
    let mut statement = r.library_statement(tokens)?;
    if marked {
        super::passed(r.at - start)?;
        unmark::mend(&mut statement)?;
    }
    let allowed =
        matches!(statement, Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_));
    if !allowed {
        return Err(r.error_at(start));
    }
    if let Some(name) = select_into(&mut statement) {
        let Some(name) = Name::from_object(&name) else { return Err(r.error_at(start)) };
        // The text keeps its INTO; the planner goes by the tree.
        let query = Arc::new(Planned { statement, as_of: found.as_of, overriding: None, inference: None });
        return Ok(Command::Ddl(Box::new(Ddl::CreateTableAs {
            name,
            columns: Vec::new(),
            if_not_exists: false,
            query,
            text,
            no_data: false,
        })));
    }
    let Found { as_of, overriding, inference } = found;
    Ok(Command::Planned(Planned { statement, as_of, overriding, inference }))
}

fn select_into(statement: &mut Statement) -> Option<sqlparser::ast::ObjectName> {
    let Statement::Query(query) = statement else { return None };
    fn first(query: &mut Query) -> Option<&mut sqlparser::ast::Select> {
        match query.body.as_mut() {
            SetExpr::Select(select) => Some(select),
            SetExpr::Query(inner) => first(inner),
            _ => None,
        }
    }
    first(query)?.into.take().map(|into| into.name)
}

#[derive(Default)]
struct Found {
    as_of: Option<super::command::AsOf>,
    overriding: Option<Overriding>,
    inference: Option<Arc<Inference>>,
}

/// DISTINCT has a list behind it, which the library takes a clause for.
fn refuse_bare_distinct(r: &Reader) -> Result<(), SqlError> {
    let mut n = 2;
    if r.is_word_at(n, "ON") && r.peek_nth(n + 1) == Some(&Token::LParen) {
        let mut depth = 0usize;
        n += 1;
        while let Some(token) = r.peek_nth(n) {
            n += 1;
            match token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 1 => break,
                Token::RParen => depth -= 1,
                _ => {}
            }
        }
    }
    if r.is_word_at(n, "FROM") || tokens::ends_a_list(r.peek_nth(n)) { Err(r.error_at(r.at + n)) } else { Ok(()) }
}

/// The statement's tokens as the library can read them.
fn rewrite(r: &mut Reader, found: &mut Found) -> Result<Vec<TokenWithSpan>, SqlError> {
    let mut out = Vec::with_capacity(r.rest().len());
    let mut marks = Vec::new();
    while let Some(token) = r.peek() {
        let Some(word) = word_of(token) else {
            out.push(r.lexed.tokens[r.at].clone());
            r.at += 1;
            continue;
        };
        let first = word.as_bytes().first().map(u8::to_ascii_uppercase);
        if first == Some(b'A') && r.take("AS OF SYSTEM TIME") {
            let start = r.at;
            let value = as_of(r)?;
            if found.as_of.as_ref().is_some_and(|known| *known != value) {
                return Err(SqlError::unsupported("more than one time in AS OF SYSTEM TIME")
                    .hint("Name the time once: the whole statement reads one snapshot."));
            }
            debug_assert!(r.at > start);
            found.as_of = Some(value);
            marks.push(out.len());
            continue;
        }
        if first == Some(b'S') && r.peek_words("SELECT DISTINCT") {
            refuse_bare_distinct(r)?;
        }
        if first == Some(b'O') && r.take("OVERRIDING SYSTEM VALUE") {
            found.overriding = Some(Overriding::System);
            continue;
        }
        if first == Some(b'O') && r.take("OVERRIDING USER VALUE") {
            found.overriding = Some(Overriding::User);
            continue;
        }
        if first == Some(b'O') && r.peek_words("ON CONFLICT") && r.peek_nth(2) == Some(&Token::LParen) {
            out.extend((0..2).map(|n| r.lexed.tokens[r.at + n].clone()));
            r.at += 2;
            inference(r, found, &mut out)?;
            continue;
        }
        if first == Some(b'F') && (r.peek_words("FOR NO KEY UPDATE") || r.peek_words("FOR KEY SHARE")) {
            key_lock_clause(r, &mut out);
            continue;
        }
        if first == Some(b'B') && r.peek_words("BETWEEN ASYMMETRIC") {
            out.push(r.lexed.tokens[r.at].clone());
            r.at += 2;
            continue;
        }
        let mut token = r.lexed.tokens[r.at].clone();
        r.at += 1;
        let calls = r.peek() == Some(&Token::LParen);
        if let Token::Word(word) = &mut token.token
            && (word.keyword == Keyword::TOP || (word.keyword == Keyword::UNNEST && !calls))
        {
            // A name to PostgreSQL, which has no SELECT TOP.
            word.keyword = Keyword::NoKeyword;
        }
        out.push(token);
    }
    reach::check(&out, &marks)?;
    if matches!(out.first().map(|t| &t.token), Some(Token::Word(w)) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case("TABLE"))
        && out.len() > 1
    {
        return table_query(r, out);
    }
    Ok(out)
}

/// `FOR KEY SHARE` and `FOR NO KEY UPDATE` become `FOR SHARE` and `FOR UPDATE` with a mark in OF: see [`super::locking`].
fn key_lock_clause(r: &mut Reader, out: &mut Vec<TokenWithSpan>) {
    let keep = if r.peek_words("FOR KEY SHARE") { [0, 2] } else { [0, 3] };
    out.extend(keep.iter().map(|n| r.lexed.tokens[r.at + n].clone()));
    let span = r.lexed.tokens[r.at + keep[1]].span;
    r.at += keep[1] + 1;
    out.push(TokenWithSpan { token: Token::make_keyword("OF"), span });
    out.push(TokenWithSpan { token: Token::make_word(KEY_LOCK, Some('"')), span });
    if r.take("OF") {
        out.push(TokenWithSpan { token: Token::Period, span });
    }
}

/// `TABLE x ..` is short for `SELECT * FROM x ..`.
fn table_query(r: &mut Reader, tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, SqlError> {
    let span = tokens[0].span;
    let word = |text: &str| TokenWithSpan { token: Token::make_keyword(text), span };
    let mut out = vec![word("SELECT"), TokenWithSpan { token: Token::Mul, span }, word("FROM")];
    out.extend(tokens.into_iter().skip(1));
    let _ = r;
    Ok(out)
}

/// The target of ON CONFLICT: columns stay in the tokens; expressions and a predicate, which the library cannot read, are taken out.
fn inference(r: &mut Reader, found: &mut Found, out: &mut Vec<TokenWithSpan>) -> Result<(), SqlError> {
    let start = r.at;
    let inside = r.parens()?;
    let plain = r.lexed.tokens[inside].iter().all(|t| matches!(t.token, Token::Word(_) | Token::Comma));
    if plain && !r.peek_words("WHERE") {
        out.extend(r.lexed.tokens[start..r.at].iter().cloned());
        return Ok(());
    }
    r.at = start + 1;
    let keys = r.separated(|r| {
        let key = r.expression()?;
        // COLLATE is the expression's; an operator class says nothing here.
        if r.peek_word().is_some_and(|word| word.to_ascii_lowercase().ends_with("_ops")) {
            r.next();
        }
        Ok(key)
    })?;
    r.expect_token(&Token::RParen)?;
    let predicate = if r.take("WHERE") { Some(r.expression()?) } else { None };
    found.inference = Some(Arc::new(Inference { keys, predicate }));
    Ok(())
}
