//! Known-bad histories, one per anomaly: the checker must find each, and nothing in the good ones.
//!
//! One line per transaction: `name session isolation recency began-ended @position outcome : ops`, where an op is `r key@snapshot=id`
//! (0: nothing there), `w key=id`, or `scan from-to@snapshot=key:id,...`. A value's amount is its id.

use checker::bank::Bank;
use checker::storage::{Stored, settle};
use checker::{Action, Anomaly, History, Isolation, Op, Outcome, Promises, Recency, Txn, Value, Verdict, judge};

fn value(id: u64) -> Value {
    Value { id, amount: id.cast_signed() }
}

fn pair(text: &str, by: char) -> (u64, u64) {
    let (a, b) = text.split_once(by).unwrap();
    (a.parse().unwrap(), b.parse().unwrap())
}

fn action(text: &str) -> Action {
    let (what, rest) = text.split_once(' ').unwrap();
    let (place, found) = rest.split_once('=').unwrap();
    match what {
        "w" => Action::Write { key: place.parse().unwrap(), value: value(found.parse().unwrap()) },
        "r" => {
            let (key, snapshot) = pair(place, '@');
            let id: u64 = found.parse().unwrap();
            Action::Read { key, snapshot: Some(snapshot), found: (id != 0).then(|| value(id)) }
        }
        "scan" => {
            let (span, snapshot) = place.split_once('@').unwrap();
            let (from, to) = pair(span, '-');
            let rows = found.split(',').filter(|row| !row.is_empty()).map(|row| pair(row, ':'));
            let found = rows.map(|(key, id)| (key, value(id))).collect();
            Action::Scan { from, to, snapshot: Some(snapshot.parse().unwrap()), found }
        }
        other => panic!("unknown op {other}"),
    }
}

fn txn(line: &str) -> Txn {
    let (head, ops) = line.split_once(':').unwrap();
    let head: Vec<&str> = head.split_whitespace().collect();
    let [name, session, isolation, recency, time, position, outcome] = head[..] else { panic!("{line}") };
    let (began, ended) = pair(time, '-');
    let ops = ops.split(';').map(str::trim).filter(|op| !op.is_empty());
    Txn {
        id: name[1..].parse().unwrap(),
        session: session[1..].parse().unwrap(),
        isolation: match isolation {
            "ser" => Isolation::Serializable,
            "si" => Isolation::Snapshot,
            _ => Isolation::ReadCommitted,
        },
        recency: match recency {
            "strict" => Recency::Strict,
            "hybrid" => Recency::Hybrid,
            "token" => Recency::Token,
            _ => Recency::Any,
        },
        began,
        ended,
        outcome: match outcome {
            "ok" => Outcome::Committed,
            "no" => Outcome::Aborted,
            _ => Outcome::Unknown,
        },
        position: position[1..].parse().unwrap(),
        ops: ops.map(|op| Op { began, action: action(op) }).collect(),
    }
}

fn history(text: &str) -> History {
    History { txns: text.lines().map(str::trim).filter(|l| !l.is_empty()).map(txn).collect() }
}

fn verdict(text: &str) -> Verdict {
    judge(&history(text), &Promises { bounds_hold: true, bank: None })
}

#[track_caller]
fn finds(kind: Anomaly, text: &str) {
    let verdict = verdict(text);
    assert!(verdict.has(kind), "expected {kind}, found:\n{verdict}");
}

#[track_caller]
fn good(text: &str) {
    let verdict = verdict(text);
    assert!(verdict.is_good(), "found:\n{verdict}");
}

#[test]
fn good_histories_pass() {
    good("");
    good(
        "T1 s1 ser strict 10-20 @15 ok : r 1@11=0; w 1=101; w 2=102
         T2 s2 ser strict 21-40 @35 ok : r 1@22=101; r 2@22=102; w 1=201
         T3 s1 si hybrid 22-25 @23 ok : scan 1-3@23=1:101,2:102
         T4 s3 rc token 41-50 @45 ok : r 1@41=201; w 2=402
         T5 s3 ser any 51-52 @5 no : w 1=501",
    );
    // Write skew is allowed to snapshot isolation.
    good(
        "T1 s1 si token 10-20 @15 ok : r 1@11=0; r 2@11=0; w 1=101
         T2 s2 si token 10-20 @16 ok : r 1@11=0; r 2@11=0; w 2=202",
    );
    // A later statement of READ COMMITTED sees a later snapshot.
    good(
        "T1 s1 rc token 10-40 @30 ok : r 1@11=0; r 1@25=201; w 3=103
         T2 s2 ser token 12-22 @20 ok : w 1=201",
    );
    // Stale reads may be stale.
    good(
        "T1 s1 ser strict 10-20 @15 ok : w 1=101
         T2 s2 ser any 30-31 @5 ok : r 1@5=0",
    );
}

