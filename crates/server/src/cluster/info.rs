//! What a member says of itself and its cluster: rows for `timeball_internal`, fields for `/health`, metrics.

use super::identity::{Charter, Place};
use super::{ClusterNode, Inner};
use crate::kv::Shell;
use crate::kv::info::{FULL, clock_table, health_fields, hex, memory_table, named, past_table, text};
use crate::metrics::MetricsText;
use clock::Timestamp;
use node::Span;
use node::cluster::{NodeId, RangeStatus, Role, VERSION_MAX, VERSION_MIN};
use sql::internal;
use std::sync::atomic::Ordering::SeqCst;
use store::Engine;
use transport::LinkStatus;

type Table = (Vec<String>, Vec<Vec<Option<String>>>);

pub(super) fn table<E: Engine>(inner: &Inner<E>, name: &str) -> Option<Table> {
    match name {
        "clocks" => {
            let (member, charter) = (&inner.member, inner.charter());
            let level = member.clock_level();
            // Of a node that will not come again the clock is nobody's.
            let gone =
                |node: u32| charter.members.iter().any(|place| place.node == node && heir(&charter, place).is_some());
            let peers = member.peer_clocks().into_iter().filter(|clock| !gone(clock.word.peer)).collect();
            Some(clock_table(inner.node, &inner.clock, level, member.clock_last(), peers))
        }
        "memory" => Some(memory_table(&inner.memory, inner.member.versions())),
        "nodes" => Some(nodes(inner)),
        "ranges" => Some(ranges(inner)),
        "past" => {
            let (member, kept) = (&inner.member, inner.kept.lock().clone().unwrap_or_default());
            let here = member.ranges_over(&Span::ALL).into_iter().filter_map(|(_, id)| member.status(id));
            let collected = here.map(|status| status.collected).fold(member.versions().collected(), Timestamp::max);
            Some(past_table(member.versions(), collected, inner.retention_seconds, &kept))
        }
        "led" => Some(led(inner)),
        _ => None,
    }
}

/// Rows of a table that [`status_text`] gives: an answer has a greatest size.
const STATUS_ROWS_MAX: usize = 200;
/// A replica that is so many entries behind its leader is said to catch up.
const CATCHING_UP_ENTRIES: u64 = 1000;
/// Characters of a cell of it.
const STATUS_CELL_MAX: usize = 80;

/// The columns that an operator wants of both tables; `holds` is no column of this node's own.
const STATUS_COLUMNS: [&str; 17] = [
    "node_id",
    "address",
    "locality",
    "state",
    "release",
    "clock_error_ns",
    "last_error",
    "range_id",
    "start_key",
    "leader_node_id",
    "replicas",
    "role",
    "term",
    "lease_until",
    "holds",
    "applied",
    "cluster_version",
];

/// What an operator is told at the peers' address, also where nothing can be served. See [`super::control::status`].
pub(super) fn status_text<E: Engine>(inner: &Inner<E>) -> String {
    let mut text = String::new();
    for (title, (columns, rows)) in [("Nodes", nodes(inner)), ("Ranges", with_leases(inner, ranges(inner)))] {
        let shown = STATUS_COLUMNS.iter().filter_map(|name| columns.iter().position(|column| column == name));
        let shown: Vec<usize> = shown.collect();
        let cells = |cell: &dyn Fn(usize) -> String| shown.iter().map(|at| cell(*at)).collect::<Vec<_>>().join("\t");
        text.push_str(&format!("{title}\n{}\n", cells(&|at| columns[at].clone())));
        for row in rows.iter().take(STATUS_ROWS_MAX) {
            let whole = |at: usize| row[at].as_deref().filter(|cell| !cell.is_empty()).unwrap_or("-");
            let cell = |at: usize| whole(at).chars().take(STATUS_CELL_MAX).collect::<String>();
            text.push_str(&format!("{}\n", cells(&cell)));
        }
        if rows.len() > STATUS_ROWS_MAX {
            text.push_str(&format!("({} more)\n", rows.len() - STATUS_ROWS_MAX));
        }
        text.push('\n');
    }
    text
}

