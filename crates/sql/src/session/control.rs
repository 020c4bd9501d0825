//! Statements that need no plan: transaction control, settings, prepared statements, cursors.

use super::active::{Active, Savepoint};
use super::portal::Portal;
use super::run::{How, Outcome};
use super::setting_table::Kind;
use super::settings::{READ_UNCOMMITTED, isolation_name, unknown};
use super::{Block, Session};
use crate::catalog::Wait;
use crate::output::Output;
use crate::syntax::{Command, Discard, Modes};
use crate::types::calendar::EPOCH_OFFSET_US;
use crate::{SqlError, SqlState};
use clock::Timestamp;
use std::sync::Arc;

/// The savepoint by which CockroachDB's clients retry.
const RESTART_SAVEPOINT: &str = "cockroach_restart";

/// Settings by which a transaction begins: set in a block before its first query, they are this transaction's.
const SETTINGS_OF_BEGIN: &[&str] = &[
    "timeball.commit_wait_budget",
    "timeball.consistency",
    "timeball.max_offset",
    "timeball.max_staleness",
    "timeball.snapshot_age",
    "timeball.uncertainty",
];

/// The way out for who says too late how a transaction begins.
const OF_BEGIN: &str = "It says how a transaction begins: say it first, or SET SESSION for the next ones.";

fn tag(text: &str) -> Result<Outcome, SqlError> {
    Ok(Outcome::Tag(text.into()))
}

