//! Special forms of SQL that the library does not read, told in the words that it does.
//!
//! | as written | as read |
//! | --- | --- |
//! | `trim(both x from y, z)` | `btrim(y, z, x)` |
//! | `substring(x similar y escape z)` | `substring(x, y, z)` |
//! | `substring(x for y from z)` | `substring(x from z for y)` |
//! | `type array[3]` | `type[3]` |
//! | `interval(3) '..'` | `interval '..' second(3)` |
//! | `a operator(s.=) any (b)` | `a = any (b)` |
//! | `operator(s.-) a` | `- a` |
//! | `f(a, variadic b)` | `f(a, <mark>(b))`: see [`VARIADIC`] |
//! | `(t).*` | `t.*` |
//! | `(f(x)).*` | `(f(x)).<mark>`: see [`spread`] |
//! | `from only t`, `from only (t)`, `table only t` | `from t`, `table t`: no table has others below it |
//!
//! All is done on tokens, before any of them is read, so that it holds wherever an expression may stand. Inner forms are told before outer
//! ones (from the right to the left), and nothing descends.

use crate::identifier::keyword::{self, Category};
use crate::{SqlError, SqlState};
use sqlparser::ast::{AccessExpr, Expr};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Words that may stand before an array but never end a type, though they name no type and are not reserved.
const BEFORE_ARRAY: &[&str] = &[
    "by",
    "escape",
    "return",
    "between",
    "values",
    "row",
    "coalesce",
    "exists",
    "greatest",
    "grouping",
    "inout",
    "least",
    "none",
    "nullif",
    "out",
    "overlay",
    "position",
    "setof",
    "substring",
    "treat",
    "trim",
    "extract",
    "normalize",
];

/// Types that may be followed by something in parentheses.
const WITH_MODIFIER: &[&str] = &[
    "varchar",
    "varying",
    "char",
    "character",
    "bpchar",
    "numeric",
    "decimal",
    "dec",
    "bit",
    "varbit",
    "float",
    "timestamp",
    "timestamptz",
    "time",
    "timetz",
    "interval",
    "second",
];

fn word(token: &TokenWithSpan) -> Option<&str> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(&word.value),
        _ => None,
    }
}

fn is_word(token: &TokenWithSpan, wanted: &str) -> bool {
    word(token).is_some_and(|word| word.eq_ignore_ascii_case(wanted))
}

/// The function that marks an array whose elements are the arguments: no text of a statement holds its name.
pub const VARIADIC: &str = "\0variadic";

/// The function that makes a row with names of its fields, an array before them: no text of a statement holds its name.
pub const NAMED_ROW: &str = "\0named row";

/// The field that marks all fields of a value: no text of a statement holds its name.
pub(super) const STAR: &str = "\0star";

/// The value whose fields a select list has one by one: `(f(x)).*`.
pub fn spread(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::CompoundFieldAccess { root, access_chain } => match access_chain.as_slice() {
            [AccessExpr::Dot(Expr::Identifier(field))] if field.value == STAR => Some(root),
            _ => None,
        },
        _ => None,
    }
}

/// 0A000: where there is no list that they could stand in.
pub fn no_fields_here() -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "row expansion via \"*\" is not supported here")
}

/// Marks a token that is left out at the end; the library's own end is no token of a text.
const REMOVED: Token = Token::EOF;

/// Rewrites the forms in a text's tokens.
pub(super) fn tell(tokens: &mut Vec<TokenWithSpan>) {
    if tokens.iter().any(|t| is_word(t, "array")) {
        *tokens = arrays(std::mem::take(tokens));
    }
    if tokens.windows(2).any(|pair| is_word(&pair[0], "interval") && pair[1].token == Token::LParen) {
        *tokens = intervals(std::mem::take(tokens));
    }
    if tokens.iter().any(|t| is_word(t, "only")) {
        only(tokens);
    }
    if tokens.iter().any(|t| is_word(t, "variadic")) {
        variadic(tokens);
    }
    if tokens.windows(3).any(is_star_of_row) {
        stars_of_rows(tokens);
    }
    if tokens.windows(2).any(|pair| is_word(&pair[0], "operator") && pair[1].token == Token::LParen) {
        operators(tokens);
    }
    if !tokens.iter().any(|t| is_word(t, "trim") || is_word(t, "substring")) {
        return;
    }
    let closing = closing(tokens);
    for at in (0..tokens.len().saturating_sub(1)).rev() {
        let Some(close) = closing[at + 1] else { continue };
        if is_word(&tokens[at], "trim") {
            trim(&mut tokens[at..=close]);
        } else if is_word(&tokens[at], "substring") {
            substring(&mut tokens[at..=close]);
        }
    }
    tokens.retain(|t| t.token != REMOVED);
}

