//! Sessions see, cancel and end one another; advisory locks; what a start-up message may say.

use crate::bad_protocol::{message, startup};
use crate::node::{Node, Scratch, is_gone, repeat_with, state, until};
use postgres::{Client, NoTls};
use std::io::{Read, Write};

fn node(flags: &[&str]) -> (Scratch, Node) {
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), flags);
    (scratch, node)
}

fn pid(client: &mut Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0)
}

/// State and wait of a session, as another one sees it.
fn seen(client: &mut Client, pid: i32) -> Option<(String, Option<String>, String)> {
    let query = "SELECT state, wait_event_type || '/' || wait_event, query FROM pg_stat_activity WHERE pid = $1";
    client.query_opt(query, &[&pid]).unwrap().map(|row| (row.get(0), row.get(1), row.get(2)))
}

#[test]
fn sessions_are_seen_cancelled_and_ended() {
    repeat_with("sessions::sessions_are_seen_cancelled_and_ended");
    let (_scratch, node) = node(&[]);
    let mut admin = node.connect();
    let mut holder = node.connect();
    holder.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY, n int4); INSERT INTO t VALUES (1, 0)").unwrap();
    let holder_pid = pid(&mut holder);
    assert_eq!(seen(&mut admin, holder_pid).unwrap().0, "idle");
    holder.batch_execute("BEGIN; UPDATE t SET n = 1 WHERE id = 1").unwrap();
    let idle = ("idle in transaction".to_owned(), Some("Client/ClientRead".to_owned()));
    let (state_now, wait, query) = seen(&mut admin, holder_pid).unwrap();
    assert_eq!((state_now, wait), idle);
    assert!(query.contains("UPDATE t"), "{query}");
    let row = admin
        .query_one(
            "SELECT client_addr::text, client_port > 0, backend_start <= xact_start, xact_start <= now(), datname, usename \
             FROM pg_stat_activity WHERE pid = $1",
            &[&holder_pid],
        )
        .unwrap();
    assert_eq!(row.get::<_, String>(0), "127.0.0.1");
    assert!(row.get::<_, bool>(1) && row.get::<_, bool>(2) && row.get::<_, bool>(3));
    assert_eq!((row.get::<_, &str>(4), row.get::<_, &str>(5)), ("postgres", "root"));

    // One that waits for the row is seen to wait, and cancelled.
    let mut waiter = node.connect();
    let waiter_pid = pid(&mut waiter);
    let waiting = std::thread::spawn(move || {
        let failed = waiter.batch_execute("UPDATE t SET n = 2 WHERE id = 1").unwrap_err();
        (waiter, failed)
    });
    until("the statement waits", || {
        let seen = seen(&mut admin, waiter_pid).unwrap();
        (seen.0 == "active" && seen.1.as_deref() == Some("Lock/tuple")).then_some(())
    });
    assert!(admin.query_one("SELECT pg_cancel_backend($1)", &[&waiter_pid]).unwrap().get::<_, bool>(0));
    let (mut waiter, failed) = waiting.join().unwrap();
    assert_eq!(state(&failed), "57014");
    assert_eq!(waiter.query_one("SELECT 1", &[]).unwrap().get::<_, i32>(0), 1, "a cancelled session goes on");

    // One that sleeps inside a statement is ended, and one that waits for its client.
    let sleeping = std::thread::spawn(move || waiter.batch_execute("SELECT pg_sleep(100000)").unwrap_err());
    until("the statement sleeps", || {
        let seen = seen(&mut admin, waiter_pid).unwrap();
        (seen.1.as_deref() == Some("Timeout/PgSleep")).then_some(())
    });
    for pid in [waiter_pid, holder_pid] {
        let ended = admin.query_one("SELECT pg_terminate_backend($1, 600000)", &[&pid]).unwrap();
        assert!(ended.get::<_, bool>(0));
        assert_eq!(seen(&mut admin, pid), None);
    }
    // This client says that the connection is closed where that comes together with the reason.
    let error = sleeping.join().unwrap();
    assert!(state(&error) == "57P01" || is_gone(&error), "{error}");
    let error = holder.batch_execute("SELECT 1").unwrap_err();
    assert!(state(&error) == "57P01" || is_gone(&error), "{error}");
    // Its transaction is gone with it.
    assert_eq!(admin.execute("UPDATE t SET n = n + 10 WHERE id = 1", &[]).unwrap(), 1);
    assert_eq!(admin.query_one("SELECT n FROM t", &[]).unwrap().get::<_, i32>(0), 10);
}

