//! How nodes become a cluster, once: `timeball init` at one of them.
//!
//! # Problem
//! Nodes are started with the addresses of all that shall found the cluster, in any order, and some come later, or die in between. They must never
//! found two clusters, nor one with two numbers for a node.
//!
//! # Idea
//! A node that is in no cluster answers at its peers' address and waits. One of them is told `init`. It asks all for their stores' numbers and for a
//! reservation, writes the [`Charter`] for itself, durably, and gives it to the others; that was the founding. Whoever missed it asks the others
//! every second whether there is a charter that names its store.
//!
//! A node that finds a cluster which does not know its store asks to be let in (`roster`). From then on charters come in newer editions.
//!
//! # Invariants
//! 1. A node is in one cluster, ever; its first charter names its store, and with a reservation comes only from whom it gave it to.
//! 2. The charter is durable at its author before anybody else has it: so if the author dies before, nobody has one; if after, it spreads by itself.
//! 3. A store that no charter names takes none: a wiped store does not come back in its old place.
//! 4. A node's edition never falls.

use super::charter;
use super::control::{self, Blank, Newcomer, Reply, Request};
use super::identity::{self, Charter, FOUNDERS_MAX, Membership, Place};
use node::cluster::{VERSION_MAX, VERSION_MIN};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A node that waits looks for a charter this often.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Who is asked waits for a cluster as well.
const NO_CLUSTER_YET: &str = "it is in no cluster yet: when all nodes run, `timeball init` founds one";
/// A reservation holds so long.
const RESERVED: Duration = Duration::from_secs(20);

/// A node on its way into a cluster, and afterwards what answers others on theirs.
pub struct Founder {
    dir: PathBuf,
    store: u128,
    /// Where the founders are found.
    join: Vec<String>,
    /// Where this one is found.
    addr: String,
    /// Where this one stands.
    locality: String,
    /// Its store holds what its node did alone.
    ran_alone: bool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    membership: Option<Membership>,
    /// For whom, and until when.
    reserved: Option<(u128, Instant)>,
}

/// A number by chance that is not 0.
pub fn draw() -> u64 {
    (0..).map(|n| RandomState::new().hash_one(n)).find(|id| *id != 0).unwrap_or(1)
}

impl Founder {
    /// Of the store in `dir`, of a node that its peers find at `addr`. It may have run alone until now: then it founds a cluster, or is in none.
    ///
    /// # Errors
    /// The store's files cannot be read or are damaged, or the store is none of a member any more.
    pub fn open(
        dir: PathBuf,
        join: Vec<String>,
        addr: String,
        locality: String,
        ran_alone: bool,
    ) -> Result<Arc<Founder>, String> {
        let store = identity::store_id(&dir, || u128::from(draw()) << 64 | u128::from(draw()))?;
        if let Some(why) = identity::copied(&dir)? {
            return Err(why);
        }
        let membership = identity::load(&dir)?;
        if let Some(Membership { charter, node }) = &membership
            && charter.has_left(store) == Some(*node)
        {
            return Err(format!(
                "the store {} was n{node} of the cluster {:016x}, and has left it: start the node on an empty directory",
                dir.display(),
                charter.cluster
            ));
        }
        if let Some(Membership { charter, .. }) = &membership {
            charter.is_known().map_err(|why| format!("the store {} cannot be opened: {why}", dir.display()))?;
        }
        if let Some(Membership { charter, node }) = &membership
            && charter.node_of(store) != Some(*node)
        {
            return Err(format!(
                "the store {} says that it is n{node} of its cluster, and the cluster knows n{node} with another store: it was put together from two",
                dir.display()
            ));
        }
        let (state, changed) = (State { membership, reserved: None }, Condvar::new());
        Ok(Arc::new(Founder { dir, store, join, addr, locality, ran_alone, state: Mutex::new(state), changed }))
    }

    /// Another process is heard as node `node`, says n`told_by`: this store is a copy, and says so from now on. Gives what a start on it will say.
    ///
    /// # Errors
    /// That cannot be written down.
    pub fn mark_copy(&self, node: u32, told_by: u32) -> Result<String, String> {
        identity::mark_copy(&self.dir, node, told_by)?;
        Ok(identity::copied(&self.dir)?.unwrap_or_default())
    }