#[test]
fn g0_dirty_write() {
    // With one timestamp for each transaction, writes in opposite orders show as one timestamp for two (or half applied).
    let mut h = history(
        "T1 s1 rc any 10-20 @15 ok : w 1=101
         T2 s2 rc any 10-20 @16 ok : w 1=201; w 2=202
         T3 s3 rc any 10-20 @17 ok : w 2=302",
    );
    h.txns[0].ops.push(Op { began: 10, action: action("w 2=102") });
    assert!(judge(&h, &Promises { bounds_hold: true, bank: None }).is_good());
    finds(
        Anomaly::SameTimestamp,
        "T1 s1 rc any 10-20 @15 ok : w 1=101
         T2 s2 rc any 10-20 @15 ok : w 1=201",
    );
}

#[test]
fn g1a_aborted_read() {
    finds(
        Anomaly::G1a,
        "T1 s1 ser token 10-20 @15 no : w 1=101
         T2 s2 ser token 10-20 @16 ok : r 1@16=101",
    );
}

#[test]
fn g1b_intermediate_read() {
    finds(
        Anomaly::G1b,
        "T1 s1 ser token 10-20 @15 ok : w 1=101; w 1=102
         T2 s2 ser token 10-20 @16 ok : r 1@16=101",
    );
}

#[test]
fn g1c_circular_information() {
    finds(
        Anomaly::G1c,
        "T1 s1 rc any 10-20 @15 ok : w 1=101; r 2@16=202
         T2 s2 rc any 10-20 @16 ok : w 2=202; r 1@15=101",
    );
}

#[test]
fn g_single_read_skew() {
    let text = "T1 s1 si token 10-20 @14 ok : r 1@11=0; r 2@13=202
         T2 s2 si token 10-20 @13 ok : w 1=201; w 2=202";
    finds(Anomaly::GSingle, text);
    finds(Anomaly::TwoSnapshots, text);
}

#[test]
fn g2_write_skew() {
    finds(
        Anomaly::G2,
        "T1 s1 ser token 10-20 @15 ok : r 1@11=0; r 2@11=0; w 1=101
         T2 s2 ser token 10-20 @16 ok : r 1@11=0; r 2@11=0; w 2=202",
    );
    // The same through a span: a phantom.
    finds(
        Anomaly::G2,
        "T1 s1 ser token 10-20 @15 ok : scan 1-9@11=; w 1=101
         T2 s2 ser token 10-20 @16 ok : scan 1-9@11=; w 2=202",
    );
}

#[test]
fn the_read_only_anomaly() {
    // Fekete, O'Neil, O'Neil: without T3 the order T2, T1 explains it; T3 saw T1 and not T2.
    let pair = "T1 s1 ser token 10-20 @15 ok : r 2@11=0; w 2=102
         T2 s2 ser token 10-40 @35 ok : r 1@11=0; r 2@11=0; w 1=201";
    good(pair);
    finds(Anomaly::G2, &format!("{pair}\n T3 s3 ser token 21-25 @22 ok : r 1@22=0; r 2@22=102"));
}

#[test]
fn lost_update() {
    finds(
        Anomaly::LostUpdate,
        "T1 s1 si token 10-20 @15 ok : r 1@11=0; w 1=101
         T2 s2 si token 10-20 @16 ok : r 1@11=0; w 1=201",
    );
}

#[test]
fn torn_snapshots() {
    finds(
        Anomaly::TornSnapshot,
        "T1 s1 ser token 10-20 @15 ok : w 1=101; w 2=102
         T2 s2 rc token 10-20 @16 ok : r 1@16=101; r 2@16=0",
    );
    finds(
        Anomaly::TornSnapshot,
        "T1 s1 ser token 10-20 @15 ok : w 1=101
         T2 s2 rc token 10-20 @14 ok : r 1@14=101",
    );
}

#[test]
fn garbage() {
    finds(Anomaly::Garbage, "T1 s1 ser token 10-20 @15 ok : r 1@11=999");
    finds(
        Anomaly::Garbage,
        "T1 s1 ser token 10-20 @15 ok : w 1=101
         T2 s2 ser token 10-20 @16 ok : r 2@16=101",
    );
    finds(Anomaly::Garbage, "T1 s1 ser token 10-20 @15 ok : w 1=101; r 1@11=0");
}

