//! Transaction control, upkeep that is not needed here, and what is refused.

use super::command::{AsOf, Command, Mentions, Modes, Moment};
use super::ddl::ObjectKind;
use super::drop::owned;
use super::name::Name;
use super::reader::{Reader, string_of};
use crate::transaction::{Consistency, Isolation};
use crate::{SqlError, SqlState};
use sqlparser::tokenizer::Token;

pub(super) fn parse(r: &mut Reader) -> Result<Command, SqlError> {
    if r.take("START TRANSACTION") {
        return Ok(Command::Begin(modes(r)?));
    }
    if r.take("BEGIN") {
        noise(r);
        return Ok(Command::Begin(modes(r)?));
    }
    if r.take("COMMIT PREPARED") || r.take("ROLLBACK PREPARED") {
        return Err(two_phase());
    }
    if r.take("COMMIT") || r.take("END") {
        noise(r);
        return Ok(Command::Commit { chain: chain(r) });
    }
    if r.take("ROLLBACK") || r.take("ABORT") {
        noise(r);
        if r.take("TO") {
            r.take("SAVEPOINT");
            return Ok(Command::RollbackTo(r.identifier()?));
        }
        return Ok(Command::Rollback { chain: chain(r) });
    }
    if r.take("SAVEPOINT") {
        return Ok(Command::Savepoint(r.identifier()?));
    }
    if r.take("RELEASE") {
        r.take("SAVEPOINT");
        return Ok(Command::Release(r.identifier()?));
    }
    Err(r.error_here())
}

fn two_phase() -> SqlError {
    SqlError::unsupported("a transaction prepared by the client")
        .hint("Use COMMIT: it is atomic over all ranges by itself.")
}

fn noise(r: &mut Reader) {
    let _ = r.take("TRANSACTION") || r.take("WORK");
}

fn chain(r: &mut Reader) -> bool {
    if r.take("AND CHAIN") {
        return true;
    }
    r.take("AND NO CHAIN");
    false
}

/// Transaction modes, separated by commas or spaces.
pub(super) fn modes(r: &mut Reader) -> Result<Modes, SqlError> {
    let mut modes = Modes::default();
    while !r.at_end() {
        if r.take("ISOLATION LEVEL") {
            modes.uncommitted = r.peek_words("READ UNCOMMITTED");
            modes.isolation = Some(isolation(r)?);
        } else if r.take("READ ONLY") {
            modes.read_only = Some(true);
        } else if r.take("READ WRITE") {
            modes.read_only = Some(false);
        } else if r.take("NOT DEFERRABLE") {
            modes.deferrable = Some(false);
        } else if r.take("DEFERRABLE") {
            modes.deferrable = Some(true);
        } else if r.take("AS OF SYSTEM TIME") {
            modes.as_of = Some(as_of(r)?);
        } else if r.take("CONSISTENCY") {
            modes.consistency = Some(consistency(r)?);
        } else {
            return Err(r.error_here());
        }
        r.take_token(&Token::Comma);
    }
    Ok(modes)
}

fn isolation(r: &mut Reader) -> Result<Isolation, SqlError> {
    if r.take("SERIALIZABLE") {
        Ok(Isolation::Serializable)
    } else if r.take("REPEATABLE READ") || r.take("SNAPSHOT") {
        Ok(Isolation::RepeatableRead)
    } else if r.take("READ COMMITTED") || r.take("READ UNCOMMITTED") {
        Ok(Isolation::ReadCommitted)
    } else {
        Err(r.error_here())
    }
}

/// `CONSISTENCY strict`, `CONSISTENCY 'strict'`: what `timeball.consistency` takes.
fn consistency(r: &mut Reader) -> Result<Consistency, SqlError> {
    let start = r.at;
    let word = match r.peek().and_then(string_of) {
        Some(text) => {
            r.next();
            text.to_ascii_lowercase()
        }
        None => r.identifier()?,
    };
    Consistency::of_name(&word).ok_or_else(|| {
        r.error_at(start)
            .hint(format!("CONSISTENCY is one of {}.", Consistency::NAMES.map(|(name, _)| name).join(", ")))
    })
}

