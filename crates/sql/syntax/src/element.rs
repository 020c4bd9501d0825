//! Elements and slices of arrays as targets of SET and INSERT.
//!
//! The library reads a column's name there and no more. So the subscripts go where it reads expressions, under a mark that no text of a
//! statement holds:
//!
//! ```text
//! SET a[1] = x                  SET a = <mark>(1) OR x, until it is a tree: then SET a = <mark>(x, 1)
//! SET a[1:2] = x                SET a = <mark>(<slice>(1, 2)) OR x
//! INSERT INTO t (a[1])          INSERT INTO t (a.<mark [1]>): the text of the subscripts, which is read when they are bound
//! ```
//!
//! OR binds least of all operators, so the mark is the left end of what stands behind the sign.

use super::parse_expression;
use super::tokens::{is, is_any, word};
use crate::SqlError;
use sqlparser::ast::{
    AccessExpr, Assignment, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, Subscript, Value, visit_expressions,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::ops::ControlFlow;

/// The function that marks a value as an element's.
const ELEMENT: &str = "\0element";
/// The function that marks two bounds.
const SLICE: &str = "\0slice";
/// A bound that is left out.
const OPEN: &str = "\0open";

/// What stands in one pair of brackets.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// `[i]`
    At(Expr),
    /// `[low:high]`, either of which may be left out.
    Slice(Option<Expr>, Option<Expr>),
}

fn mark(name: &str) -> Token {
    Token::Word(Word { value: name.into(), quote_style: Some('"'), keyword: Keyword::NoKeyword })
}

/// The end of the brackets that open at a token: the one behind the last of them.
fn brackets_end(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LBracket => depth += 1,
            Token::RBracket => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && !matches!(tokens.get(at + 1).map(|t| &t.token), Some(Token::LBracket)) {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The places in brackets as arguments of a mark.
fn arguments(tokens: &[TokenWithSpan], out: &mut Vec<TokenWithSpan>) {
    let mut depth = 0usize;
    let mut from = 0;
    let mut colon = None;
    for (at, token) in tokens.iter().enumerate() {
        let span = token.span;
        let mut push = |token: Token| out.push(TokenWithSpan { token, span });
        match token.token {
            Token::LBracket if depth == 0 => (depth, from, colon) = (1, at + 1, None),
            Token::LBracket | Token::LParen => depth += 1,
            Token::RBracket if depth == 1 => {
                if from > 1 {
                    push(Token::Comma);
                }
                match colon {
                    None => out.extend(tokens[from..at].iter().cloned()),
                    Some(colon) => {
                        push(mark(SLICE));
                        push(Token::LParen);
                        for (number, bound) in [from..colon, colon + 1..at].into_iter().enumerate() {
                            if number > 0 {
                                out.push(TokenWithSpan { token: Token::Comma, span });
                            }
                            match bound.is_empty() {
                                true => out.push(TokenWithSpan { token: mark(OPEN), span }),
                                false => out.extend(tokens[bound].iter().cloned()),
                            }
                        }
                        out.push(TokenWithSpan { token: Token::RParen, span });
                    }
                }
                depth = 0;
            }
            Token::RBracket | Token::RParen => depth = depth.saturating_sub(1),
            Token::Colon if depth == 1 && colon.is_none() => colon = Some(at),
            _ => {}
        }
    }
}

/// Whether there is one subscript, or one slice, in each pair of brackets.
fn is_read(tokens: &[TokenWithSpan]) -> bool {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LBracket if depth == 0 => {
                depth = 1;
                if matches!(tokens.get(at + 1).map(|t| &t.token), Some(Token::RBracket)) {
                    return false;
                }
            }
            Token::LBracket | Token::LParen => depth += 1,
            Token::RBracket | Token::RParen => depth = depth.saturating_sub(1),
            Token::Comma if depth == 1 => return false,
            _ => {}
        }
    }
    true
}

/// A token as it can be read again: the library does not double the quotes that are within quotes.
fn shown(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::NationalStringLiteral(text)
        | Token::UnicodeStringLiteral(text) => format!("'{}'", text.replace('\'', "''")),
        Token::DollarQuotedString(text) => format!("'{}'", text.value.replace('\'', "''")),
        Token::Word(Word { value, quote_style: Some(_), .. }) => format!("\"{}\"", value.replace('"', "\"\"")),
        other => other.to_string(),
    }
}

