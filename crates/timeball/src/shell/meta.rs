//! Commands that begin with a backslash, as in psql.

use super::{Shell, Step};
use lab::client::{Client, Url};
use std::fs::File;
use std::io::BufReader;

const HELP: &str = "\
\\d NAME      columns, indexes and constraints of a table; \\d alone lists relations
\\dt \\dv \\ds \\di   tables, views, sequences, indexes
\\dn \\l      schemas, databases
\\c DATABASE  connect to another database
\\conninfo    where this is
\\timing      show how long statements take
\\i FILE      run a file
\\q           leave
Statements end with a semicolon. Ctrl-C drops what was typed, or cancels what runs.
";

const RELATIONS: &str = "\
SELECT n.nspname AS \"Schema\", c.relname AS \"Name\", \
CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence' WHEN 'i' THEN 'index' END AS \"Type\" \
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND c.relkind IN (KINDS) ORDER BY 1, 2";

/// Runs a command.
pub fn run(shell: &mut Shell, text: &str) -> Step {
    let mut words = text.split_whitespace();
    let (command, argument) = (words.next().unwrap_or_default(), words.next());
    match (command.trim_end_matches(';'), argument) {
        ("\\q", _) => return Step::Leave,
        ("\\?" | "\\h" | "\\help", _) => print!("{HELP}"),
        ("\\timing", _) => {
            shell.timing = !shell.timing;
            println!("Timing is {}.", if shell.timing { "on" } else { "off" });
        }
        ("\\conninfo", _) => {
            let Url { user, host, port, database, .. } = &shell.url;
            println!("Database \"{database}\" as user \"{user}\" at {host}:{port}, {}.", shell.server());
        }
        ("\\c" | "\\connect", Some(database)) => return connect(shell, database.trim_end_matches(';')),
        ("\\i", Some(path)) => return include(shell, path),
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
        ("\\d", Some(name)) => return describe(shell, name.trim_end_matches(';')),
        ("\\d", None) => return relations(shell, "'r', 'v', 'S'"),
        ("\\dt", _) => return relations(shell, "'r'"),
        ("\\dv", _) => return relations(shell, "'v'"),
        ("\\ds", _) => return relations(shell, "'S'"),
        ("\\di", _) => return relations(shell, "'i'"),
        _ => {
            eprintln!("There is no command {command}, or it needs an argument; \\? shows the commands.");
            return Step::Failed;
        }
    }
    Step::On
}

fn relations(shell: &mut Shell, kinds: &str) -> Step {
    shell.statement(&RELATIONS.replace("KINDS", kinds), Some("List of relations"))
}

/// A literal: quotes doubled.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn describe(shell: &mut Shell, name: &str) -> Step {
    let (schema, table) = name.split_once('.').unwrap_or(("public", name));
    let of = format!("table_schema = {} AND table_name = {}", literal(schema), literal(table));
    let columns = format!(
        "SELECT column_name AS \"Column\", data_type AS \"Type\", \
         CASE is_nullable WHEN 'NO' THEN 'not null' ELSE '' END AS \"Nullable\", column_default AS \"Default\" \
         FROM information_schema.columns WHERE {of} ORDER BY ordinal_position"
    );
    let title = format!("Relation \"{schema}.{table}\"");
    if shell.statement(&columns, Some(&title)) != Step::On {
        return Step::Failed;
    }
    let indexes = format!(
        "SELECT indexname AS \"Name\", indexdef AS \"Definition\" FROM pg_catalog.pg_indexes \
         WHERE schemaname = {} AND tablename = {} ORDER BY 1",
        literal(schema),
        literal(table)
    );
    shell.statement(&indexes, Some("Indexes"))
}

fn connect(shell: &mut Shell, database: &str) -> Step {
    let url = Url { database: database.to_owned(), ..shell.url.clone() };
    match Client::connect(&url) {
        Ok(client) => {
            (shell.client, shell.url) = (client, url);
            println!("You are now connected to database \"{database}\".");
            Step::On
        }
        Err(e) => {
            eprintln!("{e}\nThe connection to \"{}\" stays.", shell.url.database);
            Step::Failed
        }
    }
}

fn include(shell: &mut Shell, path: &str) -> Step {
    let done = match File::open(path) {
        Ok(file) => shell.script(&mut BufReader::new(file)),
        Err(e) => Err(format!("cannot open {path}: {e}")),
    };
    match done {
        Ok(()) => Step::On,
        Err(e) => {
            if !e.is_empty() {
                eprintln!("{e}");
            }
            Step::Failed
        }
    }
}
