use super::*;
use proptest::prelude::*;

fn scalar() -> impl Strategy<Value = (SqlType, Value)> {
    prop_oneof![
        any::<bool>().prop_map(|v| (SqlType::Bool, Value::Bool(v))),
        any::<i16>().prop_map(|v| (SqlType::Int2, Value::Int2(v))),
        any::<i32>().prop_map(|v| (SqlType::Int4, Value::Int4(v))),
        any::<i64>().prop_map(|v| (SqlType::Int8, Value::Int8(v))),
        (-1e30..1e30f64).prop_map(|v| (SqlType::Float8, Value::Float8(v))),
        ".{0,20}".prop_map(|v| (SqlType::Text, Value::Text(v.into()))),
        (any::<i64>(), -5i64..20).prop_map(|(n, s)| {
            (SqlType::Numeric(None), Value::Numeric(Numeric::Finite(Decimal::new(n.into(), s))))
        }),
        any::<[u8; 16]>().prop_map(|v| (SqlType::Uuid, Value::Uuid(v))),
        any::<Vec<u8>>().prop_map(|v| (SqlType::Bytea, Value::Bytea(v.into()))),
        Just((SqlType::Int4, Value::Null)),
    ]
}

proptest! {
    #[test]
    fn every_column_comes_back(columns in prop::collection::vec(scalar(), 0..12)) {
        let bytes = encode(columns.len(), |i| Source::Value(&columns[i].1)).unwrap();
        let view = RowView::new(&bytes).unwrap();
        for (i, (ty, value)) in columns.iter().enumerate() {
            let got = match view.column(i as u16 + 1).unwrap() {
                Stored::Bytes(b) => decode(ty, b).unwrap(),
                Stored::Null => Value::Null,
                Stored::Missing => panic!("missing"),
            };
            prop_assert_eq!(&got, value);
        }
        prop_assert_eq!(view.column(columns.len() as u16 + 1).unwrap(), Stored::Missing);
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in any::<Vec<u8>>(), id in 1u16..8) {
        if let Ok(view) = RowView::new(&bytes) && let Ok(Stored::Bytes(b)) = view.column(id) {
            for ty in [SqlType::Int4, SqlType::Text, SqlType::Numeric(None), SqlType::Array(Box::new(SqlType::Text))] {
                let _ = decode(&ty, b);
            }
        }
    }
}

#[test]
fn a_long_row_takes_the_wide_form() {
    let long = Value::Text("x".repeat(40_000).into());
    let values = [Value::Int4(7), long.clone(), Value::Null, Value::Int4(9)];
    let bytes = encode(4, |i| Source::Value(&values[i])).unwrap();
    let view = RowView::new(&bytes).unwrap();
    assert_eq!(bytes[0], WIDE);
    let Stored::Bytes(b) = view.column(2).unwrap() else { panic!() };
    assert_eq!(decode(&SqlType::Text, b).unwrap(), long);
    assert_eq!(view.column(3).unwrap(), Stored::Null);
    let Stored::Bytes(b) = view.column(4).unwrap() else { panic!() };
    assert_eq!(decode(&SqlType::Int4, b).unwrap(), Value::Int4(9));
}

#[test]
fn a_row_above_the_limit_is_refused() {
    let long = Value::Text("x".repeat(ROW_MAX_BYTES).into());
    assert_eq!(encode(1, |_| Source::Value(&long)).unwrap_err().state, SqlState::PROGRAM_LIMIT_EXCEEDED);
}

#[test]
fn an_array_with_nulls_comes_back() {
    let array = Array {
        element: SqlType::Int4,
        dimensions: vec![(2, 1), (2, 1)],
        values: vec![Value::Int4(1), Value::Null, Value::Int4(3), Value::Int4(4)],
    };
    let mut out = Vec::new();
    encode_value(&Value::Array(Arc::new(array.clone())), &mut out);
    assert_eq!(decode(&SqlType::Array(Box::new(SqlType::Int4)), &out).unwrap(), Value::Array(Arc::new(array)));
}
