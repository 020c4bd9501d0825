//! Until somebody waits, in a bounded number of turns.

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::{run, state_of};
use sql::Session;
use std::thread;

/// How many sessions wait for others.
pub(super) const LOCK_WAITS: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
/// How many transactions wait for keys.
pub(super) const KEY_WAITS: &str = "SELECT count(*) FROM pg_locks WHERE NOT granted";
/// An ALTER TABLE that reads all rows, and that of more than one thing: so writers wait for it.
pub(super) const FILLED: &str = "ALTER TABLE t ADD COLUMN r float8 NOT NULL DEFAULT random(), ADD COLUMN z int";

/// So often a condition is looked for until it counts as never true.
const TURNS_MAX: usize = 300_000;

/// Until a query gives this.
pub(super) fn until(asking: &mut Session, sql: &str, expected: &str) {
    let mut found = Vec::new();
    for _ in 0..TURNS_MAX {
        found = run(asking, sql);
        if found == [expected] {
            return;
        }
        thread::yield_now();
    }
    panic!("{sql}: still {found:?}, not {expected}");
}

/// Until a statement ends so.
pub(super) fn until_state(asking: &mut Session, sql: &str, expected: &str) {
    let mut found = String::new();
    for _ in 0..TURNS_MAX {
        found = state_of(asking, sql);
        if found == expected {
            return;
        }
    }
    panic!("{sql}: still {found}, not {expected}");
}
