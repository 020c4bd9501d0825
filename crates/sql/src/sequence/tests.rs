use super::*;
use crate::catalog::Sequence;
use crate::transaction::Patience;
use crate::transaction::memory::MemoryKv;
use crate::types::SqlType;

fn sequence(increment: i64, min: i64, max: i64, start: i64, cycle: bool) -> Sequence {
    Sequence {
        id: 20_000,
        database: 5,
        schema: 2200,
        name: "s".into(),
        ty: SqlType::Int8,
        start,
        increment,
        min,
        max,
        cycle,
        owner: None,
    }
}

fn draw(numbers: &Numbers, kv: &MemoryKv, s: &Sequence, count: usize) -> Vec<i64> {
    (0..count).map(|_| numbers.next(kv, &Patience::default(), s).expect("next")).collect()
}

#[test]
fn dense_over_blocks_and_a_clean_stop() {
    let kv = MemoryKv::new();
    let s = sequence(1, 1, i64::MAX, 1, false);
    let numbers = Numbers::default();
    assert_eq!(draw(&numbers, &kv, &s, 5000), (1..=5000).collect::<Vec<_>>());
    numbers.give_back(&kv, &Patience::default()).expect("give back");
    assert_eq!(draw(&Numbers::default(), &kv, &s, 2), vec![5001, 5002]);
}

#[test]
fn a_crash_loses_numbers_and_repeats_none() {
    let kv = MemoryKv::new();
    let s = sequence(1, 1, i64::MAX, 1, false);
    assert_eq!(draw(&Numbers::default(), &kv, &s, 1), vec![1]);
    assert_eq!(draw(&Numbers::default(), &kv, &s, 1), vec![1 + BLOCK_MIN as i64]);
}

#[test]
fn ends_cycles_and_runs_down() {
    let kv = MemoryKv::new();
    let s = sequence(2, 1, 6, 3, true);
    assert_eq!(draw(&Numbers::default(), &kv, &s, 2), vec![3, 5]);
    let kv = MemoryKv::new();
    let numbers = Numbers::default();
    assert_eq!(draw(&numbers, &kv, &s, 6), vec![3, 5, 1, 3, 5, 1]);
    let kv = MemoryKv::new();
    let s = sequence(-1, 1, 3, 3, false);
    let numbers = Numbers::default();
    assert_eq!(draw(&numbers, &kv, &s, 3), vec![3, 2, 1]);
    let e = numbers.next(&kv, &Patience::default(), &s).expect_err("the end");
    assert_eq!(
        (e.state.as_str(), e.message.as_str()),
        ("2200H", "nextval: reached minimum value of sequence \"s\" (1)")
    );
}

#[test]
fn setval_and_another_increment() {
    let kv = MemoryKv::new();
    let numbers = Numbers::default();
    let s = sequence(1, 1, 100, 1, false);
    draw(&numbers, &kv, &s, 3);
    numbers.set(&kv, &Patience::default(), &s, 10, false).expect("set");
    assert_eq!(draw(&numbers, &kv, &s, 1), vec![10]);
    numbers.set(&kv, &Patience::default(), &s, 10, true).expect("set");
    assert_eq!(draw(&numbers, &kv, &s, 1), vec![11]);
    assert_eq!(
        numbers.set(&kv, &Patience::default(), &s, 101, true).expect_err("out of bounds").state.as_str(),
        "22003"
    );
    assert_eq!(
        numbers.position(&kv, &Patience::default(), &s).expect("position"),
        Position { value: 11, is_called: true }
    );
}
