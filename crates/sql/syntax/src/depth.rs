//! How deep the tree of a text may become, measured in its tokens before there is a tree.
//!
//! Problem: whatever walks a syntax tree recurses as deep as the tree is: the library's parser, its visitors, our binder, printing,
//! copying, even dropping. A stack that ends takes the whole process along. Idea: depth is bounded in this one place, where nothing
//! recurses yet, and whoever handles statements runs on a stack that holds the deepest tree that passes (`stack`).
//!
//! 1. Each level of a tree comes from a token that nests: a bracket, an operator, or a word that works like one. A comma begins
//!    another branch; so do AND and OR, whose own levels are counted apart; so do set operations and joins, which chain across
//!    commas and are counted for the whole statement.
//! 2. `CASE .. END` is a bracket, and its WHEN, THEN and ELSE are its commas.
//! 3. A view stands for its query in parentheses: depths of the texts add up while views are unfolded ([`Depth::levels`]).
//!
//! `1 + 1 + 1 ..` nests by no bracket: its tree leans to the left, one level for each operator.

use crate::{SqlError, SqlState};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Deepest nesting of brackets: parentheses, square brackets, CASE.
pub(crate) const NESTING_MAX: usize = 500;
/// Operators in one chain that are neither AND nor OR.
pub const LINKS_MAX: usize = 10_000;
/// Operators in one chain, AND and OR included.
pub(crate) const LOGIC_MAX: usize = 40_000;
/// Set operations and joins in one statement.
pub const OPERANDS_MAX: usize = 5_000;
/// Levels of a statement's text and of the views that it reads, taken together.
pub const LEVELS_MAX: usize = LOGIC_MAX + OPERANDS_MAX + NESTING_MAX;
/// Places within each other that the library reads twice, first as a query and then as something else: each doubles its work.
const READ_TWICE_MAX: usize = 10;
/// INTERVAL repeated: what follows it is its operand, which the library tries to read in several ways.
const INTERVALS_MAX: usize = 2;
/// Dots in one operand, `a.b.c`: the library reads the rest of such a name again for each.
const DOTS_MAX: usize = 64;

/// How deep a text nests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    brackets: usize,
    /// Without AND and OR.
    links: usize,
    /// With them.
    chain: usize,
    operands: usize,
    read_twice: usize,
}

impl Depth {
    /// An upper bound of the levels of its tree.
    pub fn levels(&self) -> usize {
        self.brackets + self.chain + self.operands
    }

    fn max(self, other: Depth) -> Depth {
        Depth {
            brackets: self.brackets.max(other.brackets),
            links: self.links.max(other.links),
            chain: self.chain.max(other.chain),
            operands: self.operands.max(other.operands),
            read_twice: self.read_twice.max(other.read_twice),
        }
    }

    fn check(self) -> Result<Depth, SqlError> {
        let exceeded = |remedy: String| Err(too_deep().hint(remedy));
        if self.brackets > NESTING_MAX {
            return exceeded(format!("A statement nests at most {NESTING_MAX} levels of brackets and CASE."));
        }
        if self.links > LINKS_MAX || self.chain > LOGIC_MAX {
            return exceeded(format!(
                "One expression chains at most {LINKS_MAX} operators, with AND and OR {LOGIC_MAX}. \
                 Write a list with IN or VALUES instead."
            ));
        }
        if self.operands > OPERANDS_MAX {
            return exceeded(format!("One statement has at most {OPERANDS_MAX} set operations and joins."));
        }
        if self.read_twice > READ_TWICE_MAX {
            return exceeded(format!("At most {READ_TWICE_MAX} of ((SELECT ..) ..) may stand within each other here."));
        }
        Ok(self)
    }
}

/// What PostgreSQL says.
pub fn too_deep() -> SqlError {
    SqlError::new(SqlState::TOO_COMPLEX, "stack depth limit exceeded")
}

/// What a token does to the tree.
enum Role {
    /// Nests what is left of it, or what is right of it, one level deeper.
    Link,
    /// AND, OR, and what takes in the ANDs and ORs after it.
    Logic,
    /// A set operation or a join.
    Operand,
    /// Begins another branch of the same bracket.
    Branch,
    Opens,
    Closes,
    Case,
    End,
    Nothing,
}

