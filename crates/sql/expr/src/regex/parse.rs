//! Patterns as PostgreSQL writes them: advanced regular expressions, and the extended and basic ones of POSIX.

use super::class::{self, Set};
use super::program::{STATES_MAX, states};
use super::tree::{Kind, Node, Place, Preference, Traits, Tree};
use regex_syntax::hir::ClassUnicode;
use std::rc::Rc;

/// Deepest nesting of parentheses.
const DEPTH_MAX: usize = 1_000;
/// Most parts of one branch that a match is taken apart into.
const PARTS_MAX: usize = 2_000;
/// Greatest count of a repetition, as in PostgreSQL.
const REPEAT_MAX: u32 = 255;

/// Which language a pattern is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavor {
    Advanced,
    Extended,
    Basic,
    Literal,
}

/// How a pattern is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub flavor: Flavor,
    pub ignore_case: bool,
    /// White space and comments in the pattern say nothing.
    pub expanded: bool,
    /// `.` and `[^..]` do not match a newline.
    pub newline_stops: bool,
    /// `^` and `$` match at each line.
    pub line_anchors: bool,
}

/// A pattern, read.
#[derive(Debug)]
pub(super) struct Parsed {
    pub tree: Tree,
    /// Number of groups.
    pub groups: usize,
    /// Constraints that look on (`true`) or back, inner ones first.
    pub looks: Vec<(Rc<Node>, bool)>,
    pub ignore_case: bool,
}

/// What is wrong with a pattern, in PostgreSQL's words.
pub(super) type Fault = &'static str;

pub(super) const TOO_COMPLEX: Fault = "regular expression is too complex";
const BAD_REPEAT: Fault = "quantifier operand invalid";
const BAD_ESCAPE: Fault = "invalid escape \\ sequence";
const BAD_REFERENCE: Fault = "invalid backreference number";
const BAD_BRACKETS: Fault = "brackets [] not balanced";
const BAD_PARENS: Fault = "parentheses () not balanced";
const BAD_BRACES: Fault = "braces {} not balanced";
const BAD_COUNT: Fault = "invalid repetition count(s)";
const BAD_RANGE: Fault = "invalid character range";
const BAD_CLASS: Fault = "invalid character class";
const BAD_COLLATING: Fault = "invalid collating element";
const BAD_OPTION: Fault = "invalid embedded option";

/// The statement was ended: who hears of it asks why.
const ENDED: Fault = "the statement was ended";
/// What a class costs, in the units of [`crate::work`]: it has hundreds of ranges.
const CLASS_UNITS: usize = 4096;
/// What any other part costs.
const PART_UNITS: usize = 64;

struct Parser<'p> {
    rest: &'p str,
    options: Options,
    depth: usize,
    /// Groups by number, once they are closed.
    groups: Vec<Option<Rc<Node>>>,
    looks: Vec<(Rc<Node>, bool)>,
    /// Inside of a constraint, where groups do not capture.
    looking: bool,
}

/// One thing and how often.
struct Item {
    tree: Tree,
    is_constraint: bool,
}

impl Item {
    fn set(set: ClassUnicode) -> Item {
        let node = Rc::new(Node::Set(Set::new(set)));
        Item { tree: Tree::leaf(node, Traits::default()), is_constraint: false }
    }
    fn place(place: Place) -> Item {
        Item { tree: Tree::leaf(Rc::new(Node::Place(place)), Traits::default()), is_constraint: true }
    }
}

