//! `timeball init`, `timeball node` and `timeball range`: what an operator asks of a cluster.

use lab::client::{Client, TextRow, Url};
use lexopt::prelude::*;
use server::cluster::control::{self, Leadership, Replacement};
use std::time::Duration;

pub const HELP_INIT: &str = "\
timeball init [--host HOST:PORT]
  Founds a cluster of nodes that were started with `timeball start --join`: once, at one of them. Returns when that node serves SQL (after half a
  minute with an error, the cluster being founded).
  --host HOST:PORT        that node's --peer-addr (127.0.0.1:26357)
";
pub const HELP_NODE: &str = "\
timeball node status [--url URL | --host HOST:PORT]
  The nodes, their clocks, the ranges, as one node sees them; who leads these and until when, as those say who lead.
  --url URL               postgresql://root@127.0.0.1:26257/postgres
  --host HOST:PORT        that node's --peer-addr: it answers there also where SQL does not (no majority, just starting)
timeball node decommission N [--host HOST:PORT]
  Node N is none of the cluster's any more, for good: when no range has a replica on it, see `timeball range move`.
  --host HOST:PORT        the --peer-addr of any node (127.0.0.1:26357)
";
pub const HELP_CLUSTER: &str = "\
timeball cluster upgrade [--host HOST:PORT]
  What the programs of all nodes know is in force from now on: once, after a newer release runs on all of them. Until then they go on as
  before, and the older release can be put back.
  --host HOST:PORT        the --peer-addr of any node (127.0.0.1:26357)
";
pub const HELP_RANGE: &str = "\
timeball range move RANGE [--to N] [--from N] [--host HOST:PORT]
  Node --to gets a replica of a range, and then the one on node --from goes; `timeball node status` shows the ranges.
  With --to alone the range has a replica more, with --from alone one less. Asked again it goes on where it stopped.
  A large range is split while it is copied: what comes of it goes along, each with a line of its own; one that has not moved is an error, with the
  command to go on.
  --host HOST:PORT        the --peer-addr of any node (127.0.0.1:26357)
timeball range lead RANGE --to N [--host HOST:PORT]
  Node --to, which has a replica of a range, leads it from now on: it serves its reads, and orders its writes. Nothing moves it away again but a failure, or you.
  --host HOST:PORT        the --peer-addr of any node (127.0.0.1:26357)
";

/// Where a node's peers reach it, unless it says otherwise.
pub const PEER_ADDR: &str = "127.0.0.1:26357";

/// Once founded, a cluster whose majority runs serves within a few seconds; `timeball init` waits no longer than this.
const SERVES_MAX: Duration = Duration::from_secs(30);

/// How a node is a member of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinOptions {
    /// Where its peers reach it; `None`: as the charter says, or [`PEER_ADDR`].
    pub peer_addr: Option<String>,
    /// Where it listens for them; `None`: there.
    pub peer_listen_addr: Option<String>,
    /// The nodes that found the cluster.
    pub join: Vec<String>,
    /// Where it stands: `region=eu,zone=a`.
    pub locality: String,
}

/// What is asked.
#[derive(Debug)]
pub enum ClusterCommand {
    Init { host: String },
    Status { url: String },
    StatusOf { host: String },
    Decommission { node: u32, host: String },
    Move { replacement: Replacement, host: String },
    Lead { leadership: Leadership, host: String },
    Upgrade { host: String },
}

pub fn parse_init(parser: &mut lexopt::Parser) -> Result<Option<ClusterCommand>, lexopt::Error> {
    let mut host = PEER_ADDR.to_owned();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") | Short('h') => return Ok(None),
            Long("host") => host = parser.value()?.string()?,
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(ClusterCommand::Init { host }))
}

pub fn parse_node(parser: &mut lexopt::Parser) -> Result<Option<ClusterCommand>, lexopt::Error> {
    let mut url = "postgresql://root@127.0.0.1:26257/postgres".to_owned();
    let (mut command, mut leaves, mut host) = (String::new(), None, None);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") | Short('h') => return Ok(None),
            Value(word) if command.is_empty() && (word == "status" || word == "decommission") => {
                command = word.string()?;
            }
            Value(number) if command == "decommission" && leaves.is_none() => leaves = Some(number.parse_with(node)?),
            Long("url") if command != "decommission" => url = parser.value()?.string()?,
            Long("host") => host = Some(parser.value()?.string()?),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(match (command.as_str(), leaves, host) {
        ("status", _, None) => ClusterCommand::Status { url },
        ("status", _, Some(host)) => ClusterCommand::StatusOf { host },
        ("decommission", Some(node), host) => {
            ClusterCommand::Decommission { node, host: host.unwrap_or_else(|| PEER_ADDR.to_owned()) }
        }
        ("decommission", None, _) => {
            return Err("`timeball node decommission` needs to be told which: write its number".into());
        }
        _ => return Err("`timeball node` needs to be told what: `timeball node status`".into()),
    }))
}

