//! The tracker: from answers of a source to anchors. A state machine without a clock; time comes in as [`Moment`]s.
//!
//! **Problem.** A source's answer is only as good as the source. Daemons die, clocks are stepped, machines sleep and wake up
//! elsewhere, leap seconds come, and a daemon can contradict what it said a second ago.
//!
//! **Idea.** Each poll gives the tracker the kernel's clocks and either a measurement or an error.
//!
//! | what happened | how it shows | what is published |
//! | --- | --- | --- |
//! | all is well | a measurement | its interval, growing at the drift rate |
//! | the daemon died or lost its reference | an error, or status FreeRunning | the last anchor, growing on, FreeRunning |
//! | the clock was stepped | `realtime - boottime` moved | the last anchor (it does not depend on realtime), FreeRunning, until the source has heard from its reference again and what it says then meets that anchor; covered until the source has forgotten what was before |
//! | the clock is slewed, perhaps by a daemon that was killed meanwhile | the steering is not the one that the source wants in the long run | while the source answers, an anchor that opens as fast as the slew may lead it away; from the first poll without it, one over the bare oscillator |
//! | the machine was suspended | `boottime - monotonic` moved | Disrupted until the source has heard from its reference again |
//! | the hypervisor moved the machine | its VMClock marker changed | Disrupted until the source has heard from its reference again |
//! | the source contradicts itself | its new interval does not meet the old one | Disrupted until [`Tracker::CONSISTENT_AFTER`] news of its reference have been consistent |
//! | a leap second is announced | the measurement says so | the interval, widened by a second around the leap |
//!
//! **Invariants.**
//! 1. A published anchor is never narrower than what its source said.
//! 2. After a step or suspend nothing of the source is believed that it learned before. What counts is its news, not its answers: an
//!    answer may be repeated a thousand times before the source hears from its reference again.
//! 3. Without a measurement for [`VOID_AFTER_NS`] the reading is void.
//! 4. Lines over the boot-time clock are published only while that may move with the system clock: around a clock that its daemon
//!    leads to true time, right after the daemon said so. All others lie over the bare oscillator, which nobody slews.
//! 5. After a step the anchor from before it is covered too, for [`Tracker::CONSISTENT_AFTER`] news in a row that have nothing from before it
//!    ([`Memory`]): a source that is asked about a clock which somebody set behind its back mixes old samples with new ones, and its bound does not
//!    know. That anchor lies over the bare oscillator and is as true as it was; what the mixing source said meanwhile is not kept. Where it is lost (void, or the machine slept), is not believed itself, or there never was one, the
//!    source must be consistent for as long instead; not one that had just said that it knows nothing.
//!
//! **Caveats.** A step smaller than the noise of reading two clocks (about 1 µs) is not seen; it is inside every bound's rounding.
//! A step, the daemon's next look at its reference and the slew that follows may all come before the poller has woken up, which takes it some
//! microseconds, or milliseconds on a busy machine where it may not run in real time, or waits for its source. There and then readers look for themselves whether the clock was set
//! ([`Anchor::ahead_ns`]); for those microseconds a reading may be off by a twelfth of them, and by a step under 10 µs.
//! A step between the source's last update and the first poll of a new process is not seen either: the source must notice it.
//! A source that does not say how far back it goes is taken to keep what chronyd keeps (`kernel`) or what AWS has its chronyd keep (ClockBound 2).
//! A machine that was frozen, moved or asleep may leave its daemon with such a mixture, too. There is no anchor then that could be covered, and the
//! count of news alone, or their first, decides.
//! Between waking up and the first poll after it (at most one poll interval) a sleep that ended within
//! [`crate::anchor::LOOK_AFTER_NS`] of the last poll goes unnoticed; others the reader sees by itself.

use crate::anchor::{Anchor, Bare, LOOK_AFTER_NS};
use crate::measurement::{Leap, Measurement, ProbeError};
use crate::memory::Step;
use crate::moment::Moment;
use clock::{Interval, Status};
use std::fmt;

