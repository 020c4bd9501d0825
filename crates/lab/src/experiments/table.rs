//! Tables: the same cells as CSV, for programs, and as Markdown, for people.

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number, and the decimals that people see; CSV has all of them that matter.
    Number(f64, usize),
    /// Nothing: the document does not say it, or it does not apply.
    Empty,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

/// Digits that CSV has of a number: what a measurement is worth, and the same on every machine.
const CSV_DIGITS: usize = 6;

impl Cell {
    fn csv(&self) -> String {
        match self {
            Cell::Text(text) if text.contains([',', '"', '\n']) => format!("\"{}\"", text.replace('"', "\"\"")),
            Cell::Text(text) => text.clone(),
            Cell::Number(value, _) if value.is_finite() => significant(*value),
            Cell::Number(..) | Cell::Empty => String::new(),
        }
    }
    fn markdown(&self) -> String {
        match self {
            Cell::Text(text) => text.replace('|', "\\|"),
            Cell::Number(value, decimals) if value.is_finite() => grouped(&format!("{value:.*}", *decimals)),
            Cell::Number(..) | Cell::Empty => String::new(),
        }
    }
}

/// A number with [`CSV_DIGITS`] significant digits, and no zeros at its end.
fn significant(value: f64) -> String {
    let text = format!("{value:.*e}", CSV_DIGITS - 1);
    let rounded: f64 = text.parse().unwrap_or(value);
    if rounded != 0.0 && (rounded.abs() < 1e-5 || rounded.abs() >= 1e15) {
        format!("{rounded:e}")
    } else {
        format!("{rounded}")
    }
}

/// Commas between thousands.
fn grouped(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, rest) = digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
    let mut out = String::from(sign);
    for (n, digit) in whole.chars().enumerate() {
        if n > 0 && (whole.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(rest) = rest {
        out.push('.');
        out.push_str(rest);
    }
    out
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Names of the columns, with units.
    pub columns: Vec<String>,
    /// Rows, each as long as that.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new<const N: usize>(columns: [&str; N]) -> Self {
        Table { columns: columns.map(str::to_owned).to_vec(), rows: Vec::new() }
    }
    /// One more row.
    pub fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(cells.to_vec());
    }
    /// For programs.
    pub fn csv(&self) -> String {
        let line = |cells: Vec<String>| cells.join(",") + "\n";
        let head = line(self.columns.iter().map(|c| Cell::from(c.as_str()).csv()).collect());
        head + &self.rows.iter().map(|row| line(row.iter().map(Cell::csv).collect())).collect::<String>()
    }
    /// For people.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let head = line(self.columns.iter().map(|c| c.replace('|', "\\|")).collect());
        let rule = line(vec!["---".to_owned(); self.columns.len()]);
        head + &rule + &self.rows.iter().map(|row| line(row.iter().map(Cell::markdown).collect())).collect::<String>()
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Table, grouped, significant};

    #[test]
    fn both_forms_have_the_same_cells() {
        let mut table = Table::new(["what, of whom", "ms"]);
        table.row(["a \"b\"".into(), Cell::Number(1234.5678, 1)]);
        table.row(["c".into(), Cell::Number(f64::NAN, 1)]);
        assert_eq!(table.csv(), "\"what, of whom\",ms\n\"a \"\"b\"\"\",1234.57\nc,\n");
        assert_eq!(table.markdown(), "| what, of whom | ms |\n| --- | --- |\n| a \"b\" | 1,234.6 |\n| c |  |\n");
    }

    #[test]
    fn numbers_are_as_long_as_they_are_worth() {
        assert_eq!([0.0, 0.1 + 0.2, 123_456_789.0, 8.2e-7].map(significant), ["0", "0.3", "123457000", "8.2e-7"]);
        assert_eq!(["1", "123", "1234", "-1234567.25"].map(grouped), ["1", "123", "1,234", "-1,234,567.25"]);
    }
}
