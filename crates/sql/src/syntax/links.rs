//! How deep the tree of a text may become by its chains.
//!
//! `1 + 1 + 1 ...` nests by no parenthesis, so the parser's limit on nesting never sees it; yet its tree leans to the left, one
//! level for each operator, and everything that walks the tree (binding, evaluating, even dropping it) recurses as deep. A stack
//! that ends takes the whole process along. So operators are counted in the tokens, before there is a tree.
//!
//! A comma ends a chain on its own level: the rows of a long VALUES, with their signs and casts, do not add up. What is inside
//! of parentheses counts for what is around them. Set operations and joins chain across commas and count apart.

use crate::{SqlError, SqlState};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Operators in one chain. Threads of sessions have a stack that holds such a tree in every build.
pub(super) const LINKS_MAX: usize = 8_000;
/// Set operations and joins in one statement.
pub(super) const OPERANDS_MAX: usize = 1_000;

/// Whether a token joins an operand to what stands before it.
fn links(token: &Token) -> bool {
    match token {
        Token::Word(w) if w.quote_style.is_none() => {
            let words =
                ["AND", "OR", "NOT", "IS", "LIKE", "ILIKE", "BETWEEN", "IN", "COLLATE", "WHEN", "AT", "SIMILAR"];
            words.iter().any(|word| w.value.eq_ignore_ascii_case(word))
        }
        Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => false,
        Token::Comma | Token::LParen | Token::RParen | Token::SemiColon | Token::Period => false,
        // Every other token is an operator of some kind, or as rare as one.
        _ => true,
    }
}

fn joins_operands(token: &Token) -> bool {
    let Token::Word(w) = token else { return false };
    let words = ["UNION", "INTERSECT", "EXCEPT", "JOIN"];
    w.quote_style.is_none() && words.iter().any(|word| w.value.eq_ignore_ascii_case(word))
}

/// Refuses a statement whose chains are too long.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    // The present chain on each open level, and the longest that ended on it.
    let mut levels = vec![(0usize, 0usize)];
    let mut operands = 0;
    for token in tokens.iter().map(|t| &t.token) {
        match token {
            Token::SemiColon => (levels, operands) = (vec![(0, 0)], 0),
            Token::LParen => levels.push((0, 0)),
            Token::RParen if levels.len() > 1 => {
                let (chain, longest) = levels.pop().unwrap_or_default();
                if let Some(around) = levels.last_mut() {
                    around.0 += chain.max(longest);
                }
            }
            Token::Comma => {
                if let Some((chain, longest)) = levels.last_mut() {
                    *longest = (*longest).max(*chain);
                    *chain = 0;
                }
            }
            token if links(token) => levels.last_mut().into_iter().for_each(|level| level.0 += 1),
            token => operands += usize::from(joins_operands(token)),
        }
        if levels.last().is_some_and(|level| level.0 > LINKS_MAX) || operands > OPERANDS_MAX {
            return Err(SqlError::new(SqlState::TOO_COMPLEX, "stack depth limit exceeded").hint(format!(
                "One expression chains at most {LINKS_MAX} operators, one statement {OPERANDS_MAX} set operations and joins. \
                 Write a list with IN or VALUES instead."
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::syntax::lexer::Lexed;

    fn refused(text: &str) -> bool {
        Lexed::new(text).is_err()
    }

    #[test]
    fn chains_are_bounded_and_lists_are_not() {
        let n = 9_000;
        assert!(refused(&format!("SELECT 1{}", " + 1".repeat(n))));
        assert!(refused(&format!("SELECT 1{}", "::int8".repeat(n))));
        assert!(refused(&format!("SELECT 1 WHERE true{}", " AND f(1, 2)".repeat(n))));
        assert!(refused(&format!("SELECT 1, 2{}", " UNION ALL SELECT 1, 2".repeat(n))));
        let half = " + 1".repeat(n / 2);
        assert!(refused(&format!("SELECT (((1{half})){half}){half}")));
        assert!(!refused(&format!("INSERT INTO t VALUES (-1, 'x'::date){}", ", (-1, 'x'::date)".repeat(n))));
        assert!(!refused(&format!("SELECT * FROM t WHERE id IN (0{})", ", -1".repeat(n))));
        assert!(!refused(&"UPDATE t SET v = v + 1;".repeat(n)));
    }
}
