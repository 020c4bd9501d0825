//! The page that keeps the numbers.

use super::Cost;
use std::fmt::Write as _;
use std::path::PathBuf;

const BEGIN: &str = "<!-- counted: begin -->\n";
const END: &str = "<!-- counted: end -->\n";
/// What is asked in so many groups is told whole.
const GROUPS_MAX: usize = 6;

/// The table of the page: of each work what it costs in one range, and where each table and index is in a range of its own.
pub fn table<'a>(rows: impl Iterator<Item = (&'a str, (&'a Cost, &'a Cost))>) -> String {
    let mut out = "| work | round trips | requests | in ranges apart | requests | what is asked, one after the other (ranges apart) |\n| --- | --- | --- | --- | --- | --- |\n".to_owned();
    for (name, (whole, apart)) in rows {
        let tenths = |cost: &Cost| format!("{}.{}", cost.round_trips_tenths / 10, cost.round_trips_tenths % 10);
        let _ = writeln!(
            out,
            "| {name} | {} | {} | {} | {} | {} |",
            tenths(whole),
            whole.requests,
            tenths(apart),
            apart.requests,
            told(&apart.waves)
        );
    }
    out
}

/// `get, lock, commit`; `98 times get`.
fn told(waves: &[String]) -> String {
    let groups: Vec<String> = waves
        .chunk_by(|a, b| a == b)
        .map(|group| if group.len() > 1 { format!("{} times {}", group.len(), group[0]) } else { group[0].clone() })
        .collect();
    match groups.len() > GROUPS_MAX {
        true => format!("{}, and {} more", groups[..GROUPS_MAX].join(", "), groups.len() - GROUPS_MAX),
        false => groups.join(", "),
    }
}

/// Fails where the page says something else, or writes it there.
pub fn compare(table: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/round-trips.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).expect("the page has a place for the table");
    let (before, tail) = rest.split_once(END).expect("the place ends");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}{table}{END}{tail}")).unwrap();
        return;
    }
    for (line, was) in table.lines().zip(before.lines()) {
        assert_eq!(line, was, "docs/round-trips.md says something else: BLESS=1 writes what is so");
    }
    assert_eq!(table, before);
}
