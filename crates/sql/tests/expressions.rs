//! Expressions answer as PostgreSQL does: every line of `golden/expressions.txt`, `golden/expressions_random.txt` and
//! `golden/functions.txt`, which PostgreSQL 15 wrote.
//!
//! The `.known` file beside each lists the lines that differ, with our answer: a new difference fails, and so does one that is gone.
//! Set `BLESS=1` to write those files again.

use sql::context::{EvalSettings, StatementContext};
use sql::expr::{BindContext, Parameters, Scope, bind};
use sql::types::{CastContext, CastKind, SqlType};
use sql::work::Pace;
use sql::{SqlError, SqlState};
use sqlparser::ast::{SelectItem, SetExpr, Statement};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

mod statement;

/// The statement's memory in these tests, bytes.
const MEMORY_BYTES: usize = 1 << 20;

fn context() -> Arc<StatementContext> {
    statement::context(
        MEMORY_BYTES,
        EvalSettings { time_zone: chrono_tz::Europe::Berlin.into(), ..EvalSettings::default() },
    )
}

fn parse(text: &str) -> Result<sqlparser::ast::Expr, SqlError> {
    let no_expression = || SqlError::new(SqlState::SYNTAX_ERROR, "no expression");
    let mut statements = sql::syntax::parse(&format!("SELECT {text}"))?;
    let Some(sql::syntax::Command::Planned(planned)) = statements.pop().map(|parsed| parsed.command) else {
        return Err(no_expression());
    };
    let Statement::Query(query) = planned.statement else { return Err(no_expression()) };
    let SetExpr::Select(mut select) = *query.body else { return Err(no_expression()) };
    match select.projection.pop() {
        Some(SelectItem::UnnamedExpr(expr)) => Ok(expr),
        _ => Err(no_expression()),
    }
}

fn evaluate(text: &str, context: &Arc<StatementContext>) -> Result<String, SqlError> {
    let expr = parse(text)?;
    let bind_context =
        BindContext { settings: &context.settings, objects: Some(&context.statement), pace: &Pace::default() };
    let mut parameters = Parameters::none();
    let mut bound = bind(&expr, &Scope::new(), &mut parameters, &bind_context).map_err(|e| e.into_sql())?;
    if bound.ty() == SqlType::Unknown {
        bound = sql::expr::coerce(bound, &SqlType::Text, CastKind::Implicit, &mut parameters, &bind_context)?
            .expect("unknown becomes text");
    }
    let ty = bound.ty();
    let value = bound.eval(&[], context)?;
    let casts = CastContext { settings: &context.settings, objects: &context.statement, now_us: None };
    let shown = match (&value, &ty) {
        (value, _) if value.is_null() => "<NULL>".to_owned(),
        (value, SqlType::Reg(_)) => value.to_output(&ty, &casts)?,
        (value, ty) => value.to_text(ty, &context.settings),
    };
    Ok(format!("{}\t{}", ty.base(), shown.replace('\n', "\\n")))
}

fn compare(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let golden = std::fs::read_to_string(folder.join(format!("{name}.txt"))).expect("the golden file is there");
    let context = context();
    let mut differences = String::new();
    for line in golden.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (expression, wanted) = line.split_once('\t').expect("an expression, a tab and an answer");
        let found = match evaluate(expression, &context) {
            Ok(text) => text,
            Err(error) => format!("! {} {}", error.state.as_str(), error.message),
        };
        if found != wanted {
            writeln!(differences, "{expression}\n    PostgreSQL: {wanted}\n    Timeball:   {found}")
                .expect("a string grows");
        }
    }
    let known = folder.join(format!("{name}.known"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&known, &differences).expect("the file of differences is written");
    }
    let expected = std::fs::read_to_string(&known).unwrap_or_default();
    assert!(differences == expected, "differences from PostgreSQL have changed; now they are:\n{differences}");
}

#[test]
fn expressions_answer_as_postgresql() {
    compare("expressions");
}

#[test]
fn random_expressions_answer_as_postgresql() {
    compare("expressions_random");
}

#[test]
fn functions_answer_as_postgresql() {
    compare("functions");
}
