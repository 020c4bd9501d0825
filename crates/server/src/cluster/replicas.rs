//! An operator moves replicas of ranges by hand: a node gets one, or loses one, or both.
//!
//! Whoever is asked finds the range's leader, and asks it. The leader goes step by step: a learner, which gets the range; its vote, and the end of the other
//! replica, in one change of the configuration; and first it hands over, where it is itself the one to go. Each step begins with a look at what there is, so an
//! operator who asks again (as a leader died, or he lost patience) goes on where it stopped.
//!
//! A range that is large is split by its leader so that it can be copied (decision 0154). So what is asked is done for all ranges that came of it meanwhile, too ([`super::halves`]).

use super::Inner;
use super::control::{self, Parts, Replacement, Reply, Request};
use super::halves::{self, Ranges};
use crate::kv::{Shell, park};
use node::cluster::{NodeId, ReplicaChange, Role};
use node::{RangeId, Span};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use store::Engine;

/// It takes so long, at most: a new replica gets the whole range.
const MOVE_MAX: Duration = Duration::from_secs(90);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Who leads a range is looked for so long, at most, to hear what keys it has.
const PARTS_MAX: Duration = Duration::from_secs(5);
/// A range that nobody told this node of is waited for so long, at most.
const HEARD_OF_MAX: Duration = Duration::from_secs(3);
/// Who is asked to see to a range has the same patience, and answers a moment after it.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Whoever asks a node for all of it hears which ranges are not as they were to be, before he gives up.
const _: () =
    assert!(MOVE_MAX.as_secs() + PARTS_MAX.as_secs() + HEARD_OF_MAX.as_secs() < control::PATIENCE_REPLICAS.as_secs());
const _: () = assert!(ANSWER_MAX.as_secs() < PARTS_MAX.as_secs());
/// Between two searches for the leader.
const SEARCH_EVERY: Duration = Duration::from_millis(100);

/// What is to be done next.
enum Step {
    Done,
    /// Something is on its way.
    Wait,
    Change(Vec<ReplicaChange>),
    HandOver(NodeId),
    /// It cannot be done.
    Never(String),
}

fn names(nodes: &[NodeId]) -> String {
    nodes.iter().map(NodeId::to_string).collect::<Vec<_>>().join(", ")
}

/// Asks one after the other, each for no longer than is left.
fn first_answer<P, T>(
    places: impl Iterator<Item = P>,
    until: Instant,
    now: impl Fn() -> Instant,
    mut ask: impl FnMut(P, Duration) -> Option<T>,
) -> Option<T> {
    for place in places {
        let left = until.saturating_duration_since(now());
        if left.is_zero() {
            return None;
        }
        if let Some(answer) = ask(place, left) {
            return Some(answer);
        }
    }
    None
}

fn next(asked: &Replacement, voters: &[NodeId], learners: &[NodeId], own: NodeId) -> Step {
    let (to, from) = (asked.to.map(NodeId), asked.from.map(NodeId));
    let arrived = to.is_none_or(|to| voters.contains(&to));
    let gone = from.is_none_or(|from| !voters.contains(&from) && !learners.contains(&from));
    match (to, from) {
        _ if arrived && gone => Step::Done,
        // Each step on the way has one of both: somebody else moved it meanwhile, or it was never there, and there would be one replica too many.
        (Some(to), Some(from)) if gone && !arrived && !learners.contains(&to) => Step::Never(format!(
            "r{} has no replica at {from} that could move to {to} (it is replicated by {}), and is left as it is: for one replica more `timeball range move {} --to {}`",
            asked.range,
            names(voters),
            asked.range,
            to.0
        )),
        (Some(to), _) if !arrived && !learners.contains(&to) => Step::Change(vec![ReplicaChange::Add(to)]),
        // Who leads stays until another does: it is the next one's part to end the replica here.
        (Some(to), from) if !arrived => {
            let ends = from.filter(|from| !gone && *from != own).map(ReplicaChange::Remove);
            Step::Change([ReplicaChange::Promote(to)].into_iter().chain(ends).collect())
        }
        (_, Some(from)) if voters == [from] => {
            Step::Never(format!("{from} has the only replica with a vote: say with --to who gets one in its place"))
        }
        (to, Some(from)) if from == own => {
            let heir = to.or_else(|| voters.iter().copied().find(|node| *node != own));
            heir.map_or(Step::Wait, Step::HandOver)
        }
        (_, Some(from)) => Step::Change(vec![ReplicaChange::Remove(from)]),
        (_, None) => Step::Done,
    }
}

