//! Statements that try things (whether a text still means the same, whether two expressions are one) and are ended while they try: that is
//! no answer to what was tried.

use super::{Rows, run};
use sql::transaction::memory::MemoryKv;
use sql::transaction::{BeginOptions, Interrupt, Kv, KvError, Transaction};
use sql::work::{UNITS_PER_LOOK, looks, step};
use sql::{Database, DatabaseOptions, Session, SqlError, Startup};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Raises the interrupt when the clock is read so often: each look reads it.
struct Counted {
    kv: MemoryKv,
    interrupt: Interrupt,
    left: Arc<AtomicI64>,
    /// The looks there had been by then.
    raised_at: Arc<AtomicU64>,
}

impl Kv for Counted {
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Transaction>, KvError> {
        self.kv.begin(options)
    }
    below!();
    fn monotonic_us(&self) -> i64 {
        if self.left.fetch_sub(1, Relaxed) == 1 {
            self.interrupt.raise();
            self.raised_at.store(looks(), Relaxed);
        }
        self.kv.now_us()
    }
    fn freshest(&self, least: clock::Timestamp) -> clock::Timestamp {
        self.kv.freshest(least)
    }
}

struct World {
    session: Session,
    left: Arc<AtomicI64>,
    raised_at: Arc<AtomicU64>,
    /// The looks of the last statement behind the one that ended it.
    behind: u64,
}

/// What a statement gives in a block of its own, and what the view is then.
type Outcome = Result<(Vec<String>, Vec<String>), SqlError>;

impl World {
    fn new() -> World {
        let (interrupt, left) = (Interrupt::default(), Arc::new(AtomicI64::new(i64::MAX)));
        let raised_at = Arc::new(AtomicU64::new(0));
        let kv = Counted {
            kv: MemoryKv::new(),
            interrupt: interrupt.clone(),
            left: left.clone(),
            raised_at: raised_at.clone(),
        };
        let db = Database::open(Arc::new(kv), DatabaseOptions::default()).expect("open");
        let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
        World { session: Session::new(db, startup, interrupt).expect("session"), left, raised_at, behind: 0 }
    }
    fn attempt(&mut self, sql: &str) -> Outcome {
        run(&mut self.session, "BEGIN");
        let mut out = Rows::default();
        let done = self.session.simple_query(sql, &mut out);
        self.left.store(i64::MAX, Relaxed);
        self.behind = looks() - self.raised_at.load(Relaxed);
        let view = match done {
            Ok(()) => Ok(run(&mut self.session, "SELECT pg_get_viewdef('v'::regclass)")),
            Err(error) => Err(error),
        };
        run(&mut self.session, "ROLLBACK");
        view.map(|view| (out.rows, view))
    }
}

/// Long enough for a look in each pass over it.
const TEXT_BYTES: usize = UNITS_PER_LOOK / 8;

fn statements() -> Vec<String> {
    let long = "x".repeat(TEXT_BYTES);
    vec![
        format!("CREATE OR REPLACE VIEW v (p, q) AS SELECT a, '{long}'::text FROM t WHERE d > '2/1/2026'"),
        "ALTER TABLE t RENAME COLUMN a TO z".into(),
        "ALTER TABLE t RENAME TO u".into(),
        "ALTER VIEW v RENAME COLUMN p TO r".into(),
        "ALTER TABLE t DROP COLUMN spare".into(),
        "ALTER SCHEMA s RENAME TO s2".into(),
        "CREATE INDEX ON t (spare) WHERE d > '2/1/2026'".into(),
        format!(
            "SELECT length(c || '{long}'), count(*) FROM t GROUP BY c || '{long}', t.a HAVING length(c || '{long}') > 1"
        ),
        format!("SELECT grouping(c || '{long}') FROM t GROUP BY ROLLUP (c || '{long}')"),
        "SELECT length(pg_get_viewdef('v'::regclass))".into(),
        format!("SELECT CASE WHEN a > 0 THEN '{long}'::varchar(3) END FROM t"),
    ]
}

fn world() -> World {
    let mut world = World::new();
    let long = "y".repeat(TEXT_BYTES);
    run(
        &mut world.session,
        "CREATE SCHEMA s; SET search_path = s, s2, public; SET DateStyle = 'ISO, MDY';
         CREATE TABLE t (a int PRIMARY KEY, c text, spare int, d date); INSERT INTO t VALUES (1, 'c', 1, '2026-03-01')",
    );
    run(&mut world.session, &format!("CREATE VIEW v (p, q) AS SELECT a, '{long}'::text FROM t WHERE d > '2/1/2026'"));
    world
}

#[test]
fn who_is_cancelled_while_he_tries_is_cancelled() {
    let mut world = world();
    for sql in statements() {
        let shown = &sql[..sql.len().min(60)];
        let whole = world.attempt(&sql).unwrap_or_else(|e| panic!("{shown}: {e}"));
        let mut cancelled = 0;
        // Looks lie elsewhere where something was done before.
        for phase in 0..2 {
            for after in 1.. {
                step(UNITS_PER_LOOK).unwrap();
                step(phase * UNITS_PER_LOOK / 2).unwrap();
                world.left.store(after, Relaxed);
                let outcome = world.attempt(&sql);
                match outcome {
                    Ok(done) => {
                        assert!(done == whole, "{shown}: another answer, cancelled at the look {after}");
                        break;
                    }
                    Err(error) => assert_eq!(error.state.as_str(), "57014", "{shown} at the look {after}: {error}"),
                }
                cancelled += 1;
            }
        }
        assert!(cancelled >= 2, "{shown}: {cancelled} looks");
    }
}

/// Folding takes an error for "this is no constant" and goes on with the next one: a cancel is none of those.
#[test]
fn a_cancel_ends_folding() {
    // One finds the end, one may be that of who tells it.
    const BEHIND_MAX: u64 = 2;
    let mut world = world();
    let lengths =
        |n: usize| (0..n).map(|n| format!("octet_length(repeat('{n}', {UNITS_PER_LOOK}))")).collect::<Vec<_>>();
    for sql in [format!("SELECT {}", lengths(8).join(", ")), format!("SELECT {}", lengths(8).join(" + "))] {
        let whole = world.attempt(&sql).unwrap();
        for after in 1.. {
            step(UNITS_PER_LOOK).unwrap();
            world.left.store(after, Relaxed);
            match world.attempt(&sql) {
                Ok(done) => {
                    assert!(done == whole, "another answer, cancelled at the look {after}");
                    assert!(after > 8, "{after} looks");
                    break;
                }
                Err(error) => assert_eq!(error.state.as_str(), "57014", "at the look {after}: {error}"),
            }
            assert!(world.behind <= BEHIND_MAX, "{} looks behind the look {after}, which ended it", world.behind);
        }
    }
}

/// A ping has no statement whose time could be over, and leaves none to the next one.
#[test]
fn an_empty_query_leaves_no_deadline() {
    let kv = MemoryKv::new();
    let mut a = super::session(&super::open(kv.clone()));
    run(&mut a, "SET statement_timeout = '1s'");
    run(&mut a, " ; ");
    kv.advance_us(2_000_000);
    assert_eq!(run(&mut a, "SELECT 1"), ["1"]);
    a.parse("", "", &[]).unwrap();
    a.bind("", "", &[], &[], &[]).unwrap();
    a.execute("", 0, true, &mut Rows::default()).unwrap();
    a.sync().unwrap();
    kv.advance_us(2_000_000);
    assert_eq!(run(&mut a, "SELECT 1"), ["1"]);
}
