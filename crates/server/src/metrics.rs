//! Counters of the wire, and the Prometheus text that shows them.
//!
//! Names resemble those that operators of such databases know (`sql_conns`, `txn_restarts_readwithinuncertainty`). Counters are
//! relaxed atomics: each is true by itself, two of them are not one snapshot.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Upper bounds of the latency buckets, microseconds.
const BUCKETS_US: [u64; 16] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000,
    10_000_000,
];

/// A latency histogram.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
    sum_us: AtomicU64,
}

impl Histogram {
    /// Counts one event.
    pub fn record(&self, micros: u64) {
        let i = BUCKETS_US.partition_point(|bound| *bound < micros);
        self.buckets[i].fetch_add(1, Relaxed);
        self.sum_us.fetch_add(micros, Relaxed);
    }
}

/// What the wire counts.
#[derive(Debug, Default)]
pub struct WireMetrics {
    /// Sessions open now.
    pub connections: AtomicU64,
    /// Connections accepted.
    pub accepted: AtomicU64,
    /// Connections refused: too many.
    pub refused: AtomicU64,
    /// Connections ended by a breach of the protocol.
    pub protocol_errors: AtomicU64,
    /// Sessions ended by a panic.
    pub panics: AtomicU64,
    /// Statements that run now.
    pub active: AtomicU64,
    /// Statements run.
    pub queries: AtomicU64,
    /// Statements that failed.
    pub failures: AtomicU64,
    /// How long statements took in the server.
    pub latency: Histogram,
}

impl WireMetrics {
    /// Writes them.
    pub fn render(&self, text: &mut MetricsText) {
        text.gauge("sql_conns", "Open SQL sessions", self.connections.load(Relaxed));
        text.counter("sql_new_conns", "Connections accepted", self.accepted.load(Relaxed));
        text.counter(
            "sql_conn_refusals",
            "Connections refused because there were too many",
            self.refused.load(Relaxed),
        );
        text.counter(
            "sql_protocol_errors",
            "Connections ended by a breach of the protocol",
            self.protocol_errors.load(Relaxed),
        );
        text.counter("sql_session_panics", "Sessions ended by a fault of the server", self.panics.load(Relaxed));
        text.gauge("sql_statements_active", "Statements that run now", self.active.load(Relaxed));
        text.counter("sql_query_count", "Statements run", self.queries.load(Relaxed));
        text.counter("sql_failure_count", "Statements that failed", self.failures.load(Relaxed));
        text.histogram("sql_latency", "Seconds that statements took in the server", &self.latency);
    }
}

/// Prometheus's text format, version 0.0.4.
#[derive(Debug, Default)]
pub struct MetricsText(String);

impl MetricsText {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }
    /// A number that only grows.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "counter");
        let _ = writeln!(self.0, "{name} {value}");
    }
    /// A number that goes up and down.
    pub fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "gauge");
        let _ = writeln!(self.0, "{name} {value}");
    }
    /// A state: one series per label value, 1 for the present one.
    pub fn state(&mut self, name: &str, help: &str, label: &str, states: &[&str], present: &str) {
        self.head(name, help, "gauge");
        for state in states {
            let _ = writeln!(self.0, "{name}{{{label}=\"{state}\"}} {}", u8::from(*state == present));
        }
    }
    /// A name: one series with the value 1, whose label says it.
    pub fn named(&mut self, name: &str, help: &str, label: &str, value: &str) {
        self.head(name, help, "gauge");
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = writeln!(self.0, "{name}{{{label}=\"{value}\"}} 1");
    }
    /// A latency histogram, in seconds.
    pub fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, help, "histogram");
        let mut below = 0;
        for (bound, bucket) in BUCKETS_US.iter().zip(&histogram.buckets) {
            below += bucket.load(Relaxed);
            let _ = writeln!(self.0, "{name}_bucket{{le=\"{}\"}} {below}", *bound as f64 / 1e6);
        }
        below += histogram.buckets[BUCKETS_US.len()].load(Relaxed);
        let sum = histogram.sum_us.load(Relaxed) as f64 / 1e6;
        let _ = writeln!(self.0, "{name}_bucket{{le=\"+Inf\"}} {below}\n{name}_sum {sum}\n{name}_count {below}");
    }
    /// The text.
    pub fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative() {
        let h = Histogram::default();
        for us in [1, 50, 51, 99_999_999] {
            h.record(us);
        }
        let mut text = MetricsText::default();
        text.histogram("sql_latency", "x", &h);
        let text = text.finish();
        for line in [
            "sql_latency_bucket{le=\"0.00005\"} 2",
            "sql_latency_bucket{le=\"0.0001\"} 3",
            "sql_latency_bucket{le=\"10\"} 3",
            "sql_latency_count 4",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn a_name_is_a_label() {
        let mut text = MetricsText::default();
        text.named("clock_source", "x", "source", "chrony:/a \"b\"");
        assert!(text.finish().ends_with("\nclock_source{source=\"chrony:/a \\\"b\\\"\"} 1\n"));
    }
}
