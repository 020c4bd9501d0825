//! Numbers that settings of PostgreSQL take: with a unit, and within bounds.

use super::settings::invalid;
use crate::{SqlError, SqlState};

/// What a setting's number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Units {
    None,
    Memory,
    Time,
}

/// Units of memory, and their bytes.
const MEMORY: &[(&str, f64)] =
    &[("TB", 1_099_511_627_776.0), ("GB", 1_073_741_824.0), ("MB", 1_048_576.0), ("kB", 1024.0), ("B", 1.0)];

/// Units of time, and their microseconds.
const TIME: &[(&str, f64)] = &[("d", 86_400e6), ("h", 3600e6), ("min", 60e6), ("s", 1e6), ("ms", 1000.0), ("us", 1.0)];

/// A number that a setting takes.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// A whole number of 32 bits.
    whole: bool,
    /// The unit of a number without one, as PostgreSQL names it: `8kB`, `ms`, or nothing.
    unit: &'static str,
    units: Units,
    /// What that unit is in the smallest of its kind.
    base: f64,
    min: &'static str,
    max: &'static str,
}

impl Measure {
    /// Of a line `unit,min,max`.
    pub(super) fn read(whole: bool, line: &'static str) -> Option<Measure> {
        let mut cells = line.split(',');
        let (unit, min, max) = (cells.next()?, cells.next()?, cells.next()?);
        let size = |of: &[(&str, f64)], unit: &str| of.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size);
        let (units, base) = match unit {
            "" => (Units::None, 1.0),
            "8kB" => (Units::Memory, 8192.0),
            unit => match size(TIME, unit) {
                Some(base) => (Units::Time, base),
                None => (Units::Memory, size(MEMORY, unit)?),
            },
        };
        Some(Measure { whole, unit, units, base, min, max })
    }

    fn table(&self) -> &'static [(&'static str, f64)] {
        match self.units {
            Units::None => &[],
            Units::Memory => MEMORY,
            Units::Time => TIME,
        }
    }

    /// Checks a value; gives the form that SHOW shows.
    ///
    /// # Errors
    /// 22023
    pub(super) fn normalize(&self, name: &str, value: &str) -> Result<String, SqlError> {
        let bad = || invalid(name, value);
        let (number, rest) = number(value, self.whole).ok_or_else(bad)?;
        let unit = rest.trim();
        let mut number = number;
        if !unit.is_empty() {
            if self.units == Units::None {
                return Err(bad());
            }
            let Some((_, size)) = self.table().iter().find(|(known, _)| *known == unit) else {
                return Err(bad().hint(match self.units {
                    Units::Time => {
                        "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."
                    }
                    _ => "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".",
                }));
            };
            number = number * size / self.base;
        }
        if self.whole {
            number = number.round_ties_even();
            if !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number) {
                return Err(bad().hint("Value exceeds integer range."));
            }
        }
        let bound = |text: &str| text.parse::<f64>().unwrap_or_default();
        if number < bound(self.min) || number > bound(self.max) || number.is_nan() {
            let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
            let message = format!(
                "{}{unit} is outside the valid range for parameter \"{name}\" ({} .. {})",
                shown(number, self.whole),
                self.min,
                self.max
            );
            return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
        }
        Ok(self.show(number))
    }

    /// A number in the greatest unit in which it is a whole one.
    fn show(&self, number: f64) -> String {
        if number <= 0.0 || self.units == Units::None {
            return shown(number, self.whole);
        }
        let total = number * self.base;
        let whole =
            |size: f64| (total / size).round() >= 1.0 && ((total / size).round() * size / total - 1.0).abs() <= 1e-8;
        match self.table().iter().find(|(_, size)| whole(*size)) {
            Some((unit, size)) => format!("{}{unit}", shown((total / size).round(), self.whole)),
            None => shown(number, self.whole),
        }
    }

    /// A default as SHOW shows it.
    pub(super) fn show_default(&self, text: &'static str) -> &'static str {
        match text.parse() {
            Ok(number) => self.show(number).leak(),
            Err(_) => text,
        }
    }
}

