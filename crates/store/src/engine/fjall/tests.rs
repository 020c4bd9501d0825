//! The engine on a real file system.

use super::reclaim::{RECLAIM_BYTES_MAX, Reclaimed, Reclaiming};
use super::*;
use crate::keys::Present;
use bytes::Bytes;

/// Who opens the database anew does not wait for what takes long, or readers would wait behind it.
#[test]
fn a_rewrite_under_way_keeps_nobody_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    let entry = (Bytes::from_static(b"key"), Some(Bytes::from_static(b"value")));
    engine.ingest(Tree::Present, 0, &mut std::iter::once(entry)).unwrap();
    let rewrite = engine.hold().unwrap();
    assert_eq!(engine.reopen(), Err(StoreError::DiskFull), "it is tried again later");
    assert!(engine.get(Tree::Present, b"key").unwrap().is_some());
    drop(rewrite);
    assert_eq!(engine.reopen(), Ok(()));
    assert!(engine.get(Tree::Present, b"key").unwrap().is_some());
}

/// What merges left behind is given back when there is no room, and not only by the next start.
#[test]
fn a_full_disk_gets_back_what_merges_left_behind() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    // Nothing to compress.
    let noise = |n: u64| (0..512u64).flat_map(move |i| (n * 512 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    let entry = |n: u64| (Bytes::from(n.to_be_bytes().to_vec()), Some(noise(n).collect::<Bytes>()));
    engine.ingest(Tree::Present, 0, &mut (0..2000).map(entry)).unwrap();
    engine.compact().unwrap();
    assert!(engine.obsolete_bytes().unwrap() > INGESTION_BYTES, "the files of before are still there");
    assert_eq!(engine.ingest(Tree::Present, usize::MAX, &mut std::iter::empty()), Err(StoreError::DiskFull));
    assert!(engine.obsolete_bytes().unwrap() < INGESTION_BYTES / 4);
    assert!(engine.get(Tree::Present, &7u64.to_be_bytes()).unwrap().is_some());
}

/// Merges make way for what is in memory, and nobody waits for them meanwhile; they go on when there is room.
#[test]
fn merges_leave_room_for_what_is_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    let demand = Arc::new(Demand::default());
    engine.heed(&demand);
    // No disk has room for so much.
    let promise = demand.promise(u64::MAX, 0);
    let runs = |engine: &FjallEngine| engine.hold().unwrap().present.tree.l0_run_count();
    let overlapping = |n: u64| {
        let entry = move |i: u64| (Bytes::from(i.to_be_bytes().to_vec()), Some(Bytes::from(n.to_be_bytes().to_vec())));
        (0..1000).map(entry)
    };
    for n in 0..12 {
        engine.ingest(Tree::Present, 0, &mut overlapping(n)).unwrap();
    }
    // fjall merges four.
    while !engine.merges.are_paused() {
        std::thread::yield_now();
    }
    assert_eq!(engine.unmerged_runs(), 0, "nobody waits");
    for n in 12..16 {
        engine.ingest(Tree::Present, 0, &mut overlapping(n)).unwrap();
    }
    assert!(runs(&engine) > 12, "{} runs", runs(&engine));
    assert_eq!(engine.get(Tree::Present, &7u64.to_be_bytes()).unwrap().as_deref(), Some(&15u64.to_be_bytes()[..]));
    drop(promise);
    while runs(&engine) > 4 {
        engine.merge();
        std::thread::yield_now();
    }
    assert_eq!(engine.get(Tree::Present, &7u64.to_be_bytes()).unwrap().as_deref(), Some(&15u64.to_be_bytes()[..]));
}

