//! What nodes and operators ask a node outside its cluster's messages: one question, one answer, as text.

use super::identity::Charter;
use bytes::Bytes;
use node::Span;
use sql::contention::lines::{hex, of_hex};
use std::time::{Duration, Instant};

/// An answer takes at most so long; founding asks several nodes.
const PATIENCE: Duration = Duration::from_secs(2);
const PATIENCE_INIT: Duration = Duration::from_secs(30);
/// Who joins waits for a transaction, who is to lead for an election.
pub(super) const PATIENCE_JOIN: Duration = Duration::from_secs(15);
/// Who tells what it sees asks the others who leads what.
const PATIENCE_STATUS: Duration = Duration::from_secs(6);
/// A replica that is new gets the whole range first.
pub(super) const PATIENCE_REPLICAS: Duration = Duration::from_secs(100);

/// Who waits for an answer asks this often.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Who are you?
    Hello,
    /// Take no charter but that of this store's node for a while.
    Reserve(u128),
    /// This is the cluster.
    Found(Charter),
    /// Found a cluster.
    Init,
    /// What do you see of your cluster?
    Status,
    /// A store wants to be a node of it.
    Join(Newcomer),
    /// Which ranges have a replica on this node, as far as you know?
    Holds(u32),
    /// This node is to be none any more.
    Leave(u32),
    /// Other nodes are to replicate a range.
    Replicas(Replacement),
    /// Another node is to lead a range.
    Lead(Leadership),
    /// Which ranges hold these keys, which one that you lead had; or what keys has it ([`Parts`])?
    Parts(u64, Option<Span>),
    /// What the programs of all nodes know is to be in force.
    Upgrade,
    /// What its SQL layer is asked ([`sql::peers`]).
    Sql(String),
    /// Are clients served, and where?
    Serves,
    /// What keeps you from serving, if anything does?
    Ails,
    /// Which process are you?
    Life,
    /// This process was one on a copy of the node's store, and has ended.
    Disown(Life),
}

/// A process that runs, or ran, as a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// The cluster.
    pub cluster: u64,
    /// The node.
    pub node: u32,
    /// Its store.
    pub store: u128,
    /// Which life of it.
    pub life: u64,
    /// What it drew when it started.
    pub start: u64,
}

impl Life {
    /// As text.
    pub fn to_text(&self) -> String {
        let Life { cluster, node, store, life, start } = self;
        format!("{cluster:016x} {node} {store:032x} {life} {start:016x}")
    }
    /// From text. `None`: it is none.
    pub fn of_text(text: &str) -> Option<Life> {
        let words: Vec<&str> = text.split(' ').collect();
        let [cluster, node, store, life, start] = words[..] else { return None };
        Some(Life {
            cluster: u64::from_str_radix(cluster, 16).ok()?,
            node: node.parse().ok()?,
            store: u128::from_str_radix(store, 16).ok()?,
            life: life.parse().ok()?,
            start: u64::from_str_radix(start, 16).ok()?,
        })
    }
}

/// A store that is in no cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blank {
    /// Its number.
    pub store: u128,
    /// The newest version of a cluster that its program knows.
    pub newest: u16,
    /// Where it stands; empty: not said.
    pub locality: String,
}

/// A store that wants to be a node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newcomer {
    /// Its number.
    pub store: u128,
    /// The oldest version of a cluster that its program knows.
    pub oldest: u16,
    /// The newest.
    pub newest: u16,
    /// Where its peers find it.
    pub addr: String,
    /// Where it stands; empty: not said.
    pub locality: String,
}

/// A range gets a replica, or loses one, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The range.
    pub range: u64,
    /// The node that gets one.
    pub to: Option<u32>,
    /// The node that loses one.
    pub from: Option<u32>,
    /// It is asked by a node, which takes the receiver for the range's leader: it asks no further.
    pub asked_on: bool,
}

/// A node is to lead a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// The range.
    pub range: u64,
    /// The node.
    pub to: u32,
    /// As of a [`Replacement`].
    pub asked_on: bool,
}

