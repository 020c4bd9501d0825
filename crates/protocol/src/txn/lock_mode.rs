//! How a key may be locked.

/// What a lock keeps others from, from weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LockMode {
    /// The row stays, and its key: other columns may change.
    KeyShare,
    /// The row stays as it is.
    Share,
    /// The holder changes columns that are in no key.
    NoKeyUpdate,
    /// The holder deletes the row, or changes its key.
    #[default]
    Update,
}

impl LockMode {
    /// Whether two transactions cannot hold a key in these modes at a time.
    pub fn excludes(self, other: LockMode) -> bool {
        match self.min(other) {
            LockMode::KeyShare => self.max(other) == LockMode::Update,
            LockMode::Share => self.max(other) >= LockMode::NoKeyUpdate,
            LockMode::NoKeyUpdate | LockMode::Update => true,
        }
    }
}
