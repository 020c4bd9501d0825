//! Prepared statements, cursors, EXPLAIN.

use super::command::{Command, Direction, Move, Planned};
use super::ddl::Ddl;
use super::explain::{Format, Options};
use super::reader::Reader;
use super::rewrite;
use crate::{SqlError, SqlState};
use sqlparser::tokenizer::Token;
use std::sync::Arc;

pub(super) fn parse(r: &mut Reader) -> Result<Command, SqlError> {
    if r.take("PREPARE TRANSACTION") {
        return Err(
            SqlError::unsupported("PREPARE TRANSACTION").hint("Use COMMIT: it is atomic over all ranges by itself.")
        );
    }
    if r.take("PREPARE") {
        return prepare(r);
    }
    if r.take("EXECUTE") {
        return execute(r);
    }
    if r.take("DEALLOCATE") {
        r.take("PREPARE");
        return Ok(Command::Deallocate(if r.take("ALL") { None } else { Some(r.identifier()?) }));
    }
    if r.take("EXPLAIN") {
        return explain(r);
    }
    if r.take("DECLARE") {
        return declare(r);
    }
    if r.take("CLOSE") {
        return Ok(Command::Close(if r.take("ALL") { None } else { Some(r.identifier()?) }));
    }
    fetch(r)
}

/// The statement that is the rest of this one, and its text.
pub(super) fn inner(r: &mut Reader) -> Result<(Arc<Planned>, Arc<str>), SqlError> {
    let text = r.lexed.slice(r.rest()).into();
    match rewrite::query_or_dml(r)? {
        Command::Planned(planned) => Ok((Arc::new(planned), text)),
        _ => Err(r.error_here()),
    }
}

fn prepare(r: &mut Reader) -> Result<Command, SqlError> {
    let name = r.identifier()?;
    let mut types = Vec::new();
    if r.take_token(&Token::LParen) {
        types = r.separated(Reader::data_type)?;
        r.expect_token(&Token::RParen)?;
    }
    r.expect("AS")?;
    let (statement, text) = inner(r)?;
    Ok(Command::Prepare { name, types, statement, text })
}

fn execute(r: &mut Reader) -> Result<Command, SqlError> {
    let (name, arguments) = executed(r)?;
    Ok(Command::Execute { name, arguments })
}

/// A prepared statement's name, and its arguments as text.
fn executed(r: &mut Reader) -> Result<(String, Vec<String>), SqlError> {
    let name = r.identifier()?;
    let mut arguments = Vec::new();
    if r.take_token(&Token::LParen) && !r.take_token(&Token::RParen) {
        arguments = r.separated(|r| Ok(r.expression_text()?.1))?;
        r.expect_token(&Token::RParen)?;
    }
    Ok((name, arguments))
}

fn explain(r: &mut Reader) -> Result<Command, SqlError> {
    let mut options = Options::default();
    if r.peek() == Some(&Token::LParen) && !is_query_in_parens(r) {
        r.next();
        r.separated(|r| explain_option(r, &mut options))?;
        r.expect_token(&Token::RParen)?;
    } else {
        options.analyze = r.take("ANALYZE") || r.take("ANALYSE");
        options.verbose = r.take("VERBOSE");
    }
    if r.take("EXECUTE") {
        let (name, arguments) = executed(r)?;
        return Ok(Command::ExplainExecute { options, name, arguments });
    }
    // Of what a query is run for, the query is explained.
    let declared = r.take("DECLARE");
    if declared || r.peek_words("CREATE TABLE") {
        let what = if declared { declare(r)? } else { super::create::parse(r)? };
        let (statement, text) = match what {
            Command::Declare { query, text, .. } => (query, text),
            Command::Ddl(ddl) => match *ddl {
                Ddl::CreateTableAs { query, text, .. } => (query, text),
                _ => return Err(r.error_here()),
            },
            _ => return Err(r.error_here()),
        };
        if options.analyze {
            return Err(SqlError::unsupported("EXPLAIN ANALYZE of what a query is run for")
                .hint("Explain the query by itself."));
        }
        return Ok(Command::Explain { options, statement, text });
    }
    let (statement, text) = inner(r)?;
    Ok(Command::Explain { options, statement, text })
}

