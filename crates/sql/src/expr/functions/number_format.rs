//! `to_char` and `to_number` for numbers.
//!
//! The template's digits decide the width; a number with more digits before the point is shown as `#`. Roman numerals and
//! scientific notation (`RN`, `EEEE`), signs (`S`, `MI`, `PL`, `SG`, `PR`), groups (`,`, `G`), the point (`.`, `D`), `V`, `L`, `TH`, `FM`.

use super::super::function::Arguments;
use super::date_format::ordinal;
use super::{str_at, wrong_type};
use crate::types::{Numeric, Value};
use crate::{SqlError, SqlState};

type R = Result<Value, SqlError>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    /// 9 or 0
    Digit {
        zero: bool,
    },
    Group,
    Point,
    /// S at the place where it stands.
    Sign,
    Minus,
    Plus,
    PlusMinus,
    Currency,
    Ordinal {
        upper: bool,
    },
    Literal(char),
}

struct Template {
    tokens: Vec<Token>,
    fill: bool,
    brackets: bool,
    roman: Option<bool>,
    /// Digits behind V.
    shift: usize,
    scientific: bool,
}

fn invalid(text: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, text.to_owned())
}

fn read(template: &str) -> Result<Template, SqlError> {
    let mut t = Template { tokens: vec![], fill: true, brackets: false, roman: None, shift: 0, scientific: false };
    let mut rest = template;
    let (mut behind_v, mut has_point) = (false, false);
    while let Some(c) = rest.chars().next() {
        let two = rest.get(..2).map(str::to_ascii_uppercase).unwrap_or_default();
        let (token, width) = match (c, two.as_str()) {
            ('"', _) => {
                let quoted = &rest[1..];
                let end = quoted.find('"').unwrap_or(quoted.len());
                t.tokens.extend(quoted[..end].chars().map(Token::Literal));
                rest = quoted.get(end + 1..).unwrap_or("");
                continue;
            }
            (_, "FM") => {
                t.fill = false;
                (None, 2)
            }
            (_, "MI") => (Some(Token::Minus), 2),
            (_, "PL") => (Some(Token::Plus), 2),
            (_, "SG") => (Some(Token::PlusMinus), 2),
            (_, "PR") => {
                t.brackets = true;
                (None, 2)
            }
            (_, "RN") => {
                t.roman = Some(c == 'R');
                (None, 2)
            }
            (_, "TH") => (Some(Token::Ordinal { upper: c == 'T' }), 2),
            (_, "EE") => {
                t.scientific = true;
                (None, rest.bytes().take_while(|b| b.eq_ignore_ascii_case(&b'e')).count())
            }
            ('9' | '0', _) => {
                t.shift += usize::from(behind_v);
                (Some(Token::Digit { zero: c == '0' }), 1)
            }
            (',' | 'G' | 'g', _) => (Some(Token::Group), 1),
            ('.' | 'D' | 'd', _) => {
                if has_point {
                    return Err(invalid("multiple decimal points"));
                }
                has_point = true;
                (Some(Token::Point), 1)
            }
            ('S' | 's', _) => (Some(Token::Sign), 1),
            ('L' | 'l', _) => (Some(Token::Currency), 1),
            ('V' | 'v', _) => {
                behind_v = true;
                (None, 1)
            }
            (other, _) => (Some(Token::Literal(other)), other.len_utf8()),
        };
        t.tokens.extend(token);
        rest = &rest[width..];
    }
    Ok(t)
}

pub(super) fn to_char(values: &[Value], _: &Arguments<'_>) -> R {
    let number = match values.first() {
        Some(Value::Numeric(number)) => number.clone(),
        Some(Value::Float8(number)) => Numeric::from_f64(*number),
        Some(value) => Numeric::from(value.as_i64().ok_or_else(wrong_type)?),
        None => return Err(wrong_type()),
    };
    let template = read(str_at(values, 1)?)?;
    if let Some(upper) = template.roman {
        return Ok(Value::text(roman(&number, upper, template.fill)));
    }
    if template.scientific {
        return scientific(&number, &template);
    }
    let (before, after) = digit_counts(&template);
    let scaled =
        if template.shift > 0 { number.mul(&Numeric::parse(&format!("1e{}", template.shift))?)? } else { number };
    let rounded = scaled.round(after as i64)?;
    let negative = rounded.signum() < 0;
    let text = rounded.to_string();
    let text = text.trim_start_matches('-');
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = if whole == "0" && before > 0 && after > 0 { "" } else { whole };
    let overflow = !matches!(rounded, Numeric::Finite(_)) || whole.len() > before.max(1);
    let whole = if overflow { "#".repeat(before) } else { whole.to_owned() };
    let fraction = if overflow { "#".repeat(after) } else { fraction.to_owned() };
    Ok(Value::text(lay_out(&template, &whole, &fraction, before, negative)))
}

fn digit_counts(template: &Template) -> (usize, usize) {
    let point = template.tokens.iter().position(|t| *t == Token::Point).unwrap_or(template.tokens.len());
    let count = |tokens: &[Token]| tokens.iter().filter(|t| matches!(t, Token::Digit { .. })).count();
    (count(&template.tokens[..point]), count(&template.tokens[point..]))
}

