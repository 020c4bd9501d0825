//! CREATE, of everything but tables.

use super::command::{Command, Mentions};
use super::create_table;
use super::ddl::{CreateIndex, Ddl, IndexKey, IndexValue, SequenceOptions};
use super::named::check_tablespace;
use super::output_name;
use super::reader::{Reader, string_of};
use super::{cursor, grant, name::Name};
use crate::catalog::Collation;
use crate::identifier::{fold, quote_identifier};
use crate::{SqlError, SqlState};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;
use std::sync::Arc;

pub(super) fn ddl(ddl: Ddl) -> Command {
    Command::Ddl(Box::new(ddl))
}

pub(super) fn parse(r: &mut Reader) -> Result<Command, SqlError> {
    r.expect("CREATE")?;
    let or_replace = r.take("OR REPLACE");
    if or_replace && !r.peek_words("VIEW") && !r.peek_words("RECURSIVE VIEW") {
        return Err(match r.peek_word() {
            Some(word) => SqlError::unsupported(format!("CREATE OR REPLACE {}", word.to_uppercase())),
            None => r.error_here(),
        });
    }
    let temporary = r.take("TEMPORARY") || r.take("TEMP") || r.take("LOCAL TEMPORARY") || r.take("LOCAL TEMP");
    let unlogged = r.take("UNLOGGED");
    if r.take("TABLE") {
        return create_table::parse(r, temporary, unlogged);
    }
    if temporary && !r.peek_words("SEQUENCE") && !r.peek_words("VIEW") {
        return Err(r.error_here());
    }
    if temporary {
        return Err(SqlError::unsupported("a temporary sequence or view")
            .hint("Create an ordinary one, and drop it when done."));
    }
    if r.take("VIEW") {
        return view(r, or_replace);
    }
    if r.take("RECURSIVE VIEW") {
        return recursive_view(r, or_replace);
    }
    if r.take("UNIQUE INDEX") {
        return index(r, true);
    }
    if r.take("INDEX") {
        return index(r, false);
    }
    if r.take("SEQUENCE") {
        let if_not_exists = r.take("IF NOT EXISTS");
        let name = r.name()?;
        return Ok(ddl(Ddl::CreateSequence { name, if_not_exists, options: sequence_options(r)? }));
    }
    if r.take("SCHEMA") {
        return schema(r);
    }
    if r.take("DATABASE") {
        return database(r);
    }
    if r.take("EXTENSION") {
        return extension(r);
    }
    refuse(r)
}

fn refuse(r: &mut Reader) -> Result<Command, SqlError> {
    let Some(word) = r.peek_word() else { return Err(r.error_here()) };
    let word = word.to_ascii_uppercase();
    let hint = match word.as_str() {
        "TYPE" | "DOMAIN" => "Use a built-in type with a CHECK constraint.",
        "FUNCTION" | "PROCEDURE" | "TRIGGER" | "RULE" | "EVENT" | "AGGREGATE" | "OPERATOR" | "LANGUAGE" => {
            "Do the work in the application."
        }
        "MATERIALIZED" => "Use CREATE TABLE AS.",
        "USER" | "ROLE" | "GROUP" | "POLICY" => {
            "There is one role, which may do everything: users come with passwords, in a later version."
        }
        "FOREIGN" | "SERVER" | "PUBLICATION" | "SUBSCRIPTION" | "TABLESPACE" | "COLLATION" | "CAST" | "STATISTICS"
        | "TEXT" => "Leave it out.",
        _ => return Err(r.error_here()),
    };
    Err(SqlError::unsupported(format!("CREATE {word}")).hint(hint))
}

