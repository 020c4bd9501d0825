//! Golden scripts of transactions: `tests/golden/*.txt`. A line is a command, then ` -> ` and what it gave.
//! `BLESS=1 cargo test -p timeball-protocol --test stories` writes the results anew; read the diff.

mod model;

use bytes::Bytes;
use clock::Timestamp;
use model::Model;
use protocol::txn::{
    Answer, Apart, Batch, Cause, Command, Coordinator, LockMode, LockReply, LockTable, LockWait, Outcome, Part, Range,
    RangeId, Read, Record, Refusal, Span, Standing, TxnId, Verdict, Waiter, Wakeup, Write, encode_record,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(Default)]
struct World {
    versions: Model,
    ranges: BTreeMap<RangeId, Range>,
    coordinators: BTreeMap<TxnId, Coordinator>,
    locks: LockTable,
}

fn time(word: &str) -> Timestamp {
    Timestamp::from_u64(word.parse().expect("a timestamp"))
}
fn txn(word: &str) -> TxnId {
    TxnId { serial: word[1..].parse().expect("a transaction"), node: 0 }
}
fn range(word: &str) -> RangeId {
    RangeId(word[1..].parse().expect("a range"))
}
fn ranges(word: &str) -> Vec<RangeId> {
    word.split(',').map(range).collect()
}
/// `x=40`: the index of the key x is kept apart, with its own threshold.
fn apart(words: &[&str]) -> Vec<Apart> {
    let one = |word: &&str| {
        let (name, threshold) = word.split_once('=').expect("an index and its threshold");
        let mut index = [0; 4];
        index[..name.len()].copy_from_slice(name.as_bytes());
        Apart { index, class: 7, threshold: time(threshold) }
    };
    words.iter().map(one).collect()
}
fn key(word: &str) -> Bytes {
    Bytes::copy_from_slice(word.as_bytes())
}
fn lock_mode(name: &str) -> LockMode {
    match name {
        "key-share" => LockMode::KeyShare,
        "share" => LockMode::Share,
        "no-key-update" => LockMode::NoKeyUpdate,
        "update" => LockMode::Update,
        other => panic!("unknown mode {other}"),
    }
}

