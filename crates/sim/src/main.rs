//! The simulator as a command: see `sim::main`.

use std::process::ExitCode;

/// A run is made of small events: docs/decisions/0006-mimalloc.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if sim::main(&args) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
