//! No input ends a stack, and what people write is not refused for its depth.

#[path = "../direct/world.rs"]
#[allow(dead_code)]
mod world;

mod linear;
mod views;

use sql::context::EvalSettings;
use sql::output::Mark;
use sql::transaction::Interrupt;
use sql::transaction::memory::MemoryKv;
use sql::types::Value;
use sql::{Database, DatabaseOptions, Field, Output, Session, SqlError, Startup};
use std::sync::Arc;

/// Collects rows as text.
#[derive(Default)]
struct Rows(Vec<String>);

impl Output for Rows {
    fn row_description(&mut self, _: &[Field], _: &[i16]) {}
    fn row(&mut self, values: &[Value], fields: &[Field], _: &[i16], settings: &EvalSettings) -> Result<(), SqlError> {
        let row: Vec<_> = values.iter().zip(fields).map(|(v, f)| v.to_text(&f.ty, settings)).collect();
        self.0.push(row.join("|"));
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
        Mark(0)
    }
    fn rewind(&mut self, _: Mark) -> bool {
        false
    }
}

fn session() -> Session {
    let db = Database::open(Arc::new(MemoryKv::new()), DatabaseOptions::default()).expect("open");
    let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
    let mut session = Session::new(db, startup, Interrupt::default()).expect("session");
    run(&mut session, "CREATE TABLE t (a int PRIMARY KEY, b int, c text, j jsonb)").unwrap();
    run(&mut session, "INSERT INTO t VALUES (1, 2, 'c', '{}')").unwrap();
    session
}

fn run(session: &mut Session, sql: &str) -> Result<Vec<String>, SqlError> {
    let mut out = Rows::default();
    session.simple_query(sql, &mut out).map(|()| out.0)
}

/// `SELECT ((1))`, by its parts and the number of levels.
fn nest(before: &str, open: &str, inner: &str, close: &str, after: &str, n: usize) -> String {
    format!("{before}{}{inner}{}{after}", open.repeat(n), close.repeat(n))
}

/// Depths that PostgreSQL takes, and people write.
#[test]
fn what_people_write_is_answered() {
    let mut session = session();
    let mut answer = |text: String, expected: &str| {
        let rows = run(&mut session, &text);
        let rows = rows.unwrap_or_else(|e| panic!("{}: {e}", &text[..text.len().min(120)]));
        assert_eq!(rows.first().map(String::as_str), Some(expected), "{}", &text[..text.len().min(120)]);
        rows.len()
    };
    answer(nest("SELECT ", "abs(", "a", ")", " FROM t", 70), "1");
    answer(nest("SELECT ", "abs(", "1", ")", "", 200), "1");
    answer(nest("SELECT ", "(", "a", ")", " FROM t", 200), "1");
    answer(nest("SELECT ", "(", "a", " + 1)", " FROM t", 400), "401");
    answer(nest("SELECT ", "CASE WHEN b = 1 THEN 0 ELSE ", "a", " END", " FROM t", 64), "1");
    answer(nest("SELECT ", "CASE WHEN true THEN ", "a", " END", " FROM t", 200), "1");
    answer(nest("SELECT count(*) FROM t WHERE a = 0", " OR a = 7", " OR a = 1", "", "", 5_000), "1");
    answer(nest("SELECT count(*) FROM t WHERE a = 1", " AND a = 1 AND c = 'c'::text", "", "", "", 5_000), "1");
    answer(nest("SELECT count(*) FROM t WHERE a = 0", " OR t.a = 1 AND t.b = 3", " OR a = 1", "", "", 5_000), "1");
    answer(nest("SELECT a", " + a", "", "", " FROM t", 5_000), "5001");
    answer(nest("SELECT 1", " + 1", "", "", "", 5_000), "5001");
    answer(nest("SELECT length(c", " || c", "", "", ") FROM t", 5_000), "5001");
    assert_eq!(answer(nest("SELECT a FROM t", " UNION ALL SELECT a FROM t", "", "", "", 2_000), "1"), 2_001);
    assert_eq!(answer(nest("SELECT 1, 2", " UNION ALL SELECT 1, 2", "", "", "", 2_000), "1|2"), 2_001);
    answer(nest("SELECT 1", " UNION SELECT 1", "", "", "", 2_000), "1");
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for ty in ["json", "jsonb"] {
            let text = format!("SELECT length(('{}1{}'::{ty})::text) > 600", open.repeat(600), close.repeat(600));
            answer(text, "t");
        }
    }
    answer(nest("SELECT count(*) FROM t WHERE a IN (1", ", 7", "", "", ")", 20_000), "1");
    answer(nest("SELECT ", "(SELECT ", "1", ")", "", 64), "1");
    answer(nest("SELECT ", "(SELECT max(a) FROM t WHERE a = ", "1", ")", "", 64), "1");
    answer(nest("SELECT * FROM ", "(SELECT * FROM ", "(SELECT 1) y", ") x", "", 64), "1");
    answer(nest("SELECT 1 WHERE ", "EXISTS (SELECT 1 FROM t WHERE ", "true", ")", "", 64), "1");
    answer(nest("SELECT 1 WHERE ", "1 IN (SELECT a FROM t WHERE ", "true", ")", "", 64), "1");
    answer(nest("", "WITH w AS (", "SELECT 1 AS a", ") SELECT * FROM w", "", 64), "1");
    answer(nest("SELECT ", "-(", "a", ")", " FROM t", 64), "1");
    answer(nest("SELECT ", "NOT (", "true", ")", "", 64), "t");
    answer(nest("SELECT a", "::int8", "", "::text", " FROM t", 100), "1");
}

