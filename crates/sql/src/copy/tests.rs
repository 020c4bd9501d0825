use super::{CopyFormat, LineSplitter};
use crate::context::EvalSettings;
use crate::syntax::command::CopyOptions;
use crate::types::{SqlType, Value};

fn format(csv: bool, change: impl Fn(&mut CopyOptions)) -> CopyFormat {
    let mut options = CopyOptions { csv, ..CopyOptions::default() };
    change(&mut options);
    CopyFormat::new(&options, vec![("a".into(), SqlType::Int4), ("b".into(), SqlType::Text)]).unwrap()
}

/// Reads a whole input cut into chunks of a size; each row as debug text or the error's message.
fn read(format: &CopyFormat, input: &[u8], chunk: usize) -> Vec<String> {
    let mut splitter = LineSplitter::new(format);
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let settings = EvalSettings::default();
    let mut take = |splitter: &mut LineSplitter| {
        loop {
            let number = splitter.lines() + 1;
            let Some(line) = splitter.next_line() else { break };
            rows.push(match format.decode(line, number, &settings, &mut row) {
                Ok(()) => row
                    .iter()
                    .map(|v| {
                        v.to_text(&SqlType::Text, &settings).replace('\n', "<nl>")
                            + if v.is_null() { "NULL" } else { "" }
                    })
                    .collect::<Vec<_>>()
                    .join("|"),
                Err(error) => format!("{} {}", error.message, error.detail.as_deref().unwrap_or_default()),
            });
        }
    };
    for part in input.chunks(chunk) {
        splitter.push(part).unwrap();
        take(&mut splitter);
    }
    splitter.finish();
    take(&mut splitter);
    rows
}

#[test]
fn text_is_read_whatever_the_chunks() {
    let text = format(false, |_| {});
    let input = b"1\tone\n2\t\\N\n3\ta\\tb\\\\\\x41\\101\n4\tline\\\nbreak\r\n5\t\n6\nx\ty\n7\ta\tb\n8\tlast\n\\.\n9\tignored\n";
    let wanted = vec![
        "1|one",
        "2|NULL",
        "3|a\tb\\AA",
        "4|line<nl>break",
        "5|",
        "missing data for column \"b\" COPY line 6, column b.",
        "invalid input syntax for type integer: \"x\" COPY line 7, column a.",
        "extra data after last expected column COPY line 8.",
        "8|last",
    ];
    for chunk in [1, 2, 3, 7, 1000] {
        assert_eq!(read(&text, input, chunk), wanted, "chunks of {chunk} bytes");
    }
}

#[test]
fn csv_is_read_whatever_the_chunks() {
    let csv = format(true, |_| {});
    let input = b"1,one\n2,\n3,\"\"\n4,\"a,\"\"b\"\"\nc\"\n5,x\"y,z\"w\n\"6\",\"\\.\"\n7,last";
    let wanted = vec!["1|one", "2|NULL", "3|", "4|a,\"b\"<nl>c", "5|xy,zw", "6|\\.", "7|last"];
    for chunk in [1, 2, 3, 7, 1000] {
        assert_eq!(read(&csv, input, chunk), wanted, "chunks of {chunk} bytes");
    }
    let escaped = format(true, |o| {
        o.escape = Some('\\');
        o.quote = Some('\'');
        o.delimiter = Some(';');
        o.force_null = vec!["b".into()];
    });
    for chunk in [1, 2, 1000] {
        assert_eq!(
            read(&escaped, b"1;'a\\'b\\\\'\n2;''\n3;'x;y\nz'\n", chunk),
            vec!["1|a'b\\", "2|NULL", "3|x;y<nl>z"]
        );
    }
    assert_eq!(read(&csv, b"1,\"open\n2,x", 100), vec!["unterminated CSV quoted field COPY line 1, column b."]);
}

#[test]
fn what_is_written_is_read_back() {
    let settings = EvalSettings::default();
    let texts = ["", "\\N", "\\.", "a\tb", "quote \" and ' and \\", "line\nbreak\r", "comma,semi;", "é\u{8}\u{b}\u{c}"];
    for csv in [false, true] {
        let format = format(csv, |_| {});
        for text in texts {
            let row = vec![Value::Int4(-5), Value::text(text)];
            let mut line = Vec::new();
            format.encode(&row, &settings, &mut line);
            let mut splitter = LineSplitter::new(&format);
            splitter.push(&line).unwrap();
            let line = splitter.next_line().unwrap().to_vec();
            let mut back = Vec::new();
            format.decode(&line, 1, &settings, &mut back).unwrap();
            assert_eq!(back, row, "{text:?} csv {csv}");
        }
    }
}

#[test]
fn options_that_contradict_are_refused() {
    let refuse = |csv: bool, change: &dyn Fn(&mut CopyOptions)| {
        let mut options = CopyOptions { csv, ..CopyOptions::default() };
        change(&mut options);
        CopyFormat::new(&options, vec![("a".into(), SqlType::Int4)]).unwrap_err().message.clone()
    };
    assert_eq!(refuse(false, &|o| o.quote = Some('"')), "COPY quote available only in CSV mode");
    assert_eq!(refuse(true, &|o| o.quote = Some(',')), "COPY delimiter and quote must be different");
    assert_eq!(refuse(false, &|o| o.delimiter = Some('a')), "COPY delimiter cannot be \"a\"");
    assert_eq!(
        refuse(true, &|o| o.null = Some("a,b".into())),
        "COPY delimiter must not appear in the NULL specification"
    );
}

#[test]
fn a_line_without_end_is_refused() {
    let csv = format(true, |_| {});
    let mut splitter = LineSplitter::new(&csv);
    let chunk = vec![b'x'; 1 << 20];
    let result = (0..100).try_for_each(|_| {
        splitter.push(&chunk)?;
        assert!(splitter.next_line().is_none());
        Ok::<_, crate::SqlError>(())
    });
    assert_eq!(result.unwrap_err().state, crate::SqlState::PROGRAM_LIMIT_EXCEEDED);
}
