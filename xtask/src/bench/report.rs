//! The table as text, kept with machine and date.

use super::{Options, Outcome};
use crate::run::root;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

/// The middle one; 0 of none.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The table.
pub fn table(options: &Options, rows: &[Outcome]) -> String {
    let mut text = format!(
        "# Beside {}\n\nMachine: {}. Date: {}. Commit: {}. {} interleaved rounds of {} s, scale {}, medians.\n\
         Repeat: `cargo x bench {} --rounds {} --seconds {} --scale {}{}`.\n\n\
         | workload | {} tps | Timeball tps | ratio | ratios of the rounds | goal | failed |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
        options.names()[0],
        machine(),
        output("date", &["+%Y-%m-%d"]),
        output("git", &["rev-parse", "--short", "HEAD"]),
        options.rounds,
        options.seconds,
        options.scale,
        options.table.name,
        options.rounds,
        options.seconds,
        options.scale,
        options.before.as_ref().map_or(" --write".into(), |before| format!(" --before {}", before.display())),
        options.names()[0],
    );
    for row in rows {
        let ratios: Vec<f64> = row.beside.iter().zip(&row.timeball).map(|(b, t)| t.tps / b.tps).collect();
        let each: Vec<String> = ratios.iter().map(|r| format!("{r:.2}")).collect();
        let _ = writeln!(
            text,
            "| {} | {:.0} | {:.0} | **{:.2}** | {} | {:.1} | {} |",
            row.workload.name,
            median(row.beside.iter().map(|s| s.tps)),
            median(row.timeball.iter().map(|s| s.tps)),
            median(ratios.iter().copied()),
            each.join(" "),
            if options.before.is_some() { 1.0 } else { row.workload.goal },
            row.timeball.iter().map(|s| s.failed).sum::<u64>(),
        );
    }
    text
}

/// Keeps the table under `docs/benchmarks/`.
pub fn write(text: &str, name: &str) -> Result<PathBuf, String> {
    let path = root().join(format!("docs/benchmarks/{}-{name}.md", output("date", &["+%Y-%m-%d"])));
    std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

/// What it was measured on.
pub fn machine() -> String {
    let model = output("sh", &["-c", "sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1"]);
    format!("{} cores, {}, Linux {}", output("nproc", &[]), model, output("uname", &["-r"]))
}

/// The first words that a small program says.
pub fn output(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).current_dir(root()).output();
    out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default()
}
