//! A client's session: messages of the PostgreSQL protocol in, answers to an [`Output`].
//!
//! Problem: one session speaks the simple and the extended protocol, in and outside transaction blocks, and must retry by
//! itself what the client has not seen the outcome of. Idea: the protocol only chooses *what* runs and *when* a transaction
//! ends; one path ([`run`]) runs a statement, commits, and retries.
//!
//! 1. A transaction of the layers below exists only while a statement needs one: BEGIN takes no snapshot, the first
//!    statement does.
//! 2. A statement is retried only if nothing of its transaction came before it, and everything that it sent could be taken
//!    back.
//! 3. CommandComplete follows the commit, when the statement is its whole transaction.
//! 4. After an error in a block nothing runs until the block ends or goes back to a savepoint (25P02).
//! 5. Settings follow the transaction: a rollback takes them back.
//!
//! Caveats: a portal suspended in mid-result sees later writes of its own transaction. A batch of statements that contains
//! BEGIN or COMMIT is not retried as a whole.

mod active;
mod ahead;
mod analyze;
mod as_of;
mod barrier;
mod conflict;
mod constraints;
mod control;
mod copy;
mod cursor;
mod describe;
mod duplicate;
mod explain;
mod extended;
mod filling;
mod lifted;
mod measure;
mod mentions;
mod portal;
mod prepared;
mod presumed;
mod read_out;
mod rewriting;
mod run;
mod schema_change;
mod scroll;
mod setting_table;
mod settings;
mod show;
mod simple;
mod snapshot;
mod startup;
mod system;
mod takeover;
mod text_cache;
mod token;
mod zone;

pub use crate::types::VALUE_BYTES_MAX;
pub(crate) use settings::{
    about as setting_about, all as all_settings, milliseconds as duration_ms, show as setting_shown,
};
pub use startup::{Executed, Startup, TransactionStatus};
pub use system::WholeSystem;
pub use text_cache::{GENERATION_TEXT_BYTES_MAX, TextCache};

use crate::catalog::cache::is_out_of_reach;
use crate::catalog::role::ROLE_OID;
use crate::catalog::view::View;
use crate::catalog::{Overlay, Uses, Wait};
use crate::context::{Deadline, EvalSettings, MemoryBudget};
use crate::database::Database;
use crate::ddl::Ending;
use crate::exec::claims::Claims;
use crate::exec::deferred::Deferred;
use crate::output::{Field, Output};
use crate::sequence::SessionSequences;
use crate::sessions::{Backend, Entrance, SHOWN_QUERY_BYTES_MAX, SessionState};
use crate::syntax::{AsOf, Modes};
use crate::transaction::{BeginOptions, Interrupt, KeptUncertainty, Patience};
use crate::types::SettingSource;
use crate::types::calendar::EPOCH_OFFSET_US;
use crate::work::{Limits, Pace, Purse};
use crate::{SqlError, SqlState, catalog, stack};
use active::Active;
use clock::Timestamp;
use copy::CopyIn;
use portal::Portals;
use prepared::Prepared;
use settings::Settings;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Most prepared statements of one session.
pub const PREPARED_MAX: usize = 10_000;
/// Most open portals and cursors of one session.
pub const PORTALS_MAX: usize = 1_000;
/// Most bytes of the values that the named portals of one session are bound to.
pub const PORTAL_BYTES_MAX: usize = 64 << 20;
/// How often a statement is run before its client is told to restart the transaction.
pub const STATEMENT_ATTEMPTS_MAX: usize = 50;

/// What BEGIN has opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// Nothing: each statement, or batch, is a transaction.
    None,
    /// A block.
    Open,
    /// A block in which a statement failed.
    Failed,
    /// A block committed by RELEASE of `cockroach_restart`, which waits for its COMMIT.
    Released,
}