impl<E: Engine> Inner<E> {
    /// Sees to it, wherever the range is led, and what comes of it meanwhile.
    pub(super) fn replace(&self, asked: &Replacement) -> Reply {
        if asked.to == asked.from {
            return Reply::No("say which node gets a replica (--to), or loses one (--from)".into());
        }
        if let Some(refused) = self.refuse_unknown(asked.range, asked.to, asked.asked_on) {
            return refused;
        }
        let until = Instant::now() + MOVE_MAX;
        match asked.asked_on {
            true => self.replace_one(asked, until),
            false => halves::follow(asked, &mut Replacing { inner: self, asked, until }),
        }
    }

    /// Refuses what names a node or a range that there is not.
    pub(super) fn refuse_unknown(&self, range: u64, node: Option<u32>, asked_on: bool) -> Option<Reply> {
        if let Some(node) = node.filter(|node| self.charter().place(*node).is_none()) {
            return Some(Reply::No(format!("there is no n{node} in this cluster")));
        }
        let unknown = !asked_on && !self.hears_of(RangeId(range));
        unknown.then(|| Reply::No(format!("r{range} is not known here: `timeball node status` shows the ranges")))
    }

    /// Whether there is such a range. What the operator saw at another node, of a split just now, is heard of here a moment later.
    fn hears_of(&self, range: RangeId) -> bool {
        let until = Instant::now() + HEARD_OF_MAX;
        while self.member.route(range).is_none() {
            if Instant::now() >= until || self.leaving.load(SeqCst) {
                return false;
            }
            park::pause(SEARCH_EVERY);
        }
        true
    }

    /// One range.
    fn replace_one(&self, asked: &Replacement, until: Instant) -> Reply {
        let settled = self.until_settled(asked.asked_on, until, |turn| {
            let leads = self.member.status(RangeId(asked.range)).is_some_and(|status| status.role == Role::Leader);
            if leads { self.replace_here(asked, until) } else { self.replace_there(asked, until, turn) }
        });
        settled.unwrap_or_else(|why| Reply::No(format!("r{} is not as it was to be: {why}; ask again", asked.range)))
    }

    /// Asks, in turn, until there is an answer that stands; who was asked by a node asks once, and tells that one.
    ///
    /// # Errors
    /// There was none in the time: what was said last.
    pub(super) fn until_settled(
        &self,
        asked_on: bool,
        until: Instant,
        mut ask: impl FnMut(usize) -> Reply,
    ) -> Result<Reply, String> {
        let late = Instant::now() >= until;
        let mut why = String::from(if late { "no time was left for it" } else { "nobody leads it" });
        let mut turn = 0;
        while Instant::now() < until && !self.leaving.load(SeqCst) {
            match ask(turn) {
                Reply::Later(later) if !asked_on => why = later,
                settled => return Ok(settled),
            }
            turn += 1;
            park::pause(SEARCH_EVERY);
        }
        Err(why)
    }

    /// Which ranges hold these keys, or those that a range has, if it is led here: who leads it has applied all its splits, and knows what came of them.
    pub(super) fn parts(&self, range: u64, keys: Option<Span>) -> Reply {
        let led = self.member.status(RangeId(range)).filter(|status| status.lease.is_some());
        let Some(status) = led else { return Reply::Later(format!("n{} does not lead it", self.node)) };
        let keys = keys.unwrap_or(status.keys);
        let ranges = self.member.ranges_over(&keys).into_iter().map(|(_, range)| range.0).collect();
        Reply::Ok(Parts { keys, ranges }.to_text())
    }

