//! Sets of characters: classes, ranges, and what is the same but for case.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use std::rc::Rc;
use std::sync::LazyLock;

/// A set of characters, its ranges sorted.
#[derive(Clone, Debug)]
pub(super) struct Set {
    ranges: ClassUnicode,
    /// The first 128 characters as bits: most texts have no others.
    ascii: u128,
}

impl Set {
    pub(super) fn new(ranges: ClassUnicode) -> Rc<Set> {
        let mut ascii = 0u128;
        for range in ranges.ranges() {
            for c in range.start() as u32..=(range.end() as u32).min(127) {
                ascii |= 1 << c;
            }
        }
        Rc::new(Set { ranges, ascii })
    }

    #[inline]
    pub(super) fn holds(&self, c: char) -> bool {
        if c.is_ascii() {
            return self.ascii & (1 << c as u32) != 0;
        }
        let ranges = self.ranges.ranges();
        let at = ranges.partition_point(|range| range.end() < c);
        ranges.get(at).is_some_and(|range| range.start() <= c)
    }

    pub(super) fn ranges(&self) -> &ClassUnicode {
        &self.ranges
    }
}

pub(super) fn range(first: char, last: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(first, last)])
}

pub(super) fn one(c: char) -> ClassUnicode {
    range(c, c)
}

pub(super) fn any() -> ClassUnicode {
    range('\0', char::MAX)
}

pub(super) fn without_newline(mut set: ClassUnicode) -> ClassUnicode {
    set.difference(&one('\n'));
    set
}

pub(super) fn negated(mut set: ClassUnicode) -> ClassUnicode {
    set.negate();
    set
}

/// All that differ from these in case only, too.
pub(super) fn folded(mut set: ClassUnicode) -> ClassUnicode {
    set.case_fold_simple();
    set
}

/// A class by Unicode's general categories, read once.
fn category(pattern: &str) -> ClassUnicode {
    let parsed = regex_syntax::Parser::new().parse(pattern).map(regex_syntax::hir::Hir::into_kind);
    match parsed {
        Ok(regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class))) => class,
        // The patterns are those below; a class of nothing would show in every test.
        _ => ClassUnicode::empty(),
    }
}

macro_rules! classes {
    ($($name:literal => $pattern:literal),* $(,)?) => {
        /// A class by its name between `[:` and `:]`.
        pub(super) fn named(name: &str) -> Option<ClassUnicode> {
            match name {
                $($name => {
                    static CLASS: LazyLock<ClassUnicode> = LazyLock::new(|| category($pattern));
                    Some(CLASS.clone())
                })*
                _ => None,
            }
        }
    };
}

// Digits are those of ASCII only, as C libraries have it; others count as letters.
classes! {
    "alpha" => r"[\p{L}\p{Nl}\p{Nd}--[0-9]]",
    "digit" => r"[0-9]",
    "alnum" => r"[\p{L}\p{Nl}\p{Nd}]",
    "word" => r"[\p{L}\p{Nl}\p{Nd}_]",
    "upper" => r"\p{Lu}",
    "lower" => r"\p{Ll}",
    "space" => r"[\t-\r\p{Z}--[\u{a0}\u{2007}\u{202f}]]",
    "blank" => r"[ \t]",
    "punct" => r"[\p{P}\p{S}]",
    "cntrl" => r"\p{Cc}",
    "xdigit" => r"[0-9A-Fa-f]",
    "print" => r"[^\p{Cc}\p{Cn}\p{Cs}]",
    "graph" => r"[^\p{Cc}\p{Cn}\p{Cs}\p{Z}]",
    "ascii" => r"[\x00-\x7f]",
}

/// A collating element by its name.
pub(super) fn collating(name: &str) -> Option<char> {
    let mut chars = name.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return Some(c);
    }
    const NAMES: &[(&str, char)] = &[
        ("NUL", '\0'),
        ("alert", '\u{7}'),
        ("BEL", '\u{7}'),
        ("backspace", '\u{8}'),
        ("BS", '\u{8}'),
        ("tab", '\t'),
        ("HT", '\t'),
        ("newline", '\n'),
        ("LF", '\n'),
        ("vertical-tab", '\u{b}'),
        ("VT", '\u{b}'),
        ("form-feed", '\u{c}'),
        ("FF", '\u{c}'),
        ("carriage-return", '\r'),
        ("CR", '\r'),
        ("ESC", '\u{1b}'),
        ("DEL", '\u{7f}'),
        ("space", ' '),
        ("exclamation-mark", '!'),
        ("quotation-mark", '"'),
        ("number-sign", '#'),
        ("dollar-sign", '$'),
        ("percent-sign", '%'),
        ("ampersand", '&'),
        ("apostrophe", '\''),
        ("left-parenthesis", '('),
        ("right-parenthesis", ')'),
        ("asterisk", '*'),
        ("plus-sign", '+'),
        ("comma", ','),
        ("hyphen", '-'),
        ("hyphen-minus", '-'),
        ("period", '.'),
        ("full-stop", '.'),
        ("slash", '/'),
        ("solidus", '/'),
        ("zero", '0'),
        ("one", '1'),
        ("two", '2'),
        ("three", '3'),
        ("four", '4'),
        ("five", '5'),
        ("six", '6'),
        ("seven", '7'),
        ("eight", '8'),
        ("nine", '9'),
        ("colon", ':'),
        ("semicolon", ';'),
        ("less-than-sign", '<'),
        ("equals-sign", '='),
        ("greater-than-sign", '>'),
        ("question-mark", '?'),
        ("commercial-at", '@'),
        ("left-square-bracket", '['),
        ("backslash", '\\'),
        ("reverse-solidus", '\\'),
        ("right-square-bracket", ']'),
        ("circumflex", '^'),
        ("circumflex-accent", '^'),
        ("underscore", '_'),
        ("low-line", '_'),
        ("grave-accent", '`'),
        ("left-brace", '{'),
        ("left-curly-bracket", '{'),
        ("vertical-line", '|'),
        ("right-brace", '}'),
        ("right-curly-bracket", '}'),
        ("tilde", '~'),
    ];
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, c)| *c)
}
