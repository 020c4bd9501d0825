//! The log on a disk that loses, tears, fills up and flips bits.

use bytes::Bytes;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::disk::fake::{Crash, FakeDisk};
use store::disk::{Disk, DiskError, DiskFile, SECTOR};
use store::{Log, LogError, LogOptions, LogRecovery};

const SEGMENT: u64 = 8 * 1024;

fn options() -> LogOptions {
    LogOptions { segment_bytes: SEGMENT, first_segment_bytes: 4096, held_back_bytes: 2048, salt: 77 }
}

fn try_open(disk: &FakeDisk) -> Result<(Log, LogRecovery, Vec<(u64, Bytes)>), LogError> {
    let mut records = Vec::new();
    let (log, found) = Log::open(Arc::new(disk.clone()), &options(), &mut |position, record| {
        records.push((position, record));
        Ok(())
    })?;
    Ok((log, found, records))
}

fn open(disk: &FakeDisk) -> (Log, LogRecovery, Vec<(u64, Bytes)>) {
    try_open(disk).unwrap()
}

fn record(n: u64, bytes: usize) -> Bytes {
    Bytes::from((0..bytes).map(|at| (n as usize * 31 + at * 7) as u8).collect::<Vec<_>>())
}

/// A log with records of these sizes, each synced alone.
fn filled(sizes: &[usize]) -> (FakeDisk, Log) {
    let disk = FakeDisk::new(1);
    let (log, _, _) = open(&disk);
    for (n, bytes) in sizes.iter().enumerate() {
        log.append(record(n as u64 + 1, *bytes)).unwrap();
        log.write_and_sync().unwrap();
    }
    (disk, log)
}

#[test]
fn records_come_back_in_order_across_segments_and_pieces() {
    let sizes = [0, 1, 500, 4096, 100_000, 7, 8191, 512 - 45, 512 - 44, 3];
    let (disk, log) = filled(&sizes);
    assert!(log.segments() > 12, "{}", log.segments());
    drop(log);
    let (log, found, records) = open(&disk);
    assert_eq!((found.first, found.last, &found.torn), (Some(1), sizes.len() as u64, &None));
    for (n, bytes) in sizes.iter().enumerate() {
        assert_eq!(records[n], (n as u64 + 1, record(n as u64 + 1, *bytes)));
    }
    assert_eq!(log.append(record(99, 9)).unwrap(), sizes.len() as u64 + 1);
}

#[test]
fn a_record_of_any_length_comes_back_wherever_it_ends() {
    // Past a sector, a frame and the first segment's end, with another record in the same frame and one in the next.
    for bytes in 0..4200 {
        let disk = FakeDisk::new(1);
        let (log, _, _) = open(&disk);
        log.append_all([record(1, bytes), record(2, 3)]).unwrap();
        log.write_and_sync().unwrap();
        log.append(record(3, bytes / 2)).unwrap();
        log.write_and_sync().unwrap();
        drop(log);
        let (log, found, records) = open(&disk);
        assert_eq!((found.last, &found.torn), (3, &None), "{bytes} bytes");
        assert!(records == [(1, record(1, bytes)), (2, record(2, 3)), (3, record(3, bytes / 2))], "{bytes} bytes");
        assert_eq!(log.append(record(4, 1)).unwrap(), 4);
    }
}

#[test]
fn a_record_that_is_too_large_is_refused_and_the_next_is_not() {
    let disk = FakeDisk::new(1);
    let (log, _, _) = open(&disk);
    // Never touched, so it takes no memory.
    let large = Bytes::from(vec![0; store::log::RECORD_BYTES_MAX + 1]);
    let refused = log.append_all([record(1, 5), large]);
    assert!(matches!(refused, Err(LogError::TooLarge { bytes, limit }) if bytes == limit + 1), "{refused:?}");
    assert_eq!((log.last(), log.pending_bytes()), (0, 0), "none of them was taken");
    assert_eq!(log.append_all([]).unwrap(), 0);
    assert_eq!(log.append(record(1, 5)).unwrap(), 1);
    assert_eq!(log.write_and_sync().unwrap(), 1);
}

