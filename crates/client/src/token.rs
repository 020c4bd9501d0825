//! What has been seen, by all connections of a process.

use crate::How;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a transaction has seen or written, signed by its cluster: whoever begins with it sees that, too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(String);

impl Token {
    /// As it came from somewhere; `None`: no server gives out such a text. (Whether one has is the server's to say.)
    pub fn new(text: impl Into<String>) -> Option<Token> {
        let text = text.into();
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        (!text.is_empty() && text.len() <= 256 && text.chars().all(known)).then_some(Token(text))
    }
    /// As text: for a header, a cookie, a message, or `AS OF SYSTEM TIME`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Its timestamp: that of the commit, where the transaction wrote, else the newest that it has seen. Microseconds since the Unix epoch.
    pub fn timestamp_us(&self) -> Option<u64> {
        self.0.split(['-', '.']).next()?.parse().ok()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A transaction has committed.
#[derive(Clone, Debug)]
pub struct Done<T> {
    /// What was made of it.
    pub value: T,
    /// What the session has seen by now, its commit included. `None`: it has committed, but the server did not say as of when, as time ran out, the connection
    /// was lost, or it is no Timeball. [`Timeball::token`] is as it was then: only a transaction with [`Consistency::Strict`](crate::Consistency::Strict) is sure to see what this one wrote.
    pub token: Option<Token>,
    /// It took so many attempts.
    pub attempts: u32,
}

#[derive(Default)]
struct Shared {
    greatest: Mutex<Option<Token>>,
    spread: AtomicU32,
}

/// One cluster, as the connections of a process know it: they share what has been seen. A copy is the same one.
#[derive(Clone, Default)]
pub struct Timeball(Arc<Shared>);

impl Timeball {
    /// Nothing has been seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The greatest token that was heard of: to be sent along where somebody else is to see what was done here.
    pub fn token(&self) -> Option<Token> {
        self.greatest().clone()
    }

    /// A token came from elsewhere: transactions that begin from now on see what it stands for.
    pub fn heard(&self, token: Token) {
        let mut greatest = self.greatest();
        if greatest.as_ref().is_none_or(|known| *known < token) {
            *greatest = Some(token);
        }
    }

    /// What was heard of is of no use any more: the cluster refused it (22023), as it is another, or was put back to an older state.
    pub fn forget(&self) {
        *self.greatest() = None;
    }

    fn greatest(&self) -> std::sync::MutexGuard<'_, Option<Token>> {
        self.0.greatest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers that lie apart.
    pub(crate) fn spread(&self) -> u32 {
        self.0.spread.fetch_add(37, Ordering::Relaxed)
    }

    /// One text that takes the token, where that is wanted, and begins.
    pub(crate) fn begin(&self, how: &How) -> String {
        match self.token().filter(|_| how.takes_token()) {
            Some(token) => format!("SET timeball.token = '{token}'; {}", how.begin()),
            None => how.begin(),
        }
    }
}

/// A text that commits. In a block that has failed COMMIT rolls back without an error, which the drivers do not tell from a commit; SELECT has one there, and COMMIT is left out.
pub(crate) const COMMIT: &str = "SELECT 1; COMMIT";
/// A text that says what has been seen.
pub(crate) const SHOW: &str = "SHOW timeball.token";

#[cfg(test)]
mod tests {
    use super::{Timeball, Token};
    use crate::{Consistency, How};

    #[test]
    fn the_greatest_token_stays_in_all_copies() {
        let (one, token) = (Timeball::new(), |text: &str| Token::new(text).expect(text));
        let other = one.clone();
        assert_eq!(one.begin(&How::default()), "BEGIN");
        for text in ["17-a", "19-a", "18-a"] {
            one.heard(token(text));
        }
        assert_eq!(other.begin(&How::default()), "SET timeball.token = '19-a'; BEGIN");
        assert_eq!(other.begin(&How::default().consistency(Consistency::Stale)), "BEGIN CONSISTENCY stale");
        assert_eq!(other.token().and_then(|token| token.timestamp_us()), Some(19));
        other.forget();
        assert_eq!(one.token(), None);
    }

    #[test]
    fn what_no_server_gives_out_is_no_token() {
        for text in ["", "1'; DROP TABLE t", "1 2", &"1".repeat(300)] {
            assert_eq!(Token::new(text), None, "{text}");
        }
    }
}
