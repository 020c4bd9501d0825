//! The NTP client against servers of this file, on loopback: some lie, some are silent, some announce leap seconds.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use clocksource::ntp::Ntp;
use clocksource::{Leap, Measurement, Probe, ProbeError};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Seconds from NTP's epoch to Unix's.
const EPOCH_S: u64 = 2_208_988_800;
/// A condition that does not come true by then never will.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a server says. The truth here is the system clock.
#[derive(Clone, Copy)]
struct Says {
    offset_s: i64,
    leap: u8,
    stratum: u8,
    reference: [u8; 4],
}

const HONEST: Says = Says { offset_s: 0, leap: 0, stratum: 2, reference: [10, 0, 0, 1] };
const SMEARED: Says = Says { reference: [254, 0, 0, 1], ..HONEST };
const INSERT: Says = Says { leap: 1, ..HONEST };
const DELETE: Says = Says { leap: 2, ..HONEST };
/// Far beyond what an exchange with an honest server can take on a machine that stands still for a while.
const LIAR: Says = Says { offset_s: 3600, ..HONEST };
const REFUSES: Says = Says { stratum: 0, reference: *b"RATE", ..HONEST };

fn real_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

impl Says {
    fn answer(&self, request: &[u8]) -> [u8; 48] {
        let mut p = [0; 48];
        (p[0], p[1], p[3]) = (self.leap << 6 | 4 << 3 | 4, self.stratum, -20i8 as u8);
        p[8..12].copy_from_slice(&66u32.to_be_bytes()); // a dispersion of 1 ms
        p[12..16].copy_from_slice(&self.reference);
        p[24..32].copy_from_slice(&request[40..48]);
        let now = real_ns();
        let seconds = (now / 1_000_000_000 + EPOCH_S).wrapping_add_signed(self.offset_s) as u32;
        let fraction = ((now % 1_000_000_000) << 32).div_ceil(1_000_000_000) as u32;
        for at in [32, 40] {
            p[at..at + 4].copy_from_slice(&seconds.to_be_bytes());
            p[at + 4..at + 8].copy_from_slice(&fraction.to_be_bytes());
        }
        p
    }
}

