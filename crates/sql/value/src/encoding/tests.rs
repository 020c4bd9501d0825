use super::key::{decode_value, encode_value, is_exact, skip_value};
use super::span;
use crate::types::EvalSettings;
use crate::types::{Array, Decimal, Interval, Numeric, SqlType, Value, ZonedTime};
use proptest::prelude::*;
use std::sync::Arc;

fn numeric() -> impl Strategy<Value = Numeric> {
    prop_oneof![
        6 => (any::<i64>(), 0i64..25).prop_map(|(digits, scale)| Numeric::Finite(Decimal::new(digits.into(), scale))),
        2 => (-200i64..200, 0i64..4).prop_map(|(digits, scale)| Numeric::Finite(Decimal::new(digits.into(), scale))),
        1 => "-?[1-9][0-9]{0,40}(\\.[0-9]{1,30})?".prop_map(|text| Numeric::parse(&text).unwrap()),
        1 => prop_oneof![Just(Numeric::NaN), Just(Numeric::Infinity), Just(Numeric::NegInfinity)],
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[ab\u{0}\u{1}\u{ff} ]{0,6}"]
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?[1-9][0-9]{0,3}(\\.[0-9])?",
        "[a-c]{0,3}".prop_map(|s| format!("\"{s}\"")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|list| format!("[{}]", list.join(","))),
            prop::collection::vec(("[a-c]{1,2}", inner), 0..4).prop_map(|list| {
                let members: Vec<String> = list.into_iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// Values of one type.
fn values_of(ty: &SqlType) -> BoxedStrategy<Value> {
    let plain = match ty {
        SqlType::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        SqlType::Int2 => any::<i16>().prop_map(Value::Int2).boxed(),
        SqlType::Int4 => any::<i32>().prop_map(Value::Int4).boxed(),
        SqlType::Int8 => any::<i64>().prop_map(Value::Int8).boxed(),
        SqlType::Oid => any::<u32>().prop_map(Value::Oid).boxed(),
        SqlType::Float4 => {
            prop_oneof![any::<f32>(), Just(0.0), Just(-0.0), Just(f32::NAN)].prop_map(Value::Float4).boxed()
        }
        SqlType::Float8 => {
            prop_oneof![any::<f64>(), Just(0.0), Just(-0.0), Just(f64::NAN)].prop_map(Value::Float8).boxed()
        }
        SqlType::Numeric(_) => numeric().prop_map(Value::Numeric).boxed(),
        SqlType::Char(_) => {
            "[ab\u{1} ]{0,4}".prop_map(|s| Value::fit_string(&s, &SqlType::Char(5), true).unwrap()).boxed()
        }
        SqlType::Bytea => prop::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(0xff)], 0..6)
            .prop_map(|b| Value::Bytea(b.into()))
            .boxed(),
        SqlType::Date => any::<i32>().prop_map(Value::Date).boxed(),
        SqlType::Time(_) => (0i64..=86_400_000_000).prop_map(Value::Time).boxed(),
        SqlType::Timetz(_) => (0i64..=86_400_000_000, -57_599i32..57_600)
            .prop_map(|(micros, west_s)| Value::Timetz(ZonedTime { micros, west_s }))
            .boxed(),
        SqlType::Timestamp(_) => any::<i64>().prop_map(Value::Timestamp).boxed(),
        SqlType::Timestamptz(_) => any::<i64>().prop_map(Value::Timestamptz).boxed(),
        SqlType::Interval(_) => prop_oneof![
            (any::<i16>(), any::<i16>(), any::<i64>()),
            (-3i16..3, -40i16..40, -90_000_000_000i64..90_000_000_000),
        ]
        .prop_map(|(months, days, micros)| {
            Value::Interval(Interval { months: months.into(), days: days.into(), micros })
        })
        .boxed(),
        SqlType::Uuid => any::<[u8; 16]>().prop_map(Value::Uuid).boxed(),
        SqlType::Jsonb => {
            json().prop_map(|j| Value::parse_text(&SqlType::Jsonb, &j, &EvalSettings::default()).unwrap()).boxed()
        }
        SqlType::Array(element) => {
            let element = (**element).clone();
            prop::collection::vec(values_of(&element), 0..4)
                .prop_map(move |values| Value::Array(Arc::new(Array::from_values(element.clone(), values))))
                .boxed()
        }
        _ => text().prop_map(Value::text).boxed(),
    };
    prop_oneof![9 => plain, 1 => Just(Value::Null)].boxed()
}

fn types() -> Vec<SqlType> {
    let mut types = vec![
        SqlType::Bool,
        SqlType::Int2,
        SqlType::Int4,
        SqlType::Int8,
        SqlType::Oid,
        SqlType::Float4,
        SqlType::Float8,
        SqlType::Numeric(None),
        SqlType::Text,
        SqlType::Varchar(None),
        SqlType::Char(5),
        SqlType::Bytea,
        SqlType::Date,
        SqlType::Time(None),
        SqlType::Timetz(None),
        SqlType::Timestamp(None),
        SqlType::Timestamptz(None),
        SqlType::Interval(None),
        SqlType::Uuid,
        SqlType::Jsonb,
    ];
    types.extend([SqlType::Int4, SqlType::Text, SqlType::Numeric(None)].map(|ty| SqlType::Array(Box::new(ty))));
    types
}

fn typed_pair() -> impl Strategy<Value = (SqlType, Value, Value)> {
    prop::sample::select(types()).prop_flat_map(|ty| (Just(ty.clone()), values_of(&ty), values_of(&ty)))
}

fn encoded(value: &Value, ty: &SqlType, descending: bool) -> Vec<u8> {
    let mut out = Vec::new();
    encode_value(value, ty, descending, &mut out);
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn keys_order_as_values_do((ty, a, b) in typed_pair()) {
        let wanted = a.compare(&b, &ty);
        prop_assert_eq!(encoded(&a, &ty, false).cmp(&encoded(&b, &ty, false)), wanted, "ascending {}", ty);
        prop_assert_eq!(encoded(&a, &ty, true).cmp(&encoded(&b, &ty, true)), wanted.reverse(), "descending {}", ty);
    }

    #[test]
    fn keys_are_read_back_and_delimit_themselves((ty, a, b) in typed_pair(), descending: bool) {
        let mut key = encoded(&a, &ty, descending);
        encode_value(&b, &ty, !descending, &mut key);
        let mut rest = key.as_slice();
        let first = decode_value(&mut rest, &ty, descending).unwrap();
        let second = decode_value(&mut rest, &ty, !descending).unwrap();
        prop_assert!(rest.is_empty());
        prop_assert!(first.same(&a, &ty) && second.same(&b, &ty), "{:?} {:?}", first, second);
        if is_exact(&ty) {
            prop_assert_eq!(&first, &a);
        }
        let mut skipped = key.as_slice();
        skip_value(&mut skipped, &ty, descending).unwrap();
        let behind = encoded(&b, &ty, !descending);
        prop_assert_eq!(skipped, behind.as_slice());
    }

    #[test]
    fn no_key_of_another_value_begins_with_a_key((ty, a, b) in typed_pair()) {
        let (a_key, b_key) = (encoded(&a, &ty, false), encoded(&b, &ty, false));
        prop_assert!(a_key == b_key || !b_key.starts_with(&a_key));
    }

    #[test]
    fn damaged_keys_are_refused_not_fatal(ty in prop::sample::select(types()), bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        for descending in [false, true] {
            let mut rest = bytes.as_slice();
            let _ = decode_value(&mut rest, &ty, descending);
            let mut rest = bytes.as_slice();
            let _ = skip_value(&mut rest, &ty, descending);
        }
    }

    #[test]
    fn binary_form_is_read_back((ty, a, _) in typed_pair()) {
        let in_range = match &a {
            Value::Date(d) => crate::types::checked_day(i64::from(*d)).is_ok(),
            Value::Timestamp(t) | Value::Timestamptz(t) => crate::types::checked_timestamp(*t).is_ok(),
            _ => true,
        };
        let holds_zero_byte = matches!(&a, Value::Text(text) if text.contains('\0'))
            || matches!(&a, Value::Array(array) if array.values.iter().any(|v| v.as_str().is_some_and(|s| s.contains('\0'))));
        if !a.is_null() && in_range && !holds_zero_byte {
            let mut bytes = Vec::new();
            a.write_binary(&ty, &mut bytes);
            let back = Value::parse_binary(&ty, &bytes).unwrap();
            prop_assert!(back.same(&a, &ty), "{:?} {:?}", back, a);
        }
    }

    #[test]
    fn text_form_is_read_back((ty, a, _) in typed_pair()) {
        let in_range = match &a {
            Value::Date(d) => crate::types::checked_day(i64::from(*d)).is_ok(),
            Value::Timestamp(t) | Value::Timestamptz(t) => crate::types::checked_timestamp(*t).is_ok(),
            _ => true,
        };
        if !a.is_null() && in_range {
            let settings = EvalSettings::default();
            let text = a.to_text(&ty, &settings);
            let back = Value::parse_text(&ty, &text, &settings).unwrap();
            prop_assert!(back.same(&a, &ty), "{:?} {:?} {}", back, a, text);
        }
    }
}

#[test]
fn the_end_of_a_prefix() {
    assert_eq!(span::prefix_end(b"ab"), b"ac");
    assert_eq!(span::prefix_end(b"a\xff"), b"b");
    assert_eq!(span::prefix_end(b"\xff\xff"), b"");
    assert_eq!(span::index_of(&span::index_prefix(7)), Some(7));
}
