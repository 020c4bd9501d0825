//! The chronyd that answers, and the settings that it was started with.
//!
//! Many chronyds may run on a machine, and none of them needs to read `/etc/chrony/chrony.conf`. So the process is found first:
//!
//! | it answered | the process is |
//! | --- | --- |
//! | over its Unix socket | the sender of the answer, in the kernel's words |
//! | at a UDP address of this machine | the owner of that port (`/proc/net/udp`, `/proc/*/fd`), which only root may see |
//! | the same, and this user may not see it | the only chronyd here, if there is one only |
//! | at another address | on another machine |
//!
//! Its arguments name the file (`-f`) or are the settings themselves; without either the file is the one that the distribution built
//! in. The file is opened below the process's own root (`/proc/<pid>/root`): a container has files of its own.
//!
//! **Caveats.** A link to an absolute path inside of another root leads into ours. Where the root may not be looked into, ours is taken, and said.

use super::settings::{Settings, below};
use clocksource::chrony::Answered;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Where distributions put chronyd's settings: built into the daemon.
const USUAL: [&str; 2] = ["/etc/chrony/chrony.conf", "/etc/chrony.conf"];
/// Options of chronyd that take an argument (its `getopt` string).
const WITH_ARGUMENT: &str = "fFlLPtu";
/// Units of the start time in `/proc/<pid>/stat`; the same on every Linux that matters.
const TICKS_PER_SECOND: u64 = 100;

/// A chronyd and its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Daemon {
    /// Its process id.
    pub process: u32,
    /// Its command line.
    pub arguments: Vec<String>,
    /// How it was told from others.
    pub told_by: String,
    /// What it was started with, as far as it can be read.
    pub settings: Settings,
}

/// Where a daemon's settings begin.
#[derive(Debug, PartialEq, Eq)]
enum Origin<'a> {
    File(&'a str),
    Arguments(Vec<&'a str>),
    BuiltIn,
}

impl Daemon {
    /// The daemon that gave the last answer, seen through `proc` (`/proc`).
    ///
    /// # Errors
    /// Why it cannot be told, for people.
    pub fn find(answered: Option<Answered>, proc: &Path) -> Result<Daemon, String> {
        let (process, told_by) = match answered {
            None => return Err("chronyd gave no answer, so it is not known which one is meant".into()),
            Some(Answered::Process(Some(pid))) => (pid, "it sent the answer".to_owned()),
            Some(Answered::Process(None)) => {
                return Err("the chronyd that answers lives in another process id namespace (a container)".into());
            }
            Some(Answered::Address(address)) => owner(address, proc)?,
        };
        let arguments = arguments(proc, process)
            .ok_or_else(|| format!("process {process} answers, but its command line cannot be read"))?;
        let settings = settings(proc, process, &arguments);
        Ok(Daemon { process, arguments, told_by, settings })
    }
}

fn arguments(proc: &Path, process: u32) -> Option<Vec<String>> {
    let raw = std::fs::read(proc.join(process.to_string()).join("cmdline")).ok()?;
    let words: Vec<_> = raw.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into_owned()).collect();
    let end = words.iter().rposition(|w| !w.is_empty())? + 1;
    Some(words[..end].to_vec())
}

/// Process ids, in order.
fn processes(proc: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let mut all: Vec<u32> = entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    all.sort_unstable();
    all
}

/// The address in a line of `/proc/net/udp`: hexadecimal words in the machine's byte order.
fn local_address(line: &str) -> Option<(SocketAddr, u64)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (address, port) = fields.get(1)?.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip: IpAddr = match address.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let bytes: Vec<u8> = (0..4).filter_map(|n| word(8 * n)).flatten().collect();
            Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()
        }
        _ => return None,
    };
    Some((SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?), fields.get(9)?.parse().ok()?))
}

/// Who has a UDP address of this machine.
fn owner(address: SocketAddr, proc: &Path) -> Result<(u32, String), String> {
    let tables = ["net/udp", "net/udp6"].map(|t| std::fs::read_to_string(proc.join(t)).unwrap_or_default());
    let ours = |a: SocketAddr| {
        a.port() == address.port() && (a.ip() == address.ip() || a.ip().is_unspecified() && address.ip().is_loopback())
    };
    let sockets: Vec<String> = tables
        .iter()
        .flat_map(|table| table.lines().filter_map(local_address))
        .filter(|(a, _)| ours(*a))
        .map(|(_, inode)| format!("socket:[{inode}]"))
        .collect();
    if sockets.is_empty() {
        return Err(format!(
            "chronyd at {address} runs on another machine, or in another network namespace of this one"
        ));
    }
    let holds = |pid: &u32| {
        let open = std::fs::read_dir(proc.join(pid.to_string()).join("fd")).into_iter().flatten().flatten();
        open.filter_map(|fd| std::fs::read_link(fd.path()).ok()).any(|to| sockets.iter().any(|s| to == Path::new(s)))
    };
    let all = processes(proc);
    if let Some(pid) = all.iter().find(|pid| holds(pid)) {
        return Ok((*pid, format!("it has {address}")));
    }
    let named = |pid: &&u32| {
        let name = std::fs::read_to_string(proc.join(pid.to_string()).join("comm")).unwrap_or_default();
        name.trim() == "chronyd"
    };
    match all.iter().filter(named).collect::<Vec<_>>()[..] {
        [pid] => Ok((*pid, "it is the only chronyd that can be seen here".into())),
        [] => Err(format!("no process that can be seen here is chronyd, though {address} answers")),
        _ => Err(format!("several chronyds run here, and only root can see which of them has {address}")),
    }
}

