//! Results as psql aligns them.

use lab::client::{Column, TextRow};
use unicode_width::UnicodeWidthStr;

/// OIDs of types that are aligned to the right: int8, int2, int4, oid, float4, float8, numeric.
const NUMBERS: [u32; 7] = [20, 21, 23, 26, 700, 701, 1700];

/// Whether psql aligns a type to the right.
pub fn is_number(type_oid: u32) -> bool {
    NUMBERS.contains(&type_oid)
}

/// A table with its header and the number of rows.
pub fn aligned(columns: &[Column], rows: &[TextRow], title: Option<&str>) -> String {
    let cells: Vec<Vec<Vec<&str>>> = rows.iter().map(|row| row.iter().map(|v| lines(v.as_deref())).collect()).collect();
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(i, column)| {
            let cell =
                |row: &Vec<Vec<&str>>| row.get(i).map_or(0, |lines| lines.iter().map(|l| l.width()).max().unwrap_or(0));
            cells.iter().map(cell).max().unwrap_or(0).max(column.name.width())
        })
        .collect();
    let mut out = String::new();
    if let Some(title) = title {
        let total = widths.iter().map(|w| w + 3).sum::<usize>().saturating_sub(1);
        out.push_str(&format!("{}{title}\n", " ".repeat(total.saturating_sub(title.width()) / 2)));
    }
    let header: Vec<String> = columns.iter().zip(&widths).map(|(c, w)| centred(&c.name, *w)).collect();
    out.push_str(&format!(" {} \n", header.join(" | ")));
    let rule: Vec<String> = widths.iter().map(|w| "-".repeat(w + 2)).collect();
    out.push_str(&format!("{}\n", rule.join("+")));
    for row in &cells {
        for line in 0..row.iter().map(Vec::len).max().unwrap_or(1) {
            write_line(&mut out, columns, &widths, row, line);
        }
    }
    out.push_str(&format!("({} row{})\n", rows.len(), if rows.len() == 1 { "" } else { "s" }));
    out
}

fn lines(value: Option<&str>) -> Vec<&str> {
    value.unwrap_or("").split('\n').collect()
}

/// One line of a row; a `+` says that the value goes on.
fn write_line(out: &mut String, columns: &[Column], widths: &[usize], row: &[Vec<&str>], line: usize) {
    let last = columns.len().saturating_sub(1);
    let mut text = String::new();
    for (i, (column, width)) in columns.iter().zip(widths).enumerate() {
        let cell = row.get(i).map_or(&[][..], Vec::as_slice);
        let value = cell.get(line).copied().unwrap_or("");
        let pad = " ".repeat(width - value.width());
        let goes_on = if line + 1 < cell.len() { "+" } else { " " };
        text.push(' ');
        text.push_str(&if is_number(column.type_oid) { pad + value } else { value.to_owned() + &pad });
        text.push_str(goes_on);
        if i < last {
            text.push('|');
        }
    }
    out.push_str(text.trim_end());
    out.push('\n');
}

fn centred(text: &str, width: usize) -> String {
    let space = width - text.width();
    format!("{}{text}{}", " ".repeat(space / 2), " ".repeat(space - space / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_like_psql() {
        let columns = [Column { name: "id".into(), type_oid: 23 }, Column { name: "a title".into(), type_oid: 25 }];
        let rows = [vec![Some("1".into()), Some("one\ntwo".into())], vec![Some("10".into()), None]];
        let expected = [" id | a title ", "----+---------", "  1 | one    +", "    | two", " 10 |", "(2 rows)", ""];
        assert_eq!(aligned(&columns, &rows, None), expected.join("\n"));
    }
}
