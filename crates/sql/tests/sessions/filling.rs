//! A column gets its values beside writers (decision 246).

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::exclusive::is_changed;
use super::online::{Chance, Meddled, ROWS};
use super::orphans::Node;
use super::waits::{LOCK_WAITS, until};
use super::{open, run, session, state_of};
use sql::transaction::Interrupt;
use sql::transaction::memory::MemoryKv;
use sql::{Database, DatabaseOptions, Session, Startup};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// `c` says in text what `v` is in whatever type that has.
fn fill(a: &mut Session) {
    run(a, "CREATE TABLE t (id int PRIMARY KEY, v int, u int NOT NULL, c text)");
    run(a, &format!("INSERT INTO t SELECT i, i % 40, i, i % 40 FROM generate_series(1, {ROWS}) AS g (i)"));
}

/// A write that keeps that so.
fn write(chance: &mut Chance) -> String {
    let (id, v) = (1 + chance.below(ROWS as u64 + 200), chance.below(40));
    match chance.below(8) {
        0 => format!("DELETE FROM t WHERE id = {id}"),
        1 => format!(
            "INSERT INTO t (id, v, u, c) VALUES ({id}, {v}, {id}, {v}) ON CONFLICT (id) DO UPDATE SET v = excluded.v, c = excluded.c"
        ),
        2 => format!("UPDATE t SET id = id + 10000, u = u + 10000 WHERE id = {id}"),
        3 => format!("UPDATE t SET v = NULL, c = NULL WHERE id = {id}"),
        4 => format!("UPDATE t SET u = u + 1 WHERE id = {id}"),
        5 => format!("INSERT INTO t (id, v, u, c) SELECT {id}, {v}, {id}, {v} ON CONFLICT DO NOTHING"),
        _ => format!("UPDATE t SET v = {v}, c = {v} WHERE id = {id}"),
    }
}

/// Changes of columns, one after the other, and what each row must say then.
const CHANGES: [(&str, &str); 9] = [
    ("ALTER TABLE t ADD COLUMN r float8 NOT NULL DEFAULT random()", "r IS NOT NULL"),
    ("ALTER TABLE t ADD COLUMN s serial", "s > 0"),
    ("ALTER TABLE t ADD COLUMN i bigint GENERATED ALWAYS AS IDENTITY", "i > 0"),
    ("ALTER TABLE t ADD g int GENERATED ALWAYS AS (u * 2) STORED", "g = u * 2"),
    ("ALTER TABLE t ALTER COLUMN v TYPE bigint", "v::text IS NOT DISTINCT FROM c"),
    ("ALTER TABLE t ALTER COLUMN v TYPE text USING v::text || 'x'", "true"),
    ("ALTER TABLE t ALTER COLUMN v TYPE text USING replace(v, 'x', '')", "v IS NOT DISTINCT FROM c"),
    ("ALTER TABLE t ALTER COLUMN v TYPE int USING v::int", "v::text IS NOT DISTINCT FROM c"),
    ("ALTER TABLE t ADD COLUMN o uuid DEFAULT gen_random_uuid() NOT NULL", "o IS NOT NULL"),
];

fn check(a: &mut Session, case: &str) {
    let wrong = |condition: &str| format!("SELECT count(*) FROM t WHERE ({condition}) IS NOT TRUE");
    // In between `v` was of other types.
    for (sql, condition) in CHANGES.into_iter().filter(|(_, condition)| !condition.starts_with("v IS")) {
        assert_eq!(run(a, &wrong(condition)), ["0"], "{case}: {sql}");
    }
    let distinct =
        "SELECT count(*) = count(DISTINCT s), count(*) = count(DISTINCT i), count(*) = count(DISTINCT o) FROM t";
    assert_eq!(run(a, distinct), ["t|t|t"], "{case}");
}

