//! The clocks of a node or cluster, as SQL shows them (`timeball_internal.clocks`).

use super::ClockError;
use super::watch::{WatchOptions, human_error, over, sparkline};
use crate::client::{Client, TextRow, Url};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io::Write;

const QUERY: &str = "SELECT node_id, source, status, level, bound_ns, reason, earliest_ns, latest_ns FROM timeball_internal.clocks ORDER BY node_id";
const COLUMNS: [&str; 7] = ["node", "source", "status", "level", "error", "over time", "reason"];
/// Errors that a node's sparkline shows.
const HISTORY: usize = 20;

/// One node's clock, as its row says.
#[derive(Debug)]
struct NodeClock<'a>(&'a TextRow);

impl NodeClock<'_> {
    fn text(&self, column: usize) -> Option<&str> {
        self.0.get(column)?.as_deref()
    }
    fn number(&self, column: usize) -> Option<u64> {
        self.text(column)?.parse().ok()
    }
    /// Half the width of its interval; nothing while there is no bound.
    fn error_ns(&self) -> Option<u64> {
        self.number(4)
    }
    /// The keys of `timeball clock --json`, and the node.
    fn json(&self) -> serde_json::Value {
        let known = self.error_ns().is_some();
        serde_json::json!({
            "node_id": self.number(0),
            "source": self.text(1),
            "status": self.text(2),
            "level": self.text(3),
            "error_ns": self.error_ns(),
            "earliest_ns": self.number(6).filter(|_| known),
            "latest_ns": self.number(7).filter(|_| known),
            "reason": self.text(5),
        })
    }
}

/// The errors of each node lately.
#[derive(Debug, Default)]
struct Past(BTreeMap<String, VecDeque<u64>>);

impl Past {
    /// Takes in a row; no bound is a gap of 0, as in the view of one clock.
    fn note(&mut self, node: &NodeClock<'_>) -> String {
        let errors = self.0.entry(node.text(0).unwrap_or_default().to_owned()).or_default();
        if errors.len() == HISTORY {
            errors.pop_front();
        }
        errors.push_back(node.error_ns().unwrap_or(0));
        sparkline(errors.iter().copied())
    }
}

/// The rows as a table for people.
fn table(rows: &[TextRow], past: &mut Past) -> String {
    let mut lines = vec![COLUMNS.map(str::to_owned)];
    for row in rows {
        let node = NodeClock(row);
        let cell = |i: usize| node.text(i).unwrap_or("-").to_owned();
        let error = node.error_ns().map_or("-".into(), human_error);
        lines.push([cell(0), cell(1), cell(2), cell(3), error, past.note(&node), cell(5)]);
    }
    let widths: [usize; 7] = std::array::from_fn(|i| lines.iter().map(|l| l[i].chars().count()).max().unwrap_or(0));
    let mut out = String::new();
    for line in lines {
        let padded: Vec<String> = line.iter().zip(widths).map(|(c, w)| format!("{c:<w$}")).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}", padded.join("  ").trim_end());
    }
    out
}

/// Shows the clocks that the node at `url` knows: a table, or one JSON object a node and line.
///
/// # Errors
/// [`ClockError::Node`] where it cannot be asked.
pub fn watch(url: &Url, options: WatchOptions, out: &mut dyn Write) -> Result<(), ClockError> {
    let mut client = Client::connect(url)?;
    let (mut shown, mut height, mut past) = (0, 0, Past::default());
    while options.count.is_none_or(|n| shown < n) {
        if shown > 0 {
            std::thread::sleep(options.every);
        }
        let rows = client.query(QUERY)?;
        if options.json {
            rows.iter().try_for_each(|row| writeln!(out, "{}", NodeClock(row).json()))?;
        } else {
            let text = table(&rows, &mut past);
            let lines = std::mem::replace(&mut height, text.lines().count());
            write!(out, "{}", if options.live { over(&text, lines) } else { text })?;
        }
        out.flush()?;
        shown += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> [TextRow; 2] {
        let row = |cells: [Option<&str>; 8]| cells.map(|c| c.map(str::to_owned)).to_vec();
        let (why, no) = ("the clock source is unknown", None);
        [
            row(["1", "chrony", "synchronized", "synchronized", "90728", "fine", "5", "181461"].map(Some)),
            row([Some("12"), Some("kernel"), Some("unknown"), Some("waiting"), no, Some(why), Some("0"), Some("9")]),
        ]
    }

    #[test]
    fn a_table_of_clocks() {
        let mut past = Past::default();
        let expected = "\
node  source  status        level         error    over time  reason
1     chrony  synchronized  synchronized  90.7 us  █          fine
12    kernel  unknown       waiting       -        ▁          the clock source is unknown
";
        assert_eq!(table(&rows(), &mut past), expected);
        assert!(table(&rows(), &mut past).contains("██         fine"));
        (0..2 * HISTORY).for_each(|_| drop(table(&rows(), &mut past)));
        assert!(past.0.values().all(|errors| errors.len() == HISTORY));
    }

    #[test]
    fn json_has_the_bound_or_null() {
        let [good, lost] = rows().map(|row| NodeClock(&row).json());
        assert_eq!((good["node_id"].as_u64(), good["error_ns"].as_u64()), (Some(1), Some(90_728)));
        assert_eq!((good["source"].as_str(), good["earliest_ns"].as_u64()), (Some("chrony"), Some(5)));
        assert!(lost["error_ns"].is_null() && lost["latest_ns"].is_null() && lost["level"] == "waiting");
    }
}
