//! A session's transaction in the layers below: how it begins and ends.

use super::prepared::Purpose;
use super::settings::Settings;
use super::system::WholeSystem;
use super::takeover::TakenOver;
use super::{Block, Session, snapshot};
use crate::catalog::cache::is_out_of_reach;
use crate::catalog::reliance::{Relied, Relying};
use crate::catalog::view::View;
use crate::catalog::{Overlay, Uses, Wait, change, key};
use crate::context::{ShownModes, Statement, StatementContext};
use crate::ddl::Barrier;
use crate::exec::claims::{Claims, Counted};
use crate::exec::deferred::Modes;
use crate::filled::Filled;
use crate::plan::Plan;
use crate::syntax;
use crate::transaction::{BeginOptions, Committed, Consistency, Isolation, Patience, SnapshotAge, Transaction, TxnRef};
use crate::types::Value;
use crate::types::calendar::EPOCH_OFFSET_US;
use crate::{SqlError, SqlState, work};
use clock::Timestamp;
use std::sync::Arc;

/// See the module.
pub(super) struct Active {
    pub(super) txn: TxnRef,
    /// The catalog: what is committed, and over it what the transaction has changed itself.
    pub(super) view: Arc<View>,
    /// The same, as running statements look things up.
    pub(super) catalog: Arc<Relying>,
    /// The catalog's range did not answer, or was not asked: what it was when it was last looked at is all that is known.
    pub(super) unreached: bool,
    /// The catalog is taken to be what it was: whether it is was asked, and is to be confirmed before anything is told ([`Session::confirm_catalog`]).
    pub(super) presumed: bool,
    /// The number of what is committed, and the snapshot at which it was looked at.
    pub(super) number: u64,
    pub(super) looked_at: Timestamp,
    /// What the transaction has changed.
    pub(super) own: Arc<Overlay>,
    /// What its statements rely on already, the newest last, and whether that is for what they write; and all of it, as the others may ask.
    relied: Vec<(Arc<Uses>, bool)>,
    noted: Arc<Relied>,
    pub(super) isolation: Isolation,
    pub(super) as_of: Option<Timestamp>,
    pub(super) began_us: i64,
    /// When its snapshot was taken, on the clock for timeouts: at its beginning, under READ COMMITTED at its last statement.
    pub(super) snapshot_us: i64,
    pub(super) savepoints: Vec<Savepoint>,
    /// READ COMMITTED: before its first statement.
    pub(super) beginning: Option<u32>,
    /// READ COMMITTED: after its last statement, or at its last savepoint, where nothing has been done since but Parse, Bind and Describe.
    pub(super) between: Option<u32>,
    /// Statements that have run in it.
    pub(super) statements: u64,
    /// None of them has read or written: the next one may begin at the present (decision 92).
    pub(super) untouched: bool,
    /// The snapshot as it was when `snapshot_us` was taken: locks may move it up.
    pub(super) snapshot: Timestamp,
    /// Settings to go back to.
    pub(super) settings: Option<Box<(Settings, Option<Settings>)>>,
    /// Indexes that are being loaded outside it, to become visible with it.
    pub(super) loads: Vec<u32>,
    /// Tables that it created or truncated, in the order of its subtransactions.
    pub(super) fresh: Vec<u32>,
    /// Tables that it has taken over, in that order.
    pub(super) taken_over: Vec<TakenOver>,
    /// What its changes end, for others: dropped when it has ended.
    pub(super) barrier: Option<Barrier>,
    /// READ COMMITTED: before the first attempt at the statement that runs, if others have run before.
    pub(super) tried_from: Option<u32>,
    /// So much of what the session relies on its statements before this one have written by.
    pub(super) written_by: usize,
    /// Unique keys that it has inserted.
    pub(super) claims: Option<Arc<Claims>>,
}

