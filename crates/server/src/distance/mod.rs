//! What SQL pays for distance: the round trips of its statements, one after the other, counted.
//!
//! # Problem
//! A statement at a node that does not lead asks others, and what it asks one after the other takes a round trip each. Nothing but time shows how many there
//! are, and on one machine a round trip takes none.
//!
//! # Idea
//! The sessions, plans and transactions of the product run over members in virtual time (`world`): each message takes as long, disks and work take nothing, and
//! nobody fails. So the time that a statement took, divided by what there and back takes, *is* the number of its sequential round trips. What is asked at a
//! commit takes two: to the leader and back, and between them the leader's to a majority.
//!
//! # What the numbers are
//! Of the node that runs the statement, not of its client, who is beside it: BEGIN and three more statements are five messages of a client. `requests` are the
//! messages to leaders that the node sent; those that go out together cost one round trip together. A statement is counted the second time that it runs: routes,
//! plans and blocks of numbers are known.
//!
//! The table stands in `docs/round-trips.md`, and this test fails when a number changes: `BLESS=1 cargo test -p timeball-server --lib distance` writes it anew.

mod growth;
mod page;
mod shell;
mod world;

use shell::Gateway;
use sql::context::EvalSettings;
use sql::output::Mark;
use sql::transaction::Interrupt;
use sql::types::Value;
use sql::{Database, DatabaseOptions, Field, Output, Session, SqlError, Startup};
use std::fmt::Write as _;
use std::sync::Arc;
use world::{ROUND_TRIP_US, World};

const NODES: u32 = 3;
/// Rows of a COPY, and of an INSERT of as many.
const COPIED_ROWS: usize = 10_000;

/// What a statement gave.
#[derive(Default)]
struct Answers {
    columns: usize,
    rows: usize,
    tag: String,
}

impl Output for Answers {
    fn row_description(&mut self, fields: &[Field], _: &[i16]) {
        self.columns = fields.len();
    }
    fn row(&mut self, _: &[Value], _: &[Field], _: &[i16], _: &EvalSettings) -> Result<(), SqlError> {
        self.rows += 1;
        Ok(())
    }
    fn command_complete(&mut self, tag: &str) {
        self.tag = tag.to_owned();
    }
    fn empty_query(&mut self) {}
    fn notice(&mut self, _: &SqlError) {}
    fn parameter_status(&mut self, _: &str, _: &str) {}
    fn copy_in(&mut self, _: usize, _: bool) {}
    fn copy_out(&mut self, _: usize, _: bool) {}
    fn copy_data(&mut self, _: &[u8]) -> Result<(), SqlError> {
        Ok(())
    }
    fn copy_done(&mut self) {}
    fn mark(&self) -> Mark {
        Mark(self.rows as u64)
    }
    fn rewind(&mut self, mark: Mark) -> bool {
        self.rows = mark.0 as usize;
        true
    }
}

/// A session at a node that leads nothing.
struct Far {
    world: Arc<World>,
    node: u32,
    session: Session,
}

/// What a piece of work cost.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cost {
    /// Tenths of a round trip, one after the other.
    round_trips_tenths: u64,
    requests: usize,
    /// What was asked together, in the order of time.
    waves: Vec<String>,
}

impl Far {
    /// Three nodes, one range.
    fn new() -> Far {
        let world = World::new(NODES);
        world.until("a leader", |world| !world.leaders().is_empty());
        world.go_on(5 * 1_000_000);
        let leads = *world.leaders().values().next().expect("one");
        let node = (1..=NODES).find(|node| *node != leads).expect("another");
        Far::at(world, node)
    }

    fn at(world: Arc<World>, node: u32) -> Far {
        let kv = Arc::new(Gateway::new(&world, node));
        let db = Database::open(kv, DatabaseOptions::default()).expect("it opens");
        let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
        let session = Session::new(db, startup, Interrupt::default()).expect("a session");
        Far { world, node, session }
    }

    #[track_caller]
    fn run(&mut self, sql: &str) -> Answers {
        let mut out = Answers::default();
        self.session.simple_query(sql, &mut out).unwrap_or_else(|e| panic!("{sql}: {e}"));
        out
    }

    #[track_caller]
    fn copy(&mut self, sql: &str, data: &str) -> Answers {
        let mut out = self.run(sql);
        self.session.copy_data(data.as_bytes()).unwrap_or_else(|e| panic!("{sql}: {e}"));
        self.session.copy_done(&mut out).unwrap_or_else(|e| panic!("{sql}: {e}"));
        out
    }

