//! Nodes of a cluster in a small world: see `world`.

mod ages;
mod ahead;
mod alone;
mod bank;
mod client;
mod collection;
mod controls;
mod doubt;
mod holds;
mod joins;
mod links;
mod moved;
mod near;
mod negotiated;
mod one_range;
mod operations;
mod parts;
mod past;
mod rules;
mod silence;
mod snapshots;
mod splits;
mod uncertainty;
mod versions;
mod waits;
mod world;
