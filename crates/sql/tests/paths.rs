//! Which path runs each statement of the scripts: the direct one (`d`), the engine (`e`), both in turn (`b`: the engine finds rows or gives
//! them, the direct path writes them), or none (`-`: it is wrong, or no statement of rows). One line for each script, in `tests/paths.txt`.
//!
//! `BLESS=1 cargo test -p timeball-sql --test paths` writes it anew: look at the difference before you keep it.

#[path = "direct/world.rs"]
#[allow(dead_code)]
mod world;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use world::World;

/// Letters of a line of the file.
const LINE: usize = 100;

fn statements(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut statement = String::new();
    for line in text.lines().filter(|line| !line.starts_with("--")) {
        statement += line;
        statement.push('\n');
        if line.trim_end().ends_with(';') {
            let text = std::mem::take(&mut statement);
            out.push(text.trim().trim_end_matches(';').trim_start_matches("@2 ").to_string());
        }
    }
    out
}

/// How a statement is run; it runs, so that the next has its tables and rows.
fn path_of(world: &World, text: &str) -> char {
    let word = text.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    let planned = if matches!(word.as_str(), "SELECT" | "VALUES" | "WITH" | "TABLE" | "INSERT" | "UPDATE" | "DELETE")
        || word.starts_with('(')
    {
        world.prepare(text).ok()
    } else {
        None
    };
    if matches!(word.as_str(), "CREATE" | "INSERT") {
        // What fails here changes nothing.
        let _ = world.run(text);
    }
    match planned {
        None => '-',
        Some(plan) if plan.is_direct() => 'd',
        Some(plan) if plan.is_read_only() => 'e',
        Some(_) => 'b',
    }
}

#[test]
fn each_statement_takes_the_path_that_it_took() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut scripts: Vec<PathBuf> = Vec::new();
    for folder in ["direct/scripts", "engine/scripts"] {
        scripts.extend(std::fs::read_dir(tests.join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    scripts.sort();
    let mut now = String::new();
    for script in &scripts {
        let world = World::new();
        let text = std::fs::read_to_string(script).unwrap();
        let paths: Vec<char> = statements(&text).iter().map(|statement| path_of(&world, statement)).collect();
        let _ = writeln!(now, "{}", script.strip_prefix(&tests).unwrap().display());
        for line in paths.chunks(LINE) {
            let _ = writeln!(now, "{}", line.iter().collect::<String>());
        }
    }
    let direct =
        now.lines().filter(|line| !line.ends_with(".sql")).map(|line| line.matches('d').count()).sum::<usize>();
    assert!(direct > 200, "the direct path is hardly taken: {direct}");
    let kept = tests.join("paths.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&kept, &now).unwrap();
    }
    let before = std::fs::read_to_string(&kept).unwrap_or_default();
    let differ: Vec<_> = before.lines().zip(now.lines()).filter(|(a, b)| a != b).collect();
    assert!(differ.is_empty() && before.len() == now.len(), "other paths than in {}:\n{differ:#?}", kept.display());
}
