//! How long the cases run, and on how much.

use std::fmt;

/// The minutes that [`Lengths::of_minutes`] scales from.
const MINUTES: u64 = 15;

/// See the module. Seconds, rows, and pgbench's scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    /// Rows of sysbench's table.
    pub sysbench_rows: u64,
    /// Each script, fresh and after the updates.
    pub script_seconds: u64,
    /// Each of the two scripts of updates before.
    pub load_seconds: u64,
    /// Updates of the hot rows.
    pub hot_seconds: u64,
    /// So many of them a second; `None`: as many as there can be.
    pub hot_rate: Option<u64>,
    /// The time after them.
    pub after_seconds: u64,
    /// How long a node keeps versions where a case waits for their end; `None`: its default.
    pub retention_seconds: Option<u64>,
    /// The queue, at each isolation level.
    pub queue_seconds: u64,
    /// pgbench's scale.
    pub scale: u32,
    /// Each of pgbench's scripts.
    pub pgbench_seconds: u64,
    /// Rows of the table that is loaded, indexed, counted and halved.
    pub bulk_rows: u64,
}

impl Lengths {
    /// Those that the goals are meant for.
    pub const FULL: Lengths = Lengths {
        sysbench_rows: 100_000,
        script_seconds: 10,
        load_seconds: 600,
        hot_seconds: 3600,
        hot_rate: None,
        after_seconds: 1800,
        retention_seconds: None,
        queue_seconds: 600,
        scale: 50,
        pgbench_seconds: 300,
        bulk_rows: 5_000_000,
    };

    /// Those that fit into so many minutes, both systems together, on a small machine.
    pub fn of_minutes(minutes: u64) -> Lengths {
        let part = |full: u64| (full * minutes / MINUTES).max(1);
        Lengths {
            sysbench_rows: part(100_000).clamp(1_000, Lengths::FULL.sysbench_rows),
            script_seconds: part(3),
            load_seconds: part(30),
            hot_seconds: part(60).max(4),
            hot_rate: None,
            // A retention window and as long again: what it held back goes in the second half.
            after_seconds: part(60).max(8),
            retention_seconds: Some(part(30).max(2)),
            queue_seconds: part(40).max(4),
            scale: u32::try_from(part(10)).unwrap_or(Lengths::FULL.scale).min(Lengths::FULL.scale),
            pgbench_seconds: part(15).max(4),
            bulk_rows: part(1_000_000).clamp(10_000, Lengths::FULL.bulk_rows),
        }
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let retention = self.retention_seconds.map_or("the default".into(), |s| format!("{s} s"));
        let rate = self.hot_rate.map_or(String::new(), |rate| format!(" at {rate} a second"));
        write!(
            f,
            "sysbench {} rows, {} s a script, {} s of updates each; hot rows {} s{rate} and {} s after, retention {retention}; \
             queue {} s; pgbench scale {}, {} s a script; bulk {} rows",
            self.sysbench_rows,
            self.script_seconds,
            self.load_seconds,
            self.hot_seconds,
            self.after_seconds,
            self.queue_seconds,
            self.scale,
            self.pgbench_seconds,
            self.bulk_rows
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_fits_its_minutes() {
        let l = Lengths::of_minutes(15);
        let sysbench = 2 * (2 * 10 * l.script_seconds + 2 * l.load_seconds);
        let hot = 2 * l.hot_seconds + l.after_seconds + l.after_seconds / 4;
        let timed = sysbench + hot + 4 * l.queue_seconds + 6 * l.pgbench_seconds;
        assert!(timed < 15 * 60 - 120, "{timed} s leave too little for the loads");
        assert!(l.after_seconds >= 2 * l.retention_seconds.unwrap());
    }

    #[test]
    fn the_least_is_not_nothing() {
        let l = Lengths::of_minutes(0);
        assert!(l.scale == 1 && l.bulk_rows == 10_000 && l.script_seconds == 1 && l.queue_seconds >= 4);
        assert_eq!(Lengths::of_minutes(1_000_000).bulk_rows, Lengths::FULL.bulk_rows);
    }
}
