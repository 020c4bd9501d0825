//! `cargo x`.
fn main() {}
