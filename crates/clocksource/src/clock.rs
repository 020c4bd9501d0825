//! The clock that everybody holds: a source, its cell, and what it last said.

use crate::auto::Auto;
use crate::cell::AnchorCell;
use crate::chrony::Chrony;
use crate::clockbound::ClockBound;
use crate::kernel::Kernel;
use crate::measurement::Probe;
use crate::moment::{self, Moment};
use crate::ntp::Ntp;
use crate::poller::Poller;
use crate::ptp::Ptp;
use crate::source::ClockSource;
use crate::spec::Spec;
use crate::tracker::{Event, Tracker};
use crate::vmclock::VmClock;
use clock::Reading;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often the poller asks the source. Between polls the bound opens at the drift rate: 50 ppm make 12.5 µs of it.
pub const POLL_EVERY: Duration = Duration::from_millis(250);

/// How a reading is made.
#[derive(Debug)]
enum Face {
    /// `CLOCK_REALTIME`, error 0.
    SameHost,
    /// `CLOCK_REALTIME`, a fixed error in nanoseconds.
    Static(u64),
    /// The published anchor.
    Anchored,
}

/// What the poller's side holds.
#[derive(Debug)]
struct Polled {
    probe: Box<dyn Probe>,
    tracker: Tracker,
    /// The hypervisor's disruption marker and its last value, on machines that have one.
    vmclock: Option<(VmClock, u64)>,
    /// What happened before anybody listened, for who does.
    unheard: Vec<Event>,
}

impl Polled {
    fn new(probe: Box<dyn Probe>, vmclock: Option<VmClock>) -> Self {
        let vmclock = vmclock.and_then(|v| v.disruption_marker().map(|m| (v, m)).ok());
        Polled { probe, tracker: Tracker::default(), vmclock, unheard: Vec::new() }
    }
    /// Whether the hypervisor disturbed the clock since the last call.
    fn moved(&mut self) -> bool {
        let Some((vmclock, last)) = &mut self.vmclock else { return false };
        let Ok(marker) = vmclock.disruption_marker() else { return false };
        std::mem::replace(last, marker) != marker
    }
}

/// What a clock says of itself, for `/health`, `/metrics` and people. Not for the hot path.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The source in use (what `auto` chose).
    pub source: String,
    /// What it follows, or why it gives nothing.
    pub detail: String,
    /// Polls so far.
    pub polls: u64,
    /// Polls that failed.
    pub failures: u64,
    /// The last failure, if the last poll failed.
    pub error: Option<String>,
}

/// What may be set besides the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Drift of an oscillator that a daemon disciplines, parts per billion. 50 ppm is what ClockBound assumes.
    pub max_drift_ppb: u32,
    /// Drift of an oscillator that nobody disciplines (`ntp`), parts per billion. Bare crystals and virtual machines reach 100 ppm.
    pub undisciplined_drift_ppb: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { max_drift_ppb: 50_000, undisciplined_drift_ppb: 200_000 }
    }
}

/// Why a source cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// `ptp` without a device, and no driver on this machine states its clock's error.
    #[error(
        "no PTP hardware clock of this machine states its error; name one and its error, for example ptp:/dev/ptp0,error=2us"
    )]
    NoPtpDevice,
    /// The thread that polls the source cannot be started.
    #[error("cannot start the thread that polls the clock source: {0}")]
    Thread(std::io::Error),
}

/// A bounded clock over one source.
#[derive(Debug)]
pub struct Clock {
    cell: AnchorCell,
    face: Face,
    spec: String,
    polled: Mutex<Option<Polled>>,
    report: Mutex<Report>,
    /// Somebody is woken in time when the system clock is set, so that readers need not look.
    is_watched: AtomicBool,
}

