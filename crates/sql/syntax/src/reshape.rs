//! Forms of a query that the library does not read, put into forms that mean the same and that it does.
//!
//! ```text
//! .. FOR UPDATE LIMIT 1                .. LIMIT 1 FOR UPDATE
//! .. FETCH FIRST (1 + 1) ROWS ONLY     .. LIMIT (1 + 1)
//! .. FETCH FIRST n ROWS WITH TIES      .. LIMIT n FETCH FIRST ROWS WITH TIES
//! INSERT .. SELECT 5 ON CONFLICT ..    INSERT .. SELECT 5 WHERE TRUE ON CONFLICT ..
//! INSERT .. TABLE t ..                 INSERT .. SELECT * FROM t ..
//! a JOIN b JOIN c ON x ON y            a JOIN (b JOIN c ON x) ON y
//! SELECT (VALUES (1))                  SELECT (SELECT * FROM (VALUES (1)) AS v)
//! x BETWEEN SYMMETRIC a AND b          x BETWEEN <mark>(a) AND b, until it is a tree: see `unmark`
//! x LIKE ALL (SELECT ..)               x LIKE ALL ((SELECT ..))
//! (ORDER BY a RANGE '1'::float8 ..)    (ORDER BY a RANGE ('1'::float8) ..)
//! (ORDER BY a ROWS .. EXCLUDE TIES)    (ORDER BY a, <mark>(3) ROWS ..): see [`excluded`]
//! SELECT WHERE x, (SELECT)             SELECT <mark> WHERE x, (SELECT <mark>), until it is a tree: see `unmark`
//! GROUP BY DISTINCT a, b               GROUP BY <mark>, a, b: see [`super::grouping`]
//! JOIN u USING (a) AS j                JOIN u USING (a, <mark j>), until it is a tree: see [`super::join_alias`]
//! t.* IS NULL                          ROW(t.*) IS NULL: see [`super::whole_row`]
//! SET a[1] = x                         see [`super::element`]
//! current_schema                       a call, not a column: see [`mend`]
//! ```
//! Each is looked for by its words first, so a statement without them costs one pass over its tokens.

use super::tokens::{ends_a_list, is, is_any, word};
use super::{element, grouping, join_alias, whole_row};
use crate::identifier::keyword::{self, Category};
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The function that marks the lower bound of BETWEEN SYMMETRIC: no text of a statement holds its name.
pub(super) const SYMMETRIC: &str = "\0symmetric";

/// The function that marks what a window's frame excludes, last in its order.
pub(super) const EXCLUDED: &str = "\0exclude";

/// The name that marks a select list of nothing.
pub(super) const NOTHING: &str = "\0nothing";

/// Reserved words for functions without arguments, which the library takes for names of columns.
pub(super) const CALLS: [&str; 2] = ["current_schema", "current_role"];

/// What a statement's tokens hold.
#[derive(Default)]
struct Words {
    exclude: bool,
    frame: bool,
    like: bool,
    table: bool,
    fetch: bool,
    lock: bool,
    conflict: bool,
    symmetric: bool,
    values: bool,
    select: bool,
    group: bool,
    using: bool,
    /// SET or INTO, and a bracket.
    set: bool,
    bracket: bool,
    /// `.*`
    star: bool,
    /// One of [`CALLS`].
    call: bool,
    joins: usize,
}

/// Whether the tree must be mended too.
pub(super) type Marked = bool;

