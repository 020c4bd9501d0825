//! A snapshot as it came in, in parts, read a row at a time: what is read is let go.

use bytes::{Buf, Bytes};
use clock::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use store::Version;

/// Bytes in parts, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    parts: VecDeque<Bytes>,
    bytes: usize,
}

impl Parts {
    pub fn push(&mut self, part: Bytes) {
        self.bytes += part.len();
        if !part.is_empty() {
            self.parts.push_back(part);
        }
    }

    /// A text, copied: it keeps no part.
    fn text(&mut self) -> Option<Bytes> {
        let mut text = Vec::new();
        self.text_into(&mut text)?;
        Some(text.into())
    }

    fn text_into(&mut self, text: &mut Vec<u8>) -> Option<()> {
        let len = self.try_get_u32_le().ok()? as usize;
        if len > self.bytes {
            return None;
        }
        text.clear();
        text.resize(len, 0);
        self.copy_to_slice(text);
        Some(())
    }

    fn skip_text(&mut self) -> Option<()> {
        let len = self.try_get_u32_le().ok()? as usize;
        (len <= self.bytes).then(|| self.advance(len))
    }
}

impl Buf for Parts {
    fn remaining(&self) -> usize {
        self.bytes
    }
    fn chunk(&self) -> &[u8] {
        self.parts.front().map_or(&[], |part| &part[..])
    }
    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.bytes, "nobody reads behind the end");
        self.bytes -= count;
        while let Some(part) = self.parts.front_mut().filter(|_| count > 0) {
            if count < part.len() {
                return part.advance(count);
            }
            count -= part.len();
            self.parts.pop_front();
        }
    }
}

/// A key, with its versions, oldest first.
pub(crate) type Row = (Bytes, Vec<Version>);

/// The rows of a snapshot that were not read yet: in key order, as many as it says.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    parts: Parts,
    left: u64,
}

impl Rows {
    /// What comes before them: the form's version, the applied place, the range.
    pub fn head(mut parts: Parts) -> Option<(u8, u64, Bytes, Rows)> {
        let (version, applied) = (parts.try_get_u8().ok()?, parts.try_get_u64_le().ok()?);
        let range = parts.text()?;
        let left = parts.try_get_u64_le().ok()?;
        Some((version, applied, range, Rows { parts, left }))
    }

    /// Skips the versions of a key; gives the lowest timestamp above one, of those that there are.
    fn skip_versions(&mut self, above: Timestamp) -> Option<Option<Timestamp>> {
        let mut lowest = None;
        for _ in 0..self.parts.try_get_u32_le().ok()? {
            let ts = Timestamp::from_u64(self.parts.try_get_u64_le().ok()?);
            if ts > above {
                lowest = Some(lowest.map_or(ts, |lowest: Timestamp| lowest.min(ts)));
            }
            if self.parts.try_get_u8().ok()? != 0 {
                self.parts.skip_text()?;
            }
        }
        Some(lowest)
    }

    fn read(&mut self) -> Option<Row> {
        let key = self.parts.text()?;
        let mut versions = Vec::new();
        for _ in 0..self.parts.try_get_u32_le().ok()? {
            let ts = Timestamp::from_u64(self.parts.try_get_u64_le().ok()?);
            let value = match self.parts.try_get_u8().ok()? {
                0 => None,
                _ => Some(self.parts.text()?),
            };
            versions.push(Version { ts, value });
        }
        Some((key, versions))
    }

    /// Bytes that were not read yet.
    pub fn bytes(&self) -> usize {
        self.parts.bytes
    }
}

/// Of each index, by the first bytes of its keys, the lowest timestamp above what is forgotten of it.
pub(crate) type Lowest = BTreeMap<[u8; 4], Timestamp>;

/// The index of a key.
pub(crate) fn index_of(key: &[u8]) -> [u8; 4] {
    let mut index = [0; 4];
    index.iter_mut().zip(key).for_each(|(to, byte)| *to = *byte);
    index
}

/// A look at all rows before anything is written of them: whether they can be read to the end, and are in key order. A slice at a time, as there may be many.
#[derive(Debug)]
pub(crate) struct Look {
    rest: Rows,
    last: Option<Vec<u8>>,
    key: Vec<u8>,
    pub lowest: Lowest,
}

impl Look {
    pub fn at(rows: &Rows) -> Look {
        Look { rest: rows.clone(), last: None, key: Vec::new(), lowest: Lowest::new() }
    }

