//! A cluster for `timeball demo --nodes N`: a process per node, which can be killed and started again one by one.

use crate::args::NodeOptions;
use lab::client::{Client, Url};
use lab::cluster::spawn_node;
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// The first node's port for its peers; the others' follow, where they are free.
const PEER_PORT: u16 = 26357;
/// A cluster that does not serve after so long is not going to.
const START_MAX: Duration = Duration::from_secs(60);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// What the shell has besides.
const COMMANDS: &str = "\
\\nodes       the nodes of this demo, their addresses and processes
\\kill N      kill a node (SIGKILL); the shell goes on at the next one
\\start N     start it again
";

/// One node's process.
struct Node {
    number: usize,
    store: PathBuf,
    sql: u16,
    http: u16,
    peer: u16,
    process: Option<Child>,
}

/// The processes. They are killed with this value: nothing of a demo is kept.
pub struct Cluster {
    nodes: Vec<Node>,
    join: String,
    flags: Vec<String>,
}

/// A port that is free now: this one, if it is.
fn free(wanted: u16) -> Result<u16, String> {
    let bound =
        TcpListener::bind((Ipv4Addr::LOCALHOST, wanted)).or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    bound
        .and_then(|socket| socket.local_addr())
        .map(|address| address.port())
        .map_err(|e| format!("no port is free: {e}"))
}

/// The first node's port, of an address that was asked for; 0: any.
fn first_port(flag: &str, address: &str) -> Result<u16, String> {
    let port = address.rsplit_once(':').filter(|(host, _)| matches!(*host, "127.0.0.1" | "localhost"));
    port.and_then(|(_, port)| port.parse().ok()).ok_or_else(|| {
        format!("{flag} {address}: a demo's nodes are on this machine alone, give 127.0.0.1 and the first one's port")
    })
}

impl Cluster {
    /// Starts nodes on stores below a directory, and founds a cluster of them.
    pub fn start(dir: &Path, count: usize, options: &NodeOptions) -> Result<Cluster, String> {
        std::fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
        let first_sql = first_port("--listen-addr", &options.server.listen_addr)?;
        let first_http = first_port("--http-addr", &options.server.http_addr)?;
        let node = |at: usize| {
            let step = |first: u16| if first == 0 { 0 } else { first.saturating_add(u16::try_from(at).unwrap_or(0)) };
            let (sql, http, peer) = (free(step(first_sql))?, free(step(first_http))?, free(step(PEER_PORT))?);
            Ok::<Node, String>(Node {
                number: at + 1,
                store: dir.join(format!("n{}", at + 1)),
                sql,
                http,
                peer,
                process: None,
            })
        };
        let nodes: Vec<Node> = (0..count).map(node).collect::<Result<_, _>>()?;
        let join: Vec<String> = nodes.iter().map(|node| format!("127.0.0.1:{}", node.peer)).collect();
        let memory = (options.shares.total_bytes / count).max(server::memory::MEMORY_BYTES_MIN);
        let flags = vec![
            format!("--memory={memory}"),
            format!("--clock={}", options.clock),
            format!("--retention={}s", options.retention.as_secs()),
            format!("--max-connections={}", options.server.connections_max),
        ];
        let mut cluster = Cluster { nodes, join: join.join(","), flags };
        for number in 1..=count {
            cluster.start_node(number)?;
        }
        cluster.found()?;
        for number in 1..=count {
            cluster.wait_for(number)?;
        }
        Ok(cluster)
    }

