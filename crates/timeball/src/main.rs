//! The `timeball` binary.
fn main() {}
