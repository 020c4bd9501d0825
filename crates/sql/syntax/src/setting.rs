//! SET, SHOW, RESET, DISCARD.

use super::command::{Command, Discard};
use super::control::modes;
use super::ddl::DefaultChange;
use super::reader::{Reader, string_of};
use crate::SqlError;
use crate::identifier::quote_identifier;
use sqlparser::tokenizer::Token;

pub(super) fn parse(r: &mut Reader) -> Result<Command, SqlError> {
    if r.take("SET") {
        return set(r);
    }
    if r.take("SHOW") {
        return show(r);
    }
    if r.take("RESET") {
        if r.take("ALL") {
            return Ok(Command::ResetAll);
        }
        return Ok(Command::Set { local: false, name: setting_name(r)?, value: None });
    }
    r.expect("DISCARD")?;
    let what = r.identifier()?;
    match what.as_str() {
        "all" => Ok(Command::Discard(Discard::All)),
        "plans" => Ok(Command::Discard(Discard::Plans)),
        "sequences" => Ok(Command::Discard(Discard::Sequences)),
        "temp" | "temporary" => Ok(Command::Discard(Discard::Temp)),
        _ => Err(r.error_at(r.at - 1)),
    }
}

fn set(r: &mut Reader) -> Result<Command, SqlError> {
    if r.take("TRANSACTION") {
        return Ok(Command::SetTransaction(modes(r)?));
    }
    if r.take("SESSION CHARACTERISTICS AS TRANSACTION") {
        return Ok(Command::SetCharacteristics(modes(r)?));
    }
    if r.take("CONSTRAINTS") {
        let names = if r.take("ALL") { None } else { Some(r.names()?) };
        let deferred = r.take("DEFERRED");
        if !deferred {
            r.expect("IMMEDIATE")?;
        }
        return Ok(Command::SetConstraints { names, deferred });
    }
    let local = r.take("LOCAL");
    if !local && !r.peek_words("SESSION AUTHORIZATION") {
        r.take("SESSION");
    }
    if r.take("TRANSACTION") {
        return Ok(Command::SetTransaction(modes(r)?));
    }
    set_value(r).map(|command| match command {
        Command::Set { name, value, .. } => Command::Set { local, name, value },
        other => other,
    })
}

/// A setting and its value.
fn set_value(r: &mut Reader) -> Result<Command, SqlError> {
    let local = false;
    let name = if r.take("TIME ZONE") {
        let value = if r.take("LOCAL") || r.take("DEFAULT") { None } else { Some(zone(r)?) };
        return Ok(Command::Set { local, name: "timezone".into(), value });
    } else if r.take("SESSION AUTHORIZATION") {
        return Ok(Command::Set { local, name: "session_authorization".into(), value: role(r)? });
    } else if r.take("ROLE") {
        return Ok(Command::Set { local, name: "role".into(), value: role(r)? });
    } else if r.take("NAMES") {
        "client_encoding".to_string()
    } else if r.take("SCHEMA") {
        "search_path".to_string()
    } else {
        let name = setting_name(r)?;
        if !(r.take_token(&Token::Eq) || r.take_token(&Token::Assignment)) {
            r.expect("TO")?;
        }
        name
    };
    let value = if r.take("DEFAULT") {
        None
    } else if LISTS_OF_NAMES.contains(&name.as_str()) {
        Some(r.separated(listed_name)?.join(", "))
    } else {
        Some(values(r)?)
    };
    Ok(Command::Set { local, name, value })
}

/// What follows ALTER DATABASE name, ALTER ROLE name, or ALTER SYSTEM: `None`, none of a setting.
pub(super) fn default_change(r: &mut Reader) -> Result<Option<DefaultChange>, SqlError> {
    if r.take("RESET ALL") {
        return Ok(Some(DefaultChange::ResetAll));
    }
    if r.take("RESET") {
        return Ok(Some(DefaultChange::Set(setting_name(r)?, None)));
    }
    if !r.take("SET") {
        return Ok(None);
    }
    let zone_follows = r.peek_words("TIME ZONE");
    if !zone_follows {
        let start = r.at;
        let name = setting_name(r)?;
        if r.take("FROM CURRENT") {
            return Ok(Some(DefaultChange::FromCurrent(name)));
        }
        r.at = start;
    }
    match set_value(r)? {
        Command::Set { name, value, .. } => Ok(Some(DefaultChange::Set(name, value))),
        _ => Err(r.error_here()),
    }
}

/// A role by name or in quotes; `None` is the one that connected.
fn role(r: &mut Reader) -> Result<Option<String>, SqlError> {
    if r.take("DEFAULT") {
        return Ok(None);
    }
    if r.peek().and_then(string_of).is_some() { r.string().map(Some) } else { r.identifier().map(Some) }
}

