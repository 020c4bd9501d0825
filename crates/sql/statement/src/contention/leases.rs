//! Who leads which range under a lease, as those who lead say it: `timeball_internal.leases`.

use super::views::{Places, Rows};
use super::{lines, shown_node};
use crate::Kv;
use crate::peers::{self, Row};
use crate::statement::Statement;
use crate::types::SqlType;
use std::collections::BTreeMap;
use std::str::Split;

/// The layers below know this table, each node of the ranges that it leads: range, start key, end key, term, from and until when its lease
/// holds, and whether it does: see [`COLUMNS`].
const LED: &str = "led";
/// Ranges that one node tells of, at most.
const RANGES_MAX: usize = 10_000;

/// The columns.
pub const COLUMNS: [(&str, SqlType); 12] = [
    ("range_id", SqlType::Int8),
    ("table_name", SqlType::Text),
    ("first_row", SqlType::Text),
    ("start_key", SqlType::Text),
    ("end_key", SqlType::Text),
    ("leader_node_id", SqlType::Int4),
    ("term", SqlType::Int8),
    ("lease_from", SqlType::Timestamptz(None)),
    ("lease_until", SqlType::Timestamptz(None)),
    ("lease_left_ms", SqlType::Int8),
    ("holds", SqlType::Text),
    ("error", SqlType::Text),
];

/// What this node leads: the node, and a row as [`LED`] has it.
fn own(kv: &dyn Kv) -> Vec<Row> {
    let (_, mut rows) = kv.internal_table(LED).unwrap_or_default();
    rows.truncate(RANGES_MAX);
    rows
}

/// Answers the question of another node: rows from behind so many.
pub fn asked(kv: &dyn Kv, words: &mut Split<'_, char>, is_full: &dyn Fn(&[Row]) -> bool) -> Option<Vec<Row>> {
    let told: usize = words.next()?.parse().ok()?;
    let mut rows = Vec::new();
    for (at, row) in own(kv).into_iter().enumerate().skip(told) {
        rows.push(row);
        if is_full(&rows) {
            rows.push(vec![Some("+".into()), Some(format!("leases {}", at + 1))]);
            break;
        }
    }
    Some(rows)
}

/// One row for each range that somebody leads, and for each of which nobody says so; and one for each node that does not answer.
pub fn rows(context: &Statement) -> Rows {
    let kv = context.kv.as_ref();
    let mut led: BTreeMap<String, Vec<(u32, Row)>> = BTreeMap::new();
    let mut add = |node: u32, row: Row| {
        if let Some(Some(range)) = row.first()
            // Another release may tell more, or not whether it holds.
            && row.len() >= 6
        {
            led.entry(range.clone()).or_default().push((node, row));
        }
    };
    own(kv).into_iter().for_each(|row| add(shown_node(kv), row));
    let mut silent = Vec::new();
    let questions = ["leases 0".to_owned()];
    for told in kv.ask_peers(&questions, peers::next_question, &mut || context.check().is_err()) {
        told.answers.iter().flat_map(|text| peers::rows_of(text)).for_each(|row| add(told.node, row));
        silent.extend(told.error.map(|why| (told.node, why)));
    }
    let mut places = Places::new(context);
    let (columns, known) = kv.internal_table("ranges").unwrap_or_default();
    let place = |name: &str| columns.iter().position(|column| column == name);
    let cell = |row: &Row, name: &str| place(name).and_then(|at| row.get(at).cloned()).flatten();
    let mut rows = Rows::new();
    for range in known {
        let id = cell(&range, "range_id");
        let leaders = id.as_ref().and_then(|id| led.remove(id)).unwrap_or_default();
        if leaders.is_empty() {
            let mut row = [const { None }; COLUMNS.len()];
            (row[0], row[3], row[4]) = (id, cell(&range, "start_key"), cell(&range, "end_key"));
            row[5] = cell(&range, "leader_node_id");
            row[11] = Some("no node that answers leads it".into());
            rows.push(named(row, &mut places));
        }
        rows.extend(leaders.into_iter().map(|leader| named(of_leader(leader), &mut places)));
    }
    // Some are known to those who lead them only: they were just split.
    rows.extend(led.into_values().flatten().map(|leader| named(of_leader(leader), &mut places)));
    rows.extend(silent.into_iter().map(|(node, why)| {
        let mut row = vec![None; COLUMNS.len()];
        (row[5], row[11]) = (Some(node.to_string()), Some(why));
        row
    }));
    rows
}

fn of_leader((node, led): (u32, Row)) -> [Option<String>; COLUMNS.len()] {
    let mut led = led.into_iter();
    let mut next = || led.next().flatten();
    let (range, start, end, term, from, until) = (next(), next(), next(), next(), next(), next());
    // How long it has left, and whether it holds: a number and a word.
    let (left, holds) = next().and_then(|word| word.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned()))).unzip();
    let left = left.filter(|left| left != "-");
    [range, None, None, start, end, Some(node.to_string()), term, from, until, left, holds, None]
}

/// Says of a row which table its range begins with.
fn named(mut row: [Option<String>; COLUMNS.len()], places: &mut Places) -> Row {
    if let Some(start) = row[3].as_deref().and_then(lines::of_hex) {
        let place = places.of(&start);
        (row[1], row[2]) = (place.table, place.row);
    }
    row.to_vec()
}
