//! Changes of the catalog beside each other and beside writers (decision 103).

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::{Rows, open, run, session, state_of};
use sql::transaction::Interrupt;
use sql::transaction::memory::MemoryKv;
use sql::{Database, DatabaseOptions, Session, Startup};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

#[test]
fn a_statement_that_meets_a_change_is_planned_anew_at_read_committed() {
    let db = open(MemoryKv::new());
    let (mut a, mut b) = (session(&db), session(&db));
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v int); CREATE TABLE u (id int); INSERT INTO t VALUES (1, 0)");
    run(&mut b, "BEGIN; UPDATE t SET v = 1 WHERE id = 1");
    run(&mut a, "BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO u VALUES (1)");
    let waiter = thread::spawn(move || {
        let rows = run(&mut a, "UPDATE t SET v = v + 10 WHERE id = 1 RETURNING *");
        run(&mut a, "COMMIT");
        rows
    });
    while run(&mut session(&db), "SELECT count(*) FROM pg_locks WHERE NOT granted") == ["0"] {
        thread::yield_now();
    }
    run(&mut b, "ALTER TABLE t ADD COLUMN w int DEFAULT 5; COMMIT");
    assert_eq!(waiter.join().expect("the waiter"), ["1|11|5"]);
    assert_eq!(run(&mut b, "SELECT count(*) FROM u"), ["1"]);
}

