//! A disk that takes nothing for a while, and says nothing: the others go on, and what was acknowledged stays.
//!
//! Needs root, a loop device and `fsfreeze`; says so where they are missing.

use super::lists::Load;
use super::nodes::Nodes;
use crate::node::{Scratch, repeat_with, skip};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A filesystem in a file. Goes away with the value.
struct Disk(PathBuf);

fn run(line: &[&str]) -> Result<(), String> {
    let done = Command::new(line[0]).args(&line[1..]).output().map_err(|e| format!("{}: {e}", line[0]))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("{}: {}", line.join(" "), String::from_utf8_lossy(&done.stderr).trim())),
    }
}

impl Disk {
    fn make(dir: &Path) -> Result<Disk, String> {
        let (image, place) = (dir.join("disk.img"), dir.join("disk"));
        std::fs::File::create(&image).and_then(|file| file.set_len(512 << 20)).map_err(|e| e.to_string())?;
        std::fs::create_dir(&place).map_err(|e| e.to_string())?;
        run(&["mkfs.ext4", "-q", image.to_str().unwrap()])?;
        run(&["mount", "-o", "loop", image.to_str().unwrap(), place.to_str().unwrap()])?;
        Ok(Disk(place))
    }
    fn freeze(&self, flag: &str) -> Result<(), String> {
        run(&["fsfreeze", flag, self.0.to_str().unwrap()])
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.freeze("-u");
        // Lazily: whoever still has files there may be about to end.
        let _ = run(&["umount", "-l", self.0.to_str().unwrap()]);
    }
}

#[test]
fn a_disk_that_stalls_stops_its_node_alone() {
    repeat_with("cluster::stall::a_disk_that_stalls_stops_its_node_alone");
    let scratch = Scratch::new();
    let disk = match Disk::make(scratch.path()).and_then(|disk| disk.freeze("-f").map(|()| disk)) {
        Ok(disk) => disk,
        Err(why) => return skip(&format!("no disk of our own can be made (needs root): {why}")),
    };
    disk.freeze("-u").unwrap();
    std::fs::create_dir(disk.0.join("store")).unwrap();
    std::os::unix::fs::symlink(disk.0.join("store"), scratch.path().join("n1")).unwrap();
    let nodes = Nodes::found(scratch.path(), 3);
    let load = Load::start(&nodes);
    load.served_at(&[0, 1, 2]);
    disk.freeze("-f").unwrap();
    load.served_at(&[1, 2]);
    // Its clock ticks, and it answers: it is not taken for one that hangs.
    assert!(nodes.at(0).get("/health").contains("\"node\":1"));
    load.served_at(&[1, 2]);
    disk.freeze("-u").unwrap();
    load.served_at(&[0, 1, 2]);
    load.judge(&nodes);
    drop(nodes);
}
