//! Workloads: K workers, each with a connection of its own, one operation at a time, for a while.
//!
//! Latency is what a worker waits for one operation from when it first wanted it, server-visible retries (40001, 40P01) included, in an HDR histogram of
//! microseconds with three digits. Throughput counts operations that succeeded in the measured time, which begins after the ramp-up. What was under way when it
//! ended is in no rate and no latency: where hundreds of workers wait for a second each, those would make a short run look faster than it was.
//!
//! A worker whose node is lost counts an error, goes to the next host of the URL, in turn, until one serves or the run ends, and tries the same operation there: its
//! latency has all of that. What is still wanted when the run ends is in no latency; so the report says the longest time in which no worker's operation succeeded, too.
//! A run that ends with [`IDLE_MAX`] without an operation has not survived, whatever it did before: its report says so.

mod orders;
mod posts_and_likes;
mod report;
mod rows;
mod sysbench;
mod ycsb;

pub use orders::Orders;
pub use posts_and_likes::PostsAndLikes;
pub use report::{OperationReport, Report};
pub use rows::Rows;
pub use sysbench::{Statement, Sysbench};
pub use ycsb::{Mix, Ycsb};

use crate::client::{Client, ClientError, Url};
use hdrhistogram::Histogram;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Longest latency that is told apart, in microseconds: ten minutes.
const LATENCY_US_MAX: u64 = 600_000_000;
/// How often the loading says how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// An operation that is restarted more often than this has failed.
const RETRIES_MAX: u32 = 100;

/// Is told how many rows of how many are loaded.
pub type Progress<'a> = dyn FnMut(u64, u64) + 'a;

/// Between two attempts of a worker to connect again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);
/// A run in whose last time, this long, no operation succeeded has come to a halt.
pub const IDLE_MAX: Duration = Duration::from_secs(5);

/// What workers do.
pub trait Workload: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// Names of its operations.
    fn operations(&self) -> &'static [&'static str];
    /// Makes tables and data, dropping what is there; tells `progress` of each batch.
    ///
    /// # Errors
    /// The client's.
    fn load(&self, client: &mut Client, rng: &mut SmallRng, progress: &mut Progress<'_>) -> Result<(), ClientError>;
    /// Prepares a worker's connection.
    ///
    /// # Errors
    /// The client's.
    fn prepare(&self, client: &mut Client) -> Result<(), ClientError>;
    /// Chooses the next operation: its number, and a parameter for it.
    fn choose(&self, rng: &mut SmallRng) -> (usize, u32);
    /// Runs an operation.
    ///
    /// # Errors
    /// The client's.
    fn run(&self, client: &mut Client, operation: usize, parameter: u32) -> Result<(), ClientError>;
}

/// How a workload is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The database.
    pub url: Url,
    /// Connections, each with a thread of its own.
    pub workers: usize,
    /// Measured time.
    pub duration: Duration,
    /// Time before it that is not measured.
    pub ramp_up: Duration,
    /// Tables and data are made anew.
    pub load: bool,
    /// Workers begin at the hosts of the URL in turn, and not all at the first.
    pub spread: bool,
    /// Seed of all choices.
    pub seed: u64,
}

/// Makes a workload's tables and data.
///
/// # Errors
/// The client's.
pub fn load(workload: &dyn Workload, client: &mut Client, seed: u64) -> Result<(), ClientError> {
    load_with(workload, client, seed, &mut |_, _| {})
}

fn load_with(
    workload: &dyn Workload,
    client: &mut Client,
    seed: u64,
    progress: &mut Progress<'_>,
) -> Result<(), ClientError> {
    workload.load(client, &mut SmallRng::seed_from_u64(seed), progress)
}

#[derive(Default)]
struct Live {
    measuring: AtomicBool,
    stop: AtomicBool,
    done: AtomicU64,
    failed: AtomicU64,
    gaps: Gaps,
}

/// How long no operation succeeded at a time, of all workers.
#[derive(Default)]
struct Gaps {
    /// When the last one did, microseconds since the epoch of the caller.
    last_us: AtomicU64,
    longest_us: AtomicU64,
}

