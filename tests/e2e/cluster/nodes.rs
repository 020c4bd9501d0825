//! Nodes of one cluster.

use super::network::Network;
use crate::node::{Node, Starting, binary, free_port, until};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// A cluster of processes. They end with it.
pub struct Nodes {
    dir: PathBuf,
    /// Where they reach each other.
    peers: Vec<String>,
    running: Vec<Option<Node>>,
    /// More flags, the same for all.
    flags: Vec<String>,
    /// What starts each, where it is not started as it is.
    launchers: Vec<Vec<String>>,
    urls: Urls,
}

/// Where clients find the nodes now; `None`: it does not run.
pub type Urls = Arc<Mutex<Vec<Option<String>>>>;

/// An address that nobody listens at now.
fn free() -> String {
    format!("127.0.0.1:{}", free_port())
}

impl Nodes {
    /// Starts nodes, and founds a cluster of them.
    pub fn found(dir: &Path, count: usize) -> Nodes {
        Self::found_with(dir, count, &[])
    }

    /// As [`Nodes::found`], with more flags.
    pub fn found_with(dir: &Path, count: usize, flags: &[&str]) -> Nodes {
        Self::found_at((0..count).map(|_| free()).collect(), dir, flags, Vec::new())
    }

    /// As [`Nodes::found`], each in a namespace of its own.
    pub fn found_in(dir: &Path, count: usize, network: &Network) -> Nodes {
        let peers = (0..count).map(|at| format!("{}:26357", network.host(at))).collect();
        let launchers = (0..count).map(|at| ["ip", "netns", "exec", &network.name(at)].map(str::to_owned).to_vec());
        Self::found_at(peers, dir, &["--insecure", "--clock", "same-host"], launchers.collect())
    }

    /// As [`Nodes::found_with`]; the last one sees another time, by these variables of its environment.
    pub fn found_apart(dir: &Path, count: usize, flags: &[&str], environment: &[String]) -> Nodes {
        let mut launchers = vec![Vec::new(); count];
        launchers[count - 1] = [&["env".to_owned()], environment].concat();
        Self::found_at((0..count).map(|_| free()).collect(), dir, flags, launchers)
    }

    fn found_at(peers: Vec<String>, dir: &Path, flags: &[&str], launchers: Vec<Vec<String>>) -> Nodes {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let (dir, urls) = (dir.to_owned(), Urls::default());
        let mut nodes = Nodes { dir, peers, running: Vec::new(), flags, launchers, urls };
        let mut starting: Vec<Starting> = (0..nodes.peers.len()).map(|at| nodes.spawn(at)).collect();
        for node in &mut starting {
            node.line("peer ").unwrap_or_else(|log| panic!("a node did not start:\n{log}"));
        }
        let init = Command::new(binary()).args(["init", "--host", &nodes.peers[0]]).output().unwrap();
        assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
        nodes.running = starting.into_iter().map(|node| Some(ready(node))).collect();
        nodes.publish();
        nodes
    }

    /// A cluster that the first release founded, which knew no newer version: the stores are new, and their charters are as it left them.
    pub fn found_by_the_first_release(dir: &Path, count: usize) -> Nodes {
        let (peers, urls) = ((0..count).map(|_| free()).collect(), Urls::default());
        let running = (0..count).map(|_| None).collect();
        let mut nodes = Nodes { dir: dir.to_owned(), peers, running, flags: Vec::new(), launchers: Vec::new(), urls };
        let mut members = String::new();
        for at in 0..count {
            let mut node = nodes.spawn(at);
            node.line("peer ").unwrap_or_else(|log| panic!("a node did not start:\n{log}"));
            node.kill();
            let store = std::fs::read_to_string(nodes.store(at).join("STORE")).unwrap();
            members.push_str(&format!("member {} {} {}\n", at + 1, store.lines().nth(1).unwrap(), nodes.peers[at]));
        }
        for at in 0..count {
            let text = format!("timeball cluster 1\ncluster 00000000000000ab\n{members}node {}\n", at + 1);
            std::fs::write(nodes.store(at).join("CLUSTER"), text).unwrap();
        }
        nodes.restart_all();
        nodes
    }

