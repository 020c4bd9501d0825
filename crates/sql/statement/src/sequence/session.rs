//! The sequences as one session uses them: it remembers what it drew.

use super::Numbers;
use super::Sequences;
use crate::catalog::{Oid, Relation, Sequence, Snapshot};
use crate::transaction::{Kv, Patience};
use crate::{SqlError, SqlState};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// See the module.
pub struct SessionSequences {
    kv: Arc<dyn Kv>,
    numbers: Arc<Numbers>,
    patience: Patience,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    catalog: Option<Arc<Snapshot>>,
    drawn: HashMap<Oid, i64>,
    last: Option<Oid>,
}

impl SessionSequences {
    /// For a new session, whose statements have this patience.
    pub fn new(kv: Arc<dyn Kv>, numbers: Arc<Numbers>, patience: Patience) -> Self {
        SessionSequences { kv, numbers, patience, state: Mutex::default() }
    }
    /// The catalog of the transaction that begins, or has changed it.
    pub fn use_catalog(&self, catalog: &Arc<Snapshot>) {
        self.state.lock().catalog = Some(catalog.clone());
    }
    /// DISCARD SEQUENCES
    pub fn forget(&self) {
        let mut state = self.state.lock();
        state.drawn.clear();
        state.last = None;
    }

    fn find(&self, id: Oid) -> Result<Arc<Relation>, SqlError> {
        let state = self.state.lock();
        state
            .catalog
            .as_ref()
            .and_then(|c| c.relation(id).cloned())
            .ok_or_else(|| SqlError::new(SqlState::UNDEFINED_TABLE, format!("there is no sequence with OID {id}")))
    }
}

fn sequence_of(relation: &Relation) -> Result<&Sequence, SqlError> {
    match relation {
        Relation::Sequence(sequence) => Ok(sequence),
        other => {
            let name = crate::catalog::snapshot::name_of(other);
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a sequence")))
        }
    }
}

impl Sequences for SessionSequences {
    fn next(&self, sequence: u32) -> Result<i64, SqlError> {
        let relation = self.find(sequence)?;
        let value = self.numbers.next(self.kv.as_ref(), &self.patience, sequence_of(&relation)?)?;
        let mut state = self.state.lock();
        state.drawn.insert(sequence, value);
        state.last = Some(sequence);
        Ok(value)
    }

    fn current(&self, sequence: u32) -> Result<i64, SqlError> {
        let relation = self.find(sequence)?;
        let name = &sequence_of(&relation)?.name;
        self.state.lock().drawn.get(&sequence).copied().ok_or_else(|| {
            SqlError::new(
                SqlState::NOT_IN_PREREQUISITE_STATE,
                format!("currval of sequence \"{name}\" is not yet defined in this session"),
            )
        })
    }

    fn position(&self, sequence: u32) -> Result<(i64, bool), SqlError> {
        let relation = self.find(sequence)?;
        let position = self.numbers.position(self.kv.as_ref(), &self.patience, sequence_of(&relation)?)?;
        Ok((position.value, position.is_called))
    }

    fn last(&self) -> Result<i64, SqlError> {
        let state = self.state.lock();
        state.last.and_then(|id| state.drawn.get(&id).copied()).ok_or_else(|| {
            SqlError::new(SqlState::NOT_IN_PREREQUISITE_STATE, "lastval is not yet defined in this session")
        })
    }

    fn set(&self, sequence: u32, value: i64, is_called: bool) -> Result<i64, SqlError> {
        let relation = self.find(sequence)?;
        self.numbers.set(self.kv.as_ref(), &self.patience, sequence_of(&relation)?, value, is_called)?;
        if is_called {
            self.state.lock().drawn.insert(sequence, value);
        }
        Ok(value)
    }
}
