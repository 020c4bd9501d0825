//! End to end: real processes, real clients.
//!
//! Run all of it with `cargo test -p timeball --test e2e`; every test prints the line that repeats it alone. Tests that need a
//! tool that is missing (psql, pgbench, python3, go, root, chronyd) say so and pass, unless `TIMEBALL_E2E_REQUIRE=1`. `TIMEBALL_BINARY` runs them
//! against another binary, such as a release build.
//!
//! No test knows how fast the machine is: each waits for a condition, and what takes too long once is tried again.
// Tests own processes, sockets and threads, and may end in a panic.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, missing_docs)]

mod anomalies;
mod bad_protocol;
mod bank;
mod clients;
mod clocks;
mod cluster;
mod crash;
// The chronyds of the clock library's own test, and less of it.
#[allow(dead_code)]
#[path = "../../crates/clocksource/tests/containment/daemons.rs"]
mod daemons;
mod differential;
mod disk_full;
mod exhaustion;
mod extended_protocol;
mod large_statements;
mod lifecycle;
mod memory;
mod node;
mod prepared_bounds;
mod rechecks;
mod row_locks;
mod script;
mod sessions;
mod shell;
mod unindexed;
