//! Virtual time: what happens next.

use std::collections::BTreeMap;

/// What is planned, in order of time; what is planned for the same time, in the order in which it was planned.
#[derive(Debug)]
pub struct Agenda<E> {
    planned: BTreeMap<(u64, u64), E>,
    sequence: u64,
    now_ns: u64,
    happened: u64,
}

impl<E> Agenda<E> {
    /// Nothing is planned.
    pub fn new(now_ns: u64) -> Self {
        Agenda { planned: BTreeMap::new(), sequence: 0, now_ns, happened: 0 }
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
        self.planned.insert((when_ns.max(self.now_ns), self.sequence), event);
    }

    /// Plans an event for so much later.
    pub fn after(&mut self, ns: u64, event: E) {
        self.at(self.now_ns + ns, event);
    }

    /// The next event, and time moves to it.
    pub fn advance(&mut self) -> Option<E> {
        let ((when_ns, _), event) = self.planned.pop_first()?;
        self.now_ns = when_ns;
        self.happened += 1;
        Some(event)
    }

    /// When the next event is.
    pub fn next_ns(&self) -> Option<u64> {
        self.planned.first_key_value().map(|((when_ns, _), _)| *when_ns)
    }

    /// Drops planned events.
    pub fn retain(&mut self, mut keep: impl FnMut(&E) -> bool) {
        self.planned.retain(|_, event| keep(event));
    }

    /// So much time passes, and all that is planned comes so much later.
    pub fn stand_still(&mut self, ns: u64) {
        self.now_ns += ns;
        let planned = std::mem::take(&mut self.planned);
        self.planned = planned.into_iter().map(|((when, order), event)| ((when + ns, order), event)).collect();
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
}
