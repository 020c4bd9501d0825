//! A language as an automaton, and all the places where it may end.
//!
//! States are followed side by side, so a run costs at most the length of the text times the size of the program, whatever the pattern.
//! A program is made for either direction: backward it runs from an end to all starts.

use super::class::Set;
use super::tree::{Node, Place};
use std::rc::Rc;

/// Greatest number of states of one program.
pub(super) const STATES_MAX: usize = 50_000;

#[derive(Debug)]
enum State {
    Set(Rc<Set>, u32),
    Place(Place, u32),
    Look { index: usize, negated: bool, next: u32 },
    Split(Vec<u32>),
    Accept,
}

/// An automaton.
#[derive(Debug)]
pub(super) struct Program {
    states: Vec<State>,
    start: u32,
    backward: bool,
}

/// How many states a language takes, so that too large ones are refused before they are made.
pub(super) fn states(node: &Node) -> usize {
    match node {
        Node::Empty => 0,
        Node::Set(_) | Node::Place(_) | Node::Look { .. } => 1,
        Node::Concat(parts) => parts.iter().fold(0, |sum, part| sum.saturating_add(states(part))),
        Node::Alternate(parts) => parts.iter().fold(1, |sum: usize, part| sum.saturating_add(states(part))),
        Node::Repeat { node, min, max } => {
            let copies = max.unwrap_or(min.saturating_add(1)).max(1) as usize;
            states(node).saturating_add(1).saturating_mul(copies)
        }
    }
}

impl Program {
    pub(super) fn new(node: &Node, backward: bool) -> Program {
        let mut program = Program { states: vec![State::Accept], start: 0, backward };
        program.start = program.add(node, 0);
        program
    }

    fn push(&mut self, state: State) -> u32 {
        self.states.push(state);
        self.states.len() as u32 - 1
    }

    /// Adds a language before a state; gives the state where it begins.
    fn add(&mut self, node: &Node, next: u32) -> u32 {
        match node {
            Node::Empty => next,
            Node::Set(set) => self.push(State::Set(set.clone(), next)),
            Node::Place(place) => self.push(State::Place(*place, next)),
            Node::Look { index, negated } => self.push(State::Look { index: *index, negated: *negated, next }),
            Node::Concat(parts) if self.backward => parts.iter().fold(next, |next, part| self.add(part, next)),
            Node::Concat(parts) => parts.iter().rfold(next, |next, part| self.add(part, next)),
            Node::Alternate(parts) => {
                let starts = parts.iter().map(|part| self.add(part, next)).collect();
                self.push(State::Split(starts))
            }
            Node::Repeat { node, min, max } => self.repeat(node, *min, *max, next),
        }
    }

    fn repeat(&mut self, node: &Node, min: u32, max: Option<u32>, next: u32) -> u32 {
        let mut next = next;
        match max {
            Some(max) => {
                let end = next;
                for _ in min..max {
                    let start = self.add(node, next);
                    next = self.push(State::Split(vec![start, end]));
                }
            }
            None => {
                let again = self.push(State::Split(vec![next]));
                let start = self.add(node, again);
                if let State::Split(ways) = &mut self.states[again as usize] {
                    ways.push(start);
                }
                next = again;
            }
        }
        for _ in 0..min {
            next = self.add(node, next);
        }
        next
    }
}

/// What a run sees.
pub(super) struct View<'t> {
    pub text: &'t str,
    /// For each constraint that looks on or back, the places where it holds.
    pub looks: &'t [Places],
    pub word: &'t Set,
}

/// Places in a text, as bits.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(Vec<u64>);

impl Places {
    pub(super) fn of(text: &str) -> Places {
        Places(vec![0; text.len() / 64 + 1])
    }
    pub(super) fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }
    pub(super) fn holds(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|bits| bits & (1 << (at % 64)) != 0)
    }
}