/// The same statement in the library's forms.
pub(super) fn apply(mut tokens: Vec<TokenWithSpan>) -> (Vec<TokenWithSpan>, Marked) {
    let mut found = Words::default();
    let mut period = false;
    for token in &tokens {
        found.star |= period && token.token == Token::Mul;
        found.bracket |= token.token == Token::LBracket;
        period = token.token == Token::Period;
        let Token::Word(word) = &token.token else { continue };
        if word.quote_style.is_some() {
            continue;
        }
        let same = |other: &str| word.value.eq_ignore_ascii_case(other);
        match word.value.len() {
            3 => {
                found.lock |= same("FOR");
                found.set |= same("SET");
            }
            4 => {
                found.set |= same("INTO");
                found.joins += usize::from(same("JOIN"));
                found.like |= same("LIKE");
            }
            5 => {
                found.fetch |= same("FETCH");
                found.like |= same("ILIKE");
                found.table |= same("TABLE");
                found.group |= same("GROUP");
                found.using |= same("USING");
            }
            6 => {
                found.values |= same("VALUES");
                found.select |= same("SELECT");
            }
            7 => found.exclude |= same("EXCLUDE"),
            8 => found.conflict |= same("CONFLICT"),
            9 => {
                found.symmetric |= same("SYMMETRIC");
                found.frame |= same("PRECEDING") || same("FOLLOWING");
            }
            12 | 14 => found.call |= CALLS.iter().any(|call| same(call)),
            _ => {}
        }
    }
    let mut marked = false;
    if found.star {
        tokens = whole_row::values(tokens);
    }
    if found.set && found.bracket {
        (tokens, marked) = element::mark_targets(tokens);
    }
    if found.select {
        let empty;
        (tokens, empty) = empty_lists(tokens);
        marked |= empty;
    }
    if found.group {
        tokens = grouping::flatten(grouping::mark(tokens));
    }
    if found.using {
        let named;
        (tokens, named) = join_alias::mark(tokens);
        marked |= named;
    }
    if found.table {
        tokens = tables(tokens);
    }
    if found.like {
        tokens = like_all(tokens);
    }
    if found.values {
        tokens = values_as_value(tokens);
    }
    if found.conflict {
        tokens = before_conflict(tokens);
    }
    if found.fetch || found.lock {
        tokens = tails(tokens);
    }
    if found.joins > 1 {
        tokens = nested_joins(tokens);
    }
    if found.frame {
        tokens = offsets(tokens);
    }
    if found.exclude {
        tokens = exclusions(tokens);
    }
    if found.symmetric {
        let symmetric;
        (tokens, symmetric) = between_symmetric(tokens);
        marked |= symmetric;
    }
    (tokens, marked || found.call)
}

/// A select list of nothing: the library reads it in front of FROM only.
fn empty_lists(tokens: Vec<TokenWithSpan>) -> (Vec<TokenWithSpan>, Marked) {
    let ends = |at: usize| ends_a_list(tokens.get(at).map(|t| &t.token));
    // Behind a point and behind AS it is a name.
    let begins = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        is(tokens.get(at), "SELECT") && !is(before, "AS") && !matches!(before.map(|t| &t.token), Some(Token::Period))
    };
    let empty = |at: usize| begins(at) && (ends(at + 1) || (is(tokens.get(at + 1), "ALL") && ends(at + 2)));
    if !(0..tokens.len()).any(empty) {
        return (tokens, false);
    }
    let mut out = Vec::with_capacity(tokens.len() + 6);
    for (at, token) in tokens.iter().enumerate() {
        out.push(token.clone());
        let all = is(tokens.get(at + 1), "ALL");
        if (empty(at) && !all) || at.checked_sub(1).is_some_and(&empty) && is(Some(token), "ALL") {
            let mark =
                || Token::Word(Word { value: NOTHING.into(), quote_style: Some('"'), keyword: Keyword::NoKeyword });
            // With an alias, or the word behind it would be taken for one.
            out.push(TokenWithSpan { token: mark(), span: token.span });
            out.push(word("AS", token.span));
            out.push(TokenWithSpan { token: mark(), span: token.span });
        }
    }
    (out, true)
}

/// `SELECT 5 ON CONFLICT`: the library takes ON for the column's alias, unless a clause stands before it.
fn before_conflict(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    const CLAUSES: [&str; 11] =
        ["FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH", "WINDOW", "FOR", "VALUES"];
    let mut out = Vec::with_capacity(tokens.len() + 2);
    let mut depth = 0usize;
    // Whether a select list without a clause behind it is open outside of parentheses.
    let mut bare = false;
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Word(_) if depth == 0 => {
                if is(Some(token), "SELECT") {
                    bare = true;
                } else if is_any(Some(token), &CLAUSES) {
                    bare = false;
                } else if bare && is(Some(token), "ON") && is(tokens.get(at + 1), "CONFLICT") {
                    out.push(word("WHERE", token.span));
                    out.push(word("TRUE", token.span));
                    bare = false;
                }
            }
            _ => {}
        }
        out.push(token.clone());
    }
    out
}