#[test]
fn advisory_locks_wait_and_end_with_their_session() {
    repeat_with("sessions::advisory_locks_wait_and_end_with_their_session");
    let (_scratch, node) = node(&[]);
    let mut admin = node.connect();
    let (mut one, mut two) = (node.connect(), node.connect());
    let (one_pid, two_pid) = (pid(&mut one), pid(&mut two));
    one.batch_execute("SELECT pg_advisory_lock(1)").unwrap();
    two.batch_execute("SELECT pg_advisory_lock(2)").unwrap();
    let wait_for = |client: &mut Client, pid: i32| {
        until("the session waits", || (seen(client, pid)?.1.as_deref() == Some("Lock/advisory")).then_some(()));
    };
    // Who closes a circle is told so; the other goes on when that one ends.
    let waiting = std::thread::spawn(move || {
        one.batch_execute("SELECT pg_advisory_lock(2)").unwrap();
        one
    });
    wait_for(&mut admin, one_pid);
    let error = two.batch_execute("SELECT pg_advisory_lock(1)").unwrap_err();
    assert_eq!(state(&error), "40P01");
    let detail = error.as_db_error().unwrap().detail().unwrap().to_owned();
    assert!(detail.contains(&format!("Process {two_pid} waits for ExclusiveLock on advisory lock")), "{detail}");
    drop(two);
    let mut one = waiting.join().unwrap();
    // A wait hears a cancellation, and a session's end frees what it held.
    let mut three = node.connect();
    let three_pid = pid(&mut three);
    let waiting = std::thread::spawn(move || (three.batch_execute("SELECT pg_advisory_lock(1)").unwrap_err(), three));
    wait_for(&mut admin, three_pid);
    admin.execute("SELECT pg_cancel_backend($1)", &[&three_pid]).unwrap();
    let (error, mut three) = waiting.join().unwrap();
    assert_eq!(state(&error), "57014");
    let waiting = std::thread::spawn(move || three.batch_execute("SELECT pg_advisory_xact_lock(1)").map(|()| three));
    wait_for(&mut admin, three_pid);
    one.batch_execute("SELECT 1").unwrap();
    drop(one);
    waiting.join().unwrap().unwrap();
    until("nothing is held", || {
        (admin.query_one("SELECT count(*) FROM pg_locks", &[]).unwrap().get::<_, i64>(0) == 0).then_some(())
    });
}

