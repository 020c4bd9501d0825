//! string

use super::super::function::Function;

pub(super) static TABLE: &[Function] = &[];
pub(super) static PATTERNS: &[Function] = &[];
