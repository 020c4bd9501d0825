//! Clients that know several nodes: one that is dead is passed over, and when one dies the next is taken.

use super::nodes::Nodes;
use crate::node::{Scratch, binary, repeat_with, until};
use lab::client::{Client, Url};
use std::process::{Command, Output, Stdio};

#[test]
fn a_shell_finds_a_node_that_serves() {
    repeat_with("cluster::hosts::a_shell_finds_a_node_that_serves");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let hosts: Vec<String> = (0..3).map(|at| nodes.at(at).sql.clone()).collect();
    let url = format!("postgresql://root@{}/postgres", hosts.join(","));
    let parsed = Url::parse(&url).unwrap();
    let mut client = Client::connect(&parsed).unwrap();
    assert_eq!(client.host(), 0);
    client.query("SELECT 1").unwrap();
    nodes.kill(0);
    assert!(client.query("SELECT 1").is_err());
    let again = client.connect_again(&parsed).unwrap();
    assert_eq!(again.host(), 1);
    let ports: Vec<&str> = hosts.iter().map(|host| host.rsplit(':').next().unwrap()).collect();
    let words = format!("host=127.0.0.1,127.0.0.1,127.0.0.1 port={} user=root dbname=postgres", ports.join(","));
    for (url, served) in [
        (url.clone(), true),
        (format!("{url}?target_session_attrs=read-write"), true),
        (format!("{words} target_session_attrs=prefer-standby"), true),
        (format!("{words} target_session_attrs=read-only"), false),
    ] {
        let mut shell = Command::new(binary());
        let told = shell.args(["sql", "--url", &url, "-e", "\\conninfo", "-e", "SELECT 41 + 1"]).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
        assert_eq!(told.status.success(), served, "{url}: {out}{err}");
        match served {
            true => assert!(out.contains("42") && out.contains(&hosts[1]), "{out}"),
            false => {
                assert!(err.contains("none of the 3 servers will do") && err.contains("is not read-only"), "{err}")
            }
        }
    }
}

/// Runs the benchmark for ten seconds, and something once it works; what it said.
fn bench_while(url: &str, watched: &Url, act: impl FnOnce()) -> Output {
    let bench = Command::new(binary())
        .args([
            "bench",
            "posts-and-likes",
            "--no-load",
            "--json",
            "--workers",
            "4",
            "--ramp-up",
            "0s",
            "--duration",
            "14s",
        ])
        .args(["--url", url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut client = Client::connect(watched).unwrap();
    let mut likes = || client.query("SELECT count(*) FROM likes").unwrap()[0][0].clone();
    let before = likes();
    until("somebody likes something", || (likes() != before).then_some(()));
    act();
    bench.wait_with_output().unwrap()
}

/// The benchmark's workers go on at the next host when theirs is lost, and count that; with no host left the run has failed.
#[test]
fn a_benchmark_goes_on_at_the_next_host() {
    repeat_with("cluster::hosts::a_benchmark_goes_on_at_the_next_host");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let hosts: Vec<String> = (0..3).map(|at| nodes.at(at).sql.clone()).collect();
    let all = format!("postgresql://root@{}/postgres", hosts.join(","));
    let one = |at: usize| format!("postgresql://root@{}/postgres", hosts[at]);
    let load = ["bench", "posts-and-likes", "--workers", "1", "--duration", "1s", "--url", &all];
    assert!(Command::new(binary()).args(load).output().unwrap().status.success());
    let done = bench_while(&all, &Url::parse(&one(1)).unwrap(), || nodes.kill(0));
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && !said.contains("\"failures\":0,"), "{said}");
    let done = bench_while(&one(1), &Url::parse(&one(1)).unwrap(), || nodes.kill(1));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && said.contains("it has come to a halt"), "{said}");
}