impl Clock {
    /// Opens a source and asks it once. A source that is there but not synchronised opens: its readings say `Unknown`.
    ///
    /// # Errors
    /// [`OpenError::NoPtpDevice`] where `ptp` names no device and none knows its error.
    pub fn open(spec: &Spec) -> Result<Arc<Self>, OpenError> {
        Self::open_with(spec, Settings::default())
    }
    /// As [`Clock::open`], with settings.
    ///
    /// # Errors
    /// As [`Clock::open`].
    pub fn open_with(spec: &Spec, settings: Settings) -> Result<Arc<Self>, OpenError> {
        let drift = settings.max_drift_ppb;
        let probe: Box<dyn Probe> = match spec {
            Spec::SameHost => return Ok(Self::build(Face::SameHost, None, spec.to_string())),
            Spec::Static(error) => {
                let error_ns = u64::try_from(error.as_nanos()).unwrap_or(u64::MAX);
                return Ok(Self::build(Face::Static(error_ns), None, spec.to_string()));
            }
            Spec::Kernel => Box::new(Kernel::default()),
            Spec::Chrony(address) => Box::new(Chrony::new(address.clone(), drift)),
            Spec::ClockBound(path) => Box::new(path.clone().map_or_else(ClockBound::usual, ClockBound::new)),
            Spec::Ptp(device) => {
                let device = device.clone().or_else(Ptp::usual_device).ok_or(OpenError::NoPtpDevice)?;
                Box::new(Ptp::new(device, drift))
            }
            Spec::Ntp(servers) => Box::new(Ntp::new(servers, settings.undisciplined_drift_ppb)),
            Spec::Auto => Box::new(Auto::new(drift)),
        };
        let clock = Self::build(Face::Anchored, Some(Polled::new(probe, VmClock::open().ok())), spec.to_string());
        clock.poll_unheard();
        Ok(clock)
    }

    /// A clock over a probe of the caller's own.
    pub fn with_probe(probe: Box<dyn Probe>) -> Arc<Self> {
        Self::with_probe_on(probe, VmClock::open().ok())
    }
    /// As [`Clock::with_probe`], on a machine whose hypervisor tells of disruptions by the device `vmclock`.
    pub fn with_probe_on(probe: Box<dyn Probe>, vmclock: Option<VmClock>) -> Arc<Self> {
        let name = probe.name().to_string();
        Self::build(Face::Anchored, Some(Polled::new(probe, vmclock)), name)
    }

    fn build(face: Face, polled: Option<Polled>, spec: String) -> Arc<Self> {
        let report = Report { source: spec.clone(), ..Report::default() };
        Arc::new(Clock {
            cell: AnchorCell::default(),
            face,
            spec,
            polled: Mutex::new(polled),
            report: Mutex::new(report),
            is_watched: AtomicBool::new(false),
        })
    }

    /// Whether readings need somebody to call [`Clock::poll`] ([`Clock::start_poller`] does).
    pub fn needs_polling(&self) -> bool {
        matches!(self.face, Face::Anchored)
    }

    /// Asks the source before anybody listens. Its status is in the first reading; all else that happened is for [`Clock::start_poller`].
    fn poll_unheard(&self) {
        let events = self.poll();
        if let Some(polled) = self.polled.lock().unwrap_or_else(|e| e.into_inner()).as_mut() {
            polled.unheard = events.into_iter().filter(|e| !matches!(e, Event::Status { .. })).collect();
        }
    }

    /// Asks the source once and publishes what follows. May block for some hundred milliseconds.
    pub fn poll(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let mut polled = self.polled.lock().unwrap_or_else(|e| e.into_inner());
        let Some(polled) = polled.as_mut() else { return events };
        let moved = polled.moved();
        let Polled { probe, tracker, .. } = polled;
        let answer = probe.probe();
        events.append(&mut probe.take_events());
        if moved {
            tracker.disrupt(answer.as_ref().map_or_else(|_| Moment::capture(), |m| m.moment), &mut events);
        }
        let moment = answer.as_ref().map_or_else(|_| Moment::capture(), |m| m.moment);
        {
            let mut report = self.report.lock().unwrap_or_else(|e| e.into_inner());
            report.polls += 1;
            report.source = probe.source();
            report.failures += u64::from(answer.is_err());
            report.error = answer.as_ref().err().map(ToString::to_string);
            report.detail = answer.as_ref().map_or_else(ToString::to_string, |m| m.detail.clone());
        }
        self.cell.publish(tracker.step(moment, answer, &mut events));
        events
    }

