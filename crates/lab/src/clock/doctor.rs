//! `timeball clock doctor`: what keeps the bound wide, and what a change would gain.
//!
//! Everything is judged from [`Facts`], a value; gathering them from the machine is apart. The bound of chronyd is a sum, so each
//! advice says which term it shrinks and by how much. The settings are those of the chronyd that answers ([`daemon`]), from the files
//! that it reads ([`settings`]); where it cannot be known which these are, that is said, and nothing is concluded from any.

pub mod daemon;
pub mod settings;
#[cfg(test)]
mod tree;

use clocksource::chrony::{Chrony, SourceReport, Tracking};
use clocksource::{KernelTime, ProbeError};
use daemon::Daemon;
use std::fmt::Write;
use std::path::Path;

/// The drift that Timeball allows a disciplined clock between updates, as a fraction (50 ppm).
const DRIFT: f64 = 50e-6;
/// The poll interval that ClockBound's documentation asks for, seconds.
const POLL_ADVISED_S: f64 = 16.0;
/// Round trips below this (seconds) are of a local network, where polling every second is welcome.
const LOCAL_DELAY_S: f64 = 0.001;
/// The mode of a source that is a clock of this machine.
const REFERENCE_CLOCK: u16 = 2;
/// Lines that name servers.
const SERVERS: [&str; 3] = ["server", "pool", "peer"];
/// Clock sources of the kernel that it can read without a system call.
const FAST_COUNTERS: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

/// What was found on the machine.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// chronyd's report, or why there is none.
    pub tracking: Option<Tracking>,
    /// Why chronyd does not answer.
    pub trouble: String,
    /// chronyd's sources.
    pub sources: Vec<SourceReport>,
    /// The chronyd that answered and its settings, or why it is not known which one that is.
    pub daemon: Option<Result<Daemon, String>>,
    /// The kernel's counter.
    pub counter: String,
    /// PTP hardware clocks.
    pub hardware_clocks: Vec<String>,
    /// What adjtimex says.
    pub kernel: Option<KernelTime>,
    /// Unix time, nanoseconds.
    pub now_ns: u64,
}

/// One advice.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What is so.
    pub what: String,
    /// What to do.
    pub advice: String,
    /// Seconds that the error would shrink by, where that can be said.
    pub gain_s: Option<f64>,
}