#[test]
fn one_sync_serves_all_that_wait() {
    let disk = FakeDisk::new(1);
    let (log, _, _) = open(&disk);
    let before = disk.syncs();
    for n in 1..=5 {
        assert_eq!(log.append(record(n, 40)).unwrap(), n);
    }
    assert_eq!((log.durable(), log.last()), (0, 5));
    assert_eq!(log.write_and_sync().unwrap(), 5);
    assert_eq!(log.write_and_sync().unwrap(), 5);
    assert_eq!(disk.syncs() - before, 1);
}

#[test]
fn a_tail_torn_at_any_sector_is_cut_off_and_nothing_else() {
    let (disk, log) = filled(&[100, 800, 30]);
    let name = "log.0000000000000001";
    let before = disk.content(name).unwrap();
    log.append(record(4, 900)).unwrap();
    log.write_and_sync().unwrap();
    let after = disk.content(name).unwrap();
    let start = before.iter().zip(&after).position(|(a, b)| a != b).unwrap();
    assert_eq!(start % SECTOR, 0, "a frame begins on a fresh sector");
    // Every cut, also ones that no real disk makes; and every single sector lost on its own.
    for cut in start..after.len() {
        let torn = disk.copy();
        torn.set_content(name, [&after[..cut], &before[cut..]].concat());
        let (log, found, records) = open(&torn);
        if records.len() == 4 {
            assert_eq!(torn.content(name).unwrap(), after);
            break;
        }
        assert_eq!((records.len(), found.last), (3, 3), "cut at {cut}");
        assert_eq!(log.append(record(5, 10)).unwrap(), 4);
        log.write_and_sync().unwrap();
        let (_, _, records) = open(&torn);
        assert_eq!(records.last(), Some(&(4, record(5, 10))));
    }
    for sector in (start..start + 1024).step_by(SECTOR) {
        let torn = disk.copy();
        let mut content = after.clone();
        content[sector..sector + SECTOR].copy_from_slice(&before[sector..sector + SECTOR]);
        torn.set_content(name, content);
        assert_eq!(open(&torn).2.len(), 3);
    }
}

#[test]
fn a_flipped_bit_is_found_at_every_byte() {
    let (disk, log) = filled(&[100, 700, 60]);
    drop(log);
    let name = "log.0000000000000001";
    let content = disk.content(name).unwrap();
    let used = content.iter().rposition(|b| *b != 0).unwrap();
    for at in 0..=used {
        let hurt = disk.copy();
        assert!(hurt.flip_bit(name, at as u64, (at % 8) as u8));
        match try_open(&hurt) {
            // A byte of padding, or the last frame, which looks torn: what is left is right.
            Ok((_, _, records)) => {
                assert!(records.len() >= 2, "byte {at}");
                assert!(records.iter().all(|(n, r)| *r == record(*n, [100, 700, 60][*n as usize - 1])), "byte {at}");
            }
            Err(LogError::Hole { offset, next_offset, .. }) => {
                assert!(offset as usize <= at && at < next_offset as usize, "byte {at}");
            }
            Err(LogError::Header { .. } | LogError::Format { .. }) => assert!(at < SECTOR, "byte {at}"),
            Err(other) => panic!("byte {at}: {other}"),
        }
    }
}

#[test]
fn a_missing_or_empty_segment_in_the_middle_is_refused() {
    let (disk, log) = filled(&[5000, 5000, 5000, 5000]);
    assert!(log.segments() >= 3);
    let missing = disk.copy();
    missing.delete("log.0000000000000002").unwrap();
    let error = try_open(&missing).err().unwrap();
    assert!(matches!(&error, LogError::Hole { next_file, .. } if next_file == "log.0000000000000003"), "{error}");
    let emptied = disk.copy();
    let mut content = disk.content("log.0000000000000002").unwrap();
    content[SECTOR..].fill(0);
    emptied.set_content("log.0000000000000002", content);
    let error = try_open(&emptied).err().unwrap().to_string();
    assert!(error.contains("good ones follow in log.0000000000000003"), "{error}");
}