fn view(r: &mut Reader, or_replace: bool) -> Result<Command, SqlError> {
    let if_not_exists = r.take("IF NOT EXISTS");
    let name = r.name()?;
    let columns = if r.peek() == Some(&Token::LParen) { r.identifiers_in_parens()? } else { Vec::new() };
    r.expect("AS")?;
    // WITH [CASCADED | LOCAL] CHECK OPTION says something about writes, which views do not take.
    let checked =
        r.rest().len().checked_sub(2).is_some_and(|n| r.is_word_at(n, "CHECK") && r.is_word_at(n + 1, "OPTION"));
    if checked {
        return Err(SqlError::unsupported("WITH CHECK OPTION").hint("Views are read-only: leave it out."));
    }
    let (query, text) = cursor::inner(r)?;
    if query.as_of.is_some() {
        return Err(
            SqlError::unsupported("AS OF SYSTEM TIME inside a view").hint("Put it in the query that reads the view.")
        );
    }
    Ok(ddl(Ddl::CreateView { name, or_replace, if_not_exists, columns, query, text }))
}

/// Short for a view of a WITH RECURSIVE query of the same name.
fn recursive_view(r: &mut Reader, or_replace: bool) -> Result<Command, SqlError> {
    let name = r.name()?;
    let columns = r.identifiers_in_parens()?;
    r.expect("AS")?;
    let (_, inner) = cursor::inner(r)?;
    let list = columns.iter().map(|column| quote_identifier(column)).collect::<Vec<_>>().join(", ");
    let own = quote_identifier(&name.name);
    // A comment may end the query.
    let text = format!("WITH RECURSIVE {own} ({list}) AS ({inner}\n) SELECT {list} FROM {own}");
    match super::parse(&text)?.pop().map(|parsed| parsed.command) {
        Some(Command::Planned(query)) if query.as_of.is_none() => Ok(ddl(Ddl::CreateView {
            name,
            or_replace,
            if_not_exists: false,
            columns,
            query: Arc::new(query),
            text: text.into(),
        })),
        _ => Err(r.error_here()),
    }
}

fn index(r: &mut Reader, unique: bool) -> Result<Command, SqlError> {
    let concurrently = r.take("CONCURRENTLY");
    let if_not_exists = r.take("IF NOT EXISTS");
    let name = if r.peek_words("ON") { None } else { Some(r.identifier()?) };
    r.expect("ON")?;
    r.take("ONLY");
    let table = r.name()?;
    let body = index_body(r)?;
    Ok(ddl(Ddl::CreateIndex(CreateIndex { name, table, unique, if_not_exists, concurrently, ..body })))
}

/// `[USING method] (keys) [INCLUDE ..] [WITH ..] [TABLESPACE ..] [WHERE ..]`
pub(super) fn index_body(r: &mut Reader) -> Result<CreateIndex, SqlError> {
    if r.take("USING") {
        let method = r.identifier()?;
        if method != "btree" {
            return Err(SqlError::unsupported(format!("the index method {method}"))
                .hint("Leave USING out: an index is ordered."));
        }
    }
    r.expect_token(&Token::LParen)?;
    let keys = r.separated(index_key)?;
    r.expect_token(&Token::RParen)?;
    let include = included(r)?;
    if r.take("NULLS NOT DISTINCT") {
        return Err(SqlError::unsupported("NULLS NOT DISTINCT").hint("Declare the columns NOT NULL."));
    }
    r.take("NULLS DISTINCT");
    storage(r)?;
    let predicate = if r.take("WHERE") { Some(r.expression_text()?.1) } else { None };
    Ok(CreateIndex { keys, include, predicate, ..CreateIndex::default() })
}

/// `INCLUDE (a, b)`, or CockroachDB's words for it.
pub(super) fn included(r: &mut Reader) -> Result<Vec<String>, SqlError> {
    if !(r.take("INCLUDE") || r.take("STORING") || r.take("COVERING")) {
        return Ok(Vec::new());
    }
    r.expect_token(&Token::LParen)?;
    let columns = r.separated(|r| match index_value(r)? {
        IndexValue::Column(name) => Ok(name),
        IndexValue::Expression(..) => {
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "expressions are not supported in included columns"))
        }
    })?;
    r.expect_token(&Token::RParen)?;
    Ok(columns)
}

