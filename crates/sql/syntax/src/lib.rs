//! Statement text to commands.
//!
//! Problem: the library's parser reads queries and DML well, but fails on, or silently drops parts of, the statements that
//! tools send around them. Idea: tokens come from the library; each statement is looked at by its first words. Session and DDL
//! statements are read by a grammar of ours, which refuses what it does not know; queries and DML go to the library after a
//! small rewrite of what it cannot read. Decision 0051.
//!
//! 1. A whole text is parsed before any of it runs: a syntax error anywhere stops all of it, as in PostgreSQL.
//! 2. Every word of a statement is read or refused; nothing is dropped without a notice.
//! 3. Length, depth and work are bounded: [`TEXT_BYTES_MAX`], [`depth`], `grammar`.

pub mod command;
pub mod ddl;
pub mod depth;
pub(crate) mod distinct_from;
pub mod explain;
pub mod forms;
mod grammar;
mod lexer;
pub mod marks;
mod name;
mod naming;
mod operator;
mod reach;
mod reader;
pub mod reshape;
mod rewrite;

mod alter;
mod comment;
mod control;
mod copy;
mod create;
mod create_table;
mod cursor;
mod drop;
mod grant;
mod setting;
pub mod view;

pub use command::*;
pub use create::no_tablespace;
pub use ddl::*;
pub use name::{Name, quote_literal};
pub use naming::output_name;
pub use rewrite::{key_lock, lock_words};

use depth::Depth;
use lexer::Lexed;
use reader::Reader;
use sql_catalog as catalog;
use sql_value::{Attempt, SqlError, SqlState, identifier, transaction, types, work};
use std::sync::Arc;
use work::Pace;

/// Greatest length of one text, bytes.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Units of work of reading one statement, beside those of its text.
const STATEMENT_UNITS: usize = 4_096;
/// Units of work of one look at a token: each pass over all of them says so ([`passed`]).
const TOKEN_UNITS: usize = 16;
/// Most statements in one text.
pub(crate) const STATEMENTS_MAX: usize = 100_000;

/// One statement of a text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// What it asks for.
    pub command: Command,
    /// Its own text, without the semicolon.
    pub text: Arc<str>,
    /// Characters of the whole text before it: added to error positions.
    pub offset: u32,
}

/// A pass over so many tokens is done.
fn passed(tokens: usize) -> Result<(), SqlError> {
    crate::work::step(tokens.saturating_mul(TOKEN_UNITS))
}

/// Parses a text of any number of statements; empty ones are left out.
///
/// # Errors
/// 42601 with the position; 54000 and 54001 beyond the bounds; 0A000 for what is known and not offered.
pub fn parse(text: &str) -> Result<Vec<Parsed>, SqlError> {
    parse_at(text, &Pace::default())
}

/// As [`parse`], for a statement that may be ended.
///
/// # Errors
/// As [`parse`], and 57014.
pub fn parse_at(text: &str, pace: &Pace) -> Result<Vec<Parsed>, SqlError> {
    let lexed = Lexed::new(text)?;
    let mut all = Vec::new();
    for tokens in lexed.statements() {
        let (start, end) = lexed.extent(tokens.clone());
        crate::work::step(STATEMENT_UNITS + (end - start.0))?;
        let mut reader = Reader::new(&lexed, tokens, pace);
        let command = statement(&mut reader)?;
        reader.expect_end()?;
        match command {
            // Short for a query: it is that query from here on.
            Command::ShowQuery(query) => all.extend(parse_at(&query, pace)?),
            command => all.push(Parsed { command, text: text[start.0..end].into(), offset: start.1 }),
        }
    }
    Ok(all)
}

/// Parses an expression alone, as the catalog keeps it.
///
/// # Errors
/// As [`parse`].
pub fn parse_expression(text: &str) -> Result<sqlparser::ast::Expr, SqlError> {
    let (lexed, pace) = (Lexed::new(text)?, Pace::default());
    let mut reader = Reader::new(&lexed, 0..lexed.tokens.len(), &pace);
    let expr = reader.expression()?;
    reader.expect_end()?;
    Ok(expr)
}

/// Parses the name of a type alone.
///
/// # Errors
/// As [`parse`].
pub fn parse_type(text: &str) -> Result<sqlparser::ast::DataType, SqlError> {
    let (lexed, pace) = (Lexed::new(text)?, Pace::default());
    let mut reader = Reader::new(&lexed, 0..lexed.tokens.len(), &pace);
    let ty = reader.data_type()?;
    reader.expect_end()?;
    Ok(ty)
}

/// The query of a view, and how deep its text nests.
///
/// # Errors
/// As [`parse`].
pub fn parse_query(text: &str, pace: &Pace) -> Result<(Box<sqlparser::ast::Query>, Depth), SqlError> {
    let lexed = Lexed::new(text)?;
    let mut reader = Reader::new(&lexed, 0..lexed.tokens.len(), pace);
    if let Command::Planned(Planned { statement: sqlparser::ast::Statement::Query(query), .. }) =
        statement(&mut reader)?
    {
        reader.expect_end()?;
        return Ok((query, lexed.depth));
    }
    Err(reader.error_at(0))
}

/// One statement, up to its end or to what cannot be part of it.
fn statement(r: &mut Reader) -> Result<Command, SqlError> {
    let Some(first) = r.peek_word() else {
        return rewrite::query_or_dml(r);
    };
    match first.to_ascii_uppercase().as_str() {
        "BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "ABORT" | "SAVEPOINT" | "RELEASE" => control::parse(r),
        "SET" | "SHOW" | "RESET" | "DISCARD" => setting::parse(r),
        "PREPARE" | "EXECUTE" | "DEALLOCATE" | "EXPLAIN" | "DECLARE" | "FETCH" | "MOVE" | "CLOSE" => cursor::parse(r),
        "COPY" => copy::parse(r),
        "CREATE" => create::parse(r),
        "ALTER" => alter::parse(r),
        "DROP" | "TRUNCATE" | "COMMENT" => drop::parse(r),
        "GRANT" | "REVOKE" => grant::parse(r),
        "ANALYZE" | "ANALYSE" | "VACUUM" | "CHECKPOINT" | "CLUSTER" | "REINDEX" | "LOCK" | "LISTEN" | "UNLISTEN"
        | "NOTIFY" | "DO" | "CALL" | "MERGE" | "LOAD" | "REASSIGN" | "SECURITY" | "IMPORT" | "REFRESH" => {
            control::upkeep(r)
        }
        "SELECT" | "VALUES" | "TABLE" | "WITH" | "INSERT" | "UPDATE" | "DELETE" => rewrite::query_or_dml(r),
        _ => Err(r.error_here()),
    }
}

#[cfg(test)]
mod tests;
