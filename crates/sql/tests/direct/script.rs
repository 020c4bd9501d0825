//! Golden scripts.

use crate::world::{World, error_lines};
use sql::TxnRef;
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[test]
fn scripts_give_what_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/direct/scripts");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut wrong = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let (now, bless) = (run(&text), std::env::var_os("BLESS").is_some());
        if now != text && bless {
            std::fs::write(&path, &now).unwrap();
        } else if now != text {
            wrong.push(difference(&path, &text, &now));
        }
    }
    assert!(wrong.is_empty(), "{}\nrepeat: cargo test -p timeball-sql --test direct scripts", wrong.join("\n"));
}

fn difference(path: &Path, before: &str, now: &str) -> String {
    let at = before.lines().zip(now.lines()).position(|(a, b)| a != b);
    let line = at.unwrap_or_else(|| before.lines().count().min(now.lines().count()));
    let show = |text: &str| text.lines().nth(line).unwrap_or("(end)").to_string();
    format!("{}:{}\n  expected {}\n  got      {}", path.display(), line + 1, show(before), show(now))
}

/// Runs a script: statements end with a semicolon at the end of a line; lines of `--` after one are what it gave.
fn run(text: &str) -> String {
    let world = World::new();
    let mut out = String::new();
    let mut statement = String::new();
    let mut open: [Option<TxnRef>; 2] = [None, None];
    let mut head = true;
    for line in text.lines() {
        if line.starts_with("--") {
            // The head comment is kept; results are made anew.
            if head || line.starts_with("---") {
                let _ = writeln!(out, "{line}");
            }
            continue;
        }
        if line.trim().is_empty() && statement.is_empty() {
            let _ = writeln!(out);
            continue;
        }
        head = false;
        statement.push_str(line);
        statement.push('\n');
        if !line.trim_end().ends_with(';') {
            continue;
        }
        out.push_str(&statement);
        let text = statement.trim().trim_end_matches(';');
        let lines = match text.strip_prefix("@2 ") {
            Some(text) => {
                open[1].get_or_insert_with(|| world.begin());
                execute(&world, &mut open[1], text)
            }
            None => execute(&world, &mut open[0], text),
        };
        for line in lines {
            let _ = writeln!(out, "-- {line}");
        }
        statement.clear();
    }
    out
}

fn execute(world: &World, open: &mut Option<TxnRef>, text: &str) -> Vec<String> {
    match text.to_lowercase().as_str() {
        "begin" => {
            *open = Some(world.begin());
            return vec!["BEGIN".into()];
        }
        "commit" => {
            let txn = open.take().unwrap();
            return match txn.with(|txn| txn.commit()) {
                Ok(_) => vec!["COMMIT".into()],
                Err(error) => error_lines(&error.into()),
            };
        }
        _ => {}
    }
    if let Some(explained) = text.strip_prefix("EXPLAIN ") {
        return match world.prepare(explained) {
            Ok(plan) => sql::explain::lines(plan.explain()),
            Err(error) => error_lines(&error),
        };
    }
    let result = match open {
        Some(txn) => world.run_in(txn, text, Vec::new()),
        None => world.run(text),
    };
    match result {
        Ok(answer) => {
            let mut lines = answer.lines();
            lines.push(answer.tag);
            lines
        }
        Err(error) => error_lines(&error),
    }
}
