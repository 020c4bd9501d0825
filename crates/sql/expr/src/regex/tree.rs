//! What a pattern says, in two forms.
//!
//! A [`Node`] is a language: the texts that match, captures forgotten. A [`Tree`] is how a match is taken apart: its leaves are stretches
//! of the pattern that hold no group, each longest or shortest as a whole.

use super::class::Set;
use super::program::Program;
use std::cell::OnceCell;
use std::rc::Rc;

/// A condition on a place between characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordStart,
    WordEnd,
    WordEdge,
    NoWordEdge,
}

/// A language.
#[derive(Debug)]
pub(super) enum Node {
    Empty,
    Set(Rc<Set>),
    Place(Place),
    /// A constraint that looks on or back: its place in the pattern's list, and whether it must fail.
    Look {
        index: usize,
        negated: bool,
    },
    Concat(Vec<Rc<Node>>),
    Alternate(Vec<Rc<Node>>),
    Repeat {
        node: Rc<Node>,
        min: u32,
        max: Option<u32>,
    },
}

/// Whether a stretch would rather be long or short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preference {
    Longest,
    Shortest,
}

/// What is to be known of a part before it is looked into.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traits {
    /// The preference of the whole: that of the first part which has one.
    pub preference: Option<Preference>,
    pub has_longest: bool,
    pub has_shortest: bool,
    pub captures: bool,
    pub refers_back: bool,
}

impl Traits {
    pub(super) fn prefers(preference: Option<Preference>) -> Traits {
        Traits {
            preference,
            has_longest: preference == Some(Preference::Longest),
            has_shortest: preference == Some(Preference::Shortest),
            ..Traits::default()
        }
    }

    /// Of a part, and another behind or inside it.
    pub(super) fn and(self, other: Traits) -> Traits {
        Traits {
            preference: self.preference.or(other.preference),
            has_longest: self.has_longest || other.has_longest,
            has_shortest: self.has_shortest || other.has_shortest,
            captures: self.captures || other.captures,
            refers_back: self.refers_back || other.refers_back,
        }
    }

    /// Whether one preference and one span say all there is to say.
    pub(super) fn is_plain(self) -> bool {
        !(self.captures || self.refers_back || (self.has_longest && self.has_shortest))
    }

    pub(super) fn is_shortest(self) -> bool {
        self.preference == Some(Preference::Shortest)
    }
}

/// How a match is taken apart.
#[derive(Debug)]
pub(super) enum Kind {
    /// A stretch without groups.
    Leaf,
    /// A group, numbered from 1.
    Group(usize, Box<Tree>),
    Concat(Vec<Tree>),
    Alternate(Vec<Tree>),
    Repeat {
        part: Box<Tree>,
        min: u32,
        max: Option<u32>,
    },
    /// What a group has matched.
    BackReference(usize),
}

/// A part of a pattern.
#[derive(Debug)]
pub(super) struct Tree {
    pub kind: Kind,
    pub node: Rc<Node>,
    pub traits: Traits,
    forward: OnceCell<Program>,
    backward: OnceCell<Program>,
}

impl Tree {
    pub(super) fn new(kind: Kind, node: Rc<Node>, traits: Traits) -> Tree {
        Tree { kind, node, traits, forward: OnceCell::new(), backward: OnceCell::new() }
    }

    pub(super) fn leaf(node: Rc<Node>, traits: Traits) -> Tree {
        Tree::new(Kind::Leaf, node, traits)
    }

    /// Runs from a part's start to its ends.
    pub(super) fn forward(&self) -> &Program {
        self.forward.get_or_init(|| Program::new(&self.node, false))
    }

    /// Runs from a part's end to its starts.
    pub(super) fn backward(&self) -> &Program {
        self.backward.get_or_init(|| Program::new(&self.node, true))
    }
}
