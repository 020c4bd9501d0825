//! Runs one statement: plans it, pulls its rows, commits if the transaction is its own, and tries again if it may.

use super::portal::{Buffered, Portal, PortalState};
use super::prepared::{Prepared, Purpose};
use super::schema_change::needs_no_block;
use super::startup::Executed;
use super::{Block, STATEMENT_ATTEMPTS_MAX, Session};
use crate::context::StatementContext;
use crate::output::{Field, Output};
use crate::plan::Execution;
use crate::plan::parts::is_modifying;
use crate::syntax::{Command, lock_words};
use crate::transaction::{Consistency, Isolation};
use crate::types::Value;
use crate::{KvError, SqlError, SqlState, work};
use clock::Timestamp;
use sqlparser::ast::{Query, SetExpr, Statement};
use std::sync::Arc;

/// Rows pulled at once.
const PULL_ROWS: usize = 256;

/// How a run is to go.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// Send the shape first (simple protocol).
    pub(super) describe: bool,
    /// Most rows; 0 is all.
    pub(super) max_rows: u64,
    /// The statement is its whole transaction: commit.
    pub(super) commit: bool,
}

/// What a run came to.
pub(super) enum Outcome {
    /// Done: the tag to send.
    Tag(String),
    /// Done: the tag is `SELECT n`.
    Selected(u64),
    /// The row limit was reached.
    Suspended,
    /// COPY FROM STDIN has begun.
    CopyIn,
}

/// Whether a command reads, locks and writes nothing itself: what comes next may be repeated from where the last statement ended, or from a savepoint that it names.
fn leaves_marks(command: &Command) -> bool {
    matches!(
        command,
        Command::Savepoint(_)
            | Command::Release(_)
            | Command::RollbackTo(_)
            | Command::Set { .. }
            | Command::Show { .. }
    )
}

/// So often a READ COMMITTED statement is tried before its transaction begins anew.
const KEPT_ATTEMPTS: usize = 5;

