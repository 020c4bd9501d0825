//! `GROUP BY DISTINCT`, which the library does not read: a first key marks it, until the sets of groups are made; and GROUPING SETS within GROUPING SETS.

use super::tokens::{ends_a_list, is, is_any};
use sqlparser::ast::Expr;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The name that marks a grouping whose sets are told apart: no text of a statement holds it.
pub(super) const DISTINCT: &str = "\0distinct";

/// `GROUP BY DISTINCT` and `GROUP BY ALL`.
pub(super) fn mark(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let quantified = |at: usize| {
        at >= 2
            && is_any(tokens.get(at), &["DISTINCT", "ALL"])
            && is(tokens.get(at - 1), "BY")
            && is(tokens.get(at - 2), "GROUP")
            && !ends_a_list(tokens.get(at + 1).map(|t| &t.token))
    };
    if !(0..tokens.len()).any(quantified) {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 1);
    for (at, token) in tokens.iter().enumerate() {
        if !quantified(at) {
            out.push(token.clone());
        } else if is(Some(token), "DISTINCT") {
            let mark = Word { value: DISTINCT.into(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
            out.push(TokenWithSpan { token: Token::Word(mark), span: token.span });
            out.push(TokenWithSpan { token: Token::Comma, span: token.span });
        }
    }
    out
}

/// GROUPING SETS within GROUPING SETS are sets of the outer ones: what is around them is left out.
pub(super) fn flatten(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let opens_sets = |at: usize| {
        is(tokens.get(at), "GROUPING")
            && is(tokens.get(at + 1), "SETS")
            && matches!(tokens.get(at + 2).map(|t| &t.token), Some(Token::LParen))
    };
    let mut sets = (0..tokens.len()).filter(|at| opens_sets(*at));
    if sets.next().and(sets.next()).is_none() {
        return tokens;
    }
    /// An open parenthesis.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Open {
        Sets,
        /// It is left out.
        Inner,
        Other,
    }
    let (mut out, mut open, mut at) = (Vec::with_capacity(tokens.len()), Vec::new(), 0);
    while let Some(token) = tokens.get(at) {
        // An element begins behind the parenthesis, or behind a comma.
        let begins = matches!(tokens.get(at.wrapping_sub(1)).map(|t| &t.token), Some(Token::LParen | Token::Comma));
        let within = matches!(open.last(), Some(Open::Sets | Open::Inner));
        match &token.token {
            _ if opens_sets(at) => {
                let inner = within && begins;
                open.push(if inner { Open::Inner } else { Open::Sets });
                if !inner {
                    out.extend_from_slice(&tokens[at..at + 3]);
                }
                at += 3;
                continue;
            }
            Token::LParen => open.push(Open::Other),
            Token::RParen if open.pop() == Some(Open::Inner) => {
                at += 1;
                continue;
            }
            _ => {}
        }
        out.push(token.clone());
        at += 1;
    }
    out
}

/// Whether an element of GROUP BY is the mark of DISTINCT.
pub fn is_distinct(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident) if ident.value == DISTINCT)
}
