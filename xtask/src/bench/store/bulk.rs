//! What is done to many rows at once: how long it takes, and how much memory beside the caches.

use super::state::Measured;
use super::{Run, pgbench};
use crate::process;
use lab::client::{Client, Event, Url};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

/// What is timed, in this order: the name in the table.
pub const STEPS: [&str; 5] = ["COPY", "CREATE INDEX", "warm count", "DELETE of half", "pgbench -i"];
/// A warm count is the second one.
const COUNTS: usize = 2;

/// Figures of each step: `STEP s`, and of Timeball `STEP bytes`: its greatest memory beside what its caches held at the end.
pub fn run(run: &Run<'_>) -> Result<Measured, String> {
    let mut measured = Measured::new();
    let file = run.dir.join("rows");
    write_rows(&file, run.lengths.bulk_rows).map_err(|e| format!("{}: {e}", file.display()))?;
    let url = Url::parse(&run.system.url()).map_err(|e| e.to_string())?;
    let mut client = Client::connect(&url).map_err(|e| e.to_string())?;
    client
        .query("CREATE TABLE bulk (id int PRIMARY KEY, k int NOT NULL, pad text NOT NULL)")
        .map_err(|e| e.to_string())?;
    for step in STEPS {
        if let Some(pid) = run.system.pid() {
            process::reset_peak(pid)?;
        }
        match timed(run, step, &mut client, &file) {
            Ok(seconds) => measured.put(format!("{step} s"), seconds),
            Err(why) => {
                eprintln!("{step}: {why}");
                measured.failures.insert(step.to_owned(), why.lines().next().unwrap_or_default().replace('|', "/"));
            }
        }
        if let Some(pid) = run.system.pid() {
            let caches = run.system.cache_bytes().unwrap_or(0);
            measured.put(format!("{step} bytes"), process::peak_bytes(pid)?.saturating_sub(caches) as f64);
        }
    }
    Ok(measured)
}

fn timed(run: &Run<'_>, step: &str, client: &mut Client, file: &Path) -> Result<f64, String> {
    let mut query = |sql: &str| {
        let began = Instant::now();
        client.query(sql).map(|_| began.elapsed().as_secs_f64()).map_err(|e| e.to_string())
    };
    match step {
        "COPY" => copy(client, file),
        "CREATE INDEX" => query("CREATE INDEX bulk_k ON bulk (k)"),
        "warm count" => (0..COUNTS).try_fold(0.0, |_, _| query("SELECT count(*) FROM bulk")),
        "DELETE of half" => query("DELETE FROM bulk WHERE id % 2 = 0"),
        _ => pgbench::load(run.system, run.lengths.scale),
    }
}

fn copy(client: &mut Client, file: &Path) -> Result<f64, String> {
    let mut rows = File::open(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let (began, mut failed) = (Instant::now(), None);
    let see = |event| {
        if let Event::Error(e) = event {
            failed = Some(e.to_string());
        }
    };
    client.copy_events("COPY bulk FROM STDIN", &mut rows, see).map_err(|e| e.to_string())?;
    failed.map_or(Ok(began.elapsed().as_secs_f64()), Err)
}

/// Rows for COPY: a key, a number that is in no order, and some text.
fn write_rows(path: &Path, count: u64) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for id in 1..=count {
        // A prime: the numbers differ until they have all been there.
        writeln!(out, "{id}\t{}\t{:060}", id * 7_919_999 % count, id)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_many_as_asked() {
        let path = std::env::temp_dir().join(format!("timeball-rows-{}", std::process::id()));
        write_rows(&path, 1000).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let second = |line: &str| line.split('\t').nth(1).unwrap().to_owned();
        let numbers: std::collections::BTreeSet<String> = text.lines().map(second).collect();
        assert_eq!((text.lines().count(), numbers.len()), (1000, 1000));
    }
}
