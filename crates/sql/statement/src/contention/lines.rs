//! What nodes tell each other of locks and transactions: a line for each, of which the first cell says what it is.

use super::{LOCKS_PER_NODE_MAX, SessionTxn, TRANSACTIONS_PER_NODE_MAX, Wanted, shown_node};
use crate::Kv;
use crate::peers::{Row, TOLD_QUERY_CHARS_MAX};
use crate::sessions::Sessions;
use crate::transaction::{Consistency, LockMode, LockOwner, PreparedPart, ShownLock, TxnNumber};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::str::Split;

/// Locks that are looked at in one go.
const LOOK_MAX: usize = 1_000;

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A lock.
    Lock(ShownLock),
    /// A session, and a number of it.
    Session(SessionTxn),
    /// A transaction of another node holds so many locks here; or one of no session.
    Elsewhere(TxnNumber, usize),
    /// Prepared here.
    Prepared(PreparedPart),
    /// There is more, which is not told.
    Cut,
}

/// What others are asked.
pub fn questions(wanted: Wanted) -> Vec<String> {
    let transactions = "transactions 0".to_owned();
    match wanted {
        Wanted::Contended => vec!["locks awaited - 0 0".into(), transactions],
        Wanted::Locks => vec!["locks awaited - 0 0".into(), "locks all - 0 0".into(), transactions],
        Wanted::Transactions => vec![transactions],
    }
}

/// What this node would tell, all of it.
pub fn own(sessions: &Sessions, kv: &dyn Kv, wanted: Wanted) -> Vec<(u32, Row)> {
    let node = shown_node(kv);
    let mut rows = Vec::new();
    let kinds: &[bool] = match wanted {
        Wanted::Contended => &[true],
        Wanted::Locks => &[true, false],
        Wanted::Transactions => &[],
    };
    for contended in kinds {
        let mut locks = Locks { contended: *contended, from: (Bytes::new(), 0), told: 0 };
        while let Some(page) = locks.look(kv) {
            rows.extend(page);
        }
    }
    rows.extend(transactions(sessions, kv));
    rows.into_iter().map(|row| (node, row)).collect()
}

/// The rest of what was asked about locks.
struct Locks {
    contended: bool,
    /// Behind so many of a key.
    from: (Bytes, usize),
    told: usize,
}

impl Locks {
    /// The next ones; `None` at the end.
    fn look(&mut self, kv: &dyn Kv) -> Option<Vec<Row>> {
        let left = LOCKS_PER_NODE_MAX.checked_sub(self.told)?;
        // One more than may be told says that there is more.
        let found = kv.shown_locks(self.contended, (&self.from.0, self.from.1), LOOK_MAX.min(left + 1));
        let mut rows = Vec::with_capacity(found.len());
        for lock in found {
            if self.told == LOCKS_PER_NODE_MAX {
                rows.push(vec![Some("!".into())]);
                self.told += 1;
                break;
            }
            self.told += 1;
            if lock.key == self.from.0 {
                self.from.1 += 1;
            } else {
                self.from = (lock.key.clone(), 1);
            }
            rows.push(of_lock(&lock));
        }
        (!rows.is_empty()).then_some(rows)
    }

    /// As a question: for what is not told yet.
    fn question(&self) -> String {
        let kind = if self.contended { "awaited" } else { "all" };
        let key = if self.from.0.is_empty() { "-".to_owned() } else { hex(&self.from.0) };
        format!("locks {kind} {key} {} {}", self.from.1, self.told)
    }
}

/// Answers a question about locks: rows, and the question for the rest.
pub(crate) fn locks_asked(
    kv: &dyn Kv,
    words: &mut Split<'_, char>,
    is_full: &dyn Fn(&[Row]) -> bool,
) -> Option<Vec<Row>> {
    let contended = match words.next()? {
        "awaited" => true,
        "all" => false,
        _ => return None,
    };
    let key = match words.next()? {
        "-" => Bytes::new(),
        key => of_hex(key)?,
    };
    let from = (key, words.next()?.parse().ok()?);
    let mut locks = Locks { contended, from, told: words.next()?.parse().ok()? };
    let mut rows = Vec::new();
    while let Some(page) = locks.look(kv) {
        rows.extend(page);
        if is_full(&rows) {
            rows.push(vec![Some("+".into()), Some(locks.question())]);
            break;
        }
    }
    Some(rows)
}