/// SAVEPOINT
pub(super) struct Savepoint {
    pub(super) name: String,
    pub(super) mark: u32,
    pub(super) settings: (Settings, Option<Settings>),
    pub(super) fresh: usize,
    /// How many advisory locks the transaction had taken.
    pub(super) advisory: usize,
    /// What SET CONSTRAINTS had said, and how many broken references were held.
    pub(super) constraints: (Modes, usize),
    /// What the transaction had changed of the catalog.
    pub(super) own: Arc<Overlay>,
    /// How many unique keys were inserted, and locked.
    pub(super) claims: Counted,
    /// How much was barred.
    pub(super) barred: usize,
    /// Whether nothing may be written: all that can be said within a subtransaction of how it runs, and it ends with it.
    pub(super) read_only: Option<bool>,
}

/// So many plans are remembered whose tokens a transaction relies on.
const RELIED_MAX: usize = 64;

impl Active {
    /// From now on the catalog is this one, whose committed part was looked at then.
    pub(super) fn use_view(&mut self, view: Arc<View>, looked_at: Timestamp) {
        let relying = Relying::new(view.clone(), self.txn.clone(), looked_at, self.noted.clone());
        self.catalog = Arc::new(relying.unreached(self.unreached));
        (self.view, self.looked_at) = (view, looked_at);
    }

    /// The unique keys of its statements in a block, which locks so many at most.
    pub(super) fn claims_of(&mut self, max: usize) -> &Arc<Claims> {
        self.claims.get_or_insert_with(|| Arc::new(Claims::new(max)))
    }

    /// Relies on what a plan has looked up: where a statement is to write by it, that must be so at the commit.
    ///
    /// # Errors
    /// A restart where it has changed.
    pub(super) fn rely_on(
        &mut self,
        uses: &Arc<Uses>,
        plan: &dyn Plan,
        (filled, purpose): (&Filled, Purpose),
    ) -> Result<(), SqlError> {
        self.note_reads(uses, plan, filled);
        let writes = !plan.is_read_only() && purpose == Purpose::Run;
        let enough = |(known, written): &(Arc<Uses>, bool)| Arc::ptr_eq(known, uses) && (*written || !writes);
        if self.as_of.is_some() || self.relied.iter().rev().any(enough) {
            return Ok(());
        }
        self.catalog.rely(uses.tokens(), writes)?;
        if self.relied.len() == RELIED_MAX {
            self.relied.clear();
        }
        self.relied.push((uses.clone(), writes));
        Ok(())
    }

    /// Whether nothing was asked of it yet.
    pub(super) fn has_done_nothing(&self) -> bool {
        self.statements == 0 && self.savepoints.is_empty()
    }

    /// What it reads from now.
    pub(super) fn snapshot_now(&self) -> Timestamp {
        self.txn.with(|t| t.snapshot())
    }

    /// Writes were undone: what they relied on may have been forgotten.
    pub(super) fn forget_relied(&mut self) {
        self.relied.clear();
    }
}

impl Session {
    /// The consistency of the present transaction, or the next one.
    pub(super) fn consistency(&self) -> Consistency {
        self.modes.consistency.unwrap_or(self.settings.consistency)
    }

    /// Whether a transaction that reads the present, or the past, may not write by what was said of it.
    fn is_read_only(&self, past: bool) -> bool {
        self.modes.read_only.unwrap_or(self.settings.read_only) || self.consistency() == Consistency::Stale || past
    }

    /// What the present transaction, or the next one, shows of itself.
    pub(super) fn shown_modes(&self) -> ShownModes {
        let as_of = self.active.as_ref().is_some_and(|active| active.as_of.is_some());
        ShownModes {
            isolation: self.shown_isolation(),
            read_only: self.is_read_only(as_of),
            deferrable: self.modes.deferrable.unwrap_or(self.settings.deferrable),
            consistency: self.consistency(),
            as_of,
            token: self.token,
        }
    }

    /// A transaction begins: what BEGIN does not say of it the defaults of now do. Whoever sets those later sets them for the next ones.
    fn settle_modes(&mut self) {
        let (modes, settings) = (&mut self.modes, &self.settings);
        if modes.isolation.is_none() {
            (modes.isolation, modes.uncommitted) = (Some(settings.isolation), settings.uncommitted);
        }
        modes.read_only.get_or_insert(settings.read_only);
        modes.deferrable.get_or_insert(settings.deferrable);
        modes.consistency.get_or_insert(settings.consistency);
    }

