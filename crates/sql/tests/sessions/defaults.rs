//! What sessions begin with: of the cluster, the database, the role, the connection.

use super::{open, run, session, state_of};
use sql::transaction::Interrupt;
use sql::transaction::memory::MemoryKv;
use sql::{Database, DatabaseOptions, Session, Startup};
use std::sync::Arc;

fn connect(db: &Arc<Database>, database: &str, parameters: &[(&str, &str)]) -> Session {
    let parameters = parameters.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let startup = Startup { user: "root".into(), database: database.into(), parameters, ..Startup::default() };
    Session::new(db.clone(), startup, Interrupt::default()).expect("session")
}

fn shown(session: &mut Session, name: &str) -> String {
    run(session, &format!("SHOW {name}")).remove(0)
}

#[test]
fn new_sessions_begin_with_what_is_said_of_least() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    let consistency = |session: &mut Session| shown(session, "timeball.consistency");
    run(&mut a, "CREATE DATABASE other");
    run(&mut a, "ALTER SYSTEM SET timeball.consistency = token");
    assert_eq!(consistency(&mut connect(&db, "postgres", &[])), "token");
    run(&mut a, "ALTER DATABASE postgres SET timeball.consistency = 'hybrid'");
    assert_eq!(consistency(&mut a), "auto", "it began before");
    assert_eq!(consistency(&mut connect(&db, "postgres", &[])), "hybrid");
    assert_eq!(consistency(&mut connect(&db, "other", &[])), "token");
    run(&mut a, "ALTER ROLE root SET timeball.consistency = 'none'");
    assert_eq!(consistency(&mut connect(&db, "postgres", &[])), "none");
    run(&mut a, "ALTER ROLE root IN DATABASE postgres SET timeball.consistency = 'strict'");
    let mut b = connect(&db, "postgres", &[]);
    assert_eq!(consistency(&mut b), "strict");
    run(&mut b, "SET timeball.consistency = stale; RESET timeball.consistency");
    assert_eq!(consistency(&mut b), "strict", "that is where RESET goes back to");
    run(&mut b, "SET timeball.consistency = stale; DISCARD ALL");
    assert_eq!(consistency(&mut b), "strict");
    assert_eq!(consistency(&mut connect(&db, "postgres", &[("timeball.consistency", "token")])), "token");
    assert_eq!(consistency(&mut connect(&db, "other", &[])), "none");
}

/// One place for the whole cluster: an offset, as it is where clocks have no bound.
#[test]
fn a_cluster_is_switched_to_a_static_offset() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, "ALTER SYSTEM SET timeball.max_offset = '250ms'");
    run(&mut a, "ALTER SYSTEM SET timeball.uncertainty = 'static'");
    let mut b = connect(&db, "postgres", &[]);
    assert_eq!(shown(&mut b, "timeball.uncertainty"), "static");
    assert_eq!(shown(&mut b, "timeball.max_offset"), "250ms");
    run(&mut a, "ALTER SYSTEM RESET ALL");
    assert_eq!(shown(&mut connect(&db, "postgres", &[]), "timeball.uncertainty"), "dynamic");
    for wrong in ["ALTER SYSTEM SET timeball.max_offset = '1h'", "ALTER SYSTEM SET timeball.uncertainty = 'some'"] {
        assert_eq!(state_of(&mut a, wrong), "22023", "{wrong}");
    }
}

#[test]
fn they_change_with_the_catalog() {
    let db = open(MemoryKv::new());
    let (mut a, mut b) = (session(&db), session(&db));
    let rows = |session: &mut Session| run(session, "SELECT count(*) FROM pg_db_role_setting").remove(0);
    run(&mut a, "BEGIN; CREATE TABLE t (id int); ALTER DATABASE postgres SET search_path = s, public");
    assert_eq!((rows(&mut a), rows(&mut b)), ("1".to_owned(), "0".to_owned()));
    run(&mut a, "ROLLBACK");
    assert_eq!(rows(&mut a), "0");
    run(&mut a, "CREATE SCHEMA s; CREATE TABLE s.t (id int)");
    run(&mut a, "BEGIN; ALTER DATABASE postgres SET search_path = s, public; COMMIT");
    assert_eq!(run(&mut connect(&db, "postgres", &[]), "SELECT 't'::regclass::oid = 's.t'::regclass::oid"), ["t"]);
    assert_eq!(run(&mut b, "SELECT to_regclass('t') IS NULL"), ["t"], "it began before");
    run(&mut a, "CREATE DATABASE other");
    run(&mut a, "ALTER DATABASE other SET work_mem = '8MB'; ALTER DATABASE other RENAME TO another");
    assert_eq!(shown(&mut connect(&db, "another", &[]), "work_mem"), "8MB");
    run(&mut a, "DROP DATABASE another");
    assert_eq!(rows(&mut a), "1", "with a database goes what is said of it");
    run(&mut a, "SET default_transaction_read_only = on");
    assert_eq!(state_of(&mut a, "ALTER DATABASE postgres SET work_mem = '8MB'"), "25006");
}