    /// The same, wherever it is led, within [`PARTS_MAX`] and, where all has an end (`until`), no longer after that. `None`: nobody says.
    fn parts_anywhere(&self, range: u64, keys: Option<&Span>, until: Instant) -> Option<Parts> {
        let until = Instant::now().min(until) + PARTS_MAX;
        while Instant::now() < until && !self.leaving.load(SeqCst) {
            let charter = self.charter();
            let leader = self.member.route(RangeId(range)).and_then(|(leader, _)| leader);
            let first = charter.members.iter().filter(|place| leader == Some(NodeId(place.node)));
            let others = charter.members.iter().filter(|place| leader != Some(NodeId(place.node)));
            let said = first_answer(first.chain(others), until, Instant::now, |place, left| {
                let reply = match place.node == self.node {
                    true => Ok(self.parts(range, keys.cloned())),
                    false => control::ask_within(&place.addr, &Request::Parts(range, keys.cloned()), left),
                };
                let Ok(Reply::Ok(text)) = reply else { return None };
                Parts::of_text(&text)
            });
            if said.is_some() {
                return said;
            }
            park::pause(SEARCH_EVERY);
        }
        None
    }

    /// At the leader.
    fn replace_here(&self, asked: &Replacement, until: Instant) -> Reply {
        let range = RangeId(asked.range);
        let mut why = String::from("it takes long");
        while Instant::now() < until && !self.leaving.load(SeqCst) {
            let Some(status) = self.member.status(range).filter(|status| status.role == Role::Leader) else {
                return Reply::Later(format!("n{} does not lead it any more", self.node));
            };
            let now = self.clock.read();
            let step = match status.joint {
                true => Step::Wait,
                false => next(asked, &status.voters, &status.learners, NodeId(self.node)),
            };
            let done = match step {
                Step::Done => {
                    return Reply::Ok(format!("r{} is replicated by {}\n", asked.range, names(&status.voters)));
                }
                Step::Never(why) => return Reply::No(why),
                Step::Wait => Ok(()),
                Step::Change(changes) => self.member.change_replicas(&now, range, &changes),
                Step::HandOver(heir) => self.member.hand_over(&now, range, heir),
            };
            if let Err(refused) = done {
                why = refused.to_string();
            }
            self.settle(false);
            park::pause(LOOK_EVERY);
        }
        Reply::Later(why)
    }

    /// Asks whoever leads it, or may know.
    fn replace_there(&self, asked: &Replacement, until: Instant, turn: usize) -> Reply {
        let request = Request::Replicas(Replacement { asked_on: true, ..*asked });
        self.ask_on(RangeId(asked.range), asked.asked_on, &request, until, turn)
    }

    /// Asks whoever leads a range, or may know: one after the other, in turn. Who was asked by a node (`asked_on`) does not lead it, and asks no further.
    pub(super) fn ask_on(
        &self,
        range: RangeId,
        asked_on: bool,
        request: &Request,
        until: Instant,
        turn: usize,
    ) -> Reply {
        if asked_on {
            return Reply::Later(format!("n{} does not lead it", self.node));
        }
        // What came of a range is known to who replicates it.
        let all = || (None, self.charter().members.iter().map(|place| NodeId(place.node)).collect());
        let (leader, replicas) = self.member.route(range).unwrap_or_else(all);
        let others: Vec<NodeId> = replicas.into_iter().filter(|node| node.0 != self.node).collect();
        let in_turn = turn.checked_rem(others.len()).and_then(|at| others.get(at));
        // Who was said to lead may be gone.
        let whom = leader.filter(|node| node.0 != self.node && turn.is_multiple_of(2)).or(in_turn.copied());
        let charter = self.charter();
        let Some(place) = whom.and_then(|node| charter.place(node.0)) else {
            return Reply::Later("nobody is known to lead it".into());
        };
        let left = (until + ANSWER_MAX).saturating_duration_since(Instant::now());
        control::ask_within(&place.addr, request, left).unwrap_or_else(Reply::Later)
    }
}

/// What an operator asks of a range, for those that come of it.
struct Replacing<'a, E> {
    inner: &'a Inner<E>,
    asked: &'a Replacement,
    until: Instant,
}

