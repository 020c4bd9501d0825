//! Settings, other sessions, advisory locks.

use super::super::function::{Arguments, Function, Sig};
use super::{int_at, str_at};
use crate::advisory::{Key, Mode, Refusal, Request, Scope};
use crate::contention::Picture;
use crate::peers;
use crate::sessions::SettingChange;
use crate::statement::Statement;
use crate::transaction::Wait;
use crate::types::{Array, SqlType as T, Value};
use crate::{SqlError, SqlState, advisory};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

type R = Result<Value, SqlError>;

const TEXT: Sig = Sig::Is(T::Text);
const BOOL: Sig = Sig::Is(T::Bool);
const I4: Sig = Sig::Is(T::Int4);
const I8: Sig = Sig::Is(T::Int8);
const VOID: Sig = Sig::Is(T::Void);

/// One number of 64 bits.
const ONE: &[Sig] = &[I8];
/// Two numbers of 32 bits.
const PAIR: &[Sig] = &[I4, I4];

pub(super) static TABLE: &[Function] = &[
    Function::volatile("pg_advisory_lock", ONE, VOID, |v, a| lock(v, a, Mode::Exclusive, Scope::Session)),
    Function::volatile("pg_advisory_lock", PAIR, VOID, |v, a| lock(v, a, Mode::Exclusive, Scope::Session)),
    Function::volatile("pg_advisory_lock_shared", ONE, VOID, |v, a| lock(v, a, Mode::Share, Scope::Session)),
    Function::volatile("pg_advisory_lock_shared", PAIR, VOID, |v, a| lock(v, a, Mode::Share, Scope::Session)),
    Function::volatile("pg_advisory_xact_lock", ONE, VOID, |v, a| lock(v, a, Mode::Exclusive, Scope::Transaction)),
    Function::volatile("pg_advisory_xact_lock", PAIR, VOID, |v, a| lock(v, a, Mode::Exclusive, Scope::Transaction)),
    Function::volatile("pg_advisory_xact_lock_shared", ONE, VOID, |v, a| lock(v, a, Mode::Share, Scope::Transaction)),
    Function::volatile("pg_advisory_xact_lock_shared", PAIR, VOID, |v, a| lock(v, a, Mode::Share, Scope::Transaction)),
    Function::volatile("pg_try_advisory_lock", ONE, BOOL, |v, a| try_lock(v, a, Mode::Exclusive, Scope::Session)),
    Function::volatile("pg_try_advisory_lock", PAIR, BOOL, |v, a| try_lock(v, a, Mode::Exclusive, Scope::Session)),
    Function::volatile("pg_try_advisory_lock_shared", ONE, BOOL, |v, a| try_lock(v, a, Mode::Share, Scope::Session)),
    Function::volatile("pg_try_advisory_lock_shared", PAIR, BOOL, |v, a| try_lock(v, a, Mode::Share, Scope::Session)),
    Function::volatile("pg_try_advisory_xact_lock", ONE, BOOL, |v, a| {
        try_lock(v, a, Mode::Exclusive, Scope::Transaction)
    }),
    Function::volatile("pg_try_advisory_xact_lock", PAIR, BOOL, |v, a| {
        try_lock(v, a, Mode::Exclusive, Scope::Transaction)
    }),
    Function::volatile("pg_try_advisory_xact_lock_shared", ONE, BOOL, |v, a| {
        try_lock(v, a, Mode::Share, Scope::Transaction)
    }),
    Function::volatile("pg_try_advisory_xact_lock_shared", PAIR, BOOL, |v, a| {
        try_lock(v, a, Mode::Share, Scope::Transaction)
    }),
    Function::volatile("pg_advisory_unlock", ONE, BOOL, |v, a| unlock(v, a, Mode::Exclusive)),
    Function::volatile("pg_advisory_unlock", PAIR, BOOL, |v, a| unlock(v, a, Mode::Exclusive)),
    Function::volatile("pg_advisory_unlock_shared", ONE, BOOL, |v, a| unlock(v, a, Mode::Share)),
    Function::volatile("pg_advisory_unlock_shared", PAIR, BOOL, |v, a| unlock(v, a, Mode::Share)),
    Function::stable("current_setting", &[TEXT], TEXT, current_setting),
    Function::stable("current_setting", &[TEXT, BOOL], TEXT, current_setting),
    Function::volatile("set_config", &[TEXT, TEXT, BOOL], TEXT, set_config).lax(),
    Function::volatile("pg_cancel_backend", &[I4], BOOL, cancel),
    Function::volatile("pg_terminate_backend", &[I4], BOOL, terminate),
    Function::volatile("pg_terminate_backend", &[I4, I8], BOOL, terminate),
    Function::volatile("pg_advisory_unlock_all", &[], VOID, |_, a| {
        let statement = a.statement()?;
        statement.backend.effects.locked();
        statement.backend.sessions.advisory.unlock_all(statement.backend.number);
        Ok(Value::text(""))
    }),
    Function::volatile("pg_blocking_pids", &[I4], Sig::ArrayOf(T::Int4), blocking),
    // Nobody waits for a snapshot here.
    Function::volatile("pg_safe_snapshot_blocking_pids", &[I4], Sig::ArrayOf(T::Int4), |_, _| Ok(pids(&[]))),
    Function::stable("pg_postmaster_start_time", &[], Sig::Is(T::Timestamptz(None)), opened),
    Function::stable("pg_conf_load_time", &[], Sig::Is(T::Timestamptz(None)), opened),
];

