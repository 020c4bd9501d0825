//! Uuids: random ones, and those of the extension uuid-ossp that are made of names.

use super::super::function::{Arguments, Function, Sig};
use super::{str_at, wrong_type};
use crate::types::{SqlType as T, Value};
use md5::Md5;
use sha1::Sha1;
use sha2::Digest;

type R = Result<Value, crate::SqlError>;

const UUID: Sig = Sig::Is(T::Uuid);
const TEXT: Sig = Sig::Is(T::Text);

pub(super) static TABLE: &[Function] = &[
    Function::volatile("gen_random_uuid", &[], UUID, random),
    Function::volatile("uuid_generate_v4", &[], UUID, random),
    Function::pure("uuid_generate_v3", &[UUID, TEXT], UUID, |v, _| named::<Md5>(v, 3)),
    Function::pure("uuid_generate_v5", &[UUID, TEXT], UUID, |v, _| named::<Sha1>(v, 5)),
    Function::pure("uuid_nil", &[], UUID, |_, _| Ok(Value::Uuid([0; 16]))),
    Function::pure("uuid_ns_dns", &[], UUID, |_, _| namespace(0x10)),
    Function::pure("uuid_ns_url", &[], UUID, |_, _| namespace(0x11)),
    Function::pure("uuid_ns_oid", &[], UUID, |_, _| namespace(0x12)),
    Function::pure("uuid_ns_x500", &[], UUID, |_, _| namespace(0x14)),
];

/// Says of which version it is, and that it is of RFC 4122's kind.
fn uuid(mut bytes: [u8; 16], version: u8) -> R {
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(Value::Uuid(bytes))
}

/// Version 4: nobody can guess it.
fn random(_: &[Value], _: &Arguments<'_>) -> R {
    let mut bytes = [0; 16];
    crate::types::fill_by_chance(&mut bytes)?;
    uuid(bytes, 4)
}

/// Of a namespace and a name in it: the same for ever.
fn named<D: Digest>(values: &[Value], version: u8) -> R {
    let Some(Value::Uuid(space)) = values.first() else { return Err(wrong_type()) };
    let name = str_at(values, 1)?;
    crate::work::step(name.len())?;
    let digest = D::new().chain_update(space).chain_update(name).finalize();
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest.iter()).for_each(|(to, from)| *to = *from);
    uuid(bytes, version)
}

/// The namespaces of RFC 4122, appendix C, differ in one byte.
fn namespace(which: u8) -> R {
    let rest = [0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8];
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&[0x6b, 0xa7, 0xb8, which]);
    bytes[4..].copy_from_slice(&rest);
    Ok(Value::Uuid(bytes))
}
