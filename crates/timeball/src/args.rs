//! The command line as a value.

use crate::clock::{self, ClockCommand};
use crate::cluster::{self, ClusterCommand, JoinOptions};
use crate::lab::{self, LabCommand};
use ::clock::LadderLimits;
use ::lab::bench::{Mix, Statement};
use clocksource::Spec;
use lexopt::prelude::*;
use server::log::LogFormat;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const HELP: &str = "\
Timeball: a SQL database on a bounded clock.

timeball demo    a node on temporary storage, with data, and a SQL shell
timeball start   a node on a store of its own
timeball sql     a SQL shell for any node
timeball init    found a cluster of nodes that were started with --join
timeball node    how a cluster's nodes, ranges and clocks are; a node leaves for good
timeball cluster put what a newer release brings in force
timeball range   move a range's replicas to other nodes, or say which of them leads it
timeball bench   a workload against any database that speaks the Postgres protocol
timeball lab     the experiments of the documents behind Timeball, repeated on it
timeball clock   look at a bounded clock, record it, draw it, improve it
timeball version

timeball help COMMAND says more.
";
const HELP_START: &str = "\
timeball start --store DIR [options]
  --store DIR             where the data lives; one process at a time
  --listen-addr HOST:PORT where SQL is spoken (127.0.0.1:26257); port 0 takes a free one and prints it
  --http-addr HOST:PORT   /health and /metrics (127.0.0.1:8080)
  --clock SOURCE          same-host, static:<error> (static:5ms), auto, chrony, clockbound, ptp, kernel,
                          ntp:<server>,<server>,... (same-host)
  --strict-error-max D    up to this clock error `auto` is strict (5ms)
  --hybrid-error-max D    beyond this clock error nothing that needs the bound is served (1s)
  --max-connections N     sessions at a time (600)
  --memory SIZE           what the node may take of the machine: 512MiB, 4GiB (a quarter of it)
  --snapshot-age-max D    a transaction block with an older snapshot is rolled back: it keeps old versions (no limit)
  --retention D           old versions are kept so long, for `AS OF SYSTEM TIME` and its like (5m)
  --log text|json         form of the log on standard error (text)
  --insecure              allow addresses other than loopback: there is no TLS and no password yet
As a member of a cluster (several nodes with the same --join, then `timeball init` at one of them):
  --join A,B,C            HOST:PORT of all nodes that found the cluster, this one's --peer-addr among them;
                          of some nodes of a cluster that there is: this node joins it
  --peer-addr HOST:PORT   where the other nodes reach this one (127.0.0.1:26357)
  --peer-listen-addr H:P  where it listens for them, if that is another address: behind a NAT, a proxy, in a container
  --locality TIERS        where it stands: region=eu,zone=a
A store that is a member already needs none of these. Nodes on several machines need --clock.
SIGTERM or SIGINT lets statements end and stops within 10 seconds.
";
const HELP_DEMO: &str = "\
timeball demo [options]
  A node on temporary storage that is removed at the end, with the database `demo`: 100 posts, 1000 likes.
  Opens a SQL shell when standard input is a terminal. \\q, SIGTERM or Ctrl-C stops it.
  --nodes N               a cluster of N nodes, each a process; \\nodes, \\kill N and \\start N in its shell (1);
                          --listen-addr and --http-addr are the first one's, the others take the next ports
  --no-shell              keep serving, without a shell
  --listen-addr, --http-addr, --clock, --strict-error-max, --hybrid-error-max, --log, --memory,
  --retention, --snapshot-age-max, --insecure as for `timeball start`
";
const HELP_SQL: &str = "\
timeball sql --url URL [options]
  --url URL               postgresql://root@127.0.0.1:26257/postgres; several hosts, of which the first that serves is
                          taken, and the next when it is lost: postgresql://root@A:26257,B:26257/postgres, or
                          'host=A,B port=26257 target_session_attrs=read-write'
  -e, --execute SQL       run it and leave; may be given several times
  -v, --set NAME[=VALUE]  a variable of the shell: -v ON_ERROR_STOP=1 ends with the first error
  --format table|csv|json form of results (table)
