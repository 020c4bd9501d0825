//! CREATE TABLE, its columns and constraints.

use super::command::Command;
use super::create::{collation, ddl, included, index_body, sequence_options, storage, table_storage, tablespace};
use super::cursor;
use super::ddl::{
    ColumnConstraint, ColumnConstraintKind, ColumnDef, CreateIndex, CreateTable, Ddl, References, SequenceOptions,
    TableConstraint, TableConstraintKind,
};
use super::reader::Reader;
use crate::catalog::{Deferral, Identity, ReferentialAction};
use crate::{SqlError, SqlState};
use sqlparser::tokenizer::Token;

pub(super) fn parse(r: &mut Reader, temporary: bool, unlogged: bool) -> Result<Command, SqlError> {
    if temporary {
        return Err(SqlError::unsupported("a temporary table").hint("Create an ordinary table, and drop it when done."));
    }
    let if_not_exists = r.take("IF NOT EXISTS");
    let name = r.name()?;
    if is_table_as(r) {
        return table_as(r, name, if_not_exists);
    }
    if r.take("PARTITION OF") || r.peek_words("OF") {
        return Err(SqlError::unsupported("a partition or a typed table")
            .hint("Create one table; use ALTER TABLE .. SPLIT AT to spread it."));
    }
    let mut table = CreateTable { name, if_not_exists, temporary, ..CreateTable::default() };
    if unlogged {
        table.ignored.push("UNLOGGED".into());
    }
    r.expect_token(&Token::LParen)?;
    if !r.take_token(&Token::RParen) {
        r.separated(|r| element(r, &mut table))?;
        r.expect_token(&Token::RParen)?;
    }
    if r.peek_words("INHERITS") || r.peek_words("PARTITION BY") {
        return Err(SqlError::unsupported(r.peek_word().unwrap_or_default().to_uppercase())
            .hint("Create one table; use ALTER TABLE .. SPLIT AT to spread it."));
    }
    r.take("WITHOUT OIDS");
    table.retention = table_storage(r)?;
    Ok(ddl(Ddl::CreateTable(table)))
}

/// After the name: `[(a, b)] [WITH (..)] AS`.
fn is_table_as(r: &Reader) -> bool {
    let mut n = 0;
    loop {
        match r.peek_nth(n) {
            Some(Token::LParen) => {
                let mut depth = 0;
                loop {
                    match r.peek_nth(n) {
                        Some(Token::LParen) => depth += 1,
                        Some(Token::RParen) => depth -= 1,
                        None => return false,
                        _ => {}
                    }
                    n += 1;
                    if depth == 0 {
                        break;
                    }
                }
            }
            Some(_) if r.is_word_at(n, "WITH") => n += 1,
            Some(_) if r.is_word_at(n, "TABLESPACE") => n += 2,
            _ => return r.is_word_at(n, "AS"),
        }
    }
}

fn table_as(r: &mut Reader, name: super::Name, if_not_exists: bool) -> Result<Command, SqlError> {
    let columns = if r.peek() == Some(&Token::LParen) { r.identifiers_in_parens()? } else { Vec::new() };
    if table_storage(r)?.is_some() {
        return Err(SqlError::unsupported("a retention in CREATE TABLE AS")
            .hint("Set it afterwards: ALTER TABLE .. SET (retention = ..)."));
    }
    r.expect("AS")?;
    let end = r.rest().end;
    let with_data = |r: &Reader, words: &[&str]| {
        let Some(from) = end.checked_sub(words.len()).and_then(|from| from.checked_sub(r.at)) else { return false };
        words.iter().enumerate().all(|(i, w)| r.is_word_at(from + i, w))
    };
    let no_data = with_data(r, &["WITH", "NO", "DATA"]);
    let tail = if no_data {
        3
    } else if with_data(r, &["WITH", "DATA"]) {
        2
    } else {
        0
    };
    let mut inside = Reader::new(r.lexed, r.at..end - tail, r.pace);
    let (query, text) = cursor::inner(&mut inside)?;
    r.skip_all();
    Ok(ddl(Ddl::CreateTableAs { name, columns, if_not_exists, query, text, no_data }))
}

