//! Groupings that the direct path begins and the engine ends: the direct path holds its groups in memory and nowhere else, and most of them fit.
//!
//! Where they do not, the statement has read and not written, and given nothing yet: the engine runs it from its start, with files if need be.

use super::watch::Watch;
use super::{Execution, Plan, PlanContext};
use crate::context::StatementContext;
use crate::explain::Operator;
use crate::output::Field;
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use sqlparser::ast::Statement;
use std::sync::Arc;

/// Plans a statement in the engine.
pub(super) type Prepare = fn(&Statement, &str, &PlanContext) -> Result<Arc<dyn Plan>, SqlError>;

/// See the module.
struct Again {
    direct: Arc<dyn Plan>,
    statement: Statement,
    prepare: Prepare,
}

/// A direct plan, and another way where it ends for want of memory.
pub(super) fn or_again(
    direct: Arc<dyn Plan>,
    statement: impl FnOnce() -> Statement,
    context: &PlanContext,
    prepare: Prepare,
) -> Arc<dyn Plan> {
    // What a statement's other parts give is known to this planning only.
    if !direct.may_run_again() || context.locates || !context.given.is_empty() {
        return direct;
    }
    Arc::new(Again { direct, statement: statement(), prepare })
}

impl Plan for Again {
    fn parameters(&self) -> &[SqlType] {
        self.direct.parameters()
    }
    fn fields(&self) -> &[Field] {
        self.direct.fields()
    }
    fn gives_rows(&self) -> bool {
        self.direct.gives_rows()
    }
    fn execute(&self, context: &Arc<StatementContext>) -> Result<Execution, SqlError> {
        match self.direct.execute(context) {
            Err(error) if error.state == SqlState::OUT_OF_MEMORY => {
                let parameter_hints = self.parameters().iter().cloned().map(Some).collect();
                let planning = PlanContext { parameter_hints, ..PlanContext::of_statement(context) };
                let other = (self.prepare)(&self.statement, &self.statement.to_string(), &planning)?;
                // Who asked was told of these columns.
                if other.fields() != self.fields() {
                    return Err(error);
                }
                other.execute(context)
            }
            done => done,
        }
    }
    fn explain(&self) -> Operator {
        self.direct.explain()
    }
    fn watches(&self) -> Vec<Watch> {
        self.direct.watches()
    }
    fn is_read_only(&self) -> bool {
        self.direct.is_read_only()
    }
    fn is_direct(&self) -> bool {
        self.direct.is_direct()
    }
    fn reads_nothing(&self) -> bool {
        self.direct.reads_nothing()
    }
}
