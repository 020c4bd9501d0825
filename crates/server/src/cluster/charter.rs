//! The cluster's charter: who is in it. A list that begins with the founders, and is changed by one transaction at a time (see `roster`).
//!
//! ```text
//! timeball cluster 2
//! cluster 3f0c9e1d2b7a6554
//! edition 4                      one more for each change
//! version 1                      what of the formats and of the behaviour is in force
//! founders 3                     nodes 1 to 3 began it
//! next 6                         the next node's number: none is used twice
//! member 1 5d…(32 hex digits) 127.0.0.1:26357 region=eu,zone=a
//! member 2 …
//! left 4 …                       a store that was a member, and is none any more
//! ```
//! Version 1 of the form had the founders only.

use node::cluster::{NODE_MAX, VERSION_MAX, VERSION_MIN};

const HEADER: &str = "timeball cluster 2";
const HEADER_FOUNDERS_ONLY: &str = "timeball cluster 1";

/// Nodes that found a cluster together, at most.
pub const FOUNDERS_MAX: usize = 64;
/// Nodes of a cluster, at most: its charter is one answer of `control`.
pub const MEMBERS_MAX: usize = 256;
/// Stores that have left and are remembered, at most; the oldest are forgotten first.
const LEFT_MAX: usize = 256;

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

/// The cluster: the same on all nodes that have the same edition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charter {
    /// The cluster's number, never 0.
    pub cluster: u64,
    /// How often it was changed, from 1.
    pub edition: u64,
    /// The version in force.
    pub version: u16,
    /// So many nodes began it, with the numbers from 1 on.
    pub founders: u32,
    /// The number of the next node that joins.
    pub next: u32,
    /// Its nodes.
    pub members: Vec<Place>,
    /// Those that left, and their stores.
    pub left: Vec<(u32, u128)>,
}

/// Why a store does not become a member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    /// It was one.
    #[error("that store was n{0} of this cluster, and has left it: start the node on an empty directory")]
    Left(u32),
    /// There are too many.
    #[error("the cluster has {MEMBERS_MAX} nodes, which is the most")]
    Full,
    /// All numbers are used up.
    #[error("the numbers of nodes are used up: the last is n{NODE_MAX}")]
    NoNumber,
}

impl Charter {
    /// A new cluster of these, which are numbered from 1.
    pub fn of_founders(cluster: u64, version: u16, members: Vec<Place>) -> Charter {
        let founders = members.len() as u32;
        Charter { cluster, edition: 1, version, founders, next: founders + 1, members, left: Vec::new() }
    }

    /// As text, one line for each fact.
    pub fn to_text(&self) -> String {
        let Charter { cluster, edition, version, founders, next, members, left } = self;
        let mut text = format!(
            "{HEADER}\ncluster {cluster:016x}\nedition {edition}\nversion {version}\nfounders {founders}\nnext {next}\n"
        );
        for Place { node, store, addr, locality } in members {
            text.push_str(format!("member {node} {store:032x} {addr} {locality}").trim_end());
            text.push('\n');
        }
        for (node, store) in left {
            text.push_str(&format!("left {node} {store:032x}\n"));
        }
        text
    }

    /// From text. `None`: it is none, or damaged.
    pub fn of_text(text: &str) -> Option<Charter> {
        let mut lines = text.lines();
        let header = lines.next()?;
        if header != HEADER && header != HEADER_FOUNDERS_ONLY {
            return None;
        }
        let (mut edition, mut version, mut founders, mut next, mut cluster) = (1, 1, 0, 0, 0);
        let (mut members, mut left) = (Vec::new(), Vec::new());
        for line in lines {
            let (word, rest) = line.split_once(' ')?;
            match word {
                "cluster" => cluster = u64::from_str_radix(rest, 16).ok()?,
                "edition" => edition = rest.parse().ok()?,
                "version" => version = rest.parse().ok()?,
                "founders" => founders = rest.parse().ok()?,
                "next" => next = rest.parse().ok()?,
                "member" => {
                    let mut words = rest.split(' ');
                    let (node, store) = numbered(&mut words)?;
                    let addr = words.next().filter(|addr| !addr.is_empty())?.to_owned();
                    members.push(Place { node, store, addr, locality: words.next().unwrap_or_default().to_owned() });
                }
                "left" => left.push(numbered(&mut rest.split(' '))?),
                // Which of them a file is of.
                "node" => {}
                _ => return None,
            }
        }
        if header == HEADER_FOUNDERS_ONLY {
            founders = members.len() as u32;
            next = founders + 1;
        }
        let charter = Charter { cluster, edition, version, founders, next, members, left };
        charter.is_sound().then_some(charter)
    }

