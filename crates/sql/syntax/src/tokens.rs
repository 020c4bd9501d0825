//! Tokens: whether one is a word, or ends a list; words to be put among them.

use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

pub(super) fn is(token: Option<&TokenWithSpan>, word: &str) -> bool {
    matches!(token.map(|t| &t.token), Some(Token::Word(w)) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}

pub(super) fn is_any(token: Option<&TokenWithSpan>, words: &[&str]) -> bool {
    words.iter().any(|word| is(token, word))
}

pub(super) fn word(text: &str, span: Span) -> TokenWithSpan {
    TokenWithSpan { token: Token::make_keyword(text), span }
}

/// Whether no more of a select list can follow, with FROM left out.
pub(super) fn ends_a_list(token: Option<&Token>) -> bool {
    const CLAUSES: [&str; 15] = [
        "WHERE",
        "GROUP",
        "HAVING",
        "WINDOW",
        "ORDER",
        "LIMIT",
        "OFFSET",
        "FETCH",
        "FOR",
        "UNION",
        "INTERSECT",
        "EXCEPT",
        "INTO",
        "ON",
        "RETURNING",
    ];
    match token {
        None | Some(Token::RParen | Token::SemiColon | Token::EOF) => true,
        Some(Token::Word(word)) => {
            word.quote_style.is_none() && CLAUSES.iter().any(|clause| word.value.eq_ignore_ascii_case(clause))
        }
        _ => false,
    }
}