/// One client's session. All calls come from one thread; another may raise the interrupt.
pub struct Session {
    db: Arc<Database>,
    interrupt: Interrupt,
    /// Of parsing and planning.
    pace: Pace,
    database: Arc<catalog::Database>,
    settings: Settings,
    /// `timeball.snapshot_age_max`, for who waits while the session is at work, milliseconds; 0 is never.
    snapshot_age_ms_max: Arc<AtomicU64>,
    /// What `settings` goes back to when SET LOCAL ends.
    lasting: Option<Settings>,
    /// Grows with each change of the settings that plans read.
    generation: u64,
    /// Those settings, as part of a plan's key.
    plan_settings: Arc<str>,
    sequences: Arc<SessionSequences>,
    view: Option<Arc<View>>,
    /// A snapshot at which `view` was the committed catalog.
    view_at: Timestamp,
    /// The catalog's changes of a transaction that has made none.
    unchanged: Arc<Overlay>,
    /// Room for what a transaction relies on.
    relied: Vec<(Arc<Uses>, bool)>,
    /// The time, where it was read for the present message and nothing has run or waited since.
    fresh_us: Option<i64>,
    block: Block,
    modes: Modes,
    block_began_us: Option<i64>,
    /// When the present statement began, or the last one, microseconds since 2000-01-01 UTC.
    statement_began_us: i64,
    /// The present statement is repeated, because it met a conflict.
    met_conflict: bool,
    /// The present statement runs once more, for the same message, and what the transaction that it has lost knew of uncertainty (decision 213).
    repeats: bool,
    kept: Option<KeptUncertainty>,
    /// How often the present statement has waited for those who have written to what it changes.
    waited_for_users: u32,
    /// It has failed, and part of what it wrote beside its transaction is there: it cannot be repeated within it.
    is_half_done: bool,
    /// It has met a change that is about to end what it would write by.
    met_ending: bool,
    /// It has waited for a block that had barred what it would write by, and was given the lock: the next time it goes on.
    met_barrier: Cell<bool>,
    /// It is a change, which keeps others out until it has committed.
    ending: Option<Ending>,
    /// The present statement commits when it is done.
    commits: bool,
    /// Unique keys that a statement which is its whole transaction inserts.
    lone_claims: Arc<Claims>,
    /// The block's transaction was rolled back because its snapshot was too old.
    too_old: bool,
    active: Option<Active>,
    /// What the settings were before a transaction that is to begin again.
    carried: Option<Box<(Settings, Option<Settings>)>>,
    /// What AS OF SYSTEM TIME said last, and which time that was.
    time_said: Option<(Vec<AsOf>, Timestamp)>,
    token: Timestamp,
    /// The token that the client was told last, where it wants to be told.
    reported_token: Timestamp,
    prepared: BTreeMap<String, Arc<Prepared>>,
    unnamed: Option<Arc<Prepared>>,
    portals: Portals,
    copy: Option<Box<CopyIn>>,
    /// The rest of a simple query that waits for its COPY.
    rest: Option<(text_cache::Statements, usize)>,
    reported: HashMap<&'static str, String>,
    /// The generation of the settings that `reported` is of.
    reported_generation: u64,
    start_notices: Vec<SqlError>,
    /// The session as the others see it.
    backend: Arc<Backend>,
    /// Foreign keys that are checked before the commit.
    deferred: Arc<Deferred>,
    /// When the running statement is to be stopped, microseconds since the Unix epoch.
    deadline: Deadline,
    /// What work inside values is ended by.
    limits: Purse,
    /// What work before a statement may hold.
    planning_memory: Arc<MemoryBudget>,
}

impl Drop for Session {
    fn drop(&mut self) {
        stack::roomy(|| {
            self.leave_load();
            self.drop_active();
            (self.copy, self.rest, self.unnamed) = (None, None, None);
            self.portals = Portals::none_left();
            self.prepared.clear();
        });
        self.backend.leave();
    }
}

