//! PREPARE, EXECUTE, DEALLOCATE; DECLARE, FETCH, MOVE, CLOSE.

use super::portal::{Buffered, Portal, PortalState, bind_again};
use super::prepared::{Prepared, Purpose, Statement};
use super::read_out::ReadOut;
use super::run::{How, Outcome, next_rows};
use super::scroll::{Moved, Scroll, backward, forward_steps, only_forward};
use super::{Block, Session};
use crate::output::Output;
use crate::plan::parts::is_modifying;
use crate::plan::{Execution, Plan};
use crate::syntax::command::{Direction, Move};
use crate::syntax::{Command, Planned};
use crate::types::{Row, SqlType, Value};
use crate::{SqlError, SqlState};
use clock::Timestamp;
use std::sync::Arc;

/// Rows that MOVE and held cursors pull at once.
pub(super) const PULL_ROWS: usize = 256;

impl Session {
    pub(super) fn run_cursor(
        &mut self,
        command: &Command,
        portal: &mut Portal,
        how: How,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        match command {
            Command::Prepare { name, types, statement, text } => {
                let declared =
                    types.iter().map(|t| Ok(SqlType::from_ast(t)?.oid())).collect::<Result<_, SqlError>>()?;
                self.run_prepare(name, declared, statement, text, how)
            }
            Command::Execute { name, arguments } => self.run_execute(name, arguments, portal, how, out),
            Command::Deallocate(Some(name)) => {
                self.find_prepared(name)?;
                self.prepared.remove(name);
                Ok(Outcome::Tag("DEALLOCATE".into()))
            }
            Command::Deallocate(None) => {
                self.prepared.clear();
                Ok(Outcome::Tag("DEALLOCATE ALL".into()))
            }
            Command::Declare { name, direction, hold, query, .. } => {
                let inside = portal.prepared.inside();
                let Some(inside) = inside else { return Err(SqlError::unsupported("this cursor")) };
                self.run_declare((name, *direction, *hold), query, inside, portal, how)
            }
            Command::Fetch { name, movement, skip } => self.run_fetch(name, (*movement, *skip), portal, how, out),
            Command::Close(Some(name)) => {
                if !self.portals.close(name) {
                    return Err(unknown_cursor(name));
                }
                Ok(Outcome::Tag("CLOSE CURSOR".into()))
            }
            Command::Close(None) => {
                self.portals.close_cursors();
                Ok(Outcome::Tag("CLOSE CURSOR ALL".into()))
            }
            _ => Err(SqlError::unsupported("this statement")),
        }
    }

