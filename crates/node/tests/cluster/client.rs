//! A client's transactions, as straight lines.

use super::world::{Engine, Env, key, poll_fn};
use bytes::Bytes;
use clock::Timestamp;
use node::cluster::Transaction;
use node::{BeginOptions, Consistency, LockMode, TxnError, WhenLocked};

pub struct Txn {
    pub env: Env,
    pub txn: Transaction<Engine>,
}

impl Txn {
    pub fn begin(env: &Env) -> Result<Txn, TxnError> {
        Self::with(env, BeginOptions::default())
    }
    pub fn with(env: &Env, options: BeginOptions) -> Result<Txn, TxnError> {
        let txn = Transaction::begin(&env.member, &env.now(), &options)?;
        Ok(Txn { env: env.clone(), txn })
    }
    pub fn hybrid(env: &Env) -> Result<Txn, TxnError> {
        Self::with(env, BeginOptions { consistency: Consistency::Hybrid, ..BeginOptions::default() })
    }
    pub fn strict(env: &Env) -> Result<Txn, TxnError> {
        Self::with(env, BeginOptions { consistency: Consistency::Strict, ..BeginOptions::default() })
    }
    pub async fn get(&mut self, name: &str) -> Result<Option<String>, TxnError> {
        let name = key(name);
        let value = poll_fn(|cx| self.txn.get(&self.env.now(), &name, false, cx.waker())).await?;
        Ok(value.map(|value| String::from_utf8(value.to_vec()).unwrap()))
    }
    pub async fn number(&mut self, name: &str) -> Result<i64, TxnError> {
        Ok(self.get(name).await?.map_or(0, |text| text.parse().unwrap()))
    }
    pub async fn lock(&mut self, name: &str) -> Result<bool, TxnError> {
        let name = key(name);
        let (mode, when) = (LockMode::Update, WhenLocked::Wait);
        poll_fn(|cx| self.txn.lock(&self.env.now(), &name, mode, when, cx.waker())).await
    }
    /// As [`Txn::lock`], and does not wait.
    pub async fn try_lock(&mut self, name: &str) -> Result<bool, TxnError> {
        let name = key(name);
        let (mode, when) = (LockMode::Update, WhenLocked::Fail);
        poll_fn(|cx| self.txn.lock(&self.env.now(), &name, mode, when, cx.waker())).await
    }
    pub fn put(&mut self, name: &str, value: impl ToString) {
        self.txn.put(key(name), Bytes::from(value.to_string())).unwrap();
    }
    pub async fn scan(&mut self, from: &str, to: &str, reverse: bool) -> Result<Vec<(String, String)>, TxnError> {
        let mut span = key(from)..key(to);
        let mut rows = Vec::new();
        loop {
            let chunk = poll_fn(|cx| self.txn.scan(&self.env.now(), &span, reverse, 2, false, cx.waker())).await?;
            let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
            rows.extend(chunk.rows.into_iter().map(|(key, value)| (text(key), text(value))));
            match chunk.rest {
                Some(rest) => span = rest,
                None => return Ok(rows),
            }
        }
    }
    pub async fn commit(mut self) -> Result<Timestamp, TxnError> {
        poll_fn(|cx| self.txn.commit(&self.env.now(), cx.waker())).await
    }
}

/// Writes these, until it is done.
pub async fn set(env: Env, pairs: Vec<(String, String)>) -> Timestamp {
    for _ in 0..100 {
        let mut txn = Txn::begin(&env).unwrap();
        for (name, value) in &pairs {
            txn.put(name, value);
        }
        match txn.commit().await {
            Ok(at) => return at,
            Err(TxnError::Restart { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    panic!("it conflicts for ever");
}

pub fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

/// Reads a key, until it is read.
pub async fn value(env: Env, name: &'static str) -> Option<String> {
    loop {
        let mut txn = Txn::begin(&env).unwrap();
        match txn.get(name).await {
            Ok(value) => return value,
            Err(TxnError::Restart { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}
