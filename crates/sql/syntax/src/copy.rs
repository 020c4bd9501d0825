//! COPY, in its present form and in the two older ones that tools still send.

use super::command::{Command, Copy, CopyLayout, CopyOptions, CopySource};
use super::lexer::Lexed;
use super::reader::{Reader, string_of};
use super::rewrite;
use crate::work::Pace;
use crate::{SqlError, SqlState};
use sqlparser::tokenizer::Token;
use std::sync::Arc;

pub(super) fn parse(r: &mut Reader) -> Result<Command, SqlError> {
    r.expect("COPY")?;
    let mut options = CopyOptions::default();
    let source = if r.peek() == Some(&Token::LParen) {
        let inside = r.parens()?;
        query(r.lexed, inside, r.pace)?
    } else {
        if r.take("BINARY") {
            options.layout = CopyLayout::Binary;
        }
        let table = r.name()?;
        let columns = if r.peek() == Some(&Token::LParen) { r.identifiers_in_parens()? } else { Vec::new() };
        CopySource::Table(table, columns)
    };
    let from = r.take("FROM");
    if !from {
        r.expect("TO")?;
    }
    let ok = if from { r.take("STDIN") } else { r.take("STDOUT") };
    if !ok {
        let place = if from { "FROM STDIN" } else { "TO STDOUT" };
        if r.peek().and_then(string_of).is_some() || r.peek_words("PROGRAM") {
            return Err(SqlError::unsupported("COPY with a file or a program of the server")
                .hint(format!("Use COPY .. {place}, or psql's \\copy.")));
        }
        return Err(r.error_here());
    }
    if from && matches!(source, CopySource::Query(..)) {
        return Err(r.error_at(r.at - 2));
    }
    r.take("WITH");
    if r.take_token(&Token::LParen) {
        r.separated(|r| option(r, &mut options))?;
        r.expect_token(&Token::RParen)?;
    } else {
        old_options(r, &mut options)?;
    }
    if r.peek_words("WHERE") {
        return Err(SqlError::unsupported("COPY FROM .. WHERE").hint("Load into another table and INSERT .. SELECT."));
    }
    Ok(Command::Copy(Box::new(Copy { source, from, options })))
}

fn query(lexed: &Lexed, inside: std::ops::Range<usize>, pace: &Pace) -> Result<CopySource, SqlError> {
    let text = lexed.slice(inside.clone()).into();
    let mut inner = Reader::new(lexed, inside, pace);
    match rewrite::query_or_dml(&mut inner)? {
        Command::Planned(planned) => Ok(CopySource::Query(Arc::new(planned), text)),
        _ => Err(inner.error_here()),
    }
}

fn option(r: &mut Reader, options: &mut CopyOptions) -> Result<(), SqlError> {
    let name = r.identifier()?;
    match name.as_str() {
        "format" => {
            let format = if r.peek().and_then(string_of).is_some() { r.string()? } else { r.identifier()? };
            options.layout = layout(&format)?;
        }
        "freeze" => options.freeze = flag(r)?,
        "header" => options.header = flag(r)?,
        "delimiter" => options.delimiter = Some(character(r)?),
        "null" => options.null = Some(r.string()?),
        "quote" => options.quote = Some(character(r)?),
        "escape" => options.escape = Some(character(r)?),
        "force_quote" if r.take_token(&Token::Mul) => options.force_quote = Some(Vec::new()),
        "force_quote" => options.force_quote = Some(r.identifiers_in_parens()?),
        "force_not_null" => options.force_not_null = r.identifiers_in_parens()?,
        "force_null" => options.force_null = r.identifiers_in_parens()?,
        "encoding" => encoding(&r.string()?)?,
        "oids" => {
            flag(r)?;
        }
        _ => return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("option \"{name}\" not recognized"))),
    }
    Ok(())
}

fn old_options(r: &mut Reader, options: &mut CopyOptions) -> Result<(), SqlError> {
    while !r.at_end() && !r.peek_words("WHERE") {
        if r.take("CSV") {
            options.layout = CopyLayout::Csv;
        } else if r.take("BINARY") {
            options.layout = CopyLayout::Binary;
        } else if r.take("FREEZE") {
            options.freeze = true;
        } else if r.take("HEADER") {
            options.header = true;
        } else if r.take("DELIMITER") || r.take("DELIMITERS") {
            r.take("AS");
            options.delimiter = Some(character(r)?);
        } else if r.take("NULL") {
            r.take("AS");
            options.null = Some(r.string()?);
        } else if r.take("QUOTE") {
            r.take("AS");
            options.quote = Some(character(r)?);
        } else if r.take("ESCAPE") {
            r.take("AS");
            options.escape = Some(character(r)?);
        } else if r.take("ENCODING") {
            encoding(&r.string()?)?;
        } else {
            return Err(r.error_here());
        }
    }
    Ok(())
}

fn flag(r: &mut Reader) -> Result<bool, SqlError> {
    match r.peek() {
        Some(Token::Word(word)) => {
            r.next();
            match word.value.to_ascii_lowercase().as_str() {
                "on" | "true" => Ok(true),
                "off" | "false" => Ok(false),
                "match" => Err(SqlError::unsupported("COPY .. HEADER MATCH").hint("Use HEADER, and name the columns.")),
                _ => Err(r.error_at(r.at - 1)),
            }
        }
        Some(Token::Number(digits, _)) => {
            r.next();
            Ok(digits != "0")
        }
        Some(token) if string_of(token).is_some() => Ok(matches!(r.string()?.as_str(), "on" | "true" | "1")),
        _ => Ok(true),
    }
}

fn character(r: &mut Reader) -> Result<char, SqlError> {
    let text = r.string()?;
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) if c.is_ascii() => Ok(c),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER,
            "COPY delimiter, quote and escape must each be a single one-byte character",
        )),
    }
}

fn encoding(name: &str) -> Result<(), SqlError> {
    if matches!(name.to_ascii_lowercase().replace('-', "").as_str(), "utf8" | "unicode" | "sql_ascii") {
        return Ok(());
    }
    Err(SqlError::unsupported(format!("the encoding \"{name}\"")).hint("Send UTF8."))
}

fn layout(format: &str) -> Result<CopyLayout, SqlError> {
    match format {
        "csv" => Ok(CopyLayout::Csv),
        "text" => Ok(CopyLayout::Text),
        "binary" => Ok(CopyLayout::Binary),
        _ => Err(SqlError::new(SqlState::INVALID_PARAMETER, format!("COPY format \"{format}\" not recognized"))),
    }
}
