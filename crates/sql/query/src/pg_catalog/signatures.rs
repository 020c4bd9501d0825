//! What functions take and give, as `\df` shows it.

use super::names::type_name;
use crate::catalog::Oid;

/// Places among the columns of `pg_proc`.
const VARIADIC: usize = 7;
const RETURNS_SET: usize = 13;
const RESULT: usize = 18;
const ARGUMENTS: usize = 19;

/// Arguments that have names or defaults, or are those of an ordered set.
const NAMED: &[(Oid, &str)] = &[
    (2096, "pid integer, timeout bigint DEFAULT 0"),
    (3305, "jsonb_in jsonb, path text[], replacement jsonb, create_if_missing boolean DEFAULT true"),
    (3461, "year integer, month integer, mday integer, hour integer, min integer, sec double precision"),
    (
        3464,
        "years integer DEFAULT 0, months integer DEFAULT 0, weeks integer DEFAULT 0, days integer DEFAULT 0, \
         hours integer DEFAULT 0, mins integer DEFAULT 0, secs double precision DEFAULT 0.0",
    ),
    (3846, "year integer, month integer, day integer"),
    (3986, "VARIADIC \"any\" ORDER BY VARIADIC \"any\""),
    (3988, "VARIADIC \"any\" ORDER BY VARIADIC \"any\""),
    (3990, "VARIADIC \"any\" ORDER BY VARIADIC \"any\""),
    (3992, "VARIADIC \"any\" ORDER BY VARIADIC \"any\""),
];

/// Types that functions of `pg_proc` take or give and that `pg_type` does not list: there are no values of them.
const UNLISTED: &[(Oid, &str)] = &[
    (32, "pg_ddl_command"),
    (269, "table_am_handler"),
    (325, "index_am_handler"),
    (600, "point"),
    (601, "lseg"),
    (602, "path"),
    (603, "box"),
    (604, "polygon"),
    (628, "line"),
    (650, "cidr"),
    (718, "circle"),
    (774, "macaddr8"),
    (829, "macaddr"),
    (2202, "regprocedure"),
    (2203, "regoper"),
    (2204, "regoperator"),
    (2280, "language_handler"),
    (2281, "internal"),
    (2776, "anynonarray"),
    (2970, "txid_snapshot"),
    (3115, "fdw_handler"),
    (3220, "pg_lsn"),
    (3310, "tsm_handler"),
    (3361, "pg_ndistinct"),
    (3402, "pg_dependencies"),
    (3500, "anyenum"),
    (3614, "tsvector"),
    (3615, "tsquery"),
    (3642, "gtsvector"),
    (3734, "regconfig"),
    (3769, "regdictionary"),
    (3831, "anyrange"),
    (3838, "event_trigger"),
    (4072, "jsonpath"),
    (4096, "regrole"),
    (4191, "regcollation"),
    (4537, "anymultirange"),
    (4538, "anycompatiblemultirange"),
    (4600, "pg_brin_bloom_summary"),
    (4601, "pg_brin_minmax_multi_summary"),
    (5017, "pg_mcv_list"),
    (5038, "pg_snapshot"),
    (5069, "xid8"),
    (5077, "anycompatible"),
    (5078, "anycompatiblearray"),
    (5079, "anycompatiblenonarray"),
    (5080, "anycompatiblerange"),
];

/// What a type is called that `pg_type` does not list.
pub(super) fn unlisted_type(oid: Oid) -> Option<&'static str> {
    UNLISTED.iter().find(|(id, _)| *id == oid).map(|(_, name)| *name)
}

/// The columns of a function's row in `pg_proc`.
fn row(function: Oid) -> Option<Vec<&'static str>> {
    let of = |line: &&str| line.split('\t').next().and_then(|oid| oid.parse().ok()) == Some(function);
    include_str!("data/pg_proc.tsv").lines().find(of).map(|line| line.split('\t').collect())
}

fn shown(ty: &str) -> String {
    type_name(ty.parse().unwrap_or(0), -1)
}

/// `pg_get_function_arguments`.
pub(super) fn arguments(function: Oid) -> Option<String> {
    if let Some((_, text)) = NAMED.iter().find(|(oid, _)| *oid == function) {
        return Some((*text).to_owned());
    }
    let row = row(function)?;
    let types: Vec<&str> = row.get(ARGUMENTS)?.split_ascii_whitespace().collect();
    let variadic = row.get(VARIADIC).is_some_and(|ty| *ty != "0");
    let last = types.len().checked_sub(1);
    let shown = types.iter().enumerate().map(|(place, ty)| {
        let word = if variadic && Some(place) == last { "VARIADIC " } else { "" };
        format!("{word}{}", shown(ty))
    });
    Some(shown.collect::<Vec<_>>().join(", "))
}

/// `pg_get_function_identity_arguments`: without the defaults.
pub(super) fn identity(function: Oid) -> Option<String> {
    let bare = |argument: &str| argument.split(" DEFAULT ").next().unwrap_or_default().to_owned();
    arguments(function).map(|text| text.split(", ").map(bare).collect::<Vec<_>>().join(", "))
}

/// `pg_get_function_result`.
pub(super) fn result(function: Oid) -> Option<String> {
    let row = row(function)?;
    let set = if row.get(RETURNS_SET) == Some(&"t") { "SETOF " } else { "" };
    Some(format!("{set}{}", shown(row.get(RESULT)?)))
}
