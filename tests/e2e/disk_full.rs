//! A full disk: writes get 53100, reads go on, nothing acknowledged is lost, and freed space is noticed. A node that is killed there
//! starts again, takes deletes, and frees space by itself.

use crate::node::{Node, Scratch, Starting, binary, free_port, repeat_with, skip, state, until};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// Size of the small disk, in MiB: room for the log's first segments and the engine's files.
const DISK_MIB: usize = 384;

/// A file system of its own, in memory.
pub struct SmallDisk(pub PathBuf);

impl SmallDisk {
    /// `None`, and the test is skipped, where that is not allowed.
    pub fn mount(scratch: &Scratch, mib: usize) -> Option<SmallDisk> {
        let at = scratch.path().join("disk");
        std::fs::create_dir_all(&at).unwrap();
        let size = format!("size={mib}m");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&at).output();
        if !mount.is_ok_and(|m| m.status.success()) {
            skip("mounting a small disk needs root");
            return None;
        }
        Some(SmallDisk(at))
    }
    /// Fills what is left.
    pub fn fill(&self) {
        let mut filler = std::fs::OpenOptions::new().create(true).append(true).open(self.0.join("filler")).unwrap();
        for size in [1 << 20, 4096] {
            let block = vec![1u8; size];
            while filler.write_all(&block).is_ok() {}
        }
    }
    pub fn free(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Clients that write are to be sent elsewhere; a restart would not help.
fn not_ready(node: &Node) {
    until("it is not ready, and says why", || {
        let ready = node.get("/health/ready");
        (ready.starts_with("HTTP/1.1 503 ") && ready.contains("its disk is full")).then_some(())
    });
    assert!(node.get("/health/live").starts_with("HTTP/1.1 200 "));
    assert!(node.get("/metrics").contains("\nready 0\n"));
}

#[test]
fn a_member_with_a_full_disk_is_not_ready() {
    repeat_with("disk_full::a_member_with_a_full_disk_is_not_ready");
    let scratch = Scratch::new();
    let Some(disk) = SmallDisk::mount(&scratch, DISK_MIB) else { return };
    let peer = format!("127.0.0.1:{}", free_port());
    let flags = ["--memory", "256MiB", "--join", &peer, "--peer-addr", &peer];
    let mut starting = Starting::spawn(&disk.0.join("store"), &flags);
    starting.line("peer ").unwrap();
    assert!(Command::new(binary()).args(["init", "--host", &peer]).status().unwrap().success());
    let node = starting.ready().unwrap();
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY, filler text)").unwrap();
    let filler = "x".repeat(1 << 20);
    let refused = (0..4 * DISK_MIB as i32).find_map(|id| {
        disk.fill();
        client.execute("INSERT INTO t VALUES ($1, $2)", &[&id, &filler]).err()
    });
    let refused = refused.expect("the disk never fills");
    assert_eq!(state(&refused), "53100", "{refused}");
    not_ready(&node);
    disk.free();
    until("it is ready again", || node.get("/health/ready").starts_with("HTTP/1.1 200 ").then_some(()));
}

