//! What does not fit a statement's memory gives what it gives in memory: the same queries with much of it and with little, over tables of all
//! types.

use sql::context::EvalSettings;
use sql::output::Mark;
use sql::transaction::Interrupt;
use sql::transaction::memory::MemoryKv;
use sql::types::Value;
use sql::{Database, DatabaseOptions, Field, Output, Session, SqlError, Startup};
use std::fmt::Write;
use std::sync::Arc;

/// Rows as lines.
#[derive(Default)]
struct Lines(Vec<String>);

impl Output for Lines {
    fn row_description(&mut self, _: &[Field], _: &[i16]) {}
    fn row(&mut self, values: &[Value], fields: &[Field], _: &[i16], settings: &EvalSettings) -> Result<(), SqlError> {
        let shown = |(v, f): (&Value, &Field)| if v.is_null() { "NULL".into() } else { v.to_text(&f.ty, settings) };
        self.0.push(values.iter().zip(fields).map(shown).collect::<Vec<_>>().join("|"));
        Ok(())
    }
    fn command_complete(&mut self, _: &str) {}
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
        Mark(self.0.len() as u64)
    }
    fn rewind(&mut self, mark: Mark) -> bool {
        self.0.truncate(mark.0 as usize);
        true
    }
}

fn session(db: &Arc<Database>) -> Session {
    let startup = Startup { user: "postgres".into(), database: "postgres".into(), ..Startup::default() };
    Session::new(db.clone(), startup, Interrupt::default()).expect("session")
}

fn answer(session: &mut Session, statement: &str) -> Result<Vec<String>, SqlError> {
    let mut out = Lines::default();
    session.simple_query(statement, &mut out).map(|()| out.0)
}

fn run(session: &mut Session, statement: &str) -> Vec<String> {
    answer(session, statement).unwrap_or_else(|error| panic!("{statement}: {error}"))
}

/// Temporary files so far, and their bytes.
fn temporary(session: &mut Session) -> (u64, u64) {
    let row = run(session, "select temp_files, temp_bytes from pg_stat_database where datname = current_database()");
    let (files, bytes) = row[0].split_once('|').unwrap();
    (files.parse().unwrap(), bytes.parse().unwrap())
}

/// Numbers by chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

const COLUMNS: &str = "i int, b bigint, s smallint, n numeric, f float8, r real, t text, v varchar(20), c char(6), d date, \
    ts timestamp, tz timestamptz, tm time, iv interval, bo bool, u uuid, by bytea, j jsonb, ar int[], ta text[], pad text";

/// A value of each column, NULL now and then.
fn row(chance: &mut Chance, id: u64) -> String {
    let mut out = format!("({id}");
    let mut put = |nulls: u64, chance: &mut Chance, text: &dyn Fn(u64, u64) -> String| {
        let (one, other, null) = (chance.below(9), chance.below(40), chance.below(10) < nulls);
        let _ = if null { write!(out, ", NULL") } else { write!(out, ", {}", text(one, other)) };
    };
    put(1, chance, &|a, b| format!("{}", (a * b) as i64 - 100));
    put(1, chance, &|a, b| format!("{}", (a as i64 - 4) * 3_000_000_000 + b as i64 % 3));
    put(1, chance, &|a, _| a.to_string());
    put(1, chance, &|a, b| match a {
        0 => "'NaN'".into(),
        1 => "'infinity'".into(),
        a => format!("{}.{}0", a as i64 - 4, b % 4),
    });
    put(1, chance, &|a, b| match a {
        0 => "'NaN'".into(),
        1 => "'-0'".into(),
        a => format!("{}.5e{}", a as i64 - 4, b),
    });
    put(1, chance, &|a, b| format!("{a}.{b}"));
    put(1, chance, &|a, b| {
        format!("'{}{}'", ["", "a", "ab", "Ab", "ü", "abcdefgh", "abcdefghi", "b c", " "][a as usize], b % 3)
    });
    put(1, chance, &|a, b| format!("'v{a}{}'", b % 2));
    put(1, chance, &|a, _| format!("'{}'", ["", "a", "a ", "b", "ab", "a b", "c", "d", "e"][a as usize]));
    put(1, chance, &|a, b| format!("'20{:02}-03-{:02}'", 10 + a, 1 + b % 28));
    put(1, chance, &|a, b| format!("'2020-01-01 0{a}:{b:02}:00'"));
    put(1, chance, &|a, b| if a == 0 { "'infinity'".into() } else { format!("'2020-01-01 0{a}:{b:02}:00+02'") });
    put(1, chance, &|a, b| format!("'0{a}:{b:02}:07'"));
    put(1, chance, &|a, b| format!("'{a} days {b} hours'"));
    put(1, chance, &|a, _| (a % 2 == 0).to_string());
    put(1, chance, &|a, b| format!("'00000000-0000-0000-000{a}-0000000000{b:02}'"));
    put(1, chance, &|a, b| format!("'\\x{a:02}{b:02}'"));
    put(1, chance, &|a, b| format!("'{{\"a\": {a}.0, \"b\": [{}]}}'", b % 3));
    put(1, chance, &|a, b| format!("'{{{a},NULL,{}}}'", b % 3));
    put(1, chance, &|a, b| format!("'{{x{a},\"y {}\"}}'", b % 2));
    put(0, chance, &|a, b| format!("repeat('p', {})", 100 + a * b));
    out + ")"
}

