//! A span that is read ahead by a thread of its own: see [`sql::Kv::sweep_aside`].

use parking_lot::Mutex;
use sql::transaction::{Sweeper, Sweeping};
use std::sync::Arc;

pub(crate) fn aside(sweeper: Sweeper) -> Sweeping {
    Sweeping::aside(sweeper, |sweeper, tell| {
        // It must not be lost where no thread can be had.
        let held = Arc::new(Mutex::new(Some(sweeper)));
        let its = held.clone();
        let run = move || {
            let sweeper = its.lock().take();
            if let Some(sweeper) = sweeper {
                sweeper.run(&tell);
            }
        };
        match std::thread::Builder::new().name("read".into()).spawn(run) {
            // How it ended was said by what it handed over.
            Ok(thread) => Ok(Box::new(move || drop(thread.join()))),
            Err(_) => held.lock().take().map_or_else(|| Ok(Box::new(|| {}) as Box<_>), Err),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::aside;
    use bytes::Bytes;
    use sql::transaction::memory::MemoryKv;
    use sql::transaction::{Isolation, Patience, Sweep, Sweeper, Sweeping};

    const ROWS: u8 = 100;

    fn sweeping(limit: usize) -> Sweeping {
        let kv = MemoryKv::new();
        let mut txn = Patience::default().begin(&kv, Isolation::RepeatableRead).unwrap();
        (0..ROWS).for_each(|n| txn.put(Bytes::from(vec![n]), Bytes::from(vec![n])).unwrap());
        txn.commit().unwrap();
        let txn = Patience::default().begin(&kv, Isolation::RepeatableRead).unwrap();
        aside(Sweeper::new(txn, Bytes::from(vec![0])..Bytes::from(vec![ROWS]), limit))
    }

    #[test]
    fn beside_it_reads_all_rows() {
        for limit in [1, 7, 100, 1000] {
            let chunks: Vec<Sweep> = sweeping(limit).map(Result::unwrap).collect();
            let keys = chunks.iter().flat_map(|chunk| chunk.rows().map(|(key, _)| key[0]).collect::<Vec<_>>());
            assert_eq!(keys.collect::<Vec<_>>(), (0..ROWS).collect::<Vec<_>>());
        }
    }

    #[test]
    fn who_drops_it_has_ended_it() {
        let mut some = sweeping(1);
        assert_eq!(some.next().unwrap().unwrap().places.len(), 1);
        drop(some);
    }
}
