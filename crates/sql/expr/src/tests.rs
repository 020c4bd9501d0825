use super::arithmetic;
use super::{
    ArithmeticOp, BindContext, BindError, Expr, Parameters, Scope, ScopeColumn, Volatility, bind, bind_condition,
    split_conjuncts,
};
use crate::SqlState;
use crate::syntax::output_name;
use crate::types::EvalSettings;
use crate::types::{SqlType, Value};
use crate::work::Pace;
use sqlparser::ast::{self, SelectItem, SetExpr, Statement};

fn parse(text: &str) -> ast::Expr {
    let dialect = sqlparser::dialect::PostgreSqlDialect {};
    let mut statements = sqlparser::parser::Parser::parse_sql(&dialect, &format!("SELECT {text}")).unwrap();
    let Some(Statement::Query(query)) = statements.pop() else { panic!("{text} is no query") };
    let SetExpr::Select(mut select) = *query.body else { panic!("{text} is no select") };
    match select.projection.pop() {
        Some(SelectItem::UnnamedExpr(expr)) => expr,
        other => panic!("{text} is {other:?}"),
    }
}

/// `t (i int4, b int8, n numeric, t text, v varchar(10), c char(5), d date, ts timestamptz, a int4[], j jsonb, f bool)` and `u (i int4)`
fn scope() -> Scope {
    let mut scope = Scope::new();
    let array = SqlType::Array(Box::new(SqlType::Int4));
    let columns = [
        ("i", SqlType::Int4),
        ("b", SqlType::Int8),
        ("n", SqlType::Numeric(None)),
        ("t", SqlType::Text),
        ("v", SqlType::Varchar(Some(10))),
        ("c", SqlType::Char(5)),
        ("d", SqlType::Date),
        ("ts", SqlType::Timestamptz(None)),
        ("a", array),
        ("j", SqlType::Jsonb),
        ("f", SqlType::Bool),
    ];
    scope.add_relation(Some("public"), "t", columns.iter().map(|(name, ty)| (*name, ty)));
    scope.add_relation(None, "u", [("i", &SqlType::Int4), ("Quoted", &SqlType::Int4)]);
    scope.add_column(ScopeColumn {
        relation: "excluded".into(),
        schema: None,
        name: "t".into(),
        ty: SqlType::Text,
        qualified_only: true,
    });
    scope
}

fn bound(text: &str, declared: &[SqlType]) -> Result<(Expr, Vec<SqlType>), BindError> {
    let settings = EvalSettings::default();
    let context = BindContext { settings: &settings, objects: None, pace: &Pace::default() };
    let mut parameters = Parameters::new(declared);
    let expr = bind(&parse(text), &scope(), &mut parameters, &context)?;
    Ok((expr, parameters.types().to_vec()))
}

fn parameter_types(text: &str) -> String {
    match bound(text, &[]) {
        Ok((_, types)) => types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        Err(error) => format!("{error:?}"),
    }
}

#[test]
fn parameters_take_the_type_of_what_they_meet() {
    for (text, wanted) in [
        ("t.i = $1", "integer"),
        ("$1 < b", "bigint"),
        ("v = $1", "text"),
        ("c = $1", "character"),
        ("n + $1", "numeric"),
        ("b + $1 = $2", "bigint, bigint"),
        ("t.i BETWEEN $1 AND $2", "integer, integer"),
        ("t.i IN ($1, $2)", "integer, integer"),
        ("t.i = ANY ($1)", "integer[]"),
        ("ts > $1", "timestamp with time zone"),
        ("ts - $1 > interval '1 day'", "timestamp with time zone"),
        ("t.t LIKE $1", "text"),
        ("$1 = $2", "text, text"),
        ("$1 || 'x'", "text"),
        ("lower($1)", "text"),
        ("substring(t.t, $1, $2)", "text, text"),
        ("j -> $1", "text"),
        ("j @> $1", "jsonb"),
        ("coalesce($1, t.i)", "integer"),
        ("nullif($1, 'x')", "text"),
        ("CASE WHEN $1 THEN $2 ELSE t.i END", "boolean, integer"),
        ("$1::int8", "bigint"),
        ("$1::regclass", "text"),
        ("CAST($1 AS date)", "date"),
        ("f AND $1", "boolean"),
        ("NOT $1", "boolean"),
        ("$1 IS NULL", "text"),
        ("a[$1]", "integer"),
        ("greatest($1, 1.5)", "numeric"),
        ("abs($1)", "double precision"),
        ("ARRAY[$1, 2]", "integer"),
        ("$2 + t.i", "unknown, integer"),
        ("$1 = t.i AND b = $1", "integer"),
        ("(t.i, t.t) = ($1, $2)", "integer, text"),
    ] {
        assert_eq!(parameter_types(text), wanted, "{text}");
    }
}

