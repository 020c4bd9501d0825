//! The network: it delays, loses, doubles, reorders, cuts one way or both, and has slow links.
//!
//! Every message is a datagram here: it may come late, twice, after later ones, or not at all, whoever sends it. A real transport keeps an
//! order; what holds without one holds with it. Only bandwidth queues: per directed link and class, so that bulk does not
//! hold up what is urgent.

mod latency;

pub use latency::Latency;

use crate::rng::Rng;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Bytes of headers that each message costs.
const HEADER_BYTES: u64 = 60;
/// A link that is this far behind drops what comes, nanoseconds.
const BACKLOG_NS_MAX: u64 = 5_000_000_000;

/// Where messages come from and go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// A machine.
    Machine(usize),
    /// Somebody who asks machines.
    Client(usize),
}

impl End {
    fn site(self) -> usize {
        match self {
            End::Machine(n) | End::Client(n) => n,
        }
    }
}

/// How a message travels: classes do not hold each other up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Small and urgent: heartbeats.
    Urgent,
    /// All else.
    Normal,
    /// Large, and can wait.
    Bulk,
}

/// How the network is while nothing is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Weather {
    /// Latency, one way.
    pub latency: Latency,
    /// Messages that are lost, percent.
    pub loss_percent: u64,
    /// Messages that come twice, percent.
    pub twice_percent: u64,
    /// Messages that come late, percent; the same for second copies.
    pub late_percent: u64,
    /// How late at most, milliseconds.
    pub late_ms: u64,
    /// Megabits per second of a link, one way; 0: no limit.
    pub megabits_per_s: u64,
}

impl Default for Weather {
    fn default() -> Self {
        Weather {
            latency: Latency::UniformUs(200, 2_000),
            loss_percent: 0,
            twice_percent: 0,
            late_percent: 0,
            late_ms: 0,
            megabits_per_s: 0,
        }
    }
}

impl Weather {
    /// The same place on a calm day.
    pub fn calm(&self) -> Weather {
        Weather { loss_percent: 0, twice_percent: 0, late_percent: 0, late_ms: 0, ..self.clone() }
    }
}

/// Something that is wrong with the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing passes from the first to the second.
    Cut(Vec<(End, End)>),
    /// So much more is lost, percent.
    Loss(u64),
    /// All take longer, at most so much, nanoseconds.
    Late(u64),
    /// A link, one way, passes only so many kilobits per second.
    Slow(End, End, u64),
}

/// The network.
#[derive(Debug)]
pub struct Network {
    /// How it is.
    pub weather: Weather,
    troubles: BTreeMap<u64, Trouble>,
    last_trouble: u64,
    /// Until when a link is busy with what was given to it.
    busy: BTreeMap<(End, End, Class), u64>,
}

/// When a message arrives: never, once, or twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// The first copy, true time.
    pub first_ns: Option<u64>,
    /// The second.
    pub second_ns: Option<u64>,
}

impl Network {
    /// A network that is well.
    pub fn new(weather: Weather) -> Self {
        Network { weather, troubles: BTreeMap::new(), last_trouble: 0, busy: BTreeMap::new() }
    }

    /// Something goes wrong; the number is for [`Network::mend`].
    pub fn suffer(&mut self, trouble: Trouble) -> u64 {
        self.last_trouble += 1;
        self.troubles.insert(self.last_trouble, trouble);
        self.last_trouble
    }

    /// It is right again.
    pub fn mend(&mut self, trouble: u64) {
        self.troubles.remove(&trouble);
    }

    /// All is well from now on.
    pub fn heal(&mut self) {
        self.troubles.clear();
        self.weather = self.weather.calm();
    }

    /// Whether anything passes.
    pub fn is_cut(&self, from: End, to: End) -> bool {
        self.troubles.values().any(|t| matches!(t, Trouble::Cut(pairs) if pairs.contains(&(from, to))))
    }

    /// A message of so many bytes leaves. Cuts hold where it leaves: what is on its way arrives.
    pub fn carry(
        &mut self,
        now_ns: u64,
        (from, to): (End, End),
        class: Class,
        bytes: usize,
        rng: &mut Rng,
    ) -> Arrivals {
        let mut loss_percent = self.weather.loss_percent;
        let (mut late_ns, mut kilobits) = (0, self.weather.megabits_per_s * 1000);
        for trouble in self.troubles.values() {
            match trouble {
                Trouble::Cut(pairs) if pairs.contains(&(from, to)) => return Arrivals::default(),
                Trouble::Cut(_) => {}
                Trouble::Loss(percent) => loss_percent = loss_percent.max(*percent),
                Trouble::Late(ns) => late_ns = late_ns.max(*ns),
                Trouble::Slow(a, b, slow) if (*a, *b) == (from, to) => {
                    kilobits = if kilobits == 0 { *slow } else { kilobits.min(*slow) };
                }
                Trouble::Slow(..) => {}
            }
        }
        let mut leaves_ns = now_ns;
        let tx_ns = ((bytes as u64 + HEADER_BYTES) * 8 * 1_000_000).checked_div(kilobits);
        if let Some(tx_ns) = tx_ns {
            let busy = self.busy.entry((from, to, class)).or_insert(0);
            if *busy > now_ns + BACKLOG_NS_MAX {
                return Arrivals::default();
            }
            *busy = (*busy).max(now_ns) + tx_ns;
            leaves_ns = *busy;
        }
        if rng.chance(loss_percent) {
            return Arrivals::default();
        }
        let first_ns = Some(leaves_ns + self.latency_ns(from, to, late_ns, rng));
        let twice = rng.chance(self.weather.twice_percent);
        let second_ns = twice.then(|| leaves_ns + self.latency_ns(from, to, late_ns, rng));
        Arrivals { first_ns, second_ns }
    }

    fn latency_ns(&self, from: End, to: End, late_ns: u64, rng: &mut Rng) -> u64 {
        let mut ns = self.weather.latency.draw_ns(from.site(), to.site(), rng) + rng.below(late_ns + 1);
        if rng.chance(self.weather.late_percent) {
            ns += rng.below(self.weather.late_ms * 1_000_000 + 1);
        }
        ns
    }
}

#[cfg(test)]
mod tests;
