//! Processor time: what the nodes and the lab used, and what the machine did altogether. The rest is somebody else's, and a page says how much.

use std::fs;

/// Processor time so far, in the kernel's ticks (a hundredth of a second).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    own: f64,
    busy: f64,
    all: f64,
}

/// User and system time of a process, from its line of `stat`.
fn of_process(stat: &str) -> f64 {
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    ticks(11) + ticks(12)
}

/// Busy time and all time of the machine, from the first line of `/proc/stat`.
fn of_machine(stat: &str) -> (f64, f64) {
    let numbers: Vec<f64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|t| t.parse().ok())
        .collect();
    let all: f64 = numbers.iter().sum();
    // Idle, and idle while a disk works.
    let idle: f64 = numbers.iter().skip(3).take(2).sum();
    (all - idle, all)
}

impl Usage {
    /// Of these processes and this one.
    pub(super) fn of(processes: impl Iterator<Item = u32>) -> Usage {
        let read = |path: String| fs::read_to_string(path).unwrap_or_default();
        let own = processes
            .chain([std::process::id()])
            .map(|process| of_process(&read(format!("/proc/{process}/stat"))))
            .sum();
        let (busy, all) = of_machine(&read("/proc/stat".into()));
        Usage { own, busy, all }
    }

    /// The shares of the machine's processor time since then: of the nodes and the lab, and of everybody else.
    pub fn since(&self, then: &Usage) -> (f64, f64) {
        let all = (self.all - then.all).max(1.0);
        let own = (self.own - then.own) / all;
        (own, ((self.busy - then.busy) / all - own).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::{Usage, of_machine, of_process};

    #[test]
    fn shares_are_of_the_machine() {
        assert_eq!(of_process("7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 30 12 0"), 42.0);
        assert_eq!(of_machine("cpu  10 0 20 60 10 0 0 0 99 99\ncpu0 1\n"), (30.0, 100.0));
        let (then, now) = (Usage::default(), Usage { own: 50.0, busy: 80.0, all: 200.0 });
        let (own, others) = now.since(&then);
        assert!((own - 0.25).abs() < 1e-9 && (others - 0.15).abs() < 1e-9);
    }
}
