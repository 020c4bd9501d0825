//! `timeball lab`: the seeds' experiments.

use ::lab::experiments::{self, Begin, Ground, Options, SEED, Size};
use lexopt::prelude::*;
use std::path::PathBuf;

pub const HELP: &str = "\
timeball lab list                   the experiments, a line each
timeball lab NAME [options]         runs one; writes its page (Markdown), tables (CSV) and figures (SVG, PNG)
  --out DIR               where (docs/lab)
  --full                  the sizes of the document, where they are larger: hours perhaps
  --resume                go on where an interrupted run stopped
  --anew                  measure all points anew; needed where an interrupted run left some
  --seed N                seed of all choices (1)
  --binary FILE           the program of the nodes, where an experiment starts clusters (this one)
  --dir DIR               their data lie below (the system's folder for temporary files)
timeball lab index [--out DIR]      writes the index of all tables and figures from the runs that DIR has
";

/// Where results go that nobody wants elsewhere.
const OUT: &str = "docs/lab";

/// What to do.
#[derive(Debug, PartialEq)]
pub enum LabCommand {
    List,
    Index(PathBuf),
    Run(Options),
}

/// Reads what follows `timeball lab`; nothing means that help was asked for.
pub fn parse(parser: &mut lexopt::Parser) -> Result<Option<LabCommand>, lexopt::Error> {
    let (mut out, mut size, mut seed, mut name) = (PathBuf::from(OUT), Size::Usual, SEED, None);
    let mut begin = Begin::default();
    let (mut binary, mut dir) = (None, std::env::temp_dir());
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") | Short('h') => return Ok(None),
            Long("out") => out = PathBuf::from(parser.value()?),
            Long("full") => size = Size::Full,
            Long("resume") if begin != Begin::Anew => begin = Begin::Resume,
            Long("anew") if begin != Begin::Resume => begin = Begin::Anew,
            Long("resume" | "anew") => {
                return Err("--resume keeps what is there, --anew does not: give one of them".into());
            }
            Long("binary") => binary = Some(PathBuf::from(parser.value()?)),
            Long("dir") => dir = PathBuf::from(parser.value()?),
            Long("seed") => seed = parser.value()?.parse()?,
            Value(word) if name.is_none() => name = Some(word.string()?),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(match name.as_deref() {
        None => return Err("`timeball lab` needs the name of an experiment; `timeball lab list` has them".into()),
        Some("list") => LabCommand::List,
        Some("index") => LabCommand::Index(out),
        Some(name) => {
            let own = || std::env::current_exe().map_err(|e| format!("where this program is: {e}; give --binary"));
            let binary = binary.map_or_else(own, Ok)?;
            LabCommand::Run(Options { name: name.into(), size, out, begin, seed, ground: Ground { binary, dir } })
        }
    }))
}

/// Does it; progress on standard error, where to look on standard output.
pub fn run(command: &LabCommand) -> Result<(), String> {
    let written = match command {
        LabCommand::List => {
            crate::say(&experiments::list());
            return Ok(());
        }
        LabCommand::Index(out) => experiments::index(out),
        LabCommand::Run(options) => experiments::run(options, |line| eprintln!("{line}")),
    };
    let path = written.map_err(|e| e.to_string())?;
    crate::say(&format!("{}\n", path.display()));
    Ok(())
}