    /// Marks the store as one that does not have what its node told n`told_by` of. What a start on it says from now on.
    ///
    /// # Errors
    /// That cannot be written down.
    pub fn mark_forgot(&self, node: u32, told_by: u32, heard: u64, end: u64) -> Result<String, String> {
        identity::mark_forgot(&self.dir, node, told_by, heard, end)?;
        Ok(identity::copied(&self.dir)?.unwrap_or_default())
    }

    /// What it is a member of.
    pub fn membership(&self) -> Option<Membership> {
        self.state.lock().membership.clone()
    }
    /// The store's number.
    pub fn store(&self) -> u128 {
        self.store
    }
    /// What it says of itself where it joins.
    pub fn newcomer(&self) -> Newcomer {
        let (oldest, newest) = (VERSION_MIN, VERSION_MAX);
        Newcomer { store: self.store, oldest, newest, addr: self.addr.clone(), locality: self.locality.clone() }
    }

    /// Waits until this node is in a cluster.
    ///
    /// # Errors
    /// It has data of its own, and there is a cluster already.
    pub fn wait(&self) -> Result<Membership, String> {
        let mut told = BTreeMap::new();
        loop {
            {
                let mut state = self.state.lock();
                if state.membership.is_none() {
                    self.changed.wait_for(&mut state, LOOK_EVERY);
                }
                if let Some(membership) = &state.membership {
                    return Ok(membership.clone());
                }
            }
            for (address, why) in self.ask_around(&mut told)? {
                // So it is whenever a cluster starts for the first time.
                let log = if why == NO_CLUSTER_YET { crate::log::info } else { crate::log::warning };
                log("cluster_not_joined", &[("asked", &address), ("cause", &why)]);
            }
        }
    }

    /// Asks all of `--join` for a cluster; why there is none, of those of whom something else is to be told than last time (`told`: one cause each).
    fn ask_around(&self, told: &mut BTreeMap<String, String>) -> Result<Vec<(String, String)>, String> {
        let mut news = Vec::new();
        for address in self.join.iter().filter(|address| **address != self.addr) {
            let joined = match control::ask(address, &Request::Hello) {
                Ok(Reply::Member(charter)) if self.ran_alone => {
                    return Err(format!(
                        "the store {} holds data of a node that ran alone, and the cluster {:016x} at {address} has data of its own: only a new cluster can begin with them. To bring them there, start this node without --join and --peer-addr, and give what `pg_dump` writes to `psql` at a node of the cluster; to join with an empty store, choose another --store",
                        self.dir.display(),
                        charter.cluster
                    ));
                }
                Ok(Reply::Member(charter)) => match charter.node_of(self.store) {
                    Some(_) => self.take(charter),
                    None => self.ask_to_join(address).and_then(|charter| self.take(charter)),
                },
                Ok(Reply::Fresh(_)) => Err(NO_CLUSTER_YET.to_owned()),
                Ok(Reply::No(why) | Reply::Later(why)) | Err(why) => Err(why),
                Ok(_) => Err("it does not answer as a node".into()),
            };
            let Err(why) = joined else { continue };
            if told.get(address) != Some(&why) {
                told.insert(address.clone(), why.clone());
                news.push((address.clone(), why));
            }
        }
        Ok(news)
    }

    /// The charter with this store in it.
    fn ask_to_join(&self, address: &str) -> Result<Charter, String> {
        match control::ask(address, &Request::Join(self.newcomer()))? {
            Reply::Member(charter) => Ok(charter),
            Reply::No(why) | Reply::Later(why) => Err(why),
            _ => Err(format!("what answers at {address} does not understand: is it of another version?")),
        }
    }

    /// Waits until there is a charter of another edition than this, for so long at most.
    pub fn await_news(&self, edition: u64, at_most: Duration) {
        let mut state = self.state.lock();
        if state.membership.as_ref().is_none_or(|known| known.charter.edition == edition) {
            self.changed.wait_for(&mut state, at_most);
        }
    }

