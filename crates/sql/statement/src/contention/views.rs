//! `timeball_internal.locks` and `timeball_internal.transactions`.

use super::{LOCKS_PER_NODE_MAX, Picture, SessionTxn, TRANSACTIONS_PER_NODE_MAX, Wanted, lines, shown_node};
use crate::advisory::{Key, Mode};
use crate::catalog::{FIRST_USER_OID, Index, Relation, Table, key_values, table_of};
use crate::encoding::index_of;
use crate::peers::Row;
use crate::statement::Statement;
use crate::transaction::{LockMode, ShownLock, TxnNumber};
use crate::types::EvalSettings;
use crate::types::SqlType;
use crate::waits;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Rows of text, as the layers below have them.
pub type Rows = Vec<Row>;

/// The columns of `locks`.
pub(crate) const LOCK_COLUMNS: [(&str, SqlType); 16] = [
    ("locktype", SqlType::Text),
    ("table_name", SqlType::Text),
    ("index_name", SqlType::Text),
    ("row_key", SqlType::Text),
    ("mode", SqlType::Text),
    ("granted", SqlType::Bool),
    ("waits_ms", SqlType::Int8),
    ("holder_node_id", SqlType::Int4),
    ("holder_pid", SqlType::Int4),
    ("waiter_node_id", SqlType::Int4),
    ("waiter_pid", SqlType::Int4),
    ("blocked_by", SqlType::Text),
    ("transaction_id", SqlType::Text),
    ("lock_node_id", SqlType::Int4),
    ("key", SqlType::Text),
    ("error", SqlType::Text),
];

/// The columns of `transactions`.
pub(crate) const TRANSACTION_COLUMNS: [(&str, SqlType); 15] = [
    ("node_id", SqlType::Int4),
    ("pid", SqlType::Int4),
    ("transaction_id", SqlType::Text),
    ("user_name", SqlType::Text),
    ("state", SqlType::Text),
    ("session_state", SqlType::Text),
    ("age_ms", SqlType::Int8),
    ("waits_ms", SqlType::Int8),
    ("consistency", SqlType::Text),
    ("locked_keys", SqlType::Int8),
    ("written_keys", SqlType::Int8),
    ("written_bytes", SqlType::Int8),
    ("prepared_ranges", SqlType::Text),
    ("query", SqlType::Text),
    ("error", SqlType::Text),
];

fn text(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

fn ms(us: Option<i64>) -> Option<String> {
    us.map(|us| (us / 1000).to_string())
}

/// What a key is of, in the user's words.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Its table.
    pub table: Option<String>,
    /// Where it is not the rows themselves.
    pub index: Option<String>,
    /// The row, in words.
    pub row: Option<String>,
}

/// Knows tables by the keys of their rows, as the catalog was last seen here.
pub struct Places {
    settings: Arc<EvalSettings>,
    relations: Vec<Arc<Relation>>,
    by_index: BTreeMap<u32, Option<(Table, Option<Index>)>>,
}

impl Places {
    /// As a statement knows them.
    pub fn new(context: &Statement) -> Places {
        let relations = context.catalog.known_relations();
        Places { settings: context.settings.clone(), relations, by_index: BTreeMap::new() }
    }

    /// What a key is of.
    pub fn of(&mut self, key: &[u8]) -> Place {
        let Some(index) = index_of(key) else { return Place::default() };
        let found = || table_of(key, self.relations.iter().cloned());
        match self.by_index.entry(index).or_insert_with(found) {
            Some((table, secondary)) => Place {
                table: Some(table.name.clone()),
                index: secondary.as_ref().map(|index| index.name.clone()),
                row: key_values(table, secondary.as_ref().unwrap_or(&table.primary), key, &self.settings),
            },
            None => Place::default(),
        }
    }
}

