//! Two chronyds: a reference in a network namespace of its own, and a client of it here. Neither touches the system clock.
//!
//! The end-to-end story of the clocks (`tests/e2e/clocks.rs`) starts the same ones.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What the test needs and this machine lacks, if anything.
pub fn missing() -> Option<&'static str> {
    let found = |program: &str| std::env::split_paths(&path()).any(|d| d.join(program).exists());
    // SAFETY: always succeeds.
    if unsafe { libc::geteuid() } != 0 {
        return Some("root");
    }
    let programs = [
        ("chronyd", "chronyd (apt-get install chrony)"),
        ("ip", "ip (apt-get install iproute2)"),
        ("unshare", "unshare (apt-get install util-linux)"),
    ];
    if let Some((_, what)) = programs.into_iter().find(|(p, _)| !found(p)) {
        return Some(what);
    }
    let namespaces = with_path("unshare").args(["--net", "--mount", "true"]).output();
    if !namespaces.is_ok_and(|o| o.status.success()) {
        return Some("right to make namespaces (a container without CAP_SYS_ADMIN?)");
    }
    // Sandboxes may allow them and still have no such links.
    Namespace::create().is_err().then_some("virtual links between network namespaces (`ip link add type veth`)")
}

/// Where programs are, those of root too.
fn path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}

fn with_path(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.env("PATH", path());
    command
}

fn run(line: &str) -> io::Result<()> {
    let words: Vec<_> = line.split_whitespace().collect();
    let done = with_path(words[0]).args(&words[1..]).output()?;
    if done.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{line}: {}", String::from_utf8_lossy(&done.stderr))))
}

/// A child that is killed when dropped.
pub struct Daemon(Child);

impl Daemon {
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A network namespace joined to this one by a pair of virtual links; gone when dropped.
pub struct Namespace {
    name: String,
    link: String,
    pub address: String,
}

impl Namespace {
    /// One with a number that nobody has: another run may go on, or have been killed and left its own behind.
    pub fn create() -> io::Result<Self> {
        let mut outcome = Err(io::ErrorKind::NotFound.into());
        for n in 0..250 {
            outcome = Self::numbered((std::process::id() + n) % 250);
            if !outcome.as_ref().is_err_and(|e| e.to_string().contains("File exists")) {
                break;
            }
        }
        outcome
    }
    fn numbered(id: u32) -> io::Result<Self> {
        let (name, link, address) = (format!("tbref{id}"), format!("tbv{id}"), format!("10.77.{id}.1"));
        // Before there is a value whose end would remove somebody else's.
        run(&format!("ip netns add {name}"))?;
        let ns = Namespace { name, link, address };
        let Namespace { name, link, address } = &ns;
        run(&format!("ip link add {link} type veth peer name eth0 netns {name}"))?;
        run(&format!("ip addr add 10.77.{id}.2/24 dev {link}"))?;
        run(&format!("ip link set {link} up"))?;
        run(&format!("ip -n {name} addr add {address}/24 dev eth0"))?;
        run(&format!("ip -n {name} link set eth0 up"))?;
        run(&format!("ip -n {name} link set lo up"))?;
        Ok(ns)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = run(&format!("ip link del {}", self.link));
        let _ = run(&format!("ip netns del {}", self.name));
    }
}

/// Where the daemons keep their files.
pub struct Place(pub PathBuf);

impl Place {
    pub fn create() -> io::Result<Self> {
        let base = std::env::temp_dir().join(format!("tb-chrony-{}", std::process::id()));
        // Of a process of the same number that was killed.
        let _ = std::fs::remove_dir_all(&base);
        std::fs::create_dir_all(base.join("run"))?;
        std::fs::create_dir_all(base.join("clockbound"))?;
        // chronyd insists: its own directory, nobody else's.
        run(&format!("chown _chrony:_chrony {}", base.join("run").display()))
            .or_else(|_| run(&format!("chown chrony:chrony {}", base.join("run").display())))?;
        run(&format!("chmod 750 {}", base.join("run").display()))?;
        Ok(Place(base))
    }
    pub fn socket(&self) -> PathBuf {
        self.0.join("run/chronyd.sock")
    }
    fn daemon(&self, name: &str, config: &str, inside: Option<&Namespace>) -> io::Result<Daemon> {
        let file = self.0.join(name);
        // A chronyd that was killed leaves its pid file behind.
        let pid = self.0.join(format!("{name}.pid"));
        let _ = std::fs::remove_file(&pid);
        std::fs::write(&file, format!("{config}\npidfile {}\n", pid.display()))?;
        let mut command = match inside {
            Some(ns) => {
                let mut c = with_path("ip");
                c.args(["netns", "exec", &ns.name, "chronyd"]);
                c
            }
            None => self.at_usual_paths(Path::new("chronyd")),
        };
        let log = std::fs::File::create(self.0.join(format!("{name}.log")))?;
        let child = command.args(["-x", "-d", "-f"]).arg(&file).stdout(Stdio::null()).stderr(log).spawn()?;
        Ok(Daemon(child))
    }
    pub fn reference(&self, ns: &Namespace) -> io::Result<Daemon> {
        self.daemon("reference", "local stratum 8\nallow\ncmdport 0\nbindcmdaddress /", Some(ns))
    }
    /// A chronyd that follows `server` and answers at [`Place::socket`] only.
    pub fn client(&self, server: SocketAddr) -> io::Result<Daemon> {
        self.client_at(server, 0)
    }
    /// As [`Place::client`]; it answers on this UDP port of loopback too, unless that is 0.
    pub fn client_at(&self, server: SocketAddr, command_port: u16) -> io::Result<Daemon> {
        let (socket, (host, port)) = (self.socket(), (server.ip(), server.port()));
        let config = format!(
            "server {host} port {port} iburst minpoll -1 maxpoll 0\nmaxclockerror 50\ncmdport {command_port}\nport 0\nbindcmdaddress {}",
            socket.display()
        );
        self.daemon("client", &config, None)
    }
    /// ClockBound's daemon over the client, if this machine has it (`cargo install clock-bound-d`): its paths are fixed, so it sees
    /// this place's directories at them, in a mount namespace of its own.
    pub fn clockbound(&self) -> Option<(Daemon, PathBuf)> {
        let given = std::env::var_os("TIMEBALL_CLOCKBOUND").map(PathBuf::from);
        let home = std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cargo/bin/clockbound"));
        let program = given.into_iter().chain(home).find(|p| p.exists())?;
        let segments = self.0.join("clockbound");
        let log = std::fs::File::create(self.0.join("clockbound.log")).ok()?;
        let child =
            self.at_usual_paths(&program).args(["-d", "-m", "50"]).stdout(log.try_clone().ok()?).stderr(log).spawn();
        Some((Daemon(child.ok()?), segments.join("shm0")))
    }
    /// A program that sees this place's directories where daemons usually put theirs. chronyd too: it answers ClockBound at a path.
    pub fn at_usual_paths(&self, program: &Path) -> Command {
        let script = "mkdir -p /run/chrony /run/clockbound && mount --bind \"$1\" /run/chrony \
             && mount --bind \"$2\" /run/clockbound && shift 2 && exec \"$@\"";
        let mut command = with_path("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]);
        command.arg(self.0.join("run")).arg(self.0.join("clockbound")).arg(program);
        command
    }
    pub fn log(&self, name: &str) -> String {
        std::fs::read_to_string(Path::new(&self.0).join(format!("{name}.log"))).unwrap_or_default()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
