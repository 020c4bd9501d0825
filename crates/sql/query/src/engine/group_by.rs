//! GROUP BY: its expressions, and the sets of them by which rows are grouped.
//!
//! An expression is bound and kept once, however many sets it is in: CUBE of twelve is in 2,048 of them. Sets are numbers of keys.

use super::bind::{Binder, canonical};
use super::bind_query::ordinal;
use super::bind_select::Item;
use super::scope::Scope;
use super::take::{call_args, function_name};
use crate::identifier::fold;
use crate::plan::select::fits_a_list;
use crate::syntax::grouping::is_distinct;
use crate::{SqlError, SqlState};
use sqlparser::ast::{self, Expr, GroupByExpr, GroupByWithModifier};
use std::collections::BTreeSet;

/// Grouping sets of one query, at most.
const SETS_MAX: usize = 4096;
/// Elements of one CUBE, at most.
const CUBE_MAX: usize = 12;

/// Numbers of keys, each once, in order.
type KeySet = Vec<usize>;

/// The keys of a GROUP BY as they are found.
struct Finder<'b, 'c, 's> {
    binder: &'b Binder<'c>,
    items: &'b [Item],
    from: &'b Scope<'s>,
    keys: Keys,
}

impl<'c> Binder<'c> {
    /// The expressions of GROUP BY, and for each grouping set which of them are in it (none: one set of all).
    ///
    /// # Errors
    /// 54011, 54001: too many keys, or sets; those of resolving a name.
    pub(super) fn group_keys(
        &mut self,
        group: &GroupByExpr,
        items: &[Item],
        from: &Scope<'_>,
    ) -> Result<(Vec<Expr>, Vec<Vec<bool>>), SqlError> {
        let GroupByExpr::Expressions(exprs, modifiers) = group else {
            return Err(SqlError::unsupported("GROUP BY ALL"));
        };
        if modifiers.iter().any(|modifier| !matches!(modifier, GroupByWithModifier::GroupingSets(_))) {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error in GROUP BY"));
        }
        let modifiers = modifiers.iter().filter_map(|modifier| match modifier {
            GroupByWithModifier::GroupingSets(expr) => Some(expr),
            _ => None,
        });
        let mut finder = Finder { binder: self, items, from, keys: Keys::default() };
        // The product of what each element contributes.
        let mut sets: Vec<KeySet> = vec![KeySet::new()];
        let mut special = false;
        let mut distinct = false;
        for expr in exprs.iter().chain(modifiers) {
            if is_distinct(expr) {
                distinct = true;
                continue;
            }
            special |= matches!(expr, Expr::GroupingSets(_) | Expr::Rollup(_) | Expr::Cube(_));
            let alternatives = finder.alternatives(expr)?;
            fits(sets.len().saturating_mul(alternatives.len()))?;
            let mut next = Vec::with_capacity(sets.len() * alternatives.len());
            for set in &sets {
                for alternative in &alternatives {
                    finder.binder.context.pace.step()?;
                    next.push(union([set, alternative]));
                }
            }
            sets = next;
        }
        let keys = finder.keys.exprs;
        if !special {
            return Ok((keys, Vec::new()));
        }
        let mut masks = Vec::with_capacity(sets.len());
        for set in sets {
            self.context.pace.step()?;
            let mut mask = vec![false; keys.len()];
            set.into_iter().for_each(|key| mask[key] = true);
            masks.push(mask);
        }
        if distinct {
            let mut seen = BTreeSet::new();
            masks.retain(|mask| seen.insert(mask.clone()));
        }
        Ok((keys, masks))
    }
}

