//! COPY, both ways.
//!
//! A COPY FROM into a table that its own transaction created or truncated, in this very subtransaction, has not written to since, and that has no foreign key, is
//! loaded outside the transaction: see [`crate::ddl`]'s `load`. All else goes through the transaction; one that grows large takes over its table if that is empty, and is loaded from then on: see [`super::takeover`].

use super::portal::{Buffered, PortalState};
use super::prepared::Prepared;
use super::run::{How, Outcome, next_rows};
use super::takeover::{Held, explained};
use super::{Block, Session};
use crate::catalog::reliance::version_of;
use crate::catalog::{Relation, Table};
use crate::context::StatementContext;
use crate::copy::{CopyFormat, HEADER, Splitter, TRAILER};
use crate::ddl::Loader;
use crate::expr::function::cast_context;
use crate::identifier::{quote_identifier, quote_qualified};
use crate::output::Output;
use crate::plan::{Execution, RowInserter, row_inserter};
use crate::progress::{CopyProgress, Shown};
use crate::stack;
use crate::syntax::command::CopyLayout;
use crate::syntax::{Copy, CopySource, Name};
use crate::types::{Row, SqlType};
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// Rows written at once, and bytes of them.
const BATCH_ROWS: usize = 1024;
const BATCH_BYTES: usize = 4 << 20;
/// Of what comes in small messages so much is looked at together, at most, bytes.
const GATHERED_BYTES_MAX: usize = 64 << 10;
/// Rows pulled at once.
const PULL_ROWS: usize = 1024;

/// A COPY FROM STDIN under way.
pub(super) struct CopyIn {
    table: String,
    format: CopyFormat,
    splitter: Splitter,
    /// Bytes that were given to the splitter since rows were last taken from it.
    gathered: usize,
    pub(super) inserter: Box<dyn RowInserter>,
    pub(super) context: Arc<StatementContext>,
    rows: Vec<Row>,
    bytes: usize,
    pub(super) count: u64,
    /// The table is fresh, or was taken over: its indexes are loaded outside the transaction.
    pub(super) load: Option<Loader>,
    /// It is not, and may be taken over.
    pub(super) held: Option<Held>,
    commit: bool,
    progress: Shown<CopyProgress>,
}

impl Session {
    pub(super) fn run_copy(&mut self, copy: &Copy, how: How, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        match &copy.source {
            CopySource::Table(name, columns) if copy.from => self.begin_copy_in(name, columns, copy, how, out),
            CopySource::Table(name, columns) => {
                let (table, ids) = self.copy_columns(name, columns, "from")?;
                let named = ids.iter().filter_map(|id| table.columns.iter().find(|c| c.id == *id));
                let list: Vec<_> = named.map(|c| quote_identifier(&c.name)).collect();
                let from = quote_qualified(name.schema.as_deref(), &name.name);
                let text = format!("SELECT {} FROM {from}", list.join(", "));
                let all = self.db.texts.parse(&text, &self.pace)?;
                self.copy_out(&Prepared::parsed(&all, 0, Vec::new()), copy, table.id, out)
            }
            CopySource::Query(query, text) => {
                let statement = super::prepared::Statement::Inner(query.clone());
                self.copy_out(&Prepared::new(text.clone(), statement, Vec::new(), 0), copy, 0, out)
            }
        }
    }

