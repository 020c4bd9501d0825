//! Who is in the cluster after it was founded: nodes that join later, and nodes that leave.
//!
//! # Problem
//! Two nodes that join at once, through two members, must not get one number. A number is never used again: promises and records name it (design 4a.10). And
//! everybody has to hear of a newcomer, also who is down meanwhile.
//!
//! # Idea
//! The charter is a value under a key of the cluster itself ([`KEY`]), in the first range, and is changed by ordinary transactions: whoever is asked reads it,
//! changes it, and commits. So editions are in order, and a majority has each of them. As long as nobody joined, there is no value, and the founders'
//! charter, which is the same everywhere, is edition 1.
//!
//! Who made an edition gives it to the others. Who missed it finds out: every [`LOOK_EVERY`] a node asks another one which edition that has, and now and
//! then reads the key. Until then it refuses the newcomer as a stranger, who goes on trying.
//!
//! # Invariants
//! 1. An edition is what a transaction committed; nodes take one in place of a lower one only ([`super::founding`]).
//! 2. Who asks to join twice (as the answer was lost) is told the number that it got first.
//! 3. A node leaves only when no range has a replica on it, as all others know that answer; all have to.
//!
//! # Caveats
//! Nobody proves who he is. A replica that is moved to a node at the very moment at which that leaves is not seen.

use super::Inner;
use super::charter::{Charter, NoPlace, Place};
use super::control::{self, Newcomer, Reply, Request};
use super::identity::Membership;
use crate::kv::{convert, transaction::KvTransaction};
use bytes::Bytes;
use node::Span;
use node::cluster::{NodeId, VERSION_MAX};
use sql::transaction::BeginOptions;
use sql::{KvError, Transaction};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use store::Engine;
use transport::Peer;

/// Where the charter is: below all that SQL has, whose indexes are numbered from 1.
pub const KEY: &[u8] = b"\0\0\0\0charter";
/// A node asks another one for news this often.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Who is slow to say what ails him is asked again with the next look.
const ASKED_WITHIN: Duration = Duration::from_secs(1);
/// Every so many of these looks it reads the key.
const LOOKS_PER_READ: u64 = 12;
/// A change that meets another is tried again so often.
const TRIES_MAX: usize = 20;

/// The others of a charter, for the transport.
pub(super) fn peers(charter: &Charter, own: u32) -> Vec<Peer> {
    let others = charter.members.iter().filter(|place| place.node != own);
    others.map(|place| Peer { node: place.node, store: place.store, addr: place.addr.clone() }).collect()
}

/// All nodes of a charter.
pub(super) fn nodes(charter: &Charter) -> Vec<NodeId> {
    charter.members.iter().map(|place| NodeId(place.node)).collect()
}

impl<E: Engine> Inner<E> {
    /// The charter in its newest edition that is known here.
    pub fn charter(&self) -> Arc<Charter> {
        self.charter.read().clone()
    }

    fn read_charter(self: &Arc<Self>, txn: &mut KvTransaction<Self>) -> Result<Charter, KvError> {
        let Some(stored) = txn.get(KEY)? else { return Ok((*self.charter()).clone()) };
        let charter = std::str::from_utf8(&stored).ok().and_then(Charter::of_text);
        charter
            .ok_or_else(|| KvError::Storage("the cluster's charter cannot be read: is it of a later release?".into()))
    }

    fn begin(self: &Arc<Self>, options: &BeginOptions) -> Result<Box<KvTransaction<Self>>, KvError> {
        let now = self.clock.read();
        let txn = node::cluster::Transaction::begin(&self.member, &now, &convert::begin(options));
        Ok(KvTransaction::new(self.clone(), txn.map_err(convert::error)?, &now, options))
    }

    /// Changes the charter; what it is then. `act` may run more than once, and says whether it changed something.
    fn change(self: &Arc<Self>, act: impl Fn(&mut Charter) -> Result<bool, String>) -> Result<Charter, String> {
        for _ in 0..TRIES_MAX {
            match self.try_change(&act) {
                Ok(done) => return done,
                // Whether it was done is seen when the charter is read again.
                Err(KvError::CommitUnknown | KvError::Restart { .. }) => {}
                Err(error) => return Err(format!("the charter cannot be changed now: {error}")),
            }
        }
        Err("the charter is changed by others all the time: try again".into())
    }

