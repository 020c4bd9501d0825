//! Arrays that a statement looks into again and again, in order.
//!
//! **Problem.** `x = ANY ($1)`, which an `IN (SELECT ..)` becomes too, compares `x` of each row with each element: 20,000 rows beside 3,000 elements took
//! a quarter of a second, 200,000 beside 66,000 minutes.
//!
//! **Idea.** An array that is asked often enough is put in order, and searched from then on: when it was gone through as often as its length has
//! binary digits, putting it in order costs about what was spent on it already. What is kept is the order (places in the array), not the array.
//!
//! **Invariants.**
//! 1. An order is of one array: it is found by where the array lies, and nothing else comes to lie there while it is kept.
//! 2. Putting in order looks whether the statement was cancelled, and counts what it holds with the statement's memory.
//! 3. No array is kept alive: those that are gone are forgotten when there are many.

use crate::SqlError;
use crate::types::{Array, SqlType, Value};
use crate::work::{self, Held};
use parking_lot::Mutex;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// Elements from which an array is put in order.
const LONG: usize = 24;
/// Arrays that a statement knows of at a time.
const LISTS_MAX: usize = 4096;
/// Arrays from which those that are gone are looked for.
const FORGET_FROM: usize = 64;
/// Where that many are known shorter ones than this are not learnt: going through one costs little more than finding its order.
const LONG_AMONG_MANY: usize = 256;
/// Elements that are put in order in one go, and steps of merging between two counts of the work.
const SLICE: usize = 1024;
/// Units of work that a comparison counts for: see [`work::step`].
const COMPARE_UNITS: usize = 16;

/// The long arrays of one statement.
#[derive(Default)]
pub struct Lists(Mutex<Known>);

/// A context made of another has other parameters.
impl Clone for Lists {
    fn clone(&self) -> Self {
        Lists::default()
    }
}

#[derive(Default)]
struct Known {
    /// By where the array lies, and whether trailing blanks do not count.
    lists: BTreeMap<(usize, bool), Ordered>,
    /// With so many, those that are gone are looked for.
    forget_at: usize,
    /// Arrays that were not learnt since that was done, for want of room.
    turned_away: usize,
}

struct Ordered {
    /// Keeps the array's place in memory from others, not what the array holds.
    of: Weak<Array>,
    /// How often it was asked before it was put in order.
    asked: u32,
    /// Places of its elements but for NULLs, in their order.
    order: Option<Order>,
    has_null: bool,
}

struct Order {
    places: Vec<u32>,
    #[expect(dead_code, reason = "gives the memory back")]
    held: Held,
}

impl Lists {
    /// Whether a value that is not NULL equals an element: `Some(None)` if that hangs on a NULL. `None`: look for yourself.
    ///
    /// # Errors
    /// 57014 and 53200, where the array is put in order.
    pub fn holds(&self, array: &Arc<Array>, value: &Value, ty: &SqlType) -> Result<Option<Option<bool>>, SqlError> {
        let length = array.values.len();
        if length < LONG || u32::try_from(length).is_err() {
            return Ok(None);
        }
        let mut known = self.0.lock();
        let key = (Arc::as_ptr(array) as usize, matches!(ty, SqlType::Char(_)));
        let Some(list) = known.lists.get_mut(&key) else {
            known.learn(key, array);
            return Ok(None);
        };
        if list.order.is_none() {
            list.asked += 1;
            if list.asked < length.ilog2() {
                return Ok(None);
            }
            list.order = Some(Order::of(&array.values, ty)?);
        }
        let Some(Order { places, .. }) = &list.order else { return Ok(None) };
        Ok(Some(match places.binary_search_by(|place| array.values[*place as usize].compare(value, ty)) {
            Ok(_) => Some(true),
            Err(_) if list.has_null => None,
            Err(_) => Some(false),
        }))
    }
}

impl Known {
    /// An array that was not asked before.
    fn learn(&mut self, key: (usize, bool), array: &Arc<Array>) {
        if self.lists.len() >= FORGET_FROM && array.values.len() < LONG_AMONG_MANY {
            return;
        }
        // Where all live, a look frees nothing.
        if self.lists.len() >= LISTS_MAX && self.turned_away < LISTS_MAX {
            self.turned_away += 1;
            return;
        }
        if self.lists.len() >= self.forget_at.max(FORGET_FROM) {
            self.turned_away = 0;
            self.lists.retain(|_, list| list.of.strong_count() > 0);
            // Each look costs as much as the arrays that were learnt since.
            self.forget_at = (2 * self.lists.len()).min(LISTS_MAX);
        }
        if self.lists.len() < LISTS_MAX {
            let has_null = array.values.iter().any(Value::is_null);
            self.lists.insert(key, Ordered { of: Arc::downgrade(array), asked: 0, order: None, has_null });
        }
    }
}