Without -e a script is read from standard input, if that is no terminal. It goes on after errors, as psql does. The exit
status: 0, it ran to its end; 1, the last -e failed, or something of the shell's own; 2, there is no connection, or it
was lost; 3, a script was ended by ON_ERROR_STOP.
";
const HELP_BENCH: &str = "\
timeball bench posts-and-likes|update-index|point-select|ycsb-b|ycsb-f|orders --url URL [options]
  --url URL               any database that speaks the Postgres protocol
  --workers K, --clients K  connections (8)
  --duration D            measured time: 30s, 5m (30s)
  --ramp-up D             time before it (2s)
  --spread                workers stand at all hosts of --url in turn, not at the first
  --read-fraction P       posts-and-likes: probability of a read (0.95)
  --rows N                update-index, point-select, ycsb-b, ycsb-f: rows of the table (100000)
  --warehouses N          orders: TPC-C's warehouses (1)
  --seed N                seed of all choices (1)
  --no-load               use the tables that are there
  --json                  one JSON object on standard output
";

/// No machine has more; parts of it can be computed without overflow.
const MEMORY_BYTES_MAX: usize = 1 << 50;

/// What to do.
#[derive(Debug)]
pub enum Command {
    Help(&'static str),
    Version,
    Start(StartOptions),
    Demo(DemoOptions),
    Sql(SqlOptions),
    Bench(BenchOptions),
    Lab(LabCommand),
    Clock(ClockCommand),
    Cluster(ClusterCommand),
}

/// What `start` and `demo` share.
#[derive(Debug)]
pub struct NodeOptions {
    pub server: server::Options,
    pub clock: Spec,
    /// It was not chosen by us.
    pub clock_given: bool,
    pub ladder: LadderLimits,
    pub log: LogFormat,
    /// Old versions are kept so long; whole seconds.
    pub retention: Duration,
    /// `timeball.snapshot_age_max` of sessions that do not say otherwise; zero is no limit.
    pub snapshot_age_max: Duration,
    /// What gets how much memory.
    pub shares: server::Shares,
    /// Settings of sessions that these flags have said, by their names: `source` of `pg_settings` tells.
    pub said: Vec<&'static str>,
}

#[derive(Debug)]
pub struct StartOptions {
    pub store: PathBuf,
    pub node: NodeOptions,
    pub join: JoinOptions,
}

#[derive(Debug)]
pub struct DemoOptions {
    pub no_shell: bool,
    pub nodes: usize,
    pub node: NodeOptions,
}

/// How the shell shows results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Table,
    Csv,
    Json,
}

#[derive(Debug)]
pub struct SqlOptions {
    pub url: String,
    pub execute: Vec<String>,
    /// Names and values of the shell's variables.
    pub variables: Vec<(String, String)>,
    pub format: Format,
}

/// Which workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadName {
    PostsAndLikes,
    Sysbench(Statement),
    Ycsb(Mix),
    Orders,
}

#[derive(Debug)]
pub struct BenchOptions {
    pub workload: WorkloadName,
    pub url: String,
    pub workers: usize,
    pub duration: Duration,
    pub ramp_up: Duration,
    /// Whether workers stand at all hosts of the URL in turn.
    pub spread: bool,
    pub read_fraction: f64,
    pub rows: u32,
    pub warehouses: u32,
    pub seed: u64,
    pub load: bool,
    pub json: bool,
}

/// Reads the command line, program name first.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, lexopt::Error> {
    let mut parser = lexopt::Parser::from_iter(args);
    match parser.next()? {
        None | Some(Long("help") | Short('h')) => Ok(Command::Help(HELP)),
        Some(Long("version") | Short('V')) => Ok(Command::Version),
        Some(Value(command)) => match command.to_str() {
            Some("start") => start(&mut parser),
            Some("demo") => demo(&mut parser),
            Some("sql") => sql(&mut parser),
            Some("bench") => bench(&mut parser),
            Some("lab") => Ok(lab::parse(&mut parser)?.map_or(Command::Help(lab::HELP), Command::Lab)),
            Some("clock") => {
                Ok(clock::parse(&mut parser, duration)?.map_or(Command::Help(clock::HELP), Command::Clock))
            }
            Some("init") => {
                Ok(cluster::parse_init(&mut parser)?.map_or(Command::Help(cluster::HELP_INIT), Command::Cluster))
            }
            Some("node") => {
                Ok(cluster::parse_node(&mut parser)?.map_or(Command::Help(cluster::HELP_NODE), Command::Cluster))
            }
            Some("cluster") => {
                Ok(cluster::parse_cluster(&mut parser)?.map_or(Command::Help(cluster::HELP_CLUSTER), Command::Cluster))
            }
            Some("range") => {
                Ok(cluster::parse_range(&mut parser)?.map_or(Command::Help(cluster::HELP_RANGE), Command::Cluster))
            }
            Some("version") => Ok(Command::Version),
            Some("help") => Ok(Command::Help(help(parser.optional_value().or(parser.value().ok())))),
            _ => Err(format!("there is no command {command:?}").into()),
        },
        Some(other) => Err(other.unexpected()),
    }
}

