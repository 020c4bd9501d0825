//! `cargo x tools`: each tool that people bring runs its own quick start on a node of its own.
//!
//! A quick start is a small real program under `tests/tools/<name>/` that ends with `all fine`. It is also the end-to-end test of the cheap tools.

pub mod install;
mod table;

use crate::bench::systems::{Node, build_timeball};
use crate::run::{self, cargo, root};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use table::{Kind, LEFT_OUT, TOOLS, Tool};

/// A quick start that takes longer hangs.
const QUICK_START_MAX: Duration = Duration::from_secs(300);
/// What a quick start prints last.
const PASSED: &str = "all fine";

/// How a tool fared.
enum Verdict {
    Passed(Duration),
    Failed(String),
    Skipped(String),
}

/// `cargo x tools [NAME..] [--release] [--url URL] [--write]`
pub fn tools(args: &[String]) -> Result<(), String> {
    let has = |flag: &str| args.iter().any(|a| a == flag);
    let url = args.iter().position(|a| a == "--url").and_then(|at| args.get(at + 1));
    let names: Vec<&String> = args.iter().filter(|a| !a.starts_with("--") && Some(*a) != url).collect();
    if let Some(unknown) = names.iter().find(|name| TOOLS.iter().all(|tool| tool.name != name.as_str())) {
        let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        return Err(format!("there is no quick start of {unknown}; there are: {}", known.join(", ")));
    }
    let binary = match (url, has("--release")) {
        (Some(_), _) => PathBuf::new(),
        (None, true) => build_timeball()?,
        (None, false) => {
            cargo(&["build", "--quiet", "--package", "timeball"], &[])?;
            install::base().with_file_name("debug").join("timeball")
        }
    };
    let mut rows = Vec::new();
    let chosen = TOOLS.iter().filter(|tool| names.is_empty() || names.iter().any(|n| n.as_str() == tool.name));
    let count = chosen.clone().count();
    for (place, tool) in chosen.enumerate() {
        eprintln!("── {} of {count}: {}", place + 1, tool.name);
        let verdict = run(tool, &binary, url.map(String::as_str));
        let (word, more) = match &verdict {
            Verdict::Passed(took) => ("passed", format!("{:.1} s", took.as_secs_f64())),
            Verdict::Failed(why) => ("FAILED", why.clone()),
            Verdict::Skipped(why) => ("skipped", format!("because {why}")),
        };
        println!("{word:8} {:28} {more}", format!("{} {}", tool.name, tool.version()));
        rows.push((tool, verdict));
        // A run that is ended keeps what it has found.
        if has("--write") {
            write(&rows)?;
        }
    }
    let count = |wanted: fn(&Verdict) -> bool| rows.iter().filter(|(_, verdict)| wanted(verdict)).count();
    let failed = count(|v| matches!(v, Verdict::Failed(_)));
    let (passed, skipped) = (count(|v| matches!(v, Verdict::Passed(_))), count(|v| matches!(v, Verdict::Skipped(_))));
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    for (name, why) in LEFT_OUT.iter().filter(|_| names.is_empty()) {
        println!("without a quick start: {name}: {why}");
    }
    if failed == 0 { Ok(()) } else { Err(format!("what they printed is under {}", install::base().display())) }
}

fn run(tool: &Tool, binary: &Path, url: Option<&str>) -> Verdict {
    let mut command = match install::prepare(tool) {
        Ok(command) => command,
        Err(why) => return Verdict::Skipped(why),
    };
    let dir = install::base().join(tool.name);
    let node = match url {
        Some(_) => None,
        None => {
            let store = dir.join("store");
            // There is none at the first run.
            let _ = std::fs::remove_dir_all(&store);
            match File::create(dir.join("node.log"))
                .map_err(|e| e.to_string())
                .and_then(|log| Node::start(binary, &store, log.into()))
            {
                Ok(node) => Some(node),
                Err(why) => return Verdict::Failed(why),
            }
        }
    };
    let local = node.as_ref().map(|node| format!("postgresql://root@127.0.0.1:{}/postgres", node.port));
    let url = url.map(str::to_owned).or(local).unwrap_or_default();
    let verdict = started(&mut command, tool, &url, &dir.join("output.log")).unwrap_or_else(Verdict::Failed);
    if node.is_some() && matches!(verdict, Verdict::Passed(_)) {
        drop(node);
        // Its logs are allocated in advance; the next run starts with a fresh store anyway.
        let _ = std::fs::remove_dir_all(dir.join("store"));
    }
    verdict
}