    fn try_change(
        self: &Arc<Self>,
        act: &impl Fn(&mut Charter) -> Result<bool, String>,
    ) -> Result<Result<Charter, String>, KvError> {
        let mut txn = self.begin(&BeginOptions { interrupt: self.interrupt.clone(), ..BeginOptions::default() })?;
        let mut charter = self.read_charter(&mut txn)?;
        match act(&mut charter) {
            Ok(true) => {}
            Ok(false) => return Ok(Ok(charter)),
            Err(why) => return Ok(Err(why)),
        }
        charter.edition += 1;
        txn.put(Bytes::from_static(KEY), Bytes::from(charter.to_text()))?;
        txn.commit()?;
        Ok(Ok(charter))
    }

    /// A change was made here: this node goes by it, and the others hear of it.
    fn proclaim(&self, charter: &Charter) -> Result<(), String> {
        self.proclaims.store(true, SeqCst);
        self.founder.take(charter.clone())
    }

    /// A store wants to join.
    pub(super) fn join(self: &Arc<Self>, newcomer: &Newcomer) -> Reply {
        if let Err(why) = self.is_reachable(newcomer) {
            return Reply::No(why);
        }
        let act = |charter: &mut Charter| {
            let Newcomer { store, oldest, newest, addr, locality } = newcomer;
            super::charter::knows(*oldest, *newest, charter.version).map_err(|why| format!("that program {why}"))?;
            let admitted = charter.admit(*store, addr, locality);
            admitted.map(|(_, changes)| changes).map_err(|why: NoPlace| why.to_string())
        };
        match self.change(act).and_then(|charter| self.proclaim(&charter).map(|()| charter)) {
            Ok(charter) => Reply::Member(charter),
            Err(why) => Reply::No(why),
        }
    }

    /// Whether the others would find it where it says, as far as that can be told.
    fn is_reachable(&self, newcomer: &Newcomer) -> Result<(), String> {
        let charter = self.charter();
        let all = |addr: &str| addr.to_socket_addrs().map(Iterator::collect::<Vec<_>>).unwrap_or_default();
        let own = all(&newcomer.addr);
        let elsewhere = charter.members.iter().flat_map(|place| all(&place.addr)).any(|addr| !addr.ip().is_loopback());
        let why = if own.iter().any(|addr| addr.ip().is_unspecified()) {
            "is no address of one machine"
        } else if elsewhere && own.iter().any(|addr| addr.ip().is_loopback()) {
            "is each machine itself, and the cluster has nodes on others"
        } else {
            let links = self.transport.get().map(transport::Transport::links).unwrap_or_default();
            let up = |node: u32| node == self.node || links.iter().any(|link| link.node == node && link.up);
            let other = |place: &&Place| place.store != newcomer.store && place.addr == newcomer.addr && up(place.node);
            return match charter.members.iter().find(other) {
                None => Ok(()),
                Some(place) => {
                    Err(format!("n{} runs at {}: give this node a --peer-addr of its own", place.node, place.addr))
                }
            };
        };
        Err(format!("{} {why}: say with --peer-addr where the others reach this node", newcomer.addr))
    }

    /// Which ranges have a replica on a node, as this one knows.
    fn held_by(&self, node: NodeId) -> Vec<u64> {
        let seats = |range: &node::RangeId| {
            let status = self.member.status(*range)?;
            Some([status.voters, status.learners, status.outgoing].concat())
        };
        let all = self.member.ranges();
        let here = |range: &&node::RangeId| match node.0 == self.node {
            // What is left of one that was removed and does not know it, counts.
            true => true,
            false => seats(range).is_some_and(|seats| seats.contains(&node)),
        };
        all.iter().filter(here).map(|range| range.0).collect()
    }

    /// What the programs of all nodes know is to be in force.
    pub(super) fn upgrade(self: &Arc<Self>) -> Reply {
        let raised = self.known_by_all().and_then(|version| {
            self.change(|charter| Ok(charter.raise(version))).and_then(|charter| {
                self.proclaim(&charter)?;
                Ok(charter.version)
            })
        });
        raised.map_or_else(Reply::No, |version| Reply::Ok(format!("the cluster has version {version}\n")))
    }