fn explain_option(r: &mut Reader, options: &mut Options) -> Result<(), SqlError> {
    let name = r.identifier()?;
    let value = match r.peek_word() {
        Some(word) => {
            let word = word.to_ascii_lowercase();
            r.next();
            Some(word)
        }
        None => None,
    };
    let refused = |what: String| Err(SqlError::new(SqlState::INVALID_PARAMETER, what));
    if name == "format" {
        options.format = match value.as_deref() {
            Some("text") => Format::Text,
            Some("json") => Format::Json,
            Some(word @ ("xml" | "yaml")) => {
                return Err(SqlError::unsupported(format!("EXPLAIN (FORMAT {})", word.to_uppercase()))
                    .hint("The plan comes as TEXT or JSON."));
            }
            Some(word) => {
                return refused(format!("unrecognized value for EXPLAIN option \"format\": \"{word}\""));
            }
            None => return Err(SqlError::new(SqlState::SYNTAX_ERROR, "format requires a parameter")),
        };
        return Ok(());
    }
    let on = match value.as_deref() {
        None | Some("on" | "true") => true,
        Some("off" | "false") => false,
        Some(_) => return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("{name} requires a Boolean value"))),
    };
    match name.as_str() {
        "analyze" => options.analyze = on,
        "verbose" => options.verbose = on,
        "costs" => options.costs = on,
        "timing" => options.timing = on,
        "summary" => options.summary = Some(on),
        "buffers" | "settings" | "wal" => {}
        _ => {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("unrecognized EXPLAIN option \"{name}\"")));
        }
    }
    Ok(())
}

fn is_query_in_parens(r: &Reader) -> bool {
    ["SELECT", "WITH", "VALUES", "TABLE"].iter().any(|word| r.is_word_at(1, word))
        || r.peek_nth(1) == Some(&Token::LParen)
}

fn declare(r: &mut Reader) -> Result<Command, SqlError> {
    let name = r.identifier()?;
    let (mut scroll, mut no_scroll) = (false, false);
    loop {
        if r.take("NO SCROLL") {
            no_scroll = true;
        } else if r.take("SCROLL") {
            scroll = true;
        } else if !(r.take("BINARY") || r.take("INSENSITIVE") || r.take("ASENSITIVE")) {
            break;
        }
    }
    if scroll && no_scroll {
        return Err(SqlError::new(SqlState::INVALID_CURSOR_DEFINITION, "cannot specify both SCROLL and NO SCROLL"));
    }
    r.expect("CURSOR")?;
    let hold = r.take("WITH HOLD");
    r.take("WITHOUT HOLD");
    r.expect("FOR")?;
    let (query, text) = inner(r)?;
    if let sqlparser::ast::Statement::Query(query) = &query.statement
        && !query.locks.is_empty()
    {
        let refused = |what: &str, detail: &str| {
            let message = format!("DECLARE {what} ... FOR UPDATE is not supported");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).detail(detail))
        };
        if hold {
            return refused("CURSOR WITH HOLD", "Holdable cursors must be READ ONLY.");
        }
        if scroll {
            return refused("SCROLL CURSOR", "Scrollable cursors must be READ ONLY.");
        }
    }
    let locks = matches!(&query.statement, sqlparser::ast::Statement::Query(query) if !query.locks.is_empty());
    let direction = match (scroll, no_scroll || locks) {
        (true, _) => Direction::Both,
        (false, true) => Direction::Forward,
        (false, false) => Direction::Open,
    };
    Ok(Command::Declare { name, direction, hold, query, text })
}

fn fetch(r: &mut Reader) -> Result<Command, SqlError> {
    let skip = r.take("MOVE");
    if !skip {
        r.expect("FETCH")?;
    }
    let movement = movement(r)?;
    let _ = r.take("FROM") || r.take("IN");
    Ok(Command::Fetch { name: r.identifier()?, movement, skip })
}

fn movement(r: &mut Reader) -> Result<Move, SqlError> {
    let is_number = |r: &Reader| matches!(r.peek(), Some(Token::Number(..) | Token::Minus | Token::Plus));
    // A word may be the cursor's name: `FETCH next`.
    let named = r.peek_nth(1).is_none() || matches!(r.peek_nth(1), Some(Token::SemiColon));
    if is_number(r) {
        return Ok(Move::By(r.integer()?));
    }
    if named {
        return Ok(Move::By(1));
    }
    for (word, movement) in [
        ("NEXT", Move::By(1)),
        ("PRIOR", Move::By(-1)),
        ("FIRST", Move::To(1)),
        ("LAST", Move::To(-1)),
        ("ALL", Move::ToEnd),
        ("FORWARD ALL", Move::ToEnd),
        ("BACKWARD ALL", Move::ToStart),
    ] {
        if r.take(word) {
            return Ok(movement);
        }
    }
    if r.take("ABSOLUTE") {
        return Ok(Move::To(r.integer()?));
    }
    if r.take("RELATIVE") {
        return Ok(Move::Over(r.integer()?));
    }
    if r.take("BACKWARD") {
        return Ok(Move::By(if is_number(r) { r.integer()?.saturating_neg() } else { -1 }));
    }
    Ok(Move::By(if r.take("FORWARD") && is_number(r) { r.integer()? } else { 1 }))
}