/// A database with tables of these many rows, and a session that has little memory.
fn world(seed: u64, tables: &[(&str, u64)]) -> (Session, Session) {
    let db = Database::open(Arc::new(MemoryKv::new()), DatabaseOptions::default()).expect("open");
    let (mut much, mut little) = (session(&db), session(&db));
    let mut chance = Chance(seed);
    for (table, rows) in tables {
        run(&mut much, &format!("create table {table} (id int primary key, {COLUMNS})"));
        for from in (0..*rows).step_by(100) {
            let rows: Vec<_> = (from..(from + 100).min(*rows)).map(|id| row(&mut chance, id)).collect();
            run(&mut much, &format!("insert into {table} values {}", rows.join(", ")));
        }
    }
    run(&mut little, "set timeball.query_memory_bytes = '128kB'");
    (much, little)
}

/// Compares; `ordered`: their order, too. Of each the second must have written to temporary files.
fn same(much: &mut Session, little: &mut Session, query: &str, ordered: bool) {
    let before = temporary(much).0;
    let mut expected = run(much, query);
    assert_eq!(temporary(much).0, before, "{query} fits");
    let mut rows = run(little, query);
    assert!(temporary(much).0 > before, "{query} was done in memory");
    if !ordered {
        expected.sort_unstable();
        rows.sort_unstable();
    }
    let at = (0..expected.len().max(rows.len())).find(|at| expected.get(*at) != rows.get(*at));
    if let Some(at) = at {
        let (expected, row) = (expected.get(at), rows.get(at));
        panic!("{query}: row {at} is {row:?}, in memory {expected:?} ({} rows, {})", rows.len(), expected.is_some());
    }
}

const KEYS: [&str; 20] =
    ["i", "b", "s", "n", "f", "r", "t", "v", "c", "d", "ts", "tz", "tm", "iv", "bo", "u", "by", "j", "ar", "ta"];

#[test]
fn sorts_that_do_not_fit_give_what_those_do_that_fit() {
    let (mut much, mut little) = world(1, &[("t", 1500)]);
    let mut chance = Chance(2);
    for key in KEYS {
        let way = ["", " desc", " nulls first", " desc nulls last"][chance.below(4) as usize];
        let second = KEYS[chance.below(20) as usize];
        // By the direct path, whose rows are in the order of the table where the keys are equal.
        same(
            &mut much,
            &mut little,
            &format!("select *, ctid_free from (select *, 1 as ctid_free from t) q order by {key}{way}"),
            true,
        );
        same(&mut much, &mut little, &format!("select * from t order by {key}{way}, {second} desc"), true);
    }
    for query in [
        "select id, pad from t order by i + s, upper(t) desc nulls last, length(pad)",
        "select id, pad from t order by coalesce(b, 3) % 7",
        "select pad, id from t order by pad collate \"C\" desc, f",
        "select id, pad from t order by n limit 1200",
        "select id, pad from t order by n desc, id offset 700 limit 600",
        "select q.id, q.pad, q.a from (select id, pad, array[i, s] as a, row(t, c, array[v]) as r from t) q order by q.r, q.a desc",
        "select row_to_json(q)::text from (select id, r from (select id, pad, row(t, i) as r from t order by pad) q) q order by (q).id % 5",
        "select id, pad from t order by d desc nulls first fetch first 900 rows with ties",
        "select * from (select id, pad, n from t union all select id, pad, f::numeric from t where f <> 'NaN' and abs(f) < 1e20) u order by n, pad",
    ] {
        same(&mut much, &mut little, query, true);
    }
}