impl Session {
    pub(super) fn run_control(
        &mut self,
        command: &Command,
        portal: &mut Portal,
        how: How,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        match command {
            Command::Commit { chain } => return self.run_commit(*chain, out),
            Command::Rollback { chain } => return self.run_rollback(*chain, out),
            Command::RollbackTo(name) => return self.rollback_to(name, out),
            _ => self.refuse_in_failed_block()?,
        }
        let outcome = match command {
            Command::Begin(modes) => self.run_begin(modes, out)?,
            Command::Savepoint(name) => self.savepoint(name)?,
            Command::Release(name) => self.release(name)?,
            Command::SetTransaction(modes) => self.set_transaction(modes, out)?,
            Command::SetCharacteristics(modes) => self.set_characteristics(modes)?,
            Command::SetConstraints { names, deferred } => self.set_constraints(names.as_deref(), *deferred, out)?,
            Command::Set { local, name, value } => {
                self.set_setting(*local, name, value.as_deref(), out)?;
                let reset = portal.prepared.text.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("RESET"));
                Outcome::Tag(if reset { "RESET" } else { "SET" }.into())
            }
            Command::ResetAll => {
                self.change_settings(false, |s| {
                    s.reset_all();
                    Ok(())
                })?;
                self.report_settings(out);
                Outcome::Tag("RESET".into())
            }
            Command::Show(name) => self.run_show(name, how, portal, out)?,
            Command::ShowAll => self.run_show_all(how, portal, out)?,
            Command::Discard(what) => self.run_discard(*what, how, out)?,
            Command::Analyze { tag, outside_block, tables } => {
                if *outside_block {
                    self.refuse_in_block(tag, how)?;
                }
                self.run_analyze(tables, out)?;
                Outcome::Tag((*tag).into())
            }
            Command::Nothing { tag, notice, outside_block, mentions } => {
                if *outside_block {
                    self.refuse_in_block(tag, how)?;
                }
                self.check_mentions(mentions)?;
                if let Some(notice) = notice {
                    self.tell(&SqlError::new(SqlState::SUCCESS, notice.clone()), out);
                }
                Outcome::Tag((*tag).into())
            }
            Command::Roles(roles) => self.run_roles(roles, out)?,
            Command::LockTable(names) => self.lock_tables(names)?,
            _ => return self.run_cursor(command, portal, how, out),
        };
        // A lone statement is its own transaction: SET TRANSACTION and the like must not leave one behind.
        if how.commit && self.block == Block::None && self.active.is_some() {
            self.commit()?;
        }
        Ok(outcome)
    }

    pub(super) fn warn(&self, state: SqlState, message: &str, out: &mut dyn Output) {
        self.tell(&SqlError::new(state, message), out);
    }

    /// Sends a notice or a warning, if `client_min_messages` lets it.
    pub(super) fn tell(&self, notice: &SqlError, out: &mut dyn Output) {
        let silent = match self.settings.eval.values.get("client_min_messages").map(String::as_str) {
            Some("error" | "fatal" | "panic") => true,
            Some("warning") => notice.state == SqlState::SUCCESS,
            _ => false,
        };
        if !silent {
            out.notice(notice);
        }
    }

    fn run_begin(&mut self, modes: &Modes, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        if self.block != Block::None {
            self.warn(SqlState::ACTIVE_TRANSACTION, "there is already a transaction in progress", out);
            // What it says of the transaction holds for the one that there is.
            self.set_transaction(modes, out)?;
            return tag("BEGIN");
        }
        if self.active.as_ref().is_some_and(|a| a.statements == 0) {
            // Only a Parse needed it.
            self.drop_planned_in();
        }
        self.block = Block::Open;
        self.block_began_us = Some(self.statement_began_us);
        if self.active.is_none() {
            self.modes = modes.clone();
        } else if let Err(late) = self.set_transaction(modes, out) {
            // A text's statements before it have begun the transaction: it says too late how that is to begin.
            self.block = Block::None;
            return Err(late);
        }
        tag("BEGIN")
    }

    fn run_commit(&mut self, chain: bool, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        if chain {
            self.need_block("COMMIT AND CHAIN")?;
        }
        if self.block == Block::Failed {
            // The chained transaction goes on as the block was, not as a subtransaction of it.
            self.drop_active();
        }
        let modes = self.modes.clone();
        let result = match self.block {
            Block::None => {
                self.warn(SqlState::NO_ACTIVE_TRANSACTION, "there is no transaction in progress", out);
                self.commit()?;
                "COMMIT"
            }
            Block::Failed => {
                self.rollback();
                "ROLLBACK"
            }
            Block::Open | Block::Released => {
                self.commit()?;
                "COMMIT"
            }
        };
        self.report_settings(out);
        self.chain(chain, modes);
        tag(result)
    }

    fn run_rollback(&mut self, chain: bool, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        if chain {
            self.need_block("ROLLBACK AND CHAIN")?;
        }
        if self.block == Block::None {
            self.warn(SqlState::NO_ACTIVE_TRANSACTION, "there is no transaction in progress", out);
        }
        self.drop_active();
        let modes = self.modes.clone();
        self.rollback();
        self.report_settings(out);
        self.chain(chain, modes);
        tag("ROLLBACK")
    }

    fn chain(&mut self, chain: bool, modes: Modes) {
        if chain {
            self.block = Block::Open;
            self.block_began_us = Some(self.db.kv.now_us() - EPOCH_OFFSET_US);
            self.modes = modes;
        }
    }

    pub(super) fn need_block(&self, what: &str) -> Result<(), SqlError> {
        if self.block == Block::None {
            return Err(SqlError::new(
                SqlState::NO_ACTIVE_TRANSACTION,
                format!("{what} can only be used in transaction blocks"),
            ));
        }
        Ok(())
    }

    fn savepoint(&mut self, name: &str) -> Result<Outcome, SqlError> {
        self.need_block("SAVEPOINT")?;
        let settings = (self.settings.clone(), self.lasting.clone());
        let constraints = (self.deferred.modes(), self.deferred.len());
        let advisory = self.backend.transaction_locks();
        let active = self.ensure_begun(None)?;
        if active.presumed {
            // What is presumed can be mended where the transaction can begin again; behind a savepoint it cannot.
            self.follow_catalog(Wait::Patient)?;
        }
        let Some(active) = self.active.as_mut() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "no transaction"));
        };
        let mark = active.txn.with(|t| t.savepoint());
        let (fresh, claims, own) = (
            active.fresh.len(),
            active.claims.as_ref().map(|claims| claims.counted()).unwrap_or_default(),
            active.own.clone(),
        );
        let barred = active.barred();
        let (name, read_only) = (name.into(), self.modes.read_only);
        let savepoint =
            Savepoint { name, mark, settings, fresh, constraints, claims, barred, advisory, own, read_only };
        if let Some(active) = self.active.as_mut() {
            active.savepoints.push(savepoint);
            active.between = active.beginning.map(|_| mark);
        }
        tag("SAVEPOINT")
    }

    fn find_savepoint(&self, name: &str) -> Result<usize, SqlError> {
        let found = self.active.as_ref().and_then(|a| a.savepoints.iter().rposition(|s| s.name == name));
        found.ok_or_else(|| SqlError::new(SqlState::INVALID_SAVEPOINT, format!("savepoint \"{name}\" does not exist")))
    }

    fn release(&mut self, name: &str) -> Result<Outcome, SqlError> {
        self.need_block("RELEASE SAVEPOINT")?;
        let index = self.find_savepoint(name)?;
        if name == RESTART_SAVEPOINT && index == 0 {
            // CockroachDB's protocol: the commit happens here, so that its failure can still be retried.
            return self.release_restart();
        }
        if let Some(active) = self.active.as_mut() {
            self.modes.read_only = active.savepoints[index].read_only;
            active.savepoints.truncate(index);
        }
        self.portals.release(index);
        tag("RELEASE")
    }

    fn release_restart(&mut self) -> Result<Outcome, SqlError> {
        if let Some(savepoint) = self.active.as_ref().and_then(|active| active.savepoints.first()) {
            self.modes.read_only = savepoint.read_only;
        }
        let modes = self.modes.clone();
        match self.commit() {
            Ok(()) => {
                self.block = Block::Released;
                tag("RELEASE")
            }
            Err(e) => {
                self.block = Block::Failed;
                self.modes = modes;
                Err(e)
            }
        }
    }

    fn rollback_to(&mut self, name: &str, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        self.need_block("ROLLBACK TO SAVEPOINT")?;
        let restart = name == RESTART_SAVEPOINT
            && self.block != Block::Released
            && self.active.as_ref().is_none_or(|a| a.savepoints.first().is_some_and(|s| s.name == name));
        if restart {
            self.drop_active();
            self.block = Block::Open;
            self.too_old = false;
            self.savepoint(name)?;
            return tag("ROLLBACK");
        }
        let index = self.find_savepoint(name)?;
        let Some(active) = self.active.as_mut() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "no transaction"));
        };
        active.savepoints.truncate(index + 1);
        let savepoint = &active.savepoints[index];
        let mark = savepoint.mark;
        let settings = savepoint.settings.clone();
        self.modes.read_only = savepoint.read_only;
        self.deferred.truncate(savepoint.constraints.1);
        self.deferred.set_modes(savepoint.constraints.0.clone());
        // What was made or emptied since is what it was before: it may have rows of this transaction again.
        let back: Vec<_> = active.fresh.drain(savepoint.fresh..).collect();
        back.into_iter().for_each(|table| self.backend.filled.wrote(table));
        if let Some(claims) = &active.claims {
            claims.back_to(savepoint.claims);
        }
        self.backend.release_transaction_locks(savepoint.advisory);
        let own = savepoint.own.clone();
        active.txn.with(|t| {
            // Locks first: the mark is the same.
            t.release_since(mark);
            t.rollback_to(mark);
        });
        let barred = active.savepoints[index].barred;
        active.barrier.iter_mut().for_each(|barrier| barrier.back_to(barred));
        let made = active.fresh.len();
        active.taken_over.retain(|taken| taken.at < made);
        active.forget_relied();
        active.between = active.beginning.map(|_| mark);
        let wait = match Arc::ptr_eq(&own, &active.own) {
            true => Wait::Never,
            false => Wait::Hasty,
        };
        if wait == Wait::Hasty {
            active.own = own;
            // Whatever the number: the view is made anew.
            (active.number, active.looked_at) = (0, Timestamp::MIN);
        }
        self.follow_catalog(wait)?;
        self.portals.roll_back(index);
        (self.settings, self.lasting) = settings;
        self.settings_changed();
        self.rebuild_view();
        self.report_settings(out);
        self.block = Block::Open;
        tag("ROLLBACK")
    }

    fn set_transaction(&mut self, modes: &Modes, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        if self.block == Block::None {
            self.warn(SqlState::NO_ACTIVE_TRANSACTION, "SET TRANSACTION can only be used in transaction blocks", out);
            return tag("SET");
        }
        if *modes == Modes::default() {
            return tag("SET");
        }
        // What it is already need not be said first.
        let isolation = modes.isolation.filter(|asked| Some(*asked) != self.modes.isolation);
        if self.active.as_ref().is_some_and(|active| !active.has_done_nothing()) && isolation != modes.isolation {
            return self.set_transaction(&Modes { isolation: None, uncommitted: false, ..modes.clone() }, out);
        }
        // Nor that it may write, of one that may.
        if modes.read_only == Some(false) && self.active.is_some() && !self.shown_modes().read_only {
            return self.set_transaction(&Modes { read_only: None, ..modes.clone() }, out);
        }
        // It may be told to write no more at any time.
        let narrows = *modes == Modes { read_only: Some(true), ..Modes::default() };
        if let Some(active) = self.active.as_ref().filter(|_| !narrows) {
            if !active.savepoints.is_empty() {
                let what = match modes {
                    Modes { deferrable: Some(_), .. } => {
                        "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction"
                    }
                    Modes { isolation: Some(_), .. } => {
                        "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction"
                    }
                    Modes { as_of: Some(_), .. } | Modes { consistency: Some(_), .. } => {
                        "SET TRANSACTION must not be called in a subtransaction"
                    }
                    _ => "cannot set transaction read-write mode inside a read-only transaction",
                };
                return Err(SqlError::new(SqlState::ACTIVE_TRANSACTION, what));
            }
            if active.statements > 0 {
                let what = match modes {
                    Modes { isolation: Some(_), .. } => {
                        "SET TRANSACTION ISOLATION LEVEL must be called before any query"
                    }
                    Modes { read_only: Some(false), .. } => "transaction read-write mode must be set before any query",
                    Modes { deferrable: Some(_), .. } => {
                        "SET TRANSACTION [NOT] DEFERRABLE must be called before any query"
                    }
                    _ => "SET TRANSACTION must be called before any query",
                };
                let refused = SqlError::new(SqlState::ACTIVE_TRANSACTION, what);
                return Err(match modes {
                    Modes { consistency: Some(_), .. } => refused.hint(OF_BEGIN),
                    Modes { as_of: Some(_), .. } => refused.hint("It says how a transaction begins: say it first."),
                    _ => refused,
                });
            }
            self.drop_to_begin_again();
        }
        let known = std::mem::take(&mut self.modes);
        self.modes = Modes {
            isolation: modes.isolation.or(known.isolation),
            uncommitted: if modes.isolation.is_some() { modes.uncommitted } else { known.uncommitted },
            read_only: modes.read_only.or(known.read_only),
            deferrable: modes.deferrable.or(known.deferrable),
            as_of: modes.as_of.clone().or(known.as_of),
            consistency: modes.consistency.or(known.consistency),
        };
        tag("SET")
    }

    fn set_characteristics(&mut self, modes: &Modes) -> Result<Outcome, SqlError> {
        let modes = modes.clone();
        self.change_settings(false, |s| {
            if let Some(isolation) = modes.isolation {
                let name = if modes.uncommitted { READ_UNCOMMITTED } else { isolation_name(isolation) };
                s.set("default_transaction_isolation", Some(name))?;
            }
            if let Some(consistency) = modes.consistency {
                s.set("timeball.consistency", Some(consistency.name()))?;
            }
            if let Some(read_only) = modes.read_only {
                s.set("default_transaction_read_only", Some(if read_only { "on" } else { "off" }))?;
            }
            if let Some(deferrable) = modes.deferrable {
                s.set("default_transaction_deferrable", Some(if deferrable { "on" } else { "off" }))?;
            }
            Ok(())
        })?;
        tag("SET")
    }

    /// Sets a setting, of whatever kind.
    pub(super) fn set_setting(
        &mut self,
        local: bool,
        name: &str,
        value: Option<&str>,
        out: &mut dyn Output,
    ) -> Result<(), SqlError> {
        if local && self.block == Block::None {
            self.warn(SqlState::NO_ACTIVE_TRANSACTION, "SET LOCAL can only be used in transaction blocks", out);
        }
        match name {
            "timeball.token" => {
                if let Some(value) = value {
                    let token = self.read_token(value)?;
                    self.token = self.token.max(token);
                }
            }
            "transaction_isolation" => {
                let isolation = value
                    .and_then(super::settings::parse_isolation)
                    .ok_or_else(|| super::settings::invalid(name, value.unwrap_or_default()))?;
                let uncommitted = value == Some(READ_UNCOMMITTED);
                self.set_transaction(&Modes { isolation: Some(isolation), uncommitted, ..Modes::default() }, out)?;
            }
            "transaction_read_only" => {
                let read_only = Some(Kind::Flag.normalize(name, value.unwrap_or("off"))? == "on");
                self.set_transaction(&Modes { read_only, ..Modes::default() }, out)?;
            }
            // Outside a block it says something of a transaction that is over.
            "transaction_deferrable" => {
                let value = value.unwrap_or("off");
                let shown = Kind::Flag.normalize(name, value)?;
                if self.block != Block::None {
                    let deferrable = Some(shown == "on");
                    self.set_transaction(&Modes { deferrable, ..Modes::default() }, out)?;
                }
            }
            _ => {
                let of_begin = self.block != Block::None && SETTINGS_OF_BEGIN.contains(&name);
                if of_begin && local && self.active.as_ref().is_some_and(|active| !active.has_done_nothing()) {
                    let message = format!("SET LOCAL {name} must be called before any query");
                    return Err(SqlError::new(SqlState::ACTIVE_TRANSACTION, message).hint(OF_BEGIN));
                }
                self.change_settings(local, |s| s.set(name, value))?;
                if of_begin && self.active.as_ref().is_some_and(Active::has_done_nothing) {
                    // What BEGIN said of it is said anew.
                    if name == "timeball.consistency" {
                        self.modes.consistency = Some(self.settings.consistency);
                    }
                    self.begin_anew(Wait::Never)?;
                }
                self.report_settings(out);
            }
        }
        Ok(())
    }

    /// Changes settings, for the session or until the transaction ends; a rollback takes it back.
    fn change_settings(
        &mut self,
        local: bool,
        change: impl Fn(&mut super::settings::Settings) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        if self.block != Block::None {
            self.ensure_begun(None)?;
        }
        self.keep_settings();
        let mut changed = self.settings.clone();
        change(&mut changed)?;
        if local && self.lasting.is_none() && self.block != Block::None {
            self.lasting = Some(self.settings.clone());
        } else if !local && let Some(lasting) = self.lasting.as_mut() {
            change(lasting)?;
        }
        if local && self.block == Block::None {
            return Ok(());
        }
        self.settings = changed;
        self.settings_changed();
        self.rebuild_view();
        Ok(())
    }

    fn run_discard(&mut self, what: Discard, how: How, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        match what {
            Discard::All => {
                self.refuse_in_block("DISCARD ALL", how)?;
                self.rollback();
                self.settings.reset_all();
                self.settings_changed();
                self.report_settings(out);
                self.prepared.clear();
                self.portals = Default::default();
                self.backend.sessions.advisory.unlock_all(self.backend.number);
                self.sequences.forget();
                tag("DISCARD ALL")
            }
            Discard::Plans => tag("DISCARD PLANS"),
            Discard::Sequences => {
                self.sequences.forget();
                tag("DISCARD SEQUENCES")
            }
            Discard::Temp => tag("DISCARD TEMP"),
        }
    }

    fn lock_tables(&mut self, names: &[crate::syntax::Name]) -> Result<Outcome, SqlError> {
        self.need_block("LOCK TABLE")?;
        let active = self.ensure_active(None)?;
        for name in names {
            if active.view.named(name.schema.as_deref(), &name.name).is_none() {
                return Err(SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist")));
            }
        }
        // Certification keeps isolation without table locks, so there is nothing to take.
        tag("LOCK TABLE")
    }

    /// The isolation as it was asked for.
    pub(super) fn shown_isolation(&self) -> &'static str {
        match self.modes.isolation {
            Some(_) if self.modes.uncommitted => READ_UNCOMMITTED,
            Some(isolation) => isolation_name(isolation),
            None if self.settings.uncommitted => READ_UNCOMMITTED,
            None => isolation_name(self.settings.isolation),
        }
    }

    /// A setting as SHOW gives it.
    pub(super) fn show(&self, name: &str) -> Result<String, SqlError> {
        Ok(match name {
            "timeball.token" => self.show_token(),
            _ => match self.shown_modes().shown(name) {
                Some(shown) => shown.into(),
                None => return self.settings.show(name).ok_or_else(|| unknown(name)),
            },
        })
    }
}