/// A database does not go while somebody says what its sessions begin with: what is said of it goes with it.
#[test]
fn defaults_do_not_outlive_their_database() {
    let db = open(MemoryKv::new());
    let (mut a, mut b) = (session(&db), session(&db));
    run(&mut b, "SET lock_timeout = '1ms'");
    for of in ["DATABASE other", "ROLE root IN DATABASE other"] {
        run(&mut a, "CREATE DATABASE other");
        run(&mut a, &format!("BEGIN; ALTER {of} SET work_mem = '8MB'"));
        assert_eq!(state_of(&mut b, "DROP DATABASE other"), "55P03", "{of}");
        run(&mut a, "COMMIT");
        run(&mut b, "DROP DATABASE other");
        assert_eq!(run(&mut b, "SELECT count(*) FROM pg_db_role_setting"), ["0"], "{of}");
    }
}

/// `pg_settings`: where a value came from, what RESET goes back to, and what it is where nobody says anything.
#[test]
fn settings_say_where_they_come_from() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, "CREATE DATABASE other");
    run(&mut a, "ALTER SYSTEM SET timeball.max_staleness = '1s'");
    run(&mut a, "ALTER SYSTEM SET lock_timeout = '2s'");
    run(&mut a, "ALTER DATABASE other SET timeball.snapshot_age = '5ms'; ALTER ROLE root SET statement_timeout = '7s'");
    run(&mut a, "ALTER ROLE root IN DATABASE other SET timeball.consistency = hybrid");
    let mut b = connect(&db, "other", &[("timeball.report_token", "on"), ("datestyle", "German")]);
    run(&mut b, "SET lock_timeout = '3s'; SET timeball.commit_wait_budget = '4ms'; SET shop.tenant = 'x'");
    let about = |session: &mut Session, name: &str| {
        let columns = "concat_ws('|', source, setting, reset_val, boot_val, context, vartype, sourcefile)";
        run(session, &format!("SELECT {columns} FROM pg_settings WHERE name = '{name}'")).remove(0)
    };
    for (name, said) in [
        ("timeball.max_staleness", "global|1s|1s|0|user|string"),
        ("timeball.snapshot_age", "database|5ms|5ms|0|user|string"),
        ("statement_timeout", "user|7000|7000|0|user|integer"),
        ("timeball.consistency", "database user|hybrid|hybrid|auto|user|enum"),
        ("timeball.report_token", "client|on|on|off|user|bool"),
        ("DateStyle", "client|German, DMY|German, DMY|ISO, MDY|user|string"),
        ("lock_timeout", "session|3000|2000|0|user|integer"),
        ("timeball.uncertainty", "default|dynamic|dynamic|dynamic|user|enum"),
        ("timeball.query_memory_bytes", "default|268435456|268435456|268435456|user|string"),
        ("shop.tenant", "session|x|user|string"),
        ("server_version_num", "default|150010|150010|150010|internal|integer"),
    ] {
        assert!(about(&mut b, name).starts_with(said), "{name}: {} and not {said}", about(&mut b, name));
    }
    run(&mut b, "RESET lock_timeout; RESET timeball.commit_wait_budget");
    assert!(about(&mut b, "lock_timeout").starts_with("global|2000|"));
    assert!(about(&mut b, "timeball.commit_wait_budget").starts_with("default|"));
    // What holds for a transaction goes with it.
    run(&mut b, "BEGIN; SET LOCAL timeball.max_staleness = '9s'");
    assert!(about(&mut b, "timeball.max_staleness").starts_with("session|9s|1s|0|"));
    run(&mut b, "COMMIT");
    assert!(about(&mut b, "timeball.max_staleness").starts_with("global|1s|"));
    run(&mut b, "SET lock_timeout = '3s'; DISCARD ALL");
    assert!(about(&mut b, "lock_timeout").starts_with("global|2000|"));
}

/// What the node took by itself nobody has said.
#[test]
fn what_the_command_line_has_said_is_told_apart() {
    let options = DatabaseOptions {
        retention_seconds: Some(600),
        sessions_max: Some(50),
        said: vec!["timeball.retention"],
        ..DatabaseOptions::default()
    };
    let db = Database::open(Arc::new(MemoryKv::new()), options).unwrap();
    let mut a = session(&db);
    let names = "'timeball.retention', 'max_connections', 'timeball.query_memory_bytes'";
    let told = run(&mut a, &format!("SELECT name, source FROM pg_settings WHERE name IN ({names}) ORDER BY name"));
    assert_eq!(
        told,
        ["max_connections|default", "timeball.query_memory_bytes|default", "timeball.retention|command line"]
    );
}