/// Runs a quick start to its end.
fn started(command: &mut Command, tool: &Tool, url: &str, log: &Path) -> Result<Verdict, String> {
    let out = File::create(log).map_err(|e| format!("{}: {e}", log.display()))?;
    let err = out.try_clone().map_err(|e| e.to_string())?;
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
        command.env_remove(name);
    }
    address(command, tool, url)?;
    command.env("LC_ALL", "C.UTF-8").stdin(Stdio::null()).stdout(out).stderr(err);
    let began = Instant::now();
    let mut child = command.process_group(0).spawn().map_err(|e| format!("cannot start it: {e}"))?;
    let Some(status) = run::wait(&mut child, QUICK_START_MAX).map_err(|e| e.to_string())? else {
        return Err(format!("not done after {} s", QUICK_START_MAX.as_secs()));
    };
    let said = std::fs::read_to_string(log).unwrap_or_default();
    if status.success() && said.lines().any(|line| line == PASSED) {
        return Ok(Verdict::Passed(began.elapsed()));
    }
    let telling = said.lines().filter(|line| !line.trim_start().starts_with("at "));
    let reason =
        telling.clone().find(|line| line.contains("ERROR:")).or_else(|| telling.clone().find(|l| l.contains("rror")));
    Ok(Verdict::Failed(reason.or(said.lines().last()).unwrap_or("it said nothing").trim().to_owned()))
}

/// Tells a quick start where the server is, in the form that its kind takes.
fn address(command: &mut Command, tool: &Tool, url: &str) -> Result<(), String> {
    let (user, place) = url.split_once("://").and_then(|(_, rest)| rest.split_once('@')).ok_or("a URL has a user")?;
    let (host, database) = place.split_once('/').ok_or("a URL has a database")?;
    let (name, port) = host.split_once(':').unwrap_or((host, "5432"));
    match tool.kind {
        Kind::Java => command.arg(format!("jdbc:postgresql://{host}/{database}?user={user}")),
        Kind::Program => {
            command.arg(url).envs([("PGHOST", name), ("PGPORT", port), ("PGUSER", user), ("PGDATABASE", database)])
        }
        _ => command.arg(url),
    };
    Ok(())
}

/// Writes results into the table of `docs/tools.md`; those of other tools stay.
fn write(rows: &[(&Tool, Verdict)]) -> Result<(), String> {
    const HEAD: &str = "| tool | version | its quick start | result |\n| --- | --- | --- | --- |\n";
    let path = root().join("docs/tools.md");
    let page = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let (before, rest) = page.split_once(HEAD).ok_or("docs/tools.md has no table")?;
    let (old, after) = rest.split_once("\n\n").unwrap_or((rest, ""));
    let mut table = String::new();
    for tool in TOOLS {
        let Some((_, verdict)) = rows.iter().find(|(known, _)| known.name == tool.name) else {
            let kept = old.lines().find(|line| line.starts_with(&format!("| [{}]", tool.name)));
            kept.into_iter().for_each(|line| table.push_str(&format!("{line}\n")));
            continue;
        };
        let result = match verdict {
            Verdict::Passed(_) => "passes".into(),
            Verdict::Failed(why) => format!("fails: {}", why.replace('|', "\\|")),
            Verdict::Skipped(why) => format!("skipped: {why}"),
        };
        let name = tool.name;
        table.push_str(&format!(
            "| [{name}](../tests/tools/{name}) | {} | {} | {result} |\n",
            tool.version(),
            tool.does
        ));
    }
    std::fs::write(&path, format!("{before}{HEAD}{table}\n{after}")).map_err(|e| format!("{}: {e}", path.display()))
}
