//! What commands name that do nothing with it but look whether it is there: types, languages, functions, tablespaces.

use super::command::{Mentions, Routine};
use super::reader::Reader;
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use sqlparser::tokenizer::Token;

const LANGUAGES: &[&str] = &["internal", "c", "sql", "plpgsql"];

/// A type.
pub(super) fn a_type(r: &mut Reader, mentions: &mut Mentions) -> Result<(), SqlError> {
    if let Err(error) = SqlType::from_ast(&r.data_type()?) {
        mentions.missing.get_or_insert(error);
    }
    Ok(())
}

/// A domain: there is none.
pub(super) fn domain(r: &mut Reader, mentions: &mut Mentions) -> Result<(), SqlError> {
    let start = r.at;
    let ty = r.data_type()?;
    let name = r.lexed.slice(start..r.at).trim().to_string();
    mentions.missing = Some(match SqlType::from_ast(&ty) {
        Ok(_) => SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a domain")),
        Err(_) => no_type(&name),
    });
    Ok(())
}

/// A language.
pub(super) fn language(r: &mut Reader, mentions: &mut Mentions) -> Result<(), SqlError> {
    let name = r.identifier()?;
    if !LANGUAGES.contains(&name.as_str()) {
        mentions.missing = Some(missing(format!("language \"{name}\" does not exist")));
    }
    Ok(())
}

/// A tablespace.
pub(super) fn tablespace(r: &mut Reader, mentions: &mut Mentions) -> Result<(), SqlError> {
    if let Err(error) = check_tablespace(&r.identifier()?) {
        mentions.missing = Some(error);
    }
    Ok(())
}

pub(super) fn missing(message: String) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}

pub(super) fn no_type(name: &str) -> SqlError {
    missing(format!("type \"{name}\" does not exist"))
}

/// The word before a function.
pub(super) fn routine_word(r: &mut Reader) -> Option<&'static str> {
    let words =
        [("FUNCTION", "function"), ("PROCEDURE", "procedure"), ("ROUTINE", "routine"), ("AGGREGATE", "aggregate")];
    words.into_iter().find(|(word, _)| r.take(word)).map(|(_, word)| word)
}

/// A function, with the types of its arguments if they are there.
pub(super) fn routine(r: &mut Reader, word: &'static str) -> Result<Routine, SqlError> {
    let name = r.name()?;
    if !r.take_token(&Token::LParen) {
        return Ok(Routine { word, name, arguments: None });
    }
    let mut types: Vec<String> = Vec::new();
    // A name may stand before a type, which then is what is read first.
    let mut named = false;
    while !r.take_token(&Token::RParen) {
        if r.take_token(&Token::Mul) {
            continue;
        }
        if r.take_token(&Token::Comma) || r.take("ORDER BY") {
            named = false;
            continue;
        }
        let _ = ["IN", "INOUT", "VARIADIC"].iter().any(|mode| r.take(mode));
        let start = r.at;
        let ty = r.data_type()?;
        let text =
            SqlType::from_ast(&ty).map_or_else(|_| r.lexed.slice(start..r.at).trim().to_string(), |ty| ty.to_string());
        if named {
            types.pop();
        }
        types.push(text);
        named = true;
    }
    Ok(Routine { word, name, arguments: Some(types) })
}

/// There are the two that PostgreSQL begins with, and none can be made.
pub(super) fn check_tablespace(name: &str) -> Result<(), SqlError> {
    if matches!(name, "pg_default" | "pg_global") { Ok(()) } else { Err(no_tablespace(name)) }
}

/// 42704
pub fn no_tablespace(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("tablespace \"{name}\" does not exist"))
}
