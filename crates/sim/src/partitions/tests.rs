use super::{Costs, Kind, Outcome, Protocol, Setup, Shape, judge, measure, measure_with};
use crate::cluster::{Latency, Model};

fn setup(protocol: Protocol, partitions: usize, shapes: Vec<Shape>) -> Setup {
    Setup {
        partitions,
        protocol,
        replicas: 1,
        consistency: node::Consistency::Token,
        uncertainty: node::Uncertainty::Dynamic,
        clients_each: 2,
        homes: (0..partitions).collect(),
        shapes,
        pause_us: 0,
        latency: Latency::ConstantUs(70),
        model: Model {
            cores: 1,
            message_us: 40,
            kilobyte_us: 0,
            sync_us: (6_700, 6_700),
            slow_syncs_percent: 0,
            backlog: 10_000,
        },
        costs: Costs { update_ns: 40_000, timestamp_ns: 15_625, further_ns: 0 },
        clock_offsets_us: Vec::new(),
        clock_error_us: 1_000,
        ramp_up_ns: 50_000_000,
        length_ns: 200_000_000,
        dies: None,
        seed: 1,
    }
}

const READS: Shape = Shape::ReadBlocks { items: 8_000, block: 8, partitions: 1 };
const UPDATES: Shape = Shape::Update { items: 8_000, writes: 8, partitions: 1 };

fn mean_us(outcome: &Outcome, kind: Kind) -> u64 {
    let took: Vec<u64> = outcome.ended.iter().filter(|e| e.kind == kind && e.committed).map(|e| e.took_ns).collect();
    assert!(took.len() > 20, "{}", took.len());
    took.iter().sum::<u64>() / took.len() as u64 / 1_000
}

