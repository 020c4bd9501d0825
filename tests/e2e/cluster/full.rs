//! A disk that is full on one node of three: the others go on, also where that node led, and what was acknowledged stays.
//!
//! Needs root, to mount a small disk; says so where that is missing.

use super::lists::Load;
use super::nodes::Nodes;
use crate::disk_full::SmallDisk;
use crate::node::{Scratch, repeat_with, until};

/// Size of the small disk, in MiB.
const DISK_MIB: usize = 384;

#[test]
fn a_disk_that_is_full_stops_its_node_alone() {
    repeat_with("cluster::full::a_disk_that_is_full_stops_its_node_alone");
    let scratch = Scratch::new();
    let Some(disk) = SmallDisk::mount(&scratch, DISK_MIB) else { return };
    std::fs::create_dir(disk.0.join("store")).unwrap();
    std::os::unix::fs::symlink(disk.0.join("store"), scratch.path().join("n1")).unwrap();
    let nodes = Nodes::found(scratch.path(), 3);
    let load = Load::start(&nodes);
    load.served_at(&[0, 1, 2]);
    // Segments of the log that lie ready are written to yet: until nothing is taken any more it is filled again.
    let full = || {
        let ready = nodes.at(0).get("/health/ready");
        ready.starts_with("HTTP/1.1 503 ").then_some(())
    };
    until("it is not ready", || {
        disk.fill();
        full()
    });
    for _ in 0..3 {
        disk.fill();
        load.served_at(&[1, 2]);
    }
    assert!(nodes.at(0).get("/health/live").starts_with("HTTP/1.1 200 "), "nothing is broken");
    let told = super::nodes::status_of(&nodes.peers()[0]).unwrap();
    assert!(told.contains("its disk is full"), "{told}");
    // The others hear of it.
    let full = "SELECT last_error FROM timeball_internal.nodes WHERE node_id = '1'";
    until("the others hear that its disk is full", || {
        let error: Option<String> = nodes.at(1).connect().query_one(full, &[]).ok()?.get(0);
        error.filter(|error| error.contains("its disk is full"))
    });
    disk.free();
    load.served_at(&[0, 1, 2]);
    until("it is ready again", || nodes.at(0).get("/health/ready").starts_with("HTTP/1.1 200 ").then_some(()));
    load.judge(&nodes);
    drop(nodes);
}
