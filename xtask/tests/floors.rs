//! The rules of STYLE.md that a machine can keep. Each failure says which file, which rule, and what to do.
#![allow(clippy::disallowed_methods, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Crates by floor: imports go down, never up, never sideways.
const FLOORS: &[(u32, &[&str])] = &[
    (0, &["clock", "client"]),
    (1, &["protocol", "store", "sql", "checker", "clocksource", "transport"]),
    (2, &["node"]),
    (3, &["server", "sim"]),
    (4, &["lab"]),
    (5, &["timeball"]),
];

/// The rooms of `crates/sql`, by floors of their own. Each imports from below only; `sql` itself stands above all of them, and alone is seen from outside.
const ROOMS: &[(u32, &[&str])] =
    &[(0, &["value"]), (1, &["catalog"]), (2, &["syntax", "statement"]), (3, &["expr"]), (4, &["query"])];

/// Modules that still import each other in a circle, by package. This may shrink, and never grow.
const CIRCLES: &[(&str, &[&str])] = &[
    ("sql", &["database", "ddl", "session"]),
    ("sql/query", &["context", "engine", "exec", "pg_catalog", "plan"]),
    // A binder calls itself through each kind of expression, and the table of functions their bodies.
    ("sql/expr", &["bind", "bind_function", "bind_operator", "coerce", "function", "functions"]),
    ("sql/syntax", &["command", "comment", "control", "create", "create_table", "cursor", "ddl", "drop", "rewrite"]),
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

fn room(name: &str) -> Option<u32> {
    ROOMS.iter().find(|(_, names)| names.contains(&name)).map(|(floor, _)| *floor)
}

/// Folders of packages below `crates`, by the paths of their names: `sql`, `sql/value`.
fn packages() -> Vec<String> {
    let crates = root().join("crates");
    let mut manifests = Vec::new();
    files(&crates, "Cargo.toml", &mut manifests);
    let folders = manifests.iter().filter_map(|manifest| manifest.parent()?.strip_prefix(&crates).ok());
    folders.map(|folder| folder.to_string_lossy().into_owned()).collect()
}

/// What a package imports of ours: `clock`, `sql_value`.
fn imports(package: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("crates").join(package).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let dependencies = manifest.get("dependencies").and_then(|d| d.as_table()).cloned().unwrap_or_default();
    dependencies.keys().map(|name| name.trim_start_matches("timeball-").replace('-', "_")).collect()
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

/// A crate, and the rooms in its folder.
fn packages_of(name: &str) -> Vec<String> {
    packages().into_iter().filter(|package| package.split('/').next() == Some(name)).collect()
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
    for name in packages().iter().filter(|name| !name.contains('/')) {
        let Some(own) = floor(name) else {
            problems.push(format!("crates/{name} has no floor: give it one in ARCHITECTURE.md and in this test"));
            continue;
        };
        for import in imports(name) {
            if let Some(other) = floor(&import)
                && other >= own
            {
                problems.push(format!("crates/{name} (floor {own}) imports {import} (floor {other}): declare a trait in {name} and adapt it above"));
            }
            if import.starts_with("sql_") && name != "sql" {
                problems
                    .push(format!("crates/{name} imports {import}: what is seen of it from outside is named in sql"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_room_of_sql_has_a_floor_and_imports_only_from_below() {
    let mut problems = Vec::new();
    let (all, below) = (packages(), floor("sql").unwrap());
    for name in all.iter().filter_map(|name| name.strip_prefix("sql/")) {
        let Some(own) = room(name) else {
            problems.push(format!("crates/sql/{name} has no floor: give it one in ARCHITECTURE.md and in this test"));
            continue;
        };
        for import in imports(&format!("sql/{name}")) {
            let known = import.strip_prefix("sql_").and_then(room);
            if known.is_some_and(|other| other >= own) || floor(&import).is_some_and(|other| other >= below) {
                problems.push(format!(
                    "crates/sql/{name} (floor {own}) imports {import}: declare a trait in {name} and adapt it above"
                ));
            }
        }
    }
    let stands = |name: &str| all.iter().any(|package| package.strip_prefix("sql/") == Some(name));
    problems.extend(
        ROOMS
            .iter()
            .flat_map(|(_, names)| *names)
            .filter(|name| !stands(name))
            .map(|name| format!("no crates/sql/{name}")),
    );
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Top-level modules that a source file imports of its own package: by `crate::name`, or by an item that `lib.rs` names of a module. Globs are not
/// followed.
fn modules_imported(text: &str, at_the_top: bool, exported: &BTreeMap<String, String>) -> BTreeSet<String> {
    let code: String = code_lines(text).map(|(_, line)| line).collect::<Vec<_>>().join("\n");
    let code = code.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut found = BTreeSet::new();
    let starts: &[&str] = if at_the_top { &["crate::", "super::"] } else { &["crate::"] };
    for (at, start) in starts.iter().flat_map(|start| code.match_indices(start)) {
        let outside = code[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':');
        let rest = &code[at + start.len()..];
        if !outside {
            found.extend(first_names(rest));
        }
    }
    found.into_iter().map(|name| exported.get(&name).cloned().unwrap_or(name)).collect()
}

/// The first segments of a path, or of each path in braces.
fn first_names(path: &str) -> Vec<String> {
    let word =
        |text: &str| text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(inside) = path.strip_prefix('{') else { return vec![word(path)] };
    let (mut depth, mut names, mut begins) = (0, vec![word(inside)], false);
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            _ if begins && !c.is_whitespace() => {
                names.push(word(&inside[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

/// The modules of a package, and what each imports of the others.
fn module_graph(package: &str) -> BTreeMap<String, BTreeSet<String>> {
    let below = root().join("crates").join(package).join("src");
    let module_of = |path: &Path| {
        let first = path.strip_prefix(&below).unwrap().components().next().unwrap();
        first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned()
    };
    let all = sources(&format!("crates/{package}/src"));
    let modules: BTreeSet<String> = all.iter().map(|(path, _)| module_of(path)).filter(|name| name != "lib").collect();
    let mut exported = BTreeMap::new();
    let lib = std::fs::read_to_string(below.join("lib.rs")).unwrap();
    for line in lib.split(';').filter_map(|item| item.split("use ").nth(1)) {
        let Some((module, names)) = line.split_once("::") else { continue };
        let names = names.trim_matches(|c| c == '{' || c == '}').split(',').map(|name| name.trim().to_owned());
        exported.extend(names.filter(|_| modules.contains(module)).map(|name| (name, module.to_owned())));
    }
    let mut graph: BTreeMap<String, BTreeSet<String>> =
        modules.iter().map(|name| (name.clone(), BTreeSet::new())).collect();
    let in_tests = |path: &Path| path.components().any(|part| part.as_os_str().to_string_lossy().contains("tests"));
    for (path, text) in all.iter().filter(|(path, _)| !in_tests(path.strip_prefix(&below).unwrap())) {
        let module = module_of(path);
        let at_the_top = path.parent() == Some(&below) || path.ends_with(format!("{module}/mod.rs"));
        if let Some(imported) = graph.get_mut(&module) {
            let found = modules_imported(text, at_the_top, &exported);
            imported.extend(found.into_iter().filter(|name| modules.contains(name) && *name != module));
        }
    }
    graph
}

/// Modules that reach themselves.
fn in_circles(graph: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let reaches_itself = |start: &String| {
        let (mut open, mut seen) = (vec![start], BTreeSet::new());
        while let Some(module) = open.pop() {
            open.extend(graph[module].iter().filter(|next| seen.insert(*next)));
        }
        seen.contains(start)
    };
    graph.keys().filter(|module| reaches_itself(module)).cloned().collect()
}

#[test]
fn modules_of_sql_import_each_other_in_no_circle() {
    let mut problems = Vec::new();
    for package in packages().iter().filter(|name| *name == "sql" || name.starts_with("sql/")) {
        let known = CIRCLES.iter().find(|(name, _)| name == package).map_or(&[][..], |(_, modules)| modules);
        let graph = module_graph(package);
        let found = in_circles(&graph);
        for module in found.iter().filter(|module| !known.contains(&module.as_str())) {
            let with: Vec<&String> = graph[module].intersection(&found).collect();
            problems.push(format!(
                "crates/{package}: {module} is in a circle with {with:?}: move what they share below both"
            ));
        }
        let free = known.iter().filter(|module| !found.contains(**module));
        problems.extend(
            free.map(|module| format!("crates/{package}: {module} is in no circle any more: take it out of CIRCLES")),
        );
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn circles_are_found() {
    let exported = BTreeMap::from([("Error".to_owned(), "error".to_owned())]);
    let text =
        "use crate::{a, b::{c, d}, Error};\n// crate::not\nuse super::e::F;\nfn f() { crate::g::h(other_crate::i) }\n";
    let names = |top| modules_imported(text, top, &exported).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!((names(true), names(false)), ("a b e error g".into(), "a b error g".into()));
    let graph = [("a", vec!["b"]), ("b", vec!["c"]), ("c", vec!["b"])];
    let graph = graph.map(|(name, of)| (name.to_owned(), of.into_iter().map(str::to_owned).collect())).into();
    assert_eq!(in_circles(&graph).into_iter().collect::<Vec<_>>(), ["b", "c"]);
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
        for (path, text) in packages_of(name).iter().flat_map(|name| sources(&format!("crates/{name}/src"))) {
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
    for name in packages() {
        let manifest = root().join("crates").join(&name).join("Cargo.toml");
        let manifest: toml::Table = std::fs::read_to_string(manifest).unwrap().parse().unwrap();
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
        for (n, line) in code_lines(&text).filter(|(_, l)| l.contains("BLESS") && l.contains("env")) {
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
    for name in packages() {
        assert!(text.contains(&format!("`crates/{name}`")), "ARCHITECTURE.md does not name crates/{name}");
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
