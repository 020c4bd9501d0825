//! The trait by which everybody else reads time: TrueTime's calls on top of one cheap `read`.

use clock::{Interval, Reading, Status, Timestamp};
use std::time::Duration;

/// The longest nap of [`ClockSource::wait_until_after`] before the clock is read again: the bound may have changed meanwhile.
const NAP_MAX: Duration = Duration::from_millis(10);

/// There is no interval that may be relied upon now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the clock source is {status}: it gives no bound that may be relied upon; see its report, or wait for synchronisation"
)]
pub struct Untrusted {
    /// What the source says of itself.
    pub status: Status,
}

/// A bounded clock.
pub trait ClockSource: Send + Sync {
    /// The current reading. Never blocks, never asks a daemon: cheap enough for every transaction.
    fn read(&self) -> Reading;
    /// The source's name, as `--clock` spells it.
    fn name(&self) -> String;
    /// The source in use, where the clock chooses among several (`auto`).
    fn source(&self) -> String {
        self.name()
    }

    /// What the source follows, or why it gives nothing, for people; empty where there is nothing to say. Not for the hot path.
    fn detail(&self) -> String {
        String::new()
    }

    /// `[earliest, latest]`, if the bound may be relied upon.
    ///
    /// # Errors
    /// [`Untrusted`] when the reading is void, unknown or disrupted.
    fn now(&self) -> Result<Interval, Untrusted> {
        let reading = self.read();
        reading.trusted().ok_or(Untrusted { status: if reading.is_void() { Status::Unknown } else { reading.status } })
    }
    /// Whether `ts` is certainly past.
    ///
    /// # Errors
    /// [`Untrusted`], as [`ClockSource::now`].
    fn after(&self, ts: Timestamp) -> Result<bool, Untrusted> {
        Ok(self.now()?.is_past(ts))
    }
    /// Whether `ts` is certainly still to come.
    ///
    /// # Errors
    /// [`Untrusted`], as [`ClockSource::now`].
    fn before(&self, ts: Timestamp) -> Result<bool, Untrusted> {
        Ok(self.now()?.is_future(ts))
    }
    /// Blocks the calling thread until `ts` is certainly past (commit-wait).
    ///
    /// # Errors
    /// [`Untrusted`] as soon as the bound may no longer be relied upon.
    fn wait_until_after(&self, ts: Timestamp) -> Result<(), Untrusted> {
        wait_while(self, |now| (!now.is_past(ts)).then(|| ts.physical_us().saturating_mul(1000)))
    }
    /// Blocks the calling thread until `unix_ns`, nanoseconds since the Unix epoch, is certainly past.
    ///
    /// # Errors
    /// [`Untrusted`] as soon as the bound may no longer be relied upon.
    fn wait_until_after_ns(&self, unix_ns: u64) -> Result<(), Untrusted> {
        wait_while(self, |now| (now.earliest_ns <= unix_ns).then_some(unix_ns))
    }
}

/// Sleeps as long as `missing` names a time (nanoseconds since the Unix epoch) that `earliest` has yet to pass.
fn wait_while<S: ClockSource + ?Sized>(clock: &S, missing: impl Fn(&Interval) -> Option<u64>) -> Result<(), Untrusted> {
    loop {
        let now = clock.now()?;
        let Some(target_ns) = missing(&now) else { return Ok(()) };
        let nap = Duration::from_nanos(target_ns.saturating_sub(now.earliest_ns).max(1_000));
        std::thread::sleep(nap.min(NAP_MAX));
    }
}

impl<S: ClockSource + ?Sized> ClockSource for std::sync::Arc<S> {
    fn read(&self) -> Reading {
        (**self).read()
    }
    fn name(&self) -> String {
        (**self).name()
    }
    fn source(&self) -> String {
        (**self).source()
    }
    fn detail(&self) -> String {
        (**self).detail()
    }
}
