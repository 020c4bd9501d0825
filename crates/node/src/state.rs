//! What a node must know beside its versions to go on after a restart: its ranges. Written with each frozen overlay.

use crate::core::{Core, damaged};
use bytes::{Buf, BufMut, Bytes};
use protocol::txn::{Range, RangeId, Span};
use std::collections::BTreeMap;
use store::{Engine, StoreError};

pub(crate) const VERSION: u8 = 1;

/// Ranges by number, and the next free number.
pub(crate) struct State {
    pub ranges: BTreeMap<RangeId, Range>,
    pub next_range: u64,
}

impl State {
    /// One range over everything.
    fn first() -> Self {
        let range = Range::new(RangeId(1), Span::ALL);
        State { ranges: BTreeMap::from([(range.id(), range)]), next_range: 2 }
    }

    pub fn decode(bytes: &Bytes) -> Result<State, StoreError> {
        if bytes.is_empty() {
            return Ok(Self::first());
        }
        let short = || damaged("the node's state is cut short".to_owned());
        let mut rest = bytes.clone();
        if rest.first() == Some(&crate::cluster::STATE_VERSION) {
            return Err(damaged(
                "the store is that of a member of a cluster, and its file CLUSTER is missing: restore it from a copy, or from another node's (its `node` line is the node's own)"
                    .to_owned(),
            ));
        }
        if rest.len() < 13 || rest.get_u8() != VERSION {
            return Err(damaged("the node's state has a version that this program does not know".to_owned()));
        }
        let next_range = rest.get_u64();
        let count = rest.get_u32();
        let mut ranges = BTreeMap::new();
        for _ in 0..count {
            if rest.len() < 4 {
                return Err(short());
            }
            let len = rest.get_u32() as usize;
            if rest.len() < len {
                return Err(short());
            }
            let range = Range::decode(&rest.split_to(len)).map_err(|e| damaged(e.to_string()))?;
            ranges.insert(range.id(), range);
        }
        Ok(State { ranges, next_range })
    }
}

/// A state as bytes.
pub(crate) fn encode<'a>(next_range: u64, ranges: impl ExactSizeIterator<Item = &'a Range>) -> Bytes {
    let mut out = Vec::new();
    out.put_u8(VERSION);
    out.put_u64(next_range);
    out.put_u32(ranges.len() as u32);
    for range in ranges {
        let bytes = range.encode();
        out.put_u32(bytes.len() as u32);
        out.put_slice(&bytes);
    }
    Bytes::from(out)
}

impl<E: Engine> Core<E> {
    pub(crate) fn encode_state(&self) -> Bytes {
        encode(self.next_range, self.ranges.values())
    }
}
