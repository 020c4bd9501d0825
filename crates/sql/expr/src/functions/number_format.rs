//! `to_char` and `to_number` for numbers.
//!
//! A template is read into patterns and a summary of them (how many digits before and behind the point, which signs); then the number is
//! written in decimal, and each pattern takes the place that is next: blanks before the number begins, zeros from the first `0` on, digits, the
//! point. `FM` leaves out blanks and zeros that nobody asked for. What does not fit is shown as `#`.

use super::super::function::Arguments;
use super::date_format::ordinal;
use super::{str_at, wrong_type};
use crate::types::{Numeric, Value};
use crate::work::{Held, step};
use crate::{SqlError, SqlState};

type R = Result<Value, SqlError>;

/// Units of work of a character of a template: it is compared with all words.
const CHARACTER_UNITS: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Pattern {
    /// 9
    Digit,
    /// 0
    Zero,
    Point,
    Group,
    Minus,
    Plus,
    PlusMinus,
    Currency,
    Ordinal {
        upper: bool,
    },
    /// What says something of the whole only: FM, S, PR, V, B, C, SP.
    Silent,
    Literal(char),
}

/// Where the sign of `S` goes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SignPlace {
    Before,
    Behind,
}

#[derive(Debug, Default)]
struct Template {
    patterns: Vec<Pattern>,
    /// Digits before the point, and behind it.
    before: usize,
    behind: usize,
    /// Digits before the first 0, if there is one; digits up to the last.
    first_zero: Option<usize>,
    last_zero: usize,
    has_point: bool,
    /// FM
    is_bare: bool,
    /// S, and how many digits stood before it.
    sign: Option<(SignPlace, usize)>,
    has_minus: bool,
    has_plus: bool,
    /// PR
    brackets: bool,
    /// RN, in capitals or not.
    roman: Option<bool>,
    blank: bool,
    /// Digits behind V.
    shift: Option<usize>,
    /// EEEE
    scientific: bool,
}

fn invalid(text: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, text.to_owned())
}

/// The words of templates; the longer first.
const WORDS: [&str; 22] = [
    "EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", ",", ".", "0", "9", "B", "C", "D", "G", "L", "S", "V",
    "\"", "\\",
];

impl Template {
    fn read(text: &str) -> Result<Template, SqlError> {
        let mut template = Template::default();
        let mut rest = text;
        let mut held = Held::default();
        held.take(text.len() * size_of::<Pattern>())?;
        while let Some(c) = rest.chars().next() {
            step(CHARACTER_UNITS)?;
            let word = WORDS.iter().find(|word| {
                rest.get(..word.len()).is_some_and(|start| {
                    start == **word || start.bytes().eq(word.bytes().map(|b| b.to_ascii_lowercase()))
                })
            });
            match word.copied() {
                Some("\"") => rest = template.quoted(&rest[1..]),
                Some("\\") => {
                    // Only a quote is escaped outside of quotes.
                    let escaped = rest.as_bytes().get(1) == Some(&b'"');
                    template.patterns.push(Pattern::Literal(if escaped { '"' } else { '\\' }));
                    rest = &rest[if escaped { 2 } else { 1 }..];
                }
                Some(word) => {
                    template.word(word, c.is_ascii_uppercase())?;
                    rest = &rest[word.len()..];
                }
                None => {
                    template.patterns.push(Pattern::Literal(c));
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        Ok(template)
    }

    /// Takes text up to the closing quote; gives what is behind it.
    fn quoted<'t>(&mut self, text: &'t str) -> &'t str {
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let c = match c {
                '"' => break,
                '\\' => match chars.next() {
                    Some(escaped) => escaped,
                    None => break,
                },
                c => c,
            };
            self.patterns.push(Pattern::Literal(c));
        }
        chars.as_str()
    }