/// What those say that lead ranges, in place of what this node believes, and whether their leases hold. Who does not answer in time leaves what it leads as it is known here.
fn with_leases<E: Engine>(inner: &Inner<E>, (mut columns, mut rows): Table) -> Table {
    let all = inner.charter();
    let others = all.members.iter().filter(|place| place.node != inner.node);
    let others = others.map(|place| (place.node, place.addr.clone())).collect();
    let stop = &mut || inner.stopping.load(SeqCst);
    let told = super::peers::ask(others, &["leases 0".to_owned()], sql::peers::next_question, stop);
    let theirs = told.iter().flat_map(|told| told.answers.iter().map(|text| (told.node, sql::peers::rows_of(text))));
    let mut leases = std::collections::BTreeMap::new();
    for (node, led) in theirs.chain([(inner.node, led(inner).1)]) {
        for row in led.into_iter().filter(|row| row.len() >= LED_COLUMNS_MIN && row[5].is_some()) {
            let holds = row
                .get(6)
                .and_then(Option::as_deref)
                .and_then(|word| word.split_once(' '))
                .map(|(_, holds)| holds.to_owned());
            leases.insert(row[0].clone(), (node, row[5].clone(), holds));
        }
    }
    let at = |name: &str| columns.iter().position(|column| column == name);
    let (leader, until) = (at("leader_node_id"), at("lease_until"));
    for row in &mut rows {
        let lease = leases.remove(&row[0]);
        if let (Some((node, lease_until, _)), Some(leader), Some(until)) = (&lease, leader, until) {
            (row[leader], row[until]) = (text(node), lease_until.clone());
        }
        row.push(lease.and_then(|(_, _, holds)| holds));
    }
    columns.push("holds".to_owned());
    (columns, rows)
}

/// A store that was wiped came back as another node, at the same address: who was there before will not come again.
fn heir<'a>(charter: &'a Charter, place: &Place) -> Option<&'a Place> {
    charter.members.iter().find(|other| other.addr == place.addr && other.node > place.node)
}

/// The nodes of the charter, and how this one reaches them.
fn nodes<E: Engine>(inner: &Inner<E>) -> Table {
    let columns = named(&internal::NODES);
    let links = inner.transport.get().map(transport::Transport::links).unwrap_or_default();
    let clocks = inner.member.peer_clocks();
    let charter = inner.charter();
    let ailing = inner.ailing.lock().clone();
    let row = |place: &Place| {
        let heir = heir(&charter, place);
        let link = links.iter().find(|link| link.node == place.node);
        let here = place.node == inner.node;
        // A link stands for as long as the peer's kernel answers, though nothing is said.
        let silent = link.filter(|link| link.up).and_then(|_| inner.member.unheard_for(NodeId(place.node)));
        let state = match link {
            _ if here => "this node",
            Some(_) if silent.is_some() => "silent",
            Some(link) if link.up => "connected",
            _ if heir.is_some() => "replaced",
            Some(_) => "unreachable",
            None => "unknown",
        };
        let release = match link {
            _ if here => Some(env!("CARGO_PKG_VERSION").to_owned()),
            link => link.and_then(|link| Some(link.seen.as_ref()?.1.clone())),
        };
        let knows = match link {
            _ if here => Some(VERSION_MIN..=VERSION_MAX),
            link => link.and_then(|link| link.knows.clone()),
        };
        let claim = clocks.iter().find(|clock| clock.word.peer == place.node).and_then(|clock| clock.word.claim);
        let error_ns = if here { inner.clock.error_ns() } else { claim.map(|interval| interval.error_ns()) };
        vec![
            text(place.node),
            text(&place.addr),
            Some(place.locality.clone()).filter(|locality| !locality.is_empty()),
            Some(format!("{:032x}", place.store)),
            text(state),
            release,
            knows.map(|knows| format!("{} to {}", knows.start(), knows.end())),
            error_ns.map(|ns| ns.to_string()),
            link.map(|link| sent(link).to_string()),
            link.map(|link| received(link).to_string()),
            link.map(|link| link.dropped_parcels().to_string()),
            match heir.filter(|_| state == "replaced") {
                Some(heir) => Some(format!("n{} is at its address", heir.node)),
                None if here => inner.is_full(0).then(|| FULL.to_owned()),
                None => match silent {
                    Some(silent) => Some(format!("nothing heard for {} s", silent.as_secs())),
                    None => ailing.get(&place.node).cloned().or_else(|| link.and_then(last_error)),
                },
            },
        ]
    };
    (columns, charter.members.iter().map(row).collect())
}

/// What went wrong last, and when. What went wrong before a link came up is over.
fn last_error(link: &LinkStatus) -> Option<String> {
    let (error, ago) = link.last_error.as_ref()?;
    let is_over = link.up && *ago >= link.since;
    (!is_over).then(|| format!("{error} ({} s ago)", ago.as_secs()))
}

