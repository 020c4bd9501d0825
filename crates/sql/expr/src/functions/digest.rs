//! Digests: PostgreSQL's `sha256` and its kin, and of the extension pgcrypto `digest`, `hmac` and `gen_random_bytes`.

use super::super::function::{Function, Sig};
use super::{bytes_at, int_at, str_at};
use crate::types::{SqlType as T, Value, fill_by_chance};
use crate::work;
use crate::{SqlError, SqlState};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

type R = Result<Value, SqlError>;

const TEXT: Sig = Sig::Is(T::Text);
const BYTEA: Sig = Sig::Is(T::Bytea);

/// Most bytes of one `gen_random_bytes`.
const RANDOM_BYTES_MAX: i64 = 1024;

pub(super) static TABLE: &[Function] = &[
    Function::pure("sha224", &[BYTEA], BYTEA, |v, _| digest::<Sha224>(bytes_at(v, 0)?)),
    Function::pure("sha256", &[BYTEA], BYTEA, |v, _| digest::<Sha256>(bytes_at(v, 0)?)),
    Function::pure("sha384", &[BYTEA], BYTEA, |v, _| digest::<Sha384>(bytes_at(v, 0)?)),
    Function::pure("sha512", &[BYTEA], BYTEA, |v, _| digest::<Sha512>(bytes_at(v, 0)?)),
    Function::pure("digest", &[TEXT, TEXT], BYTEA, |v, _| named_digest(str_at(v, 0)?.as_bytes(), str_at(v, 1)?)),
    Function::pure("digest", &[BYTEA, TEXT], BYTEA, |v, _| named_digest(bytes_at(v, 0)?, str_at(v, 1)?)),
    Function::pure("hmac", &[TEXT, TEXT, TEXT], BYTEA, |v, _| {
        named_hmac(str_at(v, 0)?.as_bytes(), str_at(v, 1)?.as_bytes(), str_at(v, 2)?)
    }),
    Function::pure("hmac", &[BYTEA, BYTEA, TEXT], BYTEA, |v, _| {
        named_hmac(bytes_at(v, 0)?, bytes_at(v, 1)?, str_at(v, 2)?)
    }),
    Function::volatile("gen_random_bytes", &[Sig::Is(T::Int4)], BYTEA, |v, _| random_bytes(int_at(v, 0)?)),
];

fn digest<D: Digest>(bytes: &[u8]) -> R {
    work::step(bytes.len())?;
    Ok(Value::Bytea(D::digest(bytes).to_vec().into()))
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, format!("Cannot use \"{name}\": No such hash algorithm"))
        .hint("There are md5, sha1, sha224, sha256, sha384 and sha512.")
}

/// An algorithm's name as pgcrypto reads it: `sha256`, `SHA-256`.
fn plain(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    name.strip_prefix("sha-").map_or(name.clone(), |bits| format!("sha{bits}"))
}

fn named_digest(bytes: &[u8], name: &str) -> R {
    match plain(name).as_str() {
        "md5" => digest::<Md5>(bytes),
        "sha1" => digest::<Sha1>(bytes),
        "sha224" => digest::<Sha224>(bytes),
        "sha256" => digest::<Sha256>(bytes),
        "sha384" => digest::<Sha384>(bytes),
        "sha512" => digest::<Sha512>(bytes),
        _ => Err(unknown(name)),
    }
}

fn keyed<M: Mac + KeyInit>(bytes: &[u8], key: &[u8]) -> R {
    work::step(bytes.len() + key.len())?;
    let wrong = |_| SqlError::new(SqlState::INTERNAL_ERROR, "a key of hmac was refused");
    let mut mac = <M as KeyInit>::new_from_slice(key).map_err(wrong)?;
    mac.update(bytes);
    Ok(Value::Bytea(mac.finalize().into_bytes().to_vec().into()))
}

fn named_hmac(bytes: &[u8], key: &[u8], name: &str) -> R {
    match plain(name).as_str() {
        "md5" => keyed::<Hmac<Md5>>(bytes, key),
        "sha1" => keyed::<Hmac<Sha1>>(bytes, key),
        "sha224" => keyed::<Hmac<Sha224>>(bytes, key),
        "sha256" => keyed::<Hmac<Sha256>>(bytes, key),
        "sha384" => keyed::<Hmac<Sha384>>(bytes, key),
        "sha512" => keyed::<Hmac<Sha512>>(bytes, key),
        _ => Err(unknown(name)),
    }
}

fn random_bytes(count: i64) -> R {
    if !(1..=RANDOM_BYTES_MAX).contains(&count) {
        return Err(SqlError::new(SqlState(*b"39000"), "Length not in range")
            .hint(format!("Ask for 1 to {RANDOM_BYTES_MAX} bytes.")));
    }
    let mut bytes = vec![0; count as usize];
    fill_by_chance(&mut bytes)?;
    Ok(Value::Bytea(bytes.into()))
}

/// Functions of pgcrypto that are not here.
const MISSING: &[&str] = &[
    "encrypt",
    "decrypt",
    "encrypt_iv",
    "decrypt_iv",
    "armor",
    "dearmor",
    "pgp_armor_headers",
    "pgp_key_id",
    "pgp_sym_encrypt",
    "pgp_sym_encrypt_bytea",
    "pgp_sym_decrypt",
    "pgp_sym_decrypt_bytea",
    "pgp_pub_encrypt",
    "pgp_pub_encrypt_bytea",
    "pgp_pub_decrypt",
    "pgp_pub_decrypt_bytea",
];

/// The error of a function that pgcrypto has and we do not.
pub fn missing(name: &str) -> Option<SqlError> {
    MISSING.contains(&name).then(|| {
        SqlError::unsupported(format!("function {name} of the extension pgcrypto"))
            .hint("Of pgcrypto there are digest, hmac, crypt, gen_salt, gen_random_bytes and gen_random_uuid.")
    })
}