/// The number that a text begins with, and the rest. Whole numbers may be hexadecimal or octal as in C.
fn number(text: &str, whole: bool) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    let run = |text: &str, of: fn(&u8) -> bool| text.bytes().take_while(of).count();
    if whole && let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let count = run(hex, u8::is_ascii_hexdigit);
        let number = i64::from_str_radix(&hex[..count], 16).ok()?;
        return Some((sign * number as f64, &hex[count..]));
    }
    let mut end = run(digits, u8::is_ascii_digit);
    let octal = whole && end > 1 && digits.starts_with('0');
    let mut has_digits = end > 0;
    if let Some(fraction) = digits[end..].strip_prefix('.') {
        let count = run(fraction, u8::is_ascii_digit);
        has_digits |= count > 0;
        end += 1 + count;
    } else if octal && let Ok(number) = i64::from_str_radix(&digits[..end], 8) {
        return Some((sign * number as f64, &digits[end..]));
    }
    if !has_digits {
        return None;
    }
    let exponent = digits[end..].strip_prefix(['e', 'E']).map(|rest| {
        let signed = usize::from(rest.starts_with(['+', '-']));
        (signed, run(&rest[signed..], u8::is_ascii_digit))
    });
    if let Some((signed, count @ 1..)) = exponent {
        end += 1 + signed + count;
    }
    let number: f64 = digits[..end].parse().ok()?;
    Some((sign * number, &digits[end..]))
}

/// A whole number as it is, another one in six significant digits without zeros behind them.
fn shown(number: f64, whole: bool) -> String {
    if whole || (number.fract() == 0.0 && number.abs() < 1e6) {
        // Adding nothing makes of -0 a 0.
        return format!("{}", number + 0.0);
    }
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    let scientific = format!("{number:.5e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>().unwrap_or_default() {
        exponent @ -4..=5 => trimmed(&format!("{number:.*}", (5 - exponent).max(0) as usize)),
        exponent => format!("{}e{}{:02}", trimmed(mantissa), if exponent < 0 { '-' } else { '+' }, exponent.abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(whole: bool, line: &'static str, value: &str) -> String {
        let measure = Measure::read(whole, line).expect("a measure");
        measure.normalize("x", value).unwrap_or_else(|error| error.message.clone())
    }

    /// The answers are PostgreSQL's.
    #[test]
    fn numbers_are_read_and_shown_as_postgresql_does() {
        let memory = "kB,64,2147483647";
        for (value, shown) in [
            ("2000", "2000kB"),
            ("1.5GB", "1536MB"),
            ("0x40", "64kB"),
            ("0100", "64kB"),
            ("1 MB ", "1MB"),
            ("-5", "-5 kB is outside the valid range for parameter \"x\" (64 .. 2147483647)"),
            ("1 mb", "invalid value for parameter \"x\": \"1 mb\""),
            ("", "invalid value for parameter \"x\": \"\""),
            ("10000000000000", "invalid value for parameter \"x\": \"10000000000000\""),
        ] {
            assert_eq!(said(true, memory, value), shown, "{value}");
        }
        for (value, shown) in [("2ms", "2ms"), ("1500us", "1500us"), ("0", "0"), ("1.5", "1500us")] {
            assert_eq!(said(false, "ms,0,100", value), shown, "{value}");
        }
        for (value, shown) in
            [("1.10", "1.1"), ("1e10", "1e+10"), (".5", "0.5"), ("0.00001", "1e-05"), ("123456.7", "123457")]
        {
            assert_eq!(said(false, ",0,1.79769e+308", value), shown, "{value}");
        }
        assert_eq!(said(true, "8kB,1,2147483647", "100"), "800kB");
        assert_eq!(said(true, "ms,-1,2147483647", "-1"), "-1");
        assert_eq!(said(true, ",0,2100000000", "1600000000"), "1600000000");
    }
}
