//! A step of a snapshot's way between two stores.

use super::envelope::small;
use super::ids::{GroupId, ReplicaId};
use crate::wire::{Reader, Short, Writer};
use bytes::Bytes;

/// A step of a snapshot's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// From the leader: there is a snapshot for you. Sent again until it is answered.
    Offer { group: GroupId, to: ReplicaId, index: u64, bytes: u64, meta: Bytes },
    /// From the receiver: it has all before `offset`. Asks for what follows, and resumes after a cut.
    Want { group: GroupId, index: u64, offset: u64 },
    /// From the leader: bytes from `offset` on.
    Chunk { group: GroupId, index: u64, offset: u64, bytes: Bytes },
    /// From the receiver: no place now, or no use for it.
    Refuse { group: GroupId, index: u64 },
}

impl Part {
    pub(super) fn write(&self, w: &mut Writer<'_>) {
        match self {
            Part::Offer { group, to, index, bytes, meta } => {
                w.byte(1);
                [group.0, to.0, *index, *bytes].into_iter().for_each(|number| w.number(number));
                w.bytes(meta);
            }
            Part::Want { group, index, offset } => {
                w.byte(2);
                [group.0, *index, *offset].into_iter().for_each(|number| w.number(number));
            }
            Part::Chunk { group, index, offset, bytes } => {
                w.byte(3);
                [group.0, *index, *offset].into_iter().for_each(|number| w.number(number));
                w.bytes(bytes);
            }
            Part::Refuse { group, index } => {
                w.byte(4);
                [group.0, *index].into_iter().for_each(|number| w.number(number));
            }
        }
    }

    pub(super) fn read(r: &mut Reader) -> Result<Part, Short> {
        let kind = r.byte("kind of part")?;
        let group = GroupId(r.number("group")?);
        let mut number = || small(r, "part of a snapshot");
        Ok(match kind {
            1 => {
                let (to, index, bytes) = (ReplicaId(number()?), number()?, number()?);
                Part::Offer { group, to, index, bytes, meta: r.bytes("snapshot's form")? }
            }
            2 => Part::Want { group, index: number()?, offset: number()? },
            3 => Part::Chunk { group, index: number()?, offset: number()?, bytes: r.bytes("chunk")? },
            4 => Part::Refuse { group, index: number()? },
            _ => return Err(Short("kind of part")),
        })
    }
}