/// `TABLE t` is short for `SELECT * FROM t`: the library does not know it everywhere, and no more behind it.
fn tables(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    // A reserved word is a name behind a point and behind AS, and a label where no name follows.
    let begins = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        let named = is(before, "AS") || matches!(before.map(|t| &t.token), Some(Token::Period));
        let follows = match tokens.get(at + 1).map(|t| &t.token) {
            Some(Token::Word(word)) => {
                let known = keyword::find(&word.value.to_ascii_lowercase());
                word.quote_style.is_some() || known.is_none_or(|known| known.category != Category::Reserved)
            }
            _ => false,
        };
        is(tokens.get(at), "TABLE") && !named && follows
    };
    let mut out = Vec::with_capacity(tokens.len() + 4);
    for (at, token) in tokens.iter().enumerate() {
        if begins(at) {
            out.push(word("SELECT", token.span));
            out.push(TokenWithSpan { token: Token::Mul, span: token.span });
            out.push(word("FROM", token.span));
        } else {
            out.push(token.clone());
        }
    }
    out
}

/// `LIKE ALL (SELECT ..)`: the library takes ALL for a function, and SOME, which is ANY, too.
fn like_all(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    const QUERIES: [&str; 4] = ["SELECT", "VALUES", "WITH", "TABLE"];
    let opens = |at: usize| matches!(tokens.get(at).map(|t| &t.token), Some(Token::LParen));
    let quantified = |word: &str, at: usize| {
        is_any(tokens.get(at), &["LIKE", "ILIKE"]) && is(tokens.get(at + 1), word) && opens(at + 2)
    };
    let some: Vec<usize> = (0..tokens.len()).filter(|at| quantified("SOME", *at)).collect();
    // Where a parenthesis is doubled, and its depth.
    let all: Vec<usize> = (0..tokens.len())
        .filter(|at| quantified("ALL", *at) && is_any(tokens.get(at + 3), &QUERIES))
        .map(|at| at + 2)
        .collect();
    for at in some {
        tokens[at + 1].token = Token::make_keyword("ANY");
    }
    if all.is_empty() {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 2 * all.len());
    let (mut depth, mut ends) = (0usize, Vec::new());
    for (at, token) in tokens.into_iter().enumerate() {
        let mut twice = false;
        match &token.token {
            Token::LParen => {
                depth += 1;
                twice = all.binary_search(&at).is_ok();
                if twice {
                    ends.push(depth);
                }
            }
            Token::RParen => {
                twice = ends.pop_if(|end| *end == depth).is_some();
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        if twice {
            out.push(token.clone());
        }
        out.push(token);
    }
    out
}

/// `(VALUES ..)` where an expression stands: the library takes VALUES for a function there.
fn values_as_value(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    const EXPRESSIONS: [&str; 11] =
        ["SELECT", "EXISTS", "ARRAY", "WHERE", "AND", "OR", "NOT", "THEN", "ELSE", "ANY", "SOME"];
    let wanted = |at: usize| {
        matches!(tokens[at].token, Token::LParen)
            && is(tokens.get(at + 1), "VALUES")
            && matches!(tokens.get(at + 2).map(|t| &t.token), Some(Token::LParen))
            && at.checked_sub(1).is_some_and(|before| match &tokens[before].token {
                Token::Word(_) => is_any(tokens.get(before), &EXPRESSIONS),
                Token::RParen | Token::RBracket | Token::SemiColon => false,
                _ => true,
            })
    };
    if !(0..tokens.len()).any(wanted) {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 8);
    // Depths at which an opened parenthesis closes.
    let (mut depth, mut ends) = (0usize, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        let span = token.span;
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                if ends.pop_if(|end| *end == depth).is_some() {
                    out.push(TokenWithSpan { token: Token::RParen, span });
                    out.push(word("AS", span));
                    out.push(word("v", span));
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        out.push(token.clone());
        if wanted(at) {
            out.push(word("SELECT", span));
            out.push(TokenWithSpan { token: Token::Mul, span });
            out.push(word("FROM", span));
            out.push(TokenWithSpan { token: Token::LParen, span });
            ends.push(depth);
        }
    }
    out
}

/// What must stand last at one depth of parentheses.
struct Held {
    depth: usize,
    ties: Vec<TokenWithSpan>,
    locks: Vec<TokenWithSpan>,
}

/// Locking clauses and WITH TIES go behind LIMIT and OFFSET; FETCH is a LIMIT.
fn tails(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out = Vec::with_capacity(tokens.len() + 4);
    let mut held: Vec<Held> = Vec::new();
    let mut depth = 0usize;
    let mut at = 0;
    let give = |held: &mut Vec<Held>, depth: usize, out: &mut Vec<TokenWithSpan>| {
        if let Some(last) = held.pop_if(|last| last.depth == depth) {
            out.extend(last.ties);
            out.extend(last.locks);
        }
    };
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1);
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                give(&mut held, depth, &mut out);
                depth = depth.saturating_sub(1);
            }
            Token::Word(_) if is(Some(token), "FETCH") && is_any(next, &["FIRST", "NEXT"]) => {
                let (end, count, ties) = fetch(&tokens, at + 2);
                if let Some(count) = count {
                    out.push(word("LIMIT", token.span));
                    out.extend(count);
                    if ties {
                        let words = ["FETCH", "FIRST", "ROWS", "WITH", "TIES"];
                        at_depth(&mut held, depth).ties = words.iter().map(|text| word(text, token.span)).collect();
                    }
                    at = end;
                    continue;
                }
            }
            Token::Word(_) if is(Some(token), "FOR") && is_any(next, &["UPDATE", "SHARE"]) => {
                let end = lock_end(&tokens, at + 2);
                // Several may follow one another.
                let mut last = end;
                while is(tokens.get(last), "FOR") && is_any(tokens.get(last + 1), &["UPDATE", "SHARE"]) {
                    last = lock_end(&tokens, last + 2);
                }
                let more = is_any(tokens.get(last), &["LIMIT", "OFFSET", "FETCH"]);
                if more || held.last().is_some_and(|last| last.depth == depth) {
                    at_depth(&mut held, depth).locks.extend(tokens[at..end].iter().cloned());
                    at = end;
                    continue;
                }
            }
            Token::Word(_) if is(Some(token), "RETURNING") || is(Some(token), "ON") && is(next, "CONFLICT") => {
                give(&mut held, depth, &mut out);
            }
            _ => {}
        }
        out.push(token.clone());
        at += 1;
    }
    give(&mut held, depth, &mut out);
    out
}

