//! Real clusters that the lab starts, measures and removes: nodes of the `timeball` binary as processes of this machine.
//!
//! Problem: what a paper measured on machines of a cloud is to be repeated on one machine, whose clock all nodes share and whose links take no
//! time. Idea: what differs between machines is injected from outside, by nothing that the product does not read anyway.
//!
//! ```text
//!   clock error   `--clock static:5ms`; or a file of ClockBound's layout, in which the lab is the daemon ([`Clock::Moving`])
//!   link delay    a relay before each node ([`Relay`]): `--peer-addr` is the relay's address, `--peer-listen-addr` the node's own
//!   counters      `/metrics` of each node, summed
//!   company       the machine's processor time, beside what the nodes and the lab used ([`Usage`])
//! ```
//!
//! Invariants:
//! 1. Each cluster is fresh: an empty folder, which goes with it, and new ports. What a run that was killed has left the next one removes ([`folder`]).
//! 2. Nodes end with the value, and with the lab's process however that ends.
//! 3. Whatever is waited for has a bound, and its error names the node and what it said last.
//!
//! Caveats: all nodes and the clients share the processors, so absolute numbers are this machine's and ratios within one run are what counts.
//! Stated errors are injected, not offsets: the nodes' clocks agree, which makes no restart *necessary*.

mod bound_file;
mod folder;
mod node;
mod placement;
mod ports;
mod relay;
mod usage;

pub(crate) use bound_file::BoundFile;
pub use node::spawn_node;
pub use placement::{Boundary, Placement, spread};
pub use relay::Delays;
pub use usage::Usage;

use crate::client::{Client, ClientError, Url};
use folder::Folder;
use node::Node;
use ports::Ports;
use relay::Relay;
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A cluster that does not serve after so long is not going to.
const START_MAX: Duration = Duration::from_secs(60);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);
/// A page of metrics comes within so long.
const METRICS_MAX: Duration = Duration::from_secs(10);

/// What a node's clock is said to be worth.
#[derive(Clone)]
pub enum Clock {
    /// So much, all the time.
    Stated(Duration),
    /// An error that changes, by the time since the cluster's start.
    Moving(Arc<dyn Fn(Duration) -> Duration + Send + Sync>),
}

/// What is started.
#[derive(Clone)]
pub struct Plan {
    /// The program of the nodes.
    pub binary: PathBuf,
    /// Where their data lie: a folder that is there; each cluster makes one of its own below.
    pub dir: PathBuf,
    /// How many; 1: a node alone, without replication.
    pub nodes: usize,
    /// The clock of each, in turn.
    pub clocks: Vec<Clock>,
    /// How long messages take between nodes; `None`: they speak without a relay.
    pub delays: Option<Delays>,
    /// Memory of each node, MiB.
    pub memory_mib: u32,
}

/// Why there is no cluster, or why it cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A file, a port or a process.
    #[error("{what}: {error}")]
    Io {
        /// What was done.
        what: String,
        /// The system's error.
        error: io::Error,
    },
    /// A node's process is gone.
    #[error("n{number} ended ({status}): {said}")]
    Ended {
        /// Which.
        number: usize,
        /// How.
        status: String,
        /// Its last words.
        said: String,
    },
    /// It took too long.
    #[error("{what} within {seconds} s: {why}")]
    Late {
        /// What did not happen.
        what: String,
        /// How long it was waited for.
        seconds: u64,
        /// What the last attempt said.
        why: String,
    },
    /// Leaders did not stay where they were put.
    #[error(
        "range {range} was {was}, and is {is}: what was measured is not of the places that were asked for. Go on with --resume, on a machine that others use less"
    )]
    Moved {
        /// The range.
        range: String,
        /// Where it was led when the leaders had been placed.
        was: String,
        /// Where it is led.
        is: String,
    },
    /// A command of the binary failed.
    #[error("{command}: {said}")]
    Command {
        /// Its words.
        command: String,
        /// What it said.
        said: String,
    },
    /// A statement failed.
    #[error(transparent)]
    Sql(#[from] ClientError),
}

fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> ClusterError {
    let what = what.into();
    move |error| ClusterError::Io { what, error }
}

/// Nodes that run, and everything that was injected.
pub struct Cluster {
    binary: PathBuf,
    // Fields go in this order: nodes write into the folder.
    nodes: Vec<Node>,
    _relays: Vec<Relay>,
    _bounds: Vec<BoundFile>,
    dir: Folder,
}

impl Cluster {
    /// Starts nodes and, of several, founds a cluster; returns when each answers statements.
    ///
    /// # Errors
    /// [`ClusterError`].
    pub fn start(plan: &Plan) -> Result<Cluster, ClusterError> {
        ports::again(|| Self::start_once(plan))
    }

