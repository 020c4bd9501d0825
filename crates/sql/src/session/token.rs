//! The session's token: how it leaves and comes back ([`crate::catalog::seal`]).

use super::{Block, Session};
use crate::catalog::cache::is_out_of_reach;
use crate::catalog::seal::Refusal;
use crate::catalog::{Seal, Wait};
use crate::transaction::{BeginOptions, Consistency};
use crate::{KvError, SqlError};
use clock::Timestamp;
use std::sync::Arc;

impl Session {
    pub(super) fn show_token(&self) -> String {
        // By keys of before it is a token, too: who can do without an answer does not wait for long.
        match self.present_seal(Wait::Hasty).unwrap_or_else(|_| self.known_seal()) {
            Some(seal) => seal.sign(self.token),
            None => self.token.to_string(),
        }
    }

    /// What the client is to be told before it is asked for more: a parameter and its value. By the keys that the session knows, so it costs no round trip.
    pub fn take_token_report(&mut self) -> Option<(&'static str, String)> {
        if !self.settings.report_token || self.token == self.reported_token || self.block != Block::None {
            return None;
        }
        self.reported_token = self.token;
        Some(("timeball.token", self.known_seal().map_or_else(|| self.token.to_string(), |seal| seal.sign(self.token))))
    }

    pub(super) fn read_token(&self, text: &str) -> Result<Timestamp, SqlError> {
        let token = read(self.present_seal(Wait::Patient)?.as_deref(), text).map_err(|refusal| refusal.of(text))?;
        // Whoever took one that no clock can have shown could begin nothing any more.
        let options =
            BeginOptions { token, read_only: true, consistency: Consistency::Token, ..BeginOptions::default() };
        match self.db.kv.begin(&options) {
            Err(KvError::SnapshotUnavailable { .. }) => Err(Refusal::Future.of(text)),
            _ => Ok(token),
        }
    }

    /// As [`Session::read_token`], by the keys that the session knows; where it does not know the one by which this was signed, it may be new.
    pub(super) fn read_known_token(&self, text: &str) -> Result<Timestamp, SqlError> {
        match read(self.known_seal().as_deref(), text) {
            Err(Refusal::UnknownKey(_)) => read(self.present_seal(Wait::Patient)?.as_deref(), text),
            known => known,
        }
        .map_err(|refusal| refusal.of(text))
    }

    fn known_seal(&self) -> Option<Arc<Seal>> {
        self.view.as_ref().and_then(|view| view.snapshot().seal().cloned())
    }

    /// The keys as they are now: somebody may have renewed them since this session looked. Where nobody can be asked, as they were
    /// then: what is only late is waited for, so that a key that was given up is not believed, and who is cancelled meanwhile has not looked.
    fn present_seal(&self, wait: Wait) -> Result<Option<Arc<Seal>>, SqlError> {
        let patience = self.patience();
        let options = BeginOptions {
            read_only: true,
            interrupt: patience.interrupt.clone(),
            deadline: patience.deadline.clone(),
            ..BeginOptions::default()
        };
        let known = self.view.as_ref().map(|view| (view.snapshot(), self.view_at));
        let kv = self.db.kv.as_ref();
        let looked = kv.begin(&options).map_err(SqlError::from).and_then(|mut txn| {
            // What was seen later than this snapshot says nothing of it.
            let known = known.filter(|(_, at)| *at <= txn.snapshot());
            self.db.catalog.look(kv, &patience, txn.as_mut(), known, wait)
        });
        match looked {
            Ok(catalog) => Ok(catalog.seal().cloned()),
            Err(error) if is_out_of_reach(&error) => Ok(self.known_seal()),
            Err(error) => Err(error),
        }
    }
}

/// By no keys at all, in a catalog of an older release, it is a bare timestamp.
fn read(seal: Option<&Seal>, text: &str) -> Result<Timestamp, Refusal> {
    match seal {
        Some(seal) => seal.read(text),
        None => text.trim().parse().map_err(|_| Refusal::Malformed),
    }
}

/// Whether a text is meant as a token, and not as a bare timestamp.
pub(super) fn is_signed(text: &str) -> bool {
    text.split_once('-').is_some_and(|(timestamp, _)| timestamp.parse::<Timestamp>().is_ok())
}
