//! The 48 bytes of NTP (RFC 5905 §7.3): the client's request and what is read of a reply.

/// Seconds from NTP's epoch (1900) to Unix's (1970).
const EPOCH_S: u32 = 2_208_988_800;
/// Length of a packet without extensions.
pub const LEN: usize = 48;
/// Version 4, mode 3 (client).
const CLIENT: u8 = 4 << 3 | 3;
const MODE_SERVER: u8 = 4;
/// A root distance beyond this (nanoseconds) is no better than a wall clock (RFC 5905's MAXDIST is 1.5 s).
pub const DISTANCE_MAX_NS: u64 = 1_500_000_000;
/// chronyd puts this reference id on smoothed time.
const REFERENCE_SMOOTHED: [u8; 4] = [127, 127, 1, 255];
/// ntpd puts the smear into a reference id that begins so.
const REFERENCE_SMEARED_FIRST: u8 = 254;

/// What counts in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// 0 none, 1 insert, 2 delete a second; 3 is refused.
    pub leap: u8,
    /// Hops from a primary clock.
    pub stratum: u8,
    /// The server says that it smears leap seconds.
    pub smeared: bool,
    /// Root delay / 2 + root dispersion + precision, nanoseconds.
    pub distance_ns: u64,
    /// When the server got the request, Unix nanoseconds.
    pub received_ns: u64,
    /// When it sent the reply, Unix nanoseconds.
    pub sent_ns: u64,
}

/// Why a packet is no reply that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReply {
    /// Too short, not from a server, or not to our request: somebody else's packet, or a forged one.
    #[error("a packet that does not answer our request")]
    Foreign,
    /// The server refuses service; the code says how ("RATE", "DENY", ...).
    #[error("the server refuses: {0}")]
    Refused(String),
    /// The server does not know the time.
    #[error("the server is not synchronised")]
    Unsynchronised,
    /// Times or distances that no clock has.
    #[error("the reply makes no sense")]
    Nonsense,
}

/// A request. The transmit time is a cookie: it tells nothing of our clock and must come back as the origin time.
pub fn request(cookie: u64) -> [u8; LEN] {
    let mut packet = [0; LEN];
    packet[0] = CLIENT;
    packet[40..48].copy_from_slice(&cookie.to_be_bytes());
    packet
}

fn word(packet: &[u8], at: usize) -> u32 {
    packet.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// Seconds and 2^-32 fractions since 1900, of the era that lies in 1970 to 2106.
fn unix_ns(packet: &[u8], at: usize) -> u64 {
    let seconds = u64::from(word(packet, at).wrapping_sub(EPOCH_S));
    seconds * 1_000_000_000 + ((u64::from(word(packet, at + 4)) * 1_000_000_000) >> 32)
}

/// 16.16 seconds.
fn short_ns(packet: &[u8], at: usize) -> u64 {
    (u64::from(word(packet, at)) * 1_000_000_000).div_ceil(1 << 16)
}

/// Reads the reply to [`request`]`(cookie)`.
///
/// # Errors
/// [`BadReply`].
pub fn read(packet: &[u8], cookie: u64) -> Result<Reply, BadReply> {
    let origin = u64::from(word(packet, 24)) << 32 | u64::from(word(packet, 28));
    if packet.len() < LEN || packet[0] & 7 != MODE_SERVER || origin != cookie {
        return Err(BadReply::Foreign);
    }
    let (leap, stratum, precision) = (packet[0] >> 6, packet[1], packet[3] as i8);
    if stratum == 0 {
        let code = packet[12..16].iter().filter(|b| b.is_ascii_graphic()).map(|b| char::from(*b)).collect();
        return Err(BadReply::Refused(code));
    }
    if leap == 3 || stratum > 15 {
        return Err(BadReply::Unsynchronised);
    }
    // 2^precision seconds, and never less than a microsecond: a field of 0 is not an error of 0.
    let precision_ns = (2f64.powi(precision.into()) * 1e9).clamp(1_000.0, 1e9) as u64;
    let distance_ns = short_ns(packet, 4).div_ceil(2) + short_ns(packet, 8) + precision_ns;
    let (received_ns, sent_ns) = (unix_ns(packet, 32), unix_ns(packet, 40));
    if sent_ns < received_ns || distance_ns > DISTANCE_MAX_NS || word(packet, 40) == 0 {
        return Err(BadReply::Nonsense);
    }
    let smeared = packet[12..16] == REFERENCE_SMOOTHED || packet[12] == REFERENCE_SMEARED_FIRST;
    Ok(Reply { leap, stratum, smeared, distance_ns, received_ns, sent_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reply(cookie: u64) -> [u8; LEN] {
        let mut p = request(0);
        (p[0], p[1], p[3]) = (4 << 3 | 4, 2, -20i8 as u8);
        p[4..8].copy_from_slice(&0x0000_8000u32.to_be_bytes()); // delay 0.5 s
        p[8..12].copy_from_slice(&0x0000_4000u32.to_be_bytes()); // dispersion 0.25 s
        p[12..16].copy_from_slice(&[10, 0, 0, 1]);
        p[24..32].copy_from_slice(&cookie.to_be_bytes());
        p[32..36].copy_from_slice(&(EPOCH_S.wrapping_add(1_800_000_000)).to_be_bytes());
        p[40..44].copy_from_slice(&(EPOCH_S.wrapping_add(1_800_000_000)).to_be_bytes());
        p[44..48].copy_from_slice(&0x8000_0000u32.to_be_bytes());
        p
    }

    #[test]
    fn a_good_reply() {
        let r = read(&reply(9), 9).unwrap();
        assert_eq!((r.received_ns, r.sent_ns), (1_800_000_000_000_000_000, 1_800_000_000_500_000_000));
        assert_eq!((r.distance_ns, r.leap, r.stratum, r.smeared), (500_001_000, 0, 2, false));
    }

    #[test]
    fn bad_replies() {
        let with = |at: usize, byte: u8| {
            let mut p = reply(9);
            p[at] = byte;
            read(&p, 9)
        };
        assert_eq!(read(&reply(9), 8), Err(BadReply::Foreign));
        assert_eq!(read(&reply(9)[..47], 9), Err(BadReply::Foreign));
        assert_eq!(with(0, CLIENT), Err(BadReply::Foreign));
        assert_eq!(with(0, 3 << 6 | 4 << 3 | 4), Err(BadReply::Unsynchronised));
        assert_eq!(with(1, 16), Err(BadReply::Unsynchronised));
        assert_eq!(with(5, 9), Err(BadReply::Nonsense), "a root delay of 9 s");
        assert_eq!(with(36, 0xff), Err(BadReply::Nonsense), "sent before received");
        let mut kiss = reply(9);
        kiss[1] = 0;
        kiss[12..16].copy_from_slice(b"RATE");
        assert_eq!(read(&kiss, 9), Err(BadReply::Refused("RATE".into())));
    }

    #[test]
    fn smear_is_recognised() {
        for reference in [REFERENCE_SMOOTHED, [254, 1, 2, 3]] {
            let mut p = reply(1);
            p[12..16].copy_from_slice(&reference);
            assert!(read(&p, 1).unwrap().smeared);
        }
    }

    proptest! {
        #[test]
        fn no_packet_makes_the_reader_panic(packet in prop::collection::vec(any::<u8>(), 0..80)) {
            let cookie = u64::from(word(&packet, 24)) << 32 | u64::from(word(&packet, 28));
            let _ = read(&packet, cookie);
        }
    }
}
