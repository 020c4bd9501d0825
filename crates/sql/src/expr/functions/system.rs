//! system

use super::super::function::Function;

pub(super) static TABLE: &[Function] = &[];