/// Keys, and the ranges in which they are, as the leader of one of these knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The keys.
    pub keys: Span,
    /// The ranges, in key order.
    pub ranges: Vec<u64>,
}

impl Parts {
    /// As text.
    pub fn to_text(&self) -> String {
        let ranges: Vec<String> = self.ranges.iter().map(u64::to_string).collect();
        format!("{}\n{}\n", span_text(&self.keys), ranges.join(" "))
    }
    /// From text. `None`: it is none.
    pub fn of_text(text: &str) -> Option<Parts> {
        let (keys, rest) = text.split_once('\n')?;
        let ranges: Option<Vec<u64>> = rest.lines().next()?.split(' ').map(|range| range.parse().ok()).collect();
        Some(Parts { keys: span(keys)?, ranges: ranges? })
    }
}

/// Two keys as words; one that is empty, as the end of all is, is a dash.
fn span_text(span: &Span) -> String {
    let key = |key: &[u8]| if key.is_empty() { "-".to_owned() } else { hex(key) };
    format!("{} {}", key(&span.start), key(&span.end))
}

/// The reverse.
fn span(text: &str) -> Option<Span> {
    let key = |word: &str| if word == "-" { Some(Bytes::new()) } else { of_hex(word) };
    let (start, end) = text.split_once(' ')?;
    Some(Span { start: key(start)?, end: key(end)? })
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// In no cluster.
    Fresh(Blank),
    /// In this cluster.
    Member(Charter),
    /// Done; what to tell.
    Ok(String),
    /// Why not.
    No(String),
    /// Not this node, or not now; why.
    Later(String),
}

/// A node's number; 0: none.
fn number(node: Option<u32>) -> u32 {
    node.unwrap_or(0)
}

/// The reverse.
fn node(text: &str) -> Option<Option<u32>> {
    text.parse().ok().map(|node: u32| Some(node).filter(|node| *node != 0))
}

impl Newcomer {
    fn of_text(text: &str) -> Option<Newcomer> {
        let mut words = text.split(' ');
        let store = u128::from_str_radix(words.next()?, 16).ok()?;
        let (oldest, newest) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let addr = words.next().filter(|addr| !addr.is_empty())?.to_owned();
        Some(Newcomer { store, oldest, newest, addr, locality: words.next().unwrap_or_default().to_owned() })
    }
}

impl Replacement {
    fn of_text(text: &str) -> Option<Replacement> {
        let mut words = text.split(' ');
        let range = words.next()?.parse().ok()?;
        let (to, from) = (node(words.next()?)?, node(words.next()?)?);
        Some(Replacement { range, to, from, asked_on: words.next() == Some("on") })
    }
}

impl Leadership {
    fn of_text(text: &str) -> Option<Leadership> {
        let mut words = text.split(' ');
        let (range, to) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Leadership { range, to, asked_on: words.next() == Some("on") })
    }
}

