//! What sessions see of each other, and snapshots that grow old.

use super::circles::Node;
use super::{Rows, open, run, session, state_of};
use sql::transaction::memory::MemoryKv;
use sql::transaction::{Admin, AdminReply, BeginOptions, Interrupt};
use sql::{Database, Kv, KvError, Session, Startup, Transaction, TransactionStatus};
use std::sync::{Arc, Mutex};

/// Lets so much of the counter that stands for time pass that a millisecond is over.
pub(super) fn pass_a_millisecond(db: &Arc<Database>) {
    let (mut other, began) = (session(db), run(&mut session(db), "SELECT clock_timestamp()"));
    while run(&mut other, &format!("SELECT clock_timestamp() <= '{}'::timestamptz + interval '2 ms'", began[0]))
        == ["t"]
    {
        run(&mut other, "BEGIN; SELECT 1; ROLLBACK");
    }
}

#[test]
fn an_old_snapshot_ends_its_block() {
    let db = open(MemoryKv::default());
    let mut old = session(&db);
    run(&mut old, "CREATE TABLE t (id int PRIMARY KEY); SET timeball.snapshot_age_max = '1ms'");
    for (then, left) in [("SELECT 1", "25P02"), ("COMMIT", "00000")] {
        run(&mut old, "BEGIN; INSERT INTO t VALUES (1)");
        pass_a_millisecond(&db);
        assert_eq!(state_of(&mut old, then), "72000", "{then}");
        // The block of a COMMIT has ended; the other one waits for its end, and says the same again.
        assert_eq!(state_of(&mut old, "SELECT 1"), if left == "25P02" { "72000" } else { left });
        run(&mut old, "ROLLBACK");
        assert_eq!(run(&mut old, "SELECT count(*) FROM t"), ["0"]);
    }
    // Whoever serves the session sees to it while nothing comes.
    run(&mut old, "BEGIN; SELECT * FROM t");
    assert!(old.snapshot_left_ms().is_some_and(|left| left <= 1) && !old.give_up_old_snapshot());
    pass_a_millisecond(&db);
    assert!(old.snapshot_left_ms() == Some(0) && old.give_up_old_snapshot());
    assert_eq!((old.transaction_status(), old.snapshot_left_ms()), (TransactionStatus::Failed, None));
    assert_eq!(state_of(&mut old, "COMMIT"), "72000");
    assert_eq!(old.transaction_status(), TransactionStatus::Idle);
    // What its lost subtransaction made READ ONLY can be written in what comes after it.
    let within = |savepoint| format!("BEGIN; SAVEPOINT {savepoint}; SELECT * FROM t; SET TRANSACTION READ ONLY");
    for (savepoint, then) in [
        ("cockroach_restart", "ROLLBACK TO SAVEPOINT cockroach_restart; INSERT INTO t VALUES (1)"),
        ("a", "ROLLBACK AND CHAIN; INSERT INTO t VALUES (1)"),
    ] {
        run(&mut old, &within(savepoint));
        pass_a_millisecond(&db);
        assert!(old.give_up_old_snapshot());
        run(&mut old, &format!("{then}; ROLLBACK"));
    }
    // READ COMMITTED takes a new one with each statement; outside a block nothing is held.
    run(&mut old, "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT 1; SET LOCAL timeball.snapshot_age_max = 0");
    pass_a_millisecond(&db);
    run(&mut old, "SELECT 1; COMMIT");
    pass_a_millisecond(&db);
    run(&mut old, "SELECT 1");
}

#[test]
fn snapshots_are_shown_with_who_holds_them() {
    let db = open(MemoryKv::default());
    let (mut one, mut other, mut idle) = (session(&db), session(&db), session(&db));
    run(&mut idle, "SELECT 1");
    idle.wait_for_client();
    let began = "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT 1";
    run(&mut one, &format!("SET application_name = 'old one'; {began}"));
    one.wait_for_client();
    run(&mut other, began);
    other.wait_for_client();
    let held = "SELECT application_name, state, is_oldest, age_ms::int8 >= 0, query FROM timeball_internal.snapshots";
    let rows = run(&mut other, held);
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows[0].starts_with("old one|idle in transaction|t|t|") && rows[1].starts_with("|active|f|t|"), "{rows:?}");
    run(&mut one, "COMMIT");
    one.wait_for_client();
    assert_eq!(run(&mut other, "SELECT is_oldest FROM timeball_internal.snapshots"), ["t"]);
}

/// Something is done beside each transaction: after it has begun.
struct Beside<F> {
    kv: MemoryKv,
    then: F,
}
impl<F: Fn() + Send + Sync + 'static> Kv for Beside<F> {
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Transaction>, KvError> {
        let begun = self.kv.begin(options);
        (self.then)();
        begun
    }
    fn unique_id(&self) -> u64 {
        self.kv.unique_id()
    }
    fn now_us(&self) -> i64 {
        self.kv.now_us()
    }
    fn admin(&self, request: Admin) -> Result<AdminReply, KvError> {
        self.kv.admin(request)
    }
    fn internal_table(&self, name: &str) -> Option<(Vec<String>, Vec<Vec<Option<String>>>)> {
        self.kv.internal_table(name)
    }
}

/// Done by a session that is there for it, but not beside its own transactions.
fn by_another(by: &Mutex<Option<Session>>, done: impl FnOnce(&mut Session)) {
    if let Ok(mut by) = by.try_lock()
        && let Some(by) = by.as_mut()
    {
        done(by);
    }
}

