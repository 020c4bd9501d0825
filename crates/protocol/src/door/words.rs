//! The parts of requests and answers as bytes.

pub(super) use crate::txn::codec::{read_ranges, read_txn, write_ranges, write_txn};
use crate::txn::{Batch, Cause, LockMode, Refusal, Span, TxnId};
use crate::txn::{codec, staging};
use crate::wire::{Reader, Short, Writer};
use bytes::Bytes;
use clock::Interval;

pub(super) fn read_flag(r: &mut Reader) -> Result<bool, Short> {
    match r.byte("flag")? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Short("flag")),
    }
}

pub(super) fn write_option<T>(w: &mut Writer<'_>, value: Option<&T>, write: impl FnOnce(&mut Writer<'_>, &T)) {
    w.byte(u8::from(value.is_some()));
    if let Some(value) = value {
        write(w, value);
    }
}

pub(super) fn read_option<T>(
    r: &mut Reader,
    read: impl FnOnce(&mut Reader) -> Result<T, Short>,
) -> Result<Option<T>, Short> {
    if read_flag(r)? { read(r).map(Some) } else { Ok(None) }
}

pub(super) fn write_bounds(w: &mut Writer<'_>, interval: &Interval) {
    w.fixed(interval.earliest_ns);
    w.fixed(interval.latest_ns);
}

pub(super) fn read_bounds(r: &mut Reader) -> Result<Interval, Short> {
    let (earliest_ns, latest_ns) = (r.fixed("earliest")?, r.fixed("latest")?);
    if earliest_ns > latest_ns { Err(Short("interval")) } else { Ok(Interval { earliest_ns, latest_ns }) }
}

pub(super) fn write_interval(w: &mut Writer<'_>, interval: Option<&Interval>) {
    write_option(w, interval, write_bounds);
}

pub(super) fn read_interval(r: &mut Reader) -> Result<Option<Interval>, Short> {
    read_option(r, read_bounds)
}

pub(super) fn write_span(w: &mut Writer<'_>, span: &Span) {
    w.bytes(&span.start);
    w.bytes(&span.end);
}

pub(super) fn read_span(r: &mut Reader) -> Result<Span, Short> {
    Ok(Span { start: r.bytes("start")?, end: r.bytes("end")? })
}

/// In place of whether a batch has an `until`: it has, and was staged.
const STAGED: u8 = 2;

pub(super) fn write_batch(w: &mut Writer<'_>, batch: &Batch) {
    match (&batch.until, &batch.staged) {
        (Some(until), Some(staged)) => {
            w.byte(STAGED);
            w.time(*until);
            write_txn(w, batch.txn);
            staging::write_staged(w, staged);
        }
        (until, _) => {
            write_option(w, until.as_ref(), |w, at| w.time(*at));
            codec::write_batch(w, batch);
        }
    }
}

pub(super) fn read_batch(r: &mut Reader) -> Result<Batch, Short> {
    let until = match r.byte("whether copies may come")? {
        0 => None,
        1 => Some(r.time("end of the time for copies")?),
        STAGED => {
            let until = Some(r.time("end of the time for copies")?);
            let (txn, staged) = (read_txn(r)?, Some(staging::read_staged(r)?));
            return Ok(Batch { txn, until, staged, ..Batch::default() });
        }
        _ => return Err(Short("whether copies may come")),
    };
    let batch = codec::read_batch(r).map_err(|_| Short("batch"))?;
    Ok(Batch { until, ..batch })
}

pub(super) fn write_waits(w: &mut Writer<'_>, waits: &[(TxnId, Bytes)]) {
    w.number(waits.len() as u64);
    for (txn, key) in waits {
        write_txn(w, *txn);
        w.bytes(key);
    }
}

pub(super) fn read_waits(r: &mut Reader) -> Result<Vec<(TxnId, Bytes)>, Short> {
    let count = r.count("waits")?;
    (0..count).map(|_| Ok((read_txn(r)?, r.bytes("key")?))).collect()
}

pub(super) fn mode_to_byte(mode: LockMode) -> u8 {
    match mode {
        LockMode::KeyShare => 0,
        LockMode::Share => 1,
        LockMode::NoKeyUpdate => 2,
        LockMode::Update => 3,
    }
}

pub(super) fn mode_of_byte(byte: u8) -> Result<LockMode, Short> {
    Ok(match byte {
        0 => LockMode::KeyShare,
        1 => LockMode::Share,
        2 => LockMode::NoKeyUpdate,
        3 => LockMode::Update,
        _ => return Err(Short("mode")),
    })
}

pub(super) fn write_refusal(w: &mut Writer<'_>, refusal: &Refusal) {
    w.bytes(&refusal.key);
    match &refusal.cause {
        Cause::WriteChanged { at } => {
            w.byte(0);
            w.time(*at);
        }
        Cause::ReadChanged { at } => {
            w.byte(1);
            w.time(*at);
        }
        Cause::Gone => w.byte(2),
        Cause::Undecided { txn } => {
            w.byte(3);
            write_txn(w, *txn);
        }
        Cause::TooOld { threshold } => {
            w.byte(4);
            w.time(*threshold);
        }
        Cause::Fenced => w.byte(5),
        Cause::Late => w.byte(6),
        Cause::Moved => w.byte(7),
        Cause::Unstaged => w.byte(8),
        Cause::Crowded { bytes, staged, quota } => {
            w.byte(9);
            w.number(*bytes);
            w.number(*staged);
            w.number(*quota);
        }
    }
}

pub(super) fn read_refusal(r: &mut Reader) -> Result<Refusal, Short> {
    let key = r.bytes("key")?;
    let cause = match r.byte("cause")? {
        0 => Cause::WriteChanged { at: r.time("version")? },
        1 => Cause::ReadChanged { at: r.time("version")? },
        2 => Cause::Gone,
        3 => Cause::Undecided { txn: read_txn(r)? },
        4 => Cause::TooOld { threshold: r.time("threshold")? },
        5 => Cause::Fenced,
        6 => Cause::Late,
        7 => Cause::Moved,
        8 => Cause::Unstaged,
        9 => Cause::Crowded { bytes: r.number("bytes")?, staged: r.number("staged")?, quota: r.number("quota")? },
        _ => return Err(Short("cause")),
    };
    Ok(Refusal { key, cause })
}
