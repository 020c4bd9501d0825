//! Installs what a quick start needs, below `target/tools`, by the registries' own clients. What was installed for the same manifest stays.

use super::table::{Kind, Tool};
use crate::run::{capture, root};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// One command of an installation that takes longer hangs: on its registry, as a rule.
const INSTALL_MAX: Duration = Duration::from_secs(600);

/// Where all of it is.
pub fn base() -> PathBuf {
    std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root().join("target"), PathBuf::from).join("tools")
}

/// The command of a tool's quick start, without the URL; an error says why it cannot run here.
pub fn prepare(tool: &Tool) -> Result<Command, String> {
    let dir = base().join(tool.name);
    copy(&tool.sources(), &dir)?;
    let mut command = match tool.kind {
        Kind::Python => python(&dir)?,
        Kind::Node => node(tool, &dir)?,
        Kind::Java => java(tool, &dir)?,
        Kind::Go => go(&dir)?,
        Kind::Program => program(tool)?,
    };
    command.current_dir(&dir);
    Ok(command)
}

/// Copies what is in `from`, its folders too, into `to`, which is made.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let told = |path: &Path| format!("cannot copy {}", path.display());
    std::fs::create_dir_all(to).map_err(|e| format!("cannot make {}: {e}", to.display()))?;
    for entry in std::fs::read_dir(from).map_err(|e| format!("{}: {e}", told(from)))?.flatten() {
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &copied)?;
        } else {
            std::fs::copy(&path, copied).map_err(|e| format!("{}: {e}", told(&path)))?;
        }
    }
    Ok(())
}

fn python(dir: &Path) -> Result<Command, String> {
    let venv = base().join("python");
    let interpreter = venv.join("bin/python");
    let requirements = root().join("tests/tools/requirements.txt");
    once(&requirements, &venv.join("installed"), || {
        quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv), "python3 -m venv")?;
        let pip = ["-m", "pip", "install", "--quiet", "--requirement"];
        quietly(Command::new(&interpreter).args(pip).arg(&requirements), "pip install")
    })?;
    let mut command = Command::new(&interpreter);
    command.arg(dir.join("quickstart.py"));
    Ok(command)
}

fn node(tool: &Tool, dir: &Path) -> Result<Command, String> {
    needs(&["node", "npm"])?;
    once(&tool.sources().join("package.json"), &dir.join("installed"), || {
        let flags = ["install", "--no-audit", "--no-fund", "--loglevel=error"];
        quietly(Command::new("npm").args(flags).current_dir(dir), "npm install")
    })?;
    let mut command = Command::new("node");
    command.arg("quickstart.js");
    Ok(command)
}

fn java(tool: &Tool, dir: &Path) -> Result<Command, String> {
    needs(&["java", "javac", "mvn"])?;
    let jars = dir.join("jars");
    once(&tool.sources().join("pom.xml"), &dir.join("installed"), || {
        let mut maven = Command::new("mvn");
        maven.args(["--batch-mode", "--quiet", "--file"]).arg(tool.sources().join("pom.xml"));
        maven.arg(format!("-Dmaven.repo.local={}", base().join("maven").display()));
        maven.arg("org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies");
        quietly(maven.arg(format!("-DoutputDirectory={}", jars.display())), "mvn dependency:copy-dependencies")
    })?;
    let mut compile = Command::new("javac");
    compile.args(["-nowarn", "-encoding", "UTF-8", "-cp", "jars/*", "-d", "classes", "QuickStart.java"]);
    quietly(compile.current_dir(dir), "javac")?;
    let mut command = Command::new("java");
    command.args(["-cp", "classes:jars/*", "QuickStart"]);
    Ok(command)
}

fn go(dir: &Path) -> Result<Command, String> {
    needs(&["go"])?;
    let program = dir.join("quickstart");
    // Writable, so that a `cargo clean` may remove it.
    let mut build = Command::new("go");
    build.args(["build", "-modcacherw", "-o"]).arg(&program).arg(".");
    quietly(build.env("GOPATH", base().join("go")).current_dir(dir), "go build")?;
    Ok(Command::new(program))
}

fn program(tool: &Tool) -> Result<Command, String> {
    let (debian, programs) = tool.package.split_last().ok_or("no program")?;
    needs(programs).map_err(|e| format!("{e} (apt-get install {debian})"))?;
    let mut command = Command::new("sh");
    command.arg("quickstart.sh");
    Ok(command)
}

/// Runs an installation if what it was made from has changed since.
fn once(manifest: &Path, stamp: &Path, install: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let wanted = std::fs::read(manifest).map_err(|e| format!("{}: {e}", manifest.display()))?;
    if std::fs::read(stamp).is_ok_and(|have| have == wanted) {
        return Ok(());
    }
    install()?;
    std::fs::write(stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))
}

/// An error names the programs that are missing.
fn needs(programs: &[&str]) -> Result<(), String> {
    let answers = |program: &str, flag: &str| {
        let mut asked = Command::new(program);
        asked.arg(flag).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    };
    let missing: Vec<&str> =
        programs.iter().copied().filter(|p| !answers(p, "--version") && !answers(p, "version")).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("{} is missing", missing.join(" and "))) }
}

/// Runs a command without a word, but for what takes long; an error has what it said last.
fn quietly(command: &mut Command, name: &str) -> Result<(), String> {
    eprintln!("   {name}");
    let Err(said) = capture(command, INSTALL_MAX) else { return Ok(()) };
    let line = said.lines().find(|l| l.contains("rror")).or(said.lines().last()).unwrap_or_default();
    Err(format!("{name} failed: {}", line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::table::TOOLS;

    #[test]
    fn every_quick_start_can_be_copied() {
        let to = std::env::temp_dir().join(format!("timeball-quick-starts-{}", std::process::id()));
        for tool in TOOLS {
            copy(&tool.sources(), &to.join(tool.name)).unwrap();
        }
        assert!(to.join("pgx/token_pool/main.go").is_file(), "a folder in a quick start's folder");
        std::fs::remove_dir_all(&to).unwrap();
    }
}
