//! The evaluator over decoded values is the oracle.

use super::{Around, ByteFilter, Column, Test};
use crate::exec::row::{self, Source};
use crate::exec::table::ColumnAccess;
use crate::expr::function::{Function, MIDNIGHT, Sig, by_name};
use crate::expr::{CompareOp, Expr};
use crate::types::{Decimal, Numeric, SqlType, Value};
use proptest::prelude::*;

/// Two columns of each type, so that all can be compared with another.
const TYPES: [SqlType; 9] = [
    SqlType::Int4,
    SqlType::Int8,
    SqlType::Numeric(Some((15, 2))),
    SqlType::Numeric(None),
    SqlType::Date,
    SqlType::Timestamp(None),
    SqlType::Char(4),
    SqlType::Varchar(Some(9)),
    SqlType::Bool,
];

fn columns() -> Vec<ColumnAccess> {
    let all = TYPES.iter().chain(&TYPES).enumerate();
    all.map(|(place, ty)| ColumnAccess {
        id: place as u16 + 1,
        place: place as u16 + 1,
        ty: ty.clone(),
        nullable: true,
        missing: Value::Null,
    })
    .collect()
}

fn decimal(digits: i64, scale: i64) -> Value {
    Value::Numeric(Numeric::Finite(Decimal::new(digits.into(), scale)))
}

/// Few values, so that many are equal; and those at the edges.
fn value(ty: &SqlType) -> BoxedStrategy<Value> {
    const DAY_US: i64 = super::DAY_US;
    let days = || prop_oneof![4 => -2..3i32, 1 => Just(i32::MAX), 1 => Just(i32::MIN)];
    let some: BoxedStrategy<Value> = match ty {
        SqlType::Int4 => prop_oneof![3 => -2..3i32, 1 => any::<i32>()].prop_map(Value::Int4).boxed(),
        SqlType::Int8 => prop_oneof![3 => -2..3i64, 1 => any::<i64>()].prop_map(Value::Int8).boxed(),
        SqlType::Numeric(Some(_)) => (-300..300i64).prop_map(|n| decimal(n / 100 * 100, 2)).boxed(),
        SqlType::Numeric(None) => prop_oneof![
            4 => (-30..30i64, 0..4i64).prop_map(|(n, scale)| decimal(n, scale)),
            1 => any::<i64>().prop_map(|n| decimal(n, 0)),
            1 => any::<i64>().prop_map(|n| Value::Numeric(Numeric::Finite(
                Decimal::new(n.into(), 0).to_big().square().square().into()
            ))),
            1 => prop_oneof![Just(Numeric::NaN), Just(Numeric::Infinity), Just(Numeric::NegInfinity)]
                .prop_map(Value::Numeric),
        ]
        .boxed(),
        SqlType::Date => days().prop_map(Value::Date).boxed(),
        SqlType::Timestamp(_) => prop_oneof![
            4 => (-2..3i64, -1..2i64).prop_map(|(days, us)| Value::Timestamp(days * DAY_US + us)),
            1 => prop_oneof![Just(i64::MAX), Just(i64::MIN)].prop_map(Value::Timestamp),
        ]
        .boxed(),
        SqlType::Char(length) => {
            let length = *length as usize;
            "[ab é€\u{10FFFF}]{0,4}".prop_map(move |text| Value::Text(format!("{text:length$}").into())).boxed()
        }
        SqlType::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        _ => "[ab é€\u{10FFFF}]{0,4}".prop_map(|text| Value::Text(text.into())).boxed(),
    };
    prop_oneof![1 => Just(Value::Null), 8 => some].boxed()
}

fn op() -> impl Strategy<Value = CompareOp> {
    prop_oneof![
        Just(CompareOp::Eq),
        Just(CompareOp::NotEq),
        Just(CompareOp::Lt),
        Just(CompareOp::LtEq),
        Just(CompareOp::Gt),
        Just(CompareOp::GtEq),
    ]
}