impl Session {
    /// Opens a session.
    ///
    /// # Errors
    /// 3D000 if the database does not exist, 22023 for a bad start-up parameter. Any user name is taken: who may connect is
    /// settled before.
    pub fn new(db: Arc<Database>, startup: Startup, interrupt: Interrupt) -> Result<Session, SqlError> {
        let user = if startup.user.is_empty() { "root" } else { &startup.user };
        let name = if startup.database.is_empty() { user } else { &startup.database };
        let patience = Patience { interrupt: interrupt.clone(), deadline: Deadline::default() };
        let (database, catalog, view_at) = find_database(&db, name, &patience)?;
        let mut settings = Settings::new(user, &database.name, startup.backend_pid, &db.options);
        let (mut start_notices, mut token) = (Vec::new(), None);
        for (source, name, value) in catalog.defaults().of_session(database.id, ROLE_OID) {
            // It was sound when it was set. If it is not any more, nobody could connect to take it back.
            if let Err(e) = settings.set_by(source, name, Some(value)) {
                start_notices.push(e);
            }
        }
        for (name, value) in &startup.parameters {
            if name.eq_ignore_ascii_case("timeball.token") {
                token = Some(value);
            } else if !matches!(name.as_str(), "user" | "database" | "replication" | "options") {
                match settings.set_by(SettingSource::Client, &name.to_lowercase(), Some(value)) {
                    // What the session cannot give is not worth a connection: the client is told, and what it has instead. In
                    // another encoding, though, it would misread every text.
                    Err(e)
                        if e.state == SqlState::FEATURE_NOT_SUPPORTED
                            && !name.eq_ignore_ascii_case("client_encoding") =>
                    {
                        start_notices.push(e);
                    }
                    other => other?,
                }
            }
        }
        // What the client calls itself goes before what its options say.
        if !startup.application_name.is_empty() {
            settings.set_by(SettingSource::Client, "application_name", Some(&startup.application_name))?;
        }
        settings.seal();
        let deadline = patience.deadline.clone();
        let limits = Purse::new(Limits::new(patience.clone(), db.kv.clone()));
        let planning_memory = db.budget(settings.query_memory_bytes);
        let lone_claims = Arc::new(Claims::lone(db.options.locked_keys_max));
        let sequences = Arc::new(SessionSequences::new(db.kv.clone(), db.numbers.clone(), patience));
        let entrance = Entrance {
            pid: startup.backend_pid,
            user: user.into(),
            database: database.id,
            client_addr: startup.client_addr,
            server_addr: startup.server_addr,
            began_us: db.kv.now_us() - EPOCH_OFFSET_US,
            interrupt: interrupt.clone(),
            client: startup.client.clone(),
        };
        let backend = db.sessions.enter(entrance);
        let mut session = Session {
            db,
            interrupt,
            pace: Pace::default(),
            database,
            settings,
            lasting: None,
            generation: 0,
            plan_settings: "".into(),
            snapshot_age_ms_max: Arc::default(),
            sequences,
            view: None,
            view_at: Timestamp::MIN,
            unchanged: Arc::default(),
            relied: Vec::new(),
            fresh_us: None,
            block: Block::None,
            modes: Modes::default(),
            block_began_us: None,
            statement_began_us: 0,
            met_conflict: false,
            repeats: false,
            kept: None,
            waited_for_users: 0,
            is_half_done: false,
            met_ending: false,
            met_barrier: Cell::new(false),
            ending: None,
            commits: false,
            lone_claims,
            too_old: false,
            active: None,
            carried: None,
            time_said: None,
            token: Timestamp::MIN,
            reported_token: Timestamp::MIN,
            prepared: BTreeMap::new(),
            unnamed: None,
            portals: Portals::default(),
            copy: None,
            rest: None,
            reported: HashMap::new(),
            reported_generation: 0,
            start_notices,
            backend,
            deadline,
            limits,
            planning_memory,
            deferred: Default::default(),
        };
        session.settings_changed();
        let view = View::new(catalog, session.database.clone(), &session.settings.eval.search_path);
        session.sequences.use_catalog(view.snapshot());
        (session.view, session.view_at) = (Some(Arc::new(view)), view_at);
        if let Some(token) = token {
            session.token = session.read_token(token)?;
        }
        Ok(session)
    }

