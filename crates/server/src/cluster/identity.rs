//! Who a node is: the file `CLUSTER` of its store, written once.
//!
//! ```text
//! timeball cluster 1
//! cluster 3f0c9e1d2b7a6554
//! node 2
//! member 1 5d…(32 hex digits) 127.0.0.1:26357 region=eu,zone=a
//! member 2 …
//! ```
//! A store has a number that was drawn when it was made (the file `STORE`): one that was wiped is another store, and cannot take a member's place, for it
//! has forgotten what the member promised (design 4a.12).

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

const CLUSTER_FILE: &str = "CLUSTER";
const STORE_FILE: &str = "STORE";
const CLUSTER_HEADER: &str = "timeball cluster 1";
const STORE_HEADER: &str = "timeball store id 1";

/// Nodes that found a cluster together, at most.
pub const FOUNDERS_MAX: usize = 64;

/// A node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its number, from 1.
    pub node: u32,
    /// Its store.
    pub store: u128,
    /// Where it is found by its peers, `host:port`.
    pub addr: String,
    /// Where it stands, `region=eu,zone=a`; empty: not said.
    pub locality: String,
}

/// The cluster that was founded: the same on all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charter {
    /// The cluster's number, never 0.
    pub cluster: u64,
    /// Its nodes.
    pub members: Vec<Place>,
}

/// A charter, and which of its nodes this one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The cluster.
    pub charter: Charter,
    /// This node.
    pub node: u32,
}

impl Charter {
    /// As text, one line for each fact.
    pub fn to_text(&self) -> String {
        let mut text = format!("{CLUSTER_HEADER}\ncluster {:016x}\n", self.cluster);
        for Place { node, store, addr, locality } in &self.members {
            text.push_str(format!("member {node} {store:032x} {addr} {locality}").trim_end());
            text.push('\n');
        }
        text
    }

    /// From text. `None`: it is none, or damaged.
    pub fn of_text(text: &str) -> Option<Charter> {
        let mut lines = text.lines();
        if lines.next()? != CLUSTER_HEADER {
            return None;
        }
        let cluster = u64::from_str_radix(lines.next()?.strip_prefix("cluster ")?, 16).ok().filter(|id| *id != 0)?;
        let mut members = Vec::new();
        for line in lines.filter(|line| !line.starts_with("node ")) {
            let mut words = line.strip_prefix("member ")?.split(' ');
            let node = words.next()?.parse().ok().filter(|node| *node != 0)?;
            let store = u128::from_str_radix(words.next()?, 16).ok()?;
            let addr = words.next().filter(|addr| !addr.is_empty())?.to_owned();
            members.push(Place { node, store, addr, locality: words.next().unwrap_or_default().to_owned() });
        }
        (1..=FOUNDERS_MAX).contains(&members.len()).then_some(Charter { cluster, members })
    }

    /// Which node a store is.
    pub fn node_of(&self, store: u128) -> Option<u32> {
        self.members.iter().find(|place| place.store == store).map(|place| place.node)
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
    let sound = membership.filter(|m| m.charter.members.iter().any(|place| place.node == m.node));
    sound.map(Some).ok_or_else(|| damaged(&path))
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
    use super::*;

    fn charter() -> Charter {
        let place = |node: u32| {
            let locality = if node == 2 { "region=eu".to_owned() } else { String::new() };
            Place { node, store: u128::from(node) << 100 | 7, addr: format!("10.0.0.{node}:1"), locality }
        };
        Charter { cluster: 0xabc, members: (1..=3).map(place).collect() }
    }

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
        std::fs::write(dir.join(CLUSTER_FILE), "timeball cluster 1\ncluster 0\n").unwrap();
        assert!(load(&dir).unwrap_err().contains("damaged"));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_charter_as_text() {
        assert_eq!(Charter::of_text(&charter().to_text()), Some(charter()));
        assert_eq!(charter().node_of(2 << 100 | 7), Some(2));
        for damaged in
            ["", "timeball cluster 2\n", "timeball cluster 1\ncluster x\n", "timeball cluster 1\ncluster 7\n"]
        {
            assert_eq!(Charter::of_text(damaged), None, "{damaged:?}");
        }
        let cut = charter().to_text().replace("10.0.0.3:1", "").replace("member 3", "member 0");
        assert_eq!(Charter::of_text(&cut), None);
    }
}