#[test]
fn sessions_create_at_the_same_time() {
    const SESSIONS: usize = 4;
    const TABLES: usize = 12;
    let db = open(MemoryKv::new());
    let together = Arc::new(Barrier::new(SESSIONS));
    let threads = (0..SESSIONS).map(|number| {
        let (db, together) = (db.clone(), together.clone());
        thread::spawn(move || {
            let mut own = session(&db);
            together.wait();
            for table in 0..TABLES {
                run(&mut own, &format!("CREATE TABLE own_{number}_{table} (id serial PRIMARY KEY, v int UNIQUE)"));
                run(&mut own, &format!("CREATE TABLE IF NOT EXISTS one_{table} (id int PRIMARY KEY)"));
                run(&mut own, &format!("INSERT INTO one_{table} VALUES ({number})"));
            }
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().expect("no session fails"));
    let mut a = session(&db);
    let tables = "SELECT count(*), count(DISTINCT relname) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
    let expected = (SESSIONS + 1) * TABLES;
    assert_eq!(run(&mut a, tables), [format!("{expected}|{expected}")]);
    for table in 0..TABLES {
        assert_eq!(run(&mut a, &format!("SELECT count(*) FROM one_{table}")), [SESSIONS.to_string()]);
    }
}

/// What one session has done in its open transaction.
#[derive(Clone, Copy)]
enum Effect {
    Create(usize),
    Drop(usize),
    Rename(usize, usize),
    Insert(usize, u64, u64),
}

/// Chance that can be repeated.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
    fn table(&mut self) -> usize {
        self.below(TABLES) as usize
    }
}

const SESSIONS: u64 = 4;
const TABLES: u64 = 3;
const VALUES: u64 = 3;
const STEPS: usize = 250;

/// Tables by number, with their rows.
type Model = BTreeMap<usize, BTreeMap<u64, u64>>;

/// Applies what a committed transaction did.
fn apply(model: &mut Model, effects: &[Effect]) -> Result<(), String> {
    for effect in effects {
        match *effect {
            Effect::Create(table) if !model.contains_key(&table) => drop(model.insert(table, BTreeMap::new())),
            Effect::Drop(table) if model.contains_key(&table) => drop(model.remove(&table)),
            Effect::Rename(from, to) if model.contains_key(&from) && !model.contains_key(&to) => {
                let rows = model.remove(&from).unwrap_or_default();
                model.insert(to, rows);
            }
            Effect::Insert(table, id, v) if model.contains_key(&table) => {
                model.entry(table).or_default().insert(id, v);
            }
            Effect::Create(table) => return Err(format!("t{table} was created twice")),
            Effect::Drop(table) => return Err(format!("t{table} was dropped twice")),
            Effect::Rename(from, to) => return Err(format!("t{from} was renamed to t{to}, which cannot be")),
            Effect::Insert(table, ..) => return Err(format!("t{table} was written when it had gone")),
        }
    }
    Ok(())
}

/// Every table holds what it should, by whatever way it is read.
fn compare(a: &mut Session, model: &Model) -> Result<(), String> {
    let mut ask = |sql: &str| {
        let mut out = Rows::default();
        a.simple_query(sql, &mut out).map_err(|e| format!("{sql}: {e}"))?;
        Ok::<_, String>(out.rows)
    };
    let names = ask("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 't_' ORDER BY 1")?;
    let expected: Vec<String> = model.keys().map(|table| format!("t{table}")).collect();
    if names != expected {
        return Err(format!("tables {names:?} instead of {expected:?}"));
    }
    for (table, rows) in model {
        let expected: Vec<String> = rows.iter().map(|(id, v)| format!("{id}|{v}")).collect();
        let found = ask(&format!("SELECT id, v FROM t{table} ORDER BY id"))?;
        if found != expected {
            return Err(format!("t{table}: {found:?} instead of {expected:?}"));
        }
        for value in 0..VALUES {
            let expected: Vec<String> =
                rows.iter().filter(|(_, v)| **v == value).map(|(id, _)| id.to_string()).collect();
            let found = ask(&format!("SELECT id FROM t{table} WHERE v = {value} ORDER BY id"))?;
            if found != expected {
                return Err(format!("t{table} by its index: {found:?} instead of {expected:?}"));
            }
        }
    }
    Ok(())
}

/// Sessions change the catalog and write, one step of one of them after another. Gives the number of commits.
fn interleave(kv: MemoryKv, seed: u64) -> Result<usize, String> {
    // Nobody is waited for: what is tried here is what is left then.
    let options = DatabaseOptions { waits_for_users: false, ..DatabaseOptions::default() };
    let db = Database::open(Arc::new(kv), options).expect("open");
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut checker = session(&db);
    let mut sessions: Vec<(Session, Option<Vec<Effect>>)> = (0..SESSIONS).map(|_| (session(&db), None)).collect();
    // Nobody else runs meanwhile: what it would wait for does not come.
    sessions.iter_mut().for_each(|(one, _)| drop(run(one, "SET lock_timeout = '1ms'")));
    let (mut model, mut commits, mut id) = (Model::new(), 0, 0);
    for _ in 0..STEPS {
        let at = chance.below(SESSIONS) as usize;
        let (one, block) = &mut sessions[at];
        let choice = chance.below(12);
        if choice == 0 && block.is_none() {
            let isolation = ["READ COMMITTED", "SERIALIZABLE", "REPEATABLE READ"][chance.below(3) as usize];
            run(one, &format!("BEGIN ISOLATION LEVEL {isolation}"));
            *block = Some(Vec::new());
            continue;
        }
        let done = if choice <= 2 && block.is_some() {
            let effects = block.take().unwrap_or_default();
            (state_of(one, "COMMIT") == "00000").then_some(effects)
        } else {
            let table = chance.table();
            let (sql, effect) = match choice {
                3 => (format!("CREATE TABLE t{table} (id int PRIMARY KEY, v int)"), Some(Effect::Create(table))),
                4 => (format!("DROP TABLE t{table}"), Some(Effect::Drop(table))),
                5 => {
                    let to = chance.table();
                    (format!("ALTER TABLE t{table} RENAME TO t{to}"), Some(Effect::Rename(table, to)))
                }
                6 | 7 => (format!("CREATE INDEX i{table} ON t{table} (v)"), None),
                8 => (format!("DROP INDEX i{table}"), None),
                _ => {
                    id += 1;
                    let v = chance.below(VALUES);
                    (format!("INSERT INTO t{table} VALUES ({id}, {v})"), Some(Effect::Insert(table, id, v)))
                }
            };
            match (state_of(one, &sql).as_str(), &mut *block) {
                ("00000", Some(effects)) => {
                    effects.extend(effect);
                    None
                }
                ("00000", None) => Some(effect.into_iter().collect()),
                (_, Some(_)) => {
                    run(one, "ROLLBACK");
                    *block = None;
                    None
                }
                (_, None) => None,
            }
        };
        if let Some(effects) = done {
            commits += 1;
            apply(&mut model, &effects)?;
            compare(&mut checker, &model)?;
        }
    }
    Ok(commits)
}

#[test]
fn changes_and_writes_interleave() {
    for seed in 1..=30 {
        let commits = interleave(MemoryKv::new(), seed).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        assert!(commits > 20, "seed {seed}: {commits} commits");
    }
}

/// The negative control: a writer goes by an old plan, and misses a new index.
#[test]
fn a_descriptor_that_is_not_certified_is_noticed() {
    let broken: Vec<String> = (1..=30).filter_map(|seed| interleave(MemoryKv::careless(), seed).err()).collect();
    assert!(broken.iter().any(|what| what.contains("by its index")), "{broken:?}");
    assert!(broken.iter().any(|what| !what.contains("by its index")), "{broken:?}");
}

/// What a lone change comes to that waits until `first` has ended.
fn waits(db: &Arc<Database>, mut waiting: Session, sql: &str, first: &mut Session, then: &[&str]) -> (Session, String) {
    let sql = sql.to_string();
    let waiter = thread::spawn(move || {
        let state = state_of(&mut waiting, &sql);
        (waiting, state)
    });
    let mut asking = session(db);
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while run(&mut asking, waits) == ["0"] {
        assert!(!waiter.is_finished(), "it does not wait");
        thread::yield_now();
    }
    then.iter().for_each(|sql| drop(run(first, sql)));
    waiter.join().expect("the waiter")
}

fn changed() -> (Arc<Database>, Session, Session) {
    let db = open(MemoryKv::new());
    let (mut a, b) = (session(&db), session(&db));
    run(&mut a, "CREATE TABLE p (id int PRIMARY KEY, v int); CREATE TABLE c (id int PRIMARY KEY, p int)");
    run(&mut a, "INSERT INTO p VALUES (1, 0), (2, 0); INSERT INTO c VALUES (1, 1)");
    (db, a, b)
}

/// A block that has written to a table goes on writing there, and commits, whoever changes the table meanwhile: he waits, at every level, inside of a block and outside.
#[test]
fn who_changes_a_table_waits_for_who_has_written_to_it() {
    for isolation in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        for change in [
            "ALTER TABLE p ADD COLUMN w int DEFAULT 7",
            "ALTER TABLE p DROP COLUMN v",
            "ALTER TABLE p ALTER COLUMN v TYPE bigint",
            "ALTER TABLE p RENAME TO q",
            "CREATE INDEX ON p (v)",
            "ALTER TABLE p ADD CHECK (v >= 0)",
            "ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p",
            "CREATE TABLE n (id int REFERENCES p)",
            "TRUNCATE p",
            "DROP TABLE p",
        ] {
            for block in ["", "BEGIN ISOLATION LEVEL READ COMMITTED"] {
                let (db, mut a, mut b) = changed();
                run(&mut a, &format!("BEGIN ISOLATION LEVEL {isolation}; INSERT INTO p VALUES (3, 0)"));
                run(&mut b, block);
                let then = ["INSERT INTO p VALUES (4, 0)", "COMMIT"];
                let (mut b, state) = waits(&db, b, change, &mut a, &then);
                assert_eq!(state, "00000", "{isolation}: {block} {change}");
                assert_eq!(state_of(&mut b, "COMMIT"), "00000", "{isolation}: {block} {change}");
            }
        }
    }
}

/// Others are let alone: those of other tables and databases, and those who only read.
#[test]
fn who_changes_a_table_waits_for_nobody_else() {
    let (db, mut a, mut b) = changed();
    let mut c = session(&db);
    run(&mut b, "CREATE DATABASE other");
    run(&mut b, "SET lock_timeout = '1ms'");
    run(&mut a, "BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO p VALUES (3, 0)");
    run(&mut c, "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT * FROM c");
    assert_eq!(state_of(&mut b, "ALTER TABLE p ADD COLUMN w int"), "55P03", "he who wrote is waited for");
    run(
        &mut b,
        "CREATE TABLE n (id int); ALTER TABLE c ADD COLUMN w int; ALTER TABLE n ADD COLUMN w int; DROP TABLE n",
    );
    let startup = Startup { user: "root".into(), database: "other".into(), ..Startup::default() };
    let mut elsewhere = Session::new(db.clone(), startup, Interrupt::default()).expect("session");
    run(
        &mut elsewhere,
        "SET lock_timeout = '1ms'; CREATE TABLE p (id int); ALTER TABLE p ADD COLUMN w int; DROP TABLE p",
    );
    assert_eq!(run(&mut c, "SELECT * FROM c"), ["1|1|"], "planned anew");
    run(&mut c, "COMMIT");
    run(&mut a, "INSERT INTO p VALUES (4, 0); COMMIT");
    run(&mut b, "ALTER TABLE p ADD COLUMN w int");
}

/// An open change in one database is met by nobody in another, and in its own by those who need the same object only.
#[test]
fn changes_of_two_databases_do_not_meet() {
    let (db, mut a, mut b) = changed();
    run(&mut b, "CREATE DATABASE other");
    run(&mut b, "SET lock_timeout = '1ms'");
    let startup = Startup { user: "root".into(), database: "other".into(), ..Startup::default() };
    let mut elsewhere = Session::new(db.clone(), startup, Interrupt::default()).expect("session");
    run(&mut elsewhere, "CREATE TABLE p (id int PRIMARY KEY, v int); SET lock_timeout = '1ms'");
    run(&mut a, "BEGIN; CREATE TABLE made (id int); ALTER TABLE p ADD COLUMN w int; DROP TABLE c");
    for sql in [
        "CREATE TABLE made (id int PRIMARY KEY)",
        "ALTER TABLE p ADD COLUMN w int",
        "CREATE INDEX ON p (v)",
        "INSERT INTO p VALUES (1, 2, 3)",
        "ALTER TABLE p RENAME TO c",
        "BEGIN; DROP TABLE c; CREATE SCHEMA s; CREATE TABLE s.c (id int); COMMIT",
    ] {
        run(&mut elsewhere, sql);
    }
    assert_eq!(state_of(&mut b, "CREATE TABLE made (id int)"), "55P03");
    assert_eq!(state_of(&mut b, "ALTER TABLE p ADD COLUMN other int"), "55P03");
    run(&mut b, "CREATE TABLE besides (id int); ALTER TABLE besides ADD COLUMN v int");
    run(&mut a, "COMMIT");
    assert_eq!(run(&mut a, "SELECT count(*) FROM made"), ["0"]);
    run(&mut b, "ALTER TABLE p ADD COLUMN other int");
}

/// New blocks do not keep a change from ever coming: it waits for those that it finds, a few times. A block that it has not found may be refused at its COMMIT.
#[test]
fn a_change_comes_though_blocks_follow_blocks() {
    const BLOCKS: usize = 3;
    let (db, mut a, b) = changed();
    let done = Arc::new(AtomicBool::new(false));
    let blocks: Vec<_> = (0..BLOCKS)
        .map(|number| {
            let (db, done) = (db.clone(), done.clone());
            thread::spawn(move || {
                let mut own = session(&db);
                let mut id = 100 + number;
                while !done.load(Ordering::Relaxed) {
                    id += BLOCKS;
                    run(&mut own, "BEGIN ISOLATION LEVEL READ COMMITTED");
                    let insert = format!("INSERT INTO p (id, v) VALUES ({id}, 0)");
                    let update = format!("UPDATE p SET v = 1 WHERE id = {id}");
                    let states = [insert.as_str(), &update, "COMMIT"].map(|sql| state_of(&mut own, sql));
                    let known = |state: &String| ["00000", "40001", "25P02"].contains(&state.as_str());
                    assert!(states.iter().all(known), "{states:?}");
                }
            })
        })
        .collect();
    let mut b = b;
    for n in 0..5 {
        run(&mut b, &format!("ALTER TABLE p ADD COLUMN w{n} int DEFAULT {n}"));
    }
    done.store(true, Ordering::Relaxed);
    blocks.into_iter().for_each(|block| block.join().expect("a block"));
    assert_eq!(run(&mut a, "SELECT count(*) FROM p WHERE v = 1 AND w4 IS DISTINCT FROM 4"), ["0"]);
}

/// Two blocks that would wait for each other: what a block has done before it cannot give up, so it does not wait.
#[test]
fn changes_that_wait_for_each_other_go_on() {
    let (_, mut a, mut b) = changed();
    run(&mut a, "BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO p VALUES (3, 0)");
    run(&mut b, "BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO c VALUES (3, 0)");
    let change = |mut one: Session, sql: &'static str| {
        thread::spawn(move || [state_of(&mut one, sql), state_of(&mut one, "COMMIT")])
    };
    let both = [change(a, "ALTER TABLE c ADD COLUMN w int"), change(b, "ALTER TABLE p ADD COLUMN w int")];
    let ends = both.map(|one| one.join().expect("one of both"));
    let known = |state: &String| ["00000", "40001", "40P01"].contains(&state.as_str());
    assert!(ends.iter().flatten().all(known), "{ends:?}");
    assert!(ends.iter().any(|[_, commit]| commit == "00000"), "{ends:?}");
}

