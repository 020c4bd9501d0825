//! A network in user space, between an NTP client and its server: delay in either direction, loss, and another true time.
//!
//! Both chronyds of the test share one kernel clock, so true time would be what everybody reads anyway. The relay shifts
//! the server's timestamps: behind it, true time is `CLOCK_REALTIME` plus an offset that itself drifts. The client's chronyd may not
//! touch the clock (`-x`), so its bound must cover an offset that nobody corrects.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What the network does at the moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// Delay from client to server.
    pub there_us: u64,
    /// Delay from server to client.
    pub back_us: u64,
    /// Share of packets lost, percent.
    pub loss: u64,
}

/// True time as a function of `CLOCK_REALTIME`.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    pub start_ns: i64,
    pub offset_ns: i64,
    pub drift_ppm: i64,
}

impl Truth {
    pub fn at(&self, real_ns: u64) -> u64 {
        let real = real_ns as i64;
        (real + self.offset_ns + (real - self.start_ns) / 1_000_000 * self.drift_ppm) as u64
    }
}

#[derive(Default)]
struct Shared {
    there_us: AtomicU64,
    back_us: AtomicU64,
    loss: AtomicU64,
    stop: AtomicBool,
}

/// A running relay; dropping it stops it.
pub struct Relay {
    pub port: u16,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

pub fn real_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

impl Relay {
    pub fn start(server: SocketAddr, truth: Truth) -> Self {
        let front = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (port, shared) = (front.local_addr().unwrap().port(), Arc::new(Shared::default()));
        let told = Arc::clone(&shared);
        let thread = std::thread::spawn(move || run(&front, server, truth, &told));
        Relay { port, shared, thread: Some(thread) }
    }
    /// Where clients of the server ask.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }
    pub fn set(&self, w: Weather) {
        self.shared.there_us.store(w.there_us, Ordering::Relaxed);
        self.shared.back_us.store(w.back_us, Ordering::Relaxed);
        self.shared.loss.store(w.loss, Ordering::Relaxed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// A packet on its way: to the server, or back to a client.
enum Way {
    There(Vec<u8>, SocketAddr),
    Back(Vec<u8>, SocketAddr),
}

fn run(front: &UdpSocket, server: SocketAddr, truth: Truth, shared: &Shared) {
    front.set_nonblocking(true).unwrap();
    // A socket towards the server for each client, so that replies find their way back.
    let mut backs: BTreeMap<SocketAddr, UdpSocket> = BTreeMap::new();
    let (mut on_the_way, mut serial, mut chance) = (BTreeMap::<(Instant, u64), Way>::new(), 0u64, 0x9e37_79b9u64);
    let mut buffer = [0; 512];
    while !shared.stop.load(Ordering::Relaxed) {
        let mut send = |way: Way, delay_us: u64, on_the_way: &mut BTreeMap<(Instant, u64), Way>| {
            chance = chance.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            serial += 1;
            if (chance >> 33) % 100 >= shared.loss.load(Ordering::Relaxed) {
                on_the_way.insert((Instant::now() + Duration::from_micros(delay_us), serial), way);
            }
        };
        while let Ok((n, client)) = front.recv_from(&mut buffer) {
            send(Way::There(buffer[..n].to_vec(), client), shared.there_us.load(Ordering::Relaxed), &mut on_the_way);
        }
        for (client, socket) in &backs {
            while let Ok(n) = socket.recv(&mut buffer) {
                let mut packet = buffer[..n].to_vec();
                shift(&mut packet, truth);
                send(Way::Back(packet, *client), shared.back_us.load(Ordering::Relaxed), &mut on_the_way);
            }
        }
        while let Some(entry) = on_the_way.first_entry() {
            if entry.key().0 > Instant::now() {
                break;
            }
            // A lost destination is a lost packet.
            let _ = match entry.remove() {
                Way::Back(packet, client) => front.send_to(&packet, client),
                Way::There(packet, client) => backs.entry(client).or_insert_with(|| towards(server)).send(&packet),
            };
        }
        std::thread::sleep(Duration::from_micros(50)); // poll: the next packet is due
    }
}

fn towards(server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect(server).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

/// Moves the reference, receive and transmit times of a reply into the other true time.
fn shift(packet: &mut [u8], truth: Truth) {
    const EPOCH_S: u64 = 2_208_988_800;
    for at in [16, 32, 40] {
        let Some(field) = packet.get_mut(at..at + 8) else { return };
        let raw = u64::from_be_bytes((&*field).try_into().unwrap());
        let ns = ((raw >> 32) - EPOCH_S) * 1_000_000_000 + (((raw & 0xffff_ffff) * 1_000_000_000) >> 32);
        let moved = truth.at(ns);
        let fraction = ((moved % 1_000_000_000) << 32) / 1_000_000_000;
        let raw = ((moved / 1_000_000_000 + EPOCH_S) << 32) | fraction;
        field.copy_from_slice(&raw.to_be_bytes());
    }
}
