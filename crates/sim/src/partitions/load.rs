//! What clients do: transactions that read and update blocks of items.
//!
//! A block is some items whose keys follow each other, in one partition: it is read by one request wherever it lies, as a store that is asked for
//! several items at once does.

use crate::rng::Rng;
use bytes::Bytes;

/// What a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It reads only.
    Read,
    /// It writes.
    Update,
}

/// A transaction to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// What it is.
    pub kind: Kind,
    /// Blocks to be read, one after the other: partition, first item, items.
    pub reads: Vec<(usize, u64, u64)>,
    /// Single items to be read, one after the other.
    pub gets: Vec<(usize, u64)>,
    /// Items to be written.
    pub writes: Vec<(usize, u64)>,
    /// How old its snapshot is, microseconds.
    pub age_us: u64,
}

/// What a client draws its transactions from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Reads a block of so many items at each of so many partitions, its own first.
    ReadBlocks {
        /// Items of a partition.
        items: u64,
        /// Items of a block.
        block: u64,
        /// Partitions.
        partitions: usize,
    },
    /// As `ReadBlocks`, so many times: each round goes to all of these partitions, one after the other.
    ReadRounds {
        /// Items of a partition.
        items: u64,
        /// Items of a block.
        block: u64,
        /// Partitions.
        partitions: usize,
        /// Rounds.
        rounds: u64,
    },
    /// Writes so many items at each of so many partitions, its own first.
    Update {
        /// Items of a partition.
        items: u64,
        /// Items written.
        writes: u64,
        /// Partitions.
        partitions: usize,
    },
    /// 004 section 2.6.3: posts of ten go to three partitions, the others read the latest of one.
    Feed {
        /// Items of a partition.
        items: u64,
        /// Of a hundred transactions, how many post.
        posts_percent: u64,
        /// Tweets that are read.
        latest: u64,
        /// Partitions that a post goes to.
        followers_at: usize,
    },
    /// Reads single items of its own partition, each a hot one with a probability.
    ReadHot {
        /// Items that are hot: the first ones.
        hot: u64,
        /// Items of a partition.
        items: u64,
        /// Items read.
        reads: u64,
        /// Of a thousand items read, how many are hot.
        permille: u64,
        /// How old the snapshot is, microseconds.
        age_us: u64,
    },
    /// Reads one item, or writes it, of one partition.
    One {
        /// How many partitions further than its own.
        further: usize,
        /// Items of a partition.
        items: u64,
        /// It writes.
        writes: bool,
        /// How old the snapshot is, microseconds.
        age_us: u64,
    },
    /// Writes so many of the hot items.
    UpdateHot {
        /// Items that are hot.
        hot: u64,
        /// Items written.
        writes: u64,
    },
}

/// So many different partitions, this one first.
fn from(home: usize, count: usize, partitions: usize) -> impl Iterator<Item = usize> {
    (0..count.min(partitions)).map(move |n| (home + n) % partitions)
}

