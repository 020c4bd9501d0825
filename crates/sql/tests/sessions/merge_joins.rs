//! Joins by merge give what nested loops give, and are chosen where they cost less.

use super::runtime_filters::Chance;
use super::{open, run, session};
use sql::Session;
use sql::transaction::memory::MemoryKv;
use std::fmt::Write as _;

/// Tables whose keys have different widths, NULLs, and several rows of one value; indexes in both directions.
fn filled(chance: &mut Chance) -> Session {
    let mut session = session(&open(MemoryKv::new()));
    for (name, number) in [("a", "int"), ("b", "bigint"), ("c", "smallint")] {
        run(
            &mut session,
            &format!("CREATE TABLE {name} (id int PRIMARY KEY, k {number}, l {number}, s text, d date, x int)"),
        );
        let (rows, values) = (chance.below(150), 1 + chance.below(80));
        let mut insert = format!("INSERT INTO {name} VALUES (-1, NULL, NULL, NULL, NULL, NULL)");
        for id in 0..rows {
            let value = |chance: &mut Chance, show: &dyn Fn(u64) -> String| match chance.below(9) {
                0 => "NULL".to_owned(),
                _ => show(chance.below(values)),
            };
            let (k, l) = (value(chance, &|n| n.to_string()), value(chance, &|n| (n % 4).to_string()));
            let s = value(chance, &|n| format!("'s{n}'"));
            let d = value(chance, &|n| format!("date '2026-01-01' + {n}"));
            let _ = write!(insert, ", ({}, {k}, {l}, {s}, {d}, {})", id * 3 % 257, chance.below(9));
        }
        insert.push_str(" ON CONFLICT DO NOTHING");
        run(&mut session, &insert);
        let order = chance.of(&["", "DESC", "NULLS FIRST", "DESC NULLS LAST"]);
        run(&mut session, &format!("CREATE INDEX ON {name} (k {order}, l {order})"));
        run(&mut session, &format!("CREATE INDEX ON {name} (s {order})"));
        run(&mut session, &format!("CREATE INDEX ON {name} (d)"));
        run(&mut session, &format!("ANALYZE {name}"));
    }
    session
}

/// A query, and the same as nested loops. Its first column is what it is ordered by.
fn query(chance: &mut Chance) -> [String; 2] {
    let kind = chance.of(&["JOIN", "JOIN", "LEFT JOIN"]);
    let (l, r) = (chance.of(&["a", "b", "c"]), chance.of(&["a", "b", "c"]));
    let key = chance.of(&["id", "k", "s", "d", "k, l"]);
    let mut conditions = [Vec::new(), Vec::new()];
    for column in key.split(", ") {
        conditions[0].push(format!("p.{column} = q.{column}"));
        // No key of a join, and the same.
        conditions[1].push(format!("NOT (p.{column} <> q.{column})"));
    }
    if chance.below(3) == 0 {
        conditions.iter_mut().for_each(|list| list.push("p.x <= q.x".to_owned()));
    }
    let direction = chance.of(&["", "DESC", "NULLS FIRST", "DESC NULLS LAST"]);
    let first = key.split(", ").next().unwrap_or(key);
    let filter = chance.of(&["", "WHERE p.x < 6", "WHERE p.id > 40", "WHERE coalesce(q.x, 1) <> 3"]);
    let shape = chance.below(4);
    conditions.map(|on| {
        let from = format!("{l} p {kind} {r} q ON {}", on.join(" AND "));
        // (A part of its own keeps the query from the direct path.)
        let with = "WITH w AS (SELECT 1)";
        let third = format!("{from} {kind} c o ON o.id = p.id");
        match shape {
            0 => format!("{with} SELECT p.{first}, p.id, q.id, q.s FROM {from} {filter}"),
            1 => format!(
                "{with} SELECT n, l.* FROM generate_series(1, 3) n, LATERAL (SELECT p.{first}, p.id + n AS i, q.id FROM {from} {filter} \
                 ORDER BY p.{first} {direction} OFFSET 0) l"
            ),
            2 => format!("{with} SELECT p.{first}, p.id, q.id, o.s FROM {third} {filter} ORDER BY p.{first} {direction}"),
            _ => format!("{with} SELECT p.{first}, p.id, q.id, q.s FROM {from} {filter} ORDER BY p.{first} {direction}"),
        }
    })
}

fn first_column(rows: &[String]) -> Vec<&str> {
    rows.iter().map(|row| row.split('|').next().unwrap_or_default()).collect()
}

#[test]
fn merges_give_what_nested_loops_give() {
    let (mut merged, mut asked) = (0, 0);
    for seed in 0..12 {
        let mut chance = Chance(seed);
        let mut session = filled(&mut chance);
        for _ in 0..30 {
            let [query, nested] = query(&mut chance);
            run(&mut session, "SET enable_hashjoin = off");
            let plan = run(&mut session, &format!("EXPLAIN {query}"));
            merged += usize::from(plan.iter().any(|line| line.contains("Merge ")));
            let given = run(&mut session, &query);
            run(&mut session, "SET enable_mergejoin = off");
            let plan = run(&mut session, &format!("EXPLAIN {nested}"));
            assert!(plan.iter().any(|line| line.contains("Nested Loop")), "{nested}: {plan:?}");
            let expected = run(&mut session, &nested);
            run(&mut session, "RESET enable_mergejoin");
            if query.contains("ORDER BY p") && !query.contains("LATERAL") {
                assert_eq!(first_column(&given), first_column(&expected), "{seed}: {query}");
            }
            let sorted = |mut rows: Vec<String>| {
                rows.sort();
                rows
            };
            assert_eq!(sorted(given), sorted(expected), "{seed}: {query}");
            asked += 1;
        }
    }
    assert!(merged * 8 > asked, "{merged} of {asked} were merged");
}

