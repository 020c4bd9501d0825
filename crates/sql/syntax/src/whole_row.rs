//! `t.*` where a value stands: the row, which the library reads as `ROW(t.*)`.
//!
//! ```text
//! t.* IS NULL, a = t.*          ROW(t.*) IS NULL, a = ROW(t.*)
//! SELECT (t.*), 1               SELECT t.*, 1: in parentheses, too, they are columns of the list
//! ```
//! As an argument alone it is left, without parentheses: the library reads it there.

use super::tokens::{ends_a_list, is, is_any, word};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Words behind an operand.
const BEHIND: [&str; 16] = [
    "IS", "IN", "NOT", "BETWEEN", "AND", "OR", "THEN", "WHEN", "ELSE", "END", "LIKE", "ASC", "DESC", "NULLS", "ISNULL",
    "NOTNULL",
];
/// Words before an operand.
const BEFORE: [&str; 10] = ["AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE", "WHERE", "HAVING", "BETWEEN"];
/// Words before an item of a list.
const LIST: [&str; 4] = ["SELECT", "DISTINCT", "ALL", "RETURNING"];

fn is_operator(token: Option<&Token>) -> bool {
    use Token as T;
    matches!(
        token,
        Some(
            T::Eq
                | T::DoubleEq
                | T::Neq
                | T::Lt
                | T::Gt
                | T::LtEq
                | T::GtEq
                | T::Plus
                | T::Minus
                | T::Mul
                | T::Div
                | T::StringConcat
                | T::DoubleColon
                | T::CustomBinaryOperator(_)
        )
    )
}

/// Marks whole rows that are operands.
pub(super) fn values(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let kind = |at: usize| tokens.get(at).map(|t| &t.token);
    let before_of = |at: usize| at.checked_sub(1).and_then(|before| tokens.get(before));
    let is_item_end = |at: usize| {
        matches!(kind(at), None | Some(Token::Comma)) || is(tokens.get(at), "FROM") || ends_a_list(kind(at))
    };
    let is_behind = |at: usize| is_operator(kind(at)) || is_any(tokens.get(at), &BEHIND);
    let is_before = |at: usize| {
        let token = before_of(at);
        let distinct_from = is(token, "FROM") && at >= 2 && is(tokens.get(at - 2), "DISTINCT");
        // `ORDER BY t.*`, `GROUP BY t.*`
        is_operator(token.map(|t| &t.token)) || is_any(token, &BEFORE) || is(token, "BY") || distinct_from
    };
    // What stands at a token: a parenthesis that goes, a row that begins or ends.
    let (mut gone, mut begins, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for star in 2..tokens.len() {
        if kind(star) != Some(&Token::Mul)
            || kind(star - 1) != Some(&Token::Period)
            || !matches!(kind(star - 2), Some(Token::Word(_)))
        {
            continue;
        }
        let mut start = star - 2;
        while start >= 2 && kind(start - 1) == Some(&Token::Period) && matches!(kind(start - 2), Some(Token::Word(_))) {
            start -= 2;
        }
        let in_parens = start > 0 && kind(start - 1) == Some(&Token::LParen) && kind(star + 1) == Some(&Token::RParen);
        if in_parens {
            let (open, close) = (start - 1, star + 1);
            let before = before_of(open);
            let in_list = matches!(before.map(|t| &t.token), Some(Token::Comma)) || is_any(before, &LIST);
            let argument = matches!(before.map(|t| &t.token), Some(Token::LParen))
                && open >= 2
                && matches!(kind(open - 2), Some(Token::Word(_)))
                && matches!(kind(close + 1), Some(Token::Comma | Token::RParen));
            if argument || (in_list && is_item_end(close + 1)) {
                gone.extend([open, close]);
            } else if is_before(open)
                || (is_behind(close + 1)
                    && (in_list || !matches!(before.map(|t| &t.token), Some(Token::Word(_) | Token::RParen))))
            {
                begins.push(start);
                ends.push(star);
            }
        } else if is_behind(star + 1) || (is_before(start) && !is(before_of(start), "ALL")) {
            begins.push(start);
            ends.push(star);
        }
    }
    if gone.is_empty() && begins.is_empty() {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 3 * begins.len());
    for (at, token) in tokens.iter().enumerate() {
        let span = token.span;
        if gone.binary_search(&at).is_ok() {
            continue;
        }
        if begins.binary_search(&at).is_ok() {
            out.push(word("ROW", span));
            out.push(TokenWithSpan { token: Token::LParen, span });
        }
        out.push(token.clone());
        if ends.binary_search(&at).is_ok() {
            out.push(TokenWithSpan { token: Token::RParen, span });
        }
    }
    out
}
