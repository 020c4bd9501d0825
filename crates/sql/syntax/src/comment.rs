//! COMMENT ON: kept of tables and their columns; of all else it is looked that what is named exists.

use super::command::{Command, Mentions};
use super::create::ddl;
use super::ddl::{Ddl, ObjectKind};
use super::name::Name;
use super::named::{a_type, domain, language, missing, no_type, routine, routine_word, tablespace};
use super::reader::Reader;
use crate::SqlError;
use crate::catalog::Collation;
use crate::types::SqlType;
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

const ACCESS_METHODS: &[&str] = &["heap", "btree", "hash", "gist", "gin", "spgist", "brin"];

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

/// What the comment is on, or whose owner is changed.
pub(super) fn named(r: &mut Reader, mentions: &mut Mentions) -> Result<(), SqlError> {
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
            mentions.missing = Some(no_type(&r.name()?.to_string()));
        } else {
            mentions.constraints.push((name, r.name()?));
        }
    } else if let Some(word) = routine_word(r) {
        mentions.functions.push(routine(r, word)?);
    } else if r.take("DOMAIN") {
        domain(r, mentions)?;
    } else if r.take("TYPE") {
        a_type(r, mentions)?;
    } else if let Some(word) = ["TRIGGER", "RULE", "POLICY"].into_iter().find(|word| r.take(word)) {
        let name = r.identifier()?;
        r.expect("ON")?;
        let of = if word == "RULE" { "relation" } else { "table" };
        let relation = r.name()?;
        let message = format!("{} \"{name}\" for {of} \"{relation}\" does not exist", word.to_lowercase());
        mentions.relations.push(relation);
        mentions.missing = Some(missing(message));
    } else if r.take("MATERIALIZED VIEW") || r.take("FOREIGN TABLE") {
        let name = r.name()?;
        mentions.relations.push(name.clone());
        // There is none: whatever has the name is of another kind.
        mentions.kinds.push((ObjectKind::Database, name));
    } else if let Some((_, what)) = NEVER.iter().find(|(words, _)| r.take(words)) {
        mentions.missing = Some(missing(format!("{what} \"{}\" does not exist", r.name()?)));
    } else if r.take("LARGE OBJECT") {
        mentions.missing = Some(missing(format!("large object {} does not exist", r.integer()?)));
    } else if r.take("TABLESPACE") {
        tablespace(r, mentions)?;
    } else if r.take("LANGUAGE") || r.take("PROCEDURAL LANGUAGE") {
        language(r, mentions)?;
    } else {
        built_in(r, mentions)?;
    }
    Ok(())
}

/// What nobody can make here.
fn built_in(r: &mut Reader, mentions: &mut Mentions) -> Result<(), SqlError> {
    let mut lacking = |there: bool, message: String| {
        if !there {
            mentions.missing = Some(missing(message));
        }
    };
    if r.take("COLLATION") {
        let name = r.name()?;
        let message = format!("collation \"{name}\" for encoding \"UTF8\" does not exist");
        lacking(Collation::named(&name.name).is_some(), message);
    } else if r.take("ACCESS METHOD") {
        let name = r.identifier()?;
        lacking(ACCESS_METHODS.contains(&name.as_str()), format!("access method \"{name}\" does not exist"));
    } else if r.take("CONVERSION") {
        lacking(false, format!("conversion \"{}\" does not exist", r.name()?));
    } else if r.take("TEXT SEARCH") {
        let word = r.identifier()?;
        let built_in: &[&str] = match word.as_str() {
            "configuration" | "dictionary" => &["simple", "english"],
            "parser" => &["default"],
            "template" => &["simple", "synonym", "ispell", "thesaurus", "snowball"],
            _ => return Err(r.error_here()),
        };
        let name = r.name()?;
        lacking(built_in.contains(&name.name.as_str()), format!("text search {word} \"{name}\" does not exist"));
    } else if let Some(what) = ["OPERATOR CLASS", "OPERATOR FAMILY"].into_iter().find(|words| r.take(words)) {
        let name = r.name()?;
        r.expect("USING")?;
        let method = r.identifier()?;
        if method == "btree" {
            mentions.classes.push((name, if what == "OPERATOR CLASS" { "operator class" } else { "operator family" }));
        } else {
            lacking(ACCESS_METHODS.contains(&method.as_str()), format!("access method \"{method}\" does not exist"));
        }
    } else if r.take("CAST") {
        if !r.take_token(&Token::LParen) {
            return Err(r.error_here());
        }
        a_type(r, mentions)?;
        r.expect("AS")?;
        a_type(r, mentions)?;
        if !r.take_token(&Token::RParen) {
            return Err(r.error_here());
        }
    } else if r.take("TRANSFORM") {
        r.expect("FOR")?;
        let ty = SqlType::from_ast(&r.data_type()?);
        r.expect("LANGUAGE")?;
        let name = r.identifier()?;
        mentions.missing = Some(match ty {
            Ok(ty) => missing(format!("transform for type {ty} language \"{name}\" does not exist")),
            Err(error) => error,
        });
    } else if r.take("OPERATOR") {
        while !r.at_end() && r.peek() != Some(&Token::LParen) {
            r.next();
        }
        r.parens()?;
    } else {
        return Err(r.error_here());
    }
    Ok(())
}