#[test]
fn writes_are_refused_and_reads_go_on() {
    repeat_with("disk_full::writes_are_refused_and_reads_go_on");
    let scratch = Scratch::new();
    let Some(disk) = SmallDisk::mount(&scratch, DISK_MIB) else { return };
    let store = disk.0.join("store");
    let node = Node::start(&store, &[]);
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY, filler text)").unwrap();
    let insert = client.prepare("INSERT INTO t VALUES ($1, $2)").unwrap();
    let filler = "x".repeat(1 << 20);
    let mut acknowledged = 0;
    client.execute(&insert, &[&acknowledged, &filler]).unwrap();
    acknowledged += 1;
    disk.fill();
    let refused = loop {
        match client.execute(&insert, &[&acknowledged, &filler]) {
            Ok(_) => acknowledged += 1,
            Err(e) => break e,
        }
        assert!(acknowledged < 4 * DISK_MIB as i32, "the disk never fills");
        disk.fill();
    };
    assert_eq!(state(&refused), "53100", "{refused}: {:?}", refused.as_db_error());
    not_ready(&node);
    let count = |client: &mut postgres::Client| client.query("SELECT id FROM t", &[]).unwrap().len() as i32;
    assert_eq!(count(&mut client), acknowledged, "reads go on");
    assert_eq!(count(&mut node.connect()), acknowledged, "also in new sessions");
    // Killed, and started again, with not a byte left.
    node.kill();
    disk.fill();
    let node = Node::start(&store, &[]);
    let mut client = node.connect();
    assert_eq!(count(&mut client), acknowledged, "nothing acknowledged is lost");
    let insert = client.prepare("INSERT INTO t VALUES ($1, $2)").unwrap();
    let refused =
        until("the node sees that the disk is full", || match client.execute(&insert, &[&acknowledged, &filler]) {
            Ok(_) => {
                acknowledged += 1;
                None
            }
            Err(e) => Some(e),
        });
    assert_eq!(state(&refused), "53100", "{refused}: {:?}", refused.as_db_error());
    assert!(refused.as_db_error().unwrap().hint().unwrap().contains("Delete rows"), "{refused:?}");
    assert_eq!(client.execute("DELETE FROM t WHERE id = 0", &[]).unwrap(), 1, "a full disk takes deletes");
    assert_eq!(count(&mut client), acknowledged - 1);
    disk.free();
    until("it is ready again", || node.get("/health/ready").starts_with("HTTP/1.1 200 ").then_some(()));
    until("the node notices the space", || client.execute(&insert, &[&acknowledged, &filler]).ok());
    acknowledged += 1;
    node.kill();
    let node = Node::start(&store, &[]);
    assert_eq!(count(&mut node.connect()), acknowledged - 1, "nothing acknowledged is lost");
}

/// Size of the disk that a node fills by itself, in MiB.
const OWN_DISK_MIB: usize = 300;

#[test]
fn a_node_that_filled_its_disk_frees_it_again() {
    repeat_with("disk_full::a_node_that_filled_its_disk_frees_it_again");
    let scratch = Scratch::new();
    let Some(disk) = SmallDisk::mount(&scratch, OWN_DISK_MIB) else { return };
    let store = disk.0.join("store");
    let mut node = Node::start(&store, &[]);
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY, filler bytea)").unwrap();
    // Nothing that a block could be compressed to.
    let mut rng = SmallRng::seed_from_u64(1);
    let mut filler = move || (0..1 << 20).map(|_| rng.random::<u8>()).collect::<Vec<u8>>();
    let insert = "INSERT INTO t VALUES ($1, $2)";
    let mut acknowledged = 0;
    let refused = loop {
        match client.execute(insert, &[&acknowledged, &filler()]) {
            Ok(_) => acknowledged += 1,
            Err(e) => break e,
        }
        assert!(acknowledged < 4 * OWN_DISK_MIB as i32, "the disk never fills");
    };
    assert_eq!(state(&refused), "53100", "{refused}: {:?}", refused.as_db_error());
    eprintln!("{acknowledged} MiB of rows in {OWN_DISK_MIB}");
    let count = |client: &mut postgres::Client| client.query("SELECT id FROM t", &[]).unwrap().len() as i32;
    // However it stops, it starts again, and reads.
    for kill in [true, false, true] {
        if kill {
            node.kill();
        } else {
            node.terminate();
            node.wait();
        }
        node = Node::start(&store, &[]);
        client = node.connect();
        assert_eq!(count(&mut client), acknowledged);
    }
    let kept = 5;
    assert_eq!(client.execute("DELETE FROM t WHERE id >= $1", &[&kept]).unwrap() as i32, acknowledged - kept);
    let again = 40;
    for n in 0..again {
        let bytes = filler();
        until("space comes back", || client.execute(insert, &[&(acknowledged + n), &bytes]).ok());
    }
    assert_eq!(count(&mut client), kept + again);
}

/// The rows of a table that fills the disk go, and so does their space: merges have little room, and flushes wait for what they give back.
#[test]
fn the_space_of_a_table_comes_back() {
    repeat_with("disk_full::the_space_of_a_table_comes_back");
    let scratch = Scratch::new();
    let Some(disk) = SmallDisk::mount(&scratch, OWN_DISK_MIB) else { return };
    let node = Node::start(&disk.0.join("store"), &["--memory", "1GiB"]);
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY, filler text)").unwrap();
    let insert = "INSERT INTO t SELECT g, repeat('x', 600) || g FROM generate_series($1::int4, $1 + $2 - 1) AS g";
    let mut rows = 0;
    let refused = loop {
        match client.execute(insert, &[&rows, &10_000]) {
            Ok(_) => rows += 10_000,
            Err(e) => break e,
        }
        assert!(rows < 1_000_000, "the disk never fills");
    };
    assert_eq!(state(&refused), "53100", "{refused}: {:?}", refused.as_db_error());
    client.execute("DELETE FROM t WHERE id < $1 / 3", &[&rows]).unwrap();
    client.batch_execute("TRUNCATE t").unwrap();
    let mut again = 0;
    until("half of it has room again", || {
        again += client.execute(insert, &[&again, &10_000]).map_or(0, |_| 10_000);
        (again >= rows / 2).then_some(())
    });
}