    fn is_sound(&self) -> bool {
        let mut numbers: Vec<u32> = self.members.iter().map(|place| place.node).collect();
        numbers.extend(self.left.iter().map(|(node, _)| *node));
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        self.cluster != 0
            && self.edition != 0
            && self.version != 0
            && self.founders != 0
            && (1..=MEMBERS_MAX).contains(&self.members.len())
            && numbers.len() == all
            && numbers.iter().all(|node| (1..self.next).contains(node))
            && self.founders < self.next
    }

    /// Which node a store is.
    pub fn node_of(&self, store: u128) -> Option<u32> {
        self.members.iter().find(|place| place.store == store).map(|place| place.node)
    }

    /// A member.
    pub fn place(&self, node: u32) -> Option<&Place> {
        self.members.iter().find(|place| place.node == node)
    }

    /// Whether a node was a member and has left. (More have than are remembered by their stores; a number that was not given out yet, as far as is known here, is nobody's who left.)
    pub fn is_gone(&self, node: u32) -> bool {
        (1..self.next).contains(&node) && self.place(node).is_none()
    }

    /// Whether a store was a member once.
    pub fn has_left(&self, store: u128) -> Option<u32> {
        self.left.iter().find(|(_, left)| *left == store).map(|(node, _)| *node)
    }

    /// A store joins, or is found elsewhere from now on. Its number, and whether that changes anything.
    ///
    /// # Errors
    /// It has no place here.
    pub fn admit(&mut self, store: u128, addr: &str, locality: &str) -> Result<(u32, bool), NoPlace> {
        if let Some(known) = self.members.iter_mut().find(|place| place.store == store) {
            let changes = (known.addr.as_str(), known.locality.as_str()) != (addr, locality);
            (known.addr, known.locality) = (addr.to_owned(), locality.to_owned());
            return Ok((known.node, changes));
        }
        if let Some(node) = self.has_left(store) {
            return Err(NoPlace::Left(node));
        }
        if self.members.len() >= MEMBERS_MAX {
            return Err(NoPlace::Full);
        }
        if self.next > NODE_MAX {
            return Err(NoPlace::NoNumber);
        }
        let node = self.next;
        self.next += 1;
        self.members.push(Place { node, store, addr: addr.to_owned(), locality: locality.to_owned() });
        Ok((node, true))
    }

    /// Another version is in force. Whether that changes anything: it never falls.
    pub fn raise(&mut self, version: u16) -> bool {
        let raises = version > self.version;
        self.version = self.version.max(version);
        raises
    }

    /// Whether this program knows the cluster's version.
    ///
    /// # Errors
    /// It does not: both are named.
    pub fn is_known(&self) -> Result<(), String> {
        knows(VERSION_MIN, VERSION_MAX, self.version).map_err(|why| format!("this program {why}"))
    }

    /// A node leaves. Whether that changes anything.
    pub fn dismiss(&mut self, node: u32) -> bool {
        let Some(at) = self.members.iter().position(|place| place.node == node) else { return false };
        let place = self.members.remove(at);
        self.left.push((place.node, place.store));
        if self.left.len() > LEFT_MAX {
            self.left.remove(0);
        }
        true
    }
}

/// Whether a program knows a version of the cluster.
///
/// # Errors
/// It does not; a sentence that lacks its subject.
pub fn knows(min: u16, max: u16, version: u16) -> Result<(), String> {
    match (min..=max).contains(&version) {
        true => Ok(()),
        false => Err(format!(
            "knows the versions {min} to {max} of a cluster, and this cluster has version {version}: start a {} release",
            if version > max { "newer" } else { "older" }
        )),
    }
}