impl Gaps {
    fn begin(&self, now_us: u64) {
        self.last_us.store(now_us, Relaxed);
        self.longest_us.store(0, Relaxed);
    }
    /// One succeeded, or the time is over.
    fn end_one(&self, now_us: u64) {
        let last_us = self.last_us.fetch_max(now_us, Relaxed);
        self.longest_us.fetch_max(now_us.saturating_sub(last_us), Relaxed);
    }
    fn longest(&self) -> Duration {
        Duration::from_micros(self.longest_us.load(Relaxed))
    }
}

fn us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

struct Worker {
    histograms: Vec<Histogram<u64>>,
    /// Succeeded after the measured time.
    late: u64,
    retries: u64,
    errors: Vec<String>,
    failures: u64,
}

/// Runs a workload; `progress` is shown a line per second.
///
/// # Errors
/// When a connection, the loading or the preparation fails. Operations that fail are counted in the report.
pub fn run(workload: &dyn Workload, options: &Options, mut progress: impl FnMut(&str)) -> Result<Report, ClientError> {
    let mut first = Client::connect(&options.url)?;
    let server = first.parameter("server_version").unwrap_or("unknown").to_owned();
    if options.load {
        progress("loading");
        let began = Instant::now();
        let mut shown = began;
        load_with(workload, &mut first, options.seed, &mut |rows, all| {
            // A line per second, as while it runs, and one at the end.
            if rows == all || shown.elapsed() >= PROGRESS_EVERY {
                shown = Instant::now();
                let seconds = began.elapsed().as_secs_f64();
                progress(&format!("{seconds:>6.1} s  {rows} of {all} rows loaded"));
            }
        })?;
    }
    drop(first);
    let mut clients = Vec::new();
    for worker in 0..options.workers {
        let host = if options.spread { worker % options.url.hosts.len() } else { 0 };
        let mut client = Client::connect_from(&options.url, host)?;
        workload.prepare(&mut client)?;
        clients.push(client);
    }
    let live = Live::default();
    let epoch = Instant::now();
    let (workers, (elapsed, idle)) = std::thread::scope(|scope| {
        let running: Vec<_> = clients
            .into_iter()
            .enumerate()
            .map(|(i, client)| {
                let rng = SmallRng::seed_from_u64(options.seed.wrapping_add(1 + i as u64));
                let live = &live;
                scope.spawn(move || work(workload, &options.url, client, rng, (live, epoch)))
            })
            .collect();
        let times = watch(options, (&live, epoch), &mut progress);
        let workers: Vec<Worker> = running.into_iter().filter_map(|w| w.join().ok()).collect();
        (workers, times)
    });
    let idle_seconds_max = live.gaps.longest().as_secs_f64();
    Ok(Report {
        idle_seconds: idle.as_secs_f64(),
        idle_seconds_max,
        ..Report::new(workload, options, server, workers, elapsed)
    })
}

/// Waits out the ramp-up and the measured time, a line per second; stops the workers; gives the measured time, and how long
/// at its end no operation succeeded, to about a second.
fn watch(options: &Options, (live, epoch): (&Live, Instant), progress: &mut impl FnMut(&str)) -> (Duration, Duration) {
    std::thread::sleep(options.ramp_up);
    live.gaps.begin(us(epoch.elapsed()));
    live.measuring.store(true, Relaxed);
    let (began, mut before) = (Instant::now(), live.done.load(Relaxed));
    let (mut last, mut idle_since) = (began, began);
    while began.elapsed() < options.duration {
        let left = options.duration.saturating_sub(began.elapsed());
        std::thread::sleep(left.min(Duration::from_secs(1)));
        let (done, now) = (live.done.load(Relaxed), Instant::now());
        if done > before {
            idle_since = now;
        }
        let rate = (done - before) as f64 / now.duration_since(last).as_secs_f64();
        let seconds = began.elapsed().as_secs_f64();
        progress(&format!("{seconds:>6.1} s  {rate:>10.1} operations/s  {} errors", live.failed.load(Relaxed)));
        (before, last) = (done, now);
    }
    let elapsed = began.elapsed();
    live.gaps.end_one(us(epoch.elapsed()));
    live.stop.store(true, Relaxed);
    (elapsed, idle_since.elapsed())
}

