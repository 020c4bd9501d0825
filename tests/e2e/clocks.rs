//! Clocks for real, as one story: a chronyd that follows another one, a node on it, and every way to look at the node's clock.
//! The daemon dies, the bound grows; it comes back, the bound shrinks.
//!
//! `cargo test -p timeball --test e2e -- --ignored --nocapture clocks::`
//!
//! Needs root, chronyd and `ip` (Debian: chrony, iproute2); says so where they are missing. Takes half a minute, and the
//! same again where there is a ClockBound daemon, which comes and goes under `auto`. No timing is asserted:
//! the bound is compared with itself and with [`BOUND_NS_MAX`].

use crate::daemons::{Namespace, Place, missing};
use crate::node::{Node, PATIENCE, Scratch, binary, skip, until};
use serde_json::Value;
use std::io::{BufRead, BufReader, Lines};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

/// A bound beyond this is no bound of a server one virtual link away: it is 0.1 to 0.4 ms once chronyd has its samples. After the
/// first few of them, on a busy machine, it may be a second; so every look waits until it is narrow.
const BOUND_NS_MAX: u64 = 100_000_000;
/// The story begins when chronyd has settled: the bound allows `strict`.
const SETTLED_NS: u64 = 5_000_000;
/// So much the bound must have grown without the daemon to be told from its breathing with it: a few seconds at 50 ppm.
const GROWTH_NS: u64 = 300_000;

/// What one look at a clock said.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    source: String,
    status: String,
    bound_ns: Option<u64>,
}

impl Seen {
    fn of(said: &Value, bound: &str) -> Seen {
        let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
        let prefix = if bound == "clock_bound_ns" { "clock_" } else { "" };
        Seen {
            source: text(&format!("{prefix}source")),
            status: text(&format!("{prefix}status")),
            bound_ns: said[bound].as_u64(),
        }
    }
    fn is(&self, status: &str) -> bool {
        self.status == status && self.bound_ns.is_some_and(|ns| 0 < ns && ns < BOUND_NS_MAX)
    }
}

/// Runs the command and says so; what it wrote to standard output.
fn say(mut command: Command) -> String {
    let line: Vec<_> = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
    let done = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    println!("$ {} {}\n{out}{err}", command.get_program().display(), line.join(" "));
    assert!(done.status.success(), "{line:?}: {out}{err}");
    out.into_owned()
}

fn timeball(args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(args);
    command
}

/// `timeball clock --json` with more flags, once.
fn clock(flags: &[&str]) -> Seen {
    once(timeball(&["clock", "--json"]).args(flags))
}

fn once(command: &mut Command) -> Seen {
    let done = command.output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    let said = serde_json::from_str(text.trim()).unwrap_or_else(|e| panic!("{e}: {done:?}"));
    Seen::of(&said, "error_ns")
}

/// `timeball clock --json` that goes on.
struct Watch(Child, Lines<BufReader<ChildStdout>>);

