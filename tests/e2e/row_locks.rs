//! Row locks between real sessions: who waits for whom, and what a savepoint gives back.

use crate::node::{Node, Scratch, repeat_with, state, until};
use postgres::Client;

fn start(scratch: &Scratch) -> Node {
    let node = Node::start(&scratch.path().join("store"), &[]);
    node.connect()
        .batch_execute(
            "CREATE TABLE p (id int4 PRIMARY KEY, code text UNIQUE, n int4);
             INSERT INTO p SELECT i, 'c' || i, 0 FROM generate_series(1, 9) i",
        )
        .unwrap();
    node
}

fn is_locked(client: &mut Client, id: i32, how: &str) -> bool {
    match client.query(&format!("SELECT n FROM p WHERE id = {id} FOR {how} NOWAIT"), &[]) {
        Ok(_) => false,
        Err(e) => {
            assert_eq!(state(&e), "55P03", "{e}");
            true
        }
    }
}

/// PostgreSQL's table of conflicts, by what SELECT asks for and by what statements take.
#[test]
fn the_four_strengths_and_who_stands_beside_whom() {
    repeat_with("row_locks::the_four_strengths_and_who_stands_beside_whom");
    let scratch = Scratch::new();
    let node = start(&scratch);
    let (mut one, mut two) = (node.connect(), node.connect());
    let asked = ["KEY SHARE", "SHARE", "NO KEY UPDATE", "UPDATE"];
    let mut beside = |held: &str| {
        one.batch_execute(&format!("BEGIN; {held}")).unwrap();
        let free: Vec<&str> = asked.into_iter().filter(|how| !is_locked(&mut two, 1, how)).collect();
        one.batch_execute("ROLLBACK").unwrap();
        free
    };
    let select = |how: &str| format!("SELECT * FROM p WHERE id = 1 FOR {how}");
    assert_eq!(beside(&select("KEY SHARE")), ["KEY SHARE", "SHARE", "NO KEY UPDATE"]);
    assert_eq!(beside(&select("SHARE")), ["KEY SHARE", "SHARE"]);
    assert_eq!(beside(&select("NO KEY UPDATE")), ["KEY SHARE"]);
    assert_eq!(beside(&select("UPDATE")), [""; 0]);
    assert_eq!(
        beside("SELECT p.id FROM p, p AS q WHERE p.id = 1 AND q.id = 2 FOR KEY SHARE OF p"),
        ["KEY SHARE", "SHARE", "NO KEY UPDATE"]
    );
    assert_eq!(beside("SELECT p.id FROM p, p AS q WHERE p.id = 1 AND q.id = 2 FOR NO KEY UPDATE OF q"), asked);
    assert_eq!(beside("UPDATE p SET n = 1 WHERE id = 1"), ["KEY SHARE"]);
    assert_eq!(beside("UPDATE p SET n = 1 WHERE n = 0"), ["KEY SHARE"], "found by a scan");
    assert_eq!(beside("INSERT INTO p VALUES (1, 'x', 2) ON CONFLICT (id) DO UPDATE SET n = 2"), ["KEY SHARE"]);
    assert_eq!(beside("UPDATE p SET id = 100 WHERE id = 1"), [""; 0]);
    assert_eq!(beside("UPDATE p SET code = 'new' WHERE id = 1"), [""; 0], "any unique key");
    assert_eq!(beside("DELETE FROM p WHERE id = 1"), [""; 0]);
    // Keys go by what changes, not by what is set.
    for stays in [
        "UPDATE p SET id = 1, code = code, n = 3 WHERE id = 1",
        "UPDATE p SET id = id, code = 'c1' WHERE code = 'c1'",
        "UPDATE p SET id = id, code = 'c' || id WHERE n = 0 AND id < 3",
        "UPDATE p SET id = q.id FROM p AS q WHERE p.id = q.id AND q.code = 'c1'",
        "INSERT INTO p VALUES (1, 'c1', 2) ON CONFLICT (id) DO UPDATE SET id = excluded.id, code = excluded.code, n = 2",
        "INSERT INTO p VALUES (1, 'c1', 2) ON CONFLICT (code) DO UPDATE SET id = excluded.id, code = excluded.code, n = 2",
    ] {
        assert_eq!(beside(stays), ["KEY SHARE"], "{stays}");
    }
    for changes in [
        "UPDATE p SET id = id, code = 'new' WHERE id = 1",
        "UPDATE p SET id = id + 100 WHERE n = 0",
        "UPDATE p SET code = NULL WHERE code = 'c1'",
        "UPDATE p SET code = code || random() WHERE id = 1",
        "UPDATE p SET id = q.id + 100 FROM p AS q WHERE p.id = q.id AND q.code = 'c1'",
        "INSERT INTO p VALUES (1, 'x', 2) ON CONFLICT (id) DO UPDATE SET id = excluded.id, code = excluded.code, n = 2",
        "INSERT INTO p VALUES (100, 'c1', 2) ON CONFLICT (code) DO UPDATE SET id = excluded.id, n = 2",
    ] {
        assert_eq!(beside(changes), [""; 0], "{changes}");
    }
}

