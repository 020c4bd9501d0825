//! `ntp`: a small NTP client of our own, for machines that have no time daemon.
//!
//! It asks several servers, keeps an interval for each ([`server`]), and takes what a majority agrees on ([`marzullo`]). It sets no
//! clock: the interval floats on the bare oscillator, however wrong the system clock is.
//!
//! **Invariants.**
//! 1. With `n` servers configured, `(n - 1) / 2` of them may lie in any way. With two, none may: they only narrow each other.
//! 2. A majority of the *configured* servers must have answered lately, else the source runs free.
//! 3. A minority can neither hide an announced leap second nor claim that it is smeared away.
//! 4. Public servers are asked at most every [`POLL_PUBLIC_NS`], and less often when one says so.
//! 5. Who is named twice counts once: servers are told apart by their addresses. A name of several servers stands for one that no other
//!    name stands for.
//! 6. Whoever slews the system clock beside us moves nothing: samples and readings lie over the bare oscillator.
//!
//! **Caveats.** Plain NTP is not authenticated; whoever sits on the path can lie as a server can. One server under two addresses counts
//! twice.

pub mod marzullo;
pub mod packet;
mod resolve;
pub mod server;

use crate::measurement::{Leap, Measurement, Probe, ProbeError};
use crate::memory::Memory;
use crate::moment::{self, Moment};
use clock::{Interval, Status};
use packet::BadReply;
use resolve::Lookup;
use server::{Instants, Samples};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
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
    lookup: Option<Lookup>,
    /// Whom the name stands for, and the socket to there.
    address: Option<SocketAddr>,
    socket: Option<UdpSocket>,
    /// Another name stands for the same server: this one does not count.
    double: bool,
    poll_ns: u64,
    due_ns: u64,
    burst: u32,
    cookie: u64,
    /// When the last request left, by the bare oscillator; 0 once it is answered.
    asked_raw_ns: u64,
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
            lookup: None,
            address: None,
            socket: None,
            double: false,
            poll_ns: POLL_PUBLIC_NS,
            due_ns: 0,
            burst: BURST,
            cookie: 0,
            asked_raw_ns: 0,
            samples: Samples::default(),
            leap: 0,
            smeared: false,
            trouble: "not asked yet".into(),
        });
        Ntp { peers: peers.collect(), max_drift_ppb, last: None }
    }

    /// Finds out whom the names stand for. Never waits: a name that is being looked up is asked for again at the next poll.
    fn resolve(&mut self) {
        for i in 0..self.peers.len() {
            let taken: Vec<SocketAddr> =
                self.peers[..i].iter().chain(&self.peers[i + 1..]).filter_map(|p| p.address).collect();
            let peer = &mut self.peers[i];
            if peer.address.is_none() && peer.due_ns <= moment::boot_ns() {
                peer.resolve(&taken);
            }
        }
    }

    /// Asks every server that is due and collects replies until all have come or patience ends.
    fn exchange(&mut self) {
        let start = moment::boot_ns();
        let due = |p: &Peer| p.address.is_some() && p.due_ns <= start;
        for (i, peer) in self.peers.iter_mut().enumerate().filter(|(_, p)| due(p)) {
            peer.ask(i as u64);
        }
        let deadline = start + PATIENCE.as_nanos() as u64;
        for _ in 0..DATAGRAMS_MAX {
            let Some(left) = deadline.checked_sub(moment::boot_ns()).filter(|l| *l > 0) else { break };
            let Some(i) = wait_readable(&self.peers, left) else { break };
            self.peers[i].hear(self.max_drift_ppb);
        }
        for peer in self.peers.iter_mut().filter(|p| p.asked_raw_ns > 0) {
            peer.asked_raw_ns = 0;
            peer.trouble = "no reply".into();
        }
    }

    /// What each server says, for people: trouble, or how far from the system clock it sees true time.
    fn opinions(&self, moment: &Moment) -> String {
        let said = self.peers.iter().map(|p| match p.samples.interval(moment.raw_ns, self.max_drift_ppb) {
            _ if !p.trouble.is_empty() => format!("{}: {}", p.name, p.trouble),
            Some(i) => format!("{}: answers {}", p.name, offset(i, moment.real_ns)),
            None => format!("{}: answers", p.name),
        });
        said.collect::<Vec<_>>().join("; ")
    }
}