impl Request {
    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Request::Hello => "hello\n".to_owned(),
            Request::Reserve(store) => format!("reserve {store:032x}\n"),
            Request::Found(charter) => format!("found\n{}", charter.to_text()),
            Request::Init => "init\n".to_owned(),
            Request::Status => "status\n".to_owned(),
            Request::Join(Newcomer { store, oldest, newest, addr, locality }) => {
                format!("join {store:032x} {oldest} {newest} {addr} {locality}\n")
            }
            Request::Upgrade => "upgrade\n".to_owned(),
            Request::Serves => "serves\n".to_owned(),
            Request::Ails => "ails\n".to_owned(),
            Request::Life => "life\n".to_owned(),
            Request::Disown(life) => format!("disown {}\n", life.to_text()),
            Request::Holds(node) => format!("holds {node}\n"),
            Request::Sql(question) => format!("sql {question}\n"),
            Request::Leave(node) => format!("leave {node}\n"),
            Request::Lead(Leadership { range, to, asked_on }) => {
                format!("lead {range} {to}{}\n", if *asked_on { " on" } else { "" })
            }
            Request::Parts(range, None) => format!("parts {range}\n"),
            Request::Parts(range, Some(keys)) => format!("parts {range} {}\n", span_text(keys)),
            Request::Replicas(Replacement { range, to, from, asked_on }) => {
                let on = if *asked_on { " on" } else { "" };
                format!("replicas {range} {} {}{on}\n", number(*to), number(*from))
            }
        }
        .into_bytes()
    }
    /// From bytes. `None`: it is none.
    pub fn of_bytes(bytes: &[u8]) -> Option<Request> {
        let (first, rest) = std::str::from_utf8(bytes).ok()?.split_once('\n')?;
        match first {
            "hello" => Some(Request::Hello),
            "init" => Some(Request::Init),
            "status" => Some(Request::Status),
            "upgrade" => Some(Request::Upgrade),
            "serves" => Some(Request::Serves),
            "ails" => Some(Request::Ails),
            "life" => Some(Request::Life),
            "found" => Charter::of_text(rest).map(Request::Found),
            other => {
                let (word, rest) = other.split_once(' ')?;
                match word {
                    "reserve" => u128::from_str_radix(rest, 16).ok().map(Request::Reserve),
                    "join" => Newcomer::of_text(rest).map(Request::Join),
                    "sql" => Some(Request::Sql(rest.to_owned())),
                    "disown" => Life::of_text(rest).map(Request::Disown),
                    "holds" => rest.parse().ok().map(Request::Holds),
                    "leave" => rest.parse().ok().map(Request::Leave),
                    "replicas" => Replacement::of_text(rest).map(Request::Replicas),
                    "lead" => Leadership::of_text(rest).map(Request::Lead),
                    "parts" => match rest.split_once(' ') {
                        None => rest.parse().ok().map(|range| Request::Parts(range, None)),
                        Some((range, keys)) => Some(Request::Parts(range.parse().ok()?, Some(span(keys)?))),
                    },
                    _ => None,
                }
            }
        }
    }
}

impl Reply {
    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Reply::Fresh(Blank { store, newest, locality }) => format!("fresh {store:032x} {newest}\n{locality}"),
            Reply::Member(charter) => format!("member\n{}", charter.to_text()),
            Reply::Ok(text) => format!("ok\n{text}"),
            Reply::No(why) => format!("no\n{why}"),
            Reply::Later(why) => format!("later\n{why}"),
        }
        .into_bytes()
    }
    /// From bytes. `None`: it is none.
    pub fn of_bytes(bytes: &[u8]) -> Option<Reply> {
        let (first, rest) = std::str::from_utf8(bytes).ok()?.split_once('\n')?;
        match first {
            "member" => Charter::of_text(rest).map(Reply::Member),
            "ok" => Some(Reply::Ok(rest.to_owned())),
            "no" => Some(Reply::No(rest.to_owned())),
            "later" => Some(Reply::Later(rest.to_owned())),
            other => {
                let (store, newest) = other.strip_prefix("fresh ")?.split_once(' ')?;
                let (store, newest) = (u128::from_str_radix(store, 16).ok()?, newest.parse().ok()?);
                Some(Reply::Fresh(Blank { store, newest, locality: rest.to_owned() }))
            }
        }
    }
}

/// Asks a node.
///
/// # Errors
/// It cannot be reached, or gives no answer that can be read: in words, with the address.
pub fn ask(address: &str, request: &Request) -> Result<Reply, String> {
    ask_within(address, request, Duration::MAX)
}

/// The same, for no longer than `left`.
pub(super) fn ask_within(address: &str, request: &Request, left: Duration) -> Result<Reply, String> {
    let patience = match request {
        Request::Init => PATIENCE_INIT,
        Request::Join(_) | Request::Leave(_) | Request::Upgrade | Request::Lead(_) => PATIENCE_JOIN,
        Request::Replicas(_) => PATIENCE_REPLICAS,
        Request::Status => PATIENCE_STATUS,
        _ => PATIENCE,
    };
    let reply = transport::control(address, &request.to_bytes(), patience.min(left))
        .map_err(|e| format!("the node at {address} cannot be reached: {e}"))?;
    Reply::of_bytes(&reply).ok_or_else(|| format!("what answers at {address} is no node of this version"))
}

