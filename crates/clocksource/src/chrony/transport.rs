//! How chronyd is reached: its Unix socket, or UDP on this machine.
//!
//! The Unix socket needs a place for our own end in the daemon's directory, so it takes root or the daemon's group. UDP port 323
//! answers monitoring requests of anyone on the machine. The Unix socket is tried first: nobody else can answer there.

use super::credentials;
use super::wire::Request;
use crate::measurement::ProbeError;
use crate::moment;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the daemon may take to answer; it needs 50 µs.
const PATIENCE: Duration = Duration::from_millis(200);
/// Foreign or late datagrams that are read past before the request counts as unanswered.
const STRAYS_MAX: usize = 8;
/// chronyd's command socket on Debian, Red Hat, SUSE, Amazon Linux.
const UNIX_PATH: &str = "/run/chrony/chronyd.sock";
/// chronyd's command port.
const UDP_PORT: u16 = 323;

/// Where chronyd listens.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ChronyAddress {
    /// The usual Unix socket, then UDP on loopback.
    #[default]
    Usual,
    /// This Unix socket.
    Unix(PathBuf),
    /// This UDP address.
    Udp(SocketAddr),
}

/// Who gave the last answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// A process over a Unix socket; `None` where it lives outside of this process id namespace.
    Process(Option<u32>),
    /// Whoever has this UDP address.
    Address(SocketAddr),
}

/// Our own ends in the daemon's directory begin and end so.
const OWN_PREFIX: &str = "timeball.";
const OWN_SUFFIX: &str = ".sock";
/// Names in that directory that are looked at in one sweep.
const SWEEP_MAX: usize = 1_000;

/// Removes what processes that were killed have left in the daemon's directory: ends of ours that nobody holds any more. Whether somebody
/// does, a connection tells, also where process ids mean nothing (containers that share the directory).
fn sweep(directory: &Path) {
    let Ok(names) = std::fs::read_dir(directory) else { return };
    for entry in names.take(SWEEP_MAX).flatten() {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|n| n.starts_with(OWN_PREFIX) && n.ends_with(OWN_SUFFIX));
        let Ok(probe) = UnixDatagram::unbound() else { return };
        if ours && probe.connect(entry.path()).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused) {
            // Somebody else may have been faster.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[derive(Debug)]
enum Socket {
    /// With our own end, which is removed by the process that made it.
    Unix(UnixDatagram, PathBuf, u32),
    Udp(UdpSocket),
}

impl Socket {
    fn unix(server: &Path) -> io::Result<Self> {
        let directory = server.parent().unwrap_or(Path::new("/"));
        sweep(directory);
        let process = std::process::id();
        let own = directory.join(format!("{OWN_PREFIX}{process}.{:x}{OWN_SUFFIX}", moment::boot_ns()));
        let socket = UnixDatagram::bind(&own)?;
        let socket = Socket::Unix(socket, own.clone(), process);
        // The daemon runs as a user of its own and must be able to answer.
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o666))?;
        if let Socket::Unix(s, ..) = &socket {
            s.connect(server)?;
            credentials::ask_for(s)?;
            s.set_read_timeout(Some(PATIENCE))?;
            s.set_write_timeout(Some(PATIENCE))?;
        }
        Ok(socket)
    }
    fn udp(server: SocketAddr) -> io::Result<Self> {
        let local: SocketAddr = if server.is_ipv4() {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
        };
        let socket = UdpSocket::bind(local)?;
        socket.connect(server)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Socket::Udp(socket))
    }
    fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(s, ..) => s.send(datagram),
            Socket::Udp(s) => s.send(datagram),
        }
    }
    fn recv(&self, buffer: &mut [u8]) -> io::Result<(usize, Answered)> {
        match self {
            Socket::Unix(s, ..) => credentials::recv(s, buffer).map(|(n, process)| (n, Answered::Process(process))),
            Socket::Udp(s) => Ok((s.recv(buffer)?, Answered::Address(s.peer_addr()?))),
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Socket::Unix(_, own, process) = self
            && *process == std::process::id()
        {
            // Gone already if the daemon's directory was; either way nothing is left to do.
            let _ = std::fs::remove_file(own);
        }
    }
}

/// A connection that is made when needed and made anew after a failure.
#[derive(Debug)]
pub(super) struct Transport {
    address: ChronyAddress,
    socket: Option<Socket>,
    answered: Option<Answered>,
    sequence: u32,
}

impl Transport {
    pub(super) fn new(address: ChronyAddress) -> Self {
        Transport { address, socket: None, answered: None, sequence: moment::boot_ns() as u32 }
    }
    pub(super) fn answered(&self) -> Option<Answered> {
        self.answered
    }
    pub(super) fn place(&self) -> String {
        match (&self.socket, &self.address) {
            (Some(Socket::Udp(s)), _) => s.peer_addr().map_or_else(|_| "udp".into(), |a| a.to_string()),
            (Some(Socket::Unix(..)), ChronyAddress::Usual) => UNIX_PATH.into(),
            (_, ChronyAddress::Unix(path)) => path.display().to_string(),
            (_, ChronyAddress::Udp(a)) => a.to_string(),
            (None, ChronyAddress::Usual) => format!("{UNIX_PATH} and 127.0.0.1:{UDP_PORT}"),
        }
    }
    /// Sends a request and waits for its reply.
    pub(super) fn ask(&mut self, request: &Request) -> Result<Vec<u8>, ProbeError> {
        let reply = match (&self.address, &self.socket) {
            (ChronyAddress::Usual, None) => self.ask_at(request, || Socket::unix(Path::new(UNIX_PATH))).or_else(|_| {
                self.socket = None;
                self.ask_at(request, || Socket::udp((Ipv4Addr::LOCALHOST, UDP_PORT).into()))
            }),
            (ChronyAddress::Unix(path), None) => {
                let path = path.clone();
                self.ask_at(request, || Socket::unix(&path))
            }
            (ChronyAddress::Udp(address), None) => {
                let address = *address;
                self.ask_at(request, || Socket::udp(address))
            }
            (_, Some(_)) => self.ask_at(request, || Err(io::ErrorKind::NotConnected.into())),
        };
        reply.map_err(|error| {
            self.socket = None;
            ProbeError::Unreachable {
                source_name: super::NAME,
                place: self.place(),
                error,
                advice: "Is chronyd running on this machine, and may this user reach it (root or group _chrony for the socket, `cmdport 323` for UDP)?",
            }
        })?.map_err(super::malformed)
    }
    fn ask_at(
        &mut self,
        request: &Request,
        open: impl FnOnce() -> io::Result<Socket>,
    ) -> io::Result<Result<Vec<u8>, String>> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => open()?,
        };
        self.sequence = self.sequence.wrapping_add(1);
        socket.send(&request.encode(self.sequence))?;
        let mut buffer = [0; 512];
        for _ in 0..STRAYS_MAX {
            let (n, answered) = socket.recv(&mut buffer)?;
            if let Some(reply) = request.open(self.sequence, &buffer[..n]) {
                (self.socket, self.answered) = (Some(socket), Some(answered));
                return Ok(reply);
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}
