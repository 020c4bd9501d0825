//! The C and Python examples, built and run as a user would. Says so and passes where there is no compiler or no Python.

#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use std::process::Command;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

fn run(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{command:?}\n{out}{err}");
    out.into_owned()
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

fn check(out: &str, yes: &str, no: &str) {
    assert!(out.contains("static:5ms") && out.contains("error 5000000 ns"), "{out}");
    assert!(out.contains(&format!("before waiting: after(latest) = {no}")), "{out}");
    assert!(
        out.contains(&format!("after(latest) = {yes}\n")) || out.contains(&format!("after(latest) = {yes},")),
        "{out}"
    );
}

#[test]
fn the_examples_of_other_languages_run() {
    if !has("cc") {
        println!("SKIPPED: this machine has no C compiler");
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
    check(&run(Command::new(&program).arg("static:5ms")), "1", "0");
    let refused = Command::new(&program).arg("sundial").output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("choose one of"), "{refused:?}");
    // The same program, dynamically.
    run(Command::new("cc")
        .arg("-I")
        .arg(format!("{CRATE}/include"))
        .arg(format!("{CRATE}/c/example.c"))
        .arg("-L")
        .arg(&libraries)
        .args(["-lclocksource", "-o"])
        .arg(&program));
    check(&run(Command::new(&program).arg("static:5ms").env("LD_LIBRARY_PATH", &libraries)), "1", "0");

    if !has("python3") {
        println!("SKIPPED: this machine has no Python");
        return;
    }
    let wheel = run(Command::new("python3")
        .arg(format!("{CRATE}/python/build_wheel.py"))
        .arg(libraries.join("libclocksource.so"))
        .arg(libraries.join("wheel")));
    // A wheel is a zip file that is unpacked where Python looks; `pip install` does no more.
    let installed = libraries.join("site");
    run(Command::new("python3").args(["-m", "zipfile", "-e", wheel.trim()]).arg(&installed));
    let example = format!("{CRATE}/python/examples/now.py");
    check(&run(Command::new("python3").arg(&example).arg("static:5ms").env("PYTHONPATH", &installed)), "True", "False");
    let refused = Command::new("python3").args([&example, "sundial"]).env("PYTHONPATH", &installed).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("choose one of"), "{refused:?}");
}
