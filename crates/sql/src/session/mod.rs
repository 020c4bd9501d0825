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
mod as_of;
mod constraints;
mod control;
mod copy;
mod cursor;
mod explain;
mod extended;
mod portal;
mod prepared;
mod run;
mod schema_change;
mod setting_functions;
mod setting_table;
mod settings;
mod show;
mod simple;
mod startup;
mod text_cache;

pub use startup::{Executed, Startup, TransactionStatus};
pub use text_cache::TextCache;

use crate::catalog::view::View;
use crate::context::Deadline;
use crate::database::Database;
use crate::exec::deferred::Deferred;
use crate::output::{Field, Output};
use crate::sequence::SessionSequences;
use crate::syntax::Modes;
use crate::transaction::{Interrupt, Patience};
use crate::{SqlError, SqlState, catalog};
use active::Active;
use clock::Timestamp;
use copy::CopyIn;
use portal::Portals;
use prepared::Prepared;
use settings::Settings;
use std::collections::HashMap;
use std::sync::Arc;

/// Most prepared statements of one session.
pub const PREPARED_MAX: usize = 10_000;
/// Most open portals and cursors of one session.
pub const PORTALS_MAX: usize = 1_000;
/// Greatest length of one value, bytes.
pub const VALUE_BYTES_MAX: usize = 16 << 20;
/// How often a statement is run before its client is told to restart the transaction.
pub const STATEMENT_ATTEMPTS_MAX: usize = 50;

/// Microseconds between the Unix epoch and PostgreSQL's, 2000-01-01.
pub(crate) const PG_EPOCH_US: i64 = 946_684_800_000_000;

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
    database: Arc<catalog::Database>,
    settings: Settings,
    /// What `settings` goes back to when SET LOCAL ends.
    lasting: Option<Settings>,
    /// Grows with each change of the settings that plans read.
    generation: u64,
    /// Those settings, as part of a plan's key.
    plan_settings: Arc<str>,
    sequences: Arc<SessionSequences>,
    view: Option<Arc<View>>,
    block: Block,
    modes: Modes,
    block_began_us: Option<i64>,
    active: Option<Active>,
    token: Timestamp,
    prepared: HashMap<String, Arc<Prepared>>,
    unnamed: Option<Arc<Prepared>>,
    portals: Portals,
    copy: Option<CopyIn>,
    /// The rest of a simple query that waits for its COPY.
    rest: Option<(Arc<[crate::syntax::Parsed]>, usize)>,
    reported: HashMap<&'static str, String>,
    /// Foreign keys that are checked before the commit.
    deferred: Arc<Deferred>,
    /// When the running statement is to be stopped, microseconds since the Unix epoch.
    deadline: Deadline,
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
        let database = find_database(&db, name)?;
        let mut settings = Settings::new(
            user,
            &database.name,
            startup.backend_pid,
            &db.options.product_version,
            db.options.query_memory_bytes,
        );
        settings.set("application_name", Some(&startup.application_name))?;
        for (name, value) in &startup.parameters {
            if !matches!(name.as_str(), "user" | "database" | "replication" | "options") {
                settings.set(&name.to_lowercase(), Some(value))?;
            }
        }
        settings.seal();
        let patience = Patience { interrupt: interrupt.clone(), deadline: Deadline::default() };
        let deadline = patience.deadline.clone();
        let sequences = Arc::new(SessionSequences::new(db.kv.clone(), db.numbers.clone(), patience));
        let mut session = Session {
            db,
            interrupt,
            database,
            settings,
            lasting: None,
            generation: 0,
            plan_settings: "".into(),
            sequences,
            view: None,
            block: Block::None,
            modes: Modes::default(),
            block_began_us: None,
            active: None,
            token: Timestamp::MIN,
            prepared: HashMap::new(),
            unnamed: None,
            portals: Portals::default(),
            copy: None,
            rest: None,
            reported: HashMap::new(),
            deadline,
            deferred: Default::default(),
        };
        session.settings_changed();
        Ok(session)
    }

    /// ParameterStatus messages that follow a successful start, in order.
    pub fn initial_parameters(&mut self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for (name, shown) in setting_table::REPORTED {
            let value = self.settings.show(name).unwrap_or_default();
            self.reported.insert(name, value.clone());
            all.push((shown.to_string(), value));
        }
        all
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

    /// The settings have changed: plans made under the old ones are void.
    fn settings_changed(&mut self) {
        self.generation += 1;
        let eval = &self.settings.eval;
        self.plan_settings = format!(
            "{}\0{}\0{}\0{}\0{}\0{}",
            eval.database,
            eval.user,
            eval.time_zone.name(),
            eval.search_path.join("\0"),
            eval.extra_float_digits,
            eval.bytea_escape,
        )
        .into();
        self.view = None;
    }

    /// Tells the client of settings that it follows and that have changed.
    fn report_settings(&mut self, out: &mut dyn Output) {
        for (name, shown) in setting_table::REPORTED {
            let value = self.settings.show(name).unwrap_or_default();
            if self.reported.get(name).is_some_and(|known| *known != value) {
                out.parameter_status(shown, &value);
                self.reported.insert(name, value);
            }
        }
    }
}

/// The default of a setting; `None` if there is none of that name.
pub(crate) fn setting_default(name: &str) -> Option<&'static str> {
    setting_table::find(name).map(|setting| setting.default)
}

fn find_database(db: &Database, name: &str) -> Result<Arc<catalog::Database>, SqlError> {
    let mut txn = db.kv.begin(&Default::default())?;
    let catalog = db.catalog.current(txn.as_mut(), None)?;
    catalog.database(name).cloned().ok_or_else(|| {
        SqlError::new(SqlState::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist"))
            .hint("Connect to the database postgres, and CREATE DATABASE it.")
    })
}

/// A text column of a result made by the session itself.
fn text_field(name: &str) -> Field {
    Field { name: name.into(), ty: crate::types::SqlType::Text, table_oid: 0, column: 0 }
}
