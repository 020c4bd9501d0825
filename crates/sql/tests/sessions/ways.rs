//! Rows that several indexes lead to (decision 237): what is read is the stretches and the rows, and nothing else of the table.

use super::{open, run, session, state_of};
use sql::transaction::memory::MemoryKv;

/// A block that reads by two indexes and writes elsewhere, beside a statement that commits meanwhile.
#[test]
fn what_is_read_by_several_indexes_is_what_they_lead_to() {
    let db = open(MemoryKv::new());
    let (mut a, mut b) = (session(&db), session(&db));
    run(
        &mut a,
        "CREATE TABLE u (id int PRIMARY KEY, s text, v int); INSERT INTO u SELECT g, 's' || g % 500, g FROM generate_series(1, 4000) g; \
         CREATE INDEX ON u (s); ANALYZE u; CREATE TABLE o (i int)",
    );
    let read = "SELECT count(*) FROM u WHERE id = 5 OR s = 's17'";
    assert!(run(&mut a, &format!("EXPLAIN {read}")).iter().any(|line| line.contains("BitmapOr")));
    for (write, state) in [
        ("UPDATE u SET v = v + 1 WHERE id = 900", "00000"),
        ("INSERT INTO u VALUES (5001, 's18', 1)", "00000"),
        ("UPDATE u SET v = v + 1 WHERE id = 5", "40001"),
        ("UPDATE u SET v = v + 1 WHERE id = 517", "40001"),
        ("INSERT INTO u VALUES (5002, 's17', 1)", "40001"),
        ("UPDATE u SET s = 's17' WHERE id = 900", "40001"),
        ("DELETE FROM u WHERE id = 5002", "40001"),
    ] {
        run(&mut a, &format!("BEGIN ISOLATION LEVEL SERIALIZABLE; {read}"));
        run(&mut b, write);
        let ended = match state_of(&mut a, "INSERT INTO o VALUES (1)") {
            written if written == "00000" => state_of(&mut a, "COMMIT"),
            refused => refused,
        };
        assert_eq!(ended, state, "{write}");
        state_of(&mut a, "ROLLBACK");
    }
}

/// Beyond the keys that are kept the table is read as a whole, and each row is there once.
#[test]
fn more_rows_than_are_kept_by_their_keys_are_there_once() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(
        &mut a,
        "CREATE TABLE u (id int PRIMARY KEY, k int UNIQUE, s text); CREATE INDEX ON u (s); \
         INSERT INTO u SELECT g, g, 's' || g % 100 FROM generate_series(1, 70000) g; \
         PREPARE q (int[]) AS SELECT count(*), count(DISTINCT id) FROM u WHERE k = ANY ($1) OR s = 's17'",
    );
    assert!(run(&mut a, "EXPLAIN EXECUTE q ('{1}')").iter().any(|line| line.contains("BitmapOr")));
    for count in [10, 1024, 65_000, 70_000] {
        let elements = (1..=count).map(|n: u32| n.to_string()).collect::<Vec<_>>().join(",");
        let others = (count + 1..=70_000).filter(|n| n % 100 == 17).count();
        let found = count as usize + others;
        assert_eq!(run(&mut a, &format!("EXECUTE q ('{{{elements}}}')")), [format!("{found}|{found}")]);
    }
}

/// Rows that are passed by do not count as read, so no index but one leads to them: LIMIT 1 of a queue goes by the order that is wanted.
#[test]
fn a_queue_is_read_in_its_order() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(
        &mut a,
        "CREATE TABLE q (id int PRIMARY KEY, due int, state text, owner text); CREATE INDEX ON q (state); CREATE INDEX ON q (owner); \
         CREATE INDEX ON q (due); INSERT INTO q SELECT g, 50000 - g, CASE WHEN g % 100 = 0 THEN 'new' ELSE 'done' END, 'o' || g % 500 \
         FROM generate_series(1, 20000) g; ANALYZE q",
    );
    let next = "SELECT id FROM q WHERE state = 'new' OR owner = 'o7' ORDER BY due LIMIT 1";
    let plan = |a: &mut _, tail: &str| run(a, &format!("EXPLAIN {next} {tail}")).join("\n");
    let skipping = plan(&mut a, "FOR UPDATE SKIP LOCKED");
    assert!(skipping.contains("Index Scan using q_due_idx") && !skipping.contains("BitmapOr"), "{skipping}");
    assert_eq!(run(&mut a, &format!("{next} FOR UPDATE SKIP LOCKED")), ["20000"]);
}