/// Without an answer for this long (nanoseconds) an anchor is void, however wide its bound (ClockBound: 1000 s). It counts from the
/// source's answer, not from its reference's: chronyd may hear from a server every 1024 s, and its bound has that age in it.
pub const VOID_AFTER_NS: u64 = 1_000_000_000_000;
/// The bound is widened from this long before an announced leap second (nanoseconds)...
pub const LEAP_BEFORE_NS: u64 = 10_000_000_000;
/// ...until this long after it: time for a daemon that slews the second away.
pub const LEAP_AFTER_NS: u64 = 60_000_000_000;

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;

/// Something that an operator wants to read in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The status changed.
    Status {
        /// Before.
        from: Status,
        /// After.
        to: Status,
        /// Half the width of the interval, nanoseconds.
        error_ns: u64,
        /// What the source says, or why it says nothing.
        reason: String,
    },
    /// Somebody stepped `CLOCK_REALTIME` by this many nanoseconds, forward positive.
    Stepped(i64),
    /// The machine was suspended for this many nanoseconds.
    Suspended(u64),
    /// The hypervisor moved or restored the machine.
    Moved,
    /// The kernel does not say by how much it steers its clocks.
    SteeringUnknown,
    /// The source contradicted itself: its new interval misses the old one by this many nanoseconds.
    Contradiction(u64),
    /// A leap second was announced, took place, or is over (`Leap::None`).
    Leap(Leap),
    /// `auto` chose another source.
    Switched {
        /// Before; empty at the start.
        from: String,
        /// After.
        to: String,
        /// Why.
        reason: String,
    },
}

impl Event {
    /// Whether it says that all is well, or well again: nobody need be woken for it.
    pub fn is_good_news(&self) -> bool {
        match self {
            Event::Status { to, .. } => *to == Status::Synchronized,
            Event::Leap(leap) => *leap == Leap::None,
            Event::Switched { from, .. } => from.is_empty(),
            Event::Stepped(_)
            | Event::Suspended(_)
            | Event::Moved
            | Event::SteeringUnknown
            | Event::Contradiction(_) => false,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Status { from, to, error_ns, reason } => {
                write!(f, "clock {from} -> {to}, error {:.3} ms: {reason}", *error_ns as f64 / 1e6)
            }
            Event::Stepped(by) => write!(f, "the system clock was stepped by {:.6} s", *by as f64 / 1e9),
            Event::Suspended(by) => write!(f, "the machine was suspended for {:.3} s", *by as f64 / 1e9),
            Event::Moved => {
                f.write_str("the hypervisor moved or restored this machine: its clock is not trusted for now")
            }
            Event::SteeringUnknown => f.write_str(
                "this process may not call adjtimex (a sandbox?), so a slew of the system clock does not show: the bound opens faster",
            ),
            Event::Contradiction(gap) => write!(
                f,
                "the clock source contradicts itself: its new interval misses the old one by {:.3} ms; not trusted until it is consistent",
                *gap as f64 / 1e6
            ),
            Event::Leap(Leap::None) => f.write_str("the leap second is over"),
            Event::Leap(leap) => write!(f, "leap second announced: {leap:?}"),
            Event::Switched { from, to, reason } if from.is_empty() => write!(f, "clock source {to}: {reason}"),
            Event::Switched { from, to, reason } => write!(f, "clock source {from} -> {to}: {reason}"),
        }
    }
}