fn element(r: &mut Reader, table: &mut CreateTable) -> Result<(), SqlError> {
    if r.peek_words("LIKE") {
        return Err(SqlError::unsupported("CREATE TABLE (LIKE ..)")
            .hint("Name the columns, or use CREATE TABLE AS .. WITH NO DATA."));
    }
    if r.peek_words("EXCLUDE") {
        return Err(SqlError::unsupported("an exclusion constraint").hint("Use UNIQUE where it suffices."));
    }
    if r.peek_words("FAMILY") && matches!(r.peek_nth(1), Some(Token::LParen))
        || r.peek_words("FAMILY") && r.peek_nth(2) == Some(&Token::LParen)
    {
        r.next();
        if r.peek() != Some(&Token::LParen) {
            r.next();
        }
        r.parens()?;
        table.ignored.push("FAMILY".into());
        return Ok(());
    }
    if let Some(index) = inline_index(r, table)? {
        table.indexes.push(index);
        return Ok(());
    }
    if let Some(constraint) = table_constraint(r)? {
        table.constraints.push(constraint);
        return Ok(());
    }
    table.columns.push(column(r)?);
    Ok(())
}

/// `[UNIQUE] INDEX [name] (..)`, but not a column named `index`.
fn inline_index(r: &mut Reader, table: &CreateTable) -> Result<Option<CreateIndex>, SqlError> {
    let unique = r.peek_words("UNIQUE INDEX");
    let at = usize::from(unique);
    if !r.is_word_at(at, "INDEX") {
        return Ok(None);
    }
    let named = r.peek_nth(at + 1) != Some(&Token::LParen);
    if named && r.peek_nth(at + 2) != Some(&Token::LParen) {
        return Ok(None);
    }
    r.at += at + 1;
    let name = if named { Some(r.identifier()?) } else { None };
    let body = index_body(r)?;
    Ok(Some(CreateIndex { name, table: table.name.clone(), unique, ..body }))
}

/// A column with its type and constraints.
pub(super) fn column(r: &mut Reader) -> Result<ColumnDef, SqlError> {
    let name = r.identifier()?;
    if r.at_end() || matches!(r.peek(), Some(Token::Comma | Token::RParen)) {
        return Err(r.error_here());
    }
    let ty = r.data_type()?;
    let (mut constraints, mut collated) = (Vec::new(), None);
    loop {
        if let Some(said) = collation(r)? {
            collated = Some(said);
            continue;
        }
        match column_constraint(r)? {
            Some(constraint) => constraints.push(constraint),
            None => return Ok(ColumnDef { name, ty, collation: collated, constraints }),
        }
    }
}

fn column_constraint(r: &mut Reader) -> Result<Option<ColumnConstraint>, SqlError> {
    let name = if r.take("CONSTRAINT") { Some(r.identifier()?) } else { None };
    let mut kind = if r.take("NOT NULL") {
        ColumnConstraintKind::NotNull
    } else if r.take("NULL") {
        ColumnConstraintKind::Null
    } else if r.take("DEFAULT") {
        ColumnConstraintKind::Default(default_text(r)?)
    } else if r.take("PRIMARY KEY") {
        storage(r)?;
        ColumnConstraintKind::PrimaryKey
    } else if r.take("UNIQUE") {
        nulls_distinct(r)?;
        storage(r)?;
        ColumnConstraintKind::Unique
    } else if r.take("CHECK") {
        ColumnConstraintKind::Check(check_text(r)?)
    } else if r.take("REFERENCES") {
        ColumnConstraintKind::References(references(r)?)
    } else if r.take("GENERATED") {
        match computed(r)? {
            Some(text) => ColumnConstraintKind::Generated(text),
            None => {
                let (identity, options) = generated(r)?;
                ColumnConstraintKind::Identity(identity, options)
            }
        }
    } else if name.is_some() {
        return Err(r.error_here());
    } else {
        return Ok(None);
    };
    match &mut kind {
        ColumnConstraintKind::References(references) => references.deferral = deferral(r)?,
        _ => characteristics(r)?,
    }
    Ok(Some(ColumnConstraint { name, kind }))
}

