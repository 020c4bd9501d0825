//! The pages under `docs/lab` are what the experiments give: where a run is short and simulated, to the letter.
//!
//! After a change that is meant: `timeball lab NAME`, then `timeball lab index`; look at the figures.
// A test reads and writes files.
#![allow(clippy::disallowed_methods)]

use lab::experiments::{Begin, Ground, Options, SEED, Size, all, index, run};
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
    assert_eq!(written, fs::read_to_string(kept().join("README.md")).unwrap(), "`timeball lab index` writes it anew");
    fs::remove_dir_all(&out).unwrap();
}