#[test]
fn start_up_settings_do_not_cost_the_connection() {
    repeat_with("sessions::start_up_settings_do_not_cost_the_connection");
    let (_scratch, node) = node(&["--max-connections", "7"]);
    let connect = |options: &str| {
        let mut config: postgres::Config = node.url().parse().unwrap();
        config.options(options).connect(NoTls)
    };
    let show = |options: &str, name: &str| -> String {
        connect(options).unwrap().query_one(&format!("SHOW {name}"), &[]).unwrap().get(0)
    };
    assert_eq!(show("", "max_connections"), "7");
    assert_eq!(show("-c client_encoding='utf-8'", "client_encoding"), "UTF8");
    assert_eq!(show("-c DateStyle=German -c IntervalStyle=sql_standard", "datestyle"), "German, DMY");
    assert_eq!(show("-c DateStyle=German -c IntervalStyle=sql_standard", "intervalstyle"), "sql_standard");
    assert_eq!(show("-c enable_bitmapscan=off -c log_statement=all", "enable_bitmapscan"), "off");
    assert_eq!(show("-c TimeZone=+02:00 --search-path=app,public", "search_path"), "app,public");
    assert_eq!(
        show("-c default_transaction_isolation=read\\ uncommitted", "transaction_isolation"),
        "read uncommitted"
    );
    // What PostgreSQL refuses is refused.
    let refused = |options: &str| state(&connect(options).map(|_| ()).unwrap_err()).to_owned();
    assert_eq!(refused("-c nosuch=1"), "42704");
    assert_eq!(refused("-c DateStyle=foo"), "22023");
    for fixed in ["wal_level=logical", "wal_level=replica", "ssl=on", "ssl=off", "server_version=15"] {
        assert_eq!(refused(&format!("-c {fixed}")), "55P02", "{fixed}");
    }
    assert_eq!(refused("-c client_encoding=LATIN1"), "0A000");
    assert_eq!(refused("-c client_encoding=nosuch"), "22023");
    let latin = connect("-c client_encoding=latin-1").map(|_| ()).unwrap_err();
    let told = latin.as_db_error().unwrap();
    assert_eq!(told.severity(), "FATAL");
    assert!(told.hint().is_some_and(|hint| hint.contains("UTF8") && hint.contains("PGCLIENTENCODING")), "{told:?}");
    assert_eq!(show("-c client_encoding=SQL_ASCII", "client_encoding"), "SQL_ASCII");
}

