//! The C and Python examples, built and run as a user would. Says so and passes where there is no compiler or no Python.

#![allow(clippy::disallowed_methods)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// A source that has nothing to say.
const ABSENT: &str = "clockbound:/nonexistent/shm0";

fn run(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{command:?}\n{out}{err}");
    out.into_owned()
}

/// Not by `println!`, which the test runner keeps to itself for a test that passes.
fn say(what: &str) {
    let _ = std::io::stderr().write_all(format!("{what}\n").as_bytes());
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success())
}

/// Builds the libraries in a place of their own and gives their directory.
fn libraries() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c-abi");
    for kind in ["cdylib", "staticlib"] {
        run(Command::new(env!("CARGO"))
            .args(["rustc", "--quiet", "--lib", "--features", "c-abi", "--crate-type", kind])
            .args(["--manifest-path", &format!("{CRATE}/Cargo.toml"), "--target-dir"])
            .arg(&target));
    }
    target.join("debug")
}

/// Runs an example on `static:5ms`: the latest that time can be is not past before the wait, and past after it.
fn check(example: &mut Command, yes: &str, no: &str) {
    let ran = |_| {
        let out = run(example);
        assert!(out.contains("static:5ms") && out.contains("error 5000000 ns"), "{out}");
        let waited = out.split_once("waited").unwrap().1;
        assert!(waited.contains(&format!("after(latest) = {yes}")), "{out}");
        // A busy machine may put the example aside for the 10 ms from the first line to the second; then it is run again.
        out.contains(&format!("before waiting: after(latest) = {no}"))
    };
    assert!((0..100).any(ran), "nothing is left to wait for");
}

/// The words of `text` between `from` and the next `to`, for each `from`.
fn between<'a>(text: &'a str, from: &str, to: char) -> Vec<&'a str> {
    text.split(from).skip(1).filter_map(|rest| rest.split(to).next()).map(str::trim).collect()
}

/// The header declares the functions that the library has, with as many parameters, and the reading's fields in their order.
#[test]
fn the_header_is_that_of_the_library() {
    let file = |path: &str| std::fs::read_to_string(format!("{CRATE}/{path}")).unwrap();
    let (header, code) = (file("include/timeball_clock.h"), file("src/capi.rs"));
    let parameters = |list: &str| list.split(',').filter(|p| !p.trim().is_empty()).count();
    let functions = |text: &str, from: &str| -> Vec<(String, usize)> {
        let found = text.split(from).skip(1).filter_map(|rest| rest.split_once('(')?.1.split_once(')'));
        let names = text.split(from).skip(1).filter_map(|rest| rest.split('(').next());
        let mut all: Vec<_> = names.zip(found).map(|(n, (list, _))| (n.to_owned(), parameters(list))).collect();
        all.sort_unstable();
        all
    };
    let declarations: String = header.lines().filter(|l| !l.starts_with(" *") && l.ends_with(");")).collect();
    let ours = functions(&code, "extern \"C\" fn timeball_clock_");
    assert_eq!(functions(&declarations.replace("*timeball_clock_", " timeball_clock_"), " timeball_clock_"), ours);
    assert_eq!(ours.len(), 8);
    let fields = between(&header, "typedef struct {", '}')[0]
        .lines()
        .filter_map(|l| l.split(';').next()?.split_whitespace().nth(1));
    let reading = between(&code, "pub struct TimeballReading {", '}')[0].lines().filter_map(|l| l.split(':').next());
    assert_eq!(fields.collect::<Vec<_>>(), reading.map(str::trim).filter(|f| !f.is_empty()).collect::<Vec<_>>());
    for (name, number) in
        [("UNKNOWN", 0), ("SYNCHRONIZED", 1), ("FREE_RUNNING", 2), ("DISRUPTED", 3), ("INVALID", -1), ("UNTRUSTED", -2)]
    {
        assert!(header.contains(&format!("TIMEBALL_{name} = {number}")), "{name}");
    }
}