fn at_depth(held: &mut Vec<Held>, depth: usize) -> &mut Held {
    if held.last().is_none_or(|last| last.depth != depth) {
        held.push(Held { depth, ties: Vec::new(), locks: Vec::new() });
    }
    let last = held.len() - 1;
    &mut held[last]
}

/// FETCH FIRST from its count on: where it ends, the count, WITH TIES. No count if it is not one.
fn fetch(tokens: &[TokenWithSpan], start: usize) -> (usize, Option<Vec<TokenWithSpan>>, bool) {
    let mut depth = 0usize;
    let mut at = start;
    while let Some(token) = tokens.get(at) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::Word(_) if depth == 0 && is_any(Some(token), &["ROW", "ROWS"]) => {
                let ties = is(tokens.get(at + 1), "WITH") && is(tokens.get(at + 2), "TIES");
                if !ties && !is(tokens.get(at + 1), "ONLY") {
                    break;
                }
                let one = || vec![TokenWithSpan { token: Token::Number("1".into(), false), span: token.span }];
                let count = if at == start { one() } else { tokens[start..at].to_vec() };
                return (at + if ties { 3 } else { 2 }, Some(count), ties);
            }
            _ => {}
        }
        at += 1;
    }
    (start, None, false)
}

/// The end of a locking clause, from the word after UPDATE or SHARE on.
fn lock_end(tokens: &[TokenWithSpan], start: usize) -> usize {
    let mut at = start;
    if is(tokens.get(at), "OF") {
        at += 2;
        while matches!(tokens.get(at).map(|t| &t.token), Some(Token::Comma | Token::Period)) {
            at += 2;
        }
    }
    if is(tokens.get(at), "NOWAIT") {
        at += 1;
    } else if is(tokens.get(at), "SKIP") && is(tokens.get(at + 1), "LOCKED") {
        at += 2;
    }
    at.min(tokens.len())
}

