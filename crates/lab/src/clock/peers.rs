//! The clocks of a node or cluster, as SQL shows them (`timeball_internal.clocks`).

use super::ClockError;
use super::watch::human_error;
use crate::client::{Client, TextRow, Url};
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

const QUERY: &str =
    "SELECT node_id, source, status, level, bound_ns, reason FROM timeball_internal.clocks ORDER BY node_id";
const COLUMNS: [&str; 6] = ["node", "source", "status", "level", "error", "reason"];

/// The rows as a table for people.
fn table(rows: &[TextRow]) -> String {
    let cell = |row: &TextRow, i: usize| {
        let text = row.get(i).cloned().flatten();
        match text.as_deref().map(str::parse::<u64>) {
            Some(Ok(ns)) if i == 4 => human_error(ns),
            _ => text.unwrap_or_else(|| "-".into()),
        }
    };
    let mut lines = vec![COLUMNS.map(str::to_owned)];
    lines.extend(rows.iter().map(|row| std::array::from_fn(|i| cell(row, i))));
    let widths: [usize; 6] = std::array::from_fn(|i| lines.iter().map(|l| l[i].chars().count()).max().unwrap_or(0));
    let mut out = String::new();
    for line in lines {
        let padded: Vec<String> = line.iter().zip(widths).map(|(c, w)| format!("{c:<w$}")).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}", padded.join("  ").trim_end());
    }
    out
}

/// Shows the clocks that the node at `url` knows, `count` times (`None` goes on).
///
/// # Errors
/// [`ClockError::Node`] where it cannot be asked.
pub fn watch(url: &Url, count: Option<u64>, every: Duration, out: &mut dyn Write) -> Result<(), ClockError> {
    let mut client = Client::connect(url)?;
    let mut shown = 0;
    while count.is_none_or(|n| shown < n) {
        if shown > 0 {
            std::thread::sleep(every);
        }
        write!(out, "{}", table(&client.query(QUERY)?))?;
        out.flush()?;
        shown += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_clocks() {
        let row = |cells: [Option<&str>; 6]| cells.map(|c| c.map(str::to_owned)).to_vec();
        let rows = [
            row([Some("1"), Some("chrony"), Some("synchronized"), Some("synchronized"), Some("90728"), Some("fine")]),
            row([
                Some("12"),
                Some("kernel"),
                Some("unknown"),
                Some("waiting"),
                None,
                Some("the clock source is unknown"),
            ]),
        ];
        let expected = "\
node  source  status        level         error    reason
1     chrony  synchronized  synchronized  90.7 us  fine
12    kernel  unknown       waiting       -        the clock source is unknown
";
        assert_eq!(table(&rows), expected);
    }
}
