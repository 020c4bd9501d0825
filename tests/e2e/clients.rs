//! Clients that people use: psql, pgbench, psycopg, SQLAlchemy, alembic, Django, pgx, pgjdbc, node-postgres. Each of them speaks the protocol in its own way.

use crate::node::{Node, Scratch, binary, has_program, repeat_with, skip};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

/// The quick starts, which `cargo x tools` runs too.
pub fn quick_starts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools")
}

/// Where tools are installed once for all runs.
pub fn tools_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("e2e-tools")
}

/// A client that knows of the node what it is told, whatever this machine's settings for other servers are.
pub fn client(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
        command.env_remove(name);
    }
    command
}

/// A tool of PostgreSQL, in English; Debian's wrapper complains where the user's locale is not installed.
pub fn tool(program: &str) -> Command {
    let mut command = client(program);
    command.env("LC_ALL", "C").env_remove("LANGUAGE");
    command
}

/// The first number in what a program says of its version.
pub fn major(program: &str) -> Option<u32> {
    let said = text(&Command::new(program).arg("--version").output().ok()?);
    said.split(|c: char| !c.is_ascii_digit()).find(|n| !n.is_empty())?.parse().ok()
}

pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}\n{}", text(&output));
    text(&output)
}

fn node() -> (Scratch, Node) {
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    (scratch, node)
}

#[test]
fn psql() {
    repeat_with("clients::psql");
    if !has_program("psql") {
        return skip("psql is missing");
    }
    let (_scratch, node) = node();
    let script = "CREATE TABLE t (id int PRIMARY KEY, s text);
        INSERT INTO t VALUES (1, 'one'), (2, NULL);
        SELECT * FROM t ORDER BY id;
        BEGIN; UPDATE t SET s = 'two' WHERE id = 2; COMMIT;
        SELECT s FROM t WHERE id = 2;";
    let url = node.url();
    let run = |arguments: &[&str]| {
        succeed(tool("psql").args(["-X", "-v", "ON_ERROR_STOP=1", &url]).args(arguments).stdin(Stdio::null()))
    };
    // All in one message; psql before 15 shows the last answer only.
    let out = run(&["-A", "-t", "-c", script]);
    assert!(out.ends_with("two\n"), "{out}");
    assert_eq!(run(&["-A", "-t", "-c", "SELECT * FROM t ORDER BY id"]), "1|one\n2|two\n");
    let version = run(&["-A", "-t", "-c", "SHOW server_version"]);
    assert!(version.starts_with("15."), "{version}");
    // What operators ask is listed, and is in no dump.
    let listed = run(&["-A", "-t", "-c", "\\dv timeball_internal.*"]);
    for name in [
        "clocks",
        "cluster_sessions",
        "leases",
        "locks",
        "memory",
        "past",
        "ranges",
        "schema_changes",
        "snapshots",
        "transactions",
    ] {
        assert!(listed.contains(&format!("timeball_internal|{name}|view|")), "{name}: {listed}");
    }
    assert!(!listed.contains("|nodes|"), "it is alone: {listed}");
    let described = run(&["-A", "-t", "-c", "\\d timeball_internal.locks"]);
    assert!(described.contains("granted|boolean|") && described.contains("holder_pid|integer|"), "{described}");
    let there =
        "SELECT count(DISTINCT table_name) FROM information_schema.columns WHERE table_schema = 'timeball_internal'";
    assert_eq!(run(&["-A", "-t", "-c", there]), "10\n");
    assert_eq!(run(&["-A", "-t", "-c", "SELECT 'timeball_internal.leases'::regclass"]), "timeball_internal.leases\n");
    if has_program("pg_dump") {
        let dump = succeed(tool("pg_dump").arg(&url));
        assert!(dump.contains("CREATE TABLE public.t") && !dump.contains("timeball_internal"), "{dump}");
    }
    for command in ["\\l", "\\dt", "\\d t", "\\di", "\\conninfo", "\\dx", "\\du", "\\dp", "\\db"] {
        let out = run(&["-c", command]);
        assert!(!out.contains("ERROR"), "{command}: {out}");
    }
}

