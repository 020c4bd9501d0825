//! `\watch`: the last statement again and again, until Ctrl-C.

use super::{Shell, Step};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Seconds between two runs where none are given, as in psql.
const EVERY_S: f64 = 2.0;

/// Whether a watch goes on; whoever takes SIGINT says no.
static GOES_ON: Mutex<bool> = Mutex::new(false);
static STOPPED: Condvar = Condvar::new();

/// Ends a watch; `false` if there is none.
pub fn stop() -> bool {
    let went_on = std::mem::take(&mut *GOES_ON.lock().unwrap_or_else(PoisonError::into_inner));
    STOPPED.notify_all();
    went_on
}

/// `\watch [SECONDS] [c=TIMES]`, or `i=SECONDS` as newer ones of psql have it.
pub fn run(shell: &mut Shell, arguments: &[&str]) -> Step {
    let (mut every, mut times) = (EVERY_S, None);
    for argument in arguments {
        let understood = match argument.split_once('=') {
            Some(("c", n)) => n.parse().map(|n: u64| times = Some(n)).is_ok(),
            Some(("i", s)) => s.parse().map(|s| every = s).is_ok(),
            Some(_) => false,
            None => argument.parse().map(|s| every = s).is_ok(),
        };
        if !understood {
            eprintln!("\\watch takes seconds, and how often as c=TIMES: not {argument}.");
            return Step::Failed;
        }
    }
    let Ok(every) = Duration::try_from_secs_f64(every) else {
        eprintln!("\\watch cannot wait for {every} seconds.");
        return Step::Failed;
    };
    if shell.last.is_empty() {
        eprintln!("\\watch repeats the last statement, and there is none yet.");
        return Step::Failed;
    }
    *GOES_ON.lock().unwrap_or_else(PoisonError::into_inner) = true;
    let text = shell.last.clone();
    let mut step = Step::On;
    while step == Step::On && times != Some(0) {
        let title = format!("Every {} s", every.as_secs_f64());
        step = shell.statement(&text, Some(&title));
        times = times.map(|n| n - 1);
        if times != Some(0) && !wait(every) {
            break;
        }
    }
    stop();
    step
}

/// `false` if the watch was stopped meanwhile.
fn wait(every: Duration) -> bool {
    let until = Instant::now() + every;
    let mut goes_on = GOES_ON.lock().unwrap_or_else(PoisonError::into_inner);
    while *goes_on {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        goes_on = STOPPED.wait_timeout(goes_on, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    false
}
