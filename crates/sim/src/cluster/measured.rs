//! Runs that are measured, not judged: no phases, no faults but those that the experiment asks for.

use super::place::{Heard, System};
use super::world::{Cluster, Event};
use crate::clock::POLL_EVERY_NS;
use crate::machine::Failure;

impl<S: System> Cluster<S> {
    /// All machines start, and serve within so long, nanoseconds.
    ///
    /// # Errors
    /// What does not.
    pub fn found(&mut self, within_ns: u64) -> Result<(), Failure> {
        for m in 0..self.hosts.len() {
            self.start(m)?;
            let first = self.rng.below(POLL_EVERY_NS);
            self.agenda.after(first, Event::Poll(m));
        }
        let begun_ns = self.agenda.now_ns();
        self.until(begun_ns + within_ns, |world| world.system.waits_for(&world.bodies(), begun_ns))
    }

    /// All clients may begin.
    pub fn begin_clients(&mut self) {
        for c in 0..self.system.clients() {
            self.client(c, Heard::Begin);
        }
    }

    /// So much time passes, nanoseconds.
    ///
    /// # Errors
    /// What broke a rule that ends the run.
    pub fn go_on(&mut self, ns: u64) -> Result<(), Failure> {
        let end_ns = self.agenda.now_ns() + ns;
        while self.agenda.next_ns().is_some_and(|next| next < end_ns) {
            self.step()?;
        }
        Ok(())
    }

    /// A machine loses power, and does not come back.
    pub fn kill_for_good(&mut self, m: usize) {
        self.crash(m, true);
    }

    /// True time, nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.agenda.now_ns()
    }
}
