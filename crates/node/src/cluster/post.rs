//! Frames: what is sent is framed, what comes is opened and believed as far as it can be.

use super::core::Core;
use super::member::Member;
use super::seam::{Class, Message, NodeId, Outgoing};
use crate::watch::PeerWord;
use clock::Reading;
use protocol::door::{Body, Claim, Frame, VERSION_OF_REACHES, VERSION_OF_SESSION_LOCKS};
use protocol::log::raft::{Envelope, RecordNumber};
use std::collections::BTreeMap;
use store::Engine;

/// Peers against whose clocks something is held, at most.
const PEERS_MAX: usize = 1024;
/// What a claim proved is told for so long after it came, nanoseconds: 10 s. Who goes on claiming it proves it anew, and who has fallen silent may have mended his clock, or have been
/// started anew; each word of an old proof would keep him from being trusted for another minute.
const TOLD_NS: u64 = 10_000_000_000;

/// What is to be sent, and what is held against peers' clocks.
#[derive(Debug, Default)]
pub(crate) struct Post {
    /// Framed when the outputs are taken.
    pub answers: Vec<(NodeId, Body)>,
    /// By how much a peer's last claim was proved wrong, nanoseconds, and when that came, by the time that passes here.
    accuse: BTreeMap<NodeId, (u64, u64)>,
    /// The greatest record of each peer's log that it said was durable: see [`Member::heard_of`].
    heard: BTreeMap<NodeId, u64>,
}

impl Post {
    /// What is held against a peer's clock now, nanoseconds.
    fn accuses_ns(&self, now: &Reading, to: NodeId, for_ever: bool) -> u64 {
        let proof = self.accuse.get(&to);
        proof.map_or(0, |(gap, at)| if for_ever || now.now_ns.saturating_sub(*at) <= TOLD_NS { *gap } else { 0 })
    }
}

impl<E: Engine> Member<E> {
    /// How far a node's log reaches, as far as it has told: what it acknowledged to this one is in it. 0: nothing was told, in this life of this node.
    ///
    /// Each message says which records of its sender's log are durable when it leaves; so a later life of that node whose log ends below this began with a store that had forgotten what it
    /// acknowledged: an old copy of it, or one of a disk that lost what it had synced (decision 218). Such a life is not to be heard.
    pub fn heard_of(&self, node: NodeId) -> RecordNumber {
        RecordNumber(self.look().post.heard.get(&node).copied().unwrap_or_default())
    }

    /// Where the log ended when this life began: all that an earlier one acknowledged lies at or below.
    pub fn began_after(&self) -> RecordNumber {
        self.began_after
    }
}

impl<E: Engine> Core<E> {
    pub fn send_envelope(&mut self, now: &Reading, envelope: Envelope, after: Option<RecordNumber>) {
        let Some(to) = NodeId::of_store(envelope.to) else { return };
        let (bulk, rest) = envelope.apart();
        if let Some(bulk) = bulk {
            self.send(now, to, Class::Bulk, Body::Envelope(bulk), after);
        }
        for envelope in rest {
            self.send(now, to, Class::Consensus, Body::Envelope(envelope), after);
        }
    }

    pub fn send(&mut self, now: &Reading, to: NodeId, class: Class, body: Body, after: Option<RecordNumber>) {
        if !self.in_force(body.needs_version()) {
            self.counters.messages_withheld.one();
            return;
        }
        let accuses_ns = self.post.accuses_ns(now, to, self.sabotage.accuse_for_ever());
        // What is not durable yet is not told, but by what leaves only when it is.
        let reached = match self.in_force(VERSION_OF_REACHES) {
            true => after.map_or(0, |after| after.0).max(self.gathering.reached().0),
            false => 0,
        };
        let claim = Claim { interval: now.trusted(), accuses_ns, reached };
        let frame = Frame { cluster: self.options.cluster, from: self.me().0, to: to.0, claim, body };
        let message = Message { from: self.me(), to, class, bytes: frame.encode().into() };
        self.out.messages.push(Outgoing { message, after });
        self.counters.messages_sent.one();
    }

    /// Answers that have gathered.
    pub fn send_answers(&mut self, now: &Reading) {
        for (to, body) in std::mem::take(&mut self.post.answers) {
            let forwards = body.is_word() && self.in_force(VERSION_OF_SESSION_LOCKS);
            if let Some(third) = self.third(to).filter(|_| forwards) {
                let word = Body::Forward { from: self.me().0, to: to.0, word: Box::new(body.clone()) };
                self.send(now, third, Class::Request, word, None);
            }
            self.send(now, to, Class::Request, body, None);
        }
    }

    /// Opens a frame. `None`: it is not for us, or not sound, and is counted.
    pub fn open(&mut self, now: &Reading, message: &Message) -> Option<(NodeId, Body)> {
        let frame = Frame::decode(&message.bytes).ok().filter(|frame| {
            let known = (frame.cluster, frame.to) == (self.options.cluster, self.me().0);
            known && frame.from == message.from.0 && frame.from != 0 && frame.from != frame.to
        });
        let Some(Frame { from, claim, body, .. }) = frame else {
            self.counters.messages_refused.one();
            return None;
        };
        let from = NodeId(from);
        let listens = claim.reached > 0 && !self.sabotage.forget_reaches();
        if listens && (self.post.heard.len() < PEERS_MAX || self.post.heard.contains_key(&from)) {
            let heard = self.post.heard.entry(from).or_default();
            *heard = claim.reached.max(*heard);
        }
        if !self.sabotage.ignore_proofs() {
            let word = PeerWord { peer: from.0, claim: claim.interval, accuses_ns: claim.accuses_ns };
            self.watch.hear(&self.sabotage, now, word);
            // Only what lies ahead of us is proof: a frame may have been long on its way.
            let ahead_ns = match (claim.interval, now.trusted()) {
                (Some(theirs), Some(ours)) => theirs.earliest_ns.saturating_sub(ours.latest_ns),
                _ => 0,
            };
            match ahead_ns {
                0 => drop(self.post.accuse.remove(&from)),
                gap if self.post.accuse.len() < PEERS_MAX || self.post.accuse.contains_key(&from) => {
                    self.post.accuse.insert(from, (gap, now.now_ns));
                }
                _ => {}
            }
        }
        Some((from, body))
    }
}