fn help(topic: Option<OsString>) -> &'static str {
    match topic.as_deref().and_then(|t| t.to_str()) {
        Some("start") => HELP_START,
        Some("demo") => HELP_DEMO,
        Some("sql") => HELP_SQL,
        Some("bench") => HELP_BENCH,
        Some("lab") => lab::HELP,
        Some("clock") => clock::HELP,
        Some("init") => cluster::HELP_INIT,
        Some("node") => cluster::HELP_NODE,
        Some("range") => cluster::HELP_RANGE,
        Some("cluster") => cluster::HELP_CLUSTER,
        _ => HELP,
    }
}

fn node_defaults() -> NodeOptions {
    NodeOptions {
        server: server::Options::default(),
        clock: Spec::SameHost,
        clock_given: false,
        ladder: LadderLimits::default(),
        log: LogFormat::Text,
        retention: Duration::from_secs(server::kv::KvOptions::default().gc_ttl_seconds),
        snapshot_age_max: Duration::ZERO,
        shares: server::Shares::of_machine(),
        said: Vec::new(),
    }
}

/// Takes a flag that `start` and `demo` share; gives back one that it does not know.
fn node_flag(node: &mut NodeOptions, flag: &str, parser: &mut lexopt::Parser) -> Result<bool, lexopt::Error> {
    match flag {
        "listen-addr" => node.server.listen_addr = parser.value()?.string()?,
        "http-addr" => node.server.http_addr = parser.value()?.string()?,
        "max-connections" => node.server.connections_max = parser.value()?.parse()?,
        "insecure" => node.server.insecure = true,
        "memory" => node.shares = server::Shares::of(parser.value()?.parse_with(memory)?),
        "snapshot-age-max" => node.snapshot_age_max = parser.value()?.parse_with(duration)?,
        "retention" => node.retention = parser.value()?.parse_with(retention)?,
        "clock" => (node.clock, node.clock_given) = (parser.value()?.parse()?, true),
        "strict-error-max" => node.ladder.strict_error_ns = nanos(parser.value()?.parse_with(clock_error)?),
        "hybrid-error-max" => node.ladder.hybrid_error_ns = nanos(parser.value()?.parse_with(clock_error)?),
        "log" => {
            node.log = match parser.value()?.to_str() {
                Some("text") => LogFormat::Text,
                Some("json") => LogFormat::Json,
                _ => return Err("--log is text or json".into()),
            }
        }
        _ => return Ok(false),
    }
    node.said.extend(said_by(flag));
    Ok(true)
}

/// The settings of sessions that a flag gives a value.
fn said_by(flag: &str) -> &'static [&'static str] {
    match flag {
        "max-connections" => &["max_connections"],
        "memory" => &["timeball.memory_bytes", "timeball.query_memory_bytes"],
        "snapshot-age-max" => &["timeball.snapshot_age_max"],
        "retention" => &["timeball.retention"],
        "strict-error-max" => &["timeball.commit_wait_budget"],
        _ => &[],
    }
}

/// What is too wide to be hybrid is too wide to be strict.
fn check_ladder(node: &NodeOptions) -> Result<(), lexopt::Error> {
    let (strict, hybrid) = (node.ladder.strict_error_ns, node.ladder.hybrid_error_ns);
    if strict <= hybrid {
        return Ok(());
    }
    Err(format!(
        "--strict-error-max ({strict} ns) is beyond --hybrid-error-max ({hybrid} ns): raise that, or lower this"
    )
    .into())
}

