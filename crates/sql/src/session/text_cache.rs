//! What texts were parsed and planned to, shared by all sessions of a process.
//!
//! A statement sent by the simple protocol, or prepared again by each connection, is parsed and planned once. Entries age in
//! two generations: a hit moves an entry to the young one; when that is full, the old one is forgotten.
//!
//! Where memory is scarce a text is kept when it comes for the second time. One with its constants in it never comes again, and what is made of it is
//! dozens of blocks that would lie about in the pages of every session's thread: with 150 of them the pages were three times what was in them.
//! Elsewhere it is kept at once: what comes twice is planned once.

use crate::SqlError;
use crate::catalog::Uses;
use crate::catalog::view::View;
use crate::plan::Plan;
use crate::stack;
use crate::syntax::script::{Place, Script};
use crate::syntax::{self, Command, Parsed};
use crate::work::Pace;
use parking_lot::Mutex;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash};
use std::sync::Arc;

/// Entries of one generation.
pub const GENERATION_ENTRIES_MAX: usize = 2048;
/// Longest text that is kept, bytes.
pub const CACHED_TEXT_BYTES_MAX: usize = 16 << 10;
/// Texts of one generation, bytes, unless less is asked for. What is made of a text is some tens of times as large, so a cache holds a few hundred megabytes at
/// most: constants that are longer than the text which makes them are not folded.
pub const GENERATION_TEXT_BYTES_MAX: usize = 4 << 20;

/// Texts of which is remembered that they came.
const SEEN_MAX: usize = 4096;
/// What is made of a text is as much as of one that is longer by so many bytes, were it only made of letters.
const ENTRY_BYTES: usize = 64;

struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    /// Texts of the young ones, and [`ENTRY_BYTES`] for each.
    young_bytes: usize,
    /// Hashes of texts that came and are not kept: each has one place.
    seen: Box<[u64]>,
}

/// A key that knows how long its text is.
trait TextBytes {
    fn text_bytes(&self) -> usize;
}

impl TextBytes for Arc<str> {
    fn text_bytes(&self) -> usize {
        self.len()
    }
}

impl TextBytes for PlanKey {
    fn text_bytes(&self) -> usize {
        self.text.len() + self.settings.len()
    }
}

impl<K, V> Default for Generations<K, V> {
    fn default() -> Self {
        Generations { young: HashMap::new(), old: HashMap::new(), young_bytes: 0, seen: vec![0; SEEN_MAX].into() }
    }
}

impl<K: Hash + Eq + TextBytes, V: Clone> Generations<K, V> {
    fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q, bytes_max: usize) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if let Some(value) = self.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.put(key, value.clone(), bytes_max);
        Some(value)
    }
    /// Keeps what comes; where there is less room than usual, what comes for the second time.
    fn put_again(&mut self, key: K, value: V, bytes_max: usize) {
        if bytes_max >= GENERATION_TEXT_BYTES_MAX {
            return self.put(key, value, bytes_max);
        }
        let hash = self.young.hasher().hash_one(&key);
        let place = &mut self.seen[hash as usize % SEEN_MAX];
        if *place == hash {
            self.put(key, value, bytes_max);
        } else {
            *place = hash;
        }
    }

    fn put(&mut self, key: K, value: V, bytes_max: usize) {
        let bytes = key.text_bytes() + ENTRY_BYTES;
        if self.young.len() >= GENERATION_ENTRIES_MAX || self.young_bytes + bytes > bytes_max {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young.insert(key, value).is_none() {
            self.young_bytes += bytes;
        }
    }
}

/// The statements of a text.
#[derive(Clone)]
pub enum Statements {
    /// A few.
    Parsed(Arc<[Parsed]>),
    /// Many: each is parsed again when its turn comes.
    Places(Arc<str>, Arc<[Place]>),
}

impl Statements {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Statements::Parsed(all) => all.len(),
            Statements::Places(_, all) => all.len(),
        }
    }

    /// Whether the text has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A plan, what it was made of, and the number of the catalog for which that was last asked.
#[derive(Clone)]
pub struct Made {
    /// See above.
    pub number: u64,
    /// See above.
    pub uses: Arc<Uses>,
    /// See above.
    pub plan: Arc<dyn Plan>,
}