/// `f(a, variadic b)`
fn variadic(tokens: &mut Vec<TokenWithSpan>) {
    // Depths at which a mark's parenthesis closes, with that of the call around it.
    let (mut depth, mut ends) = (0usize, Vec::new());
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 4);
    for token in std::mem::take(tokens) {
        let span = token.span;
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                if ends.pop_if(|end| *end == depth).is_some() {
                    out.push(TokenWithSpan { token: Token::RParen, span });
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        let argument = matches!(out.last().map(|t| &t.token), Some(Token::LParen | Token::Comma));
        if depth > 0 && argument && is_word(&token, "variadic") {
            ends.push(depth);
            out.push(TokenWithSpan { token: Token::make_word(VARIADIC, Some('"')), span });
            out.push(TokenWithSpan { token: Token::LParen, span });
        } else {
            out.push(token);
        }
    }
    *tokens = out;
}

fn is_star_of_row(three: &[TokenWithSpan]) -> bool {
    three[0].token == Token::RParen && three[1].token == Token::Period && three[2].token == Token::Mul
}

/// `(t).*`, where `t` is a name, and `(f(x)).*`.
fn stars_of_rows(tokens: &mut Vec<TokenWithSpan>) {
    let mut open = Vec::new();
    for at in 0..tokens.len().saturating_sub(2) {
        let start = match tokens[at].token {
            Token::LParen => {
                open.push(at);
                continue;
            }
            Token::RParen => open.pop(),
            _ => continue,
        };
        let Some(start) = start.filter(|_| is_star_of_row(&tokens[at..at + 3])) else { continue };
        // A name before the parenthesis makes it a call.
        let call = start.checked_sub(1).is_some_and(|before| match &tokens[before].token {
            Token::Word(word) => {
                word.quote_style.is_some()
                    || keyword::find(&word.value.to_ascii_lowercase())
                        .is_none_or(|found| found.category != Category::Reserved)
            }
            _ => false,
        });
        if call {
            continue;
        }
        if at == start + 2 && matches!(tokens[at - 1].token, Token::Word(_)) {
            tokens[at].token = REMOVED;
            tokens[start].token = REMOVED;
        } else {
            let (value, keyword) = (STAR.into(), sqlparser::keywords::Keyword::NoKeyword);
            tokens[at + 2].token = Token::Word(Word { value, quote_style: Some('"'), keyword });
        }
    }
    tokens.retain(|t| t.token != REMOVED);
}

/// `from only t`, `table only t`
fn only(tokens: &mut Vec<TokenWithSpan>) {
    for at in 1..tokens.len().saturating_sub(1) {
        let before = &tokens[at - 1];
        let names_table = ["from", "join", "update", "using", "table"].iter().any(|word| is_word(before, word));
        if !is_word(&tokens[at], "only") || !(names_table || before.token == Token::Comma) {
            continue;
        }
        if tokens[at + 1].token == Token::LParen {
            // A name stands between them, and no parenthesis: so nothing is looked through twice.
            let rest = &tokens[at + 2..];
            let end = rest.iter().position(|t| matches!(t.token, Token::RParen | Token::LParen));
            let close = end.map(|end| at + 2 + end).filter(|close| tokens[*close].token == Token::RParen);
            if let Some(close) = close {
                tokens[at + 1].token = REMOVED;
                tokens[close].token = REMOVED;
            }
        }
        tokens[at].token = REMOVED;
    }
    tokens.retain(|t| t.token != REMOVED);
}

