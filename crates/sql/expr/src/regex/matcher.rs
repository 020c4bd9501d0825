//! Where a pattern matches, and what its groups match there.
//!
//! A match begins as far left as one can; there it is as long as it can be, or as short if the pattern prefers that. Its span found,
//! it is taken apart from the outside in: of neighbours the left one takes the most (or the least) that leaves the right ones a match of the
//! rest. Which ends leave one is known before any is tried: the parts are run backward from the end. So nothing is tried twice, but
//! where a group is referred back to: what it has matched decides then, and choices are taken back, [`RETREATS_MAX`] times at most.

use super::Spans;
use super::class::Set;
use super::parse::Parsed;
use super::program::{Places, Program, View};
use super::tree::{Kind, Tree};
use crate::SqlError;
use std::collections::HashSet;
use std::rc::Rc;

/// Most choices that a search with back-references may try.
pub(super) const RETREATS_MAX: usize = 200_000;

/// A search for one pattern in one text.
pub(super) struct Matcher<'r, 't> {
    parsed: &'r Parsed,
    view: View<'t>,
    /// Where a match may begin, if that had to be found out for the whole text at once.
    starts: Option<Places>,
    retreats: usize,
    look: Look<'r>,
}

/// Whether to go on, asked now and then.
pub(super) type Look<'r> = &'r mut dyn FnMut() -> Result<(), SqlError>;

/// Programs of the constraints that look on or back.
pub(super) fn look_programs(parsed: &Parsed) -> Vec<(Program, bool)> {
    parsed.looks.iter().map(|(node, ahead)| (Program::new(node, *ahead), *ahead)).collect()
}

impl<'r, 't> Matcher<'r, 't> {
    pub(super) fn new(
        parsed: &'r Parsed,
        programs: &[(Program, bool)],
        text: &'t str,
        word: &'t Set,
        places: &'t mut Vec<Places>,
        look: Look<'r>,
    ) -> Result<Matcher<'r, 't>, SqlError> {
        places.clear();
        for (program, ahead) in programs {
            // It holds where it may begin (or, looking back, end): run over the whole text from all places at once.
            let mut holds = Places::of(text);
            let view = View { text, looks: places, word };
            let (from, until) = if *ahead { (text.len(), 0) } else { (0, text.len()) };
            program.run(&view, from, until, Some(&|_| true), look, |at| {
                holds.insert(at);
                true
            })?;
            places.push(holds);
        }
        Ok(Matcher { parsed, view: View { text, looks: places, word }, starts: None, retreats: 0, look })
    }

    /// The first match at or behind a place. `hint` is where the first begins, if that is known.
    pub(super) fn find(&mut self, from: usize, hint: Option<usize>, groups: bool) -> Result<Option<Spans>, SqlError> {
        let tree = &self.parsed.tree;
        let mut at = match hint {
            Some(at) => at,
            None => {
                if self.starts.is_none() {
                    self.starts = Some(self.all_starts()?);
                }
                from
            }
        };
        loop {
            if self.starts.as_ref().is_none_or(|starts| starts.holds(at))
                && let Some(spans) = self.match_at(tree, at, groups)?
            {
                return Ok(Some(spans));
            }
            if hint.is_some() && !tree.traits.refers_back {
                return Ok(None);
            }
            let Some(c) = self.view.text[at..].chars().next() else { return Ok(None) };
            at += c.len_utf8();
        }
    }

    fn all_starts(&mut self) -> Result<Places, SqlError> {
        let mut starts = Places::of(self.view.text);
        let end = self.view.text.len();
        self.parsed.tree.backward().run(&self.view, end, 0, Some(&|_| true), self.look, |at| {
            starts.insert(at);
            true
        })?;
        Ok(starts)
    }

    fn match_at(&mut self, tree: &Tree, start: usize, groups: bool) -> Result<Option<Spans>, SqlError> {
        let mut spans: Spans = vec![None; self.parsed.groups + 1];
        if tree.traits.refers_back {
            for end in self.ends(tree, start, self.view.text.len())? {
                spans.iter_mut().for_each(|span| *span = None);
                if self.dissect(tree, start, end, &mut spans)? {
                    spans[0] = Some((start, end));
                    return Ok(Some(spans));
                }
            }
            return Ok(None);
        }
        let shortest = tree.traits.is_shortest();
        let mut end = None;
        let until = self.view.text.len();
        tree.forward().run(&self.view, start, until, None, self.look, |at| {
            end = Some(at);
            !shortest
        })?;
        let Some(end) = end else { return Ok(None) };
        spans[0] = Some((start, end));
        if groups {
            self.dissect(tree, start, end, &mut spans)?;
        }
        Ok(Some(spans))
    }

