//! What happens to the clock, and what must hold then.
//!
//! Checked at every turn of a session: a trusted reading of an honest source contains true time. Checked at every begin: what needs
//! the bound (`strict`, and with peers `hybrid`) has one within the limits, and is not served while peers prove it wrong. Checked at
//! every change of the level: a node whose bound holds is not fenced.

use super::{Event, World};
use crate::clock::{POLL_EVERY_NS, Trouble};
use crate::machine::Failure;
use clock::{Change, Interval, Level, Reason};
use clocksource::Event as ClockEvent;
use node::{Input, Outputs, PeerWord};

/// Other nodes that send messages, with clocks that are right.
pub(super) const PEERS: u32 = 3;
/// Each sends one this often, nanoseconds.
pub(super) const PEER_EVERY_NS: u64 = 50_000_000;
/// The error of their clocks, nanoseconds.
const PEER_ERROR_NS: u64 = 1_000_000;
/// After all peers had proof for this long (and a tick passed) the node must be fenced, nanoseconds.
const FENCED_AFTER_NS: u64 = 400_000_000;

impl World {
    /// True time less what the machine slept: deadlines count only what it was awake.
    pub(super) fn awake_ns(&self) -> u64 {
        self.true_ns() - self.slept_ns
    }

    /// A trusted reading contains true time, if the daemon is honest.
    pub(super) fn check_bound(&self) -> Result<(), Failure> {
        let miss_ns = self.machine.clock.miss_ns(self.true_ns());
        if miss_ns == 0 || !self.bounds_hold() {
            return Ok(());
        }
        let (now, name_ns) = (self.machine.now(self.true_ns()), self.machine.clock.name_ns(self.true_ns()));
        Err(Failure(format!("true time {name_ns} is {miss_ns} ns outside of the trusted reading {now:?}")))
    }

    pub(super) fn trouble(&mut self) -> Result<(), Failure> {
        self.check_bound()?;
        let Some(trouble) = self.machine.clock.trouble(&mut self.rng) else { return Ok(()) };
        self.trace(&format!("{trouble:?}"));
        if let Trouble::Sleep(ns) | Trouble::Move(ns) = trouble {
            self.time_passes_unseen(ns);
        }
        let events = self.machine.clock.suffer(self.true_ns(), trouble, &mut self.rng);
        self.note_clock(&events);
        if trouble == Trouble::Die && self.machine.clock.is_left_slewing(self.true_ns()) {
            self.probes.hit("clock left slewing");
        }
        self.check_bound()
    }

    pub(super) fn poll(&mut self) {
        let events = self.machine.clock.poll(self.true_ns(), &mut self.rng);
        self.note_clock(&events);
        let era = self.era;
        self.after(POLL_EVERY_NS, Event::Poll(era));
    }

    /// The machine does nothing for so long: all that it has planned comes later.
    fn time_passes_unseen(&mut self, ns: u64) {
        self.agenda.stand_still(ns);
        self.slept_ns += ns;
        self.due.iter_mut().for_each(|when| *when += ns);
        self.timer = self.timer.map(|when| when + ns);
    }

    /// A message of a peer: it carries the peer's interval, and its proof against the node's last one.
    pub(super) fn peer(&mut self, peer: u32, out: &mut Vec<Outputs>) -> Result<(), Failure> {
        let name_ns = self.machine.clock.name_ns(self.true_ns());
        let interval = Interval { earliest_ns: name_ns - PEER_ERROR_NS, latest_ns: name_ns + PEER_ERROR_NS };
        let now = self.machine.now(self.true_ns());
        // What the node claims now is answered with the peer's next message.
        let wrong_ns = now.trusted().map_or(0, |ours| ours.earliest_ns.saturating_sub(interval.latest_ns));
        let accuses_ns = self.accusations.insert(peer, wrong_ns).unwrap_or(0);
        let proof = now.trusted().is_some_and(|ours| !ours.meets(interval));
        self.proofs.insert(peer, proof);
        let all = self.proofs.values().filter(|proof| **proof).count() == PEERS as usize;
        self.proved_ns = all.then(|| self.proved_ns.unwrap_or(self.true_ns()));
        let delay = self.rng.range(PEER_EVERY_NS / 2, PEER_EVERY_NS);
        self.after(delay, Event::Peer(peer));
        let Some(node) = self.machine.node() else {
            // It hears nothing.
            (self.proved_ns, self.proofs, self.accusations) = Default::default();
            return Ok(());
        };
        let heard = Input::Heard(PeerWord { peer, claim: Some(interval), accuses_ns });
        out.push(node.step(&now, heard).map_err(|e| Failure(format!("the node fails: {e}")))?);
        Ok(())
    }

    /// Whether the node has had time to learn that its bound is wrong.
    pub(super) fn is_proved(&self) -> bool {
        self.proved_ns.is_some_and(|since| self.true_ns() - since > FENCED_AFTER_NS)
    }

    /// The changes of the level. Peers whose clocks are right have no proof against a bound that holds.
    pub(super) fn note_levels(&mut self, changes: &[Change]) -> Result<(), Failure> {
        for change in changes {
            self.trace(&change.to_string());
            if self.bounds_hold() && matches!(change.reason, Reason::Proofs { .. }) {
                return Err(Failure(format!("fenced although its bound holds: {change}")));
            }
            self.probes.hit(match (change.from, change.to) {
                (Level::Waiting, _) => "clock: the gate opened",
                (_, Level::Waiting) => "clock: waiting",
                (Level::Untrusted, _) => "clock: trusted again",
                (_, Level::Synchronized) => "clock: synchronized again",
                (Level::TooWide, Level::Degraded) => "clock: from too wide to degraded",
                (_, Level::Degraded) => "clock: degraded",
                (_, Level::TooWide) => match change.reason {
                    Reason::Error { .. } => "clock: too wide by its error",
                    Reason::Void { .. } => "clock: too wide as it expired",
                    _ => "clock: too wide by its status",
                },
                (_, Level::Untrusted) => match change.reason {
                    Reason::SetBack { .. } => "clock: untrusted as it was set back",
                    _ => "clock: untrusted by proofs",
                },
            });
        }
        Ok(())
    }

    pub(super) fn note_clock(&mut self, events: &[ClockEvent]) {
        for event in events {
            self.trace(&event.to_string());
            self.probes.hit(match event {
                ClockEvent::Status { .. } => "clock source changed its status",
                ClockEvent::Stepped(_) => "clock stepped",
                ClockEvent::Suspended(_) => "machine slept",
                ClockEvent::Moved => "machine moved",
                ClockEvent::Contradiction(_) => "clock source contradicted itself",
                ClockEvent::Leap(_) => "leap second announced",
                ClockEvent::SteeringUnknown => "clock steering unknown",
                ClockEvent::Switched { .. } => "clock source switched",
            });
        }
    }
}