/// What the arguments say of the settings. As `getopt` has it, options and directives may stand in any order.
fn origin(arguments: &[String]) -> Origin<'_> {
    let (mut file, mut directives, mut words) = (None, Vec::new(), arguments.iter().skip(1).map(String::as_str));
    while let Some(word) = words.next() {
        let letters = match word.strip_prefix('-') {
            Some("-") => {
                directives.extend(words);
                break;
            }
            Some(letters) if !letters.is_empty() => letters,
            _ => {
                directives.push(word);
                continue;
            }
        };
        if let Some(at) = letters.find(|c| WITH_ARGUMENT.contains(c)) {
            let (option, rest) = letters[at..].split_at(1);
            let value = if rest.is_empty() { words.next() } else { Some(rest) };
            file = if option == "f" { value } else { file };
        }
    }
    match (directives.is_empty(), file) {
        (false, _) => Origin::Arguments(directives),
        (true, Some(file)) => Origin::File(file),
        (true, None) => Origin::BuiltIn,
    }
}

fn settings(proc: &Path, process: u32, arguments: &[String]) -> Settings {
    let home = proc.join(process.to_string());
    let (root, shut) = match std::fs::read_dir(home.join("root")) {
        Ok(_) => (home.join("root"), None),
        Err(e) => (
            PathBuf::from("/"),
            Some(format!("{}/root: {e}; the files were read below this process's root", home.display())),
        ),
    };
    let mut settings = match origin(arguments) {
        Origin::Arguments(lines) => Settings::of_lines(&root, lines),
        Origin::File(file) if Path::new(file).is_absolute() => Settings::read(&root, Path::new(file)),
        Origin::File(file) => match std::fs::read_link(home.join("cwd")) {
            Ok(directory) => Settings::read(&root, &directory.join(file)),
            Err(e) => Settings {
                troubles: vec![format!("{file}: a relative path, and {}/cwd: {e}", home.display())],
                ..Settings::default()
            },
        },
        Origin::BuiltIn => match USUAL.into_iter().map(Path::new).find(|p| below(&root, p).exists()) {
            Some(file) => Settings::read(&root, file),
            None => Settings {
                troubles: vec![format!("the file that is built into it: none of {}", USUAL.join(", "))],
                ..Settings::default()
            },
        },
    };
    settings.troubles.extend(shut);
    if let Some(started) = started(proc, process) {
        let newer = |file: &&PathBuf| {
            let changed = std::fs::metadata(below(&root, file)).and_then(|m| m.modified());
            changed.is_ok_and(|at| at > started + Duration::from_secs(1))
        };
        let stale: Vec<_> = settings
            .files
            .iter()
            .filter(newer)
            .map(|f| format!("{}: changed after chronyd started, which may not know it", f.display()))
            .collect();
        settings.troubles.extend(stale);
    }
    settings
}