/// Asks the SQL layer of a node ([`sql::peers`]).
///
/// # Errors
/// As those of [`ask`], and that it does not understand.
pub fn ask_sql(address: &str, question: &str) -> Result<String, String> {
    match ask(address, &Request::Sql(question.to_owned()))? {
        Reply::Ok(told) => Ok(told),
        Reply::No(why) | Reply::Later(why) => Err(why),
        _ => Err("it is of another version".to_owned()),
    }
}

/// `timeball init`: asks a node to found the cluster; what it says.
///
/// # Errors
/// Why not, in words.
pub fn init(address: &str) -> Result<String, String> {
    told(address, &Request::Init)
}

/// Where a node serves SQL, in words, once it does: it is asked until then, for as long as `patience` at most. `None`: it is of a release that does not say.
///
/// # Errors
/// It does not serve by then; why, in words.
pub fn await_sql(address: &str, patience: Duration) -> Result<Option<String>, String> {
    let began = Instant::now();
    loop {
        let why = match ask(address, &Request::Serves) {
            Ok(Reply::Ok(text)) => return Ok(Some(text)),
            Ok(Reply::Later(why)) | Err(why) => why,
            Ok(_) => return Ok(None),
        };
        if began.elapsed() >= patience {
            return Err(why);
        }
        std::thread::sleep(ASK_AGAIN);
    }
}

/// `timeball node status --host`: what a node sees of its cluster, whether or not anything can be served. Tables: a title, lines of cells with a tab
/// between (the first names the columns), an empty line.
///
/// # Errors
/// Why not, in words.
pub fn status(address: &str) -> Result<String, String> {
    told(address, &Request::Status)
}

/// `timeball node decommission`: a node is none any more.
///
/// # Errors
/// Why not, in words.
pub fn leave(address: &str, node: u32) -> Result<String, String> {
    told(address, &Request::Leave(node))
}

/// `timeball cluster upgrade`: what all programs know is in force from now on.
///
/// # Errors
/// Why not, in words.
pub fn upgrade(address: &str) -> Result<String, String> {
    told(address, &Request::Upgrade)
}

/// `timeball range move`: other nodes replicate a range.
///
/// # Errors
/// Why not, in words.
pub fn replicas(address: &str, replacement: Replacement) -> Result<String, String> {
    told(address, &Request::Replicas(replacement))
}

/// `timeball range lead`: another node leads a range.
///
/// # Errors
/// Why not, in words.
pub fn lead(address: &str, leadership: Leadership) -> Result<String, String> {
    told(address, &Request::Lead(leadership))
}

