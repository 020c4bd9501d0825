//! Random statements over small tables with NULLs, answered by a node and by PostgreSQL 15: a dumb oracle for everything that a planner may do.
//!
//! Runs where PostgreSQL's server is installed, or against the one that `TIMEBALL_TEST_POSTGRES` names (its user must be allowed to create
//! databases). `TIMEBALL_DIFFERENTIAL_SEEDS=A..B` tries other seeds; a difference prints the statements that repeat it.

mod server;
mod statement;

use crate::node::{Node, Scratch, repeat_with, skip, state};
use postgres::{Client, SimpleQueryMessage};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use server::Postgres;
use statement::{Statements, TABLES};
use std::ops::Range;

/// Seeds of a run unless somebody asks for others.
const SEEDS: Range<u64> = 0..12;
/// Queries of a seed.
const QUERIES: u32 = 60;
/// Writes of a seed, spread among the queries.
const WRITES: u32 = 12;
/// Differences shown before the test gives up.
const SHOWN_MAX: usize = 5;

/// What one of the two does not support, and says so, is not compared.
const UNSUPPORTED: &str = "0A000";
/// What PostgreSQL says where it fails itself ("failed to build any 4-way joins", of a LATERAL under a LEFT JOIN).
const INTERNAL: &str = "XX000";
/// Of a hundred statements Timeball may refuse this many as not supported: the rest has to be right.
const UNSUPPORTED_PERCENT_MAX: usize = 12;

/// What came of one or more seeds.
#[derive(Default)]
struct Found {
    /// Statements that answer otherwise, each with what repeats it.
    wrong: Vec<String>,
    /// Statements that Timeball refuses as not supported, with its words.
    refused: Vec<String>,
    /// Statements run.
    statements: usize,
    /// Rows that PostgreSQL gave.
    rows: usize,
}

/// Rows as text in an order of their own, or the SQLSTATE.
fn answer(client: &mut Client, statement: &str) -> Result<Vec<String>, String> {
    match client.simple_query(statement) {
        Ok(messages) => {
            let mut rows = Vec::new();
            for message in messages {
                match message {
                    SimpleQueryMessage::Row(row) => {
                        let values: Vec<&str> = (0..row.len()).map(|n| plain(row.get(n).unwrap_or("NULL"))).collect();
                        rows.push(values.join("|"));
                    }
                    SimpleQueryMessage::CommandComplete(count) => rows.push(format!("{count} rows")),
                    _ => {}
                }
            }
            rows.sort();
            Ok(rows)
        }
        Err(e) => Err(format!("{}: {}", state(&e), e.as_db_error().map_or("", |e| e.message()))),
    }
}

/// Whether two answers are one: the same rows, or errors of the same SQLSTATE.
fn same(mine: &Result<Vec<String>, String>, right: &Result<Vec<String>, String>) -> bool {
    match (mine, right) {
        (Ok(mine), Ok(right)) => mine == right,
        (Err(mine), Err(right)) => mine[..5] == right[..5],
        _ => false,
    }
}

fn unsupported(answer: &Result<Vec<String>, String>) -> bool {
    answer.as_ref().is_err_and(|e| e.starts_with(UNSUPPORTED))
}

/// A number without the zeros at its end: which of two equal numbers stands for both is nobody's promise.
fn plain(value: &str) -> &str {
    let number = value.contains('.') && value.parse::<f64>().is_ok();
    if number { value.trim_end_matches('0').trim_end_matches('.') } else { value }
}

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("TIMEBALL_DIFFERENTIAL_SEEDS") else { return SEEDS };
    let (from, to) = text.split_once("..").expect("TIMEBALL_DIFFERENTIAL_SEEDS=A..B");
    from.parse().unwrap()..to.parse().unwrap()
}

/// Runs a seed.
fn compare(seed: u64, ours: &mut Client, theirs: &mut Client, found: &mut Found) {
    for client in [&mut *ours, &mut *theirs] {
        let drop: Vec<String> =
            TABLES.iter().map(|(table, _)| format!("DROP TABLE IF EXISTS {table} CASCADE")).collect();
        client.batch_execute(&drop.join(";")).unwrap();
    }
    let mut statements = Statements::new(SmallRng::seed_from_u64(seed));
    // What has been done so far: it repeats a difference.
    let mut story = statements.tables();
    // Plans with statistics and without.
    if seed % 2 == 1 {
        story.push("ANALYZE".into());
    }
    for statement in &story {
        for client in [&mut *ours, &mut *theirs] {
            client.batch_execute(statement).unwrap_or_else(|e| panic!("{statement}: {e}: {:?}", e.as_db_error()));
        }
    }
    for n in 0..QUERIES {
        let write = n % (QUERIES / WRITES) == 0;
        let statement = if write { statements.write() } else { statements.query() };
        for client in [&mut *ours, &mut *theirs] {
            client.batch_execute("BEGIN").unwrap();
        }
        let (mine, right) = (answer(ours, &statement), answer(theirs, &statement));
        found.statements += 1;
        found.rows += right.as_ref().map_or(0, Vec::len);
        // A write that only one of them does is undone, so that what follows can be compared.
        let both = same(&mine, &right) && right.is_ok();
        for client in [&mut *ours, &mut *theirs] {
            client.batch_execute(if both { "COMMIT" } else { "ROLLBACK" }).unwrap();
        }
        if unsupported(&mine) && !unsupported(&right) {
            found.refused.push(format!("{statement}\n-- {}", mine.unwrap_err()));
        } else if !same(&mine, &right)
            && !unsupported(&right)
            && !right.as_ref().is_err_and(|e| e.starts_with(INTERNAL))
        {
            let before = story.join(";\n");
            found.wrong.push(format!(
                "seed {seed}:\n{before};\n{statement};\n-- PostgreSQL: {right:?}\n-- Timeball:   {mine:?}"
            ));
        }
        if write && both {
            story.push(statement);
        }
    }
}

#[test]
fn random_statements_answer_as_postgresql() {
    repeat_with("differential::random_statements_answer_as_postgresql");
    let scratch = Scratch::new();
    let postgres = match Postgres::start(&scratch.path().join("postgres")) {
        Ok(postgres) => postgres,
        Err(why) => return skip(&why),
    };
    let node = Node::start(&scratch.path().join("store"), &[]);
    let (mut ours, mut theirs) = (node.connect(), postgres.connect());
    let mut found = Found::default();
    for seed in seeds() {
        compare(seed, &mut ours, &mut theirs, &mut found);
        if found.wrong.len() >= SHOWN_MAX {
            break;
        }
    }
    eprintln!("{} statements, {} rows, {} not supported", found.statements, found.rows, found.refused.len());
    let shown = |all: &[String]| all.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(found.wrong.is_empty(), "{} statements answer otherwise:\n{}", found.wrong.len(), shown(&found.wrong));
    assert!(found.rows > 0, "the statements gave no row at all: nothing was compared");
    let refused_max = found.statements * UNSUPPORTED_PERCENT_MAX / 100;
    assert!(found.refused.len() <= refused_max, "too many are refused:\n{}", shown(&found.refused));
}
