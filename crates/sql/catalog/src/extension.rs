//! Extensions: those that can be created, and those that every database has.

use super::Oid;

/// An extension that can be created.
#[derive(Debug)]
pub struct Available {
    /// Its name.
    pub name: &'static str,
    /// The version that PostgreSQL 15 has.
    pub version: &'static str,
    /// What `pg_available_extensions` says of it.
    pub comment: &'static str,
}

/// All of them. Of `pgcrypto` there are `digest`, `hmac`, `crypt` and `gen_salt` (bcrypt and MD5), `gen_random_bytes` and
/// `gen_random_uuid`, of `uuid-ossp` all but `uuid_generate_v1` and `uuid_generate_v1mc`.
pub const AVAILABLE: &[Available] = &[
    Available {
        name: "pgcrypto",
        version: "1.3",
        comment: "cryptographic functions (of them: digest, hmac, crypt, gen_salt, gen_random_bytes, gen_random_uuid)",
    },
    Available {
        name: "uuid-ossp",
        version: "1.1",
        comment: "generate universally unique identifiers (of them: versions 3, 4 and 5)",
    },
];

/// The extension that every database of PostgreSQL begins with. Its language is not here, nor is anything else of it: who asks only for
/// the extension to be there goes on.
pub const LANGUAGE: &str = "plpgsql";
/// Its version in PostgreSQL 15.
pub const LANGUAGE_VERSION: &str = "1.0";
/// Its number: of those that no object of a user has.
pub const LANGUAGE_OID: Oid = 13_559;

/// The extension that owns `timeball_internal`, in every database: what is an extension's is in no dump (decision 159).
pub const OWN: &str = "timeball";
/// Its version.
pub const OWN_VERSION: &str = "1.0";

/// The version of an extension that counts as created in every database.
pub fn built_in(name: &str) -> Option<&'static str> {
    match name {
        LANGUAGE => Some(LANGUAGE_VERSION),
        OWN => Some(OWN_VERSION),
        _ => None,
    }
}

/// An extension that can be created, by name.
pub fn available(name: &str) -> Option<&'static Available> {
    AVAILABLE.iter().find(|extension| extension.name == name)
}
