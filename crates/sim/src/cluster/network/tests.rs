use super::{Class, End, Latency, Network, Trouble, Weather};
use crate::rng::Rng;

const A: End = End::Machine(0);
const B: End = End::Machine(1);

fn network() -> (Network, Rng) {
    let weather = Weather { latency: Latency::ConstantUs(1), ..Weather::default() };
    (Network::new(weather), Rng::new(1))
}

#[test]
fn a_cut_is_one_way_and_mended_by_its_number() {
    let (mut network, mut rng) = network();
    let mut passes =
        |network: &mut Network, pair| network.carry(0, pair, Class::Normal, 1, &mut rng).first_ns.is_some();
    let first = network.suffer(Trouble::Cut(vec![(A, B)]));
    let second = network.suffer(Trouble::Cut(vec![(A, B), (B, A)]));
    assert!(!passes(&mut network, (A, B)) && !passes(&mut network, (B, A)));
    network.mend(second);
    assert!(!passes(&mut network, (A, B)) && passes(&mut network, (B, A)), "the other cut still holds");
    network.mend(first);
    assert!(passes(&mut network, (A, B)));
}

#[test]
fn a_slow_link_queues_by_class() {
    let (mut network, mut rng) = network();
    network.suffer(Trouble::Slow(A, B, 8));
    let mut arrives = |pair, class| network.carry(0, pair, class, 940, &mut rng).first_ns.unwrap();
    // 1000 bytes with their headers at 8 kilobits per second: a second each.
    assert_eq!(arrives((A, B), Class::Bulk), 1_000_001_000);
    assert_eq!(arrives((A, B), Class::Bulk), 2_000_001_000);
    assert_eq!(arrives((A, B), Class::Urgent), 1_000_001_000, "it overtakes");
    assert_eq!(arrives((B, A), Class::Bulk), 1_000, "the other way is fast");
    for _ in 0..4 {
        arrives((A, B), Class::Bulk);
    }
    assert_eq!(network.carry(0, (A, B), Class::Bulk, 940, &mut rng).first_ns, None, "the queue is full");
}

#[test]
fn messages_are_lost_and_come_twice_as_often_as_said() {
    let weather = Weather { loss_percent: 20, twice_percent: 30, late_percent: 50, late_ms: 100, ..Weather::default() };
    let (mut network, mut rng) = (Network::new(weather), Rng::new(3));
    let all: Vec<_> = (0..10_000).map(|_| network.carry(0, (A, B), Class::Normal, 1, &mut rng)).collect();
    let lost = all.iter().filter(|a| a.first_ns.is_none()).count();
    let twice = all.iter().filter(|a| a.second_ns.is_some()).count();
    let reordered = all.windows(2).filter(|pair| pair[1].first_ns < pair[0].first_ns).count();
    assert!((1_800..2_200).contains(&lost) && (2_100..2_700).contains(&twice) && reordered > 2_000);
    network.heal();
    assert!((0..1_000).all(|_| network.carry(0, (A, B), Class::Normal, 1, &mut rng).first_ns.is_some()));
}
