//! Random predicates over a table with many indexes, against the same rows in a table that has none: what access paths, key
//! spans, reverse scans and orders by index say must be what a full scan, a filter and a sort say.

use crate::world::World;
use proptest::prelude::*;
use std::fmt::Write;

const ROWS: usize = 60;

fn value(column: &str) -> BoxedStrategy<String> {
    let shown = |nullable: bool, text: BoxedStrategy<String>| {
        if nullable { prop_oneof![1 => Just("NULL".to_string()), 6 => text].boxed() } else { text }
    };
    match column {
        "a" => shown(false, (-3i32..6).prop_map(|v| v.to_string()).boxed()),
        "b" => shown(true, (-2i32..4).prop_map(|v| v.to_string()).boxed()),
        "c" => shown(true, "[ab]{0,3}".prop_map(|v| format!("'{v}'")).boxed()),
        "n" => shown(true, (-20i32..20).prop_map(|v| format!("{}.{}", v / 10, (v % 10).abs())).boxed()),
        _ => shown(true, prop_oneof!["true", "false"].boxed()),
    }
}

fn comparison() -> impl Strategy<Value = String> {
    let column = prop_oneof![Just("a"), Just("b"), Just("c"), Just("n"), Just("f")];
    column.prop_flat_map(|column| {
        let op = prop_oneof![Just("="), Just("<"), Just("<="), Just(">"), Just(">="), Just("<>")];
        let plain = (op, value(column)).prop_map(move |(op, v)| format!("{column} {op} {v}"));
        let turned = value(column).prop_map(move |v| format!("{v} < {column}"));
        let list = prop::collection::vec(value(column), 1..4)
            .prop_map(move |list| format!("{column} IN ({})", list.join(", ")));
        let between = (value(column), value(column)).prop_map(move |(x, y)| format!("{column} BETWEEN {x} AND {y}"));
        let null = any::<bool>().prop_map(move |not| format!("{column} IS {}NULL", if not { "NOT " } else { "" }));
        let wide = (-5_000_000_000i64..5_000_000_000).prop_map(|v| format!("a > {v}"));
        let any = prop::collection::vec(-3i32..6, 0..4).prop_map(|list| {
            let list: Vec<String> = list.iter().map(i32::to_string).collect();
            format!("a = ANY ('{{{}}}'::int[])", list.join(","))
        });
        let formula = prop_oneof![
            Just("f".to_string()),
            Just("NOT f".to_string()),
            (-3i32..8).prop_map(|v| format!("a + b = {v}")),
            (-3i32..8).prop_map(|v| format!("a + b < {v}")),
            "[AB]{0,2}".prop_map(|v| format!("upper(c) >= '{v}'")),
            "[AB]{0,2}".prop_map(|v| format!("upper(c) IN ('{v}', 'A')")),
        ];
        prop_oneof![4 => plain, 1 => turned, 2 => list, 2 => between, 1 => null, 1 => wide, 1 => any, 3 => formula]
    })
}

fn predicate() -> impl Strategy<Value = String> {
    let one = prop_oneof![5 => comparison(), 1 => comparison().prop_map(|c| format!("NOT ({c})")),
        1 => (comparison(), comparison()).prop_map(|(x, y)| format!("({x} OR {y})"))];
    prop::collection::vec(one, 1..4).prop_map(|parts| parts.join(" AND "))
}

fn order() -> impl Strategy<Value = String> {
    let key = (
        prop_oneof![Just("a"), Just("b"), Just("c"), Just("n"), Just("f")],
        prop_oneof![Just(""), Just(" DESC"), Just(" NULLS FIRST"), Just(" DESC NULLS LAST")],
    )
        .prop_map(|(column, how)| format!("{column}{how}"));
    prop::collection::vec(key, 0..3).prop_map(|mut keys| {
        keys.push("id".into());
        keys.join(", ")
    })
}

fn row() -> impl Strategy<Value = String> {
    (value("a"), value("b"), value("c"), value("n"), value("f"))
        .prop_map(|(a, b, c, n, f)| format!("{a}, {b}, {c}, {n}, {f}"))
}

