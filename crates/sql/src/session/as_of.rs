//! AS OF SYSTEM TIME: what a reader of the past may say, as a timestamp.

use super::Session;
use super::prepared::Prepared;
use crate::syntax::{AsOf, Moment};
use crate::transaction::{BeginOptions, Consistency};
use crate::types::calendar::EPOCH_OFFSET_US;
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState};
use bytes::Bytes;
use clock::Timestamp;

/// How old `follower_read_timestamp()` is, microseconds: old enough that every replica has it.
pub const FOLLOWER_READ_AGE_US: u64 = 4_200_000;
/// Decimals from here on are nanoseconds since the Unix epoch (CockroachDB's form), below it microseconds (a token's).
const NANOSECONDS_FROM: u64 = 100_000_000_000_000_000;
/// So many ways to say a transaction's time are remembered; any other is looked at by itself.
const WORDS_MAX: usize = 16;

impl Session {
    /// The time that is said. `statement`: what is to be read then, and the values of its parameters; without one that may be anything. What says the same
    /// as the transaction's own time is that: an interval counts from one moment in all of a transaction's statements, as `now()` is one.
    pub(super) fn resolve_as_of(
        &mut self,
        as_of: &AsOf,
        statement: Option<(&Prepared, &[Value])>,
    ) -> Result<Timestamp, SqlError> {
        let said = self.in_words(as_of, statement.map_or(&[], |(_, values)| values))?;
        let own = self.active.as_ref().and_then(|active| active.as_of);
        if let Some((known, at)) = &self.time_said
            && known.contains(&said)
            && own == Some(*at)
        {
            return Ok(*at);
        }
        let at = self.resolve(&said, statement.map(|(statement, _)| statement))?;
        self.remember_said(said, at);
        Ok(at)
    }

    /// What says the transaction's own time is known as long as it does, whatever else is said in between (a bound that the time keeps to; a time that is only
    /// bound yet, or refused).
    fn remember_said(&mut self, said: AsOf, at: Timestamp) {
        let own = self.active.as_ref().and_then(|active| active.as_of);
        let begun = self.active.as_ref().is_some_and(|active| !active.has_done_nothing());
        match &mut self.time_said {
            Some((words, known)) if own == Some(*known) && at == *known => {
                if words.len() < WORDS_MAX {
                    words.push(said);
                }
            }
            Some((_, known)) if own == Some(*known) && begun => {}
            _ => self.time_said = Some((vec![said], at)),
        }
    }