/// Runs that fjall leaves as they are: who waits for their merge waits in vain, and is told so.
#[test]
fn runs_that_nobody_merges_are_known() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    let runs = |engine: &FjallEngine| engine.hold().unwrap().present.tree.l0_run_count();
    let overlapping =
        |n: u8| (0..100u64).map(move |i| (Bytes::from(i.to_be_bytes().to_vec()), Some(Bytes::from(vec![n]))));
    // The first goes down as it is; of the others fjall merges four, or none.
    for n in 0..3 {
        engine.ingest(Tree::Present, 0, &mut overlapping(n)).unwrap();
        assert!(!engine.merges_in_vain(), "it may merge them yet");
        // Its thread may come late, and would find all three.
        while n == 0 && runs(&engine) > 0 {
            engine.merge();
            std::thread::yield_now();
        }
    }
    while !engine.merges_in_vain() {
        engine.merge();
        std::thread::yield_now();
    }
    assert_eq!(runs(&engine), 2);
    engine.ingest(Tree::Present, 0, &mut overlapping(3)).unwrap();
    assert!(!engine.merges_in_vain(), "it has not looked at this one");
    while !engine.merges_in_vain() {
        engine.merge();
        std::thread::yield_now();
    }
    // Otherwise they are merged.
    while !engine.reclaim(0).unwrap() {}
    assert_eq!(runs(&engine), 0);
    assert!(!engine.merges_in_vain());
}

/// A disk that has no room for all of it once more has room for merges all the same.
#[test]
fn a_rewrite_without_room_pauses_no_merges() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    assert_eq!(engine.make_room(u64::MAX), Err(StoreError::DiskFull));
    assert!(!engine.merges.are_paused());
    assert_eq!(engine.ingest(Tree::Present, usize::MAX, &mut std::iter::empty()), Err(StoreError::DiskFull));
    assert!(engine.merges.are_paused(), "what is in memory comes first");
}