    /// A table by name, and the ids of some of its columns (none named: all).
    fn copy_columns(&self, name: &Name, columns: &[String], word: &str) -> Result<(Table, Vec<u16>), SqlError> {
        let Some(active) = self.active.as_ref() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "COPY runs without a transaction"));
        };
        let relation =
            crate::context::CatalogView::relation(active.catalog.as_ref(), name.schema.as_deref(), &name.name)?;
        let table = match relation.as_deref() {
            Some(Relation::Table(table)) => table.clone(),
            None => {
                return Err(SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist")));
            }
            Some(other) => {
                let kind = if matches!(other, Relation::View(_)) { "view" } else { "sequence" };
                let error = SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("cannot copy {} {kind} \"{name}\"", if word == "from" { "from" } else { "to" }),
                );
                return Err(error.hint("Try the COPY (SELECT ...) TO variant."));
            }
        };
        if columns.is_empty() {
            let ids = table.columns.iter().filter(|c| c.generated.is_none()).map(|c| c.id).collect();
            return Ok((table, ids));
        }
        let mut ids = Vec::with_capacity(columns.len());
        for column in columns {
            let found = table.columns.iter().find(|c| c.name == *column).ok_or_else(|| {
                let message = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
                SqlError::new(SqlState::UNDEFINED_COLUMN, message)
            })?;
            if ids.contains(&found.id) {
                let message = format!("column \"{column}\" specified more than once");
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
            }
            if found.generated.is_some() {
                return Err(SqlError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    format!("column \"{column}\" is a generated column"),
                )
                .detail("Generated columns cannot be used in COPY."));
            }
            ids.push(found.id);
        }
        Ok((table, ids))
    }

    fn copy_out(
        &mut self,
        prepared: &Prepared,
        copy: &Copy,
        table: u32,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        let progress = self.backend.progress.show_copy(table, false);
        let plan = self.plan_of(prepared)?;
        let reads_only = plan.is_read_only();
        if !reads_only {
            self.begin_write_within(prepared)?;
        }
        let columns: Vec<(String, SqlType)> = plan.fields().iter().map(|f| (f.name.clone(), f.ty.clone())).collect();
        let width = columns.len();
        let format = CopyFormat::new(&copy.options, columns)?;
        let context = self.statement_context(Vec::new())?;
        let mut state = match plan.execute(&context)? {
            Execution::Rows(rows) => PortalState::Running(rows, 0),
            Execution::Done { rows, .. } => PortalState::Buffered(Buffered::new(rows, None, &context.memory)?),
        };
        let binary = format.layout == CopyLayout::Binary;
        out.copy_out(width, binary);
        let mut line = Vec::new();
        if binary {
            // With the first row in one message: readers take what a message begins with for the header, or for a row.
            line.extend_from_slice(HEADER);
        }
        if format.header {
            format.encode_header(&mut line);
            out.copy_data(&line)?;
            line.clear();
        }
        let mut count = 0;
        loop {
            let rows = next_rows(&mut state, PULL_ROWS)?;
            if !reads_only {
                // One of them may have been waited for; once they have left it cannot begin anew.
                self.look_back(prepared)?;
            }
            if rows.is_empty() {
                break;
            }
            for row in &rows {
                format.encode(row, &context.settings, &mut line)?;
                out.copy_data(&line)?;
                progress.task.bytes.add(line.len() as u64);
                line.clear();
            }
            count += rows.len();
            progress.task.rows.set(count as u64);
            self.check_interrupt()?;
        }
        if binary {
            line.extend_from_slice(TRAILER);
            out.copy_data(&line)?;
        }
        out.copy_done();
        Ok(Outcome::Tag(format!("COPY {count}")))
    }

    fn begin_copy_in(
        &mut self,
        name: &Name,
        columns: &[String],
        copy: &Copy,
        how: How,
        out: &mut dyn Output,
    ) -> Result<Outcome, SqlError> {
        let (table, ids) = self.copy_columns(name, columns, "to")?;
        let mark = self.active.as_ref().map_or(0, |active| active.written_by);
        if let Some(active) = self.active.as_ref() {
            active.catalog.rely(&[version_of(&table)], true)?;
        }
        // Tables that its keys lead to are written by, too.
        let relation = Arc::new(Relation::Table(table.clone()));
        let inserter = row_inserter(&relation, &ids, &self.plan_context()?)?;
        if self.db.sessions.endings.any() && !table.gated {
            self.wait_for_changes(&self.backend.relied.behind(mark), mark)?;
        }
        self.hold_for_copy(&table, mark)?;
        let mut context = self.statement_context(Vec::new())?;
        // Its rows are gone: it is not repeated, whatever it is of its transaction.
        if let (Some(context), Some(active)) = (Arc::get_mut(&mut context), self.active.as_mut()) {
            context.claims = Some(active.claims_of(self.db.options.locked_keys_max).clone());
        }
        let named = ids.iter().filter_map(|id| table.columns.iter().find(|c| c.id == *id));
        let format = CopyFormat::new(&copy.options, named.map(|c| (c.name.clone(), c.ty.clone())).collect())?;
        let fresh = self.active.as_ref().is_some_and(|active| active.may_load(table.id, &self.backend.filled));
        let load = (fresh && table.foreign_keys.is_empty()).then(|| Loader::of_table(&table, context.patience()));
        // What is to be checked at the end may be looked for below the ids that the table has now.
        let active = self.active.as_ref().filter(|_| load.is_none() && self.deferred.is_empty());
        let held = active.and_then(|active| Held::new(&self.db, active, &table, &ids));
        let progress = self.backend.progress.show_copy(table.id, true);
        let name = table.name.clone();
        let binary = format.layout == CopyLayout::Binary;
        self.copy = Some(Box::new(CopyIn {
            table: name,
            splitter: Splitter::new(&format),
            gathered: 0,
            format,
            inserter,
            context,
            rows: Vec::new(),
            bytes: 0,
            count: 0,
            load,
            held,
            commit: how.commit && self.block == Block::None,
            progress,
        }));
        out.copy_in(ids.len(), binary);
        Ok(Outcome::CopyIn)
    }

    /// Holds the table's version where it is held, and waits for blocks that have barred what is to be written. Whoever waits there has the gate for nobody else: that block may come to it.
    fn hold_for_copy(&mut self, table: &Table, mark: usize) -> Result<(), SqlError> {
        let Some(active) = self.active.as_ref() else { return Ok(()) };
        let free = self.db.sessions.endings.any().then(|| active.txn.with(|t| t.savepoint()));
        active.catalog.hold(table)?;
        if !self.db.sessions.endings.any() {
            return Ok(());
        }
        let tokens = self.backend.relied.behind(mark);
        let gives_back = free.filter(|_| !self.barred_for(&tokens, mark).is_empty());
        if let Some(free) = gives_back {
            active.txn.with(|t| t.release_since(free));
        }
        if self.wait_at_barriers(&tokens, mark, true)? {
            if gives_back.is_some() {
                active.catalog.hold(table)?;
            }
            if !table.gated {
                self.wait_for_changes(&tokens, mark)?;
            }
        }
        Ok(())
    }

    /// Whether a COPY FROM STDIN is under way.
    pub fn in_copy(&self) -> bool {
        self.copy.is_some()
    }

    /// CopyData, behind which more has arrived: rows are looked at when the last of it is given to [`Session::copy_data`], or when there is much. Clients that send each row
    /// by itself have it no dearer.
    ///
    /// # Errors
    /// As [`Session::copy_data`].
    pub fn copy_part(&mut self, data: &[u8]) -> Result<(), SqlError> {
        if let Some(copy) = &mut self.copy
            && copy.gathered + data.len() <= GATHERED_BYTES_MAX
            && copy.splitter.push(data).is_ok()
        {
            copy.gathered += data.len();
            copy.progress.task.bytes.add(data.len() as u64);
            return Ok(());
        }
        // Rows that are whole make way first: what lies behind a long line is none of it.
        if self.copy.as_ref().is_some_and(|copy| copy.gathered > 0) {
            self.copy_data(&[])?;
        }
        self.copy_data(data)
    }

    /// CopyData.
    ///
    /// # Errors
    /// 22P04 and those of the rows; the COPY is over then, and the caller skips to CopyDone or CopyFail.
    pub fn copy_data(&mut self, data: &[u8]) -> Result<(), SqlError> {
        let Some(mut copy) = self.copy.take() else { return Ok(()) };
        copy.progress.task.bytes.add(data.len() as u64);
        copy.gathered = 0;
        self.with_limits(|session| {
            let result = session.refuse_lost_copy();
            let result = result.and_then(|()| copy.splitter.push(data)).and_then(|()| session.take_lines(&mut copy));
            session.keep_or_fail(copy, result)
        })
    }

    fn keep_or_fail(&mut self, copy: Box<CopyIn>, result: Result<(), SqlError>) -> Result<(), SqlError> {
        match result {
            Ok(()) => {
                self.copy = Some(copy);
                Ok(())
            }
            Err(e) => {
                let e = self.name_row(e);
                self.remember_copy(&copy);
                drop(copy);
                self.failed();
                Err(e)
            }
        }
    }

    /// 72000 where its transaction was rolled back meanwhile.
    fn refuse_lost_copy(&self) -> Result<(), SqlError> {
        if self.too_old { Err(super::snapshot::too_old()) } else { Ok(()) }
    }

    /// Loads end with the transaction.
    pub(super) fn remember_copy(&mut self, copy: &CopyIn) {
        if let (Some(loader), Some(active)) = (copy.load.as_ref().filter(|l| l.is_large()), self.active.as_mut()) {
            active.loads.extend_from_slice(&loader.indexes());
        }
    }

    /// Before a transaction is dropped in the middle of a COPY: nothing of that is on its way any more when its load is said to have ended, or it would come to lie where it is erased meanwhile, and stay.
    pub(super) fn leave_load(&mut self) {
        if let Some(mut copy) = self.copy.take() {
            self.remember_copy(&copy);
            copy.load = None;
            self.copy = Some(copy);
        }
    }

    fn take_lines(&mut self, copy: &mut CopyIn) -> Result<(), SqlError> {
        loop {
            let before = copy.splitter.rows();
            let next = copy.splitter.next_row();
            let next = next.map_err(|e| place(e.detail(format!("COPY line {}.", before + 1)), &copy.table))?;
            let Some(line) = next else { return Ok(()) };
            if before == 0 && copy.format.header {
                continue;
            }
            let mut row = Row::with_capacity(copy.format.columns.len());
            copy.format
                .decode(line, before + 1, &cast_context(Some(&copy.context)), &mut row)
                .map_err(|e| place(e, &copy.table))?;
            copy.bytes += line.len() + row.len() * std::mem::size_of::<crate::types::Value>();
            copy.rows.push(row);
            if copy.rows.len() >= BATCH_ROWS || copy.bytes >= BATCH_BYTES {
                if let Some(held) = copy.held.as_mut().filter(|_| copy.count == 0) {
                    held.begins(&copy.context.txn);
                }
                self.flush_copy(copy)?;
                self.take_over_by(copy)?;
            }
        }
    }

    fn flush_copy(&mut self, copy: &mut CopyIn) -> Result<(), SqlError> {
        self.check_interrupt()?;
        let rows = std::mem::take(&mut copy.rows);
        copy.bytes = 0;
        copy.count += match &mut copy.load {
            Some(loader) => copy.inserter.load(&copy.context, rows, &mut loader.into_db(&self.db))?,
            None => copy.inserter.insert(&copy.context, rows).map_err(explained)?,
        };
        copy.progress.task.rows.set(copy.count);
        Ok(())
    }

    /// CopyDone; goes on with the rest of a simple query.
    ///
    /// # Errors
    /// Those of the rows, or of the statements that follow.
    pub fn copy_done(&mut self, out: &mut dyn Output) -> Result<(), SqlError> {
        self.with_limits(|session| session.end_copy(out))
    }

    fn end_copy(&mut self, out: &mut dyn Output) -> Result<(), SqlError> {
        let Some(mut copy) = self.copy.take() else { return Ok(()) };
        copy.splitter.finish();
        let result = self.refuse_lost_copy().and_then(|()| self.finish_copy(&mut copy));
        let count = copy.count;
        self.remember_copy(&copy);
        let commit = copy.commit;
        drop(copy);
        let result = match result {
            Ok(()) if commit => self.commit(),
            other => other,
        };
        self.deadline.clear();
        if let Err(e) = result {
            let e = self.name_row(e);
            self.failed();
            return Err(e);
        }
        out.command_complete(&format!("COPY {count}"));
        self.after_copy(out)
    }

    fn finish_copy(&mut self, copy: &mut CopyIn) -> Result<(), SqlError> {
        self.take_lines(copy)?;
        if !copy.rows.is_empty() {
            self.flush_copy(copy)?;
        }
        if let Some(loader) = &mut copy.load {
            let CopyIn { inserter, context, .. } = copy;
            loader.finish(&self.db, &context.txn, &mut |found| inserter.twice(context, &found))?;
        }
        Ok(())
    }

    /// CopyFail: gives the error to send.
    pub fn copy_fail(&mut self, message: &str) -> SqlError {
        stack::roomy(|| {
            if let Some(copy) = self.copy.take() {
                self.remember_copy(&copy);
            }
            self.failed();
        });
        SqlError::new(SqlState::QUERY_CANCELED, format!("COPY from stdin failed: {message}"))
    }
}

/// The context line of an error names the table, as PostgreSQL's does.
fn place(e: SqlError, table: &str) -> SqlError {
    match e.detail.as_deref().and_then(|d| d.strip_prefix("COPY line ")) {
        Some(rest) => {
            let detail = format!("COPY {table}, line {rest}");
            e.detail(detail)
        }
        None => e,
    }
}
