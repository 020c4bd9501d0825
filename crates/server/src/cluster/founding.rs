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
//! # Invariants
//! 1. A node takes one charter, ever; one that names its store, and with a reservation only from whom it gave it to.
//! 2. The charter is durable at its author before anybody else has it: so if the author dies before, nobody has one; if after, it spreads by itself.
//! 3. A store that no charter names takes none: a wiped store does not come back in its old place.
//!
//! # Caveats
//! The founders are all the nodes that there are: others cannot join yet.

use super::control::{self, Reply, Request};
use super::identity::{self, Charter, FOUNDERS_MAX, Membership, Place};
use parking_lot::{Condvar, Mutex};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A node that waits looks for a charter this often.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A reservation holds so long.
const RESERVED: Duration = Duration::from_secs(20);

/// A node on its way into a cluster, and afterwards what answers others on theirs.
pub struct Founder {
    dir: PathBuf,
    store: u128,
    /// Where the founders are found.
    join: Vec<String>,
    /// Where this one stands.
    locality: String,
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
    /// Of the store in `dir`.
    ///
    /// # Errors
    /// The store's files cannot be read or are damaged.
    pub fn open(dir: PathBuf, join: Vec<String>, locality: String) -> Result<Arc<Founder>, String> {
        let store = identity::store_id(&dir, || u128::from(draw()) << 64 | u128::from(draw()))?;
        let membership = identity::load(&dir)?;
        if let Some(Membership { charter, node }) = &membership
            && charter.node_of(store) != Some(*node)
        {
            return Err(format!(
                "the store {} says that it is n{node} of its cluster, and the cluster knows n{node} with another store: it was put together from two",
                dir.display()
            ));
        }
        let (state, changed) = (State { membership, reserved: None }, Condvar::new());
        Ok(Arc::new(Founder { dir, store, join, locality, state: Mutex::new(state), changed }))
    }

    /// What it is a member of.
    pub fn membership(&self) -> Option<Membership> {
        self.state.lock().membership.clone()
    }
    /// The store's number.
    pub fn store(&self) -> u128 {
        self.store
    }

    /// Waits until this node is in a cluster.
    pub fn wait(&self) -> Membership {
        loop {
            {
                let mut state = self.state.lock();
                if state.membership.is_none() {
                    self.changed.wait_for(&mut state, LOOK_EVERY);
                }
                if let Some(membership) = &state.membership {
                    return membership.clone();
                }
            }
            for address in &self.join {
                if let Ok(Reply::Member(charter)) = control::ask(address, &Request::Hello)
                    && let Err(why) = self.take(charter)
                {
                    crate::log::warning("cluster_not_joined", &[("asked", address), ("cause", &why)]);
                }
            }
        }
    }

    /// Answers a peer, or an operator.
    pub fn answer(&self, request: &[u8]) -> Vec<u8> {
        let reply = match Request::of_bytes(request) {
            None => Reply::No(
                "this is a node of Timeball, and it does not understand the question: is it of another version?".into(),
            ),
            Some(Request::Hello) => match self.membership() {
                Some(membership) => Reply::Member(membership.charter),
                None => Reply::Fresh(self.store, self.locality.clone()),
            },
            Some(Request::Reserve(whom)) => self.reserve(whom),
            Some(Request::Found(charter)) => self.take(charter).map_or_else(Reply::No, |()| Reply::Ok(String::new())),
            Some(Request::Init) => self.init().map_or_else(Reply::No, Reply::Ok),
            Some(Request::Status) => Reply::No(match self.membership() {
                None => "this node is in no cluster yet: when all nodes run, found it with `timeball init`".into(),
                Some(_) => "this node is just starting, or stopping".into(),
            }),
        };
        reply.to_bytes()
    }

    fn reserve(&self, whom: u128) -> Reply {
        let mut state = self.state.lock();
        let now = Instant::now();
        match (&state.membership, state.reserved) {
            (Some(membership), _) => Reply::Member(membership.charter.clone()),
            (None, Some((other, until))) if other != whom && now < until => {
                Reply::No("another node is founding a cluster with it".into())
            }
            _ => {
                state.reserved = Some((whom, now + RESERVED));
                Reply::Fresh(self.store, self.locality.clone())
            }
        }
    }

    /// Invariants 1 and 3.
    fn take(&self, charter: Charter) -> Result<(), String> {
        let mut state = self.state.lock();
        if let Some(known) = &state.membership {
            return match known.charter.cluster == charter.cluster {
                true => Ok(()),
                false => Err(format!("it is in the cluster {:016x} already", known.charter.cluster)),
            };
        }
        let node = charter.node_of(self.store).ok_or_else(|| {
            format!(
                "the cluster {:016x} was founded without this store: nodes cannot join later yet, and a store that was wiped is a new one",
                charter.cluster
            )
        })?;
        let membership = Membership { charter, node };
        identity::save(&self.dir, &membership)?;
        let (cluster, members) = (format!("{:016x}", membership.charter.cluster), membership.charter.members.len());
        crate::log::info("cluster_joined", &[("cluster", &cluster), ("node", &node), ("members", &members)]);
        state.membership = Some(membership);
        self.changed.notify_all();
        Ok(())
    }

    fn init(&self) -> Result<String, String> {
        if let Some(Membership { charter, .. }) = self.membership() {
            return Ok(self.spread(&charter));
        }
        if !(1..=FOUNDERS_MAX).contains(&self.join.len()) {
            return Err(format!(
                "--join names {} nodes: name all that found the cluster, at most {FOUNDERS_MAX}",
                self.join.len()
            ));
        }
        let mut members = Vec::new();
        for (node, addr) in (1..).zip(&self.join) {
            let (store, locality) = match control::ask(addr, &Request::Reserve(self.store)) {
                Ok(Reply::Fresh(store, locality)) => (store, locality),
                Ok(Reply::Member(charter)) => {
                    return Err(format!("the node at {addr} is in the cluster {:016x} already", charter.cluster));
                }
                Ok(Reply::No(why)) => return Err(format!("the node at {addr} refuses: {why}; try again in a minute")),
                Ok(Reply::Ok(_)) => return Err(format!("the node at {addr} does not answer as one")),
                Err(why) => return Err(format!("{why}: start that node first, then run `timeball init` again")),
            };
            if members.iter().any(|place: &Place| place.store == store) {
                return Err(format!("--join names one node twice: {addr}"));
            }
            members.push(Place { node, store, addr: addr.clone(), locality });
        }
        let charter = Charter { cluster: draw(), members };
        if charter.node_of(self.store).is_none() {
            return Err("--join does not name this node itself: start it with the addresses of all nodes, its own --peer-addr among them".into());
        }
        self.take(charter.clone())?;
        Ok(self.spread(&charter))
    }

    /// Gives the charter to all; what to tell the operator.
    fn spread(&self, charter: &Charter) -> String {
        let mut text = format!("cluster {:016x}\n", charter.cluster);
        for Place { node, store, addr, .. } in &charter.members {
            let state = match control::ask(addr, &Request::Found(charter.clone())) {
                _ if *store == self.store => "is in it".to_owned(),
                Ok(Reply::Ok(_)) => "is in it".to_owned(),
                Ok(Reply::No(why)) => format!("refuses: {why}"),
                Ok(_) => "does not answer as a node".to_owned(),
                Err(why) => format!("gets to know it when it can be reached ({why})"),
            };
            text.push_str(&format!("n{node} at {addr} {state}\n"));
        }
        text
    }
}
