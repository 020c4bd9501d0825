//! Clients that know several nodes: one that is dead is passed over, and when one dies the next is taken.

use super::nodes::Nodes;
use crate::node::{Scratch, binary, repeat_with};
use lab::client::{Client, Url};
use std::process::Command;

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