/// Where targets stand: what is known of the tokens so far.
#[derive(Default)]
struct Targets {
    /// Open parentheses and brackets.
    depth: usize,
    brackets: usize,
    /// Depths at which an UPDATE waits for its SET, and at which assignments are read.
    updates: Vec<usize>,
    set: Vec<usize>,
    /// Whether INSERT INTO waits for its columns, and the depth at which they are read.
    inserts: bool,
    columns: Option<usize>,
}

impl Targets {
    /// Takes the token at a place; whether it is the SET of an UPDATE.
    fn take(&mut self, tokens: &[TokenWithSpan], at: usize) -> bool {
        const QUERIES: [&str; 3] = ["SELECT", "WITH", "TABLE"];
        let kind = |at: usize| tokens.get(at).map(|t| &t.token);
        let token = tokens.get(at);
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        match kind(at) {
            Some(Token::LParen) => {
                self.depth += 1;
                if std::mem::take(&mut self.inserts) {
                    let values = is(tokens.get(at + 1), "VALUES") && matches!(kind(at + 2), Some(Token::LParen));
                    let nested = matches!(kind(at + 1), Some(Token::LParen));
                    let query = values || nested || is_any(tokens.get(at + 1), &QUERIES);
                    self.columns = (!query).then_some(self.depth);
                }
            }
            Some(Token::RParen) => {
                if self.columns == Some(self.depth) {
                    self.columns = None;
                }
                self.set.retain(|open| *open < self.depth);
                self.updates.retain(|open| *open < self.depth);
                self.depth = self.depth.saturating_sub(1);
            }
            Some(Token::LBracket) => self.brackets += 1,
            Some(Token::RBracket) => self.brackets = self.brackets.saturating_sub(1),
            // A word behind one of these is a name.
            Some(Token::Word(_)) if matches!(before.map(|t| &t.token), Some(Token::Period | Token::Comma)) => {}
            Some(Token::Word(_)) if is(token, "INTO") && is(before, "INSERT") => self.inserts = true,
            Some(Token::Word(_)) if is_any(token, &["SELECT", "VALUES", "WITH", "DEFAULT"]) => {
                self.inserts = false;
                self.updates.retain(|open| *open != self.depth);
            }
            Some(Token::Word(_)) if is(token, "UPDATE") && !is_any(before, &["FOR", "KEY", "SELECT"]) => {
                self.updates.push(self.depth);
            }
            Some(Token::Word(_)) if is(token, "SET") && self.updates.contains(&self.depth) => {
                self.updates.retain(|open| *open != self.depth);
                self.set.push(self.depth);
                return true;
            }
            Some(Token::Word(_)) if is_any(token, &["WHERE", "RETURNING"]) => {
                self.set.retain(|open| *open != self.depth);
            }
            _ => {}
        }
        false
    }
}

/// Marks targets that have subscripts; whether there are any.
pub(super) fn mark_targets(tokens: Vec<TokenWithSpan>) -> (Vec<TokenWithSpan>, bool) {
    let kind = |at: usize| tokens.get(at).map(|t| &t.token);
    let mut targets = Targets::default();
    let mut out = Vec::with_capacity(tokens.len() + 8);
    let mut found = false;
    // Whether the token before is the SET of an UPDATE.
    let mut first = false;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let before = at.checked_sub(1).and_then(kind);
        let behind_comma = matches!(before, Some(Token::Comma));
        let set = targets.set.contains(&targets.depth) && (first || behind_comma);
        let column = targets.columns == Some(targets.depth) && (behind_comma || before == Some(&Token::LParen));
        let subscripted = matches!(token.token, Token::Word(_)) && matches!(kind(at + 1), Some(Token::LBracket));
        if subscripted
            && targets.brackets == 0
            && (set || column)
            && let Some(end) = brackets_end(&tokens, at + 1)
            && is_read(&tokens[at + 1..end])
        {
            let span = token.span;
            if set && matches!(kind(end), Some(Token::Eq)) {
                out.push(token.clone());
                out.push(tokens[end].clone());
                out.push(TokenWithSpan { token: mark(ELEMENT), span });
                out.push(TokenWithSpan { token: Token::LParen, span });
                arguments(&tokens[at + 1..end], &mut out);
                out.push(TokenWithSpan { token: Token::RParen, span });
                out.push(word("OR", span));
                found = true;
                first = false;
                at = end + 1;
                continue;
            }
            if column {
                let text: Vec<String> = tokens[at + 1..end].iter().map(|t| shown(&t.token)).collect();
                out.push(token.clone());
                out.push(TokenWithSpan { token: Token::Period, span });
                out.push(TokenWithSpan { token: mark(&format!("{ELEMENT}{}", text.join(" "))), span });
                at = end;
                continue;
            }
        }
        first = targets.take(&tokens, at);
        out.push(token.clone());
        at += 1;
    }
    (out, found)
}