#[test]
fn a_cursor_reads_what_was_sorted_in_files() {
    let (mut much, mut little) = world(3, &[("t", 1500)]);
    let query = "select id, pad from t order by t, n desc";
    let expected = run(&mut much, query);
    run(&mut little, &format!("begin; declare c cursor for {query}"));
    let mut rows = run(&mut little, "fetch 10 from c");
    let files = temporary(&mut much).0;
    rows.extend(run(&mut little, "fetch 700 from c"));
    // Its files are there as long as it is.
    assert_eq!(temporary(&mut much).0, files);
    rows.extend(run(&mut little, "fetch all from c"));
    assert_eq!(rows, expected);
    run(&mut little, "commit");
    assert!(temporary(&mut much).0 > files);
}

#[test]
fn what_is_made_of_sorted_rows_needs_no_more_memory() {
    let (mut much, mut little) = world(4, &[("t", 1500)]);
    let before = temporary(&mut much).0;
    run(&mut little, "create table sorted as select * from t order by pad, id");
    assert!(temporary(&mut much).0 > before);
    assert_eq!(run(&mut much, "select count(*), count(distinct id) from sorted"), ["1500|1500"]);
}

#[test]
fn explain_analyze_says_what_was_written() {
    let (mut much, mut little) = world(5, &[("t", 1500)]);
    for query in ["select * from t order by pad", "select * from t where id >= 0 order by pad, (select 1)"] {
        let plan = run(&mut little, &format!("explain (analyze, costs off, timing off) {query}")).join("\n");
        assert!(plan.contains("Sort Method: external merge  Disk: ") && plan.contains("kB"), "{plan}");
        let plan = run(&mut little, &format!("explain (analyze, format json) {query}")).join("\n");
        assert!(
            plan.contains("\"Sort Method\": \"external merge\"") && plan.contains("\"Sort Space Type\": \"Disk\""),
            "{plan}"
        );
        let plan = run(&mut much, &format!("explain (analyze, costs off, timing off) {query}")).join("\n");
        assert!(!plan.contains("external merge"), "{plan}");
    }
}

#[test]
fn temporary_files_are_bounded_by_their_setting() {
    let (mut much, mut little) = world(6, &[("t", 1500)]);
    let query = "select * from t order by pad";
    run(&mut little, "set temp_file_limit = '100kB'");
    let refused = answer(&mut little, query).unwrap_err();
    assert_eq!(refused.state.as_str(), "53400", "{refused}");
    assert_eq!(refused.message, "temporary file size exceeds temp_file_limit (100kB)");
    run(&mut little, "reset temp_file_limit");
    assert_eq!(run(&mut little, query), run(&mut much, query));
}

#[test]
fn groups_that_do_not_fit_give_what_those_do_that_fit() {
    let (mut much, mut little) = world(7, &[("t", 1500)]);
    for key in KEYS {
        // With the number of the row there are many groups; half of them have two rows.
        let query =
            format!("select {key}, id / 2, count(*), sum(n), min(pad), max(id), avg(b) from t group by {key}, id / 2");
        same(&mut much, &mut little, &query, false);
    }
    for query in [
        // By the direct path, and by the engine over rows as they are stored.
        "select pad, i, count(*), max(t), bool_and(bo) from t group by pad, i",
        "select u, i, count(*) + 1, max(t) from t group by u, i having count(*) < 3",
        "select id, count(*) filter (where bo), sum(s), variance(i) from t group by id",
        "select b, s, n, count(*), json_agg(i)::text from t group by b, s, n",
        "select b, d, array_agg(pad), array_agg(distinct t), string_agg(v, '-' order by id desc) from t group by b, d",
        "select d, count(distinct pad), count(distinct i), sum(distinct n) from t group by d",
        "select count(distinct pad), count(distinct (i, n, t)), sum(distinct n), max(id) from t",
        "select array_agg(distinct id order by id desc) is null, string_agg(v, '' order by pad, id) from t",
        "select b, count(distinct pad || id), max(id) from t group by rollup (b)",
        "select i, d, grouping(i, d), count(*), max(pad) from t group by cube (i, d)",
        "select i, d, count(distinct id), max(pad) from t group by grouping sets ((i, d), (d), ())",
        "select i + s, upper(t), count(*), min(pad) from t group by i + s, upper(t)",
        "select q.g, (select count(distinct pad || x.id) from t x where x.s = q.g) from (select distinct s as g from t) q",
    ] {
        same(&mut much, &mut little, query, false);
    }
}

