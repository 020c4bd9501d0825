//! The hybrid timestamp: one integer that orders events and still says when they happened.
//!
//! **Problem.** A commit needs a name that sorts after everything that caused it, and that a person can read as a time.
//!
//! **Idea.** HybridTime (002 §3.2) uses the pair (physical, logical) in lexicographic order (definition 1, theorem 1). Packed
//! into 64 bits, microseconds above and a count below, the pair *is* an integer and lexicographic order is `<` (design §2;
//! the layout that Kudu and YugabyteDB use).
//!
//! ```text
//!  63                                         12 11          0
//! ┌─────────────────────────────────────────────┬─────────────┐
//! │ microseconds since 1970-01-01 UTC (52 bits) │ logical (12)│
//! └─────────────────────────────────────────────┴─────────────┘
//! ```
//!
//! **Invariants.**
//! 1. `a < b` as timestamps exactly when `a.as_u64() < b.as_u64()`.
//! 2. `next` is the least timestamp above, also across a full logical part: 4095 carries into the physical one.
//! 3. The text form round-trips: `ts.to_string().parse() == Ok(ts)`, and no other text parses to `ts`.
//!
//! **Caveats.** 52 bits of microseconds end in September 2112. Beyond, [`Timestamp::new`] stays at [`Timestamp::MAX`].
//! Seconds are Unix seconds: a leap second has no name of its own (see `clocksource`, where it widens the interval).

use core::fmt;
use core::str::FromStr;

/// A hybrid timestamp: 52 bits of microseconds since the Unix epoch, then 12 logical bits, ordered as one integer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Bits of the logical part.
    pub const LOGICAL_BITS: u32 = 12;
    /// The greatest logical count.
    pub const LOGICAL_MAX: u16 = (1 << Self::LOGICAL_BITS) - 1;
    /// The greatest physical part, microseconds since the Unix epoch.
    pub const PHYSICAL_US_MAX: u64 = (1 << (64 - Self::LOGICAL_BITS)) - 1;
    /// Before every event.
    pub const MIN: Timestamp = Timestamp(0);
    /// After every event.
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// Packs microseconds since the Unix epoch and a logical count (low 12 bits). Microseconds beyond
    /// [`Timestamp::PHYSICAL_US_MAX`] give [`Timestamp::MAX`]: a timestamp never wraps to the past.
    pub const fn new(physical_us: u64, logical: u16) -> Self {
        if physical_us > Self::PHYSICAL_US_MAX {
            return Self::MAX;
        }
        Timestamp((physical_us << Self::LOGICAL_BITS) | (logical & Self::LOGICAL_MAX) as u64)
    }
    /// From the one integer that it is.
    pub const fn from_u64(raw: u64) -> Self {
        Timestamp(raw)
    }
    /// The one integer that it is.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
    /// Microseconds since the Unix epoch.
    pub const fn physical_us(self) -> u64 {
        self.0 >> Self::LOGICAL_BITS
    }
    /// The logical count.
    pub const fn logical(self) -> u16 {
        (self.0 & Self::LOGICAL_MAX as u64) as u16
    }
    /// The next timestamp; [`Timestamp::MAX`] stays.
    pub const fn next(self) -> Self {
        Timestamp(self.0.saturating_add(1))
    }
    /// The timestamp before; [`Timestamp::MIN`] stays.
    pub const fn prev(self) -> Self {
        Timestamp(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:04}", self.physical_us(), self.logical())
    }
}
impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not a timestamp. The text form is `<microseconds>.<logical, four digits>`, for example `1700000000000000.0042`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseTimestampError {
    /// There is no dot between the two parts.
    #[error("a timestamp is written <microseconds>.<logical, four digits>: the dot is missing")]
    NoDot,
    /// The part before the dot is not a canonical decimal number.
    #[error("the microseconds before the dot must be decimal digits without a sign or leading zeros")]
    Physical,
    /// The part before the dot does not fit 52 bits.
    #[error("the microseconds before the dot are beyond {max}, the last that a timestamp can hold", max = Timestamp::PHYSICAL_US_MAX)]
    PhysicalTooLarge,
    /// The part after the dot is not exactly four decimal digits.
    #[error("the logical part after the dot must be exactly four decimal digits, 0000 to 4095")]
    Logical,
    /// The part after the dot is above 4095.
    #[error("the logical part is beyond 4095, the last that a timestamp can hold")]
    LogicalTooLarge,
}

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (physical, logical) = text.split_once('.').ok_or(ParseTimestampError::NoDot)?;
        let canonical = physical == "0" || !physical.starts_with('0');
        if physical.is_empty() || !canonical || !physical.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ParseTimestampError::Physical);
        }
        let physical_us: u64 = physical.parse().map_err(|_| ParseTimestampError::PhysicalTooLarge)?;
        if physical_us > Self::PHYSICAL_US_MAX {
            return Err(ParseTimestampError::PhysicalTooLarge);
        }
        if logical.len() != 4 || !logical.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ParseTimestampError::Logical);
        }
        match logical.parse() {
            Ok(count) if count <= Self::LOGICAL_MAX => Ok(Self::new(physical_us, count)),
            _ => Err(ParseTimestampError::LogicalTooLarge),
        }
    }
}