#[test]
fn a_full_disk_refuses_appends_and_resumes() {
    let disk = FakeDisk::new(1);
    let (log, _, _) = open(&disk);
    disk.set_capacity(Some(4096 + SEGMENT));
    let mut taken = 0;
    let refused = loop {
        match log.append(record(taken + 1, 700)) {
            Ok(position) => {
                taken += 1;
                assert_eq!(position, taken);
            }
            Err(error) => break error,
        }
        assert!(taken < 100);
    };
    assert_eq!(refused, LogError::DiskFull);
    assert!(taken > 4);
    assert_eq!(log.write_and_sync().unwrap(), taken, "what was taken can be written");
    assert_eq!(log.append(record(0, 8000)), Err(LogError::DiskFull));
    disk.set_capacity(None);
    assert_eq!(log.append(record(taken + 1, 700)).unwrap(), taken + 1);
    log.write_and_sync().unwrap();
    let (_, _, records) = open(&disk);
    assert_eq!(records.len() as u64, taken + 1);
}

#[test]
fn a_failed_sync_ends_the_log_until_it_is_opened_again() {
    let (disk, log) = filled(&[10]);
    disk.fail_syncs(1);
    log.append(record(2, 10)).unwrap();
    assert!(matches!(log.write_and_sync(), Err(LogError::Broken(_))));
    assert!(matches!(log.append(record(3, 10)), Err(LogError::Broken(_))));
    assert!(matches!(log.write_and_sync(), Err(LogError::Broken(_))));
    assert_eq!(log.durable(), 1);
    // The frame was in the page cache: it is written again before anything follows it.
    let (log, found, _) = open(&disk);
    assert_eq!(found.last, 2);
    log.append(record(3, 10)).unwrap();
    log.write_and_sync().unwrap();
    disk.crash(Crash::LoseUnsynced);
    assert_eq!(open(&disk).1.last, 3);
}

#[test]
fn segments_are_recycled_below_the_applied_position() {
    let (disk, log) = filled(&[3000; 40]);
    let many = log.segments();
    assert_eq!(log.truncate(0).unwrap(), 0);
    assert!(log.truncate(38).unwrap() >= many - 3);
    let files = disk.list().unwrap().len();
    assert!(files <= 6, "two spares stay: {:?}", disk.list());
    for n in 41..=60 {
        log.append(record(n, 3000)).unwrap();
        log.write_and_sync().unwrap();
    }
    let (log, found, records) = open(&disk);
    assert_eq!(found.last, 60);
    assert!(found.first.unwrap() <= 39);
    assert!(records.iter().all(|(n, r)| *r == record(*n, 3000)));
    assert_eq!(log.append(record(61, 1)).unwrap(), 61);
}

#[test]
fn a_record_that_spans_recycled_segments_is_passed_over() {
    let (disk, log) = filled(&[100, 30_000, 50]);
    let all = log.segments();
    assert_eq!(log.truncate(1).unwrap(), 0, "the first segment holds a part of record 2");
    assert_eq!(log.truncate(2).unwrap(), all - 1);
    // Recycled files keep their names until they are used.
    log.append(record(4, 30_000)).unwrap();
    log.write_and_sync().unwrap();
    let (_, found, records) = open(&disk);
    assert_eq!(found.last, 4);
    assert_eq!(records.last(), Some(&(4, record(4, 30_000))));
}