/// The ranges as far as this node knows them; what a replica here does, where there is one.
fn ranges<E: Engine>(inner: &Inner<E>) -> Table {
    let columns = named(&internal::RANGES);
    let ranges = inner.member.ranges_over(&Span::ALL);
    let ends = ranges.iter().skip(1).map(|(start, _)| Some(hex(start))).chain([None]);
    let row = |((start, id), end): (&(bytes::Bytes, node::RangeId), Option<String>)| {
        let mut row = vec![text(id.0), Some(hex(start)), end, text("raft")];
        match inner.member.status(*id) {
            None => row.extend(elsewhere(inner.member.route(*id))),
            Some(status) => row.extend(replica(inner.node, status)),
        }
        row
    };
    (columns, ranges.iter().zip(ends).map(row).collect())
}

/// So many columns of [`led`] every release tells; a newer one may tell more, and an older one whether a lease holds not.
const LED_COLUMNS_MIN: usize = 6;

/// What this node leads, as it believes: range, start key, end key, term, from and until when its lease holds, and how long that is still by its own
/// clock (milliseconds) and whether it does: `yes`, `no`, or `perhaps` while the end lies within the clock's error ([`sql::contention`]).
fn led<E: Engine>(inner: &Inner<E>) -> Table {
    let now = inner.clock.read().trusted();
    let ranges = inner.member.ranges_over(&Span::ALL);
    let ends = ranges.iter().skip(1).map(|(start, _)| Some(hex(start))).chain([None]);
    let row = |((start, id), end): (&(bytes::Bytes, node::RangeId), Option<String>)| {
        let status = inner.member.status(*id).filter(|status| status.role == Role::Leader)?;
        let (from, until) = status.lease.unzip();
        let holds = match (until, now) {
            (None, _) => "- no".to_owned(),
            (Some(_), None) => "- perhaps".to_owned(),
            (Some(until), Some(now)) => {
                let left_us = until.physical_us() as i64 - now.latest().physical_us() as i64;
                let word = match () {
                    () if left_us > 0 => "yes",
                    () if until.physical_us() <= now.earliest().physical_us() => "no",
                    () => "perhaps",
                };
                format!("{} {word}", left_us / 1000)
            }
        };
        let (from, until) = (from.and_then(text), until.and_then(text));
        Some(vec![text(id.0), Some(hex(start)), end, text(status.term), from, until, Some(holds)])
    };
    (Vec::new(), ranges.iter().zip(ends).filter_map(row).collect())
}

fn list(nodes: &[NodeId]) -> Option<String> {
    let all: Vec<String> = nodes.iter().map(|node| node.0.to_string()).collect();
    Some(all.join(","))
}

/// Of a range without a replica here: what its requests go by.
fn elsewhere(route: Option<(Option<NodeId>, Vec<NodeId>)>) -> [Option<String>; 11] {
    let (leader, replicas) = route.unwrap_or_default();
    let mut row = [const { None }; 11];
    row[0] = leader.map(|leader| leader.0.to_string());
    row[1] = list(&replicas).filter(|replicas| !replicas.is_empty());
    row
}

fn replica(node: u32, status: RangeStatus) -> [Option<String>; 11] {
    let role = match status.role {
        Role::Leader => "leader",
        Role::Candidate => "candidate",
        Role::Follower => "follower",
    };
    let leader = if status.role == Role::Leader { Some(node) } else { status.leader.map(|leader| leader.0) };
    [
        leader.map(|leader| leader.to_string()),
        list(&status.voters),
        list(&status.learners),
        text(role),
        text(status.term),
        status.lease.map(|(_, until)| until.to_string()),
        text(status.applied),
        text(status.prepared),
        text(status.parked),
        text(status.version),
        text(status.commits),
    ]
}

