//! With `postgres`.

use crate::token::{COMMIT, SHOW};
use crate::{Done, Error, How, Timeball, Token};
use postgres::{Client, SimpleQueryMessage};
use std::ops::{Deref, DerefMut};

/// A transaction that is open: its connection, which it gives back rolled back if it is left in any other way.
pub struct Transaction<'c> {
    client: &'c mut Client,
    open: bool,
}

impl Deref for Transaction<'_> {
    type Target = Client;
    fn deref(&self) -> &Client {
        self.client
    }
}

impl DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Client {
        self.client
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.open && !self.client.is_closed() {
            // Where it fails the connection is of no use, which whoever has it finds out.
            drop(self.client.batch_execute("ROLLBACK"));
        }
    }
}

/// The token among what SHOW gave.
fn token_of(messages: &[SimpleQueryMessage]) -> Option<Token> {
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Token::new(rows.last()?)
}

impl Timeball {
    /// Runs `body` in a transaction of `client`, commits it, and tries again where others were in the way.
    ///
    /// # Errors
    /// Those of `body`; [`Error`] says what is known of the transaction then.
    #[allow(clippy::disallowed_methods, reason = "a client's thread waits before it tries again")]
    pub fn run_blocking<T>(
        &self,
        client: &mut Client,
        how: &How,
        mut body: impl FnMut(&mut Transaction<'_>) -> Result<T, Error>,
    ) -> Result<Done<T>, Error> {
        let mut attempts = 1;
        loop {
            let last = match self.attempt(client, how, &mut body) {
                Ok((value, token)) => return Ok(Done { value, token, attempts }),
                Err(error) => error.conflict()?,
            };
            if attempts >= how.attempts {
                return Err(Error::Conflict { attempts, last });
            }
            attempts += 1;
            std::thread::sleep(How::pause(attempts, self.spread()));
        }
    }

    fn attempt<T>(
        &self,
        client: &mut Client,
        how: &How,
        body: &mut impl FnMut(&mut Transaction<'_>) -> Result<T, Error>,
    ) -> Result<(T, Option<Token>), Error> {
        client.batch_execute(&self.begin(how))?;
        let mut transaction = Transaction { client, open: true };
        let value = body(&mut transaction)?;
        // The driver gives all answers to a text or one error: whether COMMIT had one of its own is seen only where nothing stands behind it.
        transaction.client.batch_execute(COMMIT).map_err(Error::of_commit)?;
        transaction.open = false;
        let token = transaction.client.simple_query(SHOW).ok().and_then(|messages| token_of(&messages));
        if let Some(token) = &token {
            self.heard(token.clone());
        }
        Ok((value, token))
    }
}