    /// Whoever waits for news looks around.
    pub fn call(&self) {
        let _state = self.state.lock();
        self.changed.notify_all();
    }

    /// Answers a peer, or an operator.
    pub fn answer(&self, request: &[u8]) -> Vec<u8> {
        let reply = match Request::of_bytes(request) {
            None => Reply::No(
                "this is a node of Timeball, and it does not understand the question: is it of another version?".into(),
            ),
            Some(Request::Hello) => match self.membership() {
                Some(membership) => Reply::Member(membership.charter),
                None => self.fresh(),
            },
            Some(Request::Reserve(whom)) => self.reserve(whom),
            Some(Request::Found(charter)) => self.take(charter).map_or_else(Reply::No, |()| Reply::Ok(String::new())),
            Some(Request::Init) => self.init().map_or_else(Reply::No, Reply::Ok),
            Some(Request::Serves) => Reply::Later("this node is just starting, or stopping".into()),
            Some(
                Request::Status
                | Request::Join(_)
                | Request::Ails
                | Request::Life
                | Request::Disown(_)
                | Request::Holds(_)
                | Request::Sql(_)
                | Request::Leave(_)
                | Request::Replicas(_)
                | Request::Lead(_)
                | Request::Parts(..)
                | Request::Upgrade,
            ) => Reply::No(match self.membership() {
                None => "this node is in no cluster yet: when all nodes run, found it with `timeball init`".into(),
                Some(_) => "this node is just starting, or stopping".into(),
            }),
        };
        reply.to_bytes()
    }

    fn fresh(&self) -> Reply {
        Reply::Fresh(Blank { store: self.store, newest: VERSION_MAX, locality: self.locality.clone() })
    }

    fn reserve(&self, whom: u128) -> Reply {
        if self.ran_alone && whom != self.store {
            return Reply::No(format!(
                "it holds data of a node that ran alone, with which only its own cluster can begin: `timeball init --host {}`; the others join that",
                self.addr
            ));
        }
        let mut state = self.state.lock();
        let now = Instant::now();
        match (&state.membership, state.reserved) {
            (Some(membership), _) => Reply::Member(membership.charter.clone()),
            (None, Some((other, until))) if other != whom && now < until => {
                Reply::No("another node is founding a cluster with it".into())
            }
            _ => {
                state.reserved = Some((whom, now + RESERVED));
                self.fresh()
            }
        }
    }

    /// Invariants 1, 3 and 4.
    pub fn take(&self, charter: Charter) -> Result<(), String> {
        let mut state = self.state.lock();
        let node = match &state.membership {
            Some(known) if known.charter.cluster != charter.cluster => {
                let (known, other) = (known.charter.cluster, charter.cluster);
                return Err(format!("it is in the cluster {known:016x} already, and cannot be in {other:016x}"));
            }
            Some(known) if known.charter.edition >= charter.edition => return Ok(()),
            Some(known) => known.node,
            None => charter.node_of(self.store).ok_or_else(|| {
                format!("the cluster {:016x} does not know this store: let it join, with --join", charter.cluster)
            })?,
        };
        if state.membership.is_none() {
            charter.is_known()?;
        }
        let membership = Membership { charter, node };
        identity::save(&self.dir, &membership)?;
        let (cluster, members) = (format!("{:016x}", membership.charter.cluster), membership.charter.members.len());
        let edition = membership.charter.edition;
        crate::log::info(
            "cluster",
            &[("cluster", &cluster), ("node", &node), ("members", &members), ("edition", &edition)],
        );
        state.membership = Some(membership);
        self.changed.notify_all();
        Ok(())
    }

