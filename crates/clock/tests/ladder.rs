//! Golden script of the ladder: `tests/golden/ladder.txt`. `BLESS=1 cargo test -p timeball-clock` rewrites it.

use clock::{Ladder, LadderLimits, Level, PROOF_PEERS_MAX, Reading, Status};
use std::fmt::Write;

const S: f64 = 1e9;

fn reading(at_s: f64, status: Status, error_ms: f64) -> Reading {
    let mut r = Reading::with_error(1_800_000_000 * S as u64, (error_ms * 1e6) as u64);
    (r.now_ns, r.as_of_ns, r.status) = ((at_s * S) as u64, (at_s * S) as u64, status);
    r
}

fn run(ladder: &mut Ladder, words: &[&str]) -> String {
    let number = |s: &str| s.parse::<f64>().expect("a number");
    let stepped = |ladder: &mut Ladder, r: &Reading| match ladder.step(r, 0) {
        Some(change) => change.to_string(),
        None => format!("stays {}: {}", ladder.level(), ladder.reason()),
    };
    match words {
        ["read", t, status, e] => {
            let all = [Status::Unknown, Status::Synchronized, Status::FreeRunning, Status::Disrupted];
            let status = all.into_iter().find(|s| s.name() == *status).expect("a status");
            stepped(ladder, &reading(number(t), status, number(e)))
        }
        ["void", t] => {
            let mut r = reading(number(t), Status::Unknown, 1.0);
            (r.as_of_ns, r.void_after_ns) = (1_000_000_000, 2_000_000_000);
            stepped(ladder, &r)
        }
        ["accuse", t, peer, gap] => {
            ladder.accuse(number(peer) as u64, (number(gap) * 1e6) as u64, (number(t) * S) as u64);
            String::new()
        }
        ["back", t, seconds] => {
            let r = reading(number(t), Status::Synchronized, 1.0);
            match ladder.step(&r, (number(seconds) * S) as u64) {
                Some(change) => change.to_string(),
                None => format!("stays {}: {}", ladder.level(), ladder.reason()),
            }
        }
        ["admit"] => ladder.admit().map_or_else(|e| e.to_string(), |()| "yes".into()),
        other => panic!("unknown command {other:?}"),
    }
}

#[test]
fn the_ladder_as_a_story() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/ladder.txt");
    let script = std::fs::read_to_string(path).unwrap();
    let limits = LadderLimits { hybrid_error_ns: 500_000_000, ..LadderLimits::default() };
    let (mut ladder, mut out) = (Ladder::new(limits), String::new());
    for line in script.lines() {
        let command = line.split(" -> ").next().unwrap_or_default().trim_end();
        if command.is_empty() || line.starts_with('#') {
            writeln!(out, "{line}").unwrap();
            continue;
        }
        // One space before the arrow is the mark; the text after it may hold arrows of its own.
        match run(&mut ladder, &command.split_whitespace().collect::<Vec<_>>()).as_str() {
            "" => writeln!(out, "{command}").unwrap(),
            r => writeln!(out, "{command} -> {r}").unwrap(),
        }
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &out).unwrap();
    } else {
        assert_eq!(script, out, "the story changed; BLESS=1 rewrites {path}");
    }
}

#[test]
fn more_accusers_than_are_remembered_still_fence() {
    let mut ladder = Ladder::default();
    for peer in 0..PROOF_PEERS_MAX as u64 * 3 {
        ladder.accuse(peer, 1, 1_000 + peer);
    }
    assert_eq!(ladder.step(&reading(0.001, Status::Synchronized, 1.0), 0).unwrap().to, Level::Untrusted);
}

/// Whoever is called for a warning should find something to do.
#[test]
fn only_what_allows_less_is_bad_news() {
    let mut ladder = Ladder::default();
    let mut step =
        |at_s: f64, status, error_ms| ladder.step(&reading(at_s, status, error_ms), 0).map(|c| c.is_recovery());
    assert_eq!(step(1.0, Status::Synchronized, 100.0), Some(true), "from waiting to degraded");
    assert_eq!(step(2.0, Status::Synchronized, 1.0), Some(true));
    assert_eq!(step(3.0, Status::Synchronized, 100.0), Some(false));
    assert_eq!(step(4.0, Status::Disrupted, 1.0), Some(false));
    assert_eq!(step(5.0, Status::FreeRunning, 100.0), Some(true), "from too wide to degraded");
}