#[test]
fn another_format_is_named() {
    let (disk, log) = filled(&[10]);
    drop(log);
    let mut content = disk.content("log.0000000000000001").unwrap();
    content[11] = 9;
    let sum = crc32fast::hash(&content[..28]);
    content[28..32].copy_from_slice(&sum.to_be_bytes());
    disk.set_content("log.0000000000000001", content);
    assert!(matches!(try_open(&disk).err(), Some(LogError::Format { found: 9, .. })));
}

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Sync,
    Reserve,
    Truncate,
    Crash(u8),
    Full(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop_oneof![0..64usize, 64..3000usize, 3000..40_000usize].prop_map(Step::Append),
        6 => Just(Step::Sync),
        1 => Just(Step::Reserve),
        1 => Just(Step::Truncate),
        2 => any::<u8>().prop_map(Step::Crash),
        1 => any::<bool>().prop_map(Step::Full),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_was_acknowledged_survives_every_crash(seed in any::<u64>(), steps in prop::collection::vec(step(), 1..80)) {
        let disk = FakeDisk::new(seed);
        let (mut log, _, _) = open(&disk);
        let (mut sizes, mut acknowledged, mut truncated) = (Vec::<usize>::new(), 0u64, 0u64);
        for step in steps {
            match step {
                Step::Append(bytes) => match log.append(record(sizes.len() as u64 + 1, bytes)) {
                    Ok(position) => {
                        sizes.push(bytes);
                        prop_assert_eq!(position, sizes.len() as u64);
                    }
                    Err(error) => prop_assert_eq!(error, LogError::DiskFull),
                },
                Step::Sync => acknowledged = log.write_and_sync().unwrap(),
                Step::Reserve => drop(log.reserve()),
                Step::Truncate => {
                    truncated = acknowledged;
                    log.truncate(truncated).unwrap();
                }
                Step::Full(full) => disk.set_capacity(full.then_some(64 * 1024)),
                Step::Crash(dice) => {
                    let how = [Crash::LoseUnsynced, Crash::KeepAll, Crash::TearLast, Crash::Scatter][dice as usize % 4];
                    disk.crash(how);
                    disk.set_capacity(None);
                    let (again, found, records) = open(&disk);
                    prop_assert!(found.last >= acknowledged && found.last <= sizes.len() as u64, "{:?}", found);
                    prop_assert!(found.first.is_none_or(|first| first <= truncated + 1), "{:?}", found);
                    prop_assert_eq!(records.len() as u64, found.first.map_or(0, |first| found.last + 1 - first));
                    for (n, content) in records {
                        prop_assert_eq!(content, record(n, sizes[n as usize - 1]));
                    }
                    sizes.truncate(found.last as usize);
                    acknowledged = found.last;
                    log = again;
                }
            }
        }
    }
}

/// Who is about to append a record of several segments has them made first: appending it makes none, and needs no room on the disk.
#[test]
fn make_room_makes_what_a_large_record_needs() {
    let (disk, log) = filled(&[]);
    log.make_room(20_000).unwrap();
    disk.set_capacity(Some(0));
    assert!(log.append(record(1, 200_000)).is_err(), "there is no room for more than was made");
    log.append(record(1, 20_000)).unwrap();
    log.write_and_sync().unwrap();
    assert_eq!(log.durable(), 1);
    assert!(log.make_room(200_000).is_err());
}

/// Once the disk is full, ordinary records leave room for those that free space.
#[test]
fn a_full_log_holds_room_back() {
    let (disk, log) = filled(&[]);
    log.reserve().unwrap();
    disk.set_capacity(Some(0));
    assert_eq!(log.room_for(100), Ok(()), "nobody has asked for more space yet");
    let mut ordinary = 0;
    while log.room_for(100).is_ok() {
        log.append(record(ordinary, 100)).unwrap();
        log.write_and_sync().unwrap();
        ordinary += 1;
        // In the background; it finds that the disk is full.
        let _ = log.reserve();
    }
    assert!(log.room_for(0).is_err());
    let mut freeing = 0;
    while log.append(record(freeing, 100)).is_ok() {
        log.write_and_sync().unwrap();
        freeing += 1;
    }
    // A sector each of the 2048 bytes held back.
    assert!((3..=5).contains(&freeing), "{freeing} records beside {ordinary}");
    disk.set_capacity(None);
    assert_eq!(log.room_for(100), Ok(()));
    log.append(record(1, 100)).unwrap();
}

/// A disk that counts the bytes read.
struct Counting(FakeDisk, Arc<AtomicU64>);
struct CountingFile(Arc<dyn DiskFile>, Arc<AtomicU64>);

