//! What runs without anybody at the keys: `-e`, a script on standard input, `\i`. As in psql it goes on after an error unless the variable
//! ON_ERROR_STOP is on, and the exit status says how it ended.

use super::{Shell, Step, copy, statement};
use std::io::BufRead;

/// Why a shell ended before its end. What went wrong has been shown, unless it is in here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Something of its own did not work, or the last of `-e` failed.
    Failed(String),
    /// There is no connection, or it was lost.
    Disconnected(String),
    /// A statement or command of a script failed, and ON_ERROR_STOP is on.
    Stopped,
}

impl Ended {
    /// The exit status, which is psql's, and what is still to be shown.
    pub fn status(self) -> (u8, String) {
        match self {
            Ended::Failed(why) => (1, why),
            Ended::Disconnected(why) => (2, why),
            Ended::Stopped => (3, String::new()),
        }
    }
}

/// What a variable that is on or off is set to; `None` for a word that is neither. Without a value it is on.
pub(super) fn flag(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "" | "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// The variable that ends a script with its first error.
pub(super) const ON_ERROR_STOP: &str = "ON_ERROR_STOP";

impl Shell {
    fn stops_on_error(&self) -> bool {
        self.variables.get(ON_ERROR_STOP).and_then(|value| flag(value)).unwrap_or(false)
    }

    /// Runs the texts of `-e`, each as one: what is in it commits together.
    pub(super) fn texts(&mut self, texts: &[String]) -> Result<(), Ended> {
        let mut failed = false;
        for text in texts {
            let step = self.line(text);
            failed = step == Step::Failed;
            match step {
                Step::On => {}
                Step::Leave => return Ok(()),
                Step::Lost => return Err(Ended::Disconnected(String::new())),
                Step::Failed if self.stops_on_error() => break,
                Step::Failed => {}
            }
        }
        if failed { Err(Ended::Failed(String::new())) } else { Ok(()) }
    }

    /// Runs statements and commands from a stream.
    pub(super) fn script(&mut self, input: &mut dyn BufRead) -> Result<(), Ended> {
        let mut pending = String::new();
        // A line at a time: what follows may be rows.
        while let Some(line) = (&mut *input).lines().next() {
            let line = line.map_err(|e| Ended::Failed(format!("cannot read the script: {e}")))?;
            if !pending.is_empty() {
                pending.push('\n');
            }
            pending.push_str(&line);
            if !self.complete(&pending) {
                continue;
            }
            let text = std::mem::take(&mut pending);
            let step = match copy::with_rows_behind(&text) {
                Some(sql) => {
                    let sql = self.with_variables(&sql);
                    let step = copy::run_with_rows(self, &sql, input);
                    self.went_on(step)?
                }
                None => self.part(&text)?,
            };
            if step == Step::Leave {
                return Ok(());
            }
        }
        self.part(&pending).map(drop)
    }

    /// Whether a script goes on after this.
    fn went_on(&self, step: Step) -> Result<Step, Ended> {
        match step {
            Step::Lost => Err(Ended::Disconnected(String::new())),
            Step::Failed if self.stops_on_error() => Err(Ended::Stopped),
            Step::Failed => Ok(Step::On),
            Step::On | Step::Leave => Ok(step),
        }
    }

    /// Runs what is complete of a script.
    fn part(&mut self, text: &str) -> Result<Step, Ended> {
        for statement in one_by_one(text) {
            let step = self.line(statement);
            if self.went_on(step)? == Step::Leave {
                return Ok(Step::Leave);
            }
        }
        Ok(Step::On)
    }

    /// Runs what was typed: the statements of a line one by one.
    pub(super) fn typed(&mut self, text: &str) -> Step {
        let mut step = Step::On;
        for statement in one_by_one(text) {
            step = self.line(statement);
            if matches!(step, Step::Leave | Step::Lost) {
                break;
            }
        }
        step
    }
}

/// The statements of a text, or the command that it is.
fn one_by_one(text: &str) -> Vec<&str> {
    if text.trim_start().starts_with('\\') { vec![text] } else { statement::split(text) }
}
