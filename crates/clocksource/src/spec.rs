//! `--clock <source>`: the text that names a source.

use crate::chrony::ChronyAddress;
use crate::ptp::PtpDevice;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The greatest static error that is accepted: beyond, a decimal point is missing somewhere.
const STATIC_ERROR_MAX: Duration = Duration::from_secs(60);

/// Which source to read, as `--clock` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// All nodes share this machine's clock: the error is 0.
    SameHost,
    /// The operator vouches that the system clock is never further off than this.
    Static(Duration),
    /// The kernel's own estimate (`adjtimex`), as some daemon maintains it.
    Kernel,
    /// chronyd's estimate.
    Chrony(ChronyAddress),
    /// ClockBound's segment; `None` is the usual path.
    ClockBound(Option<PathBuf>),
    /// A PTP hardware clock; `None` is the first whose driver knows its error.
    Ptp(Option<PtpDevice>),
    /// These NTP servers, asked by ourselves.
    Ntp(Vec<String>),
    /// The best of what the machine has.
    Auto,
}

/// Why a text does not name a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseSpecError {
    /// No such source.
    #[error("there is no clock source {0:?}; choose one of: {choices}", choices = Spec::CHOICES)]
    Unknown(String),
    /// The error of `static:` cannot be read.
    #[error(
        "{0:?} is not an error bound; write static:<error> with a unit, for example static:5ms or static:250us (at most 60s)"
    )]
    StaticError(String),
    /// The address of `chrony:` cannot be read.
    #[error(
        "{0:?} is neither a socket path nor an address; write chrony, chrony:/run/chrony/chronyd.sock or chrony:127.0.0.1:323"
    )]
    ChronyAddress(String),
    /// The device of `ptp:` cannot be read.
    #[error("{0:?} is not a device with options; write ptp, ptp:/dev/ptp0 or ptp:/dev/ptp0,error=2us,tai")]
    PtpDevice(String),
    /// The servers of `ntp:` cannot be read.
    #[error("ntp: needs one to 16 servers, for example ntp:10.0.0.1,10.0.0.2,time.example.net")]
    NtpServers,
}

impl Spec {
    /// What may be written, for messages and help.
    pub const CHOICES: &'static str = "same-host (all nodes on this machine, error 0), static:<error> (for example static:5ms), \
         auto (the best that this machine has), chrony, clockbound, ptp, kernel (adjtimex), ntp:<server>,<server>,...";
}

/// `5ms`, `250us`, `1.5s`, `800ns` as a duration.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, unit) = text.split_at(split);
    let unit_ns = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        _ => return None,
    };
    let ns = number.parse::<f64>().ok()? * unit_ns;
    (ns.is_finite() && (0.0..=1e18).contains(&ns)).then(|| Duration::from_nanos(ns.round() as u64))
}

fn parse_static(text: &str) -> Result<Spec, ParseSpecError> {
    parse_duration(text)
        .filter(|e| *e <= STATIC_ERROR_MAX)
        .map(Spec::Static)
        .ok_or_else(|| ParseSpecError::StaticError(text.into()))
}

fn parse_chrony(text: &str) -> Result<Spec, ParseSpecError> {
    if text.starts_with('/') {
        return Ok(Spec::Chrony(ChronyAddress::Unix(text.into())));
    }
    let address = text.parse::<SocketAddr>().map_err(|_| ParseSpecError::ChronyAddress(text.into()))?;
    Ok(Spec::Chrony(ChronyAddress::Udp(address)))
}

fn parse_ptp(text: &str) -> Result<Spec, ParseSpecError> {
    let wrong = || ParseSpecError::PtpDevice(text.into());
    let mut parts = text.split(',');
    let path = parts.next().filter(|p| p.starts_with('/')).ok_or_else(wrong)?;
    let mut device = PtpDevice { path: path.into(), error: None, tai: false };
    for option in parts {
        match option.split_once('=') {
            None if option == "tai" => device.tai = true,
            Some(("error", e)) => device.error = Some(parse_duration(e).filter(|e| !e.is_zero()).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        }
    }
    Ok(Spec::Ptp(Some(device)))
}

fn parse_ntp(text: &str) -> Result<Spec, ParseSpecError> {
    let servers: Vec<String> = text.split(',').map(|s| s.trim().to_string()).collect();
    let good = |s: &String| !s.is_empty() && !s.contains(char::is_whitespace);
    if servers.len() > crate::ntp::SERVERS_MAX || !servers.iter().all(good) {
        return Err(ParseSpecError::NtpServers);
    }
    Ok(Spec::Ntp(servers))
}

impl FromStr for Spec {
    type Err = ParseSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("static", error)) => return parse_static(error),
            Some(("chrony", address)) => return parse_chrony(address),
            Some(("clockbound", path)) if path.starts_with('/') => return Ok(Spec::ClockBound(Some(path.into()))),
            Some(("ptp", device)) => return parse_ptp(device),
            Some(("ntp", servers)) => return parse_ntp(servers),
            _ => {}
        }
        match text {
            "same-host" => Ok(Spec::SameHost),
            "kernel" => Ok(Spec::Kernel),
            "chrony" => Ok(Spec::Chrony(ChronyAddress::Usual)),
            "clockbound" => Ok(Spec::ClockBound(None)),
            "ptp" => Ok(Spec::Ptp(None)),
            "auto" => Ok(Spec::Auto),
            "ntp" => Err(ParseSpecError::NtpServers),
            "static" => parse_static(""),
            other => Err(ParseSpecError::Unknown(other.into())),
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spec::SameHost => f.write_str("same-host"),
            Spec::Static(error) => write!(f, "static:{error:?}"),
            Spec::Kernel => f.write_str("kernel"),
            Spec::Chrony(ChronyAddress::Usual) => f.write_str("chrony"),
            Spec::Chrony(ChronyAddress::Unix(path)) => write!(f, "chrony:{}", path.display()),
            Spec::Chrony(ChronyAddress::Udp(address)) => write!(f, "chrony:{address}"),
            Spec::ClockBound(None) => f.write_str("clockbound"),
            Spec::ClockBound(Some(path)) => write!(f, "clockbound:{}", path.display()),
            Spec::Ptp(None) => f.write_str("ptp"),
            Spec::Ptp(Some(device)) => {
                write!(f, "ptp:{}", device.path.display())?;
                device.error.map_or(Ok(()), |e| write!(f, ",error={e:?}"))?;
                f.write_str(if device.tai { ",tai" } else { "" })
            }
            Spec::Ntp(servers) => write!(f, "ntp:{}", servers.join(",")),
            Spec::Auto => f.write_str("auto"),
        }
    }
}