/// What nests: in what statement, what opens a level, the innermost, what closes a level, and how the statement ends.
const SHAPES: &[[&str; 5]] = &[
    ["SELECT ", "(", "1", ")", ""],
    ["SELECT ", "(", "", "", ""],
    ["SELECT ", "((", "a", ") + 1)", " FROM t"],
    ["SELECT ", "abs(", "a", ")", " FROM t"],
    ["SELECT ", "f(", "", "", ""],
    ["SELECT ", "coalesce(a, ", "1", ")", " FROM t"],
    ["SELECT ", "CASE WHEN true THEN ", "a", " END", " FROM t"],
    ["SELECT ", "CASE a WHEN 1 THEN ", "a", "", " FROM t"],
    ["SELECT ", "CAST(", "a", " AS int)", " FROM t"],
    ["SELECT ", "CAST(", "", "", ""],
    ["SELECT a", "::int8", "", "::int4", " FROM t"],
    ["SELECT ", "NOT ", "true", "", ""],
    ["SELECT ", "- ", "a", "", " FROM t"],
    ["SELECT ", "+ ", "1", "", ""],
    ["SELECT ", "~ ", "1", "", ""],
    ["SELECT 1 ", "+", " 1", "", ""],
    ["SELECT 1 ", "-+@", " 1", "", ""],
    ["CREATE TABLE d (a int", ", b int", "", "", "); DROP TABLE d"],
    ["SELECT 1::numeric(1", ", 1", "", "", ")"],
    ["SELECT ", "@ ", "1", "", ""],
    ["SELECT ", "interval ", "'1'", "", ""],
    ["SELECT ", "interval - ", "'1'", "", ""],
    ["SELECT ", "", "a", " + a", " FROM t"],
    ["SELECT ", "", "c", " || c", " FROM t"],
    ["SELECT ", "", "2", " ^ 1", ""],
    ["SELECT ", "2 ^ - ", "1", "", ""],
    ["SELECT ", "", "a", " = a", " FROM t"],
    ["SELECT ", "", "j", " -> 'a'", " FROM t"],
    ["SELECT ", "", "a", " IS NULL", " FROM t"],
    ["SELECT ", "", "a", " ISNULL", " FROM t"],
    ["SELECT ", "", "a", " IS NOT DISTINCT FROM a AND true", " FROM t"],
    ["SELECT ", "", "c", " COLLATE \"C\"", " FROM t"],
    ["SELECT ", "", "now()", " AT TIME ZONE 'UTC'", ""],
    ["SELECT ", "", "a", " BETWEEN 1 AND 2", " FROM t"],
    ["SELECT ", "", "a", " IN (1)", " FROM t"],
    ["SELECT ", "", "c", " LIKE 'a'", " FROM t"],
    ["SELECT ", "", "a", " OPERATOR(pg_catalog.+) 1", " FROM t"],
    ["SELECT 1 FROM t WHERE ", "", "a = 1", " OR a = 2", ""],
    ["SELECT 1 FROM t WHERE ", "", "a = 1", " AND b = 2 OR a = 3", ""],
    ["SELECT 1 FROM t WHERE ", "(", "a = 1", " OR a = 2)", ""],
    ["SELECT 1 FROM t WHERE ", "(a = 2 AND ", "a = 1", " OR a = 2)", ""],
    ["SELECT ", "ARRAY[", "1", "]", ""],
    ["SELECT a", "[1", "", "]", " FROM t"],
    ["SELECT a", "[1]", "", "", " FROM t"],
    ["SELECT a", ".b", "", "", " FROM t"],
    ["SELECT ", "ROW(", "1", ")", ""],
    ["SELECT ", "((", "1", ", 1) < (1, 1))", ""],
    ["SELECT ", "(1, ", "1", ")", ""],
    ["SELECT ", "(SELECT ", "1", ")", ""],
    ["SELECT ", "((SELECT ", "1", ") + 1)", ""],
    ["SELECT 1 IN ", "((SELECT ", "1", ") + 1)", ""],
    ["SELECT 1 WHERE ", "EXISTS (SELECT 1 FROM t WHERE ", "true", ")", ""],
    ["SELECT 1 WHERE ", "NOT EXISTS (SELECT 1 FROM t x WHERE x.a = t.a AND ", "true", ")", ""],
    ["SELECT 1 WHERE ", "1 IN (SELECT a FROM t WHERE ", "true", ")", ""],
    ["SELECT ", "ARRAY(SELECT ", "1", ")", ""],
    ["SELECT * FROM ", "(SELECT * FROM ", "t", ") x", ""],
    ["SELECT * FROM ", "(", "t", ")", ""],
    ["SELECT * FROM ", "(", "t", " JOIN t t2 ON true)", ""],
    ["SELECT * FROM ", "((SELECT 1) x JOIN ", "t", " ON true)", ""],
    ["SELECT * FROM ", "((TABLE t) x JOIN ", "t", " ON true)", ""],
    ["SELECT * FROM t", " JOIN t", "", " ON true", ""],
    ["SELECT * FROM t", ", t", "", "", ""],
    ["", "(", "SELECT 1", ")", ""],
    ["", "", "SELECT 1", " UNION SELECT 1", ""],
    ["", "", "SELECT 1", " UNION ALL SELECT 2", ""],
    ["", "", "SELECT a FROM t", " EXCEPT SELECT a FROM t", ""],
    ["", "(", "SELECT 1", " UNION SELECT 2)", ""],
    ["", "SELECT 1 UNION (", "SELECT 1", ")", ""],
    ["", "WITH w AS (", "SELECT 1 AS a", ") SELECT * FROM w", ""],
    ["", "WITH RECURSIVE w AS (", "SELECT 1 AS a", " UNION SELECT * FROM w) SELECT * FROM w", ""],
    ["", "EXPLAIN ", "SELECT 1", "", ""],
    ["", "PREPARE p AS ", "SELECT 1", "", ""],
    ["EXPLAIN ", "BEGIN ", "SELECT 1", " END", ""],
    ["PREPARE p AS ", "EXPLAIN PREPARE q AS ", "SELECT 1", "", ""],
    ["COPY (", "EXPLAIN ", "SELECT 1", "", ") TO STDOUT"],
    ["", "WITH w AS (DELETE FROM t RETURNING a) ", "SELECT 1", "", ""],
    ["CREATE VIEW v AS ", "EXPLAIN ", "SELECT 1", "", ""],
    ["", "IF true THEN ", "SELECT 1", "; END IF", ""],
    ["", "BEGIN; ", "SELECT 1", "; COMMIT", ""],
    ["SELECT a FROM t LIMIT ", "(SELECT a FROM t LIMIT ", "1", ")", ""],
    ["SELECT 1 FROM t GROUP BY ", "ROLLUP (", "a", ")", ""],
    ["SELECT 1 FROM t GROUP BY ", "GROUPING SETS (", "a", ")", ""],
    ["SELECT ", "max(", "a", ")", " FROM t"],
    ["SELECT ", "max(a) OVER (ORDER BY ", "a", ")", " FROM t"],
    ["SELECT ", "position(", "'a'", " IN 'a')", ""],
    ["SELECT ", "position(", "'a'", ", 'a')", ""],
    ["SELECT ", "substring(", "'a'", " FROM 1)", ""],
    ["SELECT ", "extract(year FROM ", "now()", ")", ""],
    ["SELECT ", "trim(", "'a'", ")", ""],
    ["SELECT 1::", "int", "", "[]", ""],
    ["SELECT CAST(1 AS ", "numeric(", "1", ")", ")"],
    ["SELECT CAST(1 AS ", "ARRAY<", "int", ">", ")"],
    ["SELECT CAST(1 AS ", "TABLE(a ", "int", ")", ")"],
    ["SELECT '", "[", "1", "]", "'::jsonb"],
    ["SELECT '", "{\"a\":", "1", "}", "'::jsonb"],
    ["SELECT '", "[", "", "", "'::json"],
    ["SELECT '", "[", "1", "]", "'::json"],
    ["SELECT '", "{", "1", "}", "'::int[]"],
    ["SELECT '", "(", "1", ")", "'::point"],
    ["SELECT '{", "a,", "b", "", "}'::text[]"],
    ["SELECT 'a' ~ '", "(", "a", ")", "'"],
    ["SELECT 'a' ~ '", "(", "a", ")*", "'"],
    ["SELECT 'a' ~ '", "[", "a", "]", "'"],
    ["SELECT 'a' SIMILAR TO '", "(", "a", ")", "'"],
    ["SELECT 'a' LIKE '", "%_", "a", "", "'"],
    ["SELECT to_char(1, '", "9", "", "", "')"],
    ["SELECT to_char(now(), '", "YYYY\"", "", "\"", "')"],
    ["SELECT jsonb_path_query('{}', '", "(", "$", ")", "')"],
    ["SELECT j #> '{", "a,", "a", "", "}' FROM t"],
    ["SELECT format('", "%s", "", "", "')"],
    ["SELECT interval '", "1 day ", "", "", "'"],
    ["SELECT ", "/*", "", "*/", " 1"],
    ["SELECT ", "\"", "", "\"", ""],
    ["SELECT ", "$$", "", "$$", ""],
    ["CREATE TABLE d (a int DEFAULT ", "(", "1", ")", "); DROP TABLE d"],
    ["CREATE TABLE d (a int DEFAULT ", "", "1", " + 1", "); DROP TABLE d"],
    ["CREATE TABLE d (a int CHECK ", "(", "a > 1", ")", "); DROP TABLE d"],
    ["CREATE TABLE d (a int, CHECK (", "", "a > 1", " OR a = 1", ")); DROP TABLE d"],
    ["CREATE TABLE d (a ", "int", "", "[]", "); DROP TABLE d"],
    ["CREATE INDEX i ON t (", "(", "a", ")", "); DROP INDEX i"],
    ["CREATE INDEX i ON t ((", "", "a", " + 1", ")); SELECT pg_get_indexdef('i'::regclass); DROP INDEX i"],
    [
        "CREATE INDEX i ON t (a) WHERE ",
        "",
        "a = 1",
        " OR a = 2",
        "; SELECT pg_get_indexdef('i'::regclass); DROP INDEX i",
    ],
    ["CREATE VIEW v AS SELECT ", "(", "1", ")", " AS a; SELECT * FROM v; DROP VIEW v"],
    ["CREATE VIEW v AS SELECT ", "", "1", " + 1", " AS a; SELECT a, pg_get_viewdef('v'::regclass) FROM v; DROP VIEW v"],
    ["CREATE VIEW v AS ", "", "SELECT 1 AS a", " UNION ALL SELECT 1", "; SELECT a FROM v; DROP VIEW v"],
    ["CREATE VIEW v AS SELECT 1 AS a WHERE ", "", "true", " OR false", "; SELECT a FROM v; DROP VIEW v"],
    ["INSERT INTO t VALUES (", "", "5", " + 1", ") ON CONFLICT DO NOTHING"],
    ["INSERT INTO t VALUES (1)", ", (1)", "", "", " ON CONFLICT DO NOTHING"],
    ["INSERT INTO t SELECT 1 FROM ", "(SELECT * FROM ", "t", ") x", " ON CONFLICT DO NOTHING"],
    ["UPDATE t SET b = ", "(", "1", ")", ""],
    ["UPDATE t SET b = ", "", "1", " + 1", ""],
    ["DELETE FROM t WHERE ", "", "a = 7", " OR a = 8", ""],
    ["PREPARE p AS SELECT ", "", "1", " + 1", "; EXECUTE p; EXPLAIN EXECUTE p; DEALLOCATE p"],
    ["PREPARE p AS SELECT ", "(", "$1::int", " + 1)", "; EXECUTE p(1); DEALLOCATE p"],
    ["BEGIN; DECLARE c CURSOR FOR SELECT ", "", "1", " + 1", "; FETCH c; ROLLBACK"],
    ["EXPLAIN SELECT ", "", "a", " + 1", " FROM t"],
    ["EXPLAIN SELECT * FROM ", "(SELECT * FROM ", "t", " OFFSET 0) x", ""],
    ["COPY (SELECT ", "", "1", " + 1", ") TO STDOUT"],
    ["SET search_path TO ", "a, ", "a", "", "; RESET search_path"],
];

