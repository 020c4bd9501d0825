//! The replicated log in a small world of its own: stores, clocks that drift and lie, a network that loses, doubles, delays and cuts
//! one way, logs that lose what was not synced, crashes, pauses. What must hold is checked after every step.

mod app;
mod controls;
mod elections;
mod formats;
mod machine;
mod network;
mod runs;
mod speed;
mod stories;
mod watch;
mod world;