    /// ParameterStatus messages that follow a successful start, in order.
    pub fn initial_parameters(&mut self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        self.reported_generation = self.generation;
        for (name, shown) in setting_table::REPORTED {
            let value = self.settings.show(name).unwrap_or_default();
            self.reported.insert(name, value.clone());
            all.push((shown.to_string(), value));
        }
        all
    }

    /// What the client is to be warned of after a successful start: settings that it asked for and does not get.
    pub fn take_start_notices(&mut self) -> Vec<SqlError> {
        std::mem::take(&mut self.start_notices)
    }

    /// For ReadyForQuery.
    pub fn transaction_status(&self) -> TransactionStatus {
        match self.block {
            Block::None => TransactionStatus::Idle,
            Block::Open | Block::Released => TransactionStatus::InBlock,
            Block::Failed => TransactionStatus::Failed,
        }
    }

    /// The milliseconds after which a session in its present state is to be ended for being idle
    /// (`idle_session_timeout`, `idle_in_transaction_session_timeout`); 0 is never.
    pub fn idle_timeout_ms(&self) -> u64 {
        if self.block == Block::None { self.settings.idle_session_ms } else { self.settings.idle_in_transaction_ms }
    }

    /// `statement_timeout`, milliseconds; 0 is never. The session stops long loops by itself; a caller with a timer raises
    /// the interrupt, which also ends waits.
    pub fn statement_timeout_ms(&self) -> u64 {
        self.settings.statement_timeout_ms
    }

    /// A message is handled from here on: what asked for an end before does not mean it.
    fn begin_message(&self) {
        self.interrupt.clear();
        self.start_deadline();
    }

    /// Handles a message, or a part of one: on a stack that is large enough, on a thread that has the session's limits meanwhile.
    fn with_limits<R>(&mut self, handle: impl FnOnce(&mut Session) -> R) -> R {
        let before = self.limits.lend(&self.planning_memory);
        let handled = stack::roomy(|| handle(self));
        self.limits.take_back(before);
        handled
    }

    /// The settings have changed: plans made under the old ones are void.
    fn settings_changed(&mut self) {
        self.generation += 1;
        self.planning_memory = self.db.budget(self.settings.query_memory_bytes);
        let eval = &self.settings.eval;
        self.plan_settings = format!(
            "{}\0{}\0{}\0{}\0{}\0{}\0{:?}\0{:?}\0{:?}\0{:?}",
            eval.database,
            eval.user,
            self.settings.show("timezone").unwrap_or_default(),
            eval.search_path.join("\0"),
            eval.extra_float_digits,
            eval.bytea_escape,
            eval.styles,
            eval.values.get("plan_cache_mode"),
            eval.values.get("enable_hashjoin"),
            eval.values.get("enable_mergejoin"),
        )
        .into();
        if let Some(view) = self.view.take() {
            let path = &self.settings.eval.search_path;
            self.view = Some(Arc::new(View::new(view.snapshot().clone(), self.database.clone(), path)));
        }
        let eval = &self.settings.eval;
        self.backend.calls_itself(&eval.application_name);
        self.backend.lock_timeout.set_ms(self.settings.lock_timeout_ms);
        self.snapshot_age_ms_max.store(self.settings.snapshot_age_ms_max, Relaxed);
    }

    /// Whether another session has ended this one: whoever serves it closes it.
    pub fn is_ended(&self) -> bool {
        self.interrupt.is_ended()
    }

    /// All that has arrived was handled, and not yet answered: what comes then comes at another time.
    pub fn pauses(&mut self) {
        self.fresh_us = None;
    }

    /// Everything that arrived is answered: the session waits for its client.
    pub fn wait_for_client(&mut self) {
        let state = match self.block {
            Block::None => SessionState::Idle,
            Block::Open | Block::Released => SessionState::IdleInTransaction,
            Block::Failed => SessionState::IdleInFailedTransaction,
        };
        self.fresh_us = None;
        self.follow_snapshot();
        let seen = self.active.as_ref().map(|active| (active.snapshot_now(), active.snapshot_us));
        self.backend.has_done(self.active.as_ref().map(|active| active.txn.with(|t| t.footprint())));
        self.backend.waits(state, self.db.kv.now_us() - EPOCH_OFFSET_US, self.block_began_us, seen);
    }