    /// Where a part that begins here may end, the preferred end first.
    fn ends(&mut self, tree: &Tree, start: usize, until: usize) -> Result<Vec<usize>, SqlError> {
        let mut ends = Vec::new();
        tree.forward().run(&self.view, start, until, None, self.look, |at| {
            ends.push(at);
            true
        })?;
        if !tree.traits.is_shortest() {
            ends.reverse();
        }
        Ok(ends)
    }

    /// Takes a span apart; `false` if a back-reference does not hold.
    fn dissect(&mut self, tree: &Tree, start: usize, end: usize, spans: &mut Spans) -> Result<bool, SqlError> {
        if !tree.traits.captures && !tree.traits.refers_back {
            return Ok(true);
        }
        match &tree.kind {
            Kind::Leaf => Ok(true),
            Kind::Group(number, inner) => {
                if !self.dissect(inner, start, end, spans)? {
                    return Ok(false);
                }
                spans[*number] = Some((start, end));
                Ok(true)
            }
            Kind::BackReference(number) => {
                let Some((from, to)) = spans[*number] else { return Ok(false) };
                let (known, found) = (&self.view.text[from..to], &self.view.text[start..end]);
                Ok(known == found || (self.parsed.ignore_case && known.to_lowercase() == found.to_lowercase()))
            }
            Kind::Alternate(branches) => {
                for branch in branches {
                    if self.spans_whole(branch, start, end)? && self.attempt(branch, start, end, spans)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Kind::Concat(parts) => {
                let reach = self.reach(parts, start, end)?;
                self.concat(parts, &reach, start, end, spans)
            }
            Kind::Repeat { part, min, max } => self.repeated(tree, part, (*min, *max), start, end, spans),
        }
    }

    /// [`Self::dissect`], after which groups are as before if it failed.
    fn attempt(&mut self, tree: &Tree, start: usize, end: usize, spans: &mut Spans) -> Result<bool, SqlError> {
        if !tree.traits.refers_back {
            return self.dissect(tree, start, end, spans);
        }
        self.retreats += 1;
        if self.retreats > RETREATS_MAX {
            return Err(super::too_many_retreats());
        }
        let before = spans.clone();
        let held = self.dissect(tree, start, end, spans)?;
        if !held {
            *spans = before;
        }
        Ok(held)
    }

    fn spans_whole(&mut self, tree: &Tree, start: usize, end: usize) -> Result<bool, SqlError> {
        let mut whole = false;
        tree.forward().run(&self.view, start, end, None, self.look, |at| {
            whole |= at == end;
            true
        })?;
        Ok(whole)
    }

    /// For each part, the places where it may begin so that it and those behind it match up to the end; last, the end itself.
    fn reach(&mut self, parts: &[Tree], start: usize, end: usize) -> Result<Vec<Rc<Places>>, SqlError> {
        let mut last = Places::of(self.view.text);
        last.insert(end);
        let mut reach = vec![Rc::new(last)];
        for part in parts.iter().rev() {
            let next = reach.last().cloned().unwrap_or_default();
            let mut places = Places::of(self.view.text);
            part.backward().run(&self.view, end, start, Some(&|at| next.holds(at)), self.look, |at| {
                places.insert(at);
                true
            })?;
            reach.push(Rc::new(places));
        }
        reach.reverse();
        Ok(reach)
    }

    fn concat(
        &mut self,
        parts: &[Tree],
        reach: &[Rc<Places>],
        start: usize,
        end: usize,
        spans: &mut Spans,
    ) -> Result<bool, SqlError> {
        let mut at = start;
        for (i, part) in parts.iter().enumerate() {
            if i + 1 == parts.len() {
                return self.attempt(part, at, end, spans);
            }
            let ends: Vec<usize> =
                self.ends(part, at, end)?.into_iter().filter(|place| reach[i + 1].holds(*place)).collect();
            if !parts.iter().any(|part| part.traits.refers_back) {
                // The first end that leaves the rest a match is the one.
                let Some(&place) = ends.first() else { return Ok(false) };
                self.dissect(part, at, place, spans)?;
                at = place;
                continue;
            }
            let before = spans.clone();
            for place in ends {
                self.retreats += 1;
                if self.retreats > RETREATS_MAX {
                    return Err(super::too_many_retreats());
                }
                if self.attempt(part, at, place, spans)?
                    && self.concat(&parts[i + 1..], &reach[i + 1..], place, end, spans)?
                {
                    return Ok(true);
                }
                spans.clone_from(&before);
            }
            return Ok(false);
        }
        Ok(true)
    }

    /// One after another; each takes the most (or the least) that leaves the others a match. Groups are those of the last.
    fn repeated(
        &mut self,
        tree: &Tree,
        part: &Tree,
        (min, max): (u32, Option<u32>),
        start: usize,
        end: usize,
        spans: &mut Spans,
    ) -> Result<bool, SqlError> {
        if start == end && min == 0 {
            // Nothing is there to match: once if that can be, else not at all.
            if self.spans_whole(part, start, end)? {
                let _ = self.attempt(part, start, end, spans)?;
            }
            return Ok(true);
        }
        if !part.traits.refers_back && min == 0 && max.is_none() {
            // Where a start leads to the end by any number of them: no choice is ever taken back, and only the last is looked into.
            let mut reach = Places::of(self.view.text);
            tree.backward().run(&self.view, end, start, None, self.look, |at| {
                reach.insert(at);
                true
            })?;
            let (mut at, mut last) = (start, (start, start));
            while at < end {
                let ends = self.ends(part, at, end)?;
                let Some(place) = ends.into_iter().find(|place| *place > at && reach.holds(*place)) else {
                    return Ok(false);
                };
                last = (at, place);
                at = place;
            }
            return self.dissect(part, last.0, last.1, spans);
        }
        // Places between two of them: a loop, not a descent, so that a long text is no deep one.
        let mut path: Vec<(usize, std::vec::IntoIter<usize>)> = Vec::new();
        let mut failed: HashSet<(usize, usize)> = HashSet::new();
        let limit = max.map_or(usize::MAX, |max| max as usize);
        let mut at = start;
        let before = spans.clone();
        let mut saved = vec![];
        loop {
            let count = path.len();
            let enough = count >= min as usize;
            if at == end && enough {
                return Ok(true);
            }
            let mut choices = Vec::new();
            if count < limit && !failed.contains(&(count, at)) {
                choices = self.ends(part, at, end)?;
                // Nothing may be matched again and again only as long as there are too few.
                choices.retain(|place| *place > at || !enough);
            }
            saved.push(spans.clone());
            path.push((at, choices.into_iter()));
            // The next choice of the last, or of those before it.
            loop {
                let Some((from, choices)) = path.last_mut() else {
                    *spans = before;
                    return Ok(false);
                };
                let from = *from;
                let Some(place) = choices.next() else {
                    let count = path.len() - 1;
                    if !part.traits.refers_back {
                        failed.insert((count, from));
                    }
                    path.pop();
                    if let Some(known) = saved.pop() {
                        *spans = known;
                    }
                    continue;
                };
                self.retreats += usize::from(part.traits.refers_back);
                if self.retreats > RETREATS_MAX {
                    return Err(super::too_many_retreats());
                }
                if let Some(known) = saved.last() {
                    spans.clone_from(known);
                }
                clear_groups(part, spans);
                if self.attempt(part, from, place, spans)? {
                    at = place;
                    break;
                }
            }
        }
    }
}

/// Forgets what an earlier round has matched.
fn clear_groups(tree: &Tree, spans: &mut Spans) {
    match &tree.kind {
        Kind::Leaf | Kind::BackReference(_) => {}
        Kind::Group(number, inner) => {
            spans[*number] = None;
            clear_groups(inner, spans);
        }
        Kind::Concat(parts) | Kind::Alternate(parts) => parts.iter().for_each(|part| clear_groups(part, spans)),
        Kind::Repeat { part, .. } => clear_groups(part, spans),
    }
}
