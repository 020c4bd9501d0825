//! Where ranges are led: boundaries by SQL, leaders by taking a replica away from the one who leads and giving it back. Nothing pins them there: who measures
//! asks afterwards whether they have stayed ([`Placement::check`]).

use super::{Cluster, ClusterError, PAUSE, START_MAX};
use crate::client::Client;
use std::time::Instant;

/// A range is led elsewhere after so many removals, or not at all: each leaves it to one of the others.
const TRIES: usize = 12;

/// A statement that makes ranges, for a table or an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary(pub &'static str);

/// A range: its number and leader, and since which election.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    id: String,
    leader: usize,
    term: u64,
}

/// Where ranges were led when all had been put in their places.
#[derive(Debug)]
pub struct Placement(Vec<Range>);

impl Placement {
    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All ranges are led where they were, and were so all the time since: nobody was elected anew.
    ///
    /// # Errors
    /// [`ClusterError::Moved`] names one that was not; those of asking.
    pub fn check(&self, cluster: &Cluster) -> Result<(), ClusterError> {
        let mut client = Client::connect(&cluster.url_of(0, &[]))?;
        self.compare(&settled(&mut client)?)
    }

    fn compare(&self, now: &[Range]) -> Result<(), ClusterError> {
        let led = |range: &Range| format!("led by n{} since election {}", range.leader, range.term);
        for was in &self.0 {
            let is = now.iter().find(|range| range.id == was.id);
            if is != Some(was) {
                let (id, was, is) = (was.id.clone(), led(was), is.map_or_else(|| "gone".to_owned(), led));
                return Err(ClusterError::Moved { range: id, was, is });
            }
        }
        match now.iter().find(|range| self.0.iter().all(|was| was.id != range.id)) {
            Some(new) => {
                let (range, was, is) = (new.id.clone(), "not there".to_owned(), led(new));
                Err(ClusterError::Moved { range, was, is })
            }
            None => Ok(()),
        }
    }
}

/// The ranges in the order of their keys; `None` while one has no leader, or a node does not answer. Those say it who lead: the node that is asked may not have heard of the
/// last election.
fn ranges(client: &mut Client) -> Result<Option<Vec<Range>>, ClusterError> {
    Ok(led(client.query("SELECT range_id, leader_node_id, term FROM timeball_internal.leases ORDER BY start_key")?))
}

/// See [`ranges`].
fn led(rows: Vec<Vec<Option<String>>>) -> Option<Vec<Range>> {
    let mut found: Vec<Range> = Vec::new();
    for row in rows {
        let mut fields = row.into_iter();
        let (id, leader, term) = (fields.next()??, fields.next()??, fields.next()??);
        let range = Range { id, leader: leader.parse().ok()?, term: term.parse().ok()? };
        // Two may believe that they lead: one of them did.
        match found.iter_mut().find(|other| other.id == range.id) {
            Some(other) if other.term < range.term => *other = range,
            Some(_) => {}
            None => found.push(range),
        }
    }
    Some(found)
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

/// Splits, and spreads the leaders of all ranges over the nodes in turn, in the order of their keys. Where they are led then.
///
/// # Errors
/// A split is refused, or a range is led by the same node whatever is tried.
pub fn spread(cluster: &Cluster, boundaries: &[Boundary]) -> Result<Placement, ClusterError> {
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
    placed(cluster, &mut client)
}

/// The node whose turn it is to lead the range at this place.
fn turn(cluster: &Cluster, at: usize) -> usize {
    at % cluster.size() + 1
}

/// The places, once the node that is asked has heard of all.
fn placed(cluster: &Cluster, client: &mut Client) -> Result<Placement, ClusterError> {
    let began = Instant::now();
    loop {
        let found = settled(client)?;
        let Some((at, range)) = found.iter().enumerate().find(|(at, range)| range.leader != turn(cluster, *at)) else {
            return Ok(Placement(found));
        };
        if began.elapsed() > START_MAX {
            let what = format!("n{} does not lead range {}", turn(cluster, at), range.id);
            let why = format!("n1 says that n{} does", range.leader);
            return Err(ClusterError::Late { what, seconds: START_MAX.as_secs(), why });
        }
        std::thread::sleep(PAUSE);
    }
}

/// The range at this place is led by the node whose turn it is.
fn lead(cluster: &Cluster, at: usize) -> Result<(), ClusterError> {
    let wanted = turn(cluster, at);
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

#[cfg(test)]
mod tests {
    use super::{Placement, Range, led};

    fn ranges<const N: usize>(all: [(&str, usize, u64); N]) -> Vec<Range> {
        all.map(|(id, leader, term)| Range { id: id.to_owned(), leader, term }).into()
    }

    /// A leader that went and came back is noticed by the election.
    #[test]
    fn who_did_not_stay_is_named() {
        let placed = Placement(ranges([("1", 1, 5), ("2", 2, 7)]));
        placed.compare(&ranges([("1", 1, 5), ("2", 2, 7)])).unwrap();
        for (now, said) in [
            (
                ranges([("1", 1, 5), ("2", 3, 8)]),
                "range 2 was led by n2 since election 7, and is led by n3 since election 8",
            ),
            (
                ranges([("1", 1, 9), ("2", 2, 7)]),
                "range 1 was led by n1 since election 5, and is led by n1 since election 9",
            ),
            (ranges([("1", 1, 5), ("4", 2, 7)]), "range 2 was led by n2 since election 7, and is gone"),
            (
                ranges([("1", 1, 5), ("2", 2, 7), ("4", 3, 1)]),
                "range 4 was not there, and is led by n3 since election 1",
            ),
        ] {
            let error = placed.compare(&now).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn of_two_who_believe_that_they_lead_the_later_one_does() {
        let row = |fields: [&str; 3]| fields.map(|field| (!field.is_empty()).then(|| field.to_owned())).to_vec();
        let rows = |all: &[[&str; 3]]| all.iter().copied().map(row).collect::<Vec<_>>();
        let all = rows(&[["1", "2", "8"], ["2", "2", "7"], ["1", "1", "5"]]);
        assert_eq!(led(all), Some(ranges([("1", 2, 8), ("2", 2, 7)])));
        assert_eq!(led(rows(&[["1", "2", "8"], ["2", "3", ""]])), None, "nobody who answers leads it");
        assert_eq!(led(rows(&[["1", "2", "8"], ["", "3", ""]])), None, "a node does not answer");
    }
}