impl Finder<'_, '_, '_> {
    /// The sets of which a row is grouped by each, by one element of GROUP BY.
    fn alternatives(&mut self, element: &Expr) -> Result<Vec<KeySet>, SqlError> {
        match element {
            Expr::GroupingSets(sets) => {
                let mut all = Vec::with_capacity(sets.len());
                for set in sets {
                    let nested = match set.as_slice() {
                        [Expr::Function(call)] => self.nested(call)?,
                        _ => None,
                    };
                    match nested {
                        Some(sets) => all.extend(sets),
                        None => all.push(self.places(set)?),
                    }
                    fits(all.len())?;
                }
                Ok(all)
            }
            Expr::Rollup(parts) => self.rollup(parts),
            Expr::Cube(parts) => self.cube(parts),
            Expr::Tuple(parts) => Ok(vec![self.places(parts)?]),
            other => Ok(vec![self.places(std::slice::from_ref(other))?]),
        }
    }

    fn places(&mut self, exprs: &[Expr]) -> Result<KeySet, SqlError> {
        let mut set = KeySet::with_capacity(exprs.len());
        for expr in exprs {
            // Each is compared with the keys before it.
            self.binder.context.pace.step()?;
            set.push(self.keys.place(group_key(expr, self.items, self.from)?, self.from)?);
            fits_a_list(self.keys.exprs.len())?;
        }
        Ok(union([&set]))
    }

    /// All parts, then one less, down to none.
    fn rollup(&mut self, parts: &[Vec<Expr>]) -> Result<Vec<KeySet>, SqlError> {
        fits(parts.len() + 1)?;
        let parts = parts.iter().map(|part| self.places(part)).collect::<Result<Vec<_>, _>>()?;
        let mut sets = vec![KeySet::new()];
        for part in &parts {
            self.binder.context.pace.step()?;
            sets.push(union([&sets[sets.len() - 1], part]));
        }
        sets.reverse();
        Ok(sets)
    }

    /// Each choice of its parts.
    fn cube(&mut self, parts: &[Vec<Expr>]) -> Result<Vec<KeySet>, SqlError> {
        if parts.len() > CUBE_MAX {
            return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, format!("CUBE is limited to {CUBE_MAX} elements")));
        }
        let parts = parts.iter().map(|part| self.places(part)).collect::<Result<Vec<_>, _>>()?;
        let mut sets = Vec::with_capacity(1 << parts.len());
        for mask in (0..1usize << parts.len()).rev() {
            self.binder.context.pace.step()?;
            let chosen = parts.iter().enumerate().filter(|(place, _)| mask >> (parts.len() - 1 - place) & 1 == 1);
            sets.push(union(chosen.map(|(_, part)| part)));
        }
        Ok(sets)
    }

    /// ROLLUP and CUBE within GROUPING SETS, which the library reads as calls.
    fn nested(&mut self, call: &ast::Function) -> Result<Option<Vec<KeySet>>, SqlError> {
        let Some((None, name)) = function_name(&call.name) else { return Ok(None) };
        if name != "rollup" && name != "cube" {
            return Ok(None);
        }
        let part = |arg| match arg {
            Expr::Tuple(parts) => parts,
            Expr::Nested(inner) => vec![*inner],
            other => vec![other],
        };
        let parts: Vec<Vec<Expr>> = call_args(call)?.into_iter().map(part).collect();
        if name == "rollup" { self.rollup(&parts).map(Some) } else { self.cube(&parts).map(Some) }
    }
}

fn union<'s>(sets: impl IntoIterator<Item = &'s KeySet>) -> KeySet {
    let mut all: KeySet = sets.into_iter().flatten().copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn fits(sets: usize) -> Result<(), SqlError> {
    if sets <= SETS_MAX {
        return Ok(());
    }
    let message = format!("too many grouping sets present (maximum {SETS_MAX})");
    Err(SqlError::new(SqlState::TOO_COMPLEX, message))
}

/// A key of GROUP BY: an ordinal, a column, the name of an output, or an expression.
fn group_key(expr: &Expr, items: &[Item], from: &Scope<'_>) -> Result<Expr, SqlError> {
    if let Some(place) = ordinal(expr, items.len(), "GROUP BY")? {
        return Ok(items[place].expr.clone());
    }
    if let Expr::Identifier(name) = expr {
        let name = [fold(name)];
        if from.find(&name)?.is_none()
            && let Some(item) = items.iter().find(|item| item.name == name[0])
        {
            return Ok(item.expr.clone());
        }
    }
    Ok(expr.clone())
}

/// Keys of a grouping, each once, whatever it is written as: `a` is `t.a`.
#[derive(Default)]
struct Keys {
    exprs: Vec<Expr>,
    /// What they mean, where that can be told.
    texts: Vec<Option<String>>,
}

impl Keys {
    fn place(&mut self, key: Expr, from: &Scope<'_>) -> Result<usize, SqlError> {
        let text = canonical(&key, from)?;
        let same = |place: &usize| match (&self.texts[*place], &text) {
            (Some(known), Some(text)) => known == text,
            _ => self.exprs[*place] == key,
        };
        if let Some(place) = (0..self.exprs.len()).find(same) {
            return Ok(place);
        }
        self.exprs.push(key);
        self.texts.push(text);
        Ok(self.exprs.len() - 1)
    }
}