/// Answers a question about transactions.
pub(crate) fn transactions_asked(
    sessions: &Sessions,
    kv: &dyn Kv,
    words: &mut Split<'_, char>,
    is_full: &dyn Fn(&[Row]) -> bool,
) -> Option<Vec<Row>> {
    let told: usize = words.next()?.parse().ok()?;
    let all = transactions(sessions, kv);
    let mut rows = Vec::new();
    for (at, row) in all.into_iter().enumerate().skip(told) {
        rows.push(row);
        if is_full(&rows) {
            rows.push(vec![Some("+".into()), Some(format!("transactions {}", at + 1))]);
            break;
        }
    }
    Some(rows)
}

/// This node's sessions that hold, wait or write; what others hold here; what is prepared here.
fn transactions(sessions: &Sessions, kv: &dyn Kv) -> Vec<Row> {
    let mut by_session: BTreeMap<u64, Vec<LockOwner>> = BTreeMap::new();
    let mut rows = Vec::new();
    let mut elsewhere = Vec::new();
    for owner in kv.lock_owners() {
        match owner.session {
            Some(session) => by_session.entry(session).or_default().push(owner),
            None if owner.held > 0 => elsewhere.push(of_elsewhere(owner.txn, owner.held)),
            None => {}
        }
    }
    let (wall_us, now_us) = (kv.now_us() - crate::types::calendar::EPOCH_OFFSET_US, kv.monotonic_us());
    for backend in sessions.all() {
        let mut owners = by_session.remove(&backend.number).unwrap_or_default();
        let done = backend.footprint();
        let alone = LockOwner { txn: TxnNumber { node: 0, serial: 0 }, session: None, lasting: false, held: 0 };
        let writes = done.is_some_and(|done| done.keys > 0) && owners.iter().all(|owner| owner.lasting);
        owners.extend(writes.then_some(alone));
        if owners.is_empty() {
            continue;
        }
        let activity = backend.activity();
        let waits_us = backend.waits_for_lock_since_us().map(|since| now_us.saturating_sub(since).max(0));
        for owner in owners {
            let done = done.filter(|_| !owner.lasting);
            let known = done.and_then(|done| done.txn);
            rows.push(of_session(&SessionTxn {
                txn: owner.session.map(|_| owner.txn).or(known),
                pid: backend.pid,
                state: activity.state.name().to_owned(),
                waits_us,
                lasting: owner.lasting,
                held: owner.held,
                keys: done.map_or(0, |done| done.keys),
                bytes: done.map_or(0, |done| done.bytes),
                consistency: done.map(|done| Consistency::name(done.consistency).to_owned()),
                age_us: activity.transaction_us.map(|began| wall_us.saturating_sub(began).max(0)),
                user: backend.user.clone(),
                query: activity.query.as_ref().map(|query| query.chars().take(TOLD_QUERY_CHARS_MAX).collect()),
            }));
        }
    }
    rows.extend(elsewhere);
    let mut is_cut = rows.len() > TRANSACTIONS_PER_NODE_MAX;
    rows.truncate(TRANSACTIONS_PER_NODE_MAX);
    let prepared = kv.prepared(TRANSACTIONS_PER_NODE_MAX + 1);
    is_cut |= prepared.len() > TRANSACTIONS_PER_NODE_MAX;
    rows.extend(prepared.iter().take(TRANSACTIONS_PER_NODE_MAX).map(of_prepared));
    rows.extend(is_cut.then(|| vec![Some("!".into())]));
    rows
}

const MODES: [(LockMode, &str); 4] = [
    (LockMode::KeyShare, "key share"),
    (LockMode::Share, "share"),
    (LockMode::NoKeyUpdate, "no key update"),
    (LockMode::Update, "update"),
];

