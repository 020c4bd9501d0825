use super::splitter::LineSplitter;
use super::{CopyFormat, HEADER, TRAILER, TupleSplitter};
use crate::syntax::command::{CopyLayout, CopyOptions};
use crate::types::EvalSettings;
use crate::types::{CastContext, SqlType, Value};

fn layout(csv: bool) -> CopyLayout {
    if csv { CopyLayout::Csv } else { CopyLayout::Text }
}

fn format(csv: bool, change: impl Fn(&mut CopyOptions)) -> CopyFormat {
    let mut options = CopyOptions { layout: layout(csv), ..CopyOptions::default() };
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
            rows.push(match format.decode(line, number, &CastContext::new(&settings), &mut row) {
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
fn a_row_of_no_columns_is_an_empty_line() {
    for csv in [false, true] {
        let options = CopyOptions { layout: layout(csv), ..CopyOptions::default() };
        let none = CopyFormat::new(&options, Vec::new()).unwrap();
        assert_eq!(read(&none, b"\n\nx\n", 1), ["", "", "extra data after last expected column COPY line 3."]);
    }
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
            format.encode(&row, &settings, &mut line).unwrap();
            let mut splitter = LineSplitter::new(&format);
            splitter.push(&line).unwrap();
            let line = splitter.next_line().unwrap().to_vec();
            let mut back = Vec::new();
            format.decode(&line, 1, &CastContext::new(&settings), &mut back).unwrap();
            assert_eq!(back, row, "{text:?} csv {csv}");
        }
    }
}

#[test]
fn options_that_contradict_are_refused() {
    let refuse = |csv: bool, change: &dyn Fn(&mut CopyOptions)| {
        let mut options = CopyOptions { layout: layout(csv), ..CopyOptions::default() };
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

fn binary(columns: Vec<(String, SqlType)>) -> CopyFormat {
    let options = CopyOptions { layout: CopyLayout::Binary, ..CopyOptions::default() };
    CopyFormat::new(&options, columns).unwrap()
}

/// Reads binary data cut into chunks of a size: the rows, or the first error.
fn tuples(format: &CopyFormat, input: &[u8], chunk: usize) -> Result<Vec<Vec<Value>>, crate::SqlError> {
    let mut splitter = TupleSplitter::default();
    let mut rows = Vec::new();
    let mut take = |splitter: &mut TupleSplitter| {
        let mut row = Vec::new();
        let number = splitter.tuples() + 1;
        while let Some(tuple) = splitter.next_tuple()? {
            format.decode(tuple, number, &CastContext::new(&EvalSettings::default()), &mut row)?;
            rows.push(row.clone());
        }
        Ok::<_, crate::SqlError>(())
    };
    for part in input.chunks(chunk) {
        splitter.push(part)?;
        take(&mut splitter)?;
    }
    splitter.finish();
    take(&mut splitter)?;
    Ok(rows)
}

#[test]
fn every_type_that_has_a_binary_form_is_read_back_whatever_the_chunks() {
    let settings = EvalSettings::default();
    let values = [
        (SqlType::Bool, "t"),
        (SqlType::Int2, "-7"),
        (SqlType::Int4, "7"),
        (SqlType::Int8, "-70000000000"),
        (SqlType::Float4, "1.5"),
        (SqlType::Float8, "-Infinity"),
        (SqlType::Numeric(None), "-123456789012345.000100"),
        (SqlType::Text, ""),
        (SqlType::Varchar(Some(9)), "tëxt\n"),
        (SqlType::Char(4), "ab"),
        (SqlType::Name, "name"),
        (SqlType::Bytea, "\\x00ff"),
        (SqlType::Date, "1912-06-23"),
        (SqlType::Time(None), "08:30:01.000005"),
        (SqlType::Timetz(None), "08:30:01.000005-03:30"),
        (SqlType::Timestamp(None), "2026-11-20 08:30:00.123456"),
        (SqlType::Timestamptz(None), "infinity"),
        (SqlType::Interval(None), "1 mon -2 days 03:00:00.5"),
        (SqlType::Uuid, "00112233-4455-6677-8899-aabbccddeeff"),
        (SqlType::Json, "{\"a\" : 1}"),
        (SqlType::Jsonb, "{\"a\": [1, null]}"),
        (SqlType::Oid, "4000000000"),
        (SqlType::Array(Box::new(SqlType::Text)), "[0:1][1:2]={{a,NULL},{\"q,\",d}}"),
    ];
    let columns = values.iter().map(|(ty, _)| (ty.to_string(), ty.clone())).collect();
    let format = binary(columns);
    let row: Vec<Value> = values.iter().map(|(ty, text)| Value::parse_text(ty, text, &settings).unwrap()).collect();
    let nulls = vec![Value::Null; row.len()];
    let mut data = HEADER.to_vec();
    for row in [&row, &nulls, &row] {
        format.encode(row, &settings, &mut data).unwrap();
    }
    data.extend_from_slice(TRAILER);
    for chunk in [1, 2, 3, 7, 19, 100_000] {
        assert_eq!(
            tuples(&format, &data, chunk).unwrap(),
            [row.clone(), nulls.clone(), row.clone()],
            "chunks of {chunk} bytes"
        );
    }
}

#[test]
fn binary_data_that_are_none_are_refused() {
    let format = binary(vec![("a".into(), SqlType::Int4), ("b".into(), SqlType::Text)]);
    let mut whole = HEADER.to_vec();
    format.encode(&[Value::Int4(1), Value::text("one")], &EvalSettings::default(), &mut whole).unwrap();
    let first = HEADER.len();
    let with = |at: usize, bytes: &[u8]| {
        let mut data = whole.clone();
        data[at..at + bytes.len()].copy_from_slice(bytes);
        data
    };
    // The end of the data need not be marked.
    assert_eq!(tuples(&format, &whole, 5).unwrap().len(), 1);
    for (data, wanted) in [
        (b"1\tone\n".to_vec(), "22P04 COPY file signature not recognized"),
        (HEADER[..5].to_vec(), "22P04 COPY file signature not recognized"),
        (HEADER[..15].to_vec(), "22P04 invalid COPY file header (missing flags)"),
        (with(11, &[0, 1, 0, 0]), "22P04 invalid COPY file header (WITH OIDS)"),
        (with(11, &[0, 2, 0, 0]), "22P04 unrecognized critical flags in COPY file header"),
        (with(15, &[0, 0, 0, 99]), "22P04 invalid COPY file header (wrong length)"),
        (with(first, &[0, 1]), "22P04 row field count is 1, expected 2"),
        (with(first + 2, &[255, 255, 255, 0]), "22P04 invalid field size"),
        (with(first + 2, &[0, 0, 0, 3]), "22P04 unexpected EOF in COPY data"),
        (whole[..whole.len() - 1].to_vec(), "22P04 unexpected EOF in COPY data"),
        ([whole.as_slice(), TRAILER, b"x"].concat(), "22P04 received copy data after EOF marker"),
    ] {
        for chunk in [1, 4, 1000] {
            let error = tuples(&format, &data, chunk).unwrap_err();
            let shown = format!("{} {}", error.state.as_str(), error.message);
            let also = ["22P03 incorrect binary data format for type integer", wanted];
            assert!(also.contains(&shown.as_str()), "{shown} instead of {wanted}");
        }
    }
    let refuse = |change: &dyn Fn(&mut CopyOptions)| {
        let mut options = CopyOptions { layout: CopyLayout::Binary, ..CopyOptions::default() };
        change(&mut options);
        CopyFormat::new(&options, Vec::new()).unwrap_err().message.clone()
    };
    assert_eq!(refuse(&|o| o.delimiter = Some(',')), "cannot specify DELIMITER in BINARY mode");
    assert_eq!(refuse(&|o| o.null = Some(String::new())), "cannot specify NULL in BINARY mode");
    assert_eq!(refuse(&|o| o.header = true), "cannot specify HEADER in BINARY mode");
    assert_eq!(refuse(&|o| o.quote = Some('"')), "COPY quote available only in CSV mode");
}
