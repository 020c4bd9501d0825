//! `timeball clock`: look at a bounded clock, record it, draw it, improve it.

use clocksource::chrony::{Chrony, ChronyAddress};
use clocksource::{Clock, Settings, Spec};
use lab::clock::{doctor, figure, peers, record, watch};
use lexopt::prelude::*;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

pub const HELP: &str = "\
timeball clock [options]            what the clock says, live
  --clock SOURCE          the source (auto)
  --json                  one JSON object a line instead of the view
  --count N               readings (goes on until stopped; 1 with --json)
  --every D               time between readings (250ms)
  --url URL               the clocks of this node and its peers instead, by SQL
timeball clock record [options]     the width of the bound over time
  --clock SOURCE          the source (auto)
  --duration D            how long (12h)
  --every D               time between readings (250ms)
  --bucket D              time in a bucket (5m)
  --out FILE              where (standard output)
timeball clock plot FILE [options]  a recording as a figure
  --svg FILE, --png FILE  where (FILE.svg, FILE.png)
timeball clock doctor [options]     what keeps chronyd's bound wide
  --clock chrony:ADDRESS  where chronyd listens (the usual places)
Sources: same-host, static:<error>, auto, chrony, clockbound, ptp, kernel, ntp:<server>,<server>,...
";

/// What to do with a clock.
#[derive(Debug, PartialEq)]
pub enum ClockCommand {
    Watch(Spec, watch::WatchOptions),
    Peers(String, watch::WatchOptions),
    Record(Spec, record::RecordOptions, Option<PathBuf>),
    Plot { recording: PathBuf, svg: PathBuf, png: PathBuf },
    Doctor(ChronyAddress),
}

/// Reads what follows `timeball clock`; nothing means that help was asked for.
pub fn parse(
    parser: &mut lexopt::Parser,
    duration: fn(&str) -> Result<Duration, String>,
) -> Result<Option<ClockCommand>, lexopt::Error> {
    let (mut spec, mut files, mut words, mut url) = (Spec::Auto, [None, None, None], Vec::new(), None);
    let mut look = watch::WatchOptions { json: false, count: None, every: Duration::from_millis(250), live: false };
    let mut tape = record::RecordOptions::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") | Short('h') => return Ok(None),
            Long("clock") => spec = parser.value()?.parse()?,
            Long("url") => url = Some(parser.value()?.string()?),
            Long("json") => look.json = true,
            Long("count") => look.count = Some(parser.value()?.parse()?),
            Long("every") => {
                look.every = parser.value()?.parse_with(duration)?;
                tape.every = look.every;
            }
            Long("duration") => tape.duration = parser.value()?.parse_with(duration)?,
            Long("bucket") => tape.bucket = parser.value()?.parse_with(duration)?,
            Long("out") => files[0] = Some(PathBuf::from(parser.value()?)),
            Long("svg") => files[1] = Some(PathBuf::from(parser.value()?)),
            Long("png") => files[2] = Some(PathBuf::from(parser.value()?)),
            Value(word) => words.push(word),
            other => return Err(other.unexpected()),
        }
    }
    if tape.bucket.is_zero() {
        return Err("--bucket is longer than nothing".into());
    }
    let [out, svg, png] = files;
    let words: Vec<_> = words.iter().map(|w| w.to_str().unwrap_or_default()).collect();
    Ok(Some(match (words.as_slice(), spec) {
        ([], spec) => {
            look.count = look.count.or(look.json.then_some(1));
            match url {
                Some(url) => ClockCommand::Peers(url, look),
                None => ClockCommand::Watch(spec, look),
            }
        }
        (["record"], spec) => ClockCommand::Record(spec, tape, out),
        (["plot", file], _) => {
            let beside = |ending: &str| PathBuf::from(format!("{file}.{ending}"));
            let (svg, png) = (svg.unwrap_or_else(|| beside("svg")), png.unwrap_or_else(|| beside("png")));
            ClockCommand::Plot { recording: PathBuf::from(file), svg, png }
        }
        (["doctor"], Spec::Chrony(address)) => ClockCommand::Doctor(address),
        (["doctor"], Spec::Auto) => ClockCommand::Doctor(ChronyAddress::Usual),
        (["doctor"], _) => return Err("the doctor knows chronyd only: --clock chrony or chrony:<address>".into()),
        (other, _) => return Err(format!("there is no `timeball clock {}`", other.join(" ")).into()),
    }))
}

/// A view is rewritten in place only where somebody looks at it.
fn on_terminal(options: &watch::WatchOptions) -> watch::WatchOptions {
    watch::WatchOptions { live: !options.json && io::stdout().is_terminal(), ..*options }
}

/// Does it; what there is to say goes to standard output.
pub fn run(command: &ClockCommand) -> Result<(), String> {
    match command {
        ClockCommand::Watch(spec, options) => {
            let clock = Clock::open(spec).map_err(|e| e.to_string())?;
            let _poller = clock.start_poller(|event| eprintln!("{event}")).map_err(|e| e.to_string())?;
            watch::watch(&clock, on_terminal(options), &mut io::stdout().lock(), &|| false).map_err(|e| e.to_string())
        }
        ClockCommand::Peers(url, options) => {
            let url = lab::client::Url::parse(url).map_err(|e| e.to_string())?;
            peers::watch(&url, on_terminal(options), &mut io::stdout().lock()).map_err(|e| e.to_string())
        }
        ClockCommand::Record(spec, options, out) => {
            let clock = Clock::open(spec).map_err(|e| e.to_string())?;
            let _poller = clock.start_poller(|event| eprintln!("{event}")).map_err(|e| e.to_string())?;
            let mut out: Box<dyn Write> = match out {
                Some(path) => Box::new(fs::File::create(path).map_err(|e| format!("{}: {e}", path.display()))?),
                None => Box::new(io::stdout()),
            };
            record::record(&clock, *options, &mut out, &|| false).map(|_| ()).map_err(|e| e.to_string())
        }
        ClockCommand::Plot { recording, svg, png } => {
            let named = |path: &PathBuf| {
                let path = path.display().to_string();
                move |e: io::Error| format!("{path}: {e}")
            };
            let text = fs::read_to_string(recording).map_err(named(recording))?;
            let (drawing, pixels, table) = figure::plot(&text).map_err(|e| e.to_string())?;
            fs::write(svg, drawing).map_err(named(svg))?;
            fs::write(png, pixels).map_err(named(png))?;
            print!("{table}");
            println!("{} and {}", svg.display(), png.display());
            Ok(())
        }
        ClockCommand::Doctor(address) => {
            let mut chrony = Chrony::new(address.clone(), Settings::default().max_drift_ppb);
            print!("{}", doctor::report(&doctor::Facts::gather(&mut chrony)));
            Ok(())
        }
    }
}
