//! A test of real processes that failed is tried once more by itself.
//!
//! Problem: the end-to-end tests start processes on a machine whose other work, disk and scheduler are not ours. One of them that fails once
//! in some hundred runs fails every third run of all of them. Idea: few that failed there are run again, alone; what passes then is named,
//! loudly, and does not fail the run. What is deterministic (every other test, the simulator) gets no second try: there a failure is a bug.
//!
//! Invariants:
//! 1. A failure anywhere but in the end-to-end tests fails the run.
//! 2. More than [`AGAIN_MAX`] failures are no accident, and none is tried again.
//! 3. Exactly the tests that failed are run again; one that fails twice fails the run.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::run::{cargo, root};

/// The tests that start real processes, as cargo names them among the targets that failed.
const REAL_PROCESSES: &str = "`-p timeball --test e2e`";
/// So many failures may be accidents.
const AGAIN_MAX: usize = 3;
/// How long what cargo had started may go on to print behind its end.
const LEFT_BEHIND: Duration = Duration::from_secs(10);
/// How cargo ends a run in which tests failed: "error: 2 targets failed:".
const TARGETS_FAILED: [&str; 2] = [" target failed:", " targets failed:"];

/// Every test of the workspace.
///
/// # Errors
///
/// A test failed: anywhere but in the end-to-end tests, or there twice, or more than [`AGAIN_MAX`] there.
pub fn test(env: &[(&str, &str)]) -> Result<(), String> {
    let args = ["test", "--workspace", "--no-fail-fast"];
    let (passed, printed) = told(&args, env)?;
    if passed {
        return Ok(());
    }
    let failed =
        worth_another(&printed).ok_or(format!("`cargo {}` failed; that command repeats it", args.join(" ")))?;
    let names: Vec<&str> = failed.iter().map(String::as_str).collect();
    eprintln!("── once more, alone: {}", names.join(", "));
    // The same packages: with others their features would be others, and all would be built anew.
    let again = ["test", "--workspace", "--test", "e2e", "--", "--exact", "--test-threads", "1"];
    cargo(&[again.as_slice(), &names].concat(), env)?;
    eprintln!("── FLAKY, passed at the second try (look at what it printed at the first): {}", names.join(", "));
    Ok(())
}

/// The tests to run again, by name; `None`: what failed is no accident.
fn worth_another(printed: &str) -> Option<BTreeSet<String>> {
    let targets: Vec<&str> =
        lines_behind(printed, |line| TARGETS_FAILED.iter().any(|end| line.ends_with(end))).collect();
    let failed: BTreeSet<String> = lines_behind(printed, |line| line == "failures:")
        .filter(|name| !name.contains(' '))
        .map(String::from)
        .collect();
    (targets == [REAL_PROCESSES] && (1..=AGAIN_MAX).contains(&failed.len())).then_some(failed)
}

/// The indented lines that follow directly on a heading, trimmed, of every such heading.
fn lines_behind(text: &str, heading: impl Fn(&str) -> bool) -> impl Iterator<Item = &str> {
    let mut listed = false;
    text.lines().filter_map(move |line| {
        listed = heading(line) || listed && line.starts_with("    ");
        (listed && line.starts_with("    ")).then(|| line.trim())
    })
}

/// Runs cargo, shows all that it prints as it comes, and gives it back: whether it passed, its output and its messages behind one another.
fn told(args: &[&str], env: &[(&str, &str)]) -> Result<(bool, String), String> {
    let name = format!("cargo {}", args.join(" "));
    eprintln!("── {name}");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args).envs(env.iter().copied()).current_dir(root()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("cannot start `{name}`: {e}"))?;
    let printed = tee(child.stdout.take(), std::io::stdout());
    let messages = tee(child.stderr.take(), std::io::stderr());
    let status = child.wait().map_err(|e| format!("`{name}`: {e}"))?;
    let text = [printed, messages].map(|tee| tee.kept(LEFT_BEHIND)).concat();
    Ok((status.success(), text))
}

/// What passes lines on and keeps them, on a thread of its own.
struct Tee(Arc<Mutex<String>>, Receiver<()>);

impl Tee {
    /// All that came, once nobody holds the pipe any more, or after so long: a server that a test left behind holds it as long as it lives.
    fn kept(self, wait_max: Duration) -> String {
        let _ = self.1.recv_timeout(wait_max);
        self.0.lock().map(|kept| kept.clone()).unwrap_or_default()
    }
}

fn tee(from: Option<impl Read + Send + 'static>, mut to: impl Write + Send + 'static) -> Tee {
    let kept = Arc::new(Mutex::new(String::new()));
    let (ended, end) = channel();
    let keeps = kept.clone();
    std::thread::spawn(move || {
        let Some(from) = from else { return };
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        // What cannot be read any more, or shown to nobody, ends it: the child's own status is what counts.
        while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let _ = to.write_all(&line).and_then(|()| to.flush());
            if let Ok(mut kept) = keeps.lock() {
                kept.push_str(&String::from_utf8_lossy(&line));
            }
            line.clear();
        }
        let _ = ended.send(());
    });
    Tee(kept, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_of(failed: &[&str], targets: &[&str]) -> String {
        let names = failed.iter().map(|name| format!("    {name}\n")).collect::<String>();
        let targets = targets.iter().map(|target| format!("    {target}\n")).collect::<String>();
        let shown =
            failed.iter().map(|name| format!("---- {name} stdout ----\n    a line of its own\n\n")).collect::<String>();
        format!(
            "test a::b ... ok\n\nfailures:\n\n{shown}\nfailures:\n{names}\ntest result: FAILED. 1 passed; 1 failed\n\nerror: 1 target failed:\n{targets}"
        )
    }

    #[test]
    fn few_failures_of_real_processes_are_worth_another_try() {
        let found = worth_another(&run_of(&["bank::totals", "cluster::join::x"], &[REAL_PROCESSES]));
        assert_eq!(found, Some(["bank::totals", "cluster::join::x"].map(String::from).into()));
    }

    #[test]
    fn what_a_server_that_was_left_behind_holds_open_is_not_waited_for() {
        let (held, open) = std::io::pipe().unwrap();
        let mut writes = open.try_clone().unwrap();
        writes.write_all(b"a line\n").unwrap();
        drop(writes);
        let tee = tee(Some(held), std::io::sink());
        while tee.0.lock().unwrap().is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(tee.kept(Duration::from_millis(1)), "a line\n");
        drop(open);
    }

    #[test]
    fn what_is_deterministic_or_fails_in_numbers_is_not() {
        assert_eq!(worth_another(&run_of(&["a::b"], &["`-p timeball-store --lib`"])), None);
        assert_eq!(
            worth_another(&run_of(&["a::b", "bank::totals"], &["`-p timeball-store --lib`", REAL_PROCESSES])),
            None
        );
        assert_eq!(worth_another(&run_of(&["a", "b", "c", "d"], &[REAL_PROCESSES])), None);
        assert_eq!(worth_another("error: could not compile `timeball-sql`\n"), None);
    }
}
