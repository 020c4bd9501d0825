//! When a source last heard from its reference, by the boot-time clock.
//!
//! **Problem.** Daemons date their news by the system clock. Whoever sets that back makes old news look new: "now less then" shrinks.
//!
//! **Idea.** An answer is as old as it has been repeated. A changed one is younger than the last look at its predecessor, by the boot-time
//! clock, which nobody steps.
//!
//! **Invariants.** 1. As long as a report does not change, its date does not. 2. A later report has a later date. 3. The date is a lower bound
//! that holds whatever was done to the system clock: of a report that was there at the first look, nothing is known.

use crate::moment::Moment;

/// The date of a report at the first look: some time ago.
pub(crate) const SOME_TIME_AGO: u64 = 1;

/// The reports of one source.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct News {
    report: Option<Report>,
    /// Boot time of the last look.
    looked_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Report {
    id: u64,
    updated_ns: u64,
    /// Boot time of the first look at it, and how old it was then.
    seen_ns: u64,
    age_then_ns: u64,
}

/// How old a report is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dated {
    /// See [`crate::Measurement::updated_ns`].
    pub updated_ns: u64,
    /// Nanoseconds since then.
    pub age_ns: u64,
}

impl News {
    /// Takes what was found at `moment`: the report with this id, which is `stated_age_ns` old by the system clock. That counts for a report
    /// at the first look alone, and never makes it older than it can be.
    pub(crate) fn date(&mut self, id: u64, moment: &Moment, stated_age_ns: u64) -> Dated {
        let fresh = |updated_ns: u64, age_then_ns: u64| Report { id, updated_ns, seen_ns: moment.boot_ns, age_then_ns };
        let report = match self.report {
            Some(report) if report.id == id => report,
            None => fresh(SOME_TIME_AGO, stated_age_ns),
            Some(_) => {
                let unseen_ns = moment.boot_ns.saturating_sub(self.looked_ns);
                fresh(self.looked_ns.saturating_add(1), stated_age_ns.min(unseen_ns))
            }
        };
        (self.report, self.looked_ns) = (Some(report), moment.boot_ns);
        let repeated_ns = moment.boot_ns.saturating_sub(report.seen_ns);
        Dated { updated_ns: report.updated_ns, age_ns: report.age_then_ns.saturating_add(repeated_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn at(boot_s: u64) -> Moment {
        Moment { boot_ns: boot_s * S, ..Moment::default() }
    }

    #[test]
    fn a_step_of_the_system_clock_does_not_make_a_report_new() {
        let mut news = News::default();
        assert_eq!(news.date(7, &at(100), 30 * S), Dated { updated_ns: SOME_TIME_AGO, age_ns: 30 * S });
        // Set back by 9 s: by the system clock it is 22 s old, and ahead by an hour: older than the machine.
        for stated_ns in [22 * S, 0, 3_630 * S] {
            assert_eq!(news.date(7, &at(101), stated_ns), Dated { updated_ns: SOME_TIME_AGO, age_ns: 31 * S });
        }
    }

    #[test]
    fn a_changed_report_is_younger_than_the_last_look() {
        let mut news = News::default();
        news.date(7, &at(100), 30 * S);
        let changed = Dated { updated_ns: 100 * S + 1, age_ns: S / 2 };
        assert_eq!(news.date(8, &at(101), S / 2), changed);
        assert_eq!(news.date(8, &at(105), 0), Dated { age_ns: 4 * S + S / 2, ..changed }, "the date stays");
        assert_eq!(news.date(9, &at(106), 3_600 * S), Dated { updated_ns: 105 * S + 1, age_ns: S });
    }
}