/// One that small rows fill soon.
const SMALL_DISK_MIB: usize = 120;
/// Rows in one statement there.
const STEP: i32 = 20_000;
/// Nothing to compress.
const SMALL_ROWS: &str =
    "SELECT g, md5(g::text) || md5((g * 7)::text) FROM generate_series($1::int4, $1 + $2 - 1) AS g";

/// A node with a disk that small rows have filled, beside a table that stays; how many rows there are of each.
fn filled(disk: &SmallDisk) -> (Node, i32, i32) {
    let node = Node::start(&disk.0.join("store"), &["--memory", "1GiB"]);
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE kept (id int4 PRIMARY KEY, x text)").unwrap();
    let kept = 5 * STEP;
    client.execute(&format!("INSERT INTO kept {SMALL_ROWS}"), &[&0, &kept]).unwrap();
    client.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY, x text)").unwrap();
    let mut rows = 0;
    while client.execute(&format!("INSERT INTO t {SMALL_ROWS}"), &[&rows, &STEP]).is_ok() {
        rows += STEP;
        assert!(rows < 5_000_000, "the disk never fills");
    }
    (node, rows, kept)
}

/// Waits until half of what filled the disk has room again in an empty table; looks for all that must be there.
fn fill_half(client: &mut postgres::Client, rows: i32, kept: i32) {
    let mut again = 0;
    until("half of it has room again", || {
        let inserted = client.execute(&format!("INSERT INTO t {SMALL_ROWS}"), &[&again, &STEP]);
        again += inserted.map_or(0, |_| STEP);
        (again >= rows / 2).then_some(())
    });
    assert_eq!((count(client, "t"), count(client, "kept")), (i64::from(again), i64::from(kept)));
}

fn count(client: &mut postgres::Client, table: &str) -> i64 {
    client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).unwrap().get(0)
}

/// A DELETE that could not be written out is refused: it would keep in memory what comes behind it, a TRUNCATE as well. It waited there for ever.
#[test]
fn what_cannot_be_written_out_is_not_taken() {
    repeat_with("disk_full::what_cannot_be_written_out_is_not_taken");
    let scratch = Scratch::new();
    let Some(disk) = SmallDisk::mount(&scratch, SMALL_DISK_MIB) else { return };
    let (node, rows, kept) = filled(&disk);
    let mut client = node.connect();
    let refused = client.execute("DELETE FROM t", &[]).unwrap_err();
    assert_eq!(state(&refused), "53100", "{rows} rows: {refused}: {:?}", refused.as_db_error());
    assert!(refused.as_db_error().unwrap().hint().unwrap().contains("at a time"), "{refused:?}");
    assert_eq!(client.execute("DELETE FROM t WHERE id < 100", &[]).unwrap(), 100);
    node.kill();
    let node = Node::start(&disk.0.join("store"), &["--memory", "1GiB"]);
    let mut client = node.connect();
    assert_eq!((count(&mut client, "t"), count(&mut client, "kept")), (i64::from(rows - 100), i64::from(kept)));
    client.batch_execute("TRUNCATE t").unwrap();
    node.kill();
    let node = Node::start(&disk.0.join("store"), &["--memory", "1GiB"]);
    fill_half(&mut node.connect(), rows, kept);
}

/// What is deleted in pieces comes back in pieces: there is never room to write all that stays once more.
#[test]
fn deletes_in_pieces_give_the_space_back() {
    repeat_with("disk_full::deletes_in_pieces_give_the_space_back");
    let scratch = Scratch::new();
    let Some(disk) = SmallDisk::mount(&scratch, SMALL_DISK_MIB) else { return };
    let (node, rows, kept) = filled(&disk);
    let mut client = node.connect();
    for from in (0..rows).step_by(STEP as usize) {
        let delete = "DELETE FROM t WHERE id >= $1 AND id < $1 + $2";
        until("the piece is taken", || client.execute(delete, &[&from, &STEP]).ok());
    }
    fill_half(&mut client, rows, kept);
}