static COLUMNS: [&str; 5] = [
    "INDEX i_b ON indexed (b)",
    "INDEX i_cb ON indexed (c DESC, b)",
    "INDEX i_n ON indexed (n)",
    "UNIQUE INDEX i_id ON indexed (id DESC)",
    "INDEX i_fa ON indexed (f, a DESC, c)",
];
static FORMULAS: [&str; 7] = [
    "INDEX p_b ON indexed (b) WHERE f",
    "INDEX p_c ON indexed (c DESC, a) WHERE b > 0",
    "INDEX p_n ON indexed (n, b DESC) WHERE c IS NOT NULL",
    "UNIQUE INDEX p_id ON indexed (id DESC) WHERE a < 3 AND NOT f",
    "INDEX e_ab ON indexed ((a + b), c)",
    "UNIQUE INDEX e_id ON indexed ((id + 0) DESC, b)",
    "INDEX e_c ON indexed (upper(c) DESC) WHERE a IN (1, 2, 3)",
];

fn world(rows: &[String], indexes: &[&str]) -> World {
    let world = World::new();
    let columns = "id int, a int NOT NULL, b smallint, c text, n numeric(6,1), f bool";
    for statement in
        [format!("CREATE TABLE plain ({columns})"), format!("CREATE TABLE indexed ({columns}, PRIMARY KEY (a, id))")]
    {
        world.run(&statement).unwrap();
    }
    for index in indexes {
        world.run(&format!("CREATE {index}")).unwrap();
    }
    let mut values = String::new();
    for (id, row) in rows.iter().enumerate() {
        let _ = write!(values, "{}({id}, {row})", if id == 0 { "" } else { ", " });
    }
    world.run(&format!("INSERT INTO plain VALUES {values}")).unwrap();
    world.run(&format!("INSERT INTO indexed VALUES {values}")).unwrap();
    world
}

fn both(world: &World, text: &str) -> (Vec<String>, Vec<String>) {
    let run = |table: &str| {
        let text = text.replace("TABLE", table);
        world.run(&text).unwrap_or_else(|error| panic!("{text}: {error}")).lines()
    };
    (run("plain"), run("indexed"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn indexes_change_nothing_but_the_speed(
        rows in prop::collection::vec(row(), 1..ROWS),
        indexes in prop_oneof![Just(COLUMNS.as_slice()), Just(FORMULAS.as_slice())],
        queries in prop::collection::vec((predicate(), order(), prop::option::of((0usize..5, 0usize..4))), 1..12),
    ) {
        let world = world(&rows, indexes);
        for (predicate, order, limit) in queries {
            let limit = limit.map_or(String::new(), |(n, skip)| format!(" LIMIT {n} OFFSET {skip}"));
            let text = format!("SELECT * FROM TABLE WHERE {predicate} ORDER BY {order}{limit}");
            let (plain, indexed) = both(&world, &text);
            prop_assert_eq!(plain, indexed, "{}", text);
            let text = format!("SELECT count(*), min(b), max(c), sum(a), max(id) FROM TABLE WHERE {predicate}");
            let (plain, indexed) = both(&world, &text);
            prop_assert_eq!(plain, indexed, "{}", text);
        }
    }

    #[test]
    fn writes_keep_indexes_in_step(
        rows in prop::collection::vec(row(), 1..ROWS),
        indexes in prop_oneof![Just(COLUMNS.as_slice()), Just(FORMULAS.as_slice())],
        writes in prop::collection::vec((predicate(), prop_oneof![Just("a"), Just("b"), Just("c"), Just("f")], any::<bool>(), row()), 1..6),
        checks in prop::collection::vec(predicate(), 6),
    ) {
        let world = world(&rows, indexes);
        for (i, (predicate, column, delete, row)) in writes.into_iter().enumerate() {
            let value = match column {
                "a" => "a + 100",
                "b" => "(b + 1)::smallint",
                "c" => "'zz'",
                _ => "NOT f",
            };
            let text = match delete {
                true => format!("DELETE FROM TABLE WHERE {predicate} RETURNING id"),
                false => format!("UPDATE TABLE SET {column} = {value} WHERE {predicate} RETURNING id"),
            };
            let (mut plain, mut indexed) = both(&world, &text);
            plain.sort();
            indexed.sort();
            prop_assert_eq!(plain, indexed, "{}", text);
            both(&world, &format!("INSERT INTO TABLE VALUES ({}, {row})", 1000 + i));
        }
        for predicate in checks {
            let text = format!("SELECT * FROM TABLE WHERE {predicate} ORDER BY id");
            let (plain, indexed) = both(&world, &text);
            prop_assert_eq!(plain, indexed, "{}", text);
        }
        world.run("DELETE FROM indexed").unwrap();
        world.run("DELETE FROM plain").unwrap();
        prop_assert_eq!(world.kv.live_keys(), 0);
    }
}
