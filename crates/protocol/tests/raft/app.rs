//! What the log is applied to: a chain of checksums, so that two states are equal exactly when the same entries made them.

use bytes::Bytes;
use protocol::log::raft::{Body, LogEntry};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    pub applied: u64,
    pub chain: u64,
    pub commands: u64,
}

impl Default for App {
    fn default() -> Self {
        App { applied: 1, chain: 0, commands: 0 }
    }
}

pub fn mix(chain: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(chain ^ 0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

impl App {
    pub fn apply(&mut self, entry: &LogEntry) {
        assert_eq!(entry.index, self.applied + 1, "places are dense");
        self.applied = entry.index;
        let head = [entry.index, entry.term, entry.at.unwrap_or_default().as_u64()];
        for number in head {
            self.chain = mix(self.chain, &number.to_le_bytes());
        }
        if let Body::Command(payload) = &entry.body {
            self.chain = mix(self.chain, payload);
            self.commands += 1;
        }
    }

    /// As a snapshot: a few numbers, and `padding` bytes that stand for rows.
    pub fn snapshot(&self, padding: usize) -> Bytes {
        let mut out = Vec::with_capacity(24 + padding);
        for number in [self.applied, self.chain, self.commands] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.resize(24 + padding, self.chain as u8);
        out.into()
    }

    pub fn restore(bytes: &[u8]) -> App {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let app = App { applied: number(0), chain: number(8), commands: number(16) };
        assert!(bytes[24..].iter().all(|byte| *byte == app.chain as u8), "a snapshot came whole");
        app
    }
}