/// What a plan depends on beside the catalog.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlanKey {
    /// The statement's text.
    pub text: Arc<str>,
    /// Declared parameter types; 0 is to be inferred.
    pub parameters: Vec<u32>,
    /// Settings that planning reads.
    pub settings: Arc<str>,
    /// Number of the statistics that it went by.
    pub statistics: u64,
}

/// See the module.
pub struct TextCache {
    /// Texts of one generation.
    bytes_max: usize,
    parsed: Mutex<Generations<Arc<str>, Arc<[Parsed]>>>,
    planned: Mutex<Generations<PlanKey, Made>>,
}

impl TextCache {
    /// An empty one, whose generations have texts of so many bytes.
    pub fn new(bytes_max: usize) -> TextCache {
        TextCache { bytes_max, parsed: Mutex::default(), planned: Mutex::default() }
    }

    /// Parses a text, or remembers what it was parsed to.
    ///
    /// # Errors
    /// As [`syntax::parse_at`].
    pub fn parse(&self, text: &str, pace: &Pace) -> Result<Arc<[Parsed]>, SqlError> {
        if text.len() > CACHED_TEXT_BYTES_MAX {
            return Ok(syntax::parse_at(text, pace)?.into());
        }
        if let Some(found) = self.parsed.lock().get(text, self.bytes_max) {
            return Ok(found);
        }
        let parsed: Arc<[Parsed]> = syntax::parse_at(text, pace)?.into();
        self.parsed.lock().put_again(text.into(), parsed.clone(), self.bytes_max);
        Ok(parsed)
    }

    /// The statements of a text that has any number of them; only those of a short one are remembered.
    ///
    /// # Errors
    /// As [`syntax::parse_at`].
    pub fn script(&self, text: &str, pace: &Pace, ask: fn(&Command) -> bool) -> Result<Statements, SqlError> {
        if text.len() <= CACHED_TEXT_BYTES_MAX {
            return Ok(Statements::Parsed(self.parse(text, pace)?));
        }
        Ok(match Script::parse(text, pace, ask)? {
            Script::Places(places) => Statements::Places(text.into(), places.into()),
            Script::Parsed(parsed) => Statements::Parsed(parsed.into()),
        })
    }

    /// A plan that is valid in a view of the catalog: made for its number, or of lookups that give the same there.
    pub fn plan(&self, key: &PlanKey, view: &View) -> Option<Made> {
        let number = view.snapshot().version();
        let made = self.planned.lock().get(key, self.bytes_max)?;
        if made.number == number {
            return Some(made);
        }
        let made = Made { number, ..made };
        made.uses.hold(view).then(|| {
            self.planned.lock().put(key.clone(), made.clone(), self.bytes_max);
            made
        })
    }

    /// Keeps a plan; where memory is scarce, if its text came before.
    pub fn keep_plan(&self, key: PlanKey, made: Made) {
        if key.text.len() <= CACHED_TEXT_BYTES_MAX {
            self.planned.lock().put_again(key, made, self.bytes_max);
        }
    }
}

impl Drop for TextCache {
    fn drop(&mut self) {
        let (parsed, planned) = (std::mem::take(self.parsed.get_mut()), std::mem::take(self.planned.get_mut()));
        stack::roomy(|| drop((parsed, planned)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_bounded_by_their_bytes() {
        let mut cache: Generations<Arc<str>, ()> = Generations::default();
        let bytes = |generation: &HashMap<Arc<str>, ()>| generation.keys().map(|text| text.len()).sum::<usize>();
        let bytes_max = GENERATION_TEXT_BYTES_MAX / 4;
        for i in 0..500 {
            cache.put(format!("{i:0width$}", width = CACHED_TEXT_BYTES_MAX).into(), (), bytes_max);
            assert!(bytes(&cache.young) <= bytes_max && bytes(&cache.old) <= bytes_max);
        }
        assert!(!cache.young.is_empty() && !cache.old.is_empty());
    }

    #[test]
    fn a_text_that_comes_once_is_not_kept() {
        let mut cache: Generations<Arc<str>, usize> = Generations::default();
        for i in 0..10_000 {
            cache.put_again(format!("select {i}").into(), i, 1 << 20);
        }
        assert_eq!((cache.young.len(), cache.old.len()), (0, 0));
        assert_eq!(cache.get("select 9999", 1 << 20), None);
        cache.put_again("select 9999".into(), 9999, 1 << 20);
        assert_eq!(cache.get("select 9999", 1 << 20), Some(9999));
    }
}
