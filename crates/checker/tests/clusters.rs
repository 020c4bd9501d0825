//! Hand-made histories of many machines: the good pass, each bad one is named.

use checker::leases::Leases;
use checker::leftovers::{self, Held};
use checker::linear::{self, Act, Linear, Op};
use checker::replicas::Replicas;
use checker::{Anomaly, Outcome, Verdict, shown};
use std::collections::BTreeMap;

fn op(id: u64, called: u64, returned: u64, act: Act) -> Op {
    Op { id, called, returned: (returned > 0).then_some(returned), act }
}

fn is_linear(ops: &[Op]) -> bool {
    match linear::judge(ops, 100_000) {
        Linear::Yes => true,
        Linear::No(_) => false,
        Linear::GaveUp => panic!("gave up"),
    }
}

fn swap(from: u64, to: u64, done: Option<bool>) -> Act {
    Act::Swap { from: Some(from), to, done }
}

#[test]
fn what_overlaps_may_stand_in_any_order() {
    assert!(is_linear(&[]));
    assert!(is_linear(&[
        op(1, 0, 10, Act::Write(1)),
        op(2, 5, 15, Act::Read(None)),
        op(3, 20, 30, Act::Read(Some(1)))
    ]));
    assert!(is_linear(&[op(1, 0, 10, Act::Write(1)), op(2, 5, 15, Act::Read(Some(1)))]));
    // Of one time: it may have overlapped.
    assert!(is_linear(&[op(1, 0, 10, Act::Write(1)), op(2, 10, 15, Act::Read(None))]));
    assert!(is_linear(&[
        op(1, 0, 10, Act::Write(1)),
        op(2, 11, 20, swap(1, 2, Some(true))),
        op(3, 11, 20, swap(1, 3, Some(false))),
        op(4, 21, 22, Act::Read(Some(2))),
    ]));
}

#[test]
fn stale_reads_and_two_winners_are_found() {
    assert!(!is_linear(&[op(1, 0, 10, Act::Write(1)), op(2, 11, 15, Act::Read(None))]));
    // A new value, then the old one again.
    assert!(!is_linear(&[
        op(1, 0, 10, Act::Write(1)),
        op(2, 11, 100, Act::Write(2)),
        op(3, 20, 30, Act::Read(Some(2))),
        op(4, 40, 50, Act::Read(Some(1))),
    ]));
    assert!(!is_linear(&[
        op(1, 0, 10, Act::Write(1)),
        op(2, 11, 20, swap(1, 2, Some(true))),
        op(3, 11, 20, swap(1, 3, Some(true))),
    ]));
    assert!(!is_linear(&[op(1, 0, 10, Act::Write(1)), op(2, 11, 12, Act::Read(Some(9)))]));
}

#[test]
fn what_was_never_answered_happens_at_any_time_or_never() {
    let unknown = op(1, 0, 0, Act::Write(1));
    assert!(is_linear(&[unknown, op(2, 10, 20, Act::Read(None))]));
    assert!(is_linear(&[unknown, op(2, 10, 20, Act::Read(None)), op(3, 30, 40, Act::Read(Some(1)))]));
    assert!(!is_linear(&[unknown, op(2, 10, 20, Act::Read(Some(1))), op(3, 30, 40, Act::Read(None)),]));
    // It happens once: a write that comes again after another is found.
    assert!(!is_linear(&[
        unknown,
        op(2, 10, 20, Act::Read(Some(1))),
        op(3, 30, 40, Act::Write(2)),
        op(4, 50, 60, Act::Read(Some(1))),
    ]));
    let swap = op(5, 0, 0, swap(2, 3, None));
    assert!(is_linear(&[swap, op(1, 0, 10, Act::Write(2)), op(2, 20, 30, Act::Read(Some(3)))]));
    assert!(is_linear(&[swap, op(1, 0, 10, Act::Write(2)), op(2, 20, 30, Act::Read(Some(2)))]));
}

