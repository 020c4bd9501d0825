//! A node whose clock is set wrong while it runs, by far more than its bound says: the others prove it wrong, it serves nothing that needs its clock, and
//! nobody sees transactions out of order.
//!
//! Needs libfaketime; says so where it is missing.

use super::lists::Load;
use super::nodes::Nodes;
use crate::node::{Scratch, repeat_with, skip, state, until};
use checker::appends::Promises;
use std::path::Path;

/// Where Debian has it, by machine.
const LIBRARIES: [&str; 2] =
    ["/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1"];

/// `None`: it is not here.
pub fn library() -> Option<&'static str> {
    LIBRARIES.iter().find(|library| Path::new(library).exists()).copied()
}

/// What makes a process see the time of a file: `+2` is two seconds ahead.
pub fn environment(library: &str, shift: &Path) -> Vec<String> {
    vec![
        format!("LD_PRELOAD={library}"),
        format!("FAKETIME_TIMESTAMP_FILE={}", shift.display()),
        "FAKETIME_NO_CACHE=1".into(),
        "DONT_FAKE_MONOTONIC=1".into(),
        "FAKETIME_DONT_FAKE_MONOTONIC=1".into(),
    ]
}

#[test]
fn a_clock_that_is_set_wrong_stops_its_node_alone() {
    repeat_with("cluster::clock::a_clock_that_is_set_wrong_stops_its_node_alone");
    let Some(library) = library() else { return skip("no libfaketime (Debian: faketime)") };
    let scratch = Scratch::new();
    let shift = scratch.path().join("shift");
    // Whoever reads meanwhile finds the one or the other.
    let set = |by: &str| {
        let new = scratch.path().join("shift.new");
        std::fs::write(&new, format!("{by}\n")).unwrap();
        std::fs::rename(&new, &shift).unwrap();
    };
    set("+0");
    let environment = environment(library, &shift);
    let nodes = Nodes::found_apart(scratch.path(), 3, &["--clock", "static:5ms"], &environment);
    let load = Load::start(&nodes);
    load.served_at(&[0, 1, 2]);
    let mut client = nodes.at(2).connect();
    set("+2");
    let refused = until("the others prove its clock wrong", || client.query("SELECT v FROM lists", &[]).err());
    assert_eq!(state(&refused), "57P03", "{refused:?}");
    load.served_at(&[0, 1]);
    // What needs no bound is served, also to a session that begins now.
    let mut other = nodes.at(2).connect();
    other.batch_execute("SET timeball.consistency = 'token'").unwrap();
    assert!(!other.query("SELECT v FROM lists", &[]).unwrap().is_empty());
    // What was proved is remembered for a while, though the clock is right again: nobody need wait for that here.
    set("+0");
    load.served_at(&[0, 1]);
    // A bound that lies breaks the order of real time until it is proved to: a commit that one of two followers accuses may be acknowledged by the
    // other's leave. What it may never break is the order of transactions.
    load.judge_for(&nodes, Promises { real_time: false });
}
