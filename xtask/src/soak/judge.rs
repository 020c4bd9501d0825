//! Whether what was seen of a node's memory is what it promises.
//!
//! An idle node still merges and erases what the load left behind, and has memory for that while it does. Growth is what stays: so the least
//! that it held in the last third of the idle time counts.

/// While nobody asks anything a node may grow by this part of what it holds, beside which one look differs from the next.
const IDLE_GROWTH: f64 = 0.02;
const MIB: u64 = 1 << 20;
/// And by so much in any case: a background thread's own.
const IDLE_GROWTH_BYTES: u64 = 8 * MIB;

/// One look.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Since the phase began.
    pub at_seconds: u64,
    /// The node's memory in the machine's.
    pub resident_bytes: u64,
}

fn greatest(samples: &[Sample]) -> Sample {
    samples.iter().copied().max_by_key(|s| s.resident_bytes).unwrap_or(Sample { at_seconds: 0, resident_bytes: 0 })
}

/// What was seen, in words; an error where it is more than `limit_bytes`, or grows while idle.
pub fn judge(busy: &[Sample], idle: &[Sample], limit_bytes: u64) -> Result<String, String> {
    let (peak, begin, later) = (greatest(busy), idle.first().map_or(0, |s| s.resident_bytes), greatest(idle));
    let end = idle.last().map_or(0, |s| s.resident_bytes);
    let text = format!(
        "limit {} MiB; under load at most {} MiB (after {} s); idle {} MiB at first, at most {} MiB, {} MiB at the end",
        limit_bytes / MIB,
        peak.resident_bytes / MIB,
        peak.at_seconds,
        begin / MIB,
        later.resident_bytes / MIB,
        end / MIB
    );
    if peak.resident_bytes.max(later.resident_bytes) > limit_bytes {
        return Err(format!("the node took more than it may: {text}"));
    }
    let allowed = begin + IDLE_GROWTH_BYTES.max((begin as f64 * IDLE_GROWTH) as u64);
    let last_third = &idle[idle.len() - idle.len().div_ceil(3)..];
    if last_third.iter().map(|s| s.resident_bytes).min().unwrap_or_default() > allowed {
        return Err(format!("the node grew while nobody asked anything of it: {text}"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(mib: &[u64]) -> Vec<Sample> {
        let sample = |(at, mib): (usize, &u64)| Sample { at_seconds: at as u64, resident_bytes: mib * MIB };
        mib.iter().enumerate().map(sample).collect()
    }

    #[test]
    fn more_than_the_limit_is_too_much() {
        let limit = 1024 * MIB;
        let fine = judge(&samples(&[100, 1000, 900]), &samples(&[900, 910, 800]), limit).unwrap();
        assert!(
            fine.contains("at most 1000 MiB (after 1 s); idle 900 MiB at first, at most 910 MiB, 800 MiB"),
            "{fine}"
        );
        let refused = judge(&samples(&[100, 1025]), &samples(&[900]), limit).unwrap_err();
        assert!(refused.contains("more than it may"), "{refused}");
    }

    #[test]
    fn growth_while_idle_is_refused() {
        let limit = 2048 * MIB;
        // What was seen once: 1,278 MB became 1,501 in ten idle minutes.
        let refused = judge(&samples(&[1300]), &samples(&[1278, 1400, 1501]), limit).unwrap_err();
        assert!(refused.contains("grew"), "{refused}");
        assert!(judge(&samples(&[1300]), &samples(&[1278, 1300, 1100]), limit).is_ok());
        assert!(judge(&samples(&[100]), &samples(&[40, 47]), limit).is_ok());
        // A merge, and what it needs meanwhile.
        assert!(judge(&samples(&[900]), &samples(&[461, 619, 380, 405, 347, 399]), limit).is_ok());
        assert!(judge(&samples(&[900]), &samples(&[461, 380, 405, 475, 619, 399]), limit).is_ok());
        assert!(judge(&samples(&[900]), &samples(&[461, 380, 405, 475, 619, 480]), limit).is_err());
    }
}
