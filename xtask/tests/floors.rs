//! The rules of STYLE.md that a machine can keep. Each failure says which file, which rule, and what to do.
#![allow(clippy::disallowed_methods, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Crates by floor: imports go down, never up, never sideways.
const FLOORS: &[(u32, &[&str])] = &[
    (0, &["clock"]),
    (1, &["protocol", "store", "sql", "checker", "clocksource", "transport"]),
    (2, &["node"]),
    (3, &["server", "sim"]),
    (4, &["lab"]),
    (5, &["timeball"]),
];

/// Crates that own no clock, socket, disk, thread or unseeded chance.
const CORES: &[&str] = &["clock", "protocol", "checker", "node"];

/// Crates below the shells: no real time, no threads of their own.
const BELOW_THE_SHELLS: &[&str] = &["clock", "protocol", "store", "sql", "checker", "node"];

/// Past this a file has become two things.
const FILE_LINES_MAX: usize = 800;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn floor(name: &str) -> Option<u32> {
    FLOORS.iter().find(|(_, names)| names.contains(&name)).map(|(floor, _)| *floor)
}

fn files(dir: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if path.is_dir() && !hidden && entry.file_name() != "target" {
            files(&path, ending, found);
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
}

fn sources(below: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    files(&root().join(below), ".rs", &mut found);
    found.into_iter().map(|p| (p.clone(), std::fs::read_to_string(p).unwrap())).collect()
}

/// Lines of a source file that are code: no comments.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(n, l)| (n + 1, l)).filter(|(_, l)| !l.trim_start().starts_with("//"))
}