/// Against all orders, tried one by one.
#[test]
fn the_search_agrees_with_a_dumb_one() {
    fn dumb(ops: &[Op], done: &mut Vec<usize>, held: Option<u64>) -> bool {
        if (0..ops.len()).all(|n| done.contains(&n) || ops[n].returned.is_none()) {
            return true;
        }
        for n in (0..ops.len()).filter(|n| !done.contains(n)).collect::<Vec<_>>() {
            let first = |m: usize| done.contains(&m) || m == n || ops[m].returned.is_none_or(|r| r >= ops[n].called);
            let after = match ops[n].act {
                Act::Read(found) if found != held => continue,
                Act::Read(_) => held,
                Act::Write(value) => Some(value),
                Act::Swap { from, done: said, .. } if said.is_some_and(|said| said != (from == held)) => continue,
                Act::Swap { from, to, .. } => {
                    if from == held {
                        Some(to)
                    } else {
                        held
                    }
                }
            };
            if (0..ops.len()).all(first) {
                done.push(n);
                if dumb(ops, done, after) {
                    return true;
                }
                done.pop();
            }
        }
        false
    }
    let mut random = 7_u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut found = [0; 2];
    for _ in 0..3_000 {
        let ops: Vec<Op> = (0..6)
            .map(|id| {
                let called = draw(30);
                let returned = if draw(5) == 0 { 0 } else { called + 1 + draw(12) };
                let value = |n: u64| (n > 0).then_some(n);
                let act = match draw(3) {
                    0 if returned > 0 => Act::Read(value(draw(4))),
                    1 => {
                        Act::Swap { from: value(draw(4)), to: 1 + draw(3), done: (returned > 0).then(|| draw(2) == 0) }
                    }
                    _ => Act::Write(1 + draw(3)),
                };
                op(id, called, returned, act)
            })
            .collect();
        let expected = dumb(&ops, &mut Vec::new(), None);
        assert_eq!(is_linear(&ops), expected, "{ops:?}");
        found[usize::from(expected)] += 1;
    }
    assert!(found[0] > 300 && found[1] > 300, "{found:?}");
}

#[test]
fn the_search_gives_up_at_its_bound() {
    let mut ops: Vec<Op> = (0..20).map(|id| op(id, 0, 100, Act::Write(id + 1))).collect();
    ops.push(op(99, 200, 201, Act::Read(Some(99))));
    assert_eq!(linear::judge(&ops, 10_000), Linear::GaveUp);
}

#[test]
fn leases_must_not_share_timestamps() {
    let noted = |all: &[(u64, (u64, u64), u64)], released: Option<u64>| {
        let (mut leases, mut verdict) = (Leases::default(), Verdict::default());
        for (term, lease, used) in all {
            leases.note((1, *term, *term), *lease, *used, &mut verdict);
            if released == Some(*term) {
                leases.released(1, *term);
            }
        }
        verdict.has(Anomaly::SharedLease)
    };
    assert!(!noted(&[(1, (0, 10), 5), (1, (0, 20), 15), (2, (20, 30), 21)], None));
    assert!(noted(&[(1, (0, 20), 15), (2, (19, 30), 0)], None));
    assert!(noted(&[(2, (19, 30), 0), (1, (0, 20), 15)], None), "in whatever order they are heard of");
    assert!(!noted(&[(1, (0, 20), 15), (2, (15, 30), 16)], Some(1)));
    assert!(noted(&[(1, (0, 20), 15), (2, (14, 30), 16)], Some(1)));
    assert!(noted(&[(1, (0, 20), 21)], None));
    assert!(noted(&[(1, (0, 20), 0), (1, (3, 20), 0)], None), "its start does not move");
}

#[test]
fn equal_logs_make_equal_states() {
    let (mut replicas, mut verdict) = (Replicas::default(), Verdict::default());
    replicas.note(1, 5, 1, 77, &mut verdict);
    replicas.note(1, 5, 2, 77, &mut verdict);
    replicas.note(1, 6, 2, 78, &mut verdict);
    replicas.note(2, 5, 3, 99, &mut verdict);
    assert!(verdict.is_good());
    replicas.note(1, 6, 1, 79, &mut verdict);
    assert!(verdict.has(Anomaly::Diverged));
}

#[test]
fn rule_one_and_leftovers() {
    let mut verdict = Verdict::default();
    shown::judge("a write", 10, 10, &mut verdict);
    leftovers::judge("a replica", Held::default(), &mut verdict);
    assert!(verdict.is_good());
    shown::judge("a write", 11, 10, &mut verdict);
    leftovers::judge("a replica", Held { locks: 0, prepares: 1, outcomes: 2 }, &mut verdict);
    assert!(verdict.has(Anomaly::ShownEarly) && verdict.found.len() == 3);
}

mod lists {
    use super::{Anomaly, BTreeMap, Outcome, Verdict};
    use checker::appends::{Promises, Step, Txn, judge};

    fn txn(id: u64, began: u64, ended: u64, steps: Vec<Step>) -> Txn {
        Txn { id, began, ended, outcome: Outcome::Committed, steps }
    }
    fn append(key: u64, value: u64) -> Step {
        Step::Append(key, value)
    }
    fn read(key: u64, found: &[u64]) -> Step {
        Step::Read(key, found.to_vec())
    }
    fn judged(txns: &[Txn], last: &[(u64, &[u64])]) -> Verdict {
        let last: BTreeMap<u64, Vec<u64>> = last.iter().map(|(key, list)| (*key, list.to_vec())).collect();
        judge(txns, &last, Promises { real_time: true })
    }

