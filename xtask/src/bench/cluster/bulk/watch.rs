//! Looks at the nodes while a load goes on: what memory they have, and how far it is, as another node says.

use crate::bench::cluster::systems::NODES;
use crate::process::resident_bytes;
use crate::run;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the nodes are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A node that is asked and does not answer by then says nothing at that look.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Points of time at which the report says how far a load was.
const SHOWN: usize = 10;

/// One look.
struct Sample {
    at: Duration,
    /// Of each node that is there.
    resident_bytes: [Option<u64>; NODES],
    /// Rows that COPY had taken.
    rows: Option<u64>,
}

/// What was seen.
pub struct Watched(Vec<Sample>);

/// A thread that looks.
pub struct Watch {
    stop: Sender<()>,
    looks: JoinHandle<Vec<Sample>>,
}

/// How many rows COPY has taken, as this node says.
pub fn rows_taken(url: &str) -> Option<u64> {
    let query = "SELECT sum(tuples_processed) FROM pg_stat_progress_copy";
    let told = run::capture(Command::new("psql").args(["-X", "-q", "-At", "-c", query, url]), ANSWER_MAX).ok()?;
    told.trim().parse().ok()
}

impl Watch {
    /// Begins, and asks at this URL how far a COPY is.
    pub fn start(pids: &[u32], url: &str) -> Watch {
        let (pids, url, (stop, stopped)) = (pids.to_vec(), url.to_owned(), mpsc::channel());
        let looks = std::thread::spawn(move || {
            let began = Instant::now();
            let mut samples = Vec::new();
            loop {
                let mut resident = [None; NODES];
                pids.iter().zip(&mut resident).for_each(|(pid, bytes)| *bytes = resident_bytes(*pid).ok());
                samples.push(Sample { at: began.elapsed(), resident_bytes: resident, rows: rows_taken(&url) });
                if !matches!(stopped.recv_timeout(LOOK_EVERY), Err(RecvTimeoutError::Timeout)) {
                    return samples;
                }
            }
        });
        Watch { stop, looks }
    }

    /// Ends.
    pub fn end(self) -> Watched {
        drop(self.stop);
        Watched(self.looks.join().unwrap_or_default())
    }
}

impl Watched {
    /// Memory of the nodes: before, at quarters of the time, and the greatest.
    pub fn memory(&self) -> String {
        let mib = |bytes: Option<u64>| bytes.map_or("-".to_owned(), |bytes| (bytes >> 20).to_string());
        let all = |of: &dyn Fn(usize) -> Option<u64>| (0..NODES).map(|at| mib(of(at))).collect::<Vec<_>>().join(" ");
        let quarters = (0..4).map(|quarter| {
            let sample = self.0.get(quarter * self.0.len() / 4);
            all(&|at| sample.and_then(|sample| sample.resident_bytes[at]))
        });
        let greatest = all(&|at| self.0.iter().filter_map(|sample| sample.resident_bytes[at]).max());
        quarters.chain([greatest]).collect::<Vec<_>>().join("; ")
    }

    /// How far it was, by time; `None`: nobody said so.
    pub fn progress(&self) -> Option<String> {
        let told: Vec<(u64, u64)> = self.0.iter().filter_map(|it| Some((it.at.as_secs(), it.rows?))).collect();
        let every = told.len().div_ceil(SHOWN).max(1);
        let shown: Vec<String> = told.iter().step_by(every).map(|(at, rows)| format!("{at} s {rows}")).collect();
        (!shown.is_empty()).then(|| shown.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_told() {
        let sample = |second, mib: u64, rows| Sample {
            at: Duration::from_secs(second),
            resident_bytes: [Some(mib << 20), Some((mib + 1) << 20), None],
            rows,
        };
        let watched = Watched((0..8).map(|n| sample(n, 100 + n, (n > 5).then_some(n * 10))).collect());
        assert_eq!(watched.memory(), "100 101 -; 102 103 -; 104 105 -; 106 107 -; 107 108 -");
        assert_eq!(watched.progress().as_deref(), Some("6 s 60, 7 s 70"));
        assert_eq!(Watched(Vec::new()).progress(), None);
    }
}