    /// The newest version that the programs of all nodes know.
    fn known_by_all(&self) -> Result<u16, String> {
        let links = self.transport.get().map(transport::Transport::links).unwrap_or_default();
        let mut newest = VERSION_MAX;
        for place in self.charter().members.iter().filter(|place| place.node != self.node) {
            // Who is not there may be of any release.
            let link = links.iter().find(|link| link.node == place.node && link.up);
            let Some(knows) = link.and_then(|link| link.knows.clone()) else {
                return Err(format!(
                    "n{} is not connected, and nobody knows its release: start it, or let it leave for good (`timeball node decommission {}`)",
                    place.node, place.node
                ));
            };
            newest = newest.min(*knows.end());
        }
        match newest.cmp(&self.charter().version) {
            Ordering::Less => Err(format!("the cluster has version {} already", self.charter().version)),
            Ordering::Equal if newest < VERSION_MAX => {
                let old = links.iter().filter(|link| link.knows.as_ref().is_some_and(|knows| *knows.end() == newest));
                let old: Vec<String> = old.map(|link| format!("n{}", link.node)).collect();
                Err(format!(
                    "version {VERSION_MAX} is not known to the programs of {}: start a newer release there first",
                    old.join(", ")
                ))
            }
            Ordering::Equal | Ordering::Greater => Ok(newest),
        }
    }

    /// A peer asks which ranges have a replica on a node.
    pub(super) fn holds(&self, node: u32) -> Reply {
        let held: Vec<String> = self.held_by(NodeId(node)).iter().map(u64::to_string).collect();
        Reply::Ok(held.join(" "))
    }

    /// A node is to leave.
    pub(super) fn leave(self: &Arc<Self>, node: u32) -> Reply {
        let left = self.may_leave(node).and_then(|()| {
            self.change(|charter| Ok(charter.dismiss(node))).and_then(|charter| self.proclaim(&charter))
        });
        left.map_or_else(Reply::No, |()| Reply::Ok(format!("n{node} is no node of the cluster any more\n")))
    }

    fn may_leave(&self, node: u32) -> Result<(), String> {
        let charter = self.charter();
        if charter.place(node).is_none() {
            return match charter.left.iter().any(|(left, _)| *left == node) {
                true => Ok(()),
                false => Err(format!("there is no n{node} in this cluster")),
            };
        }
        if charter.members.len() == 1 {
            return Err(format!("n{node} is all that there is of the cluster"));
        }
        // Of what has its only replica there nobody else may know but where it was last.
        let alone = self
            .member
            .ranges_over(&Span::ALL)
            .into_iter()
            .find(|(_, range)| self.member.route(*range).is_some_and(|(_, replicas)| replicas == [NodeId(node)]));
        if let Some((_, range)) = alone {
            return Err(holds_still(node, &range.0.to_string()));
        }
        for place in &charter.members {
            let reply = match place.node == self.node {
                true => Ok(self.holds(node)),
                false => control::ask(&place.addr, &Request::Holds(node)),
            };
            match reply {
                Ok(Reply::Ok(held)) if held.is_empty() => {}
                Ok(Reply::Ok(held)) => return Err(holds_still(node, &held)),
                // It is gone for good, perhaps.
                Err(_) if place.node == node => {}
                Ok(_) => return Err(format!("n{} does not say what it knows of n{node}: try again", place.node)),
                Err(why) => return Err(format!("n{} may know of replicas on n{node}, and {why}", place.node)),
            }
        }
        Ok(())
    }

    /// Goes by a newer edition.
    pub(super) fn adopt(&self, Membership { charter, node }: Membership) {
        let charter = Arc::new(charter);
        *self.charter.write() = charter.clone();
        if charter.place(node).is_none() {
            return self.dismissed(&format!(
                "n{node} was removed from the cluster {:016x} (`timeball node decommission`): it serves nothing any more; connect to another node, and stop this one, or start it on an empty --store to join anew",
                charter.cluster
            ));
        }
        if let Err(why) = charter.is_known() {
            return self.dismissed(&why);
        }
        if self.removed.get().is_some() {
            return;
        }
        self.member.set_nodes(nodes(&charter));
        self.member.set_version(charter.version);
        if let Some(transport) = self.transport.get() {
            transport.set_cluster_version(charter.version);
            if let Err(error) = transport.set_peers(peers(&charter, node)) {
                crate::log::error("a peer has no connections", &[("cause", &error)]);
            }
            if self.removed.get().is_some() {
                // Meanwhile: who was dismissed has no peers (`copies`).
                let _ = transport.set_peers(Vec::new());
            }
        }
    }