#[test]
fn our_shell() {
    repeat_with("clients::our_shell");
    let (_scratch, node) = node();
    let url = node.url();
    let sql = |args: &[&str]| Command::new(binary()).args(["sql", "--url", &url]).args(args).output().unwrap();
    let made = sql(&["-e", "CREATE TABLE t (id int PRIMARY KEY, s text); INSERT INTO t VALUES (1, 'a,b'), (2, NULL)"]);
    assert_eq!(String::from_utf8_lossy(&made.stdout), "CREATE TABLE\nINSERT 0 2\n");
    let table = sql(&["-e", "SELECT * FROM t ORDER BY id"]);
    assert_eq!(String::from_utf8_lossy(&table.stdout), " id |  s  \n----+-----\n  1 | a,b\n  2 |\n(2 rows)\n\n");
    let csv = sql(&["--format", "csv", "-e", "SELECT * FROM t ORDER BY id"]);
    assert_eq!(String::from_utf8_lossy(&csv.stdout), "id,s\n1,\"a,b\"\n2,\n");
    let json = sql(&["--format", "json", "-e", "SELECT * FROM t ORDER BY id"]);
    assert_eq!(String::from_utf8_lossy(&json.stdout), "[{\"id\":1,\"s\":\"a,b\"},\n {\"id\":2,\"s\":null}]\n");
    let failed = sql(&["-e", "INSERT INTO t VALUES (1, 'again')"]);
    assert!(!failed.status.success());
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(said.contains("ERROR:") && said.contains("(23505)") && said.contains("DETAIL:"), "{said}");
}

/// `pgbench -i`, then its three built-in scripts in each of its three ways to send a statement: no client-visible failure.
#[test]
fn pgbench() {
    repeat_with("clients::pgbench");
    if !has_program("pgbench") {
        return skip("pgbench is missing");
    }
    let (_scratch, node) = node();
    let (host, port) = node.sql.split_once(':').unwrap();
    let bench = |args: &[&str]| {
        succeed(tool("pgbench").args(["-h", host, "-p", port, "-U", "root"]).args(args).arg("postgres"))
    };
    bench(&["-i", "-s", "1"]);
    for mode in ["simple", "extended", "prepared"] {
        for script in ["-S", "-N", "-b tpcb-like"] {
            let out = bench(
                &[&["-M", mode, "-c", "4", "-j", "2", "-t", "25"], &script.split(' ').collect::<Vec<_>>()[..]].concat(),
            );
            assert!(out.contains("number of transactions actually processed: 100/100"), "{mode} {script}: {out}");
            // pgbench before 15 counts no failures: a client that meets one stops.
            let failed = out.lines().find_map(|l| l.strip_prefix("number of failed transactions: "));
            assert!(failed.is_none_or(|n| n.starts_with("0 ")), "{mode} {script}: {out}");
        }
    }
    let sums = "SELECT (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(tbalance) FROM pgbench_tellers)";
    let row = node.connect().query_one(sums, &[]).unwrap();
    assert_eq!(row.get::<_, Option<i64>>(0), row.get::<_, Option<i64>>(1), "TPC-B's books balance");
}

/// Whether this Python runs and has the packages. A virtual environment may outlive the Python that it was made from.
fn has_packages(python: &Path) -> bool {
    let tried = Command::new(python).args(["-c", "import psycopg, asyncpg, sqlalchemy, alembic, django"]).output();
    tried.is_ok_and(|o| o.status.success())
}

/// A Python with the packages of `requirements.txt`: the one that CI made, or a virtual environment; `None` where neither is.
pub fn python() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("TIMEBALL_TEST_PYTHON") {
        return Some(PathBuf::from(given)).filter(|p| has_packages(p));
    }
    // Several tests want it; one makes it.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock();
    let venv = tools_dir().join("venv");
    let interpreter = venv.join("bin/python");
    let requirements = quick_starts().join("requirements.txt");
    let stamp = venv.join("installed");
    if std::fs::read(&stamp).ok() == std::fs::read(&requirements).ok() && has_packages(&interpreter) {
        return Some(interpreter);
    }
    std::fs::create_dir_all(tools_dir()).ok()?;
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv).output().ok()?;
    let installed = made.status.success().then(|| {
        Command::new(&interpreter)
            .args(["-m", "pip", "install", "--quiet", "--requirement"])
            .arg(&requirements)
            .output()
            .ok()
    })??;
    if !installed.status.success() {
        eprintln!("{}", text(&installed));
        return None;
    }
    std::fs::copy(&requirements, &stamp).ok()?;
    Some(interpreter)
}

/// Runs scripts against one node, one after another.
fn python_scripts(scripts: &[&str]) {
    let Some(python) = python() else { return skip("python3 with the packages of requirements.txt cannot be set up") };
    let (_scratch, node) = node();
    for script in scripts {
        let out = succeed(client(&python).arg(quick_starts().join(script).join("quickstart.py")).arg(node.url()));
        assert!(out.contains("all fine"), "{script}: {out}");
    }
}

#[test]
fn python_drivers() {
    repeat_with("clients::python_drivers");
    python_scripts(&["psycopg", "sqlalchemy"]);
}

#[test]
fn alembic() {
    repeat_with("clients::alembic");
    python_scripts(&["alembic"]);
}