/// From answers to anchors.
#[derive(Debug, Default)]
pub struct Tracker {
    anchor: Option<Anchor>,
    /// Of the measurement that the anchor is made from: how it goes on over the bare oscillator.
    bare: Option<Coasting>,
    previous: Option<Moment>,
    /// The moment since the last step at which the clocks were read closest together.
    closest: Option<Moment>,
    /// Measurements whose source last heard from its reference before this boot time are not believed (step, suspend).
    stale_before_ns: u64,
    /// The machine slept: the anchor itself is not believed either.
    slept: bool,
    /// News of the reference that must still be consistent before the source is believed again.
    on_probation: u32,
    /// News of the reference until which the anchor from before a step is covered...
    covering: u32,
    /// ...which is this one.
    before: Option<Anchor>,
    /// The step that those news, and the ones on probation, must have nothing from before of.
    step: Option<Step>,
    /// During that time the source contradicts the anchor.
    disputed: bool,
    /// The source was there, and had nothing to tell: there is nothing from before a step that it could mix with what it hears next.
    is_blank: bool,
    /// [`Measurement::updated_ns`] of the newest news that were counted.
    updated_ns: u64,
    /// For the simulator's control: invariant 5 is broken.
    skip_cover: bool,
    /// For a test's control: invariant 5 is broken, more subtly.
    skip_memory: bool,
    /// It was told that the steering is not known.
    told_blind: bool,
    leap: Option<Announced>,
    status: Status,
}

/// How lines go on from a measurement without one.
#[derive(Clone, Copy, Debug)]
struct Coasting {
    from: Bare,
    max_drift_ppb: u32,
    /// True time at the measurement may have been so much later by the bare oscillator, nanoseconds: the two clocks were not read at once.
    apart_ns: u64,
}

/// A leap second that was announced.
#[derive(Clone, Copy, Debug)]
struct Announced {
    leap: Leap,
    /// The midnight at which it takes place, Unix nanoseconds.
    at_ns: u64,
    /// The kernel has executed it.
    done: bool,
}

impl Tracker {
    /// Consecutive news of its reference that must meet each other before a source that contradicted itself is believed again, and
    /// after a step, with nothing from before it, before it is believed alone.
    pub const CONSISTENT_AFTER: u32 = 8;

    /// Takes the outcome of one poll at `moment`; gives the anchor to publish, and says what happened.
    pub fn step(&mut self, moment: Moment, answer: Result<Measurement, ProbeError>, events: &mut Vec<Event>) -> Anchor {
        self.notice_disruption(moment, events);
        self.is_blank = matches!(answer, Err(ProbeError::Unsynchronised { .. }));
        if moment.steering_ppb.is_none() && !std::mem::replace(&mut self.told_blind, true) {
            events.push(Event::SteeringUnknown);
        }
        let announced = answer.as_ref().map_or(Leap::None, |m| m.leap);
        let (anchor, reason) = match answer {
            Ok(m) if m.status == Status::Synchronized && m.updated_ns > self.stale_before_ns => {
                let reason = m.detail.clone();
                (self.believe(&m, events), reason)
            }
            Ok(m) if m.updated_ns <= self.stale_before_ns => {
                (self.coast(moment), format!("waiting for the source to hear from its reference again ({})", m.detail))
            }
            Ok(m) => (self.doubt(&m), m.detail),
            Err(error) => (self.coast(moment), error.to_string()),
        };
        let now = anchor.interval(moment.boot_ns, moment.raw_ns);
        self.note_leap(announced, now, events);
        let mut anchor = anchor;
        anchor.at = self.widen(anchor.at, now);
        anchor.look_after_ns = moment.boot_ns.saturating_add(LOOK_AFTER_NS);
        anchor.asleep_ns = moment.asleep_ns_max();
        let is_closer = |earlier: &Moment| earlier.width_ns <= moment.width_ns && moment.stepped_since(earlier) == 0;
        let closest = self.closest.filter(is_closer).unwrap_or(moment);
        self.closest = Some(closest);
        anchor.ahead_ns = anchor.bare.is_none().then(|| closest.ahead_ns());
        let reading = anchor.read(moment.boot_ns, || moment.raw_ns, || 0, |_| false);
        if reading.status != self.status {
            let error_ns = reading.interval.error_ns();
            events.push(Event::Status { from: self.status, to: reading.status, error_ns, reason });
            self.status = reading.status;
        }
        self.previous = Some(moment);
        anchor
    }

