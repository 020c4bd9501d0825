//! Where ranges are led: boundaries by SQL, leaders by taking a replica away from the one who leads and giving it back.

use super::{Cluster, ClusterError, PAUSE, START_MAX};
use crate::client::Client;
use std::time::Instant;

/// A range is led elsewhere after so many removals, or not at all: each leaves it to one of the others.
const TRIES: usize = 12;

/// A statement that makes ranges, for a table or an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary(pub &'static str);

/// A range: its number and leader.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    id: String,
    leader: usize,
}

/// The ranges in the order of their keys; `None` while one has no leader.
fn ranges(client: &mut Client) -> Result<Option<Vec<Range>>, ClusterError> {
    let rows = client.query("SELECT range_id, leader_node_id FROM timeball_internal.ranges ORDER BY start_key")?;
    let range = |row: Vec<Option<String>>| {
        let mut fields = row.into_iter();
        Some(Range { id: fields.next()??, leader: fields.next()??.parse().ok()? })
    };
    Ok(rows.into_iter().map(range).collect())
}

/// The ranges, once each has a leader.
fn settled(client: &mut Client) -> Result<Vec<Range>, ClusterError> {
    let began = Instant::now();
    loop {
        if let Some(found) = ranges(client)? {
            return Ok(found);
        }
        if began.elapsed() > START_MAX {
            let (what, why) = ("a range has no leader".to_owned(), "none was elected".to_owned());
            return Err(ClusterError::Late { what, seconds: START_MAX.as_secs(), why });
        }
        std::thread::sleep(PAUSE);
    }
}

/// Splits, and spreads the leaders of all ranges over the nodes in turn, in the order of their keys. How many ranges there are.
///
/// # Errors
/// A split is refused, or a range is led by the same node whatever is tried.
pub fn spread(cluster: &Cluster, boundaries: &[Boundary]) -> Result<usize, ClusterError> {
    let mut client = Client::connect(&cluster.url_of(0, &[]))?;
    for Boundary(statement) in boundaries {
        client.query(statement)?;
    }
    let count = settled(&mut client)?.len();
    // At once: each takes a second or two, and none concerns another.
    let moved: Vec<Result<(), ClusterError>> = std::thread::scope(|scope| {
        let moving: Vec<_> = (0..count).map(|at| scope.spawn(move || lead(cluster, at))).collect();
        moving.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    moved.into_iter().collect::<Result<(), _>>()?;
    Ok(count)
}

/// The range at this place is led by the node whose turn it is.
fn lead(cluster: &Cluster, at: usize) -> Result<(), ClusterError> {
    let wanted = at % cluster.size() + 1;
    let mut client = Client::connect(&cluster.url_of(wanted - 1, &[]))?;
    for _ in 0..TRIES {
        let found = settled(&mut client)?;
        let Some(range) = found.get(at).filter(|range| range.leader != wanted) else { return Ok(()) };
        let (node, host) = (range.leader.to_string(), cluster.peer_addr(wanted - 1));
        for end in ["--from", "--to"] {
            cluster.command(&["range", "move", &range.id, end, &node, "--host", &host])?;
        }
    }
    let what = format!("n{wanted} does not lead the range at place {}", at + 1);
    Err(ClusterError::Late { what, seconds: 0, why: format!("{TRIES} attempts to move it") })
}