    /// Goes on for so many bytes, or a row more; `None`: there are more. `forgotten`: up to where an index is.
    pub fn go_on(&mut self, bytes: usize, forgotten: impl Fn([u8; 4]) -> Timestamp) -> Option<bool> {
        let until = self.rest.bytes().saturating_sub(bytes.max(1));
        let mut of = None;
        while self.rest.left > 0 {
            if until > 0 && self.rest.bytes() <= until {
                return None;
            }
            self.rest.left -= 1;
            let key = self.rest.parts.text_into(&mut self.key);
            if key.is_none() || self.last.as_ref().is_some_and(|last| *last >= self.key) {
                return Some(false);
            }
            let index = index_of(&self.key);
            let above = match of {
                Some((known, above)) if known == index => above,
                _ => forgotten(index),
            };
            of = Some((index, above));
            let Some(lowest) = self.rest.skip_versions(above) else { return Some(false) };
            if let Some(lowest) = lowest {
                self.lowest.entry(index).and_modify(|at| *at = lowest.min(*at)).or_insert(lowest);
            }
            self.key = self.last.replace(std::mem::take(&mut self.key)).unwrap_or_default();
        }
        Some(self.rest.parts.bytes == 0)
    }
}

impl Iterator for Rows {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        self.left = self.left.checked_sub(1)?;
        self.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BufMut;

    fn whole() -> Vec<u8> {
        let mut out = vec![1];
        out.put_u64_le(77);
        crate::cluster::snapshot::put(&mut out, b"range");
        out.put_u64_le(2);
        for key in ["b", "c"] {
            crate::cluster::snapshot::put(&mut out, key.as_bytes());
            out.put_u32_le(2);
            for (ts, value) in [(3, Some("some value")), (4, None)] {
                out.put_u64_le(ts);
                out.put_u8(u8::from(value.is_some()));
                value.into_iter().for_each(|value| crate::cluster::snapshot::put(&mut out, value.as_bytes()));
            }
        }
        out
    }

    /// By slices of any size it is the same.
    fn are_sound(rows: &Rows) -> bool {
        let look = |bytes: usize| {
            let mut look = Look::at(rows);
            let sound = (0..1000).find_map(|_| look.go_on(bytes, |_| Timestamp::from_u64(3))).unwrap();
            (sound, look.lowest)
        };
        let (sound, lowest) = look(usize::MAX);
        for bytes in [0, 1, 20, 50] {
            let sliced = look(bytes);
            assert_eq!(sliced.0, sound, "{bytes}");
            assert!(!sound || sliced.1 == lowest, "{bytes}");
        }
        assert!(
            !sound
                || lowest
                    == Lowest::from([(*b"b\0\0\0", Timestamp::from_u64(4)), (*b"c\0\0\0", Timestamp::from_u64(4))])
        );
        sound
    }

    fn in_parts(bytes: &[u8], size: usize) -> Parts {
        let mut parts = Parts::default();
        bytes.chunks(size).for_each(|part| parts.push(Bytes::copy_from_slice(part)));
        parts
    }

    #[test]
    fn wherever_it_is_cut_it_is_the_same() {
        for size in 1..=whole().len() {
            let (version, applied, range, rows) = Rows::head(in_parts(&whole(), size)).unwrap();
            assert_eq!((version, applied, &range[..], are_sound(&rows)), (1, 77, &b"range"[..], true), "{size}");
            let read: Vec<Row> = rows.collect();
            assert_eq!(read.iter().map(|(key, _)| &key[..]).collect::<Vec<_>>(), [b"b", b"c"]);
            assert!(read.iter().all(|(_, versions)| versions.len() == 2 && versions[1].value.is_none()));
        }
    }

    #[test]
    fn what_is_damaged_is_not_sound() {
        let whole = whole();
        for length in 0..whole.len() {
            let sound = Rows::head(in_parts(&whole[..length], 7)).is_some_and(|(.., rows)| are_sound(&rows));
            assert!(!sound, "{length} bytes of {}", whole.len());
        }
        let at = whole.iter().position(|byte| *byte == b'c').unwrap();
        let mut disordered = whole.clone();
        disordered[at] = b'b';
        let rows = |bytes: &[u8]| Rows::head(in_parts(bytes, 7)).unwrap().3;
        assert!(!are_sound(&rows(&disordered)), "the same key twice");
        assert!(!are_sound(&rows(&[&whole[..], b"x"].concat())), "something follows");
    }
}
