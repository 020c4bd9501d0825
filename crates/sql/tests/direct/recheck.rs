//! UPDATE and DELETE at READ COMMITTED of rows that change between the look at them and their lock.

use crate::world::World;
use sql::SqlError;
use sql::context::{Sequences, StatementContext};
use sql::plan::Execution;
use sql::transaction::{BeginOptions, Isolation, Kv, TxnRef};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first `lastval()` lets another transaction commit a statement: right in the middle of the one that calls it.
struct Meddler {
    world: Arc<World>,
    statement: &'static str,
    done: AtomicBool,
}

impl Sequences for Meddler {
    fn next(&self, _: u32) -> Result<i64, SqlError> {
        Ok(0)
    }
    fn current(&self, _: u32) -> Result<i64, SqlError> {
        Ok(0)
    }
    fn last(&self) -> Result<i64, SqlError> {
        if !self.done.swap(true, Ordering::Relaxed) {
            self.world.run(self.statement)?;
        }
        Ok(0)
    }
    fn set(&self, _: u32, value: i64, _: bool) -> Result<i64, SqlError> {
        Ok(value)
    }
}

/// The table after a statement in the middle of which another one was committed.
fn meet(isolation: Isolation, text: &str, meddling: &'static str) -> Result<Vec<String>, SqlError> {
    let world = Arc::new(World::new());
    for setup in [
        "CREATE TABLE t (id int PRIMARY KEY, n int)",
        "CREATE TABLE s (id int PRIMARY KEY, d int)",
        "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
        "INSERT INTO s VALUES (1, 1), (2, 2), (3, 3)",
    ] {
        world.run(setup)?;
    }
    let plan = world.prepare(text)?;
    let txn = TxnRef::new(world.kv.begin(&BeginOptions { isolation, ..BeginOptions::default() })?);
    let meddler = Meddler { world: world.clone(), statement: meddling, done: AtomicBool::new(false) };
    let mut context = StatementContext::clone(&world.context(&txn, Vec::new()));
    context.sequences = Arc::new(meddler);
    let Execution::Done { tag, .. } = plan.execute(&Arc::new(context))? else { panic!("{text} writes nothing") };
    txn.with(|txn| txn.commit())?;
    let mut lines = vec![tag];
    lines.extend(world.run("SELECT * FROM t ORDER BY id")?.lines());
    Ok(lines)
}

/// One that the direct path runs, then those that a query locates.
const UPDATES: [&str; 4] = [
    "UPDATE t SET n = t.n + s.d FROM s WHERE s.id = t.id AND t.n < 25 + lastval()",
    "UPDATE t SET n = t.n + x.d FROM (SELECT id, sum(d) AS d FROM s GROUP BY id) x WHERE x.id = t.id AND t.n < 25 + lastval()",
    "UPDATE t SET n = n + (SELECT d FROM s WHERE s.id = t.id) WHERE n < 25 + lastval()",
    "WITH x AS (SELECT * FROM s) UPDATE t SET n = t.n + x.d FROM x WHERE x.id = t.id AND t.n < 25 + lastval()",
];

#[test]
fn where_and_set_are_computed_again_of_a_row_that_changed() {
    for text in UPDATES {
        let meet = |meddling| meet(Isolation::ReadCommitted, text, meddling).unwrap();
        // Still meant: neither change is lost.
        assert_eq!(meet("UPDATE t SET n = n + 5 WHERE id = 1"), ["UPDATE 2", "1|16", "2|22", "3|30"], "{text}");
        // Meant no more, or gone.
        assert_eq!(meet("UPDATE t SET n = n + 50 WHERE id = 1"), ["UPDATE 1", "1|60", "2|22", "3|30"], "{text}");
        assert_eq!(meet("DELETE FROM t WHERE id = 2"), ["UPDATE 1", "1|11", "3|30"], "{text}");
        // Meant only now: the statement is about the rows of its own snapshot.
        assert_eq!(meet("UPDATE t SET n = 0 WHERE id = 3"), ["UPDATE 2", "1|11", "2|22", "3|0"], "{text}");
    }
}

#[test]
fn where_is_asked_again_before_a_row_that_changed_is_deleted() {
    for text in [
        "DELETE FROM t USING s WHERE s.id = t.id AND t.n <= s.d * 10 + lastval()",
        "DELETE FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.id AND t.n <= s.d * 10) AND lastval() = 0",
    ] {
        let meet = |meddling| meet(Isolation::ReadCommitted, text, meddling).unwrap();
        assert_eq!(meet("UPDATE t SET n = n + 1 WHERE id = 2"), ["DELETE 2", "2|21"], "{text}");
        assert_eq!(meet("UPDATE t SET n = n - 1 WHERE id = 2"), ["DELETE 3"], "{text}");
    }
}

#[test]
fn at_repeatable_read_the_statement_fails_instead() {
    for text in UPDATES {
        let error = meet(Isolation::RepeatableRead, text, "UPDATE t SET n = n + 5 WHERE id = 1").unwrap_err();
        assert_eq!(error.state.as_str(), "40001", "{text}");
    }
}