    /// It serves nothing any more, until it is started again, as another node or by another program.
    pub(super) fn dismissed(&self, why: &str) {
        crate::log::error("out_of_the_cluster", &[("cause", &why)]);
        let _ = self.removed.set(why.to_owned());
        self.broken.lock().get_or_insert(why.to_owned());
        self.member.close();
    }

    /// Gives the charter to the others, those first that are there, and to who left last.
    fn spread(&self, charter: &Charter, before: &Charter) {
        let links = self.transport.get().map(transport::Transport::links).unwrap_or_default();
        let is_up = |place: &&Place| links.iter().any(|link| link.node == place.node && link.up);
        let left = before.members.iter().filter(|place| charter.place(place.node).is_none());
        let others = charter.members.iter().filter(|place| place.node != self.node);
        let (up, down): (Vec<_>, Vec<_>) = others.chain(left).partition(is_up);
        for place in up.into_iter().chain(down) {
            if self.stopping.load(SeqCst) {
                return;
            }
            // Who does not hear it asks.
            let _ = control::ask(&place.addr, &Request::Found(charter.clone()));
        }
    }

    /// Asks one of the others, each time another one, for its edition.
    fn ask_for_news(&self, turn: u64) {
        let charter = self.charter();
        let others: Vec<&Place> = charter.members.iter().filter(|place| place.node != self.node).collect();
        let Some(at) = usize::try_from(turn).unwrap_or(0).checked_rem(others.len()) else { return };
        if let Ok(Reply::Member(theirs)) = control::ask(&others[at].addr, &Request::Hello)
            && theirs.cluster == charter.cluster
        {
            self.hear(theirs);
        }
    }

    /// Asks those that are there what keeps them from serving. (Older releases do not understand.)
    fn ask_what_ails(&self) {
        let links = self.transport.get().map(transport::Transport::links).unwrap_or_default();
        let mut ailing = BTreeMap::new();
        for link in links.iter().filter(|link| link.up && !self.stopping.load(SeqCst)) {
            if let Ok(Reply::Ok(why)) = control::ask_within(&link.addr, &Request::Ails, ASKED_WITHIN)
                && !why.is_empty()
            {
                ailing.insert(link.node, why);
            }
        }
        *self.ailing.lock() = ailing;
    }

    fn hear(&self, charter: Charter) {
        if let Err(why) = self.founder.take(charter) {
            crate::log::warning("charter_not_taken", &[("cause", &why)]);
        }
    }
}

fn holds_still(node: u32, ranges: &str) -> String {
    format!(
        "n{node} still has replicas of ranges ({ranges}): move them first, `timeball range move RANGE --from {node} --to ANOTHER`"
    )
}

/// The thread that keeps the charter: takes newer editions, and gives away those that were made here.
pub(super) fn run<E: Engine>(inner: &Arc<Inner<E>>) {
    let mut turn = 0u64;
    while !inner.stopping.load(SeqCst) {
        let charter = inner.charter();
        inner.founder.await_news(charter.edition, LOOK_EVERY);
        if inner.stopping.load(SeqCst) {
            return;
        }
        let news = inner.founder.membership().filter(|known| known.charter.edition > charter.edition);
        match news {
            Some(membership) => {
                inner.adopt(membership);
                if inner.proclaims.swap(false, SeqCst) {
                    inner.spread(&inner.charter(), &charter);
                }
            }
            None => {
                inner.ask_for_news(turn);
                inner.ask_what_ails();
                if turn.is_multiple_of(LOOKS_PER_READ) {
                    let options = BeginOptions { interrupt: inner.interrupt.clone(), ..BeginOptions::default() };
                    let read = inner.begin(&options).and_then(|mut txn| inner.read_charter(&mut txn));
                    read.into_iter().for_each(|charter| inner.hear(charter));
                }
                turn += 1;
            }
        }
    }
}
