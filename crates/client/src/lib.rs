//! Transactions of Timeball, for programs that use `tokio-postgres` or `postgres`.
//!
//! Timeball speaks PostgreSQL's protocol, so either driver does by itself. What they do not know is what is Timeball's own: how much recency each transaction
//! buys and with what, that a token carries causality from one connection to the next, and which failures mean that a transaction is to be run again.
//!
//! ```no_run
//! use timeball_client::{Consistency, How, Timeball};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // One for each cluster, shared by all that talk to it; a copy is the same one.
//! let timeball = Timeball::new();
//! let mut client = postgres::Client::connect("postgresql://root@localhost:5433/postgres", postgres::NoTls)?;
//! let paid = timeball.run_blocking(&mut client, &How::default(), |db| {
//!     db.execute("UPDATE accounts SET balance = balance - 10 WHERE id = $1", &[&1])?;
//!     Ok(db.query_one("SELECT balance FROM accounts WHERE id = $1", &[&1])?.get::<_, i64>(0))
//! })?;
//! println!("{} is left, as of {:?}", paid.value, paid.token);
//! // Any other connection, at any node: what was written is seen.
//! let how = How::default().consistency(Consistency::Token).read_only();
//! timeball.run_blocking(&mut client, &how, |db| Ok(db.query("SELECT * FROM accounts", &[])?))?;
//! # Ok(())
//! # }
//! ```
//!
//! 1. **The choice** is made for each transaction ([`How`]), with all that `BEGIN` takes.
//! 2. **The token** is kept by [`Timeball`]: each transaction that reads the present begins with the greatest that any has left, and leaves its own. It travels with BEGIN and COMMIT: with
//!    `tokio-postgres` it costs no round trip of its own, with `postgres` it costs one after the commit. Between services send [`Timeball::token`] along, and give it to [`Timeball::heard`] there.
//! 3. **What failed for others' sake runs again** ([`How::attempts`] times at most): 40001 and 40P01, after a pause that grows. So what is done inside must be the
//!    database's alone.
//! 4. **What may have committed never runs again**: 40003, a connection that is lost while a commit is on its way, and whatever else leaves a
//!    doubt (a statement's time that ran out there) are [`Error::Unknown`]. What has committed is never an error: where only the token did not come, it is left out.

mod asynchronous;
mod blocking;
mod error;
mod how;
mod token;

pub use asynchronous::Work;
pub use blocking::Transaction;
pub use error::Error;
pub use how::{Consistency, How, Isolation};
pub use token::{Done, Timeball, Token};
