//! The file of a clock's bound, in the layout of ClockBound's daemon, version 2 (`clocksource::clockbound` says which bytes): what a node with
//! `--clock clockbound:PATH` reads of its clock is what a curve says.

use super::{ClusterError, io_error};
use clocksource::Moment;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two writes.
const EVERY: Duration = Duration::from_millis(50);
/// The statistics are void so long after the last of them.
const VOID_AFTER_NS: u64 = 10_000_000_000;
/// The drift that is stated, parts per billion: of a disciplined oscillator. It adds 2.5 µs between two writes.
const DRIFT_PPB: u32 = 50_000;
const MAGIC: [u32; 2] = [0x414d_5a4e, 0x4342_0200];
/// Bytes of the header and of the body.
const HEADER: usize = 16;
const BODY: usize = 64;
const VERSION: u16 = 2;
const SYNCHRONIZED: u32 = 1;

/// The file, and the thread that writes it; they end with this value.
pub(crate) struct BoundFile {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

fn header(generation: u16) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..4].copy_from_slice(&MAGIC[0].to_ne_bytes());
    bytes[4..8].copy_from_slice(&MAGIC[1].to_ne_bytes());
    bytes[8..12].copy_from_slice(&((HEADER + BODY) as u32).to_ne_bytes());
    bytes[12..14].copy_from_slice(&VERSION.to_ne_bytes());
    bytes[14..16].copy_from_slice(&generation.to_ne_bytes());
    bytes
}

fn body(mono_ns: u64, bound: Duration) -> [u8; BODY] {
    let time = |ns: u64| [ns / 1_000_000_000, ns % 1_000_000_000];
    let bound_ns = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX).max(1);
    let [as_of, void_after] = [time(mono_ns), time(mono_ns + VOID_AFTER_NS)];
    let words = [as_of[0], as_of[1], void_after[0], void_after[1], bound_ns, 0];
    let mut bytes = [0; BODY];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    bytes[48..52].copy_from_slice(&DRIFT_PPB.to_ne_bytes());
    bytes[52..56].copy_from_slice(&SYNCHRONIZED.to_ne_bytes());
    bytes
}

/// One bound, between two generations: an odd one says that it is being written.
fn write(file: &File, generation: &mut u16, bound: Duration) -> std::io::Result<()> {
    // 0 says that nothing was written yet.
    let (odd, even) = (generation.wrapping_add(1) | 1, generation.wrapping_add(2).max(2) & !1);
    file.write_all_at(&header(odd), 0)?;
    file.write_all_at(&body(Moment::capture().mono_ns, bound), HEADER as u64)?;
    file.write_all_at(&header(even), 0)?;
    *generation = even;
    Ok(())
}

impl BoundFile {
    /// Writes the first bound, and then one after another as the curve says.
    pub fn start(
        path: PathBuf,
        curve: Arc<dyn Fn(Duration) -> Duration + Send + Sync>,
    ) -> Result<BoundFile, ClusterError> {
        let what = path.display().to_string();
        let file = File::create(&path).map_err(io_error(what.clone()))?;
        let (mut generation, began) = (0, Instant::now());
        write(&file, &mut generation, curve(Duration::ZERO)).map_err(io_error(what.clone()))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let writing = move || {
            while !stopped.load(Ordering::Relaxed) {
                // Where it cannot be written the bound is void in seconds, and the node says so.
                let _ = write(&file, &mut generation, curve(began.elapsed()));
                std::thread::sleep(EVERY);
            }
        };
        let thread = std::thread::Builder::new().name("bound".into()).spawn(writing).map_err(io_error(what))?;
        Ok(BoundFile { stop, thread: Some(thread) })
    }
}

impl Drop for BoundFile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BoundFile, DRIFT_PPB, write};
    use clocksource::clockbound::Segment;
    use std::fs::File;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn the_product_reads_what_was_written() {
        let path = std::env::temp_dir().join(format!("timeball-lab-bound-{}", std::process::id()));
        let file = BoundFile::start(path.clone(), Arc::new(|_| Duration::from_micros(14_730))).unwrap();
        let segment = Segment::read(&File::open(&path).unwrap()).unwrap();
        assert_eq!((segment.version, segment.bound_ns, segment.max_drift_ppb), (2, 14_730_000, DRIFT_PPB));
        assert_eq!(segment.status, clock::Status::Synchronized);
        drop(file);
        // Generations go round without stopping at 0, which would say that nothing is there.
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let mut generation = u16::MAX - 1;
        for _ in 0..3 {
            write(&file, &mut generation, Duration::from_millis(1)).unwrap();
            assert!(generation >= 2 && generation.is_multiple_of(2));
            assert_eq!(Segment::read(&file).unwrap().bound_ns, 1_000_000);
        }
        std::fs::remove_file(path).unwrap();
    }
}