/// A join whose ON or USING has not come yet.
struct Open {
    depth: usize,
    /// Where its right side begins.
    right: usize,
    /// Other joins stand in its right side.
    holds_joins: bool,
}

/// Puts parentheses around the right sides of joins that hold joins.
fn nested_joins(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut open: Vec<Open> = Vec::new();
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                open.retain(|join| join.depth < depth);
                depth = depth.saturating_sub(1);
            }
            Token::Comma => open.retain(|join| join.depth < depth),
            Token::Word(_) if is(Some(token), "JOIN") => {
                let before = |n: usize| at.checked_sub(n).and_then(|at| tokens.get(at));
                // CROSS JOIN and NATURAL .. JOIN have no condition of their own.
                let kind = if is(before(1), "OUTER") { 2 } else { 1 };
                let kind = if is_any(before(kind), &["LEFT", "RIGHT", "FULL", "INNER"]) { kind + 1 } else { kind };
                let alone = is(before(1), "CROSS") || is(before(kind), "NATURAL");
                if let Some(last) = open.last_mut().filter(|last| last.depth == depth) {
                    last.holds_joins = true;
                }
                if !alone {
                    open.push(Open { depth, right: at + 1, holds_joins: false });
                }
            }
            Token::Word(_) if is_any(Some(token), &["ON", "USING"]) => {
                if let Some(join) = open.pop_if(|join| join.depth == depth)
                    && join.holds_joins
                {
                    starts.push(join.right);
                    ends.push(at);
                }
            }
            Token::Word(_) if is_any(Some(token), &["WHERE", "GROUP", "ORDER", "SELECT"]) => {
                open.retain(|join| join.depth < depth);
            }
            _ => {}
        }
    }
    if starts.is_empty() {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 2 * starts.len());
    for (at, token) in tokens.into_iter().enumerate() {
        let span = token.span;
        let count = |places: &[usize]| places.iter().filter(|place| **place == at).count();
        out.extend((0..count(&ends)).map(|_| TokenWithSpan { token: Token::RParen, span }));
        out.extend((0..count(&starts)).map(|_| TokenWithSpan { token: Token::LParen, span }));
        out.push(token);
    }
    out
}

/// A literal that begins an offset of a frame goes into parentheses: the library takes it for an interval, and no more of the expression.
fn offsets(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    // Where a bound begins, at each depth.
    let mut bounds: Vec<Option<usize>> = vec![None];
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        let last = bounds.len() - 1;
        match &token.token {
            Token::LParen => bounds.push(None),
            Token::RParen if last > 0 => {
                bounds.pop();
            }
            Token::Word(_) if last > 0 && is_any(Some(token), &["ROWS", "RANGE", "GROUPS"]) => {
                bounds[last] = Some(at + 1)
            }
            Token::Word(_) if is_any(Some(token), &["BETWEEN"]) => {
                bounds[last] = bounds[last].filter(|start| *start == at).map(|_| at + 1);
            }
            // Between the bounds of a frame, and in no condition: columns may be called `following`, too.
            Token::Word(_) if is_any(Some(token), &["AND"]) => {
                let before = at.checked_sub(1).and_then(|at| tokens.get(at));
                let ends = last > 0 && is_any(before, &["PRECEDING", "FOLLOWING", "ROW"]);
                bounds[last] = ends.then_some(at + 1);
            }
            Token::Word(_) if is_any(Some(token), &["PRECEDING", "FOLLOWING"]) => {
                if let Some(start) = bounds[last].take()
                    && matches!(tokens[start].token, Token::SingleQuotedString(_))
                {
                    starts.push(start);
                    ends.push(at);
                }
            }
            _ => {}
        }
    }
    if starts.is_empty() {
        return tokens;
    }
    // One within another's offset was found first.
    starts.sort_unstable();
    let mut out = Vec::with_capacity(tokens.len() + 2 * starts.len());
    for (at, token) in tokens.into_iter().enumerate() {
        let span = token.span;
        if ends.binary_search(&at).is_ok() {
            out.push(TokenWithSpan { token: Token::RParen, span });
        }
        if starts.binary_search(&at).is_ok() {
            out.push(TokenWithSpan { token: Token::LParen, span });
        }
        out.push(token);
    }
    out
}

/// What stands at one depth of parentheses of a window.
#[derive(Clone, Copy, Default)]
struct Window {
    ordered: bool,
    /// Where its frame begins in what is put out.
    frame: Option<usize>,
}

