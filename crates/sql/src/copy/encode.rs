//! From values to a line.

use super::CopyFormat;
use crate::SqlError;
use crate::output;
use crate::syntax::command::CopyLayout;
use crate::types::EvalSettings;
use crate::types::Value;

impl CopyFormat {
    /// Appends a row as a line with its newline.
    ///
    /// # Errors
    /// 54000 beyond [`output::ROW_BYTES_MAX`].
    pub fn encode(&self, row: &[Value], settings: &EvalSettings, out: &mut Vec<u8>) -> Result<(), SqlError> {
        if self.layout == CopyLayout::Binary {
            return self.encode_binary(row, out);
        }
        let csv = self.layout == CopyLayout::Csv;
        let mut field = Vec::new();
        for (i, (value, (_, ty))) in row.iter().zip(&self.columns).enumerate() {
            if i > 0 {
                out.push(self.delimiter);
            }
            if value.is_null() {
                out.extend_from_slice(self.null.as_bytes());
                continue;
            }
            if !csv && matches!(value, Value::Int4(_) | Value::Int8(_) | Value::Int2(_)) {
                value.write_text(ty, settings, out);
                continue;
            }
            field.clear();
            value.write_text(ty, settings, &mut field);
            if csv {
                let force = self.force_quote.get(i).copied().unwrap_or(false);
                self.put_csv(&field, force, row.len() == 1, out);
            } else {
                self.put_text(&field, out);
            }
            output::check_row(out.len())?;
        }
        out.push(b'\n');
        Ok(())
    }

    /// Appends the line that names the columns.
    pub fn encode_header(&self, out: &mut Vec<u8>) {
        for (i, (name, _)) in self.columns.iter().enumerate() {
            if i > 0 {
                out.push(self.delimiter);
            }
            if self.layout == CopyLayout::Csv {
                self.put_csv(name.as_bytes(), false, false, out)
            } else {
                self.put_text(name.as_bytes(), out)
            }
        }
        out.push(b'\n');
    }

    fn put_text(&self, field: &[u8], out: &mut Vec<u8>) {
        for &b in field {
            let escape = match b {
                8 => b'b',
                12 => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                11 => b'v',
                b'\\' => b'\\',
                b if b == self.delimiter => b,
                b => {
                    out.push(b);
                    continue;
                }
            };
            out.extend_from_slice(&[b'\\', escape]);
        }
    }

    fn put_csv(&self, field: &[u8], force: bool, alone: bool, out: &mut Vec<u8>) {
        let needs = force
            || field == self.null.as_bytes()
            // Alone on a line this would end the data.
            || (alone && field == b"\\.")
            || field.iter().any(|b| *b == self.delimiter || *b == self.quote || matches!(b, b'\n' | b'\r'));
        if !needs {
            return out.extend_from_slice(field);
        }
        out.push(self.quote);
        for &b in field {
            if b == self.quote || b == self.escape {
                out.push(self.escape);
            }
            out.push(b);
        }
        out.push(self.quote);
    }
}
