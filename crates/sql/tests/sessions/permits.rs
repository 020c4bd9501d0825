//! Few statements write their tables anew at a time (decision 238): who waits for whom, and what is held meanwhile.

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::exclusive::is_gated;
use super::repeated_rewrites::Beside;
use super::waits::{LOCK_WAITS, until};
use super::{Rows, run, session, state_of};
use sql::transaction::Interrupt;
use sql::{Database, DatabaseOptions, Session, Startup};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// So often a condition is looked for until it counts as never true.
const TURNS_MAX: usize = 3_000_000;
/// There is memory for one.
const MEMORY_BYTES: usize = 128 << 20;
const TABLES: usize = 4;

/// Some tables of more rows than a transaction may write.
fn filled(memory_bytes: Option<usize>) -> (Beside, Arc<Database>, Session) {
    filled_with(DatabaseOptions { memory_bytes, ..DatabaseOptions::default() })
}

fn filled_with(options: DatabaseOptions) -> (Beside, Arc<Database>, Session) {
    let kv = Beside::new();
    let db = Database::open(Arc::new(kv.clone()), options).expect("open");
    let mut a = session(&db);
    for number in 0..TABLES {
        run(&mut a, &format!("CREATE TABLE t{number} (a int PRIMARY KEY, b int)"));
        for from in [1, 1001, 2001] {
            let rows = format!("generate_series({from}, {}) g", from + 999);
            run(&mut a, &format!("INSERT INTO t{number} SELECT g, 0 FROM {rows}"));
        }
    }
    kv.loads();
    (kv, db, a)
}

fn sql(number: usize) -> String {
    format!("UPDATE t{number} SET b = b + 1")
}

fn begin(db: &Arc<Database>, number: usize) -> JoinHandle<String> {
    let mut own = session(db);
    thread::spawn(move || state_of(&mut own, &sql(number)))
}

fn turns(mut is: impl FnMut() -> bool, what: &str) {
    for _ in 0..TURNS_MAX {
        if is() {
            return;
        }
        thread::yield_now();
    }
    panic!("never: {what}");
}

/// Time passes while something is done.
fn meanwhile<R>(kv: &Beside, mut does: impl FnMut() -> R) -> R {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                kv.kv.advance_us(1_000);
                thread::yield_now();
            }
        });
        let done = does();
        is_done.store(true, Ordering::Relaxed);
        done
    })
}

/// One that waits at its gate for a block that stays open has no permit: the only one is for others.
#[test]
fn who_waits_for_a_block_keeps_no_permit() {
    let (kv, db, mut asking) = filled(Some(MEMORY_BYTES));
    let (mut block, mut beside) = (session(&db), session(&db));
    // Of a row that is not come to before it runs out.
    run(&mut block, "BEGIN; UPDATE t0 SET b = 7 WHERE a = 3000");
    let waits = begin(&db, 0);
    until(&mut asking, LOCK_WAITS, "1");
    assert!(is_gated(&kv));
    run(&mut beside, "SET lock_timeout = '10s'");
    run(&mut beside, &sql(1));
    assert_eq!(kv.loads(), 1);
    run(&mut block, "COMMIT");
    assert_eq!(waits.join().expect("runs"), "00000");
    assert_eq!(run(&mut asking, "SELECT sum(b) FROM t0"), ["3007"]);
    assert!(!is_gated(&kv));
}

/// Who waits for a permit keeps nobody from writing, and nothing from being collected; what ends a wait ends that one.
#[test]
fn who_waits_for_a_permit_holds_nothing() {
    for (memory_bytes, permits) in [(Some(MEMORY_BYTES), 1), (None, 2)] {
        let (kv, db, mut asking) = filled(memory_bytes);
        let mut beside = session(&db);
        let go = kv.stops();
        let mut all = Vec::new();
        for number in 0..permits {
            all.push(begin(&db, number));
            turns(|| kv.loads_so_far() == number + 1, "it loads");
        }
        let open = kv.kv.open_transactions();
        let waiting = TABLES - permits;
        all.extend((permits..TABLES).map(|number| begin(&db, number)));
        until(&mut asking, LOCK_WAITS, &waiting.to_string());
        turns(|| kv.kv.open_transactions() == open, "no transaction is open that waits");
        for number in permits..TABLES {
            run(&mut beside, &format!("SET lock_timeout = '1ms'; UPDATE t{number} SET b = 3 WHERE a = 2"));
        }
        for (setting, state) in [("lock_timeout", "55P03"), ("statement_timeout", "57014")] {
            run(&mut beside, &format!("RESET lock_timeout; SET {setting} = '1ms'"));
            let e = meanwhile(&kv, || beside.simple_query(&sql(2), &mut Rows::default())).expect_err("it waits");
            assert_eq!(e.state.as_str(), state, "{setting}");
            let waited = e.detail.as_ref().is_some_and(|detail| detail.contains("permit"));
            assert_eq!(waited, state == "55P03", "{e:?}");
            run(&mut beside, &format!("RESET {setting}"));
        }
        let interrupt = Interrupt::default();
        let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
        let mut cancelled = Session::new(db.clone(), startup, interrupt.clone()).expect("session");
        let waits = thread::spawn(move || state_of(&mut cancelled, &sql(3)));
        until(&mut asking, LOCK_WAITS, &(waiting + 1).to_string());
        interrupt.raise();
        assert_eq!(waits.join().expect("waits"), "57014");
        assert_eq!(kv.loads_so_far(), permits);
        drop(go);
        assert!(all.into_iter().all(|one| one.join().expect("runs") == "00000"));
        kv.rests();
        assert!(!is_gated(&kv));
        for number in 0..TABLES {
            let sum = if number < permits { "3000" } else { "3003" };
            assert_eq!(run(&mut asking, &format!("SELECT sum(b) FROM t{number}")), [sum]);
        }
    }
}

