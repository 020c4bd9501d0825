//! Results for programs: CSV and JSON.

use super::table::is_number;
use lab::client::{Column, TextRow};
use serde_json::Value;

/// OIDs of bool, json, jsonb.
const BOOL: u32 = 16;
const JSON: [u32; 2] = [114, 3802];

/// RFC 4180, with a header; NULL is empty and unquoted.
pub fn csv(columns: &[Column], rows: &[TextRow]) -> String {
    let header: Vec<String> = columns.iter().map(|c| csv_field(&c.name)).collect();
    let mut out = header.join(",") + "\n";
    for row in rows {
        let fields: Vec<String> = row.iter().map(|v| v.as_deref().map_or(String::new(), csv_field)).collect();
        out.push_str(&fields.join(","));
        out.push('\n');
    }
    out
}

fn csv_field(text: &str) -> String {
    let plain = !text.is_empty() && !text.contains(['"', ',', '\n', '\r']);
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

/// One array of objects, a row per line, members in the order of the columns. Numbers keep their digits where JSON can say them, otherwise they are strings.
pub fn json(columns: &[Column], rows: &[TextRow]) -> String {
    let member = |(column, value): (&Column, &Option<String>)| {
        format!("{}:{}", Value::String(column.name.clone()), json_value(column.type_oid, value.as_deref()))
    };
    let object = |row: &TextRow| format!("{{{}}}", columns.iter().zip(row).map(member).collect::<Vec<_>>().join(","));
    let objects: Vec<String> = rows.iter().map(object).collect();
    format!("[{}]\n", objects.join(",\n "))
}

fn json_value(type_oid: u32, text: Option<&str>) -> Value {
    let Some(text) = text else { return Value::Null };
    let parsed = match type_oid {
        BOOL => Some(Value::Bool(text == "t")),
        oid if is_number(oid) || JSON.contains(&oid) => exact(oid, text),
        _ => None,
    };
    parsed.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// A number only if nothing of it is lost.
fn exact(type_oid: u32, text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    let said = value.to_string();
    (JSON.contains(&type_oid) || said == text).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, type_oid: u32) -> Column {
        Column { name: name.into(), type_oid }
    }

    #[test]
    fn csv_quotes() {
        let rows = [vec![Some("a\"b".into()), None, Some(String::new())]];
        let columns = [column("x", 25), column("y,z", 25), column("e", 25)];
        assert_eq!(csv(&columns, &rows), "x,\"y,z\",e\n\"a\"\"b\",,\"\"\n");
    }

    #[test]
    fn json_keeps_numbers() {
        let columns = [column("i", 20), column("n", 1700), column("b", 16), column("j", 3802), column("t", 25)];
        let row = ["9007199254740993", "1.50", "t", "{\"a\": 1}", "1"].map(|t| Some(t.to_owned())).to_vec();
        let expected = "[{\"i\":9007199254740993,\"n\":\"1.50\",\"b\":true,\"j\":{\"a\":1},\"t\":\"1\"}]\n";
        assert_eq!(json(&columns, &[row]), expected);
    }
}
