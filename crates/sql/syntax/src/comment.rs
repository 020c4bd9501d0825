//! COMMENT ON: kept of tables and their columns; of all else it is looked that what is named exists.

use super::command::{Command, Mentions};
use super::create::{check_tablespace, ddl};
use super::ddl::{Ddl, ObjectKind};
use super::name::Name;
use super::reader::Reader;
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use sqlparser::tokenizer::Token;

/// What can never have been made here, and what its name follows in the error.
const NEVER: &[(&str, &str)] = &[
    ("EVENT TRIGGER", "event trigger"),
    ("FOREIGN DATA WRAPPER", "foreign-data wrapper"),
    ("SERVER", "server"),
    ("PUBLICATION", "publication"),
    ("SUBSCRIPTION", "subscription"),
    ("STATISTICS", "statistics object"),
];

/// What is built in; it is not looked which.
const BUILT_IN: &[&str] = &["COLLATION", "OPERATOR", "CAST", "TEXT SEARCH", "CONVERSION", "TRANSFORM", "ACCESS METHOD"];

const LANGUAGES: &[&str] = &["internal", "c", "sql", "plpgsql"];

fn missing(message: String) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}

/// From the words COMMENT ON on.
pub(super) fn parse(r: &mut Reader) -> Result<Command, SqlError> {
    let column = r.take("COLUMN");
    if column || r.take("TABLE") {
        return kept(r, column);
    }
    let mut mentions = Mentions::default();
    named(r, &mut mentions)?;
    r.expect("IS")?;
    if !r.take("NULL") {
        r.string()?;
    }
    let notice = Some("only comments on tables and their columns are kept".to_string());
    Ok(Command::Nothing { tag: "COMMENT", notice, outside_block: false, mentions: Box::new(mentions) })
}

fn kept(r: &mut Reader, column: bool) -> Result<Command, SqlError> {
    let mut parts = vec![r.identifier()?];
    while r.take_token(&Token::Period) {
        parts.push(r.identifier()?);
    }
    let column = if column { parts.pop() } else { None };
    let (Some(name), schema) = (parts.pop(), parts.pop()) else { return Err(r.error_here()) };
    r.expect("IS")?;
    let text = if r.take("NULL") { None } else { Some(r.string()?) };
    let table = Name { schema, ..Name::bare(name) };
    Ok(ddl(Ddl::Comment { table, column, text: text.filter(|text| !text.is_empty()) }))
}

/// What the comment is on.
fn named(r: &mut Reader, mentions: &mut Mentions) -> Result<(), SqlError> {
    let kinds = [("VIEW", ObjectKind::View), ("INDEX", ObjectKind::Index), ("SEQUENCE", ObjectKind::Sequence)];
    if let Some((_, kind)) = kinds.into_iter().find(|(word, _)| r.take(word)) {
        let name = r.name()?;
        mentions.relations.push(name.clone());
        mentions.kinds.push((kind, name));
    } else if r.take("SCHEMA") {
        mentions.schemas.push(r.identifier()?);
    } else if r.take("DATABASE") {
        mentions.databases.push(r.identifier()?);
    } else if r.take("EXTENSION") {
        mentions.extensions.push(r.identifier()?);
    } else if r.take("ROLE") {
        mentions.roles.push(r.identifier()?);
    } else if r.take("CONSTRAINT") {
        let name = r.identifier()?;
        r.expect("ON")?;
        if r.take("DOMAIN") {
            return Err(no_type(&r.name()?.to_string()));
        }
        mentions.constraints.push((name, r.name()?));
    } else if let Some(word) = ["FUNCTION", "PROCEDURE", "ROUTINE", "AGGREGATE"].into_iter().find(|word| r.take(word)) {
        mentions.functions.push(function(r, word)?);
    } else if r.take("DOMAIN") {
        return Err(no_type(&r.name()?.to_string()));
    } else if r.take("TYPE") {
        SqlType::from_ast(&r.data_type()?)?;
    } else if let Some(word) = ["TRIGGER", "RULE", "POLICY"].into_iter().find(|word| r.take(word)) {
        let name = r.identifier()?;
        r.expect("ON")?;
        let of = if word == "RULE" { "relation" } else { "table" };
        return Err(missing(format!("{} \"{name}\" for {of} \"{}\" does not exist", word.to_lowercase(), r.name()?)));
    } else if r.take("MATERIALIZED VIEW") || r.take("FOREIGN TABLE") {
        let name = r.name()?;
        mentions.relations.push(name.clone());
        // There is none: whatever has the name is of another kind.
        mentions.kinds.push((ObjectKind::Database, name));
    } else if let Some((_, what)) = NEVER.iter().find(|(words, _)| r.take(words)) {
        return Err(missing(format!("{what} \"{}\" does not exist", r.name()?)));
    } else if r.take("LARGE OBJECT") {
        return Err(missing(format!("large object {} does not exist", r.integer()?)));
    } else if r.take("TABLESPACE") {
        check_tablespace(&r.identifier()?)?;
    } else if r.take("LANGUAGE") || r.take("PROCEDURAL LANGUAGE") {
        let name = r.identifier()?;
        if !LANGUAGES.contains(&name.as_str()) {
            return Err(missing(format!("language \"{name}\" does not exist")));
        }
    } else if BUILT_IN.iter().any(|words| r.take(words)) {
        while !r.at_end() && !r.peek_words("IS") {
            r.next();
        }
    } else {
        return Err(r.error_here());
    }
    Ok(())
}

fn no_type(name: &str) -> SqlError {
    missing(format!("type \"{name}\" does not exist"))
}

/// A function's name, and what is said if there is none of it.
fn function(r: &mut Reader, word: &str) -> Result<(String, String), SqlError> {
    let name = r.name()?;
    let word = word.to_lowercase();
    if r.peek() != Some(&Token::LParen) {
        return Ok((name.name.clone(), format!("could not find a {word} named \"{name}\"")));
    }
    r.next();
    let mut types = Vec::new();
    while !r.take_token(&Token::RParen) {
        if r.take_token(&Token::Mul) || r.take_token(&Token::Comma) {
            continue;
        }
        let ty = r.data_type()?;
        types.push(SqlType::from_ast(&ty)?.to_string());
    }
    let message = format!("{word} {name}({}) does not exist", types.join(", "));
    Ok((name.name, message))
}