/// `GENERATED ALWAYS AS (expression) STORED`, after its first word; `None` if it is an identity.
fn computed(r: &mut Reader) -> Result<Option<String>, SqlError> {
    let (always, by_default) = (r.peek_words("ALWAYS AS"), r.peek_words("BY DEFAULT AS"));
    let words = if always { 2 } else { 3 };
    if !(always || by_default) || r.peek_nth(words) != Some(&Token::LParen) {
        return Ok(None);
    }
    r.at += words + 1;
    let (_, text) = r.expression_text()?;
    r.expect_token(&Token::RParen)?;
    r.expect("STORED")?;
    if by_default {
        return Err(SqlError::new(
            crate::SqlState::SYNTAX_ERROR,
            "for a generated column, GENERATED ALWAYS must be specified",
        ));
    }
    Ok(Some(text))
}

/// `GENERATED { ALWAYS | BY DEFAULT } AS IDENTITY [(..)]`, after its first word.
pub(super) fn generated(r: &mut Reader) -> Result<(Identity, SequenceOptions), SqlError> {
    let identity = identity_kind(r)?;
    r.expect("AS")?;
    r.expect("IDENTITY")?;
    let mut options = SequenceOptions::default();
    if r.take_token(&Token::LParen) {
        options = sequence_options(r)?;
        r.expect_token(&Token::RParen)?;
    }
    Ok((identity, options))
}

pub(super) fn identity_kind(r: &mut Reader) -> Result<Identity, SqlError> {
    if r.take("ALWAYS") {
        return Ok(Identity::Always);
    }
    r.expect("BY DEFAULT")?;
    Ok(Identity::ByDefault)
}

/// The text of a DEFAULT expression: up to the next word that begins another constraint.
pub(super) fn default_text(r: &mut Reader) -> Result<String, SqlError> {
    // The library reads `1 NOT NULL` as a question; in PostgreSQL a constraint begins there.
    r.default_text()
}

fn check_text(r: &mut Reader) -> Result<String, SqlError> {
    r.expect_token(&Token::LParen)?;
    let (_, text) = r.expression_text()?;
    r.expect_token(&Token::RParen)?;
    if r.take("NO INHERIT") {
        // Without inheritance it says nothing.
    }
    Ok(text)
}

fn references(r: &mut Reader) -> Result<References, SqlError> {
    let table = r.name()?;
    let columns = if r.peek() == Some(&Token::LParen) { r.identifiers_in_parens()? } else { Vec::new() };
    let mut references = References {
        table,
        columns,
        on_delete: ReferentialAction::NoAction,
        on_update: ReferentialAction::NoAction,
        deferral: Deferral::NotDeferrable,
    };
    loop {
        if r.take("MATCH FULL") || r.take("MATCH PARTIAL") {
            return Err(SqlError::unsupported("MATCH FULL or PARTIAL").hint("Use MATCH SIMPLE and NOT NULL columns."));
        } else if r.take("MATCH SIMPLE") {
        } else if r.take("ON DELETE") {
            references.on_delete = action(r)?;
        } else if r.take("ON UPDATE") {
            references.on_update = action(r)?;
        } else {
            return Ok(references);
        }
    }
}

