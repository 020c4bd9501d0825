//! What a fresh store is given.

use super::snapshot::{POSTGRES_DATABASE, POSTGRES_PUBLIC};
use super::{Database, Schema, codec, key};
use crate::SqlError;
use crate::transaction::{BeginOptions, Kv};
use bytes::Bytes;

/// Writes the database `postgres` and its schema `public`, unless there is a catalog already.
///
/// # Errors
/// Those of the layers below.
pub fn bootstrap(kv: &dyn Kv) -> Result<(), SqlError> {
    let mut txn = kv.begin(&BeginOptions::default())?;
    if txn.get_certified(&key::VERSION_KEY)?.is_some() {
        return Ok(());
    }
    let database = Database { id: POSTGRES_DATABASE, name: "postgres".into(), extensions: Vec::new() };
    let public = Schema { id: POSTGRES_PUBLIC, database: database.id, name: "public".into() };
    txn.put(Bytes::copy_from_slice(&key::object(key::DATABASES, database.id)), codec::encode(&database)?)?;
    txn.put(Bytes::copy_from_slice(&key::object(key::SCHEMAS, public.id)), codec::encode(&public)?)?;
    let version = kv.unique_id().to_be_bytes();
    txn.put(Bytes::from_static(&key::VERSION_KEY), Bytes::copy_from_slice(&version))?;
    txn.commit()?;
    Ok(())
}
