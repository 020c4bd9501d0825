//! What a page says of where it comes from: machine, date, commit, command.

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where a run took place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Provenance {
    /// Processor, memory, system.
    pub machine: String,
    /// Day and minute, UTC.
    pub date: String,
    /// Of the source tree that the run began in.
    pub commit: String,
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| std::env::consts::ARCH.into());
    let kib: Option<u64> = field(&read("/proc/meminfo"), "MemTotal").and_then(|m| m.split(' ').next()?.parse().ok());
    let memory = kib.map_or(String::new(), |kib| format!(", {:.0} GiB", kib as f64 / f64::from(1 << 20)));
    let release = read("/proc/sys/kernel/osrelease");
    let release = release.trim().split('-').next().unwrap_or_default();
    format!("{cores} virtual cores ({model}){memory}, {} {release}", std::env::consts::OS)
}

/// Year, month and day of a number of days since 1970 (Howard Hinnant's civil calendar).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year_of_era + era * 400 + carry, month, day)
}

fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()).cast_signed();
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let minutes = seconds.rem_euclid(86_400) / 60;
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|o| o.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(hash) = git(&["rev-parse", "--short=10", "HEAD"]) else { return "not of a source tree".into() };
    // What a run writes is no change of the code.
    match git(&["status", "--porcelain", "--untracked-files=no", "--", "crates", "Cargo.toml", "Cargo.lock"]).as_deref()
    {
        Some("") => hash,
        _ => format!("{hash} and changes"),
    }
}

impl Provenance {
    /// Of this process.
    pub fn here() -> Self {
        Provenance { machine: machine(), date: date(), commit: commit() }
    }
    /// As the second line of a record.
    pub fn line(&self) -> String {
        format!("# {}\t{}\t{}", self.machine, self.date, self.commit)
    }
    /// Reads that back.
    pub fn parse(line: &str) -> Option<Self> {
        let mut fields = line.strip_prefix("# ")?.split('\t').map(str::to_owned);
        Some(Provenance { machine: fields.next()?, date: fields.next()?, commit: fields.next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::{Provenance, civil};

    #[test]
    fn a_line_reads_back() {
        let here = Provenance::here();
        assert_eq!(Provenance::parse(&here.line()), Some(here));
        assert_eq!(Provenance::parse("p x=1\ta=2"), None);
    }

    #[test]
    fn days_have_dates() {
        assert_eq!(
            [0, -1, 59, 11_016, 20_417].map(civil),
            [(1970, 1, 1), (1969, 12, 31), (1970, 3, 1), (2000, 2, 29), (2025, 11, 25)]
        );
    }
}