    /// A URL of all nodes, the first one first, for clients that go to the next when one is lost.
    pub fn url(&self, database: &str) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.sql)).collect();
        format!("postgresql://root@{}/{database}", hosts.join(","))
    }

    /// A URL of one node.
    fn url_of(&self, number: usize, database: &str) -> String {
        format!("postgresql://root@127.0.0.1:{}/{database}", self.nodes[number - 1].sql)
    }

    /// A line for each node.
    pub fn describe(&mut self) -> String {
        let line = |node: &mut Node| {
            let Node { number, sql, http, store, process, .. } = node;
            let log = log_of(store);
            let running = process.as_mut().and_then(|process| process.try_wait().ok()?.is_none().then(|| process.id()));
            let state = running.map_or("not running".to_owned(), |id| format!("process {id}"));
            format!("  n{number}  sql 127.0.0.1:{sql}  http 127.0.0.1:{http}  {state}  log {}\n", log.display())
        };
        self.nodes.iter_mut().map(line).collect()
    }

    /// A command of the shell: `\nodes`, `\kill N`, `\start N`; `\?` says what they are. `None`: it is none of these.
    pub fn command(&mut self, name: &str, arguments: &[&str]) -> Option<String> {
        let number = |cluster: &Cluster| {
            let number = arguments.first().and_then(|text| text.trim_start_matches('n').parse().ok());
            number.filter(|number| (1..=cluster.nodes.len()).contains(number))
        };
        let which = || format!("Which node? Write {name} and a number from 1 to {}.\n", self.nodes.len());
        Some(match name {
            "\\?" => COMMANDS.to_owned(),
            "\\nodes" => self.describe(),
            "\\kill" | "\\start" => match number(self) {
                None => which(),
                Some(number) if name == "\\kill" => self.kill(number),
                Some(number) => match self.start_node(number) {
                    Ok(()) => format!("n{number} starts.\n"),
                    Err(e) => e + "\n",
                },
            },
            _ => return None,
        })
    }

    fn kill(&mut self, number: usize) -> String {
        match self.nodes[number - 1].process.take() {
            None => format!("n{number} does not run.\n"),
            Some(mut process) => {
                let killed = process.kill().and_then(|()| process.wait());
                killed.map_or_else(|e| format!("n{number}: {e}\n"), |_| format!("n{number} is killed (SIGKILL).\n"))
            }
        }
    }

    fn start_node(&mut self, number: usize) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("cannot start n{number}: {e}");
        let node = &mut self.nodes[number - 1];
        if let Some(process) = &mut node.process
            && process.try_wait().map_err(failed)?.is_none()
        {
            return Err(format!("n{number} runs already"));
        }
        let log = File::options().create(true).append(true).open(log_of(&node.store)).map_err(failed)?;
        let binary = std::env::current_exe().map_err(failed)?;
        let peers = [format!("--peer-addr=127.0.0.1:{}", node.peer), format!("--join={}", self.join)];
        let flags = [&peers[..], &self.flags].concat();
        let process = spawn_node(&binary, &node.store, [node.sql, node.http], &flags, log);
        node.process = Some(process.map_err(failed)?);
        Ok(())
    }

    /// A line for each node whose process has ended since this was asked last, other than by `\kill`.
    pub fn ended(&mut self) -> Vec<String> {
        let mut ended = Vec::new();
        for node in &mut self.nodes {
            let Some(process) = &mut node.process else { continue };
            if let Ok(Some(status)) = process.try_wait() {
                ended.push((node.number, status.to_string(), log_of(&node.store)));
                node.process = None;
            }
        }
        let (running, all) = (self.nodes.iter().filter(|node| node.process.is_some()).count(), self.nodes.len());
        let others = match running {
            0 => "no node is left".to_owned(),
            // Each range is on three of them, or on all.
            _ if running * 2 <= all => format!("{running} of {all} run: what needs a majority of them fails (57P03)"),
            _ => format!("{running} of {all} run and go on"),
        };
        let line = |(number, status, log): (usize, String, PathBuf)| {
            format!("n{number} has ended ({status}), its log is {}; {others}.\n", log.display())
        };
        ended.into_iter().map(line).collect()
    }

    /// `timeball init`, once all of them answer.
    fn found(&mut self) -> Result<(), String> {
        let address = format!("127.0.0.1:{}", self.nodes[0].peer);
        let began = Instant::now();
        loop {
            match server::cluster::control::init(&address) {
                Ok(_) => return Ok(()),
                Err(why) => self.look(began, &why)?,
            }
        }
    }

    fn wait_for(&mut self, number: usize) -> Result<(), String> {
        let url = Url::parse(&self.url_of(number, "postgres")).map_err(|e| e.to_string())?;
        let began = Instant::now();
        loop {
            match Client::connect(&url).and_then(|mut client| client.query("SELECT 1")) {
                Ok(_) => return Ok(()),
                Err(why) => self.look(began, &why.to_string())?,
            }
        }
    }

    /// Waits a little; an error if a node has ended, or if it took too long.
    fn look(&mut self, began: Instant, why: &str) -> Result<(), String> {
        for node in &mut self.nodes {
            if let Some(process) = &mut node.process
                && let Ok(Some(status)) = process.try_wait()
            {
                let said = std::fs::read_to_string(log_of(&node.store)).unwrap_or_default();
                let last = said.lines().last().unwrap_or("it said nothing");
                return Err(format!("n{} ended ({status}): {last}", node.number));
            }
        }
        if began.elapsed() > START_MAX {
            return Err(format!("the cluster does not serve after {} s: {why}", START_MAX.as_secs()));
        }
        std::thread::sleep(PAUSE);
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Some(process) = &mut node.process {
                let _ = process.kill();
                let _ = process.wait();
            }
        }
    }
}

