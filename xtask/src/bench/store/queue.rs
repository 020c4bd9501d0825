//! A table as a queue: every transaction puts one row at its end and takes the first that nobody else has.

use super::state::Measured;
use super::{Run, pgbench};
use lab::client::{Client, Url};

/// The isolation levels: the name in the table, and libpq's options.
pub const LEVELS: [(&str, &str); 2] = [
    ("READ COMMITTED", "-c default_transaction_isolation=read\\ committed"),
    ("SERIALIZABLE", "-c default_transaction_isolation=serializable"),
];
/// Rows that wait at the start, and so all the time.
const ROWS: u32 = 1000;
/// The first and the last part of a run that are compared: of ten minutes, one.
const WINDOW_PART: u64 = 10;
const CLIENTS: &str = "8";
const SCRIPT: &str = "\
INSERT INTO queue (payload) VALUES ('work');
BEGIN;
SELECT id FROM queue ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED \\gset
DELETE FROM queue WHERE id = :id;
COMMIT;
";

/// Figures of each level: `LEVEL first`, `LEVEL last`, `LEVEL tps` (transactions a second), `LEVEL 40001` (how many).
pub fn run(run: &Run<'_>) -> Result<Measured, String> {
    let mut measured = Measured::new();
    let script = run.dir.join("queue.sql");
    std::fs::write(&script, SCRIPT).map_err(|e| format!("{}: {e}", script.display()))?;
    let script = script.display().to_string();
    let window = (run.lengths.queue_seconds / WINDOW_PART).max(1) as usize;
    for (level, options) in LEVELS {
        let failed = |e| format!("making the queue: {e}");
        let mut client = Client::connect(&Url::parse(&run.system.url()).map_err(failed)?).map_err(failed)?;
        let make = format!(
            "DROP TABLE IF EXISTS queue; CREATE TABLE queue (id bigserial PRIMARY KEY, payload text NOT NULL); \
             INSERT INTO queue (payload) SELECT 'work' FROM generate_series(1, {ROWS})"
        );
        client.query(&make).map_err(failed)?;
        let flags = ["-c", CLIENTS, "-j", "2", "-f", &script];
        let (text, log) = pgbench::logged(run, &flags, run.lengths.queue_seconds, &[("PGOPTIONS", options)])?;
        let (first, last) = log.ends(window);
        measured.put(format!("{level} first"), first);
        measured.put(format!("{level} last"), last);
        measured.put(format!("{level} tps"), pgbench::report(&text, "tps = ")?);
        let failures = pgbench::report(&text, "number of serialization failures: ")?;
        measured.put(format!("{level} 40001"), failures);
    }
    Ok(measured)
}