impl Session {
    /// Runs a portal to its end or limit, and sends its CommandComplete.
    pub(super) fn run_portal(
        &mut self,
        portal: &mut Portal,
        how: How,
        out: &mut dyn Output,
    ) -> Result<Executed, SqlError> {
        self.start_deadline();
        let shown = portal.literals.as_ref().map_or(&portal.prepared.text, |literals| &literals.shown).clone();
        self.show_statement(&shown);
        let outcome = self.run_outcome(portal, how, out).and_then(|outcome| {
            self.apply_effects(out)?;
            Ok(outcome)
        });
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(e) => {
                let e = self.name_row(portal.prepared.place(self.timed_out(e)));
                self.failed();
                return Err(e);
            }
        };
        self.deadline.clear();
        match outcome {
            Outcome::Tag(tag) => out.command_complete(&tag),
            Outcome::Selected(rows) => selected(rows, out),
            Outcome::Suspended => return Ok(Executed::Suspended),
            Outcome::CopyIn => return Ok(Executed::CopyIn),
        }
        Ok(Executed::Complete)
    }

    fn run_outcome(&mut self, portal: &mut Portal, how: How, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        let prepared = portal.prepared.clone();
        self.commits = false;
        self.refuse_old_snapshot(prepared.command())?;
        match prepared.command() {
            None if prepared.planned().is_some() => self.run_retrying(portal, how, out),
            Some(
                Command::Planned(_)
                | Command::Ddl(_)
                | Command::Explain { .. }
                | Command::ExplainExecute { .. }
                | Command::Copy(_),
            ) => {
                self.refuse_in_failed_block()?;
                self.run_retrying(portal, how, out)
            }
            Some(command) => {
                if let Some(active) = self.active.as_mut() {
                    active.tried_from = None;
                    active.between = active.between.filter(|_| leaves_marks(command));
                }
                self.run_control(command, portal, how, out)
            }
            None => Ok(Outcome::Tag(String::new())),
        }
    }

    /// A cancelled statement whose time had run out says so.
    pub(super) fn timed_out(&self, e: SqlError) -> SqlError {
        let late = self.deadline.has_passed(self.db.kv.as_ref());
        if late && (e.state == SqlState::QUERY_CANCELED || e.state == SqlState::LOCK_NOT_AVAILABLE) {
            return work::timed_out();
        }
        e
    }

    /// Runs until it works, or cannot be repeated, or has been tried often enough (invariant 2).
    pub(super) fn run_retrying(
        &mut self,
        portal: &mut Portal,
        how: How,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        let done = self.run_until_it_works(portal, how, out);
        // The next message is sent by who may have seen more: nothing of it was met before (decision 213).
        (self.repeats, self.kept) = (false, None);
        self.ending = None;
        done.map_err(|e| self.explained(e, portal, how))
    }

    fn run_until_it_works(&mut self, portal: &mut Portal, how: How, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        let mark = out.mark();
        let repeatable = matches!(portal.state, PortalState::Ready);
        (self.met_conflict, self.met_ending, self.waited_for_users) = (false, false, 0);
        self.is_half_done = false;
        self.met_barrier.set(false);
        if let Some(active) = self.active.as_mut() {
            active.tried_from = None;
        }
        let mut attempts = 0;
        loop {
            attempts += 1;
            let alone = repeatable && self.active.as_ref().is_none_or(|a| a.statements == 0 && a.savepoints.is_empty());
            let savepoint = self.statement_savepoint(repeatable && !alone);
            if let Some(active) = self.active.as_mut() {
                active.tried_from = active.tried_from.or(savepoint);
            }
            // Beside busy writers it may never come so far as to run out.
            let worn = attempts == STATEMENT_ATTEMPTS_MAX;
            let e = match self.attempt_confirmed(portal, how, out) {
                Err(e) if alone && self.is_to_write_anew(&e, portal, how, worn) => match self.write_anew(portal)? {
                    Some(outcome) => return Ok(outcome),
                    None => KvError::Restart { reason: "the statement has another plan".into(), key: None }.into(),
                },
                Err(e) if SqlError::retry(&e) => e,
                // A statement that is its whole transaction has nothing to lose by it, either: it gives up its locks, and takes them again.
                Err(e) if alone && self.is_lone_deadlock(&e, portal, how) => e,
                other => return other,
            };
            if attempts == STATEMENT_ATTEMPTS_MAX {
                return Err(e);
            }
            let keeps = SqlError::retry(&e) && !attempts.is_multiple_of(KEPT_ATTEMPTS);
            // With a commit that failed all has gone that came before it in its transaction: whoever gave it as a whole repeats it as a whole.
            let goes_on = savepoint.is_some() && self.active.is_some();
            let is_final = self.is_half_done || self.backend.effects.is_final();
            if !(alone || goes_on) || is_final || !out.rewind(mark) {
                return Err(e);
            }
            // However often it is repeated, it has the time that its client has given it.
            self.patience().check(|| self.db.kv.monotonic_us())?;
            self.backend.effects.take();
            (self.met_conflict, self.repeats) = (true, true);
            self.kept = self.active.as_ref().and_then(|active| active.txn.with(|t| t.kept_uncertainty()));
            portal.state = PortalState::Ready;
            if how.describe {
                // Its shape was taken back: it may be another one now.
                portal.prepared.forget_plan();
            }
            match savepoint.or_else(|| self.beginning(portal).filter(|_| keeps)) {
                Some(savepoint) => {
                    if let Some(active) = self.active.as_mut() {
                        active.txn.with(|t| t.rollback_to(savepoint));
                        active.forget_relied();
                    }
                }
                None => self.restart(),
            }
        }
    }

    /// Whether a statement that is its whole transaction, and writes, was refused to break a deadlock.
    fn is_lone_deadlock(&self, e: &SqlError, portal: &Portal, how: How) -> bool {
        e.state == SqlState::DEADLOCK
            && how.commit
            && self.block == Block::None
            && portal.plan.as_ref().is_some_and(|plan| !plan.is_read_only())
    }

    /// An attempt; what fails by a catalog that was only presumed has failed unless that is known to be another one.
    fn attempt_confirmed(&mut self, portal: &mut Portal, how: How, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        match self.attempt(portal, how, out) {
            Err(e) if !SqlError::retry(&e) => Err(match self.confirm_catalog() {
                Err(changed) if SqlError::retry(&changed) => changed,
                // Where the catalog does not answer, why the statement failed says more.
                _ => e,
            }),
            done => done,
        }
    }

    /// READ COMMITTED repeats a statement inside its transaction, with a new snapshot, and forgets what it relied on; what Bind relied on for it, too,
    /// which came before it ran: so the mark of where the last statement ended is taken, if there is one.
    fn statement_savepoint(&mut self, wanted: bool) -> Option<u32> {
        let active = self.active.as_mut()?;
        let between = active.between.take();
        (wanted && active.isolation == Isolation::ReadCommitted)
            .then(|| between.unwrap_or_else(|| active.txn.with(|t| t.savepoint())))
    }

    /// A statement has run. Where it has ended, and others may follow, the next one is repeated from here at READ COMMITTED.
    pub(super) fn has_run(&mut self, others_follow: bool) {
        let Some(active) = self.active.as_mut() else { return };
        active.statements += 1;
        active.written_by = self.backend.relied.has_run();
        // What it has locked stays so.
        active.tried_from = None;
        active.between = active.beginning.filter(|_| others_follow).map(|_| active.txn.with(|t| t.savepoint()));
    }

    /// READ COMMITTED: the mark before the transaction's first statement, unless it has come to its end. Repeated from there it keeps
    /// its locks: were they given up, others could change the rows again and again. It keeps its certified reads, too, which no later
    /// snapshot mends if they have changed: hence [`KEPT_ATTEMPTS`].
    fn beginning(&self, portal: &Portal) -> Option<u32> {
        self.active.as_ref().filter(|_| portal.prepared.planned().is_some())?.beginning
    }

    /// Begins the transaction anew; a block stays open.
    pub(super) fn restart(&mut self) {
        let block = (self.block, self.modes.clone(), self.block_began_us);
        // The client waits for one statement, however often it is begun: its deadline stays.
        self.drop_to_begin_again();
        (self.block, self.modes, self.block_began_us) = block;
        self.start_deadline();
    }

    fn attempt(&mut self, portal: &mut Portal, how: How, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        let prepared = portal.prepared.clone();
        let commit = how.commit && self.block == Block::None;
        self.commits = commit;
        if !matches!(prepared.command(), None | Some(Command::Planned(_))) {
            self.read_out_cursors()?;
        }
        let outcome = match prepared.command() {
            Some(Command::Ddl(ddl)) => {
                self.ensure_active(None)?;
                self.let_write(&ddl.command())?;
                if let Some(tag) = needs_no_block(ddl) {
                    self.refuse_in_block(tag, how)?;
                }
                match &**ddl {
                    ddl if commit && self.goes_online(ddl)? => self.run_online(ddl, out)?,
                    ddl if commit && self.goes_alone(ddl)? => self.run_alone(ddl, out)?,
                    _ => self.run_ddl(ddl, commit, out)?,
                }
            }
            Some(Command::Explain { options, .. }) => return self.run_explain(portal, how, *options, out),
            Some(Command::ExplainExecute { options, name, arguments }) => {
                return self.run_explain_execute(portal, how, *options, name, arguments, out);
            }
            Some(Command::Copy(copy)) => {
                self.ensure_active(None)?;
                if copy.from {
                    self.let_write("COPY FROM")?;
                }
                self.run_copy(copy, how, out)?
            }
            _ => {
                let outcome = self.run_planned(portal, &prepared, how, out)?;
                if portal.plan.as_ref().is_some_and(|plan| !plan.is_read_only()) {
                    self.look_back(&prepared)?;
                }
                outcome
            }
        };
        if self.active.as_ref().is_some_and(|active| active.presumed) {
            self.confirm_catalog()?;
            prepared.confirm();
        }
        // The rows of COPY come yet.
        self.has_run(!commit && !matches!(outcome, Outcome::CopyIn));
        if commit && !matches!(outcome, Outcome::Suspended | Outcome::CopyIn) {
            // What still holds the snapshot goes before it does.
            portal.state = PortalState::Done;
            self.commit()?;
        }
        Ok(outcome)
    }

    fn run_planned(
        &mut self,
        portal: &mut Portal,
        prepared: &Prepared,
        how: How,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        if matches!(portal.state, PortalState::Ready) {
            let as_of = match portal.reads {
                Some(told) => self.settle_time(told)?,
                None => self.statement_as_of(prepared, &portal.params, how.commit)?,
            };
            let plan = self.presume_planned(prepared, as_of, Purpose::Run)?;
            if !plan.is_read_only() {
                self.refuse_in_read_only(prepared)?;
                let mark = self.active.as_ref().map_or(0, |active| active.written_by);
                if self.db.sessions.endings.any() {
                    self.wait_for_changes_of_ungated(prepared, mark)?;
                }
                if self.hold_versions(prepared, true)? {
                    // Meanwhile a change that is its whole transaction has not seen it.
                    self.wait_for_changes_of_ungated(prepared, mark)?;
                }
                self.read_out_cursors()?;
            }
            if let Some(bound) = portal.plan.as_ref()
                && bound.parameters() != plan.parameters()
            {
                // The values are of the types that were found when they were bound; a table changed between that time and the one that is read, or the
                // catalog was only presumed then.
                self.bind_again(portal, plan.parameters())?;
            }
            if portal.params.len() < plan.parameters().len() {
                let number = portal.params.len() + 1;
                return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter ${number}")));
            }
            let untouched = self.active.as_ref().is_some_and(|active| active.untouched) && plan.reads_nothing();
            let mut context = self.statement_context(portal.params.clone())?;
            if portal.formats.contains(&1) && plan.fields().iter().any(|field| field.ty.names().is_some()) {
                let formats = portal.formats.clone();
                context = Arc::new(StatementContext { formats, ..Arc::unwrap_or_clone(context) });
            }
            if let Some(active) = self.active.as_mut() {
                active.untouched = untouched;
            }
            portal.plan = Some(plan.clone());
            if how.describe
                && let Some(fields) = plan.shape()
            {
                out.row_description(fields, &portal.formats);
            }
            match self.execute_plan(plan.as_ref(), &context)? {
                Execution::Rows(rows) => portal.state = PortalState::Running(rows, 0),
                Execution::Done { tag, rows } if rows.is_empty() => {
                    portal.state = PortalState::Done;
                    return Ok(Outcome::Tag(tag));
                }
                Execution::Done { tag, rows } => {
                    portal.state = PortalState::Buffered(Buffered::new(rows, Some(tag), &context.memory)?);
                }
            }
        } else if how.describe {
            out.row_description(portal.fields(), &portal.formats);
        }
        self.pull(portal, how.max_rows, out)
    }

    /// A statement that must be its whole transaction is refused within another, which may be that of a text of several statements.
    pub(super) fn refuse_in_block(&self, what: &str, how: How) -> Result<(), SqlError> {
        let among_others = how.describe && !how.commit;
        if self.block == Block::None
            && !among_others
            && self.active.as_ref().is_none_or(|active| active.statements == 0)
        {
            return Ok(());
        }
        let message = format!("{what} cannot run inside a transaction block");
        Err(SqlError::new(SqlState::ACTIVE_TRANSACTION, message))
    }

    /// A statement that may write is refused where nothing may be written, and holds the versions of what it writes that are held. Whether it has waited for a block.
    pub(super) fn begin_write(&self, prepared: &Prepared) -> Result<bool, SqlError> {
        self.refuse_in_read_only(prepared)?;
        self.hold_versions(prepared, false)
    }

    /// The same for a statement within another that can begin anew with it (EXPLAIN ANALYZE, COPY TO): while it waited a change that is its whole transaction has not seen it.
    pub(super) fn begin_write_within(&mut self, prepared: &Prepared) -> Result<(), SqlError> {
        let mark = self.active.as_ref().map_or(0, |active| active.written_by);
        match self.begin_write(prepared)? {
            true => self.wait_for_changes_of_ungated(prepared, mark),
            false => Ok(()),
        }
    }

    fn wait_for_changes_of_ungated(&mut self, prepared: &Prepared, mark: usize) -> Result<(), SqlError> {
        match prepared.uses().filter(|uses| uses.gated().next().is_none()) {
            Some(uses) => self.wait_for_changes(uses.tokens(), mark),
            None => Ok(()),
        }
    }

    /// A statement that may write is refused before it finds out whether it will.
    fn refuse_in_read_only(&self, prepared: &Prepared) -> Result<(), SqlError> {
        if !self.shown_modes().read_only {
            return Ok(());
        }
        let body = |query: &'_ Query| match query.body.as_ref() {
            SetExpr::Insert(_) => "INSERT".into(),
            SetExpr::Update(_) => "UPDATE".into(),
            SetExpr::Delete(_) => "DELETE".into(),
            _ => query.locks.first().map_or("SELECT".into(), |lock| format!("SELECT {}", lock_words(lock))),
        };
        let what: String = match prepared.planned().map(|planned| &planned.statement) {
            Some(Statement::Insert(_)) => "INSERT".into(),
            Some(Statement::Update { .. }) => "UPDATE".into(),
            Some(Statement::Delete(_)) => "DELETE".into(),
            Some(Statement::Query(query)) => body(query),
            _ => "this statement".into(),
        };
        self.let_write(&what)
    }

    /// # Errors
    /// 25006 in a read-only transaction, with the way out where the client may not know that it is in one.
    pub(super) fn let_write(&self, what: &str) -> Result<(), SqlError> {
        let modes = self.shown_modes();
        let behind_a_reader = self.block == Block::None
            && modes.consistency != Consistency::Stale
            && self.active.as_ref().is_some_and(|active| active.as_of.is_some() && active.statements > 0);
        match modes.let_write(what) {
            Err(refused) if behind_a_reader => Err(refused.detail(ONE_TRANSACTION).hint(
                "The first of them reads the past (AS OF SYSTEM TIME): write before it, or behind a Sync of its own.",
            )),
            other => other,
        }
    }

    /// Sends rows of a portal that has begun, up to a limit (0: all).
    pub(super) fn pull(
        &mut self,
        portal: &mut Portal,
        max_rows: u64,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        let limit = if max_rows == 0 { u64::MAX } else { max_rows };
        let settings = self.settings.eval.clone();
        let plan = portal.plan.clone();
        let fields: &[Field] = plan.as_ref().map_or(portal.fields.as_deref().unwrap_or_default(), |p| p.fields());
        let mut sent = 0;
        loop {
            let wanted = usize::try_from(limit - sent).unwrap_or(usize::MAX).min(PULL_ROWS);
            if wanted == 0 {
                return Ok(Outcome::Suspended);
            }
            let rows = next_rows(&mut portal.state, wanted)?;
            if rows.is_empty() {
                break;
            }
            if self.active.as_ref().is_some_and(|active| active.presumed) {
                self.confirm_catalog()?;
                portal.prepared.confirm();
            }
            sent += rows.len() as u64;
            for row in rows {
                out.row(&row, fields, &portal.formats, &settings)?;
            }
            self.check_interrupt()?;
        }
        Ok(match std::mem::replace(&mut portal.state, PortalState::Done) {
            PortalState::Buffered(Buffered { tag: Some(tag), .. }) => Outcome::Tag(tag),
            PortalState::Running(_, all) | PortalState::Buffered(Buffered { taken: all, .. }) => {
                // Each execution of a suspended portal counts its own rows, as in PostgreSQL.
                Outcome::Selected(if max_rows == 0 { sent.max(all.min(sent)) } else { sent })
            }
            _ => Outcome::Selected(0),
        })
    }

    /// The time in the past that a statement outside a block, or first in one, is to read: one that is run, declared or explained, with these values. Where it
    /// was only planned in the transaction so far, that begins anew; one that has done something keeps its own time. `alone`: it is its whole transaction.
    /// `timeball.max_staleness` holds for no other query (decision 208): who writes behind it, before the same Sync, writes at the present.
    pub(super) fn statement_as_of(
        &mut self,
        prepared: &Prepared,
        values: &[Value],
        alone: bool,
    ) -> Result<Option<Timestamp>, SqlError> {
        let Some(planned) = prepared.planned() else { return Ok(None) };
        let time = match &planned.as_of {
            Some(as_of) => Some(self.resolve_as_of(as_of, Some((prepared, values)))?),
            None => {
                let query = matches!(&planned.statement, Statement::Query(q) if q.locks.is_empty() && !is_modifying(q));
                let fresh =
                    self.active.as_ref().is_none_or(|active| active.as_of.is_none() && active.has_done_nothing());
                let bounded = alone && self.settings.max_staleness_us > 0 && self.block == Block::None;
                let stale = bounded && fresh && query;
                stale.then(|| self.stale_snapshot())
            }
        };
        self.settle_time(time)
    }

    /// The time that a statement reads, or `None` for that of the transaction, is what the transaction will read: it begins anew where it has done nothing.
    ///
    /// # Errors
    /// 25001 where it has.
    fn settle_time(&mut self, time: Option<Timestamp>) -> Result<Option<Timestamp>, SqlError> {
        match (&self.active, time) {
            (None, time) => Ok(time),
            (Some(active), Some(time)) if active.as_of == Some(time) => Ok(Some(time)),
            (Some(_), None) => Ok(None),
            (Some(active), Some(_)) if active.has_done_nothing() => {
                self.restart();
                Ok(time)
            }
            (Some(active), Some(_)) => {
                let message = "AS OF SYSTEM TIME must come with the first statement of a transaction";
                let late = SqlError::new(SqlState::ACTIVE_TRANSACTION, message);
                Err(match self.block {
                    _ if active.as_of.is_some() => late.detail("The transaction reads another time already.").hint(
                        "Leave the statement's AS OF SYSTEM TIME out, or run it in a transaction of its own.",
                    ),
                    Block::None => late.detail(ONE_TRANSACTION).hint(
                        "Send it before the others, with the same time for all, or in a text or behind a Sync of its own.",
                    ),
                    _ => late.hint("Begin the transaction with BEGIN AS OF SYSTEM TIME."),
                })
            }
        }
    }
}

/// What a client is in that sends several statements and no BEGIN.
const ONE_TRANSACTION: &str = "The statements of one text, and those that are executed before one Sync (a pipeline, a batch), are one transaction.";

/// `SELECT n` without an allocation for the short ones.
fn selected(rows: u64, out: &mut dyn Output) {
    match rows {
        0 => out.command_complete("SELECT 0"),
        1 => out.command_complete("SELECT 1"),
        n => out.command_complete(&format!("SELECT {n}")),
    }
}

/// Up to `wanted` further rows; none at the end.
pub(super) fn next_rows(state: &mut PortalState, wanted: usize) -> Result<Vec<crate::types::Row>, SqlError> {
    match state {
        PortalState::Running(source, count) => {
            let rows = source.next(wanted)?;
            *count += rows.len() as u64;
            Ok(rows)
        }
        PortalState::Buffered(buffered) => Ok(buffered.next(wanted)),
        PortalState::Scroll(scroll) => scroll.next(wanted),
        PortalState::Ready | PortalState::Done => Ok(Vec::new()),
    }
}
