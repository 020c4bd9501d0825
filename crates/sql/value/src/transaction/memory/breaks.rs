//! Those that break a rule on purpose: tests show with them that they would notice.

use super::MemoryKv;

impl MemoryKv {
    /// One that breaks a rule on purpose: what transactions rely on ([`super::Transaction::rely`]) may change. Tests show with it that they would notice.
    pub fn careless() -> Self {
        let kv = Self::default();
        kv.0.state.lock().careless = true;
        kv
    }
    /// One that breaks a rule on purpose: nobody waits for a key that is to be locked `FOR KEY SHARE`.
    pub fn heedless() -> Self {
        let kv = Self::default();
        kv.0.state.lock().heedless = true;
        kv
    }
    /// One that breaks a rule on purpose: who has looked who refers to a key ([`super::Transaction::unreferred`]) commits, though somebody has come to since.
    pub fn unguarded() -> Self {
        let kv = Self::default();
        kv.0.state.lock().unguarded = true;
        kv
    }
    /// One that breaks a rule on purpose: what was locked for a group of rows is kept, though one of them comes to wait ([`super::Transaction::release_noted`]).
    pub fn grasping() -> Self {
        let kv = Self::default();
        kv.0.state.lock().grasping = true;
        kv
    }
}
