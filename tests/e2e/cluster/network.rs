//! A network of namespaces in which packets can be dropped one way, without a word to anybody.
//!
//! Each node has a namespace, all hang on one bridge. What one sends another is lost as long as its neighbour table names an address that
//! nobody has: no packet filter is needed, only root and `ip`.

use crate::node::{has_program, skip};
use std::process::Command;

/// See the module. Goes away with the value.
pub struct Network {
    /// In names, of this test alone.
    id: u32,
    count: usize,
}

fn ip(line: &str) -> Result<(), String> {
    let done = Command::new("ip").args(line.split_whitespace()).output().map_err(|e| e.to_string())?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("ip {line}: {}", String::from_utf8_lossy(&done.stderr).trim())),
    }
}

impl Network {
    /// For so many nodes; `None`, and says so, where this machine does not let us.
    pub fn make(count: usize) -> Option<Network> {
        if !has_program("ip") && ip("-V").is_err() {
            skip("there is no ip (Debian: iproute2)");
            return None;
        }
        let network = Network { id: std::process::id(), count };
        if let Err(why) = network.build() {
            skip(&format!("no network of namespaces can be made (needs root): {why}"));
            return None;
        }
        Some(network)
    }

    fn build(&self) -> Result<(), String> {
        let bridge = self.bridge();
        ip(&format!("link add {bridge} type bridge"))?;
        ip(&format!("link set {bridge} up"))?;
        ip(&format!("addr add {}/24 dev {bridge}", self.host(self.count)))?;
        for at in 0..self.count {
            let (name, outer, host, mac) = (self.name(at), self.outer(at), self.host(at), mac(at));
            ip(&format!("netns add {name}"))?;
            ip(&format!("link add {outer} type veth peer name eth0 netns {name}"))?;
            ip(&format!("link set {outer} master {bridge} up"))?;
            ip(&format!("-n {name} link set lo up"))?;
            ip(&format!("-n {name} link set eth0 address {mac} up"))?;
            ip(&format!("-n {name} addr add {host}/24 dev eth0"))?;
        }
        let pairs = (0..self.count).flat_map(|from| (0..self.count).map(move |to| (from, to)));
        pairs.filter(|(from, to)| from != to).try_for_each(|(from, to)| self.aim(from, to, &mac(to)))
    }

    fn bridge(&self) -> String {
        format!("tb{}", self.id)
    }
    fn outer(&self, at: usize) -> String {
        format!("tb{}v{at}", self.id)
    }
    /// The namespace of a node.
    pub fn name(&self, at: usize) -> String {
        format!("timeball-{}-{at}", self.id)
    }
    /// The address of a node.
    pub fn host(&self, at: usize) -> String {
        format!("10.{}.{}.{}", 128 + self.id / 256 % 64, self.id % 256, at + 1)
    }

    /// From now on nothing that one sends arrives at the other.
    pub fn cut(&self, from: usize, to: usize) {
        self.aim(from, to, "02:00:00:00:ff:ff").unwrap();
    }
    /// It arrives again.
    pub fn heal(&self) {
        for (from, to) in (0..self.count).flat_map(|from| (0..self.count).map(move |to| (from, to))) {
            if from != to {
                self.aim(from, to, &mac(to)).unwrap();
            }
        }
    }

    fn aim(&self, from: usize, to: usize, mac: &str) -> Result<(), String> {
        ip(&format!("-n {} neigh replace {} lladdr {mac} dev eth0 nud permanent", self.name(from), self.host(to)))
    }
}

fn mac(at: usize) -> String {
    format!("02:00:00:00:00:{:02x}", at + 1)
}

impl Drop for Network {
    fn drop(&mut self) {
        for at in 0..self.count {
            let _ = ip(&format!("link del {}", self.outer(at)));
            let _ = ip(&format!("netns del {}", self.name(at)));
        }
        let _ = ip(&format!("link del {}", self.bridge()));
    }
}