impl<E: Engine> Ranges for Replacing<'_, E> {
    fn replace(&mut self, range: u64) -> Reply {
        self.inner.replace_one(&Replacement { range, ..*self.asked }, self.until)
    }
    fn parts(&mut self, range: u64, keys: Option<&Span>) -> Option<Parts> {
        self.inner.parts_anywhere(range, keys, self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(asked: &Replacement, voters: &[u32], learners: &[u32], own: u32) -> String {
        let nodes = |all: &[u32]| all.iter().map(|node| NodeId(*node)).collect::<Vec<_>>();
        match next(asked, &nodes(voters), &nodes(learners), NodeId(own)) {
            Step::Done => "done".to_owned(),
            Step::Wait => "wait".to_owned(),
            Step::Change(changes) => format!("{changes:?}"),
            Step::HandOver(to) => format!("hand over to {to}"),
            Step::Never(_) => "never".to_owned(),
        }
    }

    /// A replica goes from n1, which leads, to n4; then n4 is asked to go on.
    #[test]
    fn a_leader_moves_its_own_replica() {
        let asked = Replacement { range: 1, to: Some(4), from: Some(1), asked_on: false };
        assert_eq!(step(&asked, &[1, 2, 3], &[], 1), "[Add(n4)]");
        assert_eq!(step(&asked, &[1, 2, 3], &[4], 1), "[Promote(n4)]");
        assert_eq!(step(&asked, &[1, 2, 3], &[4], 2), "[Promote(n4), Remove(n1)]", "where another leads");
        assert_eq!(step(&asked, &[1, 2, 3, 4], &[], 1), "hand over to n4");
        assert_eq!(step(&asked, &[1, 2, 3, 4], &[], 4), "[Remove(n1)]");
        assert_eq!(step(&asked, &[2, 3, 4], &[], 4), "done");
        let asked = Replacement { to: None, ..asked };
        assert_eq!(step(&asked, &[1], &[], 1), "never");
        assert_eq!(step(&asked, &[1, 2], &[], 1), "hand over to n2");
        assert_eq!(step(&asked, &[2], &[1], 2), "[Remove(n1)]", "a learner goes, too");
    }

    /// r12 was split off r1 while that moved from n3 to n4, and another command has moved it from n3 to n5 meanwhile.
    #[test]
    fn what_somebody_else_moved_meanwhile_gets_no_replica_too_many() {
        let asked = Replacement { range: 12, to: Some(4), from: Some(3), asked_on: true };
        assert_eq!(step(&asked, &[1, 2, 5], &[], 1), "never");
        let Step::Never(why) = next(&asked, &[1, 2, 5].map(NodeId), &[], NodeId(1)) else { panic!("it is left") };
        assert!(why.contains("r12 has no replica at n3") && why.contains("n1, n2, n5"), "{why}");
        assert!(why.ends_with("`timeball range move 12 --to 4`"), "{why}");
        // What this command itself has on its way goes on.
        assert_eq!(step(&asked, &[1, 2, 5], &[4], 1), "[Promote(n4)]");
        assert_eq!(step(&asked, &[1, 2], &[3], 1), "[Add(n4)]", "a learner at n3 moves, too");
        assert_eq!(step(&asked, &[1, 2, 4], &[], 1), "done");
        assert_eq!(step(&Replacement { from: None, ..asked }, &[1, 2, 5], &[], 1), "[Add(n4)]", "as it was asked for");
    }

    /// Nine nodes do not answer: each takes as long as it may.
    #[test]
    fn a_search_among_silent_nodes_ends_in_time() {
        let began = Instant::now();
        let spent = std::cell::Cell::new(Duration::ZERO);
        let mut asked = 0;
        let answer = first_answer(
            1..=9,
            began + PARTS_MAX,
            || began + spent.get(),
            |_, left| {
                asked += 1;
                spent.set(spent.get() + left.min(Duration::from_secs(2)));
                None::<()>
            },
        );
        assert_eq!((answer, asked, spent.get()), (None, 3, PARTS_MAX));
    }
}
