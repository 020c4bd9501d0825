//! Passwords as pgcrypto keeps them: `crypt` and `gen_salt`, by bcrypt (`bf`) and by MD5 in a thousand rounds (`md5`).
//!
//! **Problem.** How long a call takes is for its caller to say: bcrypt's cost doubles it with each step, up to hours. It must end with its statement.
//!
//! **Idea.** The ciphers and digests are a library's; the rounds over them are ours, and look between two.
//!
//! **Caveats.** The two algorithms by DES are not here: a password of 8 characters, or of few rounds. Nor is bcrypt's variant `$2x$`, which is
//! a mistake kept for those who made it.

use super::super::function::{Function, Sig};
use super::{int_at, str_at};
use crate::types::fill_by_chance;
use crate::types::{SqlType as T, Value};
use crate::work::{self, UNITS_PER_LOOK};
use crate::{SqlError, SqlState};
use blowfish::Blowfish;
use md5::{Digest, Md5};

type R = Result<Value, SqlError>;

const TEXT: Sig = Sig::Is(T::Text);

pub(super) static TABLE: &[Function] = &[
    Function::pure("crypt", &[TEXT, TEXT], TEXT, |v, _| crypt(str_at(v, 0)?.as_bytes(), str_at(v, 1)?)),
    Function::volatile("gen_salt", &[TEXT], TEXT, |v, _| gen_salt(str_at(v, 0)?, 0)),
    Function::volatile("gen_salt", &[TEXT, Sig::Is(T::Int4)], TEXT, |v, _| gen_salt(str_at(v, 0)?, int_at(v, 1)?)),
];

/// Digits of bcrypt's numbers to the base of 64.
const BCRYPT_DIGITS: &[u8; 64] = b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// Digits of all others.
const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const BCRYPT: &str = "$2a$";
const MD5: &str = "$1$";
/// Rounds of MD5; it has no others.
const MD5_ROUNDS: usize = 1000;
/// bcrypt reads no more of a password, with the zero at its end.
const BCRYPT_KEY_BYTES_MAX: usize = 72;
const BCRYPT_SALT_BYTES: usize = 16;
const BCRYPT_SALT_DIGITS: usize = 22;
/// Of the digest's 24 bytes so many are kept.
const BCRYPT_KEPT_BYTES: usize = 23;
/// What `gen_salt('bf')` asks for: 2^6 rounds.
const BCRYPT_COST: i64 = 6;
/// A round of bcrypt takes tens of microseconds.
const BCRYPT_ROUND_UNITS: usize = UNITS_PER_LOOK / 32;

fn invalid_salt() -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, "invalid salt")
}

fn missing(what: &str) -> SqlError {
    SqlError::unsupported(what).hint("There are bcrypt, gen_salt('bf'), and MD5, gen_salt('md5').")
}

fn crypt(password: &[u8], salt: &str) -> R {
    let made = match salt.as_bytes() {
        _ if salt.starts_with(BCRYPT) => bcrypt(password, salt)?,
        _ if salt.starts_with(MD5) => md5(password, &salt.as_bytes()[MD5.len()..])?,
        _ if salt.starts_with("$2x$") => return Err(missing("crypt with bcrypt's variant $2x$")),
        [b'_', ..] => return Err(missing("crypt by extended DES (xdes)")),
        [_, _, ..] => return Err(missing("crypt by DES")),
        _ => return Err(invalid_salt()),
    };
    Ok(Value::text(made))
}

/// `$2a$cost$salt`, and the digest behind it.
fn bcrypt(password: &[u8], setting: &str) -> Result<String, SqlError> {
    let digits = setting.as_bytes().get(BCRYPT.len()..).unwrap_or_default();
    let ([tens @ b'0'..=b'3', ones @ b'0'..=b'9', b'$'], Some(salt)) =
        (digits.get(..3).unwrap_or_default(), digits.get(3..3 + BCRYPT_SALT_DIGITS))
    else {
        return Err(invalid_salt());
    };
    let cost = u32::from(tens - b'0') * 10 + u32::from(ones - b'0');
    if !(4..=31).contains(&cost) {
        return Err(invalid_salt());
    }
    let salt = from_digits(salt)?;
    let mut key = password[..password.len().min(BCRYPT_KEY_BYTES_MAX)].to_vec();
    key.push(0);
    key.truncate(BCRYPT_KEY_BYTES_MAX);
    let mut state: Blowfish = Blowfish::bc_init_state();
    state.salted_expand_key(&salt, &key);
    for _ in 0..1u64 << cost {
        work::step(BCRYPT_ROUND_UNITS)?;
        state.bc_expand_key(&key);
        state.bc_expand_key(&salt);
    }
    let mut digest = Vec::with_capacity(BCRYPT_KEPT_BYTES + 1);
    for pair in b"OrpheanBeholderScryDoubt".chunks(8) {
        let half = |bytes: &[u8]| bytes.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        let mut words = [half(&pair[..4]), half(&pair[4..])];
        for _ in 0..64 {
            words = state.bc_encrypt(words);
        }
        digest.extend(words.into_iter().flat_map(u32::to_be_bytes));
    }
    digest.truncate(BCRYPT_KEPT_BYTES);
    Ok(format!("{BCRYPT}{cost:02}${}{}", to_digits(&salt), to_digits(&digest)))
}