/// What a node says goes here.
fn log_of(store: &Path) -> PathBuf {
    store.with_extension("log")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn clients_know_all_nodes_and_the_shell_its_commands() {
        let node = |at: u16| Node {
            number: usize::from(at),
            store: PathBuf::from(format!("n{at}")),
            sql: 100 + at,
            http: 200 + at,
            peer: 300 + at,
            process: None,
        };
        let mut cluster = Cluster { nodes: vec![node(1), node(2)], join: String::new(), flags: Vec::new() };
        let url = Url::parse(&cluster.url("demo")).unwrap();
        assert_eq!(url.hosts, [("127.0.0.1".to_owned(), 101), ("127.0.0.1".to_owned(), 102)]);
        assert_eq!(url.database, "demo");
        let help = cluster.command("\\?", &[]).unwrap();
        assert!(["\\nodes", "\\kill", "\\start"].iter().all(|name| help.contains(name)), "{help}");
        assert!(cluster.command("\\nodes", &[]).unwrap().contains("n2  sql 127.0.0.1:102"));
        assert!(cluster.command("\\kill", &["2"]).unwrap().contains("does not run"));
        assert_eq!(cluster.command("\\d", &[]), None);
    }

    #[test]
    fn who_has_ended_is_told_once() {
        let node = |number: usize, process: Option<Child>| {
            let store = PathBuf::from(format!("n{number}"));
            Node { number, store, sql: 1, http: 2, peer: 3, process }
        };
        let process = |command: &str| Command::new("sh").args(["-c", command]).stdin(Stdio::piped()).spawn().unwrap();
        // One dies, and the other waits for a word that does not come.
        let nodes = vec![node(1, Some(process("kill -9 $$"))), node(2, Some(process("read word"))), node(3, None)];
        let mut cluster = Cluster { nodes, join: String::new(), flags: Vec::new() };
        cluster.nodes[0].process.as_mut().unwrap().wait().unwrap();
        let told = cluster.ended();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("n1 has ended (signal: 9 (SIGKILL)), its log is n1.log; 1 of 3 run"), "{told:?}");
        assert!(
            cluster.ended().is_empty()
                && cluster.describe().contains("n1  sql 127.0.0.1:1  http 127.0.0.1:2  not running")
        );
    }

    #[test]
    fn ports_are_those_asked_for() {
        assert_eq!(first_port("--listen-addr", "127.0.0.1:26300"), Ok(26300));
        assert_eq!(first_port("--listen-addr", "localhost:0"), Ok(0));
        for wrong in ["0.0.0.0:26300", "127.0.0.1", "127.0.0.1:x"] {
            assert!(first_port("--listen-addr", wrong).unwrap_err().contains("--listen-addr"), "{wrong}");
        }
    }
}
