//! Commands that begin with a backslash, as in psql.

use super::script::{Ended, ON_ERROR_STOP, flag};
use super::{Shell, Step, copy, describe, watch};
use lab::client::{Client, Url};
use std::fs::File;
use std::io::BufReader;

const HELP: &str = "\
\\d NAME      columns, indexes and constraints of a table; \\d alone lists relations
\\dt \\dv \\ds \\di   tables, views, sequences, indexes; with a + what was said of them, too
\\dn \\l \\du   schemas, databases, roles
\\df [NAME]   functions; * stands for any letters
\\c DATABASE  connect to another database
\\conninfo    where this is
\\x [on|off]  a column per line; \\gx after a statement, for that one
\\copy        COPY from or to a file on this side
\\set [NAME VALUE], \\unset NAME   variables: :NAME, :'NAME' and :\"NAME\" stand for the value;
            ON_ERROR_STOP ends a script with its first error
\\echo TEXT   says it
\\watch [S] [c=N]   the last statement again every S seconds (2), N times or until Ctrl-C
\\timing      show how long statements take
\\i FILE      run a file
\\q           leave
Statements end with a semicolon. Ctrl-C drops what was typed, or cancels what runs.
";

/// Runs a command.
pub fn run(shell: &mut Shell, text: &str) -> Step {
    let text = text.trim_end().trim_end_matches(';');
    let (command, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let arguments: Vec<&str> = rest.split_whitespace().collect();
    let (bare, more) = command.strip_suffix('+').map_or((command, false), |bare| (bare, true));
    match (bare, arguments.as_slice()) {
        ("\\q", _) => return Step::Leave,
        ("\\?" | "\\h" | "\\help", _) => print!("{HELP}"),
        ("\\timing", given) => {
            let Some(on) = switch(shell.timing, given) else { return unknown(text) };
            shell.timing = on;
            println!("Timing is {}.", if on { "on" } else { "off" });
        }
        ("\\x", given) => {
            let Some(on) = switch(shell.expanded, given) else { return unknown(text) };
            shell.expanded = on;
            println!("Expanded display is {}.", if on { "on" } else { "off" });
        }
        ("\\conninfo", _) => {
            let (Url { user, database, .. }, place) = (&shell.url, shell.place());
            println!("Database \"{database}\" as user \"{user}\" at {place}, {}.", shell.server());
        }
        ("\\c" | "\\connect", [database]) => return connect(shell, database),
        ("\\i", [path]) => return include(shell, path),
        ("\\echo", _) => println!("{}", shell.with_variables(rest.trim())),
        ("\\set", []) => {
            for (name, value) in &shell.variables {
                println!("{name} = '{value}'");
            }
        }
        ("\\set", [name, ..]) => {
            let value = rest.trim_start().strip_prefix(name).unwrap_or_default().trim();
            let value = shell.with_variables(unquoted(value).as_deref().unwrap_or(value));
            if *name == ON_ERROR_STOP && flag(&value).is_none() {
                eprintln!("ON_ERROR_STOP is on or off, not {value}.");
                return Step::Failed;
            }
            shell.variables.insert((*name).to_owned(), value);
        }
        ("\\unset", [name]) => {
            if shell.variables.remove(*name).is_none() {
                eprintln!("No variable is named {name}.");
            }
        }
        ("\\copy", _) => return copy::run(shell, &shell.with_variables(rest)),
        ("\\watch", given) => return watch::run(shell, given),
        ("\\g" | "\\gx", []) if !shell.last.is_empty() => {
            let before = shell.expanded;
            shell.expanded |= bare == "\\gx";
            let step = shell.statement(&shell.last.clone(), None);
            shell.expanded = before;
            return step;
        }
        ("\\l", _) => {
            return shell.statement(
                "SELECT datname AS \"Name\" FROM pg_catalog.pg_database ORDER BY 1",
                Some("List of databases"),
            );
        }
        ("\\dn", _) => {
            let schemas = "SELECT nspname AS \"Name\" FROM pg_catalog.pg_namespace ORDER BY 1";
            return shell.statement(schemas, Some("List of schemas"));
        }
        ("\\d", [name]) => return describe::describe(shell, name, more),
        ("\\d", []) => return describe::relations(shell, "'r', 'v', 'S'", more),
        ("\\dt", []) => return describe::relations(shell, "'r'", more),
        ("\\dv", []) => return describe::relations(shell, "'v'", more),
        ("\\ds", []) => return describe::relations(shell, "'S'", more),
        ("\\di", []) => return describe::relations(shell, "'i'", more),
        ("\\dt" | "\\dv" | "\\ds" | "\\di", [name]) => return describe::describe(shell, name, more),
        ("\\password", _) => {
            eprintln!("This shell sets no passwords; a node of Timeball asks nobody for one, and keeps none.");
            return Step::Failed;
        }
        ("\\du", _) => return describe::roles(shell),
        ("\\df", given) => return describe::functions(shell, given.first().copied()),
        _ => return unknown(text),
    }
    Step::On
}

fn unknown(text: &str) -> Step {
    eprintln!("There is no command {text}, or it takes other arguments; \\? shows the commands.");
    Step::Failed
}

/// A switch after a command: as given, or the other way around.
fn switch(now: bool, given: &[&str]) -> Option<bool> {
    match given {
        [] => Some(!now),
        ["on" | "true" | "1"] => Some(true),
        ["off" | "false" | "0"] => Some(false),
        _ => None,
    }
}

/// What stands in single quotes, doubled ones being one of them; `None` without quotes.
fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(inner.replace("''", "'"))
}

fn connect(shell: &mut Shell, database: &str) -> Step {
    let url = Url { database: database.to_owned(), ..shell.url.clone() };
    match Client::connect(&url) {
        Ok(client) => {
            (shell.client, shell.url) = (client, url);
            shell.set.clear();
            println!("You are now connected to database \"{database}\".");
            Step::On
        }
        Err(e) => {
            eprintln!("{e}");
            if !shell.interactive {
                // What follows in a script is meant for the other database.
                return Step::Lost;
            }
            eprintln!("The connection to \"{}\" stays.", shell.url.database);
            Step::Failed
        }
    }
}

fn include(shell: &mut Shell, path: &str) -> Step {
    let done = match File::open(path) {
        Ok(file) => shell.script(&mut BufReader::new(file)),
        Err(e) => Err(Ended::Failed(format!("cannot open {path}: {e}"))),
    };
    match done {
        Ok(()) => Step::On,
        Err(Ended::Disconnected(_)) => Step::Lost,
        Err(Ended::Stopped) => Step::Failed,
        Err(Ended::Failed(why)) => {
            eprintln!("{why}");
            Step::Failed
        }
    }
}
