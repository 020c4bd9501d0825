//! EXPLAIN, and EXPLAIN ANALYZE: the plan, and what time cost.

use super::portal::{Portal, PortalState, bind_again};
use super::prepared::{Prepared, Purpose};
use super::run::{How, Outcome, next_rows};
use super::{Block, Session, text_field};
use crate::context::StatementContext;
use crate::explain::{Done, Explained, Format, Meters, Options, Total};
use crate::output::{Field, Output};
use crate::plan::{Execution, Plan};
use crate::transaction::{Consistency, TxnRef, TxnStats};
use crate::types::Value;
use crate::{SqlError, SqlState};
use std::sync::Arc;

const PULL_ROWS: usize = 1024;
/// By what the meters know a plan whose operators are not measured one by one. (No node stands there.)
const WHOLE: usize = 1;

/// The shape of EXPLAIN.
pub(super) fn fields(options: &Options) -> Vec<Field> {
    vec![Field { ty: options.ty(), ..text_field("QUERY PLAN") }]
}

impl Session {
    pub(super) fn run_explain(
        &mut self,
        portal: &mut Portal,
        how: How,
        options: Options,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        if !matches!(portal.state, PortalState::Ready) {
            return self.pull(portal, how.max_rows, out);
        }
        let Some(prepared) = portal.prepared.inside() else { return Err(SqlError::unsupported("this EXPLAIN")) };
        let params = portal.params.clone();
        let as_of = self.statement_as_of(&prepared, &params, how.commit)?;
        self.ensure_active(as_of)?;
        let began_us = self.db.kv.now_us();
        let purpose = if options.analyze { Purpose::Run } else { Purpose::Tell };
        let plan = self.plan_with(&prepared, None, purpose)?;
        if options.analyze && !plan.is_read_only() {
            self.begin_write_within(&prepared)?;
        }
        if options.analyze && params.len() < plan.parameters().len() {
            let number = params.len() + 1;
            return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter ${number}")));
        }
        if !portal.fits_inside(plan.as_ref()) {
            return Err(bind_again());
        }
        self.explain_plan((&prepared, &plan), params, options, began_us, portal, how, out)
    }

    /// EXPLAIN EXECUTE
    pub(super) fn run_explain_execute(
        &mut self,
        portal: &mut Portal,
        how: How,
        options: Options,
        name: &str,
        arguments: &[String],
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        if !matches!(portal.state, PortalState::Ready) {
            return self.pull(portal, how.max_rows, out);
        }
        let began_us = self.db.kv.now_us();
        let prepared = self.find_prepared(name)?.clone();
        let (_, params) = self.execute_arguments(name, &prepared, arguments, how.commit)?;
        let as_of = self.statement_as_of(&prepared, &params, how.commit)?;
        self.ensure_active(as_of)?;
        let purpose = if options.analyze { Purpose::Run } else { Purpose::Tell };
        let plan = self.plan_with(&prepared, None, purpose)?;
        if options.analyze && !plan.is_read_only() {
            self.begin_write_within(&prepared)?;
        }
        self.explain_plan((&prepared, &plan), params, options, began_us, portal, how, out)
    }

    #[expect(clippy::too_many_arguments, reason = "one call of two, and what both know")]
    fn explain_plan(
        &mut self,
        (prepared, plan): (&Prepared, &Arc<dyn Plan>),
        params: Vec<Value>,
        options: Options,
        began_us: i64,
        portal: &mut Portal,
        how: How,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        let custom = match params.len() >= plan.parameters().len() && !plan.parameters().is_empty() {
            true => plan.for_values(&self.statement_context(params.clone())?)?,
            false => None,
        };
        let plan = custom.as_ref().unwrap_or(plan);
        let planning_us = self.db.kv.now_us() - began_us;
        let mut explained = Explained { plan: plan.explain(), planning_us, total: None };
        let mut txn = None;
        let past = self.active.as_ref().is_some_and(|active| active.as_of.is_some());
        if options.analyze {
            let meters = Arc::new(Meters::default());
            let context = self.statement_context(params)?;
            let context = StatementContext { meters: Some(meters.clone()), ..StatementContext::clone(&context) };
            txn = Some(context.txn.clone());
            let before_us = self.db.kv.now_us();
            let rows = self.count_rows(plan.execute(&Arc::new(context))?)?;
            let execution_us = self.db.kv.now_us() - before_us;
            if explained.plan.place == 0 {
                // A direct plan runs as one: what it did is known of the whole.
                explained.plan.place = WHOLE;
                meters.add(WHOLE, Done { loops: 1, rows, first_us: execution_us, us: execution_us });
            }
            explained.total = Some(Total { rows, execution_us, meters, time: Vec::new() });
        }
        if options.analyze && !plan.is_read_only() {
            self.look_back(prepared)?;
        }
        let commits = how.commit && self.block == Block::None;
        self.has_run(!commits);
        if commits {
            self.commit()?;
        }
        if let (Some(txn), Some(total)) = (txn, explained.total.as_mut()) {
            total.time = time_lines(&txn, past.then_some(began_us));
        }
        let value = |text: String| match options.format {
            Format::Text => Value::text(text),
            Format::Json => Value::Json(text.into()),
        };
        let rows = explained.write(&options).into_iter().map(|text| vec![value(text)]).collect();
        self.send_rows(fields(&options), rows, "EXPLAIN", how, portal, out)
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

/// What time cost the transaction so far, its commit included if it is over. `began_us`: when a statement that reads the past did.
fn time_lines(txn: &TxnRef, began_us: Option<i64>) -> Vec<(&'static str, String)> {
    let TxnStats {
        consistency,
        bound_ns,
        uncertainty_restarts,
        refreshes,
        lock_wait_ns,
        commit_wait_ns,
        commit_wait_hidden_ns,
    } = txn.with(|t| t.stats());
    let ms = |ns: u64| ns as f64 / 1e6;
    let consistency = if began_us.is_some() { Consistency::Stale } else { consistency };
    let mut lines = vec![("Consistency", consistency.name().to_string())];
    if let Some(began_us) = began_us {
        let snapshot_us = i64::try_from(txn.with(|t| t.snapshot()).physical_us()).unwrap_or(i64::MAX);
        let age_ms = began_us.saturating_sub(snapshot_us).max(0) as f64 / 1e3;
        lines.push(("Snapshot age", format!("{age_ms:.3} ms")));
    }
    lines.extend([
        ("Clock bound at start", format!("{:.6} ms", ms(bound_ns))),
        ("Uncertainty restarts", uncertainty_restarts.to_string()),
        ("Snapshot refreshes", refreshes.to_string()),
        ("Lock wait", format!("{:.3} ms", ms(lock_wait_ns))),
        ("Commit wait hidden by replication", format!("{:.3} ms", ms(commit_wait_hidden_ns))),
        ("Commit wait beyond replication", format!("{:.3} ms", ms(commit_wait_ns))),
    ]);
    lines
}