impl Order {
    /// By merging: a sort in one go could not be ended.
    fn of(values: &[Value], ty: &SqlType) -> Result<Order, SqlError> {
        let mut held = Held::default();
        held.take(2 * values.len() * size_of::<u32>())?;
        let compare = |a: &u32, b: &u32| values[*a as usize].compare(&values[*b as usize], ty);
        let mut places: Vec<u32> = (0..values.len()).filter(|at| !values[*at].is_null()).map(|at| at as u32).collect();
        for slice in places.chunks_mut(SLICE) {
            work::step(COMPARE_UNITS * SLICE * SLICE.ilog2() as usize)?;
            slice.sort_unstable_by(compare);
        }
        let (mut merged, mut run) = (Vec::with_capacity(places.len()), SLICE);
        while run < places.len() {
            for pair in places.chunks(2 * run) {
                let (left, right) = pair.split_at(run.min(pair.len()));
                merge(left, right, compare, &mut merged)?;
            }
            std::mem::swap(&mut places, &mut merged);
            merged.clear();
            run *= 2;
        }
        Ok(Order { places, held })
    }
}

/// Two runs in order, as one.
fn merge(
    mut left: &[u32],
    mut right: &[u32],
    compare: impl Fn(&u32, &u32) -> Ordering,
    out: &mut Vec<u32>,
) -> Result<(), SqlError> {
    let mut done = 0;
    while let (Some(a), Some(b)) = (left.first(), right.first()) {
        if done % SLICE == 0 {
            work::step(COMPARE_UNITS * SLICE)?;
        }
        done += 1;
        if compare(a, b).is_le() {
            out.push(*a);
            left = &left[1..];
        } else {
            out.push(*b);
            right = &right[1..];
        }
    }
    out.extend_from_slice(left);
    out.extend_from_slice(right);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(values: Vec<Value>) -> Arc<Array> {
        Arc::new(Array::from_values(SqlType::Int8, values))
    }

    /// How often `holds` must be asked until it answers.
    fn asked_until_ordered(lists: &Lists, array: &Arc<Array>) -> usize {
        let mut asked = 1;
        while lists.holds(array, &Value::Int8(1), &SqlType::Int8).unwrap().is_none() {
            asked += 1;
            assert!(asked < 64, "an array of {} elements is never put in order", array.values.len());
        }
        asked
    }

    #[test]
    fn long_arrays_are_searched_however_long_and_many() {
        let lists = Lists::default();
        // More than 65,536 elements, in no order: multiplying by an odd number permutes.
        let long = array((0..1 << 17).map(|n: i64| Value::Int8((n * 40_503) % (1 << 17) * 2)).collect());
        assert!(asked_until_ordered(&lists, &long) <= 18);
        for n in [0i64, 1, 2, 131_071, 131_072, 262_142, 262_143, 262_144] {
            let expected = n % 2 == 0 && n < 1 << 18;
            assert_eq!(lists.holds(&long, &Value::Int8(n), &SqlType::Int8), Ok(Some(Some(expected))), "{n}");
        }
        let others: Vec<Arc<Array>> = (0..100).map(|n| array((n..n + 300).map(Value::Int8).collect())).collect();
        for other in &others {
            asked_until_ordered(&lists, other);
        }
        for (n, other) in others.iter().enumerate() {
            assert_eq!(lists.holds(other, &Value::Int8(n as i64 + 299), &SqlType::Int8), Ok(Some(Some(true))));
            assert_eq!(lists.holds(other, &Value::Int8(n as i64 + 300), &SqlType::Int8), Ok(Some(Some(false))));
        }
    }

    #[test]
    fn nulls_are_no_elements() {
        let lists = Lists::default();
        let values = (0..5000).map(|n| if n % 3 == 0 { Value::Null } else { Value::Int8(n) }).collect();
        let array = array(values);
        asked_until_ordered(&lists, &array);
        assert_eq!(lists.holds(&array, &Value::Int8(4999), &SqlType::Int8), Ok(Some(Some(true))));
        assert_eq!(lists.holds(&array, &Value::Int8(3), &SqlType::Int8), Ok(Some(None)));
    }

    #[test]
    fn arrays_of_rows_that_are_gone_are_forgotten() {
        let lists = Lists::default();
        for n in 0..10_000 {
            let row = array((n..n + 30 + n % 2 * 300).map(Value::Int8).collect());
            assert_eq!(lists.holds(&row, &Value::Int8(n), &SqlType::Int8), Ok(None));
            assert_eq!(Arc::strong_count(&row), 1);
        }
        assert!(lists.0.lock().lists.len() <= FORGET_FROM);
    }
    #[test]
    fn where_all_arrays_live_those_that_are_gone_are_not_looked_for_each_time() {
        let lists = Lists::default();
        let live: Vec<Arc<Array>> = (0..LISTS_MAX as i64 + 900)
            .map(|n| array((n..n + LONG_AMONG_MANY as i64).map(Value::Int8).collect()))
            .collect();
        for row in &live {
            assert_eq!(lists.holds(row, &Value::Int8(-1), &SqlType::Int8), Ok(None));
        }
        let known = lists.0.lock();
        assert_eq!((known.lists.len(), known.turned_away), (LISTS_MAX, 900), "no look since the first was turned away");
    }
}
