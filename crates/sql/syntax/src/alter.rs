//! ALTER.

use super::command::{Command, Mentions};
use super::create::{collation, ddl, more_sequence_options, parameter_names, parameters, sequence_options, tablespace};
use super::create_table::{column, default_text, generated, identity_kind, table_constraint};
use super::ddl::{AlterAction, ColumnChange, Ddl, DefaultOf, DefaultRole, ObjectKind};
use super::grant;
use super::name::Name;
use super::reader::{Reader, string_of};
use super::setting::default_change;
use crate::{SqlError, SqlState};
use sqlparser::tokenizer::Token;

pub(super) fn parse(r: &mut Reader) -> Result<Command, SqlError> {
    r.expect("ALTER")?;
    if r.take("TABLE") {
        return table(r);
    }
    for (word, kind) in [("INDEX", ObjectKind::Index), ("VIEW", ObjectKind::View), ("SEQUENCE", ObjectKind::Sequence)] {
        if r.take(word) {
            return object(r, kind);
        }
    }
    let schema = r.take("SCHEMA");
    if schema || r.take("DATABASE") {
        let kind = if schema { ObjectKind::Schema } else { ObjectKind::Database };
        let name = Name::bare(r.identifier()?);
        if r.take("RENAME TO") {
            return Ok(ddl(Ddl::Rename { kind, name, if_exists: false, to: r.identifier()? }));
        }
        return space(r, kind, name.name);
    }
    if r.take("DEFAULT PRIVILEGES") {
        return grant::default_privileges(r);
    }
    if r.take("EXTENSION") {
        return extension(r);
    }
    for (words, rotate) in [("SYSTEM RENEW TOKENS", false), ("SYSTEM ROTATE TOKENS", true)] {
        if r.take(words) {
            return Ok(ddl(Ddl::RenewTokens { rotate }));
        }
    }
    if r.peek_words("SYSTEM SET") || r.peek_words("SYSTEM RESET") {
        r.next();
        let change = default_change(r)?.ok_or_else(|| r.error_here())?;
        return Ok(ddl(Ddl::SetDefault { of: DefaultOf::System, change }));
    }
    if let Some(command) = role_default(r)? {
        return Ok(command);
    }
    if let Some(command) = owner(r)? {
        return Ok(command);
    }
    if let Some(word) = r.peek_word() {
        let word = word.to_ascii_uppercase();
        if matches!(
            word.as_str(),
            "ROLE" | "USER" | "TYPE" | "DOMAIN" | "FUNCTION" | "SYSTEM" | "MATERIALIZED" | "POLICY"
        ) {
            let hint = match word.as_str() {
                "ROLE" | "USER" => {
                    "There is one role, and nobody is asked for a password: none is kept. It has settings: SET, RESET."
                }
                "SYSTEM" => "It has settings (SET, RESET) and tokens (ROTATE TOKENS, RENEW TOKENS).",
                _ => "Leave it out.",
            };
            return Err(SqlError::unsupported(format!("ALTER {word}")).hint(hint));
        }
    }
    Err(r.error_here())
}

/// ALTER .. OWNER TO of what has nothing else that could be altered.
fn owner(r: &mut Reader) -> Result<Option<Command>, SqlError> {
    let kinds = [
        ("FUNCTION", "ALTER FUNCTION"),
        ("PROCEDURE", "ALTER PROCEDURE"),
        ("ROUTINE", "ALTER ROUTINE"),
        ("AGGREGATE", "ALTER AGGREGATE"),
        ("TYPE", "ALTER TYPE"),
        ("DOMAIN", "ALTER DOMAIN"),
        ("COLLATION", "ALTER COLLATION"),
        ("CONVERSION", "ALTER CONVERSION"),
        ("LANGUAGE", "ALTER LANGUAGE"),
        ("PROCEDURAL LANGUAGE", "ALTER LANGUAGE"),
        ("LARGE OBJECT", "ALTER LARGE OBJECT"),
        ("TABLESPACE", "ALTER TABLESPACE"),
        ("MATERIALIZED VIEW", "ALTER MATERIALIZED VIEW"),
        ("FOREIGN TABLE", "ALTER FOREIGN TABLE"),
        ("FOREIGN DATA WRAPPER", "ALTER FOREIGN DATA WRAPPER"),
        ("SERVER", "ALTER SERVER"),
        ("PUBLICATION", "ALTER PUBLICATION"),
        ("SUBSCRIPTION", "ALTER SUBSCRIPTION"),
        ("EVENT TRIGGER", "ALTER EVENT TRIGGER"),
        ("TEXT SEARCH CONFIGURATION", "ALTER TEXT SEARCH CONFIGURATION"),
        ("TEXT SEARCH DICTIONARY", "ALTER TEXT SEARCH DICTIONARY"),
        ("STATISTICS", "ALTER STATISTICS"),
        ("OPERATOR CLASS", "ALTER OPERATOR CLASS"),
        ("OPERATOR FAMILY", "ALTER OPERATOR FAMILY"),
        ("OPERATOR", "ALTER OPERATOR"),
    ];
    let start = r.at;
    let Some((_, tag)) = kinds.into_iter().find(|(words, _)| r.peek_words(words)) else { return Ok(None) };
    let mut mentions = Mentions::default();
    if super::comment::named(r, &mut mentions).is_err() || !r.take("OWNER TO") {
        r.at = start;
        return Ok(None);
    }
    grant::role(r, &mut mentions)?;
    Ok(Some(Command::Nothing { tag, notice: None, outside_block: false, mentions: Box::new(mentions) }))
}