fn show_txn(id: TxnId) -> String {
    format!("t{}", id.serial)
}
fn show_key(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

/// `since 5 read a read b..d write x=1 delete y`
fn batch(id: TxnId, words: &[&str]) -> Batch {
    let mut batch = Batch { txn: id, ..Batch::default() };
    let mut since = Timestamp::MIN;
    for pair in words.chunks(2) {
        match pair {
            ["since", at] => since = time(at),
            ["until", at] => batch.until = Some(time(at)),
            ["read", what] => batch.reads.push(match what.split_once("..") {
                Some((start, end)) => Read::Span { span: Span::new(key(start), key(end)), since },
                None => Read::Key { key: key(what), since },
            }),
            ["present", name] => batch.reads.push(Read::Present { key: key(name), since }),
            ["write", what] => {
                let (name, value) = what.split_once('=').expect("key=value");
                batch.writes.push(Write { key: key(name), value: Some(key(value)), since });
            }
            ["delete", name] => batch.writes.push(Write { key: key(name), value: None, since }),
            other => panic!("unknown part {other:?}"),
        }
    }
    batch.writes.sort_by(|a, b| a.key.cmp(&b.key));
    batch
}

/// `staged 8 until 90 ...`: as [`batch`], whose reads and writes were staged in parts of 8 bytes.
fn maybe_staged(id: TxnId, words: &[&str]) -> Batch {
    let ["staged", bytes, rest @ ..] = words else { return batch(id, words) };
    let whole = batch(id, rest);
    let (staged, _) = whole.to_parts(bytes.parse().expect("a number"));
    Batch { txn: id, until: whole.until, staged: Some(staged), ..Batch::default() }
}

/// `1 by 8 until 90 quota 200 ...`: the part with this number of a batch in parts of 8 bytes.
fn stage(id: TxnId, words: &[&str]) -> Command {
    let [number, "by", bytes, "until", until, "quota", quota, rest @ ..] = words else { panic!("a part: {words:?}") };
    let (whole, parts) = batch(id, rest).to_parts(bytes.parse().expect("a number"));
    let number: u32 = number.parse().expect("a number");
    let part = Part { txn: id, until: time(until), whole, number, bytes: parts[number as usize].clone() };
    Command::Stage { part, quota: quota.parse().expect("a number") }
}

fn show_refusal(refusal: &Refusal) -> String {
    let at = show_key(&refusal.key);
    match &refusal.cause {
        Cause::WriteChanged { at: t } => format!("refused: {at} was written at {}", t.as_u64()),
        Cause::ReadChanged { at: t } => format!("refused: {at} was read, and written at {}", t.as_u64()),
        Cause::Gone => format!("refused: {at} is gone"),
        Cause::Undecided { txn } => format!("refused: {at} is held by {}", show_txn(*txn)),
        Cause::TooOld { threshold } => format!("refused: older than {}", threshold.as_u64()),
        Cause::Fenced => "refused: fenced or repeated".to_owned(),
        Cause::Late => "refused: too late".to_owned(),
        Cause::Unstaged => "refused: not all parts are there".to_owned(),
        Cause::Crowded { bytes, staged, quota } => format!("refused: {bytes} bytes beside {staged} of {quota}"),
        Cause::Moved => format!("refused: {at} is in another range"),
    }
}

fn show_decision(decision: Option<Option<Timestamp>>) -> String {
    match decision {
        None => "undecided".to_owned(),
        Some(None) => "aborted".to_owned(),
        Some(Some(at)) => format!("committed at {}", at.as_u64()),
    }
}

impl World {
    fn run(&mut self, words: &[&str]) -> String {
        match words {
            ["range", id, start, end] => {
                let end = if *end == "-" { Bytes::new() } else { key(end) };
                self.ranges.insert(range(id), Range::new(range(id), Span::new(key(start), end)));
                String::new()
            }
            ["get", name, "at", at] => match self.versions.get(name.as_bytes(), time(at)) {
                None => "nothing".to_owned(),
                Some((t, None)) => format!("deleted at {}", t.as_u64()),
                Some((t, Some(v))) => format!("{} from {}", show_key(&v), t.as_u64()),
            },
            ["ask", id, t] => match self.ranges[&range(id)].standing(txn(t)) {
                Standing::Prepared(at) => format!("prepared at {}", at.as_u64()),
                Standing::Decided(Outcome::Aborted) => "aborted".to_owned(),
                Standing::Decided(Outcome::Committed(at)) => format!("committed at {}", at.as_u64()),
                Standing::Unknown => "unknown".to_owned(),
            },
            ["staged", id] => format!("{} bytes", self.ranges[&range(id)].staged_bytes()),
            ["lease", id] => format!("ends at {}", self.ranges[&range(id)].lease_end().as_u64()),
            ["restart", id] => {
                let before = self.ranges.remove(&range(id)).expect("a range");
                let after = Range::decode(&Bytes::from(before.encode())).expect("the state decodes");
                assert_eq!(before, after);
                self.ranges.insert(range(id), after);
                String::new()
            }
            ["coordinate" | "recover", t, who] => {
                self.coordinators.insert(txn(t), Coordinator::new(txn(t), &ranges(who)));
                String::new()
            }
            ["answer", t, who, rest @ ..] => self.answer(txn(t), range(who), rest),
            ["informed", t, who] => {
                let all = self.coordinators.get_mut(&txn(t)).expect("a coordinator").informed(range(who));
                if all { "all know".to_owned() } else { "others do not know".to_owned() }
            }
            ["lock", t, name] => self.lock(t, name, LockMode::Update, LockWait::Wait),
            ["nowait", t, name] => self.lock(t, name, LockMode::Update, LockWait::NoWait),
            ["lock", t, name, mode] => self.lock(t, name, lock_mode(mode), LockWait::Wait),
            ["nowait", t, name, mode] => self.lock(t, name, lock_mode(mode), LockWait::NoWait),
            ["cancel", t] => self.unlock(|locks, woken| locks.cancel(txn(t), woken)),
            ["of", t, session] => {
                self.locks.belongs(txn(t), session.parse().expect("a number"));
                String::new()
            }
            ["waits"] => {
                let shown = |w: Waiter| {
                    let before = self.locks.in_the_way_of(w.txn).into_iter().map(|(txn, session)| {
                        let session = session.map_or(String::new(), |session| format!(" of s{session}"));
                        format!("{}{session}", show_txn(txn))
                    });
                    let before: Vec<String> = before.collect();
                    format!("{} for {} behind {}", show_txn(w.txn), show_key(&w.key), before.join(", "))
                };
                let all: Vec<String> = self.locks.waiters().map(shown).collect();
                if all.is_empty() { "nobody".to_owned() } else { all.join("; ") }
            }
            ["mark", t] => format!("{}", self.locks.mark(txn(t))),
            ["back", t, mark] => {
                let mark = mark.parse().expect("a number");
                self.unlock(|locks, woken| locks.release_since(txn(t), mark, woken))
            }
            ["end", t] => self.unlock(|locks, woken| locks.release(txn(t), woken)),
            ["at", at, id, rest @ ..] => self.apply(time(at), range(id), rest),
            other => panic!("unknown command {other:?}"),
        }
    }

    fn answer(&mut self, id: TxnId, who: RangeId, words: &[&str]) -> String {
        let answer = match words {
            ["prepared", at] => Answer::Prepared(time(at)),
            ["refused"] => Answer::Refused,
            ["committed", at] => Answer::Known(Outcome::Committed(time(at))),
            ["aborted"] => Answer::Known(Outcome::Aborted),
            other => panic!("unknown answer {other:?}"),
        };
        let coordinator = self.coordinators.get_mut(&id).expect("a coordinator");
        coordinator.answer(who, answer);
        show_decision(coordinator.decision())
    }

    fn unlock(&mut self, f: impl FnOnce(&mut LockTable, &mut Vec<Wakeup>)) -> String {
        let mut woken = Vec::new();
        f(&mut self.locks, &mut woken);
        let woken: Vec<String> = woken.iter().map(|w| show_txn(w.0)).collect();
        if woken.is_empty() { String::new() } else { format!("wakes {}", woken.join(" ")) }
    }

    fn lock(&mut self, t: &str, name: &str, mode: LockMode, wait: LockWait) -> String {
        let mut woken = Vec::new();
        let reply = match self.locks.request(txn(t), name.as_bytes(), mode, wait, &mut woken) {
            LockReply::Granted { waited: false } => "granted".to_owned(),
            LockReply::Granted { waited: true } => "granted after a wait".to_owned(),
            LockReply::Queued => "waits".to_owned(),
            LockReply::Busy => "busy".to_owned(),
            LockReply::Deadlock(cycle) => {
                format!(
                    "deadlock: {}",
                    cycle.iter().map(|waiter| show_txn(waiter.txn)).collect::<Vec<_>>().join(" waits for ")
                )
            }
        };
        let woken: Vec<String> = woken.iter().map(|w| show_txn(w.0)).collect();
        if woken.is_empty() { reply } else { format!("{reply}; wakes {}", woken.join(" ")) }
    }

    fn apply(&mut self, at: Timestamp, id: RangeId, words: &[&str]) -> String {
        let command = match words {
            ["commit", t, rest @ ..] => Command::Commit(maybe_staged(txn(t), rest)),
            ["stage", t, rest @ ..] => stage(txn(t), rest),
            ["prepare", t, "with", who, rest @ ..] => {
                Command::Prepare { batch: maybe_staged(txn(t), rest), participants: ranges(who) }
            }
            ["fence", t] => Command::Fence { txn: txn(t), until: None },
            ["fence", t, "until", u] => Command::Fence { txn: txn(t), until: Some(time(u)) },
            ["outcome", t, "abort"] => Command::Outcome { txn: txn(t), commit: None, until: None },
            ["outcome", t, "abort", "until", u] => Command::Outcome { txn: txn(t), commit: None, until: Some(time(u)) },
            ["outcome", t, "commit", c] => Command::Outcome { txn: txn(t), commit: Some(time(c)), until: None },
            ["forget", t] => Command::Forget { txns: vec![txn(t)] },
            ["split", name, right] => Command::Split { at: key(name), right: range(right), nodes: Vec::new() },
            ["split", name, right, "on", nodes] => {
                let nodes = nodes.split(',').map(|node| node.parse().expect("a node")).collect();
                Command::Split { at: key(name), right: range(right), nodes }
            }
            ["lease", end] => Command::Lease { end: time(end) },
            ["release"] => Command::Release,
            ["raise", version] => Command::Raise { version: version.parse().expect("a version") },
            ["collect", threshold, rest @ ..] => Command::Collect { threshold: time(threshold), apart: apart(rest) },
            other => panic!("unknown record {other:?}"),
        };
        let mut bytes = Vec::new();
        encode_record(id, at, &command, &mut bytes);
        let record = Record::decode(&Bytes::from(bytes)).expect("a record decodes");
        assert_eq!(record, Record { range: id, at, command });
        let machine = self.ranges.get_mut(&id).expect("a range");
        let state = Range::decode(&Bytes::from(machine.encode())).expect("a state decodes");
        assert_eq!(state, *machine);
        match machine.apply(at, &record.command, &self.versions).unwrap_or_else(|never| match never {}) {
            Verdict::Staged => "staged".to_owned(),
            Verdict::Committed => "committed".to_owned(),
            Verdict::Prepared => "prepared".to_owned(),
            Verdict::Refused(refusal) => show_refusal(&refusal),
            Verdict::Applied(commit) => format!("applied, committed at {}", commit.as_u64()),
            Verdict::Aborted => "aborted".to_owned(),
            Verdict::NotFenced => "not fenced".to_owned(),
            Verdict::Split(right) => {
                let text = format!("split: r{} begins at {}", right.id().0, show_key(&right.span().start));
                self.ranges.insert(right.id(), *right);
                text
            }
            Verdict::Already(Standing::Prepared(at)) => format!("a copy: prepared at {}", at.as_u64()),
            Verdict::Already(Standing::Decided(Outcome::Committed(at))) => {
                format!("a copy: committed at {}", at.as_u64())
            }
            Verdict::Already(_) => "a copy: aborted".to_owned(),
            Verdict::Forgotten => "forgotten".to_owned(),
            Verdict::Done => "done".to_owned(),
        }
    }
}

fn play(script: &str) -> String {
    let (mut world, mut out) = (World::default(), String::new());
    for line in script.lines() {
        let command = line.split(" -> ").next().unwrap_or_default().trim_end();
        if command.is_empty() || command.starts_with('#') {
            writeln!(out, "{line}").expect("a string");
            continue;
        }
        match world.run(&command.split_whitespace().collect::<Vec<_>>()).as_str() {
            "" => writeln!(out, "{command}").expect("a string"),
            result => writeln!(out, "{command} -> {result}").expect("a string"),
        }
    }
    out
}

#[test]
fn stories() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let mut files: Vec<_> = std::fs::read_dir(dir).expect("the scripts").map(|e| e.expect("a file").path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for path in files {
        let script = std::fs::read_to_string(&path).expect("a script");
        let played = play(&script);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, played).expect("a script");
        } else {
            assert_eq!(script, played, "{}: BLESS=1 cargo test -p timeball-protocol --test stories", path.display());
        }
    }
}