/// `operator(schema.=)` where the library knows an operator by its sign alone: before an operand, and before ANY and ALL.
fn operators(tokens: &mut Vec<TokenWithSpan>) {
    for at in 0..tokens.len().saturating_sub(1) {
        if !is_word(&tokens[at], "operator") || tokens[at + 1].token != Token::LParen {
            continue;
        }
        let rest = &tokens[at + 2..];
        let Some(length) = rest.iter().position(|t| matches!(t.token, Token::RParen | Token::LParen)) else { continue };
        let close = at + 2 + length;
        let after = tokens.get(close + 1);
        let quantified = after.is_some_and(|t| ["any", "all", "some"].iter().any(|word| is_word(t, word)));
        if !quantified && at.checked_sub(1).is_some_and(|before| ends_operand(&tokens[before])) {
            continue;
        }
        let sign = rest[..length].iter().rposition(|t| t.token == Token::Period).map_or(0, |period| period + 1);
        tokens[at..at + 2 + sign].iter_mut().for_each(|t| t.token = REMOVED);
        tokens[close].token = REMOVED;
    }
    tokens.retain(|t| t.token != REMOVED);
}

/// Whether an operand may end with a token: an operator after it stands between two.
fn ends_operand(token: &TokenWithSpan) -> bool {
    match &token.token {
        Token::Word(name) if name.quote_style.is_none() => {
            let value = ["null", "true", "false", "end", "default"].iter().any(|word| is_word(token, word));
            value
                || keyword::find(&name.value.to_ascii_lowercase())
                    .is_none_or(|word| word.category != Category::Reserved)
        }
        Token::Word(_) | Token::Number(..) | Token::RParen | Token::RBracket | Token::Placeholder(_) => true,
        Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::DollarQuotedString(_) => true,
        Token::NationalStringLiteral(_) | Token::HexStringLiteral(_) | Token::UnicodeStringLiteral(_) => true,
        _ => false,
    }
}

/// For each opening parenthesis the place of the one that closes it.
fn closing(tokens: &[TokenWithSpan]) -> Vec<Option<usize>> {
    let mut closing = vec![None; tokens.len()];
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen => open.push(at),
            Token::RParen => {
                if let Some(start) = open.pop() {
                    closing[start] = Some(at);
                }
            }
            Token::SemiColon => open.clear(),
            _ => {}
        }
    }
    closing
}

/// Where a word stands between the parentheses of a call and in no others.
fn place(call: &[TokenWithSpan], wanted: impl Fn(usize) -> bool) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in call.iter().enumerate().take(call.len() - 1).skip(2) {
        match token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            _ if depth == 0 && wanted(at) => return Some(at),
            _ => {}
        }
    }
    None
}

/// `trim ( [side] [characters] [from] list )`
fn trim(call: &mut [TokenWithSpan]) {
    let side = word(&call[2]).map(str::to_ascii_lowercase);
    let name = match side.as_deref() {
        Some("leading") => "ltrim",
        Some("trailing") => "rtrim",
        _ => "btrim",
    };
    let has_side = matches!(side.as_deref(), Some("leading" | "trailing" | "both"));
    call[0].token = Token::make_word(name, None);
    let from = place(call, |at| is_word(&call[at], "from") && !is_word(&call[at - 1], "distinct"));
    let start = if has_side { 3 } else { 2 };
    if has_side {
        call[2].token = REMOVED;
    }
    let Some(from) = from else { return };
    if from <= start {
        call[from].token = REMOVED;
        return;
    }
    // characters FROM list: the list first, then a comma and the characters.
    call[from].token = Token::Comma;
    let (characters, end) = (from - start, call.len() - 1);
    call[start..end].rotate_left(characters + 1);
    let comma = end - 1 - characters;
    call[comma..end].rotate_right(1);
}

/// `substring ( x similar y escape z )`, `substring ( x for y from z )`
fn substring(call: &mut [TokenWithSpan]) {
    let similar = place(call, |at| is_word(&call[at], "similar") && !is_word(&call[at + 1], "to"));
    let escape = place(call, |at| is_word(&call[at], "escape"));
    if let (Some(similar), Some(escape)) = (similar, escape) {
        call[similar].token = Token::Comma;
        call[escape].token = Token::Comma;
        return;
    }
    let length = place(call, |at| is_word(&call[at], "for"));
    let from = place(call, |at| is_word(&call[at], "from") && !is_word(&call[at - 1], "distinct"));
    if let (Some(length), Some(from)) = (length, from)
        && length < from
    {
        let end = call.len() - 1;
        call[length..end].rotate_left(from - length);
    }
}