    /// What a piece of work costs.
    fn cost(&mut self, work: impl FnOnce(&mut Far)) -> Cost {
        // What others tell each other after a commit is over, and no tick is near.
        self.world.go_on(1_000_000 - self.world.now_us() % 1_000_000 + 10_000);
        let began_us = self.world.now_us();
        work(self);
        let took_us = self.world.now_us() - began_us;
        assert_eq!(self.world.leaders().values().filter(|leader| **leader == self.node).count(), 0, "it leads nothing");
        let asked = self.world.sent_since(self.node, began_us);
        let mut waves: Vec<(u64, Vec<&str>)> = Vec::new();
        // An outcome is told when the client has its answer.
        for sent in asked.iter().filter(|sent| !matches!(sent.kind, "outcome" | "forget")) {
            match waves.last_mut().filter(|(at, _)| *at == sent.at_us) {
                Some((_, kinds)) => kinds.push(sent.kind),
                None => waves.push((sent.at_us, vec![sent.kind])),
            }
        }
        Cost {
            round_trips_tenths: took_us * 10 / ROUND_TRIP_US,
            requests: waves.iter().map(|(_, kinds)| kinds.len()).sum(),
            waves: waves.into_iter().map(|(_, kinds)| together(&kinds)).collect(),
        }
    }
}

/// `get`, `4 get`, `get + lock`.
fn together(kinds: &[&str]) -> String {
    let mut out = String::new();
    for group in kinds.chunk_by(|a, b| a == b) {
        let plus = if out.is_empty() { "" } else { " + " };
        let count = if group.len() > 1 { format!("{} ", group.len()) } else { String::new() };
        let _ = write!(out, "{plus}{count}{}", group[0]);
    }
    out
}

/// 1,000 accounts of 10 owners, 100 of each kind; entries that refer to them.
fn made(apart: bool) -> Far {
    let mut far = Far::new();
    far.run("CREATE TABLE owner (id int PRIMARY KEY, name text)");
    far.run("CREATE TABLE account (id int PRIMARY KEY, owner int, kind int, balance int)");
    far.run("CREATE INDEX account_kind ON account (kind)");
    far.run("CREATE TABLE entry (id int PRIMARY KEY, batch int, account int REFERENCES account, amount int)");
    far.run("CREATE INDEX entry_batch ON entry (batch)");
    far.run("CREATE TABLE copied (id int PRIMARY KEY, value text)");
    far.run("CREATE TABLE ticket (id serial PRIMARY KEY, value text)");
    if apart {
        for table in ["owner", "account", "entry", "copied", "ticket"] {
            far.run(&format!("ALTER TABLE {table} SPLIT AT VALUES (-1000000)"));
        }
        far.run("ALTER TABLE account SPLIT AT VALUES (500)");
        far.run("ALTER INDEX account_kind SPLIT AT VALUES (-1000000)");
        far.run("ALTER INDEX entry_batch SPLIT AT VALUES (-1000000)");
    }
    far.run("INSERT INTO owner SELECT n, 'owner ' || n FROM generate_series(0, 99) n");
    far.run("INSERT INTO account SELECT n, n / 10, n % 10, 100 FROM generate_series(0, 999) n");
    far.run("INSERT INTO entry SELECT n, n / 10, n * 37 % 1000, 1 FROM generate_series(0, 99) n");
    far.run("ANALYZE");
    far
}

/// A piece of work, with its number: it is done twice.
type Work = fn(&mut Far, usize);

