//! True time, and an NTP server that tells it.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What true time is when the bare oscillator shows 0: any date does. Nanoseconds since the Unix epoch.
pub const BIRTH_NS: u64 = 1_790_000_000_000_000_000;
/// Seconds from NTP's epoch to Unix's.
const EPOCH_S: u64 = 2_208_988_800;

/// `CLOCK_MONOTONIC_RAW`, which the preloaded library passes through.
pub fn raw_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for the call to fill.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// True time, nanoseconds since the Unix epoch.
pub fn truth_ns() -> u64 {
    BIRTH_NS + raw_ns()
}

/// Answers until it is dropped.
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (address, stop) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut request = [0; 128];
            while !told.load(Ordering::Relaxed) {
                if let Ok((48.., from)) = socket.recv_from(&mut request) {
                    // Who is gone does not hear it.
                    let _ = socket.send_to(&answer(&request), from);
                }
            }
        });
        Server { address, stop, thread: Some(thread) }
    }
    pub fn address(&self) -> SocketAddr {
        self.address
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

fn answer(request: &[u8]) -> [u8; 48] {
    let now = truth_ns();
    let seconds = (now / 1_000_000_000 + EPOCH_S) as u32;
    let fraction = ((now % 1_000_000_000) << 32).div_ceil(1_000_000_000) as u32;
    let mut p = [0; 48];
    // Version 4, server, stratum 1, half a microsecond; a dispersion of 15 us.
    (p[0], p[1], p[2], p[3], p[11]) = (4 << 3 | 4, 1, request[2], -21i8 as u8, 1);
    p[12..16].copy_from_slice(b"RAW\0");
    p[24..32].copy_from_slice(&request[40..48]);
    for at in [16, 32, 40] {
        p[at..at + 4].copy_from_slice(&seconds.to_be_bytes());
        p[at + 4..at + 8].copy_from_slice(&fraction.to_be_bytes());
    }
    p
}