/// `type array` and `type array[3]`
fn arrays(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 4);
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        let next = rest.peek().map(|t| &t.token);
        let is_suffix = is_word(&token, "array") && next != Some(&Token::LParen) && ends_type(&out);
        if !is_suffix {
            out.push(token);
        } else if next != Some(&Token::LBracket) {
            out.extend([Token::LBracket, Token::RBracket].map(|t| TokenWithSpan { token: t, span: token.span }));
        }
    }
    out
}

/// `interval(3) '1.2345'`
fn intervals(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_text = |t: &Token| matches!(t, Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_));
    let mut out = Vec::with_capacity(tokens.len() + 4);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        out.push(token.clone());
        at += 1;
        let precise = is_word(token, "interval")
            && tokens.get(at..at + 4).is_some_and(|next| {
                next[0].token == Token::LParen
                    && matches!(next[1].token, Token::Number(..))
                    && next[2].token == Token::RParen
                    && is_text(&next[3].token)
            });
        if precise {
            let span = tokens[at + 3].span;
            out.push(tokens[at + 3].clone());
            out.push(TokenWithSpan { token: Token::make_keyword("SECOND"), span });
            out.extend_from_slice(&tokens[at..at + 3]);
            at += 4;
        }
    }
    out
}

/// Whether tokens may end with a type.
fn ends_type(before: &[TokenWithSpan]) -> bool {
    let Some(last) = before.last() else { return false };
    if last.token == Token::RParen {
        // A modifier holds numbers only.
        let inside = before.iter().rev().skip(1).take_while(|t| t.token != Token::LParen);
        let mut numbers = 0;
        for token in inside {
            if !matches!(token.token, Token::Number(..) | Token::Comma | Token::Minus) {
                return false;
            }
            numbers += 1;
        }
        let name = before.len().checked_sub(numbers + 3).and_then(|at| before.get(at)).and_then(word);
        return name.is_some_and(|name| WITH_MODIFIER.iter().any(|known| known.eq_ignore_ascii_case(name)));
    }
    match &last.token {
        Token::Word(quoted) if quoted.quote_style.is_some() => true,
        Token::Word(bare) => {
            let lower = bare.value.to_ascii_lowercase();
            let free = keyword::find(&lower)
                .is_none_or(|known| matches!(known.category, Category::Unreserved | Category::ColumnName));
            // `double precision`, `character varying` end with words of their own kind.
            (free || lower == "precision") && !BEFORE_ARRAY.contains(&lower.as_str())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::lexer::Lexed;

    fn told(text: &str) -> String {
        let lexed = Lexed::new(text).expect("the text has tokens");
        lexed.tokens.iter().map(|t| t.token.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_goes_with_its_parentheses() {
        assert_eq!(told("from only (a.b), only (c), only d"), "from a . b , c , d");
        assert_eq!(told("from only (a.b), only (f(x))"), "from a . b , ( f ( x ) )");
    }

    #[test]
    fn trim_is_a_call() {
        assert_eq!(told("trim(both from x)"), "btrim ( x )");
        assert_eq!(told("trim(from x)"), "btrim ( x )");
        assert_eq!(told("trim(leading a || b from x)"), "ltrim ( x , a || b )");
        assert_eq!(told("trim(trailing from x, y)"), "rtrim ( x , y )");
        assert_eq!(told("trim(trim(both 'a' from x) from trim(y))"), "btrim ( btrim ( y ) , btrim ( x , 'a' ) )");
        assert_eq!(told("trim(extract(year from d)::text)"), "btrim ( extract ( year from d ) :: text )");
        assert_eq!(told("trim"), "trim");
        assert_eq!(told("trim()"), "btrim ( )");
        assert_eq!(told("trim(both)"), "btrim ( )");
    }

    #[test]
    fn arrays_are_suffixes_behind_types_only() {
        assert_eq!(told("a text array, b int array[3]"), "a text [ ] , b int [ 3 ]");
        assert_eq!(told("x::varchar(3) array"), "x :: varchar ( 3 ) [ ]");
        assert_eq!(
            told("select array[1], f(array[2]) order by array[3]"),
            "select array [ 1 ] , f ( array [ 2 ] ) order by array [ 3 ]"
        );
        assert_eq!(
            told("x = any (array[1]) and array[1] @> array(select 1)"),
            "x = any ( array [ 1 ] ) and array [ 1 ] @> array ( select 1 )"
        );
        assert_eq!(told("in (1) array[2]"), "in ( 1 ) array [ 2 ]");
    }
}