/// Reads a pattern.
pub(super) fn parse(pattern: &str, options: Options) -> Result<Parsed, Fault> {
    let mut p = Parser { rest: pattern, options, depth: 0, groups: Vec::new(), looks: Vec::new(), looking: false };
    p.director()?;
    let tree = if p.options.flavor == Flavor::Literal {
        let items = p.rest.chars().map(|c| Rc::clone(&p.literal(c).tree.node)).collect();
        Tree::leaf(Rc::new(Node::Concat(items)), Traits::default())
    } else {
        let tree = p.alternatives(false)?;
        if !p.rest.is_empty() {
            return Err(BAD_PARENS);
        }
        tree
    };
    let looks = p.looks.iter().fold(0usize, |sum, (node, _)| sum.saturating_add(states(node)));
    if states(&tree.node).saturating_add(looks) > STATES_MAX {
        return Err(TOO_COMPLEX);
    }
    Ok(Parsed { tree, groups: p.groups.len(), looks: p.looks, ignore_case: p.options.ignore_case })
}

impl Parser<'_> {
    /// `***:`, `***=` and `(?i)` at the start.
    fn director(&mut self) -> Result<(), Fault> {
        if self.options.flavor == Flavor::Literal {
            return Ok(());
        }
        if let Some(rest) = self.rest.strip_prefix("***") {
            match rest.as_bytes().first() {
                Some(b'=') => self.options.flavor = Flavor::Literal,
                Some(b':') => self.options.flavor = Flavor::Advanced,
                _ => return Err(BAD_REPEAT),
            }
            self.rest = &rest[1..];
        }
        let embedded = self.rest.strip_prefix("(?").filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
        if let (Flavor::Advanced, Some(rest)) = (self.options.flavor, embedded) {
            let (letters, rest) = rest.split_once(')').ok_or(BAD_OPTION)?;
            for letter in letters.chars() {
                match letter {
                    'e' => self.options.flavor = Flavor::Extended,
                    'b' => self.options.flavor = Flavor::Basic,
                    'q' => self.options.flavor = Flavor::Literal,
                    letter if self.options.set(letter) => {}
                    _ => return Err(BAD_OPTION),
                }
            }
            self.rest = rest;
        }
        Ok(())
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }
    fn take(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        Some(c)
    }
    /// Passes over what says nothing.
    fn skip(&mut self) {
        loop {
            if self.options.flavor == Flavor::Advanced && self.rest.starts_with("(?#") {
                self.rest = self.rest.split_once(')').map_or("", |(_, rest)| rest);
                continue;
            }
            if !self.options.expanded {
                return;
            }
            match self.peek() {
                Some(c) if c.is_whitespace() => {
                    self.next();
                }
                Some('#') => self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest),
                _ => return,
            }
        }
    }

    fn literal(&self, c: char) -> Item {
        let set = class::one(c);
        Item::set(if self.options.ignore_case { class::folded(set) } else { set })
    }
    fn is_basic(&self) -> bool {
        self.options.flavor == Flavor::Basic
    }
    fn at_close(&self) -> bool {
        self.rest.starts_with(if self.is_basic() { "\\)" } else { ")" })
    }

    /// Branches up to a closing parenthesis or the end.
    fn alternatives(&mut self, inside: bool) -> Result<Tree, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TOO_COMPLEX);
        }
        let mut branches = vec![self.branch(inside)?];
        while !self.is_basic() && self.take("|") {
            branches.push(self.branch(inside)?);
        }
        self.depth -= 1;
        if branches.len() == 1 {
            return branches.pop().ok_or(TOO_COMPLEX);
        }
        // A choice would be long, whatever its branches are.
        let traits = branches
            .iter()
            .fold(Traits::prefers(Some(Preference::Longest)), |traits, branch| traits.and(branch.traits));
        let node = Rc::new(Node::Alternate(branches.iter().map(|branch| Rc::clone(&branch.node)).collect()));
        Ok(if branches.iter().all(|branch| branch.traits.is_plain()) {
            Tree::leaf(node, Traits::prefers(Some(Preference::Longest)))
        } else {
            Tree::new(Kind::Alternate(branches), node, traits)
        })
    }

    fn branch(&mut self, inside: bool) -> Result<Tree, Fault> {
        let mut items = Vec::new();
        loop {
            self.skip();
            let ends = self.rest.is_empty() || (!self.is_basic() && self.rest.starts_with('|'));
            if ends || (self.at_close() && inside) {
                return assemble(items);
            }
            items.push(self.quantified(items.is_empty())?);
        }
    }

    fn quantified(&mut self, first: bool) -> Result<Tree, Fault> {
        let item = self.atom(first)?;
        self.skip();
        let Some((min, max, preference)) = self.quantifier(first)? else { return Ok(item.tree) };
        if item.is_constraint {
            return Err(BAD_REPEAT);
        }
        repeat(item.tree, min, max, preference)
    }

    /// How often, and the preference that the quantifier has of its own.
    fn quantifier(&mut self, _first: bool) -> Result<Option<(u32, Option<u32>, Option<Preference>)>, Fault> {
        let counts = match self.peek() {
            Some('*') => {
                self.next();
                (0, None)
            }
            Some('+') if !self.is_basic() => {
                self.next();
                (1, None)
            }
            Some('?') if !self.is_basic() => {
                self.next();
                (0, Some(1))
            }
            Some('{') if !self.is_basic() && self.opens_bound() => return self.bound("}").map(Some),
            Some('\\') if self.is_basic() && self.rest.starts_with("\\{") => {
                self.next();
                return self.bound("\\}").map(Some);
            }
            _ => return Ok(None),
        };
        let preference = self.lazy();
        Ok(Some((counts.0, counts.1, Some(preference))))
    }

    fn lazy(&mut self) -> Preference {
        if self.options.flavor == Flavor::Advanced && self.take("?") {
            Preference::Shortest
        } else {
            Preference::Longest
        }
    }

    fn opens_bound(&self) -> bool {
        self.rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit)
    }

    /// `{m}`, `{m,}`, `{m,n}`
    fn bound(&mut self, close: &str) -> Result<(u32, Option<u32>, Option<Preference>), Fault> {
        self.next();
        let min = self.count()?.ok_or(BAD_COUNT)?;
        let (max, is_exact) = if self.take(",") { (self.count()?, false) } else { (Some(min), true) };
        if !self.take(close) {
            return Err(if self.rest.is_empty() { BAD_BRACES } else { BAD_COUNT });
        }
        if max.is_some_and(|max| max < min) {
            return Err(BAD_COUNT);
        }
        let preference = self.lazy();
        Ok((min, max, if is_exact { None } else { Some(preference) }))
    }

    fn count(&mut self) -> Result<Option<u32>, Fault> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        if number.is_empty() {
            return Ok(None);
        }
        number.parse().ok().filter(|n| *n <= REPEAT_MAX).map(Some).ok_or(BAD_COUNT)
    }

    fn atom(&mut self, first: bool) -> Result<Item, Fault> {
        let Some(c) = self.next() else { return Err(BAD_REPEAT) };
        crate::work::step(PART_UNITS).map_err(|_| ENDED)?;
        let basic = self.is_basic();
        Ok(match c {
            '\\' => return self.escape(),
            '.' => {
                Item::set(if self.options.newline_stops { class::without_newline(class::any()) } else { class::any() })
            }
            '[' => return self.bracket(),
            '^' if !basic || first => {
                Item::place(if self.options.line_anchors { Place::LineStart } else { Place::TextStart })
            }
            '$' if !basic || self.rest.is_empty() || self.at_close() => {
                Item::place(if self.options.line_anchors { Place::LineEnd } else { Place::TextEnd })
            }
            '(' if !basic => return self.parens(),
            ')' if !basic => return Err(BAD_PARENS),
            '*' if basic && first => self.literal(c),
            '*' => return Err(BAD_REPEAT),
            '+' | '?' if !basic => return Err(BAD_REPEAT),
            '{' if !basic && self.rest.starts_with(|c: char| c.is_ascii_digit()) => return Err(BAD_REPEAT),
            c => self.literal(c),
        })
    }

    fn parens(&mut self) -> Result<Item, Fault> {
        if self.options.flavor == Flavor::Advanced && self.take("?") {
            let (ahead, negated) = if self.take(":") {
                let tree = self.inside()?;
                return Ok(Item { tree, is_constraint: false });
            } else if self.take("=") {
                (true, false)
            } else if self.take("!") {
                (true, true)
            } else if self.take("<=") {
                (false, false)
            } else if self.take("<!") {
                (false, true)
            } else {
                return Err(BAD_REPEAT);
            };
            let outer = std::mem::replace(&mut self.looking, true);
            let tree = self.inside()?;
            self.looking = outer;
            self.looks.push((tree.node, ahead));
            let node = Rc::new(Node::Look { index: self.looks.len() - 1, negated });
            return Ok(Item { tree: Tree::leaf(node, Traits::default()), is_constraint: true });
        }
        self.group()
    }

    fn group(&mut self) -> Result<Item, Fault> {
        if self.looking {
            return Ok(Item { tree: self.inside()?, is_constraint: false });
        }
        self.groups.push(None);
        let number = self.groups.len();
        let inner = self.inside()?;
        self.groups[number - 1] = Some(Rc::clone(&inner.node));
        let (node, traits) = (Rc::clone(&inner.node), Traits { captures: true, ..inner.traits });
        Ok(Item { tree: Tree::new(Kind::Group(number, Box::new(inner)), node, traits), is_constraint: false })
    }

    /// What stands in parentheses, up to behind the closing one.
    fn inside(&mut self) -> Result<Tree, Fault> {
        let tree = self.alternatives(true)?;
        let closed = self.take(if self.is_basic() { "\\)" } else { ")" });
        if closed { Ok(tree) } else { Err(BAD_PARENS) }
    }

    fn escape(&mut self) -> Result<Item, Fault> {
        let c = self.next().ok_or(BAD_ESCAPE)?;
        match self.options.flavor {
            Flavor::Basic => {
                return match c {
                    '(' => self.group(),
                    ')' => Err(BAD_PARENS),
                    '{' | '}' => Err(BAD_REPEAT),
                    '<' => Ok(Item::place(Place::WordStart)),
                    '>' => Ok(Item::place(Place::WordEnd)),
                    '1'..='9' => self.back_reference(c as usize - '0' as usize),
                    c => Ok(self.literal(c)),
                };
            }
            Flavor::Extended => return Ok(self.literal(c)),
            Flavor::Advanced | Flavor::Literal => {}
        }
        if let Some(set) = self.class_escape(c) {
            return Ok(Item::set(set));
        }
        Ok(match c {
            'A' => Item::place(Place::TextStart),
            'Z' => Item::place(Place::TextEnd),
            'm' => Item::place(Place::WordStart),
            'M' => Item::place(Place::WordEnd),
            'y' => Item::place(Place::WordEdge),
            'Y' => Item::place(Place::NoWordEdge),
            '1'..='9' => {
                let digits = 1 + self.rest.bytes().take_while(u8::is_ascii_digit).count();
                let text = format!("{c}{}", &self.rest[..digits - 1]);
                let number: usize = text.parse().unwrap_or(usize::MAX);
                // Several digits are a reference only if there are so many groups; else an octal number.
                if digits == 1 || number <= self.groups.len() {
                    self.rest = &self.rest[digits - 1..];
                    return self.back_reference(number);
                }
                let c = self.octal(c)?;
                self.literal(c)
            }
            c => {
                let c = self.character_escape(c)?;
                self.literal(c)
            }
        })
    }

    fn back_reference(&mut self, number: usize) -> Result<Item, Fault> {
        let known = self.groups.get(number - 1).cloned().flatten().filter(|_| !self.looking);
        let node = known.ok_or(BAD_REFERENCE)?;
        let traits = Traits { refers_back: true, ..Traits::default() };
        Ok(Item { tree: Tree::new(Kind::BackReference(number), node, traits), is_constraint: false })
    }

    fn class_escape(&self, c: char) -> Option<ClassUnicode> {
        Some(match c {
            'd' => class::named("digit")?,
            's' => class::named("space")?,
            'w' => class::named("word")?,
            'D' => class::negated(class::named("digit")?),
            'S' => class::negated(class::named("space")?),
            'W' => class::negated(class::named("word")?),
            _ => return None,
        })
    }

    fn octal(&mut self, first: char) -> Result<char, Fault> {
        let mut code = first.to_digit(8).ok_or(BAD_ESCAPE)?;
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else { break };
            code = code * 8 + digit;
            self.next();
        }
        char::from_u32(code).ok_or(BAD_ESCAPE)
    }

    fn hexadecimal(&mut self, least: usize, most: usize) -> Result<char, Fault> {
        let digits = self.rest.bytes().take(most).take_while(u8::is_ascii_hexdigit).count();
        if digits < least {
            return Err(BAD_ESCAPE);
        }
        let (text, rest) = self.rest.split_at(digits);
        self.rest = rest;
        // `\x` takes all digits there are, of which the last two say the character.
        let last = if most > 8 { &text[text.len().saturating_sub(2)..] } else { text };
        u32::from_str_radix(if most > 8 && text.len() > 2 { text.trim_start_matches('0') } else { last }, 16)
            .ok()
            .and_then(char::from_u32)
            .ok_or(BAD_ESCAPE)
    }

    /// An escape that stands for one character.
    fn character_escape(&mut self, c: char) -> Result<char, Fault> {
        Ok(match c {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'B' => '\\',
            'c' => {
                let c = self.next().ok_or(BAD_ESCAPE)?;
                char::from_u32(c as u32 & 0x1f).ok_or(BAD_ESCAPE)?
            }
            'e' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'u' => self.hexadecimal(4, 4)?,
            'U' => self.hexadecimal(8, 8)?,
            'x' => self.hexadecimal(1, 255)?,
            '0' => self.octal('0')?,
            c if c.is_ascii_alphanumeric() => return Err(BAD_ESCAPE),
            c => c,
        })
    }

    fn bracket(&mut self) -> Result<Item, Fault> {
        if self.take("[:<:]]") {
            return Ok(Item::place(Place::WordStart));
        }
        if self.take("[:>:]]") {
            return Ok(Item::place(Place::WordEnd));
        }
        let complement = self.take("^");
        let mut set = ClassUnicode::empty();
        let mut first = true;
        loop {
            if !first && self.take("]") {
                break;
            }
            first = false;
            match self.element()? {
                Element::Class(class) => set.union(&class),
                Element::One(low) => {
                    let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
                    if !is_range {
                        set.union(&class::one(low));
                        continue;
                    }
                    self.next();
                    let Element::One(high) = self.element()? else { return Err(BAD_RANGE) };
                    if high < low {
                        return Err(BAD_RANGE);
                    }
                    set.union(&class::range(low, high));
                }
            }
        }
        if self.options.ignore_case {
            set = class::folded(set);
        }
        if complement {
            set = class::negated(set);
            if self.options.newline_stops {
                set = class::without_newline(set);
            }
        }
        Ok(Item::set(set))
    }

    fn element(&mut self) -> Result<Element, Fault> {
        let is_class = self.rest.starts_with(['[', '\\']);
        crate::work::step(if is_class { CLASS_UNITS } else { PART_UNITS }).map_err(|_| ENDED)?;
        for (open, close) in [("[:", ":]"), ("[.", ".]"), ("[=", "=]")] {
            if !self.take(open) {
                continue;
            }
            let (name, rest) = self.rest.split_once(close).ok_or(BAD_BRACKETS)?;
            let element = match open {
                "[:" => Element::Class(class::named(name).ok_or(BAD_CLASS)?),
                _ => Element::One(class::collating(name).ok_or(BAD_COLLATING)?),
            };
            self.rest = rest;
            return Ok(element);
        }
        let c = self.next().ok_or(BAD_BRACKETS)?;
        if c == '\\' && self.options.flavor == Flavor::Advanced {
            let c = self.next().ok_or(BAD_ESCAPE)?;
            if let Some(class) = self.class_escape(c) {
                return Ok(Element::Class(class));
            }
            return Ok(Element::One(match c {
                '1'..='7' => self.octal(c)?,
                c => self.character_escape(c)?,
            }));
        }
        Ok(Element::One(c))
    }
}

