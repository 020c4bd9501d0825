//! `x IN ((SELECT 1), 8)`: the library takes what follows IN for a query, and stumbles at the comma.
//!
//! So a first element marks such a list, until the tree is there.

use super::tokens::{is, is_any};
use sqlparser::ast::Expr;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// The name that marks it: no text of a statement holds it.
const LISTED: &str = "\0listed";

/// What a query begins with.
const QUERIES: [&str; 4] = ["SELECT", "VALUES", "WITH", "TABLE"];

fn token(tokens: &[TokenWithSpan], at: usize) -> Option<&Token> {
    tokens.get(at).map(|token| &token.token)
}

/// Marks the lists that begin with a query; whether there are any.
pub(super) fn mark(tokens: Vec<TokenWithSpan>) -> (Vec<TokenWithSpan>, bool) {
    let opens = |at: usize| matches!(token(&tokens, at), Some(Token::LParen));
    let begins = |at: usize| is(tokens.get(at), "IN") && opens(at + 1) && opens(at + 2);
    if !(0..tokens.len()).any(begins) {
        return (tokens, false);
    }
    // Parentheses that are open: the first element of which list, if it may be a query.
    let (mut open, mut lists) = (Vec::new(), Vec::new());
    for at in 0..tokens.len() {
        match token(&tokens, at) {
            Some(Token::LParen) => {
                let first = (at >= 2 && begins(at - 2)).then_some(at - 1);
                let inner = (at..tokens.len()).find(|at| !opens(*at));
                let is_query = inner.is_some_and(|inner| is_any(tokens.get(inner), &QUERIES));
                open.push(first.filter(|_| is_query));
            }
            Some(Token::RParen) => {
                // What goes on by a word is a query still: UNION, ORDER BY.
                let goes_on = matches!(token(&tokens, at + 1), Some(Token::RParen | Token::Word(_)) | None);
                lists.extend(open.pop().flatten().filter(|_| !goes_on));
            }
            _ => {}
        }
    }
    let mut out = Vec::with_capacity(tokens.len() + 2 * lists.len());
    for (at, token) in tokens.into_iter().enumerate() {
        let span = token.span;
        out.push(token);
        if lists.contains(&at) {
            let mark = Word { value: LISTED.into(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
            out.extend([Token::Word(mark), Token::Comma].map(|token| TokenWithSpan { token, span }));
        }
    }
    (out, !lists.is_empty())
}

/// Takes a mark out of a list.
pub(super) fn mend(expr: &mut Expr) {
    if let Expr::InList { list, .. } = expr
        && matches!(list.first(), Some(Expr::Identifier(ident)) if ident.value == LISTED)
    {
        list.remove(0);
    }
}