/// COLLATE, if it is there.
pub(super) fn collation(r: &mut Reader) -> Result<Option<Collation>, SqlError> {
    if !r.take("COLLATE") {
        return Ok(None);
    }
    let name = r.name()?;
    match Collation::named(&name.name) {
        Some(collation) => Ok(Some(collation)),
        None => {
            Err(SqlError::unsupported(format!("the collation {name}"))
                .hint("Leave COLLATE out: text is in byte order."))
        }
    }
}

fn index_key(r: &mut Reader) -> Result<IndexKey, SqlError> {
    let value = index_value(r)?;
    let collation = collation(r)?;
    let ends = |word: &str| ["ASC", "DESC", "NULLS"].iter().any(|end| word.eq_ignore_ascii_case(end));
    let operator_class = match r.peek() {
        Some(Token::Word(word)) if word.quote_style.is_some() || !ends(&word.value) => Some(r.name()?),
        _ => None,
    };
    let descending = r.take("DESC");
    if !descending {
        r.take("ASC");
    }
    let nulls_first = match r.take("NULLS FIRST") {
        true => Some(true),
        false => r.take("NULLS LAST").then_some(false),
    };
    let nulls_first = nulls_first.filter(|first| *first != descending);
    Ok(IndexKey { value, collation, operator_class, descending, nulls_first })
}

/// A column, a call, or an expression in parentheses.
fn index_value(r: &mut Reader) -> Result<IndexValue, SqlError> {
    if r.take_token(&Token::LParen) {
        let (expr, text) = r.expression_text()?;
        r.expect_token(&Token::RParen)?;
        return Ok(value_of(&expr, text));
    }
    let call = (1..=5).step_by(2).find(|n| r.peek_nth(*n) != Some(&Token::Period));
    if call.is_some_and(|n| r.peek_nth(n) == Some(&Token::LParen)) {
        let start = r.at;
        let (expr, text) = r.expression_text()?;
        if let ast::Expr::Collate { expr, .. } = &expr {
            // It is the key's, and is read once more.
            let is_word =
                |at: &usize| matches!(&r.lexed.tokens[*at].token, Token::Word(w) if w.keyword == Keyword::COLLATE);
            r.at = (start..r.at).rev().find(is_word).unwrap_or(r.at);
            return Ok(value_of(expr, r.lexed.slice(start..r.at).to_string()));
        }
        return Ok(value_of(&expr, text));
    }
    Ok(IndexValue::Column(r.identifier()?))
}

fn value_of(expr: &ast::Expr, text: String) -> IndexValue {
    match expr {
        ast::Expr::Nested(inner) => value_of(inner, text),
        ast::Expr::Identifier(name) => IndexValue::Column(fold(name)),
        _ => {
            let name = output_name(expr);
            IndexValue::Expression(text, if name == "?column?" { "expr".into() } else { name })
        }
    }
}

/// Storage parameters that another engine needs: `WITH (fillfactor = 100)`, `TABLESPACE x`.
pub(super) fn storage(r: &mut Reader) -> Result<(), SqlError> {
    match table_storage(r)? {
        None => Ok(()),
        Some(_) => {
            Err(unrecognized(&Name::bare(RETENTION)).hint("It is a parameter of tables: their indexes have it, too."))
        }
    }
}

/// As [`storage`], of a table: gives its retention, as it is written.
pub(super) fn table_storage(r: &mut Reader) -> Result<Option<String>, SqlError> {
    let mut retention = None;
    loop {
        if r.peek_words("WITH") && r.peek_nth(1) == Some(&Token::LParen) {
            r.next();
            retention = parameters(r)?.or(retention);
        } else if r.take("TABLESPACE") {
            tablespace(r)?;
        } else {
            return Ok(retention);
        }
    }
}

/// A tablespace that something is put into.
pub(super) fn tablespace(r: &mut Reader) -> Result<(), SqlError> {
    let name = r.identifier()?;
    check_tablespace(&name)?;
    if name == "pg_global" {
        let message = "only shared relations can be placed in pg_global tablespace";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
    }
    Ok(())
}

