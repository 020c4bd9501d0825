//! The chrony source against a daemon of this file, which says what the test wants it to.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use clock::Status;
use clocksource::chrony::{Chrony, ChronyAddress};
use clocksource::{Measurement, Memory, Probe};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What it says of itself, seconds.
#[derive(Clone, Copy, Default)]
struct Says {
    /// Its last update, by the system clock.
    updated: f64,
    update_interval: f64,
    /// How often it asks its source, as a power of two.
    poll_log2: u16,
    /// When it asked last, and from the first to the last of its samples; 0 where it has none.
    sampled_s_ago: u32,
    span_s: u32,
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// The protocol's own fractions: 7 bits of exponent, 25 of coefficient.
fn float(value: f64) -> [u8; 4] {
    let exponent = if value == 0.0 { 0 } else { value.abs().log2().floor() as i32 + 2 };
    let coefficient = (value * 2f64.powi(25 - exponent)) as i32;
    (((exponent as u32) << 25) | (coefficient as u32 & 0x1ff_ffff)).to_be_bytes()
}

fn reply(request: &[u8], says: Says) -> Vec<u8> {
    let command = u16::from_be_bytes([request[4], request[5]]);
    let number: u16 = match command {
        14 => 2,
        15 => 3,
        34 => 6,
        _ => 5,
    };
    let mut r = vec![6, 2, 0, 0];
    r.extend(command.to_be_bytes());
    r.extend(number.to_be_bytes());
    r.extend([0; 8]);
    r.extend(&request[8..12]);
    r.resize(28, 0);
    let address = [&[10, 0, 0, 1][..], &[0; 12], &[0, 1, 0, 0]].concat();
    match command {
        14 => r.extend(1u32.to_be_bytes()),
        15 => {
            r.extend(&address);
            // Poll interval, stratum, state (selected), mode, flags, reachability.
            [says.poll_log2, 2, 0, 0, 0, 0xff].iter().for_each(|word| r.extend(word.to_be_bytes()));
            r.extend(says.sampled_s_ago.to_be_bytes());
            r.extend([0; 12]);
        }
        34 => {
            r.extend(0x0a00_0001u32.to_be_bytes());
            r.extend(&address);
            // Samples, runs, span.
            [u32::from(says.span_s > 0) * 6, 3, says.span_s].iter().for_each(|word| r.extend(word.to_be_bytes()));
            r.extend([0; 20]);
        }
        _ => {
            r.extend(0x0a00_0001u32.to_be_bytes());
            r.extend(&address);
            r.extend([0, 3, 0, 0]);
            r.extend(0u32.to_be_bytes());
            r.extend((says.updated as u32).to_be_bytes());
            r.extend(((says.updated.fract() * 1e9) as u32).to_be_bytes());
            // Correction, last and mean offset, frequency, residual, skew, delay, dispersion, update interval.
            let numbers = [0.0, 1e-5, 1e-5, 12.0, 0.0, 0.1, 1e-4, 1e-5, says.update_interval];
            numbers.iter().for_each(|value| r.extend(float(*value)));
        }
    }
    r
}

/// A daemon for as long as the test runs.
fn daemon(says: Says) -> (SocketAddr, Arc<Mutex<Says>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (address, says) = (socket.local_addr().unwrap(), Arc::new(Mutex::new(says)));
    let told = Arc::clone(&says);
    std::thread::spawn(move || {
        let mut request = [0; 512];
        while let Ok((n, from)) = socket.recv_from(&mut request) {
            socket.send_to(&reply(&request[..n], *told.lock().unwrap()), from).unwrap();
        }
    });
    (address, says)
}

/// The first answer: a busy machine may be too late for some.
fn measure(chrony: &mut Chrony) -> Measurement {
    let answer = (0..600).find_map(|_| {
        let answer = chrony.probe();
        if answer.is_err() {
            std::thread::sleep(Duration::from_millis(20)); // poll: the machine is less busy
        }
        answer.ok()
    });
    answer.unwrap()
}

/// After `iburst` the updates were two seconds apart; from then on the daemon asks every 64 s, and there is nothing wrong with that.
#[test]
fn a_daemon_that_asks_less_often_after_its_burst_is_not_lost() {
    let minutes = |poll_log2| Says { updated: now() - 200.0, update_interval: 2.0, poll_log2, ..Says::default() };
    for (poll_log2, status) in [(6, Status::Synchronized), (10, Status::Synchronized), (1, Status::FreeRunning)] {
        let (address, _) = daemon(minutes(poll_log2));
        let m = measure(&mut Chrony::new(ChronyAddress::Udp(address), 50_000));
        assert_eq!(m.status, status, "every {} s: {}", 1 << poll_log2, m.detail);
        assert!(m.interval.error_ns() >= 10_000_000, "200 s at 50 ppm: {m:?}");
    }
}

/// Whatever the system clock makes of its date: a report is dated by when it was seen to change.
#[test]
fn a_report_is_as_old_as_it_has_been_repeated() {
    let first = Says { updated: now() - 30.0, update_interval: 16.0, poll_log2: 4, ..Says::default() };
    let (address, says) = daemon(first);
    let mut chrony = Chrony::new(ChronyAddress::Udp(address), 50_000);
    let (old, again) = (measure(&mut chrony), measure(&mut chrony));
    assert_eq!((old.updated_ns, again.updated_ns), (1, 1), "some time ago, and no news since");
    // An update, which is dated by a clock that was set back an hour meanwhile.
    says.lock().unwrap().updated = now() - 3_600.0;
    let new = measure(&mut chrony);
    assert!(new.updated_ns > again.moment.boot_ns && new.updated_ns <= new.moment.boot_ns, "{new:?}");
    let elapsed_ns = new.moment.boot_ns - again.moment.boot_ns;
    assert!(new.interval.error_ns() < 1_000_000 + elapsed_ns, "it is not an hour old: {new:?}");
    assert_eq!(measure(&mut chrony).updated_ns, new.updated_ns);
}

/// What it estimates from is as old as its oldest sample, and where it does not say how old that is, it may be the oldest of 64.
#[test]
fn a_daemon_says_how_far_back_it_goes() {
    let first = Says { updated: now() - 2.0, update_interval: 1.0, poll_log2: 0, ..Says::default() };
    let (address, says) = daemon(first);
    let mut chrony = Chrony::new(ChronyAddress::Udp(address), 50_000);
    assert_eq!(measure(&mut chrony).remembers, Memory::News(64), "no samples");
    let update = |sampled_s_ago, span_s| Says { updated: now(), sampled_s_ago, span_s, ..first };
    *says.lock().unwrap() = update(1, 5);
    let m = measure(&mut chrony);
    assert_eq!(m.remembers, Memory::Since(m.moment.boot_ns - 8_000_000_000), "and two for what is rounded");
    let again = measure(&mut chrony);
    assert_eq!((again.updated_ns, again.remembers), (m.updated_ns, m.remembers), "asked once for a report");
    // Set back, the clock shows the span as less than nothing.
    *says.lock().unwrap() = update(1, -8i32 as u32);
    assert_eq!(measure(&mut chrony).remembers, Memory::Since(0));
    // After as many reports as it may keep samples, and eight, nobody need know; each question is one more for which a step may have to wait.
    for _ in 4..=72 {
        *says.lock().unwrap() = update(1, 5);
        assert!(matches!(measure(&mut chrony).remembers, Memory::Since(_)));
    }
    *says.lock().unwrap() = update(1, 5);
    assert_eq!(measure(&mut chrony).remembers, Memory::News(64));
}
