//! `GROUP BY DISTINCT`, which the library does not read: a first key marks it, until the sets of groups are made.

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

/// Whether an element of GROUP BY is the mark of DISTINCT.
pub fn is_distinct(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident) if ident.value == DISTINCT)
}
