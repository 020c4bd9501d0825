//! Foreign keys without an index on the referring columns: who deletes the row referred to meets those who refer to it, and no other writer (decision 231).

use crate::node::{Node, Scratch, repeat_with, state};
use postgres::Client;
use std::sync::atomic::{AtomicBool, Ordering};

/// Parents that are deleted, each once, beside two writers; and those that are not.
const PARENTS: i32 = 40;

fn orphans(client: &mut Client) -> i64 {
    client.query_one("SELECT count(*) FROM c WHERE p NOT IN (SELECT id FROM p)", &[]).unwrap().get(0)
}

/// Deletes parents in blocks at READ COMMITTED while two sessions write children of all parents: what each statement of it came to.
fn deleted_beside_writers(client: &mut Client, writers: [Client; 2], action: &str) -> Vec<String> {
    client
        .batch_execute(&format!(
            "DROP TABLE IF EXISTS c, p;
             CREATE TABLE p (id int PRIMARY KEY, n int);
             CREATE TABLE c (id serial PRIMARY KEY, p int REFERENCES p ON DELETE {action}, n int);
             INSERT INTO p SELECT i, 0 FROM generate_series(1, {PARENTS} * 2) AS i;
             INSERT INTO c (p, n) SELECT {PARENTS} + 1 + i % {PARENTS}, 0 FROM generate_series(1, 3000) AS i",
        ))
        .unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (mut writer, seed) in writers.into_iter().zip([1, 7]) {
            let over = &over;
            scope.spawn(move || {
                writer.batch_execute("SET default_transaction_isolation = 'read committed'").unwrap();
                let mut n = seed;
                while !over.load(Ordering::Relaxed) {
                    n = (n * 31 + 11) % 4099;
                    let done = writer.execute("INSERT INTO c (p, n) VALUES ($1, 0)", &[&(1 + n % (2 * PARENTS))]);
                    let done =
                        done.and_then(|_| writer.execute("UPDATE c SET n = n + 1 WHERE id = $1", &[&(n % 3000)]));
                    if let Err(e) = done {
                        assert_eq!(state(&e), "23503", "{e}");
                    }
                }
            });
        }
        let mut came = Vec::new();
        client.batch_execute("SET default_transaction_isolation = 'read committed'").unwrap();
        for id in 1..=PARENTS {
            let all = [
                format!("DELETE FROM p WHERE id = {id}"),
                format!("UPDATE p SET n = n + 1 WHERE id = {id} + {PARENTS}"),
            ];
            let mut block = || {
                client.batch_execute("BEGIN")?;
                for sql in &all {
                    client.batch_execute(sql)?;
                }
                client.batch_execute("COMMIT")
            };
            let done = block();
            came.push(done.map_or_else(|e| state(&e).to_string(), |()| "00000".to_string()));
            client.batch_execute("ROLLBACK").unwrap();
        }
        over.store(true, Ordering::Relaxed);
        came
    })
}

#[test]
fn deletes_beside_writers_end_as_the_references_say() {
    repeat_with("unindexed::deletes_beside_writers_end_as_the_references_say");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut client = node.connect();
    for action in ["NO ACTION", "RESTRICT", "CASCADE", "SET NULL"] {
        let came = deleted_beside_writers(&mut client, [node.connect(), node.connect()], action);
        let refused = came.iter().filter(|state| *state == "23503").count();
        let done = came.iter().filter(|state| *state == "00000").count();
        assert_eq!(done + refused, came.len(), "{action}: {came:?}");
        assert!(!matches!(action, "CASCADE" | "SET NULL") || refused == 0, "{action}: {came:?}");
        assert_eq!(orphans(&mut client), 0, "{action}");
    }
}