fn column(place: usize) -> Box<Expr> {
    let ty = TYPES[place % TYPES.len()].clone();
    // A column of the binder's has the type without its length where it is compared.
    Box::new(match ty {
        SqlType::Varchar(_) => Expr::Cast {
            expr: Box::new(Expr::Column { index: place, ty: ty.clone() }),
            from: ty,
            to: SqlType::Text,
            explicit: false,
        },
        ty => Expr::Column { index: place, ty },
    })
}

/// A date as a timestamp.
fn stamp(expr: Expr) -> Box<Expr> {
    let function = by_name(MIDNIGHT)[0];
    Box::new(Expr::Call { function, args: vec![expr], types: vec![SqlType::Date], ty: SqlType::Timestamp(None) })
}

fn compared_as(ty: &SqlType) -> SqlType {
    if matches!(ty, SqlType::Varchar(_)) { SqlType::Text } else { ty.clone() }
}

fn is_text(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Char(_) | SqlType::Varchar(_))
}

/// The function of an operator over such a text and a pattern.
fn resolved(name: &str, ty: &SqlType) -> &'static Function {
    let of_char = matches!(ty, SqlType::Char(_));
    let all = by_name(name).iter().filter(|function| function.args.len() == 2);
    let mut of = all.filter(|function| matches!(function.args[0], Sig::Is(SqlType::Char(_))) == of_char);
    of.next().expect("it is there")
}

/// LIKE or NOT LIKE over the column of a place.
fn like(place: usize, negated: bool, pattern: Expr) -> Expr {
    let ty = compared_as(&TYPES[place % TYPES.len()]);
    let function = resolved(if negated { "!~~" } else { "~~" }, &ty);
    Expr::Call { function, args: vec![*column(place), pattern], types: vec![ty, SqlType::Text], ty: SqlType::Bool }
}

/// A condition of which all parts can be tests.
fn condition() -> impl Strategy<Value = Expr> {
    let count = TYPES.len();
    let with_constant = (0..2 * count, op(), any::<bool>()).prop_flat_map(move |(place, op, turned)| {
        let ty = compared_as(&TYPES[place % count]);
        value(&TYPES[place % count]).prop_map(move |with| {
            let constant = Box::new(Expr::Literal(with, ty.clone()));
            let (left, right) = if turned { (constant, column(place)) } else { (column(place), constant) };
            Expr::Compare { op, ty: ty.clone(), left, right }
        })
    });
    let with_column = (0..count, op()).prop_map(move |(place, op)| Expr::Compare {
        op,
        ty: compared_as(&TYPES[place]),
        left: column(place),
        right: column(place + count),
    });
    let date = TYPES.iter().position(|ty| *ty == SqlType::Date).unwrap_or_default();
    let midnight = (op(), value(&SqlType::Timestamp(None)), any::<bool>()).prop_map(move |(op, with, constant)| {
        let right = if constant { Box::new(Expr::Literal(with, SqlType::Timestamp(None))) } else { column(date + 1) };
        Expr::Compare { op, ty: SqlType::Timestamp(None), left: stamp(*column(date)), right }
    });
    let within = (0..2 * count, any::<bool>()).prop_flat_map(move |(place, negated)| {
        let place = if matches!(TYPES[place % count], SqlType::Numeric(_)) { 0 } else { place };
        let ty = compared_as(&TYPES[place % count]);
        prop::collection::vec(value(&TYPES[place % count]), 1..5).prop_map(move |list| Expr::InList {
            ty: ty.clone(),
            expr: column(place),
            list: list.into_iter().map(|item| Expr::Literal(item, ty.clone())).collect(),
            negated,
        })
    });
    let is_null =
        (0..2 * count, any::<bool>()).prop_map(|(place, negated)| Expr::IsNull { expr: column(place), negated });
    let texts: Vec<usize> = (0..2 * count).filter(|place| is_text(&TYPES[place % count])).collect();
    let pattern =
        prop_oneof![8 => "[ab %é€\u{10FFFF}]{0,5}".prop_map(|text| Value::Text(text.into())), 1 => Just(Value::Null)];
    let like = (prop::sample::select(texts), any::<bool>(), pattern)
        .prop_map(move |(place, negated, pattern)| like(place, negated, Expr::Literal(pattern, SqlType::Text)));
    let one = prop_oneof![3 => with_constant, 2 => with_column, 1 => midnight, 1 => within, 1 => is_null, 2 => like];
    one.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Expr::And),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Expr::Or),
            inner.clone().prop_map(|expr| Expr::Not(Box::new(expr))),
            // Alternatives that have something in common, one of which may ask nothing else.
            (inner.clone(), prop::collection::vec(prop::collection::vec(inner, 0..3), 1..4)).prop_map(
                |(common, alternatives)| {
                    let with_common = |mut parts: Vec<Expr>| {
                        parts.insert(parts.len() / 2, common.clone());
                        Expr::And(parts)
                    };
                    Expr::Or(alternatives.into_iter().map(with_common).collect())
                }
            ),
        ]
    })
}