impl View<'_> {
    fn before(&self, at: usize) -> Option<char> {
        self.text[..at].chars().next_back()
    }
    fn behind(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }
    fn is_at(&self, place: Place, at: usize) -> bool {
        let word = |c: Option<char>| c.is_some_and(|c| self.word.holds(c));
        match place {
            Place::TextStart => at == 0,
            Place::TextEnd => at == self.text.len(),
            Place::LineStart => at == 0 || self.before(at) == Some('\n'),
            Place::LineEnd => at == self.text.len() || self.behind(at) == Some('\n'),
            Place::WordStart => !word(self.before(at)) && word(self.behind(at)),
            Place::WordEnd => word(self.before(at)) && !word(self.behind(at)),
            Place::WordEdge => word(self.before(at)) != word(self.behind(at)),
            Place::NoWordEdge => word(self.before(at)) == word(self.behind(at)),
        }
    }
}

/// States that are alive, each once.
struct Alive {
    list: Vec<u32>,
    seen: Vec<u32>,
    round: u32,
}

impl Alive {
    fn new(states: usize) -> Alive {
        Alive { list: Vec::new(), seen: vec![0; states], round: 1 }
    }
    fn clear(&mut self) {
        self.list.clear();
        self.round += 1;
    }
    fn mark(&mut self, state: u32) -> bool {
        let seen = &mut self.seen[state as usize];
        let fresh = *seen != self.round;
        *seen = self.round;
        fresh
    }
}

impl Program {
    /// Follows what takes no character; keeps states that do, and says whether the end is among them.
    fn follow(&self, from: u32, at: usize, view: &View<'_>, alive: &mut Alive, stack: &mut Vec<u32>) -> bool {
        let mut accepted = false;
        stack.push(from);
        while let Some(state) = stack.pop() {
            if !alive.mark(state) {
                continue;
            }
            match &self.states[state as usize] {
                State::Accept => accepted = true,
                State::Set(..) => alive.list.push(state),
                State::Place(place, next) if view.is_at(*place, at) => stack.push(*next),
                State::Look { index, negated, next } if view.looks[*index].holds(at) != *negated => stack.push(*next),
                State::Place(..) | State::Look { .. } => {}
                State::Split(ways) => stack.extend(ways),
            }
        }
        accepted
    }

    /// Runs from `from` (and, if `seeds` are given, from each of them on the way) towards `until`, and calls `found` at each place where
    /// the language may end; stops where that says so. `look` is asked now and then whether to go on.
    pub(super) fn run<E>(
        &self,
        view: &View<'_>,
        from: usize,
        until: usize,
        seeds: Option<&dyn Fn(usize) -> bool>,
        look: &mut dyn FnMut() -> Result<(), E>,
        mut found: impl FnMut(usize) -> bool,
    ) -> Result<(), E> {
        let (mut now, mut next) = (Alive::new(self.states.len()), Alive::new(self.states.len()));
        let mut stack = Vec::new();
        let mut at = from;
        let mut accepted = self.follow(self.start, at, view, &mut now, &mut stack);
        if let Some(seeds) = seeds
            && !seeds(at)
        {
            now.clear();
            accepted = false;
        }
        let mut steps = 0usize;
        loop {
            if accepted && !found(at) {
                return Ok(());
            }
            let c = if at == until || (now.list.is_empty() && seeds.is_none()) {
                None
            } else if self.backward {
                view.before(at)
            } else {
                view.behind(at)
            };
            let Some(c) = c else { return Ok(()) };
            at = if self.backward { at - c.len_utf8() } else { at + c.len_utf8() };
            steps += 1 + now.list.len();
            if steps > STEPS_BETWEEN_LOOKS {
                steps = 0;
                look()?;
            }
            next.clear();
            accepted = false;
            for state in &now.list {
                if let State::Set(set, then) = &self.states[*state as usize]
                    && set.holds(c)
                {
                    accepted |= self.follow(*then, at, view, &mut next, &mut stack);
                }
            }
            if seeds.is_some_and(|seeds| seeds(at)) {
                accepted |= self.follow(self.start, at, view, &mut next, &mut stack);
            }
            std::mem::swap(&mut now, &mut next);
        }
    }
}

/// Steps of an automaton between two looks at whether the statement was cancelled.
const STEPS_BETWEEN_LOOKS: usize = 100_000;