#[test]
fn one_seed_gives_one_outcome() {
    let run = |seed| measure(Setup { seed, ..setup(Protocol::Batched, 3, vec![READS, UPDATES]) }).unwrap();
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn an_oracle_costs_a_read_one_round_trip_and_an_update_two() {
    // One client of one partition: nobody else is in the way, but for what the brain says to itself.
    let alone =
        |shape: Shape| Setup { clients_each: 1, length_ns: 1_000_000_000, ..setup(Protocol::Ratchet, 1, vec![shape]) };
    let of = |protocol, shape, kind| mean_us(&measure(Setup { protocol, ..alone(shape) }).unwrap(), kind);
    let reads = [Protocol::Ratchet, Protocol::Oracle].map(|protocol| of(protocol, READS, Kind::Read));
    assert!((180..=185).contains(&reads[0]), "70 there, 40 of work, 70 back: {}", reads[0]);
    // Two ways of 70 us, the oracle's work, and the answer's.
    let more = reads[1] - reads[0];
    assert!((195..=200).contains(&more), "{more}");
    let updates = [Protocol::Ratchet, Protocol::Oracle].map(|protocol| of(protocol, UPDATES, Kind::Update));
    assert!(updates[0] > 6_700, "a sync is in it: {}", updates[0]);
    let more = updates[1] - updates[0];
    assert!((385..=415).contains(&more), "{more}");
}

#[test]
fn only_literal_waiting_waits_for_clocks() {
    let shape = vec![Shape::ReadBlocks { items: 8_000, block: 8, partitions: 2 }];
    // Transactions come to a clock that is 500 us behind theirs.
    let apart = |protocol| Setup { homes: vec![0], ..setup(protocol, 2, shape.clone()) };
    let offset = |protocol| Setup { clock_offsets_us: vec![250, -250], ..apart(protocol) };
    let (ratchet, literal) = (measure(offset(Protocol::Ratchet)).unwrap(), measure(offset(Protocol::Literal)).unwrap());
    assert_eq!(ratchet.clock_waits, 0);
    assert!(literal.clock_waits > 20 && literal.visits >= literal.clock_waits, "{literal:?}");
    let mean_wait_us = literal.clock_wait_ns / literal.clock_waits / 1_000;
    assert!((300..500).contains(&mean_wait_us), "less what it was on its way: {mean_wait_us}");
    let [literal_us, ratchet_us] = [&literal, &ratchet].map(|outcome| mean_us(outcome, Kind::Read));
    assert!(literal_us > ratchet_us + 300, "{literal_us} {ratchet_us}");
}

#[test]
fn without_its_oracle_nothing_commits_and_without_a_partition_the_others_go_on() {
    let dies = |protocol, machine| {
        let setup = Setup { dies: Some((machine, 100_000_000)), ..setup(protocol, 2, vec![READS]) };
        measure(setup).unwrap().ended.into_iter().filter(|e| e.at_ns > 101_000_000).collect::<Vec<_>>()
    };
    assert_eq!(dies(Protocol::Oracle, 2), []);
    let left = dies(Protocol::Ratchet, 1);
    assert!(left.len() > 100 && left.iter().all(|e| e.home == 0), "{}", left.len());
}

/// Few items, of which most are written at any time, by transactions over two partitions.
fn crowded(protocol: Protocol) -> Setup {
    let reads = Shape::ReadBlocks { items: 16, block: 8, partitions: 2 };
    let updates = Shape::Update { items: 16, writes: 4, partitions: 2 };
    let setup = setup(protocol, 3, vec![reads, updates]);
    Setup { clients_each: 4, clock_offsets_us: vec![300, -300, 0], length_ns: 1_000_000_000, ..setup }
}

#[test]
fn snapshots_are_whole_whoever_gives_the_timestamps() {
    for protocol in [Protocol::Ratchet, Protocol::Literal, Protocol::Oracle, Protocol::Batched] {
        let verdict = judge(crowded(protocol), None).unwrap();
        assert!(verdict.is_good(), "{protocol:?}: {verdict}");
    }
}

/// A reader that does not wait for what is prepared sees one partition's part of a transaction, and not the other's.
#[test]
fn torn_snapshots_are_seen() {
    let verdict = judge(crowded(Protocol::Ratchet), Some(|sabotage| sabotage.set_ignore_inflight(true))).unwrap();
    assert!(!verdict.is_good());
}

/// A read that meets what may have been committed before it began moves its snapshot up, or begins anew: what it gives in the end is of one snapshot.
#[test]
fn reads_that_met_uncertain_versions_are_whole() {
    let reads = Shape::ReadRounds { items: 16, block: 8, partitions: 2, rounds: 4 };
    let updates = Shape::Update { items: 16, writes: 2, partitions: 2 };
    let hybrid = |uncertainty| {
        let setup = setup(Protocol::Ratchet, 3, vec![reads.clone(), updates.clone()]);
        let model = Model { sync_us: (60, 300), ..setup.model.clone() };
        Setup { consistency: node::Consistency::Hybrid, uncertainty, clients_each: 4, pause_us: 3_000, model, ..setup }
    };
    let met = |uncertainty| {
        let all = measure(hybrid(uncertainty)).unwrap().ended;
        let of = |number: fn(&super::Uncertain) -> u64| all.iter().map(|e| number(&e.uncertain)).sum::<u64>();
        (of(|uncertain| uncertain.met), of(|uncertain| uncertain.began_anew))
    };
    let (fixed, dynamic) = (node::Uncertainty::Static(500_000), node::Uncertainty::Dynamic);
    let (moved, anew) = met(fixed);
    assert!(anew > 0 && moved > anew, "{moved} {anew}");
    for uncertainty in [fixed, dynamic] {
        let verdict = judge(hybrid(uncertainty), None).unwrap();
        assert!(verdict.is_good(), "{uncertainty:?}: {verdict}");
    }
}

/// Long reads among many writers, with a static offset: two partitions, twenty rounds.
fn long_reads() -> Setup {
    let reads = Shape::ReadRounds { items: 8, block: 8, partitions: 2, rounds: 20 };
    let updates = Shape::Update { items: 8, writes: 1, partitions: 1 };
    let setup = setup(Protocol::Ratchet, 2, vec![reads, updates.clone(), updates.clone(), updates]);
    let model = Model { cores: 4, message_us: 5, sync_us: (60, 300), ..setup.model.clone() };
    Setup {
        consistency: node::Consistency::Hybrid,
        uncertainty: node::Uncertainty::Static(500_000),
        clients_each: 4,
        pause_us: 1_000,
        length_ns: 1_000_000_000,
        model,
        ..setup
    }
}

/// Who begins anew keeps what he knows of those that he has met: each of two partitions is in the way once, however much is written meanwhile (decision 213).
#[test]
fn each_partition_makes_a_read_begin_anew_at_most_once() {
    let ended = measure(long_reads()).unwrap().ended;
    let reads: Vec<_> = ended.iter().filter(|e| e.kind == Kind::Read).collect();
    assert!(reads.len() > 20 && reads.iter().all(|e| e.committed), "{}", reads.len());
    assert!(reads.iter().any(|e| e.uncertain.began_anew > 0));
    assert!(reads.iter().all(|e| e.uncertain.met <= 2), "{reads:?}");
}

/// Who forgets it is tried as often as SQL tries a statement, and is given up then.
#[test]
fn a_read_that_begins_anew_as_if_for_the_first_time_is_given_up() {
    let ended = measure_with(long_reads(), Some(|sabotage| sabotage.set_forget_uncertainty(true))).unwrap().ended;
    let given_up: Vec<_> = ended.iter().filter(|e| e.kind == Kind::Read && !e.committed).collect();
    assert!(!given_up.is_empty());
    assert!(given_up.iter().all(|e| e.uncertain.began_anew + 1 == super::session::ATTEMPTS_MAX), "{given_up:?}");
    assert!(ended.iter().all(|e| e.uncertain.met_at_once_max <= 2), "each of two partitions once");
}