fn role(token: &Token) -> Role {
    match token {
        Token::Word(word) if word.quote_style.is_none() => match word.keyword {
            Keyword::AND | Keyword::OR | Keyword::DISTINCT | Keyword::XOR => Role::Logic,
            Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::JOIN => Role::Operand,
            Keyword::CASE => Role::Case,
            Keyword::END => Role::End,
            Keyword::WHEN | Keyword::THEN | Keyword::ELSE => Role::Branch,
            Keyword::NOT
            | Keyword::IS
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::RLIKE
            | Keyword::REGEXP
            | Keyword::SIMILAR
            | Keyword::MATCH
            | Keyword::BETWEEN
            | Keyword::IN
            | Keyword::COLLATE
            | Keyword::AT
            | Keyword::OVERLAPS
            | Keyword::OPERATOR
            | Keyword::DIV
            | Keyword::MEMBER
            | Keyword::NOTNULL
            | Keyword::INTERVAL => Role::Link,
            _ if word.value.eq_ignore_ascii_case("isnull") => Role::Link,
            _ => Role::Nothing,
        },
        Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) | Token::Period => {
            Role::Nothing
        }
        Token::Comma => Role::Branch,
        Token::LParen | Token::LBracket | Token::LBrace => Role::Opens,
        Token::RParen | Token::RBracket | Token::RBrace => Role::Closes,
        // Every other token is an operator of some kind, or as rare as one.
        _ => Role::Link,
    }
}

