//! What a member must know beside its versions and its log after a restart: written with each frozen overlay.
//!
//! Of each replica: the place up to which the versions hold what its log did, and the state machine at that place. They move as one
//! (design 4a.9): a replay begins there. And the node's incarnation, which is durable before anything is named by it (design 4a.10).

use crate::core::damaged;
use bytes::{Buf, BufMut, Bytes};
use protocol::txn::{Range, RangeId};
use std::collections::BTreeMap;
use store::StoreError;

/// Not that of a node that runs alone, which has version 1.
const VERSION: u8 = 0x81;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The cluster that the store belongs to; 0: to none yet.
    pub cluster: u64,
    pub node: u32,
    pub incarnation: u64,
    /// By range: its state, and the place that it has applied.
    pub ranges: BTreeMap<RangeId, (Range, u64)>,
}

impl State {
    pub fn decode(bytes: &Bytes) -> Result<State, StoreError> {
        if bytes.is_empty() {
            return Ok(State::default());
        }
        let short = || damaged("the member's state is cut short".to_owned());
        let mut rest = bytes.clone();
        if rest.get_u8() != VERSION {
            return Err(damaged("the store's state is not that of a cluster's member of this version".to_owned()));
        }
        if rest.len() < 24 {
            return Err(short());
        }
        let (cluster, node, incarnation, count) = (rest.get_u64(), rest.get_u32(), rest.get_u64(), rest.get_u32());
        let mut ranges = BTreeMap::new();
        for _ in 0..count {
            if rest.len() < 12 {
                return Err(short());
            }
            let (applied, len) = (rest.get_u64(), rest.get_u32() as usize);
            if rest.len() < len {
                return Err(short());
            }
            let range = Range::decode(&rest.split_to(len)).map_err(|why| damaged(why.to_string()))?;
            ranges.insert(range.id(), (range, applied));
        }
        Ok(State { cluster, node, incarnation, ranges })
    }

    pub fn encode<'a>(
        cluster: u64,
        node: u32,
        incarnation: u64,
        ranges: impl ExactSizeIterator<Item = (&'a Range, u64)>,
    ) -> Bytes {
        let mut out = Vec::new();
        out.put_u8(VERSION);
        out.put_u64(cluster);
        out.put_u32(node);
        out.put_u64(incarnation);
        out.put_u32(ranges.len() as u32);
        for (range, applied) in ranges {
            let bytes = range.encode();
            out.put_u64(applied);
            out.put_u32(bytes.len() as u32);
            out.put_slice(&bytes);
        }
        Bytes::from(out)
    }
}
