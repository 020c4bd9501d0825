//! One node's process.

use super::{ClusterError, io_error};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A node: its place, its ports, its process. It is killed with this value; its data are nobody's.
pub(super) struct Node {
    pub number: usize,
    store: PathBuf,
    pub sql: u16,
    pub http: u16,
    pub peer: u16,
    process: Option<Child>,
}

/// Starts a node at ports of 127.0.0.1, for SQL and HTTP. It ends with whoever started it, however that ends.
///
/// # Errors
/// The system's.
pub fn spawn_node(
    binary: &Path,
    store: &Path,
    [sql, http]: [u16; 2],
    flags: &[String],
    log: File,
) -> std::io::Result<Child> {
    let mut command = Command::new(binary);
    command
        .args(["start", "--store"])
        .arg(store)
        .arg(format!("--listen-addr=127.0.0.1:{sql}"))
        .arg(format!("--http-addr=127.0.0.1:{http}"))
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    // SAFETY: prctl takes numbers and is safe between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    command.spawn()
}

impl Node {
    /// Ports for SQL, HTTP and peers.
    pub fn new(number: usize, store: PathBuf, [sql, http, peer]: [u16; 3]) -> Self {
        Node { number, store, sql, http, peer, process: None }
    }

    fn log(&self) -> PathBuf {
        self.store.with_extension("log")
    }

    /// Starts it.
    pub fn start(&mut self, binary: &Path, flags: &[String]) -> Result<(), ClusterError> {
        let failed = || format!("n{} ({})", self.number, binary.display());
        let log = File::create(self.log()).map_err(io_error(failed()))?;
        let process = spawn_node(binary, &self.store, [self.sql, self.http], flags, log);
        self.process = Some(process.map_err(io_error(failed()))?);
        Ok(())
    }

    /// Its process.
    pub fn process(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// An error if its process has ended.
    pub fn check(&mut self) -> Result<(), ClusterError> {
        let Some(status) = self.process.as_mut().and_then(|process| process.try_wait().ok()?) else { return Ok(()) };
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        let said = log.lines().last().unwrap_or("it said nothing").to_owned();
        Err(ClusterError::Ended { number: self.number, status: status.to_string(), said })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
