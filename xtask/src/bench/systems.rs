//! The two databases: each started on its own folder of the same disk, on loopback, with its default durability.

use crate::run::{cargo, root};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where Debian keeps the server's programs.
const POSTGRES_BIN: &str = "/usr/lib/postgresql/15/bin";

/// A node that takes longer to open its store, or to close it, hangs.
const START_MAX: Duration = Duration::from_secs(120);
/// See [`START_MAX`].
const STOP_MAX: Duration = Duration::from_secs(60);
/// How often a node that stops is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A page that takes longer does not come.
const PAGE_SECONDS_MAX: Duration = Duration::from_secs(10);

/// A running database.
pub trait System: Sync {
    /// Where it listens, on loopback.
    fn port(&self) -> u16;
    /// Everything that it keeps on disk.
    fn dir(&self) -> &Path;
    /// Its process, if that is one.
    fn pid(&self) -> Option<u32> {
        None
    }
    /// Bytes that its caches hold now, if it says so.
    fn cache_bytes(&self) -> Option<u64> {
        None
    }
    /// A connection URL.
    fn url(&self) -> String {
        format!("postgresql://root@127.0.0.1:{}/bench?sslmode=disable", self.port())
    }
}

/// Builds the release binary and says where it is.
pub fn build_timeball() -> Result<PathBuf, String> {
    cargo(&["build", "--release", "--package", "timeball"], &[])?;
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root().join("target"), PathBuf::from);
    Ok(target.join("release/timeball"))
}

fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|e| format!("no free port: {e}"))?;
    listener.local_addr().map(|a| a.port()).map_err(|e| e.to_string())
}

/// Says how to get PostgreSQL where it is not.
pub fn has_postgres() -> Result<(), String> {
    let there = Path::new(POSTGRES_BIN).join("initdb").exists();
    let advice = || format!("no PostgreSQL 15 in {POSTGRES_BIN}: apt-get install postgresql-15 postgresql-contrib");
    there.then_some(()).ok_or_else(advice)
}

/// Sessions that PostgreSQL takes: its default, 100, is less than posts-and-likes has workers.
const POSTGRES_SESSIONS_MAX: u32 = 300;

/// PostgreSQL 15 from Debian, all settings at their defaults but the port, the socket's folder, and how many sessions it takes.
pub struct Postgres {
    dir: PathBuf,
    port: u16,
}

impl Postgres {
    /// Makes a cluster in `dir` and starts it.
    pub fn start(dir: &Path) -> Result<Self, String> {
        has_postgres()?;
        std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let port = free_port()?;
        let data = dir.join("data");
        let d = dir.display();
        shell(&format!("chmod 0777 {d} {d}/.. 2>/dev/null; true"))?;
        let init = format!("{POSTGRES_BIN}/initdb -D {} -U root --auth trust -E UTF8 --locale C", data.display());
        as_postgres(&init)?;
        let start = format!(
            "{POSTGRES_BIN}/pg_ctl -D {} -w -l {d}/log -o '-p {port} -h 127.0.0.1 -k {d} -N {POSTGRES_SESSIONS_MAX}' start",
            data.display()
        );
        as_postgres(&start)?;
        let postgres = Postgres { dir: dir.to_path_buf(), port };
        shell(&format!("createdb -h 127.0.0.1 -p {port} -U root bench"))?;
        Ok(postgres)
    }
}

impl System for Postgres {
    fn port(&self) -> u16 {
        self.port
    }
    fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let stop = format!("{POSTGRES_BIN}/pg_ctl -D {}/data -m fast stop", self.dir.display());
        if let Err(problem) = as_postgres(&stop) {
            eprintln!("{problem}");
        }
    }
}

/// The server refuses to run as root.
fn as_postgres(command: &str) -> Result<(), String> {
    let root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout.trim_ascii() == b"0");
    if root { shell(&format!("su postgres -s /bin/sh -c \"{command}\"")) } else { shell(command) }
}

fn shell(command: &str) -> Result<(), String> {
    let out = Command::new("sh").args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).status();
    match out {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{command}` failed: {status}")),
        Err(e) => Err(format!("cannot run `{command}`: {e}")),
    }
}

/// A process of Timeball; stopped when dropped.
pub struct Node {
    child: Child,
    /// Where it speaks SQL, on loopback.
    pub port: u16,
    http_port: u16,
}

impl Node {
    /// Starts a node on a fresh store and waits until it says its address; its log goes to `log`.
    pub fn start(binary: &Path, dir: &Path, log: Stdio) -> Result<Self, String> {
        Node::start_with(binary, dir, log, &[])
    }

    /// As [`Node::start`], with more flags.
    pub fn start_with(binary: &Path, dir: &Path, log: Stdio, flags: &[String]) -> Result<Self, String> {
        std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let (port, http) = (free_port()?, free_port()?);
        let mut child = Command::new(binary)
            .args(["start", "--listen-addr", &format!("127.0.0.1:{port}"), "--http-addr", &format!("127.0.0.1:{http}")])
            .arg("--store")
            .arg(dir)
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(|e| format!("cannot start {}: {e}", binary.display()))?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(stdout).lines();
            // Nobody may want to know any more.
            let _ = tell.send(lines.by_ref().map_while(Result::ok).any(|line| line.contains("postgresql://")));
            // Somebody must go on reading, or the node would block on a full pipe.
            lines.for_each(drop);
        });
        let node = Node { child, port, http_port: http };
        match told.recv_timeout(START_MAX) {
            Ok(true) => Ok(node),
            Ok(false) => Err("timeball ended before it printed a connection URL".into()),
            Err(_) => Err(format!("timeball printed no connection URL in {} s", START_MAX.as_secs())),
        }
    }

    /// A page of its HTTP side.
    pub fn get(&self, path: &str) -> Result<String, String> {
        let failed = |e: std::io::Error| format!("{path} of the node: {e}");
        let mut stream = TcpStream::connect(("127.0.0.1", self.http_port)).map_err(failed)?;
        stream.set_read_timeout(Some(PAGE_SECONDS_MAX)).map_err(failed)?;
        write!(stream, "GET {path} HTTP/1.1\r\n\r\n").map_err(failed)?;
        let mut page = String::new();
        stream.read_to_string(&mut page).map_err(failed)?;
        Ok(page)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if began.elapsed() > STOP_MAX {
                eprintln!("timeball did not stop in {} s", STOP_MAX.as_secs());
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Metrics that count what caches hold, in bytes.
const CACHES: [&str; 2] = ["store_cache_bytes", "store_block_cache_bytes"];

/// One Timeball node with a database for the benchmark.
pub struct Timeball {
    node: Node,
    dir: PathBuf,
}

impl Timeball {
    /// Starts it on a fresh store, its flags at their defaults but for these.
    pub fn start(binary: &Path, dir: &Path, flags: &[String]) -> Result<Self, String> {
        let node = Node::start_with(binary, dir, Stdio::inherit(), flags)?;
        shell(&format!("psql -X -q -h 127.0.0.1 -p {} -U root -d postgres -c 'CREATE DATABASE bench'", node.port))?;
        Ok(Timeball { node, dir: dir.to_path_buf() })
    }
}

impl System for Timeball {
    fn port(&self) -> u16 {
        self.node.port
    }
    fn dir(&self) -> &Path {
        &self.dir
    }
    fn pid(&self) -> Option<u32> {
        Some(self.node.pid())
    }
    fn cache_bytes(&self) -> Option<u64> {
        let text = self.node.get("/metrics").ok()?;
        let value =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<u64>().ok());
        Some(CACHES.iter().filter_map(|name| value(name)).sum())
    }
}