fn opened(_: &[Value], arguments: &Arguments<'_>) -> R {
    Ok(Value::Timestamptz(arguments.statement()?.backend.sessions.opened_us))
}

fn current_setting(values: &[Value], arguments: &Arguments<'_>) -> R {
    let statement = arguments.statement()?;
    let name = str_at(values, 0)?.to_lowercase();
    let modes = &statement.modes;
    let shown = match name.as_str() {
        "timeball.token" => Some(match statement.catalog.seal() {
            Some(seal) => seal.sign(modes.token),
            None => modes.token.to_string(),
        }),
        name => (statement.backend.effects.shown(name))
            .or_else(|| modes.shown(name).map(str::to_string))
            .or_else(|| statement.system.setting(&statement.settings, name)),
    };
    match shown {
        Some(shown) => Ok(Value::text(shown)),
        None if values.get(1) == Some(&Value::Bool(true)) => Ok(Value::Null),
        None => {
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\"")))
        }
    }
}

/// Checks the value now, and leaves the change to the session, which makes it when the statement has worked.
fn set_config(values: &[Value], arguments: &Arguments<'_>) -> R {
    let statement = arguments.statement()?;
    let Some(name) = values.first().and_then(Value::as_str) else {
        return Err(SqlError::new(SqlState(*b"22004"), "SET requires parameter name"));
    };
    let name = name.to_lowercase();
    let value = values.get(1).and_then(Value::as_str).map(str::to_string);
    let local = values.get(2) == Some(&Value::Bool(true));
    let shown = match name.as_str() {
        "transaction_isolation" | "transaction_read_only" => {
            let what = if name.ends_with("only") { "READ WRITE MODE" } else { "ISOLATION LEVEL" };
            let message = format!("SET TRANSACTION {what} must be called before any query");
            return Err(SqlError::new(SqlState::ACTIVE_TRANSACTION, message).hint("Use SET TRANSACTION."));
        }
        "timeball.token" => value.clone().unwrap_or_default(),
        name => statement.system.setting_trial(&statement.settings, name, value.as_deref())?,
    };
    statement.backend.effects.set(SettingChange { name, value, shown: shown.clone(), local });
    Ok(Value::text(shown))
}

fn no_backend(statement: &Statement, pid: i64) -> Value {
    let message = format!("PID {pid} is not a PostgreSQL backend process");
    statement.backend.effects.notice(SqlError::new(SqlState::WARNING, message));
    Value::Bool(false)
}

