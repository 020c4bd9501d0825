//! DROP, TRUNCATE, and the statements about objects that have little effect here: COMMENT, GRANT, REVOKE.

use super::command::Command;
use super::create::ddl;
use super::ddl::{Ddl, ObjectKind};
use super::name::Name;
use super::reader::Reader;
use crate::SqlError;
use sqlparser::tokenizer::Token;

pub(super) fn parse(r: &mut Reader) -> Result<Command, SqlError> {
    if r.take("DROP") {
        return drop(r);
    }
    if r.take("TRUNCATE") {
        return truncate(r);
    }
    if r.take("COMMENT ON") {
        return comment(r);
    }
    let (tag, notice) = if r.take("GRANT") {
        ("GRANT", Some("privileges have no effect: every user may do everything".to_string()))
    } else {
        r.expect("REVOKE")?;
        ("REVOKE", Some("privileges have no effect: every user may do everything".to_string()))
    };
    r.skip_all();
    Ok(Command::Nothing { tag, notice, outside_block: false })
}

fn comment(r: &mut Reader) -> Result<Command, SqlError> {
    let column = r.take("COLUMN");
    if !column && !r.take("TABLE") {
        r.skip_all();
        let notice = Some("only comments on tables and their columns are kept".to_string());
        return Ok(Command::Nothing { tag: "COMMENT", notice, outside_block: false });
    }
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

fn drop(r: &mut Reader) -> Result<Command, SqlError> {
    let kinds = [
        ("TABLE", ObjectKind::Table),
        ("VIEW", ObjectKind::View),
        ("INDEX", ObjectKind::Index),
        ("SEQUENCE", ObjectKind::Sequence),
        ("SCHEMA", ObjectKind::Schema),
        ("DATABASE", ObjectKind::Database),
    ];
    let Some((_, kind)) = kinds.into_iter().find(|(word, _)| r.take(word)) else {
        return other(r);
    };
    if kind == ObjectKind::Index {
        r.take("CONCURRENTLY");
    }
    let if_exists = r.take("IF EXISTS");
    let names = match kind {
        ObjectKind::Schema => r.separated(|r| Ok(Name::bare(r.identifier()?)))?,
        ObjectKind::Database => vec![Name::bare(r.identifier()?)],
        _ => r.names()?,
    };
    if kind == ObjectKind::Database {
        r.take("WITH");
        if r.peek() == Some(&Token::LParen) {
            r.parens()?;
        }
    }
    let cascade = r.take("CASCADE");
    if !cascade {
        r.take("RESTRICT");
    }
    Ok(ddl(Ddl::Drop { kind, names, if_exists, cascade }))
}

/// What does not exist here can be dropped if that is no matter.
fn other(r: &mut Reader) -> Result<Command, SqlError> {
    let kinds = [
        ("EXTENSION", "DROP EXTENSION"),
        ("TYPE", "DROP TYPE"),
        ("DOMAIN", "DROP DOMAIN"),
        ("FUNCTION", "DROP FUNCTION"),
        ("PROCEDURE", "DROP PROCEDURE"),
        ("TRIGGER", "DROP TRIGGER"),
        ("ROLE", "DROP ROLE"),
        ("USER", "DROP USER"),
        ("MATERIALIZED VIEW", "DROP MATERIALIZED VIEW"),
        ("OWNED BY", "DROP OWNED"),
    ];
    let Some((words, tag)) = kinds.into_iter().find(|(words, _)| r.take(words)) else { return Err(r.error_here()) };
    if r.take("IF EXISTS") || tag == "DROP EXTENSION" || tag == "DROP OWNED" {
        r.skip_all();
        let notice = Some(format!("there is no {} here, skipping", words.to_lowercase()));
        return Ok(Command::Nothing { tag, notice, outside_block: false });
    }
    Err(SqlError::unsupported(tag).hint("Leave it out: there is none."))
}

fn truncate(r: &mut Reader) -> Result<Command, SqlError> {
    r.take("TABLE");
    let names = r.tables()?;
    let restart_identity = r.take("RESTART IDENTITY");
    if !restart_identity {
        r.take("CONTINUE IDENTITY");
    }
    let cascade = r.take("CASCADE");
    if !cascade {
        r.take("RESTRICT");
    }
    Ok(ddl(Ddl::Truncate { names, restart_identity, cascade }))
}
