//! The pages under `docs/lab` are what the experiments give: where a run is short and simulated, to the letter.
//!
//! After a change that is meant: `timeball lab NAME`, then `timeball lab index`; look at the figures.
// A test reads and writes files.
#![allow(clippy::disallowed_methods)]

use lab::experiments::{Begin, Ground, LabError, Options, SEED, Size, all, index, run};
use std::fs;
use std::path::{Path, PathBuf};

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab")
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("timeball-lab-kept-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn short_runs_give_the_kept_tables_and_figures() {
    for name in ["bounds", "clock-rsm-model", "clock-rsm"] {
        let out = folder(name);
        // None of these starts a node.
        let ground = Ground { binary: "/nonexistent".into(), dir: "/nonexistent".into() };
        let options =
            Options { name: name.into(), size: Size::Usual, out: out.clone(), begin: Begin::Anew, seed: SEED, ground };
        run(&options, |_| {}).unwrap();
        let mut compared = 0;
        for entry in fs::read_dir(&out).unwrap().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|e| e == "csv" || e == "svg" || e == "png") {
                let there = kept().join(entry.file_name());
                assert!(
                    fs::read(&there).is_ok_and(|before| before == fs::read(&path).unwrap()),
                    "{} is not what `timeball lab {name}` gives",
                    there.display()
                );
                compared += 1;
            }
        }
        assert!(compared >= 4, "{name}: {compared} files");
        fs::remove_dir_all(&out).unwrap();
    }
}

/// What a page says below its head, where machine, date and commit stand.
fn body(page: &str) -> &str {
    page.split_once("\n## At a glance\n").map_or("", |(_, body)| body)
}

/// Words, tables and figures follow from the points: a page that somebody changed by hand, or that an older program wrote, is found here.
/// `timeball lab NAME --resume` writes it anew and measures nothing; so does `BLESS=1 cargo test -p timeball-lab --test experiments`.
#[test]
fn the_kept_pages_say_what_the_kept_points_do() {
    let mut compared = 0;
    for experiment in all() {
        let name = experiment.name();
        // Of a program that did not say yet how it was built: its words stand until it is measured anew.
        let page = fs::read_to_string(kept().join(format!("{name}.md"))).unwrap();
        if !page.contains("\n| program |") {
            continue;
        }
        let out = folder(&format!("page-{name}"));
        let points = format!("{name}.points.tsv");
        fs::copy(kept().join(&points), out.join(&points)).unwrap();
        let ground = Ground { binary: "/nonexistent".into(), dir: "/dev/null".into() };
        let options = Options {
            name: name.into(),
            size: Size::Usual,
            out: out.clone(),
            begin: Begin::Resume,
            seed: SEED,
            ground,
        };
        match run(&options, |_| {}) {
            Ok(_) if std::env::var_os("BLESS").is_some() => {
                for entry in fs::read_dir(&out).unwrap().flatten().filter(|entry| entry.file_name() != *points) {
                    fs::copy(entry.path(), kept().join(entry.file_name())).unwrap();
                }
                compared += 1;
            }
            Ok(page) => {
                let now = fs::read_to_string(page).unwrap();
                let before = fs::read_to_string(kept().join(format!("{name}.md"))).unwrap();
                assert!(!body(&now).is_empty() && body(&now) == body(&before), "timeball lab {name} --resume");
                for entry in fs::read_dir(&out).unwrap().flatten() {
                    let path = entry.path();
                    if path.extension().is_some_and(|e| e == "csv" || e == "svg" || e == "png") {
                        let there = fs::read(kept().join(entry.file_name())).unwrap_or_default();
                        assert!(there == fs::read(&path).unwrap(), "{}: timeball lab {name} --resume", path.display());
                    }
                }
                compared += 1;
            }
            // It has other points by now: its page is of the program that measured it, until it is measured anew.
            Err(LabError::Resume { reason, .. }) => assert!(reason.contains("it was begun"), "{name}: {reason}"),
            Err(error) => panic!("{name}: {error}"),
        }
        fs::remove_dir_all(&out).unwrap();
    }
    assert!(compared + 3 >= all().len(), "{compared} of {}", all().len());
}

#[test]
fn the_kept_index_is_that_of_the_kept_verdicts() {
    let out = folder("index");
    for experiment in all() {
        let verdicts = format!("{}-verdicts.csv", experiment.name());
        fs::copy(kept().join(&verdicts), out.join(&verdicts)).unwrap();
        let page = fs::read_to_string(kept().join(format!("{}.md", experiment.name()))).unwrap();
        for word in ["| machine |", "| date |", "| commit |", &format!("`timeball lab {}`", experiment.name())] {
            assert!(page.contains(word), "{}: no {word}", experiment.name());
        }
    }
    let written = fs::read_to_string(index(&out).unwrap()).unwrap();
    if std::env::var_os("BLESS").is_some() {
        fs::write(kept().join("README.md"), &written).unwrap();
    }
    assert_eq!(written, fs::read_to_string(kept().join("README.md")).unwrap(), "`timeball lab index` writes it anew");
    fs::remove_dir_all(&out).unwrap();
}