impl Facts {
    /// Looks at this machine. `chrony` is where to ask.
    pub fn gather(chrony: &mut Chrony) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_string();
        let (tracking, trouble) = match chrony.tracking() {
            Ok(t) => (Some(t), String::new()),
            Err(
                e @ (ProbeError::Unreachable { .. }
                | ProbeError::Slow { .. }
                | ProbeError::Malformed { .. }
                | ProbeError::Unsynchronised { .. }),
            ) => (None, e.to_string()),
        };
        let sources = if tracking.is_some() { chrony.sources().unwrap_or_default() } else { Vec::new() };
        let daemon = tracking.is_some().then(|| Daemon::find(chrony.answered(), Path::new("/proc")));
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Facts {
            tracking,
            trouble,
            sources,
            daemon,
            counter: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            hardware_clocks: (0..8).map(|n| format!("/dev/ptp{n}")).filter(|p| Path::new(p).exists()).collect(),
            kernel: KernelTime::query().ok(),
            now_ns: u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// The daemon, where it is known.
    fn known(&self) -> Option<&Daemon> {
        self.daemon.as_ref()?.as_ref().ok()
    }
    /// Whether the daemon follows a clock on this machine's hardware.
    fn follows_hardware(&self) -> bool {
        let told = |d: &Daemon| d.settings.named("refclock").any(|line| line.words.iter().any(|w| w == "PHC"));
        self.known().is_some_and(told) || self.sources.iter().any(|s| s.mode == REFERENCE_CLOCK)
    }
}

/// A file as people read it.
fn place(file: &Path) -> String {
    if file.as_os_str().is_empty() { "chronyd's command line".into() } else { file.display().to_string() }
}

/// The terms of chronyd's bound, seconds.
fn terms(t: &Tracking, now_ns: u64) -> [(&'static str, f64); 4] {
    let age_s = now_ns.saturating_sub(t.reference_unix_ns) as f64 / 1e9;
    [
        ("correction still to be slewed", t.current_correction_s.abs()),
        ("root dispersion", t.root_dispersion_s),
        ("half of the root delay", t.root_delay_s / 2.0),
        ("drift since the last update, at 50 ppm", age_s * DRIFT),
    ]
}

fn chrony_findings(facts: &Facts, t: &Tracking, out: &mut Vec<Finding>) {
    let mut say =
        |what: String, advice: &str, gain_s: Option<f64>| out.push(Finding { what, advice: advice.into(), gain_s });
    if t.leap_status > 2 {
        say("chronyd is not synchronised".into(), "look at `chronyc sources`: is a server reachable?", None);
    }
    let local = t.root_delay_s < LOCAL_DELAY_S;
    let target = if local { 1.0 } else { POLL_ADVISED_S };
    if t.update_interval_s > target * 1.5 {
        let advice = if local {
            "the server is near: write `minpoll 0 maxpoll 0` behind it if it is yours (on EC2, 169.254.169.123 allows it), otherwise `minpoll 4 maxpoll 4`"
        } else {
            "write `minpoll 4 maxpoll 4` behind the server; less often lets the clock drift for longer"
        };
        let gain = (t.update_interval_s - target) * DRIFT;
        let lines =
            SERVERS.into_iter().flat_map(|word| facts.known().into_iter().flat_map(move |d| d.settings.named(word)));
        let lines: Vec<_> = lines.map(|l| format!("`{}` in {}", l.words.join(" "), place(&l.file))).collect();
        let told = if lines.is_empty() { String::new() } else { format!(" ({})", lines.join(", ")) };
        say(format!("chronyd updates the clock every {:.0} s{told}", t.update_interval_s), advice, Some(gain));
    }
    match facts.known().and_then(|d| d.settings.number("maxclockerror")) {
        Some((ppm, file)) if ppm > 5.0 => {
            let gain = t.update_interval_s * ppm * 1e-6;
            say(
                format!("maxclockerror is {ppm} ppm in {}", place(file)),
                "ClockBound needs it; Timeball's `chrony` source adds 50 ppm of its own, so without ClockBound the line can go",
                Some(gain),
            );
        }
        _ => {}
    }
    if t.root_delay_s / 2.0 > t.root_dispersion_s && t.root_delay_s > LOCAL_DELAY_S {
        say(
            format!("the path to the primary clock takes {:.3} ms there and back", t.root_delay_s * 1e3),
            "choose a nearer server: half of the delay is in the bound",
            Some(t.root_delay_s / 2.0),
        );
    }
    let usable = facts.sources.iter().filter(|s| s.state != 1 && s.reachability != 0).count();
    if usable < 3 {
        say(
            format!("chronyd has {usable} usable source(s)"),
            "four servers let it find one that lies; with one there is nobody to disagree",
            None,
        );
    }
    for s in facts.sources.iter().filter(|s| s.reachability == 0) {
        say(format!("source {} does not answer", s.address), "remove it, or open UDP port 123 to it", None);
    }
    for s in facts.sources.iter().filter(|s| s.state == 2) {
        say(format!("source {} disagrees with the others", s.address), "remove it: it tells a wrong time", None);
    }
}

/// What to say about a machine.
pub fn diagnose(facts: &Facts) -> Vec<Finding> {
    let mut out = Vec::new();
    match &facts.tracking {
        Some(t) => chrony_findings(facts, t, &mut out),
        None => out.push(Finding {
            what: facts.trouble.clone(),
            advice:
                "install and start it (Debian: apt-get install chrony), or use --clock ntp:<server>,<server>,<server>"
                    .into(),
            gain_s: None,
        }),
    }
    if !facts.hardware_clocks.is_empty() && !facts.follows_hardware() {
        out.push(Finding {
            what: format!("this machine has a PTP hardware clock ({})", facts.hardware_clocks.join(", ")),
            advice: format!(
                "let chronyd use it (`refclock PHC {0} poll 0 dpoll -2`), or read it with --clock ptp:{0},error=<its error>",
                facts.hardware_clocks[0]
            ),
            gain_s: facts.tracking.as_ref().map(|t| t.root_delay_s / 2.0 + t.root_dispersion_s),
        });
    }
    if !facts.counter.is_empty() && !FAST_COUNTERS.contains(&facts.counter.as_str()) {
        out.push(Finding {
            what: format!("the kernel reads time from {:?}, which takes a system call", facts.counter),
            advice: "a reading costs some hundred nanoseconds more; boot with clocksource=tsc if the processor's counter is sound".into(),
            gain_s: None,
        });
    }
    out
}

/// Which daemon answered and what was read of its settings, line by line.
fn known(daemon: &Daemon) -> Vec<String> {
    let (told_by, line) = (&daemon.told_by, daemon.arguments.join(" "));
    let mut out = vec![format!("daemon: process {} ({told_by}): {line}", daemon.process)];
    let read = daemon.settings.files.iter().map(|f| format!("settings: {}", f.display()));
    out.extend(read);
    if daemon.settings.directives.iter().any(|d| d.file.as_os_str().is_empty()) {
        out.push("settings: its command line".into());
    }
    out.extend(daemon.settings.troubles.iter().map(|t| format!("settings: not all of them are known: {t}")));
    out
}

/// The report.
pub fn report(facts: &Facts) -> String {
    let mut out = String::new();
    let mut say = |line: std::fmt::Arguments<'_>| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{line}");
    };
    if let Some(t) = &facts.tracking {
        say(format_args!(
            "chronyd follows {} (stratum {}), updates every {:.1} s",
            t.reference(),
            t.stratum,
            t.update_interval_s
        ));
        let terms = terms(t, facts.now_ns);
        for (name, s) in terms {
            say(format_args!("  {name:<40} {:>12.1} us", s * 1e6));
        }
        say(format_args!("  {:<40} {:>12.1} us", "error", terms.iter().map(|(_, s)| s).sum::<f64>() * 1e6));
    }
    if let Some(k) = facts.kernel {
        let word = if k.state == 5 { "not synchronised" } else { "synchronised" };
        say(format_args!("kernel: {word}, maximum error {} us, counter {}", k.maxerror_us, facts.counter));
    }
    match &facts.daemon {
        Some(Ok(daemon)) => known(daemon).into_iter().for_each(|line| say(format_args!("{line}"))),
        Some(Err(why)) => say(format_args!("settings: not known, for {why}; nothing is said about them")),
        None => {}
    }
    let findings = diagnose(facts);
    say(format_args!(""));
    if findings.is_empty() {
        say(format_args!("Nothing to improve."));
    }
    for (n, f) in findings.iter().enumerate() {
        let gain = f.gain_s.map_or(String::new(), |s| format!(" (gains up to {:.1} us)", s * 1e6));
        let end = if f.what.ends_with(['.', '?']) { "" } else { "." };
        say(format_args!("{}. {}{end}\n   {}{gain}.", n + 1, f.what, f.advice));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::settings::Settings;
    use super::tree::Tree;
    use super::*;

    fn daemon(settings: &str) -> Daemon {
        let tree = Tree::new(&[("my.conf", settings)]);
        Daemon {
            process: 42,
            arguments: ["chronyd", "-f", "/my.conf"].map(str::to_owned).to_vec(),
            told_by: "it sent the answer".into(),
            settings: Settings::read(tree.path(), Path::new("/my.conf")),
        }
    }

    fn facts() -> Facts {
        let t = Tracking {
            address: "10.0.0.1".into(),
            stratum: 4,
            reference_unix_ns: 1_000_000_000_000,
            root_delay_s: 0.030,
            root_dispersion_s: 0.002,
            update_interval_s: 1036.0,
            ..Tracking::default()
        };
        let source = |address: &str, state, reachability| SourceReport {
            address: address.into(),
            state,
            reachability,
            ..SourceReport::default()
        };
        Facts {
            tracking: Some(t),
            sources: vec![source("10.0.0.1", 0, 255), source("10.0.0.2", 2, 255), source("10.0.0.3", 1, 0)],
            daemon: Some(Ok(daemon("server 10.0.0.1 iburst\n# maxclockerror 7\nMaxClockError 50"))),
            counter: "tsc".into(),
            now_ns: 1_100_000_000_000,
            ..Facts::default()
        }
    }

    fn gain(findings: &[Finding], word: &str) -> Option<Option<f64>> {
        findings.iter().find(|f| f.what.contains(word)).map(|f| f.gain_s)
    }

    #[test]
    fn a_machine_with_the_usual_faults() {
        let found = diagnose(&facts());
        let close = |a: Option<Option<f64>>, b: f64| a.flatten().is_some_and(|a| (a - b).abs() < 1e-9);
        assert!(
            close(
                gain(&found, "updates the clock every 1036 s (`server 10.0.0.1 iburst` in /my.conf)"),
                1020.0 * 50e-6
            ),
            "{found:?}"
        );
        assert!(close(gain(&found, "maxclockerror is 50 ppm in /my.conf"), 1036.0 * 50e-6));
        assert!(close(gain(&found, "takes 30.000 ms"), 0.015));
        assert_eq!(gain(&found, "10.0.0.3 does not answer"), Some(None));
        assert_eq!(gain(&found, "10.0.0.2 disagrees"), Some(None));
        assert_eq!(gain(&found, "2 usable"), Some(None));
        assert_eq!(found.len(), 6);
        let text = report(&facts());
        assert!(
            text.contains("daemon: process 42 (it sent the answer): chronyd -f /my.conf\nsettings: /my.conf\n"),
            "{text}"
        );
        assert!(text.contains("drift since the last update") && text.contains("5000.0 us"), "{text}");
    }

    #[test]
    fn a_machine_without_a_daemon_or_with_a_slow_counter() {
        let bare = Facts { trouble: "chrony does not answer".into(), counter: "hpet".into(), ..Facts::default() };
        let found = diagnose(&bare);
        assert!(found[0].advice.contains("apt-get install chrony") && found[1].what.contains("hpet"));
        let phc = Facts { hardware_clocks: vec!["/dev/ptp0".into()], ..facts() };
        assert!(diagnose(&phc).iter().any(|f| f.advice.contains("refclock PHC /dev/ptp0") && f.gain_s == Some(0.017)));
    }

    #[test]
    fn nothing_is_concluded_from_settings_that_may_be_those_of_another_daemon() {
        let unknown = Facts { daemon: Some(Err("several chronyds run here".into())), ..facts() };
        assert!(gain(&diagnose(&unknown), "maxclockerror").is_none());
        let text = report(&unknown);
        assert!(text.contains("settings: not known, for several chronyds run here;"), "{text}");
        let mut part = facts();
        part.daemon = Some(Ok(daemon("include /x[1]")));
        assert!(report(&part).contains("not all of them are known: /x[1]: "), "{}", report(&part));
    }

    #[test]
    fn a_machine_without_faults() {
        let mut good = facts();
        good.daemon = Some(Ok(daemon("refclock PHC /dev/ptp0 poll 0")));
        good.hardware_clocks = vec!["/dev/ptp0".into()];
        good.sources = vec![SourceReport { reachability: 255, ..SourceReport::default() }; 4];
        good.tracking = good.tracking.map(|t| Tracking { root_delay_s: 0.0001, update_interval_s: 1.0, ..t });
        assert!(report(&good).contains("Nothing to improve"), "{}", report(&good));
    }
}
