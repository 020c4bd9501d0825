//! The command line of `cargo x bench store`.

use super::lengths::Lengths;
use std::path::PathBuf;

/// What to measure and show.
#[derive(Debug, Default)]
pub struct Options {
    /// How long, and how much.
    pub lengths: Lengths,
    /// The cases wanted; none: all.
    only: Vec<String>,
    /// The systems wanted; none: all.
    systems: Vec<String>,
    /// What was measured before counts no more.
    pub fresh: bool,
    /// The table is kept under `docs/benchmarks/`.
    pub write: bool,
    /// The figure of the hot rows is drawn there.
    pub plot: bool,
    /// This program is measured, not what is built here.
    pub binary: Option<PathBuf>,
    /// No case begins after so long: the next run does. `None`: however long it takes.
    pub minutes: Option<u64>,
}

/// Reads the options; `cases` are the names that `--only` knows, `systems` those of `--system`.
pub fn parse(args: &[String], cases: &[&str], systems: &[&str]) -> Result<Options, String> {
    let (mut minutes, mut full, mut hot_rate) = (15, false, None);
    let mut options = Options { lengths: Lengths::FULL, ..Options::default() };
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--fresh" => options.fresh = true,
            "--write" => options.write = true,
            "--plot" => options.plot = true,
            "--full" => full = true,
            "--binary" => options.binary = Some(PathBuf::from(value()?)),
            "--minutes" => {
                let text = value()?;
                minutes = text.parse().map_err(|_| format!("--minutes {text}: not a number"))?;
            }
            "--hot-rate" => {
                let text = value()?;
                hot_rate = Some(text.parse().map_err(|_| format!("--hot-rate {text}: not a number"))?);
            }
            "--only" => {
                let name = value()?;
                if !cases.contains(&name.as_str()) {
                    return Err(format!("there is no case {name}; there are: {}", cases.join(", ")));
                }
                options.only.push(name.clone());
            }
            "--system" => {
                let name = value()?;
                if !systems.contains(&name.as_str()) {
                    return Err(format!("there is no system {name}; there are: {}", systems.join(", ")));
                }
                options.systems.push(name.clone());
            }
            _ => return Err(format!("unknown option {flag}")),
        }
    }
    if !full {
        options.lengths = Lengths::of_minutes(minutes);
        options.minutes = Some(minutes.max(1));
    }
    options.lengths.hot_rate = hot_rate;
    Ok(options)
}

impl Options {
    /// Whether a case is wanted.
    pub fn chosen(&self, case: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == case)
    }
    /// Whether a system is wanted.
    pub fn on(&self, system: &str) -> bool {
        self.systems.is_empty() || self.systems.iter().any(|wanted| wanted == system)
    }
    /// The flags that repeat the lengths.
    pub fn flags(&self) -> String {
        let rate = self.lengths.hot_rate.map_or(String::new(), |rate| format!(" --hot-rate {rate}"));
        self.minutes.map_or(" --full".into(), |minutes| format!(" --minutes {minutes}")) + &rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<Options, String> {
        parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>(), &["hot", "queue"], &["us", "them"])
    }

    #[test]
    fn options_are_read_and_refused_by_name() {
        let options = line("--only hot --fresh --plot --minutes 5").unwrap();
        assert!(options.chosen("hot") && !options.chosen("queue") && options.fresh && options.plot && !options.write);
        assert_eq!((options.minutes, options.flags().as_str()), (Some(5), " --minutes 5"));
        assert!(options.on("us") && options.on("them"));
        let options = line("--full --hot-rate 2000").unwrap();
        assert_eq!((options.lengths.hot_rate, options.flags().as_str()), (Some(2000), " --full --hot-rate 2000"));
        let options = line("--system them").unwrap();
        assert!(options.on("them") && !options.on("us"));
        assert!(line("--system others").unwrap_err().contains("us, them"));
        let options = line("--full --minutes 5").unwrap();
        assert_eq!((options.lengths, options.minutes), (Lengths::FULL, None));
        assert!(line("--only cold").unwrap_err().contains("hot, queue"));
        assert!(line("--minutes many").unwrap_err().contains("many"));
        assert!(line("--only").unwrap_err().contains("--only"));
        assert!(line("--quick").unwrap_err().contains("--quick"));
    }
}