    #[test]
    fn a_good_history_passes() {
        let txns = [
            txn(1, 0, 10, vec![append(1, 1), append(2, 2), append(1, 3), read(1, &[1, 3])]),
            txn(2, 5, 20, vec![read(1, &[1, 3]), append(2, 4)]),
            txn(3, 21, 30, vec![read(2, &[2, 4]), read(1, &[1, 3])]),
            Txn { outcome: Outcome::Aborted, ..txn(4, 0, 50, vec![append(1, 9)]) },
            Txn { outcome: Outcome::Unknown, ..txn(5, 0, u64::MAX, vec![append(1, 8)]) },
        ];
        assert_eq!(judged(&txns, &[(1, &[1, 3, 8]), (2, &[2, 4])]), Verdict::default());
    }

    #[test]
    fn lost_refused_doubled_and_halved_ones_are_found() {
        let one = [txn(1, 0, 10, vec![append(1, 1), append(2, 2)])];
        assert!(judged(&one, &[(1, &[1])]).has(Anomaly::LostWrite));
        assert!(judged(&one, &[(1, &[1, 1]), (2, &[2])]).has(Anomaly::AppliedTwice));
        let with = |outcome| [Txn { outcome, ..one[0].clone() }];
        assert!(judged(&with(Outcome::Aborted), &[(1, &[1])]).has(Anomaly::HalfApplied));
        assert!(judged(&with(Outcome::Unknown), &[(1, &[1])]).has(Anomaly::HalfApplied));
        assert!(judged(&with(Outcome::Unknown), &[(1, &[1]), (2, &[2])]).is_good());
    }

    #[test]
    fn wrong_reads_are_found() {
        let writes = txn(1, 0, 10, vec![append(1, 1), append(1, 2)]);
        let reads = |found: &[u64]| judged(&[writes.clone(), txn(2, 0, 10, vec![read(1, found)])], &[(1, &[1, 2])]);
        assert!(reads(&[]).is_good() && reads(&[1, 2]).is_good());
        assert!(reads(&[1]).has(Anomaly::G1b));
        assert!(reads(&[2]).has(Anomaly::TornSnapshot));
        assert!(reads(&[1, 2, 7]).has(Anomaly::Garbage));
        let aborted = Txn { outcome: Outcome::Aborted, ..writes.clone() };
        assert!(judged(&[aborted, txn(2, 0, 9, vec![read(1, &[1, 2])])], &[]).has(Anomaly::G1a));
        assert!(judged(&[txn(1, 0, 9, vec![append(1, 1), read(1, &[])])], &[(1, &[1])]).has(Anomaly::Garbage));
    }

    #[test]
    fn cycles_are_found() {
        // Write skew: each misses what the other wrote.
        let skew = [txn(1, 0, 10, vec![read(1, &[]), append(2, 2)]), txn(2, 0, 10, vec![read(2, &[]), append(1, 1)])];
        assert!(judged(&skew, &[(1, &[1]), (2, &[2])]).has(Anomaly::G2));
        let crossed = [txn(1, 0, 9, vec![append(1, 1), append(2, 2)]), txn(2, 0, 9, vec![append(1, 3), append(2, 4)])];
        assert!(judged(&crossed, &[(1, &[1, 3]), (2, &[4, 2])]).has(Anomaly::G0));
        let seen = [txn(1, 0, 9, vec![append(1, 1), read(2, &[2])]), txn(2, 0, 9, vec![append(2, 2), read(1, &[1])])];
        assert!(judged(&seen, &[(1, &[1]), (2, &[2])]).has(Anomaly::G1c));
    }

    #[test]
    fn what_was_acknowledged_before_is_seen() {
        let stale = [txn(1, 0, 10, vec![append(1, 1)]), txn(2, 11, 20, vec![read(1, &[])])];
        assert!(judged(&stale, &[(1, &[1])]).has(Anomaly::RealTime));
        let lasting = [txn(1, 0, 10, vec![append(1, 1)]), txn(2, 10, 20, vec![read(1, &[])])];
        assert!(judged(&lasting, &[(1, &[1])]).is_good(), "they may have overlapped");
        // Through another key: nothing of the first is read by the third.
        let causal = [
            txn(1, 0, 10, vec![append(1, 1)]),
            txn(2, 11, 20, vec![append(2, 2)]),
            txn(3, 5, 30, vec![read(1, &[]), read(2, &[2])]),
        ];
        assert!(judged(&causal, &[(1, &[1]), (2, &[2])]).has(Anomaly::RealTime));
        let last: BTreeMap<u64, Vec<u64>> = [(1, vec![1]), (2, vec![2])].into();
        assert!(judge(&causal, &last, Promises { real_time: false }).is_good());
    }
}
