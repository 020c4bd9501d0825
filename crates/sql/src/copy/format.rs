//! A format with its options settled.

use crate::syntax::command::{CopyLayout, CopyOptions};
use crate::types::SqlType;
use crate::{SqlError, SqlState};

/// How rows are written as lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyFormat {
    /// Which it is.
    pub layout: CopyLayout,
    /// Between fields.
    pub delimiter: u8,
    /// What stands for NULL.
    pub null: String,
    /// The first line names the columns.
    pub header: bool,
    /// Around a field (csv).
    pub quote: u8,
    /// Before a quote within quotes (csv).
    pub escape: u8,
    /// Names and types of the columns, in the order of fields.
    pub columns: Vec<(String, SqlType)>,
    /// Columns always quoted on output (csv).
    pub force_quote: Vec<bool>,
    /// Columns in which an unquoted NULL text is an ordinary value (csv).
    pub force_not_null: Vec<bool>,
    /// Columns in which a quoted NULL text is NULL (csv).
    pub force_null: Vec<bool>,
}

fn invalid(text: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, text)
}

/// What has no meaning where no field is a text.
fn refuse_in_binary(options: &CopyOptions) -> Result<(), SqlError> {
    for (given, name, state) in [
        (options.delimiter.is_some(), "DELIMITER", SqlState::SYNTAX_ERROR),
        (options.null.is_some(), "NULL", SqlState::SYNTAX_ERROR),
        (options.header, "HEADER", SqlState::FEATURE_NOT_SUPPORTED),
    ] {
        if given {
            return Err(SqlError::new(state, format!("cannot specify {name} in BINARY mode")));
        }
    }
    Ok(())
}

impl CopyFormat {
    /// Settles the options of a statement for these columns.
    ///
    /// # Errors
    /// 22023 for options that contradict each other, 0A000 for those that csv has and text has not, 42703 for unknown columns.
    pub fn new(options: &CopyOptions, columns: Vec<(String, SqlType)>) -> Result<CopyFormat, SqlError> {
        let one_byte = |c: Option<char>, default: u8, what: &str| match c {
            None => Ok(default),
            Some(c) => u8::try_from(c)
                .ok()
                .filter(u8::is_ascii)
                .ok_or_else(|| SqlError::unsupported(format!("a COPY {what} of more than one byte"))),
        };
        let csv = options.layout == CopyLayout::Csv;
        if options.layout == CopyLayout::Binary {
            refuse_in_binary(options)?;
        }
        let delimiter = one_byte(options.delimiter, if csv { b',' } else { b'\t' }, "delimiter")?;
        let quote = one_byte(options.quote, b'"', "quote")?;
        let escape = one_byte(options.escape, quote, "escape")?;
        let null = options.null.clone().unwrap_or_else(|| if csv { String::new() } else { "\\N".into() });
        if matches!(delimiter, b'\r' | b'\n') {
            return Err(invalid("COPY delimiter cannot be newline or carriage return"));
        }
        if null.contains(['\r', '\n']) {
            return Err(invalid("COPY null representation cannot use newline or carriage return"));
        }
        if !csv && b"\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(&delimiter) {
            return Err(invalid(format!("COPY delimiter cannot be \"{}\"", delimiter as char)));
        }
        for (given, name) in [(options.quote.is_some(), "quote"), (options.escape.is_some(), "escape")] {
            if given && !csv {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("COPY {name} available only in CSV mode"),
                ));
            }
        }
        for (given, name) in [
            (options.force_quote.is_some(), "force quote"),
            (!options.force_not_null.is_empty(), "force not null"),
            (!options.force_null.is_empty(), "force null"),
        ] {
            if given && !csv {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("COPY {name} available only in CSV mode"),
                ));
            }
        }
        if csv && delimiter == quote {
            return Err(invalid("COPY delimiter and quote must be different"));
        }
        if null.as_bytes().contains(&delimiter) {
            return Err(invalid("COPY delimiter must not appear in the NULL specification"));
        }
        if csv && null.as_bytes().contains(&quote) {
            return Err(invalid("CSV quote character must not appear in the NULL specification"));
        }
        let flags = |names: &[String]| {
            let mut flags = vec![false; columns.len()];
            for name in names {
                let place = columns.iter().position(|(column, _)| column == name).ok_or_else(|| {
                    SqlError::new(
                        SqlState::UNDEFINED_COLUMN,
                        format!("column \"{name}\" is not one of the columns copied"),
                    )
                })?;
                flags[place] = true;
            }
            Ok::<_, SqlError>(flags)
        };
        let force_quote = match options.force_quote.as_deref() {
            Some([]) => vec![true; columns.len()],
            Some(names) => flags(names)?,
            None => vec![false; columns.len()],
        };
        let (force_not_null, force_null) = (flags(&options.force_not_null)?, flags(&options.force_null)?);
        Ok(CopyFormat {
            layout: options.layout,
            delimiter,
            null,
            header: options.header,
            quote,
            escape,
            columns,
            force_quote,
            force_not_null,
            force_null,
        })
    }
}
