//! Who a node is: the file `CLUSTER` of its store.
//!
//! It holds the cluster's [`Charter`] as this node knows it, and a line `node 2`: which of its nodes this one is. That never changes.
//!
//! A store has a number that was drawn when it was made (the file `STORE`): one that was wiped is another store, and cannot take a member's place, for it
//! has forgotten what the member promised (design 4a.10).

pub use super::charter::{Charter, FOUNDERS_MAX, Place};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

const CLUSTER_FILE: &str = "CLUSTER";
const STORE_FILE: &str = "STORE";
const COPY_FILE: &str = "COPY";
/// Begins the file of a store that has not what its node told of.
const FORGOT: &str = "forgot: ";
const STORE_HEADER: &str = "timeball store id 1";

/// A charter, and which of its nodes this one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The cluster.
    pub charter: Charter,
    /// This node.
    pub node: u32,
}

impl Membership {
    /// Whether this node is still in it.
    pub fn is_member(&self) -> bool {
        self.charter.place(self.node).is_some()
    }
}

fn damaged(path: &Path) -> String {
    format!(
        "{} is damaged: restore it from a copy, or from another node's (its `node` line is the node's own)",
        path.display()
    )
}

/// Writes a file as a whole, durably.
fn write(dir: &Path, name: &str, text: &str) -> Result<(), String> {
    let (path, draft) = (dir.join(name), dir.join(format!("{name}.new")));
    let all = || -> std::io::Result<()> {
        let mut file = File::create(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&draft, &path)?;
        File::open(dir)?.sync_all()
    };
    all().map_err(|e| format!("cannot write {}: {e}", path.display()))
}

fn read(path: &Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(format!("cannot read {}: {e}", path.display())),
    }
}

/// The number of a store; drawn by `draw` where there is none yet.
///
/// # Errors
/// The file cannot be read or written, or is damaged.
pub fn store_id(dir: &Path, draw: impl FnOnce() -> u128) -> Result<u128, String> {
    let path = dir.join(STORE_FILE);
    if let Some(text) = read(&path)? {
        let id = text.strip_prefix(STORE_HEADER).and_then(|rest| u128::from_str_radix(rest.trim(), 16).ok());
        return id.ok_or_else(|| format!("{} is damaged: restore it from a copy", path.display()));
    }
    let id = draw();
    write(dir, STORE_FILE, &format!("{STORE_HEADER}\n{id:032x}\n"))?;
    Ok(id)
}

/// The membership that a store has; `None`: none yet.
///
/// # Errors
/// The file cannot be read, or is damaged.
pub fn load(dir: &Path) -> Result<Option<Membership>, String> {
    let path: PathBuf = dir.join(CLUSTER_FILE);
    let Some(text) = read(&path)? else { return Ok(None) };
    let node = text.lines().find_map(|line| line.strip_prefix("node ")?.parse().ok());
    let membership = Charter::of_text(&text).zip(node).map(|(charter, node)| Membership { charter, node });
    let left = |m: &Membership| m.charter.left.iter().any(|(node, _)| *node == m.node);
    let sound = membership.filter(|m| m.is_member() || left(m));
    sound.map(Some).ok_or_else(|| damaged(&path))
}

/// Why a store is not to be used, if a copy of it was found to be a copy: its file `COPY` says so.
///
/// # Errors
/// The file cannot be read.
pub fn copied(dir: &Path) -> Result<Option<String>, String> {
    let path = dir.join(COPY_FILE);
    let Some(text) = read(&path)? else { return Ok(None) };
    if let Some(told) = text.strip_prefix(FORGOT) {
        return Ok(Some(format!(
            "the store {} has lost what its node acknowledged: {}. It is an old copy of the node's store, or its disk lost what it had synced, or a copy was heard in its place. Start the node on an empty --store to join anew, as another node, and decommission the old one; or, if so many of the others are gone for good that this is the best that is left, and what was acknowledged since may be lost: stop them, and remove the file {}",
            dir.display(),
            told.trim(),
            path.display()
        )));
    }
    Ok(Some(format!(
        "the store {} is a copy of one that is in use: {}; it has not what that one promised and acknowledged since. Start the node on an empty --store to join anew, as another node; or, if the other process and its store are gone for good, so that this is all that is left of them, and what they acknowledged may be lost: remove the file {}",
        dir.display(),
        text.trim(),
        path.display()
    )))
}

/// Marks a store as a copy: n`told_by` hears another process as n`node`.
///
/// # Errors
/// The file cannot be written.
pub fn mark_copy(dir: &Path, node: u32, told_by: u32) -> Result<(), String> {
    write(dir, COPY_FILE, &format!("n{told_by} hears another process as n{node}\n"))
}

/// Marks a store as one that does not have what its node has told of: n`told_by` heard of record `heard` of the log, which ended at `end` when this life began.
///
/// # Errors
/// The file cannot be written.
pub fn mark_forgot(dir: &Path, node: u32, told_by: u32, heard: u64, end: u64) -> Result<(), String> {
    let text =
        format!("{FORGOT}n{node} has told n{told_by} of record {heard} of its log, which ends at record {end} here\n");
    write(dir, COPY_FILE, &text)
}

/// Makes a store a member's.
///
/// # Errors
/// The file cannot be written.
pub fn save(dir: &Path, membership: &Membership) -> Result<(), String> {
    let text = format!("{}node {}\n", membership.charter.to_text(), membership.node);
    write(dir, CLUSTER_FILE, &text)
}

#[cfg(test)]
mod tests {
    use super::super::charter::tests::charter;
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let dir = std::env::temp_dir().join(format!("timeball-identity-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        assert_eq!(load(&dir), Ok(None));
        let id = store_id(&dir, || 12).unwrap();
        assert_eq!((id, store_id(&dir, || 13).unwrap()), (12, 12));
        let membership = Membership { charter: charter(), node: 2 };
        save(&dir, &membership).unwrap();
        assert_eq!(load(&dir), Ok(Some(membership)));
        assert_eq!(copied(&dir), Ok(None));
        mark_copy(&dir, 3, 1).unwrap();
        let why = copied(&dir).unwrap().unwrap();
        assert!(why.contains("n1 hears another process as n3") && why.contains("--store"), "{why}");
        mark_forgot(&dir, 3, 1, 20, 12).unwrap();
        let why = copied(&dir).unwrap().unwrap();
        let says = ["n3 has told n1 of record 20", "ends at record 12", "--store", COPY_FILE];
        assert!(says.iter().all(|what| why.contains(what)), "{why}");
        std::fs::write(dir.join(CLUSTER_FILE), "timeball cluster 1\ncluster 0\n").unwrap();
        assert!(load(&dir).unwrap_err().contains("damaged"));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
