//! The clock that everybody holds: a source, its cell, and what it last said.

use crate::cell::AnchorCell;
use crate::kernel::Kernel;
use crate::measurement::Probe;
use crate::moment::{self, Moment};
use crate::poller::Poller;
use crate::source::ClockSource;
use crate::spec::Spec;
use crate::tracker::{Event, Tracker};
use clock::Reading;
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
    /// The published anchor over `CLOCK_BOOTTIME`.
    Anchored,
}

/// What the poller's side holds.
#[derive(Debug)]
struct Polled {
    probe: Box<dyn Probe>,
    tracker: Tracker,
}

/// What a clock says of itself, for `/health`, `/metrics` and people. Not for the hot path.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The source in use, as `--clock` spells it.
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

/// Why a source cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
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
}

impl Clock {
    /// Opens a source and asks it once. A source that is there but not synchronised opens: its readings say `Unknown`.
    ///
    /// # Errors
    /// Where this build or machine cannot have the source at all.
    pub fn open(spec: &Spec) -> Result<Arc<Self>, OpenError> {
        let (face, probe): (Face, Option<Box<dyn Probe>>) = match spec {
            Spec::SameHost => (Face::SameHost, None),
            Spec::Static(error) => (Face::Static(u64::try_from(error.as_nanos()).unwrap_or(u64::MAX)), None),
            Spec::Kernel => (Face::Anchored, Some(Box::new(Kernel))),
        };
        let clock = Self::build(face, probe, spec.to_string());
        clock.poll();
        Ok(clock)
    }

    /// A clock over a probe of the caller's own.
    pub fn with_probe(probe: Box<dyn Probe>) -> Arc<Self> {
        let name = probe.name().to_string();
        Self::build(Face::Anchored, Some(probe), name)
    }

    fn build(face: Face, probe: Option<Box<dyn Probe>>, spec: String) -> Arc<Self> {
        let report = Report { source: spec.clone(), ..Report::default() };
        let polled = probe.map(|probe| Polled { probe, tracker: Tracker::default() });
        Arc::new(Clock {
            cell: AnchorCell::default(),
            face,
            spec,
            polled: Mutex::new(polled),
            report: Mutex::new(report),
        })
    }

    /// Whether readings need somebody to call [`Clock::poll`] ([`Clock::start_poller`] does).
    pub fn needs_polling(&self) -> bool {
        matches!(self.face, Face::Anchored)
    }

    /// Asks the source once and publishes what follows. May block for some hundred milliseconds.
    pub fn poll(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let mut polled = self.polled.lock().unwrap_or_else(|e| e.into_inner());
        let Some(Polled { probe, tracker }) = polled.as_mut() else { return events };
        let answer = probe.probe();
        let moment = answer.as_ref().map_or_else(|_| Moment::capture(), |m| m.moment);
        {
            let mut report = self.report.lock().unwrap_or_else(|e| e.into_inner());
            report.polls += 1;
            report.failures += u64::from(answer.is_err());
            report.error = answer.as_ref().err().map(ToString::to_string);
            report.detail = answer.as_ref().map_or_else(ToString::to_string, |m| m.detail.clone());
        }
        self.cell.publish(tracker.step(moment, answer, &mut events));
        events
    }

    /// Starts the thread that polls until the returned guard is dropped. Each event is given to `on_event`.
    ///
    /// # Errors
    /// [`OpenError::Thread`].
    pub fn start_poller(self: &Arc<Self>, on_event: impl FnMut(&Event) + Send + 'static) -> Result<Poller, OpenError> {
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
                anchor.read(moment::boot_ns())
            }
            Face::SameHost => Reading::exact(moment::real_ns()),
            Face::Static(error_ns) => Reading::with_error(moment::real_ns(), error_ns),
        }
    }
    fn name(&self) -> String {
        self.spec.clone()
    }
}