/// Space is given back by merges of a few tables; what stays stays, and the engine merges by itself again afterwards.
#[test]
fn space_comes_back_step_by_step() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    let key = |n: u64| crate::keys::present(&[&7u32.to_be_bytes()[..], &n.to_be_bytes()].concat());
    let ts = clock::Timestamp::from_u64;
    let noise = |n: u64| (0..16u64).flat_map(move |i| (n * 16 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    let row = |n: u64| Present::encode(ts(1), Some(&noise(n).collect::<Vec<_>>()));
    for layer in 0..4 {
        let rows = (0..10_000).map(|n| n * 4 + layer).map(|n| (key(n), Some(row(n))));
        engine.ingest(Tree::Present, 0, &mut rows.into_iter()).unwrap();
    }
    let full = engine.disk_bytes();
    let (kept, gone) = (0..1000, 1000..40_000);
    let graves = gone.clone().map(|n| (key(n), Some(Present::encode(ts(2), None))));
    engine.ingest(Tree::Present, 0, &mut graves.into_iter()).unwrap();
    let below = crate::versions::Thresholds { common: ts(3), ..Default::default() };
    engine.bury(Burial { below, ..Burial::default() });
    while !engine.reclaim(gone.end - gone.start).unwrap() {}
    assert!(engine.disk_bytes() < full / 8, "{} of {full}", engine.disk_bytes());
    assert!(kept.into_iter().all(|n| engine.get(Tree::Present, &key(n)).unwrap() == Some(row(n))));
    assert!(gone.step_by(100).all(|n| engine.get(Tree::Present, &key(n)).unwrap().is_none()));
    assert!(engine.hold().unwrap().quiet);
    (0..=QUIET_LOOKS).for_each(|_| engine.merge());
    assert!(!engine.hold().unwrap().quiet);
}

/// A table that spans everything can be merged with nothing that is small, and what lies above it comes down all the same. Nothing did, deletions of most
/// rows among it, and a full disk stayed full.
#[test]
fn what_spans_everything_holds_nothing_up() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    engine.reopen_as(true).unwrap();
    let table_bytes = 16 << 10;
    let key = |n: u64| crate::keys::present(&[&7u32.to_be_bytes()[..], &n.to_be_bytes()].concat());
    let ts = clock::Timestamp::from_u64;
    let noise = |n: u64| (0..16u64).flat_map(move |i| (n * 16 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    let row = |n: u64| (key(n), Some(Present::encode(ts(1), Some(&noise(n).collect::<Vec<_>>()))));
    let open = engine.hold().unwrap();
    let tree = &open.present.tree;
    let down = |level: u8| tree.compact(Arc::new(lsm_tree::compaction::MoveDown(0, level)), 0).unwrap();
    engine.ingest(Tree::Present, 0, &mut (0..20_000).map(row)).unwrap();
    tree.major_compact(table_bytes, open.database.visible_seqno()).unwrap();
    let full = tree.disk_space();
    // The last level is larger than what a step may take.
    assert!(full > 50 * table_bytes && tree.table_count() > 100);
    // Above it a table that spans all of that, deletions in tables that do not, and another one that spans more than they.
    let wide = || (0..100).chain(19_900..20_000).map(row);
    engine.ingest(Tree::Present, 0, &mut wide()).unwrap();
    down(5);
    for from in (1000..19_000).step_by(1000) {
        let graves = (from..from + 1000).map(|n| (key(n), Some(Present::encode(ts(2), None))));
        engine.ingest(Tree::Present, 0, &mut graves.into_iter()).unwrap();
    }
    down(4);
    engine.ingest(Tree::Present, 0, &mut wide()).unwrap();
    down(3);
    let below = crate::versions::Thresholds { common: ts(3), ..Default::default() };
    engine.bury(Burial { below, ..Burial::default() });
    let steps = (0..1000).position(|_| engine.reclaim_steps(&open, table_bytes).unwrap() == Reclaimed::NoMore);
    assert!(steps.is_some(), "it comes to an end");
    assert!(tree.disk_space() < full / 5, "{} of {full}", tree.disk_space());
    assert!((1000..19_000).step_by(100).all(|n| engine.get(Tree::Present, &key(n)).unwrap().is_none()));
    assert!([0, 999, 19_000, 19_999].into_iter().all(|n| engine.get(Tree::Present, &key(n)).unwrap() == row(n).1));
}

/// Deletions that take less than one table all come down. They stayed above what they hide, and with them all of that.
#[test]
fn a_few_deletions_come_down_to_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    engine.reopen_as(true).unwrap();
    let key = |n: u64| crate::keys::present(&[&7u32.to_be_bytes()[..], &n.to_be_bytes()].concat());
    let ts = clock::Timestamp::from_u64;
    let noise = |n: u64| (0..16u64).flat_map(move |i| (n * 16 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    let row = |n: u64| (key(n), Some(Present::encode(ts(1), Some(&noise(n).collect::<Vec<_>>()))));
    let grave = |n: u64| (key(n), Some(Present::encode(ts(2), None)));
    let open = engine.hold().unwrap();
    let tree = &open.present.tree;
    engine.ingest(Tree::Present, 0, &mut (0..20_000).map(row)).unwrap();
    tree.major_compact(64 << 10, open.database.visible_seqno()).unwrap();
    let (full, table_bytes) = (tree.disk_space(), 1 << 20);
    engine.ingest(Tree::Present, 0, &mut (1000..20_000).map(grave)).unwrap();
    assert!(tree.disk_space() - full < table_bytes, "{} of {full}", tree.disk_space());
    let below = crate::versions::Thresholds { common: ts(3), ..Default::default() };
    engine.bury(Burial { below, ..Burial::default() });
    let steps = (0..1000).position(|_| engine.reclaim_steps(&open, table_bytes).unwrap() == Reclaimed::NoMore);
    assert!(steps.is_some(), "it comes to an end");
    assert!(tree.disk_space() < full / 10, "{} of {full}", tree.disk_space());
    assert_eq!(engine.get(Tree::Present, &key(999)).unwrap(), row(999).1);
}

/// What could not be given back is not done: who counts what may go goes on counting it, and asks again.
#[test]
fn what_is_too_large_to_be_written_anew_is_not_done() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    let entry = |n: u64| (Bytes::from(n.to_be_bytes().to_vec()), Some(Bytes::from_static(b"value")));
    engine.ingest(Tree::Present, 0, &mut (0..1000).map(entry)).unwrap();
    let open = engine.hold().unwrap();
    assert!(!engine.reclaim_last(&open, 5, 0, 1).unwrap());
    assert!(engine.reclaim_last(&open, 0, 0, 1).unwrap(), "nothing may go");
    assert!(engine.reclaim_last(&open, 5, 0, RECLAIM_BYTES_MAX).unwrap());
}

/// Where nothing more can be done, that is not tried again and again; where something changed it is.
#[test]
fn what_cannot_be_given_back_rests_until_something_changed() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    engine.reclaiming = Reclaiming::new(1);
    let entry = |n: u64| (Bytes::from(n.to_be_bytes().to_vec()), Some(Bytes::from_static(b"value")));
    let ingest = || engine.ingest(Tree::Present, 0, &mut (0..1000).map(entry)).unwrap();
    ingest();
    let rests = |buried| {
        assert_eq!(engine.reclaim(buried), Ok(false), "it is not done");
        assert!(!engine.hold().unwrap().quiet, "fjall merges meanwhile");
        assert!((0..1000).all(|_| engine.reclaim(buried) == Err(StoreError::DiskFull)));
    };
    rests(100);
    assert_eq!(engine.reclaim(101), Err(StoreError::DiskFull), "what is little more");
    rests(200);
    // A table is dropped.
    engine.bury(Burial { dead: [7].into(), ..Burial::default() });
    rests(200);
    engine.bury(Burial { dead: [7].into(), ..Burial::default() });
    assert_eq!(engine.reclaim(200), Err(StoreError::DiskFull), "nothing new");
    engine.reopen_as(true).unwrap();
    (0..4).for_each(|_| ingest());
    rests(200);
    assert_eq!(engine.reclaim(0), Err(StoreError::DiskFull));
    engine.reclaiming.wake();
    assert_eq!(engine.reclaim(0), Ok(true));
}

/// A level that finds no room keeps those above it from nothing. It was tried first each time, and was the end of each.
#[test]
fn a_level_without_room_holds_nothing_up() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    engine.reopen_as(true).unwrap();
    let key = |n: u64| crate::keys::present(&[&7u32.to_be_bytes()[..], &n.to_be_bytes()].concat());
    let ts = clock::Timestamp::from_u64;
    let row = |n: u64| (key(n), Some(Present::encode(ts(1), Some(&[7; 100]))));
    let grave = |n: u64| (key(n), Some(Present::encode(ts(2), None)));
    let sizes = || {
        let open = engine.hold().unwrap();
        open.present.tree.current_version().iter_levels().map(|level| level.size()).collect::<Vec<_>>()
    };
    let down = |level: u8| {
        let open = engine.hold().unwrap();
        open.present.tree.compact(Arc::new(lsm_tree::compaction::MoveDown(0, level)), 0).unwrap();
    };
    engine.ingest(Tree::Present, 0, &mut (0..20_000).map(row)).unwrap();
    down(6);
    engine.ingest(Tree::Present, 0, &mut (1000..5000).map(grave)).unwrap();
    down(5);
    engine.ingest(Tree::Present, 0, &mut (5000..19_000).map(grave)).unwrap();
    down(4);
    engine.ingest(Tree::Present, 0, &mut (3000..18_000).map(grave)).unwrap();
    let below = crate::versions::Thresholds { common: ts(3), ..Default::default() };
    engine.bury(Burial { below, ..Burial::default() });
    // Neither what waits nor the lowest level.
    engine.reclaiming.no_room.store(1 | 1 << 5, Ordering::Relaxed);
    let refused = (0..10).position(|_| engine.reclaim(18_000) == Err(StoreError::DiskFull));
    assert!(refused.is_some_and(|calls| calls > 1), "{refused:?}");
    let left = sizes();
    assert!(left[0] > 0 && left[4] == 0 && left[5] > 0, "{left:?}");
    assert!(engine.reclaiming.no_room.swap(1 << 5, Ordering::Relaxed) > 0);
    engine.reclaiming.wake();
    let refused = (0..10).position(|_| engine.reclaim(18_000) == Err(StoreError::DiskFull));
    assert!(refused.is_some() && sizes()[0] == 0, "{:?}", sizes());
    engine.reclaiming.no_room.store(0, Ordering::Relaxed);
    engine.reclaiming.wake();
    while !engine.reclaim(18_000).unwrap() {}
    assert_eq!(engine.entries(Tree::Present), 2000);
    assert!([0, 999, 19_000, 19_999].into_iter().all(|n| engine.get(Tree::Present, &key(n)).unwrap() == row(n).1));
}