/// One row for each lock that is held or waited for: first those of rows for which somebody waits.
pub fn locks(context: &Statement) -> Rows {
    let picture = Picture::take(context, Wanted::Locks, true);
    let mut places = Places::new(context);
    let mut rows: Rows = own_advisory(context);
    rows.extend(picture.locks.iter().map(|(node, lock)| of_lock(&picture, *node, lock, &mut places)));
    let mut error = |node: u32, why: String| {
        let mut row = vec![None; LOCK_COLUMNS.len()];
        (row[13], row[15]) = (Some(node.to_string()), Some(why));
        rows.push(row);
    };
    picture.silent.iter().for_each(|(node, why)| error(*node, why.clone()));
    let more = format!("it has more than {LOCKS_PER_NODE_MAX} locks: the others are not shown");
    picture.cut.iter().for_each(|node| error(*node, more.clone()));
    rows
}

fn of_lock(picture: &Picture, node: u32, lock: &ShownLock, places: &mut Places) -> Row {
    let advisory = Key::of_bytes(&lock.key);
    let place = places.of(&lock.key);
    let (kind, mode, row) = match advisory {
        Some(key) => ("advisory", advisory_mode(lock.mode).name(), Some(described(key))),
        None if index_of(&lock.key).is_some_and(|index| index < FIRST_USER_OID) => {
            ("catalog", waits::mode_name(lock.mode), None)
        }
        None => ("row", waits::mode_name(lock.mode), place.row),
    };
    let session = picture.session_of(lock.txn).map(|(_, session)| session);
    let of = |txn: TxnNumber| (text(shown(txn)), picture.session_of(txn).map(|(_, session)| session.pid.to_string()));
    let before = lock.before.first().copied();
    let (holder, waiter) = match lock.granted {
        true => (of(lock.txn), (None, None)),
        false => (before.map_or((None, None), of), of(lock.txn)),
    };
    let blocked_by: Vec<String> = lock.before.iter().map(|txn| picture.pid_of(*txn).to_string()).collect();
    vec![
        text(kind),
        place.table,
        place.index,
        row,
        text(mode),
        text(lock.granted),
        ms(session.and_then(|session| session.waits_us).filter(|_| !lock.granted)),
        holder.0,
        holder.1,
        waiter.0,
        waiter.1,
        (!blocked_by.is_empty()).then(|| blocked_by.join(",")),
        text(lock.txn),
        text(node),
        text(lines::hex(&lock.key)),
        None,
    ]
}

/// The node of a transaction.
fn shown(txn: TxnNumber) -> u32 {
    txn.node.max(1)
}

fn advisory_mode(mode: LockMode) -> Mode {
    if mode <= LockMode::Share { Mode::Share } else { Mode::Exclusive }
}

/// `[5,0,7,1]`: database, the number's halves or the two numbers, and which of the two it is.
fn described(key: Key) -> String {
    format!("[{},{},{},{}]", key.database, key.class, key.object, if key.pair { 2 } else { 1 })
}

/// Advisory locks of a node that is alone: in a cluster they lie among the others.
fn own_advisory(context: &Statement) -> Rows {
    if context.kv.node() != 0 {
        return Rows::new();
    }
    let sessions = &context.backend.sessions;
    let (all, node, now_us) = (sessions.all(), shown_node(context.kv.as_ref()), context.kv.monotonic_us());
    let of = |number: u64| all.iter().find(|backend| backend.number == number);
    let pid = |number: u64| of(number).map(|backend| backend.pid.to_string());
    let row = |lock: crate::advisory::Shown| {
        let before = if lock.granted { Vec::new() } else { sessions.advisory.in_the_way_of(lock.session) };
        let holder = if lock.granted { Some(lock.session) } else { before.first().copied() };
        let waiter = (!lock.granted).then_some(lock.session);
        let since_us = waiter.and_then(|waiter| of(waiter)?.waits_for_lock_since_us());
        let blocked_by: Vec<String> = before.iter().filter_map(|number| pid(*number)).collect();
        vec![
            text("advisory"),
            None,
            None,
            Some(described(lock.key)),
            text(lock.mode.name()),
            text(lock.granted),
            ms(since_us.map(|since| now_us.saturating_sub(since).max(0))),
            holder.and(text(node)),
            holder.and_then(pid),
            waiter.and(text(node)),
            waiter.and_then(pid),
            (!blocked_by.is_empty()).then(|| blocked_by.join(",")),
            None,
            text(node),
            text(lines::hex(&lock.key.to_bytes())),
            None,
        ]
    };
    sessions.advisory.shown().into_iter().map(row).collect()
}

