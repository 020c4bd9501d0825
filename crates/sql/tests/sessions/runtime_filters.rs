//! Runtime filters leave out what has no partner, and nothing else: the same queries with them and without.

use super::{Rows, run, session};
use sql::context::RuntimeFilters;
use sql::transaction::memory::MemoryKv;
use sql::{Database, DatabaseOptions, Session};
use std::fmt::Write as _;
use std::sync::Arc;

/// Two databases of the same rows: with filters, and without.
fn both(setup: &[String]) -> [Session; 2] {
    these(setup, [RuntimeFilters::On, RuntimeFilters::Off])
}

fn these<const N: usize>(setup: &[String], filters: [RuntimeFilters; N]) -> [Session; N] {
    filters.map(|runtime_filters| {
        let options = DatabaseOptions { runtime_filters, ..DatabaseOptions::default() };
        let mut session = session(&Database::open(Arc::new(MemoryKv::new()), options).expect("open"));
        setup.iter().for_each(|statement| drop(run(&mut session, statement)));
        session
    })
}

/// Numbers by chance.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    pub(super) fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u64) as usize]
    }
}

/// Tables whose columns have the same names and different types: joins compare numbers of all widths, and texts of all kinds.
const TABLES: [(&str, &str, &str, u64); 4] = [
    ("ta", "int", "text", 1800),
    ("tb", "bigint", "varchar(8)", 250),
    ("tc", "numeric(8,2)", "char(8)", 1400),
    ("td", "smallint", "text", 50),
];

fn setup() -> Vec<String> {
    let mut all = Vec::new();
    for (place, (name, number, text, rows)) in TABLES.iter().enumerate() {
        all.push(format!("CREATE TABLE {name} (id int PRIMARY KEY, k {number}, s {text}, x int)"));
        // NULLs, keys of which some are in one table only, and few values of `x`.
        all.push(format!(
            "INSERT INTO {name} SELECT i, CASE WHEN i % 11 = 0 THEN NULL ELSE i * {step} % 601 END, \
             CASE WHEN i % 13 = 0 THEN NULL ELSE 's' || i * {step} % 509 END, i % 7 FROM generate_series(1, {rows}) i",
            step = [7, 5, 3, 11][place],
        ));
    }
    all
}

/// An item of FROM: a table, or a query over it that a filter goes through, or must not.
fn item(chance: &mut Chance, alias: &str) -> String {
    let table = TABLES[chance.below(4) as usize].0;
    match chance.below(12) {
        0 => format!("(SELECT x, s, k, id FROM {table} WHERE x < 5) {alias}"),
        1 => format!("(SELECT id, k + 1 AS k, s, x FROM {table}) {alias}"),
        2 => format!("(SELECT id, k, s, x FROM {table} ORDER BY id LIMIT {}) {alias}", 1 + chance.below(1500)),
        3 => format!("(SELECT DISTINCT ON (k) id, k, s, x FROM {table} ORDER BY k, id) {alias}"),
        4 => format!("(SELECT min(id) AS id, k, min(s) AS s, count(*) AS x FROM {table} GROUP BY k) {alias}"),
        5 => format!("(SELECT id, k, s, row_number() OVER (ORDER BY id) % 7 AS x FROM {table}) {alias}"),
        6 => format!("(SELECT l.id, l.k, r.s, r.x FROM {table} l JOIN td r ON r.k = l.k) {alias}"),
        7 => format!("(SELECT l.id, l.k, r.s, l.x FROM {table} l LEFT JOIN tb r ON r.k = l.k) {alias}"),
        8 => format!("(SELECT id, k, s, x FROM {table} UNION ALL SELECT id, k, s, x FROM td) {alias}"),
        _ => format!("{table} {alias}"),
    }
}

/// An equality of an item with one before it, mostly of columns.
fn equality(chance: &mut Chance, left: &str, right: &str) -> String {
    match chance.below(9) {
        0 => format!("{left}.id = {right}.id"),
        1 => format!("{left}.s::text = {right}.s::text"),
        2 => format!("{left}.s = {right}.s"),
        3 => format!("{left}.k IS NOT DISTINCT FROM {right}.k AND {left}.id < 200"),
        4 => format!("coalesce({left}.k, 7) = {right}.k"),
        5 => format!("{left}.k = {right}.k AND {left}.x = {right}.x"),
        _ => format!("{left}.k = {right}.k"),
    }
}