#[test]
fn what_cannot_be_written_out_says_so() {
    let (mut much, mut little) = world(8, &[("t", 1500)]);
    let query = "select length(string_agg(pad, '')), array_length(array_agg(pad || id), 1) from t";
    run(&mut much, query);
    let refused = answer(&mut little, query).unwrap_err();
    assert_eq!(refused.state.as_str(), "53200", "{refused}");
    assert!(refused.hint.as_deref().unwrap_or_default().contains("timeball.query_memory_bytes"));
    // What would be asked twice is not.
    let query = "select count(distinct pad || nextval('q')) from t";
    run(&mut much, "create sequence q");
    assert_eq!(answer(&mut little, query).unwrap_err().state.as_str(), "53200");
    assert_eq!(run(&mut little, "select count(*) from t"), ["1500"]);
}

#[test]
fn distinct_rows_come_in_the_order_of_the_first_ones() {
    let (mut much, mut little) = world(9, &[("t", 1500)]);
    for query in [
        "select distinct pad, i, t from t",
        "select distinct on (pad, s) id, pad, s from t",
        "select distinct on (pad, i) id, pad, i from t order by pad, i, id desc",
        "select distinct pad, n, f from (select * from t union all select * from t) q where n is not null",
        "select pad, n from t union select pad, n from t where id % 2 = 0",
        "select id, pad from t union select id + 500, pad from t",
    ] {
        same(&mut much, &mut little, query, query.contains("order by") || query.contains("on ("));
    }
    // The engine keeps their order whether they fit or not.
    same(
        &mut much,
        &mut little,
        "select distinct pad || t, i from (select * from t order by id desc) q where (select true)",
        true,
    );
}

#[test]
fn joins_that_do_not_fit_give_what_those_do_that_fit() {
    let (mut much, mut little) = world(10, &[("a", 900), ("b", 700)]);
    let sides = "a.id, b.id, length(a.pad), b.t";
    for (kind, condition) in [
        ("join", "a.id = b.id + 0"),
        ("left join", "a.id * 2 = b.id + 0"),
        ("full join", "a.id = b.id + 300 and a.i <> b.i"),
        ("right join", "a.pad = b.pad and a.t = b.t"),
        ("join", "a.i = b.b % 1000 and a.s = b.s"),
        ("left join", "a.n = b.i and a.d = b.d"),
        ("full join", "a.n = b.n and a.t = b.v"),
        ("full join", "a.i is not distinct from b.i and a.f = b.r and a.c = b.t"),
        ("full join", "a.ts = b.ts and a.iv = b.iv"),
        ("join", "a.j = b.j and a.ar = b.ar"),
        ("left join", "a.u = b.u and a.by = b.by and b.id > 200"),
        ("full join", "a.id = b.id and a.pad = b.pad"),
    ] {
        same(&mut much, &mut little, &format!("select {sides} from a {kind} b on {condition}"), false);
    }
    // One key with more rows than fit, and none at all.
    for (kind, condition) in [
        ("join", "a.bo = b.bo"),
        ("left join", "a.bo = b.bo and a.id + b.id < 300"),
        ("full join", "a.bo = b.bo and a.id + b.id < 300"),
        ("full join", "(a.id < 2 or a.id > 800) and a.id % 2 = b.id % 2 and a.id < b.id"),
        ("join", "a.id > b.id + 600"),
        ("left join", "a.id > b.id + 600"),
        ("cross join", ""),
    ] {
        let on = if condition.is_empty() { String::new() } else { format!("on {condition}") };
        let query = format!(
            "select count(*), count(a.id), count(b.id), sum(a.id), sum(b.id * a.s), sum(length(a.pad)), min(b.pad) from a {kind} b {on}"
        );
        same(&mut much, &mut little, &query, true);
    }
    for query in [
        "select a.id from a where exists (select 1 from b where b.i = a.i and b.s = a.s)",
        "select a.id, a.pad from a where a.id + 1 in (select b.id from b where b.pad is not null) order by a.pad, a.id",
        "select count(*), sum(x.id) from a x join b y on x.id = y.id join a z on z.id = y.id + 1 where z.pad > 'p'",
        "select q.t, count(*) from (select a.t, b.pad from a join b on a.s = b.s and a.i = b.i) q group by q.t order by 1",
    ] {
        let (mut expected, mut rows) = (run(&mut much, query), run(&mut little, query));
        expected.sort_unstable();
        rows.sort_unstable();
        assert_eq!(rows, expected, "{query}");
    }
}

