//! Certification: the one place that says whether a transaction may commit (invariants 3 and 4 of the module).

use super::ahead::Ahead;
use super::holds::{clash, clash_of_large};
use super::unfolding::Whole;
use super::versions::{INDEX_BYTES, told_of};
use super::{Batch, Range, Read, TxnId, VersionStore, Write};
use bytes::Bytes;
use clock::Timestamp;

/// Why a batch was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A key to be written has a version above the snapshot that the writer decided from.
    WriteChanged {
        /// That version's timestamp.
        at: Timestamp,
    },
    /// Something read has a version above the snapshot that it was read from.
    ReadChanged {
        /// That version's timestamp.
        at: Timestamp,
    },
    /// A key that had to have a value was deleted.
    Gone,
    /// Another transaction is prepared there and undecided.
    Undecided {
        /// Which one.
        txn: TxnId,
    },
    /// The snapshot is older than the versions kept.
    TooOld {
        /// Nothing below this is kept.
        threshold: Timestamp,
    },
    /// A recovery decided that this transaction is aborted before its prepare came.
    Fenced,
    /// The record came after the time that it may have: it is a copy, or its way was long. It did nothing, and no other record of the
    /// transaction did.
    Late,
    /// The parts that the command names are not here, or not all: they came too late, or were given up. It did nothing.
    Unstaged,
    /// No room for parts: so much is staged in the range.
    Crowded {
        /// What was to be staged, bytes.
        bytes: u64,
        /// What was already, bytes.
        staged: u64,
        /// What may be, bytes.
        quota: u64,
    },
    /// A key lies outside the range: it was split. Nothing happened; route again.
    Moved,
}

/// A batch was refused, where, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The key in conflict; of a span of which no key is known its index ([`INDEX_BYTES`]); empty where the cause concerns no key.
    pub key: Bytes,
    /// Why.
    pub cause: Cause,
}

impl Refusal {
    pub(super) fn new(key: &Bytes, cause: Cause) -> Self {
        Refusal { key: key.clone(), cause }
    }
    pub(super) fn bare(cause: Cause) -> Self {
        Refusal { key: Bytes::new(), cause }
    }
}

/// So many writes of one index are worth the question whether anything in it has changed: of a load mostly not.
const TOGETHER_MIN: usize = 32;

fn index_of(write: &Write) -> &[u8] {
    &write.key[..write.key.len().min(INDEX_BYTES)]
}

/// Writes in key order, those of each index together.
pub fn by_index(writes: &[Write]) -> impl Iterator<Item = &[Write]> {
    writes.chunk_by(|a, b| index_of(a) == index_of(b))
}

/// Whether the batch may commit (or prepare) after every record that was applied so far.
pub(super) fn certify<V: VersionStore>(
    range: &Range,
    batch: &Batch,
    versions: &V,
) -> Result<Result<(), Refusal>, V::Error> {
    if let Err(refusal) = inside(range, batch).and_then(|()| undisturbed(range, batch)) {
        return Ok(Err(refusal));
    }
    for writes in by_index(&batch.writes) {
        if writes.len() >= TOGETHER_MIN
            && let Some(since) = writes.iter().map(|write| write.since).min()
            && !versions.index_may_have_changed(&writes[0].key, since)
        {
            continue;
        }
        for write in writes {
            if let Some(at) = versions.changed_since(&write.key, write.since)? {
                return Ok(Err(Refusal::new(&write.key, Cause::WriteChanged { at })));
            }
        }
    }
    reads_unchanged(batch, versions)
}

/// As [`certify`], of a batch that may be large: what is asked of each key is asked of all of an index at once, as far as their order allows.
/// Of several reasons to refuse it another one may be named.
pub(super) fn certify_whole<V: VersionStore>(
    range: &Range,
    Whole { batch, decided }: &Whole,
    mut ahead: Ahead,
    versions: &V,
) -> Result<Result<(), Refusal>, V::Error> {
    let ends = decided.iter().skip(1).map(|next| next.from).chain([batch.writes.len()]);
    let indexes = decided.iter().zip(ends).map(|(decided, end)| (&batch.writes[decided.from..end], decided.since));
    let refused = |write: &Write, cause| Ok(Err(Refusal::new(&write.key, cause)));
    for (writes, since) in indexes {
        // They are in order, so those between lie where the ends do.
        if let Some(write) = writes.iter().take(1).chain(writes.last()).find(|write| !range.span().contains(&write.key))
        {
            return refused(write, Cause::Moved);
        }
        let threshold = range.collected_of(&writes[0].key);
        if since < threshold
            && let Some(write) = writes.iter().find(|write| write.since < threshold)
        {
            return refused(write, Cause::TooOld { threshold });
        }
    }
    if let Err(refusal) = inside_reads(range, batch) {
        return Ok(Err(refusal));
    }
    for (txn, theirs) in range.prepared().iter().filter(|(txn, _)| **txn != batch.txn) {
        if let Some(key) = clash_of_large(&theirs.batch, batch) {
            return Ok(Err(Refusal::new(key, Cause::Undecided { txn: *txn })));
        }
    }
    if let Err(refusal) = unreferred(range, batch) {
        return Ok(Err(refusal));
    }
    // Mostly nothing is left to be looked at.
    ahead.look(&batch.writes, versions, &mut { usize::MAX })?;
    match ahead.verdict() {
        Some((key, at)) => Ok(Err(Refusal::new(key, Cause::WriteChanged { at: *at }))),
        None => reads_unchanged(batch, versions),
    }
}

