//! Statement text to commands.
//!
//! Problem: the library's parser reads queries and DML well, but fails on, or silently drops parts of, the statements that
//! tools send around them. Idea: tokens come from the library; each statement is looked at by its first words. Session and DDL
//! statements are read by a grammar of ours, which refuses what it does not know; queries and DML go to the library after a
//! small rewrite of what it cannot read. Decision 0051.
//!
//! 1. A whole text is parsed before any of it runs: a syntax error anywhere stops all of it, as in PostgreSQL.
//! 2. Every word of a statement is read or refused; nothing is dropped without a notice.
//! 3. Of many statements only the places are kept ([`script`]).
//! 4. Length, depth and work are bounded: [`TEXT_BYTES_MAX`], [`depth`], `grammar`.

pub mod command;
pub mod ddl;
pub mod depth;
pub(crate) mod distinct_from;
pub mod element;
pub mod explain;
pub mod forms;
mod grammar;
pub mod grouping;
mod join_alias;
mod lexer;
pub mod lifted;
pub mod literal_rows;
mod locking;
pub mod marks;
mod name;
mod naming;
mod operator;
mod reach;
mod reader;
pub mod regclass;
pub mod reshape;
mod rewrite;
pub mod script;
mod tokens;
pub mod tree;
mod unmark;
mod whole_row;

mod alter;
mod comment;
mod control;
mod copy;
mod create;
mod create_table;
mod cursor;
mod drop;
mod grant;
mod named;
mod setting;
pub mod view;

pub use command::*;
pub use ddl::*;
pub use grant::no_privilege;
pub use locking::{key_lock, lock_words};
pub use name::{Name, quote_literal};
pub use named::no_tablespace;
pub use naming::output_name;

use depth::Depth;
use lexer::Lexed;
use reader::Reader;
use sql_catalog as catalog;
use sql_value::{Attempt, SqlError, SqlState, identifier, transaction, types, work};
use std::ops::Range;
use std::sync::Arc;
use work::{Pace, Pooled};

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
    /// Of the pool, for what it was read to.
    _held: Option<Arc<Pooled>>,
}

/// Longest text, bytes, of which nobody counts what it is read to: texts that a cache keeps are no longer.
const UNCOUNTED_TEXT_BYTES_MAX: usize = 16 << 10;
/// What a token comes to while it is parsed and planned, bytes, about: its copy for the library, and half an expression in the tree and in
/// the plan.
const TREE_BYTES: usize = 400;
/// What of that is there no more once it is parsed, bytes: a prepared statement keeps the rest for its life.
const PARSING_BYTES: usize = 200;

/// How often rows that are kept as text ([`literal_rows`]) are there while they are parsed, beside their token and the text itself: rewritten, for the library, in the
/// tree. The last one stays.
const KEPT_COPIES: usize = 3;

/// Where what a text is read to is counted.
fn memory_of(text: &str) -> Pooled {
    if text.len() > UNCOUNTED_TEXT_BYTES_MAX { Pooled::new() } else { Pooled::default() }
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
    parse_all(text, Author::Client, pace)
}

/// Who wrote a text.
#[derive(Clone, Copy)]
enum Author {
    Client,
    /// See [`Lexed::of_printed`].
    Ourselves,
}

fn parse_all(text: &str, author: Author, pace: &Pace) -> Result<Vec<Parsed>, SqlError> {
    let mut all = Vec::new();
    each_statement(text, author, pace, |command, bytes, offset, held| {
        match command {
            // Short for a query: it is that query from here on.
            Command::ShowQuery(query) => all.extend(parse_at(&query, pace)?),
            command => all.push(Parsed { command, text: text[bytes].into(), offset, _held: held }),
        }
        Ok(())
    })?;
    Ok(all)
}

/// As [`parse`], of a text that was printed by us: all its rows are there, as whoever changes a part of it prints it again.
///
/// # Errors
/// As [`parse`].
pub fn parse_printed(text: &str) -> Result<Vec<Parsed>, SqlError> {
    parse_all(text, Author::Ourselves, &Pace::default())
}

/// Parses the statements of a text one after the other: what each asks for, its bytes, and the characters before it.
fn each_statement(
    text: &str,
    author: Author,
    pace: &Pace,
    mut found: impl FnMut(Command, Range<usize>, u32, Option<Arc<Pooled>>) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    lexer::fits(text)?;
    let (mut characters, mut statements) = (0, 0);
    for piece in operator::pieces(text)? {
        let within = |mut error: SqlError| {
            error.position = error.position.map(|position| position + characters);
            error
        };
        let lexed = match author {
            Author::Client => Lexed::new(&text[piece.clone()]),
            Author::Ourselves => Lexed::of_printed(&text[piece.clone()]),
        };
        let lexed = lexed.map_err(within)?;
        for tokens in lexed.statements() {
            statements += 1;
            lexer::counted(statements)?;
            let (start, end) = lexed.extent(tokens.clone());
            crate::work::step(STATEMENT_UNITS + (end - start.0))?;
            let held = memory_of(text);
            let (words, kept) = (tokens.len(), lexed.kept_bytes(tokens.clone()));
            held.take(words * TREE_BYTES + kept * KEPT_COPIES)?;
            let mut reader = Reader::new(&lexed, tokens, pace);
            let command = statement(&mut reader).map_err(within)?;
            reader.expect_end().map_err(within)?;
            held.settle(words * PARSING_BYTES + kept * (KEPT_COPIES - 1));
            found(
                command,
                piece.start + start.0..piece.start + end,
                characters + start.1,
                held.is_counted().then(|| Arc::new(held)),
            )?;
        }
        characters += text[piece].chars().count() as u32;
    }
    Ok(())
}

/// Parses an expression alone, as the catalog keeps it.
///
/// # Errors
/// As [`parse`].
pub fn parse_expression(text: &str) -> Result<sqlparser::ast::Expr, SqlError> {
    let (lexed, pace) = (Lexed::of_printed(text)?, Pace::default());
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
    let (lexed, pace) = (Lexed::of_printed(text)?, Pace::default());
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
    let lexed = Lexed::of_printed(text)?;
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
