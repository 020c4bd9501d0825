//! What stands on the wire: read back, cut anywhere, damaged anywhere, and noise.
#![allow(missing_docs)]

use proptest::prelude::*;
use transport::frame::{BUFFER_BYTES, Cutter, FrameError, HEADER_BYTES, PROBE, header};
use transport::hello::*;
use transport::{PARCEL_BYTES_MAX, Refusal};

fn framed(parcels: &[Vec<u8>]) -> Vec<u8> {
    let frame = |bytes: &Vec<u8>| if bytes.is_empty() { PROBE.to_vec() } else { [&header(bytes)[..], bytes].concat() };
    parcels.iter().flat_map(frame).collect()
}

/// All parcels of a stream that arrives in pieces of these lengths, over and over.
fn cut(mut stream: &[u8], pieces: &[usize]) -> Result<Vec<Vec<u8>>, FrameError> {
    let (mut cutter, mut out) = (Cutter::default(), Vec::new());
    let mut pieces = pieces.iter().cycle();
    while !stream.is_empty() {
        let space = cutter.space();
        assert!(!space.is_empty(), "there is always space");
        let len = (*pieces.next().unwrap()).clamp(1, space.len()).min(stream.len());
        space[..len].copy_from_slice(&stream[..len]);
        cutter.filled(len);
        stream = &stream[len..];
        while let Some(parcel) = cutter.next_parcel()? {
            out.push(parcel.to_vec());
        }
    }
    Ok(out)
}

/// Lengths around every bound of the cutter; 0 is a probe.
fn parcel() -> impl Strategy<Value = Vec<u8>> {
    let edge = BUFFER_BYTES - HEADER_BYTES;
    let len = prop_oneof![4 => 0usize..200, 1 => edge - 2..edge + 3, 1 => 2 * BUFFER_BYTES - 9..2 * BUFFER_BYTES + 9, 1 => 0usize..300_000];
    (len, any::<u8>()).prop_map(|(len, seed)| (0..len).map(|at| (at / 7) as u8 ^ seed).collect())
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1usize..20, 1000usize..200_000], 1..8)
}

fn hello() -> impl Strategy<Value = Hello> {
    let ids = (any::<u64>(), any::<u32>(), any::<u128>(), any::<u64>(), any::<u32>(), any::<u128>());
    (ids, any::<u8>(), "[ -~]{0,64}", 0..3u16, (1..9u16, any::<u64>(), prop::option::of(0..u64::MAX))).prop_map(
        |(ids, lane, release, version_min, last)| {
            let (version_max, start, began_after) = last;
            let (cluster, from, from_store, incarnation, to, to_store) = ids;
            let version_min = version_min.min(VERSION_MIN);
            let knows = version_min..=version_max;
            Hello {
                version_min,
                version_max,
                cluster,
                from,
                from_store,
                incarnation,
                to,
                to_store,
                lane,
                release,
                knows,
                start,
                began_after,
            }
        },
    )
}

fn refusal() -> impl Strategy<Value = Refusal> {
    prop_oneof![
        any::<(u16, u16)>().prop_map(|(min, max)| Refusal::Versions { min, max }),
        any::<(u64, u64)>().prop_map(|(known, named)| Refusal::Cluster { known, named }),
        any::<(u32, u32)>().prop_map(|(known, named)| Refusal::Node { known, named }),
        any::<u32>().prop_map(|named| Refusal::Stranger { named }),
        any::<(u32, u128, u128)>().prop_map(|(node, known, named)| Refusal::Store { node, known, named }),
        any::<(u32, u64, u64)>().prop_map(|(node, known, named)| Refusal::Incarnation { node, known, named }),
        any::<(u32, u64, u64)>().prop_map(|(node, known, named)| Refusal::Copy { node, known, named }),
        any::<(u32, u64, u64)>().prop_map(|(node, known, named)| Refusal::Alive { node, known, named }),
        any::<(u32, u64, u64)>().prop_map(|(node, known, named)| Refusal::Forgot { node, known, named }),
        Just(Refusal::NotAMember),
        any::<(u8, u8)>().prop_map(|(known, named)| Refusal::Lane { known, named }),
        any::<(u16, u16, u16)>().prop_map(|(version, min, max)| Refusal::ClusterVersion { version, min, max }),
        (100..=255u8).prop_map(Refusal::Unknown),
    ]
}