fn values() -> impl Strategy<Value = Vec<Value>> {
    TYPES.iter().chain(&TYPES).map(value).collect::<Vec<_>>()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_test_says_what_the_expression_does(condition in condition(), row in values(), short in 0..19usize) {
        let columns = columns();
        let around = Around { columns: &columns, base: 0, row: &[], params: &[] };
        let (filter, count) = ByteFilter::compile(std::iter::once(&condition), around);
        prop_assert_eq!(count, 1, "no test");
        // Columns that were added behind are missing in older rows.
        let kept = row.len().min(short.max(1));
        let stored = row::encode(kept, |place| Source::Value(&row[place])).unwrap();
        let row: Vec<Value> =
            row.iter().enumerate().map(|(at, value)| if at < kept { value.clone() } else { Value::Null }).collect();
        let expected = matches!(condition.eval_alone(&row).unwrap(), Value::Bool(true));
        prop_assert_eq!(filter.passes(&stored).unwrap(), expected, "{:?} of {:?}", condition, row);
    }

    /// Parts of a text stand in the pattern for it, and some are of more bytes than are compiled: letters of one to four bytes, many of which share a byte.
    /// The pattern is a literal, a parameter, or a column around the table.
    #[test]
    fn like_says_of_long_texts_what_the_evaluator_does(
        text in "(é|€|\u{10FFFF}|a|b|[\u{e0}-\u{ff}]|(ab){30,40}|é{30,40}){0,6}",
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4),
        (begins, ends) in any::<(bool, bool)>(),
        other in prop::option::weighted(0.2, "[é€a]"),
        (negated, from) in (any::<bool>(), 0..3usize),
    ) {
        let letters: Vec<char> = text.chars().collect();
        let mut parts: Vec<String> = cuts
            .iter()
            .map(|(from, to)| (from.index(letters.len() + 1), to.index(letters.len() + 1)))
            .map(|(from, to)| letters[from.min(to)..from.max(to)].iter().collect())
            .chain(other)
            .collect();
        if begins {
            parts.insert(0, String::new());
        }
        if ends {
            parts.push(String::new());
        }
        let pattern = parts.join("%");
        let is_long = pattern.split('%').any(|part| part.len() > 64);
        let varchar = TYPES.iter().position(|ty| matches!(ty, SqlType::Varchar(_))).unwrap();
        let row: Vec<Value> = (0..TYPES.len())
            .map(|place| if place == varchar { Value::Text(text.as_str().into()) } else { Value::Null })
            .collect();
        let stored = row::encode(row.len(), |place| Source::Value(&row[place])).unwrap();
        let value = Value::Text(pattern.as_str().into());
        let literal = like(varchar, negated, Expr::Literal(value.clone(), SqlType::Text));
        let expected = matches!(literal.eval_alone(&row).unwrap(), Value::Bool(true));
        let given = std::slice::from_ref(&value);
        let mut condition = literal.clone();
        let mut around = Around { columns: &columns(), base: 0, row: &[], params: &[] };
        match from {
            1 => {
                condition = like(varchar, negated, Expr::Parameter { index: 0, ty: SqlType::Text });
                around.params = given;
            }
            2 => {
                // Columns of the table come behind that of the row around it.
                condition = like(varchar, negated, Expr::Column { index: 0, ty: SqlType::Text });
                if let Expr::Call { args, .. } = &mut condition && let Expr::Cast { expr, .. } = &mut args[0] {
                    **expr = Expr::Column { index: varchar + 1, ty: TYPES[varchar].clone() };
                }
                (around.base, around.row) = (1, given);
            }
            _ => {}
        }
        let (filter, count) = ByteFilter::compile(std::iter::once(&condition), around);
        prop_assert_eq!(count, usize::from(!is_long), "{}", pattern);
        if !is_long {
            prop_assert_eq!(filter.passes(&stored).unwrap(), expected, "{:?} of {:?}, negated: {}", pattern, text, negated);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read(condition in condition(), bytes in any::<Vec<u8>>()) {
        let columns = columns();
        let around = Around { columns: &columns, base: 0, row: &[], params: &[] };
        let (filter, _) = ByteFilter::compile(std::iter::once(&condition), around);
        let _ = filter.passes(&bytes);
    }
}

#[test]
fn conditions_behind_one_that_is_no_test_are_left() {
    let columns = columns();
    let compare = |left: Box<Expr>| Expr::Compare {
        op: CompareOp::Eq,
        ty: SqlType::Int4,
        left,
        right: Box::new(Expr::literal(Value::Int4(1))),
    };
    let plain = compare(column(0));
    let quotient = compare(Box::new(Expr::Arithmetic {
        op: crate::expr::ArithmeticOp::Div,
        ty: SqlType::Int4,
        left: Box::new(Expr::literal(Value::Int4(1))),
        right: column(0),
    }));
    let around = Around { columns: &columns, base: 0, row: &[], params: &[] };
    let conditions = [plain.clone(), quotient, plain];
    let (filter, count) = ByteFilter::compile(conditions.iter(), around);
    assert_eq!((filter.tests.len(), count), (1, 1));
}

/// `(a AND b) OR (a AND c)` asks `a` once, and first.
#[test]
fn what_alternatives_have_in_common_is_asked_once() {
    let columns = columns();
    let is = |place: usize, n: i32| Expr::Compare {
        op: CompareOp::Eq,
        ty: SqlType::Int4,
        left: column(place),
        right: Box::new(Expr::literal(Value::Int4(n))),
    };
    let other = TYPES.len();
    let condition = Expr::Or((0..3).map(|n| Expr::And(vec![is(other, n), is(0, 7)])).collect());
    let around = Around { columns: &columns, base: 0, row: &[], params: &[] };
    let (filter, _) = ByteFilter::compile(std::iter::once(&condition), around);
    let [Test::And(parts)] = filter.tests.as_slice() else { panic!("{filter:?}") };
    let [Test::Word(Column { id: 1 }, .., 7), Test::Or(alternatives)] = parts.as_slice() else { panic!("{filter:?}") };
    assert_eq!(alternatives.len(), 3);
}

#[test]
fn a_column_with_a_value_in_older_rows_has_no_test() {
    let mut columns = columns();
    columns[0].missing = Value::Int4(7);
    let around = Around { columns: &columns, base: 0, row: &[], params: &[] };
    let condition = Expr::IsNull { expr: column(0), negated: false };
    assert!(ByteFilter::compile(std::iter::once(&condition), around).0.is_empty());
}

#[test]
fn what_stands_around_the_table_is_a_constant() {
    let columns = columns();
    let (outer, params) = ([Value::Int4(5)], [Value::Int4(6)]);
    let around = Around { columns: &columns, base: 1, row: &outer, params: &params };
    let own = Box::new(Expr::Column { index: 1, ty: SqlType::Int4 });
    let compare =
        |right: Expr| Expr::Compare { op: CompareOp::Eq, ty: SqlType::Int4, left: own.clone(), right: Box::new(right) };
    let stored = |n: i32| {
        let value = Value::Int4(n);
        row::encode(1, |_| Source::Value(&value)).unwrap()
    };
    for (right, n) in
        [(Expr::Column { index: 0, ty: SqlType::Int4 }, 5), (Expr::Parameter { index: 0, ty: SqlType::Int4 }, 6)]
    {
        let condition = compare(right);
        let (filter, _) = ByteFilter::compile(std::iter::once(&condition), around);
        assert!(filter.passes(&stored(n)).unwrap() && !filter.passes(&stored(n + 1)).unwrap());
    }
}
