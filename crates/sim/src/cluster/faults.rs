//! What goes wrong, and when it is right again: drawn from a scenario.

use super::network::{End, Trouble};
use crate::rng::Rng;
use serde::Deserialize;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The process dies (`kill -9`) and is started again.
    Kill,
    /// The process is told to stop (SIGTERM): others get what it leads, it ends, and is started again.
    Restart,
    /// The machine loses power: what was not synced is lost, torn, or scattered.
    Power,
    /// All machines lose power at once.
    Blackout,
    /// The process is stopped (SIGSTOP), and goes on.
    Pause,
    /// The machine is suspended.
    Sleep,
    /// The machine comes back with an empty disk, if everything survives that.
    Wipe,
    /// The machine loses power, and comes back with its disk as it was a while ago: a backup, or a disk that lost what it had synced.
    GoBack,
    /// A machine and all others do not hear each other; half the time clients are cut off, too.
    Isolate,
    /// A machine does not hear another: one way.
    Cut,
    /// A machine hears nobody, but is heard.
    Deaf,
    /// The machines fall into two parts.
    Halves,
    /// More messages are lost.
    Loss,
    /// All messages take longer.
    Late,
    /// A link passes little, one way.
    SlowLink,
    /// The disk does not answer.
    DiskStall,
    /// The disk is slow.
    DiskSlow,
    /// The disk has no room for more.
    DiskFull,
    /// Something happens to the clock: it is set, drifts, sleeps, loses its source, lies.
    Clock,
    /// An operator hands over what a machine leads.
    Transfer,
    /// An operator changes who is a member.
    Members,
    /// A state is written down, and its log is cut.
    Truncate,
    /// An operator splits a range.
    Split,
}

/// To which machine it happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whom {
    /// Any.
    #[default]
    Any,
    /// One that leads something, if one does.
    Leader,
    /// One that leads nothing, if there is one.
    Follower,
}

/// A fault of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fault {
    /// What.
    pub kind: Kind,
    /// The mean time between two, milliseconds; 0: only at `at_ms`.
    #[serde(default)]
    pub every_ms: u64,
    /// At these times after the beginning, milliseconds.
    #[serde(default)]
    pub at_ms: Vec<u64>,
    /// It lasts between these, milliseconds.
    #[serde(default = "Fault::usual_ms")]
    pub for_ms: (u64, u64),
    /// To whom.
    #[serde(default)]
    pub whom: Whom,
    /// How much: percent lost, milliseconds late, kilobits per second, times as slow.
    #[serde(default)]
    pub much: u64,
}

impl Fault {
    fn usual_ms() -> (u64, u64) {
        (10, 1_000)
    }

    /// When it happens within a time, nanoseconds after its beginning.
    pub fn times_ns(&self, length_ns: u64, rng: &mut Rng) -> Vec<u64> {
        let mut times: Vec<u64> = self.at_ms.iter().map(|ms| ms * 1_000_000).collect();
        let mean_ns = self.every_ms * 1_000_000;
        if mean_ns == 0 {
            return times;
        }
        let mut when = 0;
        loop {
            when += rng.range(mean_ns / 4, mean_ns * 7 / 4 + 1).max(1);
            if when >= length_ns {
                break;
            }
            times.push(when);
        }
        times
    }

    /// For how long, nanoseconds.
    pub fn lasts_ns(&self, rng: &mut Rng) -> u64 {
        rng.range(self.for_ms.0 * 1_000_000, self.for_ms.1 * 1_000_000 + 1)
    }

    /// What it does to the network, if it is of that kind. `clients`: so many, some of whom an isolated machine loses, too.
    pub fn trouble(&self, machine: usize, machines: usize, clients: usize, rng: &mut Rng) -> Option<Trouble> {
        let here = End::Machine(machine);
        let others = (0..machines).filter(|n| *n != machine);
        let other = || End::Machine((machine + 1) % machines);
        Some(match self.kind {
            Kind::Isolate => {
                let mut far: Vec<End> = others.map(End::Machine).collect();
                if rng.chance(50) {
                    far.extend((0..clients).map(End::Client));
                }
                Trouble::Cut(far.into_iter().flat_map(|there| [(here, there), (there, here)]).collect())
            }
            Kind::Deaf => Trouble::Cut(others.map(|n| (End::Machine(n), here)).collect()),
            Kind::Cut => {
                let there = rng.pick(&others.collect::<Vec<_>>()).map_or_else(other, End::Machine);
                Trouble::Cut(vec![(here, there)])
            }
            Kind::Halves => {
                let left: Vec<bool> = (0..machines).map(|_| rng.chance(50)).collect();
                let pairs = (0..machines).flat_map(|a| (0..machines).map(move |b| (a, b)));
                let between = pairs.filter(|(a, b)| left[*a] != left[*b]);
                Trouble::Cut(between.map(|(a, b)| (End::Machine(a), End::Machine(b))).collect())
            }
            Kind::Loss => Trouble::Loss(self.much.clamp(1, 100)),
            Kind::Late => Trouble::Late(self.much.max(1) * 1_000_000),
            Kind::SlowLink => {
                let there = rng.pick(&others.collect::<Vec<_>>()).map_or_else(other, End::Machine);
                Trouble::Slow(here, there, self.much.max(1))
            }
            _ => return None,
        })
    }

    /// What is wrong with it, if anything.
    pub fn wrong(&self) -> Option<String> {
        let (low, high) = self.for_ms;
        if low > high {
            return Some(format!("{:?}: for-ms goes from {low} to {high}", self.kind));
        }
        if self.every_ms == 0 && self.at_ms.is_empty() {
            return Some(format!("{:?} never happens: give every-ms or at-ms", self.kind));
        }
        let needs = matches!(self.kind, Kind::Loss | Kind::Late | Kind::SlowLink | Kind::DiskSlow);
        (needs && self.much == 0).then(|| format!("{:?} needs `much`", self.kind))
    }
}

/// What ends a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mend {
    /// The machine is started.
    Start(usize),
    /// The machine loses power, if everything survives that it comes back empty, and comes back as it was when this began; and, where it is refused for that, empty after so many nanoseconds.
    GoBack(usize, u64),
    /// The process that was told to stop in this life ends, if others have what it led, or it was looked at so many times; and is started again after
    /// so many nanoseconds.
    End(usize, u64, u64, u64),
    /// The process goes on; counts only for the life in which it was stopped.
    Resume(usize, u64),
    /// The network has one trouble less.
    Network(u64),
    /// A disk answers again.
    Stall(usize),
    /// A disk is this many times less slow.
    Slow(usize, u64),
    /// A disk has room again.
    Full(usize),
}
