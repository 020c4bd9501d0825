//! COPY whose rows are on this side: `\copy` with a file, and what stands behind a `COPY .. FROM STDIN` in a script, up to a line `\.`, as pg_dump
//! writes it.

use super::{Shell, Step, View, show_message, statement};
use lab::client::Event;
use std::fs::File;
use std::io::{BufRead, BufWriter, Read, Write};

const USAGE: &str = "\\copy TABLE [(COLUMNS)] FROM 'FILE' [OPTIONS], or \\copy TABLE or (QUERY) TO 'FILE' [OPTIONS], \
                     where stdout is the terminal; in a script \
                     stdin is what follows, up to a line \\.";

/// One `\copy`, taken apart.
#[derive(Debug, PartialEq, Eq)]
struct Copy<'a> {
    what: &'a str,
    from: bool,
    file: String,
    options: &'a str,
}

/// Runs `\copy`, its words after the command.
pub fn run(shell: &mut Shell, text: &str) -> Step {
    let Some(copy) = parse(text) else {
        eprintln!("Not understood: {USAGE}");
        return Step::Failed;
    };
    let sql = format!("COPY {} {} {}", copy.what, if copy.from { "FROM STDIN" } else { "TO STDOUT" }, copy.options);
    let done = if copy.from { load(shell, &sql, &copy.file) } else { store(shell, &sql, &copy.file) };
    done.unwrap_or_else(|problem| {
        eprintln!("{problem}");
        Step::Failed
    })
}

fn load(shell: &mut Shell, sql: &str, file: &str) -> Result<Step, String> {
    let mut data = File::open(file).map_err(|e| format!("cannot open {file}: {e}"))?;
    Ok(load_from(shell, sql, &mut data))
}

fn load_from(shell: &mut Shell, sql: &str, data: &mut dyn Read) -> Step {
    let mut view = View::new(shell, sql, None);
    shell.mark_running(true);
    let ran = shell.client.copy_events(sql, data, |event| view.see(event));
    shell.mark_running(false);
    match ran {
        Err(e) => shell.lost(&e),
        Ok(()) if view.failed => Step::Failed,
        Ok(()) => Step::On,
    }
}

/// The statement whose rows stand behind it in a script, if this is one: `COPY .. FROM STDIN;`, or `\copy .. from stdin`.
pub(super) fn with_rows_behind(text: &str) -> Option<String> {
    let text = statement::behind_comments(text).trim_end();
    let word = text.split_whitespace().next()?;
    if !word.trim_start_matches('\\').eq_ignore_ascii_case("copy") || statement::split(text).len() != 1 {
        return None;
    }
    let copy = parse(&text[word.len()..]).filter(|copy| copy.from && copy.file.eq_ignore_ascii_case("stdin"))?;
    Some(format!("COPY {} FROM STDIN {}", copy.what, copy.options))
}

/// Runs it: the rows are the lines of `input` up to `\.`, which are read if the server asks for them.
pub(super) fn run_with_rows(shell: &mut Shell, sql: &str, input: &mut dyn BufRead) -> Step {
    let mut rows = RowsBehind { input, line: Vec::new(), at: 0, begun: false, ended: false };
    let step = load_from(shell, sql, &mut rows);
    // Rows that were refused are none of the script's statements.
    let left = if rows.begun { std::io::copy(&mut rows, &mut std::io::sink()).map(drop) } else { Ok(()) };
    match left {
        Ok(()) => step,
        Err(e) => {
            eprintln!("cannot read the script: {e}");
            Step::Failed
        }
    }
}

/// Lines up to `\.`, which goes too, or to the end.
struct RowsBehind<'a> {
    input: &'a mut dyn BufRead,
    line: Vec<u8>,
    /// What of the line was given.
    at: usize,
    begun: bool,
    ended: bool,
}

impl Read for RowsBehind<'_> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        self.begun = true;
        if self.at == self.line.len() && !self.ended {
            self.line.clear();
            self.at = 0;
            let bytes = self.input.read_until(b'\n', &mut self.line)?;
            let is_end = self.line.trim_ascii_end() == b"\\.";
            self.ended = bytes == 0 || is_end;
            if is_end {
                self.line.clear();
            }
        }
        let given = room.len().min(self.line.len() - self.at);
        room[..given].copy_from_slice(&self.line[self.at..self.at + given]);
        self.at += given;
        Ok(given)
    }
}