fn body(message: &[u8], kind: Kind) -> &[u8] {
    let (envelope, body) = message.split_first_chunk().unwrap();
    assert_eq!(open(envelope), Ok((kind, body.len())));
    body
}

proptest! {
    #[test]
    fn parcels_come_out_as_they_went_in_however_the_stream_is_cut(
        parcels in prop::collection::vec(parcel(), 0..12),
        pieces in pieces(),
    ) {
        let wanted: Vec<_> = parcels.iter().filter(|bytes| !bytes.is_empty()).cloned().collect();
        prop_assert_eq!(cut(&framed(&parcels), &pieces).unwrap(), wanted);
    }

    #[test]
    fn a_damaged_byte_never_gives_a_parcel_that_was_not_sent(
        parcels in prop::collection::vec(parcel(), 1..5),
        pieces in pieces(),
        at in any::<prop::sample::Index>(),
        bit in 0..8u8,
    ) {
        let mut stream = framed(&parcels);
        let at = at.index(stream.len());
        stream[at] ^= 1 << bit;
        let (mut cutter, mut rest, mut turn) = (Cutter::default(), &stream[..], pieces.iter().cycle());
        'stream: while !rest.is_empty() {
            let space = cutter.space();
            let len = (*turn.next().unwrap()).clamp(1, space.len()).min(rest.len());
            space[..len].copy_from_slice(&rest[..len]);
            cutter.filled(len);
            rest = &rest[len..];
            loop {
                match cutter.next_parcel() {
                    Ok(Some(got)) => prop_assert!(parcels.iter().any(|sent| sent[..] == got[..])),
                    Ok(None) => break,
                    Err(_) => break 'stream,
                }
            }
        }
    }

    #[test]
    fn noise_is_no_reason_to_panic(noise in prop::collection::vec(any::<u8>(), 0..2000), pieces in pieces()) {
        let _ = cut(&noise, &pieces);
        let _ = Hello::decode(&noise);
        let _ = decode_answer(&noise);
        let _ = decode_verdict(&noise);
        if let Some(first) = noise.first_chunk() {
            let _ = open(first);
        }
        // With a beginning that is right.
        let _ = Hello::decode(&[&[1, 0, 1, 0][..], &noise].concat());
        let _ = decode_answer(&[&[0][..], &noise].concat());
        let _ = decode_answer(&[&[5][..], &noise].concat());
        if let Ok(first) = <[u8; ENVELOPE_BYTES]>::try_from([&b"tmbl"[..], &noise].concat().get(..ENVELOPE_BYTES).unwrap_or(&[])) {
            let _ = open(&first);
        }
    }

    #[test]
    fn a_hello_is_read_back_and_refused_where_it_is_cut(hello in hello()) {
        let message = hello.encode();
        let whole = body(&message, Kind::Hello);
        prop_assert_eq!(Hello::decode(whole), Ok(hello));
        // Earlier releases did not say what they drew at their start; the first ones not what they know of the cluster's versions either.
        for len in (0..whole.len()).filter(|len| ![8, 16, 20].contains(&(whole.len() - len))) {
            prop_assert!(Hello::decode(&whole[..len]).is_err(), "{} bytes of it", len);
        }
        // A later release may say more.
        prop_assert_eq!(Hello::decode(&[whole, b"and more"].concat()), Hello::decode(whole));
    }

    #[test]
    fn answers_and_verdicts_are_read_back(hello in hello(), refusal in refusal()) {
        let Hello { cluster, from: node, from_store: store, incarnation, release, knows, start, began_after, .. } = hello;
        let welcome = Welcome { version: 1, cluster, node, store, incarnation, release, knows, start, began_after };
        for answer in [Ok(welcome), Err(refusal)] {
            prop_assert_eq!(decode_answer(body(&encode_answer(&answer), Kind::Answer)), Ok(answer));
        }
        for verdict in [Ok(()), Err(refusal)] {
            prop_assert_eq!(decode_verdict(body(&encode_verdict(verdict), Kind::Verdict)), Ok(verdict));
        }
    }
}

