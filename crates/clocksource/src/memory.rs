//! What a source still goes by of the time before somebody set the system clock.
//!
//! **Problem.** A daemon estimates from many samples, not from its last one. chronyd does not notice a step under ten seconds: it lays a line through
//! samples from before and after, whose end may lie beyond either, and takes what the samples miss that line by for its error. That is no bound. Its
//! correction and its dispersion are too small until the last sample from before the step is forgotten, and how long that takes depends on the
//! noise: three samples may do, or all that it keeps. A count of news that is right for one machine is wrong for a busy one.
//!
//! **Idea.** Sources say how far back they go, and what they say after a step counts from the news on that have nothing from before it.

/// How far back a source goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// What it goes by is no reading of the system clock: a step does not touch it.
    Unstepped,
    /// The oldest sample that it goes by was taken at this boot time or later, nanoseconds, as the system clock counts: if that was set back
    /// since, it may have been taken earlier by as much.
    Since(u64),
    /// It does not say. Its newest news go by so many news at most, themselves included.
    News(u32),
}

/// The most samples that a daemon keeps (chronyd's `MAX_SAMPLES`; ntpd and systemd-timesyncd keep eight).
pub(crate) const SAMPLES_MAX: u32 = 64;
/// A daemon notices by itself that the clock was set by more than this (nanoseconds), and begins anew (chronyd's `JUMP_DETECT_THRESHOLD`).
const UNNOTICED_NS_MAX: u64 = 10_000_000_000;

/// Somebody set the system clock, once or more often.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Step {
    /// Boot time at which the last step had been made, nanoseconds.
    done_ns: u64,
    /// By how much samples from before may look younger, nanoseconds.
    set_back_ns: u64,
    /// News of the source since then.
    news: u32,
}

impl Step {
    /// The clock was stepped by `by_ns`, forward positive, before `now_ns`; `earlier` is a step that the source may not have forgotten yet.
    pub(crate) fn after(earlier: Option<Step>, by_ns: i64, now_ns: u64) -> Step {
        let back_ns = if by_ns < 0 { by_ns.unsigned_abs().min(UNNOTICED_NS_MAX) } else { 0 };
        let earlier_ns = earlier.map_or(0, |step| step.set_back_ns);
        Step { done_ns: now_ns, set_back_ns: earlier_ns.saturating_add(back_ns), news: 0 }
    }
    pub(crate) fn count_news(&mut self) {
        self.news = self.news.saturating_add(1);
    }
    /// Whether a source with that memory has nothing from before any more. The last `kept_back` of the news that fill a memory count: those
    /// before them have samples from before the step, but what they fill it with has not.
    pub(crate) fn is_forgotten(&self, memory: Memory, kept_back: u32) -> bool {
        match memory {
            Memory::Unstepped => true,
            Memory::Since(oldest_ns) => oldest_ns > self.done_ns.saturating_add(self.set_back_ns),
            Memory::News(most) => self.news.saturating_add(kept_back) > most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const S_BACK: i64 = -1_000_000_000;

    #[test]
    fn samples_of_a_clock_that_was_set_back_look_younger() {
        let forgets = |step: &Step, oldest_ns| step.is_forgotten(Memory::Since(oldest_ns), 8);
        let ahead = Step::after(None, 9 * S as i64, 100 * S);
        assert!(!forgets(&ahead, 100 * S) && forgets(&ahead, 100 * S + 1));
        let back = Step::after(None, 3 * S_BACK, 100 * S);
        assert!(!forgets(&back, 103 * S) && forgets(&back, 103 * S + 1));
        let twice = Step::after(Some(back), 2 * S_BACK, 110 * S);
        assert!(!forgets(&twice, 115 * S) && forgets(&twice, 115 * S + 1));
        let an_hour = Step::after(None, 3_600 * S_BACK, 100 * S);
        assert!(forgets(&an_hour, 111 * S), "that is noticed");
    }

    #[test]
    fn who_says_nothing_is_taken_to_have_kept_all_that_it_may_keep() {
        let mut step = Step::after(None, 1, 0);
        assert!(step.is_forgotten(Memory::Unstepped, 8));
        for news in 1..=70 {
            step.count_news();
            assert_eq!(step.is_forgotten(Memory::News(64), 8), news > 56, "{news}");
            assert!(step.is_forgotten(Memory::News(8), 8));
        }
    }
}
