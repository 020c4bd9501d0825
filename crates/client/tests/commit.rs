//! What is told of a commit, by what a server answers: one that says what the test wants, byte for byte.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a server of its own, on a thread and a socket"
)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use timeball_client::{Error, How, Timeball, Token};

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut all = vec![kind];
    all.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    all.extend(body);
    all
}

fn complete(tag: &str) -> Vec<u8> {
    message(b'C', format!("{tag}\0").as_bytes())
}

fn error(code: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0VERROR\0C{code}\0Mno\0\0").as_bytes())
}

fn row(value: &str) -> Vec<u8> {
    let mut fields = vec![0, 1];
    fields.extend(b"column\0");
    fields.extend([0; 6]);
    fields.extend([0, 0, 0, 25, 255, 255, 255, 255, 255, 255, 0, 0]);
    let mut cells = vec![0, 1];
    cells.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
    cells.extend(value.as_bytes());
    [message(b'T', &fields), message(b'D', &cells)].concat()
}

/// What a statement is answered with.
#[derive(Clone, Copy)]
enum Answer {
    Token(&'static str),
    Error(&'static str),
    Complete,
    /// The connection is closed.
    Gone,
}

/// Serves one connection: COMMIT and SHOW are answered as is said, all else is complete. Gives the texts that came.
fn serve(commit: Answer, show: Answer) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgresql://root@{}/postgres?sslmode=disable", listener.local_addr().unwrap());
    (url, std::thread::spawn(move || session(&mut listener.accept().unwrap().0, commit, show)))
}

fn body(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

fn session(stream: &mut TcpStream, commit: Answer, show: Answer) -> Vec<String> {
    let ready = message(b'Z', b"I");
    body(stream).unwrap();
    stream.write_all(&[message(b'R', &[0; 4]), ready.clone()].concat()).unwrap();
    let mut texts = Vec::new();
    let mut kind = [0];
    while stream.read_exact(&mut kind).is_ok() && kind[0] == b'Q' {
        let Some(body) = body(stream) else { break };
        let text = String::from_utf8(body).unwrap().trim_end_matches('\0').to_owned();
        let mut answers = Vec::new();
        for statement in text.split("; ") {
            let answer = match statement {
                "COMMIT" => commit,
                "SHOW timeball.token" => show,
                _ => Answer::Complete,
            };
            match answer {
                Answer::Token(token) => answers.extend([row(token), complete("SHOW")].concat()),
                Answer::Complete if statement == "SELECT 1" => {
                    answers.extend([row("1"), complete("SELECT 1")].concat())
                }
                Answer::Complete => answers.extend(complete(statement)),
                Answer::Error(code) => answers.extend(error(code)),
                Answer::Gone => {}
            }
            match answer {
                Answer::Error(_) => break,
                Answer::Gone => {
                    stream.write_all(&answers).unwrap();
                    texts.push(text);
                    return texts;
                }
                _ => {}
            }
        }
        stream.write_all(&[answers, ready.clone()].concat()).unwrap();
        texts.push(text);
    }
    texts
}

/// With both drivers: what came of it, what is known then, and the texts that the server had.
fn both(
    commit: Answer,
    show: Answer,
    how: &How,
    check: impl Fn(Result<Option<Token>, Error>, Option<Token>, &[String]),
) {
    let before = || {
        let timeball = Timeball::new();
        timeball.heard(Token::new("17-a").unwrap());
        timeball
    };
    let (url, server) = serve(commit, show);
    let timeball = before();
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    let done = timeball.run_blocking(&mut client, how, |_| Ok(()));
    drop(client);
    check(done.map(|done| done.token), timeball.token(), &server.join().unwrap());

    let (url, server) = serve(commit, show);
    let timeball = before();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let done = runtime.block_on(async {
        let (mut client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        let done = timeball.run(&mut client, how, |_| Box::pin(async { Ok(()) })).await;
        drop(client);
        let _ = connection.await;
        done
    });
    check(done.map(|done| done.token), timeball.token(), &server.join().unwrap());
}

fn commits(texts: &[String]) -> usize {
    texts.iter().filter(|text| text.contains("COMMIT")).count()
}

#[test]
fn a_commit_gives_its_token() {
    both(Answer::Complete, Answer::Token("19-b"), &How::default(), |done, known, texts| {
        assert_eq!(done.unwrap(), Token::new("19-b"));
        assert_eq!(known, Token::new("19-b"));
        assert_eq!(texts[0], "SET timeball.token = '17-a'; BEGIN");
    });
}

#[test]
fn what_comes_after_a_commit_does_not_undo_it() {
    // The time of the statement ran out, it was cancelled, the server knows no tokens, it broke, the connection was lost.
    for show in ["57014", "42704", "40001", "XX000"].map(Answer::Error).into_iter().chain([Answer::Gone]) {
        both(Answer::Complete, show, &How::default(), |done, known, texts| {
            assert_eq!(done.unwrap(), None, "nothing is said of what is not known");
            assert_eq!(known, Token::new("17-a"));
            assert_eq!(commits(texts), 1, "{texts:?}");
        });
    }
}

#[test]
fn a_commit_that_was_not_answered_for_certain_is_unknown() {
    for commit in ["40003", "57014", "57P01", "XX000"].map(Answer::Error).into_iter().chain([Answer::Gone]) {
        both(commit, Answer::Token("19-b"), &How::default(), |done, known, texts| {
            assert!(matches!(done, Err(Error::Unknown(_))), "{done:?}");
            assert_eq!(known, Token::new("17-a"));
            assert_eq!(commits(texts), 1, "{texts:?}");
        });
    }
}

#[test]
fn a_commit_that_is_refused_has_failed() {
    for code in ["23503", "25P02"] {
        both(Answer::Error(code), Answer::Token("19-b"), &How::default(), |done, _, texts| {
            assert!(matches!(&done, Err(Error::Failed(e)) if e.code().is_some_and(|c| c.code() == code)), "{done:?}");
            assert_eq!(commits(texts), 1, "{texts:?}");
        });
    }
    both(Answer::Error("40001"), Answer::Token("19-b"), &How::default().attempts(3), |done, _, texts| {
        assert!(matches!(done, Err(Error::Conflict { attempts: 3, .. })), "{done:?}");
        assert_eq!(commits(texts), 3, "{texts:?}");
    });
}
