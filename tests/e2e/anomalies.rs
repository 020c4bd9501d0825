//! The anomalies of multi-version databases, one script for each and for each isolation level: `tests/e2e/anomalies/LEVEL/NAME.txt`.
//!
//! Names and histories follow Berenson et al., "A Critique of ANSI SQL Isolation Levels", and Fekete et al., "A Read-Only
//! Transaction Anomaly Under Snapshot Isolation".

use crate::node::{Node, Scratch, repeat_with};
use crate::script;
use std::path::{Path, PathBuf};

fn scripts(level: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/e2e/anomalies").join(level);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn play_level(level: &str) {
    repeat_with(&format!("anomalies::{level}"));
    let scratch = Scratch::new();
    let paths = scripts(level);
    assert_eq!(paths.len(), 7, "one script for each anomaly");
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        eprintln!("{level}: {name}");
        let node = Node::start(&scratch.path().join(name), &[]);
        script::play(&node, &path);
    }
}

#[test]
fn serializable() {
    play_level("serializable");
}

#[test]
fn repeatable_read() {
    play_level("repeatable_read");
}

#[test]
fn read_committed() {
    play_level("read_committed");
}
