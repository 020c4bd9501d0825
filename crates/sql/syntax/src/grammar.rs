//! The library's grammar of PostgreSQL, with its appetite bounded.
//!
//! Problem: where the library is not sure what it reads it tries one thing, goes back, and tries another. Where such places stand
//! within each other the work doubles with each, and nobody can end it. Idea: a dialect that is PostgreSQL's in all but this:
//! arguments by name have a plain name, so that an argument is read once; and each operand read is a step, of which a text has
//! no more than it can need ([`steps_max`]) and at which the parser looks whether its statement was ended.

use crate::SqlError;
use crate::work::Pace;
use parking_lot::Mutex;
use sqlparser::ast::{BinaryOperator, Expr};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;
use std::any::TypeId;
use std::sync::atomic::{AtomicUsize, Ordering};

static BASE: PostgreSqlDialect = PostgreSqlDialect {};

/// Operands that the library may read in so many tokens: each of them several times over, as no sensible statement needs.
fn steps_max(tokens: usize) -> usize {
    64 * tokens + 65_536
}

/// See the module. One for each text that the library reads.
#[derive(Debug)]
pub(super) struct Grammar {
    pace: Pace,
    /// Steps left.
    steps: AtomicUsize,
    /// Why reading was given up, where the library has no words for it.
    ended: Mutex<Option<SqlError>>,
}

impl Grammar {
    pub(super) fn new(tokens: usize, pace: &Pace) -> Grammar {
        Grammar { pace: pace.clone(), steps: AtomicUsize::new(steps_max(tokens)), ended: Mutex::new(None) }
    }

    /// Why reading was given up: the only error that the library never takes for a wrong guess.
    pub(super) fn ended(&self) -> SqlError {
        let hint = "The statement can be read in too many ways: write it with fewer parentheses.";
        self.ended.lock().take().unwrap_or_else(|| super::depth::too_deep().hint(hint))
    }

    fn step(&self) -> Result<(), ParserError> {
        let left = self.steps.load(Ordering::Relaxed);
        if left == 0 {
            return Err(ParserError::RecursionLimitExceeded);
        }
        self.steps.store(left - 1, Ordering::Relaxed);
        self.pace.step().map_err(|error| {
            *self.ended.lock() = Some(error);
            ParserError::RecursionLimitExceeded
        })
    }
}

/// Operators that do not associate with their own kind.
enum Kind {
    Comparison,
    Like,
}

fn kind_of(expr: &Expr) -> Option<Kind> {
    use BinaryOperator as B;
    match expr {
        Expr::BinaryOp { op: B::Eq | B::NotEq | B::Lt | B::Gt | B::LtEq | B::GtEq, .. } => Some(Kind::Comparison),
        Expr::Like { .. } | Expr::ILike { .. } | Expr::SimilarTo { .. } => Some(Kind::Like),
        _ => None,
    }
}

fn is_comparison(token: &Token) -> bool {
    matches!(token, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq)
}

fn is_like(token: &Token) -> bool {
    let Token::Word(word) = token else { return false };
    matches!(word.keyword, Keyword::LIKE | Keyword::ILIKE | Keyword::SIMILAR)
}

macro_rules! like_postgres {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self $(, $arg: $ty)*) -> $result { BASE.$name($($arg),*) })*
    };
}

impl Dialect for Grammar {
    fn dialect(&self) -> TypeId {
        BASE.dialect()
    }

    fn parse_prefix(&self, _: &mut Parser) -> Option<Result<Expr, ParserError>> {
        self.step().err().map(Err)
    }

    /// Comparisons and LIKE do not follow one another without parentheses.
    fn parse_infix(&self, parser: &mut Parser, expr: &Expr, _: u8) -> Option<Result<Expr, ParserError>> {
        let next = parser.peek_token_ref();
        let refused = match kind_of(expr)? {
            Kind::Comparison => is_comparison(&next.token),
            Kind::Like => is_like(&next.token),
        };
        refused.then(|| parser.expected_ref("end of expression", next))
    }

    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }

    // All that the base says otherwise than a dialect without words of its own.
    like_postgres! {
        identifier_quote_style(identifier: &str) -> Option<char>;
        is_delimited_identifier_start(ch: char) -> bool;
        is_identifier_start(ch: char) -> bool;
        is_identifier_part(ch: char) -> bool;
        is_custom_operator_part(ch: char) -> bool;
        is_reserved_for_identifier(keyword: Keyword) -> bool;
        get_next_precedence(parser: &Parser) -> Option<Result<u8, ParserError>>;
        prec_value(prec: Precedence) -> u8;
        supports_unicode_string_literal() -> bool;
        supports_filter_during_aggregation() -> bool;
        supports_group_by_expr() -> bool;
        allow_extract_custom() -> bool;
        allow_extract_single_quotes() -> bool;
        supports_create_index_with_clause() -> bool;
        supports_explain_with_utility_options() -> bool;
        supports_listen_notify() -> bool;
        supports_factorial_operator() -> bool;
        supports_bitwise_shift_operators() -> bool;
        supports_comment_on() -> bool;
        supports_load_extension() -> bool;
        supports_named_fn_args_with_colon_operator() -> bool;
        supports_empty_projections() -> bool;
        supports_nested_comments() -> bool;
        supports_string_escape_constant() -> bool;
        supports_numeric_literal_underscores() -> bool;
        supports_array_typedef_with_brackets() -> bool;
        supports_geometric_types() -> bool;
        supports_set_names() -> bool;
        supports_alter_column_type_using() -> bool;
        supports_notnull_operator() -> bool;
        supports_interval_options() -> bool;
        supports_insert_table_alias() -> bool;
        supports_create_table_like_parenthesized() -> bool;
        supports_select_wildcard_with_alias() -> bool;
        supports_comma_separated_trim() -> bool;
        supports_xml_expressions() -> bool;
        supports_comment_optimizer_hint() -> bool;
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;
    use crate::parse_at;
    use crate::work::Pace;

    fn steps(text: &str) -> u64 {
        let pace = Pace::default();
        parse_at(text, &pace).unwrap();
        pace.steps()
    }

    #[test]
    fn each_level_is_read_once() {
        for (open, close) in [
            ("abs(", ")"),
            ("(", ")"),
            ("CASE WHEN true THEN ", " END"),
            ("coalesce(", ", 1)"),
            ("(SELECT ", ")"),
            ("((SELECT ", ") + 1)"),
            ("CAST(", " AS int)"),
            ("ARRAY[", "]"),
            ("ROW(", ")"),
            ("EXISTS (SELECT ", ")"),
            ("1 IN (", ")"),
            ("make_interval(years => ", ")"),
        ] {
            let of = |n: usize| steps(&format!("SELECT {}1{}", open.repeat(n), close.repeat(n)));
            let (some, twice) = (of(32) - of(0), of(64) - of(0));
            assert_eq!(twice, 2 * some, "{open}");
        }
    }

    #[test]
    fn a_text_that_can_be_read_in_many_ways_is_given_up() {
        for text in [
            format!("SELECT {})", "interval - ".repeat(60)),
            format!("SELECT {}1 AS {}", "cast(".repeat(60), " AS int)".repeat(60)),
        ] {
            let error = parse(&text).unwrap_err();
            assert!([*b"54001", *b"42601"].contains(&error.state.0), "{error}");
        }
    }
}
