//! What names roles: GRANT, REVOKE, ALTER DEFAULT PRIVILEGES, OWNER TO, DROP ROLE.
//!
//! There is one role, which may do everything. So a grant to it, and its being the owner, are true already; and what names another
//! role is refused as PostgreSQL refuses it: there is no such role.

use super::command::{Command, Mentions};
use super::reader::Reader;
use crate::{SqlError, SqlState};
use sqlparser::tokenizer::Token;

/// Said where PUBLIC keeps what it is to lose.
const PUBLIC_KEEPS: &str = "privileges have no effect: every user may do everything";

/// What may be granted on something.
const PRIVILEGES: &[&str] = &[
    "all",
    "privileges",
    "select",
    "insert",
    "update",
    "delete",
    "truncate",
    "references",
    "trigger",
    "usage",
    "create",
    "connect",
    "temporary",
    "temp",
    "execute",
    "set",
    "alter",
    "system",
];

/// `GRANT .. [ON objects] TO roles` and `REVOKE .. [ON objects] FROM roles`, from the first word on.
pub(super) fn parse(r: &mut Reader) -> Result<Command, SqlError> {
    let grants = r.take("GRANT");
    if !grants {
        r.expect("REVOKE")?;
    }
    let mut mentions = Mentions::default();
    let public = privileges(r, grants, &mut mentions)?;
    let notice = (public && !grants).then(|| PUBLIC_KEEPS.to_string());
    Ok(nothing(if grants { "GRANT" } else { "REVOKE" }, notice, mentions))
}

/// `ALTER DEFAULT PRIVILEGES`, from the words after it on.
pub(super) fn default_privileges(r: &mut Reader) -> Result<Command, SqlError> {
    let mut mentions = Mentions::default();
    loop {
        if r.take("FOR ROLE") || r.take("FOR USER") {
            roles(r, &mut mentions)?;
        } else if r.take("IN SCHEMA") {
            mentions.schemas.extend(r.separated(Reader::identifier)?);
        } else {
            break;
        }
    }
    let grants = r.take("GRANT");
    if !grants {
        r.expect("REVOKE")?;
    }
    let public = privileges(r, grants, &mut mentions)?;
    let notice = (public && !grants).then(|| PUBLIC_KEEPS.to_string());
    Ok(nothing("ALTER DEFAULT PRIVILEGES", notice, mentions))
}

fn nothing(tag: &'static str, notice: Option<String>, mentions: Mentions) -> Command {
    Command::Nothing { tag, notice, outside_block: false, mentions: Box::new(mentions) }
}

/// What is granted or revoked, on what, and to whom; whether PUBLIC is among them.
fn privileges(r: &mut Reader, grants: bool, mentions: &mut Mentions) -> Result<bool, SqlError> {
    let to = if grants { "TO" } else { "FROM" };
    let _ = r.take("GRANT OPTION FOR") || r.take("ADMIN OPTION FOR");
    let mut words = Vec::new();
    loop {
        if r.peek_words(to) || r.peek_words("ON") {
            break;
        }
        match r.peek() {
            Some(Token::LParen) => {
                r.parens()?;
            }
            Some(Token::Comma) => drop(r.next()),
            _ => words.push(r.identifier()?),
        }
    }
    if words.is_empty() {
        return Err(r.error_here());
    }
    if r.take("ON") {
        if let Some(word) = words.iter().find(|word| !PRIVILEGES.contains(&word.to_ascii_lowercase().as_str())) {
            let message = format!("unrecognized privilege type \"{word}\"");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        objects(r, mentions)?;
    } else {
        // A role that is granted: `GRANT admin TO alice`. Of default privileges the words are of another kind, and are not roles.
        let known = ["all", "select", "insert", "update", "delete", "usage", "execute", "create", "truncate"];
        if !words.iter().any(|word| known.contains(&word.as_str())) {
            mentions.roles.extend(words);
        }
    }
    r.expect(to)?;
    let public = roles(r, mentions)?;
    let _ = r.take("WITH GRANT OPTION") || r.take("WITH ADMIN OPTION");
    if r.take("GRANTED BY") {
        role(r, mentions)?;
    }
    let _ = r.take("CASCADE") || r.take("RESTRICT");
    Ok(public)
}

fn objects(r: &mut Reader, mentions: &mut Mentions) -> Result<(), SqlError> {
    for words in
        ["ALL TABLES IN SCHEMA", "ALL SEQUENCES IN SCHEMA", "ALL FUNCTIONS IN SCHEMA", "ALL ROUTINES IN SCHEMA"]
    {
        if r.take(words) {
            mentions.schemas.extend(r.separated(Reader::identifier)?);
            return Ok(());
        }
    }
    if r.take("SCHEMA") {
        mentions.schemas.extend(r.separated(Reader::identifier)?);
    } else if r.take("DATABASE") {
        mentions.databases.extend(r.separated(Reader::identifier)?);
    } else if ["TABLES", "SEQUENCES", "FUNCTIONS", "ROUTINES", "TYPES", "SCHEMAS"].iter().any(|word| r.take(word)) {
        // Of default privileges: what will be made.
    } else if [
        "FUNCTION",
        "PROCEDURE",
        "ROUTINE",
        "TYPE",
        "DOMAIN",
        "LANGUAGE",
        "FOREIGN",
        "LARGE",
        "TABLESPACE",
        "PARAMETER",
    ]
    .iter()
    .any(|word| r.peek_words(word))
    {
        // Built in, each of them, and everybody's.
        while !r.at_end() && !r.peek_words("TO") && !r.peek_words("FROM") {
            r.next();
        }
    } else {
        let _ = r.take("TABLE") || r.take("SEQUENCE");
        mentions.relations.extend(r.names()?);
    }
    Ok(())
}

/// Roles separated by commas; whether PUBLIC is among them.
pub(super) fn roles(r: &mut Reader, mentions: &mut Mentions) -> Result<bool, SqlError> {
    let public = r.separated(|r| {
        r.take("GROUP");
        role(r, mentions)
    })?;
    Ok(public.contains(&true))
}

/// A role; whether it is PUBLIC.
pub(super) fn role(r: &mut Reader, mentions: &mut Mentions) -> Result<bool, SqlError> {
    if ["CURRENT_USER", "CURRENT_ROLE", "SESSION_USER"].iter().any(|word| r.take(word)) {
        return Ok(false);
    }
    if r.take("PUBLIC") {
        return Ok(true);
    }
    mentions.roles.push(r.identifier()?);
    Ok(false)
}
