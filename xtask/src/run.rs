//! Starts one command, says which, and reports how it ended.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

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