const WORK: &[(&str, Work)] = &[
    ("SELECT by key", |far, _| {
        assert_eq!(far.run("SELECT * FROM account WHERE id = 7").rows, 1);
    }),
    ("SELECT by secondary index, 100 rows", |far, _| {
        assert_eq!(far.run("SELECT * FROM account WHERE kind = 7").rows, 100);
    }),
    ("SELECT by 100 keys (IN)", |far, _| {
        let keys: Vec<String> = (0..100).map(|n| (n * 9).to_string()).collect();
        assert_eq!(far.run(&format!("SELECT * FROM account WHERE id IN ({})", keys.join(", "))).rows, 100);
    }),
    ("SELECT, three tables joined from 10 rows", |far, _| {
        let sql =
            "SELECT * FROM entry e JOIN account a ON a.id = e.account JOIN owner o ON o.id = a.owner WHERE e.batch = 3";
        assert_eq!(far.run(sql).rows, 10);
    }),
    ("SELECT FOR UPDATE by key", |far, _| {
        assert_eq!(far.run("SELECT * FROM account WHERE id = 7 FOR UPDATE").rows, 1);
    }),
    ("INSERT, 1 row", |far, n| {
        assert_eq!(far.run(&format!("INSERT INTO account VALUES ({}, 1, 100, 5)", 2000 + n)).tag, "INSERT 0 1");
    }),
    ("INSERT, 1 row with a serial key", |far, _| {
        assert_eq!(far.run("INSERT INTO ticket (value) VALUES ('x')").tag, "INSERT 0 1");
    }),
    ("INSERT, 1,000 rows", |far, n| {
        let rows: Vec<String> = (0..1000).map(|m| format!("({}, 1, 101, 5)", 10_000 * (n + 1) + m)).collect();
        assert_eq!(far.run(&format!("INSERT INTO account VALUES {}", rows.join(", "))).tag, "INSERT 0 1000");
    }),
    ("INSERT, 1 row with a foreign key", |far, n| {
        assert_eq!(far.run(&format!("INSERT INTO entry VALUES ({}, 50, 7, 5)", 1000 + n)).tag, "INSERT 0 1");
    }),
    ("INSERT, 100 rows with foreign keys to 100 rows", |far, n| {
        let rows: Vec<String> = (0..100).map(|m| format!("({}, 60, {}, 5)", 2000 + 100 * n + m, m * 3)).collect();
        assert_eq!(far.run(&format!("INSERT INTO entry VALUES {}", rows.join(", "))).tag, "INSERT 0 100");
    }),
    ("INSERT .. ON CONFLICT DO UPDATE, 1 row that is there", |far, n| {
        let sql = format!(
            "INSERT INTO account VALUES (8, 1, 8, {n}) ON CONFLICT (id) DO UPDATE SET balance = excluded.balance"
        );
        assert_eq!(far.run(&sql).tag, "INSERT 0 1");
    }),
    ("INSERT .. ON CONFLICT DO NOTHING, 1 row that is there", |far, _| {
        let sql = "INSERT INTO account VALUES (8, 1, 8, 0) ON CONFLICT DO NOTHING";
        assert_eq!(far.run(sql).tag, "INSERT 0 0");
    }),
    ("UPDATE by key", |far, _| {
        assert_eq!(far.run("UPDATE account SET balance = balance + 1 WHERE id = 9").tag, "UPDATE 1");
    }),
    ("UPDATE by range, 100 rows", |far, _| {
        let sql = "UPDATE account SET balance = balance + 1 WHERE id BETWEEN 450 AND 549";
        assert_eq!(far.run(sql).tag, "UPDATE 100");
    }),
    ("UPDATE by secondary index, 100 rows", |far, _| {
        assert_eq!(far.run("UPDATE account SET balance = balance + 1 WHERE kind = 5").tag, "UPDATE 100");
    }),
    ("DELETE by key", |far, n| {
        assert_eq!(far.run(&format!("DELETE FROM account WHERE id = {}", 2000 + n)).tag, "DELETE 1");
    }),
    ("BEGIN, two SELECT and two UPDATE by key, COMMIT", |far, _| {
        far.run("BEGIN");
        assert_eq!(far.run("SELECT balance FROM account WHERE id = 20").rows, 1);
        assert_eq!(far.run("SELECT balance FROM account WHERE id = 21").rows, 1);
        assert_eq!(far.run("UPDATE account SET balance = balance - 1 WHERE id = 20").tag, "UPDATE 1");
        assert_eq!(far.run("UPDATE account SET balance = balance + 1 WHERE id = 21").tag, "UPDATE 1");
        assert_eq!(far.run("COMMIT").tag, "COMMIT");
    }),
    ("the same, at READ COMMITTED", |far, _| {
        far.run("BEGIN ISOLATION LEVEL READ COMMITTED");
        assert_eq!(far.run("SELECT balance FROM account WHERE id = 20").rows, 1);
        assert_eq!(far.run("SELECT balance FROM account WHERE id = 21").rows, 1);
        assert_eq!(far.run("UPDATE account SET balance = balance - 1 WHERE id = 20").tag, "UPDATE 1");
        assert_eq!(far.run("UPDATE account SET balance = balance + 1 WHERE id = 21").tag, "UPDATE 1");
        assert_eq!(far.run("COMMIT").tag, "COMMIT");
    }),
    ("COPY, 10,000 rows", |far, n| {
        let line = |m| format!("{}\tvalue {m}\n", n * COPIED_ROWS + m);
        let data: String = (0..COPIED_ROWS).map(line).collect();
        assert_eq!(far.copy("COPY copied FROM STDIN", &data).tag, "COPY 10000");
    }),
    ("INSERT .. SELECT, 10,000 rows", |far, n| {
        let first = (n + 10) * COPIED_ROWS;
        let series = format!("generate_series({first}, {})", first + COPIED_ROWS - 1);
        let done = far.run(&format!("INSERT INTO copied SELECT n, 'value ' || n FROM {series} n"));
        assert_eq!(done.tag, "INSERT 0 10000");
    }),
    ("the same, ON CONFLICT DO NOTHING", |far, n| {
        assert_eq!(far.run(&copied_or_nothing(n + 20)).tag, "INSERT 0 10000");
    }),
    ("BEGIN, the same, COMMIT", |far, n| {
        far.run("BEGIN");
        assert_eq!(far.run(&copied_or_nothing(n + 30)).tag, "INSERT 0 10000");
        far.run("COMMIT");
    }),
];

