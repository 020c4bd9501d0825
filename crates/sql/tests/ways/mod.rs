//! Several indexes that lead to rows (decision 237): nothing of it is deaf or boundless.

use super::{Interrupt, peak_bytes, pooled_session, session, state_of};

/// What several indexes lead to is looked at one by one: entries that are looked up, and rows that a further condition refuses.
#[test]
fn ways_by_several_indexes_end_with_their_timeout() {
    let mut s = session(Interrupt::default());
    for sql in [
        "create table t (id int primary key, k int unique, s text)",
        "create index on t (s)",
        "insert into t select g, g, 's' || g from generate_series(1, 40000) g",
        "prepare looked (int[]) as select count(*) from t where k = any ($1) or s = 's17'",
        "prepare refused (int, int) as select count(*) from t where (k between $1 and $2 or s = 's17') and length(s) > 100",
    ] {
        assert_eq!(state_of(&mut s, sql), "00000", "{sql}");
    }
    let elements = |count: u32| (0..count).map(|n| (100_000 + n).to_string()).collect::<Vec<_>>().join(",");
    let looked = |count: u32| format!("execute looked ('{{{}}}')", elements(count));
    for (sql, state) in [
        (looked(100), "00000"),
        (looked(60_000), "57014"),
        ("execute refused (1, 100)".into(), "00000"),
        ("execute refused (1, 40000)".into(), "57014"),
    ] {
        assert_eq!(state_of(&mut s, "set statement_timeout = 2000"), "00000");
        assert_eq!(state_of(&mut s, &sql), state, "{}", &sql[..24]);
    }
}

/// Keys that several indexes lead to are kept while there is room; otherwise the table is read.
#[test]
fn keys_of_several_ways_are_kept_while_there_is_room() {
    let (mut s, pool) = pooled_session(4 << 20);
    assert_eq!(
        state_of(&mut s, "create table t (p text primary key, k int unique, s text); create index on t (s)"),
        "00000"
    );
    for n in 0..10 {
        let rows = format!("generate_series({}, {}) g", n * 1000 + 1, n * 1000 + 1000);
        let insert = format!("insert into t select lpad(g::text, 400, 'x'), g, 's' || g from {rows}");
        assert_eq!(state_of(&mut s, &insert), "00000");
    }
    let query =
        "prepare q (int, int) as select count(*) from t where (k between $1 and $2 or s = 's17') and length(s) > 2";
    assert_eq!(state_of(&mut s, query), "00000");
    let (state, peak) = peak_bytes(|| state_of(&mut s, "execute q (1, 10000)"));
    assert_eq!(state, "00000");
    assert!(peak < 4 << 20, "{peak} bytes");
    drop(s);
    assert_eq!(pool.used_bytes(), 0);
}
