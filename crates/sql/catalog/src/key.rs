//! Where the catalog lives in the key space: index ids below [`FIRST_USER_OID`], so that no table meets it.
//!
//! ```text
//! 1                 -> u64: the catalog's number; every transaction looks at it, every change of the catalog writes it over
//! 1 | oid           -> nothing: locked by whoever changes a table, for as long as that takes, and so before all else
//! 1 | number        -> nothing: one of a few permits, locked by a statement that writes its table anew (small numbers, which are no table's)
//! 2 | oid           -> database      3 | oid -> schema      4 | oid -> table, view or sequence
//! 5 | oid           -> where a sequence stands (outside transactions)
//! 6                 -> u32: next OID to hand out (outside transactions)
//! 7 | index id      -> the data below this index id is garbage once the record commits (see `garbage`)
//! 8 | scope | name  -> nothing: a write ends the absence of the name in a schema, a database, or (0) the cluster (decision 103)
//! 9 | oid | version -> nothing: a write ends this version of an object; of the greatest version, says that something depends on it
//! 10 | database, class, object, pair -> nothing: locked by sessions of a cluster (`advisory`)
//! 11                -> the keys that sign tokens of sessions (`seal`)
//! 12 | oid          -> statistics of a table (written by transactions of their own; a record may be missing, or outlive its table)
//! 13                -> what sessions begin with (`defaults`)
//! ```

use super::Oid;
use crate::transaction::Span;
use bytes::Bytes;

/// Index id of the version.
pub const VERSION: u32 = 1;
/// Index id of databases.
pub const DATABASES: u32 = 2;
/// Index id of schemas.
pub const SCHEMAS: u32 = 3;
/// Index id of tables, views and sequences.
pub const RELATIONS: u32 = 4;
/// Index id of sequence positions.
pub const SEQUENCES: u32 = 5;
/// Index id of the OID allocator.
pub(crate) const NEXT_OID: u32 = 6;
/// Index id of the garbage records.
pub const GARBAGE: u32 = 7;

/// Index id of the tokens of names.
pub const NAMES: u32 = 8;
/// Index id of the tokens of versions.
pub(crate) const VERSIONS: u32 = 9;
/// Index id of advisory locks.
pub const ADVISORY: u32 = 10;
/// Index id of the keys of tokens.
pub(crate) const SEAL: u32 = 11;
/// Index id of statistics.
pub const STATISTICS: u32 = 12;
/// Index id of what sessions begin with.
pub(crate) const DEFAULTS: u32 = 13;
/// The scope of the names of databases.
pub const CLUSTER: Oid = 0;

/// The key of the catalog's number.
pub const VERSION_KEY: [u8; 4] = VERSION.to_be_bytes();
/// Where the keys of tokens are.
pub const SEAL_KEY: [u8; 4] = SEAL.to_be_bytes();
/// Where it is kept what sessions begin with.
pub const DEFAULTS_KEY: [u8; 4] = DEFAULTS.to_be_bytes();
/// The key of the OID allocator.
pub(crate) const NEXT_OID_KEY: [u8; 4] = NEXT_OID.to_be_bytes();

/// The key of an object's record.
pub fn object(area: u32, id: Oid) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&area.to_be_bytes());
    key[4..].copy_from_slice(&id.to_be_bytes());
    key
}

/// The key that whoever changes a table holds, before the lock on its record.
pub fn guard(id: Oid) -> Bytes {
    Bytes::copy_from_slice(&object(VERSION, id))
}

/// The key that one of a few statements that write their tables anew holds while it does.
pub fn permit(number: u32) -> Bytes {
    Bytes::copy_from_slice(&object(VERSION, number))
}

/// Whether a key is one of these.
pub(crate) fn is_permit(key: &[u8]) -> bool {
    key.starts_with(&VERSION_KEY) && object_id(key).is_some_and(|id| id < super::FIRST_USER_OID)
}

/// The token that a name stands for nothing in a scope: the OID of a schema, of a database (its schemas), or [`CLUSTER`].
pub fn absence(scope: Oid, name: &str) -> Bytes {
    let mut key = Vec::with_capacity(8 + name.len());
    key.extend_from_slice(&NAMES.to_be_bytes());
    key.extend_from_slice(&scope.to_be_bytes());
    key.extend_from_slice(name.as_bytes());
    Bytes::from(key)
}

/// The token of a version of an object; 0 for what has no versions.
pub fn version(id: Oid, version: u64) -> Bytes {
    let mut key = Vec::with_capacity(16);
    key.extend_from_slice(&VERSIONS.to_be_bytes());
    key.extend_from_slice(&id.to_be_bytes());
    key.extend_from_slice(&version.to_be_bytes());
    Bytes::from(key)
}

/// The token that nothing more depends on an object: that reads it, or lies in it.
pub fn dependents(id: Oid) -> Bytes {
    version(id, u64::MAX)
}

/// The id in an object's key.
pub(crate) fn object_id(key: &[u8]) -> Option<Oid> {
    Some(u32::from_be_bytes(key.get(4..8)?.try_into().ok()?))
}

/// All keys that start with an index id: a catalog area, or the entries of an index.
pub fn index_span(id: u32) -> Span {
    let end = match id.checked_add(1) {
        Some(next) => Bytes::copy_from_slice(&next.to_be_bytes()),
        None => Bytes::from_static(&[0xff; 5]),
    };
    Bytes::copy_from_slice(&id.to_be_bytes())..end
}
