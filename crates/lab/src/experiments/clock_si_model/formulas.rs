//! The formulas of 004 section 2.5, as functions.
//!
//! Times are milliseconds, rates are per second, probabilities lie between 0 and 1 as long as the model holds: it adds up what may go wrong, and
//! so gives more than the truth where that is likely.

/// What the model knows of a store and its load (004 section 2.5.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Store {
    /// Items in the store (DBSize).
    pub items: f64,
    /// Items that a read transaction reads (R).
    pub reads: f64,
    /// Items that an update transaction updates (W).
    pub writes: f64,
    /// Update transactions per second (TPSu).
    pub updates_per_s: f64,
    /// A synchronous write of a commit (S).
    pub sync_ms: f64,
    /// One request and its reply between two partitions (RRD); 0: transactions update one partition.
    pub round_trip_ms: f64,
    /// Length of a read transaction (L_r).
    pub read_ms: f64,
    /// Length of an update transaction until it commits (L_u).
    pub update_ms: f64,
    /// Snapshot age (Δ).
    pub age_ms: f64,
}

impl Store {
    /// For how long a commit is in the way of a snapshot: CW - Δ, where CW = S + RRD (section 2.5.2).
    pub fn window_ms(&self) -> f64 {
        (self.sync_ms + self.round_trip_ms - self.age_ms).max(0.0)
    }

    /// The probability that a pending commit delays a read transaction (section 2.5.2: short ones, and long ones).
    pub fn delay_probability(&self) -> f64 {
        let window_ms = self.window_ms();
        let writes_in_window = window_ms / 1e3 * self.updates_per_s * self.writes;
        // Of a long transaction only the items that it reads first are in danger.
        let share = if window_ms >= self.read_ms { 1.0 } else { window_ms / self.read_ms };
        writes_in_window * self.reads * share / self.items
    }

    /// How long a delayed one is expected to wait.
    pub fn delay_ms(&self) -> f64 {
        0.5 * self.window_ms()
    }

    /// The probability that an update transaction meets another's write and aborts (section 2.5.4).
    pub fn abort_probability(&self) -> f64 {
        self.writes.powi(2) * self.updates_per_s * (self.update_ms + self.age_ms) / 1e3 / self.items
    }

    /// The snapshot age that ends nearly all delays (section 2.5.3); `skew_ms_max`: the greatest difference of two clocks.
    pub fn quiet_age_ms(&self, skew_ms_max: f64) -> f64 {
        (self.sync_ms + self.round_trip_ms).max(skew_ms_max - 0.5 * self.round_trip_ms)
    }
}

/// How far the clock of the server that is asked is behind the one that asks: normally distributed (section 2.5.3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skew {
    /// Its mean (μ).
    pub mean_ms: f64,
    /// Its standard deviation (δ).
    pub deviation_ms: f64,
}

impl Skew {
    /// From how much skew on a read waits: half the round trip, and the snapshot's age.
    fn slack_ms(round_trip_ms: f64, age_ms: f64) -> f64 {
        0.5 * round_trip_ms + age_ms
    }

    /// The probability that an access to another partition waits for its clock.
    pub fn delay_probability(&self, round_trip_ms: f64, age_ms: f64) -> f64 {
        upper_tail((Self::slack_ms(round_trip_ms, age_ms) - self.mean_ms) / self.deviation_ms)
    }

    /// How long one that waits is expected to wait. The quotient of integrals in section 2.5.3 is E[SK | SK > a], whose closed form for a normal
    /// distribution is μ + δ·φ(z)/(1-Φ(z)), z = (a-μ)/δ.
    pub fn delay_ms(&self, round_trip_ms: f64, age_ms: f64) -> f64 {
        let slack_ms = Self::slack_ms(round_trip_ms, age_ms);
        let z = (slack_ms - self.mean_ms) / self.deviation_ms;
        let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        self.mean_ms + self.deviation_ms * density / upper_tail(z) - slack_ms
    }
}

