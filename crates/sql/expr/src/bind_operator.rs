//! Operators: comparison, arithmetic, logic, patterns, and those that are functions.

use super::bind::{BindError, Binder, no_operator, text_of};
use super::bind_function::call;
use super::fold::fold;
use super::function::by_name;
use super::functions::date_operators::beside_moment;
use super::resolve::{self, Failure};
use super::{ArithmeticOp, CompareOp, Expr};
use crate::syntax::depth;
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState};
use sqlparser::ast::{self, BinaryOperator as B, UnaryOperator as U};
use std::borrow::Cow;

/// Longest chain of operators: it is evaluated by descending.
const CHAIN_MAX: usize = depth::LINKS_MAX;

pub(super) fn not_found(symbol: &str, types: &[SqlType]) -> SqlError {
    let shown = match types {
        [operand] => format!("{symbol} {}", operand.base()),
        [left, right] => format!("{} {symbol} {}", left.base(), right.base()),
        _ => symbol.to_owned(),
    };
    SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {shown}"))
        .hint("No operator matches the given name and argument types. You might need to add explicit type casts.")
}

fn compare_op(op: &B) -> Option<CompareOp> {
    Some(match op {
        B::Eq => CompareOp::Eq,
        B::NotEq => CompareOp::NotEq,
        B::Lt => CompareOp::Lt,
        B::LtEq => CompareOp::LtEq,
        B::Gt => CompareOp::Gt,
        B::GtEq => CompareOp::GtEq,
        _ => return None,
    })
}

/// The symbol of an operator that is a function.
fn symbol(op: &B) -> Option<String> {
    Some(
        match op {
            B::StringConcat => "||",
            B::PGExp => "^",
            B::BitwiseAnd => "&",
            B::BitwiseOr => "|",
            B::PGBitwiseXor => "#",
            B::PGBitwiseShiftLeft => "<<",
            B::PGBitwiseShiftRight => ">>",
            B::PGOverlap => "&&",
            B::PGRegexMatch => "~",
            B::PGRegexIMatch => "~*",
            B::PGRegexNotMatch => "!~",
            B::PGRegexNotIMatch => "!~*",
            B::PGLikeMatch => "~~",
            B::PGILikeMatch => "~~*",
            B::PGNotLikeMatch => "!~~",
            B::PGNotILikeMatch => "!~~*",
            B::PGStartsWith => "^@",
            B::Arrow => "->",
            B::LongArrow => "->>",
            B::HashArrow => "#>",
            B::HashLongArrow => "#>>",
            B::AtArrow => "@>",
            B::ArrowAt => "<@",
            B::HashMinus => "#-",
            B::Question => "?",
            B::QuestionAnd => "?&",
            B::QuestionPipe => "?|",
            // The dialect reads ^ as exponentiation and # as exclusive or; other readings mean the same to us.
            B::BitwiseXor => "#",
            B::PGCustomBinaryOperator(parts) => {
                return Some(parts.last().cloned().unwrap_or_default());
            }
            B::Custom(symbol) => return Some(symbol.clone()),
            _ => return None,
        }
        .to_owned(),
    )
}

/// Whether an expression is a power without parentheses: a minus before it belongs to its base, though the library reads it otherwise.
fn leads_power(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::BinaryOp { op: B::PGExp, .. })
}

/// Puts a minus before the first base of a chain of powers.
fn negate_first(mut expr: &mut ast::Expr) {
    while let ast::Expr::BinaryOp { left, op: B::PGExp, .. } = expr {
        expr = left;
    }
    let base = std::mem::replace(expr, ast::Expr::value(ast::Value::Null));
    *expr = ast::Expr::UnaryOp { op: U::Minus, expr: Box::new(base) };
}