#[test]
fn the_examples_of_other_languages_run() {
    if !has("cc") {
        say("SKIPPED: this machine has no C compiler");
        return;
    }
    let libraries = libraries();
    let program = libraries.join("example-c");
    // Statically, and with every warning an error.
    run(Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(format!("{CRATE}/include"))
        .arg(format!("{CRATE}/c/example.c"))
        .arg(libraries.join("libclocksource.a"))
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program));
    check(Command::new(&program).arg("static:5ms"), "1", "0");
    let refused = Command::new(&program).arg("sundial").output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("choose one of"), "{refused:?}");
    // A source that is not there yet opens, and gives no bound.
    let waiting = Command::new(&program).arg(ABSENT).output().unwrap();
    let said = String::from_utf8_lossy(&waiting.stdout);
    assert!(waiting.status.code() == Some(2) && said.contains("no bound that may be relied upon"), "{waiting:?}");
    // The header also serves C++.
    if has("c++") {
        run(Command::new("c++")
            .args(["-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++-header"])
            .arg(format!("{CRATE}/include/timeball_clock.h")));
    }
    // The same program, dynamically.
    run(Command::new("cc")
        .arg("-I")
        .arg(format!("{CRATE}/include"))
        .arg(format!("{CRATE}/c/example.c"))
        .arg("-L")
        .arg(&libraries)
        .args(["-lclocksource", "-o"])
        .arg(&program));
    check(Command::new(&program).arg("static:5ms").env("LD_LIBRARY_PATH", &libraries), "1", "0");

    python(&libraries);
}

/// The wheel is installed as a user would, and says of itself what its library needs.
fn python(libraries: &Path) {
    if !has("python3") {
        say("SKIPPED: this machine has no Python");
        return;
    }
    let python = |args: &[&str]| run(Command::new("python3").args(args).env("PYTHONDONTWRITEBYTECODE", "1"));
    let (here, library) = (format!("{CRATE}/python"), libraries.join("libclocksource.so"));
    python(&[&format!("{here}/test_platform_tag.py")]);
    let _ = std::fs::remove_dir_all(libraries.join("wheel"));
    let out = libraries.join("wheel");
    let wheel = python(&[&format!("{here}/build_wheel.py"), library.to_str().unwrap(), out.to_str().unwrap()]);
    tag_is_what_readelf_says(wheel.trim(), &library);
    let refused =
        Command::new("python3").arg(format!("{here}/build_wheel.py")).args([file!(), "/tmp"]).output().unwrap();
    assert!(!refused.status.success());

    let venv = libraries.join("venv");
    let made = Command::new("python3").args(["-m", "venv"]).arg(&venv).output().unwrap();
    let (interpreter, path) = if made.status.success() {
        let interpreter = venv.join("bin/python");
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--force-reinstall"];
        run(Command::new(&interpreter).args(pip).arg(wheel.trim()));
        (interpreter, PathBuf::new())
    } else {
        // Debian without python3-venv. A wheel is a zip file that is unpacked where Python looks; `pip install` does little more.
        say("NOT COVERED: `pip install`, for this machine cannot make a virtual environment");
        let installed = libraries.join("site");
        python(&["-m", "zipfile", "-e", wheel.trim(), installed.to_str().unwrap()]);
        ("python3".into(), installed)
    };
    let example = |source: &str| {
        let mut command = Command::new(&interpreter);
        command.args([&format!("{here}/examples/now.py"), source]).env("PYTHONPATH", &path);
        command
    };
    check(&mut example("static:5ms"), "True", "False");
    let refused = example("sundial").output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("choose one of"), "{refused:?}");
    let waiting = example(ABSENT).output().unwrap();
    assert!(String::from_utf8_lossy(&waiting.stderr).contains("timeball_clock.Untrusted: clockbound"), "{waiting:?}");
}

/// The newest glibc symbol version in `readelf`'s words is the wheel's promise.
fn tag_is_what_readelf_says(wheel: &str, library: &Path) {
    if !has("readelf") {
        say("NOT COVERED: the wheel's tag, for this machine has no readelf");
        return;
    }
    let said = run(Command::new("readelf").arg("--version-info").arg("--wide").arg(library));
    let minor = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse::<u32>().ok());
    let newest = said.split("GLIBC_2.").skip(1).filter_map(minor).max().unwrap().max(17);
    let name = wheel.rsplit('/').next().unwrap();
    println!("{name}: readelf says GLIBC_2.{newest}");
    let expected = format!("-py3-none-manylinux_2_{newest}_{}.", std::env::consts::ARCH);
    assert!(name.contains(&expected), "{name} is not {expected}");
}
