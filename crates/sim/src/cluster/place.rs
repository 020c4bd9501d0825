//! What runs on the machines, and what it sees and does.

use super::network::Class;
use super::service::Model;
use crate::machine::Failure;
use crate::probes::Probes;
use crate::rng::Rng;
use bytes::Bytes;
use clock::Reading;
use core::fmt;
use store::disk::fake::FakeDisk;

/// What happens to what runs on a machine.
#[derive(Clone, Debug)]
pub enum Input<T> {
    /// Time passes.
    Tick,
    /// A message of another machine: late, twice, out of order perhaps.
    Peer {
        /// From which.
        from: usize,
        /// As it was sent.
        bytes: Bytes,
    },
    /// A client says something.
    Ask {
        /// Which.
        client: usize,
        /// What.
        talk: T,
    },
    /// The sync that was asked for is done.
    Synced,
    /// A timer of this number rings.
    Timer(u64),
}

/// What is done by what runs on a machine.
#[derive(Clone, Debug)]
pub enum Act<T> {
    /// A message to another machine.
    Send(usize, Class, Bytes),
    /// An answer to a client.
    Tell(usize, T),
    /// The disk should sync; at most one at a time.
    Sync,
    /// A timer should ring after so many nanoseconds.
    After(u64, u64),
}

/// A machine, as what runs on it sees it for one input.
pub struct Place<'w, T> {
    /// Its number.
    pub machine: usize,
    /// True time: for checks, never for decisions.
    pub true_ns: u64,
    /// What its clock says.
    pub now: Reading,
    /// Its disk.
    pub disk: &'w FakeDisk,
    /// Nobody should begin anything new.
    pub draining: bool,
    /// Chance.
    pub rng: &'w mut Rng,
    /// Rare paths.
    pub probes: &'w mut Probes,
    /// What is done.
    pub acts: Vec<Act<T>>,
    /// Lines for the trace.
    pub notes: Vec<String>,
}

impl<T> Place<'_, T> {
    /// Does something.
    pub fn act(&mut self, act: Act<T>) {
        self.acts.push(act);
    }
    /// Says something in the trace.
    pub fn note(&mut self, line: String) {
        self.notes.push(line);
    }
}

/// What a client hears.
#[derive(Clone, Debug)]
pub enum Heard<T> {
    /// It may begin.
    Begin,
    /// A timer of this number rings.
    Timer(u64),
    /// A machine says something.
    Answer(usize, T),
}

/// A client's side of one call.
pub struct Desk<'w, T> {
    /// Its number.
    pub client: usize,
    /// True time: a client writes it down.
    pub true_ns: u64,
    /// No new requests.
    pub draining: bool,
    /// How many machines there are.
    pub machines: usize,
    /// Chance.
    pub rng: &'w mut Rng,
    /// Rare paths.
    pub probes: &'w mut Probes,
    /// What it says to whom.
    pub asks: Vec<(usize, T)>,
    /// Timers that should ring: after so many nanoseconds, with these numbers.
    pub timers: Vec<(u64, u64)>,
    /// Lines for the trace.
    pub notes: Vec<String>,
}

/// What an operator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Hand over what is led here.
    Transfer,
    /// Hand over all that is led here: it will stop.
    Leave,
    /// Change who is a member.
    Members,
    /// Write the state down, and drop the log before it.
    Truncate,
    /// Cut something in two.
    Split,
}

/// What runs on the machines of a world, and those who ask it.
pub trait System {
    /// What runs on one machine.
    type Body;
    /// What clients and machines say to each other.
    type Talk: Clone + fmt::Debug;

    /// Nanoseconds between two ticks.
    const TICK_NS: u64 = 100_000_000;

    /// Starts on a machine, from what its disk holds.
    fn start(&mut self, place: &mut Place<'_, Self::Talk>) -> Result<Self::Body, Failure>;
    /// One input.
    fn input(
        &mut self,
        body: &mut Self::Body,
        place: &mut Place<'_, Self::Talk>,
        input: Input<Self::Talk>,
    ) -> Result<(), Failure>;
    /// The power fails in the middle of a sync: what was being written is partly on the disk.
    fn half_synced(&mut self, body: &mut Self::Body);
    /// It died: what is left of it.
    fn died(&mut self, machine: usize, body: Self::Body, true_ns: u64);
    /// The machine comes back with an empty disk.
    fn wiped(&mut self, machine: usize);
    /// What a machine holds beside its disk is remembered, to go back to it.
    fn keep(&mut self, machine: usize) {
        let _ = machine;
    }
    /// The machine comes back with what was remembered.
    fn goes_back(&mut self, machine: usize) {
        let _ = machine;
    }
    /// Whether some of those that run would not hear what was just started on a machine, for what it has forgotten.
    fn is_refused(&self, bodies: &[Option<&Self::Body>], machine: usize) -> bool {
        let _ = (bodies, machine);
        false
    }
    /// Whether everything would survive if a machine came back with an empty disk.
    fn may_wipe(&self, bodies: &[Option<&Self::Body>]) -> bool;
    /// Whether it leads anything.
    fn leads(&self, body: &Self::Body) -> bool;
    /// An operator asks for something, where there is something to be done.
    fn operate(
        &mut self,
        body: &mut Self::Body,
        place: &mut Place<'_, Self::Talk>,
        operation: Operation,
    ) -> Result<(), Failure>;

    /// How many clients there are.
    fn clients(&self) -> usize;
    /// A client hears something.
    fn client(&mut self, desk: &mut Desk<'_, Self::Talk>, heard: Heard<Self::Talk>);
    /// How many bytes this is on the wire.
    fn talk_bytes(&self, talk: &Self::Talk) -> usize;
    /// What an input costs on a core of a machine, nanoseconds; `None`: what the model says of its bytes.
    fn cost_ns(&self, _machine: usize, _input: &Input<Self::Talk>, _model: &Model) -> Option<u64> {
        None
    }

    /// What does not serve again since everything healed at this true time; `None`: all does.
    fn waits_for(&self, bodies: &[Option<&Self::Body>], healed_ns: u64) -> Option<String>;
    /// Nobody asks any more: what is not at rest yet.
    fn restless(&self, bodies: &[Option<&Self::Body>]) -> Option<String>;
    /// A picture of all that is stored, which a loss of power may not change.
    fn stored(&self, bodies: &[Option<&Self::Body>]) -> Result<Vec<String>, Failure>;
    /// Whether one picture of [`System::stored`] may follow another over a loss of power.
    fn may_follow(&self, before: &str, after: &str) -> bool {
        before == after
    }
}
