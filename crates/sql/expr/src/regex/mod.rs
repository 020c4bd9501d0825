//! Regular expressions as PostgreSQL has them.
//!
//! Problem: POSIX's expressions (and the advanced ones that PostgreSQL makes of them) match as much as they can from the left-most place
//! where they can match at all, `.|...` all three characters of `xyz`; every library at hand takes the first branch that leads to a match,
//! as Perl does, and its groups likewise. Idea: a language of our own is read into a tree ([`parse`]); automata that follow all their
//! states at once find the span of a match ([`program`]), and the tree takes it apart ([`matcher`]). A library's automaton says first
//! whether and where there is a match at all, for it is faster. Decision 0043.
//!
//! 1. Without back-references the time is bounded by the length of the text times the size of the pattern, for each part of the
//!    pattern that holds a group; constraints that look on or back cost one pass over the text each.
//! 2. Back-references choose and take back, at most [`matcher::RETREATS_MAX`] times in a search; then it is an error.
//! 3. Every pass asks now and then whether its statement was cancelled.
//! 4. No pattern is too deep or too large: it is refused before it is compiled.
//!
//! Letters and digits are those of Unicode, whatever the collation.

mod class;
mod matcher;
mod parse;
mod program;
#[cfg(test)]
mod tests;
mod tree;

use crate::{SqlError, SqlState};
use matcher::Matcher;
use parse::{Flavor, Options, Parsed};
use program::Program;
use regex_automata::Input;
use regex_automata::meta;
use regex_syntax::hir::{Class, Hir, Look, Repetition};
use std::cell::RefCell;
use std::rc::Rc;
use tree::{Node, Place};

/// Spans of a match and its groups, in bytes: the whole first, then the groups by number.
pub(super) type Spans = Vec<Option<(usize, usize)>>;

/// Compiled expressions kept by each thread.
const CACHE_MAX: usize = 32;
/// Greatest size of a library's automaton, bytes.
const AUTOMATON_BYTES_MAX: usize = 4 << 20;

fn invalid(what: &str) -> SqlError {
    SqlError::new(SqlState(*b"2201B"), format!("invalid regular expression: {what}"))
}

fn too_many_retreats() -> SqlError {
    SqlError::new(SqlState::TOO_COMPLEX, "the regular expression has too many ways to match")
        .detail(format!("A search with back-references tries at most {} of them.", matcher::RETREATS_MAX))
        .hint("Anchor the expression, or write it without back-references.")
}

/// Flags of a function's call, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flags {
    /// `g`
    pub all: bool,
    options: u8,
    flavor: u8,
}

impl Flags {
    /// No flags.
    pub(super) const NONE: Flags = Flags { all: false, options: 0, flavor: 0 };
    /// `i`
    pub(super) const IGNORE_CASE: Flags = Flags { all: false, options: 1, flavor: 0 };

    /// Reads flags.
    ///
    /// # Errors
    /// 22023 for a letter that means nothing.
    pub(super) fn parse(text: &str) -> Result<Flags, SqlError> {
        let mut all = false;
        let mut options = Flags::NONE.options();
        let mut flavor = 0;
        for letter in text.chars() {
            match letter {
                'g' => all = true,
                'q' => flavor = 1,
                // As in PostgreSQL, where the flag for extended expressions gives basic ones.
                'b' | 'e' => flavor = 2,
                letter if options.set(letter) => {}
                letter => {
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER,
                        format!("invalid regular expression option: \"{letter}\""),
                    ));
                }
            }
        }
        let bits = [options.ignore_case, options.expanded, options.newline_stops, options.line_anchors];
        let options = bits.iter().enumerate().fold(0, |sum, (bit, set)| sum | u8::from(*set) << bit);
        Ok(Flags { all, options, flavor })
    }

    fn options(self) -> Options {
        let bit = |bit: u8| self.options & 1 << bit != 0;
        Options {
            flavor: [Flavor::Advanced, Flavor::Literal, Flavor::Basic][self.flavor as usize % 3],
            ignore_case: bit(0),
            expanded: bit(1),
            newline_stops: bit(2),
            line_anchors: bit(3),
        }
    }
}

/// A compiled expression.
pub(super) struct Regex {
    parsed: Parsed,
    looks: Vec<(Program, bool)>,
    /// Says where a match begins, if the library can.
    automaton: Option<meta::Regex>,
    word: Rc<class::Set>,
}

/// Units of work of a match, beside those of its text: each is found anew, and its groups by themselves.
const MATCH_UNITS: usize = 8_192;
/// Bytes that a library's automaton reads in the time of a unit of work; it may read to the end for each match, and asks nobody.
const BYTES_PER_UNIT: usize = 4;