/// The parameter that has an effect.
const RETENTION: &str = "retention";

/// `(name [= value], ..)`: gives the retention.
pub(super) fn parameters(r: &mut Reader) -> Result<Option<String>, SqlError> {
    r.expect_token(&Token::LParen)?;
    let found = r.separated(parameter)?;
    r.expect_token(&Token::RParen)?;
    let mut named = found.into_iter().flatten();
    let retention = named.next();
    match named.next() {
        None => Ok(retention),
        Some(_) => Err(SqlError::new(
            SqlState::INVALID_PARAMETER,
            format!("parameter \"{RETENTION}\" specified more than once"),
        )),
    }
}

/// `(name, ..)`: whether the retention is among them.
pub(super) fn parameter_names(r: &mut Reader) -> Result<bool, SqlError> {
    r.expect_token(&Token::LParen)?;
    let names = r.separated(|r| {
        let name = r.name()?;
        if r.peek() == Some(&Token::Eq) {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "RESET must not include values for parameters"));
        }
        Ok(name)
    })?;
    r.expect_token(&Token::RParen)?;
    Ok(names.iter().any(|name| name.to_string() == RETENTION))
}

/// `name [= value]`; gives the value of the retention.
fn parameter(r: &mut Reader) -> Result<Option<String>, SqlError> {
    let name = r.name()?;
    let mut value = String::new();
    if r.take_token(&Token::Eq) {
        value = match r.peek().and_then(string_of) {
            Some(text) => {
                r.next();
                text
            }
            None => r.expression_text()?.1,
        };
    }
    if name.to_string() == RETENTION {
        return Ok(Some(value));
    }
    let ours = name.name == "replication";
    let known = ["fillfactor", "parallel_workers", "oids", "user_catalog_table", "deduplicate_items", "fastupdate"];
    if ours && !value.eq_ignore_ascii_case("single") {
        return Err(SqlError::unsupported(format!("replication = '{value}' on one node"))
            .hint("Leave it out, or use replication = 'single'."));
    }
    let prefixes = ["autovacuum_", "toast", "log_autovacuum", "vacuum_"];
    if ours || known.contains(&name.name.as_str()) || prefixes.iter().any(|p| name.to_string().starts_with(p)) {
        return Ok(None);
    }
    Err(unrecognized(&name))
}

fn unrecognized(name: &Name) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, format!("unrecognized parameter \"{name}\""))
}

/// `[IF NOT EXISTS] name [WITH] [SCHEMA s] [VERSION v] [CASCADE]`
fn extension(r: &mut Reader) -> Result<Command, SqlError> {
    let word = |r: &mut Reader| if r.peek().and_then(string_of).is_some() { r.string() } else { r.identifier() };
    let if_not_exists = r.take("IF NOT EXISTS");
    let name = word(r)?;
    r.take("WITH");
    let (mut schema, mut version) = (None, None);
    loop {
        if r.take("SCHEMA") {
            schema = Some(r.identifier()?);
        } else if r.take("VERSION") {
            version = Some(word(r)?);
        } else if !r.take("CASCADE") {
            return Ok(ddl(Ddl::CreateExtension { name, if_not_exists, schema, version }));
        }
    }
}

fn schema(r: &mut Reader) -> Result<Command, SqlError> {
    let if_not_exists = r.take("IF NOT EXISTS");
    let named = if r.peek_words("AUTHORIZATION") { None } else { Some(r.identifier()?) };
    let mut mentions = Mentions::default();
    if r.take("AUTHORIZATION") {
        grant::role(r, &mut mentions)?;
    }
    let owner = mentions.roles.pop();
    let Some(name) = named.or_else(|| owner.clone()) else { return Err(r.error_here()) };
    if !r.at_end() {
        return Err(SqlError::unsupported("CREATE SCHEMA with elements").hint("Create them afterwards, one by one."));
    }
    Ok(ddl(Ddl::CreateSchema { name, if_not_exists, owner }))
}

