//! The session, sequences, identity and what administration tools ask.

use super::super::function::{Arguments, Function, Sig};
use super::int_at;
use crate::SqlError;
use crate::syntax::forms::NAMED_ROW;
use crate::types::{RegKind, SqlType as T, Value};

type R = Result<Value, SqlError>;

const TEXT: Sig = Sig::Is(T::Text);
const NAME: Sig = Sig::Is(T::Name);
const BOOL: Sig = Sig::Is(T::Bool);
const I4: Sig = Sig::Is(T::Int4);
const I8: Sig = Sig::Is(T::Int8);
const CLASS: Sig = Sig::Is(T::Reg(RegKind::Class));

pub(super) static TABLE: &[Function] = &[
    Function::pure(NAMED_ROW, &[Sig::ArrayOf(T::Text), Sig::Any], Sig::Is(T::Record), named_row).lax().many(),
    Function::stable("current_database", &[], NAME, |_, a| Ok(Value::text(a.statement()?.settings.database.as_str()))),
    Function::stable("current_catalog", &[], NAME, |_, a| Ok(Value::text(a.statement()?.settings.database.as_str()))),
    Function::stable("current_user", &[], NAME, user),
    Function::stable("current_role", &[], NAME, user),
    Function::stable("session_user", &[], NAME, user),
    Function::stable("user", &[], NAME, user),
    Function::stable("current_schema", &[], NAME, current_schema),
    Function::stable("current_schemas", &[BOOL], Sig::ArrayOf(T::Name), current_schemas),
    Function::stable("version", &[], TEXT, |_, _| Ok(Value::text(version()))),
    Function::volatile("pg_backend_pid", &[], I4, |_, a| Ok(Value::Int4(a.statement()?.settings.backend_pid))),
    Function::volatile("nextval", &[CLASS], I8, |v, a| {
        let statement = a.statement()?;
        statement.modes.let_write("nextval()")?;
        Ok(Value::Int8(statement.sequences.next(int_at(v, 0)? as u32)?))
    }),
    Function::volatile("currval", &[CLASS], I8, |v, a| {
        Ok(Value::Int8(a.statement()?.sequences.current(int_at(v, 0)? as u32)?))
    }),
    Function::volatile("lastval", &[], I8, |_, a| Ok(Value::Int8(a.statement()?.sequences.last()?))),
    Function::volatile("setval", &[CLASS, I8], I8, |v, a| set_sequence(v, a, true)),
    Function::volatile("setval", &[CLASS, I8, BOOL], I8, |v, a| set_sequence(v, a, super::bool_at(v, 2)?)),
    Function::stable("pg_typeof", &[Sig::Any], Sig::Is(T::Reg(RegKind::Type)), |_, a| {
        Ok(Value::Oid(a.types.first().map_or(0, T::oid)))
    })
    .lax(),
    Function::volatile("pg_sleep", &[Sig::Is(T::Float8)], Sig::Is(T::Void), sleep),
    Function::volatile("txid_current", &[], I8, |_, a| {
        Ok(Value::Int8(a.statement()?.txn.with(|txn| txn.snapshot()).physical_us() as i64))
    }),
];

/// As `version()` answers: clients read the number behind "PostgreSQL".
pub fn version() -> String {
    format!("PostgreSQL 15.10 (Timeball {})", env!("CARGO_PKG_VERSION"))
}

fn set_sequence(values: &[Value], arguments: &Arguments<'_>, is_called: bool) -> R {
    let statement = arguments.statement()?;
    statement.modes.let_write("setval()")?;
    Ok(Value::Int8(statement.sequences.set(int_at(values, 0)? as u32, int_at(values, 1)?, is_called)?))
}

/// A row whose fields have names: those in the array.
fn named_row(values: &[Value], arguments: &Arguments<'_>) -> R {
    let names: Vec<&str> = match values.first() {
        Some(Value::Array(names)) => names.values.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let fields = values.get(1..).unwrap_or_default();
    let types = arguments.types.get(1..).unwrap_or_default();
    let names = names.into_iter().map(str::to_owned).zip(types.iter().cloned()).collect();
    Value::record(fields.to_vec(), Some(names))
}

fn user(_: &[Value], arguments: &Arguments<'_>) -> R {
    Ok(Value::text(arguments.statement()?.settings.user.as_str()))
}

fn current_schema(_: &[Value], arguments: &Arguments<'_>) -> R {
    let statement = arguments.statement()?;
    let schemas = statement.catalog.schemas()?;
    let found = statement.settings.search_path.iter().find(|name| schemas.iter().any(|schema| schema.name == **name));
    Ok(found.map_or(Value::Null, |name| Value::text(name.as_str())))
}

fn current_schemas(values: &[Value], arguments: &Arguments<'_>) -> R {
    let statement = arguments.statement()?;
    let schemas = statement.catalog.schemas()?;
    let mut names: Vec<Value> = Vec::new();
    if super::bool_at(values, 0)? && !statement.settings.search_path.iter().any(|name| name == "pg_catalog") {
        names.push(Value::text("pg_catalog"));
    }
    names.extend(
        statement
            .settings
            .search_path
            .iter()
            .filter(|name| schemas.iter().any(|schema| schema.name == **name))
            .map(|name| Value::text(name.as_str())),
    );
    Ok(Value::Array(crate::types::Array::from_values(T::Name, names).into()))
}

/// How often `pg_sleep` looks at the clock and the interrupt.
const SLEEP_STEP_MS: u64 = 5;

/// Waits by the node's clock, until the statement is interrupted.
fn sleep(values: &[Value], arguments: &Arguments<'_>) -> R {
    let statement = arguments.statement()?;
    let seconds = super::float_at(values, 0)?;
    let _waiting = statement.interrupt.begin_wait(crate::transaction::Wait::Sleep);
    let until = statement.kv.now_us().saturating_add((seconds.clamp(0.0, 1e9) * 1e6) as i64);
    let (mutex, unnotified) = (parking_lot::Mutex::new(()), parking_lot::Condvar::new());
    while statement.kv.now_us() < until {
        statement.check()?;
        // Nobody notifies: the wait ends by its timeout.
        unnotified.wait_for(&mut mutex.lock(), std::time::Duration::from_millis(SLEEP_STEP_MS));
    }
    Ok(Value::text(""))
}