    /// A negative control: after a step the source is believed as soon as it has news.
    #[doc(hidden)]
    pub fn set_skip_cover(&mut self, skip: bool) {
        self.skip_cover = skip;
    }

    /// A negative control: after a step all news count, also those of a source that still mixes.
    #[doc(hidden)]
    pub fn set_skip_memory(&mut self, skip: bool) {
        self.skip_memory = skip;
    }

    /// Gives the anchor to publish if the clock was stepped since the last poll: the source has not been asked yet.
    pub fn notice_step(&mut self, moment: Moment, events: &mut Vec<Event>) -> Option<Anchor> {
        let stepped = self.previous.is_some_and(|previous| moment.stepped_since(&previous) != 0);
        let unasked =
            || ProbeError::Unsynchronised { source_name: "the clock", reason: "somebody set the system clock".into() };
        let is_blank = self.is_blank;
        let anchor = stepped.then(|| self.step(moment, Err(unasked()), events));
        self.is_blank = is_blank;
        anchor
    }

    /// Somebody who can know says that the clock was disturbed (the hypervisor, after moving the machine).
    pub fn disrupt(&mut self, moment: Moment, events: &mut Vec<Event>) {
        events.push(Event::Moved);
        self.stale_before_ns = moment.boot_ns;
        self.slept = true;
    }

    /// Steps and suspends show in the differences of the kernel's clocks.
    fn notice_disruption(&mut self, moment: Moment, events: &mut Vec<Event>) {
        let Some(previous) = self.previous else { return };
        let asleep = moment.suspended_since(&previous);
        if asleep > 0 {
            events.push(Event::Suspended(asleep));
            self.stale_before_ns = moment.boot_ns;
            self.slept = true;
        }
        let step = moment.stepped_since(&previous);
        if step == 0 {
            return;
        }
        match self.leap {
            // Kernel leaps are exact: anything more is a step of somebody's, perhaps at the same time.
            Some(a)
                if !a.done
                    && (step - leap_step_ns(a.leap)).unsigned_abs() <= moment.noise_ns(&previous)
                    && moment.real_ns.abs_diff(a.at_ns) < LEAP_AFTER_NS =>
            {
                self.leap = Some(Announced { done: true, ..a });
                self.shift(leap_step_ns(a.leap));
            }
            _ => {
                events.push(Event::Stepped(step));
                self.stale_before_ns = moment.boot_ns;
                let mixes = !self.skip_cover && (self.anchor.is_some() || !self.is_blank);
                // What is not believed itself can tell nothing of what comes after it.
                let covers = mixes && self.anchor.is_some() && self.on_probation == 0;
                // What the source made of an earlier step is not believed alone yet: then that step's anchor stays.
                self.before = match self.before {
                    _ if !covers => None,
                    None => Some(self.go_bare(moment)),
                    earlier => earlier,
                };
                self.covering = if covers { Self::CONSISTENT_AFTER } else { 0 };
                if mixes && !covers {
                    self.on_probation = Self::CONSISTENT_AFTER;
                }
                self.step = mixes.then(|| Step::after(self.step, step, moment.boot_ns));
            }
        }
    }

    /// The kernel executed an announced leap second: the same instant now has another name.
    fn shift(&mut self, by: i64) {
        for a in [&mut self.anchor, &mut self.before].into_iter().flatten() {
            a.at.earliest_ns = a.at.earliest_ns.saturating_add_signed(by);
            a.at.latest_ns = a.at.latest_ns.saturating_add_signed(by);
        }
    }