#[test]
fn every_crate_has_a_floor_and_imports_only_from_below() {
    let mut problems = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(own) = floor(&name) else {
            problems.push(format!("crates/{name} has no floor: give it one in ARCHITECTURE.md and in this test"));
            continue;
        };
        let text = std::fs::read_to_string(entry.path().join("Cargo.toml")).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        let empty = toml::Table::new();
        let dependencies = manifest.get("dependencies").and_then(|d| d.as_table()).unwrap_or(&empty);
        for dependency in dependencies.keys() {
            if let Some(other) = floor(dependency.trim_start_matches("timeball-"))
                && other >= own
            {
                problems.push(format!("crates/{name} (floor {own}) imports {dependency} (floor {other}): declare a trait in {name} and adapt it above"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn no_file_has_become_two_things() {
    let long: Vec<String> = [sources("crates"), sources("xtask"), sources("tests")]
        .concat()
        .iter()
        .filter(|(_, text)| text.lines().count() > FILE_LINES_MAX)
        .map(|(path, text)| {
            format!("{}: {} lines, at most {FILE_LINES_MAX}: split it by noun", path.display(), text.lines().count())
        })
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn nothing_is_left_open() {
    let left = ["todo!(", "unimplemented!(", concat!("FIX", "ME"), concat!("XX", "X:"), "dbg!("];
    let mut problems = Vec::new();
    for (path, text) in sources("crates").into_iter().chain(sources("xtask/src")) {
        for (n, line) in text.lines().enumerate() {
            if left.iter().any(|word| line.contains(word)) {
                problems.push(format!("{}:{}: {}", path.display(), n + 1, line.trim()));
            }
        }
    }
    assert!(problems.is_empty(), "finish it, or open an issue and say so in words:\n{}", problems.join("\n"));
}

#[test]
fn cores_have_no_clock_socket_disk_thread_or_chance() {
    let banned = [
        ("std::net", "sockets belong to the server shell"),
        ("std::fs", "files come in behind a trait"),
        ("std::thread", "return an output; the shell has the threads"),
        ("std::time::Instant", "take a clock::Reading"),
        ("SystemTime", "take a clock::Reading"),
        ("HashMap", "its order differs from run to run: BTreeMap"),
        ("HashSet", "its order differs from run to run: BTreeSet"),
        ("rand::", "take the seeded generator as an argument"),
        ("tokio", "cores are not async"),
    ];
    let mut problems = Vec::new();
    for name in CORES {
        for (path, text) in sources(&format!("crates/{name}/src")) {
            for (n, line) in code_lines(&text) {
                for (word, instead) in banned {
                    if line.contains(word) && !path.ends_with("tests.rs") {
                        problems.push(format!("{}:{n}: {word}: {instead}", path.display()));
                    }
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn below_the_shells_nothing_reads_the_real_time_or_starts_a_thread() {
    let banned = ["Instant::now", "SystemTime::now", "thread::spawn", "thread::sleep", "TcpStream", "UdpSocket"];
    let mut problems = Vec::new();
    for name in BELOW_THE_SHELLS {
        for (path, text) in sources(&format!("crates/{name}/src")) {
            if path.ends_with("tests.rs") {
                continue;
            }
            for (n, line) in code_lines(&text) {
                for word in banned.iter().filter(|word| line.contains(**word)) {
                    problems.push(format!("{}:{n}: {word}", path.display()));
                }
            }
        }
    }
    assert!(problems.is_empty(), "time and threads come from the shell:\n{}", problems.join("\n"));
}

#[test]
fn no_module_is_a_drawer() {
    let drawers: BTreeSet<&str> = ["utils.rs", "util.rs", "common.rs", "helpers.rs", "helper.rs", "misc.rs"].into();
    let found: Vec<String> = sources("crates")
        .iter()
        .filter(|(path, _)| path.file_name().is_some_and(|n| drawers.contains(n.to_string_lossy().as_ref())))
        .map(|(path, _)| path.display().to_string())
        .collect();
    assert!(found.is_empty(), "name it after what it holds: {found:?}");
}

#[test]
fn tests_do_not_sleep() {
    let mut problems = Vec::new();
    let tests = |path: &Path| {
        let below = path.strip_prefix(root()).unwrap();
        below.components().any(|c| c.as_os_str() == "tests") || path.ends_with("tests.rs")
    };
    let all = ["crates", "tests", "xtask"].map(sources).concat();
    for (path, text) in all.into_iter().filter(|(p, _)| tests(p)) {
        // In two parts, or this line would be found too.
        let sleeps = [concat!("thread::", "sleep("), concat!("time::", "sleep(")];
        for (n, line) in code_lines(&text).filter(|(_, l)| sleeps.iter().any(|word| l.contains(word))) {
            problems.push(format!("{}:{n}: {}", path.display(), line.trim()));
        }
    }
    // A poll of an outside process may pause between two looks, if it says what it waits for.
    problems.retain(|p| !p.contains("// poll:"));
    assert!(problems.is_empty(), "wait for a condition (`// poll: <condition>` marks one):\n{}", problems.join("\n"));
}

#[test]
fn every_dependency_is_used() {
    let mut problems = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let manifest: toml::Table = std::fs::read_to_string(entry.path().join("Cargo.toml")).unwrap().parse().unwrap();
        let mut code = sources(&format!("crates/{name}/src"));
        // An optional one is there for a feature, which may be a benchmark's.
        code.extend(sources(&format!("crates/{name}/benches")));
        let used = |dependency: &str| {
            let name = dependency.trim_start_matches("timeball-").replace('-', "_");
            code.iter().flat_map(|(_, text)| code_lines(text)).any(|(_, line)| {
                line.match_indices(&name).any(|(at, _)| {
                    let before = line[..at].chars().next_back();
                    let after = line[at + name.len()..].chars().next();
                    !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
                        && !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
                })
            })
        };
        let dependencies = manifest.get("dependencies").and_then(|d| d.as_table()).cloned().unwrap_or_default();
        problems.extend(dependencies.keys().filter(|d| !used(d)).map(|d| format!("crates/{name} names {d}")));
    }
    assert!(problems.is_empty(), "not used, so take it out of the manifest:\n{}", problems.join("\n"));
}

#[test]
fn golden_files_are_blessed_by_one_name() {
    let mut problems = Vec::new();
    for (path, text) in ["crates", "tests"].map(sources).concat() {
        for (n, line) in code_lines(&text).filter(|(_, l)| l.contains("BLESS") && l.contains("env::var")) {
            if !line.contains("var_os(\"BLESS\")") {
                problems.push(format!("{}:{n}: {}", path.display(), line.trim()));
            }
        }
    }
    assert!(problems.is_empty(), "`cargo x bless` sets BLESS, and no other name:\n{}", problems.join("\n"));
}

#[test]
fn architecture_names_what_is_there() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for (_, names) in FLOORS {
        for name in *names {
            assert!(text.contains(&format!("`crates/{name}`")), "ARCHITECTURE.md does not name crates/{name}");
        }
    }
    let named = text.split('`').skip(1).step_by(2).filter(|w| w.starts_with("crates/") || w.starts_with("docs/"));
    for path in named.filter(|w| !w.contains('<')) {
        assert!(root().join(path).exists(), "ARCHITECTURE.md names {path}, which does not exist");
    }
}

#[test]
fn decisions_are_numbered_once_and_linked_files_exist() {
    let mut by_number: BTreeMap<String, String> = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("docs/decisions")).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some((number, _)) = name.split_once('-') {
            assert!(
                number.len() == 4 && number.bytes().all(|b| b.is_ascii_digit()),
                "{name}: four digits, then a dash"
            );
            if let Some(other) = by_number.insert(number.into(), name.clone()) {
                panic!("{name} and {other} share a number");
            }
        }
    }
    let mut pages = Vec::new();
    files(&root(), ".md", &mut pages);
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap_or_default();
            if !path.is_empty() && !path.contains("://") && !path.contains(' ') {
                assert!(
                    page.parent().unwrap().join(path).exists(),
                    "{}: link to {path}, which does not exist",
                    page.display()
                );
            }
        }
    }
}

#[test]
fn pages_that_are_named_exist() {
    let mut named = Vec::new();
    let mut pages = Vec::new();
    files(&root(), ".md", &mut pages);
    let texts = pages.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()));
    for (path, text) in texts.chain(["crates", "xtask/src", "tests"].map(sources).concat()) {
        let words = text.split(|c: char| c.is_whitespace() || "`()[]<>,;:\"'".contains(c));
        named.extend(words.filter(|w| w.len() > 3 && w.ends_with(".md")).map(|w| (path.clone(), w.to_owned())));
    }
    // Beside the page that names it, at the root, in docs, or in a crate.
    let exists = |path: &Path, name: &str| {
        let beside =
            path.ancestors().skip(1).take_while(|dir| dir.starts_with(root())).any(|dir| dir.join(name).exists());
        beside || ["docs", "docs/benchmarks"].iter().any(|dir| root().join(dir).join(name).exists())
    };
    let missing: Vec<String> = named
        .iter()
        .filter(|(path, name)| !name.contains(['*', '{']) && !exists(path, name))
        .map(|(path, name)| format!("{}: {name}", path.display()))
        .collect();
    assert!(missing.is_empty(), "pages that are not here:\n{}", missing.join("\n"));
}

#[test]
fn readme_gives_the_two_commands() {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    for command in ["cargo run --release -- demo", "cargo x check"] {
        assert!(text.contains(command), "README.md does not give `{command}`");
    }
    let ci = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    assert!(ci.contains("cargo x check"), ".ci/run must call the README's test command");
}