/// An older program reads every record but the newest kinds, and says of those that they are too new.
#[test]
fn only_newer_kinds_have_newer_versions() {
    let encoded = |command: &Command| {
        let mut bytes = Vec::new();
        encode_record(RangeId(1), Timestamp::from_u64(7), command, &mut bytes);
        bytes
    };
    assert_eq!(encoded(&Command::Lease { end: Timestamp::from_u64(9) })[0], 1);
    let mut release = encoded(&Command::Release);
    assert_eq!(release[0], 2);
    assert!(Record::decode(&Bytes::from(release.clone())).is_ok());
    let id = TxnId { serial: 1, node: 1 };
    let relies = Command::Commit(batch(id, &["since", "5", "read", "a", "present", "b", "write", "c=1"]));
    assert_eq!(encoded(&Command::Commit(batch(id, &["since", "5", "read", "a", "write", "c=1"])))[0], 1);
    assert_eq!(encoded(&relies)[0], 3);
    let decoded = Record::decode(&Bytes::from(encoded(&relies))).expect("a record");
    assert_eq!(decoded.command, relies);
    let collect = |apart: &[&str]| Command::Collect { threshold: Timestamp::from_u64(5), apart: self::apart(apart) };
    assert_eq!(encoded(&collect(&[]))[0], 1);
    assert_eq!(encoded(&collect(&["x=4"]))[0], 4);
    assert_eq!(encoded(&Command::Commit(batch(id, &["until", "9", "since", "5", "write", "c=1"])))[0], 5);
    assert_eq!(encoded(&Command::Fence { txn: id, until: None })[0], 1);
    assert_eq!(encoded(&Command::Fence { txn: id, until: Some(Timestamp::from_u64(9)) })[0], 5);
    assert_eq!(encoded(&stage(id, &["0", "by", "9", "until", "9", "quota", "99", "write", "c=1"]))[0], 6);
    assert_eq!(encoded(&Command::Commit(maybe_staged(id, &["staged", "9", "until", "9", "write", "c=1"])))[0], 6);
    assert_eq!(encoded(&Command::Raise { version: 2 })[0], 7);
    let looked = Read::Unreferred { key: Bytes::from_static(b"a"), since: Timestamp::from_u64(5) };
    assert_eq!(encoded(&Command::Commit(Batch { reads: vec![looked], ..batch(id, &["since", "5"]) }))[0], 8);
    release[0] = 9;
    let refused = Record::decode(&Bytes::from(release)).expect_err("a version that is not known");
    assert!(refused.to_string().contains("newer version"), "{refused}");
}
