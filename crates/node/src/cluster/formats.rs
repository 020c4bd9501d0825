//! Bytes that were written once are read for ever: what a member keeps beside its versions, what travels as a snapshot, what a lone node keeps.

use super::rows::Parts;
use super::snapshot::{Snapshot, put, put_head};
use super::state::{Kept, State};
use bytes::{BufMut, Bytes};
use clock::Timestamp;
use protocol::txn::{Range, RangeId, Span};
use store::Version;

fn at(n: u64) -> Timestamp {
    Timestamp::from_u64(n)
}

/// Compares with the fixture: lines for forms that are new are added there, those that were there stay.
fn kept(all: &[(&str, Vec<u8>)]) {
    let line = |(name, bytes): &(&str, Vec<u8>)| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{name} {hex}\n")
    };
    let text: String = all.iter().map(line).collect();
    assert_eq!(text, include_str!("../../tests/formats.txt"));
}

#[test]
fn forms_stay_what_they_are() {
    let range = Range::new(RangeId(5), Span::new("a", "m"));
    let mut raised = range.clone();
    raised.raise(2);
    let founding = Some((vec![1, 2, 3], at(9)));
    let all = [
        Kept { range: &range, applied: 77, founding: &None },
        Kept { range: &raised, applied: 1, founding: &founding },
    ];
    let member = State::encode(0xba11, 2, 3, &all[..1]);
    let splitting = State::encode(0xba11, 2, 3, &all[1..]);
    for bytes in [&member, &splitting] {
        let state = State::decode(bytes).expect("its own form");
        let kept: Vec<Kept<'_>> = state.shards.values().map(|shard| Kept::of(shard)).collect();
        assert_eq!(State::encode(state.cluster, state.node, state.incarnation, &kept), bytes);
    }
    let version = |n, value: Option<&'static str>| Version { ts: at(n), value: value.map(Bytes::from) };
    let rows: [(&str, Vec<Version>); 2] =
        [("b", vec![version(3, Some("x")), version(4, None)]), ("c", vec![version(5, Some(""))])];
    let mut snapshot = Vec::new();
    put_head(&mut snapshot, 77, &range);
    snapshot.put_u64_le(rows.len() as u64);
    for (key, versions) in &rows {
        put(&mut snapshot, key.as_bytes());
        snapshot.put_u32_le(versions.len() as u32);
        for version in versions {
            snapshot.put_u64_le(version.ts.as_u64());
            snapshot.put_u8(u8::from(version.value.is_some()));
            version.value.iter().for_each(|value| put(&mut snapshot, value));
        }
    }
    let mut parts = Parts::default();
    parts.push(Bytes::from(snapshot.clone()));
    let read = Snapshot::decode(parts).expect("its own form");
    assert_eq!((read.applied, &read.range), (77, &range));
    let read: Vec<_> = read.rows.collect();
    assert_eq!(read, rows.map(|(key, versions)| (Bytes::from(key), versions)));
    let alone = crate::state::encode(8, [&range].into_iter());
    let state = crate::state::State::decode(&alone).expect("its own form");
    assert_eq!(crate::state::encode(state.next_range, state.ranges.values()), alone);
    kept(&[
        ("member", member.to_vec()),
        ("splitting", splitting.to_vec()),
        ("snapshot", snapshot),
        ("alone", alone.to_vec()),
    ]);
}