/// All that a connection is told until its end.
fn told(node: &Node, statement: &str) -> String {
    let mut socket = node.socket();
    socket.write_all(&[startup(), message(b'Q', &[statement.as_bytes(), b"\0"].concat())].concat()).unwrap();
    let mut all = Vec::new();
    socket.read_to_end(&mut all).unwrap();
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn idle_sessions_end_with_the_reason() {
    repeat_with("sessions::idle_sessions_end_with_the_reason");
    let (_scratch, node) = node(&[]);
    let said = told(&node, "SET idle_in_transaction_session_timeout = 20; BEGIN");
    assert!(said.contains("25P03"), "{said}");
    let said = told(&node, "SET idle_in_transaction_session_timeout = 0; SET idle_session_timeout = 20");
    assert!(said.contains("57P05"), "{said}");
}

/// One holds an advisory lock and waits for a row, another holds the row and waits for the lock. Before the circle closes everybody sees
/// who waits for whom.
#[test]
fn a_circle_over_rows_and_advisory_locks_is_ended() {
    repeat_with("sessions::a_circle_over_rows_and_advisory_locks_is_ended");
    let (_scratch, node) = node(&[]);
    let mut admin = node.connect();
    let (mut one, mut two, mut three) = (node.connect(), node.connect(), node.connect());
    let (one_pid, two_pid, three_pid) = (pid(&mut one), pid(&mut two), pid(&mut three));
    let table = "CREATE TABLE t (id int4 PRIMARY KEY, n int4); INSERT INTO t VALUES (1, 0), (2, 0)";
    one.batch_execute(table).unwrap();
    one.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(7)").unwrap();
    two.batch_execute("BEGIN; UPDATE t SET n = 1 WHERE id = 1").unwrap();
    assert_eq!(blocking(&mut admin, one_pid), Vec::<i32>::new());
    let one = std::thread::spawn(move || {
        one.batch_execute("UPDATE t SET n = 2 WHERE id = 1; COMMIT").unwrap();
        one
    });
    until("the first waits for the row", || (blocking(&mut admin, one_pid) == [two_pid]).then_some(()));
    let three = std::thread::spawn(move || {
        three.batch_execute("SELECT pg_advisory_lock_shared(7)").unwrap();
        three
    });
    until("the third waits for the lock", || (blocking(&mut admin, three_pid) == [one_pid]).then_some(()));
    let locks = "SELECT pid, locktype, mode, granted, coalesce(relation::regclass::text, objid::text) FROM pg_locks ORDER BY 2, 4, 1";
    let found = admin.query(locks, &[]).unwrap();
    let found: Vec<(i32, &str, &str, bool, &str)> =
        found.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4))).collect();
    let expected = [
        (three_pid, "advisory", "ShareLock", false, "7"),
        (one_pid, "advisory", "ExclusiveLock", true, "7"),
        (one_pid, "tuple", "ExclusiveLock", false, "t"),
        (two_pid, "tuple", "ExclusiveLock", true, "t"),
    ];
    assert_eq!(found, expected);
    // Who blocks whom, as it is asked of PostgreSQL: both sides of a lock name the same thing.
    let blockers = "SELECT w.pid, h.pid FROM pg_locks w JOIN pg_locks h ON h.granted AND NOT w.granted AND h.locktype = w.locktype \
        AND h.database IS NOT DISTINCT FROM w.database AND h.relation IS NOT DISTINCT FROM w.relation \
        AND h.page IS NOT DISTINCT FROM w.page AND h.tuple IS NOT DISTINCT FROM w.tuple \
        AND h.objid IS NOT DISTINCT FROM w.objid ORDER BY w.locktype";
    let found: Vec<(i32, i32)> =
        admin.query(blockers, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(found, [(three_pid, one_pid), (one_pid, two_pid)]);
    for (pid, wait) in [(one_pid, "Lock/tuple"), (three_pid, "Lock/advisory")] {
        assert_eq!(seen(&mut admin, pid).unwrap().1.as_deref(), Some(wait));
    }
    // Now the second closes the circle.
    let error = two.batch_execute("SELECT pg_advisory_xact_lock(7)").unwrap_err();
    assert_eq!(state(&error), "40P01");
    let detail = error.as_db_error().unwrap().detail().unwrap();
    let database: u32 =
        admin.query_one("SELECT oid FROM pg_database WHERE datname = current_database()", &[]).unwrap().get(0);
    let key = format!("ExclusiveLock on advisory lock [{database},0,7,1]");
    let expected = format!(
        "Process {two_pid} waits for {key}; blocked by process {one_pid}.\n\
         Process {one_pid} waits for ExclusiveLock on the row (id)=(1) of table \"t\"; blocked by process {two_pid}."
    );
    assert_eq!(detail, expected);
    two.batch_execute("ROLLBACK").unwrap();
    let (mut one, three) = (one.join().unwrap(), three.join().unwrap());
    drop(three);

    // The other way round: the circle is closed by who waits for the row. And one over rows only says the same.
    one.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(8)").unwrap();
    two.batch_execute("BEGIN; UPDATE t SET n = 1 WHERE id = 2").unwrap();
    let waiting = std::thread::spawn(move || {
        let error = two.batch_execute("SELECT pg_advisory_xact_lock(8)").unwrap_err();
        two.batch_execute("ROLLBACK").unwrap();
        (two, error)
    });
    until("the second waits for the lock", || (blocking(&mut admin, two_pid) == [one_pid]).then_some(()));
    one.batch_execute("UPDATE t SET n = 3 WHERE id = 2; COMMIT").unwrap();
    let (mut two, error) = waiting.join().unwrap();
    assert_eq!(state(&error), "40P01");

    one.batch_execute("BEGIN; UPDATE t SET n = 4 WHERE id = 1").unwrap();
    two.batch_execute("BEGIN; UPDATE t SET n = 4 WHERE id = 2").unwrap();
    let waiting = std::thread::spawn(move || one.batch_execute("UPDATE t SET n = 5 WHERE id = 2"));
    until("the first waits for the row", || (blocking(&mut admin, one_pid) == [two_pid]).then_some(()));
    let closed = two.batch_execute("UPDATE t SET n = 5 WHERE id = 1");
    drop(two);
    let errors = [closed.err(), waiting.join().unwrap().err()];
    let [error] = &errors.iter().flatten().collect::<Vec<_>>()[..] else { panic!("{errors:?}") };
    assert_eq!(state(error), "40P01");
    let detail = error.as_db_error().unwrap().detail().unwrap();
    assert!(
        detail.contains("waits for ExclusiveLock on the row (id)=(2) of table \"t\"; blocked by process"),
        "{detail}"
    );
    assert!(
        detail.contains("waits for ExclusiveLock on the row (id)=(1) of table \"t\"; blocked by process"),
        "{detail}"
    );
}

