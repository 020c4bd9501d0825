//! Clock-RSM: 004 algorithms 3 and 4, without reconfiguration.
//!
//! The origin stamps a command with its clock and sends it to all; each logs it, waits until its own clock is past the stamp, and acknowledges it to all with a
//! stamp of its own. A command is executed in the order of stamps, when (1) a majority has logged it, (2) something later was heard of every replica,
//! and (3) all earlier ones are executed (lines 20 to 23). Who has said nothing for [`DELTA_NS`] says its time (algorithm 4, whose line 5 means `LatestTV`).

use super::world::{Command, MS, Replica, Side};
use std::collections::BTreeMap;

/// Δ of algorithm 4, nanoseconds (section 3.6.2).
pub const DELTA_NS: u64 = 5 * MS;

/// A clock's time and whose it is: unique.
type Stamp = (u64, usize);

/// What replicas say.
#[derive(Clone, Debug)]
pub enum Message {
    /// Log this.
    Prepare(u64, Command),
    /// The command with this stamp is logged; my time.
    PrepareOk(Stamp, u64),
    /// My time.
    ClockTime(u64),
}

#[derive(Default)]
struct Pending {
    command: Option<Command>,
    logged: usize,
}

/// A replica.
pub struct ClockRsm {
    /// `LatestTV`.
    latest_ns: Vec<u64>,
    /// The last time that it said.
    said_ns: u64,
    /// When it looks again whether it has said something.
    looks_ns: u64,
    pending: BTreeMap<Stamp, Pending>,
    /// The last stamp that was executed.
    executed: Option<Stamp>,
    /// Acknowledged once its clock is past them (line 8).
    early: Vec<Stamp>,
    /// Condition (2) is left out: tests see that it is needed.
    #[cfg(test)]
    pub unstable: bool,
}

impl ClockRsm {
    /// One of so many.
    pub fn new(replicas: usize) -> Self {
        let (pending, executed, early) = Default::default();
        ClockRsm {
            latest_ns: vec![0; replicas],
            said_ns: 0,
            looks_ns: 0,
            pending,
            executed,
            early,
            #[cfg(test)]
            unstable: false,
        }
    }

    fn replicas(&self) -> usize {
        self.latest_ns.len()
    }

    /// Its clock, later than all it said before: what it sends is in the order of its stamps.
    fn stamp(&mut self, side: &Side<Message>) -> u64 {
        self.said_ns = side.clock_ns.max(self.said_ns + 1);
        self.said_ns
    }

    /// Lines 8 to 10.
    fn acknowledge(&mut self, side: &mut Side<Message>) {
        let ready: Vec<Stamp> = self.early.extract_if(.., |(at_ns, _)| *at_ns < side.clock_ns).collect();
        for stamp in ready {
            let time_ns = self.stamp(side);
            side.broadcast(self.replicas(), &Message::PrepareOk(stamp, time_ns));
        }
    }

    fn is_stable(&self, at_ns: u64) -> bool {
        #[cfg(test)]
        if self.unstable {
            return true;
        }
        self.latest_ns.iter().all(|latest_ns| at_ns <= *latest_ns)
    }

    /// Lines 14 to 23.
    fn execute(&mut self, side: &mut Side<Message>) {
        while let Some((&stamp, first)) = self.pending.first_key_value() {
            let Some(command) = first.command.filter(|_| first.logged > self.replicas() / 2) else { return };
            if !self.is_stable(stamp.0) {
                return;
            }
            side.executes.push(command);
            self.pending.remove(&stamp);
            self.executed = Some(stamp);
        }
    }
}

impl Replica for ClockRsm {
    type Message = Message;

    fn start(&mut self, side: &mut Side<Message>) {
        self.looks_ns = side.clock_ns + DELTA_NS;
        side.wakes_ns.push(self.looks_ns);
    }

    fn request(&mut self, command: Command, side: &mut Side<Message>) {
        let at_ns = self.stamp(side);
        side.broadcast(self.replicas(), &Message::Prepare(at_ns, command));
    }

    fn message(&mut self, from: usize, message: Message, side: &mut Side<Message>) {
        match message {
            Message::Prepare(at_ns, command) => {
                self.latest_ns[from] = self.latest_ns[from].max(at_ns);
                self.pending.entry((at_ns, from)).or_default().command = Some(command);
                self.early.push((at_ns, from));
                if at_ns >= side.clock_ns {
                    side.wakes_ns.push(at_ns + 1);
                }
                self.acknowledge(side);
            }
            Message::PrepareOk(stamp, time_ns) => {
                self.latest_ns[from] = self.latest_ns[from].max(time_ns);
                if self.executed.is_none_or(|executed| stamp > executed) {
                    self.pending.entry(stamp).or_default().logged += 1;
                }
            }
            Message::ClockTime(time_ns) => self.latest_ns[from] = self.latest_ns[from].max(time_ns),
        }
        self.execute(side);
    }

    fn wake(&mut self, side: &mut Side<Message>) {
        self.acknowledge(side);
        if side.clock_ns < self.looks_ns {
            return;
        }
        if side.clock_ns >= self.said_ns + DELTA_NS {
            let time_ns = self.stamp(side);
            side.broadcast(self.replicas(), &Message::ClockTime(time_ns));
        }
        self.looks_ns = self.said_ns + DELTA_NS;
        side.wakes_ns.push(self.looks_ns);
    }
}
