//! The virtual clock's place, and a chronyd on it.

use crate::truth::{BIRTH_NS, raw_ns};
use std::ffi::CString;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const DIRECTORY: &str = "VCLOCK_DIR";
const CHRONYD: &str = "/usr/sbin/chronyd";
/// True time is so far ahead of the system clock at the start.
const BEHIND_NS: i64 = 37_000_000;
/// The oscillator gains so much.
const DRIFT_PPB: i64 = 30_000;
const CAP_SYS_TIME: libc::c_ulong = 25;

/// What the test needs and this machine lacks, if anything.
pub fn missing() -> Option<&'static str> {
    // SAFETY: always succeeds.
    if unsafe { libc::geteuid() } != 0 {
        return Some("root");
    }
    if !Path::new(CHRONYD).exists() {
        return Some("chronyd (apt-get install chrony)");
    }
    let compiler = Command::new("cc").arg("--version").output().is_ok_and(|o| o.status.success());
    (!compiler).then_some("C compiler (apt-get install gcc)")
}

/// From here on nobody sets the machine's clock, whatever else fails.
fn give_up_the_clock(command: &mut Command) -> &mut Command {
    // SAFETY: system calls alone, which are allowed between fork and exec.
    unsafe {
        command.pre_exec(|| {
            // Nor does it outlive who started it.
            let done = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
                && libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_TIME, 0, 0, 0) == 0;
            if done { Ok(()) } else { Err(io::Error::last_os_error()) }
        })
    }
}

/// A directory with the clock's state, the library, and what the daemon keeps.
pub struct World {
    directory: PathBuf,
    /// It made the directory, and removes it.
    owner: bool,
}

impl World {
    /// The one that this process lives in.
    pub fn inside() -> Option<Self> {
        std::env::var_os(DIRECTORY).map(|d| World { directory: d.into(), owner: false })
    }
    /// A new one, with a clock that runs.
    pub fn create() -> io::Result<Self> {
        let directory = std::env::temp_dir().join(format!("tb-vclock-{}", std::process::id()));
        // Of a process of the same number that was killed.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(directory.join("run"))?;
        // chronyd insists on that for its socket.
        std::fs::set_permissions(directory.join("run"), std::fs::Permissions::from_mode(0o750))?;
        let world = World { directory, owner: true };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/virtual_clock/vclock.c");
        let built =
            Command::new("cc").args(["-O2", "-shared", "-fPIC", "-o"]).arg(world.library()).arg(source).output()?;
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let raw = raw_ns() as i64;
        // The words of `struct file`: generation; raw, mono, ahead, freq, tick, drift; status, maxerror, tai, esterror, constant, maxerror_raw.
        let ahead = BIRTH_NS as i64 - BEHIND_NS;
        let slot = [raw, raw, ahead, 0, 10_000, DRIFT_PPB, i64::from(libc::STA_UNSYNC), 16_000_000, 0, 0, 2, raw];
        let words = [&[0][..], &slot, &slot].concat();
        std::fs::write(world.directory.join("state"), words.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<_>>())?;
        Ok(world)
    }
    fn library(&self) -> PathBuf {
        self.directory.join("vclock.so")
    }
    pub fn socket(&self) -> PathBuf {
        self.directory.join("run/chronyd.sock")
    }
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("chronyd.log")).unwrap_or_default()
    }
    /// Runs this test again, inside.
    pub fn run_again(&self, test: &str) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", test, "--nocapture"]);
        command.env(DIRECTORY, &self.directory).env("LD_PRELOAD", self.library());
        let status = give_up_the_clock(&mut command).status().unwrap();
        assert!(status.success(), "the story went wrong; chronyd says\n{}", self.log());
    }

    /// As `date -s` does.
    pub fn step(&self, by_ns: i64) {
        type Step = unsafe extern "C" fn(i64);
        let name = CString::new("vclock_step").unwrap();
        // SAFETY: the symbol is the preloaded library's, with this type.
        let step = unsafe {
            let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
            assert!(!found.is_null(), "the library is not preloaded");
            std::mem::transmute::<*mut libc::c_void, Step>(found)
        };
        // SAFETY: takes a number.
        unsafe { step(by_ns) };
    }
    /// Steers the clock: 0 ends it.
    pub fn slew(&self, ppm: i64) {
        // SAFETY: all-zero is a valid timex; it is valid for the call.
        unsafe {
            let mut t: libc::timex = std::mem::zeroed();
            (t.modes, t.tick, t.freq) = (libc::ADJ_TICK | libc::ADJ_FREQUENCY, 10_000 + ppm / 100, 0);
            libc::adjtimex(&mut t);
        }
    }
    /// Whether somebody steers the clock by more than an oscillator needs.
    pub fn is_slewed(&self) -> bool {
        clocksource::KernelTime::query().unwrap().steering_ppb().abs() > 1_000_000
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.owner {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

/// A chronyd that disciplines the virtual clock; ended in order when dropped.
pub struct Chronyd(Child, libc::c_int);

impl Chronyd {
    pub fn start(world: &World, server: SocketAddr, more: &str) -> Self {
        let file = |name: &str| world.directory.join(name);
        // One that was killed leaves it behind.
        let _ = std::fs::remove_file(file("chronyd.pid"));
        let config = format!(
            "server {} port {} iburst minpoll 0 maxpoll 0\ncmdport 0\nport 0\nrtcsync\nbindcmdaddress {}\npidfile {}\n{more}\n",
            server.ip(),
            server.port(),
            world.socket().display(),
            file("chronyd.pid").display()
        );
        std::fs::write(file("chronyd.conf"), config).unwrap();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(file("chronyd.log")).unwrap();
        let mut command = Command::new(CHRONYD);
        // Not `-x`: it shall set the clock, which is not the machine's. The library is inherited.
        command.args(["-d", "-u", "root", "-f"]).arg(file("chronyd.conf")).stdout(Stdio::null()).stderr(log);
        assert!(
            std::env::var_os("LD_PRELOAD").is_some_and(|l| l == world.library().as_os_str()),
            "only on a virtual clock"
        );
        Chronyd(give_up_the_clock(&mut command).spawn().unwrap(), libc::SIGTERM)
    }
    /// SIGKILL, not in order.
    pub fn kill(mut self) {
        self.1 = libc::SIGKILL;
    }
}

impl Drop for Chronyd {
    fn drop(&mut self) {
        // SAFETY: takes numbers; nobody waited for the child yet, so it has its number still.
        unsafe { libc::kill(self.0.id() as libc::pid_t, self.1) };
        let _ = self.0.wait();
    }
}