enum Element {
    One(char),
    Class(ClassUnicode),
}

impl Options {
    /// Sets what a letter means; `false` if it means nothing.
    pub(super) fn set(&mut self, letter: char) -> bool {
        match letter {
            'i' => self.ignore_case = true,
            'c' => self.ignore_case = false,
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'n' | 'm' => (self.newline_stops, self.line_anchors) = (true, true),
            's' => (self.newline_stops, self.line_anchors) = (false, false),
            'p' => (self.newline_stops, self.line_anchors) = (true, false),
            'w' => (self.newline_stops, self.line_anchors) = (false, true),
            _ => return false,
        }
        true
    }
}

/// Puts the items of a branch together: neighbours without groups, and of one preference, are one stretch.
fn assemble(items: Vec<Tree>) -> Result<Tree, Fault> {
    if items.len() == 1 {
        return items.into_iter().next().ok_or(TOO_COMPLEX);
    }
    let mut parts: Vec<Tree> = Vec::new();
    let mut run: (Vec<Rc<Node>>, Traits) = (Vec::new(), Traits::default());
    for item in items {
        let together = run.1.and(item.traits);
        if together.is_plain() {
            run.0.push(Rc::clone(&item.node));
            run.1 = together;
            continue;
        }
        if !run.0.is_empty() {
            parts.push(Tree::leaf(Rc::new(Node::Concat(std::mem::take(&mut run.0))), run.1));
        }
        run.1 = Traits::default();
        parts.push(item);
    }
    if !run.0.is_empty() || parts.is_empty() {
        parts.push(Tree::leaf(Rc::new(Node::Concat(run.0)), run.1));
    }
    if parts.len() > PARTS_MAX {
        return Err(TOO_COMPLEX);
    }
    if parts.len() == 1 {
        return parts.pop().ok_or(TOO_COMPLEX);
    }
    let traits = parts.iter().fold(Traits::default(), |traits, part| traits.and(part.traits));
    let node = Rc::new(Node::Concat(parts.iter().map(|part| Rc::clone(&part.node)).collect()));
    Ok(Tree::new(Kind::Concat(parts), node, traits))
}