fn cell(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

fn of_lock(lock: &ShownLock) -> Row {
    let mode = MODES.iter().find(|(mode, _)| *mode == lock.mode).map(|(_, name)| (*name).to_owned());
    let before: Vec<String> = lock.before.iter().map(TxnNumber::to_string).collect();
    vec![cell("l"), cell(hex(&lock.key)), cell(lock.txn), mode, cell(lock.granted), cell(before.join(","))]
}

fn of_session(of: &SessionTxn) -> Row {
    vec![
        cell("t"),
        of.txn.map(|txn| txn.to_string()),
        cell(of.pid),
        cell(&of.state),
        of.waits_us.map(|us| us.to_string()),
        cell(of.lasting),
        cell(of.held),
        cell(of.keys),
        cell(of.bytes),
        of.consistency.clone(),
        of.age_us.map(|us| us.to_string()),
        cell(&of.user),
        of.query.clone(),
    ]
}

fn of_elsewhere(txn: TxnNumber, held: usize) -> Row {
    vec![cell("h"), cell(txn), cell(held)]
}

fn of_prepared(part: &PreparedPart) -> Row {
    vec![cell("p"), cell(part.txn), cell(part.range), cell(part.keys)]
}

/// The reverse. `None`: it is something else.
pub fn read(row: &[Option<String>]) -> Option<Line> {
    let text = |at: usize| row.get(at)?.as_deref();
    // A cell that is NULL, and one that says what is not understood.
    let number = |at: usize| text(at).map(str::parse::<i64>).transpose().ok();
    match text(0)? {
        "l" => Some(Line::Lock(ShownLock {
            key: of_hex(text(1)?)?,
            txn: text(2)?.parse().ok()?,
            mode: MODES.iter().find(|(_, name)| Some(*name) == text(3))?.0,
            granted: text(4)?.parse().ok()?,
            before: text(5)?
                .split(',')
                .filter(|txn| !txn.is_empty())
                .map(|txn| txn.parse().ok())
                .collect::<Option<_>>()?,
        })),
        "t" => Some(Line::Session(SessionTxn {
            txn: text(1).map(str::parse).transpose().ok()?,
            pid: text(2)?.parse().ok()?,
            state: text(3)?.to_owned(),
            waits_us: number(4)?,
            lasting: text(5)?.parse().ok()?,
            held: text(6)?.parse().ok()?,
            keys: text(7)?.parse().ok()?,
            bytes: text(8)?.parse().ok()?,
            consistency: text(9).map(str::to_owned),
            age_us: number(10)?,
            user: text(11)?.to_owned(),
            query: text(12).map(str::to_owned),
        })),
        "h" => Some(Line::Elsewhere(text(1)?.parse().ok()?, text(2)?.parse().ok()?)),
        "p" => Some(Line::Prepared(PreparedPart {
            txn: text(1)?.parse().ok()?,
            range: text(2)?.parse().ok()?,
            keys: text(3)?.parse().ok()?,
        })),
        "!" => Some(Line::Cut),
        _ => None,
    }
}

/// A key as text.
pub fn hex(key: &[u8]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The reverse. `None`: it is no key's text.
pub fn of_hex(text: &str) -> Option<Bytes> {
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    if !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TXN: TxnNumber = TxnNumber { node: 3, serial: 1 << 40 };

    #[test]
    fn lines_stay_what_they_say() {
        let lock = |granted, before| ShownLock {
            key: Bytes::from_static(b"\x00\x01k"),
            txn: TXN,
            mode: LockMode::NoKeyUpdate,
            granted,
            before,
        };
        for lock in [lock(true, Vec::new()), lock(false, vec![TXN, TxnNumber { node: 1, serial: 2 }])] {
            assert_eq!(read(&of_lock(&lock)), Some(Line::Lock(lock)));
        }
        let session = SessionTxn { txn: Some(TXN), pid: 7, waits_us: Some(5), lasting: true, ..SessionTxn::default() };
        for session in [session, SessionTxn { query: Some("a\tb".into()), ..SessionTxn::default() }] {
            assert_eq!(read(&of_session(&session)), Some(Line::Session(session)));
        }
        let part = PreparedPart { txn: TXN, range: 9, keys: 2 };
        assert_eq!(read(&of_prepared(&part)), Some(Line::Prepared(part)));
        assert_eq!(read(&of_elsewhere(TXN, 4)), Some(Line::Elsewhere(TXN, 4)));
        for unknown in [vec![], vec![None], vec![cell("+"), cell("locks")], vec![cell("l")], vec![cell("x"), cell(1)]] {
            assert_eq!(read(&unknown), None);
        }
        assert_eq!((of_hex("0g"), of_hex("0"), of_hex("ü0")), (None, None, None));
    }
}
