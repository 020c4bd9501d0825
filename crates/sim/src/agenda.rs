//! Virtual time: what happens next.
//!
//! Events are large and wait in places of their own; what is kept in order is small.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When an event is planned for, its number among all that were ever planned, and its place.
type Planned = Reverse<(u64, u64, usize)>;

/// What is planned, in order of time; what is planned for the same time, in the order in which it was planned.
#[derive(Debug)]
pub struct Agenda<E> {
    planned: BinaryHeap<Planned>,
    events: Vec<Option<E>>,
    free: Vec<usize>,
    sequence: u64,
    now_ns: u64,
    happened: u64,
}

impl<E> Agenda<E> {
    /// Nothing is planned.
    pub fn new(now_ns: u64) -> Self {
        Agenda { planned: BinaryHeap::new(), events: Vec::new(), free: Vec::new(), sequence: 0, now_ns, happened: 0 }
    }

    /// True time, nanoseconds since the Unix epoch.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// How many events there were.
    pub fn happened(&self) -> u64 {
        self.happened
    }

    /// Plans an event; what is past happens next.
    pub fn at(&mut self, when_ns: u64, event: E) {
        self.sequence += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[place] = Some(event);
        self.planned.push(Reverse((when_ns.max(self.now_ns), self.sequence, place)));
    }

    /// Plans an event for so much later.
    pub fn after(&mut self, ns: u64, event: E) {
        self.at(self.now_ns + ns, event);
    }

    /// The next event, and time moves to it.
    pub fn advance(&mut self) -> Option<E> {
        let Reverse((when_ns, _, place)) = self.planned.pop()?;
        self.now_ns = when_ns;
        self.happened += 1;
        self.free.push(place);
        self.events[place].take()
    }

    /// When the next event is.
    pub fn next_ns(&self) -> Option<u64> {
        self.planned.peek().map(|Reverse((when_ns, ..))| *when_ns)
    }

    /// Drops planned events.
    pub fn retain(&mut self, mut keep: impl FnMut(&E) -> bool) {
        let Agenda { planned, events, free, .. } = self;
        planned.retain(|Reverse((_, _, place))| {
            let stays = events[*place].as_ref().is_some_and(&mut keep);
            if !stays {
                events[*place] = None;
                free.push(*place);
            }
            stays
        });
    }

    /// So much time passes, and all that is planned comes so much later.
    pub fn stand_still(&mut self, ns: u64) {
        self.now_ns += ns;
        let planned = std::mem::take(&mut self.planned);
        self.planned =
            planned.into_iter().map(|Reverse((when, order, place))| Reverse((when + ns, order, place))).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::Agenda;

    #[test]
    fn what_is_planned_first_happens_first_at_one_time() {
        let mut agenda = Agenda::new(100);
        agenda.after(5, "b");
        agenda.at(50, "a");
        agenda.after(5, "c");
        agenda.stand_still(10);
        let order: Vec<_> = std::iter::from_fn(|| agenda.advance().map(|what| (agenda.now_ns(), what))).collect();
        assert_eq!(order, [(110, "a"), (115, "b"), (115, "c")]);
    }

    #[test]
    fn what_is_dropped_does_not_happen_and_its_place_is_taken_again() {
        let mut agenda = Agenda::new(0);
        (0..10).for_each(|n| agenda.after(10 - n, n));
        agenda.retain(|n| n % 2 == 0);
        agenda.at(7, 20);
        let order: Vec<_> = std::iter::from_fn(|| agenda.advance()).collect();
        assert_eq!(order, [8, 6, 4, 20, 2, 0]);
        assert_eq!((agenda.happened(), agenda.next_ns(), agenda.events.len()), (6, None, 10));
    }
}
