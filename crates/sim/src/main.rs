//! The simulator as a command: see `sim::main`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if sim::main(&args) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