fn keyword(token: Option<&TokenWithSpan>) -> Keyword {
    match token.map(|t| &t.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// Whether a query goes on, or ends, where a parenthesis has closed.
fn goes_on_as_query(token: Option<&TokenWithSpan>) -> bool {
    matches!(token.map(|t| &t.token), None | Some(Token::RParen | Token::SemiColon))
        || matches!(
            keyword(token),
            Keyword::UNION
                | Keyword::INTERSECT
                | Keyword::EXCEPT
                | Keyword::ORDER
                | Keyword::LIMIT
                | Keyword::OFFSET
                | Keyword::FETCH
                | Keyword::FOR
        )
}

/// An open bracket.
#[derive(Default)]
struct Level {
    opened_at: usize,
    case: bool,
    /// It begins like a query.
    query: bool,
    /// The library takes it for something else before it reads it again.
    twice: bool,
    /// Links since the last AND, OR or comma.
    links: usize,
    /// Dots since the last token that cannot be in a name.
    dots: usize,
    /// ANDs and ORs since the last comma.
    logic: usize,
    /// The deepest of what was opened since the last AND, OR or comma.
    inner: Depth,
    /// The deepest operand since the last comma.
    operand: Depth,
    /// The deepest branch.
    branch: Depth,
}

impl Level {
    fn end_operand(&mut self) {
        let inner = std::mem::take(&mut self.inner);
        let own = Depth { links: inner.links + self.links, chain: inner.chain + self.links, ..inner };
        self.operand = self.operand.max(own);
        self.links = 0;
    }

    fn end_branch(&mut self) {
        self.end_operand();
        let operand = std::mem::take(&mut self.operand);
        self.branch = self.branch.max(Depth { chain: operand.chain + self.logic, ..operand });
        self.logic = 0;
    }

    /// What it comes to when it closes.
    fn close(mut self) -> Depth {
        self.end_branch();
        Depth {
            brackets: self.branch.brackets + 1,
            read_twice: self.branch.read_twice + usize::from(self.twice),
            ..self.branch
        }
    }
}

/// How deep the deepest of a text's statements nests.
///
/// # Errors
/// 54001 beyond the bounds.
pub(super) fn measure(tokens: &[TokenWithSpan]) -> Result<Depth, SqlError> {
    let mut deepest = Depth::default();
    let mut levels = vec![Level::default()];
    let (mut operands, mut intervals) = (0, 0);
    for (at, token) in tokens.iter().map(|t| &t.token).enumerate() {
        if *token == Token::SemiColon {
            deepest = deepest.max(ended(&mut levels, operands).check()?);
            operands = 0;
            continue;
        }
        intervals = if keyword(tokens.get(at)) == Keyword::INTERVAL { intervals + 1 } else { 0 };
        if intervals > INTERVALS_MAX {
            return Err(too_deep().hint("INTERVAL repeats."));
        }
        if let Some(level) = levels.last_mut() {
            match token {
                Token::Period => level.dots += 1,
                Token::Word(_) | Token::RParen | Token::RBracket => {}
                _ => level.dots = 0,
            }
            if level.dots > DOTS_MAX {
                return Err(too_deep().hint(format!("A name has at most {DOTS_MAX} parts.")));
            }
        }
        match role(token) {
            Role::Nothing => {}
            Role::Link => levels.last_mut().into_iter().for_each(|level| level.links += 1),
            Role::Logic => {
                if let Some(level) = levels.last_mut() {
                    level.end_operand();
                    level.logic += 1;
                }
            }
            Role::Branch => levels.last_mut().into_iter().for_each(Level::end_branch),
            Role::Operand => {
                operands += 1;
                levels.last_mut().into_iter().for_each(Level::end_branch);
            }
            Role::Opens => levels.push(opened(tokens, at)),
            Role::Case => levels.push(Level { opened_at: at, case: true, ..Level::default() }),
            Role::End if levels.last().is_some_and(|level| level.case) => closed(&mut levels, tokens, at),
            Role::End => {}
            Role::Closes => {
                // A CASE without its END ends with what is around it.
                while levels.last().is_some_and(|level| level.case) && levels.len() > 1 {
                    closed(&mut levels, tokens, at);
                }
                closed(&mut levels, tokens, at);
            }
        }
        if levels.len() > NESTING_MAX + 1 || operands > OPERANDS_MAX {
            return ended(&mut levels, operands).check();
        }
    }
    Ok(deepest.max(ended(&mut levels, operands).check()?))
}

fn opened(tokens: &[TokenWithSpan], at: usize) -> Level {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    let query = matches!(
        keyword(tokens.get(at + 1)),
        Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::TABLE | Keyword::FROM
    );
    // `position(a IN b)`, unless it is a call like any other.
    let position = keyword(before) == Keyword::POSITION && !holds_in(tokens, at);
    Level { opened_at: at, query, twice: position, ..Level::default() }
}

/// Whether the word IN stands in parentheses that open here, before anything else in parentheses.
fn holds_in(tokens: &[TokenWithSpan], at: usize) -> bool {
    let inside = tokens[at + 1..].iter().take_while(|t| !matches!(t.token, Token::LParen | Token::RParen));
    inside.into_iter().any(|token| keyword(Some(token)) == Keyword::IN)
}

fn closed(levels: &mut Vec<Level>, tokens: &[TokenWithSpan], at: usize) {
    if levels.len() < 2 {
        return;
    }
    let Some(level) = levels.pop() else { return };
    let (opened_at, query) = (level.opened_at, level.query);
    let depth = level.close();
    let Some(around) = levels.last_mut() else { return };
    around.inner = around.inner.max(depth);
    if query && !around.case && around.opened_at + 1 == opened_at && levels.len() > 1 {
        let goes_on = goes_on_as_query(tokens.get(at + 1));
        let Some(around) = levels.last_mut() else { return };
        let before = around.opened_at.checked_sub(1).and_then(|before| tokens.get(before));
        let tried = matches!(before.map(|t| &t.token), Some(Token::Comma | Token::LParen))
            || matches!(keyword(before), Keyword::IN | Keyword::FROM | Keyword::JOIN | Keyword::LATERAL);
        around.query |= goes_on;
        around.twice |= !goes_on && tried;
    }
}

/// What all that is open comes to; leaves one level for what follows.
fn ended(levels: &mut Vec<Level>, operands: usize) -> Depth {
    let mut inner = Depth::default();
    while let Some(mut level) = levels.pop() {
        level.inner = level.inner.max(inner);
        inner = level.close();
    }
    levels.push(Level::default());
    // The statement itself is no bracket.
    Depth { brackets: inner.brackets - 1, operands, ..inner }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::Lexed;

    fn depth(text: &str) -> Option<Depth> {
        Lexed::new(text).ok().map(|lexed| lexed.depth)
    }

    #[test]
    fn brackets_links_and_logic_are_told_apart() {
        let found = |text| depth(text).map(|d| (d.brackets, d.links, d.chain, d.operands)).unwrap();
        assert_eq!(found("SELECT 1"), (0, 0, 0, 0));
        assert_eq!(found("SELECT 1 + 2 * 3, 4"), (0, 2, 2, 0));
        assert_eq!(found("SELECT a = 1 AND b = 2 OR c = 3 + 4"), (0, 2, 4, 0));
        assert_eq!(found("SELECT f(1 + 2, g(3)) + 4 FROM t"), (2, 2, 2, 0));
        assert_eq!(found("SELECT CASE WHEN a = 1 THEN 2 ELSE CASE b WHEN 3 THEN 4 END END"), (2, 1, 1, 0));
        assert_eq!(found("SELECT 1, 2 UNION SELECT 3, 4 UNION SELECT a + b, 5 FROM t JOIN u ON x = y"), (0, 1, 1, 3));
        assert_eq!(found("SELECT 1 + 1; SELECT (1)"), (1, 1, 1, 0));
        assert_eq!(found("SELECT -a[1][b + 2]"), (1, 2, 2, 0));
    }

    #[test]
    fn chains_are_bounded_and_lists_are_not() {
        let refused = |text: &str| depth(text).is_none();
        let n = LINKS_MAX + 1;
        assert!(refused(&format!("SELECT 1{}", " + 1".repeat(n))));
        assert!(refused(&format!("SELECT 1{}", "::int8".repeat(n))));
        assert!(refused(&format!("SELECT {} 1", "NOT ".repeat(n))));
        assert!(refused(&format!("SELECT 1 WHERE true{}", " AND f(1, 2)".repeat(LOGIC_MAX + 1))));
        assert!(refused(&format!("SELECT 1, 2{}", " UNION ALL SELECT 1, 2".repeat(OPERANDS_MAX + 1))));
        assert!(refused(&format!("SELECT {}1{}", "(".repeat(NESTING_MAX + 1), ")".repeat(NESTING_MAX + 1))));
        assert!(refused(&format!("SELECT {}", "CASE WHEN ".repeat(NESTING_MAX + 1))));
        assert!(refused("SELECT interval interval interval '1'"));
        let half = " + 1".repeat(n / 2);
        assert!(refused(&format!("SELECT (((1{half})){half}){half}")));
        assert!(!refused(&format!("INSERT INTO t VALUES (-1, 'x'::date){}", ", (-1, 'x'::date)".repeat(n))));
        assert!(!refused(&format!("SELECT * FROM t WHERE id IN (0{})", ", -1".repeat(n))));
        assert!(!refused(&format!("SELECT * FROM t WHERE {}", "a = 1 AND t.b = 'x'::text OR ".repeat(n))));
        assert!(!refused(&"UPDATE t SET v = v + 1;".repeat(n)));
    }

    #[test]
    fn what_the_library_reads_twice_is_bounded() {
        let nested = |open: &str, close: &str, n: usize| format!("{}t{}", open.repeat(n), close.repeat(n));
        for (open, close) in [
            ("SELECT * FROM ((SELECT * FROM (", ")) a JOIN b ON true)"),
            ("SELECT 1 IN ((SELECT ", ") + 1)"),
            ("SELECT position(", ", 'x')"),
        ] {
            assert!(depth(&nested(open, close, READ_TWICE_MAX)).is_some(), "{open}");
            assert!(depth(&nested(open, close, READ_TWICE_MAX + 1)).is_none(), "{open}");
        }
        let sum = format!("SELECT {}1{}", "((SELECT ".repeat(100), ") + 1)".repeat(100));
        assert!(depth(&sum).is_some());
    }
}