/// A server until it is dropped; one without a word never answers.
struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(says: Option<Says>) -> Server {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (address, stop) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut request = [0; 64];
            while !told.load(Ordering::Relaxed) {
                if let (Ok((48, from)), Some(says)) = (socket.recv_from(&mut request), says) {
                    socket.send_to(&says.answer(&request), from).unwrap();
                }
            }
        });
        Server { address, stop, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Asks these servers until the outcome is as it should be.
fn ask<T>(servers: &[Option<Says>], good: impl Fn(Result<Measurement, ProbeError>) -> Result<T, String>) -> T {
    let servers: Vec<Server> = servers.iter().map(|says| Server::start(*says)).collect();
    let names: Vec<String> = servers.iter().map(|s| s.address.to_string()).collect();
    let (mut ntp, began) = (Ntp::new(&names, 200_000), Instant::now());
    loop {
        match good(ntp.probe()) {
            Ok(found) => return found,
            Err(last) => assert!(began.elapsed() < PATIENCE, "{last}"),
        }
        std::thread::sleep(Duration::from_millis(10)); // poll: all servers were heard
    }
}

/// The measurement as soon as so many servers agree on it; true time must be inside every one.
fn agreed(servers: &[Option<Says>], many: usize) -> Measurement {
    ask(servers, |outcome| {
        let m = outcome.map_err(|e| e.to_string())?;
        let (earliest, real) = (m.interval.earliest_ns, m.moment.real_ns);
        assert!(earliest <= real && real <= m.interval.latest_ns, "{m:?}");
        if m.detail.starts_with(&format!("{many} of ")) { Ok(m) } else { Err(m.detail) }
    })
}

#[test]
fn a_minority_of_liars_is_outvoted() {
    let m = agreed(&[Some(HONEST), Some(LIAR), Some(HONEST)], 2);
    assert_eq!(m.leap, Leap::None);
    let (start, liar) = m.detail.split_once("; ").unwrap_or_else(|| panic!("{m:?}"));
    assert!(
        start == "2 of 3 NTP servers agree"
            && ["+3600", "+3599"].iter().any(|ms| liar.contains(&format!("disagrees: {ms}"))),
        "the liar is named: {m:?}"
    );
    assert!(m.interval.error_ns() < 1_800_000_000_000, "the liar is an hour off: {m:?}");
    agreed(&[Some(HONEST), None, Some(HONEST)], 2);
}

/// With a third that is silent one of two may lie, and nothing says which: the bound spans both, and both are named.
#[test]
fn who_contradicts_the_only_other_is_named() {
    let m = agreed(&[Some(HONEST), Some(LIAR), None], 2);
    let (start, each) = m.detail.split_once("; ").unwrap_or_else(|| panic!("{m:?}"));
    assert_eq!(start, "2 of 3 NTP servers answer, and no two agree", "{m:?}");
    // Half an hour either way, milliseconds, to within what a busy machine makes of a round trip.
    let far = |word: &&str| {
        word.trim_start_matches(['+', '-']).parse().is_ok_and(|off_ms: f64| (off_ms - 1_800_000.0).abs() < 5_000.0)
    };
    assert_eq!(each.split_whitespace().filter(far).count(), 2, "{m:?}");
    assert_eq!(each.matches("127.0.0.1:").count(), 2, "{m:?}");
    assert!(m.interval.latest_ns - m.interval.earliest_ns >= 3_600_000_000_000 - 1_000_000_000, "{m:?}");
    let alone = agreed(&[Some(HONEST), None], 1);
    assert_eq!(alone.detail, "1 of 2 NTP servers answers, and no other bears it out");
}

#[test]
fn without_a_majority_there_is_no_bound() {
    let reason = |servers: &[Option<Says>], part: &str| {
        ask(servers, |outcome| match outcome {
            Err(ProbeError::Unsynchronised { reason, .. }) if reason.contains(part) => Ok(reason),
            other => Err(format!("{other:?}")),
        })
    };
    let silent = reason(&[Some(HONEST), None, None], "no reply");
    assert!(silent.contains("no majority of the 3 servers agrees"), "{silent}");
    let opinions = reason(&[Some(HONEST), Some(LIAR)], "answers +3600");
    assert_eq!(opinions.matches("answers ").count(), 2, "two that contradict each other: {opinions}");
    reason(&[Some(REFUSES)], "the server refuses: RATE");
}

/// `ntp:A,A,B` is two servers: a liar that is named twice is no majority.
#[test]
fn a_server_that_is_named_twice_counts_once() {
    let (liar, honest) = (Server::start(Some(LIAR)), Server::start(Some(HONEST)));
    let names = [&liar, &liar, &honest].map(|s| s.address.to_string());
    let mut by_name = names.clone();
    by_name[1] = format!("localhost:{}", liar.address.port());
    for names in [names, by_name] {
        let (mut ntp, began) = (Ntp::new(&names, 200_000), Instant::now());
        let reason = loop {
            match ntp.probe() {
                Err(ProbeError::Unsynchronised { reason, .. }) if reason.matches("answers ").count() == 2 => {
                    break reason;
                }
                Err(other) => assert!(began.elapsed() < PATIENCE, "{other}"),
                // While a name is being looked up: the interval spans both.
                Ok(m) => assert!(m.interval.error_ns() > 1_700_000_000_000, "{m:?}"),
            }
            std::thread::sleep(Duration::from_millis(10)); // poll: both servers were heard
        };
        assert!(reason.contains("of the 2 servers") && reason.contains("which is named already"), "{reason}");
    }
}

/// A name server that is silent costs half a minute: not the poller's.
#[test]
fn a_name_is_looked_up_by_somebody_else() {
    let mut ntp = Ntp::new(&["localhost:9".into()], 200_000);
    let first = ntp.probe().unwrap_err().to_string();
    assert!(first.contains("localhost:9: its address is being looked up"), "the first poll does not wait: {first}");
}

#[test]
fn a_minority_cannot_hide_a_leap_second_nor_smear_it_away() {
    let leap = |servers: &[Says]| agreed(&servers.iter().copied().map(Some).collect::<Vec<_>>(), servers.len()).leap;
    assert_eq!(leap(&[INSERT, INSERT, HONEST]), Leap::Insert);
    assert_eq!(leap(&[INSERT, INSERT, SMEARED]), Leap::Insert);
    assert_eq!(leap(&[DELETE, DELETE, INSERT]), Leap::Delete);
    assert_eq!(leap(&[HONEST, HONEST, INSERT]), Leap::None);
    assert_eq!(leap(&[HONEST, HONEST, SMEARED]), Leap::None);
    assert_eq!(leap(&[SMEARED, SMEARED, HONEST]), Leap::Smeared);
    let one = agreed(&[Some(SMEARED)], 1);
    assert_eq!((one.leap, one.detail.as_str()), (Leap::Smeared, "1 of 1 NTP servers agree; they smear leap seconds"));
    // Two of five are silent; of the three others two may lie, and keep quiet.
    assert_eq!(agreed(&[Some(INSERT), Some(HONEST), Some(HONEST), None, None], 3).leap, Leap::Insert);
}