fn database(r: &mut Reader) -> Result<Command, SqlError> {
    let if_not_exists = r.take("IF NOT EXISTS");
    let name = r.identifier()?;
    r.take("WITH");
    let (mut owner, mut template) = (None, None);
    while let Some(word) = r.peek_word() {
        let word = word.to_ascii_lowercase();
        let known = ["owner", "template", "encoding", "lc_collate", "lc_ctype", "locale", "tablespace", "connection"];
        if !known.contains(&word.as_str()) && word != "limit" {
            return Err(r.error_here());
        }
        r.next();
        r.take_token(&Token::Eq);
        let value = if r.peek().and_then(string_of).is_some() { r.string()? } else { database_value(r)? };
        if word == "encoding" && !matches!(value.to_ascii_lowercase().replace('-', "").as_str(), "utf8" | "unicode") {
            return Err(SqlError::unsupported(format!("the encoding \"{value}\"")).hint("Use UTF8."));
        }
        if word == "tablespace" && value != "default" {
            check_tablespace(&value)?;
        }
        if word == "template" && value != "default" {
            template = Some(value.clone());
        }
        if word == "owner" && !matches!(value.as_str(), "current_user" | "current_role" | "session_user" | "default") {
            owner = Some(value);
        }
    }
    Ok(ddl(Ddl::CreateDatabase { name, if_not_exists, owner, template }))
}

fn database_value(r: &mut Reader) -> Result<String, SqlError> {
    match r.peek() {
        Some(Token::Number(..) | Token::Minus) => Ok(r.integer()?.to_string()),
        _ => r.identifier(),
    }
}

/// Options of CREATE and ALTER SEQUENCE, and of IDENTITY, up to what is none.
pub(super) fn sequence_options(r: &mut Reader) -> Result<SequenceOptions, SqlError> {
    let mut options = SequenceOptions::default();
    more_sequence_options(r, &mut options)?;
    Ok(options)
}

/// As [`sequence_options`], behind some that were said before.
pub(super) fn more_sequence_options(r: &mut Reader, o: &mut SequenceOptions) -> Result<(), SqlError> {
    loop {
        if r.take("AS") {
            o.ty = Some(r.data_type()?);
        } else if r.take("INCREMENT") {
            r.take("BY");
            o.increment = Some(r.integer()?);
        } else if r.take("MINVALUE") {
            o.min = Some(Some(r.integer()?));
        } else if r.take("NO MINVALUE") {
            o.min = Some(None);
        } else if r.take("MAXVALUE") {
            o.max = Some(Some(r.integer()?));
        } else if r.take("NO MAXVALUE") {
            o.max = Some(None);
        } else if r.take("START") {
            r.take("WITH");
            o.start = Some(r.integer()?);
        } else if r.take("RESTART") {
            let with = r.take("WITH") || matches!(r.peek(), Some(Token::Number(..) | Token::Minus));
            o.restart = Some(if with { Some(r.integer()?) } else { None });
        } else if r.take("CACHE") {
            o.cache = Some(r.integer()?);
        } else if r.take("CYCLE") {
            o.cycle = Some(true);
        } else if r.take("NO CYCLE") {
            o.cycle = Some(false);
        } else if r.take("SEQUENCE NAME") {
            o.name = Some(r.name()?);
        } else if r.take("OWNED BY NONE") {
            o.owned_by = Some(None);
        } else if r.take("OWNED BY") {
            o.owned_by = Some(Some(column_name(r)?));
        } else {
            return Ok(());
        }
    }
}

/// `[schema.]table.column`
fn column_name(r: &mut Reader) -> Result<(Name, String), SqlError> {
    let start = r.at;
    let full = r.name()?;
    match full {
        Name { database, schema: Some(table), name } => {
            Ok((Name { database: None, schema: database, name: table }, name))
        }
        _ => {
            let mut error = SqlError::new(SqlState::SYNTAX_ERROR, "invalid OWNED BY option")
                .hint("Specify OWNED BY table.column or OWNED BY NONE.");
            error.position = r.error_at(start).position;
            Err(error)
        }
    }
}
