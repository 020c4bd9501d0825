//! How a transaction is to run.

use std::time::Duration;

/// What a transaction buys of recency, and with what: the guide's chapter on SQL has the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    /// `strict` or `hybrid`, by what waiting for the clock would cost.
    Auto,
    /// After everything that was acknowledged anywhere before it began.
    Strict,
    /// Linearizable for each key, and after all that its token has seen.
    Hybrid,
    /// After all that its token has seen.
    Token,
    /// Any snapshot that is whole.
    None,
    /// The past, of the nearest replica. Nothing can be written. The token of the process is not asked for: see [`How::after_token`].
    Stale,
}

/// What of other transactions it may notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Nothing.
    Serializable,
    /// One snapshot: write skew.
    RepeatableRead,
    /// A snapshot for each statement.
    ReadCommitted,
}

/// How a transaction is to run. What is not said is as the session has it.
#[derive(Clone, Debug)]
pub struct How {
    consistency: Option<Consistency>,
    isolation: Option<Isolation>,
    read_only: bool,
    as_of: Option<String>,
    after_token: bool,
    pub(crate) attempts: u32,
}

impl Default for How {
    fn default() -> Self {
        How {
            consistency: None,
            isolation: None,
            read_only: false,
            as_of: None,
            after_token: false,
            attempts: How::ATTEMPTS,
        }
    }
}

impl How {
    /// Attempts, where nothing else is said.
    pub const ATTEMPTS: u32 = 10;
    /// A pause between two of them is at most so long.
    pub const PAUSE_MAX: Duration = Duration::from_millis(500);

    /// With this consistency.
    #[must_use]
    pub fn consistency(mut self, consistency: Consistency) -> Self {
        self.consistency = Some(consistency);
        self
    }
    /// At this level.
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = Some(isolation);
        self
    }
    /// Nothing is written.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }
    /// It reads the past: an expression as behind `AS OF SYSTEM TIME`, such as `'-10s'`, `with_max_staleness('10s')`, `with_negotiated_timestamp()`, or a
    /// [`Token`](crate::Token) in quotes. It is part of the statement: never build it from what others typed. The token of the process is not asked for: see
    /// [`How::after_token`].
    #[must_use]
    pub fn as_of(mut self, expression: impl Into<String>) -> Self {
        self.as_of = Some(expression.into());
        self
    }
    /// It reads the past ([`Consistency::Stale`], or [`How::as_of`]), but none before what the token of the process stands for. Without this such a transaction
    /// takes what the nearest replica has, whatever other connections of the process have written: with it the leaders are asked for as long as that replica lags
    /// behind the last write, about three seconds, and where they do not answer it is refused (57P03). What its own connection has seen it never goes back behind. Any
    /// other transaction, also one that the session's own `timeball.consistency` makes `stale`, has the token by itself.
    #[must_use]
    pub fn after_token(mut self) -> Self {
        self.after_token = true;
        self
    }
    /// It is tried so often, at least once.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// Whether it sees what the token of the process stands for.
    pub(crate) fn takes_token(&self) -> bool {
        let past = self.consistency == Some(Consistency::Stale) || self.as_of.is_some();
        self.after_token || !past
    }

    /// As BEGIN says it.
    pub(crate) fn begin(&self) -> String {
        let mut text = String::from("BEGIN");
        text.push_str(match self.isolation {
            None => "",
            Some(Isolation::Serializable) => " ISOLATION LEVEL SERIALIZABLE",
            Some(Isolation::RepeatableRead) => " ISOLATION LEVEL REPEATABLE READ",
            Some(Isolation::ReadCommitted) => " ISOLATION LEVEL READ COMMITTED",
        });
        text.push_str(match self.consistency {
            None => "",
            Some(Consistency::Auto) => " CONSISTENCY auto",
            Some(Consistency::Strict) => " CONSISTENCY strict",
            Some(Consistency::Hybrid) => " CONSISTENCY hybrid",
            Some(Consistency::Token) => " CONSISTENCY token",
            Some(Consistency::None) => " CONSISTENCY none",
            Some(Consistency::Stale) => " CONSISTENCY stale",
        });
        if self.read_only {
            text.push_str(" READ ONLY");
        }
        if let Some(expression) = &self.as_of {
            text.push_str(" AS OF SYSTEM TIME ");
            text.push_str(expression);
        }
        text
    }

    /// The pause before attempt `next`, which is the second or a later one. `spread`: any number; those who met each other do not meet again.
    pub(crate) fn pause(next: u32, spread: u32) -> Duration {
        let longest = Duration::from_millis(1 << next.min(9)).min(Self::PAUSE_MAX);
        longest / 2 + longest / 2 * (spread % 64) / 64
    }
}

#[cfg(test)]
mod tests {
    use super::{Consistency, How, Isolation};
    use std::time::Duration;

    #[test]
    fn begin_says_what_was_chosen_and_nothing_else() {
        assert_eq!(How::default().begin(), "BEGIN");
        let how = How::default().isolation(Isolation::RepeatableRead).consistency(Consistency::Strict).read_only();
        assert_eq!(how.begin(), "BEGIN ISOLATION LEVEL REPEATABLE READ CONSISTENCY strict READ ONLY");
        assert_eq!(How::default().as_of("'-10s'").begin(), "BEGIN AS OF SYSTEM TIME '-10s'");
    }

    #[test]
    fn the_past_takes_no_token_unasked() {
        let how = How::default;
        for present in [how(), how().consistency(Consistency::None), how().consistency(Consistency::Strict).read_only()]
        {
            assert!(present.takes_token(), "{present:?}");
        }
        for past in
            [how().consistency(Consistency::Stale), how().as_of("'-10s'"), how().as_of("with_negotiated_timestamp()")]
        {
            assert!(!past.takes_token() && past.clone().after_token().takes_token(), "{past:?}");
        }
    }

    #[test]
    fn pauses_grow_to_a_bound() {
        for spread in [0, 63, u32::MAX] {
            let pauses: Vec<Duration> = (2..30).map(|next| How::pause(next, spread)).collect();
            assert!(pauses.is_sorted() && pauses.iter().all(|pause| *pause <= How::PAUSE_MAX), "{pauses:?}");
            assert!(pauses[0] >= Duration::from_millis(2));
        }
    }
}