#[test]
fn sides_that_come_in_the_order_of_their_keys_are_merged_and_not_written_out() {
    let (mut much, mut little) = world(12, &[("a", 900), ("b", 700)]);
    for kind in ["join", "left join"] {
        let query = format!("select a.id, a.pad, b.id, b.pad from a {kind} b on a.id = b.id and a.i < b.i + 900");
        let before = temporary(&mut little).0;
        let (expected, rows) = (run(&mut much, &query), run(&mut little, &query));
        assert_eq!(temporary(&mut little).0, before, "{query} was written out");
        // (They come in the order of the keys, whichever way they are joined.)
        let sorted = |mut rows: Vec<String>| {
            rows.sort_unstable();
            rows
        };
        assert_eq!(sorted(rows), sorted(expected), "{query}");
    }
}

#[test]
fn the_rows_of_one_key_of_a_merge_may_be_more_than_memory_holds() {
    let (mut much, mut little) = world(13, &[("a", 60), ("b", 900)]);
    run(&mut much, "create index on a (bo)");
    run(&mut much, "create index on b (bo)");
    run(&mut little, "set enable_hashjoin = off");
    for kind in ["join", "left join"] {
        let query = format!(
            "select a.bo, a.id, b.id, length(b.pad), b.t from a {kind} b on a.bo = b.bo and a.id + b.id < 400 order by a.bo"
        );
        let plan = run(&mut little, &format!("explain {query}")).join("\n");
        assert!(plan.contains("Merge Cond: (a.bo = b.bo)") && !plan.contains("Sort"), "{plan}");
        same(&mut much, &mut little, &query, false);
    }
}

#[test]
fn explain_analyze_says_what_groups_and_joins_wrote() {
    let (mut much, mut little) = world(11, &[("a", 900), ("b", 700)]);
    for query in [
        "select a.id + 0, count(*) filter (where a.i > 0), max(a.pad) from a group by a.id + 0",
        "select a.id, b.id, b.pad from a full join b on a.id = b.id",
    ] {
        let plan = run(&mut little, &format!("explain (analyze, costs off, timing off) {query}")).join("\n");
        assert!(plan.contains("Batches: ") && plan.contains("  Disk Usage: "), "{plan}");
        let plan = run(&mut much, &format!("explain (analyze, costs off, timing off) {query}")).join("\n");
        assert!(plan.contains("Batches: 1  Memory Usage: ") && !plan.contains("Disk Usage: "), "{plan}");
    }
}

/// What is computed again would be another key: such groups and joins are not written out.
#[test]
fn volatile_keys_are_not_computed_twice() {
    let (mut much, mut little) = world(13, &[("a", 900), ("b", 700)]);
    for query in [
        "select random() r, count(*) from a, (values (1), (2)) x (y) group by r",
        "select count(*) from a join b on a.id + floor(random()) = b.id + floor(random()) and a.pad = b.pad",
        "select row_number() over (partition by random()), id, pad from a",
    ] {
        assert!(answer(&mut much, query).is_ok(), "{query}");
        match answer(&mut little, query) {
            Err(error) => assert_eq!(error.state.as_str(), "53200", "{query}"),
            // Where the key is a column of what is below it was computed once.
            Ok(rows) => assert!(!rows.is_empty(), "{query}"),
        }
    }
    run(&mut much, "create sequence s");
    let keys = "select nextval('s') + 0, count(*) from a group by nextval('s') + 0";
    let refused = answer(&mut little, keys).unwrap_err();
    assert_eq!(refused.state.as_str(), "53200");
}

#[test]
fn windows_whose_rows_do_not_fit_give_what_those_do_that_fit() {
    let (mut much, mut little) = world(12, &[("t", 1500)]);
    for query in [
        "select id, pad, row_number() over (partition by d, s order by n, id) from t",
        "select id, sum(id) over (partition by t, i), rank() over (partition by t, i order by f desc nulls last) from t",
        "select id, lag(pad) over (partition by s, d order by id), count(*) over (partition by b, v), first_value(t) over (partition by s, d order by n) from t",
        "select id, max(pad) over (partition by i, s % 3 order by id rows between 2 preceding and current row) from t",
    ] {
        same(&mut much, &mut little, query, true);
    }
    // One partition of all rows has no parts.
    let refused = answer(&mut little, "select id, pad, row_number() over (order by n) from t").unwrap_err();
    assert_eq!(refused.state.as_str(), "53200");
    let refused = answer(&mut little, "select id, pad, row_number() over (partition by id * 0) from t").unwrap_err();
    assert_eq!(refused.state.as_str(), "53200");
}