/// Programs that write all columns of a row as they were stand beside those who refer to it; who changes the key waits for them, and finds them.
#[test]
fn keys_that_are_set_are_locked_by_what_becomes_of_them() {
    repeat_with("row_locks::keys_that_are_set_are_locked_by_what_becomes_of_them");
    let scratch = Scratch::new();
    let node = start(&scratch);
    let (mut one, mut two) = (node.connect(), node.connect());
    one.batch_execute("CREATE TABLE c (id int4 PRIMARY KEY, p int4 REFERENCES p (id), code text REFERENCES p (code))")
        .unwrap();
    for isolation in ["SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"] {
        // Apart: a block that is begun in the middle of a text keeps what the text began with, as PostgreSQL's does.
        one.batch_execute("DELETE FROM c").unwrap();
        one.batch_execute(&format!(
            "BEGIN ISOLATION LEVEL {isolation}; INSERT INTO c VALUES (1, 1, NULL), (2, NULL, 'c2')"
        ))
        .unwrap();
        two.batch_execute(&format!("SET default_transaction_isolation = '{isolation}'")).unwrap();
        for id in [1, 2] {
            let sql = "UPDATE p SET id = id, code = 'c' || $1::text, n = n + 1 WHERE id = $2";
            two.execute(sql, &[&id.to_string(), &id]).unwrap();
        }
        for change in ["UPDATE p SET id = 100 WHERE id = 1", "UPDATE p SET code = code || '!' WHERE id = 2"] {
            let mut three = node.connect();
            three
                .batch_execute(&format!("SET default_transaction_isolation = '{isolation}'; SET lock_timeout = '1ms'"))
                .unwrap();
            let waits = three.execute(change, &[]).unwrap_err();
            assert_eq!(state(&waits), "55P03", "{isolation}: {change}: {waits}");
        }
        let mut three = node.connect();
        let level = isolation.to_string();
        let waiter = std::thread::spawn(move || {
            three.batch_execute(&format!("SET default_transaction_isolation = '{level}'")).unwrap();
            three.execute("UPDATE p SET id = 100, n = n WHERE id = 1", &[]).unwrap_err()
        });
        until("the waiter waits", || (node.metric("lock_waiters")? == 1.0).then_some(()));
        one.batch_execute("COMMIT").unwrap_or_else(|e| panic!("{isolation}: {e}"));
        let refused = waiter.join().unwrap();
        assert_eq!(state(&refused), "23503", "{isolation}: {refused}");
    }
}

