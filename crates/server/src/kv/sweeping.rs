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
        match (std::thread::Builder::new().name("read".into()).spawn(run), &held) {
            // How it ended was said by what it handed over.
            (Ok(thread), _) => Ok(Box::new(move || drop(thread.join()))),
            (Err(_), held) => held.lock().take().map_or_else(|| Ok(Box::new(|| {}) as Box<_>), Err),
        }
    })
}