impl Disk for Counting {
    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.0.list()
    }
    fn open(&self, name: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
        Ok(Arc::new(CountingFile(self.0.open(name)?, self.1.clone())))
    }
    fn create_zeroed(&self, name: &str, bytes: u64) -> Result<Arc<dyn DiskFile>, DiskError> {
        self.0.create_zeroed(name, bytes)
    }
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.0.rename(from, to)
    }
    fn delete(&self, name: &str) -> Result<(), DiskError> {
        self.0.delete(name)
    }
    fn sync_names(&self) -> Result<(), DiskError> {
        self.0.sync_names()
    }
}

impl DiskFile for CountingFile {
    fn size(&self) -> Result<u64, DiskError> {
        self.0.size()
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.0.write_at(offset, data)
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError> {
        self.1.fetch_add(into.len() as u64, Ordering::Relaxed);
        self.0.read_at(offset, into)
    }
    fn shrink(&self, bytes: u64) -> Result<(), DiskError> {
        self.0.shrink(bytes)
    }
    fn sync_data(&self) -> Result<(), DiskError> {
        self.0.sync_data()
    }
}

#[test]
fn a_segment_that_was_not_begun_is_not_read() {
    let large = LogOptions { segment_bytes: 1 << 20, ..options() };
    let disk = FakeDisk::new(1);
    let read = Arc::new(AtomicU64::new(0));
    let counting = || Arc::new(Counting(disk.clone(), read.clone()));
    let (log, _) = Log::open(counting(), &large, &mut |_, _| Ok(())).unwrap();
    log.append(record(1, 100)).unwrap();
    log.write_and_sync().unwrap();
    log.reserve().unwrap();
    drop(log);
    read.store(0, Ordering::Relaxed);
    let (log, found) = Log::open(counting(), &large, &mut |_, _| Ok(())).unwrap();
    assert_eq!((found.last, found.segments), (1, 2));
    assert!(read.load(Ordering::Relaxed) < 8192, "{} bytes for one record", read.load(Ordering::Relaxed));
    assert!(!log.needs_reserve(), "it is ready for use");
}

/// A full disk: the log gives back what no record needs, goes on with what is left, and finds everything again after a crash.
#[test]
fn the_last_room_is_given_back_and_the_log_goes_on() {
    let large = LogOptions { segment_bytes: 1 << 20, first_segment_bytes: 1 << 20, ..options() };
    for how in [Crash::LoseUnsynced, Crash::KeepAll, Crash::TearLast, Crash::Scatter] {
        let disk = FakeDisk::new(3);
        let (log, _) = Log::open(Arc::new(disk.clone()), &large, &mut |_, _| Ok(())).unwrap();
        log.append(record(1, 1000)).unwrap();
        log.write_and_sync().unwrap();
        log.reserve().unwrap();
        let given_back = log.give_back_room().unwrap();
        assert!(given_back > 3 << 19, "{given_back} of 2 MiB");
        assert_eq!(log.give_back_room().unwrap(), 0);
        // Not a byte is left: what is left to the log is enough for a little.
        disk.set_capacity(Some(0));
        log.append(record(2, 1000)).unwrap();
        log.write_and_sync().unwrap();
        let mut taken = 2;
        while log.append(record(taken + 1, 60_000)).is_ok() {
            log.write_and_sync().unwrap();
            taken += 1;
            assert!(taken < 100);
        }
        // A little room makes a smaller segment.
        disk.set_capacity(Some((1 << 20) + (300 << 10)));
        log.append(record(taken + 1, 60_000)).unwrap();
        log.write_and_sync().unwrap();
        taken += 1;
        drop(log);
        disk.crash(how);
        disk.set_capacity(None);
        let mut found = Vec::new();
        let (log, _) = Log::open(Arc::new(disk), &large, &mut |position, _| {
            found.push(position);
            Ok(())
        })
        .unwrap();
        assert_eq!(found, (1..=taken).collect::<Vec<_>>(), "{how:?}");
        log.append(record(taken + 1, 10)).unwrap();
        log.write_and_sync().unwrap();
    }
}
