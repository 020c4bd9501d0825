//! ALTER SYSTEM RENEW TOKENS, ROTATE TOKENS.

use super::Run;
use crate::SqlError;
use crate::catalog::Seal;
use crate::types::fill_by_chance;

impl Run<'_> {
    /// What was signed before is refused from the commit on; if keys are only rotated, once they are rotated again.
    pub(super) fn renew_tokens(&mut self, rotate: bool) -> Result<&'static str, SqlError> {
        let seal = match self.catalog().seal() {
            Some(seal) => {
                let mut seal = Seal::clone(seal);
                if rotate {
                    seal.rotate(&fill_by_chance)?;
                } else {
                    seal.renew(&fill_by_chance)?;
                }
                seal
            }
            None => Seal::draw(self.db.kv.cluster(), &fill_by_chance)?,
        };
        self.touch().put_seal(seal)?;
        Ok("ALTER SYSTEM")
    }
}