#[test]
fn declared_types_stay() {
    let (expr, types) = bound("t.i = $1", &[SqlType::Int8]).unwrap();
    assert_eq!(types, [SqlType::Int8]);
    let Expr::Compare { ty, left, .. } = expr else { panic!("not a comparison") };
    assert_eq!((ty, left.ty()), (SqlType::Int8, SqlType::Int8));
    assert!(Parameters::none().reference("$1").is_err());
    assert!(Parameters::new(&[]).reference("$0").is_err());
    assert!(Parameters::new(&[]).reference("$65536").is_err());
    let mut open = Parameters::new(&[]);
    open.reference("$2").unwrap();
    assert_eq!(open.finish().unwrap_err().state, SqlState::INDETERMINATE_DATATYPE);
}

#[test]
fn names_are_found_or_explained() {
    let message = |text: &str| match bound(text, &[]) {
        Ok((expr, _)) => format!("{:?}", expr.columns()),
        Err(BindError::Sql(error)) => format!("{} {}", error.state.as_str(), error.message),
        Err(other) => format!("{other:?}"),
    };
    for (text, wanted) in [
        ("t.i", "[0]"),
        ("T.I + u.i", "[0, 11]"),
        ("public.t.b", "[1]"),
        ("\"Quoted\"", "[12]"),
        ("excluded.t || t.t", "[3, 13]"),
        ("i", "42702 column reference \"i\" is ambiguous"),
        ("quoted", "42703 column \"quoted\" does not exist"),
        ("t.nosuch", "42703 column t.nosuch does not exist"),
        ("w.i", "42P01 missing FROM-clause entry for table \"w\""),
        ("t.t + 1", "42883 operator does not exist: text + integer"),
        ("t.t AND f", "42804 argument of AND must be type boolean, not type text"),
        ("j = 1", "42883 operator does not exist: jsonb = integer"),
        ("t.i = 'x'", "22P02 invalid input syntax for type integer: \"x\""),
        ("nosuch(t.i)", "42883 function nosuch(integer) does not exist"),
        ("count(*)", "NeedsEngine(\"an aggregate function\")"),
        ("sum(b) OVER ()", "NeedsEngine(\"a window function\")"),
        ("(SELECT 1)", "NeedsEngine(\"a subquery\")"),
        ("b IN (SELECT 1)", "NeedsEngine(\"a subquery\")"),
        ("EXISTS (SELECT 1)", "NeedsEngine(\"a subquery\")"),
        ("unnest(a)", "NeedsEngine(\"a set-returning function\")"),
    ] {
        assert_eq!(message(text), wanted, "{text}");
    }
    let settings = EvalSettings::default();
    let context = BindContext { settings: &settings, objects: None, pace: &Pace::default() };
    let error = bind_condition(&parse("b"), "WHERE", &scope(), &mut Parameters::none(), &context).unwrap_err();
    assert_eq!(error.into_sql().message, "argument of WHERE must be type boolean, not type bigint");
}