/// On a disk that is full the files of a past that goes are gone when that is said: no later merge comes, for which there is no room.
#[test]
fn the_past_of_a_full_disk_goes_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    let noise = |n: u64| (0..512u64).flat_map(move |i| (n * 512 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    let bucket = |number| Bucket { class: 0, number };
    for number in 0..2u64 {
        let key = move |n: u64| bucket(number).key(&n.to_be_bytes(), clock::Timestamp::from_u64(number));
        let entry = move |n: u64| (key(n), Some(noise(n).collect::<Bytes>()));
        engine.ingest(Tree::Past, 0, &mut (0..700).map(entry)).unwrap();
    }
    let tables = dir.path().join("keyspaces");
    let bytes = || {
        let dirs = std::fs::read_dir(&tables)
            .unwrap()
            .flatten()
            .filter_map(|tree| std::fs::read_dir(tree.path().join(TABLES_DIR)).ok());
        dirs.flatten().flatten().map(|file| file.metadata().unwrap().len()).sum::<u64>()
    };
    let full = bytes();
    assert!(full / 2 < INGESTION_BYTES, "it is little");
    engine.merges.pause();
    while !engine.drop_past(&Kept::from([(0, 0)])).unwrap() {}
    assert!(engine.merges.are_paused(), "nothing was given back");
    while !engine.drop_past(&Kept::from([(0, 1)])).unwrap() {}
    assert!(bytes() < full * 2 / 3, "{} of {full}", bytes());
    assert!(!engine.merges.are_paused(), "there is room again");
    let kept = bucket(1).key(&7u64.to_be_bytes(), clock::Timestamp::from_u64(1));
    assert!(engine.get(Tree::Past, &kept).unwrap().is_some());
}

/// A header says nothing of what waits in memory: that it fits does not mean that a layer does.
#[test]
fn what_is_small_tells_nothing_of_what_is_large() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    let entry = || std::iter::once((Bytes::from_static(b"key"), Some(Bytes::from_static(b"value"))));
    engine.merges.set_stuck(true);
    engine.ingest_small(Tree::Present, &mut entry()).unwrap();
    assert!(engine.merges.is_stuck() && !engine.merges.are_paused());
    engine.ingest(Tree::Present, 0, &mut entry()).unwrap();
    assert!(!engine.merges.is_stuck());
    engine.merges.set_stuck(true);
    engine.ingest_at_last(Tree::Present, &mut entry()).unwrap();
    assert!(!engine.merges.is_stuck());
    engine.reopen_as(true).unwrap();
    while engine.ingest(Tree::Present, 0, &mut entry()).is_ok() {}
    assert_eq!(
        engine.ingest_small(Tree::Present, &mut entry()),
        Err(StoreError::DiskFull),
        "there are as many runs as may be"
    );
    assert!(!engine.merges.is_stuck());
}