/// A thing so many times.
fn repeat(tree: Tree, min: u32, max: Option<u32>, preference: Option<Preference>) -> Result<Tree, Fault> {
    if max == Some(0) {
        return Ok(Tree::leaf(Rc::new(Node::Empty), Traits::default()));
    }
    let traits = Traits::prefers(preference).and(tree.traits);
    let repeated = |min, max| Rc::new(Node::Repeat { node: Rc::clone(&tree.node), min, max });
    let node = repeated(min, max);
    if states(&node) > STATES_MAX {
        return Err(TOO_COMPLEX);
    }
    if traits.is_plain() {
        return Ok(Tree::leaf(node, traits));
    }
    let same = preference.is_none() || tree.traits.preference.is_none() || preference == tree.traits.preference;
    if min == 1 && max == Some(1) && same && !(tree.traits.has_longest && tree.traits.has_shortest) {
        return Ok(tree);
    }
    if min > 0 && !tree.traits.refers_back {
        // All but the last, which alone captures.
        let before = Tree::leaf(repeated(min - 1, max.map(|max| max - 1)), Traits::prefers(traits.preference));
        return Ok(Tree::new(Kind::Concat(vec![before, tree]), node, traits));
    }
    Ok(Tree::new(Kind::Repeat { part: Box::new(tree), min, max }, node, traits))
}
