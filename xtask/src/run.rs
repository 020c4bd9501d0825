//! Starts one command, says which, and reports how it ended.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a running command is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The workspace's root.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// Runs `cargo` with these arguments at the root.
pub fn cargo(args: &[&str], env: &[(&str, &str)]) -> Result<(), String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args).envs(env.iter().copied()).current_dir(root());
    run(&mut command, &format!("cargo {}", args.join(" ")))
}

/// Runs a command; an error names it.
pub fn run(command: &mut Command, name: &str) -> Result<(), String> {
    eprintln!("── {name}");
    let started = Instant::now();
    let status = command.status().map_err(|e| format!("cannot start `{name}`: {e}"))?;
    eprintln!("── {:.0} s: {name}", started.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { Err(format!("`{name}` failed ({status}); that command repeats it")) }
}

/// Whether `cargo <component> --version` answers: a bare toolchain may lack rustfmt and clippy.
pub fn has_component(component: &str) -> bool {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    Command::new(cargo).args([component, "--version"]).output().is_ok_and(|o| o.status.success())
}

/// Runs a command and gives what it printed; one that takes longer than `limit` hangs, and is ended.
pub fn capture(command: &mut Command, limit: Duration) -> Result<String, String> {
    let name = format!("{command:?}");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.process_group(0).spawn().map_err(|e| format!("cannot start {name}: {e}"))?;
    let (out, err) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let status = wait(&mut child, limit).map_err(|e| format!("{name}: {e}"))?;
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    match status {
        Some(status) if status.success() => Ok(out),
        Some(_) => Err(format!("{name} failed:\n{err}{out}")),
        None => Err(format!("{name} was ended after {} s:\n{err}", limit.as_secs())),
    }
}

/// Waits for a command that leads a process group; `None`: it took longer than `limit`, and was ended with all that it had started. What it
/// had started would keep its pipes open, and its connections.
pub fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let began = Instant::now();
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if began.elapsed() > limit => {
                let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
                let _ = child.wait();
                return Ok(None);
            }
            None => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// Reads a pipe on a thread of its own: a full one would block the command.
fn drain(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is worth having.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