/// Two tables of so many rows by the same key, known to statistics.
fn two(rows: u64) -> Session {
    let mut session = session(&open(MemoryKv::new()));
    for name in ["a", "b"] {
        run(&mut session, &format!("CREATE TABLE {name} (id int PRIMARY KEY, k int, x int)"));
        run(&mut session, &format!("INSERT INTO {name} SELECT i, i % 10, i FROM generate_series(1, {rows}) i"));
        run(&mut session, &format!("ANALYZE {name}"));
    }
    session
}

fn plan(session: &mut Session, query: &str) -> String {
    run(session, &format!("EXPLAIN (COSTS OFF) {query}")).join("\n")
}

#[test]
fn an_order_by_the_keys_is_met_by_a_merge() {
    let mut session = two(3000);
    let ordered = "SELECT DISTINCT ON (a.id) a.id, b.x FROM a LEFT JOIN b ON a.id = b.id ORDER BY a.id";
    let whole = "WITH w AS (SELECT 1) SELECT a.id, b.x FROM a JOIN b ON a.id = b.id ORDER BY b.id DESC";
    for query in [ordered, whole] {
        let said = plan(&mut session, query);
        assert!(said.contains("Merge ") && said.contains("Merge Cond: (a.id = b.id)"), "{said}");
        assert!(!said.contains("Sort"), "{said}");
        assert_eq!(run(&mut session, query).len(), 3000);
        run(&mut session, "SET enable_mergejoin = off");
        let said = plan(&mut session, query);
        assert!(!said.contains("Merge ") && said.contains("Sort"), "{said}");
        run(&mut session, "RESET enable_mergejoin");
    }
    // Each row of one side would be led to by an index, to be sorted no more.
    run(&mut session, "CREATE INDEX ON a (k)");
    run(&mut session, "CREATE INDEX ON b (k)");
    let dear = "WITH w AS (SELECT 1) SELECT a.id, b.x FROM a JOIN b ON a.k = b.k AND a.id = b.id ORDER BY a.k, a.id";
    assert!(!plan(&mut session, dear).contains("Merge "), "{}", plan(&mut session, dear));
    // Few left rows are looked up.
    let few = "WITH w AS (SELECT 1) SELECT a.id, b.x FROM a JOIN b ON a.id = b.id WHERE a.x = 77 ORDER BY a.id";
    assert!(!plan(&mut session, few).contains("Merge "), "{}", plan(&mut session, few));
}

#[test]
fn under_a_limit_a_merge_reads_no_more_than_is_wanted() {
    let mut session = two(20_000);
    let query = "WITH w AS (SELECT 1) SELECT a.id, b.x FROM a JOIN b ON a.id = b.id ORDER BY a.id LIMIT 10";
    let measured = run(&mut session, &format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {query}")).join("\n");
    assert!(measured.contains("Merge Join (actual rows=10 loops=1)"), "{measured}");
    for scan in ["on a", "on b"] {
        let line = measured.lines().find(|line| line.contains(scan)).unwrap_or_default();
        assert!(line.contains("(actual rows=10 loops=1)") || line.contains("(actual rows=11 loops=1)"), "{measured}");
    }
}

/// Where rows begin that meet a condition nobody knows: what is before them is read, and at SERIALIZABLE it counts as read.
#[test]
fn under_a_limit_few_rows_are_looked_up() {
    let mut session = two(20_000);
    run(&mut session, "CREATE INDEX ON a (k, id)");
    run(&mut session, "CREATE TABLE few AS SELECT i + 19990 AS id FROM generate_series(1, 10) i");
    run(&mut session, "ALTER TABLE few ADD PRIMARY KEY (id)");
    run(&mut session, "CREATE TABLE u AS SELECT i AS id FROM generate_series(1, 20) i");
    for table in ["few", "u", "a"] {
        run(&mut session, &format!("ANALYZE {table}"));
    }
    let (with, joined) = ("WITH w AS (SELECT 1)", "b ON b.id = a.id");
    let narrowed = [
        format!("{with} SELECT a.id, b.x FROM a JOIN {joined} WHERE a.x = 19000 ORDER BY a.id LIMIT 5"),
        format!("{with} SELECT a.id, b.x FROM a LEFT JOIN {joined} WHERE a.id > 19500 ORDER BY a.id LIMIT 10"),
        format!("{with} SELECT a.id, b.x FROM few a JOIN {joined} ORDER BY a.id LIMIT 3"),
        format!(
            "SELECT u.id, y.x FROM u LEFT JOIN LATERAL (SELECT b.x FROM a LEFT JOIN {joined} WHERE a.k = u.id ORDER BY a.id LIMIT 3) y ON true"
        ),
    ];
    for query in narrowed {
        assert!(!plan(&mut session, &query).contains("Merge "), "{query}\n{}", plan(&mut session, &query));
    }
}
