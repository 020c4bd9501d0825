//! The `timeball` binary: its command line.
//!
//! Every command is a module; [`args`] turns the command line into one value, [`signals`] are taken in one place.
// This is the outermost shell.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod allocator;
mod args;
mod bench;
mod clock;
mod cluster;
mod demo;
mod lab;
mod serving;
mod shell;
mod signals;
mod start;

use args::Command;
use std::io::Write as _;
use std::process::ExitCode;

/// Rows are many small values on many threads: docs/decisions/0006-mimalloc.md.
#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

unsafe extern "C" {
    fn mi_collect(force: bool);
    fn mi_option_set(option: libc::c_int, value: libc::c_long);
}

/// `mi_option_purge_delay`: how long the allocator keeps empty pages, milliseconds; 0: not at all.
const PURGE_DELAY: libc::c_int = 15;
/// Its own default.
const PURGE_DELAY_MS: libc::c_long = 1000;
/// A page that became empty is kept by its thread for so many collections.
const RETIRE_CYCLES: usize = 16;

/// What the allocator above is asked for.
const ALLOCATOR_REQUESTS: server::Allocator =
    server::Allocator { tidy: tidy_memory, give_back: give_back_memory, keep: keep_memory };

/// Makes this thread's empty pages available to all: a thread keeps some of each size, for as long as it lives.
fn tidy_memory() {
    for _ in 0..RETIRE_CYCLES {
        // SAFETY: the allocator above links this function, which takes a C bool and may be called at any time from any thread.
        unsafe { mi_collect(false) }
    }
}

/// Whether empty pages stay with the process for a while. While they did, a crowd of clients and a load left 800 MiB of them.
fn keep_memory(keep: bool) {
    // SAFETY: the allocator above links this function, which stores a number in a table of options, and ignores options it does not have.
    unsafe { mi_option_set(PURGE_DELAY, if keep { PURGE_DELAY_MS } else { 0 }) }
}

/// Asks the allocator to give freed memory back to the system: after something large, for by itself it waits for the next allocations
/// of the same threads.
fn give_back_memory() {
    // It does nothing while another thread is at it, and what this one freed would stay.
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock();
    // SAFETY: the allocator above links this function, which takes a C bool and may be called at any time from any thread.
    unsafe { mi_collect(true) }
}

/// Huge pages make two megabytes of whatever is touched, now or while nobody looks: a session took 1.5 MB instead of 0.15, and an idle
/// node grew by a sixth in ten minutes (docs/decisions/0084-no-huge-pages.md). Where the system refuses, memory is only less sparing.
fn without_huge_pages() {
    // SAFETY: this operation takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
}

fn main() -> ExitCode {
    without_huge_pages();
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
        Command::Sql(options) => {
            let Err(ended) = shell::run(&options) else { return ExitCode::SUCCESS };
            let (status, why) = ended.status();
            if !why.is_empty() {
                eprintln!("timeball: {why}");
            }
            return ExitCode::from(status);
        }
        Command::Bench(options) => bench::run(&options),
        Command::Lab(command) => lab::run(&command),
        Command::Clock(command) => clock::run(&command),
        Command::Cluster(command) => cluster::run(&command),
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