/// What follows AS OF SYSTEM TIME.
pub(super) fn as_of(r: &mut Reader) -> Result<AsOf, SqlError> {
    if let Some(text) = r.peek().and_then(string_of) {
        r.next();
        cast(r)?;
        return Ok(AsOf::At(Moment::Text(text)));
    }
    if let Some(index) = parameter(r)? {
        return Ok(AsOf::At(Moment::Parameter(index)));
    }
    if matches!(r.peek(), Some(Token::Number(..) | Token::Minus)) {
        let minus = r.take_token(&Token::Minus);
        let Some(Token::Number(digits, _)) = r.next() else { return Err(r.error_here()) };
        let text = format!("{}{digits}", if minus { "-" } else { "" });
        return Ok(AsOf::At(Moment::Text(text)));
    }
    let start = r.at;
    let word = r.identifier()?;
    if word == "timestamp" || word == "timestamptz" || word == "interval" {
        r.take("WITH TIME ZONE");
        return Ok(AsOf::At(Moment::Text(r.string()?)));
    }
    r.expect_token(&Token::LParen)?;
    let as_of = match word.as_str() {
        "follower_read_timestamp" | "experimental_follower_read_timestamp" => AsOf::FollowerRead,
        "with_max_staleness" => AsOf::MaxStaleness(argument(r)?),
        "with_min_timestamp" => AsOf::MinTimestamp(argument(r)?),
        "with_negotiated_timestamp" if r.peek() == Some(&Token::RParen) => AsOf::Negotiated(None),
        "with_negotiated_timestamp" => AsOf::Negotiated(Some(argument(r)?)),
        _ => return Err(r.error_at(start)),
    };
    r.expect_token(&Token::RParen)?;
    Ok(as_of)
}

fn argument(r: &mut Reader) -> Result<Moment, SqlError> {
    if let Some(index) = parameter(r)? {
        return Ok(Moment::Parameter(index));
    }
    let _ = r.take("INTERVAL") || r.take("TIMESTAMP") || r.take("TIMESTAMPTZ");
    let text = r.string()?;
    cast(r)?;
    Ok(Moment::Text(text))
}

/// `$1`, with or without a cast, counted from 0.
fn parameter(r: &mut Reader) -> Result<Option<usize>, SqlError> {
    let Some(Token::Placeholder(text)) = r.peek() else { return Ok(None) };
    // The protocol has 16 bits for how many there are.
    let number = text.strip_prefix('$').and_then(|digits| digits.parse::<u16>().ok());
    let index = number.and_then(|number| number.checked_sub(1)).ok_or_else(|| r.error_here())?;
    r.next();
    cast(r)?;
    Ok(Some(usize::from(index)))
}

fn cast(r: &mut Reader) -> Result<(), SqlError> {
    if r.take_token(&Token::DoubleColon) {
        r.data_type()?;
    }
    Ok(())
}