/// Bytes as bcrypt writes them: six bits a digit, the first ones first.
fn to_digits(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + 1);
    for three in bytes.chunks(3) {
        let word = (0..3).fold(0u32, |word, at| word << 8 | u32::from(three.get(at).copied().unwrap_or(0)));
        out.extend((0..=three.len()).map(|at| char::from(BCRYPT_DIGITS[(word >> (18 - 6 * at)) as usize & 63])));
    }
    out
}

fn from_digits(digits: &[u8]) -> Result<Vec<u8>, SqlError> {
    let mut out = Vec::with_capacity(BCRYPT_SALT_BYTES);
    let (mut word, mut bits) = (0u32, 0);
    for digit in digits {
        let value = BCRYPT_DIGITS.iter().position(|known| known == digit).ok_or_else(invalid_salt)?;
        word = word << 6 | value as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
        }
    }
    out.truncate(BCRYPT_SALT_BYTES);
    Ok(out)
}

/// `$1$salt$`, and the digest behind it: the algorithm of FreeBSD's passwords.
fn md5(password: &[u8], setting: &[u8]) -> Result<String, SqlError> {
    let salt = setting.split(|byte| *byte == b'$').next().unwrap_or_default();
    // A digit of the salt is a byte; a text may have others.
    let salt = &salt[..salt.len().min(8)];
    let shown = std::str::from_utf8(salt).map_err(|_| invalid_salt())?;
    work::step(3 * password.len())?;
    let both = Md5::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut first = Md5::new().chain_update(password).chain_update(MD5).chain_update(salt);
    for at in (0..password.len()).step_by(both.len()) {
        first.update(&both[..both.len().min(password.len() - at)]);
    }
    let mut rest = password.len();
    while rest > 0 {
        first.update(if rest & 1 == 1 { &[0] } else { &password[..1] });
        rest >>= 1;
    }
    let mut digest = first.finalize();
    for round in 0..MD5_ROUNDS {
        work::step(64 + 2 * password.len())?;
        let mut next = Md5::new();
        let mut add = |whether: bool, bytes: &[u8]| {
            if whether {
                next.update(bytes);
            }
        };
        add(round & 1 == 1, password);
        add(round & 1 == 0, digest.as_slice());
        add(round % 3 != 0, salt);
        add(round % 7 != 0, password);
        add(round & 1 == 1, digest.as_slice());
        add(round & 1 == 0, password);
        digest = next.finalize();
    }
    let mut out = format!("{MD5}{shown}$");
    let mut write = |word: u32, digits: usize| {
        out.extend((0..digits).map(|at| char::from(DIGITS[(word >> (6 * at)) as usize & 63])));
    };
    for [a, b, c] in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        write(u32::from(digest[a]) << 16 | u32::from(digest[b]) << 8 | u32::from(digest[c]), 4);
    }
    write(u32::from(digest[11]), 2);
    Ok(out)
}

fn gen_salt(algorithm: &str, rounds: i64) -> R {
    let wrong = |what: &str| SqlError::new(SqlState::INVALID_PARAMETER, format!("gen_salt: {what}"));
    match algorithm.to_ascii_lowercase().as_str() {
        "bf" => {
            let cost = if rounds == 0 { BCRYPT_COST } else { rounds };
            if !(4..=31).contains(&cost) {
                return Err(wrong("Incorrect number of rounds").hint("bcrypt has from 2^4 to 2^31: say 4 to 31."));
            }
            let mut salt = [0; BCRYPT_SALT_BYTES];
            fill_by_chance(&mut salt)?;
            Ok(Value::text(format!("{BCRYPT}{cost:02}${}", to_digits(&salt))))
        }
        "md5" => {
            if rounds != 0 && rounds != MD5_ROUNDS as i64 {
                return Err(wrong("Incorrect number of rounds"));
            }
            let mut salt = [0; 8];
            fill_by_chance(&mut salt)?;
            let digits = salt.iter().map(|byte| char::from(DIGITS[usize::from(byte & 63)]));
            Ok(Value::text(format!("{MD5}{}", digits.collect::<String>())))
        }
        name @ ("des" | "xdes") => Err(missing(&format!("gen_salt('{name}')"))),
        _ => Err(wrong("Unknown salt algorithm")),
    }
}