/// A block that has done something waits, too, at each level.
#[test]
fn a_block_that_has_done_something_waits() {
    for change in ["CREATE INDEX ON p (v)", "ALTER TABLE p ADD COLUMN w int DEFAULT 7"] {
        let (_, mut a, mut b) = changed();
        run(&mut a, "BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO p VALUES (3, 0)");
        run(&mut b, "SET lock_timeout = '1ms'");
        for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
            run(&mut b, &format!("BEGIN ISOLATION LEVEL {level}; INSERT INTO c VALUES (3, 0)"));
            assert_eq!(state_of(&mut b, change), "55P03", "{change}");
            run(&mut b, "ROLLBACK");
        }
        run(&mut a, "COMMIT");
        assert_eq!(run(&mut a, "SELECT count(*) FROM p"), ["3"]);
    }
}

/// Who is waited for changes the table himself: whoever waits holds nothing.
#[test]
fn who_waits_holds_nothing() {
    for block in ["", "BEGIN ISOLATION LEVEL READ COMMITTED", "BEGIN ISOLATION LEVEL SERIALIZABLE"] {
        let (db, mut a, mut b) = changed();
        run(&mut a, "SET lock_timeout = '1ms'; BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO p VALUES (3, 0)");
        run(&mut b, block);
        let then = ["ALTER TABLE p ADD COLUMN x int DEFAULT 5", "INSERT INTO p VALUES (4, 0)", "COMMIT"];
        let (mut b, state) = waits(&db, b, "ALTER TABLE p ADD COLUMN w int DEFAULT 7", &mut a, &then);
        assert_eq!(state, "00000", "{block}");
        run(&mut b, "COMMIT");
        assert_eq!(run(&mut b, "SELECT * FROM p WHERE id > 2"), ["3|0|5|7", "4|0|5|7"], "{block}");
    }
}

