//! Nodes of one cluster.

use crate::node::{Node, Starting, binary, until};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A cluster of processes. They end with it.
pub struct Nodes {
    dir: PathBuf,
    /// Where they reach each other.
    peers: Vec<String>,
    running: Vec<Option<Node>>,
    /// More flags, the same for all.
    flags: Vec<String>,
}

/// An address that nobody listens at now.
fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

impl Nodes {
    /// Starts nodes, and founds a cluster of them.
    pub fn found(dir: &Path, count: usize) -> Nodes {
        Self::found_with(dir, count, &[])
    }

    /// As [`Nodes::found`], with more flags.
    pub fn found_with(dir: &Path, count: usize, flags: &[&str]) -> Nodes {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let peers: Vec<String> = (0..count).map(|_| free()).collect();
        let mut nodes = Nodes { dir: dir.to_owned(), peers, running: Vec::new(), flags };
        let mut starting: Vec<Starting> = (0..count).map(|at| nodes.spawn(at)).collect();
        for node in &mut starting {
            node.line("peer ").unwrap_or_else(|log| panic!("a node did not start:\n{log}"));
        }
        let init = Command::new(binary()).args(["init", "--host", &nodes.peers[0]]).output().unwrap();
        assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
        nodes.running = starting.into_iter().map(|node| Some(ready(node))).collect();
        nodes
    }

    fn spawn(&self, at: usize) -> Starting {
        let join = self.peers.join(",");
        let store = self.dir.join(format!("n{}", at + 1));
        let mut flags = vec!["--memory", "256MiB", "--join", &join, "--peer-addr", &self.peers[at]];
        flags.extend(self.flags.iter().map(String::as_str));
        Starting::spawn(&store, &flags)
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
    }

    /// Starts one again that was killed.
    pub fn restart(&mut self, at: usize) {
        self.running[at] = Some(ready(self.spawn(at)));
    }

    /// Who leads the first range, as the nodes see it.
    pub fn leader(&self) -> usize {
        let query = "SELECT leader_node_id FROM timeball_internal.ranges ORDER BY start_key LIMIT 1";
        let mut clients: Vec<postgres::Client> = self.running.iter().flatten().map(Node::connect).collect();
        until("the range has a leader", || {
            let told =
                clients.iter_mut().find_map(|client| client.query_one(query, &[]).ok()?.get::<_, Option<String>>(0));
            told.and_then(|node| node.parse::<usize>().ok()).map(|node| node - 1)
        })
    }
}

fn ready(starting: Starting) -> Node {
    starting.ready().unwrap_or_else(|log| panic!("a node did not start:\n{log}"))
}
