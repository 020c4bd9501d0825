//! Texts of dates, times and intervals that the catalog keeps, in one form that every session reads alike.
//!
//! **Problem.** `CHECK (d > '01/02/2020')` means a day in January or in February, by the `DateStyle` of who reads it; `'2020-01-01'` as an
//! instant means one by his time zone. PostgreSQL keeps what was meant when it was written. Here the catalog keeps texts, which are bound
//! anew.
//!
//! **Idea.** When such a text comes into the catalog it is bound once, and notes are taken of all literals that are read as times. Those get
//! another text: ISO, at UTC. Which literal of several alike is meant is told by spaces at their ends, which no time minds; they are there
//! while notes are taken only.
//!
//! **Caveats.** `now`, `today` and their kin stay as they are written, and mean the moment of execution. What is no literal (`'01/02/' || '2020'`)
//! is read when it is run, in PostgreSQL too.

use crate::types::EvalSettings;
use crate::types::{SqlType, Value, is_special_time};
use crate::{Attempt, SqlError};
use sqlparser::ast::{self, Expr, VisitMut, visit_expressions_mut};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

thread_local! {
    /// Literals that were read while notes are taken: as a time, in its one form; `None` for what is none.
    static NOTES: RefCell<Option<BTreeMap<String, Option<String>>>> = const { RefCell::new(None) };
}

/// Takes notes until it is dropped.
struct Taking;

impl Drop for Taking {
    fn drop(&mut self) {
        NOTES.set(None);
    }
}

/// A literal is read as a value of a type.
pub(super) fn note(text: &str, ty: &SqlType, settings: &EvalSettings) {
    NOTES.with_borrow_mut(|notes| {
        let Some(notes) = notes else { return };
        // The precision of a type is applied to the value afterwards; the fields of an interval say how its text is read.
        let ty = &if matches!(ty, SqlType::Interval(_)) { ty.clone() } else { ty.base() };
        let form = match ty.is_time() && !is_special_time(text) {
            true => Value::parse_text(ty, text, settings).ok().map(|v| v.to_text(ty, &EvalSettings::default())),
            false => None,
        };
        // One that is read in two ways stays as it is.
        notes
            .entry(text.to_string())
            .and_modify(|known| *known = known.take().filter(|k| Some(k) == form.as_ref()))
            .or_insert(form);
    });
}

/// The string of an expression that is one, if it may be a time: it has a digit.
fn string(expr: &mut Expr) -> Option<&mut String> {
    let value = match expr {
        Expr::Value(value) => value,
        Expr::TypedString(typed) => &mut typed.value,
        _ => return None,
    };
    match &mut value.value {
        ast::Value::SingleQuotedString(text) if text.bytes().any(|byte| byte.is_ascii_digit()) => Some(text),
        _ => None,
    }
}

fn each_string(node: &mut impl VisitMut, mut f: impl FnMut(usize, &mut String)) {
    let mut place = 0;
    let _ = visit_expressions_mut(node, |expr| {
        if let Some(text) = string(expr) {
            f(place, text);
            place += 1;
        }
        ControlFlow::<()>::Continue(())
    });
}

/// Puts the literals of a tree that are read as times into their one form; whether there were any in another. `bind` binds a tree as
/// whoever reads the catalog will; where it fails nothing is changed.
///
/// # Errors
/// Those of the moment.
pub fn settle<T: VisitMut + Clone>(
    node: &mut T,
    bind: impl FnOnce(&T) -> Result<(), SqlError>,
) -> Result<bool, SqlError> {
    let mut marked = node.clone();
    let mut texts = Vec::new();
    each_string(&mut marked, |place, text| {
        text.push_str(&" ".repeat(place));
        texts.push(text.clone());
    });
    if texts.is_empty() {
        return Ok(false);
    }
    NOTES.set(Some(BTreeMap::new()));
    let taking = Taking;
    let bound = bind(&marked);
    let notes = NOTES.take().unwrap_or_default();
    drop(taking);
    if bound.attempted()?.is_none() {
        return Ok(false);
    }
    let mut changed = false;
    each_string(node, |place, text| {
        if let Some(Some(form)) = notes.get(&texts[place])
            && form != text
        {
            text.clone_from(form);
            changed = true;
        }
    });
    Ok(changed)
}
