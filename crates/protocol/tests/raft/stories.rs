//! Golden stories: `tests/raft/stories/*.txt`. A line that begins with `>` is a command, what follows is what came of it: the time in
//! milliseconds, the store, the group, what it did. `BLESS=1 cargo test -p timeball-protocol --test raft stories` writes them anew; read the diff.

use super::machine::Watch;
use super::network::Weather;
use super::world::{BEGIN_US, World};
use clock::Timestamp;
use protocol::log::raft::{Change, GroupId, Input, Member, ReplicaId, Sabotage, StoreId};
use std::path::PathBuf;

const G: GroupId = GroupId(1);

fn ms(at: Timestamp) -> i64 {
    (at.physical_us() as i64 - BEGIN_US as i64) / 1000
}

fn number(word: &str) -> u64 {
    word.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or_else(|_| panic!("a number: {word}"))
}

fn store(word: &str) -> StoreId {
    StoreId(number(word))
}

fn new_world(stores: u64) -> World {
    let mut world = World::new(8, stores, &Sabotage::default(), |_| Watch {
        offset_us: 0,
        drift_ppm: 0,
        error_us: 1000,
        ..Watch::default()
    });
    world.story = Some(Vec::new());
    world
}

fn changes(words: &[&str]) -> Vec<Change> {
    let change = |word: &&str| match word.split_at(1) {
        ("+", rest) => match rest.split_once('@') {
            Some((r, s)) => Change::AddLearner(Member { replica: ReplicaId(number(r)), store: store(s) }),
            None => Change::Promote(ReplicaId(number(rest))),
        },
        _ => Change::Remove(ReplicaId(number(word))),
    };
    words.iter().map(change).collect()
}

fn command(world: &mut World, words: &[&str]) -> Result<(), String> {
    match words {
        ["found", of @ ..] => world.found(G, &of.iter().map(|word| number(word)).collect::<Vec<_>>())?,
        ["found-late", on, of @ ..] => {
            let of: Vec<u64> = of.iter().map(|word| number(word)).collect();
            world.found_on(G, &of, &[number(on)])?;
        }
        ["run", time] => world.run(number(time) * 1000)?,
        ["campaign", on] => world.input(store(on), Input::Campaign { group: G })?,
        ["propose", on, what] => {
            let result = world.propose(store(on), G, what.as_bytes().to_vec().into())?;
            world.note(|_| match result {
                Ok(p) => format!("proposed at {} ms, place {}, term {}", ms(p.at), p.index, p.term),
                Err(why) => format!("refused: {why}"),
            });
        }
        ["cut", from, to] => world.cut(number(from), number(to)),
        ["isolate", which] => world.isolate(store(which)),
        ["heal"] => world.heal(),
        ["crash", which] => world.crash(store(which)),
        ["start", which] => world.restart(store(which)),
        ["pause", which] => world.pause(store(which)),
        ["resume", which] => world.resume(store(which))?,
        ["snapshot-rate", bytes] => {
            for id in world.machines.keys().copied().collect::<Vec<_>>() {
                world.machines.get_mut(&id).expect("a store").options.snapshot_bytes_per_tick = number(bytes) as usize;
                world.machines.get_mut(&id).expect("a store").replicas = None;
                world.restart(id);
            }
        }
        ["dark", which] => world.machines.get_mut(&store(which)).expect("a store").watch.dark = true,
        ["stall", which] => world.machines.get_mut(&store(which)).expect("a store").stalled = true,
        ["sync-again", which] => world.machines.get_mut(&store(which)).expect("a store").stalled = false,
        ["disk-fails", which] => world.input(store(which), Input::PersistFailed)?,
        ["transfer", to] => world.transfer(G, store(to))?,
        ["change", what @ ..] => world.change(G, changes(what))?,
        ["truncate", on] => world.truncate(store(on), G)?,
        ["padding", bytes] => world.padding = number(bytes) as usize,
        ["double-everything"] => world.weather = Weather { double_percent: 100, ..Weather::calm() },
        ["delay", percent, by] => {
            world.weather.late_percent = number(percent);
            world.weather.late_us = number(by) * 1000;
        }
        ["leases"] => {
            for id in world.machines.keys().copied().collect::<Vec<_>>() {
                let lease = world.machines[&id].replicas.as_ref().and_then(|replicas| replicas.lease(G));
                if let Some((start, end)) = lease {
                    let start =
                        if start == Timestamp::MIN { "the beginning".into() } else { format!("{} ms", ms(start)) };
                    world.note(|_| format!("{id} {G}: serves above {start}, up to {} ms", ms(end)));
                }
            }
        }
        ["awake"] => {
            for id in world.machines.keys().copied().collect::<Vec<_>>() {
                let awake = world.machines[&id].replicas.as_ref().map_or(0, |replicas| replicas.awake());
                world.note(|_| format!("{id}: {awake} awake"));
            }
        }
        ["logs"] => {
            for id in world.machines.keys().copied().collect::<Vec<_>>() {
                let status = world.machines[&id].replicas.as_ref().and_then(|replicas| replicas.status(G));
                if let Some(s) = status {
                    world.note(|_| format!("{id} {G}: log after {} to {}, applied {}", s.truncated, s.last, s.applied));
                }
            }
        }
        other => panic!("unknown command {other:?}"),
    }
    Ok(())
}

fn play(script: &str) -> String {
    let mut world = new_world(5);
    let mut out = String::new();
    for line in script.lines().filter(|line| line.starts_with(['#', '>']) || line.is_empty()) {
        out.push_str(line);
        out.push('\n');
        if let Some(words) = line.strip_prefix('>') {
            let words: Vec<&str> = words.split_whitespace().collect();
            command(&mut world, &words).unwrap_or_else(|why| panic!("{line}: {why}"));
            for line in world.story.replace(Vec::new()).unwrap() {
                out.push_str(&line);
                out.push('\n');
            }
        }
    }
    out
}

#[test]
fn stories() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/raft/stories");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).expect("stories").map(|e| e.expect("one").path()).collect();
    paths.sort();
    for path in paths {
        let script = std::fs::read_to_string(&path).expect("a story");
        let played = play(&script);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, played).expect("a story");
        } else {
            let how = "BLESS=1 cargo test -p timeball-protocol --test raft stories";
            assert_eq!(script, played, "{}: {how}", path.display());
        }
    }
}
