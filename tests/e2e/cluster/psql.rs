//! Consistency by choice, as whoever has psql and a demonstration of three nodes sees it: each mode in each way to say it, the reads of the past, and what time cost.

use super::demo::{Demo, Shown};
use crate::clients::{text, tool};
use crate::node::{has_program, repeat_with, skip, until};
use std::io::Write;
use std::process::{Output, Stdio};

const MODES: [&str; 6] = ["auto", "strict", "hybrid", "token", "none", "stale"];

/// What psql says of a script. `options`: of the connection's URL.
fn run(node: &Shown, options: &str, script: &str) -> Output {
    let url = format!("postgresql://root@{}/demo{options}", node.sql);
    let mut child = tool("psql")
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=sqlstate", "-d", &url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Its lines.
fn lines(node: &Shown, options: &str, script: &str) -> Vec<String> {
    let output = run(node, options, script);
    assert!(output.status.success(), "{options} {script}\n{}", text(&output));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// What EXPLAIN ANALYZE says that time cost, its numbers by their form: `#` a whole one, `#.#` one with a fraction.
fn cost(shown: &[String]) -> Vec<String> {
    let from = shown.iter().position(|line| line.starts_with("Consistency: ")).expect("the mode");
    let form = |line: &String| {
        let mut form = String::new();
        for c in line.chars() {
            let c = if c.is_ascii_digit() { '#' } else { c };
            if !(c == '#' && form.ends_with('#')) {
                form.push(c);
            }
        }
        form
    };
    let end = shown[from..].iter().position(|line| !line.contains(": ")).map_or(shown.len(), |length| from + length);
    let times = ["Planning Time", "Execution Time"];
    shown[from..end].iter().filter(|line| !times.iter().any(|time| line.starts_with(time))).map(form).collect()
}

/// The lines that [`cost`] gives of a mode; `past`: it reads the past.
fn costs(mode: &str, past: bool) -> Vec<String> {
    let rest = [
        "Clock bound at start: #.# ms",
        "Uncertainty restarts: #",
        "Snapshot refreshes: #",
        "Lock wait: #.# ms",
        "Commit wait hidden by replication: #.# ms",
        "Commit wait beyond replication: #.# ms",
    ];
    let age = past.then_some("Snapshot age: #.# ms");
    let mode = format!("Consistency: {mode}");
    [mode.as_str()].into_iter().chain(age).chain(rest).map(str::to_owned).collect()
}

/// A demonstration with a table that the past has; `None` without psql.
fn demonstration() -> Option<(Demo, Vec<Shown>)> {
    if !has_program("psql") {
        skip("psql is missing");
        return None;
    }
    let (demo, nodes) = Demo::start();
    lines(&nodes[0], "", "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0);");
    for node in &nodes {
        // The freshest past that is here, and a past of some seconds ago, which has the table later.
        for past in [
            "SET timeball.consistency = 'stale'; SELECT v FROM t;",
            "SELECT v FROM t AS OF SYSTEM TIME follower_read_timestamp();",
        ] {
            until("the past has it", || {
                let output = run(node, "", past);
                (output.status.success() && output.stdout == b"0\n").then_some(())
            });
        }
    }
    Some((demo, nodes))
}

/// Whatever way a mode is chosen, the statement behind it is of that mode, says what time cost it, and writes unless it is of the past.
#[test]
fn each_mode_is_chosen_from_psql_in_each_way() {
    repeat_with("cluster::psql::each_mode_is_chosen_from_psql_in_each_way");
    let Some((_demo, nodes)) = demonstration() else { return };
    let mut written = 0;
    for (turn, mode) in MODES.into_iter().enumerate() {
        let alter = format!("ALTER DATABASE demo SET timeball.consistency = '{mode}';");
        let option = format!("?options=-c%20timeball.consistency%3D{mode}");
        let ways = [
            ("SET", "", format!("SET timeball.consistency = '{mode}';"), ""),
            (
                "SET SESSION CHARACTERISTICS",
                "",
                format!("SET SESSION CHARACTERISTICS AS TRANSACTION CONSISTENCY {mode};"),
                "",
            ),
            ("SET TRANSACTION", "", format!("BEGIN; SET TRANSACTION CONSISTENCY {mode};"), "COMMIT;"),
            ("SET LOCAL", "", format!("BEGIN; SET LOCAL timeball.consistency = '{mode}';"), "COMMIT;"),
            ("BEGIN", "", format!("BEGIN CONSISTENCY {mode};"), "COMMIT;"),
            ("the connection", option.as_str(), String::new(), ""),
            ("the database", "", String::new(), ""),
        ];
        for (n, (way, options, before, after)) in ways.into_iter().enumerate() {
            if way == "the database" {
                lines(&nodes[turn % 3], "", &alter);
            }
            let node = &nodes[(turn + n) % 3];
            let what = format!("{mode} by {way}");
            let shown = lines(node, options, &format!("{before} EXPLAIN ANALYZE SELECT v FROM t; {after}"));
            let expected = match mode {
                "auto" => match shown.iter().any(|line| line == "Consistency: hybrid") {
                    true => costs("hybrid", false),
                    false => costs("strict", false),
                },
                mode => costs(mode, mode == "stale"),
            };
            assert_eq!(cost(&shown), expected, "{what}: {shown:?}");
            let update = "EXPLAIN ANALYZE UPDATE t SET v = v + 1;";
            let output = run(node, options, &format!("{before} {update} {after}"));
            let said = text(&output);
            if mode == "stale" {
                assert!(!output.status.success() && said.contains("25006"), "{what}: {said}");
                continue;
            }
            written += 1;
            let shown: Vec<String> = said.lines().map(str::to_owned).collect();
            assert!(output.status.success() && cost(&shown) == expected, "{what}: {said}");
        }
        lines(&nodes[0], "", "SET timeball.consistency = 'auto'; ALTER DATABASE demo RESET timeball.consistency;");
        let seen = lines(
            &nodes[(turn + 1) % 3],
            "",
            "SHOW timeball.consistency; SET timeball.consistency = 'strict'; SELECT v FROM t;",
        );
        assert_eq!(seen, ["auto".to_owned(), written.to_string()], "after {mode}");
    }
}

/// Every form of AS OF SYSTEM TIME reads what there was, at every node, for a statement, inside a subquery's query, and for a block.
#[test]
fn the_past_is_read_from_psql_in_each_form() {
    repeat_with("cluster::psql::the_past_is_read_from_psql_in_each_form");
    let Some((_demo, nodes)) = demonstration() else { return };
    let then = lines(
        &nodes[0],
        "",
        "SELECT v FROM t; SHOW timeball.token; SELECT now(); SELECT extract(epoch FROM now())::numeric * 1000000000;",
    );
    let [v, token, at, nanoseconds] = &then[..] else { panic!("{then:?}") };
    assert_eq!(v, "0");
    lines(&nodes[1], "", "UPDATE t SET v = 1;");
    let exact = [
        format!("'{token}'"),
        format!("'{at}'"),
        nanoseconds.split('.').next().unwrap().to_owned(),
        format!("with_min_timestamp('{token}')"),
    ];
    let nearly = [
        "'-1ms'",
        "follower_read_timestamp()",
        "with_max_staleness('1h')",
        "with_negotiated_timestamp('1h')",
        "with_negotiated_timestamp()",
    ];
    for node in &nodes {
        for (form, known) in
            exact.iter().map(|form| (form.as_str(), !form.starts_with("with"))).chain(nearly.map(|form| (form, false)))
        {
            let script = [
                format!("SELECT v FROM t AS OF SYSTEM TIME {form};"),
                format!("SELECT max(v) FROM (SELECT v FROM t) x AS OF SYSTEM TIME {form};"),
                format!("BEGIN AS OF SYSTEM TIME {form}; SELECT v FROM t; SELECT v FROM t; COMMIT;"),
            ];
            let seen = lines(node, "", &script.concat());
            let right = |v: &String| if known { v == "0" } else { v == "0" || v == "1" };
            assert!(seen.len() == 4 && seen.iter().all(right) && seen[2] == seen[3], "{form}: {seen:?}");
            let shown = lines(node, "", &format!("EXPLAIN ANALYZE SELECT v FROM t AS OF SYSTEM TIME {form};"));
            assert_eq!(cost(&shown), costs("stale", true), "{form}: {shown:?}");
        }
        for (form, state) in
            [("'+10s'", "22023"), ("'nonsense'", "22023"), ("'2000-01-01'", "22023"), ("'-100y'", "22023")]
        {
            let output = run(node, "", &format!("SELECT v FROM t AS OF SYSTEM TIME {form};"));
            assert!(text(&output).contains(state), "{form}: {}", text(&output));
        }
        let bounded = lines(node, "", "SET timeball.max_staleness = '1h'; EXPLAIN ANALYZE SELECT v FROM t;");
        assert_eq!(cost(&bounded), costs("stale", true), "{bounded:?}");
    }
}
