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

/// A record after the other, a column per line (`\\x`).
pub fn expanded(columns: &[Column], rows: &[TextRow], title: Option<&str>) -> String {
    let name_width = columns.iter().map(|c| c.name.width()).max().unwrap_or(0);
    let value_width =
        rows.iter().flatten().flat_map(|v| lines(v.as_deref())).map(UnicodeWidthStr::width).max().unwrap_or(0);
    let mut out = title.map_or(String::new(), |title| format!("{title}\n"));
    for (n, row) in rows.iter().enumerate() {
        let rule = format!("-[ RECORD {} ]", n + 1);
        let width = (name_width + 3 + value_width).max(rule.len());
        let mut line: Vec<u8> = (rule + &"-".repeat(width)).into_bytes();
        line.truncate(width);
        if let Some(cross) = line.get_mut(name_width + 1).filter(|c| **c == b'-') {
            *cross = b'+';
        }
        out.push_str(&String::from_utf8_lossy(&line));
        out.push('\n');
        for (column, value) in columns.iter().zip(row) {
            for (i, line) in lines(value.as_deref()).into_iter().enumerate() {
                let name = if i == 0 { column.name.as_str() } else { "" };
                let pad = " ".repeat(name_width - name.width());
                out.push_str(format!("{name}{pad} | {line}").trim_end());
                out.push('\n');
            }
        }
    }
    if rows.is_empty() {
        out.push_str("(0 rows)\n");
    }
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
    fn records() {
        let columns = [Column { name: "id".into(), type_oid: 23 }, Column { name: "title".into(), type_oid: 25 }];
        let rows = [vec![Some("1".into()), Some("one\ntwo".into())], vec![Some("10".into()), None]];
        let record = |n| format!("-[ RECORD {n} ]");
        let (first, second) = (record(1), record(2));
        let expected = [&first, "id    | 1", "title | one", "      | two", &second, "id    | 10", "title |", ""];
        assert_eq!(expanded(&columns, &rows, None), expected.join("\n"));
    }

    #[test]
    fn looks_like_psql() {
        let columns = [Column { name: "id".into(), type_oid: 23 }, Column { name: "a title".into(), type_oid: 25 }];
        let rows = [vec![Some("1".into()), Some("one\ntwo".into())], vec![Some("10".into()), None]];
        let expected = [" id | a title ", "----+---------", "  1 | one    +", "    | two", " 10 |", "(2 rows)", ""];
        assert_eq!(aligned(&columns, &rows, None), expected.join("\n"));
    }
}