fn cancel(values: &[Value], arguments: &Arguments<'_>) -> R {
    let (statement, pid) = (arguments.statement()?, int_at(values, 0)?);
    match statement.backend.sessions.find(pid as i32) {
        Some(backend) => {
            backend.cancel();
            Ok(Value::Bool(true))
        }
        None => Ok(elsewhere(statement, pid, "cancel")),
    }
}

/// Asks the node whose session it is.
fn elsewhere(statement: &Statement, pid: i64, what: &str) -> Value {
    let Some(node) = peers::node_of(pid).filter(|node| *node != statement.kv.node()) else {
        return no_backend(statement, pid);
    };
    match statement.kv.ask_peer(node, &format!("{what} {pid}")) {
        Ok(told) if told == "true" => Value::Bool(true),
        Ok(_) => no_backend(statement, pid),
        Err(why) => {
            let message = format!("PID {pid} is of node {node}, which does not answer: {why}");
            statement.backend.effects.notice(SqlError::new(SqlState::WARNING, message));
            Value::Bool(false)
        }
    }
}

fn pids(pids: &[i32]) -> Value {
    let pids = pids.iter().map(|pid| Value::Int4(*pid)).collect();
    Value::Array(Arc::new(Array::from_values(T::Int4, pids)))
}

/// Those in the way of a session, over locks of both kinds. In a cluster the others are asked where it waits, and where it is a session of theirs.
fn blocking(values: &[Value], arguments: &Arguments<'_>) -> R {
    let (statement, pid) = (arguments.statement()?, int_at(values, 0)?);
    let sessions = &statement.backend.sessions;
    let Ok(pid) = i32::try_from(pid) else { return Ok(pids(&[])) };
    let known = sessions.find(pid);
    if statement.kv.node() != 0 {
        let theirs = peers::node_of(i64::from(pid)).is_some_and(|node| node != statement.kv.node());
        if !theirs && known.is_none_or(|backend| backend.waits_for_lock_since_us().is_none()) {
            return Ok(pids(&[]));
        }
        let blocking = Picture::contended(statement).blocking(pid);
        statement.check()?;
        return Ok(pids(&blocking));
    }
    let Some(waits) = known else { return Ok(pids(&[])) };
    let mut numbers = sessions.advisory.in_the_way_of(waits.number);
    statement.kv.look_at_row_waits(&mut |rows| numbers.extend(rows.of(waits.number).into_iter().flat_map(|of| of.1)));
    numbers.sort_unstable();
    numbers.dedup();
    let found = sessions.all().into_iter().filter(|backend| numbers.binary_search(&backend.number).is_ok());
    Ok(pids(&found.map(|backend| backend.pid).collect::<Vec<_>>()))
}

/// Who waits for a session's end looks this often.
const LOOK_EVERY_MS: u64 = 5;

fn terminate(values: &[Value], arguments: &Arguments<'_>) -> R {
    let (statement, pid) = (arguments.statement()?, int_at(values, 0)?);
    let timeout_ms = if values.len() > 1 { int_at(values, 1)? } else { 0 };
    if timeout_ms < 0 {
        return Err(SqlError::new(SqlState::OUT_OF_RANGE, "\"timeout\" must not be negative"));
    }
    let Some(backend) = statement.backend.sessions.find(pid as i32) else {
        return Ok(elsewhere(statement, pid, "terminate"));
    };
    backend.terminate();
    if timeout_ms == 0 {
        return Ok(Value::Bool(true));
    }
    let until_us = statement.kv.monotonic_us().saturating_add(timeout_ms.saturating_mul(1000));
    let (mutex, unnotified) = (parking_lot::Mutex::new(()), parking_lot::Condvar::new());
    while statement.backend.sessions.has(backend.number) {
        statement.check()?;
        if statement.kv.monotonic_us() >= until_us {
            let message = format!("backend with PID {pid} did not terminate within {timeout_ms} milliseconds");
            statement.backend.effects.notice(SqlError::new(SqlState::WARNING, message));
            return Ok(Value::Bool(false));
        }
        // Nobody notifies: the wait ends by its timeout.
        unnotified.wait_for(&mut mutex.lock(), Duration::from_millis(LOOK_EVERY_MS));
    }
    Ok(Value::Bool(true))
}