    fn word(&mut self, word: &str, upper: bool) -> Result<(), SqlError> {
        if self.scientific && word != "EEEE" {
            return Err(invalid("\"EEEE\" must be the last pattern used"));
        }
        let pattern = match word {
            "9" | "0" => {
                if self.brackets {
                    return Err(invalid(&format!("\"{word}\" must be ahead of \"PR\"")));
                }
                self.digit(word == "0")
            }
            "." | "D" => {
                if self.has_point {
                    return Err(invalid("multiple decimal points"));
                }
                if self.shift.is_some() {
                    return Err(invalid("cannot use \"V\" and decimal point together"));
                }
                self.has_point = true;
                Pattern::Point
            }
            "," | "G" => Pattern::Group,
            "L" => Pattern::Currency,
            "TH" => Pattern::Ordinal { upper },
            "S" | "MI" | "PL" | "SG" | "PR" => self.sign(word)?,
            "FM" => {
                self.is_bare = true;
                Pattern::Silent
            }
            "RN" => {
                self.roman = Some(upper);
                Pattern::Silent
            }
            "B" => {
                self.blank |= self.before == 0 && self.behind == 0 && self.first_zero.is_none();
                Pattern::Silent
            }
            "V" => {
                if self.has_point {
                    return Err(invalid("cannot use \"V\" and decimal point together"));
                }
                self.shift = Some(0);
                Pattern::Silent
            }
            "EEEE" => {
                if self.scientific {
                    return Err(invalid("cannot use \"EEEE\" twice"));
                }
                let signs = self.sign.is_some() || self.brackets || self.has_minus || self.has_plus;
                if self.blank || self.is_bare || signs || self.roman.is_some() || self.shift.is_some() {
                    return Err(invalid("\"EEEE\" is incompatible with other formats")
                        .detail("\"EEEE\" may only be used together with digit and decimal point patterns."));
                }
                self.scientific = true;
                Pattern::Silent
            }
            _ => Pattern::Silent,
        };
        self.patterns.push(pattern);
        Ok(())
    }

    fn digit(&mut self, zero: bool) -> Pattern {
        if let (Some(shift), false) = (&mut self.shift, zero) {
            *shift += 1;
            return Pattern::Digit;
        }
        if zero && !self.has_point && self.first_zero.is_none() {
            self.first_zero = Some(self.before);
        }
        if self.has_point {
            self.behind += 1;
        } else {
            self.before += 1;
        }
        if zero {
            self.last_zero = self.before + self.behind;
            return Pattern::Zero;
        }
        Pattern::Digit
    }

