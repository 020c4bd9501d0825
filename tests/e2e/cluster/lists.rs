//! Clients at all nodes of a cluster that append to lists and read them, while somebody breaks things; and the judge of what they saw.

use super::again;
use super::nodes::{Nodes, Urls};
use crate::node::{state, until};
use checker::appends::{Promises, Step, Txn, judge};
use checker::{Key, Outcome};
use postgres::{Client, NoTls};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Lists, in three ranges.
const LISTS: u64 = 6;
/// Clients of each node.
const CLIENTS: u64 = 2;
/// Commits at a node after which it is taken to serve.
const SERVES: u64 = 10;
/// The longest transaction.
const STEPS_MAX: usize = 3;

/// What the clients share.
struct Shared {
    urls: Urls,
    open: AtomicBool,
    began: Instant,
    next: AtomicU64,
    commits: Vec<AtomicU64>,
    history: Mutex<Vec<Txn>>,
}

/// Clients that run.
pub struct Load {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    /// Makes the lists, and begins.
    pub fn start(nodes: &Nodes) -> Load {
        let mut client = nodes.at(0).connect();
        client.batch_execute("CREATE TABLE lists (id int8 PRIMARY KEY, v text NOT NULL)").unwrap();
        client.batch_execute("ALTER TABLE lists SPLIT AT VALUES (2), (4)").unwrap();
        client.execute("INSERT INTO lists SELECT g, '' FROM generate_series(0, $1) g", &[&(LISTS as i32 - 1)]).unwrap();
        let count = nodes.peers().len();
        let shared = Arc::new(Shared {
            urls: nodes.urls(),
            open: AtomicBool::new(true),
            began: Instant::now(),
            next: AtomicU64::new(1),
            commits: (0..count).map(|_| AtomicU64::new(0)).collect(),
            history: Mutex::new(Vec::new()),
        });
        let spawn = |client: u64| {
            let shared = shared.clone();
            std::thread::spawn(move || shared.run(client as usize % count, client))
        };
        Load { clients: (0..CLIENTS * count as u64).map(spawn).collect(), shared }
    }

    /// Waits until each of these nodes has served more.
    pub fn served_at(&self, nodes: &[usize]) {
        let commits = |at: &usize| self.shared.commits[*at].load(SeqCst);
        let before: Vec<u64> = nodes.iter().map(commits).collect();
        until("the nodes serve", || {
            let more = nodes.iter().zip(&before).all(|(at, before)| commits(at) >= before + SERVES);
            more.then_some(())
        });
    }

    /// Ends the clients and judges what they saw, as strictly serializable.
    pub fn judge(self, nodes: &Nodes) {
        self.judge_for(nodes, Promises { real_time: true });
    }

    /// As [`Load::judge`], for what could be promised.
    pub fn judge_for(self, nodes: &Nodes, promises: Promises) {
        self.shared.open.store(false, SeqCst);
        self.clients.into_iter().for_each(|client| client.join().unwrap());
        let mut reader = nodes.at(0).connect();
        let rows = until("the lists can be read", || match reader.query("SELECT id, v FROM lists", &[]) {
            Ok(rows) => Some(rows),
            Err(e) if again(&e) => None,
            Err(e) => panic!("{e}: {:?}", e.as_db_error()),
        });
        let last: BTreeMap<Key, Vec<u64>> =
            rows.iter().map(|row| (row.get::<_, i64>(0) as Key, parse(row.get(1)))).collect();
        let history = self.shared.history.lock().unwrap();
        let verdict = judge(&history, &last, promises);
        let count = |outcome: Outcome| history.iter().filter(|txn| txn.outcome == outcome).count();
        let (committed, aborted, unknown) =
            (count(Outcome::Committed), count(Outcome::Aborted), count(Outcome::Unknown));
        eprintln!("{committed} transactions committed, {aborted} were refused, of {unknown} it is not known");
        assert!(
            verdict.is_good(),
            "{} found: {:#?}",
            verdict.found.len(),
            &verdict.found[..verdict.found.len().min(5)]
        );
    }
}

fn parse(list: &str) -> Vec<u64> {
    list.split(',').filter(|value| !value.is_empty()).map(|value| value.parse().unwrap()).collect()
}

impl Shared {
    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn run(&self, at: usize, seed: u64) {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut client: Option<Client> = None;
        while self.open.load(SeqCst) {
            let url = self.urls.lock().unwrap()[at].clone();
            let Some(open) = client.as_mut().filter(|client| !client.is_closed()) else {
                client = url.and_then(|url| Client::connect(&url, NoTls).ok());
                if client.is_none() {
                    std::thread::sleep(Duration::from_millis(20)); // poll: the node is down, or does not serve
                }
                continue;
            };
            let txn = self.transaction(open, &mut rng);
            if txn.outcome == Outcome::Committed {
                self.commits[at].fetch_add(1, SeqCst);
            }
            self.history.lock().unwrap().push(txn);
        }
    }

    fn transaction(&self, client: &mut Client, rng: &mut SmallRng) -> Txn {
        let began = self.now();
        let mut txn = Txn {
            id: self.next.fetch_add(1, SeqCst),
            began,
            ended: u64::MAX,
            outcome: Outcome::Aborted,
            steps: Vec::new(),
        };
        if self.steps(client, rng, &mut txn.steps).is_ok() {
            txn.outcome = match client.batch_execute("COMMIT") {
                Ok(()) => Outcome::Committed,
                Err(e) if again(&e) || state(&e) == "57014" => Outcome::Aborted,
                Err(_) => Outcome::Unknown,
            };
        }
        if txn.outcome != Outcome::Unknown {
            txn.ended = self.now();
        }
        if txn.outcome != Outcome::Committed && !client.is_closed() {
            // A connection that is lost is noticed at the next statement.
            let _ = client.batch_execute("ROLLBACK");
        }
        txn
    }

    fn steps(&self, client: &mut Client, rng: &mut SmallRng, steps: &mut Vec<Step>) -> Result<(), postgres::Error> {
        client.batch_execute("BEGIN ISOLATION LEVEL SERIALIZABLE")?;
        for _ in 0..rng.random_range(1..=STEPS_MAX) {
            let key = rng.random_range(0..LISTS);
            if rng.random_bool(0.4) {
                let value = self.next.fetch_add(1, SeqCst);
                steps.push(Step::Append(key, value));
                client.execute("UPDATE lists SET v = v || $2 WHERE id = $1", &[&(key as i64), &format!("{value},")])?;
            } else {
                let row = client.query_one("SELECT v FROM lists WHERE id = $1", &[&(key as i64)])?;
                steps.push(Step::Read(key, parse(row.get(0))));
            }
        }
        Ok(())
    }
}