    /// Whether the system clock was set since the last poll; `false` while somebody waits who would have been woken.
    #[inline]
    fn was_set(&self, now_ns: u64, ahead_ns: i64) -> bool {
        !self.is_watched.load(Ordering::Relaxed) && moment::was_set(now_ns, ahead_ns)
    }

    /// Whether somebody waits who is woken within microseconds when the system clock is set, and calls [`Clock::look_for_steps`]: while nobody
    /// does, as during a poll, every reader looks for itself.
    pub(crate) fn set_is_watched(&self, is_watched: bool) {
        self.is_watched.store(is_watched, Ordering::Relaxed);
    }

    /// Somebody may have set the system clock: from now on, before the source is asked, nothing is believed that moves with it.
    pub(crate) fn look_for_steps(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let mut polled = self.polled.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(anchor) = polled.as_mut().and_then(|p| p.tracker.notice_step(Moment::capture(), &mut events)) {
            self.cell.publish(anchor);
        }
        events
    }

    /// Starts the thread that polls until the returned guard is dropped. Each event is given to `on_event`, first those of the poll that opened the clock.
    ///
    /// # Errors
    /// [`OpenError::Thread`].
    pub fn start_poller(
        self: &Arc<Self>,
        mut on_event: impl FnMut(&Event) + Send + 'static,
    ) -> Result<Poller, OpenError> {
        let unheard =
            self.polled.lock().unwrap_or_else(|e| e.into_inner()).as_mut().map(|p| std::mem::take(&mut p.unheard));
        unheard.unwrap_or_default().iter().for_each(&mut on_event);
        Poller::start(Arc::clone(self), POLL_EVERY, on_event).map_err(OpenError::Thread)
    }

    /// What the clock says of itself.
    pub fn report(&self) -> Report {
        self.report.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
}

impl ClockSource for Clock {
    #[inline]
    fn read(&self) -> Reading {
        match self.face {
            Face::Anchored => {
                let anchor = self.cell.load();
                let now_ns = moment::boot_ns();
                let asleep_ns = || now_ns.wrapping_sub(moment::mono_ns()).cast_signed();
                anchor.read(now_ns, moment::raw_ns, asleep_ns, |ahead_ns| self.was_set(now_ns, ahead_ns))
            }
            Face::SameHost => Reading::exact(moment::real_ns()),
            Face::Static(error_ns) => Reading::with_error(moment::real_ns(), error_ns),
        }
    }
    fn name(&self) -> String {
        self.spec.clone()
    }
    fn source(&self) -> String {
        self.report().source
    }
    fn detail(&self) -> String {
        self.report().detail
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Leap, Measurement, ProbeError};
    use clock::{Interval, Status};
    use std::sync::mpsc;

    /// A source within a sandbox that forbids `adjtimex`.
    #[derive(Debug)]
    struct Sandboxed;

    impl Probe for Sandboxed {
        fn name(&self) -> &'static str {
            "sandboxed"
        }
        fn probe(&mut self) -> Result<Measurement, ProbeError> {
            let moment = Moment { steering_ppb: None, ..Moment::capture() };
            Ok(Measurement {
                moment,
                interval: Interval { earliest_ns: moment.real_ns - 1_000_000, latest_ns: moment.real_ns + 1_000_000 },
                updated_ns: moment.raw_ns,
                max_drift_ppb: 50_000,
                steady_ppb: None,
                follows_slews: false,
                remembers: crate::Memory::Unstepped,
                status: Status::Synchronized,
                leap: Leap::None,
                detail: String::new(),
            })
        }
    }

    /// The poll that opens a clock comes before its poller: what it finds was told to nobody.
    #[test]
    fn what_the_first_poll_finds_is_heard() {
        let clock = Clock::with_probe_on(Box::new(Sandboxed), None);
        clock.poll_unheard();
        let (told, heard) = mpsc::channel();
        let poller = clock.start_poller(move |event| told.send(event.to_string()).unwrap()).unwrap();
        drop(poller);
        let heard: Vec<String> = heard.iter().collect();
        assert_eq!(heard.iter().filter(|e| e.contains("adjtimex")).count(), 1, "{heard:?}");
        assert!(heard[0].contains("adjtimex"), "{heard:?}");
    }
}
