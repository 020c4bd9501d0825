//! The index: how each table and figure of the seeds stands, from the verdicts that experiments left beside their pages.

use super::catalogue::ITEMS;
use super::run::write;
use super::{LabError, Table, all};
use std::fs;
use std::path::{Path, PathBuf};

/// One line of a file of verdicts: item, stand, what the document says, what was found.
fn parse(line: &str) -> Option<[String; 4]> {
    let mut fields: Vec<String> = vec![String::new()];
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                fields.last_mut()?.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.last_mut()?.push(other),
        }
    }
    fields.try_into().ok()
}

/// First line of an index.
const TITLE: &str = "# The seeds' experiments, on our own system";

struct Found {
    experiment: &'static str,
    fields: [String; 4],
}

fn verdicts(dir: &Path) -> Vec<Found> {
    let read = |name: &'static str| {
        // Not there: it was not run yet.
        let text = fs::read_to_string(dir.join(format!("{name}-verdicts.csv"))).unwrap_or_default();
        let lines: Vec<Found> =
            text.lines().skip(1).filter_map(parse).map(|fields| Found { experiment: name, fields }).collect();
        lines
    };
    all().iter().flat_map(|experiment| read(experiment.name())).collect()
}

/// The index page of a folder of results.
pub(super) fn text(dir: &Path) -> String {
    let found = verdicts(dir);
    let mut table = Table::new(["", "what it shows", "", "the document", "here", "page"]);
    let (mut counts, mut open) = ([("agrees", 0), ("differs", 0), ("cannot be shown here", 0)], 0);
    for item in ITEMS {
        let of_item: Vec<&Found> = found.iter().filter(|f| f.fields[0] == item.name).collect();
        if of_item.is_empty() {
            open += 1;
            let [stand, document, ours, page] = ["not yet", "", "", ""].map(Into::into);
            table.row([item.name.into(), item.shows.into(), stand, document, ours, page]);
        }
        for Found { experiment, fields: [_, stand, document, ours] } in of_item {
            for (word, count) in &mut counts {
                *count += i32::from(*word == stand.as_str());
            }
            let link = format!("[{experiment}]({experiment}.md)");
            let stand = format!("**{stand}**");
            let (document, ours) = (document.as_str().into(), ours.as_str().into());
            table.row([item.name.into(), item.shows.into(), stand.into(), document, ours, link.into()]);
        }
    }
    let counted = counts.map(|(word, count)| format!("{count}: {word}")).join(", ");
    let mut experiments = Table::new(["command", "what it repeats"]);
    for experiment in all() {
        let command = format!("`timeball lab {}`", experiment.name());
        experiments.row([command.into(), experiment.about().into()]);
    }
    let items = ITEMS.len();
    format!(
        "{TITLE}\n\n\
         Each line is a table, a figure or a sentence of a document that Timeball was built from: what the document prints (or its sentence, where it\n\
         prints no number), what was found here, and whether the two say the same. An item has several lines where it says several things, or where both\n\
         formulas and a simulation speak of it. {items} items; of the lines {counted}; {open} items were not run yet.\n\n\
         `timeball lab NAME` repeats one, `timeball lab index` writes this page anew. `--full` takes the sizes of the document, `--resume` goes on where an\n\
         interrupted run stopped. Pages say machine, date, commit and command, what of them is the product's code, and how the opponents are set.\n\n\
         {}\n## Commands\n\n{}",
        table.markdown(),
        experiments.markdown()
    )
}

/// Writes the index page of a folder of results; gives its path.
///
/// # Errors
/// [`LabError::File`], and [`LabError::NotAnIndex`] where a README.md is there that is none.
pub fn index(dir: &Path) -> Result<PathBuf, LabError> {
    let path = dir.join("README.md");
    match fs::read_to_string(&path) {
        Ok(there) if !there.starts_with(TITLE) => return Err(LabError::NotAnIndex { path }),
        // Nothing is there, or an index.
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(LabError::File { path, error }),
    }
    write(&path, text(dir).as_bytes())?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::experiments::Table;

    #[test]
    fn a_line_of_verdicts_reads_back() {
        let cells = ["004 figure 2.9", "agrees", "it \"falls\", they say", "0.1, 0.01"];
        let mut table = Table::new(["a", "b", "c", "d"]);
        table.row(cells.map(Into::into));
        let csv = table.csv();
        assert_eq!(parse(csv.lines().nth(1).unwrap()), Some(cells.map(str::to_owned)));
        assert_eq!(parse("a,b"), None);
    }
}
