use core::fmt;

/// A hybrid timestamp: 52 bits of microseconds since the Unix epoch, then 12 logical bits, ordered as one integer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Bits of the logical part.
    pub const LOGICAL_BITS: u32 = 12;
    /// Before every event.
    pub const MIN: Timestamp = Timestamp(0);
    /// After every event.
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// Packs microseconds since the Unix epoch (low 52 bits) and a logical count (low 12 bits).
    pub const fn new(physical_us: u64, logical: u16) -> Self {
        Timestamp((physical_us << Self::LOGICAL_BITS) | (logical as u64 & 0xfff))
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
        (self.0 & 0xfff) as u16
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