/// The arguments of a marked call.
fn call<'e>(expr: &'e Expr, name: &str) -> Option<Vec<&'e Expr>> {
    let Expr::Function(function) = expr else { return None };
    if function.name.0.last()?.as_ident()?.value != name {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    let one = |arg: &'e FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    };
    list.args.iter().map(one).collect()
}

/// Puts the value into its mark, which is the left end of a chain of OR.
pub(super) fn mend(assignment: &mut Assignment) {
    fn is_mark(expr: &Expr) -> bool {
        call(expr, ELEMENT).is_some()
    }
    fn take(expr: &mut Expr) -> Option<Expr> {
        let mut at = expr;
        loop {
            match at {
                Expr::BinaryOp { left, op: BinaryOperator::Or, right } if is_mark(left) => {
                    let value = std::mem::replace(right.as_mut(), Expr::value(sqlparser::ast::Value::Null));
                    let mark = std::mem::replace(left.as_mut(), Expr::value(sqlparser::ast::Value::Null));
                    *at = value;
                    return Some(mark);
                }
                Expr::BinaryOp { left, op: BinaryOperator::Or, .. } => at = left.as_mut(),
                _ => return None,
            }
        }
    }
    if let Some(Expr::Function(mut function)) = take(&mut assignment.value) {
        let value = std::mem::replace(&mut assignment.value, Expr::value(sqlparser::ast::Value::Null));
        if let FunctionArguments::List(list) = &mut function.args {
            list.args.insert(0, FunctionArg::Unnamed(FunctionArgExpr::Expr(value)));
        }
        assignment.value = Expr::Function(function);
    }
}

/// The value that is an element's, and where.
pub fn assigned(value: &Expr) -> Option<(&Expr, Vec<Place>)> {
    let args = call(value, ELEMENT)?;
    let (value, places) = args.split_first()?;
    let open = |bound: &Expr| !matches!(bound, Expr::Identifier(ident) if ident.value == OPEN);
    let place = |arg: &&Expr| match call(arg, SLICE).as_deref() {
        Some([low, high]) => {
            let [low, high] = [low, high].map(|bound| Some((*bound).clone()).filter(|bound| open(bound)));
            Place::Slice(low, high)
        }
        _ => Place::At((*arg).clone()),
    };
    Some((value, places.iter().map(place).collect()))
}

/// The same value at the same place, as another expression of it.
pub fn with_value(marked: &Expr, value: Expr) -> Expr {
    let mut marked = marked.clone();
    if let Expr::Function(function) = &mut marked
        && let FunctionArguments::List(list) = &mut function.args
        && let Some(first) = list.args.first_mut()
    {
        *first = FunctionArg::Unnamed(FunctionArgExpr::Expr(value));
    }
    marked
}

/// Numbers of the parameters in the subscripts that a column of INSERT is named with.
pub fn parameters_of(name: &ObjectName) -> Vec<usize> {
    let mut out = Vec::new();
    for place in of_column(name).ok().flatten().unwrap_or_default() {
        let bounds = match place {
            Place::At(index) => [Some(index), None],
            Place::Slice(low, high) => [low, high],
        };
        let _ = visit_expressions(&bounds.into_iter().flatten().collect::<Vec<Expr>>(), |expr| {
            if let Expr::Value(value) = expr
                && let Value::Placeholder(name) = &value.value
            {
                out.extend(name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok()));
            }
            ControlFlow::<()>::Continue(())
        });
    }
    out
}

/// The places that a column of INSERT is named with.
///
/// # Errors
/// Those of their text.
pub fn of_column(name: &ObjectName) -> Result<Option<Vec<Place>>, SqlError> {
    let text = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(Ident { value, .. }) => value.strip_prefix(ELEMENT).map(str::to_owned),
        ObjectNamePart::Function(_) => None,
    };
    let Some(text) = name.0.last().and_then(text) else { return Ok(None) };
    // Behind the name of a column they are read as what they are.
    let Expr::CompoundFieldAccess { access_chain, .. } = parse_expression(&format!("a{text}"))? else {
        return Ok(None);
    };
    let place = |access: AccessExpr| match access {
        AccessExpr::Subscript(Subscript::Index { index }) => Some(Place::At(index)),
        AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) => {
            Some(Place::Slice(lower_bound, upper_bound))
        }
        _ => None,
    };
    Ok(access_chain.into_iter().map(place).collect())
}
