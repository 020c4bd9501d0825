//! What a group's log is applied to: registers with all their versions.

use super::codec::Command;
use clock::Timestamp;
use protocol::log::raft::{Body, LogEntry};
use std::collections::BTreeMap;

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The client.
    pub client: u64,
    /// Its number for the request.
    pub request: u64,
    /// When it took effect.
    pub at: Timestamp,
    /// Whether it wrote.
    pub wrote: bool,
    /// The client had asked for something later by then: it took no effect.
    pub old: bool,
}

/// The state of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The place up to which the log is applied.
    pub applied: u64,
    /// Of everything that was applied, in order.
    pub checksum: u64,
    /// By register: when, and what.
    pub versions: BTreeMap<u64, Vec<(Timestamp, u64)>>,
    /// By client: its last request, and what became of it.
    pub clients: BTreeMap<u64, Done>,
}

impl Default for State {
    /// Of a group that is founded: its log begins after place 1.
    fn default() -> Self {
        State { applied: 1, checksum: 0, versions: BTreeMap::new(), clients: BTreeMap::new() }
    }
}

pub fn mix(checksum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(checksum ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl State {
    /// What a register held at a time.
    pub fn find(&self, key: u64, at: Timestamp) -> Option<(Timestamp, u64)> {
        let versions = self.versions.get(&key)?;
        versions[..versions.partition_point(|(ts, _)| *ts <= at)].last().copied()
    }

    /// The next entry. `forget`: a command that comes twice takes effect twice.
    ///
    /// # Errors
    /// A hole in the log, or a command that cannot be read.
    pub fn apply(&mut self, entry: &LogEntry, forget: bool, salt: u64) -> Result<Option<Done>, String> {
        if entry.index != self.applied + 1 {
            return Err(format!("place {} comes after {}", entry.index, self.applied));
        }
        self.applied = entry.index;
        for number in [entry.index, entry.term, entry.at.unwrap_or_default().as_u64(), salt] {
            self.checksum = mix(self.checksum, &number.to_le_bytes());
        }
        let (Body::Command(payload), Some(at)) = (&entry.body, entry.at) else { return Ok(None) };
        self.checksum = mix(self.checksum, payload);
        let command = Command::decode(payload).ok_or("a command cannot be read")?;
        if let Some(last) = self.clients.get(&command.client).filter(|_| !forget) {
            if last.request == command.request {
                return Ok(Some(*last));
            }
            if last.request > command.request {
                let (client, request) = (command.client, command.request);
                return Ok(Some(Done { client, request, at, wrote: false, old: true }));
            }
        }
        let holds = self.versions.get(&command.key).and_then(|versions| versions.last()).map(|(_, value)| *value);
        let wrote = command.expects.is_none_or(|from| from == holds);
        if wrote {
            self.versions.entry(command.key).or_default().push((at, command.value));
        }
        let done = Done { client: command.client, request: command.request, at, wrote, old: false };
        self.clients.insert(command.client, done);
        Ok(Some(done))
    }
}
