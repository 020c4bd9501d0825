//! Arrays that a statement looks into again and again, in order.
//!
//! `x = ANY ($1)`, which an `IN (SELECT ..)` becomes too, compares `x` of each row with each element: 20,000 rows beside 3,000 elements took
//! a quarter of a second. A long array is put in order the second time that it is asked, and searched from then on.

use crate::types::{Array, SqlType, Value};
use parking_lot::Mutex;
use std::sync::Arc;

/// Elements from which an array is put in order.
const LONG: usize = 24;
/// Elements up to which it is: to order more takes too long to be cancelled.
const LONG_MAX: usize = 1 << 16;
/// Arrays that a statement keeps in order.
const LISTS_MAX: usize = 8;

/// The long arrays of one statement.
#[derive(Default)]
pub struct Lists(Mutex<Vec<Ordered>>);

/// A context made of another has other parameters.
impl Clone for Lists {
    fn clone(&self) -> Self {
        Lists::default()
    }
}

struct Ordered {
    /// Held, so that no other array takes its place in memory.
    of: Arc<Array>,
    ty: SqlType,
    /// Its elements but for NULLs, in order; none before the second time.
    values: Option<Vec<Value>>,
    has_null: bool,
}

impl Lists {
    /// Whether a value that is not NULL equals an element: `Some(None)` if that hangs on a NULL. `None`: look for yourself.
    pub fn holds(&self, array: &Arc<Array>, value: &Value, ty: &SqlType) -> Option<Option<bool>> {
        if !(LONG..=LONG_MAX).contains(&array.values.len()) {
            return None;
        }
        let mut lists = self.0.lock();
        let Some(known) = lists.iter_mut().find(|list| Arc::ptr_eq(&list.of, array) && list.ty == *ty) else {
            if lists.len() < LISTS_MAX {
                let has_null = array.values.iter().any(Value::is_null);
                lists.push(Ordered { of: array.clone(), ty: ty.clone(), values: None, has_null });
            }
            return None;
        };
        let values = known.values.get_or_insert_with(|| {
            let mut values: Vec<Value> = array.values.iter().filter(|value| !value.is_null()).cloned().collect();
            values.sort_by(|a, b| a.compare(b, ty));
            values
        });
        match values.binary_search_by(|element| element.compare(value, ty)) {
            Ok(_) => Some(Some(true)),
            Err(_) if known.has_null => Some(None),
            Err(_) => Some(Some(false)),
        }
    }
}