/// Of a clock: whoever writes a bare 500 has rarely seconds in mind.
fn clock_error(text: &str) -> Result<Duration, String> {
    if text.ends_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(format!("{text:?} has no unit: write {text}us, {text}ms or {text}s"));
    }
    duration(text)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn start(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut node, mut store) = (node_defaults(), None);
    let mut join = JoinOptions { peer_addr: None, peer_listen_addr: None, join: Vec::new(), locality: String::new() };
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") | Short('h') => return Ok(Command::Help(HELP_START)),
            Long("store") => store = Some(PathBuf::from(parser.value()?)),
            Long("join") => join.join = parser.value()?.parse_with(cluster::addresses)?,
            Long("peer-addr") => join.peer_addr = Some(parser.value()?.string()?),
            Long("peer-listen-addr") => join.peer_listen_addr = Some(parser.value()?.string()?),
            Long("locality") => join.locality = parser.value()?.parse_with(cluster::locality)?,
            Long(flag) => {
                let flag = flag.to_owned();
                if !node_flag(&mut node, &flag, parser)? {
                    return Err(format!("invalid option '--{flag}'").into());
                }
            }
            other => return Err(other.unexpected()),
        }
    }
    check_ladder(&node)?;
    let store = store.ok_or("`timeball start` needs --store DIR")?;
    Ok(Command::Start(StartOptions { store, node, join }))
}

fn demo(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut node, mut no_shell, mut nodes) = (node_defaults(), false, 1);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") | Short('h') => return Ok(Command::Help(HELP_DEMO)),
            Long("no-shell") => no_shell = true,
            Long("nodes") => nodes = parser.value()?.parse_with(demo_nodes)?,
            Long(flag) => {
                let flag = flag.to_owned();
                if !node_flag(&mut node, &flag, parser)? {
                    return Err(format!("invalid option '--{flag}'").into());
                }
            }
            other => return Err(other.unexpected()),
        }
    }
    check_ladder(&node)?;
    Ok(Command::Demo(DemoOptions { no_shell, nodes, node }))
}

fn sql(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut options = SqlOptions {
        url: "postgresql://root@127.0.0.1:26257/postgres".into(),
        execute: Vec::new(),
        variables: Vec::new(),
        format: Format::Table,
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") | Short('h') => return Ok(Command::Help(HELP_SQL)),
            Long("url") => options.url = parser.value()?.string()?,
            Long("execute") | Short('e') => options.execute.push(parser.value()?.string()?),
            Long("set") | Short('v') => {
                let given = parser.value()?.string()?;
                let (name, value) = given.split_once('=').unwrap_or((&given, ""));
                options.variables.push((name.into(), value.into()));
            }
            Long("format") => {
                options.format = match parser.value()?.to_str() {
                    Some("table") => Format::Table,
                    Some("csv") => Format::Csv,
                    Some("json") => Format::Json,
                    _ => return Err("--format is table, csv or json".into()),
                }
            }
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Sql(options))
}

fn bench(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let workload = match parser.next()? {
        None | Some(Long("help") | Short('h')) => return Ok(Command::Help(HELP_BENCH)),
        Some(Value(name)) => match name.to_str() {
            Some("posts-and-likes") => WorkloadName::PostsAndLikes,
            Some("update-index") => WorkloadName::Sysbench(Statement::UpdateIndex),
            Some("point-select") => WorkloadName::Sysbench(Statement::PointSelect),
            Some("ycsb-b") => WorkloadName::Ycsb(Mix::B),
            Some("ycsb-f") => WorkloadName::Ycsb(Mix::F),
            Some("orders") => WorkloadName::Orders,
            _ => return Err(format!("there is no workload {name:?}").into()),
        },
        Some(other) => return Err(other.unexpected()),
    };
    let mut options = BenchOptions {
        workload,
        url: String::new(),
        workers: 8,
        duration: Duration::from_secs(30),
        ramp_up: Duration::from_secs(2),
        spread: false,
        read_fraction: 0.95,
        rows: 100_000,
        warehouses: 1,
        seed: 1,
        load: true,
        json: false,
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") | Short('h') => return Ok(Command::Help(HELP_BENCH)),
            Long("url") => options.url = parser.value()?.string()?,
            Long("workers" | "clients") => options.workers = parser.value()?.parse()?,
            Long("duration") => options.duration = parser.value()?.parse_with(duration)?,
            Long("spread") => options.spread = true,
            Long("ramp-up") => options.ramp_up = parser.value()?.parse_with(duration)?,
            Long("read-fraction") => options.read_fraction = parser.value()?.parse_with(fraction)?,
            Long("rows") => options.rows = parser.value()?.parse()?,
            Long("warehouses") => options.warehouses = parser.value()?.parse_with(warehouses)?,
            Long("seed") => options.seed = parser.value()?.parse()?,
            Long("no-load") => options.load = false,
            Long("json") => options.json = true,
            other => return Err(other.unexpected()),
        }
    }
    if options.url.is_empty() {
        return Err("`timeball bench` needs --url URL".into());
    }
    if options.workers == 0 || options.rows == 0 {
        return Err("--workers and --rows are at least 1".into());
    }
    Ok(Command::Bench(options))
}

