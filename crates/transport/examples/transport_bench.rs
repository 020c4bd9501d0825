//! Round trips and throughput between two transports in one process, over loopback: `transport_bench [seconds per row]`.
//!
//! A request is 100 bytes and is sent back by whoever it is delivered to; an answer sends the next request. `waited for`: the answer wakes another
//! thread, which sends the next one, as a client's session would.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, missing_docs)]

use bytes::Bytes;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};
use transport::{Deliver, Identity, Options, Parcel, Peer, Transport};

const ADDRS: [&str; 2] = ["127.0.0.1:27690", "127.0.0.1:27691"];

fn start(node: u32, deliver: Deliver) -> Transport {
    let identity = Identity {
        cluster: 1,
        node,
        store: node.into(),
        incarnation: 1,
        release: "bench".into(),
        knows: 1..=1,
        start: 0,
        began_after: None,
    };
    let peers = [1u32, 2].map(|n| Peer { node: n, store: n.into(), addr: ADDRS[n as usize - 1].into() });
    let listener = TcpListener::bind(ADDRS[node as usize - 1]).expect("the port is free");
    Transport::start(listener, identity, peers.into(), Options::default(), deliver, Box::new(|request| request))
        .expect("it starts")
}

fn pair(deliver: [Deliver; 2]) -> [Transport; 2] {
    let [first, second] = deliver;
    let pair = [start(1, first), start(2, second)];
    while !pair.iter().all(|transport| transport.links().iter().all(|link| link.up)) {
        std::thread::yield_now();
    }
    pair
}

/// CPU seconds of this process.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().map(|n| fields[*n].parse::<u64>().expect("a number")).sum();
    ticks as f64 / 100.0
}

type Cell = Arc<OnceLock<Transport>>;

/// A deliver that sends everything back.
fn echo(own: &Cell) -> Deliver {
    let own = Arc::downgrade(own);
    transport::each(move |parcel| {
        if let Some(own) = own.upgrade()
            && let Some(transport) = own.get()
        {
            transport.send(Parcel { from: parcel.to, to: parcel.from, ..parcel });
        }
    })
}

fn round_trips(in_flight: usize, waited: bool, time: Duration) {
    let (first, second) = (Cell::default(), Cell::default());
    let (count, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (answered, answers) = mpsc::channel::<Parcel>();
    let next: Deliver = {
        let (own, count, over) = (Arc::downgrade(&first), count.clone(), over.clone());
        let again = echo(&first);
        transport::each(move |parcel| {
            count.fetch_add(1, Relaxed);
            if over.load(Relaxed) || own.strong_count() == 0 {
            } else if waited {
                let _ = answered.send(parcel);
            } else {
                again(vec![parcel]);
            }
        })
    };
    let [a, b] = pair([next, echo(&second)]);
    first.set(a).ok().expect("once");
    second.set(b).ok().expect("once");
    let transport = first.get().expect("it is there");
    let request = || Parcel { from: 1, to: 2, lane: 0, bytes: Bytes::from(vec![1; 100]) };
    let mut waits = Vec::new();
    let (begun, cpu) = (Instant::now(), cpu_s());
    transport.send_all((0..in_flight).map(|_| request()));
    if waited {
        let mut at = Instant::now();
        while begun.elapsed() < time {
            let parcel = answers.recv_timeout(Duration::from_secs(10)).expect("an answer");
            waits.push(at.elapsed());
            at = Instant::now();
            transport.send(Parcel { from: 1, to: 2, ..parcel });
        }
    } else {
        std::thread::sleep(time);
    }
    let (done, elapsed, cpu) = (count.load(Relaxed), begun.elapsed().as_secs_f64(), cpu_s() - cpu);
    over.store(true, Relaxed);
    let per_s = done as f64 / elapsed;
    let how = if waited { "waited for" } else { "" };
    print!(
        "{in_flight:>3} in flight {how:<10} {per_s:>9.0} round trips/s, {:>5.1} us of CPU each",
        cpu * 1e6 / done as f64
    );
    if waited && in_flight == 1 {
        waits.sort_unstable();
        let at = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize].as_nanos() as f64 / 1000.0;
        print!("; p50 {:.1} us, p99 {:.1} us", at(0.5), at(0.99));
    }
    println!();
    first.get().expect("it is there").stop();
    second.get().expect("it is there").stop();
}

fn one_way(len: usize, group: usize, time: Duration) {
    let arrived = Arc::new(AtomicU64::new(0));
    let counted = arrived.clone();
    let count = transport::each(move |parcel: Parcel| {
        counted.fetch_add(parcel.bytes.len() as u64, Relaxed);
    });
    let [a, b] = pair([Box::new(|_| {}), count]);
    let bytes = Bytes::from(vec![1; len]);
    let (begun, cpu) = (Instant::now(), cpu_s());
    let mut sent = 0u64;
    while begun.elapsed() < time {
        if sent - arrived.load(Relaxed) > 8 << 20 {
            std::thread::yield_now();
            continue;
        }
        a.send_all((0..group).map(|_| Parcel { from: 1, to: 2, lane: 2, bytes: bytes.clone() }));
        sent += (group * len) as u64;
    }
    let (arrived, elapsed, cpu) = (arrived.load(Relaxed) as f64, begun.elapsed().as_secs_f64(), cpu_s() - cpu);
    println!(
        "one way, {len:>7} bytes, {group:>2} at a time: {:>9.0} a second, {:>7.1} MB/s, {:>6.2} us of CPU each",
        arrived / len as f64 / elapsed,
        arrived / 1e6 / elapsed,
        cpu * 1e6 / (arrived / len as f64)
    );
    a.stop();
    b.stop();
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(3.0);
    let time = Duration::from_secs_f64(seconds);
    round_trips(1, false, time);
    round_trips(1, true, time);
    round_trips(16, false, time);
    round_trips(64, false, time);
    round_trips(64, true, time);
    one_way(100, 1, time);
    one_way(100, 32, time);
    one_way(1 << 20, 1, time);
}