fn action(r: &mut Reader) -> Result<ReferentialAction, SqlError> {
    let action = if r.take("NO ACTION") {
        ReferentialAction::NoAction
    } else if r.take("RESTRICT") {
        ReferentialAction::Restrict
    } else if r.take("CASCADE") {
        ReferentialAction::Cascade
    } else if r.take("SET NULL") {
        ReferentialAction::SetNull
    } else if r.take("SET DEFAULT") {
        ReferentialAction::SetDefault
    } else {
        return Err(r.error_here());
    };
    if r.peek() == Some(&Token::LParen) {
        return Err(SqlError::unsupported("SET NULL or DEFAULT of some columns").hint("Name no columns after it."));
    }
    Ok(action)
}

/// When a constraint is checked that is not a foreign key: by each statement.
fn characteristics(r: &mut Reader) -> Result<(), SqlError> {
    if deferral(r)? != Deferral::NotDeferrable {
        return Err(SqlError::unsupported("a deferrable constraint that is not a foreign key")
            .hint("Leave DEFERRABLE out: the constraint is checked by each statement."));
    }
    Ok(())
}

/// When a foreign key is checked.
fn deferral(r: &mut Reader) -> Result<Deferral, SqlError> {
    let (mut deferrable, mut initially) = (None, None);
    loop {
        let start = r.at;
        let twice = if r.take("NOT DEFERRABLE") {
            deferrable.replace(false).is_some()
        } else if r.take("DEFERRABLE") {
            deferrable.replace(true).is_some()
        } else if r.take("INITIALLY IMMEDIATE") {
            initially.replace(false).is_some()
        } else if r.take("INITIALLY DEFERRED") {
            initially.replace(true).is_some()
        } else {
            break;
        };
        if twice {
            return Err(r.error_at(start));
        }
    }
    match (deferrable, initially) {
        (Some(false), Some(true)) => {
            Err(SqlError::new(SqlState::SYNTAX_ERROR, "constraint declared INITIALLY DEFERRED must be DEFERRABLE"))
        }
        (_, Some(true)) => Ok(Deferral::InitiallyDeferred),
        (Some(true), _) => Ok(Deferral::InitiallyImmediate),
        _ => Ok(Deferral::NotDeferrable),
    }
}

fn nulls_distinct(r: &mut Reader) -> Result<(), SqlError> {
    if r.take("NULLS NOT DISTINCT") {
        return Err(SqlError::unsupported("NULLS NOT DISTINCT").hint("Declare the columns NOT NULL."));
    }
    r.take("NULLS DISTINCT");
    Ok(())
}

/// A constraint of a table, if one begins here.
pub(super) fn table_constraint(r: &mut Reader) -> Result<Option<TableConstraint>, SqlError> {
    let name = if r.take("CONSTRAINT") { Some(r.identifier()?) } else { None };
    let mut include = Vec::new();
    let mut kind = if r.peek_words("PRIMARY KEY") || r.peek_words("UNIQUE") {
        let primary = r.take("PRIMARY KEY");
        if !primary {
            r.take("UNIQUE");
            nulls_distinct(r)?;
        }
        if r.take("USING INDEX") {
            TableConstraintKind::UsingIndex { primary, index: r.identifier()? }
        } else {
            let columns = r.identifiers_in_parens()?;
            include = included(r)?;
            storage(r)?;
            if r.take("USING INDEX TABLESPACE") {
                tablespace(r)?;
            }
            if primary { TableConstraintKind::PrimaryKey(columns) } else { TableConstraintKind::Unique(columns) }
        }
    } else if r.peek_words("CHECK") && r.peek_nth(1) == Some(&Token::LParen) {
        r.next();
        TableConstraintKind::Check(check_text(r)?)
    } else if r.take("FOREIGN KEY") {
        let columns = r.identifiers_in_parens()?;
        r.expect("REFERENCES")?;
        TableConstraintKind::ForeignKey(columns, references(r)?)
    } else if name.is_some() {
        return Err(r.error_here());
    } else {
        return Ok(None);
    };
    match &mut kind {
        TableConstraintKind::ForeignKey(_, references) => references.deferral = deferral(r)?,
        _ => characteristics(r)?,
    }
    Ok(Some(TableConstraint { name, kind, include }))
}
