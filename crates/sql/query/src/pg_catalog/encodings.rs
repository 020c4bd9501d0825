//! The encodings that PostgreSQL knows: their numbers and names. Texts are in UTF8 here, also on their way to the client.

use crate::{SqlError, SqlState};

/// By their numbers.
const NAMES: &[&str] = &[
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

/// Other names, and those that they stand for; a name of Windows may begin with WIN or WINDOWS.
const ALIASES: &[(&str, &str)] = &[
    ("abc", "WIN1258"),
    ("tcvn", "WIN1258"),
    ("tcvn5712", "WIN1258"),
    ("vscii", "WIN1258"),
    ("alt", "WIN866"),
    ("win", "WIN1251"),
    ("iso88591", "LATIN1"),
    ("iso88592", "LATIN2"),
    ("iso88593", "LATIN3"),
    ("iso88594", "LATIN4"),
    ("iso88599", "LATIN5"),
    ("iso885910", "LATIN6"),
    ("iso885913", "LATIN7"),
    ("iso885914", "LATIN8"),
    ("iso885915", "LATIN9"),
    ("iso885916", "LATIN10"),
    ("koi8", "KOI8R"),
    ("mskanji", "SJIS"),
    ("shiftjis", "SJIS"),
    ("win932", "SJIS"),
    ("win936", "GBK"),
    ("win949", "UHC"),
    ("win950", "BIG5"),
    ("unicode", "UTF8"),
];

/// Letters and digits make a name; all else is passed over.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The name of an encoding by its number.
pub fn name(number: i64) -> Option<&'static str> {
    usize::try_from(number).ok().and_then(|number| NAMES.get(number)).copied()
}

/// The number of an encoding by any of its names.
pub fn number(given: &str) -> Option<usize> {
    let given = plain(given);
    let short = given.strip_prefix("windows").map(|number| format!("win{number}"));
    let given = short.filter(|short| short.len() > 3).unwrap_or(given);
    let alias = ALIASES.iter().find(|(alias, _)| *alias == given).map(|(_, name)| plain(name));
    NAMES.iter().position(|name| plain(name) == *alias.as_ref().unwrap_or(&given))
}

/// What `client_encoding` is set to. The bytes of `SQL_ASCII` are not looked at by PostgreSQL either.
///
/// # Errors
/// 22023 for what is no encoding; 0A000 for one that texts would have to be converted to (decision 135).
pub fn of_client(given: &str) -> Result<&'static str, SqlError> {
    let message = format!("invalid value for parameter \"client_encoding\": \"{given}\"");
    let Some(name) = number(given).map(|number| NAMES[number]) else {
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
    };
    if matches!(name, "UTF8" | "SQL_ASCII") {
        return Ok(name);
    }
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .detail(format!("Conversion between {name} and UTF8 is not supported."))
        .hint("Set client_encoding to UTF8: in the connection's options, or as PGCLIENTENCODING in the environment."))
}
