//! The demonstration: posts and likes on three nodes, of which one is killed meanwhile.

use crate::node::{binary, repeat_with, until};
use postgres::{Client, NoTls};
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A node as the demonstration describes it: its address for clients, and its process.
pub struct Shown {
    pub sql: String,
    process: String,
}

/// Ends with the test, whatever comes.
pub struct Demo {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Demo {
    /// `timeball demo --nodes 3 --no-shell`, once it serves.
    pub fn start() -> (Demo, Vec<Shown>) {
        let mut child = Command::new(binary())
            .args(["demo", "--nodes", "3", "--no-shell", "--listen-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut demo = Demo { child, lines };
        let shown = demo.lines.by_ref().map_while(Result::ok).filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [_, "sql", sql, "http", _, "process", process, ..] => {
                    Some(Shown { sql: sql.to_owned(), process: process.to_owned() })
                }
                _ => None,
            }
        });
        let nodes: Vec<Shown> = shown.take(3).collect();
        assert_eq!(nodes.len(), 3);
        until("the demonstration serves", || connect(&nodes[0]));
        (demo, nodes)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn connect(node: &Shown) -> Option<Client> {
    Client::connect(&format!("postgresql://root@{}/demo", node.sql), NoTls).ok()
}

/// Writes numbered rows at a node until it is told to stop, and gives those that were acknowledged.
fn write(node: &Shown, from: i32, stop: &AtomicBool) -> Vec<i32> {
    let (mut acknowledged, mut client) = (Vec::new(), connect(node));
    for id in from.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let Some(open) = client.as_mut().filter(|client| !client.is_closed()) else {
            thread::yield_now();
            client = connect(node);
            continue;
        };
        if open.execute("INSERT INTO seen VALUES ($1)", &[&id]).is_ok() {
            acknowledged.push(id);
        }
    }
    acknowledged
}

#[test]
fn posts_and_likes_go_on_when_a_node_is_killed() {
    repeat_with("cluster::demo::posts_and_likes_go_on_when_a_node_is_killed");
    let (mut demo, nodes) = Demo::start();
    let mut client = connect(&nodes[0]).unwrap();
    client.batch_execute("CREATE TABLE seen (id int PRIMARY KEY)").unwrap();
    let leader: i32 = client
        .query_one("SELECT leader_node_id FROM timeball_internal.ranges ORDER BY start_key LIMIT 1", &[])
        .unwrap()
        .get(0);
    // Who leads is killed, unless the clients are there: they know one address.
    let (home, killed) = if leader == 1 { (1, 0) } else { (0, leader as usize - 1) };
    let url = format!("postgresql://root@{}/demo", nodes[home].sql);
    let bench = Command::new(binary())
        .args(["bench", "posts-and-likes", "--no-load", "--json", "--workers", "4", "--duration", "12s", "--url", &url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut client = connect(&nodes[home]).unwrap();
    let likes = |client: &mut Client| -> i64 { client.query_one("SELECT count(*) FROM likes", &[]).unwrap().get(0) };
    let stop = AtomicBool::new(false);
    let (acknowledged, report) = thread::scope(|scope| {
        let writers: Vec<_> = (0..3).map(|at| (at, i32::try_from(at).unwrap() * 10_000_000)).collect();
        let (nodes, stop) = (&nodes, &stop);
        let writers = writers.into_iter().map(|(at, from)| scope.spawn(move || write(&nodes[at], from, stop)));
        let writers: Vec<_> = writers.collect();
        let before = likes(&mut client);
        until("somebody likes something", || (likes(&mut client) > before).then_some(()));
        let done = Command::new("kill").args(["-9", &nodes[killed].process]).status().unwrap();
        assert!(done.success());
        let at_its_death = likes(&mut client);
        until("likes go on", || (likes(&mut client) > at_its_death).then_some(()));
        let report = bench.wait_with_output().unwrap();
        stop.store(true, Ordering::Relaxed);
        let acknowledged: Vec<i32> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        (acknowledged, report)
    });
    let ended = format!("n{} has ended (signal: 9 (SIGKILL))", killed + 1);
    let mut lines = demo.lines.by_ref().map_while(Result::ok);
    let told = lines.find(|line| line.starts_with(&ended)).expect("the demonstration says who has died");
    assert!(told.contains("2 of 3 run and go on"), "{told}");
    let said = String::from_utf8_lossy(&report.stdout).into_owned() + &String::from_utf8_lossy(&report.stderr);
    assert!(report.status.success() && said.contains("\"failures\":0"), "{said}");
    for at in (0..3).filter(|at| *at != killed) {
        let there = connect(&nodes[at]).unwrap().query("SELECT id FROM seen", &[]).unwrap();
        let there: std::collections::BTreeSet<i32> = there.iter().map(|row| row.get(0)).collect();
        let missing: Vec<&i32> = acknowledged.iter().filter(|id| !there.contains(id)).collect();
        assert!(missing.is_empty() && acknowledged.len() > 10, "of {} rows {missing:?}", acknowledged.len());
    }
}