fn copied_or_nothing(turn: usize) -> String {
    let first = turn * COPIED_ROWS;
    let series = format!("generate_series({first}, {})", first + COPIED_ROWS - 1);
    format!("INSERT INTO copied SELECT n, 'value ' || n FROM {series} n ON CONFLICT DO NOTHING")
}

/// The costs of all work, the second time that it is done.
fn costs(apart: bool) -> Vec<Cost> {
    let mut far = made(apart);
    WORK.iter()
        .map(|(_, work)| {
            far.cost(|far| work(far, 0));
            far.cost(|far| work(far, 1))
        })
        .collect()
}

#[test]
fn round_trips_are_those_of_the_page() {
    let (whole, apart) = (costs(false), costs(true));
    let names = WORK.iter().map(|(name, _)| *name);
    page::compare(&page::table(names.zip(whole.iter().zip(&apart))));
}

#[test]
fn one_run_is_as_another() {
    let one = || {
        let mut far = made(false);
        WORK.iter().take(6).map(|(_, work)| far.cost(|far| work(far, 0))).collect::<Vec<_>>()
    };
    assert_eq!(one(), one());
}

/// A session that leads nothing, which knows a table; and another that is at the leader.
fn far_and_leader() -> (Far, Far) {
    let mut far = Far::new();
    far.run("CREATE TABLE t (id int PRIMARY KEY, a int)");
    far.run("INSERT INTO t SELECT n, n * 10 FROM generate_series(1, 9) n");
    let leader = *far.world.leaders().values().next().expect("one");
    let near = Far::at(far.world.clone(), leader);
    (far, near)
}

#[test]
fn what_was_planned_by_a_presumed_catalog_is_repeated_by_the_present_one() {
    let (mut far, mut near) = far_and_leader();
    let all = "SELECT * FROM t WHERE id = 1";
    assert_eq!(far.run(all).columns, 2);
    near.run("ALTER TABLE t ADD COLUMN b int");
    assert_eq!(far.run(all).columns, 3);

    // A portal is told of by the present one.
    far.session.parse("known", "SELECT * FROM t WHERE id = $1", &[]).expect("it parses");
    far.session.sync().expect("nothing to end");
    near.run("ALTER TABLE t ADD COLUMN c int");
    far.session.parse("", "SELECT * FROM t WHERE id = $1", &[]).expect("it parses");
    far.session.bind("", "", &[Some(b"1")], &[], &[]).expect("it binds");
    assert_eq!(far.session.describe_portal("", true).expect("it has a shape").0.map(<[Field]>::len), Some(4));
    let mut out = Answers::default();
    far.session.execute("", 0, true, &mut out).expect("it runs");
    far.session.sync().expect("it ends");
    assert_eq!(out.rows, 1);
}

#[test]
fn no_error_is_told_at_parse_by_a_presumed_catalog() {
    let (mut far, mut near) = far_and_leader();
    far.run("SELECT * FROM t WHERE id = 1");
    near.run("CREATE TABLE u (id int PRIMARY KEY)");
    far.session.parse("known", "SELECT * FROM t WHERE id = 1", &[]).expect("it parses");
    far.session.parse("new", "SELECT * FROM u", &[]).expect("the table is there");
    far.session.sync().expect("nothing to end");
}

#[test]
fn values_that_were_read_by_a_presumed_catalog_are_no_others() {
    let (mut far, mut near) = far_and_leader();
    far.run("SELECT * FROM t WHERE id = 1");
    near.run("ALTER TABLE t ALTER COLUMN a TYPE text");
    far.session.parse("", "SELECT id FROM t WHERE a = $1", &[]).expect("it parses");
    far.session.bind("", "", &[Some(b"10")], &[], &[]).expect("it binds");
    let refused = far.session.execute("", 0, true, &mut Answers::default()).expect_err("other types");
    assert_eq!(refused.state.as_str(), "0A000", "{refused}");
    far.session.fail();
    far.session.sync().expect("nothing to end");
    far.session.bind("", "", &[Some(b"10")], &[], &[]).expect("it binds");
    let mut out = Answers::default();
    far.session.execute("", 0, true, &mut out).expect("it runs");
    assert_eq!(out.rows, 1);
}

#[test]
fn a_limit_leaves_the_rows_behind_it_to_others() {
    let (mut far, mut near) = far_and_leader();
    far.run("BEGIN");
    assert_eq!(far.run("SELECT * FROM t WHERE id IN (1, 2, 3) LIMIT 1 FOR UPDATE").rows, 1);
    near.run("BEGIN");
    assert_eq!(near.run("SELECT * FROM t WHERE id = 2 FOR UPDATE NOWAIT").rows, 1);
    near.run("COMMIT");
    far.run("COMMIT");
}