pub fn parse_range(parser: &mut lexopt::Parser) -> Result<Option<ClusterCommand>, lexopt::Error> {
    let (mut word, mut range, mut to, mut from, mut host) = (String::new(), None, None, None, PEER_ADDR.to_owned());
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") | Short('h') => return Ok(None),
            Value(said) if word.is_empty() && (said == "move" || said == "lead") => word = said.string()?,
            Value(number) if !word.is_empty() && range.is_none() => range = Some(number.parse()?),
            Long("to") => to = Some(parser.value()?.parse_with(node)?),
            Long("from") if word != "lead" => from = Some(parser.value()?.parse_with(node)?),
            Long("host") => host = parser.value()?.string()?,
            other => return Err(other.unexpected()),
        }
    }
    let range = range.ok_or(
        "`timeball range` needs to be told what: `timeball range move RANGE --from N --to N`, or `timeball range lead RANGE --to N`",
    )?;
    if word == "lead" {
        let to = to.ok_or("say which node is to lead it (--to)")?;
        return Ok(Some(ClusterCommand::Lead { leadership: Leadership { range, to, asked_on: false }, host }));
    }
    if to.is_none() && from.is_none() {
        return Err("say which node gets a replica (--to), or loses one (--from)".into());
    }
    let replacement = Replacement { range, to, from, asked_on: false };
    Ok(Some(ClusterCommand::Move { replacement, host }))
}

pub fn parse_cluster(parser: &mut lexopt::Parser) -> Result<Option<ClusterCommand>, lexopt::Error> {
    let (mut upgrade, mut host) = (false, PEER_ADDR.to_owned());
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") | Short('h') => return Ok(None),
            Value(word) if word == "upgrade" && !upgrade => upgrade = true,
            Long("host") => host = parser.value()?.string()?,
            other => return Err(other.unexpected()),
        }
    }
    match upgrade {
        true => Ok(Some(ClusterCommand::Upgrade { host })),
        false => Err("`timeball cluster` needs to be told what: `timeball cluster upgrade`".into()),
    }
}

/// A node's number, as people write it.
fn node(text: &str) -> Result<u32, String> {
    let number = text.trim_start_matches('n').parse().ok().filter(|node| *node != 0);
    number.ok_or_else(|| format!("{text:?} is no node: write its number"))
}

/// `A,B,C`, each a host and a port.
pub fn addresses(text: &str) -> Result<Vec<String>, String> {
    let address = |text: &str| {
        let sound = text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        let plain = !text.contains(char::is_whitespace);
        if sound && plain { Ok(text.to_owned()) } else { Err(format!("{text:?} is no address: write HOST:PORT")) }
    };
    text.split(',').map(|part| address(part.trim())).collect()
}

/// `region=eu,zone=a`: tiers from wide to narrow, each a word and a word.
pub fn locality(text: &str) -> Result<String, String> {
    let word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    let tier = |tier: &str| tier.split_once('=').is_some_and(|(name, value)| word(name) && word(value));
    match text.split(',').all(tier) {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is no locality: write region=eu,zone=a, in letters, digits, - _ and .")),
    }
}

/// Runs a command.
pub fn run(command: &ClusterCommand) -> Result<(), String> {
    match command {
        ClusterCommand::Init { host } => {
            crate::say(&control::init(host)?);
            match control::await_sql(host, SERVES_MAX) {
                Ok(serves) => crate::say(&serves.unwrap_or_default()),
                Err(why) => {
                    let seconds = SERVES_MAX.as_secs();
                    return Err(format!(
                        "the cluster is founded, and the node at {host} serves no SQL after {seconds} seconds: {why}; does a majority of the nodes run? (`timeball node status --host {host}`)"
                    ));
                }
            }
            Ok(())
        }
        ClusterCommand::Decommission { node, host } => {
            crate::say(&control::leave(host, *node)?);
            Ok(())
        }
        ClusterCommand::Upgrade { host } => {
            crate::say(&control::upgrade(host)?);
            Ok(())
        }
        ClusterCommand::Lead { leadership, host } => {
            crate::say(&control::lead(host, *leadership)?);
            Ok(())
        }
        ClusterCommand::Move { replacement, host } => {
            crate::say(&control::replicas(host, *replacement)?);
            Ok(())
        }
        ClusterCommand::Status { url } => status(url).map_err(|why| {
            format!("{why}\nWhere SQL is not served the node answers at its peers' address: timeball node status --host HOST:PORT")
        }),
        ClusterCommand::StatusOf { host } => {
            crate::say(&tables(&control::status(host)?));
            Ok(())
        }
    }
}

