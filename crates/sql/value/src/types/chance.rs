//! Chance, for what nobody may guess: keys, salts, uuids.

use crate::{SqlError, SqlState};

/// Fills with random bytes that nobody can guess.
///
/// # Errors
/// XX000 if the system has none.
pub fn fill_by_chance(bytes: &mut [u8]) -> Result<(), SqlError> {
    getrandom::fill(bytes)
        .map_err(|error| SqlError::new(SqlState::INTERNAL_ERROR, format!("the system gives no random bytes: {error}")))
}
