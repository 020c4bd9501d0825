//! Golden script of the hybrid clock: `tests/golden/algorithm2.txt`. `BLESS=1 cargo test -p timeball-clock` rewrites it.

use clock::{HybridClock, Interval, Timestamp};
use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Default)]
struct World {
    clocks: BTreeMap<String, (HybridClock, Option<Interval>)>,
    messages: BTreeMap<String, Timestamp>,
}

impl World {
    fn process(&mut self, name: &str) -> &mut (HybridClock, Option<Interval>) {
        self.clocks.entry(name.to_string()).or_default()
    }
    fn tick(&mut self, name: &str) -> Timestamp {
        let (clock, now) = self.process(name);
        clock.tick(now.expect("the process has a clock"), Timestamp::MIN)
    }
    fn update(&mut self, name: &str, ts: Timestamp, tolerance_us: u64) -> String {
        let (clock, now) = self.process(name);
        match clock.observe(ts, now.expect("the process has a clock"), tolerance_us) {
            Ok(()) => format!("last {}", clock.last()),
            Err(e) => format!("refused: beyond {}; last {}", e.limit, clock.last()),
        }
    }
    fn run(&mut self, words: &[&str]) -> String {
        let number = |s: &str| s.parse::<u64>().expect("a number");
        match words {
            ["clock", p, t, rest @ ..] => {
                let error = if let ["+-", e] = rest { number(e) } else { 0 };
                let (earliest_ns, latest_ns) = ((number(t) - error) * 1000, (number(t) + error) * 1000);
                self.process(p).1 = Some(Interval { earliest_ns, latest_ns });
                String::new()
            }
            ["now", p] => self.tick(p).to_string(),
            ["send", p, m] => {
                let ts = self.tick(p);
                self.messages.insert(m.to_string(), ts);
                ts.to_string()
            }
            ["recv", p, m] => {
                let ts = self.messages[*m];
                self.update(p, ts, 1000);
                self.tick(p).to_string()
            }
            ["update", p, ts, rest @ ..] => {
                let tolerance = if let ["within", u] = rest { number(u) } else { 0 };
                self.update(p, ts.parse().expect("a timestamp"), tolerance)
            }
            other => panic!("unknown command {other:?}"),
        }
    }
}

#[test]
fn algorithm_2_as_a_story() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/algorithm2.txt");
    let script = std::fs::read_to_string(path).unwrap();
    let (mut world, mut out) = (World::default(), String::new());
    for line in script.lines() {
        let command = line.split(" -> ").next().unwrap_or_default().trim_end();
        if command.is_empty() || command.starts_with('#') {
            writeln!(out, "{line}").unwrap();
            continue;
        }
        let result = world.run(&command.split_whitespace().collect::<Vec<_>>());
        match result.as_str() {
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