#[test]
fn recency() {
    // Acknowledged at 20, not seen by one that began at 30.
    let stale = "T1 s1 ser token 10-20 @15 ok : w 1=101
         T2 s2 ser hybrid 30-40 @12 ok : r 1@12=0";
    finds(Anomaly::StaleRead, stale);
    let lying = Promises { bounds_hold: false, bank: None };
    assert!(judge(&history(stale), &lying).is_good());
    // Another key: hybrid may be ordered before, strict may not (the causal reverse of yugabyte#11270).
    good(
        "T1 s1 ser hybrid 10-20 @50 ok : w 1=101
         T2 s2 ser hybrid 30-40 @45 ok : w 2=202",
    );
    finds(
        Anomaly::RealTime,
        "T1 s1 ser strict 10-20 @50 ok : w 1=101
         T2 s2 ser strict 30-40 @45 ok : w 2=202",
    );
}

#[test]
fn sessions() {
    finds(
        Anomaly::Session,
        "T1 s1 ser token 10-20 @15 ok : w 1=101
         T2 s1 ser token 30-40 @12 ok : r 1@12=0",
    );
    finds(
        Anomaly::Session,
        "T1 s2 ser token 10-20 @15 ok : w 1=101
         T2 s1 ser token 21-22 @16 ok : r 1@16=101
         T3 s1 ser token 30-40 @12 ok : r 1@12=0",
    );
}

/// A session that was never told of its commit has no token of it.
#[test]
fn a_session_knows_nothing_of_an_outcome_that_was_settled_later() {
    let text = format!(
        "T1 s1 ser token 10-{} @15 ok : w 1=101
         T2 s1 ser token 30-40 @12 ok : r 1@12=0",
        u64::MAX
    );
    let promises = Promises { bounds_hold: false, bank: None };
    assert!(!judge(&history(&text), &promises).has(Anomaly::Session));
}

#[test]
fn the_bank_loses_money() {
    let promises = Promises { bounds_hold: true, bank: Some(Bank { accounts: 1..3, total: 203 }) };
    let text = "T1 s1 ser token 1-2 @1 ok : w 1=101; w 2=102
         T2 s1 ser token 3-4 @3 ok : scan 1-3@3=1:101,2:102";
    assert!(judge(&history(text), &promises).is_good());
    let torn = format!("{text}\n T3 s2 ser token 5-6 @5 ok : scan 1-3@5=1:101");
    assert!(judge(&history(&torn), &promises).has(Anomaly::Bank));
}

#[test]
fn storage_settles_and_accuses() {
    let mut h = history(
        "T1 s1 ser token 1-2 @10 ok : w 1=101; w 2=102
         T2 s1 ser token 3-4 @20 no : w 1=201
         T3 s2 ser token 3-9 @0 unknown : w 3=303; w 4=304
         T4 s3 ser token 3-9 @0 unknown : w 5=405",
    );
    let mut stored = Stored::default();
    for (key, at, id) in [(1, 10, 101), (2, 10, 102), (3, 30, 303), (4, 30, 304)] {
        stored.versions.entry(key).or_default().push((at, id));
    }
    let mut verdict = Verdict::default();
    settle(&mut h, &stored, &mut verdict);
    assert!(verdict.is_good(), "{verdict}");
    assert_eq!((h.txns[2].outcome, h.txns[2].position), (Outcome::Committed, 30));
    assert_eq!(h.txns[3].outcome, Outcome::Aborted);

    let again = |change: &dyn Fn(&mut History, &mut Stored)| {
        let (mut h, mut stored, mut verdict) = (h.clone(), stored.clone(), Verdict::default());
        h.txns[2].outcome = Outcome::Unknown;
        change(&mut h, &mut stored);
        settle(&mut h, &stored, &mut verdict);
        verdict
    };
    assert!(again(&|_, s| drop(s.versions.remove(&2))).has(Anomaly::LostWrite));
    assert!(again(&|_, s| drop(s.versions.remove(&4))).has(Anomaly::HalfApplied));
    assert!(again(&|_, s| s.versions.entry(1).or_default().push((20, 201))).has(Anomaly::HalfApplied));
    // Collected below a newer version: fine.
    let collected = again(&|h, s| {
        s.collected = 15;
        s.versions.insert(2, vec![(14, 900)]);
        h.txns.push(txn("T9 s9 ser token 5-6 @14 ok : w 2=900"));
    });
    assert!(collected.is_good(), "{collected}");
}