/// Who has got one, and finds its table in use by then, gives it back.
#[test]
fn a_permit_is_not_kept_for_want_of_the_table() {
    let (kv, db, mut asking) = filled(Some(MEMORY_BYTES));
    let mut block = session(&db);
    let go = kv.stops();
    let first = begin(&db, 0);
    turns(|| kv.loads_so_far() == 1, "it loads");
    let second = begin(&db, 1);
    until(&mut asking, LOCK_WAITS, "1");
    run(&mut block, "BEGIN; UPDATE t1 SET b = 7 WHERE a = 3000");
    drop(go);
    assert_eq!(first.join().expect("runs"), "00000");
    kv.rests();
    turns(|| is_gated(&kv), "the second one has the permit, or waits without");
    let third = begin(&db, 2);
    let is_done = || {
        kv.kv.advance_us(1_000);
        third.is_finished()
    };
    turns(is_done, "the third one gets the permit");
    assert_eq!(third.join().expect("runs"), "00000");
    assert!(!second.is_finished());
    run(&mut block, "COMMIT");
    assert_eq!(second.join().expect("runs"), "00000");
    assert_eq!(run(&mut asking, "SELECT sum(b) FROM t1"), ["3007"]);
    assert!(!is_gated(&kv));
}

/// What was refused may be so by the time: who has waited looks again whether the table's past goes with it.
#[test]
fn who_has_waited_looks_again_how_long_the_past_is_kept() {
    for (set, state) in [("SET (fillfactor = 90)", "00000"), ("SET (retention = '1h')", "53200")] {
        let (kv, db, mut asking) = filled_with(DatabaseOptions {
            memory_bytes: Some(MEMORY_BYTES),
            retention_seconds: Some(60),
            ..DatabaseOptions::default()
        });
        let go = kv.stops();
        let first = begin(&db, 0);
        turns(|| kv.loads_so_far() == 1, "it loads");
        let mut own = session(&db);
        let second = thread::spawn(move || own.simple_query(&sql(1), &mut Rows::default()).err());
        until(&mut asking, LOCK_WAITS, "1");
        run(&mut asking, &format!("ALTER TABLE t1 {set}"));
        drop(go);
        assert_eq!(first.join().expect("runs"), "00000");
        let refused = second.join().expect("ends");
        assert_eq!(refused.as_ref().map_or("00000", |e| e.state.as_str()), state, "{set}: {refused:?}");
        let told = refused.and_then(|e| e.hint.clone());
        assert_eq!(told.is_some_and(|hint| hint.contains("its retention")), state == "53200");
        let changed = if state == "00000" { "3000" } else { "0" };
        assert_eq!(run(&mut asking, "SELECT sum(b) FROM t1"), [changed]);
        assert!(!is_gated(&kv));
    }
}

/// A holder that fails, or is cancelled, leaves it to the next.
#[test]
fn a_permit_comes_back_from_who_fails() {
    let (kv, db, mut asking) = filled(Some(MEMORY_BYTES));
    let interrupt = Interrupt::default();
    let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
    let mut cancelled = Session::new(db.clone(), startup, interrupt.clone()).expect("session");
    let go = kv.stops();
    let holds = thread::spawn(move || state_of(&mut cancelled, &sql(0)));
    turns(|| kv.loads_so_far() == 1, "it loads");
    let next = begin(&db, 1);
    until(&mut asking, LOCK_WAITS, "1");
    interrupt.raise();
    drop(go);
    assert_eq!(holds.join().expect("ends"), "57014");
    assert_eq!(next.join().expect("runs"), "00000");
    kv.rests();
    assert_eq!(state_of(&mut asking, "UPDATE t2 SET b = 1 / (3000 - a)"), "22012");
    run(&mut asking, &sql(3));
    assert!(!is_gated(&kv));
}