/// `30s`, `5m`, `1h`, `500ms`, `500us`; a bare number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "" | "s" => 1.0,
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("{text:?} is no duration: write 30s, 5m, 1h, 500ms or 500us")),
    };
    let seconds = number.parse::<f64>().map_err(|_| format!("{text:?} is no duration: write 30s"))? * scale;
    Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())
}

/// `512MiB`, `4GiB`, `2GB`; a bare number is bytes. Units of a thousand have no i.
fn memory(text: &str) -> Result<usize, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit_bytes: f64 = match unit {
        "" | "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        "TiB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        _ => return Err(format!("{text:?} is no size: write 512MiB or 4GiB")),
    };
    let bytes = number.parse::<f64>().map_err(|_| format!("{text:?} is no size: write 512MiB or 4GiB"))? * unit_bytes;
    let least = server::memory::MEMORY_BYTES_MIN;
    // A float becomes the nearest size that there is.
    match bytes as usize {
        bytes if bytes < least => Err(format!("{text:?} is too little memory for a node: at least {}MiB", least >> 20)),
        bytes => Ok(bytes.min(MEMORY_BYTES_MAX)),
    }
}

/// Whole seconds, at least one: the clock's own tick is far below, and a collection walks far above.
fn retention(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    let whole = length.subsec_nanos() == 0 && length >= Duration::from_secs(1);
    if whole { Ok(length) } else { Err(format!("{text:?}: a retention is whole seconds, at least 1s")) }
}

/// Each is a process on this machine.
const DEMO_NODES_MAX: usize = 9;

fn demo_nodes(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=DEMO_NODES_MAX).contains(n));
    number.ok_or_else(|| format!("{text:?} is no number of nodes from 1 to {DEMO_NODES_MAX}"))
}

fn fraction(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|p| (0.0..=1.0).contains(p)).ok_or_else(|| format!("{text:?} is not between 0 and 1"))
}