/// As PostgreSQL's wiki has it ("Lock monitoring"): who is blocked, and by whom, through what `pg_locks` says is locked.
const WHO_BLOCKS_WHOM: &str = "SELECT blocked_locks.pid, blocking_locks.pid, blocked_activity.query, blocking_activity.query \
    FROM pg_catalog.pg_locks blocked_locks \
    JOIN pg_catalog.pg_stat_activity blocked_activity ON blocked_activity.pid = blocked_locks.pid \
    JOIN pg_catalog.pg_locks blocking_locks ON blocking_locks.locktype = blocked_locks.locktype \
        AND blocking_locks.database IS NOT DISTINCT FROM blocked_locks.database \
        AND blocking_locks.relation IS NOT DISTINCT FROM blocked_locks.relation \
        AND blocking_locks.page IS NOT DISTINCT FROM blocked_locks.page \
        AND blocking_locks.tuple IS NOT DISTINCT FROM blocked_locks.tuple \
        AND blocking_locks.virtualxid IS NOT DISTINCT FROM blocked_locks.virtualxid \
        AND blocking_locks.transactionid IS NOT DISTINCT FROM blocked_locks.transactionid \
        AND blocking_locks.classid IS NOT DISTINCT FROM blocked_locks.classid \
        AND blocking_locks.objid IS NOT DISTINCT FROM blocked_locks.objid \
        AND blocking_locks.objsubid IS NOT DISTINCT FROM blocked_locks.objsubid \
        AND blocking_locks.pid != blocked_locks.pid \
    JOIN pg_catalog.pg_stat_activity blocking_activity ON blocking_activity.pid = blocking_locks.pid \
    WHERE NOT blocked_locks.granted";

