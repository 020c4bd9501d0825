//! What is asked of a range is asked of its keys: it may be split while its replicas move.
//!
//! # Problem
//! A new replica gets a copy, and who copies a range that is too large for one splits it first (decision 0154). The new range has the replicas that the old one
//! had then, so of those keys nothing has moved when the old range, or what is left of it, has.
//!
//! # Idea
//! The range's leader says before which keys that has. When it is where it was to be, its leader is asked again, which ranges hold these keys: what was not
//! there is next, and is asked for its own halves when it has moved, until nobody knows of another one.
//!
//! # Invariants
//! 1. What was split off a range before it was asked for is left alone: only keys that it had count.
//! 2. A range that is split after it moved has halves that are where they were to be: so each is asked once.
//! 3. A half that somebody else has moved meanwhile, so that it is neither where it was nor where it was to be, is left alone, and named.
//! 4. Success is said of all of them, or it is an error, which names those that are not as they were to be, and how to go on.

use super::control::{Parts, Replacement, Reply};
use node::Span;
use std::collections::{BTreeSet, VecDeque};

/// The ranges of a cluster.
pub(super) trait Ranges {
    /// Sees to one.
    fn replace(&mut self, range: u64) -> Reply;
    /// Which ranges hold these keys, or the keys that a range has, as its leader knows. `None`: nobody says.
    fn parts(&mut self, range: u64, keys: Option<&Span>) -> Option<Parts>;
}

/// How the operator goes on with a range.
fn command(asked: &Replacement, range: u64) -> String {
    let flag = |name: &str, node: Option<u32>| node.map_or_else(String::new, |node| format!(" --{name} {node}"));
    format!("`timeball range move {range}{}{}`", flag("to", asked.to), flag("from", asked.from))
}

/// Sees to a range, and to all that holds keys which it had at the beginning.
pub(super) fn follow(asked: &Replacement, ranges: &mut impl Ranges) -> Reply {
    let keys = ranges.parts(asked.range, None).map(|parts| parts.keys);
    let (mut known, mut next) = (BTreeSet::from([asked.range]), VecDeque::from([asked.range]));
    let (mut done, mut left) = (String::new(), String::new());
    while let Some(range) = next.pop_front() {
        let is_half = range != asked.range;
        let whence = if is_half { format!("(split off r{} meanwhile) ", asked.range) } else { String::new() };
        match ranges.replace(range) {
            Reply::Ok(text) => done.push_str(&format!("{whence}{text}")),
            Reply::No(why) | Reply::Later(why) if is_half => {
                // Who says what can be done instead has the last word.
                let how = if why.ends_with('`') { String::new() } else { format!(": {}", command(asked, range)) };
                left.push_str(&format!("{whence}{why}{how}\n"));
            }
            Reply::No(why) | Reply::Later(why) => left.push_str(&format!("{why}\n")),
            other => return other,
        }
        match keys.as_ref().and_then(|keys| ranges.parts(range, Some(keys))) {
            Some(parts) => next.extend(parts.ranges.into_iter().filter(|range| known.insert(*range))),
            // Where it has not moved either, that is said already.
            None if left.is_empty() => left.push_str(&format!(
                "nobody who leads r{range} says whether it was split meanwhile, and its halves may be where they were: `timeball node status` shows the ranges\n"
            )),
            None => {}
        }
    }
    match left.is_empty() {
        true => Reply::Ok(done),
        false => Reply::No(format!("{left}{done}").trim_end().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Ranges by their first key, each with the nodes that have replicas; some are split while they move.
    #[derive(Default)]
    struct Fake {
        ranges: BTreeMap<u8, (u64, Vec<u32>)>,
        /// A range that is asked for is split at a key, once.
        splits: BTreeMap<u64, (u8, u64)>,
        /// These cannot move.
        stuck: BTreeSet<u64>,
        /// These are left, and what is to be done with them is said.
        moved_by_another: BTreeSet<u64>,
        silent: bool,
        moves: Vec<u64>,
    }

    impl Fake {
        fn start(&self, range: u64) -> u8 {
            *self.ranges.iter().find(|(_, (id, _))| *id == range).unwrap().0
        }
    }

    impl Ranges for Fake {
        fn replace(&mut self, range: u64) -> Reply {
            self.moves.push(range);
            let start = self.start(range);
            if let Some((at, half)) = self.splits.remove(&range) {
                let nodes = self.ranges[&start].1.clone();
                self.ranges.insert(at, (half, nodes));
            }
            if self.stuck.contains(&range) {
                return Reply::No(format!("r{range} is stuck"));
            }
            if self.moved_by_another.contains(&range) {
                return Reply::No(format!("r{range} is left: `move {range}`"));
            }
            self.ranges.get_mut(&start).unwrap().1 = vec![1, 2, 4];
            Reply::Ok(format!("r{range} is replicated by n1, n2, n4\n"))
        }
        fn parts(&mut self, range: u64, keys: Option<&Span>) -> Option<Parts> {
            let start = self.start(range);
            let end = self.ranges.range(start + 1..).next().map_or(Vec::new(), |(next, _)| vec![*next]);
            let keys = keys.cloned().unwrap_or_else(|| Span::new(vec![start], end));
            let held = self.ranges.iter().filter(|(start, _)| keys.contains(&[**start]));
            let ranges = held.map(|(_, (id, _))| *id).collect();
            (!self.silent).then_some(Parts { keys, ranges })
        }
    }

    fn fake() -> Fake {
        let ranges = [(0, 1), (50, 2), (100, 3)].map(|(start, id)| (start, (id, vec![1, 2, 3])));
        Fake { ranges: ranges.into(), ..Fake::default() }
    }

    const ASKED: Replacement = Replacement { range: 2, to: Some(4), from: Some(3), asked_on: false };

    #[test]
    fn halves_of_halves_move_and_neighbours_stay() {
        let mut ranges = Fake { splits: [(2, (70, 12)), (12, (80, 13))].into(), ..fake() };
        let Reply::Ok(text) = follow(&ASKED, &mut ranges) else { panic!("it is done") };
        assert_eq!(ranges.moves, [2, 12, 13]);
        for (start, (range, nodes)) in &ranges.ranges {
            let moved = (50..100).contains(start);
            assert_eq!(nodes, if moved { &[1, 2, 4] } else { &[1, 2, 3] }, "r{range}");
        }
        assert!(text.contains("r2 is replicated") && text.contains("(split off r2 meanwhile) r13 is"), "{text}");
    }

    #[test]
    fn what_has_not_moved_is_an_error_that_says_how_to_go_on() {
        let splits = [(2, (70, 12)), (12, (80, 13))].into();
        let mut ranges = Fake { splits, stuck: [12].into(), ..fake() };
        let Reply::No(why) = follow(&ASKED, &mut ranges) else { panic!("r12 has not moved") };
        assert!(why.contains("r12 is stuck: `timeball range move 12 --to 4 --from 3`"), "{why}");
        assert!(why.contains("r13 is replicated"), "what was done is said, too: {why}");
        let splits = [(2, (70, 12))].into();
        let mut ranges = Fake { splits, moved_by_another: [12].into(), ..fake() };
        let Reply::No(why) = follow(&ASKED, &mut ranges) else { panic!("r12 was moved by another") };
        assert!(why.contains("(split off r2 meanwhile) r12 is left: `move 12`\nr2 is replicated"), "{why}");
        let mut ranges = Fake { silent: true, ..fake() };
        let Reply::No(why) = follow(&ASKED, &mut ranges) else { panic!("nobody knows") };
        assert!(why.contains("nobody who leads r2 says"), "{why}");
    }
}
