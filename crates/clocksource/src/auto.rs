//! `auto`: the best source that this machine has, chosen anew when one disappears or a better one appears.
//!
//! | rank | source | when |
//! | --- | --- | --- |
//! | 1 | `ptp` | a hardware clock whose driver knows its error |
//! | 2 | `clockbound` | its segment exists |
//! | 3 | `chrony` | it answers |
//! | 4 | `kernel` | adjtimex says synchronised |
//!
//! Rank decides, not width: the kernel's estimate is narrower than chrony's because it leaves out what is still being slewed.
//! The source in use is kept until it fails [`FAILURES_MAX`] times in a row; better ones are tried every [`RETRY_NS`], and any every
//! [`RETRY_NONE_NS`] while there is none.
//!
//! **Invariants.**
//! 1. A change of source is never a jump: for [`HANDOVER_NS`] the interval contains both the old source's, carried on at its
//!    drift rate, and the new one's. Where the two do not meet one of them is wrong: nothing is covered then, and the tracker sees the
//!    contradiction.
//! 2. A synchronised source is chosen before one that runs free, and that (the best such one) only while there is no other.
//!
//! **Caveats.** NTP servers cannot be guessed, so `ntp` is never chosen; without any source the clock stays `Unknown`, which `auto`
//! says with the reasons of all of them.

use crate::chrony::{Chrony, ChronyAddress};
use crate::clockbound::ClockBound;
use crate::kernel::Kernel;
use crate::measurement::{Measurement, Probe, ProbeError};
use crate::moment;
use crate::ptp::Ptp;
use crate::tracker::Event;
use clock::Status;

const NAME: &str = "auto";
/// Failures in a row after which another source is looked for; until then the clock runs free for a second.
pub const FAILURES_MAX: u32 = 4;
/// Between looks for a better source (nanoseconds).
pub const RETRY_NS: u64 = 10_000_000_000;
/// Between looks for any source while there is none (nanoseconds): a daemon that has just started is found soon.
pub const RETRY_NONE_NS: u64 = 1_000_000_000;
/// How long after a change of source the interval covers both (nanoseconds).
pub const HANDOVER_NS: u64 = 10_000_000_000;

/// Makes a probe, if the machine has what it needs.
pub type Candidate = Box<dyn FnMut() -> Option<Box<dyn Probe>> + Send>;

/// The probe.
pub struct Auto {
    candidates: Vec<Candidate>,
    chosen: Option<(usize, Box<dyn Probe>)>,
    failures: u32,
    looked_ns: u64,
    last: Option<Measurement>,
    /// What the previous source said last, and until when it counts.
    handover: Option<(Measurement, u64)>,
    retry_ns: u64,
    complaints: Vec<String>,
    events: Vec<Event>,
}

impl std::fmt::Debug for Auto {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Auto").field("chosen", &self.chosen).field("failures", &self.failures).finish_non_exhaustive()
    }
}