#[test]
fn columns_are_filled_beside_writers_and_no_row_lacks_them() {
    let kv = MemoryKv::new();
    let db = open(kv.clone());
    let mut a = session(&db);
    fill(&mut a);
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let writers: Vec<_> = (1..=3u64)
        .map(|number| {
            let (db, stop, written) = (db.clone(), stop.clone(), written.clone());
            thread::spawn(move || {
                let mut own = session(&db);
                let mut chance = Chance(number * 0x9e37_79b9);
                while !stop.load(Ordering::Relaxed) {
                    let (one, other) = (write(&mut chance), write(&mut chance));
                    match chance.below(4) {
                        0 => {
                            for sql in ["BEGIN ISOLATION LEVEL READ COMMITTED", &one, &other, "COMMIT"] {
                                let state = state_of(&mut own, sql);
                                let fine = ["00000", "23505", "40001", "40P01", "25P02"];
                                assert!(fine.contains(&state.as_str()), "{sql}: {state}");
                            }
                        }
                        // A lone statement never hears of the change.
                        _ => {
                            let state = state_of(&mut own, &one);
                            assert!(["00000", "23505"].contains(&state.as_str()), "{one}: {state}");
                        }
                    }
                    written.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for (sql, condition) in CHANGES {
        run(&mut a, sql);
        let wrong = format!("SELECT count(*) FROM t WHERE ({condition}) IS NOT TRUE");
        assert_eq!(run(&mut a, &wrong), ["0"], "{sql}");
        if sql.ends_with("|| 'x'") {
            run(&mut a, "UPDATE t SET v = v WHERE id < 10");
        }
    }
    stop.store(true, Ordering::Relaxed);
    writers.into_iter().for_each(|writer| writer.join().expect("no writer fails"));
    assert!(!is_changed(&kv));
    check(&mut a, "beside writers");
    assert!(written.load(Ordering::Relaxed) > 50);
}

#[test]
fn no_row_lacks_a_column_whatever_is_written_between_its_steps() {
    for seed in 1..=4u64 {
        let kv = Meddled { write, ..Meddled::new() };
        // Who is kept out by the last step, and is of the same thread, would wait for himself.
        let options = DatabaseOptions { keeps_out: false, ..DatabaseOptions::default() };
        let db = Database::open(Arc::new(kv.clone()), options).expect("open");
        let mut a = session(&db);
        fill(&mut a);
        // Who draws a number begins a transaction while he keeps others from it: whoever writes then, of the same thread, would wait for himself.
        let draws = |sql: &str| sql.contains("serial") || sql.contains("IDENTITY");
        CHANGES.iter().filter(|(sql, _)| draws(sql)).for_each(|(sql, _)| drop(run(&mut a, sql)));
        let mut by = session(&db);
        // It is of the same thread: what it waits for does not come.
        run(&mut by, "SET lock_timeout = '1ms'");
        *kv.by.lock().expect("lock") = Some((by, Chance(seed * 0x9e37_79b9_7f4a)));
        for (sql, _) in CHANGES.into_iter().filter(|(sql, _)| !draws(sql)) {
            assert_eq!(state_of(&mut a, sql), "00000", "{sql}");
        }
        *kv.by.lock().expect("lock") = None;
        check(&mut a, &format!("seed {seed}"));
        drop((a, db));
        check(&mut session(&open(kv.kv.clone())), &format!("seed {seed}, behind a restart"));
    }
}

/// A block that has written before the column was known commits at each of the places where the change begins a transaction. Gives whether its row lacks the column then.
fn lacks(options: &DatabaseOptions) -> bool {
    let mut lacks = false;
    for (sql, lacking) in [
        ("ALTER TABLE t ADD COLUMN r float8 DEFAULT random()", "SELECT count(*) - count(r) FROM t"),
        ("ALTER TABLE t ALTER COLUMN u TYPE bigint USING u + 1", "SELECT count(*) - count(u) FROM t"),
    ] {
        for steps in 0.. {
            let kv = MemoryKv::new();
            let slow = Node::of(&kv, 1);
            let db = Database::open(Arc::new(slow.clone()), options.clone()).expect("open");
            let (mut a, mut before) = (session(&db), session(&db));
            fill(&mut a);
            run(&mut a, "SET lock_timeout = '1ms'");
            run(&mut before, "BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO t VALUES (900000, 1, 900000, 1)");
            *slow.then.lock().expect("lock") = Some(Box::new(move || {
                let _ = state_of(&mut before, "COMMIT");
            }));
            slow.steps.store(steps, Ordering::Relaxed);
            let state = state_of(&mut a, sql);
            let ended = slow.then.lock().expect("lock").is_some();
            slow.steps.store(usize::MAX, Ordering::Relaxed);
            let case = format!("{sql} after {steps} transactions");
            assert!(["00000", "55P03"].contains(&state.as_str()), "{case}: {state}");
            lacks |= state == "00000" && run(&mut a, lacking) != ["0"];
            if ended {
                break;
            }
        }
    }
    lacks
}

#[test]
fn who_writes_without_it_is_waited_for() {
    assert!(!lacks(&DatabaseOptions::default()));
}

/// The control.
#[test]
fn a_row_lacks_a_column_if_who_writes_without_it_is_not_waited_for() {
    assert!(lacks(&DatabaseOptions { ends_versions: false, ..DatabaseOptions::default() }));
}

#[test]
fn of_a_change_that_fails_nothing_is_left() {
    let kv = MemoryKv::new();
    let db = open(kv.clone());
    let mut a = session(&db);
    fill(&mut a);
    run(&mut a, "UPDATE t SET c = 'none' WHERE id = 2900; UPDATE t SET v = NULL WHERE id = 2901");
    for (sql, state) in [
        ("ALTER TABLE t ALTER COLUMN c TYPE int USING c::int", "22P02"),
        ("ALTER TABLE t ALTER COLUMN u TYPE smallint USING u * 100", "22003"),
        ("ALTER TABLE t ALTER COLUMN u TYPE int USING v", "23502"),
        ("ALTER TABLE t ADD COLUMN d int NOT NULL GENERATED ALWAYS AS (v) STORED", "23502"),
        ("ALTER TABLE t ADD COLUMN d int DEFAULT 1 / (random() - random())::int", "22012"),
        ("ALTER TABLE t ADD COLUMN d int GENERATED ALWAYS AS (none) STORED", "42703"),
        ("ALTER TABLE t ALTER COLUMN u TYPE date USING u", "42804"),
    ] {
        assert_eq!(state_of(&mut a, sql), state, "{sql}");
        assert!(!is_changed(&kv), "{sql}");
        run(&mut a, "UPDATE t SET v = v + 1 WHERE id < 5; INSERT INTO t VALUES (900000, 1, 1, 1)");
        run(&mut a, "DELETE FROM t WHERE id = 900000");
    }
    assert_eq!(run(&mut a, "SELECT count(*) FROM pg_class WHERE relkind = 'S'"), ["0"]);
    // What was left in rows is no other column's.
    run(&mut a, "ALTER TABLE t ADD COLUMN d int");
    run(&mut a, "ALTER TABLE t ADD COLUMN e int DEFAULT 7");
    assert_eq!(run(&mut a, "SELECT count(d), count(e), sum(e) / count(*) FROM t"), [format!("0|{ROWS}|7")]);
}

/// Nobody sees the column before it is shown, writers go on, and a block that is waited for hears of nothing, also where the change is cancelled.
#[test]
fn a_column_is_not_seen_before_all_rows_have_it() {
    let kv = MemoryKv::new();
    let db = open(kv.clone());
    let (mut b, mut asking) = (session(&db), session(&db));
    fill(&mut b);
    for (sql, shown) in [
        ("ALTER TABLE t ADD COLUMN s serial", "SELECT count(*) FROM pg_attribute WHERE attname = 's'"),
        (
            "ALTER TABLE t ALTER COLUMN v TYPE bigint",
            "SELECT count(*) FROM information_schema.columns WHERE table_name = 't' AND data_type = 'bigint'",
        ),
    ] {
        for cancelled in [true, false] {
            let interrupt = Interrupt::default();
            let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
            let mut a = Session::new(db.clone(), startup, interrupt.clone()).expect("session");
            run(&mut b, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE t SET u = 1 WHERE id = 5");
            let changing = thread::spawn(move || state_of(&mut a, sql));
            until(&mut asking, LOCK_WAITS, "1");
            let phase =
                "SELECT table_id = 't'::regclass::oid::bigint, command, phase FROM timeball_internal.schema_changes";
            assert_eq!(run(&mut asking, phase), ["t|ALTER TABLE|waiting for writers before filling"]);
            assert_eq!(run(&mut asking, shown), ["0"]);
            assert!(is_changed(&kv));
            // By the next version and by that before.
            for writer in [&mut asking, &mut b] {
                for sql in [
                    "INSERT INTO t VALUES (900000, 7, 1, 7)",
                    "UPDATE t SET v = 8 WHERE id = 900000",
                    "UPDATE t SET id = 900001 WHERE id = 900000",
                    "SELECT * FROM t WHERE id = 900001",
                    "DELETE FROM t WHERE id = 900001",
                ] {
                    assert_eq!(state_of(writer, sql), "00000", "{sql}");
                }
                if cancelled {
                    break;
                }
            }
            if cancelled {
                interrupt.raise();
            } else {
                assert_eq!(state_of(&mut b, "COMMIT"), "00000");
            }
            let state = changing.join().expect("the change");
            assert_eq!(state, if cancelled { "57014" } else { "00000" }, "{sql}");
            if cancelled {
                assert_eq!(state_of(&mut b, "COMMIT"), "00000");
            }
            assert!(!is_changed(&kv));
            assert_eq!(run(&mut asking, shown), [if cancelled { "0" } else { "1" }], "{sql}");
            assert_eq!(run(&mut asking, "SELECT count(*) FROM timeball_internal.schema_changes"), ["0"]);
        }
    }
    assert_eq!(run(&mut asking, "SELECT count(DISTINCT s), bool_and(v::text = c) FROM t"), [format!("{ROWS}|t")]);
}

/// What refers to a column goes on to, and what comes later finds it.
#[test]
fn a_column_with_another_type_is_the_same_column() {
    let kv = MemoryKv::new();
    let db = open(kv.clone());
    let mut a = session(&db);
    fill(&mut a);
    run(&mut a, "COMMENT ON COLUMN t.v IS 'a value'; ALTER TABLE t ALTER COLUMN v SET DEFAULT 3");
    run(&mut a, "ALTER TABLE t ADD COLUMN late int DEFAULT 9");
    let about = "SELECT attname, attnum, col_description(attrelid, attnum) FROM pg_attribute
        WHERE attrelid = 't'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum";
    let before = run(&mut a, about);
    run(&mut a, "ALTER TABLE t ALTER COLUMN v TYPE numeric(10, 2)");
    run(&mut a, "ALTER TABLE t ALTER COLUMN v TYPE bigint");
    assert_eq!(run(&mut a, about), before);
    run(&mut a, "INSERT INTO t (id, u) VALUES (900000, 1)");
    assert_eq!(run(&mut a, "SELECT v, late FROM t WHERE id IN (7, 900000) ORDER BY id"), ["7|9", "3|9"]);
    run(&mut a, "CREATE INDEX t_v ON t (v)");
    run(&mut a, "ALTER TABLE t ADD COLUMN later int DEFAULT 5");
    run(&mut a, "UPDATE t SET v = 50 WHERE id = 8; ALTER TABLE t RENAME COLUMN v TO w");
    assert_eq!(run(&mut a, "SELECT id, w, later FROM t WHERE w = 50"), ["8|50|5"]);
    // One that is indexed goes by the gate.
    run(&mut a, "ALTER TABLE t ALTER COLUMN w TYPE int");
    assert_eq!(run(&mut a, "SELECT id, w, late, later FROM t WHERE w = 50"), ["8|50|9|5"]);
    run(&mut a, "ALTER TABLE t DROP COLUMN w");
    assert_eq!(run(&mut a, "SELECT * FROM t WHERE id = 8"), ["8|8|8|9|5"]);
    drop((a, db));
    assert_eq!(run(&mut session(&open(kv)), "SELECT * FROM t WHERE id = 8"), ["8|8|8|9|5"]);
}