#[test]
fn a_length_beyond_the_bound_is_refused_before_anything_else_arrives() {
    let mut stream = header(&[1]).to_vec();
    stream[..4].copy_from_slice(&(PARCEL_BYTES_MAX as u32 + 1).to_le_bytes());
    assert_eq!(cut(&stream, &[8]), Err(FrameError::TooLong { bytes: PARCEL_BYTES_MAX + 1 }));
}

#[test]
fn what_is_announced_takes_no_memory_before_it_arrives() {
    let mut cutter = Cutter::default();
    let mut stream = header(&[1]).to_vec();
    stream[..4].copy_from_slice(&(PARCEL_BYTES_MAX as u32).to_le_bytes());
    cutter.space()[..8].copy_from_slice(&stream);
    cutter.filled(8);
    assert_eq!(cutter.next_parcel(), Ok(None));
    assert!(cutter.space().len() <= BUFFER_BYTES);
}

#[test]
fn versions_that_do_not_meet_are_said_whatever_else_is_laid_out_otherwise() {
    for (min, max, meet) in [(1, 1, true), (0, 9, true), (1, 7, true), (2, 9, false), (0, 0, false), (9, 1, false)] {
        let mut message = u16::to_le_bytes(min).to_vec();
        message.extend(u16::to_le_bytes(max));
        let decoded = Hello::decode(&message);
        if meet {
            assert_eq!(decoded, Err(Malformed::Damaged("cluster")));
        } else {
            let refusal = common_version(&decoded.unwrap());
            assert_eq!(refusal, Err(Refusal::Versions { min: VERSION_MIN, max: VERSION_MAX }));
        }
    }
}

/// Version 1, as it was first written: a release that reads something else here cannot talk to those that are running.
#[test]
fn version_one_stays_as_it_is() {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let hello = Hello {
        version_min: 1,
        version_max: 1,
        cluster: 0x1122_3344_5566_7788,
        from: 1,
        from_store: 0xa1,
        incarnation: 3,
        to: 2,
        to_store: 0xb2,
        lane: 2,
        release: "0.1".into(),
        knows: 1..=2,
        start: 0x99,
        began_after: Some(0x76),
    };
    assert_eq!(
        hex(&hello.encode()),
        "746d626c0155000000010001008877665544332211\
         01000000a1000000000000000000000000000000\
         030000000000000002000000b2000000000000000000000000000000\
         0203302e310100020099000000000000007700000000000000"
            .replace(' ', "")
    );
    let (release, knows, start, began_after) = ("0.1".into(), 1..=2, 0x99, Some(0x76));
    let (store, incarnation) = (0xb2, 4);
    let welcome = Welcome { version: 1, cluster: 5, node: 2, store, incarnation, release, knows, start, began_after };
    assert_eq!(
        hex(&encode_answer(&Ok(welcome.clone()))),
        "746d626c033f00000000010005000000000000000200000\
         0b20000000000000000000000000000000400000000000000\
         03302e310100020099000000000000007700000000000000"
            .replace(' ', "")
    );
    // As earlier releases said it: nothing of their logs, or of their starts either, and the first ones nothing of the cluster's versions.
    for (left_out, start, knows) in [(8, 0x99, 1..=2), (16, 0, 1..=2), (20, 0, 1..=1)] {
        let hello_then = Hello { knows: knows.clone(), start, began_after: None, ..hello.clone() };
        let welcome_then = Welcome { knows, start, began_after: None, ..welcome.clone() };
        let cut = |message: Vec<u8>| message[ENVELOPE_BYTES..message.len() - left_out].to_vec();
        assert_eq!(Hello::decode(&cut(hello.encode())), Ok(hello_then));
        assert_eq!(decode_answer(&cut(encode_answer(&Ok(welcome.clone())))), Ok(Ok(welcome_then)));
    }
    let refusal = Refusal::Store { node: 2, known: 0xb2, named: 0xc3 };
    assert_eq!(
        hex(&encode_verdict(Err(refusal))),
        "746d626c04250000000502000000b2000000000000000000000000000000c3000000000000000000000000000000"
    );
    assert_eq!(hex(&encode_verdict(Ok(()))), "746d626c040100000000");
    assert_eq!(hex(&header(b"123456789")), "090000002639f4cb");
}
