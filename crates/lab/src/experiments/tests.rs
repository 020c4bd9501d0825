//! The frame: points are kept, a run goes on where it stopped, one seed gives one set of files.

use super::catalogue::ITEMS;
use super::provenance::Provenance;
use super::record::Record;
use super::{Begin, Ground, LabError, Measured, Options, Scope, Size, all, index, list, run};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder of its own, empty, and removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("timeball-lab-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn options(name: &str, out: &Path, resume: bool) -> Options {
    let begin = if resume { Begin::Resume } else { Begin::UnlessUnfinished };
    Options {
        name: name.into(),
        size: Size::Quick,
        out: out.to_owned(),
        begin,
        seed: 1,
        ground: Ground { binary: "/nonexistent".into(), dir: "/nonexistent".into() },
    }
}

/// All CSV files of a folder, by name.
fn tables(dir: &Path) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = fs::read_dir(dir)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "csv"))
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap()))
        .collect();
    found.sort();
    found
}

#[test]
fn one_seed_gives_the_same_tables_also_if_the_run_was_interrupted() {
    let (first, second) = (Folder::new("once"), Folder::new("again"));
    let name = "clock-si-model";
    run(&options(name, &first.0, false), |_| {}).unwrap();
    // What an interrupted run leaves: the first points, and half a line.
    let points = format!("{name}.points.tsv");
    let whole = fs::read_to_string(first.0.join(&points)).unwrap();
    let kept: Vec<&str> = whole.split_inclusive('\n').collect();
    fs::write(second.0.join(&points), kept[..9].concat() + &kept[9][..5]).unwrap();
    let mut lines = Vec::new();
    run(&options(name, &second.0, true), |line| lines.push(line.to_owned())).unwrap();
    assert!(lines[0].contains("7 of") && lines[0].ends_with("are there"), "{}", lines[0]);
    assert_eq!(lines.len(), kept.len() - 9 + 1, "a line for each point that was missing");
    assert!(lines.last().unwrap().contains("about 0.0 s left"));
    let both = [&first, &second].map(|folder| tables(&folder.0));
    assert!(both[0].len() >= 6, "{:?}", both[0].iter().map(|t| &t.0).collect::<Vec<_>>());
    assert_eq!(both[0], both[1]);
}

#[test]
fn a_run_of_another_seed_is_not_gone_on_with() {
    let folder = Folder::new("other");
    run(&options("bounds", &folder.0, false), |_| {}).unwrap();
    let other = Options { seed: 2, ..options("bounds", &folder.0, true) };
    let error = run(&other, |_| {}).unwrap_err();
    assert!(matches!(&error, LabError::Resume { .. }) && error.to_string().contains("--anew"), "{error}");
    fs::write(folder.0.join("bounds.points.tsv"), b"something else\n").unwrap();
    assert!(matches!(run(&options("bounds", &folder.0, true), |_| {}), Err(LabError::Resume { .. })));
}

/// Runs it there: the file of its points, and what stands in it.
fn points_of(name: &str, folder: &Folder) -> (PathBuf, String) {
    run(&options(name, &folder.0, false), |_| {}).unwrap();
    let file = folder.0.join(format!("{name}.points.tsv"));
    let whole = fs::read_to_string(&file).unwrap();
    (file, whole)
}

#[test]
fn a_run_of_another_commit_is_not_gone_on_with() {
    let folder = Folder::new("commit");
    let name = "clock-rsm-model";
    let (file, whole) = points_of(name, &folder);
    let mut lines: Vec<String> = whole.split_inclusive('\n').map(str::to_owned).collect();
    let fields: Vec<&str> = lines[1].split('\t').collect();
    lines[1] = [fields[0], fields[1], "0123456789", fields[3]].join("\t");
    // All points are there: the page says both.
    fs::write(&file, lines.concat()).unwrap();
    let page = fs::read_to_string(run(&options(name, &folder.0, true), |_| {}).unwrap()).unwrap();
    assert!(page.contains("0123456789; the page was written at "), "{page}");
    fs::write(&file, lines[..3].concat()).unwrap();
    let error = run(&options(name, &folder.0, true), |_| {}).unwrap_err();
    assert!(matches!(&error, LabError::Resume { .. }) && error.to_string().contains("0123456789"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), lines[..3].concat(), "it is as it was");
}

#[test]
fn what_an_interrupted_run_left_is_not_thrown_away_unasked() {
    let folder = Folder::new("unfinished");
    let name = "clock-rsm-model";
    let again = |begin| run(&Options { begin, ..options(name, &folder.0, false) }, |_| {});
    again(Begin::UnlessUnfinished).unwrap();
    again(Begin::UnlessUnfinished).unwrap();
    let file = folder.0.join(format!("{name}.points.tsv"));
    let whole = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    // Also of another size than the one that is asked for.
    for head in [lines[0].to_owned(), lines[0].replace("Quick", "Full")] {
        let left = head + lines[1] + lines[2];
        fs::write(&file, &left).unwrap();
        let error = again(Begin::UnlessUnfinished).unwrap_err();
        assert!(matches!(&error, LabError::Unfinished { there: 1, all, .. } if *all > 1), "{error}");
        let text = error.to_string();
        assert!(text.contains("--resume") && text.contains("--anew") && text.contains("points.tsv"), "{text}");
        assert_eq!(fs::read_to_string(&file).unwrap(), left, "it is as it was");
    }
    fs::write(&file, "something else\n").unwrap();
    assert!(matches!(again(Begin::UnlessUnfinished), Err(LabError::Unfinished { .. })));
    again(Begin::Anew).unwrap();
    fs::write(&file, lines[..2].concat()).unwrap();
    again(Begin::UnlessUnfinished).unwrap();
}