/// TPC-C's warehouses: none is no workload, and keys have room for so many.
fn warehouses(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| (1..=10_000).contains(count));
    count.ok_or_else(|| format!("{text:?} is not between 1 and 10000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<Command, String> {
        parse(text.split(' ').map(OsString::from)).map_err(|e| e.to_string())
    }

    #[test]
    fn start_options() {
        let Ok(Command::Start(o)) = line(
            "timeball start --store=/x --listen-addr 127.0.0.1:0 --clock static:5ms --log json --strict-error-max 2ms",
        ) else {
            panic!("refused")
        };
        assert_eq!((o.store, o.node.log), (PathBuf::from("/x"), LogFormat::Json));
        assert_eq!(o.node.clock, Spec::Static(Duration::from_millis(5)));
        assert_eq!((o.node.ladder.strict_error_ns, o.node.ladder.hybrid_error_ns), (2_000_000, 1_000_000_000));
    }

    #[test]
    fn clusters() {
        let Ok(Command::Start(o)) = line("timeball start --store=/x --join a:1,b:2 --locality region=eu") else {
            panic!("refused")
        };
        assert_eq!((o.join.join, o.join.locality.as_str()), (vec!["a:1".to_owned(), "b:2".to_owned()], "region=eu"));
        assert!(
            matches!(line("timeball init --host a:1"), Ok(Command::Cluster(ClusterCommand::Init { host })) if host == "a:1")
        );
        assert!(matches!(line("timeball node status"), Ok(Command::Cluster(ClusterCommand::Status { .. }))));
        assert!(line("timeball node").unwrap_err().contains("status"));
        assert!(matches!(line("timeball demo --nodes 3"), Ok(Command::Demo(DemoOptions { nodes: 3, .. }))));
        assert!(line("timeball demo --nodes 0").unwrap_err().contains("1 to 9"));
    }

    #[test]
    fn clock_commands() {
        let Ok(Command::Clock(ClockCommand::Watch(spec, look))) = line("timeball clock --json --clock chrony") else {
            panic!("refused")
        };
        assert_eq!((spec.to_string().as_str(), look.count), ("chrony", Some(1)));
        let Ok(Command::Clock(ClockCommand::Record(_, tape, Some(out)))) =
            line("timeball clock record --duration 12h --every 250ms --bucket 5m --out F")
        else {
            panic!("refused")
        };
        assert_eq!((tape, out), (::lab::clock::record::RecordOptions::default(), PathBuf::from("F")));
        assert!(matches!(line("timeball clock plot F"), Ok(Command::Clock(ClockCommand::Plot { .. }))));
        assert!(matches!(line("timeball clock doctor"), Ok(Command::Clock(ClockCommand::Doctor(_)))));
        assert!(line("timeball clock tick").unwrap_err().contains("clock tick"));
    }

    #[test]
    fn lab_commands() {
        assert!(matches!(line("timeball lab list"), Ok(Command::Lab(LabCommand::List))));
        let Ok(Command::Lab(LabCommand::Run(o))) =
            line("timeball lab bounds --full --out D --resume --seed 7 --binary B --dir T")
        else {
            panic!("refused")
        };
        let (size, out) = (::lab::experiments::Size::Full, PathBuf::from("D"));
        let begin = ::lab::experiments::Begin::Resume;
        let ground = ::lab::experiments::Ground { binary: "B".into(), dir: "T".into() };
        assert_eq!(o, ::lab::experiments::Options { name: "bounds".into(), size, out, begin, seed: 7, ground });
        assert!(line("timeball lab bounds --anew --resume").unwrap_err().contains("one of them"));
        assert!(
            matches!(line("timeball lab index --out D"), Ok(Command::Lab(LabCommand::Index(d))) if d.ends_with("D"))
        );
        assert!(matches!(line("timeball lab --help"), Ok(Command::Help(lab::HELP))));
        assert!(line("timeball lab").unwrap_err().contains("list"));
        assert!(line("timeball lab a b").unwrap_err().contains('b'));
    }

    #[test]
    fn refusals_name_the_flag() {
        assert!(line("timeball start").unwrap_err().contains("--store"));
        assert!(line("timeball start --store x --bogus").unwrap_err().contains("--bogus"));
        assert!(line("timeball start --store x --clock sundial").unwrap_err().contains("sundial"));
        assert!(line("timeball frob").unwrap_err().contains("frob"));
        assert!(line("timeball bench update-index").unwrap_err().contains("--url"));
    }

    #[test]
    fn durations() {
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(["500us", "500µs", "500000ns"].map(duration), [(); 3].map(|()| Ok(Duration::from_micros(500))));
        let Ok(Command::Start(o)) = line("timeball start --store=/x --strict-error-max 500us") else {
            panic!("refused")
        };
        assert_eq!(o.node.ladder.strict_error_ns, 500_000);
        assert_eq!(o.node.said, ["timeball.commit_wait_budget"]);
        assert!(duration("5 parsecs").is_err());
        assert!(line("timeball start --store=/x --strict-error-max 500").unwrap_err().to_string().contains("500us"));
        let wider = line("timeball start --store=/x --strict-error-max 10s --hybrid-error-max 1s").unwrap_err();
        assert!(wider.to_string().contains("--hybrid-error-max"), "{wider}");
        assert_eq!(
            [memory("1GiB"), memory("1.5GB"), memory("268435456")],
            [Ok(1 << 30), Ok(1_500_000_000), Ok(256 << 20)]
        );
        assert_eq!(memory("99999999TiB"), Ok(MEMORY_BYTES_MAX));
        for (wrong, why) in [("1MiB", "at least 128MiB"), ("1G", "4GiB"), ("much", "4GiB"), ("-1GiB", "4GiB")] {
            assert!(memory(wrong).unwrap_err().contains(why), "{wrong}");
        }
        let Ok(Command::Start(o)) = line("timeball start --store=/x --memory 1GiB") else { panic!("refused") };
        assert_eq!(o.node.shares, server::Shares::of(1 << 30));
        assert_eq!(retention("2m"), Ok(Duration::from_secs(120)));
        assert!(retention("0").is_err() && retention("1.5s").unwrap_err().contains("whole seconds"));
        let Ok(Command::Start(o)) = line("timeball start --store=/x --retention 30s") else { panic!("refused") };
        assert_eq!(o.node.retention, Duration::from_secs(30));
    }
}
