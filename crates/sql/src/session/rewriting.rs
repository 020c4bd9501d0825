//! A statement that writes more than its transaction may hold is run again by writing its table anew ([`crate::ddl`]'s `rewriting`, decision 238), if it is its whole transaction.

use super::portal::{Portal, PortalState};
use super::run::{How, Outcome};
use super::{Block, Session};
use crate::SqlError;
use crate::ddl::{Rewriting, keeps_longer, rewrite_exclusively};
use crate::plan::parts::is_modifying;
use sql_value::error::Exceeded;
use sqlparser::ast::Statement;

/// What to do about 53200 where the statement could have been run so.
const BY_ITSELF: &str = "At a node that is alone this statement takes steady memory where it is its whole transaction (outside of BEGIN .. COMMIT, in a text or pipeline of its own): its table is written anew then. Or write fewer rows in one transaction, or start the node with more --memory.";

/// And where not.
const OTHERWISE: &str = "Steady memory take, at a node that is alone and as a whole transaction, DELETE, UPDATE and INSERT .. SELECT without RETURNING, ON CONFLICT and other writes in WITH; but not DELETE from a table that foreign keys refer to, nor what sets columns that a foreign key has or refers to. Or write fewer rows in one transaction, or start the node with more --memory.";

/// And where it would take the table's past with it.
const KEEPS_PAST: &str = "The table keeps its past for longer than the node (its retention): written anew it would lose it. Write fewer rows in one transaction, or RESET (retention) of the table before, or start the node with more --memory, or with as long a --retention.";

/// And where the session has lowered what a statement may hold.
const LOWERED: &str = "Write fewer rows in one transaction, or raise timeball.query_memory_bytes.";

/// And where others hold the memory.
const OTHERS: &str = "Other sessions hold most of the memory, or the node itself: run the statement again once their transactions have ended, or write fewer rows in one transaction, or start the node with more --memory.";

impl Session {
    /// Whether a statement that has failed so, being its whole transaction, is to be run again by [`Session::write_anew`]. `worn`: it has begun again and again, and would not any more. Then it is taken for one that does not fit if it has come near to that: what fits is not written
    /// anew because a busy row stands in its way.
    pub(super) fn is_to_write_anew(&self, e: &SqlError, portal: &Portal, how: How, worn: bool) -> bool {
        let exceeds =
            e.exceeds_writes.or_else(|| self.held().filter(|held| worn && SqlError::retry(e) && held.nearly_all()));
        // In a cluster loads with little memory have been seen to fail and to stand still (decision 235).
        let alone = self.db.kv.cluster().is_none();
        let may = |exceeded| alone && self.why_not(exceeded, portal, how).is_none();
        !self.backend.effects.is_final() && exceeds.is_some_and(may)
    }

    /// What the statement's transaction holds to be written, of what there is for all.
    fn held(&self) -> Option<Exceeded> {
        // As it waits, and in the log's record.
        let bytes = 2 * self.active.as_ref()?.txn.with(|txn| txn.footprint()).bytes;
        Some(Exceeded { bytes, share: self.db.options.memory_pool.share_bytes(), others: 0, own_limit: None })
    }

    /// Why a statement whose writes do not fit is not run so, as its client is told.
    fn why_not(&self, exceeded: Exceeded, portal: &Portal, how: How) -> Option<&'static str> {
        if exceeded.own_limit.is_some_and(|limit| limit < self.db.options.query_memory_bytes) {
            return Some(LOWERED);
        }
        let plan = portal.plan.as_ref().filter(|_| portal.prepared.planned().is_some());
        let Some(rewriting) = plan.and_then(|plan| plan.rewriting()) else { return Some(OTHERWISE) };
        if keeps_longer(&self.db, rewriting.table()) {
            return Some(KEEPS_PAST);
        }
        if !how.commit || self.block != Block::None {
            return Some(BY_ITSELF);
        }
        // A whole table is not written for the sake of what fits otherwise.
        (!exceeded.by_itself()).then_some(OTHERS)
    }

    /// What the writes of a statement do not fit: the error says what can be done.
    pub(super) fn explained(&self, e: SqlError, portal: &Portal, how: How) -> SqlError {
        match e.exceeds_writes {
            Some(exceeded) if self.db.kv.cluster().is_none() && writes(portal) => {
                e.hint(self.why_not(exceeded, portal, how).unwrap_or(BY_ITSELF))
            }
            _ => e,
        }
    }

    /// Runs it so. `None`: it is not any more what it was when it was planned.
    pub(super) fn write_anew(&mut self, portal: &mut Portal) -> Result<Option<Outcome>, SqlError> {
        let (prepared, Some(plan)) = (portal.prepared.clone(), portal.plan.clone()) else { return Ok(None) };
        let (Some(planned), Some(rewriting)) = (prepared.planned(), plan.rewriting()) else { return Ok(None) };
        self.backend.effects.take();
        // What it has written is given back before anything else is held.
        self.restart();
        let isolation = self.ensure_active(None)?.isolation;
        let context = self.statement_context(portal.params.clone())?;
        let options = self.options_of_steps();
        self.restart();
        let (text, parameters, table) = (&*prepared.text, plan.parameters(), rewriting.table().id);
        let only_deletes = rewriting.only_deletes();
        let what = Rewriting { planned, text, parameters, table, only_deletes, isolation };
        let done = rewrite_exclusively(&self.db, &self.database, &context, options, &what);
        // What does not fit now would not fit by another way.
        let done = done.map_err(|e| e.with(|e| e.exceeds_writes = None))?;
        let Some((tag, at)) = done else { return Ok(None) };
        self.token = self.token.max(at);
        portal.state = PortalState::Done;
        self.commit()?;
        Ok(Some(Outcome::Tag(tag)))
    }
}

/// Whether a portal's statement is an INSERT, an UPDATE or a DELETE, or has one in it.
fn writes(portal: &Portal) -> bool {
    portal.prepared.planned().is_some_and(|planned| match &planned.statement {
        Statement::Insert(_) | Statement::Update { .. } | Statement::Delete(_) => true,
        Statement::Query(query) => is_modifying(query),
        _ => false,
    })
}