/// Who asks what everybody waits for is told rows, sessions, and what each has done.
#[test]
fn locks_transactions_and_leases_are_shown() {
    repeat_with("sessions::locks_transactions_and_leases_are_shown");
    let (_scratch, node) = node(&[]);
    let (mut admin, mut one, mut two) = (node.connect(), node.connect(), node.connect());
    let (one_pid, two_pid) = (pid(&mut one), pid(&mut two));
    one.batch_execute(
        "CREATE TABLE t (id int4, name text, n int4, PRIMARY KEY (id, name)); INSERT INTO t VALUES (1, 'a', 0), (2, 'b', 0)",
    )
    .unwrap();
    let nobody =
        "SELECT (SELECT count(*) FROM timeball_internal.locks) + (SELECT count(*) FROM timeball_internal.transactions)";
    assert_eq!(admin.query_one(nobody, &[]).unwrap().get::<_, i64>(0), 0);
    one.batch_execute("BEGIN; SELECT pg_advisory_lock(7); UPDATE t SET n = 1 WHERE id = 1; DELETE FROM t WHERE id = 2")
        .unwrap();
    let waits = std::thread::spawn(move || {
        two.batch_execute("UPDATE t SET n = 2 WHERE id = 1").unwrap();
        two
    });
    until("it waits", || (blocking(&mut admin, two_pid) == [one_pid]).then_some(()));
    let found = admin.query(WHO_BLOCKS_WHOM, &[]).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].get::<_, i32>(0), found[0].get::<_, i32>(1)), (two_pid, one_pid));
    assert_eq!(found[0].get::<_, &str>(2), "UPDATE t SET n = 2 WHERE id = 1");
    let waitstart = "SELECT count(*) FROM pg_locks WHERE NOT granted AND waitstart <= clock_timestamp()";
    assert_eq!(admin.query_one(waitstart, &[]).unwrap().get::<_, i64>(0), 1);
    let locks = "SELECT locktype, table_name, row_key, granted, holder_pid, waiter_pid, blocked_by, waits_ms >= 0, holder_node_id, \
        waiter_node_id FROM timeball_internal.locks ORDER BY locktype, row_key, granted";
    let found = admin.query(locks, &[]).unwrap();
    type Shown<'a> = (&'a str, Option<&'a str>, &'a str, bool, Option<i32>, Option<i32>, Option<&'a str>, Option<bool>);
    let shown: Vec<Shown> = found
        .iter()
        .map(|r| (r.get(0), r.get(1), r.get(2), r.get(3), r.get(4), r.get(5), r.get(6), r.get(7)))
        .collect();
    let (t, holder, blocked) = (Some("t"), Some(one_pid), one_pid.to_string());
    let key: String =
        admin.query_one("SELECT row_key FROM timeball_internal.locks WHERE locktype = 'advisory'", &[]).unwrap().get(0);
    assert_eq!(
        shown,
        [
            ("advisory", None, &*key, true, holder, None, None, None),
            ("row", t, "(id, name)=(1, a)", false, holder, Some(two_pid), Some(&*blocked), Some(true)),
            ("row", t, "(id, name)=(1, a)", true, holder, None, None, None),
            ("row", t, "(id, name)=(2, b)", true, holder, None, None, None),
        ]
    );
    assert_eq!((found[1].get::<_, i32>(8), found[1].get::<_, i32>(9)), (1, 1));
    let transactions = "SELECT pid, state, consistency, locked_keys, written_keys, written_bytes > 0, age_ms >= 0, waits_ms >= 0, query, \
        prepared_ranges FROM timeball_internal.transactions WHERE node_id = 1 ORDER BY age_ms DESC, pid";
    let found = admin.query(transactions, &[]).unwrap();
    type Transaction<'a> = (i32, &'a str, &'a str, i64, i64, bool, bool, Option<bool>);
    let open: Vec<Transaction> = found
        .iter()
        .map(|r| (r.get(0), r.get(1), r.get(2), r.get(3), r.get(4), r.get(5), r.get(6), r.get(7)))
        .collect();
    assert_eq!(open[0], (one_pid, "idle", open[0].2, 2, 2, true, true, None));
    assert_eq!(open[1], (two_pid, "waiting", open[1].2, 0, 0, false, true, Some(true)));
    assert!(["strict", "hybrid"].contains(&open[0].2) && open.len() == 2, "{open:?}");
    assert!(found[0].get::<_, &str>(8).contains("DELETE FROM t WHERE id = 2"));
    assert_eq!(seen(&mut admin, two_pid).unwrap().1.as_deref(), Some("Lock/tuple"));
    one.batch_execute("COMMIT; SELECT pg_advisory_unlock(7)").unwrap();
    let mut two = waits.join().unwrap();
    // Who inserts waits for nobody, and is seen to have written.
    two.batch_execute("BEGIN; INSERT INTO t SELECT id, 'c', 0 FROM generate_series(1, 100) AS id").unwrap();
    let query = "SELECT pid, written_keys FROM timeball_internal.transactions";
    until("it is seen", || {
        let found = admin.query(query, &[]).unwrap();
        assert!(found.len() <= 1, "{found:?}");
        found.first().map(|row| assert_eq!((row.get::<_, i32>(0), row.get::<_, i64>(1)), (two_pid, 100)))
    });
    two.batch_execute("ROLLBACK").unwrap();
    assert_eq!(admin.query_one(nobody, &[]).unwrap().get::<_, i64>(0), 0);
    // It leads all there is, and needs no lease.
    let leases = "SELECT leader_node_id, holds, lease_until::text, error FROM timeball_internal.leases";
    for row in admin.query(leases, &[]).unwrap() {
        let row: (i32, &str, Option<&str>, Option<&str>) = (row.get(0), row.get(1), row.get(2), row.get(3));
        assert_eq!(row, (1, "alone", None, None));
    }
}

fn blocking(client: &mut Client, pid: i32) -> Vec<i32> {
    client.query_one("SELECT pg_blocking_pids($1)", &[&pid]).unwrap().get(0)
}