/// One row for each open transaction that holds locks, has written, or is prepared; the oldest first.
pub fn transactions(context: &Statement) -> Rows {
    let picture = Picture::take(context, Wanted::Transactions, true);
    let mut elsewhere: BTreeMap<TxnNumber, usize> = BTreeMap::new();
    for (txn, held) in &picture.held_elsewhere {
        *elsewhere.entry(*txn).or_default() += held;
    }
    let mut prepared: BTreeMap<TxnNumber, (BTreeSet<u64>, usize)> = BTreeMap::new();
    for part in &picture.prepared {
        let (ranges, keys) = prepared.entry(part.txn).or_default();
        *keys += if ranges.insert(part.range) { part.keys } else { 0 };
    }
    let mut known: Vec<&(u32, SessionTxn)> = picture.sessions.iter().filter(|(_, session)| !session.lasting).collect();
    known.sort_by_key(|(_, session)| std::cmp::Reverse(session.age_us));
    let lasting = picture.sessions.iter().filter(|(_, session)| session.lasting).filter_map(|(_, session)| session.txn);
    let lasting: BTreeSet<TxnNumber> = lasting.collect();
    let mut rows = Rows::new();
    for (node, session) in known {
        let held = session.txn.and_then(|txn| elsewhere.remove(&txn)).unwrap_or(0);
        let ranges = session.txn.and_then(|txn| prepared.remove(&txn)).map(|(ranges, _)| ranges);
        let state = match (&session.waits_us, &ranges, session.state.as_str()) {
            (Some(_), ..) => "waiting",
            (None, Some(_), _) => "prepared",
            (None, None, "active") => "active",
            _ => "idle",
        };
        rows.push(vec![
            text(node),
            text(session.pid),
            session.txn.map(|txn| txn.to_string()),
            Some(session.user.clone()),
            text(state),
            Some(session.state.clone()),
            ms(session.age_us),
            ms(session.waits_us),
            session.consistency.clone(),
            text(session.held + held),
            text(session.keys),
            text(session.bytes),
            ranges.map(|ranges| joined(&ranges)),
            session.query.clone(),
            None,
        ]);
    }
    // Those of nodes that have not answered, or have gone: their locks pass on after a while, and what they have prepared is decided without them.
    let left: BTreeSet<TxnNumber> = elsewhere.keys().chain(prepared.keys()).copied().collect();
    for txn in left.into_iter().filter(|txn| !lasting.contains(txn)) {
        let mut row = vec![None; TRANSACTION_COLUMNS.len()];
        let parts = prepared.get(&txn);
        (row[0], row[2]) = (text(shown(txn)), text(txn));
        row[4] = text(if parts.is_some() { "prepared" } else { "unknown" });
        row[9] = text(elsewhere.get(&txn).copied().unwrap_or(0));
        row[10] = parts.map(|(_, keys)| keys.to_string());
        row[12] = parts.map(|(ranges, _)| joined(ranges));
        rows.push(row);
    }
    let mut error = |node: u32, why: String| {
        let mut row = vec![None; TRANSACTION_COLUMNS.len()];
        (row[0], row[14]) = (Some(node.to_string()), Some(why));
        rows.push(row);
    };
    picture.silent.iter().for_each(|(node, why)| error(*node, why.clone()));
    let more = format!("it has more than {TRANSACTIONS_PER_NODE_MAX} transactions: the others are not shown");
    picture.cut.iter().for_each(|node| error(*node, more.clone()));
    rows
}

fn joined(ranges: &BTreeSet<u64>) -> String {
    ranges.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}
