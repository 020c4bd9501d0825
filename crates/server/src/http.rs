//! `/health` and `/metrics`: a minimal HTTP/1.1 server for GET, by hand.
//!
//! Two paths, no bodies, one request per connection: a library would bring more code than this file and the same bounds to set.
//! Every request has a thread of its own, at most [`REQUESTS_MAX`] at a time, and [`REQUEST_SECONDS_MAX`] seconds to arrive.

use crate::log;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The greatest number of requests at a time; more are closed unanswered.
pub const REQUESTS_MAX: usize = 16;
/// The greatest request head, in bytes.
pub const REQUEST_BYTES_MAX: usize = 8 << 10;
/// The longest that a request may take to arrive, in seconds.
pub const REQUEST_SECONDS_MAX: u64 = 5;

/// A page: its status, media type and body.
#[derive(Debug)]
pub struct Page {
    /// `200 OK`
    pub status: &'static str,
    /// `text/plain; charset=utf-8`
    pub media_type: &'static str,
    /// What it says.
    pub body: String,
}

impl Page {
    /// A line of text.
    pub fn text(status: &'static str, body: &str) -> Page {
        Page { status, media_type: "text/plain; charset=utf-8", body: format!("{body}\n") }
    }
}

/// What answers: a path in, a page out, `None` for 404.
pub type Handler = Arc<dyn Fn(&str) -> Option<Page> + Send + Sync>;

/// Serves until `stop` is set (and one more connection made, to wake the listener).
pub fn serve(listener: TcpListener, handler: Handler, stop: Arc<AtomicBool>) -> std::io::Result<()> {
    let running = Arc::new(AtomicUsize::new(0));
    std::thread::Builder::new().name("http".into()).spawn(move || {
        for stream in listener.incoming() {
            if stop.load(Ordering::SeqCst) {
                return;
            }
            let Ok(stream) = stream else {
                // Out of file descriptors, say: do not spin on it.
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            if running.fetch_add(1, Ordering::SeqCst) >= REQUESTS_MAX {
                running.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let (handler, guard) = (handler.clone(), Running(running.clone()));
            let spawned = std::thread::Builder::new().name("http-request".into()).spawn(move || {
                let _guard = guard;
                answer(stream, &handler);
            });
            if let Err(e) = spawned {
                log::warning("http_thread_refused", &[("error", &e)]);
            }
        }
    })?;
    Ok(())
}

struct Running(Arc<AtomicUsize>);
impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn answer(mut stream: TcpStream, handler: &Handler) {
    let _ = stream.set_write_timeout(Some(Duration::from_secs(REQUEST_SECONDS_MAX)));
    let page = match read_head(&mut stream) {
        Some(head) => respond(&head, handler),
        None => Page::text("400 Bad Request", "the request did not arrive in full"),
    };
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        page.status,
        page.media_type,
        page.body.len()
    );
    // The client may have gone: its loss.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(page.body.as_bytes()));
}

fn respond(head: &str, handler: &Handler) -> Page {
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    match (words.next(), words.next(), words.next()) {
        (Some("GET"), Some(target), Some(version)) if version.starts_with("HTTP/1.") => {
            let path = target.split('?').next().unwrap_or_default();
            handler(path).unwrap_or_else(|| Page::text("404 Not Found", "there are /health, /health/live and /metrics"))
        }
        (Some(_), Some(_), Some(version)) if version.starts_with("HTTP/1.") => {
            Page::text("405 Method Not Allowed", "only GET is answered")
        }
        _ => Page::text("400 Bad Request", "this is no HTTP request"),
    }
}

/// The request's head, up to its empty line.
fn read_head(stream: &mut TcpStream) -> Option<String> {
    let deadline = Instant::now() + Duration::from_secs(REQUEST_SECONDS_MAX);
    let mut bytes = Vec::new();
    let mut chunk = [0u8; 1024];
    while !bytes.windows(4).any(|w| w == b"\r\n\r\n") {
        let left = deadline.checked_duration_since(Instant::now()).filter(|d| !d.is_zero())?;
        stream.set_read_timeout(Some(left)).ok()?;
        match stream.read(&mut chunk) {
            Ok(n) if n > 0 && bytes.len() + n <= REQUEST_BYTES_MAX => bytes.extend_from_slice(&chunk[..n]),
            _ => return None,
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &[u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let handler: Handler = Arc::new(|path| (path == "/health").then(|| Page::text("200 OK", "fine")));
        serve(listener, handler, stop.clone()).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(address);
        answer
    }

    #[test]
    fn pages() {
        assert!(ask(b"GET /health?x HTTP/1.1\r\nHost: a\r\n\r\n").ends_with("\r\n\r\nfine\n"));
        assert!(ask(b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask(b"POST /health HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert!(ask(b"\xff\xfe\r\n\r\n").starts_with("HTTP/1.1 400 "));
        assert!(ask(b"GET /health HTTP/1.1\r\n").starts_with("HTTP/1.1 400 "));
    }
}