impl Watch {
    fn start(mut command: Command, source: &str) -> Watch {
        command.args(["clock", "--json", "--count", "1000000", "--every", "50ms", "--clock", source]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Watch(child, lines)
    }
    /// Reads on until a line is as it should be.
    fn until(&mut self, what: &str, good: impl Fn(&Seen) -> bool) -> Seen {
        let began = Instant::now();
        loop {
            let line = self.1.next().unwrap().unwrap();
            let seen = Seen::of(&serde_json::from_str(&line).unwrap(), "error_ns");
            if good(&seen) {
                println!("a running `timeball clock --json`: {what}: {line}");
                return seen;
            }
            assert!(began.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}: {line}");
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The four ways to ask a node: the command, SQL, `/health`, `/metrics`.
fn four_views(node: &Node) -> [Seen; 4] {
    let mut client = node.connect();
    let query = "SELECT source, status, bound_ns::int8 FROM timeball_internal.clocks";
    let row = client.query_one(query, &[]).unwrap();
    let sql =
        Seen { source: row.get(0), status: row.get(1), bound_ns: row.get::<_, Option<i64>>(2).map(|ns| ns as u64) };
    let page = node.get("/health");
    let health = serde_json::from_str(page.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let names = ["unknown", "synchronized", "free_running", "disrupted"];
    let metrics = node.get("/metrics");
    let label = metrics.lines().find_map(|line| line.strip_prefix("clock_source{source=\"")?.strip_suffix("\"} 1"));
    let metrics = Seen {
        source: label.unwrap_or_default().to_owned(),
        status: names[node.metric("clock_status").unwrap() as usize].into(),
        bound_ns: node.metric("clock_bound_nanos").map(|ns| ns as u64),
    };
    [clock(&["--url", &node.url()]), sql, Seen::of(&health, "clock_bound_ns"), metrics]
}

/// Waits until all views have this status and a bound; gives the bounds, in the order of asking.
fn all_say(node: &Node, status: &str) -> [u64; 4] {
    let views = until(status, || Some(four_views(node)).filter(|all| all.iter().all(|v| v.is(status))));
    println!("the node's command, SQL, /health, /metrics: {views:?}");
    assert!(views.iter().all(|v| v.source == "chrony"), "{views:?}");
    views.map(|v| v.bound_ns.unwrap())
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
#[ignore = "real chronyds for half a minute; needs root: cargo test -p timeball --test e2e -- --ignored --nocapture clocks::"]
fn a_node_outlives_its_time_daemon() {
    if let Some(what) = missing() {
        return skip(&format!("this machine has no {what}"));
    }
    let (place, namespace) = (Place::create().unwrap(), Namespace::create().unwrap());
    let _reference = place.reference(&namespace).unwrap();
    let (server, port) = (format!("{}:123", namespace.address).parse().unwrap(), free_port());
    let daemon = place.client_at(server, port).unwrap();
    let source = format!("chrony:{}", place.socket().display());
    until("chronyd has settled", || {
        let seen = clock(&["--clock", &source]);
        (seen.is("synchronized") && seen.bound_ns < Some(SETTLED_NS)).then_some(())
    });
    looks(&source, port, &place, daemon.pid());

    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &["--clock", &source]);
    all_say(&node, "synchronized");
    for flags in [&["--json"][..], &["--count", "2", "--every", "50ms"]] {
        let text = say_clock(&[&["--url", &node.url()], flags].concat());
        assert!(text.contains("chrony") && text.contains("synchronized"), "{text}");
    }
    let mut watch = Watch::start(timeball(&[]), &source);
    watch.until("all is well", |seen| seen.is("synchronized"));

    drop(daemon);
    let alone = watch.until("chronyd is dead", |seen| seen.is("free_running"));
    watch.until("the bound has grown", |seen| seen.is("free_running") && seen.bound_ns > alone.bound_ns);
    let first = all_say(&node, "free_running");
    let grown = until("the node's bound has grown", || {
        let now = four_views(&node);
        now.iter()
            .zip(first)
            .all(|(now, first)| now.is("free_running") && now.bound_ns > Some(first + GROWTH_NS))
            .then_some(now)
    });
    println!("grown from {first:?} to {:?}", grown.clone().map(|v| v.bound_ns));
    // A client can still write: a lost daemon stops nothing while the bound is narrow enough.
    node.connect().batch_execute("CREATE TABLE t (id int4 PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();

    let _daemon = place.client_at(server, port).unwrap();
    let back = until("the bound has shrunk", || {
        let now = four_views(&node);
        now.iter()
            .zip(&grown)
            .all(|(now, grown)| now.is("synchronized") && now.bound_ns < grown.bound_ns)
            .then_some(now)
    });
    println!("back: {:?}", back.map(|v| v.bound_ns));
    watch.until("chronyd is back", |seen| seen.is("synchronized") && seen.bound_ns < grown[0].bound_ns);
}

fn say_clock(flags: &[&str]) -> String {
    say(timeball(&[&["clock"], flags].concat()))
}

/// Every way to look at a daemon without a node.
fn looks(source: &str, port: u16, place: &Place, pid: u32) {
    let text = say_clock(&["--json", "--clock", source]);
    let said: Value = serde_json::from_str(&text).unwrap();
    let detail = said["detail"].as_str().unwrap();
    assert!(detail.contains("chronyd follows 10.77.") && detail.contains("frequency known to "), "{text}");
    let by_udp = format!("chrony:127.0.0.1:{port}");
    until("chronyd by UDP", || clock(&["--clock", &by_udp]).is("synchronized").then_some(()));
    // Other chronyds may run here; it is this one's file that is read.
    let file = place.0.join("client");
    for address in [source, &by_udp] {
        let advice = say_clock(&["doctor", "--clock", address]);
        assert!(advice.contains(&format!("daemon: process {pid} (")), "{advice}");
        assert!(advice.contains(&format!("settings: {}\n", file.display())), "{advice}");
        assert!(advice.contains("maxclockerror is 50 ppm"), "{advice}");
    }
    let live = say_clock(&["--count", "3", "--every", "50ms", "--clock", source]);
    assert!(
        live.contains("chrony ") && live.contains("synchronized") && live.contains("± ") && live.contains('█'),
        "{live}"
    );
    auto(place);
}

/// Where chronyd is at its usual path and there is no ClockBound, `auto` takes chronyd; while there is one, ClockBound. A mount
/// namespace makes it so.
fn auto(place: &Place) {
    let bounded_ptp = |n| Path::new(&format!("/sys/class/ptp/ptp{n}/device/phc_error_bound")).exists();
    if (0..8).any(bounded_ptp) {
        println!(
            "NOT COVERED: this machine has a PTP hardware clock that states its error, so `auto` rightly takes that"
        );
        return;
    }
    let at_usual_paths = || place.at_usual_paths(Path::new(&binary()));
    let seen = until("auto finds chronyd", || {
        Some(once(at_usual_paths().args(["clock", "--json", "--clock", "auto"]))).filter(|s| s.is("synchronized"))
    });
    assert_eq!(seen.source, "chrony");

    let mut watch = Watch::start(at_usual_paths(), "auto");
    watch.until("auto has chronyd only", |seen| seen.source == "chrony" && seen.is("synchronized"));
    let Some((clockbound, _)) = place.clockbound() else {
        println!(
            "NOT COVERED: this machine has no ClockBound daemon (cargo install clock-bound-d, or TIMEBALL_CLOCKBOUND)"
        );
        return;
    };
    watch.until("auto takes a better source", |seen| seen.source == "clockbound" && seen.is("synchronized"));
    drop(clockbound);
    watch.until("auto falls back", |seen| seen.source == "chrony" && seen.is("synchronized"));
}
