//! A machine is lost: its ranges are to be led again, in a bounded time.

use super::Nodes;
use super::body::Body;
use crate::cluster::Place;
use crate::machine::Failure;
use std::collections::BTreeSet;

/// Which machines are off, and since when it is these.
#[derive(Debug, Default)]
pub struct Loss {
    off: BTreeSet<usize>,
    since_ns: u64,
    /// Those that know all leaders again.
    found: BTreeSet<usize>,
}

impl Loss {
    /// All machines are off.
    pub fn new(machines: usize) -> Self {
        Loss { off: (0..machines).collect(), ..Loss::default() }
    }

    fn changed(&mut self, true_ns: u64) {
        self.since_ns = true_ns;
        self.found.clear();
    }

    /// A machine starts.
    pub fn started(&mut self, machine: usize, true_ns: u64) {
        self.off.remove(&machine);
        self.changed(true_ns);
    }

    /// A machine dies.
    pub fn died(&mut self, machine: usize, true_ns: u64) {
        self.off.insert(machine);
        self.changed(true_ns);
    }
}

impl Body {
    /// A machine that goes on looks whether it knows a leader of each of its ranges, and not the one that died.
    pub fn look_for_leaders(&self, system: &mut Nodes, place: &mut Place<'_, ()>) -> Result<(), Failure> {
        let most_ns = system.workload.led_again_ms * 1_000_000;
        let (1, Some(lost)) = (system.loss.off.len(), system.loss.off.first().copied()) else { return Ok(()) };
        if most_ns == 0 || system.loss.found.contains(&place.machine) {
            return Ok(());
        }
        let lost = system.node_of(lost);
        let leader = |range| self.member.status(range).and_then(|status| status.leader);
        let ranges = self.member.ranges();
        let orphans = ranges.iter().filter(|range| leader(**range).is_none_or(|leader| leader == lost)).count();
        let after_ms = (place.true_ns - system.loss.since_ns) / 1_000_000;
        if orphans > 0 && place.true_ns - system.loss.since_ns > most_ns {
            return Err(Failure(format!(
                "{orphans} of {} ranges have no leader on machine {} {after_ms} ms after {lost} died",
                ranges.len(),
                place.machine
            )));
        }
        if orphans == 0 {
            system.loss.found.insert(place.machine);
            place.note(format!("all {} ranges have leaders {after_ms} ms after {lost} died", ranges.len()));
            place.probes.hit("all ranges of a lost machine were led again");
        }
        Ok(())
    }
}