fn store(shell: &mut Shell, sql: &str, file: &str) -> Result<Step, String> {
    if file == "stdout" {
        return Ok(shell.statement(sql, None));
    }
    let mut out = BufWriter::new(File::create(file).map_err(|e| format!("cannot make {file}: {e}"))?);
    let (mut tag, mut failed, mut written) = (String::new(), false, Ok(()));
    shell.mark_running(true);
    let ran = shell.client.query_events(sql, |event| match event {
        Event::Row(row) if written.is_ok() => {
            written = row.into_iter().flatten().try_for_each(|line| writeln!(out, "{line}"));
        }
        Event::Tag(done) => tag = done,
        Event::Error(error) => {
            failed = true;
            show_message(&error, sql);
        }
        _ => {}
    });
    shell.mark_running(false);
    if let Err(e) = ran {
        return Ok(shell.lost(&e));
    }
    written.and_then(|()| out.flush()).map_err(|e| format!("cannot write {file}: {e}"))?;
    if failed {
        return Ok(Step::Failed);
    }
    println!("{tag}");
    Ok(Step::On)
}

/// `what from|to file options`; the word is outside of quotes and parentheses.
fn parse(text: &str) -> Option<Copy<'_>> {
    let text = text.trim().trim_end_matches(';').trim_end();
    let (mut depth, mut quote, mut word) = (0, None, 0);
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, c) if c.is_whitespace() => {
                let found = &text[word..at];
                if depth == 0 && (found.eq_ignore_ascii_case("from") || found.eq_ignore_ascii_case("to")) {
                    let (file, options) = file_name(text[at..].trim_start())?;
                    let what = text[..word].trim();
                    let from = found.eq_ignore_ascii_case("from");
                    return (!what.is_empty()).then_some(Copy { what, from, file, options });
                }
                word = at + c.len_utf8();
            }
            _ => {}
        }
    }
    None
}

/// A file's name, in quotes or one word, and what follows.
fn file_name(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('\'') else {
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        return (!name.is_empty()).then(|| (name.to_owned(), rest.trim()));
    };
    let mut name = String::new();
    let mut characters = quoted.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        if c != '\'' {
            name.push(c);
        } else if characters.next_if(|(_, next)| *next == '\'').is_some() {
            name.push('\'');
        } else {
            return Some((name, quoted[at + 1..].trim()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<(&str, bool, String, &str)> {
        parse(text).map(|c| (c.what, c.from, c.file, c.options))
    }

    #[test]
    fn rows_end_with_their_line() {
        let mut script = b"1\ta\n2\t\\.b\n\\.\r\nselect 1;\n".as_slice();
        let mut rows = RowsBehind { input: &mut script, line: Vec::new(), at: 0, begun: false, ended: false };
        let mut read = String::new();
        rows.read_to_string(&mut read).unwrap();
        assert_eq!((read.as_str(), script), ("1\ta\n2\t\\.b\n", b"select 1;\n".as_slice()));
    }

    #[test]
    fn taken_apart() {
        assert_eq!(parts("t from 'a b.csv' csv header;"), Some(("t", true, "a b.csv".into(), "csv header")));
        assert_eq!(parts("t (a, b) FROM x.csv"), Some(("t (a, b)", true, "x.csv".into(), "")));
        let query = "(select ' to ' from t) to '/tmp/it''s' with (format csv)";
        assert_eq!(parts(query), Some(("(select ' to ' from t)", false, "/tmp/it's".into(), "with (format csv)")));
        assert_eq!(parts("\"from\" to stdout"), Some(("\"from\"", false, "stdout".into(), "")));
        let rows = |text| with_rows_behind(text);
        assert_eq!(
            rows("--\n-- Data; of t\n--\n\nCOPY public.t (a, b) FROM stdin;"),
            Some("COPY public.t (a, b) FROM STDIN ".into())
        );
        assert_eq!(rows("\\copy t from stdin csv"), Some("COPY t FROM STDIN csv".into()));
        for other in [
            "COPY t TO stdout;",
            "COPY t FROM 'stdin.csv';",
            "select 1; COPY t FROM stdin;",
            "-- COPY t FROM stdin;",
            "",
        ] {
            assert_eq!(rows(other), None, "{other}");
        }
        for wrong in ["t", "t from", "from 'x'", "t from 'x"] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }
}