/// The tables that are shown: a title, the columns, and from where they come.
const STATUS: [(&str, &str, &str); 2] = [
    (
        "Nodes",
        "node_id, address, locality, state, release, clock_error_ns, last_error",
        "timeball_internal.nodes ORDER BY node_id::int",
    ),
    (
        "Ranges",
        "range_id, start_key, leader_node_id, replicas, role, term, lease_until, holds, applied, cluster_version",
        // An earlier release has texts in some of these columns.
        "(SELECT r.range_id, r.start_key, coalesce(l.leader_node_id::text, r.leader_node_id::text) AS leader_node_id, r.replicas, r.role, r.term, \
                 coalesce(l.lease_until::text, r.lease_until::text) AS lease_until, l.holds, r.applied, r.cluster_version \
            FROM timeball_internal.ranges r \
            LEFT JOIN timeball_internal.leases l ON l.range_id::text = r.range_id::text AND l.lease_until IS NOT NULL) shown \
         ORDER BY start_key",
    ),
];

fn status(url: &str) -> Result<(), String> {
    let url = Url::parse(url).map_err(|e| e.to_string())?;
    let mut client = Client::connect(&url).map_err(|e| e.to_string())?;
    for (title, columns, from) in STATUS {
        let rows = client
            .query(&format!("SELECT {columns} FROM {from}"))
            .map_err(|e| format!("this node cannot say: {e} (is it a member of a cluster?)"))?;
        let columns: Vec<&str> = columns.split(", ").collect();
        crate::say(&format!("{title}\n{}\n", aligned(&columns, &rows)));
    }
    Ok(())
}

/// Tables as a node gives them, aligned.
fn tables(text: &str) -> String {
    let mut out = String::new();
    for table in text.split("\n\n").filter(|table| !table.trim().is_empty()) {
        let mut lines = table.lines();
        let (title, columns) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let columns: Vec<&str> = columns.split('\t').collect();
        let rows: Vec<TextRow> =
            lines.map(|line| line.split('\t').map(|cell| Some(cell.to_owned())).collect()).collect();
        out.push_str(&format!("{title}\n{}\n", aligned(&columns, &rows)));
    }
    out
}

/// A column that holds timestamps of the database, microseconds and a logical part: people want times.
const TIMES: &str = "lease_until";

/// A timestamp as a time in UTC; what is none stays as it is.
fn time(text: &str) -> String {
    let parsed = text.parse::<clock::Timestamp>().ok();
    let us = parsed.and_then(|timestamp| i64::try_from(timestamp.physical_us()).ok());
    us.map_or_else(|| text.to_owned(), server::log::rfc3339)
}

/// Rows below their columns' names; what is not known is a dash.
fn aligned(columns: &[&str], rows: &[TextRow]) -> String {
    let cell = |row: &TextRow, at: usize| match row.get(at).cloned().flatten() {
        None => "-".to_owned(),
        Some(text) if columns[at] == TIMES => time(&text),
        Some(text) => text,
    };
    let width =
        |at: usize| rows.iter().map(|row| cell(row, at).chars().count()).max().unwrap_or(0).max(columns[at].len());
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |cells: Vec<String>| {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let mut out = line(columns.iter().map(|name| (*name).to_owned()).collect());
    rows.iter().for_each(|row| out.push_str(&line((0..columns.len()).map(|at| cell(row, at)).collect())));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_localities() {
        assert_eq!(addresses("a:1, b:2"), Ok(vec!["a:1".into(), "b:2".into()]));
        assert!(addresses("a").unwrap_err().contains("HOST:PORT"));
        assert!(addresses("a:1,,b:2").is_err() && addresses("a:99999").is_err() && addresses("a b:1").is_err());
        assert_eq!(locality("region=eu,zone=a-1"), Ok("region=eu,zone=a-1".into()));
        assert!(locality("eu").is_err() && locality("region=").is_err() && locality("region=a b").is_err());
    }

    #[test]
    fn tables_of_a_node() {
        let told = "Nodes\nnode_id\tstate\n1\tthis node\n\nRanges\nrange_id\trole\n1\t-\n(3 more)\n\n";
        let shown = "Nodes\nnode_id  state\n1        this node\n\nRanges\nrange_id  role\n1         -\n(3 more)  -\n\n";
        assert_eq!(tables(told), shown);
        assert_eq!(tables(""), "");
    }

    #[test]
    fn tables_are_aligned() {
        let rows = vec![vec![Some("1".to_owned()), None], vec![Some("22".to_owned()), Some("x".to_owned())]];
        assert_eq!(aligned(&["id", "name"], &rows), "id  name\n1   -\n22  x\n");
        let rows = ["1795163228123456.0042", "-"].map(|text| vec![Some(text.to_owned())]).to_vec();
        assert_eq!(aligned(&["lease_until"], &rows), "lease_until\n2026-11-20T08:27:08.123456Z\n-\n");
    }
}