impl Auto {
    /// Chooses among what this machine has.
    pub fn new(max_drift_ppb: u32) -> Self {
        Self::among(
            vec![
                Box::new(move || Ptp::usual_device().map(|d| Box::new(Ptp::new(d, max_drift_ppb)) as Box<dyn Probe>)),
                Box::new(|| ClockBound::is_here().then(|| Box::new(ClockBound::usual()) as Box<dyn Probe>)),
                Box::new(move || Some(Box::new(Chrony::new(ChronyAddress::Usual, max_drift_ppb)))),
                Box::new(|| Some(Box::<Kernel>::default())),
            ],
            RETRY_NS,
        )
    }
    /// Chooses among `candidates`, best first, and looks for a better one every `retry_ns`.
    pub fn among(candidates: Vec<Candidate>, retry_ns: u64) -> Self {
        Auto {
            candidates,
            chosen: None,
            failures: 0,
            looked_ns: 0,
            last: None,
            handover: None,
            retry_ns,
            complaints: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Tries the candidates above `below`, best first.
    fn look(&mut self, below: usize, why: &str) -> Option<Measurement> {
        self.looked_ns = moment::boot_ns();
        self.complaints.clear();
        let mut running_free = None;
        for (rank, make) in self.candidates.iter_mut().enumerate().take(below) {
            let Some(mut probe) = make() else { continue };
            match probe.probe() {
                Ok(m) if m.status == Status::Synchronized => return Some(self.choose(rank, probe, m, why)),
                Ok(m) => {
                    self.complaints.push(format!("{}: {} ({})", probe.name(), m.status, m.detail));
                    if m.status == Status::FreeRunning && self.chosen.is_none() {
                        running_free.get_or_insert((rank, probe, m));
                    }
                }
                Err(e) => self.complaints.push(e.to_string()),
            }
        }
        let (rank, probe, m) = running_free?;
        Some(self.choose(rank, probe, m, "no source is synchronised"))
    }

    fn choose(&mut self, rank: usize, probe: Box<dyn Probe>, m: Measurement, why: &str) -> Measurement {
        let to = probe.name().to_string();
        let from = self.chosen.as_ref().map_or(String::new(), |(_, p)| p.name().into());
        self.handover = self.last.take().map(|last| (last, m.moment.boot_ns.saturating_add(HANDOVER_NS)));
        self.events.push(Event::Switched { from, to, reason: format!("{why}; {}", m.detail) });
        (self.chosen, self.failures) = (Some((rank, probe)), 0);
        m
    }

    fn measure(&mut self) -> Result<Measurement, ProbeError> {
        let now = moment::boot_ns();
        let rank = self.chosen.as_ref().map_or(self.candidates.len(), |(rank, _)| *rank);
        let retry_ns = if self.chosen.is_some() { self.retry_ns } else { self.retry_ns.min(RETRY_NONE_NS) };
        if rank > 0 && (self.looked_ns == 0 || now.saturating_sub(self.looked_ns) >= retry_ns) {
            let why = if self.chosen.is_some() { "a better source appeared" } else { "the best source available" };
            if let Some(m) = self.look(rank, why) {
                return Ok(m);
            }
        }
        let outcome = match &mut self.chosen {
            Some((_, probe)) => probe.probe(),
            None => {
                return Err(ProbeError::Unsynchronised { source_name: NAME, reason: self.complaints.join("; ") });
            }
        };
        let lost = match &outcome {
            Ok(m) if m.status == Status::Synchronized => {
                self.failures = 0;
                return outcome;
            }
            Ok(m) => m.detail.clone(),
            Err(e) => e.to_string(),
        };
        self.failures = self.failures.saturating_add(1);
        if self.failures.is_multiple_of(FAILURES_MAX) {
            let why = format!("the old source was lost: {lost}");
            if let Some(m) = self.look(self.candidates.len(), &why) {
                return Ok(m);
            }
        }
        outcome
    }

    /// Widens a measurement to cover the previous source's word while the handover lasts.
    fn cover(&mut self, mut m: Measurement) -> Measurement {
        let Some((old, until_ns)) = &self.handover else { return m };
        let old = old.carried_to(&m.moment);
        if m.moment.boot_ns <= *until_ns && old.meets(m.interval) {
            m.interval = old.hull(m.interval);
            // What the old source said has nothing to do with how the new one steers the clock.
            m.follows_slews = false;
        } else {
            self.handover = None;
        }
        m
    }
}

impl Probe for Auto {
    fn name(&self) -> &'static str {
        NAME
    }
    fn source(&self) -> String {
        self.chosen.as_ref().map_or_else(|| NAME.into(), |(_, p)| p.source())
    }
    fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
    fn probe(&mut self) -> Result<Measurement, ProbeError> {
        let measured = self.measure()?;
        let covered = self.cover(measured);
        if covered.status == Status::Synchronized {
            self.last = Some(covered.clone());
        }
        Ok(covered)
    }
}
