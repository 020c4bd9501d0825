//! The simple protocol: a text of statements, one implicit transaction unless it says otherwise.

use super::portal::Portal;
use super::prepared::Prepared;
use super::run::How;
use super::startup::Executed;
use super::text_cache::Statements;
use super::{Block, STATEMENT_ATTEMPTS_MAX, Session};
use crate::SqlError;
use crate::output::Output;
use crate::syntax::{self, Command};
use std::sync::Arc;

impl Session {
    /// A Query message. On error the rest of the text is skipped; the caller sends the error, then ReadyForQuery. When
    /// [`Session::in_copy`] holds afterwards, the caller feeds `copy_data` and sends ReadyForQuery only after `copy_done` or
    /// `copy_fail` has returned with `in_copy` false.
    ///
    /// # Errors
    /// The statement's.
    pub fn simple_query(&mut self, sql: &str, out: &mut dyn Output) -> Result<(), SqlError> {
        self.begin_message();
        self.with_limits(|session| session.run_text(sql, out))
    }

    fn run_text(&mut self, sql: &str, out: &mut dyn Output) -> Result<(), SqlError> {
        self.unnamed = None;
        self.show_text(sql);
        if let Some(mut portal) = self.lifted(sql) {
            let done = self.run_portal(&mut portal, How { describe: true, max_rows: 0, commit: true }, out);
            done.map_err(|e| Session::place_in_text(&portal, e, sql))?;
            return self.end_text();
        }
        let all = match self.db.texts.script(sql, &self.pace, is_plain) {
            Ok(all) => all,
            Err(e) => {
                self.failed();
                return Err(e);
            }
        };
        if all.is_empty() {
            out.empty_query();
            self.deadline.clear();
            return Ok(());
        }
        if all.len() == 1 || self.block != Block::None || !are_plain(&all) {
            return self.run_batch(&all, 0, out);
        }
        // Several statements that are one transaction: it can be repeated as a whole.
        let mark = out.mark();
        for _ in 1..STATEMENT_ATTEMPTS_MAX {
            match self.run_batch(&all, 0, out) {
                Err(e) if SqlError::retry(&e) && out.rewind(mark) => {}
                other => return other,
            }
        }
        self.run_batch(&all, 0, out)
    }

    /// Runs the statements of a text from one on.
    pub(super) fn run_batch(&mut self, all: &Statements, from: usize, out: &mut dyn Output) -> Result<(), SqlError> {
        for index in from..all.len() {
            let last = index + 1 == all.len();
            let prepared = match self.statement(all, index) {
                Ok(prepared) => prepared,
                Err(e) => {
                    self.failed();
                    return Err(e);
                }
            };
            let mut portal = Portal::unbound(Arc::new(prepared));
            let how = How { describe: true, max_rows: 0, commit: last };
            if self.run_portal(&mut portal, how, out)? == Executed::CopyIn {
                self.rest = (!last).then(|| (all.clone(), index + 1));
                return Ok(());
            }
        }
        self.end_text()
    }

    /// All statements of a text have run: their transaction commits, if it is theirs alone.
    fn end_text(&mut self) -> Result<(), SqlError> {
        if self.block == Block::None && self.active.is_some() {
            let done = self.commit().map_err(|e| self.name_row(e));
            self.deadline.clear();
            done?;
        }
        Ok(())
    }

    /// A statement of a text, parsed again if that has many.
    fn statement(&mut self, all: &Statements, index: usize) -> Result<Prepared, SqlError> {
        let (text, place) = match all {
            Statements::Parsed(all) => return Ok(Prepared::parsed(all, index, Vec::new())),
            Statements::Places(text, all) => (text, &all[index]),
        };
        self.start_deadline();
        // Not by way of the texts that are kept: a dump's statements would take the place of everybody's.
        let all = syntax::parse_at(&text[place.bytes.clone()], &self.pace).map_err(|e| self.timed_out(e))?;
        let mut prepared = Prepared::parsed(&all.into(), 0, Vec::new());
        prepared.offset += place.offset;
        Ok(prepared)
    }

    /// Ends the transaction of a simple query whose last statement was a COPY, or goes on with what follows.
    pub(super) fn after_copy(&mut self, out: &mut dyn Output) -> Result<(), SqlError> {
        match self.rest.take() {
            Some((all, from)) => self.run_batch(&all, from, out),
            None => Ok(()),
        }
    }
}

fn are_plain(all: &Statements) -> bool {
    match all {
        Statements::Parsed(all) => all.iter().all(|parsed| is_plain(&parsed.command)),
        Statements::Places(_, all) => all.iter().all(|place| place.answer),
    }
}

/// Statements that leave nothing behind in the session when their transaction is given up.
fn is_plain(command: &Command) -> bool {
    matches!(command, Command::Planned(_) | Command::Ddl(_) | Command::Set { .. } | Command::Show(_))
}
