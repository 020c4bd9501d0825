//! A node as a process of its own, on a store of its own.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A condition that does not come true by then never will, on the slowest machine with the busiest neighbours: only a failure
/// costs this long.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// Says how to repeat a test alone.
pub fn repeat_with(name: &str) {
    eprintln!("repeat with: cargo test -p timeball --test e2e -- --exact {name} --nocapture");
}

/// Says why a test does not run here; fails where somebody promised that it can.
pub fn skip(why: &str) {
    assert!(std::env::var_os("TIMEBALL_E2E_REQUIRE").is_none(), "{why}, but TIMEBALL_E2E_REQUIRE is set");
    // Not by `eprintln!`, which the test runner keeps to itself for a test that passes.
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let _ = std::io::stderr().write_all(format!("SKIPPED: {name}: {why}\n").as_bytes());
}

/// The binary under test; `TIMEBALL_BINARY` names another one, such as a release build.
pub fn binary() -> OsString {
    std::env::var_os("TIMEBALL_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_timeball").into())
}

/// Whether a program can be run. A wrapper without the program behind it, as Debian has for PostgreSQL's, fails at `--version`.
pub fn has_program(name: &str) -> bool {
    let answers = |flag: &str| {
        let status = Command::new(name).arg(flag).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|s| s.success())
    };
    answers("--version") || answers("version")
}

/// Ports below those that kernels give to connections going out (Linux: from 32,768): one that is free stays free until its node
/// listens there, and while the node is down, whoever connects to whom meanwhile.
const PORTS: std::ops::Range<u32> = 12_000..32_000;

/// A port of this machine that nobody listens at; no two calls in this process give the same one, as long as there are others.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Another process of these tests begins elsewhere.
    let first = std::process::id().wrapping_mul(997);
    let ports =
        PORTS.map(|_| PORTS.start + first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS.len() as u32);
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut numbers = ports.map(|port| port as u16);
    numbers.find(is_free).expect("a free port")
}

/// A directory for one test, removed when the test passes.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let n = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("timeball-e2e-{}-{n}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Scratch(path),
                // Kept by a test that failed in a process of the same number: containers count from 1.
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => panic!("{}: {e}", path.display()),
            }
        }
    }
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("kept for a look: {}", self.0.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// A node's process that does not serve yet.
pub struct Starting {
    child: Child,
    said: BufReader<ChildStdout>,
    log: PathBuf,
    /// What others have written there before, bytes.
    logged_before: usize,
}

impl Starting {
    pub fn spawn(store: &Path, flags: &[&str]) -> Starting {
        Self::spawn_by(&[], "127.0.0.1", store, flags)
    }

    /// By a launcher that becomes the node, so that the process is the same (`ip netns exec`, `env`), perhaps; `host`: where it listens.
    pub fn spawn_by(launcher: &[String], host: &str, store: &Path, flags: &[&str]) -> Starting {
        let log = store.with_extension("log");
        let logged_before = std::fs::read(&log).map_or(0, |log| log.len());
        let to = std::fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let mut command = Command::new(launcher.first().map_or_else(binary, |program| program.into()));
        if let [_, rest @ ..] = launcher {
            command.args(rest).arg(binary());
        }
        let any_port = format!("{host}:0");
        let mut child = command
            .args(["start", "--listen-addr", &any_port, "--http-addr", &any_port, "--store"])
            .arg(store)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(to)
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Starting { child, said, log, logged_before }
    }

    /// Waits for the line that begins so; the rest of it. What was said before is passed over.
    pub fn line(&mut self, begins: &str) -> Result<String, String> {
        for line in self.said.by_ref().lines() {
            if let Some(rest) = line.unwrap().strip_prefix(begins) {
                return Ok(rest.trim().to_owned());
            }
        }
        let _ = self.child.wait();
        Err(std::fs::read_to_string(&self.log).unwrap_or_default())
    }

    /// Where it answers by HTTP, already.
    pub fn http(&self) -> String {
        until("it answers by HTTP", || {
            let log = std::fs::read_to_string(&self.log).ok()?;
            let line = log.get(self.logged_before..)?.lines().find(|line| line.contains("http_answers"))?.to_owned();
            line.split("address=").nth(1).map(str::to_owned)
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it serves; what it logged, if it ends instead.
    pub fn ready(mut self) -> Result<Node, String> {
        let sql = self.line("sql ")?;
        let address = sql.strip_prefix("postgresql://root@").unwrap();
        let sql = address.split('/').next().unwrap().to_owned();
        let http = self.line("http ")?.strip_prefix("http://").unwrap().to_owned();
        Ok(Node { child: self.child, sql, http, log: self.log })
    }
}

/// A node that runs.
pub struct Node {
    child: Child,
    /// `127.0.0.1:port` of SQL.
    pub sql: String,
    /// `127.0.0.1:port` of HTTP.
    pub http: String,
    log: PathBuf,
}

impl Node {
    /// A node on a store, ready for clients; more flags may be given.
    pub fn start(store: &Path, flags: &[&str]) -> Node {
        Self::try_start(store, flags).unwrap_or_else(|log| panic!("the node did not start:\n{log}"))
    }

    /// As [`Node::start`]; what it logged, if it ends instead.
    pub fn try_start(store: &Path, flags: &[&str]) -> Result<Node, String> {
        Starting::spawn(store, flags).ready()
    }

    pub fn url(&self) -> String {
        format!("postgresql://root@{}/postgres", self.sql)
    }
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
    /// A connection of an independent client.
    pub fn connect(&self) -> postgres::Client {
        postgres::Client::connect(&self.url(), postgres::NoTls).unwrap_or_else(|e| panic!("cannot connect: {e}"))
    }
    /// A bare socket.
    pub fn socket(&self) -> TcpStream {
        let socket = TcpStream::connect(&self.sql).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }
    /// What it logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
    /// A page of its HTTP server: head and body.
    pub fn get(&self, path: &str) -> String {
        get(&self.http, path)
    }
    /// A metric without labels.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let page = self.get("/metrics");
        page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }
    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let status = Command::new("kill").arg("-TERM").arg(self.pid().to_string()).status().unwrap();
        assert!(status.success());
    }
    /// Waits for its end.
    pub fn wait(mut self) -> ExitStatus {
        until("the node ends", || self.child.try_wait().unwrap())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the node's log:\n{}", self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A page of a node's HTTP server: head and body.
pub fn get(address: &str, path: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(socket, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut page = String::new();
    socket.read_to_string(&mut page).unwrap();
    page
}

/// Asks until there is an answer.
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(5)); // poll: what the caller asks for
    }
}

/// Whether an error says that the connection is gone, without a word from the server.
pub fn is_gone(error: &postgres::Error) -> bool {
    error.is_closed() || std::error::Error::source(error).is_some_and(|e| e.is::<std::io::Error>())
}

/// SQLSTATE of an error.
pub fn state(error: &postgres::Error) -> &str {
    error.code().map_or("none", |c| c.code())
}

/// What a store takes on the disk, but for its log, which is written round and round.
pub fn bytes_of(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_of(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.flatten().filter(|entry| entry.file_name() != "log").map(size).sum()
}
