//! Sets of the items of one FROM.

/// Items in one FROM, at most.
pub(super) const ITEMS_MAX: usize = 512;

const WORDS: usize = ITEMS_MAX / 64;

/// A set of items, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ItemSet([u64; WORDS]);

impl ItemSet {
    /// No item.
    pub(super) const NONE: ItemSet = ItemSet([0; WORDS]);

    /// One item.
    pub(super) fn one(item: usize) -> ItemSet {
        let mut set = ItemSet::NONE;
        set.add(item);
        set
    }

    /// Adds an item.
    pub(super) fn add(&mut self, item: usize) {
        if let Some(word) = self.0.get_mut(item / 64) {
            *word |= 1 << (item % 64);
        }
    }

    /// With those of another.
    pub(super) fn and(mut self, other: ItemSet) -> ItemSet {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
        self
    }

    /// Whether an item is in it.
    pub(super) fn has(&self, item: usize) -> bool {
        self.0.get(item / 64).is_some_and(|word| word >> (item % 64) & 1 == 1)
    }

    /// Whether no item is in it.
    pub(super) fn is_empty(&self) -> bool {
        *self == ItemSet::NONE
    }

    /// Whether another holds all of its items.
    pub(super) fn within(&self, other: ItemSet) -> bool {
        self.0.iter().zip(other.0).all(|(word, other)| word & !other == 0)
    }

    /// Whether another holds any of its items.
    pub(super) fn meets(&self, other: ItemSet) -> bool {
        self.0.iter().zip(other.0).any(|(word, other)| word & other != 0)
    }
}

impl FromIterator<usize> for ItemSet {
    fn from_iter<I: IntoIterator<Item = usize>>(items: I) -> ItemSet {
        let mut set = ItemSet::NONE;
        items.into_iter().for_each(|item| set.add(item));
        set
    }
}
