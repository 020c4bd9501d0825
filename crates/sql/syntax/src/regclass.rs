//! Relations that an expression names by literals: `nextval('s')`, `'t'::regclass`.
//!
//! PostgreSQL keeps such a literal as the OID of what it names: it follows a rename, and stands in the way of a DROP. Here the catalog keeps
//! texts. Whoever renames or drops looks for the literals in their trees: within a text lie longer names, other texts, and quotes.

use super::{parse_expression, quote_literal};
use crate::SqlError;
use sqlparser::ast::{
    DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Value, VisitMut,
    VisitorMut,
};
use std::ops::ControlFlow;

/// Functions whose first argument is a sequence.
const SEQUENCE_FUNCTIONS: &[&str] = &["nextval", "currval", "setval"];
/// The type whose literals are names of relations.
const REGCLASS: &str = "regclass";

/// Whether a text may have such literals: all others need not be read.
pub fn may_name_relations(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    SEQUENCE_FUNCTIONS.iter().chain(&[REGCLASS]).any(|word| lower.contains(word))
}

/// Shows each literal that names a relation to `f`, as the name that is written in it. Where `f` gives another name the literal becomes
/// that of the other one, a `'..'::regclass`. Whether there was such a one.
///
/// # Errors
/// What `f` finds.
pub fn each_named_relation(
    expr: &mut Expr,
    f: impl FnMut(&str) -> Result<Option<String>, SqlError>,
) -> Result<bool, SqlError> {
    let mut visitor = Literals { f, changed: false };
    match expr.visit(&mut visitor) {
        ControlFlow::Continue(()) => Ok(visitor.changed),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Literals<F> {
    f: F,
    changed: bool,
}

impl<F: FnMut(&str) -> Result<Option<String>, SqlError>> Literals<F> {
    fn see(&mut self, expr: &mut Expr, name: &str) -> Result<(), SqlError> {
        let Some(other) = (self.f)(name)? else { return Ok(()) };
        *expr = parse_expression(&format!("{}::{REGCLASS}", quote_literal(&other)))?;
        if let Expr::Cast { data_type, .. } = expr {
            // The library shouts names of types that it knows.
            *data_type = DataType::Custom(Ident::new(REGCLASS).into(), Vec::new());
        }
        self.changed = true;
        Ok(())
    }
}

impl<F: FnMut(&str) -> Result<Option<String>, SqlError>> VisitorMut for Literals<F> {
    type Break = SqlError;

    // Parts come before what they are parts of, so what is put in a place is not met again.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let seen = match expr {
            Expr::Cast { expr: inner, data_type, .. } if is_regclass(data_type) => match string(inner) {
                Some(name) => self.see(expr, &name),
                None => Ok(()),
            },
            Expr::TypedString(typed) if is_regclass(&typed.data_type) => {
                match typed.value.value.clone().into_string() {
                    Some(name) => self.see(expr, &name),
                    None => Ok(()),
                }
            }
            Expr::Function(call) => match sequence(call) {
                Some(argument) => match string(argument) {
                    Some(name) => self.see(argument, &name),
                    None => Ok(()),
                },
                None => Ok(()),
            },
            _ => Ok(()),
        };
        match seen {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

/// The argument of a call that is a sequence.
fn sequence(call: &mut Function) -> Option<&mut Expr> {
    if !SEQUENCE_FUNCTIONS.contains(&last(&call.name)?.to_ascii_lowercase().as_str()) {
        return None;
    }
    let FunctionArguments::List(list) = &mut call.args else { return None };
    match list.args.first_mut()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument),
        _ => None,
    }
}

fn last(name: &ObjectName) -> Option<&str> {
    name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.as_str())
}

fn is_regclass(ty: &DataType) -> bool {
    match ty {
        DataType::Regclass => true,
        DataType::Custom(name, _) => last(name).is_some_and(|name| name.eq_ignore_ascii_case(REGCLASS)),
        _ => false,
    }
}

/// What a literal says, if it is a string.
fn string(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => string(inner),
        Expr::Value(value) if !matches!(value.value, Value::Number(..)) => value.value.clone().into_string(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::written;

    fn renamed(text: &str) -> (String, Vec<String>) {
        let mut expr = parse_expression(text).expect(text);
        let mut seen = Vec::new();
        let mut other = |name: &str| {
            seen.push(name.to_string());
            Ok((name == "s").then(|| "s.t".into()))
        };
        let changed = each_named_relation(&mut expr, &mut other).expect(text);
        let text = written(expr).expect(text);
        assert_eq!(changed, text.contains("'s.t'::regclass"), "{text}");
        (text, seen)
    }

    #[test]
    fn literals_that_name_relations_are_found_and_no_others() {
        for (text, new, names) in [
            ("nextval('s')", "nextval('s.t'::regclass)", &["s"][..]),
            ("nextval('s'::regclass)", "nextval('s.t'::regclass)", &["s"]),
            (
                "pg_catalog.nextval(CAST('s' AS pg_catalog.regclass)) + 1",
                "pg_catalog.nextval('s.t'::regclass) + 1",
                &["s"],
            ),
            ("setval($$s$$, currval(E's'))", "setval('s.t'::regclass, currval('s.t'::regclass))", &["s", "s"]),
            ("regclass 's'::oid", "'s.t'::regclass::OID", &["s"]),
            ("nextval('s2') || ' nextval(''s'')'", "nextval('s2') || ' nextval(''s'')'", &["s2"]),
            ("nextval('\"s\"') + length('s')", "nextval('\"s\"') + length('s')", &["\"s\""]),
            // Looked for when it runs.
            ("nextval('s'::text::regclass)", "nextval('s'::TEXT::regclass)", &[]),
        ] {
            let (text, seen) = renamed(text);
            assert_eq!(text.to_lowercase(), new.to_lowercase());
            let mut seen = seen;
            seen.sort();
            assert_eq!(seen, names);
        }
    }
}