    fn init(&self) -> Result<String, String> {
        if let Some(Membership { charter, .. }) = self.membership() {
            return Ok(self.spread(&charter));
        }
        if self.ran_alone {
            return self.found_with_data();
        }
        if !(1..=FOUNDERS_MAX).contains(&self.join.len()) {
            return Err(format!(
                "--join names {} nodes: name all that found the cluster, at most {FOUNDERS_MAX}",
                self.join.len()
            ));
        }
        let (mut members, mut version) = (Vec::new(), VERSION_MAX);
        for (node, addr) in (1..).zip(&self.join) {
            let Blank { store, newest, locality } = match control::ask(addr, &Request::Reserve(self.store)) {
                Ok(Reply::Fresh(blank)) => blank,
                Ok(Reply::Member(charter)) => {
                    return Err(format!("the node at {addr} is in the cluster {:016x} already", charter.cluster));
                }
                Ok(Reply::No(why)) => return Err(format!("the node at {addr} refuses: {why}; try again in a minute")),
                Ok(Reply::Later(why)) => return Err(format!("the node at {addr} says: {why}; try again in a minute")),
                Ok(Reply::Ok(_)) => return Err(format!("the node at {addr} does not answer as one")),
                Err(why) => return Err(format!("{why}: start that node first, then run `timeball init` again")),
            };
            if members.iter().any(|place: &Place| place.store == store) {
                return Err(format!("--join names one node twice: {addr}"));
            }
            members.push(Place { node, store, addr: addr.clone(), locality });
            // What all of them know.
            version = version.min(newest);
        }
        charter::knows(VERSION_MIN, VERSION_MAX, version).map_err(|why| format!("this program {why}"))?;
        let charter = Charter::of_founders(draw(), version, members);
        if charter.node_of(self.store).is_none() {
            return Err("--join does not name this node itself: start it with the addresses of all nodes, its own --peer-addr among them".into());
        }
        self.take(charter.clone())?;
        Ok(self.spread(&charter))
    }

    /// It begins with this node and its data; whoever else waits for a cluster joins it.
    fn found_with_data(&self) -> Result<String, String> {
        let place = Place { node: 1, store: self.store, addr: self.addr.clone(), locality: self.locality.clone() };
        let charter = Charter::of_founders(draw(), VERSION_MAX, vec![place]);
        self.take(charter.clone())?;
        Ok(self.spread(&charter)
            + "Its data are the cluster's. They have one replica: start other nodes with --join, then `timeball range move RANGE --to N` for each range and node.\n")
    }

    /// Gives the charter to all; what to tell the operator.
    fn spread(&self, charter: &Charter) -> String {
        let mut text = format!("cluster {:016x}\n", charter.cluster);
        for Place { node, store, addr, .. } in &charter.members {
            let state = match control::ask(addr, &Request::Found(charter.clone())) {
                _ if *store == self.store => "is in it".to_owned(),
                Ok(Reply::Ok(_)) => "is in it".to_owned(),
                Ok(Reply::No(why) | Reply::Later(why)) => format!("refuses: {why}"),
                Ok(_) => "does not answer as a node".to_owned(),
                Err(why) => format!("gets to know it when it can be reached ({why})"),
            };
            text.push_str(&format!("n{node} at {addr} {state}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::TcpListener;

    #[test]
    fn why_nobody_lets_it_in_is_told_once() {
        let dir = std::env::temp_dir().join(format!("timeball-founding-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let bound = || TcpListener::bind("127.0.0.1:0").unwrap();
        let address = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
        // Nobody listens; and somebody who does, and is no node.
        let nobody = address(&bound());
        let stranger = bound();
        let join = vec![nobody.clone(), address(&stranger)];
        std::thread::spawn(move || {
            for stream in stranger.incoming() {
                let _ = stream.unwrap().write_all(b"E\0\0\0\x10not a node, but long enough to be read as an answer");
            }
        });
        let founder = Founder::open(dir.clone(), join.clone(), "127.0.0.1:1".into(), String::new(), false).unwrap();
        let mut told = BTreeMap::new();
        let news = founder.ask_around(&mut told).unwrap();
        let asked: Vec<&String> = news.iter().map(|(address, _)| address).collect();
        assert_eq!(asked, join.iter().collect::<Vec<_>>(), "{news:?}");
        assert!(news[0].1.contains("cannot be reached"), "{news:?}");
        assert!(!news[1].1.is_empty());
        assert_eq!(founder.ask_around(&mut told), Ok(Vec::new()), "once");
        // Another cause is news.
        told.insert(nobody.clone(), "another cause".into());
        let again = founder.ask_around(&mut told).unwrap();
        assert_eq!(again.iter().map(|(address, _)| address).collect::<Vec<_>>(), [&nobody]);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