    fn run_prepare(
        &mut self,
        name: &str,
        declared: Vec<u32>,
        statement: &Arc<Planned>,
        text: &Arc<str>,
        how: How,
    ) -> Result<Outcome, SqlError> {
        if self.prepared.contains_key(name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        let prepared = Prepared::new(text.clone(), Statement::Inner(statement.clone()), declared, 0);
        // Where its time is a parameter, it is planned when that is known.
        if prepared.time_parameter().is_none() {
            self.plan_ahead(&prepared)?;
        }
        self.keep_prepared(name, prepared)?;
        self.end_lone(how)?;
        Ok(Outcome::Tag("PREPARE".into()))
    }

    fn run_execute(
        &mut self,
        name: &str,
        arguments: &[String],
        portal: &mut Portal,
        how: How,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        let prepared = self.find_prepared(name)?.clone();
        let (plan, params) = match portal.reads {
            Some(reads) => self.arguments_at(name, &prepared, arguments, reads)?,
            None => self.execute_arguments(name, &prepared, arguments, how.commit)?,
        };
        let mut inner = Portal {
            params,
            formats: portal.formats.clone(),
            state: std::mem::take(&mut portal.state),
            reads: portal.reads,
            ..Portal::unbound(prepared)
        };
        inner.plan = matches!(inner.state, PortalState::Running(..) | PortalState::Buffered(..)).then_some(plan);
        let outcome = self.run_retrying(&mut inner, how, out)?;
        portal.state = inner.state;
        portal.fields = inner.plan.as_ref().and_then(|p| p.shape().map(|fields| fields.to_vec()));
        Ok(outcome)
    }

    /// The plan of a prepared statement, and the values of the arguments that it is executed with. `alone`: it is its whole transaction.
    pub(super) fn execute_arguments(
        &mut self,
        name: &str,
        prepared: &Prepared,
        arguments: &[String],
        alone: bool,
    ) -> Result<(Arc<dyn Plan>, Vec<Value>), SqlError> {
        let past = self.time_executed(prepared, arguments, alone)?;
        self.arguments_at(name, prepared, arguments, past)
    }

    /// As [`Session::execute_arguments`], where it is known what is read: a time, or that of the transaction.
    fn arguments_at(
        &mut self,
        name: &str,
        prepared: &Prepared,
        arguments: &[String],
        past: Option<Timestamp>,
    ) -> Result<(Arc<dyn Plan>, Vec<Value>), SqlError> {
        self.ensure_active(past)?;
        let plan = self.plan_with(prepared, None, Purpose::Tell)?;
        let types = plan.parameters().to_vec();
        if types.len() != arguments.len() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("wrong number of parameters for prepared statement \"{name}\""),
            )
            .detail(format!("Expected {} parameters but got {}.", types.len(), arguments.len())));
        }
        let mut params = Vec::with_capacity(types.len());
        for (argument, ty) in arguments.iter().zip(&types) {
            let value = self.constant(argument, ty).map_err(|error| of_argument(error, params.len() + 1))?;
            params.push(value);
        }
        Ok((plan, params))
    }

    /// The time that a prepared statement is to read, which an argument may say; `None`: that of its transaction. `alone`: it is all of it.
    pub(super) fn time_executed(
        &mut self,
        prepared: &Prepared,
        arguments: &[String],
        alone: bool,
    ) -> Result<Option<Timestamp>, SqlError> {
        if self.reads_its_time() {
            return Ok(None);
        }
        if prepared.time_parameter().is_none() {
            return Ok(if self.active.is_none() { self.past_ahead(prepared, alone) } else { None });
        }
        let time = self.time_bound(prepared, |session, index, ty| {
            let Some(argument) = arguments.get(index) else { return Ok(None) };
            session.ensure_begun(None)?;
            session.constant(argument, ty).map(Some)
        });
        if self.active.is_some() {
            self.restart();
        }
        time
    }

    /// A constant expression of a type, evaluated by a query of its own. There must be a transaction.
    pub(super) fn constant(&mut self, text: &str, ty: &SqlType) -> Result<Value, SqlError> {
        // No length cuts an argument.
        let name = if *ty == SqlType::Unknown { "text".to_string() } else { ty.boundless_name() };
        let mut query = format!("SELECT CAST({text} AS {name})");
        if matches!(ty, SqlType::Reg(_)) {
            // As a name it would leave for a client.
            query = format!("SELECT CAST(CAST({text} AS {name}) AS oid)");
        }
        let all = self.db.texts.parse(&query, &self.pace)?;
        let prepared = Prepared::parsed(&all, 0, Vec::new());
        let plan = self.plan_of(&prepared)?;
        let context = self.statement_context(Vec::new())?;
        match plan.execute(&context)? {
            Execution::Rows(mut rows) => {
                let row = rows.next(1)?.into_iter().next().and_then(|r| r.into_iter().next());
                Ok(row.unwrap_or(Value::Null))
            }
            Execution::Done { .. } => Ok(Value::Null),
        }
    }

    /// A statement that needs a transaction only for itself ends it.
    fn end_lone(&mut self, how: How) -> Result<(), SqlError> {
        if how.commit && self.block == Block::None { self.commit() } else { Ok(()) }
    }

    fn run_declare(
        &mut self,
        (name, direction, hold): (&str, Direction, bool),
        query: &Arc<Planned>,
        prepared: Prepared,
        bound: &Portal,
        how: How,
    ) -> Result<Outcome, SqlError> {
        if self.block == Block::None && !hold && how.commit {
            return Err(SqlError::new(
                SqlState::NO_ACTIVE_TRANSACTION,
                "DECLARE CURSOR can only be used in transaction blocks",
            ));
        }
        if !matches!(query.statement, sqlparser::ast::Statement::Query(_)) {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "DECLARE CURSOR must be of a query"));
        }
        if matches!(&query.statement, sqlparser::ast::Statement::Query(q) if is_modifying(q)) {
            let message = "DECLARE CURSOR must not contain data-modifying statements in WITH";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let prepared = Arc::new(prepared);
        let params = bound.params.clone();
        let as_of = self.statement_as_of(&prepared, &params, how.commit)?;
        let plan = self.plan_to_hold(&prepared, as_of)?;
        if params.len() < plan.parameters().len() {
            let number = params.len() + 1;
            return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter ${number}")));
        }
        if !bound.fits_inside(plan.as_ref()) {
            return Err(bind_again());
        }
        // One that locks its rows takes them as they are when it gets to them.
        let live = plan.is_read_only();
        if let Some(active) = self.active.as_mut() {
            // Its snapshot is in use, though nothing was read yet.
            active.untouched &= !live;
            active.statements += 1;
            // FETCH goes by what it is now: whoever changes that waits for this transaction.
            active.written_by = self.backend.relied.has_run();
        }
        // DECLARE with its words, as far as they are shown; `prepared` is the query in it.
        let text = self.backend.activity().query.unwrap_or_else(|| prepared.text.clone());
        let portal = Portal {
            params,
            plan: Some(plan),
            cursor: true,
            savepoints: self.active.as_ref().map_or(0, |active| active.savepoints.len()),
            direction,
            live,
            hold,
            declared: Some((text, self.statement_began_us)),
            ..Portal::unbound(prepared)
        };
        self.portals.put(name, portal)?;
        self.end_lone(how)?;
        Ok(Outcome::Tag("DECLARE CURSOR".into()))
    }

    fn run_fetch(
        &mut self,
        name: &str,
        (movement, skip): (Move, bool),
        portal: &mut Portal,
        how: How,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        let Some(mut cursor) = self.portals.take(name) else { return Err(unknown_cursor(name)) };
        let result = self.fetch_from(&mut cursor, (movement, skip), portal, how, out);
        self.portals.put_back(name, cursor);
        Ok(Outcome::Tag(format!("{} {}", if skip { "MOVE" } else { "FETCH" }, result?)))
    }

    fn fetch_from(
        &mut self,
        cursor: &mut Portal,
        (movement, skip): (Move, bool),
        portal: &Portal,
        how: How,
        out: &mut dyn Output,
    ) -> Result<u64, SqlError> {
        self.start_cursor(cursor)?;
        if how.describe && !skip {
            out.row_description(cursor.fields(), &portal.formats);
        }
        let plan = cursor.plan.clone();
        let fields = plan.as_ref().map_or(cursor.fields.as_deref().unwrap_or_default(), |plan| plan.fields());
        let settings = self.settings.eval.clone();
        let mut send = |row: &Row| if skip { Ok(()) } else { out.row(row, fields, &portal.formats, &settings) };
        if let PortalState::Scroll(scroll) = &mut cursor.state {
            if scroll.forgets()
                && let Some(steps) = forward_steps(movement, scroll.before())
            {
                return self.go_forward(&mut cursor.state, steps, &mut send);
            }
            if scroll.forgets() && matches!(movement, Move::To(..0)) && !scroll.reads_all()? {
                return Err(backward());
            }
            return Ok(match scroll.go(movement, skip)? {
                Moved::Passed(rows) => rows,
                Moved::Forward(rows) => {
                    rows.iter().try_for_each(&mut send)?;
                    rows.len() as u64
                }
                Moved::Backward(rows) => {
                    rows.iter().rev().try_for_each(&mut send)?;
                    rows.len() as u64
                }
            });
        }
        let taken = cursor.state.taken();
        let on_row = taken > 0 && !cursor.state.has_ended();
        if skip && matches!(movement, Move::By(0) | Move::Over(0)) {
            return Ok(u64::from(on_row));
        }
        let steps = only_forward(movement, taken, on_row)?;
        self.go_forward(&mut cursor.state, steps, &mut send)
    }

    /// Passes rows, then gives rows (`None`: all that are left). A cursor that keeps too many rows to go back to forgets them on its way.
    fn go_forward(
        &self,
        state: &mut PortalState,
        (mut pass, wanted): (u64, Option<u64>),
        send: &mut dyn FnMut(&Row) -> Result<(), SqlError>,
    ) -> Result<u64, SqlError> {
        let mut left = wanted.unwrap_or(u64::MAX);
        let mut sent = 0;
        while pass > 0 || left > 0 {
            let wanted = usize::try_from(if pass > 0 { pass } else { left }).unwrap_or(usize::MAX).min(PULL_ROWS);
            let count = match &mut *state {
                PortalState::Scroll(scroll) => {
                    let rows = scroll.forward(wanted)?;
                    if pass == 0 {
                        rows.iter().try_for_each(&mut *send)?;
                    }
                    rows.len()
                }
                other => {
                    let rows = next_rows(other, wanted)?;
                    if pass == 0 {
                        rows.iter().try_for_each(&mut *send)?;
                    }
                    rows.len()
                }
            };
            if let PortalState::Scroll(scroll) = state
                && scroll.should_forget()
            {
                *state = match scroll.forget() {
                    (Some(rows), taken) => PortalState::Running(rows, taken),
                    (None, taken) => PortalState::Buffered(Buffered::ended(taken)),
                };
            }
            if count == 0 {
                if !matches!(state, PortalState::Scroll(_)) && !state.has_ended() {
                    *state = PortalState::Buffered(Buffered::ended(state.taken()));
                }
                break;
            }
            if pass > 0 {
                pass -= count as u64;
            } else {
                left -= count as u64;
                sent += count as u64;
            }
            self.check_interrupt()?;
        }
        Ok(sent)
    }

    /// Runs a cursor's query up to its first row.
    fn start_cursor(&mut self, cursor: &mut Portal) -> Result<(), SqlError> {
        if !matches!(cursor.state, PortalState::Ready) {
            return Ok(());
        }
        let plan = match cursor.plan.clone().filter(|_| cursor.live) {
            // The snapshot is the one of its DECLARE still: what moves it has the live cursors read first.
            Some(plan) => plan,
            None => {
                self.ensure_active(None)?;
                let prepared = cursor.prepared.clone();
                let plan = self.plan_of(&prepared)?;
                if !plan.is_read_only() {
                    self.begin_write(&prepared)?;
                }
                plan
            }
        };
        let context = self.statement_context(cursor.params.clone())?;
        let memory = &context.memory;
        cursor.state = match plan.execute(&context)? {
            Execution::Rows(rows) if cursor.direction != Direction::Forward => {
                let scroll = Scroll::new(Some(rows), Vec::new(), memory);
                let scroll = if cursor.direction == Direction::Both { scroll } else { scroll.forgetting() };
                PortalState::Scroll(Box::new(scroll))
            }
            Execution::Rows(rows) => PortalState::Running(rows, 0),
            Execution::Done { rows, .. } if cursor.direction != Direction::Forward => {
                PortalState::Scroll(Box::new(Scroll::new(None, rows, memory)))
            }
            Execution::Done { rows, .. } => PortalState::Buffered(Buffered::new(rows, None, memory)?),
        };
        cursor.plan = Some(plan);
        if let Some(active) = self.active.as_mut() {
            active.statements += 1;
        }
        Ok(())
    }

    /// Before a write or a new snapshot: cursors read what is left to them, for they see what there was at their DECLARE (decision 150).
    /// What that fails with is for whoever fetches from them.
    ///
    /// # Errors
    /// Only that the statement was cancelled meanwhile.
    pub(super) fn read_out_cursors(&mut self) -> Result<(), SqlError> {
        if !self.portals.any_live() {
            return Ok(());
        }
        let mut portals = std::mem::take(&mut self.portals);
        for cursor in portals.live() {
            let memory = self.db.budget(self.settings.query_memory_bytes);
            if let Err(error) = self.start_cursor(cursor) {
                cursor.state = PortalState::Running(Box::new(ReadOut::failed(error, &memory)), 0);
            }
            cursor.live = false;
            match &mut cursor.state {
                PortalState::Running(source, _) => ReadOut::replace(source, &memory),
                PortalState::Scroll(scroll) => scroll.read_out(&memory),
                PortalState::Ready | PortalState::Buffered(_) | PortalState::Done => {}
            }
        }
        self.portals = portals;
        self.check_interrupt()
    }

    /// Before a commit: cursors WITH HOLD take their remaining rows into memory.
    pub(super) fn materialise_held(&mut self) -> Result<(), SqlError> {
        let budget = self.db.budget(self.settings.query_memory_bytes);
        let mut portals = std::mem::take(&mut self.portals);
        let mut result = Ok(());
        for portal in portals.held() {
            result = result.and_then(|()| {
                self.start_cursor(portal)?;
                if let PortalState::Scroll(scroll) = &mut portal.state {
                    scroll.keep();
                    return scroll.read_all();
                }
                let taken = portal.state.taken();
                let mut all = Buffered::new(Vec::new(), None, &budget)?;
                loop {
                    let rows = next_rows(&mut portal.state, PULL_ROWS)?;
                    if rows.is_empty() {
                        break;
                    }
                    all.add(rows)?;
                }
                all.taken = taken;
                portal.state = PortalState::Buffered(all);
                Ok(())
            });
        }
        self.portals = portals;
        result
    }
}

fn unknown_cursor(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}

/// The error of an argument that is of a type that cannot be cast, in PostgreSQL's words.
fn of_argument(error: SqlError, number: usize) -> SqlError {
    let types = error.message.strip_prefix("cannot cast type ").and_then(|types| types.split_once(" to "));
    let Some((from, to)) = types.filter(|_| error.state == SqlState::CANNOT_COERCE) else { return error };
    let message = format!("parameter ${number} of type {from} cannot be coerced to the expected type {to}");
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
        .hint("You will need to rewrite or cast the expression.")
        .with(|told| told.position = error.position)
}
