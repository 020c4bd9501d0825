//! What names roles: GRANT, REVOKE, ALTER DEFAULT PRIVILEGES, OWNER TO, DROP ROLE.
//!
//! There is one role, which may do everything. So a grant to it, and its being the owner, are true already; and what names another
//! role is refused as PostgreSQL refuses it: there is no such role.

use super::command::{Command, Mentions};
use super::ddl::ObjectKind;
use super::named::{a_type, domain, language, missing, routine, routine_word, tablespace};
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
    let public = privileges(r, grants, objects, &mut mentions)?;
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
    let public = privileges(r, grants, objects_to_come, &mut mentions)?;
    let notice = (public && !grants).then(|| PUBLIC_KEEPS.to_string());
    Ok(nothing("ALTER DEFAULT PRIVILEGES", notice, mentions))
}

fn nothing(tag: &'static str, notice: Option<String>, mentions: Mentions) -> Command {
    Command::Nothing { tag, notice, outside_block: false, mentions: Box::new(mentions) }
}

/// What is granted or revoked, on what, and to whom; whether PUBLIC is among them.
fn privileges(
    r: &mut Reader,
    grants: bool,
    objects: fn(&mut Reader, &[Privilege], &mut Mentions) -> Result<Of, SqlError>,
    mentions: &mut Mentions,
) -> Result<bool, SqlError> {
    let to = if grants { "TO" } else { "FROM" };
    let _ = r.take("GRANT OPTION FOR") || r.take("ADMIN OPTION FOR");
    let mut asked: Vec<Privilege> = Vec::new();
    while !(r.peek_words(to) || r.peek_words("ON")) {
        if r.take_token(&Token::Comma) {
            continue;
        }
        if r.peek() == Some(&Token::LParen) {
            let Some(last) = asked.last_mut() else { return Err(r.error_here()) };
            r.next();
            last.columns = r.separated(Reader::identifier)?;
            if !r.take_token(&Token::RParen) {
                return Err(r.error_here());
            }
            continue;
        }
        asked.push(Privilege { word: r.identifier()?, columns: Vec::new() });
    }
    if asked.is_empty() {
        return Err(r.error_here());
    }
    if r.take("ON") {
        if let Some(unknown) = asked.iter().find(|asked| !PRIVILEGES.contains(&asked.word.as_str())) {
            let message = format!("unrecognized privilege type \"{}\"", unknown.word);
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        let of = objects(r, &asked, mentions)?;
        mentions.privilege = of.refused(&asked);
    } else {
        // A role that is granted: `GRANT admin TO alice`. Of default privileges the words are of another kind, and are not roles.
        let known = ["all", "select", "insert", "update", "delete", "usage", "execute", "create", "truncate"];
        if !asked.iter().any(|asked| known.contains(&asked.word.as_str())) {
            mentions.roles.extend(asked.into_iter().map(|asked| asked.word));
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

/// A privilege, and the columns that it is of.
struct Privilege {
    word: String,
    columns: Vec<String>,
}

/// What kind of thing privileges are of: as PostgreSQL calls it, and those that it has.
struct Of(&'static str, &'static [&'static str]);

const RELATION: Of =
    Of("relation", &["select", "insert", "update", "delete", "truncate", "references", "trigger", "usage"]);
/// As the default of tables to come: no sequence is among them.
const TABLES: Of = Of("relation", &["select", "insert", "update", "delete", "truncate", "references", "trigger"]);
const SEQUENCE: Of = Of("sequence", &["usage", "select", "update"]);
const DATABASE: Of = Of("database", &["create", "temp", "temporary", "connect"]);
const SCHEMA: Of = Of("schema", &["usage", "create"]);
const TYPE: Of = Of("type", &["usage"]);
const OF_COLUMNS: Of = Of("column", &["select", "insert", "update", "references"]);

impl Of {
    /// 0LP01 for a privilege that such a thing does not have.
    fn refused(&self, asked: &[Privilege]) -> Option<SqlError> {
        let has = |of: &Of, word: &str| ["all", "privileges"].contains(&word) || of.1.contains(&word);
        let lacks = |asked: &&Privilege| {
            !has(self, &asked.word) || !(asked.columns.is_empty() || has(&OF_COLUMNS, &asked.word))
        };
        let asked = asked.iter().find(lacks)?;
        let what = if has(self, &asked.word) { OF_COLUMNS.0 } else { self.0 };
        let word = if asked.word == "temp" { "TEMPORARY".into() } else { asked.word.to_uppercase() };
        Some(no_privilege(&word, what))
    }
}

/// 0LP01
pub fn no_privilege(word: &str, what: &str) -> SqlError {
    SqlError::new(SqlState(*b"0LP01"), format!("invalid privilege type {word} for {what}"))
}

fn objects(r: &mut Reader, asked: &[Privilege], mentions: &mut Mentions) -> Result<Of, SqlError> {
    for (words, of) in [
        ("ALL TABLES IN SCHEMA", TABLES),
        ("ALL SEQUENCES IN SCHEMA", SEQUENCE),
        ("ALL FUNCTIONS IN SCHEMA", Of("function", &["execute"])),
        ("ALL PROCEDURES IN SCHEMA", Of("procedure", &["execute"])),
        ("ALL ROUTINES IN SCHEMA", Of("routine", &["execute"])),
    ] {
        if r.take(words) {
            mentions.schemas.extend(r.separated(Reader::identifier)?);
            return Ok(of);
        }
    }
    if is_a_name(r) {
        return relations(r, asked, false, mentions);
    }
    if r.take("SCHEMA") {
        mentions.schemas.extend(r.separated(Reader::identifier)?);
        return Ok(SCHEMA);
    }
    if r.take("DATABASE") {
        mentions.databases.extend(r.separated(Reader::identifier)?);
        return Ok(DATABASE);
    }
    if let Some(word) = routine_word(r) {
        mentions.functions.extend(r.separated(|r| routine(r, word))?);
        return Ok(Of(word, &["execute"]));
    }
    if r.take("TYPE") {
        r.separated(|r| a_type(r, mentions))?;
        return Ok(TYPE);
    }
    if r.take("DOMAIN") {
        r.separated(|r| domain(r, mentions))?;
        return Ok(TYPE);
    }
    if r.take("LANGUAGE") {
        r.separated(|r| language(r, mentions))?;
        return Ok(Of("language", &["usage"]));
    }
    if r.take("TABLESPACE") {
        r.separated(|r| tablespace(r, mentions))?;
        return Ok(Of("tablespace", &["create"]));
    }
    if r.take("LARGE OBJECT") {
        let first = r.separated(Reader::integer)?[0];
        mentions.missing = Some(missing(format!("large object {first} does not exist")));
        return Ok(Of("large object", &["select", "update"]));
    }
    for (words, what, of) in [
        ("FOREIGN DATA WRAPPER", "foreign-data wrapper", Of("foreign-data wrapper", &["usage"])),
        ("FOREIGN SERVER", "server", Of("foreign server", &["usage"])),
    ] {
        if r.take(words) {
            let names = r.separated(Reader::identifier)?;
            mentions.missing = Some(missing(format!("{what} \"{}\" does not exist", names[0])));
            return Ok(of);
        }
    }
    if r.take("PARAMETER") {
        mentions.parameters.extend(r.separated(setting_name)?);
        return Ok(Of("parameter", &["set", "alter", "system"]));
    }
    let sequences = r.take("SEQUENCE");
    let _ = !sequences && r.take("TABLE");
    relations(r, asked, sequences, mentions)
}

/// What will be made: all that default privileges may be of.
fn objects_to_come(r: &mut Reader, _: &[Privilege], _: &mut Mentions) -> Result<Of, SqlError> {
    let kinds = [
        ("TABLES", TABLES),
        ("SEQUENCES", SEQUENCE),
        ("FUNCTIONS", Of("function", &["execute"])),
        ("ROUTINES", Of("routine", &["execute"])),
        ("TYPES", TYPE),
        ("SCHEMAS", SCHEMA),
    ];
    kinds.into_iter().find(|(word, _)| r.take(word)).map(|(_, of)| of).ok_or_else(|| r.error_here())
}

/// Whether the next word is a name by what stands behind it, though it may be a kind's: a table may be called `type`.
fn is_a_name(r: &Reader) -> bool {
    let behind = |word| r.is_word_at(1, word);
    behind("TO") || behind("FROM") || matches!(r.peek_nth(1), Some(Token::Comma | Token::Period))
}

fn relations(r: &mut Reader, asked: &[Privilege], sequences: bool, mentions: &mut Mentions) -> Result<Of, SqlError> {
    let names = r.names()?;
    mentions.relations.extend(names.iter().cloned());
    for name in names {
        for column in asked.iter().flat_map(|asked| &asked.columns) {
            mentions.columns.push((name.clone(), column.clone()));
        }
        if sequences {
            mentions.kinds.push((ObjectKind::Sequence, name));
        } else {
            mentions.granted.push((name, asked.iter().any(|asked| asked.word == "usage")));
        }
    }
    Ok(if sequences { SEQUENCE } else { RELATION })
}

/// A setting's name, which may have parts.
fn setting_name(r: &mut Reader) -> Result<String, SqlError> {
    let mut name = r.identifier()?;
    while r.take_token(&Token::Period) {
        name = format!("{name}.{}", r.identifier()?);
    }
    Ok(name)
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
