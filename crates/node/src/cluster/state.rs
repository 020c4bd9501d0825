//! What a member must know beside its versions and its log after a restart: written with each frozen overlay.
//!
//! Of each replica: the place up to which the versions hold what its log did, and the state machine at that place. They move as one
//! (design 4a.9): a replay begins there. And the node's incarnation, which is durable before anything is named by it (design 4a.10).

use super::shard::Shard;
use crate::core::damaged;
use bytes::{Buf, BufMut, Bytes};
use clock::Timestamp;
use protocol::txn::{Range, RangeId};
use std::collections::BTreeMap;
use store::StoreError;

/// Not that of a node that runs alone, which has version 1.
pub(crate) const VERSION: u8 = 0x81;

/// Where a group is to be created: its nodes, and above which timestamp.
pub(crate) type Beginning = Option<(Vec<u32>, Timestamp)>;

/// What is kept of one replica.
pub(crate) struct Kept<'a> {
    pub range: &'a Range,
    pub applied: u64,
    pub founding: &'a Beginning,
}

impl<'a> Kept<'a> {
    pub fn of(shard: &'a Shard) -> Self {
        Kept { range: &shard.range, applied: shard.applied, founding: &shard.founding }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The cluster that the store belongs to; 0: to none yet.
    pub cluster: u64,
    pub node: u32,
    pub incarnation: u64,
    pub shards: BTreeMap<RangeId, Box<Shard>>,
}

impl State {
    pub fn decode(bytes: &Bytes) -> Result<State, StoreError> {
        if bytes.is_empty() {
            return Ok(State::default());
        }
        let mut rest = bytes.clone();
        if rest.get_u8() != VERSION {
            return Err(damaged("the store's state is not that of a cluster's member of this version".to_owned()));
        }
        Self::read(&mut rest).ok_or_else(|| damaged("the member's state is cut short, or damaged".to_owned()))
    }

    fn read(rest: &mut Bytes) -> Option<State> {
        let (cluster, node) = (rest.try_get_u64().ok()?, rest.try_get_u32().ok()?);
        let (incarnation, count) = (rest.try_get_u64().ok()?, rest.try_get_u32().ok()?);
        let mut shards = BTreeMap::new();
        for _ in 0..count {
            let (applied, length) = (rest.try_get_u64().ok()?, rest.try_get_u32().ok()? as usize);
            if rest.len() < length {
                return None;
            }
            let range = Range::decode(&rest.split_to(length)).ok()?;
            let mut nodes = Vec::new();
            for _ in 0..rest.try_get_u32().ok()? {
                nodes.push(rest.try_get_u32().ok()?);
            }
            let floor = Timestamp::from_u64(rest.try_get_u64().ok()?);
            let mut shard = Shard::new(range, applied);
            shard.flushed = applied;
            shard.founding = (!nodes.is_empty()).then_some((nodes, floor));
            shards.insert(shard.range.id(), Box::new(shard));
        }
        rest.is_empty().then_some(State { cluster, node, incarnation, shards })
    }

    pub fn encode(cluster: u64, node: u32, incarnation: u64, all: &[Kept<'_>]) -> Bytes {
        let mut out = Vec::new();
        out.put_u8(VERSION);
        out.put_u64(cluster);
        out.put_u32(node);
        out.put_u64(incarnation);
        out.put_u32(all.len() as u32);
        for kept in all {
            let bytes = kept.range.encode();
            out.put_u64(kept.applied);
            out.put_u32(bytes.len() as u32);
            out.put_slice(&bytes);
            let (nodes, floor) = kept.founding.as_ref().map_or((&[][..], Timestamp::MIN), |(n, at)| (&n[..], *at));
            out.put_u32(nodes.len() as u32);
            nodes.iter().for_each(|node| out.put_u32(*node));
            out.put_u64(floor.as_u64());
        }
        Bytes::from(out)
    }
}