    fn resolve(&mut self, said: &AsOf, statement: Option<&Prepared>) -> Result<Timestamp, SqlError> {
        match said {
            AsOf::Negotiated(bound) => self.negotiate(bound.as_ref().map(words).transpose()?, statement),
            AsOf::FollowerRead => Ok(self.db.kv.ago(FOLLOWER_READ_AGE_US)),
            AsOf::MaxStaleness(age) => {
                let us = self.age_us("with_max_staleness", words(age)?)?;
                Ok(self.fresh_within(self.db.kv.ago(us)))
            }
            AsOf::MinTimestamp(moment) => {
                let least = self.instant(words(moment)?)?;
                // Nothing may be visible yet of the last moments, nor of what lies ahead of a clock that was set back.
                if least > at(self.db.kv.now_us()).max(self.db.kv.ago(0)) {
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER, "with_min_timestamp lies in the future"));
                }
                Ok(self.fresh_within(least))
            }
            AsOf::At(moment) => self.instant(words(moment)?),
        }
    }

    /// What was said, its parameter in words.
    fn in_words(&self, as_of: &AsOf, values: &[Value]) -> Result<AsOf, SqlError> {
        let say = |moment: &Moment| self.said(moment, values).map(Moment::Text);
        Ok(match as_of {
            AsOf::At(moment) => AsOf::At(say(moment)?),
            AsOf::FollowerRead => AsOf::FollowerRead,
            AsOf::MaxStaleness(age) => AsOf::MaxStaleness(say(age)?),
            AsOf::MinTimestamp(moment) => AsOf::MinTimestamp(say(moment)?),
            AsOf::Negotiated(bound) => AsOf::Negotiated(bound.as_ref().map(say).transpose()?),
        })
    }

    /// What was written, or what the parameter is that stands there.
    fn said(&self, moment: &Moment, values: &[Value]) -> Result<String, SqlError> {
        let index = match moment {
            Moment::Text(text) => return Ok(text.clone()),
            Moment::Parameter(index) => *index,
        };
        let number = index + 1;
        match values.get(index) {
            None => Err(no_parameter(number)),
            Some(Value::Null) => Err(SqlError::new(
                SqlState(*b"22004"),
                format!("AS OF SYSTEM TIME: the parameter ${number} is null"),
            )
            .hint("Give it a negative interval such as '-10s', a timestamp, or a decimal of nanoseconds since 1970.")),
            // Whatever `IntervalStyle` is.
            Some(Value::Interval(interval)) => Ok(format!("{} us", interval.total_us())),
            Some(value) => Ok(value.to_iso_text(&value.natural_type(), &self.settings.eval)),
        }
    }

    fn age_us(&self, what: &str, text: &str) -> Result<u64, SqlError> {
        let us = self.interval_us(text)?;
        u64::try_from(us).map_err(|_| {
            SqlError::new(SqlState::INVALID_PARAMETER, format!("{what}: the interval '{text}' is negative"))
        })
    }

    /// The oldest of what the leaders of all that is read answer, each asked once: nothing that is on its way is waited for there (002 section 4.4). Never
    /// older than the bound, or than what the session has seen.
    fn negotiate(&mut self, bound: Option<&str>, statement: Option<&Prepared>) -> Result<Timestamp, SqlError> {
        let age_us = bound.map(|text| self.age_us("with_negotiated_timestamp", text)).transpose()?;
        let least = age_us.map_or(Timestamp::MIN, |us| self.db.kv.ago(us)).max(self.token);
        if let Some(active) = &self.active {
            // Without a bound it is what leaders say now, which no other time is.
            if let Some(at) = active.as_of.filter(|at| bound.is_some() && *at >= least) {
                return Ok(at);
            }
            if !active.has_done_nothing() {
                // Whoever asked refuses it.
                return Ok(least);
            }
        }
        let everything = || vec![Bytes::new()..Bytes::from_static(&[0xff])];
        let spans = statement.and_then(|statement| self.spans_of(statement)).unwrap_or_else(everything);
        let options = BeginOptions { consistency: Consistency::None, ..self.begin_options(None) };
        let at = self.db.kv.begin(&options)?.negotiate(&spans, least)?;
        if at >= least {
            return Ok(at);
        }
        let what = format!(
            "a transaction that began to commit at {at} is in the way, and no snapshot at or after {least} can be read without waiting for it"
        );
        Err(SqlError::new(SqlState::NOT_IN_PREREQUISITE_STATE, format!("with_negotiated_timestamp: {what}")).hint(
            "Ask again, allow an older snapshot, or read AS OF SYSTEM TIME with_max_staleness('..'), which waits.",
        ))
    }

    /// The freshest snapshot that can be read here without asking another node, if it is not before `least`, else `least` itself, which others are asked
    /// for. A session never goes back behind what it has seen or written (004 section 2.2).
    fn fresh_within(&self, least: Timestamp) -> Timestamp {
        let least = least.max(self.token);
        let present = self.active.as_ref().and_then(|active| active.as_of).filter(|at| *at >= least);
        present.unwrap_or_else(|| self.db.kv.freshest(least))
    }

    /// What `timeball.max_staleness` lets a query read. Where it is not set (the mode `stale`), what is here, however old: that needs nobody else. What is not kept any more does not
    /// count: a replica that has just begun would have nothing else.
    pub(super) fn stale_snapshot(&self) -> Timestamp {
        let bound_us = self.settings.max_staleness_us.unsigned_abs();
        if bound_us > 0 {
            return self.fresh_within(self.db.kv.ago(bound_us));
        }
        let kept_us = self.db.options.retention_seconds.map(|seconds| seconds.saturating_mul(1_000_000));
        let kept = kept_us.map_or(Timestamp::MIN, |us| self.db.kv.ago(us.max(FOLLOWER_READ_AGE_US)));
        self.db.kv.freshest_alone(kept.max(self.token))
    }

    fn instant(&self, text: &str) -> Result<Timestamp, SqlError> {
        let text = text.trim();
        if super::token::is_signed(text) {
            return self.read_known_token(text);
        }
        if let Some(time) = decimal(text) {
            return Ok(time);
        }
        let relative = text.starts_with('-') || text.starts_with('+');
        if relative {
            let us = self.interval_us(text)?;
            if us > 0 {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER,
                    format!("AS OF SYSTEM TIME: the interval '{text}' is not negative, so it lies in the future"),
                )
                .hint("Write it with a minus sign: '-10s'."));
            }
            return Ok(self.db.kv.ago(us.unsigned_abs()));
        }
        match Value::parse_text(&SqlType::Timestamptz(None), text, &self.settings.eval) {
            Ok(Value::Timestamptz(us)) => Ok(at(us.saturating_add(EPOCH_OFFSET_US))),
            _ => Err(SqlError::new(SqlState::INVALID_PARAMETER, format!("AS OF SYSTEM TIME: \"{text}\" is no time"))
                .hint("Give a negative interval such as '-10s', a timestamp, or a decimal of nanoseconds since 1970.")),
        }
    }

    fn interval_us(&self, text: &str) -> Result<i64, SqlError> {
        match Value::parse_text(&SqlType::Interval(None), text, &self.settings.eval)? {
            Value::Interval(interval) => i64::try_from(interval.total_us())
                .map_err(|_| SqlError::new(SqlState::DATETIME_OVERFLOW, format!("interval out of range: \"{text}\""))),
            _ => Err(SqlError::new(SqlState::INVALID_DATETIME, format!("\"{text}\" is no interval"))),
        }
    }
}

/// See [`Session::in_words`].
fn words(moment: &Moment) -> Result<&str, SqlError> {
    match moment {
        Moment::Text(text) => Ok(text),
        Moment::Parameter(index) => Err(no_parameter(index + 1)),
    }
}

fn no_parameter(number: usize) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter ${number}"))
}

fn at(us: i64) -> Timestamp {
    Timestamp::new(us.max(0) as u64, 0)
}

/// `1750000000123456789.0000000001`: nanoseconds and a logical part; or a token, microseconds and a logical part.
fn decimal(text: &str) -> Option<Timestamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let number: u64 = whole.parse().ok()?;
    if whole.len() < 14 {
        return None;
    }
    if number >= NANOSECONDS_FROM {
        return Some(Timestamp::new(number / 1000, Timestamp::LOGICAL_MAX.min(fraction.parse().unwrap_or(0))));
    }
    text.parse().ok().or(Some(Timestamp::new(number, 0)))
}