/// 1 - Φ(z) of the normal distribution, to about twelve digits.
pub fn upper_tail(z: f64) -> f64 {
    /// From here on the continued fraction converges faster.
    const FAR: f64 = 2.5;
    const TERMS: u32 = 120;
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z < 0.0 {
        return 1.0 - upper_tail(-z);
    }
    if z < FAR {
        // Φ(z) - 1/2 = φ(z)·(z + z³/3 + z⁵/(3·5) + ...).
        let (mut term, mut sum) = (z, z);
        for n in 1..TERMS {
            term *= z * z / f64::from(2 * n + 1);
            sum += term;
        }
        return 0.5 - density * sum;
    }
    // φ(z)/(z + 1/(z + 2/(z + 3/(z + ...)))).
    let tail = (1..=TERMS).rev().fold(z, |below, n| z + f64::from(n) / below);
    density / tail
}

#[cfg(test)]
mod tests {
    use super::{Skew, Store, upper_tail};

    /// Section 2.5.5. Its "CW = 8 ms" is the synchronous write: with 8 ms for S the printed 4.1 ms is 0.5·(S + RRD).
    pub const EXAMPLE: Store = Store {
        items: 1e7,
        reads: 10.0,
        writes: 10.0,
        updates_per_s: 1e4,
        sync_ms: 8.0,
        round_trip_ms: 0.2,
        read_ms: 1.0,
        update_ms: 32.0,
        age_ms: 0.0,
    };

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1e-12)
    }

    #[test]
    fn the_example_gives_what_the_document_prints() {
        let percent = format!("{:.2}", EXAMPLE.delay_probability() * 100.0);
        assert_eq!((percent.as_str(), EXAMPLE.delay_ms()), ("0.08", 4.1));
        assert!(close(EXAMPLE.delay_probability(), 0.000_82) && close(EXAMPLE.abort_probability(), 0.0032));
        let older = Store { age_ms: 8.2, ..EXAMPLE };
        assert_eq!((older.delay_probability(), older.delay_ms()), (0.0, 0.0));
        assert_eq!(format!("{:.3}", older.abort_probability()), "0.004");
        let more = older.abort_probability() / EXAMPLE.abort_probability() - 1.0;
        assert!(more > 0.25 && more < 0.26, "it increases by 25 %: {more}");
        assert_eq!(EXAMPLE.quiet_age_ms(3.0), 8.2);
    }

    #[test]
    fn long_transactions_are_in_danger_with_their_first_reads_only() {
        let long = Store { read_ms: 82.0, ..EXAMPLE };
        assert!(close(long.delay_probability(), EXAMPLE.delay_probability() / 10.0));
        // The formula as it is printed: (S+RRD-Δ)²·TPSu·W·R/(DBSize·L_r).
        assert!(close(long.delay_probability(), 0.0082f64.powi(2) * 1e4 * 100.0 / (1e7 * 0.082)));
    }

    #[test]
    fn the_normal_tail_is_that_of_tables() {
        for (z, tail) in [(0.0, 0.5), (1.0, 0.158_655_253_931), (2.0, 0.022_750_131_948), (3.0, 0.001_349_898_032)] {
            assert!((upper_tail(z) - tail).abs() < 1e-11 && (upper_tail(-z) - 1.0 + tail).abs() < 1e-11, "{z}");
        }
        assert!((upper_tail(6.0) / 9.865_876_45e-10 - 1.0).abs() < 1e-6);
        assert!((upper_tail(2.499_999_999) - upper_tail(2.500_000_001)).abs() < 1e-9, "both ways meet");
    }

    #[test]
    fn skew_waits_as_the_integrals_say() {
        let skew = Skew { mean_ms: 0.02, deviation_ms: 0.1 };
        let slack = 0.5 * 0.14 + 0.05;
        // The quotient of section 2.5.3, by the trapezoidal rule.
        let weight = |x: f64| (-(x - skew.mean_ms).powi(2) / (2.0 * skew.deviation_ms.powi(2))).exp();
        let (steps, width) = (200_000, 2.0);
        let (mut over, mut under) = (0.0, 0.0);
        for n in 0..=steps {
            let x = slack + width * f64::from(n) / f64::from(steps);
            let end = if n == 0 || n == steps { 0.5 } else { 1.0 };
            over += end * x * weight(x);
            under += end * weight(x);
        }
        assert!((skew.delay_ms(0.14, 0.05) - (over / under - slack)).abs() < 1e-7);
        assert!((skew.delay_probability(0.14, 0.05) - upper_tail(1.0)).abs() < 1e-12);
    }
}