fn work(
    workload: &dyn Workload,
    url: &Url,
    mut client: Client,
    mut rng: SmallRng,
    (live, epoch): (&Live, Instant),
) -> Worker {
    // Three digits between 1 µs and ten minutes are within what the histogram allows.
    let histogram = || Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).ok();
    let histograms = workload.operations().iter().filter_map(|_| histogram()).collect();
    let mut worker = Worker { histograms, late: 0, retries: 0, errors: Vec::new(), failures: 0 };
    let mut wanted = None;
    while !live.stop.load(Relaxed) {
        // What no node served is wanted still, since when it was.
        let ((operation, parameter), began) =
            wanted.take().unwrap_or_else(|| (workload.choose(&mut rng), Instant::now()));
        let mut tries = 0;
        let done = loop {
            match workload.run(&mut client, operation, parameter) {
                Err(e) if tries < RETRIES_MAX && matches!(e.code(), Some("40001" | "40P01")) => tries += 1,
                done => break done,
            }
        };
        let over = live.stop.load(Relaxed);
        let measured = live.measuring.load(Relaxed) && !over;
        worker.retries += u64::from(measured) * u64::from(tries);
        match done {
            Ok(()) => {
                live.done.fetch_add(1, Relaxed);
                if over {
                    worker.late += 1;
                } else {
                    live.gaps.end_one(us(epoch.elapsed()));
                }
                if measured && let Some(h) = worker.histograms.get_mut(operation) {
                    h.saturating_record(us(began.elapsed()).max(1));
                }
            }
            Err(e) => {
                worker.failed(&e, live);
                let unserved = serves_no_more(&e, url);
                if unserved {
                    worker.connect_again(workload, url, &mut client, live);
                }
                if unserved || matches!(e.code().and_then(|code| code.get(..2)), Some("08" | "53" | "57")) {
                    wanted = Some(((operation, parameter), began));
                }
            }
        }
    }
    worker
}

/// Whether the next operation is better asked of another connection: this one is gone, or its node serves nobody now and there are others.
fn serves_no_more(error: &ClientError, url: &Url) -> bool {
    match error {
        ClientError::Server(message) => url.hosts.len() > 1 && message.code.starts_with("57P"),
        ClientError::Closed | ClientError::Io(_) | ClientError::Protocol(_) | ClientError::Usage(_) => true,
    }
}

impl Worker {
    fn failed(&mut self, error: &ClientError, live: &Live) {
        live.failed.fetch_add(1, Relaxed);
        self.failures += 1;
        let text = error.to_string();
        if !self.errors.contains(&text) && self.errors.len() < report::ERRORS_MAX {
            self.errors.push(text);
        }
    }

