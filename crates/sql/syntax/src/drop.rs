//! DROP, TRUNCATE, COMMENT.

use super::command::{Command, Mentions, Roles};
use super::comment;
use super::create::ddl;
use super::ddl::{Ddl, ObjectKind};
use super::grant;
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
    r.expect("COMMENT ON")?;
    comment::parse(r)
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
    if r.take("EXTENSION") {
        let if_exists = r.take("IF EXISTS");
        let names = r.separated(Reader::identifier)?;
        let _ = r.take("CASCADE") || r.take("RESTRICT");
        return Ok(ddl(Ddl::DropExtension { names, if_exists }));
    }
    if r.take("OWNED BY") {
        let refusal = "cannot drop objects owned by role";
        return owned(r, "DROP OWNED", refusal);
    }
    if r.take("ROLE") || r.take("USER") || r.take("GROUP") {
        let if_exists = r.take("IF EXISTS");
        let mut mentions = Mentions::default();
        grant::roles(r, &mut mentions)?;
        let roles = Roles { tag: "DROP ROLE", names: mentions.roles, if_exists, refusal: "cannot drop role" };
        return Ok(Command::Roles(roles));
    }
    let kinds = [
        ("TYPE", "DROP TYPE"),
        ("DOMAIN", "DROP DOMAIN"),
        ("FUNCTION", "DROP FUNCTION"),
        ("PROCEDURE", "DROP PROCEDURE"),
        ("AGGREGATE", "DROP AGGREGATE"),
        ("TRIGGER", "DROP TRIGGER"),
        ("RULE", "DROP RULE"),
        ("POLICY", "DROP POLICY"),
        ("MATERIALIZED VIEW", "DROP MATERIALIZED VIEW"),
    ];
    let Some((words, tag)) = kinds.into_iter().find(|(words, _)| r.take(words)) else { return Err(r.error_here()) };
    if r.take("IF EXISTS") {
        r.skip_all();
        let notice = Some(format!("there is no {} here, skipping", words.to_lowercase()));
        return Ok(Command::Nothing { tag, notice, outside_block: false, mentions: Box::default() });
    }
    Err(SqlError::unsupported(tag).hint("Leave it out: there is none."))
}

/// DROP OWNED BY and REASSIGN OWNED BY, from the roles on.
pub(super) fn owned(r: &mut Reader, tag: &'static str, refusal: &'static str) -> Result<Command, SqlError> {
    let mut mentions = Mentions::default();
    let start = r.at;
    grant::roles(r, &mut mentions)?;
    if mentions.roles.is_empty() {
        mentions.roles.push(r.lexed.slice(start..r.at).to_lowercase());
    }
    if r.take("TO") {
        grant::role(r, &mut mentions)?;
    }
    let _ = r.take("CASCADE") || r.take("RESTRICT");
    Ok(Command::Roles(Roles { tag, names: mentions.roles, if_exists: false, refusal }))
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
