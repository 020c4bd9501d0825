//! A span that is read to its end, chunk after chunk: see [`super::Kv::sweep_aside`].

use super::{KvError, Span, Sweep, Transaction};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Chunks that stand ready for who asks; a further one may be read meanwhile, and he has one in his hands.
const READY_MAX: usize = 1;

/// A span that is read, lowest key first, by a transaction of its own. Who drops this ends it.
pub struct Sweeping(State);

enum State {
    Here(Sweeper),
    Aside(Aside),
    Ended,
}

struct Aside {
    chunks: Receiver<Result<Sweep, KvError>>,
    /// Waits for who reads.
    end: Box<dyn FnOnce() + Send>,
}

/// What is left of it.
pub struct Sweeper {
    txn: Box<dyn Transaction>,
    rest: Option<Span>,
    limit: usize,
}

impl Sweeper {
    /// A span to be read so many rows at a time.
    pub fn new(txn: Box<dyn Transaction>, span: Span, limit: usize) -> Sweeper {
        Sweeper { txn, rest: Some(span), limit }
    }

    /// Reads it to its end, or until nobody wants more.
    pub fn run(mut self, chunks: &SyncSender<Result<Sweep, KvError>>) {
        while let Some(chunk) = self.next() {
            if chunks.send(chunk).is_err() {
                return;
            }
        }
    }

    fn next(&mut self) -> Option<Result<Sweep, KvError>> {
        let chunk = Sweep::of(self.txn.as_mut(), self.rest.take()?, self.limit, false);
        if let Ok(chunk) = &chunk {
            self.rest.clone_from(&chunk.rest);
        }
        Some(chunk)
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.txn.rollback();
    }
}

impl Sweeping {
    /// One that reads when it is asked.
    pub fn here(sweeper: Sweeper) -> Sweeping {
        Sweeping(State::Here(sweeper))
    }

    /// One that is read ahead: `start` has somebody run it into a channel, and gives what waits for him; or it gives it back.
    pub fn aside(
        sweeper: Sweeper,
        start: impl FnOnce(Sweeper, SyncSender<Result<Sweep, KvError>>) -> Result<Box<dyn FnOnce() + Send>, Sweeper>,
    ) -> Sweeping {
        let (tell, chunks) = sync_channel(READY_MAX);
        match start(sweeper, tell) {
            Ok(end) => Sweeping(State::Aside(Aside { chunks, end })),
            Err(sweeper) => Sweeping::here(sweeper),
        }
    }

    fn end(&mut self) {
        if let State::Aside(Aside { chunks, end }) = std::mem::replace(&mut self.0, State::Ended) {
            // Who waits to hand over a chunk hears that nobody takes it.
            drop(chunks);
            end();
        }
    }
}

impl Iterator for Sweeping {
    type Item = Result<Sweep, KvError>;

    /// The next rows; nothing behind the last ones, and behind an error.
    fn next(&mut self) -> Option<Self::Item> {
        let chunk = match &mut self.0 {
            State::Here(sweeper) => sweeper.next()?,
            // Who has gone before the end has panicked: what he did not read is not to be missed in silence.
            State::Aside(aside) => aside
                .chunks
                .recv()
                .unwrap_or_else(|_| Err(KvError::Storage("a thread that read rows has panicked".into()))),
            State::Ended => return None,
        };
        if chunk.as_ref().map_or(true, |chunk| chunk.rest.is_none()) {
            self.end();
        }
        Some(chunk)
    }
}

impl Drop for Sweeping {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::memory::MemoryKv;
    use crate::transaction::{Isolation, Patience};
    use bytes::Bytes;

    const ROWS: u8 = 100;

    fn sweeper(limit: usize) -> Sweeper {
        let kv = MemoryKv::new();
        let mut txn = Patience::default().begin(&kv, Isolation::RepeatableRead).unwrap();
        (0..ROWS).for_each(|n| txn.put(Bytes::from(vec![n]), Bytes::from(vec![n])).unwrap());
        txn.commit().unwrap();
        let txn = Patience::default().begin(&kv, Isolation::RepeatableRead).unwrap();
        Sweeper::new(txn, Bytes::from(vec![0])..Bytes::from(vec![ROWS]), limit)
    }

    fn keys(sweeping: Sweeping) -> Vec<u8> {
        let chunks: Vec<Sweep> = sweeping.map(Result::unwrap).collect();
        chunks.iter().flat_map(|chunk| chunk.rows().map(|(key, _)| key[0]).collect::<Vec<_>>()).collect()
    }

    #[test]
    fn all_rows_are_read() {
        let all: Vec<u8> = (0..ROWS).collect();
        for limit in [1, 7, 100, 1000] {
            assert_eq!(keys(Sweeping::here(sweeper(limit))), all);
            assert_eq!(keys(Sweeping::aside(sweeper(limit), |sweeper, _| Err(sweeper))), all);
        }
    }

    #[test]
    fn what_was_not_read_is_no_end() {
        let mut lost = Sweeping::aside(sweeper(10), |mut sweeper, tell| {
            tell.send(sweeper.next().unwrap()).unwrap();
            Ok(Box::new(|| {}))
        });
        assert!(lost.next().unwrap().is_ok());
        assert!(matches!(lost.next(), Some(Err(KvError::Storage(_)))));
        assert!(lost.next().is_none());
    }
}