#[test]
fn a_run_of_another_build_is_not_gone_on_with() {
    let folder = Folder::new("build");
    let name = "clock-rsm-model";
    let (file, whole) = points_of(name, &folder);
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let (place, _) = lines[1].rsplit_once('\t').unwrap();
    let left = format!("{}{place}\tan optimised build; nodes of /elsewhere\n{}", lines[0], lines[2]);
    fs::write(&file, &left).unwrap();
    let error = run(&options(name, &folder.0, true), |_| {}).unwrap_err();
    assert!(matches!(&error, LabError::Resume { .. }) && error.to_string().contains("/elsewhere"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), left, "it is as it was");
    // The page says how what measured was built, whoever writes it.
    fs::write(&file, whole.replace(lines[1], &format!("{place}\tby hand\n"))).unwrap();
    let page = fs::read_to_string(run(&options(name, &folder.0, true), |_| {}).unwrap()).unwrap();
    assert!(page.contains("| program | by hand |"), "{page}");
}

#[test]
fn of_two_runs_at_once_one_measures() {
    let folder = Folder::new("both");
    let name = "clock-rsm-model";
    let scope = Scope { size: Size::Quick, seed: 1 };
    let here = Provenance::here(Path::new("/nonexistent"));
    let other = Record::open(&folder.0, name, scope, false, &here).unwrap();
    for begin in [Begin::UnlessUnfinished, Begin::Resume, Begin::Anew] {
        let error = run(&Options { begin, ..options(name, &folder.0, false) }, |_| {}).unwrap_err();
        assert!(matches!(&error, LabError::Running { .. }) && error.to_string().contains("--out"), "{error}");
    }
    drop(other);
    run(&options(name, &folder.0, false), |_| {}).unwrap();
}

/// Its nodes cannot be started: what another run measured stands, and no folder is left.
#[test]
fn who_fails_before_the_first_point_has_lost_nothing() {
    let folder = Folder::new("kept");
    let file = folder.0.join("ycsb.points.tsv");
    let here = Provenance::here(Path::new("/nonexistent"));
    let experiment = all().into_iter().find(|experiment| experiment.name() == "ycsb").unwrap();
    let points = experiment.points(Scope { size: Size::Quick, seed: 1 });
    let mut finished = format!("# timeball lab points 1\tycsb\tQuick\tseed 1\n{}\n", here.line());
    points.iter().for_each(|point| finished.push_str(&format!("{}\ttook_s=1.0\n", point.name)));
    fs::write(&file, &finished).unwrap();
    for begin in [Begin::UnlessUnfinished, Begin::Anew] {
        let ground = Ground { binary: "/nonexistent".into(), dir: folder.0.clone() };
        let error = run(&Options { begin, ground, ..options("ycsb", &folder.0, false) }, |_| {}).unwrap_err();
        assert!(error.to_string().contains("/nonexistent"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), finished, "{begin:?}");
    }
    let left: Vec<_> = fs::read_dir(&folder.0).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["ycsb.points.tsv"]);
}

#[test]
fn a_page_that_is_no_index_is_left_alone() {
    let folder = Folder::new("readme");
    let page = folder.0.join("README.md");
    fs::write(&page, "# A project\n").unwrap();
    let error = index(&folder.0).unwrap_err();
    assert!(matches!(&error, LabError::NotAnIndex { path } if *path == page) && error.to_string().contains("--out"));
    assert_eq!(fs::read_to_string(&page).unwrap(), "# A project\n");
    fs::remove_file(&page).unwrap();
    index(&folder.0).unwrap();
    index(&folder.0).unwrap();
}

#[test]
fn an_unknown_name_is_told_with_the_known_ones() {
    let error = run(&options("sundial", Path::new("/nonexistent"), false), |_| {}).unwrap_err();
    assert!(error.to_string().contains("sundial") && error.to_string().contains("clock-rsm-model"), "{error}");
}

#[test]
fn verdicts_are_of_items_of_the_catalogue() {
    let known: BTreeSet<&str> = ITEMS.iter().map(|item| item.name).collect();
    assert_eq!(known.len(), ITEMS.len(), "none is there twice");
    for experiment in all() {
        let report = experiment.report(&Measured::default(), Scope { size: Size::Quick, seed: 1 });
        assert!(!report.verdicts.is_empty() && !report.settings.is_empty(), "{}", experiment.name());
        for verdict in &report.verdicts {
            assert!(known.contains(verdict.item), "{}: {}", experiment.name(), verdict.item);
        }
        assert!(list().contains(experiment.name()));
    }
}

#[test]
fn points_have_names_of_their_own() {
    for experiment in all() {
        for size in [Size::Quick, Size::Usual, Size::Full] {
            let points = experiment.points(Scope { size, seed: 1 });
            let names: BTreeSet<&String> = points.iter().map(|p| &p.name).collect();
            assert_eq!(names.len(), points.len(), "{} {size:?}", experiment.name());
            assert!(names.iter().all(|name| !name.contains(['\t', '\n'])));
        }
    }
}

#[test]
fn the_index_says_how_each_item_stands() {
    let folder = Folder::new("index");
    run(&options("clock-rsm-model", &folder.0, false), |_| {}).unwrap();
    let text = fs::read_to_string(index(&folder.0).unwrap()).unwrap();
    for item in ITEMS {
        assert!(text.contains(item.name), "{}", item.name);
    }
    let line = text.lines().find(|line| line.starts_with("| 004 table 3.4 ")).unwrap();
    assert!(line.contains("**agrees**") && line.contains(&format!("({}.md)", "clock-rsm-model")), "{line}");
    let open = text.lines().find(|line| line.starts_with("| 004 figure 2.9 ")).unwrap();
    assert!(open.contains("not yet"), "{open}");
}