/// Adds a power to a chain that is gathered from its end. In `a ^ -b ^ c` the library reads `-(b ^ c)` as the exponent: it is `(a ^ -b) ^ c`.
fn link_power<'e>(links: &mut Vec<(&'e B, Cow<'e, ast::Expr>)>, op: &'e B, exponent: &'e ast::Expr) {
    let mut signs = Vec::new();
    let mut base = exponent;
    while let ast::Expr::UnaryOp { op: sign @ (U::Minus | U::Plus), expr } = base {
        signs.push(*sign);
        base = expr;
    }
    if signs.is_empty() || !leads_power(base) {
        links.push((op, Cow::Borrowed(exponent)));
        return;
    }
    while let ast::Expr::BinaryOp { left, op: inner @ B::PGExp, right } = base {
        link_power(links, inner, right);
        base = left;
    }
    let signed = signs.into_iter().rfold(base.clone(), |expr, op| ast::Expr::UnaryOp { op, expr: Box::new(expr) });
    links.push((op, Cow::Owned(signed)));
}

fn same_length(left: usize, right: usize) -> Result<(), SqlError> {
    let wrong = || SqlError::new(SqlState::SYNTAX_ERROR, "unequal number of entries in row expressions");
    if left == right { Ok(()) } else { Err(wrong()) }
}