/// Rows that refer to a key come while others change it, and set it to what it was: no reference is left without its row.
#[test]
fn references_and_changes_of_keys_leave_no_orphan() {
    repeat_with("row_locks::references_and_changes_of_keys_leave_no_orphan");
    const ROUNDS: i32 = 60;
    let scratch = Scratch::new();
    let node = start(&scratch);
    node.connect()
        .batch_execute(
            "CREATE TABLE c (id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, p int4 REFERENCES p (id));
             CREATE INDEX ON c (p)",
        )
        .unwrap();
    let done: i32 = std::thread::scope(|scope| {
        let (node, mut all) = (&node, Vec::new());
        for (worker, level) in ["read committed", "serializable"].into_iter().cycle().take(6).enumerate() {
            all.push(scope.spawn(move || {
                let mut client = node.connect();
                client.batch_execute(&format!("SET default_transaction_isolation = '{level}'")).unwrap();
                let (mut done, key) = (0, "(SELECT min(id) FROM p)");
                for round in 0..ROUNDS {
                    let sql = match worker / 2 {
                        0 => format!("INSERT INTO c (p) SELECT min(id) FROM p HAVING {round} >= 0"),
                        1 => format!("UPDATE p SET id = CASE {round} % 3 WHEN 0 THEN id + 10 ELSE id END, n = n + 1 WHERE id = {key}"),
                        _ => format!("DELETE FROM c WHERE p = {key}"),
                    };
                    match client.execute(&sql, &[]) {
                        Ok(_) => done += 1,
                        Err(e) => assert!(["23503", "40001", "40P01", "23505"].contains(&state(&e)), "{sql}: {e}"),
                    }
                }
                done
            }));
        }
        all.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(done > ROUNDS, "{done} of {} statements did something", 6 * ROUNDS);
    let orphans = "SELECT count(*) FROM c WHERE p NOT IN (SELECT id FROM p)";
    assert_eq!(node.connect().query_one(orphans, &[]).unwrap().get::<_, i64>(0), 0);
}

/// A row that another refers to: it may change, also before the other commits; it cannot be deleted meanwhile.
#[test]
fn a_reference_stands_beside_updates_of_its_row() {
    repeat_with("row_locks::a_reference_stands_beside_updates_of_its_row");
    let scratch = Scratch::new();
    let node = start(&scratch);
    let (mut one, mut two) = (node.connect(), node.connect());
    one.batch_execute("CREATE TABLE c (id int4 PRIMARY KEY, p int4 REFERENCES p (id), code text REFERENCES p (code))")
        .unwrap();
    for isolation in ["SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"] {
        // Apart: a block that is begun in the middle of a text keeps what the text began with, as PostgreSQL's does.
        one.batch_execute("DELETE FROM c").unwrap();
        one.batch_execute(&format!(
            "BEGIN ISOLATION LEVEL {isolation}; INSERT INTO c VALUES (1, 1, NULL), (2, NULL, 'c2')"
        ))
        .unwrap();
        for id in [1, 2] {
            two.execute("UPDATE p SET n = n + 1 WHERE id = $1", &[&id]).unwrap();
            assert!(is_locked(&mut two, id, "UPDATE"), "{isolation}: row {id} is referred to");
        }
        one.batch_execute("COMMIT").unwrap_or_else(|e| panic!("{isolation}: {e}"));
        let refused = two.execute("DELETE FROM p WHERE id = 1", &[]).unwrap_err();
        assert_eq!(state(&refused), "23503", "{refused}");
    }
}

/// A parent's DELETE or change of its key in a block waits for who refers to it, and sees the reference that came meanwhile, though nobody wrote the parent's table.
#[test]
fn who_waited_for_a_reference_sees_it() {
    repeat_with("row_locks::who_waited_for_a_reference_sees_it");
    let scratch = Scratch::new();
    let node = start(&scratch);
    let mut one = node.connect();
    for (action, expected, left) in [
        ("", Err("23503"), Some(3)),
        ("ON DELETE CASCADE ON UPDATE CASCADE", Ok(1), None),
        ("ON DELETE SET NULL ON UPDATE SET NULL", Ok(1), Some(0)),
    ] {
        for (nr, write) in [(3, "DELETE FROM p WHERE id = 3"), (4, "UPDATE p SET id = 40 WHERE id = 4")] {
            one.batch_execute(&format!(
                "DROP TABLE IF EXISTS c; TRUNCATE p; INSERT INTO p SELECT i, 'c' || i, 0 FROM generate_series(1, 9) i;
                 CREATE TABLE c (id int4 PRIMARY KEY, p int4 REFERENCES p (id) {action}); CREATE INDEX ON c (p)"
            ))
            .unwrap();
            one.batch_execute(&format!("BEGIN; INSERT INTO c VALUES (9, {nr})")).unwrap();
            let mut two = node.connect();
            let waiter = std::thread::spawn(move || {
                two.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED").unwrap();
                let done = two.execute(write, &[]).map_err(|e| state(&e).to_string());
                two.batch_execute("COMMIT").unwrap_or_else(|e| panic!("{write} {action}: {e}"));
                done
            });
            until("the waiter waits", || (node.metric("lock_waiters")? == 1.0).then_some(()));
            one.batch_execute("COMMIT").unwrap();
            let done = waiter.join().unwrap();
            assert_eq!(done.as_ref().map_err(String::as_str), expected.as_ref().map_err(|e| *e), "{write} {action}");
            let child: Option<Option<i32>> = one.query_opt("SELECT p FROM c", &[]).unwrap().map(|row| row.get(0));
            let wanted = match (left, action.contains("CASCADE"), nr) {
                (Some(0), ..) => Some(None),
                (_, true, 4) => Some(Some(40)),
                (None, ..) => None,
                (Some(_), ..) => Some(Some(nr)),
            };
            assert_eq!(child, wanted, "{write} {action}");
        }
    }
}

#[test]
fn rollback_to_a_savepoint_frees_what_was_locked_since() {
    repeat_with("row_locks::rollback_to_a_savepoint_frees_what_was_locked_since");
    let scratch = Scratch::new();
    let node = start(&scratch);
    let (mut one, mut two) = (node.connect(), node.connect());
    one.batch_execute(
        "BEGIN; SELECT * FROM p WHERE id = 1 FOR UPDATE; SELECT * FROM p WHERE id = 4 FOR KEY SHARE; SAVEPOINT a;
         UPDATE p SET n = 1 WHERE id = 2; SAVEPOINT b; DELETE FROM p WHERE id = 3; SELECT * FROM p WHERE id = 4 FOR UPDATE",
    )
    .unwrap();
    let locked = |client: &mut Client, how: &str| (1..=4).filter(|id| is_locked(client, *id, how)).collect::<Vec<_>>();
    assert_eq!(locked(&mut two, "UPDATE"), [1, 2, 3, 4]);
    one.batch_execute("ROLLBACK TO b").unwrap();
    assert_eq!(locked(&mut two, "UPDATE"), [1, 2, 4], "what was locked before the savepoint stays locked");
    assert_eq!(locked(&mut two, "NO KEY UPDATE"), [1, 2], "and as strongly as before");
    // Somebody who waits is let go on, not only who asks afterwards.
    let mut three = node.connect();
    let waiter = std::thread::spawn(move || three.execute("UPDATE p SET n = 7 WHERE id = 2", &[]).unwrap());
    until("the waiter waits", || (node.metric("lock_waiters")? == 1.0).then_some(()));
    one.batch_execute("ROLLBACK TO a").unwrap();
    assert_eq!(waiter.join().unwrap(), 1);
    assert_eq!(locked(&mut two, "UPDATE"), [1, 4]);
    // A failed statement in between, as a driver's savepoint around each statement has it.
    one.batch_execute("SAVEPOINT c; UPDATE p SET n = 9 WHERE id = 5").unwrap();
    one.batch_execute("SELECT 1 / 0").unwrap_err();
    assert!(is_locked(&mut two, 5, "UPDATE"));
    one.batch_execute("ROLLBACK TO c").unwrap();
    assert!(!is_locked(&mut two, 5, "UPDATE"));
    one.batch_execute("COMMIT").unwrap();
    assert_eq!(locked(&mut two, "UPDATE"), [0; 0]);
}

/// READ COMMITTED and REPEATABLE READ: a row held FOR KEY SHARE is updated beside it, and both commit.
#[test]
fn a_row_held_for_its_key_is_updated_beside_it() {
    repeat_with("row_locks::a_row_held_for_its_key_is_updated_beside_it");
    let scratch = Scratch::new();
    let node = start(&scratch);
    let (mut one, mut two) = (node.connect(), node.connect());
    for (id, isolation) in [(1, "READ COMMITTED"), (2, "REPEATABLE READ")] {
        let begin = format!("BEGIN ISOLATION LEVEL {isolation}; SELECT * FROM p WHERE id = {id} FOR KEY SHARE");
        one.batch_execute(&begin).unwrap();
        two.execute("UPDATE p SET n = n + 1 WHERE id = $1", &[&id]).unwrap();
        assert!(is_locked(&mut two, id, "UPDATE"), "{isolation}: the key stays");
        one.execute("INSERT INTO p VALUES ($1 + 10, NULL, 0)", &[&id]).unwrap();
        one.batch_execute("COMMIT").unwrap();
    }
    let n: i64 = two.query_one("SELECT sum(n) FROM p", &[]).unwrap().get(0);
    assert_eq!(n, 2);
}

/// Many sessions hold and update one row in all strengths; what is locked FOR UPDATE or FOR SHARE does not change meanwhile, whatever
/// the others do, and no update is lost.
#[test]
fn a_locked_row_stays_as_it_is() {
    repeat_with("row_locks::a_locked_row_stays_as_it_is");
    const ROUNDS: i32 = 40;
    let scratch = Scratch::new();
    let node = start(&scratch);
    let updates: i32 = std::thread::scope(|scope| {
        let (node, mut all) = (&node, Vec::new());
        for how in ["UPDATE", "SHARE", "NO KEY UPDATE", "KEY SHARE", "UPDATE", "KEY SHARE"] {
            all.push(scope.spawn(move || {
                let mut client = node.connect();
                client.batch_execute("SET default_transaction_isolation = 'read committed'").unwrap();
                let mut done = 0;
                for _ in 0..ROUNDS {
                    let mut txn = client.transaction().unwrap();
                    let read = format!("SELECT n, code FROM p WHERE id = 1 FOR {how}");
                    let seen: (i32, String) = txn.query_one(&read, &[]).map(|r| (r.get(0), r.get(1))).unwrap();
                    let again: (i32, String) =
                        txn.query_one("SELECT n, code FROM p WHERE id = 1", &[]).map(|r| (r.get(0), r.get(1))).unwrap();
                    if how != "KEY SHARE" {
                        assert_eq!(seen, again, "locked FOR {how}");
                    }
                    assert_eq!(seen.1, again.1, "the key stays FOR {how}");
                    if how.ends_with("UPDATE") {
                        txn.execute("UPDATE p SET n = $1 WHERE id = 1", &[&(again.0 + 1)]).unwrap();
                        done += 1;
                    }
                    txn.commit().unwrap();
                }
                done
            }));
        }
        all.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let n: i32 = node.connect().query_one("SELECT n FROM p WHERE id = 1", &[]).unwrap().get(0);
    assert_eq!(n, updates, "an update was lost");
}

/// Queues as people write them: workers take each job once, none waits for another, none is told to try again.
#[test]
fn queues_give_each_job_once() {
    repeat_with("row_locks::queues_give_each_job_once");
    const WORKERS: usize = 4;
    const JOBS: i32 = 60;
    const NEXT: &str = "SELECT id FROM q WHERE state = 'ready' ORDER BY at FOR UPDATE SKIP LOCKED LIMIT 1";
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE q (id int4 PRIMARY KEY, state text, at int4)").unwrap();
    for take in [
        format!("WITH job AS ({NEXT}) UPDATE q SET state = 'taken' FROM job WHERE q.id = job.id RETURNING q.id"),
        format!("UPDATE q SET state = 'taken' WHERE id = ({NEXT}) RETURNING id"),
        format!("UPDATE q SET state = 'taken' FROM ({NEXT}) j WHERE q.id = j.id RETURNING q.id"),
        format!("DELETE FROM q WHERE id IN ({NEXT}) RETURNING id"),
        format!("WITH job AS ({NEXT}) DELETE FROM q USING job WHERE q.id = job.id RETURNING q.id"),
    ] {
        client
            .batch_execute(&format!(
                "DELETE FROM q; INSERT INTO q SELECT i, 'ready', {JOBS} - i FROM generate_series(1, {JOBS}) i"
            ))
            .unwrap();
        let taken: Vec<i32> = std::thread::scope(|scope| {
            let worker = || {
                let mut client = node.connect();
                client.batch_execute("SET default_transaction_isolation = 'read committed'").unwrap();
                let mut taken = Vec::new();
                loop {
                    let rows = client.query(&take, &[]).unwrap_or_else(|e| panic!("{take}: {e:?}"));
                    match rows.first() {
                        Some(row) => taken.push(row.get::<_, i32>(0)),
                        // Others may hold the last ones, and give them back: they do not, here.
                        None => return taken,
                    }
                }
            };
            let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        let mut once = taken.clone();
        once.sort_unstable();
        assert_eq!(once, (1..=JOBS).collect::<Vec<_>>(), "{take}");
    }
}