    /// Who tries again because of what others did, or begins anew within a block to see it, needs the present for that.
    fn snapshot_age(&self) -> SnapshotAge {
        let begun = self.active.as_ref().is_some_and(|active| active.statements > 0);
        if self.met_conflict || begun { SnapshotAge::Present } else { self.settings.snapshot_age }
    }

    /// How the next transaction begins.
    pub(super) fn begin_options(&self, as_of: Option<Timestamp>) -> BeginOptions {
        BeginOptions {
            isolation: self.modes.isolation.unwrap_or(self.settings.isolation),
            consistency: self.consistency(),
            uncertainty: self.settings.uncertainty,
            commit_wait_budget_ns: self.settings.commit_wait_budget_ns,
            snapshot_age: self.snapshot_age(),
            token: self.token,
            read_only: self.is_read_only(as_of.is_some()),
            as_of,
            interrupt: self.interrupt.clone(),
            deadline: self.deadline.clone(),
            session: Some(self.backend.number),
            lock_timeout: self.backend.lock_timeout.clone(),
            is_asked_for: true,
            kept: self.kept.clone(),
        }
    }

    /// Makes sure that there is a transaction, and that the view of the catalog is the one that it sees.
    pub(super) fn ensure_active(&mut self, as_of: Option<Timestamp>) -> Result<&mut Active, SqlError> {
        self.ensure_with(as_of, Wait::Patient)
    }

    /// As [`Session::ensure_active`], for what needs no catalog: nobody is asked for it, whether he would answer or not.
    pub(super) fn ensure_begun(&mut self, as_of: Option<Timestamp>) -> Result<&mut Active, SqlError> {
        self.ensure_with(as_of, Wait::Never)
    }