/// When a process started.
fn started(proc: &Path, process: u32) -> Option<SystemTime> {
    let stat = std::fs::read_to_string(proc.join(process.to_string()).join("stat")).ok()?;
    // The name in brackets may have spaces; 20 fields after it comes the start, in ticks since the boot.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let machine = std::fs::read_to_string(proc.join("stat")).ok()?;
    let boot_s: u64 = machine.lines().find_map(|l| l.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(boot_s + ticks / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    const UDP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n";

    /// `/proc` with two chronyds: 41 reads the distribution's file, 42 has port 323 and a root and a file of its own.
    fn proc(more: &[(&str, &str)]) -> Tree {
        let loopback = format!("{:08X}", u32::from_ne_bytes([127, 0, 0, 1]));
        let udp = format!(
            "{UDP} 7: {loopback}:0143 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 5150 2 0 0\n"
        );
        let mut files = vec![
            ("net/udp", udp.as_str()),
            ("41/cmdline", "/usr/sbin/chronyd\0-F\x001\0"),
            ("41/comm", "chronyd\n"),
            ("41/root/etc/chrony.conf", "server of-41\n"),
            ("42/cmdline", "chronyd\0-xdf/my.conf\0"),
            ("42/comm", "chronyd\n"),
            ("42/root/my.conf", "server of-42\nmaxclockerror 3\n"),
            ("42/stat", "42 (chronyd (x) y) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 500 20\n"),
            ("stat", "cpu 1\nbtime 1000\n"),
        ];
        files.extend(more);
        Tree::new(&files)
    }

    fn udp(ip: &str) -> Option<Answered> {
        Some(Answered::Address(format!("{ip}:323").parse().unwrap()))
    }

    #[test]
    fn the_sender_of_the_answer_is_asked_for_its_file() {
        let proc = proc(&[]);
        let found = Daemon::find(Some(Answered::Process(Some(42))), proc.path()).unwrap();
        assert_eq!((found.process, found.settings.files.as_slice()), (42, &[PathBuf::from("/my.conf")][..]));
        assert_eq!(found.settings.number("maxclockerror"), Some((3.0, Path::new("/my.conf"))));
        assert!(found.settings.troubles[0].contains("changed after chronyd started"), "in 1970, that is: {found:?}");
        let usual = Daemon::find(Some(Answered::Process(Some(41))), proc.path()).unwrap();
        assert_eq!(usual.settings.files, [PathBuf::from("/etc/chrony.conf")]);
        assert_eq!(usual.settings.named("server").next().unwrap().words[1], "of-41");
    }

    #[test]
    fn a_port_of_this_machine_has_an_owner() {
        let seen = proc(&[("42/fd/5", "-> socket:[5150]")]);
        let found = Daemon::find(udp("127.0.0.1"), seen.path()).unwrap();
        assert_eq!((found.process, found.told_by.as_str()), (42, "it has 127.0.0.1:323"));
        let why = |answered, proc: &Tree| Daemon::find(answered, proc.path()).unwrap_err();
        assert!(why(udp("10.0.0.1"), &seen).contains("another machine"));
        let unseen = proc(&[]);
        assert!(why(udp("127.0.0.1"), &unseen).contains("several chronyds"));
        let alone = proc(&[("41/comm", "sh\n")]);
        assert_eq!(Daemon::find(udp("127.0.0.1"), alone.path()).unwrap().process, 42);
        let none = proc(&[("41/comm", "sh\n"), ("42/comm", "sh\n")]);
        assert!(why(udp("127.0.0.1"), &none).contains("no process"));
        assert!(why(Some(Answered::Process(None)), &none).contains("container"));
        assert!(why(Some(Answered::Process(Some(7))), &none).contains("process 7"));
        assert!(why(None, &none).contains("no answer"));
    }

    #[test]
    fn a_socket_of_our_own_is_found_in_the_tables_of_this_machine() {
        for ip in ["127.0.0.1", "::1"] {
            let Ok(socket) = std::net::UdpSocket::bind((ip, 0)) else { continue };
            let (pid, _) = owner(socket.local_addr().unwrap(), Path::new("/proc")).unwrap();
            assert_eq!(pid, std::process::id());
        }
    }

    #[test]
    fn arguments_name_a_file_or_are_the_settings() {
        let origin_of = |line: &str| {
            let words: Vec<String> = line.split('|').map(str::to_owned).collect();
            format!("{:?}", origin(&words))
        };
        assert_eq!(origin_of("chronyd|-x|-d|-f|/a"), "File(\"/a\")");
        assert_eq!(origin_of("chronyd|-xdf|/a|-u|f"), "File(\"/a\")");
        assert_eq!(origin_of("chronyd|-f/a|-L-1"), "File(\"/a\")");
        assert_eq!(origin_of("chronyd|-f|/a|-f|b"), "File(\"b\")");
        assert_eq!(origin_of("chronyd|-F|1"), "BuiltIn");
        assert_eq!(origin_of("chronyd|-q|server x iburst|-f|/a|-t|9"), "Arguments([\"server x iburst\"])");
        assert_eq!(origin_of("chronyd|-d|--|-f"), "Arguments([\"-f\"])");
    }

    #[test]
    fn settings_that_cannot_be_found_are_said() {
        let lost = proc(&[
            ("43/cmdline", "chronyd\0-f\0my.conf\0"),
            ("43/root/x", ""),
            ("44/cmdline", "chronyd\0"),
            ("44/root/x", ""),
        ]);
        let troubles = |pid| Daemon::find(Some(Answered::Process(Some(pid))), lost.path()).unwrap().settings.troubles;
        assert!(troubles(43)[0].starts_with("my.conf: a relative path"), "{:?}", troubles(43));
        assert!(troubles(44)[0].contains("none of /etc/chrony/chrony.conf, /etc/chrony.conf"));
        let shut = proc(&[("45/cmdline", "chronyd\0user nobody\0")]);
        let found = Daemon::find(Some(Answered::Process(Some(45))), shut.path()).unwrap();
        assert!(found.settings.troubles[0].contains("below this process's root") && found.settings.files.is_empty());
        assert_eq!(found.settings.directives.len(), 1);
    }
}
