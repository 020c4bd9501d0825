//! Which function or operator is meant: PostgreSQL's rules of chapter "Type Conversion".
//!
//! Of the candidates of a name: those whose arguments fit by implicit casts; of these those with most exact matches; then those that take
//! preferred types where a cast is needed; then unknown literals are taken as strings where a candidate takes one, else as the
//! category that all candidates share; at last, unknown literals are taken to be of the type of the known ones.

use super::function::{Function, Sig};
use crate::types::{CastKind, SqlType, cast_kind};

/// A candidate with its argument types filled in.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub function: &'static Function,
    pub args: Vec<SqlType>,
    pub result: SqlType,
    /// Arguments of polymorphic type: they fit, but never exactly.
    open: Vec<bool>,
}

/// Why none was chosen.
#[derive(Debug, PartialEq)]
pub(super) enum Failure {
    /// None fits.
    None,
    /// Several fit equally.
    Ambiguous,
}

fn unify(known: &SqlType) -> SqlType {
    match known {
        SqlType::Unknown => SqlType::Text,
        other => other.base(),
    }
}

/// Fills a signature in for arguments of these types; `None` if the number or a polymorphic type does not fit.
fn concrete(function: &'static Function, types: &[SqlType]) -> Option<Candidate> {
    let fixed = function.args.len();
    let fits = if function.variadic { types.len() >= fixed } else { types.len() == fixed };
    if !fits {
        return None;
    }
    let sig = |i: usize| &function.args[i.min(fixed.saturating_sub(1))];
    let mut element: Option<SqlType> = None;
    for (i, ty) in types.iter().enumerate() {
        let found = match (sig(i), ty) {
            (Sig::Element, SqlType::Unknown) | (Sig::ArrayOfElement, SqlType::Unknown) => continue,
            (Sig::Element, ty) => ty.base(),
            (Sig::ArrayOfElement, SqlType::Array(element)) => element.base(),
            (Sig::ArrayOfElement, SqlType::Int2Vector) => SqlType::Int2,
            (Sig::ArrayOfElement, SqlType::OidVector) => SqlType::Oid,
            (Sig::ArrayOfElement, _) | (Sig::NonArray, SqlType::Array(_)) => return None,
            _ => continue,
        };
        match &element {
            None => element = Some(found),
            Some(known) if *known == found => {}
            Some(known) if cast_kind(&found, known) == Some(CastKind::Implicit) => {}
            Some(known) if cast_kind(known, &found) == Some(CastKind::Implicit) => element = Some(found),
            Some(_) => return None,
        }
    }
    let element = element.unwrap_or(SqlType::Text);
    let fill = |sig: &Sig, ty: &SqlType| match sig {
        Sig::Is(ty) => ty.clone(),
        Sig::ArrayOf(ty) => SqlType::Array(Box::new(ty.clone())),
        Sig::Element => element.clone(),
        Sig::ArrayOfElement => SqlType::Array(Box::new(element.clone())),
        Sig::Any | Sig::NonArray => unify(ty),
    };
    let args: Vec<SqlType> = types.iter().enumerate().map(|(i, ty)| fill(sig(i), ty)).collect();
    let result = fill(&function.result, &SqlType::Text);
    let open = (0..types.len()).map(|i| !matches!(sig(i), Sig::Is(_) | Sig::ArrayOf(_))).collect();
    Some(Candidate { function, args, result, open })
}

fn accepts(from: &SqlType, to: &SqlType) -> bool {
    *from == SqlType::Unknown || cast_kind(from, to) == Some(CastKind::Implicit)
}

fn keep_best(candidates: Vec<Candidate>, score: impl Fn(&Candidate) -> usize) -> Vec<Candidate> {
    let best = candidates.iter().map(&score).max().unwrap_or(0);
    candidates.into_iter().filter(|candidate| score(candidate) == best).collect()
}

