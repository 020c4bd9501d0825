//! Prints a few readings of a clock source: `cargo run -p timeball-clocksource --example watch -- chrony 5`.

#![allow(clippy::disallowed_methods)]

use clocksource::{Clock, ClockSource, Spec};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let spec: Spec = args.next().unwrap_or_else(|| "auto".into()).parse()?;
    let count: u32 = args.next().map_or(Ok(3), |n| n.parse())?;
    let clock = Clock::open(&spec)?;
    let _poller = clock.start_poller(|event| println!("event: {event}"))?;
    for n in 0..count {
        if n > 0 {
            std::thread::sleep(Duration::from_millis(500));
        }
        let reading = clock.read();
        let (error_us, report) = (reading.interval.error_ns() as f64 / 1e3, clock.report());
        println!("{} {} ± {error_us:.1} us  {}", report.source, reading.status, report.detail);
    }
    Ok(())
}