/// Whether what the batch read is as it was.
pub(super) fn reads_unchanged<V: VersionStore>(batch: &Batch, versions: &V) -> Result<Result<(), Refusal>, V::Error> {
    for read in &batch.reads {
        let changed = match read {
            Read::Present { key, .. } => match versions.is_present(key)? {
                true => continue,
                false => return Ok(Err(Refusal::new(key, Cause::Gone))),
            },
            Read::Key { key, since } => versions.changed_since(key, *since)?.map(|at| (key.clone(), at)),
            Read::Span { span, since } => versions.span_changed_since(span, *since)?,
            // Who proposed it has asked, and says so.
            Read::Unreferred { key, since } => (*since == Timestamp::MIN).then(|| (key.clone(), *since)),
            Read::Referred { .. } => continue,
        };
        if let Some((key, at)) = changed {
            return Ok(Err(Refusal { key, cause: Cause::ReadChanged { at } }));
        }
    }
    Ok(Ok(()))
}

/// Every key lies in the range and no snapshot is older than what the range keeps.
fn inside(range: &Range, batch: &Batch) -> Result<(), Refusal> {
    for writes in by_index(&batch.writes) {
        // The same for all keys of an index.
        let threshold = range.collected_of(&writes[0].key);
        for write in writes {
            if !range.span().contains(&write.key) {
                return Err(Refusal::new(&write.key, Cause::Moved));
            }
            kept(&write.key, write.since, threshold)?;
        }
    }
    inside_reads(range, batch)
}

fn kept(key: &Bytes, since: Timestamp, threshold: Timestamp) -> Result<(), Refusal> {
    if since < threshold { Err(Refusal::new(key, Cause::TooOld { threshold })) } else { Ok(()) }
}

/// As [`inside`], of what the batch read.
pub(super) fn inside_reads(range: &Range, batch: &Batch) -> Result<(), Refusal> {
    for read in &batch.reads {
        let (key, inside, threshold) = match read {
            Read::Key { key, .. } | Read::Present { key, .. } | Read::Unreferred { key, .. } => {
                (key, range.span().contains(key), range.collected_of(key))
            }
            Read::Span { span, .. } | Read::Referred { span, .. } => {
                (&span.start, range.span().covers(span), range.collected_in(span))
            }
        };
        if !inside {
            return Err(Refusal::new(key, Cause::Moved));
        }
        match read {
            Read::Key { since, .. } => kept(key, *since, threshold)?,
            Read::Span { span, since } => kept(&told_of(&span.start, Some(&span.end)), *since, threshold)?,
            // No versions are asked for.
            Read::Present { .. } | Read::Unreferred { .. } | Read::Referred { .. } => {}
        }
    }
    Ok(())
}

/// No foreign prepare says the contrary of what the batch says of references.
fn unreferred(range: &Range, batch: &Batch) -> Result<(), Refusal> {
    if range.prepared().is_empty() {
        return Ok(());
    }
    for read in &batch.reads {
        if let Some(txn) = range.holds().against_references(batch.txn, read) {
            let key = match read {
                Read::Key { key, .. } | Read::Present { key, .. } | Read::Unreferred { key, .. } => key.clone(),
                Read::Span { span, .. } | Read::Referred { span, .. } => told_of(&span.start, Some(&span.end)),
            };
            return Err(Refusal::new(&key, Cause::Undecided { txn }));
        }
    }
    Ok(())
}

/// No foreign prepare holds what the batch writes or reads, nor reads what it writes.
fn undisturbed(range: &Range, batch: &Batch) -> Result<(), Refusal> {
    if range.prepared().is_empty() {
        return Ok(());
    }
    let holds = range.holds();
    for write in &batch.writes {
        if let Some(txn) = holds.against_write(batch.txn, write) {
            return Err(Refusal::new(&write.key, Cause::Undecided { txn }));
        }
    }
    for read in &batch.reads {
        if let Some((txn, key)) = holds.against_read(batch.txn, read) {
            return Err(Refusal::new(key, Cause::Undecided { txn }));
        }
    }
    unreferred(range, batch)?;
    for txn in holds.large().filter(|txn| *txn != batch.txn) {
        if let Some(key) = range.prepared().get(&txn).and_then(|theirs| clash(&theirs.batch, batch)) {
            return Err(Refusal::new(key, Cause::Undecided { txn }));
        }
    }
    Ok(())
}
