//! Linearizability of registers, one key at a time (which is enough: Herlihy and Wing's locality).
//!
//! Problem: several clients read, write and compare-and-swap one register; is there one order of their operations in which each takes
//! effect between its call and its return, and each answer is right? Idea (Wing and Gong 1993, with Lowe's memory of 2017): try the calls
//! that are open before the first return, one after another; remember each pair of *which operations took effect* and *what the register
//! then held*, and never look at one twice.
//!
//! An operation whose answer never came may take effect at any time after its call, or never.
//!
//! Caveat: the search is exponential in the number of operations that overlap. It has a bound, and says so when it gives up.

use std::collections::BTreeSet;

/// What an operation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It found this.
    Read(Option<u64>),
    /// It wrote this.
    Write(u64),
    /// It wrote `to` if the register held `from`.
    Swap {
        /// What it asked for.
        from: Option<u64>,
        /// What it would write.
        to: u64,
        /// Whether it did; `None` where the answer never came.
        done: Option<bool>,
    },
}

/// One operation on a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Its name in reports.
    pub id: u64,
    /// True time of the call.
    pub called: u64,
    /// True time of the return; `None`: the answer never came.
    pub returned: Option<u64>,
    /// What it did.
    pub act: Act,
}

impl Op {
    /// What it wrote, or would have written.
    pub fn wrote(&self) -> Option<u64> {
        match self.act {
            Act::Read(_) => None,
            Act::Write(value) | Act::Swap { to: value, .. } => Some(value),
        }
    }

    /// What the register holds after it; `None` where its answer would be wrong.
    fn apply(&self, held: Option<u64>) -> Option<Option<u64>> {
        match self.act {
            Act::Read(found) => (found == held).then_some(held),
            Act::Write(value) => Some(Some(value)),
            Act::Swap { from, to, done } => {
                let swaps = from == held;
                let after = if swaps { Some(to) } else { held };
                done.is_none_or(|done| done == swaps).then_some(after)
            }
        }
    }
}

/// What the search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Linear {
    /// There is such an order.
    Yes,
    /// There is none; says where the longest attempt ended.
    No(String),
    /// The search took more than its bound.
    GaveUp,
}

/// The end of the list.
const NONE: usize = usize::MAX;

/// Calls and returns in order of time, as a list from which operations are taken and put back.
struct Events {
    /// The operation, and whether it is the call.
    of: Vec<(usize, bool)>,
    next: Vec<usize>,
    before: Vec<usize>,
    call: Vec<usize>,
    back: Vec<Option<usize>>,
}

impl Events {
    fn new(ops: &[Op]) -> Self {
        let mut times: Vec<(u64, bool, usize)> = Vec::new();
        for (at, op) in ops.iter().enumerate() {
            // Of one time calls come first: what may have overlapped has.
            times.push((op.called, false, at));
            times.extend(op.returned.map(|returned| (returned, true, at)));
        }
        times.sort_unstable();
        // The first is the head of the list.
        let len = times.len() + 1;
        let mut events = Events {
            of: vec![(NONE, false)],
            next: (1..=len).map(|n| if n == len { NONE } else { n }).collect(),
            before: (0..len).map(|n| n.wrapping_sub(1)).collect(),
            call: vec![0; ops.len()],
            back: vec![None; ops.len()],
        };
        for (n, (_, returns, op)) in times.into_iter().enumerate() {
            events.of.push((op, !returns));
            if returns {
                events.back[op] = Some(n + 1);
            } else {
                events.call[op] = n + 1;
            }
        }
        events
    }

    fn unlink(&mut self, event: usize) {
        let (before, next) = (self.before[event], self.next[event]);
        self.next[before] = next;
        if next != NONE {
            self.before[next] = before;
        }
    }

    fn relink(&mut self, event: usize) {
        let (before, next) = (self.before[event], self.next[event]);
        self.next[before] = event;
        if next != NONE {
            self.before[next] = event;
        }
    }

    fn take(&mut self, op: usize) {
        self.unlink(self.call[op]);
        if let Some(back) = self.back[op] {
            self.unlink(back);
        }
    }

    fn put_back(&mut self, op: usize) {
        if let Some(back) = self.back[op] {
            self.relink(back);
        }
        self.relink(self.call[op]);
    }
}

/// Searches for an order of the operations on one register that holds nothing at first; looks at no more than `steps_max` events.
pub fn judge(ops: &[Op], steps_max: u64) -> Linear {
    let mut events = Events::new(ops);
    let mut taken = vec![0_u64; ops.len().div_ceil(64)];
    let mut seen: BTreeSet<(Vec<u64>, Option<u64>)> = BTreeSet::new();
    let mut stack: Vec<(usize, Option<u64>)> = Vec::new();
    let mut held = None;
    let mut open = ops.iter().filter(|op| op.returned.is_some()).count();
    let mut furthest = (0, String::new());
    let (mut at, mut steps) = (events.next[0], 0);
    while open > 0 {
        steps += 1;
        if steps > steps_max {
            return Linear::GaveUp;
        }
        let (op, calls) = if at == NONE { (NONE, false) } else { events.of[at] };
        if calls {
            if let Some(after) = ops[op].apply(held) {
                taken[op / 64] |= 1 << (op % 64);
                if seen.insert((taken.clone(), after)) {
                    stack.push((op, held));
                    held = after;
                    events.take(op);
                    open -= usize::from(ops[op].returned.is_some());
                    at = events.next[0];
                    continue;
                }
                taken[op / 64] &= !(1 << (op % 64));
            }
            at = events.next[at];
            continue;
        }
        // A return whose operation has not taken effect, and no call before it leads on: take the last one back.
        if op != NONE && stack.len() >= furthest.0 {
            let what = format!("{:?} cannot take effect while the register holds {held:?}", ops[op]);
            furthest = (stack.len(), what);
        }
        let Some((last, before)) = stack.pop() else { return Linear::No(furthest.1) };
        held = before;
        taken[last / 64] &= !(1 << (last % 64));
        open += usize::from(ops[last].returned.is_some());
        events.put_back(last);
        at = events.next[events.call[last]];
    }
    Linear::Yes
}