    /// A measurement of a synchronised source.
    fn believe(&mut self, m: &Measurement, events: &mut Vec<Event>) -> Anchor {
        let is_news = m.updated_ns > self.updated_ns;
        self.updated_ns = self.updated_ns.max(m.updated_ns);
        let has_forgotten = self.has_forgotten(m, is_news);
        let void = self.anchor.is_some_and(|anchor| m.moment.boot_ns > anchor.void_after_ns);
        if self.slept || void {
            // After the step there is nothing left that could tell whether the source mixes: only its own constancy.
            self.on_probation = self.on_probation.max(std::mem::take(&mut self.covering));
            self.before = None;
        }
        let mut covered = m.interval;
        if let (Some(anchor), false) = (self.anchor, self.slept) {
            let old = anchor.interval(m.moment.boot_ns, m.moment.raw_ns);
            let (wide, new) = (self.widen(old, old), self.widen(m.interval, m.interval));
            if !wide.meets(new) {
                let gap =
                    new.earliest_ns.saturating_sub(wide.latest_ns).max(wide.earliest_ns.saturating_sub(new.latest_ns));
                if self.covering > 0 {
                    // It has not come to terms with the step yet, or what was known before was wrong: nobody is believed until they meet.
                    if !std::mem::replace(&mut self.disputed, true) {
                        events.push(Event::Contradiction(gap));
                    }
                    return self.coast(m.moment);
                }
                events.push(Event::Contradiction(gap));
                self.on_probation = Self::CONSISTENT_AFTER;
            } else if let Some(before) = self.before {
                covered = before.interval(m.moment.boot_ns, m.moment.raw_ns).hull(m.interval);
            }
        }
        if let Some(a) = self.leap.filter(|a| m.interval.earliest_ns > a.at_ns.saturating_add(LEAP_AFTER_NS)) {
            // Some daemons pass a month's announcement on early: then every midnight is treated as the one.
            let again = Announced { at_ns: next_midnight_ns(m.interval.earliest_ns), done: false, ..a };
            self.leap = (m.leap == a.leap).then_some(again);
            if self.leap.is_none() {
                events.push(Event::Leap(Leap::None));
            }
        }
        (self.slept, self.disputed) = (false, false);
        let counted = |left: u32| match (is_news, has_forgotten) {
            (false, _) => left,
            (true, true) => left.saturating_sub(1),
            (true, false) => left.min(1) * Self::CONSISTENT_AFTER,
        };
        self.on_probation = counted(self.on_probation);
        let status = if self.on_probation > 0 { Status::Disrupted } else { Status::Synchronized };
        let covering = self.covering > 0;
        self.covering = counted(self.covering);
        self.before = self.before.filter(|_| self.covering > 0);
        self.step = self.step.filter(|_| self.covering > 0 || self.on_probation > 0);
        self.hold(covered, status, m);
        match m.moment.steering_ppb {
            Some(_) if m.follows_slews && !covering => self.anchor.unwrap_or(Anchor::UNKNOWN),
            _ => self.go_bare(m.moment),
        }
    }

    /// Whether the source has nothing any more from before the last step.
    fn has_forgotten(&mut self, m: &Measurement, is_news: bool) -> bool {
        let Some(step) = &mut self.step else { return true };
        if is_news {
            step.count_news();
        }
        self.skip_memory || step.is_forgotten(m.remembers, Self::CONSISTENT_AFTER)
    }

    /// From now on by this measurement.
    fn hold(&mut self, at: Interval, status: Status, m: &Measurement) {
        let anchor = Anchor {
            as_of_ns: m.moment.boot_ns,
            void_after_ns: m.moment.boot_ns.saturating_add(VOID_AFTER_NS),
            look_after_ns: u64::MAX,
            asleep_ns: m.moment.asleep_ns_max(),
            at,
            bare: None,
            ahead_ns: None,
            max_drift_ppb: m.growth_ppb(m.moment.steering_ppb.unwrap_or(0)),
            status,
        };
        let (rate_ppb, max_drift_ppb) = m.bare_rate_ppb();
        let from = Bare { as_of_ns: m.moment.raw_ns.max(1), rate_ppb };
        self.bare = Some(Coasting { from, max_drift_ppb, apart_ns: m.moment.width_ns.saturating_add(1) });
        self.anchor = Some(anchor);
    }