/// Puts the digits into the template's places.
fn lay_out(template: &Template, whole: &str, fraction: &str, before: usize, negative: bool) -> String {
    let has = |wanted: &dyn Fn(&Token) -> bool| template.tokens.iter().any(wanted);
    let own_sign = has(&|t| matches!(t, Token::Sign | Token::Minus | Token::PlusMinus)) || template.brackets;
    let leading_zero = template
        .tokens
        .iter()
        .filter(|t| matches!(t, Token::Digit { .. }))
        .position(|t| *t == Token::Digit { zero: true });
    let first_shown = before.saturating_sub(whole.len()).min(leading_zero.unwrap_or(usize::MAX));
    let sign = if negative { '-' } else { '+' };
    let mut out = String::new();
    let (mut place, mut fraction_place) = (0, 0);
    let mut behind_point = false;
    let mut sign_due = !own_sign;
    let floating = template.tokens.first() == Some(&Token::Sign);
    let mut floating_due = floating;
    let put_sign = |out: &mut String| match (negative, template.brackets) {
        (true, true) => out.push('<'),
        (true, false) => out.push('-'),
        (false, _) if template.fill => out.push(' '),
        _ => {}
    };
    let last_digit = fraction.trim_end_matches('0').len();
    for (i, token) in template.tokens.iter().enumerate() {
        match token {
            Token::Digit { .. } if behind_point => {
                let digit = fraction.as_bytes().get(fraction_place).copied().unwrap_or(b'0');
                // Without filling, zeros at the end are dropped, unless the template asks for them.
                let zero_after = template.tokens[i..].contains(&Token::Digit { zero: true });
                if template.fill || fraction_place < last_digit || zero_after {
                    out.push(digit as char);
                }
                fraction_place += 1;
            }
            Token::Digit { .. } => {
                if place < first_shown {
                    if template.fill {
                        out.push(' ');
                    }
                } else {
                    if std::mem::take(&mut sign_due) || (template.brackets && place == first_shown) {
                        put_sign(&mut out);
                    }
                    if std::mem::take(&mut floating_due) {
                        out.push(sign);
                    }
                    let missing = before - whole.len();
                    out.push(if place < missing { '0' } else { whole.as_bytes()[place - missing] as char });
                }
                place += 1;
            }
            Token::Group if place > first_shown => out.push(','),
            Token::Group => {
                if template.fill {
                    out.push(' ');
                }
            }
            Token::Point => {
                if std::mem::take(&mut sign_due) || (template.brackets && place <= first_shown) {
                    put_sign(&mut out);
                }
                if std::mem::take(&mut floating_due) {
                    out.push(sign);
                }
                behind_point = true;
                out.push('.');
            }
            Token::Sign if floating && i == 0 => {}
            Token::Sign | Token::PlusMinus => out.push(sign),
            Token::Minus => {
                if negative {
                    out.push('-');
                } else if template.fill {
                    out.push(' ');
                }
            }
            Token::Plus => {
                if !negative {
                    out.push('+');
                } else if template.fill {
                    out.push(' ');
                }
            }
            Token::Currency => out.push(' '),
            Token::Ordinal { upper } => {
                if let Ok(number) = whole.parse::<i64>()
                    && !negative
                {
                    out.push_str(ordinal(number, *upper));
                }
            }
            Token::Literal(c) => out.push(*c),
        }
    }
    if template.brackets {
        if negative {
            out.push('>')
        } else if template.fill {
            out.push(' ')
        }
    }
    out
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

fn scientific(number: &Numeric, template: &Template) -> R {
    let after = digit_counts(template).1;
    let text = format!("{:.after$e}", number.to_f64());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let blank = if number.signum() < 0 || !template.fill { "" } else { " " };
    let sign = if exponent < 0 { '-' } else { '+' };
    Ok(Value::text(format!("{blank}{mantissa}e{sign}{:02}", exponent.abs())))
}

/// Reads the digits, the point and the sign; what else stands in the text is passed over.
pub(super) fn to_number(values: &[Value], _: &Arguments<'_>) -> R {
    let (text, template) = (str_at(values, 0)?, read(str_at(values, 1)?)?);
    let (before, after) = digit_counts(&template);
    let negative = text.contains('-') || (template.brackets && text.contains('<'));
    let (mut whole, mut fraction) = (String::new(), String::new());
    let mut behind_point = false;
    for c in text.chars() {
        match c {
            '0'..='9' if behind_point && fraction.len() < after => fraction.push(c),
            '0'..='9' if !behind_point && whole.len() < before => whole.push(c),
            '.' if after > 0 => behind_point = true,
            _ => {}
        }
    }
    if whole.is_empty() && fraction.is_empty() {
        return Err(SqlError::new(
            SqlState::INVALID_TEXT,
            format!("invalid input syntax for type numeric: \"{text}\""),
        ));
    }
    let sign = if negative { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    let number = Numeric::parse(&format!("{sign}0{whole}{point}{fraction}"))?;
    let shift = Numeric::parse(&format!("1e{}", template.shift))?;
    Ok(Value::Numeric(if template.shift > 0 { number.div(&shift)? } else { number }))
}
