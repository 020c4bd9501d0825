//! Three nodes of each kind on this machine, on the same disk, with their default durability.

use crate::bench::systems::Node;
use crate::run;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Nodes of a cluster.
pub const NODES: usize = 3;
/// A cluster that does not serve by then does not work.
const START_MAX: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A small program that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

fn free() -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| format!("no free port: {e}"))?;
    listener.local_addr().map(|address| address.to_string()).map_err(|e| e.to_string())
}

/// Tries until it works.
fn until<T>(what: &str, mut attempt: impl FnMut() -> Result<T, String>) -> Result<T, String> {
    let began = Instant::now();
    loop {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(why) if began.elapsed() > START_MAX => return Err(format!("{what}: {why}")),
            Err(_) => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// What each node may use, those of a cluster and the one beside: by default three would share what one has to itself.
pub const NODE_MEMORY: &str = "2GiB";

/// Nodes of Timeball.
pub struct Timeball {
    nodes: Vec<Node>,
    binary: PathBuf,
    /// Where a node answers its peers.
    peer: String,
    /// What each was started with, and in which folder.
    flags: Vec<Vec<String>>,
    dir: PathBuf,
}

impl Timeball {
    /// Starts and founds a cluster, with a database `bench`.
    pub fn start(binary: &Path, dir: &Path) -> Result<Self, String> {
        Timeball::start_with(binary, dir, NODE_MEMORY)
    }

    /// As [`Timeball::start`], with so much memory for each node, as its flag has it.
    pub fn start_with(binary: &Path, dir: &Path, memory: &str) -> Result<Self, String> {
        std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
        let peers: Vec<String> = (0..NODES).map(|_| free()).collect::<Result<_, _>>()?;
        let join = peers.join(",");
        let flags =
            |peer: &String| ["--join", &join, "--peer-addr", peer, "--memory", memory].map(str::to_owned).to_vec();
        let flags: Vec<Vec<String>> = peers.iter().map(flags).collect();
        let node = |at: usize| node(binary, dir, at, &flags[at]);
        let nodes = std::thread::scope(|scope| {
            let starting: Vec<_> = (0..NODES).map(|at| scope.spawn(move || node(at))).collect();
            until("timeball init", || {
                run::capture(Command::new(binary).args(["init", "--host", &peers[0]]), PATIENCE)
            })?;
            let ready = starting.into_iter().map(|node| node.join().map_err(|_| "a thread panicked".to_owned())?);
            ready.collect::<Result<Vec<Node>, String>>()
        })?;
        let (binary, dir) = (binary.to_path_buf(), dir.to_path_buf());
        let cluster = Timeball { nodes, binary, peer: peers[0].clone(), flags, dir };
        cluster.sql(0, "postgres", "CREATE DATABASE bench")?;
        Ok(cluster)
    }

    /// One node that is alone, with as much memory as each of a cluster.
    pub fn alone(binary: &Path, dir: &Path) -> Result<Node, String> {
        Node::start_with(binary, dir, Stdio::null(), &["--memory", NODE_MEMORY].map(str::to_owned))
    }

    /// Runs statements at a node; the rows, unadorned.
    pub fn sql(&self, at: usize, database: &str, text: &str) -> Result<String, String> {
        sql(self.nodes[at].port, database, text)
    }

    /// As [`Timeball::sql`], of what may take so long.
    pub fn sql_within(&self, at: usize, database: &str, text: &str, limit: Duration) -> Result<String, String> {
        sql_within(self.nodes[at].port, database, text, limit)
    }

    /// A URL of a node.
    pub fn url_of(&self, at: usize, database: &str) -> String {
        format!("postgresql://root@127.0.0.1:{}/{database}?sslmode=disable", self.nodes[at].port)
    }

    /// Starts a node that was killed, on what it has.
    pub fn restart(&mut self, at: usize) -> Result<(), String> {
        self.nodes[at] = node(&self.binary, &self.dir, at, &self.flags[at])?;
        Ok(())
    }

    /// The node that leads the range that was asked of.
    pub fn leader(&self, of: &str) -> Result<usize, String> {
        until("a range has no leader", || {
            let query =
                format!("SELECT leader_node_id FROM timeball_internal.ranges WHERE leader_node_id IS NOT NULL {of}");
            let leader = self.sql(0, "bench", &query)?;
            let first = leader.lines().next().and_then(|line| line.trim().parse::<usize>().ok());
            first.map(|node| node - 1).ok_or_else(|| format!("no number: {leader:?}"))
        })
    }

    /// A URL of all nodes.
    pub fn url(&self, database: &str) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("postgresql://root@{}/{database}?sslmode=disable", hosts.join(","))
    }

    /// Has the nodes lead all ranges in turn, in the order of their keys.
    pub fn spread(&self) -> Result<(), String> {
        until("leaders are not spread", || {
            let told = self.sql(
                0,
                "bench",
                "SELECT range_id, coalesce(leader_node_id, 0) FROM timeball_internal.ranges ORDER BY start_key",
            )?;
            let mut spread = true;
            for (at, line) in told.lines().enumerate() {
                let (id, leader) = line.split_once('|').ok_or_else(|| format!("no range: {line:?}"))?;
                let turn = (at % NODES + 1).to_string();
                if leader != turn {
                    spread = false;
                    let mut lead = Command::new(&self.binary);
                    lead.args(["range", "lead", id, "--to", &turn, "--host", &self.peer]);
                    run::capture(&mut lead, PATIENCE)?;
                }
            }
            if spread { Ok(()) } else { Err("n1 has not heard of it".to_owned()) }
        })
    }

    /// A node.
    pub fn node(&self, at: usize) -> &Node {
        &self.nodes[at]
    }
}

/// Starts a node, or starts it again.
fn node(binary: &Path, dir: &Path, at: usize, flags: &[String]) -> Result<Node, String> {
    let log = dir.join(format!("n{}.log", at + 1));
    let log = std::fs::File::options().create(true).append(true).open(log).map_err(|e| e.to_string())?;
    Node::start_with(binary, &dir.join(format!("n{}", at + 1)), log.into(), flags)
}

/// Runs statements by psql.
pub fn sql(port: u16, database: &str, text: &str) -> Result<String, String> {
    sql_within(port, database, text, START_MAX)
}

fn sql_within(port: u16, database: &str, text: &str, limit: Duration) -> Result<String, String> {
    let url = format!("postgresql://root@127.0.0.1:{port}/{database}");
    run::capture(Command::new("psql").args(["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-c", text, &url]), limit)
}

/// Members of etcd, from Debian's package.
pub struct Etcd {
    processes: Vec<Child>,
    clients: Vec<String>,
    bench: PathBuf,
}

impl Etcd {
    /// Starts a cluster, and builds the client.
    pub fn start(dir: &Path) -> Result<Self, String> {
        let bench = dir.join("etcd-bench");
        let module = run::root().join("xtask/etcd");
        run::capture(Command::new("go").args(["build", "-o"]).arg(&bench).arg(".").current_dir(module), 10 * PATIENCE)?;
        let clients: Vec<String> = (0..NODES).map(|_| free()).collect::<Result<_, _>>()?;
        let peers: Vec<String> = (0..NODES).map(|_| free()).collect::<Result<_, _>>()?;
        let named = |(at, address): (usize, &String)| format!("m{at}=http://{address}");
        let all: Vec<String> = peers.iter().enumerate().map(named).collect();
        let mut etcd = Etcd { processes: Vec::new(), clients, bench };
        for (at, peer) in peers.iter().enumerate() {
            let log = std::fs::File::create(dir.join(format!("etcd{at}.log"))).map_err(|e| e.to_string())?;
            let client = format!("http://{}", etcd.clients[at]);
            let child = Command::new("etcd")
                .args(["--name", &format!("m{at}"), "--initial-cluster", &all.join(","), "--logger", "zap"])
                .arg("--data-dir")
                .arg(dir.join(format!("etcd{at}")))
                .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
                .args(["--listen-peer-urls", &format!("http://{peer}")])
                .args(["--initial-advertise-peer-urls", &format!("http://{peer}")])
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .map_err(|e| format!("cannot start etcd: {e}; apt-get install etcd-server"))?;
            etcd.processes.push(child);
        }
        until("etcd does not serve", || {
            etcd.puts(1, 1).and_then(|rate| if rate > 0.0 { Ok(()) } else { Err("no puts".into()) })
        })?;
        etcd.put_leader_first();
        Ok(etcd)
    }

    /// Clients speak to the leader, as they do with Timeball.
    fn put_leader_first(&mut self) {
        let leads = |client: &String| {
            let mut ask = Command::new("etcdctl");
            ask.env("ETCDCTL_API", "3").args(["--endpoints", client, "endpoint", "status", "-w", "json"]);
            let told = run::capture(&mut ask, PATIENCE).unwrap_or_default();
            let json: serde_json::Value = serde_json::from_str(told.trim()).unwrap_or_default();
            let status = &json[0]["Status"];
            status["leader"].as_u64().is_some() && status["leader"] == status["header"]["member_id"]
        };
        if let Some(at) = self.clients.iter().position(leads) {
            self.clients.swap(0, at);
        }
    }

    /// Puts a second.
    pub fn puts(&self, clients: u32, seconds: u64) -> Result<f64, String> {
        let mut command = Command::new(&self.bench);
        command.args(["-endpoints", &self.clients.join(","), "-clients", &clients.to_string()]);
        command.args(["-seconds", &seconds.to_string()]);
        let text = run::capture(&mut command, Duration::from_secs(seconds) + PATIENCE)?;
        let json: serde_json::Value = serde_json::from_str(&text).map_err(|e| format!("{e}: {text}"))?;
        json["per_second"].as_f64().ok_or_else(|| format!("no rate in {text}"))
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
