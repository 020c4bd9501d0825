//! Joins of dates with moments: hashed as the moments that the dates begin at.

use super::{open, run, session};
use sql::transaction::memory::MemoryKv;

/// Each join gives what the same comparison gives row by row.
#[test]
fn dates_are_hashed_with_moments() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(
        &mut a,
        "CREATE TABLE d (id int, day date); CREATE TABLE m (id int, at timestamp, zoned timestamptz); SET timezone = 'Europe/Berlin'; \
         INSERT INTO d SELECT g, date '2020-02-01' + g FROM generate_series(1, 80) g; \
         INSERT INTO d VALUES (501, 'infinity'), (502, '-infinity'), (503, NULL), (504, '5874897-12-31'), (505, '2020-03-29'), (506, '294276-12-31'); \
         INSERT INTO m SELECT g, timestamp '2020-02-01' + g * interval '12 hours', (date '2020-02-01')::timestamptz + g * interval '12 hours' \
         FROM generate_series(1, 200) g; \
         INSERT INTO m VALUES (1501, 'infinity', 'infinity'), (1502, '-infinity', '-infinity'), (1503, NULL, NULL), \
         (1504, '294276-12-31 00:00:00', '294276-12-31 00:00:00')",
    );
    for zone in ["Europe/Berlin", "America/Los_Angeles"] {
        run(&mut a, &format!("SET timezone = '{zone}'"));
        for column in ["at", "zoned"] {
            for (join, op) in [
                ("JOIN", "="),
                ("LEFT JOIN", "="),
                ("RIGHT JOIN", "="),
                ("FULL JOIN", "="),
                ("JOIN", "IS NOT DISTINCT FROM"),
            ] {
                let rows = "SELECT count(*), sum(d.id), sum(m.id), count(d.id), count(m.id)";
                let hashed = format!("{rows} FROM d {join} m ON d.day {op} m.{column}");
                let plan = run(&mut a, &format!("EXPLAIN {hashed}")).join("\n");
                assert!(plan.contains("Hash"), "{plan}");
                // (An OR is no key.)
                let found = format!("d.day {op} m.{column}");
                let one_by_one = match join {
                    "FULL JOIN" => format!(
                        "{rows} FROM (SELECT d.id, m.id FROM d LEFT JOIN m ON {found} OR d.id < 0 UNION ALL \
                         SELECT NULL, m.id FROM m WHERE NOT EXISTS (SELECT 1 FROM d WHERE {found} OR d.id < 0)) x (l, r), \
                         LATERAL (SELECT l) d (id), LATERAL (SELECT r) m (id)"
                    ),
                    join => format!("{rows} FROM d {join} m ON {found} OR d.id < 0"),
                };
                assert_eq!(run(&mut a, &hashed), run(&mut a, &one_by_one), "{zone}: {hashed}");
            }
        }
    }
}