/// A table that is filled by small rows with an index, until there is no room.
fn fill_indexed(client: &mut postgres::Client) -> i32 {
    client.batch_execute("CREATE TABLE small (id int4 PRIMARY KEY)").unwrap();
    client.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY, a int4, x text); CREATE INDEX ON t (a)").unwrap();
    let mut rows = 0;
    while client.execute(INSERT_INDEXED, &[&rows, &STEP]).is_ok() {
        rows += STEP;
        assert!(rows < 5_000_000, "the disk never fills");
    }
    rows
}

/// Rows of a large transaction, of 400 bytes each.
const COPIED: i32 = 20_000;

const INSERT_INDEXED: &str = "INSERT INTO t SELECT g, g % 97, md5(g::text) || md5((g * 7)::text) || repeat(md5((g * 3)::text), 9) \
    FROM generate_series($1::int4, $1 + $2 - 1) AS g";

/// What is large goes; then a little is written.
fn comes_back(client: &mut postgres::Client) {
    client.batch_execute("TRUNCATE t").unwrap();
    until("a little is taken again", || client.execute("INSERT INTO small VALUES (1)", &[]).ok());
    assert_eq!((count(client, "t"), count(client, "small")), (0, 1));
}

/// Large transactions fill a disk on which much was just dropped. One of them was taken that could not be written out, and the DROP behind it
/// waited with it.
#[test]
fn large_transactions_do_not_stop_a_full_disk() {
    repeat_with("disk_full::large_transactions_do_not_stop_a_full_disk");
    let scratch = Scratch::new();
    let Some(disk) = SmallDisk::mount(&scratch, SMALL_DISK_MIB) else { return };
    let node = Node::start(&disk.0.join("store"), &["--memory", "512MiB"]);
    let mut client = node.connect();
    fill_indexed(&mut client);
    client.batch_execute("TRUNCATE t").unwrap();
    // Nothing to compress.
    let mut rng = SmallRng::seed_from_u64(7);
    let mut next = 0..;
    let mut copied = |client: &mut postgres::Client| {
        let from = next.next().unwrap() * COPIED;
        let mut copy = client.copy_in("COPY t FROM STDIN").unwrap();
        for row in from..from + COPIED {
            let x: String = (0..50).map(|_| format!("{:08x}", rng.random::<u32>())).collect();
            // Where it is refused half-way the rest is passed over; the end says why.
            let _ = writeln!(copy, "{row}\t1\t{x}");
        }
        copy.finish().is_ok()
    };
    until("there is room", || copied(&mut client).then_some(()));
    let more = (0..100).take_while(|_| copied(&mut client)).count();
    assert!(more < 100, "the disk never fills");
    client.batch_execute("DROP TABLE t").unwrap();
    until("a little is taken again", || client.execute("INSERT INTO small VALUES (1)", &[]).ok());
}

/// Filled, killed, written to at once after the start, emptied in pieces, and killed again, or not.
fn a_restart_takes_no_more_than_fits(name: &str, killed_again: bool) {
    repeat_with(name);
    let scratch = Scratch::new();
    let Some(disk) = SmallDisk::mount(&scratch, SMALL_DISK_MIB) else { return };
    let store = disk.0.join("store");
    let start = || Node::start(&store, &["--memory", "512MiB"]);
    let node = start();
    let rows = fill_indexed(&mut node.connect());
    node.kill();
    let mut node = start();
    let mut client = node.connect();
    // Taken or refused: what is taken fits.
    let _ = client.execute("UPDATE t SET a = a + 1 WHERE id < $1", &[&STEP]);
    for from in (0..rows).step_by(STEP as usize / 4) {
        let _ = client.execute("DELETE FROM t WHERE id >= $1 AND id < $1 + $2", &[&from, &(STEP / 4)]);
    }
    if killed_again {
        node.kill();
        node = start();
        client = node.connect();
    }
    comes_back(&mut client);
    drop(node);
}

#[test]
fn a_restart_on_a_full_disk_takes_no_more_than_fits() {
    a_restart_takes_no_more_than_fits("disk_full::a_restart_on_a_full_disk_takes_no_more_than_fits", false);
}

#[test]
fn two_restarts_on_a_full_disk_take_no_more_than_fits() {
    a_restart_takes_no_more_than_fits("disk_full::two_restarts_on_a_full_disk_take_no_more_than_fits", true);
}