/// ANALYZE, VACUUM and other statements that are accepted without effect or refused.
pub(super) fn upkeep(r: &mut Reader) -> Result<Command, SqlError> {
    let done = |r: &mut Reader, tag, outside_block| {
        let mut mentions = Mentions::default();
        if tag == "UNLISTEN" {
            r.skip_all();
        } else {
            mentions.relations = upkept(r, tag)?.names();
        }
        if tag == "CLUSTER" && r.take("USING") {
            let index = r.name()?;
            mentions.relations.push(index.clone());
            mentions.kinds.push((ObjectKind::Index, index));
        } else if tag == "CLUSTER" && r.take("ON") {
            mentions.relations.push(r.name()?);
        }
        Ok(Command::Nothing { tag, notice: None, outside_block, mentions: Box::new(mentions) })
    };
    let word = r.identifier()?;
    match word.as_str() {
        "analyze" | "analyse" => {
            Ok(Command::Analyze { tag: "ANALYZE", outside_block: false, tables: upkept(r, "ANALYZE")?.relations })
        }
        "vacuum" => {
            let found = upkept(r, "VACUUM")?;
            if found.analyze {
                return Ok(Command::Analyze { tag: "VACUUM", outside_block: true, tables: found.relations });
            }
            if found.relations.iter().any(|(_, columns)| !columns.is_empty()) {
                let message = "ANALYZE option must be specified when a column list is provided";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            let mentions = Box::new(Mentions { relations: found.names(), ..Mentions::default() });
            Ok(Command::Nothing { tag: "VACUUM", notice: None, outside_block: true, mentions })
        }
        "checkpoint" => done(r, "CHECKPOINT", false),
        "cluster" => done(r, "CLUSTER", false),
        "reindex" => done(r, "REINDEX", false),
        "unlisten" => done(r, "UNLISTEN", false),
        "security" => Err(SqlError::new(SqlState::INVALID_PARAMETER, "no security label providers have been loaded")),
        "reassign" => {
            r.expect("OWNED BY")?;
            owned(r, "REASSIGN OWNED", "cannot reassign ownership of objects owned by role")
        }
        "lock" => lock(r),
        "listen" | "notify" => {
            Err(SqlError::unsupported(format!("{} (asynchronous notification)", word.to_uppercase()))
                .hint("Poll a table, or use a message broker."))
        }
        "do" => Err(SqlError::unsupported("DO (an anonymous code block)").hint("Run its statements one by one.")),
        "call" => Err(SqlError::unsupported("CALL (a procedure)").hint("Run its statements from the application.")),
        "merge" => Err(SqlError::unsupported("MERGE").hint("Use INSERT .. ON CONFLICT DO UPDATE.")),
        "refresh" => Err(SqlError::unsupported("a materialized view").hint("Use CREATE TABLE AS.")),
        "load" | "import" => Err(SqlError::unsupported(word.to_uppercase()).hint("Load data with COPY .. FROM STDIN.")),
        _ => Err(r.error_here()),
    }
}

/// What VACUUM, ANALYZE, CLUSTER and REINDEX are told.
struct Upkept {
    /// The relations, and columns of them; none where all are meant, or what holds them.
    relations: Vec<(Name, Vec<String>)>,
    /// It says ANALYZE.
    analyze: bool,
}

impl Upkept {
    fn names(self) -> Vec<Name> {
        self.relations.into_iter().map(|(name, _)| name).collect()
    }
}

/// Options in parentheses, of the statement.
fn options_of(statement: &str) -> &'static [&'static str] {
    match statement {
        "VACUUM" => &[
            "full",
            "freeze",
            "verbose",
            "analyze",
            "disable_page_skipping",
            "skip_locked",
            "index_cleanup",
            "process_toast",
            "truncate",
            "parallel",
        ],
        "ANALYZE" => &["verbose", "skip_locked"],
        "REINDEX" => &["concurrently", "tablespace", "verbose"],
        _ => &["verbose"],
    }
}

fn upkept(r: &mut Reader, statement: &str) -> Result<Upkept, SqlError> {
    let mut analyze = false;
    if r.peek() == Some(&Token::LParen) {
        let options = r.parens()?;
        let mut options = Reader::new(r.lexed, options, r.pace);
        options.separated(|options| {
            let name = options.identifier()?;
            let name = if name == "analyse" { "analyze".into() } else { name };
            if !options_of(statement).contains(&name.as_str()) {
                let message = format!("unrecognized {statement} option \"{name}\"");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            let off = options.peek_words("OFF")
                || options.peek_words("FALSE")
                || matches!(options.peek(), Some(Token::Number(number, _)) if number == "0");
            if !options.at_end() && options.peek() != Some(&Token::Comma) {
                options.next();
            }
            analyze |= name == "analyze" && !off;
            Ok(())
        })?;
    }
    loop {
        let said = r.take("ANALYZE") || r.take("ANALYSE");
        analyze |= said;
        if !said && !["FULL", "FREEZE", "VERBOSE"].iter().any(|word| r.take(word)) {
            break;
        }
    }
    if ["SCHEMA", "DATABASE", "SYSTEM"].iter().any(|word| r.peek_words(word)) || r.at_end() {
        r.skip_all();
        return Ok(Upkept { relations: Vec::new(), analyze });
    }
    let _ = r.take("TABLE") || r.take("INDEX");
    r.take("CONCURRENTLY");
    let relations = r.separated(|r| {
        r.take("ONLY");
        let name = r.name()?;
        let mut columns = Vec::new();
        if r.peek() == Some(&Token::LParen) {
            let inside = r.parens()?;
            columns = Reader::new(r.lexed, inside, r.pace).separated(Reader::identifier)?;
        }
        Ok((name, columns))
    })?;
    Ok(Upkept { relations, analyze })
}

fn lock(r: &mut Reader) -> Result<Command, SqlError> {
    r.take("TABLE");
    let names = r.tables()?;
    if r.take("IN") {
        while !r.at_end() && !r.peek_words("MODE") {
            r.identifier()?;
        }
        r.expect("MODE")?;
    }
    r.take("NOWAIT");
    Ok(Command::LockTable(names))
}
