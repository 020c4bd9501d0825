//! Links that take time: a relay before each node, through which its peers reach it.
//!
//! What comes from either side is handed on in order, each piece when it has been under way for as long as the two sites are apart. Who connects is
//! found by the system's table of sockets: the nodes' own protocol is not looked into.
//!
//! Caveats: the delay is constant, and a link has no bound on its bandwidth. A connection whose owner cannot be found (a command of an operator)
//! is not delayed.

use super::{ClusterError, io_error};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

/// Bytes that are handed on at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// Pieces under way in one direction, at most: beyond, the sender waits.
const PIECES_MAX: usize = 4_096;
/// Looks at the system's table of sockets for the owner of one: it is read in pieces, and what changes meanwhile may be missing.
const LOOKS_MAX: usize = 3;

/// How long a message takes from one node to another: `between[from][to]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delays {
    between: Vec<Vec<Duration>>,
}

impl Delays {
    /// The same between any two of so many nodes.
    pub fn equal(nodes: usize, delay: Duration) -> Self {
        Self::by_site(&(0..nodes).collect::<Vec<_>>(), delay)
    }
    /// Nothing inside a site, so much between two: the site of each node.
    pub fn by_site(sites: &[usize], delay: Duration) -> Self {
        let of = |from: &usize, to: &usize| if from == to { Duration::ZERO } else { delay };
        let row = |from| sites.iter().map(|to| of(from, to)).collect();
        Delays { between: sites.iter().map(row).collect() }
    }
    fn of(&self, from: Option<usize>, to: usize) -> Duration {
        from.and_then(|from| self.between.get(from)?.get(to).copied()).unwrap_or_default()
    }
}

/// The relay before one node. It takes no new connections once this value is gone; those that there are end with the nodes.
pub(super) struct Relay {
    port: u16,
    stop: Arc<AtomicBool>,
}

impl Relay {
    /// Listens at `port` for the node `to`, which listens at `own`; `processes` are those of the nodes.
    pub fn start(port: u16, own: u16, to: usize, delays: Delays, processes: Vec<u32>) -> Result<Relay, ClusterError> {
        let what = format!("the relay of n{}", to + 1);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(io_error(what.clone()))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let accepting = move || {
            for inward in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                // The node does not listen yet, or any more: its peer asks again.
                let Ok(outward) = TcpStream::connect((Ipv4Addr::LOCALHOST, own)) else { continue };
                let from = inward.peer_addr().ok().and_then(|address| owner(address, port, &processes));
                // A connection that cannot be carried is closed, which its ends see.
                let _ = carry(&inward, &outward, delays.of(from, to));
                let _ = carry(&outward, &inward, delays.of(from, to));
            }
        };
        std::thread::Builder::new().name("relay".into()).spawn(accepting).map_err(io_error(what))?;
        Ok(Relay { port, stop })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // It wakes up to see that.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

/// Hands on what one connection brings to the other, later.
fn carry(from: &TcpStream, to: &TcpStream, delay: Duration) -> std::io::Result<()> {
    let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
    from.set_nodelay(true)?;
    let (sent, under_way) = sync_channel::<(Instant, Vec<u8>)>(PIECES_MAX);
    let reading = move || {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(bytes) = from.read(&mut chunk)
            && bytes > 0
            && sent.send((Instant::now() + delay, chunk[..bytes].to_vec())).is_ok()
        {}
    };
    let writing = move || {
        deliver(&under_way, &mut to);
        // The other direction ends by the other end's doing.
        let _ = to.shutdown(Shutdown::Both);
    };
    std::thread::Builder::new().name("relay-in".into()).spawn(reading)?;
    std::thread::Builder::new().name("relay-out".into()).spawn(writing)?;
    Ok(())
}

fn deliver(under_way: &Receiver<(Instant, Vec<u8>)>, to: &mut TcpStream) {
    for (due, bytes) in under_way {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            return;
        }
    }
}

/// Which of the processes has the socket with this local address, that is connected to our port.
fn owner(address: SocketAddr, to: u16, processes: &[u32]) -> Option<usize> {
    (0..LOOKS_MAX).find_map(|_| {
        let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
        let socket = format!("socket:[{}]", inode(&table, address.port(), to)?);
        let has = |process: &u32| {
            let files = std::fs::read_dir(format!("/proc/{process}/fd")).ok()?;
            let mut links = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
            links.find(|link| link.as_os_str() == socket.as_str())
        };
        processes.iter().position(|process| has(process).is_some())
    })
}

/// The inode of the socket with these two ports, its own and its peer's, of the lines of `/proc/net/tcp`. One port may be many sockets' own at a time:
/// the system gives it again for another destination, and what was closed stays in the table for a minute.
fn inode(table: &str, own: u16, peer: u16) -> Option<&str> {
    let ends = |address: Option<&str>, port: u16| address.is_some_and(|a| a.ends_with(&format!(":{port:04X}")));
    let is = |line: &&str| {
        let mut words = line.split_whitespace().skip(1);
        ends(words.next(), own) && ends(words.next(), peer)
    };
    table.lines().skip(1).find(is)?.split_whitespace().nth(9)
}

#[cfg(test)]
mod tests {
    use super::{Delays, Relay, inode, owner};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    #[test]
    fn a_connection_is_its_owners() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let address = client.local_addr().unwrap();
        let to = listener.local_addr().unwrap().port();
        assert_eq!(owner(address, to, &[1, std::process::id()]), Some(1));
        assert_eq!(owner(address, to, &[]), None);
    }

    #[test]
    fn a_port_that_others_have_too_is_told_by_its_peer() {
        let elsewhere = " 0: 0100007F:0050 0100007F:9C41 01 0 0 0 0 0 76 1\n";
        let closed = " 1: 0100007F:0050 0100007F:9C42 06 0 0 0 0 0 0 3\n";
        let ours = " 2: 0100007F:0050 0100007F:9C40 01 0 0 0 0 0 77 1\n";
        let table = format!("head\n{elsewhere}{closed}{ours}");
        assert_eq!(inode(&table, 80, 0x9C40), Some("77"));
        assert_eq!(inode(&table, 80, 0x9C43), None);
    }

    #[test]
    fn what_is_relayed_comes_in_order_and_late() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let delay = Duration::from_millis(30);
        let own = server.local_addr().unwrap().port();
        // Both ends are of this process: the first node, as far as the relay can see.
        let delays = Delays::by_site(&[0, 1], delay);
        let relay = Relay::start(port, own, 1, delays, vec![std::process::id()]).unwrap();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let echo = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut all = [0; 6];
            stream.read_exact(&mut all).unwrap();
            stream.write_all(&all).unwrap();
        });
        let began = Instant::now();
        client.write_all(b"abc").unwrap();
        client.write_all(b"def").unwrap();
        let mut back = [0; 6];
        client.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"abcdef");
        assert!(began.elapsed() >= 2 * delay, "there and back");
        echo.join().unwrap();
        drop(relay);
    }
}
