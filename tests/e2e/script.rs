//! Stories of several sessions as text files: what each session says, in order, and what it is answered.
//!
//! ```text
//! # The story: head comments say which anomaly, and what must happen.
//! setup: CREATE TABLE t (id int PRIMARY KEY, v int)
//! s1: BEGIN
//! > BEGIN
//! s2: UPDATE t SET v = 2 WHERE id = 1 -- waits
//! s1: COMMIT
//! > COMMIT
//! s2 goes on
//! > UPDATE 1
//! ```
//!
//! Each session is a connection of its own. A step marked `-- waits` must be blocked before the next one begins: the node says
//! in its metrics (`lock_waiters`) how many sessions wait for a lock, and the script waits for that number. `goes on`
//! collects the answer of such a session. Rows are values between bars; an error is its SQLSTATE and the words before the
//! first colon (what follows may name transactions and timestamps).
//!
//! `BLESS=1` writes the answers that came into the file. Look at the difference before you believe it.

use crate::node::{Node, until};
use lab::client::{Client, Event, Url};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// The mark of a step that must block.
const WAITS: &str = "-- waits";
/// What connects a script's setup.
const SETUP: &str = "setup";

/// A session: statements go in, answers come out.
struct Session {
    statements: Sender<String>,
    answers: Receiver<Vec<String>>,
}

impl Session {
    fn connect(node: &Node) -> Session {
        let mut client = Client::connect(&Url::parse(&node.url()).unwrap()).unwrap();
        let (statements, inbox) = channel::<String>();
        let (outbox, answers) = channel();
        std::thread::spawn(move || {
            for text in inbox {
                let mut lines = Vec::new();
                let ran = client.query_events(&text, |event| lines.extend(shown(&event)));
                if let Err(e) = ran {
                    lines.push(format!("CONNECTION {e}"));
                }
                if outbox.send(lines).is_err() {
                    break;
                }
            }
        });
        Session { statements, answers }
    }
    fn answer(&self, what: &str) -> Vec<String> {
        self.answers.recv_timeout(crate::node::PATIENCE).unwrap_or_else(|_| panic!("no answer to: {what}"))
    }
}

/// An answer as a script shows it.
fn shown(event: &Event) -> Option<String> {
    match event {
        Event::Row(row) => {
            let values: Vec<&str> = row.iter().map(|v| v.as_deref().unwrap_or("NULL")).collect();
            Some(format!("({})", values.join(" | ")))
        }
        Event::Tag(tag) => Some(tag.clone()),
        Event::Error(e) => Some(format!("ERROR {}: {}", e.code, e.message.split(':').next().unwrap_or_default())),
        Event::Columns(_) | Event::Notice(_) => None,
    }
}

struct Play<'a> {
    node: &'a Node,
    sessions: BTreeMap<String, Session>,
    waiting: usize,
}

impl Play<'_> {
    /// Runs one line of the script; gives the answer to show below it.
    fn step(&mut self, line: &str) -> Vec<String> {
        if let Some(name) = line.strip_suffix(" goes on") {
            self.waiting -= 1;
            return self.sessions[name].answer(line);
        }
        let (name, statement) = line.split_once(": ").unwrap_or_else(|| panic!("no session is named in: {line}"));
        let session = self.sessions.entry(name.to_owned()).or_insert_with(|| Session::connect(self.node));
        let waits = statement.ends_with(WAITS);
        let text = statement.trim_end_matches(WAITS).trim();
        session.statements.send(text.to_owned()).unwrap();
        if !waits {
            let answer = session.answer(line);
            return if name == SETUP {
                answer.into_iter().filter(|l| l.starts_with("ERROR")).collect()
            } else {
                answer
            };
        }
        self.waiting += 1;
        let (node, waiting) = (self.node, self.waiting);
        until(&format!("{waiting} sessions wait at: {line}"), || {
            if let Ok(early) = session.answers.recv_timeout(Duration::ZERO) {
                panic!("it should wait, but was answered {early:?}: {line}");
            }
            (node.metric("lock_waiters")? as usize == waiting).then_some(())
        });
        Vec::new()
    }
}

/// Plays a script against a node, and compares.
pub fn play(node: &Node, path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut play = Play { node, sessions: BTreeMap::new(), waiting: 0 };
    let mut told = String::new();
    for line in text.lines().filter(|l| !l.starts_with('>')) {
        told.push_str(line);
        told.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        for answer in play.step(line) {
            told.push_str(&format!("> {answer}\n"));
        }
    }
    assert_eq!(play.waiting, 0, "{}: somebody still waits at the end", path.display());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &told).unwrap();
        return;
    }
    assert!(
        told == text,
        "{} went otherwise (BLESS=1 to accept it):\n--- expected\n{text}\n--- got\n{told}",
        path.display()
    );
}