    /// A text begins to be read, as others see it: what it holds is known later.
    fn show_text(&mut self, text: &str) {
        self.show_statement(&shown(text));
        self.fresh_us = Some(self.statement_began_us);
    }

    /// A statement begins, as others see it.
    fn show_statement(&mut self, text: &Arc<str>) {
        let now_us = self.fresh_us.take().unwrap_or_else(|| self.db.kv.now_us() - EPOCH_OFFSET_US);
        self.statement_began_us = now_us;
        let began_us = self.block_began_us.or(self.active.as_ref().map(|active| active.began_us));
        self.backend.begins(text, now_us, began_us.unwrap_or(now_us));
    }

    /// Does what functions of a statement that has worked asked for.
    fn apply_effects(&mut self, out: &mut dyn Output) -> Result<(), SqlError> {
        let Some(asked) = self.backend.effects.take() else { return Ok(()) };
        for notice in &asked.notices {
            self.tell(notice, out);
        }
        for change in &asked.settings {
            // Without a block it would last no longer than the statement.
            if !(change.local && self.block == Block::None) {
                self.set_setting(change.local, &change.name, change.value.as_deref(), out)?;
            }
        }
        Ok(())
    }

    /// Tells the client of settings that it follows and that have changed.
    fn report_settings(&mut self, out: &mut dyn Output) {
        // Asked at the end of every block: all but a few have changed nothing.
        if self.reported_generation == self.generation {
            return;
        }
        self.reported_generation = self.generation;
        for (name, shown) in setting_table::REPORTED {
            let value = self.settings.show(name).unwrap_or_default();
            if self.reported.get(name).is_some_and(|known| *known != value) {
                out.parameter_status(shown, &value);
                self.reported.insert(name, value);
            }
        }
    }
}

/// What a setting would show after a SET.
pub(crate) fn setting_trial(eval: &Arc<EvalSettings>, name: &str, value: Option<&str>) -> Result<String, SqlError> {
    Settings::trial(eval, name, value)
}

/// A database by its name; the catalog that knows it, and a snapshot at which it was that. Where the present one cannot be reached, the newest that is known
/// here will do if it has the database: a statement that needs the catalog asks for it.
fn find_database(
    db: &Database,
    name: &str,
    patience: &Patience,
) -> Result<(Arc<catalog::Database>, Arc<catalog::Snapshot>, Timestamp), SqlError> {
    // A session can be opened on a node whose clock is not to be trusted: what it asks for says what it needs of the clock.
    let mut txn = db.kv.begin(&BeginOptions::default())?;
    let (catalog, at) = match db.catalog.look(db.kv.as_ref(), patience, txn.as_mut(), None, Wait::Hasty) {
        Err(error) if is_out_of_reach(&error) => {
            match db.catalog.newest().filter(|(catalog, _)| catalog.database(name).is_some()) {
                Some(known) => known,
                // It may be there all the same: whoever leads next knows.
                None => (db.catalog.current(db.kv.as_ref(), patience, txn.as_mut(), None)?, txn.snapshot()),
            }
        }
        catalog => (catalog?, txn.snapshot()),
    };
    let database = catalog.database(name).cloned().ok_or_else(|| {
        SqlError::new(SqlState::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist"))
            .hint("Connect to the database postgres, and CREATE DATABASE it.")
    })?;
    Ok((database, catalog, at))
}

/// A text column of a result made by the session itself.
fn text_field(name: &str) -> Field {
    Field { name: name.into(), ty: crate::types::SqlType::Text, table_oid: 0, column: 0 }
}

/// A text as others see it.
fn shown(text: &str) -> Arc<str> {
    crate::identifier::cut(text, SHOWN_QUERY_BYTES_MAX).into()
}
