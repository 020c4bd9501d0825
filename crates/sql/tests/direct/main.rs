//! The direct path: golden scripts, and a dumb oracle beside access paths.
//!
//! A script is SQL; below each statement stands what it gives, as comments. `BLESS=1 cargo test -p timeball-sql --test direct`
//! writes them anew.

mod oracle;
mod recheck;
mod script;
mod world;