/// Who is waited for may wait for somebody else as long as he likes.
#[test]
fn who_waits_for_another_is_waited_for() {
    let (db, mut a, b) = changed();
    let mut slow = session(&db);
    run(&mut slow, "BEGIN; UPDATE c SET p = 2 WHERE id = 1");
    run(&mut a, "BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO p VALUES (3, 0)");
    let a = thread::spawn(move || ["UPDATE c SET p = 1 WHERE id = 1", "COMMIT"].map(|sql| state_of(&mut a, sql)));
    while run(&mut session(&db), "SELECT count(*) FROM pg_locks WHERE NOT granted") == ["0"] {
        thread::yield_now();
    }
    let mut b = b;
    let change = thread::spawn(move || state_of(&mut b, "ALTER TABLE p ADD COLUMN w int"));
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'ALTER%'";
    while run(&mut session(&db), waiting) == ["0"] {
        assert!(!change.is_finished(), "it waits");
        thread::yield_now();
    }
    run(&mut slow, "COMMIT");
    assert_eq!(a.join().expect("the block"), ["00000", "00000"]);
    assert_eq!(change.join().expect("the change"), "00000");
}

/// A lock that outlives transactions is held while its session waits: whoever is waited for, and waits for it, is not waited for for ever.
#[test]
fn a_circle_through_an_advisory_lock_ends() {
    let (db, mut a, mut b) = changed();
    run(&mut b, "SELECT pg_advisory_lock(1)");
    run(&mut a, "BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO p VALUES (3, 0)");
    let a = thread::spawn(move || ["SELECT pg_advisory_lock(1)", "COMMIT"].map(|sql| state_of(&mut a, sql)));
    while run(&mut session(&db), "SELECT count(*) FROM pg_locks WHERE NOT granted") == ["0"] {
        thread::yield_now();
    }
    assert_eq!(state_of(&mut b, "ALTER TABLE p ADD COLUMN w int"), "00000");
    run(&mut b, "SELECT pg_advisory_unlock(1)");
    assert_eq!(a.join().expect("the block"), ["00000", "40001"]);
}