/// Around each bound, and far beyond.
const DEPTHS: &[usize] = &[70, 499, 9_900, 39_000, 100_000];

/// An answer or an error, whatever nests and however deep. The thread of a test has 2 MiB of stack.
fn no_depth_ends_a_stack(shapes: &[[&str; 5]]) {
    let mut refused = 0;
    let mut session = session();
    for [before, open, inner, close, after] in shapes {
        // Queries within queries look for names in all those around: a hundred of them are enough.
        let queries = open.contains("SELECT") || close.contains("SELECT");
        // Only ANDs and ORs may be as many as this.
        let logic = [open, close].iter().any(|part| part.contains(" OR ") || part.contains(" AND "));
        let depths = DEPTHS.iter().filter(|n| logic || **n != 39_000);
        for n in depths.map(|&n| if queries && n == 499 { 120 } else { n }) {
            let text = nest(before, open, inner, close, after, n);
            // A stack that ends says nothing: the last line printed is the input that did it.
            eprintln!("{n} of {before}{open}{inner}{close}{after}");
            let result = run(&mut session, &text);
            if let Err(error) = result {
                assert!(error.state.as_str() != "XX000", "{error} at {n} of {before}{open}");
                refused += usize::from(error.state.as_str() == "54001");
                let _ = run(&mut session, "ROLLBACK");
            }
        }
        // What a statement left behind when it failed on its way.
        for text in ["DROP TABLE IF EXISTS d", "DROP INDEX IF EXISTS i", "DROP VIEW IF EXISTS v", "DEALLOCATE ALL"] {
            let _ = run(&mut session, text);
        }
    }
    assert!(refused > shapes.len() / 2, "{refused} refusals");
    assert_eq!(run(&mut session, "SELECT count(*) > 0 FROM t").unwrap(), ["t"]);
}

#[test]
fn no_depth_of_expressions_ends_a_stack() {
    no_depth_ends_a_stack(&SHAPES[..SHAPES.len() / 2]);
}

#[test]
fn no_depth_of_statements_ends_a_stack() {
    no_depth_ends_a_stack(&SHAPES[SHAPES.len() / 2..]);
}
