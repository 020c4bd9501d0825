//! More columns than a result, a row or a table may have, and lists that may be long.

use super::{open, run, session, state_of};
use sql::transaction::memory::MemoryKv;

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(", ")
}

/// The protocol counts columns in 16 bits: 70,000 were told as 4,464, and no client could read on.
#[test]
fn results_have_so_many_columns_and_no_more() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    let ones = |count: usize| list(count, |_| "1".into());
    run(&mut a, &format!("CREATE TABLE wide ({})", list(1600, |i| format!("c{i} int"))));
    run(&mut a, "INSERT INTO wide (c0) VALUES (1)");
    for (sql, state) in [
        (format!("SELECT {}", ones(1664)), "00000"),
        (format!("SELECT {}", ones(1665)), "54011"),
        (format!("SELECT {}", ones(70_000)), "54011"),
        (format!("SELECT count(*) FROM (SELECT {}) AS s", ones(1665)), "54011"),
        (format!("SELECT {} UNION ALL SELECT 1", ones(1665)), "54011"),
        (format!("VALUES ({})", ones(1665)), "54011"),
        ("SELECT * FROM wide".into(), "00000"),
        ("SELECT x.*, y.c0 FROM wide x, wide y".into(), "00000"),
        ("SELECT * FROM wide x, wide y".into(), "54011"),
        ("SELECT x.*, y.*, max(y.c0) OVER () FROM wide x, wide y".into(), "54011"),
        ("SELECT count(*) FROM wide x, wide y".into(), "00000"),
        ("UPDATE wide SET c0 = 2 RETURNING *, *".into(), "54011"),
        ("INSERT INTO wide (c0) VALUES (1) RETURNING *, *".into(), "54011"),
        (format!("SELECT ROW({}) IS NULL", ones(1664)), "00000"),
        (format!("SELECT ROW({}) IS NULL", ones(1665)), "54011"),
        (format!("SELECT coalesce({}, greatest({}))", list(300, |_| "NULL".into()), ones(300)), "00000"),
        (format!("SELECT concat({})", ones(101)), "54023"),
        (format!("CREATE TABLE wider ({})", list(1601, |i| format!("c{i} int"))), "54011"),
        ("ALTER TABLE wide ADD COLUMN more int".into(), "54011"),
    ] {
        assert_eq!(state_of(&mut a, &sql), state, "{}", sql.chars().take(80).collect::<String>());
    }
}
