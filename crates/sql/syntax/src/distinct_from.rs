//! `a IS DISTINCT FROM b AND c`: the library takes all that follows for the right operand, as if it were `b AND c`.
//!
//! So the tree is put right: operands and their ANDs and ORs are laid out in the order of the text, and joined again, AND before OR.

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value, VisitMut, VisitorMut};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::ops::ControlFlow;

/// Whether tokens may hold the operator.
pub(super) fn is_in(tokens: &[TokenWithSpan]) -> bool {
    let word = |token: Option<&TokenWithSpan>, wanted: &str| matches!(token.map(|t| &t.token), Some(Token::Word(w)) if w.value.eq_ignore_ascii_case(wanted));
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    words.windows(2).any(|pair| word(tokens.get(pair[0]), "DISTINCT") && word(tokens.get(pair[1]), "FROM"))
}

/// Puts every use of the operator in a tree right.
pub fn mend<T: VisitMut>(node: &mut T) {
    let _ = node.visit(&mut Mend::default());
}

#[derive(Default)]
struct Mend {
    /// Of a chain that was looked through as a whole: what of its left edge is still to be met, one after the other.
    passed: usize,
}

impl VisitorMut for Mend {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(left) = self.passed.checked_sub(1) {
            self.passed = left;
            return ControlFlow::Continue(());
        }
        let mut edge = left_edge(expr);
        if edge.is_err() {
            let mut operands = Vec::new();
            lay_out(take(expr), None, &mut operands);
            *expr = join(operands);
            edge = left_edge(expr);
        }
        self.passed = edge.unwrap_or(0);
        ControlFlow::Continue(())
    }
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::value(Value::Null))
}

fn is_logic(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. })
}

/// An operand of a chain of ANDs and ORs has swallowed what follows it.
struct Swallowed;

/// How many expressions a chain of ANDs and ORs has along its left edge, below its root: a visitor meets them next, before all others.
fn left_edge(mut expr: &Expr) -> Result<usize, Swallowed> {
    fn operand(expr: &Expr) -> Result<(), Swallowed> {
        match expr {
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => operand(expr),
            Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) if is_logic(right) => Err(Swallowed),
            _ => Ok(()),
        }
    }
    let mut below = 0;
    while let Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } = expr {
        operand(right)?;
        (expr, below) = (left, below + 1);
    }
    operand(expr).map(|()| below)
}

/// Operands in the order of the text, each with what joins it to those before.
fn lay_out(expr: Expr, joint: Option<BinaryOperator>, out: &mut Vec<(Option<BinaryOperator>, Expr)>) {
    let first = out.len();
    match expr {
        Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
            lay_out(*left, joint, out);
            lay_out(*right, Some(op), out);
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            lay_out(*expr, joint, out);
            let inner = Box::new(take(&mut out[first].1));
            out[first].1 = Expr::UnaryOp { op: UnaryOperator::Not, expr: inner };
        }
        Expr::IsDistinctFrom(left, right) if is_logic(&right) => {
            lay_out(*right, joint, out);
            out[first].1 = Expr::IsDistinctFrom(left, Box::new(take(&mut out[first].1)));
        }
        Expr::IsNotDistinctFrom(left, right) if is_logic(&right) => {
            lay_out(*right, joint, out);
            out[first].1 = Expr::IsNotDistinctFrom(left, Box::new(take(&mut out[first].1)));
        }
        other => out.push((joint, other)),
    }
}

fn join(operands: Vec<(Option<BinaryOperator>, Expr)>) -> Expr {
    let two = |op: BinaryOperator, left: Option<Expr>, right: Expr| match left {
        Some(left) => Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) },
        None => right,
    };
    let (mut whole, mut part) = (None, None);
    for (joint, operand) in operands {
        if joint == Some(BinaryOperator::Or)
            && let Some(part) = part.take()
        {
            whole = Some(two(BinaryOperator::Or, whole, part));
        }
        part = Some(two(BinaryOperator::And, part, operand));
    }
    match part {
        Some(part) => two(BinaryOperator::Or, whole, part),
        None => Expr::value(Value::Null),
    }
}
