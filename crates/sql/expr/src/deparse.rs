//! Bound expressions as SQL text, in the words of PostgreSQL's `ruleutils`: what `pg_get_indexdef` and error details show.
//!
//! The plain form puts every operator in parentheses; the pretty one leaves out those around the whole. Columns are named without
//! their table. Casts that binding added between types that are written alike are not shown: PostgreSQL compares those types
//! without a cast.

use super::Expr;
use super::function::{Function, Sig};
use super::functions::date_operators::{MIDNIGHT, ZONED_MIDNIGHT};
use crate::syntax::quote_literal;
use crate::types::{SqlType, Value};

/// How an expression is written.
pub struct Deparse<'a> {
    /// Names of the columns, by their places, quoted where that is needed.
    pub names: &'a dyn Fn(usize) -> String,
    /// Without the parentheses that precedence makes needless.
    pub pretty: bool,
}

impl Deparse<'_> {
    /// An expression's text.
    pub fn text(&self, expr: &Expr) -> String {
        match expr {
            Expr::Column { index, .. } => (self.names)(*index),
            Expr::Parameter { index, .. } => format!("${}", index + 1),
            Expr::Literal(value, ty) => literal(value, ty),
            Expr::Compare { op, left, right, .. } => {
                self.wrapped(format!("{} {} {}", self.compared(left), op.symbol(), self.compared(right)))
            }
            Expr::Arithmetic { op, left, right, .. } => self.operator(left, op.symbol(), right),
            Expr::And(parts) => self.boolean(parts, " AND "),
            Expr::Or(parts) => self.boolean(parts, " OR "),
            Expr::Not(inner) => self.wrapped(format!("NOT {}", self.part_of_boolean(inner, false))),
            Expr::IsNull { expr, negated } => {
                self.wrapped(format!("{} IS {}NULL", self.operand(expr), if *negated { "NOT " } else { "" }))
            }
            Expr::IsBool { expr, value, negated } => {
                let (not, word) = (if *negated { "NOT " } else { "" }, if *value { "TRUE" } else { "FALSE" });
                self.wrapped(format!("{} IS {not}{word}", self.operand(expr)))
            }
            Expr::IsDistinct { left, right, negated, .. } => {
                let text = self.wrapped(format!("{} IS DISTINCT FROM {}", self.compared(left), self.compared(right)));
                if *negated { self.wrapped(format!("NOT {text}")) } else { text }
            }
            Expr::InList { expr, list, negated, .. } => {
                let word = if *negated { "<> ALL" } else { "= ANY" };
                self.wrapped(format!("{} {word} (ARRAY[{}])", self.compared(expr), self.list(list)))
            }
            Expr::AnyAll { op, left, array, all, .. } => {
                let word = if *all { "ALL" } else { "ANY" };
                self.wrapped(format!("{} {} {word} ({})", self.compared(left), op.symbol(), self.text(array)))
            }
            Expr::Cast { expr, from, to, explicit } => match is_silent(from, to, *explicit) {
                true => self.text(expr),
                false => format!("{}::{to}", self.cast_operand(expr)),
            },
            Expr::Call { function, args, .. } => match (beside_timestamp(function), args.as_slice()) {
                (true, [date]) => self.text(date),
                _ => self.call(function, args),
            },
            Expr::Case { operand, branches, otherwise, .. } => {
                let mut out = String::from("CASE");
                if let Some((operand, _)) = operand {
                    out += &format!(" {}", self.text(operand));
                }
                for (when, then) in branches {
                    out += &format!(" WHEN {} THEN {}", self.text(when), self.text(then));
                }
                if let Some(otherwise) = otherwise {
                    out += &format!(" ELSE {}", self.text(otherwise));
                }
                out + " END"
            }
            Expr::Coalesce(list, _) => format!("COALESCE({})", self.list(list)),
            Expr::NullIf { left, right, .. } => format!("NULLIF({}, {})", self.text(left), self.text(right)),
            Expr::Extreme { list, greatest, .. } => {
                format!("{}({})", if *greatest { "GREATEST" } else { "LEAST" }, self.list(list))
            }
            Expr::Array { items, .. } => format!("ARRAY[{}]", self.list(items)),
            Expr::Subscript { array, indexes, .. } => {
                let indexes: Vec<String> = indexes.iter().map(|index| format!("[{}]", self.text(index))).collect();
                format!("{}{}", self.operand(array), indexes.concat())
            }
            Expr::Row(list) => format!("ROW({})", self.list(list)),
        }
    }

    /// As a key of an index: in parentheses, unless it looks like a call.
    pub fn key(&self, expr: &Expr) -> String {
        let call = match expr {
            Expr::Call { function, .. } => is_word(function.name),
            Expr::Coalesce(..) | Expr::NullIf { .. } | Expr::Extreme { .. } => true,
            _ => false,
        };
        if call { self.text(expr) } else { format!("({})", self.text(expr)) }
    }

    fn list(&self, list: &[Expr]) -> String {
        list.iter().map(|item| self.text(item)).collect::<Vec<_>>().join(", ")
    }

    fn wrapped(&self, text: String) -> String {
        if self.pretty { text } else { format!("({text})") }
    }

    /// Part of an operator: pretty text has lost the parentheses that it needs there.
    fn operand(&self, expr: &Expr) -> String {
        let text = self.text(expr);
        if self.pretty && !is_simple(expr) { format!("({text})") } else { text }
    }

    fn cast_operand(&self, expr: &Expr) -> String {
        match (self.pretty, expr) {
            (true, _) => self.operand(expr),
            (false, _) => format!("({})", self.text(expr)),
        }
    }

    fn operator(&self, left: &Expr, symbol: &str, right: &Expr) -> String {
        self.wrapped(format!("{} {symbol} {}", self.operand(left), self.operand(right)))
    }

    fn boolean(&self, parts: &[Expr], word: &str) -> String {
        let or = word == " OR ";
        let parts: Vec<String> = parts.iter().map(|part| self.part_of_boolean(part, or)).collect();
        self.wrapped(parts.join(word))
    }

    fn part_of_boolean(&self, part: &Expr, or: bool) -> String {
        let text = self.text(part);
        let inner = matches!(part, Expr::Or(_)) && !or || matches!(part, Expr::InList { .. } | Expr::AnyAll { .. });
        if self.pretty && inner { format!("({text})") } else { text }
    }

    fn call(&self, function: &Function, args: &[Expr]) -> String {
        let name = function.name;
        let takes_text = |place: usize| {
            let last = function.args.len().saturating_sub(1);
            function.args.get(place.min(last)) == Some(&Sig::Is(SqlType::Text))
        };
        let arg =
            |place: usize| if takes_text(place) { self.compared(&args[place]) } else { self.operand(&args[place]) };
        match (is_word(name), args.len()) {
            (true, count) => {
                let bare = |place: usize| match takes_text(place) && is_varying(&args[place]) {
                    true => arg(place),
                    false => self.text(&args[place]),
                };
                format!("{name}({})", (0..count).map(bare).collect::<Vec<_>>().join(", "))
            }
            (false, 1) => self.wrapped(format!("{name} {}", arg(0))),
            (false, 2) => self.wrapped(format!("{} {name} {}", arg(0), arg(1))),
            (false, _) => format!("OPERATOR({name})({})", self.list(args)),
        }
    }

    /// An operand that is compared as text: PostgreSQL casts varchar to it.
    fn compared(&self, expr: &Expr) -> String {
        match is_varying(expr) {
            true => format!("{}::text", self.cast_operand(expr)),
            false => self.operand(expr),
        }
    }
}

