//! `ntp`: a small NTP client of our own, for machines that have no time daemon.
//!
//! It asks several servers, keeps an interval for each ([`server`]), and takes what a majority agrees on ([`marzullo`]). It sets no
//! clock: the interval floats on the boot-time clock, however wrong the system clock is.
//!
//! **Invariants.**
//! 1. With `n` servers configured, `(n - 1) / 2` of them may lie in any way. With two, none may: they only narrow each other.
//! 2. A majority of the *configured* servers must have answered lately, else the source runs free.
//! 3. A minority can neither hide an announced leap second nor claim that it is smeared away.
//! 4. Public servers are asked at most every [`POLL_PUBLIC_NS`], and less often when one says so.
//!
//! 5. If something else slews the system clock (chronyd may, by 8 %), the bound opens as fast: then better use that daemon as the source.
//!
//! **Caveats.** Plain NTP is not authenticated; whoever sits on the path can lie as a server can. A slew shows in the kernel's steering
//! when the servers are asked (every [`crate::POLL_EVERY`]): one that began and ended in between does not.

pub mod marzullo;
pub mod packet;
pub mod server;

use crate::measurement::{Leap, Measurement, Probe, ProbeError, growth_ppb};
use crate::moment::{self, Moment};
use clock::Status;
use packet::BadReply;
use server::Samples;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

const NAME: &str = "ntp";
const PORT: u16 = 123;
/// Servers at most.
pub const SERVERS_MAX: usize = 16;
/// Between questions to a server of this machine or a private network (nanoseconds).
pub const POLL_PRIVATE_NS: u64 = 1_000_000_000;
/// Between questions to any other server (nanoseconds).
pub const POLL_PUBLIC_NS: u64 = 16_000_000_000;
/// The longest interval that refusals can bring about (nanoseconds).
const POLL_MAX_NS: u64 = 1_024_000_000_000;
/// Quick questions at the start.
const BURST: u32 = 4;
/// Between them (nanoseconds).
const BURST_EVERY_NS: u64 = 250_000_000;
/// A reply that takes longer is of no use.
const PATIENCE: Duration = Duration::from_millis(250);
/// A server without a sample for this many of its poll intervals does not count.
const POLLS_MISSED: u64 = 8;
/// Datagrams read in one round, so that a flood ends it.
const DATAGRAMS_MAX: usize = 4 * SERVERS_MAX;

#[derive(Debug)]
struct Peer {
    name: String,
    socket: Option<UdpSocket>,
    poll_ns: u64,
    due_ns: u64,
    burst: u32,
    cookie: u64,
    asked_ns: u64,
    samples: Samples,
    leap: u8,
    smeared: bool,
    trouble: String,
}

/// The probe.
#[derive(Debug)]
pub struct Ntp {
    peers: Vec<Peer>,
    max_drift_ppb: u32,
    last: Option<Moment>,
}

impl Ntp {
    /// Asks `servers` (`host` or `host:port`); the local oscillator, which nobody disciplines, drifts by at most `max_drift_ppb`.
    pub fn new(servers: &[String], max_drift_ppb: u32) -> Self {
        let peers = servers.iter().take(SERVERS_MAX).map(|name| Peer {
            name: name.clone(),
            socket: None,
            poll_ns: POLL_PUBLIC_NS,
            due_ns: 0,
            burst: BURST,
            cookie: 0,
            asked_ns: 0,
            samples: Samples::default(),
            leap: 0,
            smeared: false,
            trouble: "not asked yet".into(),
        });
        Ntp { peers: peers.collect(), max_drift_ppb, last: None }
    }

    /// The drift between two moments, parts per billion: nobody says what part of the steering is a correction of the oscillator.
    fn drift_ppb(&self, from: &Moment, to: &Moment) -> u32 {
        let steered_ppb = from.steering_ppb.unsigned_abs().max(to.steering_ppb.unsigned_abs());
        growth_ppb(self.max_drift_ppb, i64::try_from(steered_ppb).unwrap_or(i64::MAX))
    }