/// ALTER ROLE and ALTER USER, where they are about a setting.
fn role_default(r: &mut Reader) -> Result<Option<Command>, SqlError> {
    let start = r.at;
    if !(r.take("ROLE") || r.take("USER")) {
        return Ok(None);
    }
    let role = if r.take("ALL") {
        None
    } else if ["CURRENT_USER", "SESSION_USER", "CURRENT_ROLE"].iter().any(|word| r.take(word)) {
        Some(DefaultRole::Current)
    } else {
        Some(DefaultRole::Named(r.identifier()?))
    };
    let database = if r.take("IN DATABASE") { Some(r.identifier()?) } else { None };
    match default_change(r)? {
        Some(change) => Ok(Some(ddl(Ddl::SetDefault { of: DefaultOf::Role { role, database }, change }))),
        None => {
            r.at = start;
            Ok(None)
        }
    }
}

/// ALTER SCHEMA and ALTER DATABASE, but for RENAME.
fn space(r: &mut Reader, kind: ObjectKind, name: String) -> Result<Command, SqlError> {
    let tablespace = r.peek_words("SET TABLESPACE");
    if kind == ObjectKind::Database
        && !tablespace
        && let Some(change) = default_change(r)?
    {
        return Ok(ddl(Ddl::SetDefault { of: DefaultOf::Database(name), change }));
    }
    let mut mentions = Mentions::default();
    let tag = if kind == ObjectKind::Schema {
        mentions.schemas.push(name);
        "ALTER SCHEMA"
    } else {
        mentions.databases.push(name);
        "ALTER DATABASE"
    };
    if r.take("OWNER TO") {
        grant::role(r, &mut mentions)?;
    } else if kind == ObjectKind::Database && !r.at_end() {
        let what = r.peek_word().unwrap_or_default().to_uppercase();
        return Err(SqlError::unsupported(format!("ALTER DATABASE .. {what}"))
            .hint("Leave it out: a database has an owner, a name and settings."));
    } else {
        return Err(r.error_here());
    }
    Ok(Command::Nothing { tag, notice: None, outside_block: false, mentions: Box::new(mentions) })
}

/// ALTER EXTENSION: the version there is can be asked for.
fn extension(r: &mut Reader) -> Result<Command, SqlError> {
    let name = r.identifier()?;
    if !r.take("UPDATE") {
        return Err(SqlError::unsupported("this change of an extension").hint("Leave it out."));
    }
    let mut version = None;
    if r.take("TO") {
        version = Some(if r.peek().and_then(string_of).is_some() { r.string()? } else { r.identifier()? });
    }
    Ok(ddl(Ddl::UpdateExtension { name, version }))
}

fn table(r: &mut Reader) -> Result<Command, SqlError> {
    let if_exists = r.take("IF EXISTS");
    r.take("ONLY");
    let name = r.name()?;
    r.take_token(&Token::Mul);
    let kind = ObjectKind::Table;
    if r.take("RENAME TO") {
        return Ok(ddl(Ddl::Rename { kind, name, if_exists, to: r.identifier()? }));
    }
    if r.take("SET SCHEMA") {
        return Ok(ddl(Ddl::SetSchema { kind, name, if_exists, schema: r.identifier()? }));
    }
    if r.take("RENAME CONSTRAINT") {
        let (old, to) = renamed(r)?;
        return Ok(ddl(Ddl::AlterTable {
            name,
            if_exists,
            actions: vec![AlterAction::RenameConstraint { name: old, to }],
        }));
    }
    if r.take("RENAME") {
        r.take("COLUMN");
        let (old, to) = renamed(r)?;
        return Ok(ddl(Ddl::AlterTable {
            name,
            if_exists,
            actions: vec![AlterAction::RenameColumn { name: old, to }],
        }));
    }
    let actions = r.separated(action)?;
    Ok(ddl(Ddl::AlterTable { name, if_exists, actions }))
}

