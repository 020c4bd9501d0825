//! What nodes and operators ask a node before there is a cluster: one question, one answer, as text.

use super::identity::Charter;
use std::time::Duration;

/// An answer takes at most so long; founding asks several nodes.
const PATIENCE: Duration = Duration::from_secs(2);
const PATIENCE_INIT: Duration = Duration::from_secs(30);

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
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// In no cluster; its store, and where it stands.
    Fresh(u128, String),
    /// In this cluster.
    Member(Charter),
    /// Done; what to tell.
    Ok(String),
    /// Why not.
    No(String),
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
            "found" => Charter::of_text(rest).map(Request::Found),
            other => u128::from_str_radix(other.strip_prefix("reserve ")?, 16).ok().map(Request::Reserve),
        }
    }
}

impl Reply {
    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Reply::Fresh(store, locality) => format!("fresh {store:032x}\n{locality}"),
            Reply::Member(charter) => format!("member\n{}", charter.to_text()),
            Reply::Ok(text) => format!("ok\n{text}"),
            Reply::No(why) => format!("no\n{why}"),
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
            other => {
                let store = u128::from_str_radix(other.strip_prefix("fresh ")?, 16).ok()?;
                Some(Reply::Fresh(store, rest.to_owned()))
            }
        }
    }
}

/// Asks a node.
///
/// # Errors
/// It cannot be reached, or gives no answer that can be read: in words, with the address.
pub fn ask(address: &str, request: &Request) -> Result<Reply, String> {
    let patience = if *request == Request::Init { PATIENCE_INIT } else { PATIENCE };
    let reply = transport::control(address, &request.to_bytes(), patience)
        .map_err(|e| format!("the node at {address} cannot be reached: {e}"))?;
    Reply::of_bytes(&reply).ok_or_else(|| format!("what answers at {address} is no node of this version"))
}

/// `timeball init`: asks a node to found the cluster; what it says.
///
/// # Errors
/// Why not, in words.
pub fn init(address: &str) -> Result<String, String> {
    told(address, &Request::Init)
}

/// `timeball node status --host`: what a node sees of its cluster, whether or not anything can be served. Tables: a title, lines of cells with a tab
/// between (the first names the columns), an empty line.
///
/// # Errors
/// Why not, in words.
pub fn status(address: &str) -> Result<String, String> {
    told(address, &Request::Status)
}

fn told(address: &str, request: &Request) -> Result<String, String> {
    match ask(address, request)? {
        Reply::Ok(text) => Ok(text),
        Reply::No(why) => Err(why),
        _ => Err(format!("what answers at {address} does not understand: is it of another version?")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::identity::Place;
    use super::*;

    #[test]
    fn questions_and_answers_as_text() {
        let charter = Charter {
            cluster: 9,
            members: vec![Place { node: 1, store: 2, addr: "127.0.0.1:26357".into(), locality: String::new() }],
        };
        for request in
            [Request::Hello, Request::Reserve(77), Request::Found(charter.clone()), Request::Init, Request::Status]
        {
            assert_eq!(Request::of_bytes(&request.to_bytes()), Some(request));
        }
        for reply in
            [Reply::Fresh(5, "zone=a".into()), Reply::Member(charter), Reply::Ok("x\ny".into()), Reply::No("no".into())]
        {
            assert_eq!(Reply::of_bytes(&reply.to_bytes()), Some(reply));
        }
        for garbage in [&b""[..], b"hello", b"\xff\n", b"found\nx\n", b"reserve x\n", b"GET / HTTP/1.1\r\n\r\n"] {
            assert_eq!((Request::of_bytes(garbage), Reply::of_bytes(garbage)), (None, None));
        }
    }
}