/// Marks windows whose frames exclude rows.
fn exclusions(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 8);
    let mut open = vec![Window::default()];
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let last = open.len() - 1;
        match &token.token {
            Token::LParen => open.push(Window::default()),
            Token::RParen if last > 0 => {
                open.pop();
            }
            Token::Word(_) if is(Some(token), "ORDER") && is(tokens.get(at + 1), "BY") => open[last].ordered = true,
            Token::Word(_) if last > 0 && is_any(Some(token), &["ROWS", "RANGE", "GROUPS"]) => {
                open[last].frame = Some(out.len());
            }
            Token::Word(_) if is(Some(token), "EXCLUDE") => {
                let next = (tokens.get(at + 1), tokens.get(at + 2));
                let found = match next {
                    (Some(_), _) if is(next.0, "TIES") => Some((2, "3")),
                    (Some(_), _) if is(next.0, "GROUP") => Some((2, "2")),
                    (Some(_), _) if is(next.0, "CURRENT") && is(next.1, "ROW") => Some((3, "1")),
                    (Some(_), _) if is(next.0, "NO") && is(next.1, "OTHERS") => Some((3, "0")),
                    _ => None,
                };
                let ends = |length: usize| matches!(tokens.get(at + length).map(|t| &t.token), Some(Token::RParen));
                if let (Some((length, number)), Some(frame)) = (found.filter(|f| ends(f.0)), open[last].frame) {
                    let span = token.span;
                    let mark = Word {
                        value: EXCLUDED.into(),
                        quote_style: Some('"'),
                        keyword: sqlparser::keywords::Keyword::NoKeyword,
                    };
                    let mut marked = match open[last].ordered {
                        true => vec![TokenWithSpan { token: Token::Comma, span }],
                        false => vec![word("ORDER", span), word("BY", span)],
                    };
                    let call = [Token::Word(mark), Token::LParen, Token::Number(number.into(), false), Token::RParen];
                    marked.extend(call.into_iter().map(|token| TokenWithSpan { token, span }));
                    out.splice(frame..frame, marked);
                    at += length;
                    continue;
                }
            }
            _ => {}
        }
        out.push(token.clone());
        at += 1;
    }
    out
}

/// The number in a mark of [`exclusions`]: 1 for CURRENT ROW, 2 for GROUP, 3 for TIES.
pub fn excluded(key: &Expr) -> Option<String> {
    let Expr::Function(function) = key else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    match (function.name.0.last()?.as_ident()?.value.as_str(), list.args.as_slice()) {
        (EXCLUDED, [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(number)))]) => Some(number.to_string()),
        _ => None,
    }
}

/// Marks the lower bounds.
fn between_symmetric(tokens: Vec<TokenWithSpan>) -> (Vec<TokenWithSpan>, Marked) {
    let mut out = Vec::with_capacity(tokens.len() + 3);
    // Where the marks' parentheses close.
    let mut ends = Vec::new();
    let mut found = false;
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        while ends.pop_if(|end| *end == at).is_some() {
            out.push(TokenWithSpan { token: Token::RParen, span: token.span });
        }
        out.push(token.clone());
        at += 1;
        if is(Some(token), "BETWEEN")
            && is(tokens.get(at), "SYMMETRIC")
            && let Some(end) = bound_end(&tokens, at + 1)
        {
            let mark = Word {
                value: SYMMETRIC.into(),
                quote_style: Some('"'),
                keyword: sqlparser::keywords::Keyword::NoKeyword,
            };
            out.push(TokenWithSpan { token: Token::Word(mark), span: token.span });
            out.push(TokenWithSpan { token: Token::LParen, span: token.span });
            ends.push(end);
            found = true;
            at += 1;
        }
    }
    (out, found)
}

/// The AND behind a lower bound.
fn bound_end(tokens: &[TokenWithSpan], start: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match &token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.checked_sub(1)?,
            Token::Word(_) if is(Some(token), "CASE") => depth += 1,
            Token::Word(_) if is(Some(token), "END") => depth = depth.checked_sub(1)?,
            Token::Word(_) if depth == 0 && is(Some(token), "AND") => return Some(at),
            _ => {}
        }
    }
    None
}
