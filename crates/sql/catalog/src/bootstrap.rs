//! What a fresh store is given.

use super::snapshot::{POSTGRES_DATABASE, POSTGRES_PUBLIC};
use super::{Database, Schema, Seal, codec, key};
use crate::SqlError;
use crate::transaction::{BeginOptions, Kv, Transaction};
use crate::types::fill_by_chance;
use bytes::Bytes;

/// Writes the database `postgres`, its schema `public` and the first keys of tokens, unless there is a catalog already.
///
/// # Errors
/// Those of the layers below.
pub fn bootstrap(kv: &dyn Kv) -> Result<(), SqlError> {
    let mut txn = kv.begin(&BeginOptions::default())?;
    if txn.get_certified(&key::VERSION_KEY)?.is_some() {
        // One of an older release has none. Where none can be made now tokens are bare timestamps until the next start.
        if txn.get_certified(&key::SEAL_KEY)?.is_none() {
            let _ = seal(kv, txn.as_mut());
        }
        return Ok(());
    }
    let database = Database { id: POSTGRES_DATABASE, name: "postgres".into(), extensions: Vec::new() };
    let public = Schema { id: POSTGRES_PUBLIC, database: database.id, name: "public".into() };
    txn.put(Bytes::copy_from_slice(&key::object(key::DATABASES, database.id)), codec::encode(&database)?)?;
    txn.put(Bytes::copy_from_slice(&key::object(key::SCHEMAS, public.id)), codec::encode(&public)?)?;
    seal(kv, txn.as_mut())
}

/// Commits a catalog that has keys, under a new number.
fn seal(kv: &dyn Kv, txn: &mut dyn Transaction) -> Result<(), SqlError> {
    let seal = Seal::draw(kv.cluster(), &fill_by_chance)?;
    txn.put(Bytes::from_static(&key::SEAL_KEY), codec::encode(&seal)?)?;
    let version = kv.unique_id().to_be_bytes();
    txn.put(Bytes::from_static(&key::VERSION_KEY), Bytes::copy_from_slice(&version))?;
    txn.commit()?;
    Ok(())
}
