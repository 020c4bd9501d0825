//! Commands and states as bytes.

use super::state::{Done, State};
use clock::Timestamp;

/// What long commands are padded with, bytes.
const PADDING_BYTES: usize = 3_000;

/// A command in a group's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Who asks.
    pub client: u64,
    /// Its number for the request: rises.
    pub request: u64,
    /// The register.
    pub key: u64,
    /// What it must hold: anything, or nothing or a value.
    pub expects: Option<Option<u64>>,
    /// What it holds then.
    pub value: u64,
}

/// Numbers, one after the other.
struct Numbers<'b>(&'b [u8]);

impl Numbers<'_> {
    fn next(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*head))
    }
}

fn write(numbers: impl IntoIterator<Item = u64>, out: &mut Vec<u8>) {
    numbers.into_iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

impl Command {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, from) = match self.expects {
            None => (0, 0),
            Some(None) => (1, 0),
            Some(Some(from)) => (2, from),
        };
        let mut out = Vec::new();
        write([self.client, self.request, self.key, kind, from, self.value], &mut out);
        // Some are long, so that a record spans sectors and a torn write leaves a part of it.
        let padding = if self.value.is_multiple_of(5) { PADDING_BYTES } else { 0 };
        out.resize(out.len() + padding, 0xee);
        out
    }

    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Option<Command> {
        let mut numbers = Numbers(bytes);
        let [client, request, key] = [numbers.next()?, numbers.next()?, numbers.next()?];
        let [kind, from, value] = [numbers.next()?, numbers.next()?, numbers.next()?];
        let expects = match kind {
            0 => None,
            1 => Some(None),
            _ => Some(Some(from)),
        };
        Some(Command { client, request, key, expects, value })
    }
}

impl State {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write([self.applied, self.checksum, self.versions.len() as u64], &mut out);
        for (key, versions) in &self.versions {
            write([*key, versions.len() as u64], &mut out);
            for (at, value) in versions {
                write([at.as_u64(), *value], &mut out);
            }
        }
        for done in self.clients.values() {
            write([done.client, done.request, done.at.as_u64(), u64::from(done.wrote)], &mut out);
        }
        out
    }

    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Option<State> {
        let mut numbers = Numbers(bytes);
        let mut state = State { applied: numbers.next()?, checksum: numbers.next()?, ..State::default() };
        for _ in 0..numbers.next()? {
            let (key, count) = (numbers.next()?, numbers.next()?);
            let versions = state.versions.entry(key).or_default();
            for _ in 0..count {
                versions.push((Timestamp::from_u64(numbers.next()?), numbers.next()?));
            }
        }
        while let Some(client) = numbers.next() {
            let [request, at, wrote] = [numbers.next()?, numbers.next()?, numbers.next()?];
            let at = Timestamp::from_u64(at);
            state.clients.insert(client, Done { client, request, at, wrote: wrote == 1, old: false });
        }
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, Done, State};
    use clock::Timestamp;

    #[test]
    fn what_is_written_is_read() {
        for expects in [None, Some(None), Some(Some(7))] {
            let command = Command { client: 1, request: 2, key: 3, expects, value: 4 };
            assert_eq!(Command::decode(&command.encode()), Some(command));
        }
        let mut state = State { applied: 9, checksum: 8, ..State::default() };
        state.versions.insert(3, vec![(Timestamp::from_u64(5), 6), (Timestamp::from_u64(7), 8)]);
        let done = Done { client: 4, request: 5, at: Timestamp::from_u64(6), wrote: true, old: false };
        state.clients.insert(4, done);
        assert_eq!(State::decode(&state.encode()), Some(state));
    }
}