impl<E: Engine> crate::NodeView for ClusterNode<E> {
    fn health(&self) -> Vec<(&'static str, String)> {
        let inner = &self.inner;
        let charter = inner.charter();
        let links = inner.transport.get().map(transport::Transport::links).unwrap_or_default();
        let connected = links.iter().filter(|link| link.up).count();
        let status = if self.is_healthy() { "\"ok\"" } else { "\"failed\"" };
        let mut fields = vec![
            ("status", status.to_owned()),
            ("node", inner.node.to_string()),
            ("cluster", format!("\"{:016x}\"", charter.cluster)),
            ("nodes", charter.members.len().to_string()),
            ("cluster_version", charter.version.to_string()),
            ("peers_connected", connected.to_string()),
            ("ranges_led", leads(inner).to_string()),
            ("ranges_catching_up", catching_up(inner).to_string()),
        ];
        fields.extend(health_fields(&inner.clock, inner.member.clock_level(), &inner.memory, &inner.broken));
        fields
    }
    fn is_healthy(&self) -> bool {
        self.inner.broken.lock().is_none()
    }
    fn removed(&self) -> Option<String> {
        self.inner.removed.get().cloned()
    }
    fn not_ready(&self) -> Option<String> {
        let silent = self.inner.member.not_ready(&sql::catalog::key::VERSION_KEY);
        silent.or_else(|| self.inner.is_full(0).then(|| FULL.to_owned()))
    }
    fn render(&self, text: &mut MetricsText) {
        let inner = &self.inner;
        let member = &inner.member;
        for (name, help, value) in member.counters().all() {
            text.counter(name, help, value);
        }
        crate::kv::info::render_clock(text, &inner.clock, member.clock_level().0);
        let (locked, queued) = member.lock_counts();
        text.gauge("lock_keys", "Rows locked", locked as u64);
        text.gauge("lock_waiters", "Transactions, of any node, that queue for a row that is led here", queued as u64);
        let waiting = member.waiting_for_locks() as u64;
        text.gauge("lock_waiters_own", "Transactions of this node that queue for a row, wherever it is led", waiting);
        text.gauge("ranges", "Replicas of ranges on this node", member.ranges().len() as u64);
        text.gauge("ranges_led", "Ranges that this node leads under a lease", leads(inner) as u64);
        let behind = catching_up(inner) as u64;
        text.gauge("ranges_catching_up", "Replicas here that are far behind their leaders, or get a snapshot", behind);
        let (held, lost) = member.session_locks();
        text.gauge("advisory_locks", "Advisory locks that sessions of this node hold", held as u64);
        text.gauge("advisory_locks_lost", "Those that they believe to hold, and do not", lost as u64);
        let silent = member.silent_ranges() as u64;
        text.gauge("ranges_silent", "Replicas here whose range has no leader that this node hears", silent);
        text.gauge("transactions_committing", "Transactions that this node sees to", member.committing() as u64);
        text.gauge("log_segments", "Segments of the log in use", inner.journal.log().segments() as u64);
        let links = inner.transport.get().map(transport::Transport::links).unwrap_or_default();
        let up = links.iter().filter(|link| link.up).count();
        text.gauge("peers_connected", "Peers that this node reaches", up as u64);
        let sum = |of: fn(&LinkStatus) -> u64| links.iter().map(of).sum::<u64>();
        text.counter("peer_messages_sent", "Messages that were sent to peers", sum(sent));
        text.counter("peer_messages_received", "Messages that came from peers", sum(received));
        text.counter("peer_messages_dropped", "Messages for which there was no room", sum(LinkStatus::dropped_parcels));
        crate::kv::info::render_store(text, member.versions(), &inner.memory);
    }
}

/// Ranges that this node leads under a lease.
fn leads<E: Engine>(inner: &Inner<E>) -> usize {
    let led = |range: &node::RangeId| inner.member.status(*range).is_some_and(|status| status.lease.is_some());
    inner.member.ranges().iter().filter(|range| led(range)).count()
}

/// Replicas here that are so far behind that it shows, or get a snapshot. A node with such replicas serves: it asks others.
fn catching_up<E: Engine>(inner: &Inner<E>) -> usize {
    let behind = |status: RangeStatus| status.installing || status.behind >= CATCHING_UP_ENTRIES;
    inner.member.ranges().iter().filter(|range| inner.member.status(**range).is_some_and(behind)).count()
}

fn sent(link: &LinkStatus) -> u64 {
    link.lanes.iter().map(|lane| lane.sent_parcels).sum()
}

fn received(link: &LinkStatus) -> u64 {
    link.lanes.iter().map(|lane| lane.received_parcels).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_went_wrong_before_a_link_came_up_is_over() {
        let link = |up, since_s, ago_s| LinkStatus {
            node: 2,
            store: 7,
            addr: "127.0.0.1:26357".into(),
            up,
            since: Duration::from_secs(since_s),
            seen: None,
            knows: None,
            lanes: Default::default(),
            failures: 1,
            last_error: Some(("refused".into(), Duration::from_secs(ago_s))),
        };
        assert_eq!(last_error(&link(true, 49, 50)), None);
        assert_eq!(last_error(&link(true, 50, 49)).as_deref(), Some("refused (49 s ago)"));
        assert_eq!(last_error(&link(false, 49, 50)).as_deref(), Some("refused (50 s ago)"));
    }
}