/// What is set aside is given back when it is needed, and known after a start.
#[test]
fn a_reserve_is_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    assert!(!engine.has_ballast());
    engine.set_ballast(1 << 20).unwrap();
    drop(engine);
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    assert!(engine.has_ballast());
    assert_eq!(std::fs::metadata(dir.path().join(BALLAST)).unwrap().len(), 1 << 20);
    engine.set_ballast(0).unwrap();
    assert!(!engine.has_ballast() && !dir.path().join(BALLAST).exists());
}

/// fjall writes the number of a level's runs as a byte.
#[test]
fn runs_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    engine.reopen_as(true).unwrap();
    let entry = || (Bytes::from_static(b"key"), Some(Bytes::from_static(b"value")));
    let taken = (0..300).take_while(|_| engine.ingest(Tree::Present, 0, &mut std::iter::once(entry())).is_ok());
    assert_eq!(taken.count(), RUNS_MAX);
    engine.reopen().unwrap();
    assert!(engine.get(Tree::Present, b"key").unwrap().is_some());
}

#[test]
fn files_are_not_dropped_while_the_present_is_written_anew() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions::default()).unwrap();
    let entry = (Bytes::from_static(b"key"), Some(Bytes::from_static(b"value")));
    engine.ingest(Tree::Present, 0, &mut std::iter::once(entry)).unwrap();
    engine.compacting.store(true, Ordering::Release);
    assert_eq!(engine.drop_files(b"a", b"z"), Ok(false));
    engine.compacting.store(false, Ordering::Release);
    while !engine.drop_files(b"a", b"z").unwrap() {}
    assert_eq!(engine.get(Tree::Present, b"key"), Ok(None));
}