fn is_varying(expr: &Expr) -> bool {
    matches!(expr.ty(), SqlType::Varchar(_)) && !matches!(expr, Expr::Literal(..))
}

/// Whether a function only brings a date to where it is compared.
fn beside_timestamp(function: &Function) -> bool {
    matches!(function.name, MIDNIGHT | ZONED_MIDNIGHT)
}

fn is_word(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn is_simple(expr: &Expr) -> bool {
    match expr {
        Expr::Call { function, args, .. } if beside_timestamp(function) => args.first().is_some_and(is_simple),
        Expr::Call { function, .. } => is_word(function.name),
        Expr::Cast { expr, from, to, explicit } => !is_silent(from, to, *explicit) || is_simple(expr),
        Expr::Column { .. }
        | Expr::Literal(..)
        | Expr::Parameter { .. }
        | Expr::Coalesce(..)
        | Expr::NullIf { .. }
        | Expr::Extreme { .. }
        | Expr::Array { .. }
        | Expr::Subscript { .. }
        | Expr::Case { .. }
        | Expr::Row(_) => true,
        _ => false,
    }
}

/// Casts that PostgreSQL does without: it has operators between these types.
fn is_silent(from: &SqlType, to: &SqlType, explicit: bool) -> bool {
    let integer = |ty: &SqlType| matches!(ty, SqlType::Int2 | SqlType::Int4 | SqlType::Int8);
    // What a column's type asks of length and precision goes without saying.
    !explicit && (integer(from) && integer(to) || *from == to.base())
}

fn literal(value: &Value, ty: &SqlType) -> String {
    let text = || value.to_text(ty, &crate::types::EvalSettings::default());
    match value {
        Value::Null => format!("NULL::{ty}"),
        Value::Bool(value) => value.to_string(),
        Value::Int2(_) | Value::Int4(_) | Value::Int8(_) | Value::Numeric(_)
            if !text().starts_with(['-', 'N', 'I']) =>
        {
            text()
        }
        _ => format!("{}::{}", quote_literal(&text()), ty.base()),
    }
}