    fn ensure_with(&mut self, as_of: Option<Timestamp>, wait: Wait) -> Result<&mut Active, SqlError> {
        if self.active.is_none() {
            self.settle_modes();
            let mut active = self.begin(as_of, wait)?;
            active.settings = self.carried.take();
            let (snapshot, footprint) = active.txn.with(|t| (t.snapshot(), t.footprint()));
            self.backend.has_done(Some(footprint));
            self.backend.sees(Some((snapshot, active.snapshot_us)));
            return Ok(self.active.insert(active));
        }
        self.move_to_present(wait)?;
        if self.active.as_ref().is_some_and(|a| a.isolation == Isolation::ReadCommitted && a.as_of.is_none()) {
            self.read_out_cursors()?;
        }
        if let Some(active) = self.active.as_mut()
            && active.isolation == Isolation::ReadCommitted
            && active.as_of.is_none()
        {
            let repeats = self.repeats;
            active.txn.with(|t| if repeats { t.repeat_statement() } else { t.begin_statement() })?;
            // What only reads rely on is forgotten with the reads.
            active.relied.retain(|(_, writes)| *writes);
            active.snapshot_us = self.db.kv.monotonic_us();
            active.snapshot = active.txn.with(|t| t.snapshot());
            self.backend.sees(Some((active.snapshot, active.snapshot_us)));
        }
        self.follow_catalog(wait)?;
        self.active.as_mut().ok_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, "the transaction has gone"))
    }

    /// The snapshot may have moved up: the view becomes that of the catalog there.
    pub(super) fn follow_catalog(&mut self, wait: Wait) -> Result<(), SqlError> {
        let moved = |active: &&mut Active| {
            let unsure = active.unreached || active.presumed && wait != Wait::Never;
            // A statement whose snapshot is still to be taken reads later than what the one before has looked at.
            unsure || active.txn.with(|t| !t.has_snapshot() || t.snapshot() != active.looked_at)
        };
        let Some(active) = self.active.as_mut().filter(moved) else { return Ok(()) };
        let patience = Patience { interrupt: self.interrupt.clone(), deadline: self.deadline.clone() };
        let db = self.db.clone();
        let known = self.view.as_ref().map(|view| (view.snapshot(), self.view_at));
        let looked = active.txn.with(|t| {
            if wait == Wait::Never && known.is_none_or(|(_, at)| !t.is_as_it_was(&key::VERSION_KEY, at)) {
                return Ok::<_, SqlError>(None);
            }
            let base = db.catalog.look(db.kv.as_ref(), &patience, t, known, wait)?;
            Ok(Some((base, t.snapshot())))
        });
        let looked = match looked {
            Err(error) if wait == Wait::Hasty && is_out_of_reach(&error) => None,
            looked => looked?,
        };
        let Some((base, looked_at)) = looked else {
            (active.unreached, active.presumed) = (true, false);
            active.use_view(active.view.clone(), active.looked_at);
            return Ok(());
        };
        (active.unreached, active.presumed) = (false, false);
        if self.view.as_ref().is_some_and(|view| Arc::ptr_eq(view.snapshot(), &base)) {
            self.view_at = looked_at;
        }
        if base.version() == active.number {
            active.use_view(active.view.clone(), looked_at);
            return Ok(());
        }
        active.number = base.version();
        let whole = match active.own.is_empty() {
            true => base,
            false => Arc::new(active.own.over(&base, db.kv.unique_id())),
        };
        let view = Arc::new(View::new(whole, self.database.clone(), &self.settings.eval.search_path));
        active.use_view(view.clone(), looked_at);
        if active.own.is_empty() {
            // The next transaction begins with it.
            (self.view, self.view_at) = (Some(view), looked_at);
        }
        self.sequences.use_catalog(active.view.snapshot());
        Ok(())
    }

    /// What ends the waits of this session's statements.
    pub(super) fn patience(&self) -> Patience {
        Patience { interrupt: self.interrupt.clone(), deadline: self.deadline.clone() }
    }

    fn begin(&mut self, as_of: Option<Timestamp>, wait: Wait) -> Result<Active, SqlError> {
        let as_of = match as_of {
            Some(time) => Some(time),
            None => self.modes.as_of.clone().map(|a| self.resolve_as_of(&a, None)).transpose()?,
        };
        let as_of = match as_of {
            None if self.consistency() == Consistency::Stale => Some(self.stale_snapshot()),
            as_of => as_of,
        };
        let options = self.begin_options(as_of);
        self.deferred.truncate(0);
        let mut txn = self.db.kv.begin(&options)?;
        let known = match &self.view {
            Some(view) if txn.is_as_it_was(&key::VERSION_KEY, self.view_at) => Some(view.clone()),
            _ => None,
        };
        let before = self.view.clone().filter(|_| wait == Wait::Never);
        let (view, unreached) = match (known, before) {
            (Some(view), _) => (view, false),
            (None, Some(view)) => (view, true),
            (None, None) => match (self.look_at_catalog(txn.as_mut(), wait), self.view.clone()) {
                (Err(error), Some(view)) if wait == Wait::Hasty && is_out_of_reach(&error) => (view, true),
                (view, _) => (view?, false),
            },
        };
        if !unreached {
            self.view_at = txn.snapshot();
        }
        let began_us = match (self.block_began_us, txn.began_us()) {
            (Some(us), _) => us,
            (None, Some(us)) => us - EPOCH_OFFSET_US,
            (None, None) => self.db.kv.now_us() - EPOCH_OFFSET_US,
        };
        self.fresh_us = self.block_began_us.is_none().then_some(began_us);
        let beginning = (options.isolation == Isolation::ReadCommitted && as_of.is_none()).then(|| txn.savepoint());
        let snapshot = txn.snapshot();
        let txn = TxnRef::new(txn);
        let relying = Relying::new(view.clone(), txn.clone(), self.view_at, self.backend.relied.clone());
        Ok(Active {
            snapshot,
            catalog: Arc::new(relying.unreached(unreached)),
            unreached,
            presumed: false,
            noted: self.backend.relied.clone(),
            number: view.snapshot().version(),
            looked_at: self.view_at,
            own: self.unchanged.clone(),
            relied: std::mem::take(&mut self.relied),
            txn,
            view,
            isolation: options.isolation,
            as_of,
            began_us,
            snapshot_us: self.db.kv.monotonic_us(),
            savepoints: Vec::new(),
            beginning,
            between: None,
            statements: 0,
            untouched: true,
            settings: None,
            loads: Vec::new(),
            fresh: Vec::new(),
            taken_over: Vec::new(),
            barrier: None,
            tried_from: None,
            written_by: 0,
            claims: None,
        })
    }

    /// The committed catalog as a transaction that begins sees it.
    fn look_at_catalog(&mut self, txn: &mut dyn Transaction, wait: Wait) -> Result<Arc<View>, SqlError> {
        let known = self.view.as_ref().map(|view| (view.snapshot(), self.view_at));
        let catalog = self.db.catalog.look(self.db.kv.as_ref(), &self.patience(), txn, known, wait)?;
        if let Some(view) = self.view.as_ref().filter(|view| Arc::ptr_eq(view.snapshot(), &catalog)) {
            return Ok(view.clone());
        }
        let view = Arc::new(View::new(catalog, self.database.clone(), &self.settings.eval.search_path));
        self.sequences.use_catalog(view.snapshot());
        self.view = Some(view.clone());
        Ok(view)
    }

    /// A transaction that has read nothing yet, though statements have run in it, takes the snapshot of now: what it waited for (an
    /// advisory lock) may have been the end of others, whose work it is to see.
    fn move_to_present(&mut self, wait: Wait) -> Result<(), SqlError> {
        let stale = self.active.as_ref().is_some_and(|active| {
            active.untouched
                && active.statements > 0
                && active.savepoints.is_empty()
                && active.as_of.is_none()
                && active.isolation != Isolation::ReadCommitted
        });
        if stale { self.begin_anew(wait) } else { Ok(()) }
    }

    /// A transaction that has done nothing begins again: at the present, and as it is to begin by now.
    pub(super) fn begin_anew(&mut self, wait: Wait) -> Result<(), SqlError> {
        let fresh = self.begin(None, wait)?;
        self.backend.sees(Some((fresh.txn.with(|t| t.snapshot()), fresh.snapshot_us)));
        if let Some(active) = self.active.as_mut() {
            (active.txn, active.view, active.catalog) = (fresh.txn, fresh.view, fresh.catalog);
            (active.number, active.looked_at, active.relied) = (fresh.number, fresh.looked_at, Vec::new());
            (active.snapshot, active.snapshot_us) = (fresh.snapshot, fresh.snapshot_us);
            (active.as_of, active.beginning, active.between) = (fresh.as_of, fresh.beginning, None);
            active.isolation = fresh.isolation;
            (active.unreached, active.presumed) = (fresh.unreached, false);
        }
        Ok(())
    }

    /// The search path has changed inside a transaction: names resolve anew.
    pub(super) fn rebuild_view(&mut self) {
        let path = &self.settings.eval.search_path;
        if let Some(active) = self.active.as_mut() {
            let view = View::new(active.view.snapshot().clone(), self.database.clone(), path);
            active.use_view(Arc::new(view), active.looked_at);
            self.sequences.use_catalog(active.view.snapshot());
        }
    }

    /// What a statement runs with. There must be a transaction.
    pub(super) fn statement_context(&mut self, params: Vec<Value>) -> Result<Arc<StatementContext>, SqlError> {
        let in_block = self.block != Block::None;
        let Some(active) = self.active.as_mut() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a statement runs without a transaction"));
        };
        active.untouched = false;
        // The statements of a text or a pipeline are one transaction: each but the first keeps what those before it have read.
        let lone = self.commits && !in_block && active.statements == 0 && active.savepoints.is_empty();
        let claims = match lone {
            true => self.lone_claims.clone(),
            false => active.claims_of(self.db.options.locked_keys_max).clone(),
        };
        if lone {
            claims.begin();
        }
        let Some(active) = self.active.as_ref() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a statement runs without a transaction"));
        };
        let statement_us =
            if active.statements == 0 && self.block == Block::None { active.began_us } else { self.statement_began_us };
        self.start_deadline();
        let modes = self.shown_modes();
        if let Some(cursors) = self.portals.to_show() {
            *self.backend.cursors.lock() = cursors;
        }
        let memory = self.db.budget(self.settings.query_memory_bytes);
        work::use_memory(&memory);
        let statement = Statement {
            lists: crate::lists::Lists::default(),
            txn: active.txn.clone(),
            catalog: active.catalog.clone(),
            system: &WholeSystem,
            kv: self.db.kv.clone(),
            sequences: self.sequences.clone(),
            params,
            settings: self.settings.eval.clone(),
            transaction_us: active.began_us,
            statement_us,
            interrupt: self.interrupt.clone(),
            deadline: self.deadline.clone(),
            memory,
            hash_seed: self.db.options.hash_seed,
            backend: self.backend.clone(),
            modes,
        };
        let deferred = self.deferred.clone();
        Ok(Arc::new(StatementContext {
            statement,
            parts: None,
            deferred,
            claims: Some(claims),
            runtime_filters: self.db.options.runtime_filters,
            meters: None,
            formats: Vec::new(),
        }))
    }

    /// `statement_timeout` counts from here, unless it counts already.
    pub(super) fn start_deadline(&self) {
        if self.settings.statement_timeout_ms > 0 && !self.deadline.is_set() {
            let timeout_us = i64::try_from(self.settings.statement_timeout_ms).unwrap_or(i64::MAX).saturating_mul(1000);
            self.deadline.set(self.db.kv.monotonic_us().saturating_add(timeout_us));
        }
    }

    /// Between rows: was the statement cancelled, or did its time run out?
    pub(super) fn check_interrupt(&self) -> Result<(), SqlError> {
        if self.deadline.has_passed(self.db.kv.as_ref()) {
            return Err(work::timed_out());
        }
        if self.interrupt.is_raised() {
            return Err(SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request"));
        }
        Ok(())
    }

    /// Remembers the settings as they were before the first change in this transaction.
    pub(super) fn keep_settings(&mut self) {
        let kept = (self.settings.clone(), self.lasting.clone());
        if let Some(active) = self.active.as_mut()
            && active.settings.is_none()
        {
            active.settings = Some(Box::new(kept));
        }
    }

    /// Commits the transaction, if there is one, and ends the block.
    pub(super) fn commit(&mut self) -> Result<(), SqlError> {
        self.start_deadline();
        let held = self.before_commit();
        let Some(mut active) = self.active.take() else {
            // What has run by transactions of its own has relied on its tables, too.
            self.backend.relied.clear();
            self.carried = None;
            self.end_block();
            return Ok(());
        };
        let did_something = active.statements > 0 || !active.own.is_empty() || active.txn.with(|t| t.has_writes());
        let result = match held {
            Ok(()) => self.commit_active(&active).map_err(|e| self.or_duplicate(e, &active)),
            Err(e) => {
                active.txn.with(|t| t.rollback());
                Err(e)
            }
        };
        self.backend.relied.clear();
        self.backend.filled.clear();
        self.backend.release_transaction_locks(0);
        for index in active.loads.drain(..) {
            self.db.loads.end(index);
        }
        active.relied.clear();
        self.relied = std::mem::take(&mut active.relied);
        match result {
            Ok(committed) => {
                active.taken_over.iter_mut().for_each(|taken| taken.gate.passed());
                // A statement that was only planned has shown nothing of the present.
                if did_something {
                    self.token = self.token.max(committed.timestamp);
                }
                self.end_block();
                Ok(())
            }
            Err(e) => {
                self.has_seen(&active);
                self.portals.end_transaction(false);
                self.restore_settings(active.settings.take());
                self.end_block();
                Err(e)
            }
        }
    }

    /// A transaction ends without a commit: the session's next snapshots do not go back behind this one's, either.
    fn has_seen(&mut self, active: &Active) {
        if active.as_of.is_none() && active.statements > 0 {
            self.token = self.token.max(active.snapshot_now());
        }
    }

    /// Commits the transaction, with a number for the catalog that it has made.
    fn commit_active(&self, active: &Active) -> Result<Committed, SqlError> {
        if active.own.is_empty() {
            return Ok(active.txn.with(|t| t.commit())?);
        }
        change::commit(&active.txn, self.db.kv.as_ref(), &self.db.catalog, &self.patience(), &active.own)
    }

    /// What may still fail: results that outlive the transaction, deferred foreign keys.
    fn before_commit(&mut self) -> Result<(), SqlError> {
        if self.portals.has_held() {
            self.materialise_held()?;
        }
        if self.active.is_some() && !self.deferred.is_empty() {
            self.ensure_active(None)?;
            self.deferred.clone().check(&self.statement_context(Vec::new())?, None)?;
        }
        Ok(())
    }

    /// Gives the transaction up, if there is one, and ends the block.
    pub(super) fn rollback(&mut self) {
        self.drop_active();
        self.end_block();
    }

    /// Gives the transaction up, if there is one; the block goes on, READ ONLY or not as it was before its subtransactions.
    pub(super) fn drop_active(&mut self) {
        self.portals.end_transaction(false);
        self.give_up_active();
    }

    fn give_up_active(&mut self) {
        if let Some(mut active) = self.active.take() {
            self.has_seen(&active);
            if let Some(outermost) = active.savepoints.first() {
                self.modes.read_only = outermost.read_only;
            }
            active.txn.with(|t| t.rollback());
            self.backend.filled.clear();
            self.backend.release_transaction_locks(0);
            for index in active.loads.drain(..) {
                self.db.loads.end(index);
            }
            self.restore_settings(active.settings.take());
        }
        // What has run by transactions of its own has relied on its tables, too.
        self.backend.relied.clear();
        let kept = self.carried.take();
        self.restore_settings(kept);
    }

    /// As [`Session::drop_active`], where the transaction begins again: what SET has said in it stays said, until its end, and what is bound and has not
    /// begun to run stays bound.
    pub(super) fn drop_to_begin_again(&mut self) {
        let kept = self.active.as_mut().and_then(|active| active.settings.take()).or(self.carried.take());
        self.portals.begin_again();
        self.give_up_active();
        self.carried = kept;
    }

    /// BEGIN behind a Parse or a Bind, which needed a transaction to plan in: nothing has run in it. What was bound stays bound.
    pub(super) fn drop_planned_in(&mut self) {
        self.portals.begin_again();
        self.give_up_active();
    }

    pub(super) fn restore_settings(&mut self, kept: Option<Box<(Settings, Option<Settings>)>>) {
        if let Some(kept) = kept {
            (self.settings, self.lasting) = *kept;
            self.settings_changed();
        }
    }

    fn end_block(&mut self) {
        if let Some(lasting) = self.lasting.take() {
            self.settings = lasting;
            self.settings_changed();
        }
        self.block = Block::None;
        self.too_old = false;
        self.modes = syntax::Modes::default();
        self.deferred.set_modes(Modes::default());
        self.block_began_us = None;
        self.portals.end_transaction(true);
    }

    /// A statement failed: an implicit transaction is over, a block waits for its end.
    pub(super) fn failed(&mut self) {
        self.deadline.clear();
        self.rest = None;
        self.copy = None;
        self.backend.effects.take();
        match self.block {
            Block::None => self.rollback(),
            // Its work is committed: only COMMIT is left to say.
            Block::Released => {}
            Block::Open => {
                self.block = Block::Failed;
                let keep = self.active.as_ref().is_some_and(|a| !a.savepoints.is_empty());
                if !keep {
                    self.drop_active();
                }
            }
            Block::Failed => {}
        }
    }

    /// 25P02 in a failed block.
    pub(super) fn refuse_in_failed_block(&self) -> Result<(), SqlError> {
        match self.block {
            Block::Failed if self.too_old => Err(snapshot::too_old()),
            Block::Failed => Err(SqlError::new(
                SqlState::IN_FAILED_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block",
            )),
            Block::Released => Err(SqlError::new(
                SqlState::INVALID_TRANSACTION_STATE,
                "current transaction is committed, commands ignored until end of transaction block",
            )),
            Block::None | Block::Open => Ok(()),
        }
    }
}
