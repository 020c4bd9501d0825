//! Keys of partial and expression indexes that an open block gives up: whoever wants them waits for it (decision 210).

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::waits::{KEY_WAITS, until};
use super::{Rows, open, run, session};
use sql::transaction::memory::MemoryKv;
use std::thread;

/// How a key goes, and what its taker's row has.
const GOES: [(&str, &str, i32); 4] = [
    ("UPDATE e SET t = 'x' WHERE id = 1", "t1", 500),
    ("UPDATE e SET v = 77 WHERE id = 1", "y", 1),
    ("UPDATE e SET v = 500 WHERE id = 1", "y", 1),
    ("DELETE FROM e WHERE id = 1", "t1", 1),
];

#[test]
fn keys_of_partial_and_expression_indexes_that_go_are_waited_for() {
    for (goes, t, v) in GOES {
        for begin in ["", "BEGIN ISOLATION LEVEL READ COMMITTED;"] {
            for (takes, refused) in [
                (format!("INSERT INTO e VALUES (20, '{t}', {v})"), "23505"),
                (format!("INSERT INTO e VALUES (20, '{t}', {v}) ON CONFLICT DO NOTHING"), "INSERT 0 0"),
                (format!("UPDATE e SET id = 20, t = '{t}', v = {v} WHERE id = 2"), "23505"),
            ] {
                for end in ["COMMIT", "ROLLBACK"] {
                    let db = open(MemoryKv::new());
                    let (mut a, mut b, mut asking) = (session(&db), session(&db), session(&db));
                    run(&mut a, "CREATE TABLE e (id int PRIMARY KEY, t text, v int)");
                    run(&mut a, "CREATE UNIQUE INDEX ON e (lower(t)); CREATE UNIQUE INDEX ON e (v) WHERE v < 100");
                    run(&mut a, "INSERT INTO e VALUES (1, 'T1', 1), (2, 'T2', 2)");
                    run(&mut a, &format!("BEGIN ISOLATION LEVEL READ COMMITTED; {goes}"));
                    let (begin, sql) = (begin.to_owned(), takes.clone());
                    let taking = thread::spawn(move || {
                        if !begin.is_empty() {
                            run(&mut b, &begin);
                        }
                        let mut out = Rows::default();
                        let done = b.simple_query(&sql, &mut out);
                        if !begin.is_empty() {
                            run(&mut b, "COMMIT");
                        }
                        done.map_or_else(|e| e.state.as_str().to_owned(), |()| out.tags.concat())
                    });
                    until(&mut asking, KEY_WAITS, "1");
                    run(&mut a, end);
                    let done = taking.join().expect("who takes it");
                    let case = format!("{goes}; {takes}; {end}");
                    match end {
                        "COMMIT" => assert!(["INSERT 0 1", "UPDATE 1"].contains(&done.as_str()), "{case}: {done}"),
                        _ => assert_eq!(done, refused, "{case}"),
                    }
                    let there = run(&mut asking, "SELECT count(*) FROM e WHERE id = 20");
                    assert_eq!(there == ["1"], end == "COMMIT", "{case}");
                }
            }
        }
    }
}