fn renamed(r: &mut Reader) -> Result<(String, String), SqlError> {
    let old = r.identifier()?;
    r.expect("TO")?;
    Ok((old, r.identifier()?))
}

fn action(r: &mut Reader) -> Result<AlterAction, SqlError> {
    if r.take("ADD") {
        return add(r);
    }
    if r.take("DROP CONSTRAINT") {
        let if_exists = r.take("IF EXISTS");
        return Ok(AlterAction::DropConstraint { if_exists, name: r.identifier()?, cascade: behaviour(r) });
    }
    if r.take("DROP") {
        r.take("COLUMN");
        let if_exists = r.take("IF EXISTS");
        return Ok(AlterAction::DropColumn { if_exists, name: r.identifier()?, cascade: behaviour(r) });
    }
    if r.take("ALTER") {
        r.take("COLUMN");
        return Ok(AlterAction::AlterColumn { name: r.identifier()?, change: column_change(r)? });
    }
    if r.take("VALIDATE CONSTRAINT") {
        return Ok(AlterAction::ValidateConstraint(r.identifier()?));
    }
    if r.take("OWNER TO") {
        let mut mentions = Mentions::default();
        grant::role(r, &mut mentions)?;
        return Ok(AlterAction::Owner(mentions.roles.pop()));
    }
    if r.take("SET TABLESPACE") {
        tablespace(r)?;
        return Ok(AlterAction::Ignored(None));
    }
    for words in ["CLUSTER ON", "REPLICA IDENTITY USING INDEX"] {
        if r.take(words) {
            return Ok(AlterAction::NamesIndex(r.identifier()?));
        }
    }
    let no_effect = || AlterAction::Ignored(Some("storage parameters have no effect here".into()));
    if r.peek_words("SET") && r.peek_nth(1) == Some(&Token::LParen) {
        r.next();
        return Ok(parameters(r)?.map_or_else(no_effect, |text| AlterAction::Retention(Some(text))));
    }
    if r.peek_words("RESET") && r.peek_nth(1) == Some(&Token::LParen) {
        r.next();
        return Ok(if parameter_names(r)? { AlterAction::Retention(None) } else { no_effect() });
    }
    for words in [
        "SET LOGGED",
        "SET UNLOGGED",
        "SET WITHOUT OIDS",
        "SET WITHOUT CLUSTER",
        "REPLICA IDENTITY FULL",
        "REPLICA IDENTITY DEFAULT",
    ] {
        if r.take(words) {
            return Ok(AlterAction::Ignored(Some(format!("{words} has no effect here"))));
        }
    }
    if r.take("SPLIT AT") {
        return Ok(AlterAction::SplitAt(split(r)?));
    }
    if r.peek_words("ENABLE")
        || r.peek_words("DISABLE")
        || r.peek_words("FORCE")
        || r.peek_words("INHERIT")
        || r.peek_words("ATTACH")
    {
        return Err(SqlError::unsupported(format!(
            "ALTER TABLE .. {}",
            r.peek_word().unwrap_or_default().to_uppercase()
        ))
        .hint("There are no triggers, rules, row policies or inheritance here."));
    }
    Err(r.error_here())
}

fn add(r: &mut Reader) -> Result<AlterAction, SqlError> {
    // A table constraint, unless it is a column of that name.
    if let Some(constraint) = table_constraint(r)? {
        return Ok(AlterAction::AddConstraint { constraint, not_valid: r.take("NOT VALID") });
    }
    r.take("COLUMN");
    let if_not_exists = r.take("IF NOT EXISTS");
    Ok(AlterAction::AddColumn { if_not_exists, column: column(r)? })
}

fn behaviour(r: &mut Reader) -> bool {
    let cascade = r.take("CASCADE");
    if !cascade {
        r.take("RESTRICT");
    }
    cascade
}