    fn sign(&mut self, word: &str) -> Result<Pattern, SqlError> {
        let others = self.has_minus || self.has_plus;
        if word == "S" {
            if self.sign.is_some() {
                return Err(invalid("cannot use \"S\" twice"));
            }
            if others || self.brackets {
                return Err(invalid("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
            }
            let place = if self.has_point { SignPlace::Behind } else { SignPlace::Before };
            self.sign = Some((place, self.before));
            return Ok(Pattern::Silent);
        }
        if word == "PR" {
            if self.sign.is_some() || others {
                return Err(invalid("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
            }
            self.brackets = true;
            return Ok(Pattern::Silent);
        }
        if self.sign.is_some() {
            return Err(invalid(&format!("cannot use \"S\" and \"{word}\" together")));
        }
        self.has_minus |= word != "PL";
        self.has_plus |= word != "MI";
        Ok(match word {
            "MI" => Pattern::Minus,
            "PL" => Pattern::Plus,
            _ => Pattern::PlusMinus,
        })
    }
}

/// A number in decimal, without its sign.
struct Digits {
    negative: bool,
    text: String,
}

impl Digits {
    fn new(text: String) -> Digits {
        match text.strip_prefix('-') {
            Some(rest) => Digits { negative: true, text: rest.to_owned() },
            None => Digits { negative: false, text },
        }
    }
}

pub(super) fn to_char(values: &[Value], _: &Arguments<'_>) -> R {
    let text = str_at(values, 1)?;
    if text.is_empty() {
        return Ok(Value::text(""));
    }
    let mut template = Template::read(text)?;
    let value = values.first().ok_or_else(wrong_type)?;
    let float = match value {
        Value::Float4(x) => Some((f64::from(*x), 6)),
        Value::Float8(x) => Some((*x, 15)),
        _ => None,
    };
    let number = match (value, float) {
        (_, Some((x, _))) => Numeric::from_f64(x),
        (Value::Numeric(number), _) => number.clone(),
        (value, _) => Numeric::from(value.as_i64().ok_or_else(wrong_type)?),
    };
    if let Some(upper) = template.roman {
        return Ok(Value::text(roman(&number, upper, !template.is_bare)));
    }
    if template.scientific {
        return Ok(Value::text(scientific(&number, &template)));
    }
    let shift = template.shift.unwrap_or(0);
    template.before += shift;
    let digits = match float {
        Some((x, most)) => {
            let x = x * 10f64.powi(shift as i32);
            // No more digits than the type is good for.
            let whole = if x.is_nan() { 3 } else { format!("{:.0}", x.abs()).len() };
            template.behind = template.behind.min(most - whole.min(most));
            let infinite = if x < 0.0 { "-Infinity" } else { "Infinity" };
            Digits::new(match x {
                x if x.is_infinite() => infinite.to_owned(),
                x if x.is_nan() => "NaN".to_owned(),
                x => format!("{x:.*}", template.behind),
            })
        }
        None => {
            let shifted = if shift > 0 { number.mul(&Numeric::parse(&format!("1e{shift}"))?)? } else { number };
            Digits::new(shifted.round(template.behind as i64)?.to_string())
        }
    };
    Ok(Value::text(Layout::new(&template, digits).run()))
}

/// The template being filled.
struct Layout<'t> {
    template: &'t Template,
    number: Vec<u8>,
    negative: bool,
    /// The next digit of the number.
    next: usize,
    /// Digits of the template passed.
    place: usize,
    /// Places before the number begins.
    spaces: usize,
    brackets: bool,
    sign_behind: bool,
    sign_done: bool,
    /// Last place of the number that counts, if zeros at its end are left out.
    last: Option<usize>,
    /// Places that digits and the point take.
    places: usize,
    /// The last pattern gave a digit.
    inside: bool,
    out: String,
}

impl<'t> Layout<'t> {
    fn new(template: &'t Template, digits: Digits) -> Layout<'t> {
        let Digits { negative, text } = digits;
        let whole = text.find('.').unwrap_or(text.len());
        let overflow = whole > template.before;
        let number =
            if overflow { format!("{}.{}", "#".repeat(template.before), "#".repeat(template.behind)) } else { text };
        let spaces = template.before.saturating_sub(whole);
        let number = number.into_bytes();
        // MI, PL and SG write the sign where they stand; PL leaves a minus to the number.
        let of_its_own = template.has_minus || template.has_plus;
        let sign_done = if of_its_own {
            template.has_minus || !template.has_plus
        } else {
            !negative && template.is_bare && template.sign.is_none()
        };
        let sign_behind = match template.sign {
            Some((SignPlace::Behind, _)) => true,
            Some((SignPlace::Before, digits)) => digits == template.before,
            None => false,
        };
        let last = (template.is_bare && template.has_point).then(|| last_relevant(&number)).flatten().map(|last| {
            if template.last_zero > spaces {
                last.max((template.last_zero - spaces).min(number.len() - 1))
            } else {
                last
            }
        });
        let places = (template.before + template.behind + usize::from(!sign_done && spaces == 0)).saturating_sub(1);
        Layout {
            template,
            number,
            negative,
            next: 0,
            place: 0,
            spaces,
            brackets: template.brackets && (negative || !template.is_bare),
            sign_behind,
            sign_done,
            last,
            places,
            inside: false,
            out: String::new(),
        }
    }

    fn run(mut self) -> String {
        let fill = !self.template.is_bare;
        for pattern in &self.template.patterns {
            match *pattern {
                Pattern::Digit | Pattern::Zero | Pattern::Point => self.number_part(*pattern),
                Pattern::Group if self.inside => self.out.push(','),
                Pattern::Group if fill => self.out.push(' '),
                Pattern::Currency => self.out.push(' '),
                Pattern::Minus if self.negative => self.out.push('-'),
                Pattern::Plus if !self.negative => self.out.push('+'),
                Pattern::Minus | Pattern::Plus if fill => self.out.push(' '),
                Pattern::PlusMinus => self.out.push(if self.negative { '-' } else { '+' }),
                Pattern::Ordinal { upper } => self.ordinal(upper),
                Pattern::Group | Pattern::Minus | Pattern::Plus | Pattern::Silent => {}
                Pattern::Literal(c) => self.out.push(c),
            }
        }
        // A template with more places than the number has digits ends there.
        let end = self.out.find('\0').unwrap_or(self.out.len());
        self.out.truncate(end);
        self.out
    }

    fn ordinal(&mut self, upper: bool) {
        if self.negative || self.template.has_point || self.number.first() == Some(&b'#') {
            return;
        }
        let tail = &self.number[self.number.len().saturating_sub(2)..];
        if let Some(number) = std::str::from_utf8(tail).ok().and_then(|tail| tail.parse().ok()) {
            self.out.push_str(ordinal(number, upper));
        }
    }

    /// Whether the number is a lone zero before a point, which is not shown.
    fn is_hidden_zero(&self) -> bool {
        self.template.first_zero.is_none()
            && self.next == 0
            && self.number.first() == Some(&b'0')
            && self.template.behind != 0
    }

    /// Whether nothing that counts stands behind the point.
    fn ends_at_point(&self) -> bool {
        self.last.is_some_and(|last| self.number.get(last) == Some(&b'.'))
    }

    fn number_part(&mut self, pattern: Pattern) {
        self.inside = false;
        let zeros_from = self.template.first_zero;
        let begins = self.place >= self.spaces || zeros_from == Some(self.place);
        if !self.sign_done && begins && (!self.is_hidden_zero() || self.ends_at_point()) {
            self.leading_sign();
        }
        if self.place < self.spaces {
            if zeros_from.is_some_and(|from| from <= self.place) {
                self.out.push('0');
                self.inside = true;
            } else if !self.template.is_bare {
                self.out.push(' ');
            }
        } else {
            self.digit(pattern);
        }
        let mut end = self.places + usize::from(self.spaces > 0) + usize::from(self.template.has_point);
        if self.last == Some(self.next) {
            end = self.place;
        }
        if self.place + 1 == end {
            if self.sign_done && self.brackets {
                self.out.push(if self.negative { '>' } else { ' ' });
            } else if self.template.sign.is_some() && self.sign_behind {
                self.out.push(if self.negative { '-' } else { '+' });
            }
        }
        self.place += 1;
    }

    fn leading_sign(&mut self) {
        if self.template.sign.is_some() {
            if !self.sign_behind {
                self.out.push(if self.negative { '-' } else { '+' });
                self.sign_done = true;
            }
            return;
        }
        match (self.brackets, self.negative) {
            (true, true) => self.out.push('<'),
            (true, false) => self.out.push(' '),
            (false, true) => self.out.push('-'),
            (false, false) if !self.template.is_bare => self.out.push(' '),
            (false, false) => {}
        }
        self.sign_done = true;
    }

    fn digit(&mut self, pattern: Pattern) {
        let digit = self.number.get(self.next).copied();
        if digit == Some(b'.') {
            if !self.ends_at_point() || self.template.is_bare {
                self.out.push('.');
            }
        } else if self.last.is_some_and(|last| self.next > last) && pattern != Pattern::Zero {
            // A zero that nobody asked for.
        } else if self.is_hidden_zero() {
            if !self.template.is_bare {
                self.out.push(' ');
            } else if self.ends_at_point() {
                self.out.push('0');
            }
        } else {
            self.out.push(digit.map_or('\0', char::from));
            self.inside = true;
        }
        if digit.is_some() {
            self.next += 1;
        }
    }
}

/// The place of the last digit behind the point that is not 0, or of the point.
fn last_relevant(number: &[u8]) -> Option<usize> {
    let point = number.iter().position(|b| *b == b'.')?;
    Some(number.iter().rposition(|b| *b != b'0').filter(|at| *at > point).unwrap_or(point))
}

fn roman(number: &Numeric, upper: bool, fill: bool) -> String {
    const WIDTH: usize = 15;
    const PARTS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let Some(mut rest) = number.to_i64().filter(|n| (1..4000).contains(n)) else { return "#".repeat(WIDTH) };
    let mut out = String::new();
    for (value, letters) in PARTS {
        while rest >= value {
            out.push_str(letters);
            rest -= value;
        }
    }
    let out = if upper { out } else { out.to_lowercase() };
    if fill { format!("{out:>WIDTH$}") } else { out }
}

fn scientific(number: &Numeric, template: &Template) -> String {
    if !matches!(number, Numeric::Finite(_)) {
        let (before, behind) = (template.before, template.behind);
        return format!(" {}.{}", "#".repeat(before), "#".repeat(behind + 4));
    }
    let text = format!("{:.*e}", template.behind, number.to_f64());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let blank = if mantissa.starts_with('-') { "" } else { " " };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{blank}{mantissa}e{sign}{:02}", exponent.abs())
}

/// Reads the digits, the point and the sign; what else stands in the text is passed over.
pub(super) fn to_number(values: &[Value], _: &Arguments<'_>) -> R {
    let (text, format) = (str_at(values, 0)?, str_at(values, 1)?);
    if format.is_empty() {
        return Ok(Value::Null);
    }
    let template = Template::read(format)?;
    for (found, word) in [(template.scientific, "EEEE"), (template.roman.is_some(), "RN")] {
        if found {
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("\"{word}\" not supported for input")));
        }
    }
    let (before, after) = (template.before + template.shift.unwrap_or(0), template.behind);
    let negative = text.contains('-') || (template.brackets && text.contains('<'));
    let (mut whole, mut fraction) = (String::new(), String::new());
    let mut behind_point = false;
    for c in text.chars() {
        match c {
            '0'..='9' if behind_point && fraction.len() < after => fraction.push(c),
            '0'..='9' if !behind_point && whole.len() < before => whole.push(c),
            '.' if after > 0 => behind_point = true,
            '.' => break,
            _ => {}
        }
    }
    if whole.is_empty() && fraction.is_empty() {
        return Err(SqlError::new(SqlState::INVALID_TEXT, "invalid input syntax for type numeric: \" \""));
    }
    let sign = if negative { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    let number = Numeric::parse(&format!("{sign}0{whole}{point}{fraction}"))?;
    Ok(Value::Numeric(match template.shift {
        Some(shift) if shift > 0 => number.div(&Numeric::parse(&format!("1e{shift}"))?)?,
        _ => number,
    }))
}