    /// Where a node's data are.
    pub fn store(&self, at: usize) -> PathBuf {
        self.dir.join(format!("n{}", at + 1))
    }

    /// Starts one; it does not serve yet.
    pub fn spawn(&self, at: usize) -> Starting {
        let join = self.peers.join(",");
        let store = self.store(at);
        let mut flags = vec!["--memory", "256MiB", "--join", &join, "--peer-addr", &self.peers[at]];
        flags.extend(self.flags.iter().map(String::as_str));
        let host = self.peers[at].split(':').next().unwrap();
        Starting::spawn_by(self.launchers.get(at).map_or(&[], Vec::as_slice), host, &store, &flags)
    }

    /// One more joins, and serves; its place.
    pub fn join(&mut self) -> usize {
        self.peers.push(free());
        let node = ready(self.spawn(self.peers.len() - 1));
        self.running.push(Some(node));
        self.publish();
        self.peers.len() - 1
    }

    pub fn peers(&self) -> &[String] {
        &self.peers
    }

    /// A node that runs.
    pub fn at(&self, at: usize) -> &Node {
        self.running[at].as_ref().expect("it runs")
    }

    /// `kill -9`.
    pub fn kill(&mut self, at: usize) {
        self.running[at].take().expect("it runs").kill();
        self.publish();
    }

    /// SIGTERM; waits until the process is gone.
    pub fn stop(&mut self, at: usize) {
        let node = self.running[at].take().expect("it runs");
        self.publish();
        node.terminate();
        assert!(node.wait().success());
    }

    /// `timeball node status --host`; what it says against it.
    pub fn status(&self, at: usize) -> Result<String, String> {
        status_of(&self.peers[at])
    }

    /// Starts one again that was killed.
    pub fn restart(&mut self, at: usize) {
        self.running[at] = Some(ready(self.spawn(at)));
        self.publish();
    }

    /// As [`Nodes::restart`], with more flags for this start.
    pub fn restart_with(&mut self, at: usize, flags: &[&str]) {
        let count = self.flags.len();
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self.restart(at);
        self.flags.truncate(count);
    }

    /// Starts all again that do not run, at once: none serves alone.
    pub fn restart_all(&mut self) {
        let down: Vec<usize> = (0..self.running.len()).filter(|at| self.running[*at].is_none()).collect();
        let starting: Vec<Starting> = down.iter().map(|at| self.spawn(*at)).collect();
        for (at, node) in down.into_iter().zip(starting) {
            self.running[at] = Some(ready(node));
        }
        self.publish();
    }

    /// SIGSTOP.
    pub fn sleep(&self, at: usize) {
        self.signal(at, "-STOP");
    }
    /// SIGCONT.
    pub fn wake(&self, at: usize) {
        self.signal(at, "-CONT");
    }
    fn signal(&self, at: usize, signal: &str) {
        let status = Command::new("kill").arg(signal).arg(self.at(at).pid().to_string()).status().unwrap();
        assert!(status.success());
    }

    /// For clients that outlive nodes.
    pub fn urls(&self) -> Urls {
        self.urls.clone()
    }
    fn publish(&self) {
        *self.urls.lock().unwrap() = self.running.iter().map(|node| node.as_ref().map(Node::url)).collect();
    }

    /// Who leads the first range, as the nodes see it.
    pub fn leader(&self) -> usize {
        let query = "SELECT leader_node_id FROM timeball_internal.ranges ORDER BY start_key LIMIT 1";
        let mut clients: Vec<postgres::Client> = self.running.iter().flatten().map(Node::connect).collect();
        until("the range has a leader", || {
            let told =
                clients.iter_mut().find_map(|client| client.query_one(query, &[]).ok()?.get::<_, Option<i32>>(0));
            told.map(|node| node as usize - 1)
        })
    }
}

fn ready(starting: Starting) -> Node {
    starting.ready().unwrap_or_else(|log| panic!("a node did not start:\n{log}"))
}

/// What a node sees of its cluster, asked where its peers reach it.
pub fn status_of(address: &str) -> Result<String, String> {
    let told = Command::new(binary()).args(["node", "status", "--host", address]).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if told.status.success() { Ok(text(told.stdout)) } else { Err(text(told.stderr)) }
}