#[test]
fn django() {
    repeat_with("clients::django");
    python_scripts(&["django"]);
}

/// A client of pgjdbc, compiled: how it is run. `None`: said why, and skipped.
pub fn java(class: &str) -> Option<Command> {
    // The clients are written for Java 17.
    if !has_program("java") || major("javac").is_none_or(|version| version < 17) {
        skip("java and javac are missing, or older than 17");
        return None;
    }
    let Some(jars) = pgjdbc().map(|dir| dir.join("*")) else {
        skip("pgjdbc cannot be downloaded");
        return None;
    };
    let classes = tools_dir().join("jdbc-classes").join(class);
    let source = quick_starts().join("pgjdbc").join(format!("{class}.java"));
    succeed(Command::new("javac").args(["-encoding", "UTF-8", "-cp"]).arg(&jars).arg("-d").arg(&classes).arg(source));
    let mut command = client("java");
    command.arg("-cp").arg(std::env::join_paths([&classes, &jars]).unwrap()).arg(class);
    Some(command)
}

/// A client of pgx, built from a package beside its quick start. `None`: said why, and skipped.
pub fn pgx_program(package: &str, name: &str) -> Option<Command> {
    if !has_program("go") {
        skip("go is missing");
        return None;
    }
    let binary = tools_dir().join(name);
    std::fs::create_dir_all(tools_dir()).unwrap();
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&binary).arg(package).current_dir(quick_starts().join("pgx"));
    let built = build.output().unwrap();
    if !built.status.success() {
        eprintln!("{}", text(&built));
        skip("a client of pgx cannot be built");
        return None;
    }
    Some(client(&binary))
}

/// pgjdbc's jar and what it depends on, fetched by Maven; `None` where they cannot be had.
fn pgjdbc() -> Option<PathBuf> {
    let (wanted, jars) = (quick_starts().join("pgjdbc/pom.xml"), tools_dir().join("pgjdbc"));
    let stamp = jars.join("installed");
    if std::fs::read(&stamp).ok() != std::fs::read(&wanted).ok() {
        std::fs::create_dir_all(&jars).ok()?;
        let mut maven = Command::new("mvn");
        maven.args(["--batch-mode", "--quiet", "--file"]).arg(&wanted);
        maven.arg("org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies");
        maven.arg(format!("-DoutputDirectory={}", jars.display()));
        let got = maven.output().ok()?;
        if !got.status.success() {
            eprintln!("{}", text(&got));
            return None;
        }
        std::fs::copy(&wanted, &stamp).ok()?;
    }
    Some(jars)
}

#[test]
fn java_pgjdbc() {
    repeat_with("clients::java_pgjdbc");
    let Some(mut program) = java("QuickStart") else { return };
    let (_scratch, node) = node();
    let out = succeed(program.arg(format!("jdbc:postgresql://{}/postgres?user=root", node.sql)));
    assert!(out.contains("all fine"), "{out}");
}

/// Where node-postgres is installed; `None` where it cannot be.
fn node_modules() -> Option<PathBuf> {
    let (wanted, here) = (quick_starts().join("node-postgres/package.json"), tools_dir().join("node"));
    let stamp = here.join("installed");
    if std::fs::read(&stamp).ok() != std::fs::read(&wanted).ok() {
        std::fs::create_dir_all(&here).ok()?;
        std::fs::copy(&wanted, here.join("package.json")).ok()?;
        let flags = ["install", "--no-audit", "--no-fund", "--loglevel=error"];
        let installed = Command::new("npm").args(flags).current_dir(&here).output().ok()?;
        if !installed.status.success() {
            eprintln!("{}", text(&installed));
            return None;
        }
        std::fs::copy(&wanted, &stamp).ok()?;
    }
    Some(here.join("node_modules"))
}

#[test]
fn node_postgres() {
    repeat_with("clients::node_postgres");
    // node-postgres is written for Node 16.
    if !has_program("npm") || major("node").is_none_or(|version| version < 16) {
        return skip("node or npm is missing, or node is older than 16");
    }
    let Some(modules) = node_modules() else { return skip("node-postgres cannot be installed") };
    let (_scratch, node) = node();
    let out = succeed(
        client("node")
            .env("NODE_PATH", modules)
            .arg(quick_starts().join("node-postgres/quickstart.js"))
            .arg(node.url()),
    );
    assert!(out.contains("all fine"), "{out}");
}

#[test]
fn go_pgx() {
    repeat_with("clients::go_pgx");
    let Some(mut program) = pgx_program(".", "pgx_client") else { return };
    let (_scratch, node) = node();
    let out = succeed(program.arg(node.url()));
    assert!(out.contains("all fine"), "{out}");
}
