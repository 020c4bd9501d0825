//! How the SQL layers of a cluster's nodes talk with each other.
//!
//! One question, one answer, as text, by way of the layers below (`Kv::ask_peer`): rare, by hand, and understood by later versions or refused. What is answered
//! is said in `answers`.

/// Bytes of one answer, at most, but for its last row: the layers below carry 64 KiB.
pub(crate) const ANSWER_BYTES_MAX: usize = 48 << 10;
/// Characters of a statement that other nodes are told.
pub(crate) const TOLD_QUERY_CHARS_MAX: usize = 200;
/// Bits of a process id that count the sessions of one node; above them stands the node's number.
pub const PID_BITS: u32 = 18;

/// One row.
pub type Row = Vec<Option<String>>;

/// The node whose session a process id is; `None`: it is alone, or it is no id of a cluster's.
pub fn node_of(pid: i64) -> Option<u32> {
    u32::try_from(pid >> PID_BITS).ok().filter(|node| *node != 0)
}

/// Whether rows are as much as one answer takes.
pub(crate) fn is_full(rows: &[Row]) -> bool {
    let cell = |cell: &Option<String>| cell.as_ref().map_or(2, String::len) + 1;
    rows.iter().flatten().map(cell).sum::<usize>() > ANSWER_BYTES_MAX / 2
}

/// What is to be asked for the rest of an answer, if it says so: the second cell of a last row that begins with a plus.
pub fn next_question(told: &str) -> Option<String> {
    let mut last = rows_of(told).pop()?;
    if last.len() == 2 && last[0].as_deref() == Some("+") { last.pop().flatten() } else { None }
}

/// A line for each row, a tab between cells; NULL is `\\N`.
pub(crate) fn written(rows: &[Row]) -> String {
    let cell = |cell: &Option<String>| match cell {
        None => "\\N".to_owned(),
        Some(text) => text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"),
    };
    rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join("\t") + "\n").collect()
}

/// The rows of an answer, as text: a line for each, a tab between cells, NULL is `\\N`.
pub fn rows_of(text: &str) -> Vec<Row> {
    let cell = |cell: &str| {
        if cell == "\\N" {
            return None;
        }
        let (mut out, mut chars) = (String::new(), cell.chars());
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some('t') => out.push('\t'),
                    Some('n') => out.push('\n'),
                    Some('r') => out.push('\r'),
                    Some(other) => out.push(other),
                    None => {}
                },
                c => out.push(c),
            }
        }
        Some(out)
    };
    text.lines().map(|line| line.split('\t').map(cell).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_as_text() {
        let mut row: Row = vec![None; 13];
        (row[0], row[3]) = (Some("7".into()), Some(String::new()));
        row[11] = Some("SELECT 'a\tb\\N',\r\n 1".into());
        let rows = vec![row.clone(), row];
        assert_eq!(rows_of(&written(&rows)), rows);
        assert_eq!(rows_of(""), Vec::<Row>::new());
        let more = vec![vec![Some("+".to_owned()), Some("locks all - 0 7".to_owned())]];
        assert_eq!(next_question(&written(&more)).as_deref(), Some("locks all - 0 7"));
        assert_eq!((next_question(""), next_question("a\tb\n"), next_question("+\n")), (None, None, None));
    }

    #[test]
    fn process_ids_name_their_node() {
        assert_eq!((node_of(5), node_of(-5), node_of((3 << PID_BITS) + 5)), (None, None, Some(3)));
    }
}
