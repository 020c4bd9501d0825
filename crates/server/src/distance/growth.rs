//! What a statement costs does not grow with its rows: the same for 1, 10 and 100 of them, but for the groups in which they are asked for.

use super::Far;
use std::fmt::Write as _;

/// Groups of rows, by number: `g` of a row, and how many are in it. The first is there to be warm.
const GROUPS: [(usize, usize); 4] = [(0, 2), (1, 1), (2, 10), (3, 100)];
/// Keys of a group begin at its number times this.
const STRIDE: usize = 1000;
/// One row is asked for by itself, two are found and then asked for: so many round trips more are no growth, tenths.
const MORE_TENTHS: u64 = 20;

struct Kind {
    name: &'static str,
    /// Statements before; `{rows}` stands for the rows of all groups: key, group.
    tables: &'static [&'static str],
    /// About group `{g}`, of `{n}` rows; `{keys}` are its keys.
    work: &'static str,
}

const ROWS: &str = "(SELECT g * 1000 + n AS id, g FROM (VALUES (0, 2), (1, 1), (2, 10), (3, 100)) AS groups (g, size), \
                    LATERAL generate_series(1, size) n) AS rows";

const P: &str = "CREATE TABLE p (id int PRIMARY KEY, g int, u int UNIQUE, v int)";
const P_G: &str = "CREATE INDEX p_g ON p (g)";
const P_ROWS: &str = "INSERT INTO p SELECT id, g, id, 0 FROM {rows}";
const C_ROWS: &str = "INSERT INTO c SELECT id, id, g FROM {rows}";
const C_P: &str = "CREATE INDEX c_p ON c (p)";
const PLAIN_C: &str = "CREATE TABLE c (id int PRIMARY KEY, p int, g int)";