impl Binder<'_> {
    pub(super) fn binary(&mut self, left: &ast::Expr, op: &B, right: &ast::Expr) -> Result<Expr, BindError> {
        match op {
            B::And | B::Or => return self.logic(left, op, right),
            B::PGCustomBinaryOperator(parts) => {
                // OPERATOR(pg_catalog.=)
                if let Some(known) = parts.last().and_then(|symbol| operator_named(symbol)) {
                    return self.binary(left, &known, right);
                }
            }
            _ => {}
        }
        if let Some(op) = compare_op(op)
            && let (Some(left), Some(right)) = (row_fields(left), row_fields(right))
        {
            return self.compare_rows(op, &left, &right);
        }
        if let (B::Overlaps, ast::Expr::Tuple(left), ast::Expr::Tuple(right)) = (op, left, right) {
            let mut args = self.list(left)?;
            args.extend(self.list(right)?);
            return super::bind_function::call(self, "overlaps", args);
        }
        if compare_op(op).is_none() {
            return self.chain(left, op, right);
        }
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        self.binary_bound(left, op, right)
    }

    /// `a + b + c ...` nests to the left as deep as it is long: walked, not descended.
    fn chain(&mut self, left: &ast::Expr, op: &B, right: &ast::Expr) -> Result<Expr, BindError> {
        let mut links = Vec::new();
        let link = |links: &mut Vec<_>, op, right| match op {
            &B::PGExp => link_power(links, op, right),
            _ => links.push((op, Cow::Borrowed(right))),
        };
        link(&mut links, op, right);
        let mut first = left;
        while let ast::Expr::BinaryOp { left, op, right } = first {
            if compare_op(op).is_some() || matches!(op, B::And | B::Or | B::Overlaps | B::PGCustomBinaryOperator(_)) {
                break;
            }
            link(&mut links, op, right);
            first = left;
        }
        if links.len() > CHAIN_MAX {
            return Err(depth::too_deep()
                .hint(format!("An expression chains at most {CHAIN_MAX} operators other than AND and OR."))
                .into());
        }
        let mut whole = self.expr(first)?;
        for (op, right) in links.into_iter().rev() {
            let right = self.expr(&right)?;
            whole = self.binary_bound(whole, op, right)?;
        }
        Ok(whole)
    }

    pub(super) fn binary_bound(&mut self, left: Expr, op: &B, right: Expr) -> Result<Expr, BindError> {
        if let Some(op) = compare_op(op) {
            return self.compare(op, left, right);
        }
        let arithmetic = match op {
            B::Plus => Some(ArithmeticOp::Add),
            B::Minus => Some(ArithmeticOp::Sub),
            B::Multiply => Some(ArithmeticOp::Mul),
            B::Divide => Some(ArithmeticOp::Div),
            B::Modulo => Some(ArithmeticOp::Mod),
            _ => None,
        };
        if let Some(op) = arithmetic {
            return self.arithmetic(op, left, right);
        }
        match symbol(op) {
            Some(symbol) => self.operator(&symbol, vec![left, right]),
            None => Err(not_found(&op.to_string(), &[left.ty(), right.ty()]).into()),
        }
    }

    fn logic(&mut self, left: &ast::Expr, op: &B, right: &ast::Expr) -> Result<Expr, BindError> {
        let is_and = *op == B::And;
        let clause = if is_and { "AND" } else { "OR" };
        // A chain of a thousand ORs nests to the left; walk it instead of descending.
        let mut pending = vec![right];
        let mut first = left;
        while let ast::Expr::BinaryOp { left, op: inner, right } = first {
            if inner != op {
                break;
            }
            pending.push(right);
            first = left;
        }
        pending.push(first);
        let mut parts = Vec::with_capacity(pending.len());
        for expr in pending.into_iter().rev() {
            let bound = self.expr(expr)?;
            match self.boolean(bound, clause)? {
                Expr::And(inner) if is_and => parts.extend(inner),
                Expr::Or(inner) if !is_and => parts.extend(inner),
                other => parts.push(other),
            }
        }
        Ok(if is_and { Expr::And(parts) } else { Expr::Or(parts) })
    }

    /// Brings two operands to the type in which they are compared.
    pub(super) fn comparable(
        &mut self,
        left: Expr,
        right: Expr,
        symbol: &str,
    ) -> Result<(Expr, Expr, SqlType), BindError> {
        let (left_ty, right_ty) = (left.ty(), right.ty());
        let ty =
            resolve::comparison_type(&left_ty, &right_ty).ok_or_else(|| no_operator(symbol, &[&left_ty, &right_ty]))?;
        if ty == SqlType::Record {
            return Ok((left, right, ty));
        }
        // A literal is read as a value of the other side's type, however that one is compared.
        let left = self.beside(left, &ty)?;
        let right = self.beside(right, &ty)?;
        Ok((left, right, ty))
    }

    /// An operand in the type of the comparison. A date beside a timestamp is a point in time that need not be a timestamp.
    fn beside(&mut self, operand: Expr, ty: &SqlType) -> Result<Expr, BindError> {
        match beside_moment(&operand.ty(), ty) {
            Some((name, _)) => call(self, name, vec![operand]),
            None => self.must(operand, ty),
        }
    }

    pub(super) fn compare(&mut self, op: CompareOp, left: Expr, right: Expr) -> Result<Expr, BindError> {
        let (left, right, ty) = self.comparable(left, right, op.symbol())?;
        Ok(fold(Expr::Compare { op, ty, left: Box::new(left), right: Box::new(right) })?)
    }

    fn compare_rows(&mut self, op: CompareOp, left: &[ast::Expr], right: &[ast::Expr]) -> Result<Expr, BindError> {
        same_length(left.len(), right.len())?;
        if left.is_empty() {
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot compare rows of zero length").into());
        }
        let pairs: Result<Vec<(Expr, Expr)>, BindError> =
            left.iter().zip(right).map(|(left, right)| Ok((self.expr(left)?, self.expr(right)?))).collect();
        self.compare_pairs(op, pairs?)
    }

    /// Compares a row that is bound, and compared more than once, with another.
    fn compare_copied(&mut self, op: CompareOp, left: &[Expr], right: &[ast::Expr]) -> Result<Expr, BindError> {
        same_length(left.len(), right.len())?;
        if left.is_empty() {
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot compare rows of zero length").into());
        }
        let copies: Result<Vec<Expr>, SqlError> = left.iter().map(|field| self.parameters.copy(field)).collect();
        let right = self.list(right)?;
        self.compare_pairs(op, copies?.into_iter().zip(right).collect())
    }

    fn compare_pairs(&mut self, op: CompareOp, pairs: Vec<(Expr, Expr)>) -> Result<Expr, BindError> {
        match op {
            CompareOp::Eq | CompareOp::NotEq => {
                let parts: Result<Vec<Expr>, BindError> =
                    pairs.into_iter().map(|(left, right)| self.compare(op, left, right)).collect();
                Ok(if op == CompareOp::Eq { Expr::And(parts?) } else { Expr::Or(parts?) })
            }
            _ => self.compare_lexically(op, pairs),
        }
    }

    /// `(a, b) < (c, d)` is `a < c OR (a = c AND b < d)`.
    fn compare_lexically(&mut self, op: CompareOp, mut pairs: Vec<(Expr, Expr)>) -> Result<Expr, BindError> {
        let strict = match op {
            CompareOp::LtEq => CompareOp::Lt,
            CompareOp::GtEq => CompareOp::Gt,
            other => other,
        };
        let Some((left, right)) = pairs.pop() else {
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot compare rows of zero length").into());
        };
        let mut whole = self.compare(op, left, right)?;
        while let Some((left, right)) = pairs.pop() {
            let before = (self.parameters.copy(&left)?, self.parameters.copy(&right)?);
            let before = self.compare(strict, before.0, before.1)?;
            let equal = self.compare(CompareOp::Eq, left, right)?;
            whole = Expr::Or(vec![before, Expr::And(vec![equal, whole])]);
        }
        Ok(whole)
    }

    fn arithmetic(&mut self, op: ArithmeticOp, left: Expr, right: Expr) -> Result<Expr, BindError> {
        let (left_ty, right_ty) = (left.ty(), right.ty());
        let ty = match (&left_ty, &right_ty) {
            (a, b) if a.is_number() && b.is_number() => Some(resolve::common_number(a, b)),
            (SqlType::Unknown, b) if b.is_number() => Some(b.base()),
            (a, SqlType::Unknown) if a.is_number() => Some(a.base()),
            _ => None,
        };
        let Some(ty) = ty else { return self.operator(op.symbol(), vec![left, right]) };
        if op == ArithmeticOp::Mod && matches!(ty, SqlType::Float4 | SqlType::Float8) {
            return Err(not_found("%", &[left_ty, right_ty]).into());
        }
        let left = Box::new(self.must(left, &ty)?);
        let right = Box::new(self.must(right, &ty)?);
        Ok(fold(Expr::Arithmetic { op, ty, left, right })?)
    }

    /// An operator that is a function.
    pub(super) fn operator(&mut self, symbol: &str, args: Vec<Expr>) -> Result<Expr, BindError> {
        let types: Vec<SqlType> = args.iter().map(Expr::ty).collect();
        let found = by_name(symbol);
        // Of an operator with ANY or ALL its own name is told.
        let symbol = symbol.split(' ').next().unwrap_or(symbol);
        let chosen = resolve::choose_operator(found, &types).map_err(|failure| match failure {
            Failure::None => not_found(symbol, &types),
            Failure::Ambiguous => {
                let shown: Vec<String> = types.iter().map(|ty| ty.base().to_string()).collect();
                let shown = if let [one] = shown.as_slice() {
                    format!("{symbol} {one}")
                } else {
                    shown.join(&format!(" {symbol} "))
                };
                SqlError::new(SqlState::AMBIGUOUS_FUNCTION, format!("operator is not unique: {shown}"))
                    .hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
            }
        })?;
        super::bind_function::make_call(self, chosen, args)
    }

    pub(super) fn unary(&mut self, op: U, expr: &ast::Expr) -> Result<Expr, BindError> {
        match op {
            U::Not | U::BangNot => {
                let inner = self.expr(expr)?;
                Ok(Expr::Not(Box::new(self.boolean(inner, "NOT")?)))
            }
            U::Minus if leads_power(expr) => {
                let mut whole = expr.clone();
                negate_first(&mut whole);
                self.expr(&whole)
            }
            U::Minus => {
                // The sign belongs to the literal: -2147483648 is an int4.
                if let ast::Expr::Value(value) = expr
                    && let ast::Value::Number(text, _) = &value.value
                {
                    return Ok(super::bind::number(&format!("-{text}"))?);
                }
                let inner = self.expr(expr)?;
                let ty = inner.ty();
                if matches!(ty, SqlType::Int2 | SqlType::Int4 | SqlType::Int8) {
                    let zero = match ty {
                        SqlType::Int2 => Value::Int2(0),
                        SqlType::Int4 => Value::Int4(0),
                        _ => Value::Int8(0),
                    };
                    let left = Box::new(Expr::Literal(zero, ty.clone()));
                    return Ok(Expr::Arithmetic { op: ArithmeticOp::Sub, ty, left, right: Box::new(inner) });
                }
                self.operator("-", vec![inner])
            }
            U::Plus => {
                let inner = self.expr(expr)?;
                if inner.ty().is_number() { Ok(inner) } else { self.operator("+", vec![inner]) }
            }
            U::BitwiseNot => self.unary_call("~", expr),
            U::PGAbs => self.unary_call("@", expr),
            U::PGSquareRoot => self.unary_call("|/", expr),
            U::PGCubeRoot => self.unary_call("||/", expr),
            other => Err(SqlError::unsupported(format!("the operator {other}")).into()),
        }
    }

    fn unary_call(&mut self, symbol: &str, expr: &ast::Expr) -> Result<Expr, BindError> {
        let inner = self.expr(expr)?;
        self.operator(symbol, vec![inner])
    }

    pub(super) fn between(
        &mut self,
        expr: &ast::Expr,
        negated: bool,
        low: &ast::Expr,
        high: &ast::Expr,
    ) -> Result<Expr, BindError> {
        if let (Some(row), Some(low), Some(high)) = (row_fields(expr), row_fields(low), row_fields(high)) {
            let row = self.list(&row)?;
            let above = self.compare_copied(if negated { CompareOp::Lt } else { CompareOp::GtEq }, &row, &low)?;
            let below = self.compare_copied(if negated { CompareOp::Gt } else { CompareOp::LtEq }, &row, &high)?;
            return Ok(if negated { Expr::Or(vec![above, below]) } else { Expr::And(vec![above, below]) });
        }
        if row_fields(expr).is_some() {
            let above = self.binary(expr, if negated { &B::Lt } else { &B::GtEq }, low)?;
            let below = self.binary(expr, if negated { &B::Gt } else { &B::LtEq }, high)?;
            return Ok(if negated { Expr::Or(vec![above, below]) } else { Expr::And(vec![above, below]) });
        }
        let value = self.expr(expr)?;
        let (low, high) = (self.expr(low)?, self.expr(high)?);
        let first = self.parameters.copy(&value)?;
        let above = self.compare(if negated { CompareOp::Lt } else { CompareOp::GtEq }, first, low)?;
        // A parameter has its type by now.
        let value = if let Expr::Parameter { .. } = value { self.parameters.copy(&value)? } else { value };
        let below = self.compare(if negated { CompareOp::Gt } else { CompareOp::LtEq }, value, high)?;
        Ok(if negated { Expr::Or(vec![above, below]) } else { Expr::And(vec![above, below]) })
    }

    pub(super) fn in_list(&mut self, expr: &ast::Expr, list: &[ast::Expr], negated: bool) -> Result<Expr, BindError> {
        if let Some(left) = row_fields(expr)
            && list.iter().all(|item| row_fields(item).is_some())
        {
            return self.in_rows(&left, list, negated);
        }
        let value = self.expr(expr)?;
        let items = self.list(list)?;
        if mixes_floats(&value, &items) {
            return self.in_numbers(value, items, negated);
        }
        let mut ty = value.ty();
        // What has no type of its own takes that of the others.
        let mut known: Vec<SqlType> = items.iter().map(Expr::ty).collect();
        known.sort_by_key(|ty| *ty == SqlType::Unknown);
        for item_ty in known {
            ty = resolve::comparison_type(&ty, &item_ty).ok_or_else(|| no_operator("=", &[&value.ty(), &item_ty]))?;
        }
        // Several are compared as elements of one array, whose type is that of the first of char(n), varchar and text.
        if items.len() > 1 {
            let types: Vec<SqlType> = std::iter::once(value.ty()).chain(items.iter().map(Expr::ty)).collect();
            let string = |ty: &SqlType| matches!(ty, SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_));
            if let Some(first) = types.iter().find(|ty| **ty != SqlType::Unknown)
                && types.iter().all(|ty| *ty == SqlType::Unknown || string(ty))
            {
                ty = if matches!(first, SqlType::Char(_)) { SqlType::Char(0) } else { SqlType::Text };
            }
        }
        let list: Result<Vec<Expr>, BindError> = items.into_iter().map(|item| self.must(item, &ty)).collect();
        let list = list?;
        let expr = Box::new(self.must(value, &ty)?);
        Ok(Expr::InList { ty, expr, list, negated })
    }

    /// IN of numbers among which are floats: what cannot be read off one type. As in PostgreSQL constants, if there are several, are the elements of one array of
    /// their common type (`real IN (0.1, 0.2)` are reals), and what names a column, or is alone, is compared by itself (`real = 0.1` is of double precision).
    fn in_numbers(&mut self, value: Expr, items: Vec<Expr>, negated: bool) -> Result<Expr, BindError> {
        let (alone, mut listed): (Vec<Expr>, Vec<Expr>) =
            items.into_iter().partition(|item| !item.columns().is_empty());
        let mut parts = Vec::with_capacity(alone.len() + 1);
        let alone = if listed.len() > 1 {
            let types: Vec<SqlType> = std::iter::once(value.ty()).chain(listed.iter().map(Expr::ty)).collect();
            let of = |ty: &SqlType| no_operator("=", &[&value.ty(), ty]);
            let element = resolve::common_type(&types).map_err(|(_, ty)| of(&ty))?;
            let ty = resolve::comparison_type(&value.ty(), &element).ok_or_else(|| of(&element))?;
            let mut list = Vec::with_capacity(listed.len());
            for item in listed {
                let item = self.must(item, &element)?;
                list.push(fold(self.must(item, &ty)?)?);
            }
            let copy = self.parameters.copy(&value)?;
            let expr = Box::new(self.must(copy, &ty)?);
            parts.push(Expr::InList { ty, expr, list, negated });
            alone
        } else {
            listed.extend(alone);
            listed
        };
        let op = if negated { CompareOp::NotEq } else { CompareOp::Eq };
        for item in alone {
            let copy = self.parameters.copy(&value)?;
            parts.push(self.compare(op, copy, item)?);
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ if negated => Expr::And(parts),
            _ => Expr::Or(parts),
        })
    }

    fn in_rows(&mut self, left: &[ast::Expr], list: &[ast::Expr], negated: bool) -> Result<Expr, BindError> {
        let mut rows = Vec::with_capacity(list.len());
        let left = self.list(left)?;
        for item in list {
            let Some(right) = row_fields(item) else { continue };
            rows.push(self.compare_copied(CompareOp::Eq, &left, &right)?);
        }
        let any = Expr::Or(rows);
        Ok(if negated { Expr::Not(Box::new(any)) } else { any })
    }

    pub(super) fn any_all(
        &mut self,
        left: &ast::Expr,
        op: &B,
        right: &ast::Expr,
        all: bool,
    ) -> Result<Expr, BindError> {
        if matches!(right, ast::Expr::Subquery(_)) {
            return Err(BindError::NeedsEngine("a subquery"));
        }
        let Some(op) = compare_op(op) else { return self.any_all_pattern(left, op, right, all) };
        let left = self.expr(left)?;
        let array = match right {
            ast::Expr::Nested(inner) => self.expr(inner)?,
            other => self.expr(other)?,
        };
        let array_ty = array.ty();
        let element = match &array_ty {
            SqlType::Array(element) => (**element).clone(),
            SqlType::Int2Vector => SqlType::Int2,
            SqlType::OidVector => SqlType::Oid,
            SqlType::Unknown => left.ty(),
            _ => {
                return Err(SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    "op ANY/ALL (array) requires array on right side",
                )
                .into());
            }
        };
        let ty = resolve::comparison_type(&left.ty(), &element)
            .ok_or_else(|| no_operator(op.symbol(), &[&left.ty(), &element]))?;
        let left = Box::new(self.must(left, &ty)?);
        let array = Box::new(self.must(array, &SqlType::Array(Box::new(ty.clone())))?);
        Ok(Expr::AnyAll { op, ty, left, array, all })
    }

    /// `x LIKE ANY (array)`: one comparison for each element of an array that is written out.
    fn any_all_pattern(&mut self, left: &ast::Expr, op: &B, right: &ast::Expr, all: bool) -> Result<Expr, BindError> {
        let ast::Expr::Array(array) = right else {
            let listed = symbol(op).map(|symbol| format!("{symbol} {}", if all { "all" } else { "any" }));
            let Some(listed) = listed.filter(|name| !by_name(name).is_empty()) else {
                return Err(SqlError::unsupported(format!(
                    "the operator {op} with ANY or ALL of an array that is not written out"
                ))
                .into());
            };
            let args = vec![self.expr(left)?, self.expr(right)?];
            return self.operator(&listed, args);
        };
        let left = self.expr(left)?;
        let each = |item| {
            let copy = self.parameters.copy(&left)?;
            let item = self.expr(item)?;
            self.binary_bound(copy, op, item)
        };
        let parts: Result<Vec<Expr>, BindError> = array.elem.iter().map(each).collect();
        Ok(if all { Expr::And(parts?) } else { Expr::Or(parts?) })
    }

    /// `x LIKE ANY (ARRAY[...])`
    pub(super) fn like_any(
        &mut self,
        symbol: &str,
        negated: bool,
        expr: &ast::Expr,
        patterns: &ast::Expr,
    ) -> Result<Expr, BindError> {
        let list: &[ast::Expr] = match patterns {
            ast::Expr::Array(array) => &array.elem,
            ast::Expr::Tuple(list) => list,
            ast::Expr::Nested(inner) => return self.like_any(symbol, negated, expr, inner),
            other => return self.any_all_pattern(expr, &like_operator(symbol, negated), other, false),
        };
        let left = self.expr(expr)?;
        let each = |pattern| {
            let args = vec![self.parameters.copy(&left)?, self.expr(pattern)?];
            let matched = self.operator(symbol, args)?;
            Ok(if negated { Expr::Not(Box::new(matched)) } else { matched })
        };
        let parts: Result<Vec<Expr>, BindError> = list.iter().map(each).collect();
        Ok(Expr::Or(parts?))
    }

    pub(super) fn like(
        &mut self,
        symbol: &str,
        negated: bool,
        expr: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::ValueWithSpan>,
    ) -> Result<Expr, BindError> {
        if let (Some(array), true) = (argument_of_all(pattern), symbol.starts_with("~~") && escape.is_none()) {
            return self.any_all(expr, &like_operator(symbol, negated), array, true);
        }
        let mut args = vec![self.expr(expr)?, self.expr(pattern)?];
        if let Some(escape) = escape {
            if escape.value == ast::Value::Null {
                args.push(Expr::Literal(Value::Null, SqlType::Text));
            } else {
                let text = text_of(&escape.value).ok_or_else(|| super::bind::syntax("ESCAPE needs a string"))?;
                if text.chars().count() > 1 {
                    return Err(SqlError::new(SqlState(*b"22025"), "invalid escape string")
                        .hint("Escape string must be empty or one character.")
                        .into());
                }
                args.push(Expr::Literal(Value::text(text), SqlType::Text));
            }
        }
        let matched = self.operator(symbol, args)?;
        Ok(if negated { Expr::Not(Box::new(matched)) } else { matched })
    }
}