fn column_change(r: &mut Reader) -> Result<ColumnChange, SqlError> {
    if r.take("SET DEFAULT") {
        return Ok(ColumnChange::SetDefault(default_text(r)?));
    }
    if r.take("DROP DEFAULT") {
        return Ok(ColumnChange::DropDefault);
    }
    if r.take("SET NOT NULL") {
        return Ok(ColumnChange::SetNotNull);
    }
    if r.take("DROP NOT NULL") {
        return Ok(ColumnChange::DropNotNull);
    }
    if r.take("SET DATA TYPE") || r.take("TYPE") {
        let ty = r.data_type()?;
        let collation = collation(r)?;
        let using = if r.take("USING") { Some(r.expression_text()?.1) } else { None };
        return Ok(ColumnChange::Type { ty, collation, using });
    }
    if r.take("ADD GENERATED") {
        let (identity, options) = generated(r)?;
        return Ok(ColumnChange::AddIdentity(identity, options));
    }
    if r.take("DROP IDENTITY") {
        return Ok(ColumnChange::DropIdentity { if_exists: r.take("IF EXISTS") });
    }
    if r.take("DROP EXPRESSION") {
        return Ok(ColumnChange::DropExpression { if_exists: r.take("IF EXISTS") });
    }
    if r.take("SET STATISTICS") {
        r.integer()?;
        return Ok(ColumnChange::Ignored);
    }
    for (words, what, known) in [
        ("SET STORAGE", "storage type", ["plain", "external", "extended", "main"].as_slice()),
        ("SET COMPRESSION", "compression method", ["pglz", "lz4", "default"].as_slice()),
    ] {
        if r.take(words) {
            let name = r.identifier()?;
            if !known.contains(&name.to_ascii_lowercase().as_str()) {
                return Err(SqlError::new(SqlState::INVALID_PARAMETER, format!("invalid {what} \"{name}\"")));
            }
            return Ok(ColumnChange::Ignored);
        }
    }
    let mut identity = None;
    let mut options = Default::default();
    let start = r.at;
    loop {
        if r.take("SET GENERATED") {
            identity = Some(identity_kind(r)?);
        } else if r.take("SET") || r.peek_words("RESTART") {
            more_sequence_options(r, &mut options)?;
        } else if r.at > start {
            return Ok(ColumnChange::SetIdentity(identity, options));
        } else {
            return Err(r.error_here());
        }
    }
}

/// `VALUES (1, 'a'), (2)`: constant expressions, as SQL text.
fn split(r: &mut Reader) -> Result<Vec<Vec<String>>, SqlError> {
    r.expect("VALUES")?;
    r.separated(|r| {
        r.expect_token(&Token::LParen)?;
        let row = r.separated(|r| Ok(r.expression_text()?.1))?;
        r.expect_token(&Token::RParen)?;
        Ok(row)
    })
}

/// ALTER INDEX, VIEW, SEQUENCE.
fn object(r: &mut Reader, kind: ObjectKind) -> Result<Command, SqlError> {
    let if_exists = r.take("IF EXISTS");
    let name = r.name()?;
    if r.take("RENAME TO") {
        return Ok(ddl(Ddl::Rename { kind, name, if_exists, to: r.identifier()? }));
    }
    if kind == ObjectKind::Index && r.take("SPLIT AT") {
        return Ok(ddl(Ddl::SplitIndex { name, if_exists, rows: split(r)? }));
    }
    if kind == ObjectKind::View && r.take("RENAME") {
        r.take("COLUMN");
        let (old, to) = renamed(r)?;
        let actions = vec![AlterAction::RenameViewColumn { name: old, to }];
        return Ok(ddl(Ddl::AlterTable { name, if_exists, actions }));
    }
    if kind != ObjectKind::Index && r.take("SET SCHEMA") {
        return Ok(ddl(Ddl::SetSchema { kind, name, if_exists, schema: r.identifier()? }));
    }
    let tag = match kind {
        ObjectKind::Index => "ALTER INDEX",
        ObjectKind::View => "ALTER VIEW",
        _ => "ALTER SEQUENCE",
    };
    let mut mentions = Mentions::default();
    if !if_exists {
        mentions.relations.push(name.clone());
    }
    if r.take("OWNER TO") {
        if kind == ObjectKind::View || kind == ObjectKind::Sequence {
            mentions.kinds.push((kind, name));
        }
        grant::role(r, &mut mentions)?;
        return Ok(Command::Nothing { tag, notice: None, outside_block: false, mentions: Box::new(mentions) });
    }
    if r.peek_words("SET TABLESPACE") {
        let start = r.at;
        r.take("SET TABLESPACE");
        tablespace(r)?;
        r.at = start;
    }
    if kind == ObjectKind::Index && (r.peek_words("SET") || r.peek_words("RESET")) {
        r.skip_all();
        let notice = Some(format!("{tag} has no effect here"));
        return Ok(Command::Nothing { tag, notice, outside_block: false, mentions: Box::new(mentions) });
    }
    if kind == ObjectKind::Sequence {
        let start = r.at;
        let options = sequence_options(r)?;
        if r.at > start {
            return Ok(ddl(Ddl::AlterSequence { name, if_exists, options }));
        }
    }
    Err(r.error_here())
}