    /// The lines go on over the bare oscillator, from where it stands at `moment`.
    fn go_bare(&mut self, moment: Moment) -> Anchor {
        let (Some(anchor), Some(coasting)) = (&mut self.anchor, self.bare) else { return Anchor::UNKNOWN };
        if anchor.bare.is_none() {
            anchor.bare = Some(coasting.from);
            anchor.max_drift_ppb = coasting.max_drift_ppb;
            anchor.at.latest_ns = anchor.at.latest_ns.saturating_add(coasting.apart_ns);
        }
        anchor.at = anchor.interval(moment.boot_ns, moment.raw_ns);
        anchor.bare = Some(Bare { as_of_ns: moment.raw_ns.max(1), ..coasting.from });
        *anchor
    }

    /// A measurement of a source that says of itself that it is not synchronised.
    fn doubt(&mut self, m: &Measurement) -> Anchor {
        match (m.status, self.anchor) {
            (Status::FreeRunning, old) => {
                // It knows its bound; but if we know another one, it may not narrow that.
                let old_at = old.map(|old| old.interval(m.moment.boot_ns, m.moment.raw_ns));
                self.hold(old_at.map_or(m.interval, |old| old.hull(m.interval)), Status::FreeRunning, m);
                if let (Some(anchor), Some(old)) = (&mut self.anchor, old) {
                    anchor.void_after_ns = old.void_after_ns;
                }
                self.coast(m.moment)
            }
            (Status::Disrupted, _) => {
                self.slept = true;
                self.stale_before_ns = self.stale_before_ns.max(m.moment.boot_ns);
                self.coast(m.moment)
            }
            _ => self.coast(m.moment),
        }
    }

    /// No news that can be used: the old lines go on, where no slew reaches them, and the status says so.
    fn coast(&mut self, moment: Moment) -> Anchor {
        let untrusted = self.slept || self.on_probation > 0 || self.disputed;
        if let Some(anchor) = &mut self.anchor {
            anchor.status = if untrusted { Status::Disrupted } else { Status::FreeRunning };
        }
        self.go_bare(moment)
    }

    /// A leap second is announced: for the midnight that follows `now`, the interval that the node goes by. Not for the system
    /// clock's midnight: that may be off.
    fn note_leap(&mut self, leap: Leap, now: Interval, events: &mut Vec<Event>) {
        let known = now.earliest_ns > 0;
        if self.leap.is_none() && known && matches!(leap, Leap::Insert | Leap::Delete) {
            self.leap = Some(Announced { leap, at_ns: next_midnight_ns(now.earliest_ns), done: false });
            events.push(Event::Leap(leap));
        }
    }

    /// Around an announced leap second, covers both names of the moment, by the old and by the new second: until the source has been
    /// heard of long enough after it. (Kernel, daemon and true time take the step at slightly different moments, and a daemon
    /// that slews takes none.)
    fn widen(&self, mut interval: Interval, now: Interval) -> Interval {
        let Some(a) = self.leap.filter(|a| now.latest_ns.saturating_add(LEAP_BEFORE_NS) >= a.at_ns) else {
            return interval;
        };
        let down = match a.leap {
            Leap::Insert => !a.done,
            Leap::Delete => a.done,
            Leap::None | Leap::Smeared => return interval,
        };
        if down {
            interval.earliest_ns = interval.earliest_ns.saturating_sub(SECOND_NS);
        } else {
            interval.latest_ns = interval.latest_ns.saturating_add(SECOND_NS);
        }
        interval
    }
}

fn next_midnight_ns(real_ns: u64) -> u64 {
    (real_ns / DAY_NS + 1).saturating_mul(DAY_NS)
}

/// By how much the kernel steps its real-time clock for it, nanoseconds.
fn leap_step_ns(leap: Leap) -> i64 {
    match leap {
        Leap::Insert => -(SECOND_NS as i64),
        Leap::Delete => SECOND_NS as i64,
        Leap::None | Leap::Smeared => 0,
    }
}
