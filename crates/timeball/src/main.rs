//! The `timeball` binary: its command line.
//!
//! Every command is a module; [`args`] turns the command line into one value, [`signals`] are taken in one place.
// This is the outermost shell.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod args;
mod bench;
mod clock;
mod demo;
mod serving;
mod shell;
mod signals;
mod start;

use args::Command;
use std::io::Write as _;
use std::process::ExitCode;

/// Rows are many small values on many threads: docs/decisions/0006-mimalloc.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let command = match args::parse(std::env::args_os()) {
        Ok(command) => command,
        Err(e) => {
            eprintln!("timeball: {e}\nTry `timeball help`.");
            return ExitCode::from(2);
        }
    };
    let done = match command {
        Command::Help(text) => {
            print!("{text}");
            Ok(())
        }
        Command::Version => {
            println!("timeball {} ({}, {})", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
            Ok(())
        }
        Command::Start(options) => start::run(&options),
        Command::Demo(options) => demo::run(&options),
        Command::Sql(options) => shell::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Clock(command) => clock::run(&command),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            // An empty message: it has been shown already.
            if !e.is_empty() {
                eprintln!("timeball: {e}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Writes to standard output. Whoever closed it does not want to know, and a node does not end for it (`println!` would).
fn say(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