fn key(values: &[Value], statement: &Statement) -> Result<Key, SqlError> {
    let first = int_at(values, 0)?;
    let database = statement.backend.database;
    Ok(match values.len() {
        1 => Key { database, class: (first as u64 >> 32) as u32, object: first as u32, pair: false },
        _ => Key { database, class: first as u32, object: int_at(values, 1)? as u32, pair: true },
    })
}

fn request(values: &[Value], statement: &Statement, mode: Mode, scope: Scope) -> Result<Request, SqlError> {
    let backend = &statement.backend;
    backend.has_locked.store(true, Ordering::Relaxed);
    match scope {
        Scope::Session => backend.effects.locked(),
        // Said before it is taken, so that it is given up whatever happens.
        Scope::Transaction => backend.has_transaction_locks.store(true, Ordering::Relaxed),
    }
    Ok(Request { session: backend.number, key: key(values, statement)?, mode, scope })
}

fn full() -> SqlError {
    SqlError::new(SqlState::OUT_OF_MEMORY, "out of shared memory")
        .detail(format!("{} advisory locks are held, which is the limit.", crate::advisory::KEYS_MAX))
        .hint("Give some up with pg_advisory_unlock.")
}

fn lock(values: &[Value], arguments: &Arguments<'_>, mode: Mode, scope: Scope) -> R {
    let statement = arguments.statement()?;
    let request = request(values, statement, mode, scope)?;
    let advisory = &statement.backend.sessions.advisory;
    let began_us = statement.kv.monotonic_us();
    let mut stop = || {
        statement.interrupt.look();
        statement.check()?;
        let waited_us = statement.kv.monotonic_us().saturating_sub(began_us);
        if statement.backend.lock_timeout.is_over_after(u64::try_from(waited_us).unwrap_or(0)) {
            return Err(SqlError::new(SqlState::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout")
                .detail(format!("Process {} waited for {}.", statement.backend.pid, request.key.described(mode))));
        }
        Ok(())
    };
    let taken = match advisory.try_lock_until(request, &mut stop) {
        Ok(false) => {
            let _waiting = statement.interrupt.begin_wait_at(Wait::Advisory, statement.kv.monotonic_us());
            advisory.lock(request, statement.kv.as_ref(), &mut stop)
        }
        tried => tried.map(drop),
    };
    taken.map(|()| Value::text("")).map_err(refused)
}

fn refused(refusal: Refusal) -> SqlError {
    match refusal {
        Refusal::Full => full(),
        Refusal::Ended(e) => e,
        Refusal::Deadlock(circle) => advisory::deadlock(circle),
    }
}

fn try_lock(values: &[Value], arguments: &Arguments<'_>, mode: Mode, scope: Scope) -> R {
    let statement = arguments.statement()?;
    let request = request(values, statement, mode, scope)?;
    let mut stop = || {
        statement.interrupt.look();
        statement.check()
    };
    let taken = statement.backend.sessions.advisory.try_lock_until(request, &mut stop);
    taken.map(Value::Bool).map_err(refused)
}

fn unlock(values: &[Value], arguments: &Arguments<'_>, mode: Mode) -> R {
    let statement = arguments.statement()?;
    let backend = &statement.backend;
    backend.effects.locked();
    let was_held = backend.sessions.advisory.unlock(backend.number, key(values, statement)?, mode);
    if !was_held {
        let message = format!("you don't own a lock of type {}", mode.name());
        backend.effects.notice(SqlError::new(SqlState::WARNING, message));
    }
    Ok(Value::Bool(was_held))
}
