//! EXPLAIN, and EXPLAIN ANALYZE: the plan, and what time cost.

use super::portal::{Portal, PortalState};
use super::run::{How, Outcome, next_rows};
use super::settings::consistency_name;
use super::{Block, Session, text_field};
use crate::output::{Field, Output};
use crate::plan::{Execution, Plan};
use crate::syntax::Planned;
use crate::transaction::{TxnRef, TxnStats};
use crate::types::Value;
use crate::{SqlError, SqlState};
use std::sync::Arc;

const PULL_ROWS: usize = 1024;

/// The shape of EXPLAIN.
pub(super) fn fields() -> Vec<Field> {
    vec![text_field("QUERY PLAN")]
}

impl Session {
    pub(super) fn run_explain(
        &mut self,
        portal: &mut Portal,
        how: How,
        analyze: bool,
        statement: &Arc<Planned>,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        if !matches!(portal.state, PortalState::Ready) {
            return self.pull(portal, how.max_rows, out);
        }
        let as_of = statement.as_of.as_ref().map(|a| self.resolve_as_of(a)).transpose()?.flatten();
        self.ensure_active(as_of)?;
        let Some(prepared) = portal.prepared.inside() else { return Err(SqlError::unsupported("this EXPLAIN")) };
        let plan = self.plan_of(&prepared)?;
        let params = portal.params.clone();
        if analyze && params.len() < plan.parameters().len() {
            let number = params.len() + 1;
            return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter ${number}")));
        }
        self.explain_plan(&plan, params, analyze, portal, how, out)
    }

    /// EXPLAIN EXECUTE
    pub(super) fn run_explain_execute(
        &mut self,
        portal: &mut Portal,
        how: How,
        analyze: bool,
        name: &str,
        arguments: &[String],
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        if !matches!(portal.state, PortalState::Ready) {
            return self.pull(portal, how.max_rows, out);
        }
        let prepared = self.find_prepared(name)?.clone();
        let (plan, params) = self.execute_arguments(name, &prepared, arguments)?;
        self.explain_plan(&plan, params, analyze, portal, how, out)
    }

    fn explain_plan(
        &mut self,
        plan: &Arc<dyn Plan>,
        params: Vec<Value>,
        analyze: bool,
        portal: &mut Portal,
        how: How,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        let mut lines = plan.explain();
        let mut txn = None;
        if analyze {
            let context = self.statement_context(params)?;
            txn = Some(context.txn.clone());
            let before = self.db.kv.now_us();
            let rows = self.count_rows(plan.execute(&context)?)?;
            lines.push(format!("Rows: {rows}"));
            lines.push(format!("Execution time: {:.3} ms", (self.db.kv.now_us() - before) as f64 / 1000.0));
        }
        if let Some(active) = self.active.as_mut() {
            active.statements += 1;
        }
        if how.commit && self.block == Block::None {
            self.commit()?;
        }
        if let Some(txn) = txn {
            lines.extend(time_lines(&txn));
        }
        let rows = lines.into_iter().map(|line| vec![Value::text(line)]).collect();
        self.send_rows(fields(), rows, "EXPLAIN", how, portal, out)
    }

    fn count_rows(&self, execution: Execution) -> Result<u64, SqlError> {
        match execution {
            Execution::Done { rows, tag } => {
                let affected = tag.rsplit(' ').next().and_then(|n| n.parse().ok());
                Ok(affected.unwrap_or(rows.len() as u64))
            }
            Execution::Rows(rows) => {
                let mut state = PortalState::Running(rows, 0);
                let mut count = 0;
                loop {
                    let rows = next_rows(&mut state, PULL_ROWS)?;
                    if rows.is_empty() {
                        return Ok(count);
                    }
                    count += rows.len() as u64;
                    self.check_interrupt()?;
                }
            }
        }
    }
}

/// What time cost the transaction so far, its commit included if it is over.
fn time_lines(txn: &TxnRef) -> Vec<String> {
    let TxnStats { consistency, bound_ns, uncertainty_restarts, refreshes, lock_wait_ns, commit_wait_ns } =
        txn.with(|t| t.stats());
    let ms = |ns: u64| ns as f64 / 1e6;
    vec![
        format!("Consistency: {}", consistency_name(consistency)),
        format!("Clock bound at start: {:.6} ms", ms(bound_ns)),
        format!("Uncertainty restarts: {uncertainty_restarts}"),
        format!("Snapshot refreshes: {refreshes}"),
        format!("Lock wait: {:.3} ms", ms(lock_wait_ns)),
        format!("Commit wait beyond replication: {:.3} ms", ms(commit_wait_ns)),
    ]
}