const KINDS: &[Kind] = &[
    Kind {
        name: "join by key",
        tables: &[P, P_G, P_ROWS, PLAIN_C, C_ROWS],
        work: "SELECT * FROM p JOIN c ON c.id = p.u WHERE p.g = {g}",
    },
    Kind {
        name: "join by secondary index",
        tables: &[P, P_G, P_ROWS, PLAIN_C, C_P, C_ROWS],
        work: "SELECT * FROM p JOIN c ON c.p = p.u WHERE p.g = {g}",
    },
    Kind {
        name: "LEFT JOIN by key",
        tables: &[P, P_G, P_ROWS, PLAIN_C, C_ROWS],
        work: "SELECT * FROM p LEFT JOIN c ON c.id = p.u + 1 WHERE p.g = {g}",
    },
    Kind {
        name: "join under LIMIT",
        tables: &[P, P_G, P_ROWS, PLAIN_C, C_P, C_ROWS],
        work: "SELECT * FROM p JOIN c ON c.p = p.id WHERE p.g = {g} ORDER BY p.g LIMIT {n}",
    },
    Kind { name: "FOR UPDATE of a span", tables: &[P, P_G, P_ROWS], work: "SELECT * FROM p WHERE g = {g} FOR UPDATE" },
    Kind {
        name: "FOR UPDATE in an order",
        tables: &[P, P_G, P_ROWS],
        work: "SELECT * FROM p WHERE g = {g} ORDER BY v, u DESC LIMIT {n} FOR UPDATE",
    },
    Kind {
        name: "FOR UPDATE of a query",
        tables: &[P, P_G, P_ROWS, PLAIN_C, C_ROWS],
        work: "SELECT * FROM p JOIN c USING (id) WHERE p.g = {g} FOR UPDATE",
    },
    Kind {
        name: "UPDATE of a unique key",
        tables: &[P, P_G, P_ROWS],
        work: "UPDATE p SET u = u + 500000 WHERE g = {g}",
    },
    Kind {
        name: "UPDATE of a primary key",
        tables: &[P, P_G, P_ROWS],
        work: "UPDATE p SET id = id + 500000 WHERE g = {g}",
    },
    Kind { name: "UPDATE by keys", tables: &[P, P_G, P_ROWS], work: "UPDATE p SET v = v + 1 WHERE id IN ({keys})" },
    Kind {
        name: "UPDATE FROM",
        tables: &[P, P_G, P_ROWS, PLAIN_C, C_ROWS],
        work: "UPDATE p SET v = c.id FROM c WHERE c.id = p.u AND p.g = {g}",
    },
    Kind {
        name: "DELETE of rows that others may point at",
        tables: &[P, P_G, P_ROWS, "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p, g int)", C_P],
        work: "DELETE FROM p WHERE g = {g}",
    },
    Kind {
        name: "DELETE, RESTRICT",
        tables: &[
            P,
            P_G,
            P_ROWS,
            "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE RESTRICT, g int)",
            C_P,
        ],
        work: "DELETE FROM p WHERE g = {g}",
    },
    Kind {
        name: "DELETE, CASCADE",
        tables: &[
            P,
            P_G,
            P_ROWS,
            "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE, g int)",
            C_P,
            C_ROWS,
        ],
        work: "DELETE FROM p WHERE g = {g}",
    },
    Kind {
        name: "DELETE, SET NULL",
        tables: &[
            P,
            P_G,
            P_ROWS,
            "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE SET NULL, g int)",
            C_P,
            C_ROWS,
        ],
        work: "DELETE FROM p WHERE g = {g}",
    },
    Kind {
        name: "DELETE, CASCADE to two tables",
        tables: &[
            P,
            P_G,
            P_ROWS,
            "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE, g int)",
            C_P,
            C_ROWS,
            "CREATE TABLE d (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE)",
            "CREATE INDEX d_p ON d (p)",
            "INSERT INTO d SELECT id, id FROM {rows}",
        ],
        work: "DELETE FROM p WHERE g = {g}",
    },
    Kind {
        name: "UPDATE of a key that others may point at",
        tables: &[P, P_G, P_ROWS, "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p (u), g int)", C_P],
        work: "UPDATE p SET u = u + 500000 WHERE g = {g}",
    },
    Kind {
        name: "INSERT with references",
        tables: &[P, P_ROWS, "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p, g int)"],
        work: "INSERT INTO c SELECT id, id, g FROM {rows} WHERE g = {g}",
    },
    Kind {
        name: "INSERT, ON CONFLICT DO NOTHING over several keys",
        tables: &[P, P_ROWS],
        work: "INSERT INTO p SELECT id, g, id, 1 FROM {rows} WHERE g = {g} ON CONFLICT DO NOTHING",
    },
    Kind {
        name: "INSERT, ON CONFLICT DO UPDATE",
        tables: &[P, P_ROWS],
        work: "INSERT INTO p SELECT id, g, id, 1 FROM {rows} WHERE g = {g} ON CONFLICT (id) DO UPDATE SET v = 7",
    },
];

fn filled(text: &str, (group, size): (usize, usize)) -> String {
    let keys: Vec<String> = (1..=size).map(|n| (group * STRIDE + n).to_string()).collect();
    text.replace("{rows}", ROWS)
        .replace("{g}", &group.to_string())
        .replace("{n}", &size.to_string())
        .replace("{keys}", &keys.join(", "))
}

/// Round trips of each group, tenths, but of the first.
fn costs(kind: &Kind) -> Vec<u64> {
    let mut far = Far::new();
    for table in kind.tables {
        far.run(&filled(table, GROUPS[0]));
    }
    let costs = GROUPS.map(|group| {
        let cost = far.cost(|far| {
            let done = far.run(&filled(kind.work, group));
            let rows = done.tag.rsplit(' ').next().and_then(|count| count.parse().ok());
            let nothing = kind.work.contains("DO NOTHING");
            assert!(nothing || rows == Some(group.1), "{}: {} rows, not {}", kind.name, done.tag, group.1);
        });
        cost.round_trips_tenths
    });
    costs[1..].to_vec()
}

/// The control: what is locked row by row is seen to grow.
#[test]
fn what_is_asked_row_by_row_is_seen_to_grow() {
    let work = "SELECT * FROM p WHERE g = {g} FOR UPDATE NOWAIT";
    let costs = costs(&Kind { name: "FOR UPDATE NOWAIT", tables: &[P, P_G, P_ROWS], work });
    assert!(costs[2] > costs[0] + 900 && costs[1] > costs[0] + MORE_TENTHS, "{costs:?}");
}