/// Whether numbers of several types are compared, and floats among them: then the type of the comparison is not that of the widest.
fn mixes_floats(value: &Expr, items: &[Expr]) -> bool {
    let types = || std::iter::once(value).chain(items).map(Expr::ty).filter(|ty| *ty != SqlType::Unknown);
    let is_float = |ty: SqlType| matches!(ty, SqlType::Float4 | SqlType::Float8);
    let first = types().next();
    types().any(is_float) && types().all(|ty| ty.is_number()) && types().any(|ty| Some(ty) != first)
}

/// The library's word for an operator's symbol.
pub fn operator_named(symbol: &str) -> Option<B> {
    Some(match symbol {
        "=" => B::Eq,
        "<>" | "!=" => B::NotEq,
        "<" => B::Lt,
        "<=" => B::LtEq,
        ">" => B::Gt,
        ">=" => B::GtEq,
        "+" => B::Plus,
        "-" => B::Minus,
        "*" => B::Multiply,
        "/" => B::Divide,
        "%" => B::Modulo,
        "||" => B::StringConcat,
        "~" => B::PGRegexMatch,
        "~*" => B::PGRegexIMatch,
        "!~" => B::PGRegexNotMatch,
        "!~*" => B::PGRegexNotIMatch,
        "~~" => B::PGLikeMatch,
        "~~*" => B::PGILikeMatch,
        "!~~" => B::PGNotLikeMatch,
        "!~~*" => B::PGNotILikeMatch,
        _ => return None,
    })
}

