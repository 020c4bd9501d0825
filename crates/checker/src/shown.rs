//! Rule 1: what is acknowledged, or found by a reader, is certainly past. Only where clock bounds held.

use crate::verdict::{Anomaly, Verdict};

/// A version of this time was acknowledged or served at this true time, both in microseconds.
pub fn judge(what: &str, version_us: u64, true_us: u64, verdict: &mut Verdict) {
    if version_us > true_us {
        let early_us = version_us - true_us;
        verdict.add(Anomaly::ShownEarly, format!("{what} of {version_us} was shown {early_us} us too early"));
    }
}