/// An interval beside a clock, for people.
fn offset(interval: Interval, clock_ns: u64) -> String {
    let by_ms = interval.middle_ns().wrapping_sub(clock_ns).cast_signed() as f64 / 1e6;
    format!("{by_ms:+.3} ms, give or take {:.3} ms", interval.error_ns() as f64 / 1e6)
}

/// A socket that was asked and has something to read, within `left_ns`.
fn wait_readable(peers: &[Peer], left_ns: u64) -> Option<usize> {
    use std::os::fd::AsRawFd;
    let waiting: Vec<usize> = (0..peers.len()).filter(|i| peers[*i].asked_raw_ns > 0).collect();
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
    /// Takes the address that the name stands for, one that is not `taken` if there is one.
    fn resolve(&mut self, taken: &[SocketAddr]) {
        let found = match (self.name.parse::<SocketAddr>(), &self.lookup) {
            (Ok(address), _) => Ok(vec![address]),
            (_, None) => match Lookup::start(&self.name, PORT) {
                Ok(lookup) => {
                    (self.lookup, self.trouble) = (Some(lookup), "its address is being looked up".into());
                    return;
                }
                Err(e) => Err(e),
            },
            (_, Some(lookup)) => match lookup.poll() {
                Some(found) => found,
                None => return,
            },
        };
        self.lookup = None;
        let all = match found {
            Ok(all) => all,
            Err(e) => return self.put_off(e.to_string()),
        };
        match all.iter().find(|a| !taken.contains(a)) {
            Some(address) => (self.address, self.double) = (Some(*address), false),
            None if all.is_empty() => self.put_off("its name has no address".into()),
            None => {
                self.put_off(format!("is {}, which is named already", all[0]));
                // Names may come to stand for somebody else, but seldom do.
                (self.double, self.due_ns) = (true, moment::boot_ns() + POLL_MAX_NS);
            }
        }
    }
    fn put_off(&mut self, trouble: String) {
        (self.trouble, self.due_ns) = (trouble, moment::boot_ns() + self.poll_ns);
    }
    fn connect(&mut self, server: SocketAddr) -> io::Result<()> {
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
        if let (None, Some(server)) = (&self.socket, self.address)
            && let Err(e) = self.connect(server)
        {
            return self.put_off(e.to_string());
        }
        // Not a secret, but nothing that somebody off the path can guess in time.
        let now = moment::boot_ns();
        self.cookie = mix(now ^ moment::real_ns().rotate_left(32) ^ salt ^ self.cookie);
        let asked_raw_ns = moment::raw_ns().max(1);
        let sent = self.socket.as_ref().is_some_and(|s| s.send(&packet::request(self.cookie)).is_ok());
        self.asked_raw_ns = if sent { asked_raw_ns } else { 0 };
        if !sent {
            // The name may stand for somebody else by now.
            (self.socket, self.address, self.trouble) = (None, None, "cannot send".into());
        }
        self.burst = self.burst.saturating_sub(1);
        self.due_ns = now + if self.burst > 0 { BURST_EVERY_NS } else { self.poll_ns };
    }
    fn hear(&mut self, max_drift_ppb: u32) {
        let mut buffer = [0; 512];
        let Some(outcome) = self.socket.as_ref().map(|s| s.recv(&mut buffer)) else { return };
        let arrived = Instants { raw_ns: moment::raw_ns(), boot_ns: moment::boot_ns() };
        match outcome.map(|n| packet::read(&buffer[..n], self.cookie)) {
            Ok(Ok(reply)) => {
                self.samples.add(&reply, self.asked_raw_ns, arrived, max_drift_ppb);
                (self.leap, self.smeared) = (reply.leap, reply.smeared);
                self.trouble = if self.samples.inconsistent() { "contradicts itself".into() } else { String::new() };
                self.asked_raw_ns = 0;
            }
            Ok(Err(BadReply::Foreign)) => {}
            Ok(Err(bad)) => {
                if matches!(bad, BadReply::Refused(_)) {
                    self.poll_ns = (self.poll_ns * 2).min(POLL_MAX_NS);
                    self.due_ns = arrived.boot_ns + self.poll_ns;
                }
                (self.trouble, self.asked_raw_ns, self.burst) = (bad.to_string(), 0, 0);
            }
            Err(e) => (self.trouble, self.asked_raw_ns) = (e.to_string(), 0),
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

/// Who agrees with whom, and who does not; `interval` is what follows from it. Where servers are silent it may span some that contradict each other.
fn opinion(counting: &[(&Peer, Interval)], servers: usize, interval: Interval) -> String {
    let intervals: Vec<Interval> = counting.iter().map(|(_, i)| *i).collect();
    let answering = intervals.len();
    let shared = (1..=answering).rev().find_map(|many| Some((many, marzullo::agree(&intervals, answering - many)?)));
    let (many, most) = shared.unwrap_or((0, interval));
    if many == 1 && servers > 1 {
        if answering == 1 {
            return format!("1 of {servers} NTP servers answers, and no other bears it out");
        }
        let apart = |(peer, i): &(&Peer, Interval)| format!("{}: {}", peer.name, offset(*i, interval.middle_ns()));
        let each: Vec<String> = counting.iter().map(apart).collect();
        return format!(
            "{answering} of {servers} NTP servers answer, and no two agree; the bound spans them ({} from its middle)",
            each.join(", ")
        );
    }
    let mut told = format!("{many} of {servers} NTP servers agree");
    for (peer, i) in counting.iter().filter(|(_, i)| !i.meets(most)) {
        let spanned = if i.meets(interval) { " (the bound spans it: too many are silent)" } else { "" };
        told.push_str(&format!("; {} disagrees: {} from them{spanned}", peer.name, offset(*i, most.middle_ns())));
    }
    told
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
        self.resolve();
        self.exchange();
        let moment = Moment::capture();
        self.last = Some(moment);
        if moment.suspended_since(&before) > 0 {
            self.peers.iter_mut().for_each(|p| p.samples.clear());
        }
        let servers = self.peers.iter().filter(|p| !p.double).count();
        let wrong = marzullo::tolerable(servers);
        let counting: Vec<(&Peer, Interval)> = self
            .peers
            .iter()
            .filter(|p| p.counts(moment.boot_ns))
            .filter_map(|p| Some((p, p.samples.interval(moment.raw_ns, self.max_drift_ppb)?)))
            .collect();
        let intervals: Vec<Interval> = counting.iter().map(|(_, i)| *i).collect();
        // The silent ones may be the right ones: as many may lie among those that answered as among all.
        let enough = intervals.len() >= servers.div_ceil(2);
        let agreed = enough.then(|| marzullo::agree(&intervals, wrong)).flatten();
        let interval = agreed.ok_or_else(|| ProbeError::Unsynchronised {
            source_name: NAME,
            reason: format!("no majority of the {servers} servers agrees ({})", self.opinions(&moment)),
        })?;
        let updated_ns = counting.iter().filter_map(|(p, _)| p.samples.newest_ns()).max().unwrap_or(0);
        let leap = leap_of(&counting.iter().map(|(p, _)| *p).collect::<Vec<_>>(), wrong);
        let mut detail = opinion(&counting, servers, interval);
        if leap == Leap::Smeared {
            detail.push_str("; they smear leap seconds");
        }
        for peer in self.peers.iter().filter(|p| p.double) {
            detail.push_str(&format!("; {} {}", peer.name, peer.trouble));
        }
        Ok(Measurement {
            moment,
            interval,
            updated_ns,
            max_drift_ppb: self.max_drift_ppb,
            // Nobody disciplines the bare oscillator; what the kernel is steered by says nothing of it.
            steady_ppb: Some(0),
            follows_slews: false,
            remembers: Memory::Unstepped,
            status: Status::Synchronized,
            leap,
            detail,
        })
    }
}