#[test]
fn what_is_constant_is_folded_and_what_is_not_is_told() {
    let volatility = |text: &str| bound(text, &[]).unwrap().0.volatility();
    assert!(matches!(bound("1 + 2 * 3", &[]).unwrap().0, Expr::Literal(Value::Int4(7), SqlType::Int4)));
    assert!(matches!(bound("upper('a') || 'b'", &[]).unwrap().0, Expr::Literal(Value::Text(_), SqlType::Text)));
    assert!(matches!(bound("date '2020-01-01' + 1", &[]).unwrap().0, Expr::Literal(Value::Date(_), SqlType::Date)));
    for text in [
        "now()",
        "current_date",
        "timestamptz '2020-01-01'",
        "date 'today'",
        "$1 = t.i",
        "ts + interval '1 day'",
        "ts::text",
    ] {
        assert_eq!(volatility(text), Volatility::Stable, "{text}");
    }
    for text in ["random()", "gen_random_uuid()", "clock_timestamp()"] {
        assert_eq!(volatility(text), Volatility::Volatile, "{text}");
    }
    assert_eq!(volatility("timestamptz '2020-01-01 00:00+00'"), Volatility::Immutable);
    // Not evaluated before its branch is taken.
    assert!(bound("CASE WHEN f THEN 1 ELSE t.i / 0 END", &[]).is_ok());
}

#[test]
fn long_chains_and_deep_nests() {
    let chain = vec!["f"; 5_000].join(" OR ");
    let (expr, _) = bound(&chain, &[]).unwrap();
    assert!(matches!(expr, Expr::Or(parts) if parts.len() == 5_000));
    let sum = format!("t.i{}", " + 1".repeat(1_500));
    assert!(matches!(bound(&sum, &[]).unwrap().0, Expr::Arithmetic { .. }));
    let too_long = format!("t.i{}", " + 1".repeat(crate::syntax::depth::LINKS_MAX + 1));
    sql_value::stack::roomy(|| {
        assert!(matches!(bound(&too_long, &[]), Err(BindError::Sql(error)) if error.state == SqlState::TOO_COMPLEX));
    });
    let parts = split_conjuncts(bound("f AND (t.i = 1 AND (b = 2 AND true)) AND (f OR f)", &[]).unwrap().0);
    assert_eq!(parts.len(), 4);
}

#[test]
fn result_columns_are_named_as_postgresql_names_them() {
    for (text, wanted) in [
        ("t.i", "i"),
        ("1 + 1", "?column?"),
        ("lower('x')", "lower"),
        ("'1'::int", "int4"),
        ("t.i::int8", "i"),
        ("CASE WHEN f THEN t.i END", "case"),
        ("CASE WHEN f THEN 1 ELSE t.i END", "i"),
        ("coalesce(t.t, 'x')", "coalesce"),
        ("ARRAY[1]", "array"),
        ("ROW(1, 2)", "row"),
        ("extract(year from d)", "extract"),
        ("current_date", "current_date"),
        ("date '2020-01-01'", "date"),
        ("interval '1 day'", "interval"),
        ("\"Quoted\"", "Quoted"),
        ("(SELECT 1 AS x)", "x"),
        ("EXISTS (SELECT 1)", "exists"),
        ("trim(t.t)", "btrim"),
        ("substring(t.t from 1)", "substring"),
        ("true", "?column?"),
        ("a[1]", "a"),
        ("t.i = 1", "?column?"),
        ("ts AT TIME ZONE 'UTC'", "timezone"),
        ("nullif(1, 2)", "nullif"),
    ] {
        assert_eq!(output_name(&parse(text)), wanted, "{text}");
    }
}

/// Float4 is computed in float8 and rounded: the machine's own float4 is the oracle, subnormal numbers included.
#[test]
fn float4_arithmetic_is_that_of_the_machine() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut any = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    };
    for turn in 0..40_000 {
        // Of the least exponents; beside it another, or one about 1, by which it is multiplied and divided into subnormal numbers.
        let (a, b) = (f32::from_bits(any() & 0x87ff_ffff), any());
        let b = f32::from_bits(if turn % 2 == 0 { b & 0x87ff_ffff } else { b & 0x83ff_ffff | 0x3c00_0000 });
        for (op, expected) in [
            (ArithmeticOp::Add, a + b),
            (ArithmeticOp::Sub, a - b),
            (ArithmeticOp::Mul, a * b),
            (ArithmeticOp::Div, a / b),
            (ArithmeticOp::Mod, a % b),
        ] {
            if let Ok(Value::Float4(result)) = arithmetic::apply(op, &Value::Float4(a), &Value::Float4(b)) {
                assert_eq!(result.to_bits(), expected.to_bits(), "{a:e} {op:?} {b:e}");
            }
        }
    }
}