/// What follows TIME ZONE. An interval keeps its word, because its sign counts to the east, as that of hours does, and that of a text
/// to the west.
fn zone(r: &mut Reader) -> Result<String, SqlError> {
    if r.take("INTERVAL") {
        let text = r.string()?;
        let hours = !r.take("HOUR TO MINUTE") && r.take("HOUR") && !text.contains(':');
        return Ok(format!("interval '{}{}'", text.replace('\'', ""), if hours { " hours" } else { "" }));
    }
    values(r)
}

/// Settings whose items are names, however they are written: PostgreSQL's `GUC_LIST_QUOTE` (guc.c of PostgreSQL 15).
const LISTS_OF_NAMES: &[&str] = &[
    "search_path",
    "temp_tablespaces",
    "local_preload_libraries",
    "session_preload_libraries",
    "shared_preload_libraries",
    "unix_socket_directories",
];

/// An item of such a setting, in quotes where it needs them: a literal is one name as it stands, commas and capitals included.
fn listed_name(r: &mut Reader) -> Result<String, SqlError> {
    let name = match r.peek() {
        Some(token) if let Some(text) = string_of(token) => text,
        Some(Token::Word(word)) if word.quote_style.is_some() => word.value.clone(),
        _ => return value(r),
    };
    r.next();
    Ok(quote_identifier(&name))
}

/// A list of values, joined by commas; identifiers of a list are quoted where they must be.
fn values(r: &mut Reader) -> Result<String, SqlError> {
    Ok(r.separated(value)?.join(", "))
}

fn value(r: &mut Reader) -> Result<String, SqlError> {
    if let Some(text) = r.peek().and_then(string_of) {
        r.next();
        return Ok(text);
    }
    match r.peek() {
        Some(Token::Number(digits, _)) => {
            r.next();
            Ok(digits.clone())
        }
        Some(Token::Minus) => {
            r.next();
            Ok(format!("-{}", value(r)?))
        }
        Some(Token::Plus) => {
            r.next();
            value(r)
        }
        Some(Token::Word(word)) => {
            r.next();
            // A quoted name keeps its case inside a list such as search_path.
            Ok(match word.quote_style {
                Some(_) => format!("\"{}\"", word.value),
                None => word.value.to_lowercase(),
            })
        }
        _ => Err(r.error_here()),
    }
}

fn setting_name(r: &mut Reader) -> Result<String, SqlError> {
    if r.take("TIME ZONE") {
        return Ok("timezone".into());
    }
    if r.take("SESSION AUTHORIZATION") {
        return Ok("session_authorization".into());
    }
    if r.take("TRANSACTION ISOLATION LEVEL") {
        return Ok("transaction_isolation".into());
    }
    let mut name = r.identifier()?;
    while r.take_token(&Token::Period) {
        name.push('.');
        name.push_str(&r.identifier()?);
    }
    Ok(name.to_lowercase())
}

fn show(r: &mut Reader) -> Result<Command, SqlError> {
    if r.take("ALL") {
        return Ok(Command::ShowAll);
    }
    if let Some(query) = short_query(r)? {
        return Ok(Command::ShowQuery(query));
    }
    Ok(Command::Show(setting_name(r)?))
}

/// The SHOW forms of CockroachDB that read the catalog.
fn short_query(r: &mut Reader) -> Result<Option<String>, SqlError> {
    use super::name::quote_literal;
    let query = if r.take("TABLES") {
        "SELECT schemaname AS schema_name, tablename AS table_name FROM pg_catalog.pg_tables \
         WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
            .to_string()
    } else if r.take("DATABASES") {
        "SELECT datname AS database_name FROM pg_catalog.pg_database ORDER BY 1".to_string()
    } else if r.take("SCHEMAS") {
        "SELECT nspname AS schema_name FROM pg_catalog.pg_namespace ORDER BY 1".to_string()
    } else if r.take("SEQUENCES") {
        "SELECT schemaname AS sequence_schema, sequencename AS sequence_name FROM pg_catalog.pg_sequences ORDER BY 1, 2"
            .to_string()
    } else if r.take("COLUMNS FROM") {
        let name = r.name()?;
        format!(
            "SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns \
             WHERE table_name = {} ORDER BY ordinal_position",
            quote_literal(&name.name)
        )
    } else if r.take("INDEXES FROM") || r.take("INDEX FROM") {
        let name = r.name()?;
        format!(
            "SELECT tablename AS table_name, indexname AS index_name, indexdef AS definition FROM pg_catalog.pg_indexes \
             WHERE tablename = {} ORDER BY 2",
            quote_literal(&name.name)
        )
    } else if r.peek_words("RANGES") || r.peek_words("CLOCKS") {
        format!("SELECT * FROM timeball_internal.{}", r.identifier()?)
    } else {
        return Ok(None);
    };
    // SHOW TABLES FROM x and the like: the schema is not filtered, so it is refused rather than misread.
    r.expect_end()?;
    Ok(Some(query))
}
