//! Members of a cluster in virtual time: links that all take as long, disks that take no time, nobody who fails. It goes on while somebody waits.

use bytes::Bytes;
use clock::Reading;
use node::cluster::{
    ClusterOptions, Founding, FreezeReason, Input, Member, Message, NodeId, Opening, Outputs, RecordNumber, TICK_NS,
};
use node::{NodeOptions, RangeId};
use parking_lot::Mutex;
use protocol::door::{Body, Frame, Request};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::Waker;
use store::{MemoryEngine, Versions, VersionsConfig};

pub type Engine = MemoryEngine;

/// A message takes so long, microseconds.
pub const LINK_US: u64 = 10_000;
/// What there and back takes.
pub const ROUND_TRIP_US: u64 = 2 * LINK_US;
const BEGIN_US: u64 = 1_700_000_000_000_000;
const TICK_US: u64 = TICK_NS / 1000;
/// All clocks are right, and say that they may be off by so much: what rule 1 waits for is over before a commit is replicated.
const CLOCK_ERROR_US: u64 = 100;
const CLUSTER: u64 = 0xd157;
/// Looks for something that must come, of [`LINK_US`] each: ten minutes.
const LOOKS_MAX: u64 = 60_000;

enum Event {
    Tick,
    Due,
    Deliver(Message),
    Synced(RecordNumber),
    Flush,
}

/// A request that left its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub at_us: u64,
    pub from: u32,
    pub kind: &'static str,
}

#[derive(Default)]
struct Agenda {
    events: BTreeMap<(u64, u64), (u32, Event)>,
    sequence: u64,
    durable: BTreeMap<u32, RecordNumber>,
    held: BTreeMap<u32, Vec<(RecordNumber, Message)>>,
    sent: Vec<Sent>,
}

impl Agenda {
    fn add(&mut self, at_us: u64, node: u32, event: Event) {
        self.sequence += 1;
        self.events.insert((at_us, self.sequence), (node, event));
    }

    fn send(&mut self, now_us: u64, message: Message) {
        let frame = Frame::decode(&message.bytes).expect("a member sends frames");
        if let Body::Request { request, .. } | Body::Relay { request, .. } | Body::Near { request, .. } = &frame.body {
            self.sent.push(Sent { at_us: now_us, from: message.from.0, kind: kind_of(request) });
        }
        self.add(now_us + LINK_US, message.to.0, Event::Deliver(message));
    }
}

fn kind_of(request: &Request) -> &'static str {
    match request {
        Request::Get { .. } => "get",
        Request::GetMany { .. } => "get of many",
        Request::LockMany { .. } => "lock of many",
        Request::Present { .. } => "present",
        Request::Scan { .. } => "scan",
        Request::Changed { .. } => "changed",
        Request::Settled { .. } => "settled",
        Request::Lock { .. } => "lock",
        Request::Hold { .. } | Request::Keep { .. } => "session lock",
        Request::Stage(_) => "stage",
        Request::Commit { .. } => "commit",
        Request::Prepare { .. } => "prepare",
        Request::Fence { .. } => "fence",
        Request::Outcome { .. } => "outcome",
        Request::Split { .. } => "split",
        Request::Forget { .. } => "forget",
        Request::Time => "time",
    }
}

/// See the module.
pub struct World {
    true_us: AtomicU64,
    members: BTreeMap<u32, Arc<Member<Engine>>>,
    agenda: Mutex<Agenda>,
}

impl World {
    /// So many nodes; of one range each has a replica.
    pub fn new(nodes: u32) -> Arc<World> {
        let replicas: Vec<NodeId> = (1..=nodes).map(NodeId).collect();
        let ranges = vec![Founding { range: RangeId(1), start: Bytes::new(), replicas: replicas.clone() }];
        let now = reading(BEGIN_US);
        let member = |node: &NodeId| {
            let options = ClusterOptions {
                version: node::cluster::VERSION_MAX,
                node_options: NodeOptions { alone: false, ..NodeOptions::default() },
                ..ClusterOptions::new(CLUSTER, *node, ranges.clone(), u64::from(node.0))
            };
            let versions = Versions::open(Engine::default(), VersionsConfig::default()).expect("an empty engine opens");
            let opening = Opening::new(options, Arc::new(versions), &now).expect("a founder opens");
            (node.0, opening.finish(&now).expect("a founder opens"))
        };
        let world = World {
            true_us: AtomicU64::new(BEGIN_US),
            members: replicas.iter().map(member).collect(),
            agenda: Mutex::default(),
        };
        for node in world.members.keys() {
            // Not all at one moment.
            world.agenda.lock().add(BEGIN_US + u64::from(*node) * TICK_US / u64::from(nodes + 1), *node, Event::Tick);
            world.drain(*node);
        }
        Arc::new(world)
    }