#[test]
fn no_statement_pays_for_each_row() {
    let (mut all, mut grown) = (String::new(), Vec::new());
    for kind in KINDS {
        let costs = costs(kind);
        let _ = writeln!(all, "{}: {costs:?}", kind.name);
        if costs.iter().any(|tenths| *tenths > costs[0] + MORE_TENTHS) {
            grown.push(kind.name);
        }
    }
    assert!(grown.is_empty(), "grow with their rows: {grown:?}; tenths of round trips for 1, 10 and 100 rows:\n{all}");
}

/// Round trips of a COPY, tenths, of so many rows in order; `among`: with others between them.
fn copied(rows: usize, among: bool) -> u64 {
    let mut far = Far::new();
    far.run("CREATE TABLE t (id int PRIMARY KEY, v int)");
    if among {
        far.run("INSERT INTO t SELECT n * 1000, 0 FROM generate_series(1, 100) n");
    }
    far.copy("COPY t FROM STDIN", "0\t0\n");
    let ids = (1001..).filter(|id| id % 1000 != 0).take(rows);
    let data: String = ids.map(|id| format!("{id}\t1\n")).collect();
    far.cost(|far| assert_eq!(far.copy("COPY t FROM STDIN", &data).tag, format!("COPY {rows}"))).round_trips_tenths
}

/// A round trip for the locks of each 1,024 keys (decision 244), and none that grows with the rows beside those.
#[test]
fn a_copy_of_rows_pays_for_its_locks_alone() {
    let beside_locks = |rows: usize, among: bool| copied(rows, among) - 10 * rows.div_ceil(1024) as u64;
    let few = beside_locks(1_000, false);
    assert_eq!(few, beside_locks(8_000, false));
    // More than goes as one entry of a log goes in parts before its commit (decision 234): two round trips more.
    let parts = beside_locks(20_000, false);
    assert!(parts > few && parts <= few + 20, "{few}, {parts}");
    // Where others are in between each key is asked for, together with the locks.
    let among = beside_locks(20_000, true);
    assert!(among <= parts + 20, "{parts}, {among}");
}

/// Who leads the table himself asks for its locks together, too: some hundred keys at a time, and not each.
#[test]
fn a_copy_at_the_leader_asks_for_its_locks_together() {
    let (_, mut near) = super::far_and_leader();
    let requests = |near: &Far| near.world.member(near.node).counters().lock_requests.get();
    let data: String = (1000..9192).map(|id| format!("{id}\t1\n")).collect();
    let before = requests(&near);
    assert_eq!(near.copy("COPY t FROM STDIN", &data).tag, "COPY 8192");
    let asked = requests(&near) - before;
    // 256 at a time, and those of the catalog.
    assert!((32..64).contains(&asked), "{asked} requests for the locks of 8192 rows");
}

/// Round trips of a COPY, tenths, of rows in no order; `bare`: the first one has no key in the second index.
fn copied_in_no_order(bare: bool) -> u64 {
    const ROWS: usize = 2_000;
    let mut far = Far::new();
    far.run("CREATE TABLE t (id int PRIMARY KEY, v int UNIQUE)");
    far.copy("COPY t FROM STDIN", "0\t0\n");
    let ids = (1..=ROWS).map(|n| n * 7_919 % 10_007);
    let row = |(n, id)| if bare && n == 0 { format!("{id}\t\\N\n") } else { format!("{id}\t{id}\n") };
    let data: String = ids.enumerate().map(row).collect();
    far.cost(|far| assert_eq!(far.copy("COPY t FROM STDIN", &data).tag, format!("COPY {ROWS}"))).round_trips_tenths
}

/// How many keys are asked for together does not go by those of the first row.
#[test]
fn a_copy_whose_first_row_has_few_keys_pays_for_none_of_the_others() {
    assert_eq!(copied_in_no_order(true), copied_in_no_order(false));
}
