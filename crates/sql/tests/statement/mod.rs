//! A statement's context without a session: no tables, no sequences.

use sql::SqlError;
use sql::catalog::{Database, Relation, Schema};
use sql::context::{CatalogView, EvalSettings, MemoryBudget, Sequences, Statement, StatementContext};
use sql::transaction::{BeginOptions, Kv, TxnRef, memory::MemoryKv};
use std::sync::Arc;

struct NoCatalog;

impl CatalogView for NoCatalog {
    fn relation(&self, _: Option<&str>, _: &str) -> Result<Option<Arc<Relation>>, SqlError> {
        Ok(None)
    }
    fn relation_by_id(&self, _: u32) -> Result<Option<Arc<Relation>>, SqlError> {
        Ok(None)
    }
    fn relations(&self) -> Result<Vec<Arc<Relation>>, SqlError> {
        Ok(vec![])
    }
    fn schemas(&self) -> Result<Vec<Schema>, SqlError> {
        Ok(vec![])
    }
    fn databases(&self) -> Result<Vec<Database>, SqlError> {
        Ok(vec![])
    }
    fn current_database(&self) -> Database {
        Database { id: 1, name: "postgres".into(), extensions: Vec::new() }
    }
}

impl Sequences for NoCatalog {
    fn next(&self, _: u32) -> Result<i64, SqlError> {
        Ok(1)
    }
    fn current(&self, _: u32) -> Result<i64, SqlError> {
        Ok(1)
    }
    fn last(&self) -> Result<i64, SqlError> {
        Ok(1)
    }
    fn set(&self, _: u32, value: i64, _: bool) -> Result<i64, SqlError> {
        Ok(value)
    }
}

/// A context that no statement runs in.
pub fn context(memory_bytes: usize, settings: EvalSettings) -> Arc<StatementContext> {
    let kv: Arc<dyn Kv> = Arc::new(MemoryKv::default());
    let txn = kv.begin(&BeginOptions::default()).expect("a transaction begins");
    let statement = Statement {
        lists: Default::default(),
        txn: TxnRef::new(txn),
        catalog: Arc::new(NoCatalog),
        system: &sql::session::WholeSystem,
        kv,
        sequences: Arc::new(NoCatalog),
        params: vec![],
        settings: Arc::new(settings),
        transaction_us: 0,
        statement_us: 0,
        interrupt: Default::default(),
        deadline: Default::default(),
        memory: Arc::new(MemoryBudget::new(memory_bytes)),
        backend: sql::Backend::alone(),
        modes: Default::default(),
        hash_seed: 0,
    };
    Arc::new(StatementContext {
        statement,
        runtime_filters: Default::default(),
        meters: None,
        formats: Vec::new(),
        parts: None,
        claims: None,
        deferred: Default::default(),
    })
}