/// A query of three or four items.
fn query(chance: &mut Chance) -> String {
    let aliases = ["a", "b", "c", "d"];
    let count = 3 + chance.below(2) as usize;
    let mut from = item(chance, "a");
    for (place, alias) in aliases[..count].iter().enumerate().skip(1) {
        let kind = chance.of(&["JOIN", "JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
        let before = aliases[chance.below(place as u64) as usize];
        let mut on = equality(chance, before, alias);
        if chance.below(5) == 0 && kind != "FULL JOIN" {
            let _ = write!(on, " AND {before}.x <= {alias}.x");
        } else if chance.below(4) == 0 {
            // Columns of two items in one key.
            let _ = write!(on, " AND {}.x = {alias}.x", aliases[chance.below(place as u64) as usize]);
        }
        let item = item(chance, alias);
        let _ = write!(from, " {kind} {item} ON {on}");
    }
    let conditions = match chance.below(5) {
        0 => "WHERE b.x > 2",
        1 => "WHERE a.k IS NULL OR c.x < 6",
        2 => "WHERE EXISTS (SELECT FROM tc e WHERE e.id = b.id AND e.x <> c.x)",
        _ => "",
    };
    let columns: Vec<String> = aliases[..count].iter().map(|alias| format!("{alias}.id, {alias}.s")).collect();
    let (columns, last) = (columns.join(", "), aliases[count - 1]);
    match chance.below(6) {
        // For each row around it, with a column of that in the join.
        0 => format!(
            "SELECT o.id, (SELECT count(*) FROM {from} WHERE {last}.x = o.x AND a.id < o.id * 400) FROM td o WHERE o.id < 4"
        ),
        1 => format!(
            "SELECT o.id, l.* FROM td o, LATERAL (SELECT {columns} FROM {from} WHERE a.x = o.x ORDER BY {columns} LIMIT 9) l WHERE o.id < 4"
        ),
        2 => format!("SELECT {columns} FROM {from} {conditions} ORDER BY {columns} LIMIT 100"),
        _ => format!("SELECT {columns} FROM {from} {conditions}"),
    }
}

fn answer(session: &mut Session, query: &str) -> Result<Vec<String>, String> {
    let mut out = Rows::default();
    match session.simple_query(query, &mut out) {
        Ok(()) => {
            // Filters may change the order of what is not sorted.
            out.rows.sort();
            Ok(out.rows)
        }
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn filters_change_no_answer() {
    let mut sessions = both(&setup());
    let (mut rows, mut filtered) = (0, 0);
    for seed in 0..120 {
        if seed == 60 {
            sessions.iter_mut().for_each(|session| drop(run(session, "ANALYZE")));
        }
        let query = query(&mut Chance(seed));
        let [with, without] = sessions.each_mut().map(|session| answer(session, &query));
        assert_eq!(with, without, "seed {seed}: {query}");
        rows += with.map_or(0, |rows| rows.len());
        let plan = run(&mut sessions[0], &format!("EXPLAIN {query}"));
        filtered += usize::from(plan.iter().any(|line| line.contains("Runtime Filter")));
    }
    // It was about something.
    assert!(rows > 20_000 && filtered > 20, "{rows} rows, {filtered} plans with filters");
}

/// Rows that the scan of a table gave, by EXPLAIN ANALYZE.
fn given(session: &mut Session, query: &str, scan: &str) -> u64 {
    let plan = run(session, &format!("EXPLAIN (ANALYZE, TIMING OFF) {query}"));
    let counts = plan.iter().filter(|line| line.contains(scan) && line.contains("actual ")).map(|line| {
        let actual = line.split("actual ").nth(1).and_then(|rest| rest.split("rows=").nth(1)).unwrap_or_default();
        let loops = line.split("loops=").nth(1).unwrap_or_default();
        let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse::<u64>().ok());
        number(actual).zip(number(loops)).map_or(0, |(rows, loops)| rows * loops)
    });
    counts.sum()
}

/// A chain of joins: the last one's few keys reach the scan below the others, on its left side, on its right side, and where it is looked up.
#[test]
fn a_filter_reaches_the_scan_behind_other_joins() {
    let mut setup: Vec<String> = Vec::new();
    let mut say = |text: &str| setup.push(text.to_owned());
    say("CREATE TABLE big (id int PRIMARY KEY, o int, p int)");
    say("CREATE TABLE other (id int PRIMARY KEY, o int, q int)");
    say("CREATE TABLE few (p int, name text)");
    say("INSERT INTO big SELECT i, i % 5000, i % 3001 FROM generate_series(1, 20000) i");
    say("INSERT INTO other SELECT i, i, i % 2999 FROM generate_series(1, 5000) i");
    say("INSERT INTO few SELECT i * 100, 'n' || i FROM generate_series(1, 20) i");
    let [mut with, mut without] = both(&setup);
    for (query, scan) in [
        ("SELECT count(*) FROM big b JOIN other o ON o.o = b.o JOIN few f ON f.p = b.p", "on big"),
        ("SELECT count(*) FROM other o JOIN big b ON o.o = b.o JOIN few f ON f.p = b.p", "on big"),
        ("SELECT count(*) FROM big b LEFT JOIN other o ON o.o = b.o JOIN few f ON f.p = b.p", "on big"),
        (
            "SELECT count(*) FROM (SELECT o.q, b.p AS r FROM other o JOIN big b ON o.o = b.o) x JOIN few f ON f.p = x.r",
            "on big",
        ),
        ("SELECT count(*) FROM big b JOIN other o ON o.o = b.o JOIN few f ON f.p = b.p AND f.p <> o.q", "on big"),
    ] {
        assert_eq!(run(&mut with, query), run(&mut without, query), "{query}");
        let plan = run(&mut with, &format!("EXPLAIN {query}"));
        assert!(plan.iter().any(|line| line.contains("Runtime Filter: (")), "{query}\n{}", plan.join("\n"));
        let [made, all] = [&mut with, &mut without].map(|session| given(session, query, scan));
        assert!(all >= 20_000, "{query}: {all} rows without");
        assert!(made * 2 < all, "{query}: {made} rows with filters, {all} without");
    }
}

/// What would give a row without a partner in an outer join, what is cut off by LIMIT, and what asks each row something, is not filtered.
#[test]
fn what_needs_every_row_gets_it() {
    let mut setup: Vec<String> = Vec::new();
    let mut say = |text: &str| setup.push(text.to_owned());
    say("CREATE SEQUENCE seen");
    say("CREATE TABLE big (id int PRIMARY KEY, o int, p int)");
    say("CREATE TABLE other (o int, q int)");
    say("CREATE TABLE few (p int)");
    say("INSERT INTO big SELECT i, i % 2500, i % 3001 FROM generate_series(1, 5000) i");
    say("INSERT INTO other SELECT i, i FROM generate_series(1, 2000) i");
    say("INSERT INTO few VALUES (100), (200), (NULL)");
    let [mut with, mut without, mut unsound] =
        these(&setup, [RuntimeFilters::On, RuntimeFilters::Off, RuntimeFilters::Unsound]);
    let queries = [
        "SELECT count(*), count(f.p) FROM big b JOIN other o ON o.o = b.o LEFT JOIN few f ON f.p = b.p",
        "SELECT count(*), count(f.p), count(b.p) FROM big b JOIN other o ON o.o = b.o RIGHT JOIN few f ON f.p = b.p",
        "SELECT count(*), count(f.p) FROM big b JOIN other o ON o.o = b.o FULL JOIN few f ON f.p = b.p",
        "SELECT count(*), count(o.o) FROM other o FULL JOIN big b ON o.o = b.o JOIN few f ON f.p = o.q",
        "SELECT count(*), count(b.id) FROM other o LEFT JOIN big b ON o.o = b.o JOIN few f ON f.p = coalesce(b.p, 100)",
        "SELECT count(*) FROM (SELECT b.p FROM big b JOIN other o ON o.o = b.o ORDER BY b.id DESC LIMIT 1500) x JOIN few f ON f.p = x.p",
        "SELECT count(*) FROM (SELECT b.p FROM big b JOIN other o ON o.o = b.o LIMIT 1500) x JOIN few f ON f.p = x.p",
        "SELECT count(*) FROM (SELECT b.p, nextval('seen') AS n FROM big b JOIN other o ON o.o = b.o) x JOIN few f ON f.p = x.p",
    ];
    for query in queries {
        assert_eq!(run(&mut with, query), run(&mut without, query), "{query}");
    }
    assert_eq!(run(&mut with, "SELECT last_value FROM seen"), run(&mut without, "SELECT last_value FROM seen"));
    // What a left join would do to its left side is seen, and what would come of a filter below LIMIT.
    for query in [queries[0], queries[6]] {
        assert_ne!(run(&mut unsound, query), run(&mut without, query), "{query}");
    }
}

/// A join that runs its right side once for each left row, where that is to be seen, is not spared any.
#[test]
fn volatile_right_sides_run_for_each_row() {
    let setup = [
        "CREATE SEQUENCE seen",
        "CREATE TABLE big (id int PRIMARY KEY, o int, p int)",
        "CREATE TABLE other (o int, q int)",
        "CREATE TABLE few (p int)",
        "INSERT INTO big SELECT i, i % 2500, i % 3001 FROM generate_series(1, 5000) i",
        "INSERT INTO other SELECT i, i FROM generate_series(1, 2000) i",
        "INSERT INTO few VALUES (100), (200), (NULL)",
    ];
    let mut sessions = both(&setup.map(str::to_owned));
    let query = "SELECT count(*), count(l.n) FROM big b JOIN other o ON o.o = b.o \
                 CROSS JOIN LATERAL (SELECT nextval('seen') AS n WHERE b.id > 0) l JOIN few f ON f.p = b.p";
    let [with, without] = sessions.each_mut().map(|session| {
        let rows = run(session, query);
        (rows, run(session, "SELECT last_value FROM seen"))
    });
    assert_eq!(with, without);
}

/// A scan asks for a row's key before conditions that are computed, but not before one that must see each row.
#[test]
fn keys_are_asked_for_first_unless_a_condition_must_see_each_row() {
    let setup = [
        "CREATE SEQUENCE seen",
        "CREATE TABLE big (id int PRIMARY KEY, o int, p int)",
        "CREATE TABLE other (id int PRIMARY KEY, q int)",
        "CREATE TABLE few (p int, q int)",
        "INSERT INTO big SELECT i, i % 2500, i % 3001 FROM generate_series(1, 5000) i",
        "INSERT INTO other SELECT i, i % 7 FROM generate_series(1, 2500) i",
        "INSERT INTO few VALUES (100, 3), (200, 1), (NULL, 2)",
        "ANALYZE",
    ];
    let mut sessions = both(&setup.map(str::to_owned));
    for query in [
        // By the key of its own join, and by that of a join above it.
        "SELECT b.id, f.q FROM few f JOIN big b ON b.p = f.p AND CONDITION ORDER BY 1",
        "SELECT b.id, f.q FROM big b JOIN other x ON x.id = b.o AND CONDITION JOIN few f ON f.p = b.p ORDER BY 1",
    ] {
        let plain = query.replace("CONDITION", "b.o % 5 > 0 AND b.o NOT IN (SELECT q FROM other WHERE q < 3)");
        let counting = query.replace("CONDITION", "b.o % 5 > 0 AND b.id + nextval('seen') > 0");
        let [with, without] = sessions.each_mut().map(|session| {
            run(session, "SELECT setval('seen', 1)");
            let rows = [run(session, &plain), run(session, &counting)];
            (rows, run(session, "SELECT last_value FROM seen"))
        });
        assert_eq!(with, without, "{query}");
        assert_eq!(with.1, ["4001"], "{query}: of 5000 rows a fifth fails before");
    }
}

/// Keys that are taken from stored bytes, also of rows that are older than the column, against keys that are computed.
#[test]
fn keys_of_bytes_are_keys_of_values() {
    let setup = [
        "CREATE TABLE l (id int PRIMARY KEY)",
        "INSERT INTO l SELECT i FROM generate_series(1, 3000) i",
        "ALTER TABLE l ADD COLUMN k int DEFAULT 5",
        "ALTER TABLE l ADD COLUMN n int",
        "INSERT INTO l SELECT i, i % 9, i % 5 FROM generate_series(3001, 3500) i",
        "CREATE TABLE r (k int, b bigint, s smallint, d numeric)",
        "INSERT INTO r VALUES (5, 5, 5, 5), (NULL, NULL, NULL, NULL), (2, 2, 2, 2.0), (-1, 4294967301, -1, 2.5)",
    ];
    let mut session = both(&setup.map(str::to_owned)).into_iter().next().expect("two");
    let mut of = |text: &str| run(&mut session, text);
    assert_eq!(of("SELECT count(*) FROM l JOIN r ON r.k = l.k WHERE l.id <= 3000"), ["3000"]);
    for own in ["k", "n", "id"] {
        for other in ["k", "b", "s", "d"] {
            for join in ["JOIN", "LEFT JOIN", "RIGHT JOIN"] {
                let rows = |key: String| {
                    format!(
                        "SELECT count(*), count(l.id), sum(l.id), count(r.d), sum(r.d) FROM l {join} r ON r.{other} = {key}"
                    )
                };
                assert_eq!(of(&rows(format!("l.{own}"))), of(&rows(format!("l.{own} + 0"))), "{own} {other} {join}");
            }
        }
    }
}

/// Joins that have no room for either side, with more filters upon a scan than it asks.
#[test]
fn filters_change_no_answer_without_room() {
    let mut setup = vec![
        "CREATE TABLE big (id int PRIMARY KEY, a int, b int, c int, d int, e int, t text)".to_owned(),
        "INSERT INTO big SELECT i, i % 11, i % 13, i % 17, i % 19, i % 23, repeat('x', 100) FROM generate_series(1, 4000) i".to_owned(),
        "CREATE TABLE wide (id int, t text)".to_owned(),
        "INSERT INTO wide SELECT i % 3500, repeat('y', 200) FROM generate_series(1, 4000) i".to_owned(),
        "ANALYZE".to_owned(),
    ];
    for key in ["a", "b", "c", "d", "e"] {
        setup.push(format!("CREATE TABLE {key} ({key} int)"));
        setup.push(format!("INSERT INTO {key} SELECT i FROM generate_series(1, 9) i"));
    }
    setup.push("SET timeball.query_memory_bytes = '1MB'".to_owned());
    let mut sessions = both(&setup);
    let chain =
        "JOIN a ON a.a = big.a JOIN b ON b.b = big.b JOIN c ON c.c = big.c JOIN d ON d.d = big.d JOIN e ON e.e = big.e";
    for query in [
        format!("SELECT count(*), sum(big.id), sum(length(w.t)) FROM big JOIN wide w ON w.id = big.id {chain}"),
        format!("SELECT count(*), sum(big.id), sum(length(w.t)) FROM wide w JOIN big ON w.id = big.id {chain}"),
        format!("SELECT count(*), sum(big.id), sum(length(w.t)) FROM big LEFT JOIN wide w ON w.id = big.id {chain}"),
    ] {
        let [with, without] = sessions.each_mut().map(|session| answer(session, &query));
        assert!(with.is_ok(), "{with:?}");
        assert_eq!(with, without, "{query}");
    }
}

/// Statistics of a table that was emptied since do not fill the memory with the other side.
#[test]
fn a_side_that_is_empty_by_now_is_asked_first() {
    let setup = [
        "CREATE TABLE right_side (k int, t text)",
        "INSERT INTO right_side SELECT i, 'x' FROM generate_series(1, 30000) i",
        "CREATE TABLE left_side (k int, t text)",
        "INSERT INTO left_side SELECT i, repeat('y', 200) FROM generate_series(1, 8000) i",
        "ANALYZE right_side",
        "DELETE FROM right_side WHERE k > 10",
        "SET timeball.query_memory_bytes = '1MB'",
    ];
    let [mut session, _] = both(&setup.map(str::to_owned));
    let query = "SELECT count(l.t), count(r.t) FROM left_side l LEFT JOIN right_side r ON r.k = l.k WHERE l.t > 'a'";
    assert_eq!(run(&mut session, query), ["8000|10"]);
    let plan = run(&mut session, &format!("EXPLAIN (ANALYZE, TIMING OFF) {query}")).join("\n");
    assert!(plan.contains("Hash Left Join") && plan.contains("Seq Scan on right_side"), "{plan}");
    assert!(!plan.contains("Disk") && plan.contains("Batches: 1 "), "{plan}");
}

/// What a key calls is called once for each row, whatever else is kept of the keys.
#[test]
fn a_volatile_key_is_computed_once_for_each_row() {
    let setup = [
        "CREATE TABLE big (id int PRIMARY KEY, k bigint)",
        "INSERT INTO big SELECT i, i FROM generate_series(1, 5000) i",
        "CREATE TABLE few (x bigint)",
        "INSERT INTO few SELECT 0 FROM generate_series(1, 5)",
        "CREATE SEQUENCE s",
        "ANALYZE",
    ];
    let [mut session, _] = both(&setup.map(str::to_owned));
    let plan = run(&mut session, "EXPLAIN SELECT b.id FROM big b JOIN few f ON b.k = f.x + nextval('s')").join("\n");
    assert!(plan.contains("Hash Join"), "{plan}");
    let ids = run(&mut session, "SELECT b.id FROM big b JOIN few f ON b.k = f.x + nextval('s') ORDER BY 1");
    assert_eq!(ids, ["1", "2", "3", "4", "5"]);
    assert_eq!(run(&mut session, "SELECT last_value FROM s"), ["5"]);
    // A number of those that were there, however often it is asked for.
    let many = "SELECT count(*) FROM big b JOIN few f ON b.id = f.x + (random() * 4000)::int + 1";
    for _ in 0..20 {
        assert_eq!(run(&mut session, many), ["5"]);
    }
}