    fn start_once(plan: &Plan) -> Result<Cluster, ClusterError> {
        let dir = Folder::new(&plan.dir)?;
        let mut cluster =
            Cluster { binary: plan.binary.clone(), nodes: Vec::new(), _relays: Vec::new(), _bounds: Vec::new(), dir };
        // From here on what was begun goes with `cluster`.
        let (mut addresses, mut free) = (Vec::new(), Ports::default());
        for number in 1..=plan.nodes {
            let ports = [free.take()?, free.take()?, free.take()?];
            cluster.nodes.push(Node::new(number, cluster.dir.path().join(format!("n{number}")), ports));
            let relay = plan.delays.is_some() && plan.nodes > 1;
            addresses.push(if relay { free.take()? } else { ports[2] });
        }
        drop(free);
        let join: Vec<String> = addresses.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        for at in 0..plan.nodes {
            let mut flags = vec![format!("--memory={}MiB", plan.memory_mib)];
            flags.push(match plan.clocks.get(at % plan.clocks.len().max(1)) {
                None => "--clock=same-host".to_owned(),
                Some(Clock::Stated(error)) => format!("--clock=static:{}us", error.as_micros()),
                Some(Clock::Moving(curve)) => {
                    let path = cluster.dir.path().join(format!("bound{}", at + 1));
                    cluster._bounds.push(BoundFile::start(path.clone(), curve.clone())?);
                    format!("--clock=clockbound:{}", path.display())
                }
            });
            if plan.nodes > 1 {
                flags.extend([format!("--peer-addr={}", join[at]), format!("--join={}", join.join(","))]);
                let own = cluster.nodes[at].peer;
                if addresses[at] != own {
                    flags.push(format!("--peer-listen-addr=127.0.0.1:{own}"));
                }
            }
            cluster.nodes[at].start(&plan.binary, &flags)?;
        }
        if let Some(delays) = plan.delays.as_ref().filter(|_| plan.nodes > 1) {
            let processes: Vec<u32> = cluster.nodes.iter().filter_map(Node::process).collect();
            for (at, address) in addresses.iter().enumerate() {
                let own = cluster.nodes[at].peer;
                cluster._relays.push(Relay::start(*address, own, at, delays.clone(), processes.clone())?);
            }
        }
        if plan.nodes > 1 {
            cluster.until("the cluster is not founded", |cluster| {
                cluster.command(&["init", "--host", &join[0]]).map(drop)
            })?;
        }
        for at in 0..plan.nodes {
            let url = cluster.url_of(at, &[]);
            cluster.until("a node does not serve", move |_| {
                let mut client = Client::connect(&url)?;
                client.query("SELECT 1")?;
                Ok(())
            })?;
        }
        Ok(cluster)
    }

    /// How many nodes.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// A URL of one node, from 0, with start-up parameters (`timeball.consistency=strict`).
    pub fn url_of(&self, at: usize, parameters: &[&str]) -> Url {
        self.urls(&[at], parameters)
    }

    /// A URL of all nodes.
    pub fn url(&self, parameters: &[&str]) -> Url {
        self.urls(&(0..self.nodes.len()).collect::<Vec<_>>(), parameters)
    }

    fn urls(&self, at: &[usize], parameters: &[&str]) -> Url {
        let hosts = at.iter().map(|at| ("127.0.0.1".to_owned(), self.nodes[*at].sql)).collect();
        let options: Vec<String> = parameters.iter().map(|setting| format!("-c {setting}")).collect();
        let parameters = match options.is_empty() {
            true => Vec::new(),
            false => vec![("options".to_owned(), options.join(" "))],
        };
        Url {
            hosts,
            target: crate::client::Target::Any,
            connect_seconds: None,
            user: "root".into(),
            password: None,
            database: "postgres".into(),
            parameters,
        }
    }

    /// Runs a command of the binary; what it said.
    ///
    /// # Errors
    /// [`ClusterError::Command`] with its words.
    pub fn command(&self, arguments: &[&str]) -> Result<String, ClusterError> {
        let command = || format!("timeball {}", arguments.join(" "));
        let output = Command::new(&self.binary).args(arguments).output().map_err(io_error(command()))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                Err(ClusterError::Command { command: command(), said })
            }
        }
    }

    /// Where a node listens for its peers.
    pub fn peer_addr(&self, at: usize) -> String {
        format!("127.0.0.1:{}", self.nodes[at].peer)
    }

    /// The counters and gauges of all nodes, summed by name.
    ///
    /// # Errors
    /// A node does not answer.
    pub fn counters(&self) -> Result<BTreeMap<String, f64>, ClusterError> {
        let mut sums = BTreeMap::new();
        for node in &self.nodes {
            let text = metrics(node.http).map_err(io_error(format!("the metrics of n{}", node.number)))?;
            for (name, value) in samples(&text) {
                *sums.entry(name.to_owned()).or_insert(0.0) += value;
            }
        }
        Ok(sums)
    }

    /// Processor time so far: of the nodes and this process, and of the machine.
    pub fn usage(&self) -> Usage {
        Usage::of(self.nodes.iter().filter_map(Node::process))
    }

    /// Asks until it is done; an error if a node has ended, or if it takes too long.
    fn until(
        &mut self,
        what: &str,
        mut ask: impl FnMut(&Cluster) -> Result<(), ClusterError>,
    ) -> Result<(), ClusterError> {
        let began = Instant::now();
        loop {
            let Err(why) = ask(self) else { return Ok(()) };
            for node in &mut self.nodes {
                node.check()?;
            }
            if began.elapsed() > START_MAX {
                return Err(ClusterError::Late {
                    what: what.to_owned(),
                    seconds: START_MAX.as_secs(),
                    why: why.to_string(),
                });
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// The page of `/metrics` at a port.
fn metrics(port: u16) -> io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(METRICS_MAX))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    match text.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(body.to_owned()),
        _ => Err(io::Error::other(text.lines().next().unwrap_or("no answer").to_owned())),
    }
}

/// The samples of such a page that have no labels.
fn samples(text: &str) -> impl Iterator<Item = (&str, f64)> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name, value.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::samples;

    #[test]
    fn samples_are_read_without_their_comments() {
        let page = "# TYPE a counter\na 3\nb_nanos 1.5e3\nc{le=\"0.1\"} 7 8\n";
        assert_eq!(samples(page).collect::<Vec<_>>(), [("a", 3.0), ("b_nanos", 1500.0)]);
    }
}