/// The fields of a row that is written out: `(a, b)`, `ROW(a)`.
pub fn row_fields(expr: &ast::Expr) -> Option<Cow<'_, [ast::Expr]>> {
    match expr {
        ast::Expr::Tuple(fields) => Some(Cow::Borrowed(fields)),
        ast::Expr::Nested(inner) if matches!(**inner, ast::Expr::Tuple(_) | ast::Expr::Function(_)) => {
            row_fields(inner)
        }
        ast::Expr::Function(call) => {
            let [part] = call.name.0.as_slice() else { return None };
            let name = part.as_ident()?;
            let is_row = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("row") && call.over.is_none();
            match &call.args {
                ast::FunctionArguments::List(list) if is_row => {
                    let field = |arg: &ast::FunctionArg| match arg {
                        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                        _ => None,
                    };
                    list.args.iter().map(field).collect::<Option<Vec<_>>>().map(Cow::Owned)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The operator that LIKE and ILIKE stand for.
fn like_operator(symbol: &str, negated: bool) -> B {
    match (symbol, negated) {
        ("~~", false) => B::PGLikeMatch,
        ("~~", true) => B::PGNotLikeMatch,
        (_, false) => B::PGILikeMatch,
        (_, true) => B::PGNotILikeMatch,
    }
}

/// What `ALL (..)` is of, where the library has read it as a call.
pub fn argument_of_all(pattern: &ast::Expr) -> Option<&ast::Expr> {
    let ast::Expr::Function(call) = pattern else { return None };
    let [ast::ObjectNamePart::Identifier(name)] = call.name.0.as_slice() else { return None };
    let ast::FunctionArguments::List(list) = &call.args else { return None };
    let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(array))] = list.args.as_slice() else { return None };
    (name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all")).then_some(array)
}
