//! Views that would read themselves, and views over views.

use super::{run, session};
use sql::Session;

fn state(session: &mut Session, sql: &str) -> String {
    run(session, sql).map_or_else(|e| e.state.as_str().to_string(), |_| "00000".into())
}

#[test]
fn a_view_cannot_come_to_read_itself() {
    let mut s = session();
    for (sql, expected) in [
        ("CREATE VIEW v2 AS SELECT 1 AS a; CREATE VIEW v3 AS SELECT * FROM v2", "00000"),
        ("CREATE OR REPLACE VIEW v2 AS SELECT * FROM v3", "42P17"),
        ("CREATE OR REPLACE VIEW v2 AS SELECT * FROM v2", "42P17"),
        ("CREATE OR REPLACE VIEW v2 AS SELECT (SELECT max(a) FROM v3) AS a", "42P17"),
        ("CREATE OR REPLACE VIEW v2 AS WITH w AS (SELECT * FROM v3) SELECT a FROM w", "42P17"),
        ("SELECT * FROM v3", "00000"),
        // By other names the way round is as long.
        ("ALTER VIEW v2 RENAME TO v4; CREATE VIEW v2 AS SELECT * FROM v3", "00000"),
        ("CREATE OR REPLACE VIEW v4 AS SELECT a FROM v2", "42P17"),
        ("SELECT * FROM v2; SELECT pg_get_viewdef('v2'::regclass)", "00000"),
        ("DROP VIEW v4", "2BP01"),
        ("DROP VIEW v4 CASCADE", "00000"),
        ("SELECT * FROM v3", "42P01"),
    ] {
        assert_eq!(state(&mut s, sql), expected, "{sql}");
    }
}

#[test]
fn views_over_views_are_as_deep_as_their_queries_together() {
    let mut s = session();
    run(&mut s, "CREATE VIEW d0 AS SELECT 1 AS a").unwrap();
    let levels = 400;
    for level in 1..=levels {
        let made = run(&mut s, &format!("CREATE VIEW d{level} AS SELECT a FROM d{}", level - 1));
        if let Err(error) = made {
            assert!(level > 64, "{level}: {error}");
            assert_eq!(error.state.as_str(), "54001");
            break;
        }
    }
    assert_eq!(run(&mut s, "SELECT a FROM d64").unwrap(), ["1"]);
    run(&mut s, "DROP VIEW d0 CASCADE").unwrap();
    // Long queries: what they add up to is bounded too.
    let sum = " + 1".repeat(9_000);
    run(&mut s, &format!("CREATE VIEW d0 AS SELECT 1{sum} AS a")).unwrap();
    let deepest = (1..20).find(|level| {
        let text = format!("CREATE VIEW d{level} AS SELECT (SELECT a FROM d{}){sum} AS a", level - 1);
        run(&mut s, &text).is_err_and(|e| e.state.as_str() == "54001")
    });
    let deepest = deepest.expect("no bound was met");
    // Every view that was made can be read.
    let all = run(&mut s, &format!("SELECT a FROM d{}", deepest - 1)).unwrap();
    assert_eq!(all, [(deepest * 9_000 + 1).to_string()]);
}
