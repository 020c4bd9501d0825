use super::{Decimal, exact};
use crate::SqlError;
use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use proptest::prelude::*;
use std::cmp::Ordering;

/// Near powers of two, where words end, near powers of ten, where digits begin, small ones, and any.
fn digits() -> impl Strategy<Value = BigInt> {
    let near_bit = (0u32..140, -3i64..4).prop_map(|(bit, off)| (BigInt::from(1) << bit) + off);
    let near_ten = (0u32..42, -3i64..4).prop_map(|(tens, off)| BigInt::from(10).pow(tens) + off);
    let rounded = (any::<i64>(), 0u32..22).prop_map(|(front, tens)| BigInt::from(front) * BigInt::from(10).pow(tens));
    let positive = prop_oneof![
        3 => near_bit,
        2 => near_ten,
        2 => rounded,
        3 => any::<i32>().prop_map(BigInt::from),
        2 => any::<i64>().prop_map(BigInt::from),
        2 => any::<i128>().prop_map(BigInt::from),
        1 => (any::<i128>(), any::<i64>()).prop_map(|(a, b)| BigInt::from(a) * b),
    ];
    (positive, any::<bool>()).prop_map(|(digits, negative)| if negative { -digits } else { digits })
}

fn scale() -> impl Strategy<Value = i64> {
    prop_oneof![6 => 0i64..8, 6 => 0i64..=40, 1 => 40i64..1_100, 1 => Just(super::SCALE_MAX)]
}

fn decimal() -> impl Strategy<Value = Decimal> {
    (digits(), scale()).prop_map(|(digits, scale)| Decimal::new(digits, scale))
}

/// What it is, to the digit; and that its form is the one that it must have.
fn shown(value: &Decimal) -> (BigInt, i64) {
    let (digits, scale) = value.parts();
    assert_eq!(value.is_long(), i128::try_from(digits.as_ref()).is_err(), "{value:?}");
    (digits.into_owned(), scale)
}

fn same(got: Result<Decimal, SqlError>, wanted: Result<Decimal, SqlError>) -> Result<(), TestCaseError> {
    match (got, wanted) {
        (Ok(got), Ok(wanted)) => prop_assert_eq!(shown(&got), shown(&wanted)),
        (Err(got), Err(wanted)) => prop_assert_eq!(got.to_string(), wanted.to_string()),
        (got, wanted) => prop_assert!(false, "{:?} for {:?}", got, wanted),
    }
    Ok(())
}

/// The order without a thought of forms.
fn order(a: &Decimal, b: &Decimal) -> Ordering {
    let units = |value: &Decimal, scale: i64| {
        let (digits, have) = value.parts();
        digits.into_owned() * BigInt::from(10).pow((scale - have) as u32)
    };
    let scale = a.scale().max(b.scale());
    units(a, scale).cmp(&units(b, scale))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn words_calculate_as_digits_without_a_limit_do(a in decimal(), b in decimal()) {
        same(a.add(&b), exact::add(&a, &b))?;
        same(a.sub(&b), exact::add(&a, &exact::neg(&b)))?;
        same(a.mul(&b), exact::mul(&a, &b))?;
        same(Ok(a.neg()), Ok(exact::neg(&a)))?;
        if b.signum() != 0 {
            same(a.div(&b), exact::div(&a, &b))?;
            same(a.rem(&b), exact::rem(&a, &b))?;
        }
        let mut sum = a.clone();
        if !sum.add_word(&b) {
            prop_assert_eq!(shown(&sum), shown(&a));
        } else {
            same(Ok(sum), exact::add(&a, &b))?;
        }
    }

    #[test]
    fn words_are_rounded_as_digits_without_a_limit_are(a in decimal(), to in -40i64..60) {
        same(a.round(to), exact::round(&a, to))?;
        same(a.trunc(to), exact::trunc(&a, to))?;
        prop_assert_eq!(a.to_i64(), exact::to_i64(&a));
        prop_assert_eq!(a.leading_digit(), exact::leading_digit(&a));
        let limit = BigInt::from(10).pow(to.max(0) as u32);
        let fits = a.signum() == 0 || (to >= 0 && a.parts().0.magnitude() < limit.magnitude());
        prop_assert_eq!(a.has_at_most(to), fits);
    }

    #[test]
    fn words_compare_as_numbers(a in decimal(), b in decimal(), zeros in 0i64..30) {
        prop_assert_eq!(a.compare(&b), order(&a, &b));
        prop_assert_eq!(b.compare(&a), order(&a, &b).reverse());
        prop_assert_eq!(exact::compare(&a, &b), order(&a, &b));
        // The same number with another scale.
        let (digits, scale) = a.parts();
        let wide = Decimal::new(digits.into_owned() * BigInt::from(10).pow(zeros as u32), scale + zeros);
        prop_assert_eq!(&a, &wide);
        prop_assert_eq!(a.whole(), wide.whole());
        prop_assert_eq!(a.whole(), exact::whole(&a));
        let normalized = |value: &Decimal| {
            let mut bytes = Vec::new();
            let scale = value.write_normalized(&mut bytes);
            (bytes, scale)
        };
        prop_assert_eq!(normalized(&a), normalized(&wide));
        let (digits, scale) = a.to_big().normalized().into_bigint_and_exponent();
        prop_assert_eq!(normalized(&a), (digits.to_signed_bytes_le(), scale));
    }

    #[test]
    fn words_have_the_bytes_and_the_text_of_their_digits(a in decimal()) {
        let (digits, scale) = a.parts();
        let mut bytes = Vec::new();
        a.write_le_bytes(&mut bytes);
        prop_assert_eq!(&bytes, &digits.to_signed_bytes_le());
        prop_assert_eq!(shown(&Decimal::from_le_bytes(&bytes, scale as i32)), shown(&a));
        let text = digits.magnitude().to_str_radix(10);
        a.with_text(|shown| assert_eq!(shown, text.as_bytes()));
        let read = Decimal::from_text(a.signum() < 0, text.as_bytes(), scale);
        prop_assert_eq!(read.as_ref().map(shown), Some(shown(&a)));
        prop_assert_eq!(a.bits(), digits.bits());
        let from_big = Decimal::from(BigDecimal::new(digits.into_owned(), scale));
        prop_assert_eq!(shown(&from_big), shown(&a));
        if let Some(float) = a.word().and_then(super::word::Word::to_f64) {
            let text = crate::types::Numeric::Finite(a.clone()).to_string();
            prop_assert_eq!(Ok(float), text.parse::<f64>());
        }
    }
}

#[test]
fn what_leaves_the_words_comes_back() {
    let (most, one) = (Decimal::from(i128::MAX), Decimal::from(1));
    let more = most.add(&one).unwrap();
    assert!(more.is_long() && !most.is_long());
    let back = more.sub(&one).unwrap();
    assert!(!back.is_long());
    assert_eq!(back, most);
    let least = Decimal::from(i128::MIN);
    assert!(least.neg().is_long() && !least.neg().neg().is_long());
    assert_eq!(shown(&least.div(&Decimal::from(-1)).unwrap()), shown(&exact::div(&least, &Decimal::from(-1)).unwrap()));
    assert_eq!(least.rem(&Decimal::from(-1)).unwrap().signum(), 0);
}

#[test]
fn a_decimal_takes_three_words() {
    assert_eq!(size_of::<crate::types::Numeric>(), 24);
}
