//! Posts and likes: the workload of 000 section 3.4, queries of listings 3.1 and 3.2, schema of appendix A.
//!
//! A read shows the front page: all posts by number of likes. A like adds one to a random post. Reads take long and touch what
//! likes write: the contention that uncertainty makes expensive. (The schema's `INDEX (post_id)` is MySQL's way of
//! writing; a separate CREATE INDEX says the same to every server.)

use super::{Progress, Workload};
use crate::client::{Client, ClientError};
use rand::Rng;
use rand::rngs::SmallRng;
use std::fmt::Write as _;

/// Posts at the start.
const POSTS: u32 = 100;
/// Likes at the start.
const LIKES: u32 = 1_000;
/// Listing 3.1.
const READ: &str = "SELECT posts.id, posts.title, COUNT(*) FROM posts LEFT JOIN likes ON posts.id = likes.post_id \
                    GROUP BY posts.id ORDER BY COUNT(*) DESC";
/// Listing 3.2.
const LIKE: &str = "INSERT INTO likes (post_id) VALUES ($1)";
/// Words of random titles.
const WORDS: [&str; 16] = [
    "time",
    "clock",
    "harbour",
    "ball",
    "ship",
    "noon",
    "mast",
    "chronometer",
    "star",
    "tide",
    "pilot",
    "chart",
    "signal",
    "drift",
    "anchor",
    "log",
];

/// The workload.
#[derive(Clone, Copy, Debug)]
pub struct PostsAndLikes {
    /// Probability that an operation is a read.
    pub read_fraction: f64,
}

impl Workload for PostsAndLikes {
    fn name(&self) -> &'static str {
        "posts-and-likes"
    }
    fn operations(&self) -> &'static [&'static str] {
        &["read", "like"]
    }

    fn load(&self, client: &mut Client, rng: &mut SmallRng, progress: &mut Progress<'_>) -> Result<(), ClientError> {
        for statement in [
            "DROP TABLE IF EXISTS likes",
            "DROP TABLE IF EXISTS posts",
            "CREATE TABLE posts (id INTEGER PRIMARY KEY, title TEXT)",
            "CREATE TABLE likes (id SERIAL PRIMARY KEY, post_id INTEGER, FOREIGN KEY (post_id) REFERENCES posts (id))",
            "CREATE INDEX likes_post_id_idx ON likes (post_id)",
        ] {
            client.query(statement)?;
        }
        let mut posts = String::from("INSERT INTO posts (id, title) VALUES ");
        for id in 1..=POSTS {
            let mut word = || WORDS[rng.random_range(0..WORDS.len())];
            let _ = write!(posts, "{}({id}, '{} {} {id}')", if id == 1 { "" } else { ", " }, word(), word());
        }
        client.query(&posts)?;
        let all = u64::from(POSTS + LIKES);
        progress(u64::from(POSTS), all);
        let mut likes = String::from("INSERT INTO likes (post_id) VALUES ");
        for n in 0..LIKES {
            let _ = write!(likes, "{}({})", if n == 0 { "" } else { ", " }, rng.random_range(1..=POSTS));
        }
        client.query(&likes)?;
        progress(all, all);
        Ok(())
    }

    fn prepare(&self, client: &mut Client) -> Result<(), ClientError> {
        client.prepare("read", READ)?;
        client.prepare("like", LIKE)
    }

    fn choose(&self, rng: &mut SmallRng) -> (usize, u32) {
        if rng.random_bool(self.read_fraction) { (0, 0) } else { (1, rng.random_range(1..=POSTS)) }
    }

    fn run(&self, client: &mut Client, operation: usize, parameter: u32) -> Result<(), ClientError> {
        if operation == 0 {
            client.execute("read", &[]).map(|_| ())
        } else {
            client.execute("like", &[&parameter.to_string()]).map(|_| ())
        }
    }
}