#[test]
fn others_see_how_far_an_index_and_a_copy_are() {
    const ROWS: usize = 40_000;
    let (by, seen) = (Arc::new(Mutex::new(None::<Session>)), Arc::new(Mutex::new(Vec::new())));
    let asks = {
        let (by, seen) = (by.clone(), seen.clone());
        let question =
            "SELECT relid = 't'::regclass, index_relid > 0, command, phase, tuples_total, tuples_done, blocks_total,
            (datname, lockers_total, partitions_done) FROM pg_stat_progress_create_index";
        move || by_another(&by, |by| seen.lock().unwrap().extend(run(by, question)))
    };
    let db = open(Beside { kv: MemoryKv::new(), then: asks });
    let (mut a, mut b) = (session(&db), session(&db));
    run(&mut a, "CREATE TABLE t (a int, b int)");
    run(&mut a, "BEGIN; TRUNCATE t");
    let copies = "SELECT relid = 't'::regclass, datname, command, type, bytes_processed, bytes_total, tuples_processed, tuples_excluded
        FROM pg_stat_progress_copy";
    let mut out = Rows::default();
    a.simple_query("COPY t FROM STDIN", &mut out).expect("copy");
    let mut bytes = 0;
    for i in 0..ROWS {
        let line = format!("{i}\t{}\n", i * 7919 % ROWS);
        bytes += line.len();
        a.copy_data(line.as_bytes()).expect("row");
    }
    // Whole chunks are written.
    assert_eq!(run(&mut b, copies), [format!("t|postgres|COPY FROM|PIPE|{bytes}|0|39936|0")]);
    a.copy_done(&mut out).expect("done");
    run(&mut a, "COMMIT");
    assert_eq!(run(&mut b, copies), [] as [String; 0]);
    *by.lock().unwrap() = Some(b);
    run(&mut a, "CREATE INDEX t_b ON t (b)");
    run(&mut a, "ALTER TABLE t ADD PRIMARY KEY (a)");
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    for (phase, total, done) in [("scanning table", 0, ROWS), ("loading tuples in tree", ROWS, ROWS)] {
        let expected = format!("t|t|CREATE INDEX|building index: {phase}|{total}|{done}|0|(postgres,0,0)");
        assert!(seen.contains(&expected), "{expected} in {seen:#?}");
    }
    let mut b = by.lock().unwrap().take().unwrap();
    assert_eq!(run(&mut b, "SELECT * FROM pg_stat_progress_create_index"), [] as [String; 0]);
}

/// At all nodes; more of them than one answer holds.
#[test]
fn others_see_how_far_those_of_other_nodes_are() {
    const COPIES: i32 = 900;
    let nodes = Node::all(2);
    let (one, two) = (open(nodes[0].clone()), open(nodes[1].clone()));
    let mut asking = session(&two);
    run(&mut asking, "CREATE TABLE t (id int PRIMARY KEY)");
    let copies: Vec<Session> = (0..COPIES)
        .map(|n| {
            let (user, database) = ("root".into(), "postgres".into());
            let startup = Startup { user, database, backend_pid: n + 1, ..Startup::default() };
            let mut busy = Session::new(one.clone(), startup, Interrupt::default()).expect("a session");
            busy.simple_query("COPY t FROM STDIN", &mut Rows::default()).expect("it begins");
            busy.copy_data(format!("{n}\n").as_bytes()).expect("a row");
            busy
        })
        .collect();
    let query = "SELECT count(*), count(DISTINCT pid), min(bytes_processed) FROM pg_stat_progress_copy
        WHERE relid = 't'::regclass AND datname = 'postgres' AND command = 'COPY FROM'";
    assert_eq!(run(&mut asking, query), [format!("{COPIES}|{COPIES}|2")]);
    drop(copies);
    assert_eq!(run(&mut asking, "SELECT count(*) FROM pg_stat_progress_copy"), ["0"]);
}

#[test]
fn a_text_is_seen_before_it_is_read() {
    let db = open(MemoryKv::new());
    let (mut one, mut two) = (session(&db), session(&db));
    let seen = |two: &mut Session| {
        run(two, "SELECT state, query FROM pg_stat_activity WHERE query NOT LIKE '%pg_stat_activity%'")
    };
    assert_eq!(state_of(&mut one, "SELEKT broken"), "42601");
    assert_eq!(seen(&mut two), ["active|SELEKT broken"]);
    one.wait_for_client();
    one.parse("p", "SELECT nowhere", &[]).expect_err("there is no such column");
    assert_eq!(seen(&mut two), ["active|SELECT nowhere"]);
}

/// A statement that is begun anew has what is left of its time, not all of it again.
#[test]
fn the_time_of_a_statement_goes_on_when_it_is_repeated() {
    let (kv, by) = (MemoryKv::new(), Arc::new(Mutex::new(None::<Session>)));
    // Another session commits what will refuse it, and time passes.
    let contends = {
        let (kv, by) = (kv.clone(), by.clone());
        move || {
            by_another(&by, |by| {
                run(by, "INSERT INTO t VALUES (1)");
                kv.advance_us(40_000);
            });
        }
    };
    let db = open(Beside { kv, then: contends });
    let (mut a, b) = (session(&db), session(&db));
    run(
        &mut a,
        "CREATE TABLE t (a int); SET default_transaction_isolation = serializable; SET statement_timeout = '100ms'",
    );
    *by.lock().unwrap() = Some(b);
    assert_eq!(state_of(&mut a, "INSERT INTO t SELECT count(*) FROM t"), "57014");
    drop(by.lock().unwrap().take());
    assert_eq!(run(&mut a, "SELECT count(*) BETWEEN 2 AND 5 FROM t"), ["t"]);
}
