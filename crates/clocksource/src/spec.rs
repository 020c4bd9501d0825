//! `--clock <source>`: the text that names a source.

use std::fmt;
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
}

impl Spec {
    /// What may be written, for messages and help.
    pub const CHOICES: &'static str = "same-host (all nodes on this machine, error 0), static:<error> (for example static:5ms), \
         kernel (adjtimex, needs a synchronising daemon)";
}

/// `5ms`, `250us`, `1.5s`, `800ns` as nanoseconds.
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

impl FromStr for Spec {
    type Err = ParseSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(error) = text.strip_prefix("static:") {
            return parse_duration(error)
                .filter(|e| *e <= STATIC_ERROR_MAX)
                .map(Spec::Static)
                .ok_or_else(|| ParseSpecError::StaticError(error.into()));
        }
        match text {
            "same-host" => Ok(Spec::SameHost),
            "kernel" => Ok(Spec::Kernel),
            "static" => Err(ParseSpecError::StaticError(String::new())),
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
        }
    }
}