impl Regex {
    /// The compiled expression; it is kept for the next time.
    ///
    /// # Errors
    /// 2201B if it is none.
    pub(super) fn cached(pattern: &str, flags: Flags) -> Result<Rc<Regex>, SqlError> {
        type Kept = (String, Flags, Rc<Regex>);
        thread_local! {
            static CACHE: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
        }
        let flags = Flags { all: false, ..flags };
        let found = CACHE.with_borrow_mut(|cache| {
            let at = cache.iter().rposition(|(p, f, _)| p == pattern && *f == flags)?;
            Some(Rc::clone(&cache[at].2))
        });
        if let Some(found) = found {
            return Ok(found);
        }
        let regex = Rc::new(Regex::compile(pattern, flags)?);
        CACHE.with_borrow_mut(|cache| {
            if cache.len() >= CACHE_MAX {
                cache.remove(0);
            }
            cache.push((pattern.to_owned(), flags, Rc::clone(&regex)));
        });
        Ok(regex)
    }

    fn compile(pattern: &str, flags: Flags) -> Result<Regex, SqlError> {
        let parsed = parse::parse(pattern, flags.options()).map_err(|fault| match crate::work::look() {
            Err(ended) => ended,
            Ok(()) => invalid(fault),
        })?;
        let config = meta::Config::new().nfa_size_limit(Some(AUTOMATON_BYTES_MAX));
        let automaton =
            hir(&parsed.tree.node).and_then(|hir| meta::Builder::new().configure(config).build_from_hir(&hir).ok());
        let word = class::Set::new(class::named("word").unwrap_or_else(class::any));
        Ok(Regex { looks: matcher::look_programs(&parsed), parsed, automaton, word })
    }

    /// Number of groups.
    pub(super) fn groups(&self) -> usize {
        self.parsed.groups
    }

    /// Whether a text matches.
    ///
    /// # Errors
    /// 54001 for back-references with too many ways to match; what `look` says.
    pub(super) fn is_match(&self, text: &str, look: matcher::Look<'_>) -> Result<bool, SqlError> {
        match &self.automaton {
            Some(automaton) if !automaton.is_match(text) => return Ok(false),
            Some(_) if !self.parsed.tree.traits.refers_back => return Ok(true),
            _ => {}
        }
        let mut found = false;
        self.each(text, 0, false, look, |_| {
            found = true;
            Ok(false)
        })?;
        Ok(found)
    }

    /// Calls `f` with each match from a place on, from the left to the right, none within another, until it says no. `groups` asks for
    /// what groups have matched.
    ///
    /// # Errors
    /// As [`Regex::is_match`], and what `f` says.
    pub(super) fn each(
        &self,
        text: &str,
        from: usize,
        groups: bool,
        look: matcher::Look<'_>,
        mut f: impl FnMut(&Spans) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        let mut places = Vec::new();
        let mut matcher = Matcher::new(&self.parsed, &self.looks, text, &self.word, &mut places, look)?;
        let mut at = from;
        while at <= text.len() {
            crate::work::step(MATCH_UNITS + (text.len() - at) / BYTES_PER_UNIT)?;
            let hint = match &self.automaton {
                Some(automaton) => match automaton.search(&Input::new(text).span(at..text.len())) {
                    Some(found) => Some(found.start()),
                    None => return Ok(()),
                },
                None => None,
            };
            let Some(spans) = matcher.find(at, hint, groups)? else { return Ok(()) };
            let Some((start, end)) = spans[0] else { return Ok(()) };
            if !f(&spans)? {
                return Ok(());
            }
            at = end;
            if start == end {
                // Nothing was matched: go on behind the next character.
                let Some(c) = text[end..].chars().next() else { return Ok(()) };
                at += c.len_utf8();
            }
        }
        Ok(())
    }
}

/// A language in the library's terms; `None` if it has none for a part of it. Where a match begins does not depend on how much is taken:
/// the least is found soonest.
fn hir(node: &Node) -> Option<Hir> {
    Some(match node {
        Node::Empty => Hir::empty(),
        Node::Set(set) => Hir::class(Class::Unicode(set.ranges().clone())),
        Node::Place(Place::TextStart) => Hir::look(Look::Start),
        Node::Place(Place::TextEnd) => Hir::look(Look::End),
        Node::Place(Place::LineStart) => Hir::look(Look::StartLF),
        Node::Place(Place::LineEnd) => Hir::look(Look::EndLF),
        Node::Place(_) | Node::Look { .. } => return None,
        Node::Concat(parts) => Hir::concat(parts.iter().map(|part| hir(part)).collect::<Option<_>>()?),
        Node::Alternate(parts) => Hir::alternation(parts.iter().map(|part| hir(part)).collect::<Option<_>>()?),
        Node::Repeat { node, min, max } => {
            Hir::repetition(Repetition { min: *min, max: *max, greedy: false, sub: Box::new(hir(node)?) })
        }
    })
}
