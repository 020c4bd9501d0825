//! `timeball bench`.

use crate::args::{BenchOptions, WorkloadName};
use lab::bench::{self, Options, Orders, PostsAndLikes, Sysbench, Workload, Ycsb};
use lab::client::Url;

/// Runs a workload; progress on standard error, the report on standard output.
pub fn run(options: &BenchOptions) -> Result<(), String> {
    let workload: Box<dyn Workload> = match options.workload {
        WorkloadName::PostsAndLikes => Box::new(PostsAndLikes { read_fraction: options.read_fraction }),
        WorkloadName::Ycsb(mix) => Box::new(Ycsb::new(mix, options.rows)),
        WorkloadName::Orders => Box::new(Orders { warehouses: options.warehouses }),
        WorkloadName::Sysbench(statement) => Box::new(Sysbench { statement, rows: options.rows }),
    };
    let run = Options {
        url: Url::parse(&options.url).map_err(|e| e.to_string())?,
        workers: options.workers,
        duration: options.duration,
        ramp_up: options.ramp_up,
        spread: options.spread,
        load: options.load,
        seed: options.seed,
    };
    let report = bench::run(workload.as_ref(), &run, |line| eprintln!("{line}")).map_err(|e| e.to_string())?;
    if options.json {
        println!("{}", report.json());
    } else {
        println!("{report}");
    }
    if report.failures > 0 && report.late == 0 && report.operations.iter().all(|o| o.count == 0) {
        return Err("every operation failed".into());
    }
    if report.has_halted() {
        return Err(format!(
            "it has come to a halt: no operation succeeded in the last {:.0} seconds, with {} errors before; does a node of --url serve?",
            report.idle_seconds, report.failures
        ));
    }
    Ok(())
}
