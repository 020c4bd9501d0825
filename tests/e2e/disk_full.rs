//! A full disk: writes get 53100, reads go on, nothing acknowledged is lost, and freed space is noticed.

use crate::node::{Node, Scratch, repeat_with, skip, state, until};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of the small disk, in MiB: room for the log's first segments and the engine's files.
const DISK_MIB: usize = 384;

/// A file system of its own, in memory.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<SmallDisk> {
        std::fs::create_dir_all(at).unwrap();
        let size = format!("size={DISK_MIB}m");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        mount.is_ok_and(|m| m.status.success()).then(|| SmallDisk(at.to_owned()))
    }
    /// Fills what is left.
    fn fill(&self) {
        let mut filler = std::fs::OpenOptions::new().create(true).append(true).open(self.0.join("filler")).unwrap();
        for size in [1 << 20, 4096] {
            let block = vec![1u8; size];
            while filler.write_all(&block).is_ok() {}
        }
    }
    fn free(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn writes_are_refused_and_reads_go_on() {
    repeat_with("disk_full::writes_are_refused_and_reads_go_on");
    let scratch = Scratch::new();
    let Some(disk) = SmallDisk::mount(&scratch.path().join("disk")) else {
        return skip("mounting a small disk needs root");
    };
    let store = disk.0.join("store");
    let node = Node::start(&store, &[]);
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY, filler text)").unwrap();
    let insert = client.prepare("INSERT INTO t VALUES ($1, $2)").unwrap();
    let filler = "x".repeat(1 << 20);
    let mut acknowledged = 0;
    client.execute(&insert, &[&acknowledged, &filler]).unwrap();
    acknowledged += 1;
    disk.fill();
    let refused = loop {
        match client.execute(&insert, &[&acknowledged, &filler]) {
            Ok(_) => acknowledged += 1,
            Err(e) => break e,
        }
        assert!(acknowledged < 4 * DISK_MIB as i32, "the disk never fills");
        disk.fill();
    };
    assert_eq!(state(&refused), "53100", "{refused}: {:?}", refused.as_db_error());
    let count = |client: &mut postgres::Client| client.query("SELECT id FROM t", &[]).unwrap().len() as i32;
    assert_eq!(count(&mut client), acknowledged, "reads go on");
    assert_eq!(count(&mut node.connect()), acknowledged, "also in new sessions");
    disk.free();
    until("the node notices the space", || client.execute(&insert, &[&acknowledged, &filler]).ok());
    acknowledged += 1;
    node.kill();
    let node = Node::start(&store, &[]);
    assert_eq!(count(&mut node.connect()), acknowledged, "nothing acknowledged is lost");
}