    pub fn member(&self, node: u32) -> &Arc<Member<Engine>> {
        &self.members[&node]
    }

    pub fn now_us(&self) -> u64 {
        self.true_us.load(SeqCst)
    }

    pub fn now(&self) -> Reading {
        reading(self.now_us())
    }

    /// Requests that a node has sent since a moment.
    pub fn sent_since(&self, node: u32, us: u64) -> Vec<Sent> {
        self.agenda.lock().sent.iter().filter(|sent| sent.from == node && sent.at_us >= us).cloned().collect()
    }

    /// The nodes that lead a range under a lease.
    pub fn leaders(&self) -> BTreeMap<RangeId, u32> {
        let mut leaders = BTreeMap::new();
        for (node, member) in &self.members {
            for range in member.ranges() {
                if member.status(range).is_some_and(|status| status.lease.is_some()) {
                    leaders.insert(range, *node);
                }
            }
        }
        leaders
    }

    /// Goes on until something holds.
    #[track_caller]
    pub fn until(&self, what: &str, holds: impl Fn(&World) -> bool) {
        for _ in 0..LOOKS_MAX {
            if holds(self) {
                return;
            }
            self.go_on(LINK_US);
        }
        panic!("it never came to it: {what}");
    }

    /// Goes on for so long.
    pub fn go_on(&self, us: u64) {
        let until = self.now_us() + us;
        while self.agenda.lock().events.first_key_value().is_some_and(|((at, _), _)| *at <= until) {
            self.advance();
        }
        self.true_us.store(until, SeqCst);
    }

    /// The next thing happens.
    pub fn advance(&self) {
        let Some(((at_us, _), (node, event))) = self.agenda.lock().events.pop_first() else { return };
        self.true_us.store(at_us.max(self.now_us()), SeqCst);
        let input = match event {
            Event::Tick => {
                self.agenda.lock().add(at_us + TICK_US, node, Event::Tick);
                Input::Tick
            }
            Event::Due => Input::Due,
            Event::Deliver(message) => Input::Message(message),
            Event::Synced(upto) => {
                let mut agenda = self.agenda.lock();
                agenda.durable.insert(node, upto);
                let held = agenda.held.remove(&node).unwrap_or_default();
                for (after, message) in held {
                    match after <= upto {
                        true => agenda.send(at_us, message),
                        false => agenda.held.entry(node).or_default().push((after, message)),
                    }
                }
                Input::Durable(upto)
            }
            Event::Flush => {
                let member = self.member(node);
                member.freeze(FreezeReason::Due);
                while member.versions().frozen_layers() > 0 {
                    member.versions().flush().expect("memory takes all");
                }
                Input::Flushed
            }
        };
        let out = self.member(node).step(&self.now(), input).expect("nothing fails");
        self.see_to(node, out);
    }

    /// What operations of a node have left to be done.
    pub fn drain(&self, node: u32) {
        let out = self.member(node).drain(&self.now());
        self.see_to(node, out);
    }

    fn see_to(&self, node: u32, out: Outputs) {
        let now_us = self.now_us();
        let mut agenda = self.agenda.lock();
        if let Some(last) = out.records.last() {
            agenda.add(now_us, node, Event::Synced(last.number));
        }
        let durable = agenda.durable.get(&node).copied().unwrap_or(RecordNumber(0));
        for outgoing in out.messages {
            match outgoing.after {
                Some(after) if after > durable => {
                    agenda.held.entry(node).or_default().push((after, outgoing.message));
                }
                _ => agenda.send(now_us, outgoing.message),
            }
        }
        if out.flush {
            agenda.add(now_us, node, Event::Flush);
        }
        if let Some(timer) = out.timer {
            let after_us = timer.physical_us().saturating_sub(self.now().interval.earliest().physical_us()) + 1;
            agenda.add(now_us + after_us.min(TICK_US), node, Event::Due);
        }
        drop(agenda);
        out.wakers.into_iter().for_each(Waker::wake);
        for read in out.reads {
            let out = self.member(node).read(|| self.now(), read).expect("nothing fails");
            self.see_to(node, out);
        }
    }
}

fn reading(us: u64) -> Reading {
    Reading::with_error(us * 1000, CLOCK_ERROR_US * 1000)
}