/// Whatever ends a statement ends its wait, and what was said in the block holds there.
#[test]
fn a_wait_for_writers_is_ended_as_others_are() {
    let (_, mut a, mut b) = changed();
    run(&mut a, "BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO p VALUES (3, 0)");
    for (setting, state) in [("statement_timeout = '1ms'", "57014"), ("lock_timeout = '1ms'", "55P03")] {
        run(&mut b, &format!("BEGIN; SET LOCAL {setting}"));
        assert_eq!(state_of(&mut b, "ALTER TABLE p ADD COLUMN w int"), state);
        assert_eq!(state_of(&mut b, "SELECT 1"), "25P02");
        run(&mut b, "ROLLBACK");
    }
    run(&mut a, "COMMIT");
    run(&mut b, "ALTER TABLE p ADD COLUMN w int");
}

/// Changes of other tables are nothing to who plans, binds and describes what writes to this one, nor to a block that has set a savepoint.
#[test]
fn changes_of_other_tables_are_not_heard_of() {
    let (db, mut a, mut b) = changed();
    let done = Arc::new(AtomicBool::new(false));
    let ends = done.clone();
    let changes = thread::spawn(move || {
        let mut count = 0;
        while !ends.load(Ordering::Relaxed) || count < 10 {
            run(&mut b, "CREATE TABLE n (id int); ALTER TABLE n ADD COLUMN v int");
            run(&mut b, "ALTER TABLE n ADD COLUMN w int");
            run(&mut b, "DROP TABLE n");
            count += 1;
        }
    });
    for id in 10..150 {
        let sql = format!("INSERT INTO p VALUES ({id}, $1)");
        a.parse("", &sql, &[]).expect("Parse");
        a.describe_statement("").expect("Describe");
        a.bind("", "", &[Some(b"1")], &[], &[]).expect("Bind");
        a.describe_portal("", true).expect("Describe of the portal");
        a.execute("", 0, true, &mut Rows::default()).expect("Execute");
        a.sync().expect("Sync");
    }
    let mut c = session(&db);
    for id in 150..200 {
        let level = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"][id % 3];
        run(&mut c, &format!("BEGIN ISOLATION LEVEL {level}; SAVEPOINT s"));
        run(&mut c, &format!("INSERT INTO p VALUES ({id}, 1); COMMIT"));
    }
    done.store(true, Ordering::Relaxed);
    changes.join().expect("no change fails");
    assert_eq!(run(&mut c, "SELECT count(*) FROM p WHERE id >= 10"), ["190"]);
}