/// Chooses.
pub(super) fn choose(candidates: &[&'static Function], types: &[SqlType]) -> Result<Candidate, Failure> {
    let types: Vec<SqlType> = types.iter().map(SqlType::base).collect();
    let mut left: Vec<Candidate> = candidates
        .iter()
        .filter_map(|function| concrete(function, &types))
        .filter(|candidate| types.iter().zip(&candidate.args).all(|(from, to)| accepts(from, to)))
        .collect();
    let exact = |c: &Candidate| (0..types.len()).filter(|&i| !c.open[i] && types[i] == c.args[i]).count();
    if left.len() > 1 {
        left = keep_best(left, exact);
    }
    if left.len() > 1 {
        left = keep_best(left, |candidate| {
            let fits = |i: &usize| {
                let (from, to) = (&types[*i], &candidate.args[*i]);
                !candidate.open[*i] && (from == to || preferred_for(from, to))
            };
            (0..types.len()).filter(fits).count()
        });
    }
    if left.len() > 1 && types.contains(&SqlType::Unknown) {
        left = by_unknowns(left, &types);
    }
    match left.len() {
        0 => Err(Failure::None),
        1 => left.pop().ok_or(Failure::None),
        // Of a fixed and a variadic form the fixed one is meant.
        _ => match left.iter().position(|candidate| !candidate.function.variadic) {
            Some(index) if left.iter().filter(|c| !c.function.variadic).count() == 1 => Ok(left.swap_remove(index)),
            _ => Err(Failure::Ambiguous),
        },
    }
}

fn preferred_for(from: &SqlType, to: &SqlType) -> bool {
    *from != SqlType::Unknown && to.is_preferred() && from.category() == to.category()
}

fn by_unknowns(mut left: Vec<Candidate>, types: &[SqlType]) -> Vec<Candidate> {
    let before = left.clone();
    // What is polymorphic is of no category.
    let category = |candidate: &Candidate, i: usize| if candidate.open[i] { 'P' } else { candidate.args[i].category() };
    for (i, _) in types.iter().enumerate().filter(|(_, ty)| **ty == SqlType::Unknown) {
        let chosen = if left.iter().any(|candidate| category(candidate, i) == 'S') {
            Some('S')
        } else {
            let first = left.first().map(|candidate| category(candidate, i));
            first.filter(|c| left.iter().all(|candidate| category(candidate, i) == *c))
        };
        let Some(chosen) = chosen else {
            left = before.clone();
            break;
        };
        left.retain(|candidate| category(candidate, i) == chosen);
        if left.iter().any(|candidate| candidate.args[i].is_preferred()) {
            left.retain(|candidate| candidate.args[i].is_preferred());
        }
    }
    if left.len() == 1 {
        return left;
    }
    let mut known = types.iter().filter(|ty| **ty != SqlType::Unknown);
    if let Some(first) = known.next()
        && known.all(|ty| ty == first)
    {
        let same: Vec<Candidate> =
            before.iter().filter(|candidate| candidate.args.iter().all(|arg| accepts(first, arg))).cloned().collect();
        if same.len() == 1 {
            return same;
        }
        let exact: Vec<Candidate> =
            same.into_iter().filter(|candidate| candidate.args.iter().all(|arg| arg == first)).collect();
        if exact.len() == 1 {
            return exact;
        }
    }
    left
}

/// Chooses an operator: an unknown operand is first taken to be of the other's type.
pub(super) fn choose_operator(candidates: &[&'static Function], types: &[SqlType]) -> Result<Candidate, Failure> {
    if let [left, right] = types {
        let assumed = match (left, right) {
            (SqlType::Unknown, known) | (known, SqlType::Unknown) if *known != SqlType::Unknown => Some(known.base()),
            _ => None,
        };
        if let Some(ty) = assumed {
            let exact = candidates.iter().filter_map(|function| concrete(function, &[ty.clone(), ty.clone()])).find(
                |candidate| {
                    candidate.args.iter().all(|arg| *arg == ty)
                        && candidate.function.args.iter().all(|sig| !matches!(sig, Sig::Any | Sig::NonArray))
                },
            );
            if let Some(candidate) = exact {
                return Ok(candidate);
            }
        }
    }
    choose(candidates, types)
}

/// The type in which two numbers are added or compared.
pub(super) fn common_number(left: &SqlType, right: &SqlType) -> SqlType {
    use SqlType as T;
    let (left, right) = (left.base(), right.base());
    if left == right {
        return left;
    }
    let is_float = |ty: &T| matches!(ty, T::Float4 | T::Float8);
    if is_float(&left) || is_float(&right) {
        T::Float8
    } else if matches!(left, T::Numeric(_)) || matches!(right, T::Numeric(_)) {
        T::Numeric(None)
    } else if left == T::Int8 || right == T::Int8 {
        T::Int8
    } else {
        T::Int4
    }
}

/// The type in which two values are compared; `None` if there is no such operator.
pub(super) fn comparison_type(left: &SqlType, right: &SqlType) -> Option<SqlType> {
    use SqlType as T;
    let (left, right) = (left.base(), right.base());
    let is_oid = |ty: &T| matches!(ty, T::Oid | T::Reg(_));
    let is_int = |ty: &T| matches!(ty, T::Int2 | T::Int4 | T::Int8);
    let text_like = |ty: &T| matches!(ty, T::Text | T::Varchar(_) | T::Name | T::Char(_));
    Some(match (&left, &right) {
        (T::Unknown, T::Unknown) => T::Text,
        (T::Unknown, T::Varchar(_)) | (T::Varchar(_), T::Unknown) => T::Text,
        (T::Unknown, T::Reg(_)) | (T::Reg(_), T::Unknown) => T::Oid,
        (T::Unknown, known) | (known, T::Unknown) => known.clone(),
        (T::Varchar(_), T::Varchar(_)) => T::Text,
        (a, b) if a == b => match a {
            T::Reg(_) => T::Oid,
            T::Record => T::Record,
            same => same.clone(),
        },
        (a, b) if a.is_number() && b.is_number() => common_number(a, b),
        (a, b) if (is_oid(a) && (is_oid(b) || is_int(b))) || (is_int(a) && is_oid(b)) => T::Oid,
        // varchar has no operators of its own, and those of char(n) fit one side exactly.
        (T::Char(_), T::Varchar(_)) | (T::Varchar(_), T::Char(_)) => T::Char(0),
        (a, b) if text_like(a) && text_like(b) => T::Text,
        (T::SingleChar, b) | (b, T::SingleChar) if text_like(b) => T::Text,
        (T::Date, T::Timestamp(_)) | (T::Timestamp(_), T::Date) => T::Timestamp(None),
        (T::Date | T::Timestamp(_) | T::Timestamptz(_), T::Date | T::Timestamp(_) | T::Timestamptz(_)) => {
            T::Timestamptz(None)
        }
        (T::Time(_), T::Timetz(_)) | (T::Timetz(_), T::Time(_)) => T::Timetz(None),
        (T::Time(_), T::Interval(_)) | (T::Interval(_), T::Time(_)) => T::Interval(None),
        (T::Array(a), T::Array(b)) if text_like(a) && text_like(b) => T::Array(Box::new(T::Text)),
        (T::Int2Vector, T::Array(b)) | (T::Array(b), T::Int2Vector) if **b == T::Int2 => T::Array(Box::new(T::Int2)),
        (T::OidVector, T::Array(b)) | (T::Array(b), T::OidVector) if **b == T::Oid => T::Array(Box::new(T::Oid)),
        _ => return None,
    })
    .filter(|ty| *ty == T::Record || ty.is_orderable())
}

/// The one type for branches of CASE and its kind.
///
/// # Errors
/// The two types that do not go together.
pub(super) fn common_type(types: &[SqlType]) -> Result<SqlType, (SqlType, SqlType)> {
    let mut known = types.iter().filter(|ty| **ty != SqlType::Unknown);
    let Some(first) = known.next() else { return Ok(SqlType::Text) };
    if types.iter().all(|ty| ty == first) {
        return Ok(first.clone());
    }
    let mut chosen = first.base();
    for ty in known.map(SqlType::base) {
        if ty == chosen {
            continue;
        }
        if ty.category() != chosen.category() {
            return Err((chosen, ty));
        }
        let forward = cast_kind(&chosen, &ty) == Some(CastKind::Implicit);
        let back = cast_kind(&ty, &chosen) == Some(CastKind::Implicit);
        if !chosen.is_preferred() && forward && !back {
            chosen = ty;
        } else if !back {
            return Err((chosen, ty));
        }
    }
    Ok(chosen)
}
