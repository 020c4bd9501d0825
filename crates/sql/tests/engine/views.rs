//! `pg_get_viewdef` of views of many kinds (`view_bodies.sql`, one query a line): the view that it makes has the same columns, types and rows, and
//! the same text.

use super::session::{answer, columns, session};

const TABLES: &str = "create table t (id int primary key, g text, n int);
    insert into t select i, chr(97 + i % 3), nullif(i % 4, 0) from generate_series(1, 9) i;
    create table s (id int, w text); insert into s values (1, 'a'), (2, 'b'), (2, 'c'), (null, 'd');
    create sequence sq";

/// Bodies that this many views are made of, at least: the file was read.
const BODIES_MIN: usize = 60;

#[test]
fn every_view_reads_back() {
    let mut session = session();
    assert_eq!(answer(&mut session, TABLES), [""; 0]);
    let bodies = std::fs::read_to_string("tests/engine/view_bodies.sql").unwrap();
    let mut wrong = Vec::new();
    let mut read = 0;
    for body in bodies.lines() {
        let made = answer(&mut session, &format!("create view v as {body}"));
        if !made.is_empty() {
            wrong.push(format!("{body}\n  is no view: {made:?}"));
            continue;
        }
        let text = answer(&mut session, "select pg_get_viewdef('v'::regclass)").join("\n");
        let again = answer(&mut session, &format!("create view w as {text}"));
        if again.is_empty() {
            let mut sorted = |asked: String| {
                let mut rows = answer(&mut session, &asked);
                rows.sort();
                rows
            };
            let [before, after] = ["v", "w"].map(|view| (columns(view), format!("select * from {view}")));
            let (before, after) = ((sorted(before.0), sorted(before.1)), (sorted(after.0), sorted(after.1)));
            let text_again = answer(&mut session, "select pg_get_viewdef('w'::regclass)").join("\n");
            if before != after || before.1.iter().any(|row| row.starts_with("ERROR")) || text != text_again {
                wrong.push(format!("{body}\n  {text}\n  {text_again}\n  {before:?}\n  {after:?}"));
            }
            read += 1;
        } else {
            wrong.push(format!("{body}\n  reads back as {text}\n  {again:?}"));
        }
        answer(&mut session, "drop view if exists w, v");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(read >= BODIES_MIN, "{read} views");
}