    /// Asks every server that is due and collects replies until all have come or patience ends.
    fn exchange(&mut self, drift_ppb: u32) {
        let start = moment::boot_ns();
        for (i, peer) in self.peers.iter_mut().enumerate().filter(|(_, p)| p.due_ns <= start) {
            peer.ask(i as u64);
        }
        let deadline = start + PATIENCE.as_nanos() as u64;
        for _ in 0..DATAGRAMS_MAX {
            let Some(left) = deadline.checked_sub(moment::boot_ns()).filter(|l| *l > 0) else { break };
            let Some(i) = wait_readable(&self.peers, left) else { break };
            self.peers[i].hear(drift_ppb);
        }
        for peer in self.peers.iter_mut().filter(|p| p.asked_ns > 0) {
            peer.asked_ns = 0;
            peer.trouble = "no reply".into();
        }
    }
}

/// A socket that was asked and has something to read, within `left_ns`.
fn wait_readable(peers: &[Peer], left_ns: u64) -> Option<usize> {
    use std::os::fd::AsRawFd;
    let waiting: Vec<usize> = (0..peers.len()).filter(|i| peers[*i].asked_ns > 0).collect();
    let mut fds: Vec<libc::pollfd> = waiting
        .iter()
        .filter_map(|i| peers[*i].socket.as_ref())
        .map(|s| libc::pollfd { fd: s.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    if fds.is_empty() || fds.len() != waiting.len() {
        return None;
    }
    // SAFETY: `fds` is valid for the call, with its length.
    let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, left_ns.div_ceil(1_000_000) as i32) };
    if ready <= 0 {
        return None;
    }
    waiting.into_iter().zip(&fds).find(|(_, fd)| fd.revents != 0).map(|(i, _)| i)
}

/// Whether an address is of this machine or a private network.
fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(a) => a.is_loopback() || a.is_private() || a.is_link_local(),
        IpAddr::V6(a) => a.is_loopback() || a.is_unique_local() || a.is_unicast_link_local(),
    }
}

impl Peer {
    fn connect(&mut self) -> io::Result<()> {
        let server: SocketAddr = match self.name.parse::<SocketAddr>() {
            Ok(address) => address,
            Err(_) => {
                let with_port = match self.name.rsplit_once(':') {
                    Some((_, port)) if port.parse::<u16>().is_ok() => self.name.clone(),
                    _ => format!("{}:{PORT}", self.name),
                };
                with_port.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?
            }
        };
        let local: SocketAddr = if server.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(local)?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        if self.poll_ns == POLL_PUBLIC_NS && is_private(server.ip()) {
            self.poll_ns = POLL_PRIVATE_NS;
        }
        self.socket = Some(socket);
        Ok(())
    }
    fn ask(&mut self, salt: u64) {
        if self.socket.is_none()
            && let Err(e) = self.connect()
        {
            (self.trouble, self.due_ns) = (e.to_string(), moment::boot_ns() + self.poll_ns);
            return;
        }
        // Not a secret, but nothing that somebody off the path can guess in time.
        let now = moment::boot_ns();
        self.cookie = mix(now ^ moment::real_ns().rotate_left(32) ^ salt ^ self.cookie);
        let sent = self.socket.as_ref().is_some_and(|s| s.send(&packet::request(self.cookie)).is_ok());
        self.asked_ns = if sent { now } else { 0 };
        if !sent {
            (self.socket, self.trouble) = (None, "cannot send".into());
        }
        self.burst = self.burst.saturating_sub(1);
        self.due_ns = now + if self.burst > 0 { BURST_EVERY_NS } else { self.poll_ns };
    }
    fn hear(&mut self, max_drift_ppb: u32) {
        let mut buffer = [0; 512];
        let Some(outcome) = self.socket.as_ref().map(|s| s.recv(&mut buffer)) else { return };
        let arrived_ns = moment::boot_ns();
        match outcome.map(|n| packet::read(&buffer[..n], self.cookie)) {
            Ok(Ok(reply)) => {
                self.samples.add(&reply, self.asked_ns, arrived_ns, max_drift_ppb);
                (self.leap, self.smeared) = (reply.leap, reply.smeared);
                self.trouble = if self.samples.inconsistent() { "contradicts itself".into() } else { String::new() };
                self.asked_ns = 0;
            }
            Ok(Err(BadReply::Foreign)) => {}
            Ok(Err(bad)) => {
                if matches!(bad, BadReply::Refused(_)) {
                    self.poll_ns = (self.poll_ns * 2).min(POLL_MAX_NS);
                    self.due_ns = arrived_ns + self.poll_ns;
                }
                (self.trouble, self.asked_ns, self.burst) = (bad.to_string(), 0, 0);
            }
            Err(e) => (self.trouble, self.asked_ns) = (e.to_string(), 0),
        }
    }
    fn counts(&self, boot_ns: u64) -> bool {
        self.samples.newest_ns().is_some_and(|n| boot_ns.saturating_sub(n) <= POLLS_MISSED * self.poll_ns)
    }
}

