//! The simulated machines and networks of the experiment, and how their service times were chosen.
//!
//! The document prints few of its costs: the round trip (0.14 ms), a synchronous write (6.7 ms), and that its oracle gives about 64,000 timestamps a second. Its
//! sentences fix the one that matters: reads cost mainly their messages, conventional SI sends and receives two where Clock-SI has one, and it meets
//! the oracle's ceiling at about five partitions. So a message costs 1/(2·64,000/5) s = 39 µs of a core: 40.

use crate::experiments::{Values, values};
use sim::cluster::{Latency, Model};
use sim::partitions::{Consistency, Costs, Kind, Outcome, Protocol, Setup, Shape, Uncertainty};

/// A millisecond.
pub const MS: u64 = 1_000_000;
/// One way in the LAN, microseconds: 0.14 ms there and back, give or take 20 %.
pub const LAN: Latency = Latency::UniformUs(56, 84);
/// Figure 2.4's partitions; the oracle stands with the first.
pub const WAN_SITES: [&str; 3] = ["US West", "US East", "Europe"];
/// Round trips between them, milliseconds: CA, VA and IR of table 3.3, as the document measured them for its chapter 3.
pub const WAN_ROUND_TRIPS_MS: [[u64; 3]; 3] = [[0, 83, 170], [83, 0, 101], [170, 101, 0]];
/// One way inside a site, microseconds (004 section 3.6.2: about 0.6 ms there and back).
const SITE_US: u64 = 300;

/// What a machine, a message, a sync and a timestamp cost.
pub fn base() -> Setup {
    Setup {
        partitions: 1,
        protocol: Protocol::Ratchet,
        replicas: 1,
        consistency: Consistency::Token,
        uncertainty: Uncertainty::Dynamic,
        clients_each: 1,
        homes: Vec::new(),
        shapes: Vec::new(),
        pause_us: 0,
        latency: LAN,
        model: Model {
            cores: 1,
            message_us: 40,
            kilobyte_us: 0,
            sync_us: (6_700, 6_700),
            slow_syncs_percent: 0,
            backlog: 100_000,
        },
        // 64,000 timestamps a second; a further one of a batch is a number in a message. An update costs as much again as its message.
        costs: Costs { update_ns: 40_000, timestamp_ns: 15_625, further_ns: 100 },
        clock_offsets_us: Vec::new(),
        clock_error_us: 2_000,
        ramp_up_ns: 20 * MS,
        length_ns: 100 * MS,
        dies: None,
        seed: 0,
    }
}

/// Partitions in one LAN, each with clients.
pub fn lan(protocol: Protocol, partitions: usize, shapes: Vec<Shape>, seed: u64) -> Setup {
    Setup { partitions, protocol, homes: (0..partitions).collect(), shapes, seed, ..base() }
}

/// Three partitions in three sites, with clients at one of them.
pub fn wan(protocol: Protocol, home: usize, shape: Shape, scale: u64, seed: u64) -> Setup {
    let one_way = |ms: u64| if ms == 0 { SITE_US } else { ms * 500 };
    let sites = WAN_ROUND_TRIPS_MS.map(|row| row.map(one_way).to_vec()).to_vec();
    Setup {
        partitions: 3,
        homes: vec![home],
        clients_each: 4,
        shapes: vec![shape],
        latency: Latency::MatrixUs { sites, jitter_percent: 4 },
        ramp_up_ns: 500 * MS,
        length_ns: 2_000 * scale * MS,
        ..lan(protocol, 3, Vec::new(), seed)
    }
}

/// Steps of a distribution.
pub const QUANTILES: u32 = 20;

/// Rate and latencies of one kind.
pub fn numbers(outcome: &Outcome, kind: Kind, length_ns: u64) -> Values {
    let of_kind = || outcome.ended.iter().filter(move |e| e.kind == kind);
    let mut took_ms: Vec<f64> = of_kind().filter(|e| e.committed).map(|e| e.took_ns as f64 / 1e6).collect();
    took_ms.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let last = took_ms.len().saturating_sub(1);
        took_ms.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
    };
    let count = took_ms.len() as f64;
    let mut all = values([
        ("committed", count),
        ("aborted", of_kind().filter(|e| !e.committed).count() as f64),
        ("per_second", count / (length_ns as f64 / 1e9)),
        ("mean_ms", took_ms.iter().sum::<f64>() / count.max(1.0)),
        ("p95_ms", at(0.95)),
        ("p99_ms", at(0.99)),
    ]);
    for n in 0..=QUANTILES {
        all.insert(format!("q{n:02}_ms"), at(f64::from(n) / f64::from(QUANTILES)));
    }
    all
}