    /// Puts another connection in the place of one, when a host gives one before the run ends.
    fn connect_again(&mut self, workload: &dyn Workload, url: &Url, client: &mut Client, live: &Live) {
        while !live.stop.load(Relaxed) {
            let again = client.connect_again(url).and_then(|mut again| {
                let prepared = workload.prepare(&mut again);
                // The one after it is next, where this one takes connections and nothing more.
                *client = again;
                prepared
            });
            match again {
                Ok(()) => return,
                Err(e) => self.failed(&e, live),
            }
            std::thread::sleep(RECONNECT_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Mutex;

    /// Each operation ends when the run is over.
    struct Slow<'a> {
        live: &'a Live,
    }

    impl Workload for Slow<'_> {
        fn name(&self) -> &'static str {
            "slow"
        }
        fn operations(&self) -> &'static [&'static str] {
            &["wait"]
        }
        fn load(&self, _: &mut Client, _: &mut SmallRng, _: &mut Progress<'_>) -> Result<(), ClientError> {
            Ok(())
        }
        fn prepare(&self, _: &mut Client) -> Result<(), ClientError> {
            Ok(())
        }
        fn choose(&self, _: &mut SmallRng) -> (usize, u32) {
            (0, 0)
        }
        fn run(&self, _: &mut Client, _: usize, _: u32) -> Result<(), ClientError> {
            self.live.stop.store(true, Relaxed);
            Ok(())
        }
    }

    #[test]
    fn what_ends_after_the_run_is_in_no_rate() {
        let (live, url) = (Live::default(), doorman());
        live.measuring.store(true, Relaxed);
        let client = Client::connect(&url).unwrap();
        let slow = Slow { live: &live };
        let worker = work(&slow, &url, client, SmallRng::seed_from_u64(1), (&live, Instant::now()));
        assert_eq!((worker.histograms[0].len(), worker.late, worker.failures), (0, 1, 0));
        let options = Options {
            url,
            workers: 1,
            duration: Duration::from_secs(1),
            ramp_up: Duration::ZERO,
            load: false,
            spread: false,
            seed: 1,
        };
        let report = Report::new(&slow, &options, "none".into(), vec![worker], Duration::from_secs(1));
        assert!(report.operations.iter().all(|operation| operation.per_second == 0.0));
        assert!(report.late == 1 && !report.has_halted(), "it is slow, and goes on");
    }

    /// Loses its connection at the first attempt, and finds a node that is not ready at the second.
    struct Outage<'a> {
        live: &'a Live,
        next: AtomicU64,
        prepared: AtomicU64,
        asked: Mutex<Vec<u32>>,
    }

    impl Workload for Outage<'_> {
        fn name(&self) -> &'static str {
            "outage"
        }
        fn operations(&self) -> &'static [&'static str] {
            &["ask"]
        }
        fn load(&self, _: &mut Client, _: &mut SmallRng, _: &mut Progress<'_>) -> Result<(), ClientError> {
            Ok(())
        }
        fn prepare(&self, _: &mut Client) -> Result<(), ClientError> {
            if self.prepared.fetch_add(1, Relaxed) == 0 { Err(ClientError::Closed) } else { Ok(()) }
        }
        fn choose(&self, _: &mut SmallRng) -> (usize, u32) {
            (0, self.next.fetch_add(1, Relaxed) as u32)
        }
        fn run(&self, _: &mut Client, _: usize, parameter: u32) -> Result<(), ClientError> {
            let mut asked = self.asked.lock().unwrap();
            asked.push(parameter);
            if self.prepared.load(Relaxed) == 0 {
                return Err(ClientError::Closed);
            }
            // The run ends while the next one is under way.
            self.live.stop.store(asked.len() > 2, Relaxed);
            Ok(())
        }
    }

    /// Lets everybody in; and says nothing else.
    fn doorman() -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut startup = [0; 1024];
                let _ = stream.read(&mut startup).unwrap();
                stream.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").unwrap();
            }
        });
        Url::parse(&format!("postgresql://root@127.0.0.1:{port}/postgres")).unwrap()
    }

    #[test]
    fn an_operation_is_as_late_as_its_first_attempt_says() {
        let (live, url) = (Live::default(), doorman());
        live.measuring.store(true, Relaxed);
        let (next, prepared) = (AtomicU64::new(7), AtomicU64::new(0));
        let outage = Outage { live: &live, next, prepared, asked: Mutex::default() };
        let client = Client::connect(&url).unwrap();
        let worker = work(&outage, &url, client, SmallRng::seed_from_u64(1), (&live, Instant::now()));
        assert_eq!(*outage.asked.lock().unwrap(), [7, 7, 8], "it is the same operation that is tried again");
        assert_eq!((worker.failures, worker.late), (2, 1));
        let all = &worker.histograms[0];
        // Between two attempts to connect there is a pause, and it waited for that at least.
        assert!(all.len() == 1 && all.max() >= us(RECONNECT_PAUSE), "{} us", all.max());
        assert!(live.gaps.longest() >= RECONNECT_PAUSE);
    }

    #[test]
    fn the_longest_gap_is_of_all_workers_and_of_the_end() {
        let gaps = Gaps::default();
        gaps.end_one(700);
        gaps.begin(1_000);
        // Two workers, of which one says later what was earlier.
        [1_100, 1_300, 1_200, 1_350].into_iter().for_each(|at| gaps.end_one(at));
        assert_eq!(gaps.longest(), Duration::from_micros(200));
        gaps.end_one(3_350);
        assert_eq!(gaps.longest(), Duration::from_millis(2));
    }
}