/// What servers announce of which `wrong` may lie in any way, and so may keep quiet: only more than that can say that there is no leap
/// second. A liar may so bring one about, which widens the bound around midnight and does no other harm.
fn leap_of(counting: &[&Peer], wrong: usize) -> Leap {
    let count = |says: fn(&Peer) -> bool| counting.iter().filter(|p| says(p)).count();
    let (insert, delete) = (count(|p| p.leap == 1), count(|p| p.leap == 2));
    match () {
        () if counting.len() - insert - delete > wrong && count(|p| p.smeared) > wrong => Leap::Smeared,
        () if counting.len() - insert - delete > wrong => Leap::None,
        () if insert >= delete => Leap::Insert,
        () => Leap::Delete,
    }
}

/// A fixed mixing function (the finalizer of SplitMix64).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Probe for Ntp {
    fn name(&self) -> &'static str {
        NAME
    }
    fn probe(&mut self) -> Result<Measurement, ProbeError> {
        let before = Moment::capture();
        if self.last.is_some_and(|last| before.suspended_since(&last) > 0) {
            self.peers.iter_mut().for_each(|p| p.samples.clear());
        }
        let so_far_ppb = self.drift_ppb(&self.last.unwrap_or(before), &before);
        self.peers.iter_mut().for_each(|p| p.samples.carry(before.boot_ns, so_far_ppb));
        self.exchange(self.drift_ppb(&before, &before));
        let moment = Moment::capture();
        let drift_ppb = self.drift_ppb(&before, &moment);
        self.last = Some(moment);
        let counting: Vec<&Peer> = self.peers.iter().filter(|p| p.counts(moment.boot_ns)).collect();
        let intervals: Vec<_> = counting.iter().filter_map(|p| p.samples.interval(moment.boot_ns, drift_ppb)).collect();
        // The silent ones may be the right ones: as many may lie among those that answered as among all.
        let enough = intervals.len() >= self.peers.len().div_ceil(2);
        let agreed = enough.then(|| marzullo::agree(&intervals, marzullo::tolerable(self.peers.len()))).flatten();
        let interval = agreed.ok_or_else(|| {
            let said = self
                .peers
                .iter()
                .map(|p| format!("{}: {}", p.name, if p.trouble.is_empty() { "answers" } else { &p.trouble }));
            ProbeError::Unsynchronised {
                source_name: NAME,
                reason: format!(
                    "no majority of the {} servers agrees ({})",
                    self.peers.len(),
                    said.collect::<Vec<_>>().join("; ")
                ),
            }
        })?;
        let updated_ns = counting.iter().filter_map(|p| p.samples.newest_ns()).max().unwrap_or(0);
        let leap = leap_of(&counting, marzullo::tolerable(self.peers.len()));
        let smeared = if leap == Leap::Smeared { "; they smear leap seconds" } else { "" };
        Ok(Measurement {
            moment,
            interval,
            updated_ns,
            max_drift_ppb: self.max_drift_ppb,
            steady_ppb: 0,
            status: Status::Synchronized,
            leap,
            detail: format!("{} of {} NTP servers agree{smeared}", intervals.len(), self.peers.len()),
        })
    }
}
