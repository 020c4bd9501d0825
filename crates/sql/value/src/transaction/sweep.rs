//! Rows of a span together, for who looks at each and keeps few.

use super::{KvError, ScanChunk, ScanRequest, Span, Transaction};
use bytes::Bytes;
use std::ops::ControlFlow;

/// Says whether a row with this value is to be given; `Break`: it is, and the chunk ends with it. It must not call the transaction.
pub type Pick<'a> = dyn FnMut(&[u8]) -> ControlFlow<(), bool> + 'a;

/// Rows of a span, lowest key first, for who looks at each and keeps few.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// Keys and values, one behind the other.
    pub bytes: Bytes,
    /// Of each row, in order: where in `bytes` its key begins and ends, and its value.
    pub places: Vec<[u32; 4]>,
    /// What remains to be asked for; `None` at the end.
    pub rest: Option<Span>,
}

impl Sweep {
    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let part = |from: u32, to: u32| self.bytes.get(from as usize..to as usize).unwrap_or_default();
        self.places.iter().map(move |&[key, key_end, value, value_end]| (part(key, key_end), part(value, value_end)))
    }

    /// Rows of a span without those that `pick` does not want, as a store gives them: what is left out does not end a chunk. `sweep` gives so many rows of a span.
    pub(super) fn picked(
        span: &Span,
        limit: usize,
        pick: &mut Pick<'_>,
        mut sweep: impl FnMut(&Span, usize) -> Result<Option<Sweep>, KvError>,
    ) -> Result<Option<Sweep>, KvError> {
        let (mut rows, mut rest) = (Vec::new(), Some(span.clone()));
        while rows.len() < limit
            && let Some(span) = rest.take()
        {
            let Some(swept) = sweep(&span, limit - rows.len())? else { return Ok(None) };
            rest = swept.rest.clone();
            for (key, value) in swept.rows() {
                let wanted = pick(value);
                if wanted != ControlFlow::Continue(false) {
                    rows.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
                }
                if wanted.is_break() {
                    let rest = Bytes::from([key, &[0]].concat())..span.end;
                    return Ok(Some(Sweep::from(ScanChunk { rows, rest: Some(rest) })));
                }
            }
        }
        Ok(Some(Sweep::from(ScanChunk { rows, rest })))
    }

    /// At most `limit` rows of a span, swept where that is possible, scanned where not.
    ///
    /// # Errors
    /// Those of a scan.
    pub fn of(txn: &mut dyn Transaction, span: Span, limit: usize, certified: bool) -> Result<Sweep, KvError> {
        if let Some(swept) = txn.sweep(&span, limit, certified)? {
            return Ok(swept);
        }
        let request = ScanRequest { span, reverse: false, limit };
        let chunk = if certified { txn.scan_certified(&request) } else { txn.scan(&request) }?;
        Ok(Sweep::from(chunk))
    }
}

impl From<ScanChunk> for Sweep {
    fn from(ScanChunk { rows, rest }: ScanChunk) -> Sweep {
        let (mut bytes, mut places) = (Vec::new(), Vec::with_capacity(rows.len()));
        for (key, value) in rows {
            let from = bytes.len() as u32;
            bytes.extend_from_slice(&key);
            let middle = bytes.len() as u32;
            bytes.extend_from_slice(&value);
            places.push([from, middle, middle, bytes.len() as u32]);
        }
        Sweep { bytes: Bytes::from(bytes), places, rest }
    }
}