fn told(address: &str, request: &Request) -> Result<String, String> {
    match ask(address, request)? {
        Reply::Ok(text) => Ok(text),
        Reply::No(why) | Reply::Later(why) => Err(why),
        _ => Err(format!("what answers at {address} does not understand: is it of another version?")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two releases have to understand each other's words: these stay as they are.
    #[test]
    fn words_stay_what_they_are() {
        let newcomer = Newcomer { store: 9, oldest: 1, newest: 2, addr: "a:1".into(), locality: "zone=a".into() };
        let replacement = Replacement { range: 7, to: Some(4), from: None, asked_on: true };
        let life = Life { cluster: 1, node: 2, store: 3, life: 4, start: 0xff };
        for (request, text) in [
            (Request::Hello, "hello\n"),
            (Request::Reserve(9), "reserve 00000000000000000000000000000009\n"),
            (Request::Init, "init\n"),
            (Request::Status, "status\n"),
            (Request::Join(newcomer), "join 00000000000000000000000000000009 1 2 a:1 zone=a\n"),
            (Request::Holds(3), "holds 3\n"),
            (Request::Leave(3), "leave 3\n"),
            (Request::Replicas(replacement), "replicas 7 4 0 on\n"),
            (Request::Lead(Leadership { range: 7, to: 4, asked_on: true }), "lead 7 4 on\n"),
            (Request::Lead(Leadership { range: 7, to: 4, asked_on: false }), "lead 7 4\n"),
            (Request::Parts(7, None), "parts 7\n"),
            (Request::Parts(7, Some(Span::new(vec![0x0a, 0xff], Vec::new()))), "parts 7 0aff -\n"),
            (Request::Upgrade, "upgrade\n"),
            (Request::Serves, "serves\n"),
            (Request::Ails, "ails\n"),
            (Request::Life, "life\n"),
            (Request::Disown(life), "disown 0000000000000001 2 00000000000000000000000000000003 4 00000000000000ff\n"),
        ] {
            assert_eq!((Request::of_bytes(text.as_bytes()), request.to_bytes()), (Some(request), text.into()));
        }
        let blank = Blank { store: 9, newest: 2, locality: "zone=a".into() };
        for (reply, text) in [
            (Reply::Fresh(blank), "fresh 00000000000000000000000000000009 2\nzone=a"),
            (Reply::Ok("x".into()), "ok\nx"),
            (Reply::No("x".into()), "no\nx"),
            (Reply::Later("x".into()), "later\nx"),
        ] {
            assert_eq!((Reply::of_bytes(text.as_bytes()), reply.to_bytes()), (Some(reply), text.into()));
        }
    }

    #[test]
    fn parts_as_text() {
        let parts = Parts { keys: Span::new(Vec::new(), vec![0x07]), ranges: vec![1, 1 << 40] };
        assert_eq!(parts.to_text(), "- 07\n1 1099511627776\n");
        assert_eq!(Parts::of_text(&parts.to_text()), Some(parts));
        for garbage in ["", "- 07\n", "- 7\n1\n", "- gg\n1\n", "- \u{e9}\n1\n", "-\n1\n", "- -\nx\n"] {
            assert_eq!(Parts::of_text(garbage), None, "{garbage:?}");
        }
    }

    #[test]
    fn questions_and_answers_as_text() {
        let charter = super::super::charter::tests::charter();
        let newcomer = |locality: &str| {
            let (addr, locality) = ("127.0.0.1:26357".into(), locality.into());
            Request::Join(Newcomer { store: 9, oldest: 1, newest: 2, addr, locality })
        };
        let replacement = |to, from, asked_on| Request::Replicas(Replacement { range: 1 << 40, to, from, asked_on });
        for request in [
            Request::Hello,
            Request::Reserve(77),
            Request::Found(charter.clone()),
            Request::Init,
            Request::Status,
            newcomer(""),
            newcomer("zone=a"),
            Request::Upgrade,
            Request::Serves,
            Request::Holds(3),
            Request::Leave(4),
            replacement(Some(4), None, false),
            replacement(None, Some(1), true),
        ] {
            assert_eq!(Request::of_bytes(&request.to_bytes()), Some(request));
        }
        for reply in [
            Reply::Fresh(Blank { store: 5, newest: 2, locality: "zone=a".into() }),
            Reply::Member(charter),
            Reply::Ok("x\ny".into()),
            Reply::No("no".into()),
            Reply::Later("soon".into()),
        ] {
            assert_eq!(Reply::of_bytes(&reply.to_bytes()), Some(reply));
        }
        for garbage in [
            &b""[..],
            b"hello",
            b"\xff\n",
            b"found\nx\n",
            b"reserve x\n",
            b"join 1\n",
            b"replicas 1\n",
            b"parts x\n",
            b"parts 1 7\n",
            b"leave n\n",
            b"disown 1 2 3 4\n",
            b"GET / HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!((Request::of_bytes(garbage), Reply::of_bytes(garbage)), (None, None));
        }
    }
}
