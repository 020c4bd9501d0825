//! time with time zone: a time of day and how far its zone is from UTC.

use super::calendar::{DAY_US, SECOND_US, TimeZone, to_local, to_utc};
use std::cmp::Ordering;

/// A zone is less than 16 hours from UTC.
pub(super) const ZONE_SECONDS_END: i64 = 16 * 3600;

/// time with time zone. Of two it is the earlier one at UTC that comes first, then the one whose zone is further east: only the same time
/// in the same zone is equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ZonedTime {
    /// Microseconds since midnight, in the zone; up to and with 24:00.
    pub micros: i64,
    /// Seconds west of UTC, as the wire and the order have them: 3600 is `-01`.
    pub west_s: i32,
}

impl ZonedTime {
    /// A local time (since 2000-01-01) in a zone: its time of day, and what the zone is from UTC then.
    pub fn of_local(local_us: i64, zone: impl Into<TimeZone>) -> ZonedTime {
        let west_us = to_utc(zone, local_us).saturating_sub(local_us);
        ZonedTime { micros: local_us.rem_euclid(DAY_US), west_s: (west_us / SECOND_US) as i32 }
    }

    /// An instant as a zone shows it.
    pub fn of_instant(utc_us: i64, zone: impl Into<TimeZone>) -> ZonedTime {
        let local_us = to_local(zone, utc_us);
        let west_us = utc_us.saturating_sub(local_us);
        ZonedTime { micros: local_us.rem_euclid(DAY_US), west_s: (west_us / SECOND_US) as i32 }
    }

    /// Microseconds since the midnight of UTC: below 0 or above a day where it is yet or already another day there.
    pub fn utc_us(self) -> i64 {
        self.micros + i64::from(self.west_s) * SECOND_US
    }

    /// The same moment in another zone.
    pub fn in_zone(self, west_s: i32) -> ZonedTime {
        ZonedTime { micros: (self.utc_us() - i64::from(west_s) * SECOND_US).rem_euclid(DAY_US), west_s }
    }
}

impl Ord for ZonedTime {
    fn cmp(&self, other: &ZonedTime) -> Ordering {
        self.utc_us().cmp(&other.utc_us()).then_with(|| self.west_s.cmp(&other.west_s))
    }
}

impl PartialOrd for ZonedTime {
    fn partial_cmp(&self, other: &ZonedTime) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
