//! The extended protocol: Parse, Bind, Describe, Execute, Close, Sync.

use super::portal::{Portal, unknown_portal};
use super::prepared::{Prepared, Statement};
use super::run::How;
use super::startup::Executed;
use super::{Block, PREPARED_MAX, Session, VALUE_BYTES_MAX};
use crate::output::{Field, Output};
use crate::plan::Plan;
use crate::stack;
use crate::syntax::Command;
use crate::types::calendar::EPOCH_OFFSET_US;
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState};
use std::sync::Arc;

impl Session {
    /// A Parse message; type 0 leaves a parameter to be inferred.
    ///
    /// # Errors
    /// Syntax and binding errors; 42P05 if the name is taken.
    pub fn parse(&mut self, name: &str, sql: &str, param_oids: &[u32]) -> Result<(), SqlError> {
        self.begin_message();
        self.with_limits(|session| {
            let result = session.parse_new(name, sql, param_oids);
            session.deadline.clear();
            if result.is_err() {
                session.failed();
            }
            result
        })
    }

    fn parse_new(&mut self, name: &str, sql: &str, param_oids: &[u32]) -> Result<(), SqlError> {
        if name.is_empty() {
            self.unnamed = None;
        } else if self.prepared.contains_key(name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        self.show_text(sql);
        let all = self.db.texts.parse(sql, &self.pace)?;
        let prepared = match all.len() {
            0 => Prepared::new("".into(), Statement::Empty, Vec::new(), 0),
            1 => Prepared::parsed(&all, 0, param_oids.to_vec()),
            _ => {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "cannot insert multiple commands into a prepared statement",
                ));
            }
        };
        match prepared.inside() {
            _ if prepared.planned().is_some() => self.plan_at_parse(&prepared, true).map_err(|e| prepared.place(e))?,
            Some(inner) => self.plan_at_parse(&inner, false)?,
            None => {}
        }
        self.keep_prepared(name, prepared)
    }

    /// Where its time is a parameter, it is planned when that is known. `unseen`: nothing is told of the plan.
    fn plan_at_parse(&mut self, prepared: &Prepared, unseen: bool) -> Result<(), SqlError> {
        self.refuse_in_failed_block()?;
        match prepared.time_parameter() {
            Some((_, ty)) => ty.map(drop),
            None if unseen => self.plan_ahead_unseen(prepared).map(drop),
            None => self.plan_ahead(prepared).map(drop),
        }
    }

    /// Keeps a prepared statement under a name that is free.
    pub(super) fn keep_prepared(&mut self, name: &str, prepared: Prepared) -> Result<(), SqlError> {
        if name.is_empty() {
            self.unnamed = Some(Arc::new(prepared));
            return Ok(());
        }
        if self.prepared.len() >= PREPARED_MAX {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("the session has {PREPARED_MAX} prepared statements, which is the limit"),
            )
            .hint("Close or DEALLOCATE some."));
        }
        self.prepared.insert(name.into(), Arc::new(prepared));
        Ok(())
    }

    pub(super) fn find_prepared(&self, name: &str) -> Result<&Arc<Prepared>, SqlError> {
        let found = if name.is_empty() { self.unnamed.as_ref() } else { self.prepared.get(name) };
        found.ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_string(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            SqlError::new(SqlState::INVALID_STATEMENT_NAME, message)
        })
    }

    /// A Bind message: none = all text, one format = for all, else one each (0 text, 1 binary).
    ///
    /// # Errors
    /// 26000 for an unknown statement, 08P01 for a wrong number of values, 22P02/22P03 for malformed ones.
    pub fn bind(
        &mut self,
        portal: &str,
        statement: &str,
        params: &[Option<&[u8]>],
        param_formats: &[i16],
        result_formats: &[i16],
    ) -> Result<(), SqlError> {
        self.begin_message();
        self.with_limits(|session| {
            let result = session.bind_new(portal, statement, params, param_formats, result_formats);
            session.deadline.clear();
            if result.is_err() {
                session.failed();
            }
            result
        })
    }

    fn bind_new(
        &mut self,
        name: &str,
        statement: &str,
        params: &[Option<&[u8]>],
        param_formats: &[i16],
        result_formats: &[i16],
    ) -> Result<(), SqlError> {
        let prepared = self.find_prepared(statement)?.clone();
        let inside = prepared.inside();
        let time = self.time_bound(inside.as_ref().unwrap_or(&prepared), |session, index, ty| {
            session.refuse_in_failed_block()?;
            let value =
                |bytes: &Option<&[u8]>| session.read_parameter(index, *bytes, ty, format_of(param_formats, index)?);
            params.get(index).map(value).transpose()
        })?;
        let (plan, fields) = match prepared.planned() {
            Some(_) => {
                self.refuse_in_failed_block()?;
                (Some(self.plan_bound(&prepared, time, true)?), None)
            }
            None => (None, self.fields_of(&prepared)?),
        };
        let inner = match inside {
            Some(inside) => {
                self.refuse_in_failed_block()?;
                Some(self.plan_bound(&inside, time, false)?)
            }
            None => None,
        };
        let types = plan.as_ref().or(inner.as_ref()).map_or(&[][..], |p| p.parameters());
        if params.len() != types.len() {
            return Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!(
                    "bind message supplies {} parameters, but prepared statement \"{statement}\" requires {}",
                    params.len(),
                    types.len()
                ),
            ));
        }
        let mut values = Vec::with_capacity(params.len());
        for (index, (bytes, ty)) in params.iter().zip(types).enumerate() {
            values.push(self.read_parameter(index, *bytes, ty, format_of(param_formats, index)?)?);
        }
        let declared = (!name.is_empty()).then(|| (prepared.text.clone(), self.statement_began_us));
        let portal = Portal {
            params: values,
            inside_types: inner.map_or_else(Vec::new, |inner| inner.parameters().to_vec()),
            formats: result_formats.to_vec(),
            plan,
            fields,
            declared,
            ..Portal::unbound(prepared)
        };
        self.portals.put(name, portal)
    }

    pub(super) fn read_parameter(
        &self,
        index: usize,
        bytes: Option<&[u8]>,
        ty: &SqlType,
        format: i16,
    ) -> Result<Value, SqlError> {
        let Some(bytes) = bytes else { return Ok(Value::Null) };
        if bytes.len() > VALUE_BYTES_MAX {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("parameter ${} has {} bytes, more than the limit of {VALUE_BYTES_MAX}", index + 1, bytes.len()),
            ));
        }
        if format == 1 {
            return Value::parse_binary(ty, bytes);
        }
        let text = std::str::from_utf8(bytes).ok().filter(|t| !t.contains('\0')).ok_or_else(|| {
            SqlError::new(SqlState(*b"22021"), format!("parameter ${} is not valid UTF8 text", index + 1))
        })?;
        // `now`, and the zone of a time of day that names none, are those of the transaction: of the one that runs, or of the one to be.
        let now_us = ty.is_time().then(|| match (&self.active, self.block_began_us) {
            (Some(active), _) => active.began_us,
            (None, began_us) => began_us.unwrap_or_else(|| self.db.kv.now_us() - EPOCH_OFFSET_US),
        });
        Value::parse_text_at(ty, text, &self.settings.eval, now_us)
    }

    /// Parameter type OIDs and the result's shape (`None`: NoData).
    ///
    /// # Errors
    /// 26000 for an unknown statement.
    pub fn describe_statement(&mut self, name: &str) -> Result<(Vec<u32>, Option<Vec<Field>>), SqlError> {
        self.begin_message();
        self.with_limits(|session| {
            let result = session.describe_new(name);
            session.deadline.clear();
            if result.is_err() {
                session.failed();
            }
            result
        })
    }

    fn describe_new(&mut self, name: &str) -> Result<(Vec<u32>, Option<Vec<Field>>), SqlError> {
        let prepared = self.find_prepared(name)?.clone();
        if prepared.planned().is_none() {
            let inner = self.plan_inside(&prepared)?;
            let types = inner.map_or_else(Vec::new, |plan| parameter_oids(plan.as_ref()));
            return Ok((types, self.fields_of(&prepared)?));
        }
        self.refuse_in_failed_block()?;
        let plan = match prepared.bound_plan() {
            Some(bound) => bound,
            None => self.plan_ahead(&prepared).map_err(|e| of_the_present(&prepared, e))?,
        };
        prepared.tell(plan.as_ref());
        prepared.confirm();
        Ok((parameter_oids(plan.as_ref()), plan.shape().map(<[Field]>::to_vec)))
    }

    /// The plan of the query inside DECLARE or EXPLAIN, whose parameters are the statement's.
    fn plan_inside(&mut self, prepared: &Prepared) -> Result<Option<Arc<dyn Plan>>, SqlError> {
        let Some(inner) = prepared.inside() else { return Ok(None) };
        self.refuse_in_failed_block()?;
        self.plan_ahead(&inner).map(Some).map_err(|e| of_the_present(&inner, e))
    }

    /// An Execute message; 0 rows means all. `sync_follows`: the next message in the caller's buffer is Sync, so a lone
    /// statement may commit here, and be retried here.
    ///
    /// # Errors
    /// The statement's, or the commit's.
    pub fn execute(
        &mut self,
        portal: &str,
        max_rows: u32,
        sync_follows: bool,
        out: &mut dyn Output,
    ) -> Result<Executed, SqlError> {
        self.begin_message();
        self.with_limits(|session| session.execute_portal(portal, max_rows, sync_follows, out))
    }

    fn execute_portal(
        &mut self,
        portal: &str,
        max_rows: u32,
        sync_follows: bool,
        out: &mut dyn Output,
    ) -> Result<Executed, SqlError> {
        let Some(mut running) = self.portals.take(portal) else {
            self.failed();
            return Err(unknown_portal(portal));
        };
        if matches!(running.prepared.statement, Statement::Empty) {
            out.empty_query();
            self.deadline.clear();
            self.portals.put_back(portal, running);
            return Ok(Executed::Complete);
        }
        let how = How { describe: false, max_rows: u64::from(max_rows), commit: sync_follows };
        let done = self.run_portal(&mut running, how, out)?;
        if self.active.is_some() && done != Executed::CopyIn {
            self.portals.put_back(portal, running);
        }
        Ok(done)
    }

    /// A Close message for a statement; an unknown name is no error.
    pub fn close_statement(&mut self, name: &str) {
        let closed = if name.is_empty() { self.unnamed.take() } else { self.prepared.remove(name) };
        stack::roomy(|| drop(closed));
    }

    /// A Close message for a portal; an unknown name is no error.
    pub fn close_portal(&mut self, name: &str) {
        stack::roomy(|| self.portals.close(name));
    }

    /// A Sync message: commits an implicit transaction.
    ///
    /// # Errors
    /// The commit's.
    pub fn sync(&mut self) -> Result<(), SqlError> {
        if self.block == Block::None && self.active.is_some() {
            return self.with_limits(|session| {
                let done = session.commit().map_err(|e| session.name_row(e));
                session.deadline.clear();
                done
            });
        }
        if self.block == Block::None {
            // What was bound and not run needs no transaction to end.
            stack::roomy(|| self.portals.end_transaction(true));
        }
        Ok(())
    }

    /// The wire failed a message by itself, or skips to Sync after an error that the session did not see: an implicit
    /// transaction is rolled back, a block fails.
    pub fn fail(&mut self) {
        stack::roomy(|| self.failed());
    }

    /// The shape of a statement without a plan of its own; `None` if it gives no rows.
    fn fields_of(&mut self, prepared: &Prepared) -> Result<Option<Vec<Field>>, SqlError> {
        Ok(match prepared.command() {
            Some(Command::Show(name)) => Some(vec![super::show::field(name)]),
            Some(Command::ShowAll) => Some(super::show::all_fields()),
            Some(Command::Explain { options, .. } | Command::ExplainExecute { options, .. }) => {
                Some(super::explain::fields(options))
            }
            Some(Command::Fetch { name, skip: false, .. }) => {
                self.portals.get(name).and_then(|cursor| cursor.shape().map(<[Field]>::to_vec))
            }
            Some(Command::Execute { name, arguments }) => {
                let inner = self.find_prepared(name)?.clone();
                if inner.planned().is_none() {
                    return Ok(None);
                }
                // The session's bound is not asked here: what it would read alone is planned below, or by the present if that has not got it.
                let time = self.time_executed(&inner, arguments, false)?;
                let plan = self.plan_bound(&inner, time, false)?;
                plan.shape().map(<[Field]>::to_vec)
            }
            _ => None,
        })
    }
}

/// What a statement whose time is not known yet cannot be told of.
fn of_the_present(prepared: &Prepared, error: SqlError) -> SqlError {
    if prepared.time_parameter().is_none() || error.hint.is_some() {
        return error;
    }
    error.detail("What the statement takes and gives was asked for before its time was bound: it is that of the present.").hint(
        "Write its time as a literal, or let the driver describe what it has bound (without preparing it, as a rule).",
    )
}

fn parameter_oids(plan: &dyn Plan) -> Vec<u32> {
    let oid = |ty: &SqlType| if *ty == SqlType::Unknown { SqlType::Text.oid() } else { ty.oid() };
    plan.parameters().iter().map(oid).collect()
}

fn format_of(formats: &[i16], index: usize) -> Result<i16, SqlError> {
    let format = match formats {
        [] => 0,
        [one] => *one,
        many => many.get(index).copied().unwrap_or(0),
    };
    if format == 0 || format == 1 {
        return Ok(format);
    }
    Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, format!("unsupported format code: {format}")))
}