fn distinct(below: u64, count: u64, rng: &mut Rng) -> Vec<u64> {
    let mut found: Vec<u64> = Vec::new();
    while (found.len() as u64) < count.min(below) {
        let item = rng.below(below);
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

impl Shape {
    /// A transaction of a client at this partition.
    pub fn draw(&self, home: usize, partitions: usize, rng: &mut Rng) -> Task {
        let mut task = Task { kind: Kind::Read, reads: Vec::new(), gets: Vec::new(), writes: Vec::new(), age_us: 0 };
        match self {
            Shape::ReadBlocks { items, block, partitions: at } => {
                task.reads =
                    from(home, *at, partitions).map(|p| (p, rng.below(items / block) * block, *block)).collect();
            }
            Shape::ReadRounds { items, block, partitions: at, rounds } => {
                let at: Vec<usize> = from(home, *at, partitions).collect();
                let all = (0..*rounds).flat_map(|_| at.iter());
                task.reads = all.map(|p| (*p, rng.below(items / block) * block, *block)).collect();
            }
            Shape::Update { items, writes, partitions: at } => {
                task.kind = Kind::Update;
                let at: Vec<usize> = from(home, *at, partitions).collect();
                task.writes = at
                    .into_iter()
                    .flat_map(|p| distinct(*items, *writes, rng).into_iter().map(move |item| (p, item)))
                    .collect();
            }
            Shape::Feed { items, posts_percent, followers_at, .. } if rng.chance(*posts_percent) => {
                task.kind = Kind::Update;
                task.writes = from(home, *followers_at, partitions).map(|p| (p, rng.below(*items))).collect();
            }
            Shape::Feed { items, latest, .. } => {
                task.reads = vec![(home, rng.below(items / latest) * latest, *latest)];
            }
            Shape::ReadHot { hot, items, reads, permille, age_us } => {
                task.age_us = *age_us;
                let item = |rng: &mut Rng| match rng.below(1_000) < *permille {
                    true => rng.below(*hot),
                    false => rng.range(*hot, *items),
                };
                task.gets = (0..*reads).map(|_| (home, item(rng))).collect();
            }
            Shape::One { further, items, writes, age_us } => {
                let one = ((home + further) % partitions, rng.below(*items));
                (task.age_us, task.gets) = (*age_us, if *writes { Vec::new() } else { vec![one] });
                if *writes {
                    (task.kind, task.writes) = (Kind::Update, vec![one]);
                }
            }
            Shape::UpdateHot { hot, writes } => {
                task.kind = Kind::Update;
                task.writes = distinct(*hot, *writes, rng).into_iter().map(|item| (home, item)).collect();
            }
        }
        task
    }
}

/// The key of an item.
pub(super) fn key(partition: usize, item: u64) -> Bytes {
    Bytes::from([&(partition as u16 + 1).to_be_bytes()[..], &item.to_be_bytes()].concat())
}

/// The number of a key: none other has it, below 2^48 items.
pub(super) fn number(key: &[u8]) -> u64 {
    // Two bytes of the partition, and the lower six of eight of the item.
    let bytes = key.iter().take(2).chain(key.iter().skip(4));
    bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The first key of a partition's range; the first range begins at the empty key.
pub(super) fn start(partition: usize) -> Bytes {
    if partition == 0 { Bytes::new() } else { key(partition, 0) }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Shape, key, number, start};
    use crate::rng::Rng;

    #[test]
    fn keys_have_numbers_of_their_own() {
        assert_eq!(
            [number(&key(0, 7)), number(&key(1, 7)), number(&key(0, 0x1_0000))],
            [1 << 48 | 7, 2 << 48 | 7, 1 << 48 | 0x1_0000]
        );
    }

    #[test]
    fn transactions_touch_what_their_shape_says() {
        let mut rng = Rng::new(1);
        let task = Shape::Update { items: 100, writes: 8, partitions: 3 }.draw(6, 8, &mut rng);
        let partitions: Vec<usize> = task.writes.iter().map(|(p, _)| *p).collect();
        assert_eq!(partitions, [[6; 8], [7; 8], [0; 8]].concat());
        let hot = Shape::ReadHot { hot: 10, items: 100, reads: 10, permille: 1_000, age_us: 7 }.draw(0, 1, &mut rng);
        assert!(hot.gets.iter().all(|(_, item)| *item < 10) && hot.age_us == 7 && hot.kind == Kind::Read);
        let block = Shape::ReadBlocks { items: 64, block: 8, partitions: 2 }.draw(1, 2, &mut rng);
        assert!(block.reads.iter().all(|(_, first, items)| first % 8 == 0 && *items == 8));
        assert_eq!(block.reads.iter().map(|(p, ..)| *p).collect::<Vec<_>>(), [1, 0]);
        let rounds = Shape::ReadRounds { items: 64, block: 8, partitions: 2, rounds: 3 }.draw(1, 2, &mut rng);
        assert_eq!(rounds.reads.iter().map(|(p, ..)| *p).collect::<Vec<_>>(), [1, 0, 1, 0, 1, 0]);
        assert!(start(0) < key(0, 0) && key(0, u64::MAX) < start(1) && start(1) == key(1, 0));
    }
}
