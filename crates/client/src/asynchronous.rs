//! With `tokio-postgres`.

use crate::token::{COMMIT, SHOW};
use crate::{Done, Error, How, Timeball, Token};
use futures_core::Stream;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};
use tokio_postgres::{Client, SimpleQueryMessage};

/// What is done in a transaction: `Box::pin(async move { .. })`. (Boxed, so that it can be known to be `Send`, whatever it borrows.)
pub type Work<'c, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'c>>;

/// A transaction that is open is rolled back where its future is dropped, or ends in any other way.
struct Open<'c>(Option<&'c Client>);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let Some(client) = self.0.filter(|client| !client.is_closed()) else { return };
        // Nobody waits for the answer: asked once the statement is on its way, before whatever comes next.
        let rollback = pin!(client.batch_execute("ROLLBACK"));
        let _ = rollback.poll(&mut Context::from_waker(Waker::noop()));
    }
}

impl Timeball {
    /// Runs `body` in a transaction of `client`, commits it, and tries again where others were in the way. To be called on tokio.
    ///
    /// # Errors
    /// Those of `body`; [`Error`] says what is known of the transaction then.
    pub async fn run<T>(
        &self,
        client: &mut Client,
        how: &How,
        mut body: impl for<'c> FnMut(&'c Client) -> Work<'c, T>,
    ) -> Result<Done<T>, Error> {
        let mut attempts = 1;
        loop {
            let last = match self.attempt_once(client, how, &mut body).await {
                Ok((value, token)) => return Ok(Done { value, token, attempts }),
                Err(error) => error.conflict()?,
            };
            if attempts >= how.attempts {
                return Err(Error::Conflict { attempts, last });
            }
            attempts += 1;
            tokio::time::sleep(How::pause(attempts, self.spread())).await;
        }
    }

    async fn attempt_once<T>(
        &self,
        client: &Client,
        how: &How,
        body: &mut impl for<'c> FnMut(&'c Client) -> Work<'c, T>,
    ) -> Result<(T, Option<Token>), Error> {
        let mut open = Open(Some(client));
        client.batch_execute(&self.begin(how)).await?;
        let value = body(client).await?;
        let token = commit(client).await?;
        open.0 = None;
        if let Some(token) = &token {
            self.heard(token.clone());
        }
        Ok((value, token))
    }
}

/// Commits, and tells what was seen then, in one text. Once COMMIT is answered nothing that comes behind it changes that.
async fn commit(client: &Client) -> Result<Option<Token>, Error> {
    let text = format!("{COMMIT}; {SHOW}");
    let mut answers = pin!(client.simple_query_raw(&text).await.map_err(Error::of_commit)?);
    let (mut complete, mut token) = (0, None);
    while let Some(answer) = poll_fn(|context| answers.as_mut().poll_next(context)).await {
        match answer {
            Ok(SimpleQueryMessage::CommandComplete(_)) => complete += 1,
            Ok(SimpleQueryMessage::Row(row)) if complete == COMMITTED => token = row.get(0).and_then(Token::new),
            Ok(_) => {}
            Err(error) if complete < COMMITTED => return Err(Error::of_commit(error)),
            Err(_) => break,
        }
    }
    Ok(token)
}

/// So many statements of the text are complete once it has committed.
const COMMITTED: usize = 2;