/// A node's number, and its store's.
fn numbered<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<(u32, u128)> {
    let node = words.next()?.parse().ok().filter(|node| *node != 0)?;
    Some((node, u128::from_str_radix(words.next()?, 16).ok()?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn charter() -> Charter {
        let place = |node: u32| {
            let locality = if node == 2 { "region=eu".to_owned() } else { String::new() };
            Place { node, store: u128::from(node) << 100 | 7, addr: format!("10.0.0.{node}:1"), locality }
        };
        Charter::of_founders(0xabc, 1, (1..=3).map(place).collect())
    }

    #[test]
    fn a_charter_as_text() {
        let mut charter = charter();
        assert_eq!(Charter::of_text(&charter.to_text()), Some(charter.clone()));
        assert_eq!(charter.node_of(2 << 100 | 7), Some(2));
        assert!(charter.dismiss(2) && !charter.dismiss(2));
        assert_eq!(Charter::of_text(&charter.to_text()), Some(charter.clone()));
        let text = charter.to_text();
        for (from, to) in [
            ("cluster 2", "cluster 3"),
            ("abc", "000"),
            ("10.0.0.3:1", ""),
            ("member 3", "member 1"),
            ("member 3", "member 0"),
            ("next 4", "next 3"),
            ("left 2", "left 3"),
            ("edition 1", "edition 0"),
            ("founders", "finders"),
        ] {
            let damaged = text.replacen(from, to, 1);
            assert_ne!(damaged, text, "{from}");
            assert_eq!(Charter::of_text(&damaged), None, "{damaged}");
        }
        for none in ["", "timeball cluster 2\n", "timeball cluster 1\ncluster x\n", "timeball cluster 1\ncluster 7\n"] {
            assert_eq!(Charter::of_text(none), None, "{none:?}");
        }
    }

    /// What founded clusters have on their disks.
    #[test]
    fn the_first_form_is_read() {
        let text = "timeball cluster 1\ncluster 0000000000000abc\nmember 1 00000010000000000000000000000007 10.0.0.1:1\n\
                    member 2 00000020000000000000000000000007 10.0.0.2:1 region=eu\n\
                    member 3 00000030000000000000000000000007 10.0.0.3:1\nnode 2\n";
        assert_eq!(Charter::of_text(text), Some(charter()));
    }

    #[test]
    fn a_version_never_falls_and_programs_that_do_not_know_it_are_told() {
        let mut charter = charter();
        assert!(charter.raise(2) && !charter.raise(2) && !charter.raise(1));
        assert_eq!(charter.version, 2);
        assert_eq!(charter.is_known(), Ok(()));
        assert_eq!(knows(1, 3, 2), Ok(()));
        let older = knows(1, 1, 2).unwrap_err();
        assert!(older.contains("versions 1 to 1") && older.contains("version 2") && older.contains("newer"), "{older}");
        assert!(knows(3, 4, 2).unwrap_err().contains("older release"));
        charter.version = VERSION_MAX + 1;
        assert!(charter.is_known().is_err());
    }

    #[test]
    fn no_number_is_used_twice() {
        let mut charter = charter();
        assert_eq!(charter.admit(77, "10.0.0.4:1", ""), Ok((4, true)));
        assert_eq!(charter.admit(77, "10.0.0.4:1", ""), Ok((4, false)), "it asks again");
        assert_eq!(charter.admit(77, "10.0.0.9:1", ""), Ok((4, true)), "it has moved");
        assert!(charter.dismiss(4));
        assert_eq!(charter.admit(77, "10.0.0.4:1", ""), Err(NoPlace::Left(4)));
        assert_eq!([0, 1, 4, 5].map(|node| charter.is_gone(node)), [false, false, true, false]);
        assert_eq!(charter.admit(78, "10.0.0.4:1", ""), Ok((5, true)), "a wiped store is a new one");
        charter.next = NODE_MAX + 1;
        assert_eq!(charter.admit(79, "10.0.0.4:1", ""), Err(NoPlace::NoNumber));
    }
}
