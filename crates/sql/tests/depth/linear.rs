//! Binding costs as much as the text is long: the binder's steps are counted, not its time.

use crate::world::World;
use sql::context::MemoryBudget;
use sql::plan::{PlanContext, prepare};
use sql::syntax::{Command, parse};
use sql::transaction::Patience;
use sql::work::{Limits, Pace, STEPS_PER_LOOK};
use sql::{Kv, SqlError, stack};
use std::sync::Arc;

/// What a statement may hold while it is read and bound.
const MEMORY_BYTES: usize = 64 << 20;

fn world() -> World {
    let world = World::new();
    world.run("CREATE TABLE t (a int PRIMARY KEY, b int, c text, j jsonb)").unwrap();
    world.run("CREATE TABLE u (a int PRIMARY KEY, d int)").unwrap();
    world
}

fn plan(text: &str, context: &PlanContext) -> Result<(), SqlError> {
    stack::roomy(|| {
        let command = parse(text)?.remove(0).command;
        let Command::Planned(planned) = command else { panic!("{text} is not planned") };
        prepare(&planned.statement, text, context).map(drop)
    })
}

/// Steps that binding a text takes.
fn steps(world: &World, text: &str) -> u64 {
    let context = PlanContext { pace: Pace::default(), ..world.plan_context() };
    plan(text, &context).unwrap_or_else(|e| panic!("{e}: {}", &text[..text.len().min(200)]));
    context.pace.steps()
}

/// Texts that nest, or chain: what comes before, what opens a level, the innermost, what closes a level, what comes after.
const NESTED: &[[&str; 5]] = &[
    ["SELECT ", "abs(", "a", ")", " FROM t"],
    ["SELECT ", "coalesce(", "a", ", 1)", " FROM t"],
    ["SELECT ", "nullif(", "a", ", 1)", " FROM t"],
    ["SELECT ", "greatest(1, ", "a", ")", " FROM t"],
    ["SELECT ", "(", "a", ")", " FROM t"],
    ["SELECT ", "(", "a", " + 1)", " FROM t"],
    ["SELECT ", "(1 + ", "a", ")", " FROM t"],
    ["SELECT ", "", "a", " + 1", " FROM t"],
    ["SELECT ", "", "c", " || 'x'", " FROM t"],
    ["SELECT 1 FROM t WHERE ", "", "a = 1", " OR b = 1", ""],
    ["SELECT 1 FROM t WHERE ", "", "a = 1", " AND b = 1", ""],
    ["SELECT 1 FROM t WHERE ", "NOT (", "a = 1", ")", ""],
    ["SELECT ", "- (", "a", ")", " FROM t"],
    ["SELECT ", "CAST(", "a", " AS int8)", " FROM t"],
    ["SELECT ", "(", "a", ")::int4::int8", " FROM t"],
    ["SELECT ", "CASE WHEN b = 1 THEN ", "a", " ELSE 2 END", " FROM t"],
    ["SELECT ", "CASE WHEN b = 1 THEN 2 ELSE ", "a", " END", " FROM t"],
    ["SELECT ", "CASE ", "a", " WHEN 1 THEN 2 ELSE 3 END", " FROM t"],
    ["SELECT ", "(ARRAY[", "a", "])[1]", " FROM t"],
    ["SELECT ", "(ROW(", "a", ", 1) = ROW(1, 2))::int", " FROM t"],
    ["SELECT ", "((", "a", ", 1) IN ((1, 2)))::int", " FROM t"],
    ["SELECT ", "(", "a", " IN (1, 2, 3))::int", " FROM t"],
    ["SELECT ", "extract(year FROM make_date(", "a", ", 1, 1))::int", " FROM t"],
    ["SELECT ", "substring(", "c", " FROM 1 FOR 2)", " FROM t"],
    ["SELECT ", "trim(", "c", ")", " FROM t"],
    ["SELECT ", "jsonb_build_array(", "j", ")", " FROM t"],
    ["SELECT ", "to_json(", "j", ")", " FROM t"],
    ["SELECT max(", "abs(", "a", ")", ") FROM t GROUP BY b"],
    ["SELECT b, max(a) FROM t GROUP BY b HAVING ", "(", "max(a)", " + 1)", " > 0"],
    ["SELECT row_number() OVER (ORDER BY ", "abs(", "a", ")", ") FROM t"],
    ["SELECT a FROM t ORDER BY ", "abs(", "a", ")", ""],
    ["SELECT ", "(SELECT ", "1", ")", ""],
    ["SELECT ", "(SELECT a FROM t WHERE a = ", "1", ")", ""],
    ["SELECT ", "(SELECT max(b) FROM t WHERE a = ", "1", ")", ""],
    ["SELECT ", "((SELECT ", "1", ") + 1)", ""],
    ["SELECT 1 WHERE ", "EXISTS (SELECT 1 FROM t WHERE ", "true", ")", ""],
    ["SELECT 1 WHERE ", "1 IN (SELECT a FROM t WHERE ", "true", ")", ""],
    ["SELECT 1 WHERE ", "1 = ANY (SELECT a FROM t WHERE ", "true", ")", ""],
    ["SELECT ", "ARRAY(SELECT cardinality(", "NULL::int[]", "))", ""],
    ["SELECT * FROM ", "(SELECT * FROM ", "t", ") x", ""],
    ["SELECT * FROM ", "(SELECT a FROM ", "t", ") x JOIN u USING (a)", ""],
    ["SELECT * FROM ", "(WITH w AS (SELECT * FROM ", "t", ") SELECT * FROM w) x", ""],
    ["SELECT * FROM t, LATERAL ", "(SELECT t.a FROM t t1, LATERAL ", "(SELECT 1) z", ") x", ""],
    ["SELECT a FROM t LIMIT ", "(SELECT a FROM t ORDER BY a LIMIT ", "1", ")", ""],
    ["SELECT a FROM t ORDER BY a LIMIT ", "(SELECT a FROM t ORDER BY a OFFSET ", "1", ")", ""],
    ["SELECT 1 FROM t JOIN u ON t.a = u.a AND ", "EXISTS (SELECT 1 FROM t JOIN u ON t.a = u.a AND ", "true", ")", ""],
    ["SELECT 1 FROM t, u WHERE t.a = u.a AND ", "EXISTS (SELECT 1 FROM t, u WHERE t.a = u.a AND ", "true", ")", ""],
    ["SELECT json_agg(", "(SELECT json_agg(", "1", "))", ")"],
    ["SELECT json_agg(", "ARRAY(SELECT json_agg(", "1", ")::text)", ")"],
    ["SELECT ", "(SELECT count(DISTINCT (SELECT ", "1", ")))", ""],
    ["SELECT ", "(SELECT sum(1) FILTER (WHERE 1 = ", "1", "))", ""],
    ["SELECT * FROM t, unnest(ARRAY[", "(SELECT max(n) FROM t t2, unnest(ARRAY[", "1", "]) n)", "]) m"],
    ["SELECT 1 FROM t WHERE a IN (", "(SELECT ", "1", ")", ")"],
    ["SELECT 1", "", "", " UNION ALL SELECT 1", ""],
    ["SELECT 1", "", "", " EXCEPT SELECT 1", ""],
];

/// Chains of WITH queries of which each names the one before twice: the first, and the others by their number and the names of the one before.
const CHAINS: &[[&str; 2]] = &[
    ["SELECT 1 AS a", "SELECT x.a FROM P x, P y"],
    ["SELECT 1 AS a", "SELECT x.a FROM P x WHERE EXISTS (SELECT 1 FROM P y WHERE y.a = x.a)"],
    ["SELECT 1 AS a", "SELECT (SELECT max(a) FROM P) AS a, (SELECT min(a) FROM P) AS b"],
    ["SELECT 1 AS a", "SELECT a FROM P UNION SELECT a FROM P"],
    ["SELECT 1 AS a", "NOT MATERIALIZED SELECT x.a FROM P x, P y"],
    ["SELECT 1 AS a", "SELECT x.a FROM P x JOIN P y USING (a) ORDER BY (SELECT max(a) FROM P) LIMIT 1"],
    ["SELECT a FROM t", "SELECT x.a FROM t, P x, P y WHERE t.a = x.a AND t.a = y.a"],
    [
        "SELECT 1 AS a UNION ALL SELECT a + 1 FROM q0 WHERE a < 1",
        "SELECT x.a FROM P x, P y UNION SELECT a FROM Q WHERE a < 0",
    ],
];

/// `WITH q0 AS (..), q1 AS (.. q0 ..), .. SELECT * FROM qn`; `within`: what they stand in.
fn chain([first, other]: [&str; 2], n: usize, [before, after]: [&str; 2]) -> String {
    let link = |i: usize| {
        let (how, other) = match other.strip_prefix("NOT MATERIALIZED ") {
            Some(other) => ("NOT MATERIALIZED ", other),
            None => ("", other),
        };
        let own = other.replace('P', &format!("q{}", i - 1)).replace('Q', &format!("q{i}"));
        format!(", q{i} AS {how}({own})")
    };
    let recursive = if first.contains("q0") { "RECURSIVE " } else { "" };
    let links: String = (1..n).map(link).collect();
    format!("{before}WITH {recursive}q0 AS ({first}){links} SELECT a FROM q{}{after}", n - 1)
}

fn nest([before, open, inner, close, after]: [&str; 5], n: usize) -> String {
    format!("{before}{}{inner}{}{after}", open.repeat(n), close.repeat(n))
}

#[test]
fn binding_twice_as_much_takes_about_twice_the_steps() {
    let world = world();
    for shape in NESTED {
        let of = |n: usize| steps(&world, &nest(*shape, n));
        let (small, large) = (of(20), of(60));
        // Three levels within each other may have two ways to run, each of which is bound; and the direct path is tried at each level
        // before the engine, which may square what is little. Nothing doubles with each level.
        assert!(large <= 12 * small.max(20), "{shape:?}: {small} steps for 20 levels, {large} for 60");
    }
}

#[test]
fn operands_that_are_copied_do_not_grow_without_end() {
    let world = world();
    let mut context = world.plan_context();
    for [before, open, inner, close, after] in [
        ["SELECT ", "(", "a", " BETWEEN 0 AND 1)::int", " FROM t"],
        ["SELECT ", "((", "a", ", 1) < (1, 2))::int", " FROM t"],
        ["SELECT ", "((", "a", ", b) IN ((1, 2), (3, 4)))::int", " FROM t"],
    ] {
        context.pace = Pace::default();
        let error = plan(&nest([before, open, inner, close, after], 60), &context).unwrap_err();
        assert_eq!(error.state.as_str(), "54001", "{open}");
        // The direct path binds it, gives it back, and the engine binds it again: some 600 steps each, where copies without end took 2^60.
        assert!(context.pace.steps() < 2_000, "{open}: {} steps", context.pace.steps());
        context.pace = Pace::default();
        plan(&nest([before, open, inner, close, after], 10), &context).unwrap();
    }
}

/// Whatever takes long while it is read and bound looks whether it was ended.
#[test]
fn whoever_is_cancelled_while_it_is_bound_ends_at_the_next_look() {
    let world = world();
    let many = 2_000;
    for text in [
        nest(["SELECT ", "", "a", " + 1", " FROM t"], many),
        nest(["SELECT 1 FROM t WHERE ", "", "a = 1", " OR b = 1", ""], many),
        nest(["SELECT 1", "", "", " UNION ALL SELECT 1", ""], many),
        format!("SELECT 1 FROM t WHERE a IN (1{})", ", 1".repeat(many)),
        format!("VALUES (1){}", ", (1+0)".repeat(many)),
        format!("SELECT a{} FROM t", ", a".repeat(many)),
        nest(["SELECT ", "(SELECT ", "1", ")", ""], 100) + &" , (SELECT 1)".repeat(many),
    ] {
        let patience = Patience::default();
        let kv: Arc<dyn Kv> = world.kv.clone();
        let pace = Pace::default();
        let _loan = Limits::new(patience.clone(), kv).lend(Arc::new(MemoryBudget::new(MEMORY_BYTES)));
        patience.interrupt.raise();
        let shown = &text[..60];
        // While it is parsed.
        let parsing = pace.clone();
        let error = stack::roomy(|| sql::syntax::parse_at(&text, &parsing)).unwrap_err();
        assert_eq!(error.state.as_str(), "57014", "{shown}");
        let parsed = pace.steps();
        assert!(parsed <= STEPS_PER_LOOK as u64, "{shown}: {parsed} steps of parsing");
        // While it is bound.
        let context = PlanContext { pace: pace.clone(), ..world.plan_context() };
        let error = plan(&text, &context).unwrap_err();
        assert_eq!(error.state.as_str(), "57014", "{shown}");
        assert!(pace.steps() - parsed <= STEPS_PER_LOOK as u64, "{shown}: {} steps of binding", pace.steps() - parsed);
    }
}

/// Each pass over the rows of a long VALUES, or the tokens of a long text, is counted: binding, finding the common type, casting.
#[test]
fn each_pass_over_many_rows_looks() {
    let world = world();
    let rows = 3_000;
    let taken = steps(&world, &format!("VALUES (1.5){}", ", (1)".repeat(rows - 1)));
    assert!(taken >= 3 * rows as u64, "{taken} steps for {rows} rows");
    // (Of rows that are literals alone there is one token.)
    let text = format!("VALUES (1+2){}", ", (1+2)".repeat(100_000));
    let kv: Arc<dyn Kv> = world.kv.clone();
    let _loan = Limits::new(Patience::default(), kv).lend(Arc::new(MemoryBudget::new(MEMORY_BYTES)));
    let before = sql::work::looks();
    stack::roomy(|| parse(&text)).unwrap();
    let looks = sql::work::looks() - before;
    // 600,000 tokens: so many looks for each of seven passes, and those of the grammar.
    assert!(looks >= 7 * 9 + 300, "{looks} looks");
}

/// Looks of what is done.
fn looks<R>(what: impl FnOnce() -> R) -> (u64, R) {
    let before = sql::work::looks();
    let done = what();
    (sql::work::looks() - before, done)
}

/// What is named twice is bound, walked, estimated, explained and run once: a chain of such names has 2^n paths.
#[test]
fn chains_of_queries_that_are_named_twice_cost_what_they_are_long() {
    let mut session = super::session();
    super::run(&mut session, "INSERT INTO t VALUES (2, 3, 'd', '{}'); ANALYZE t").unwrap();
    for shape in CHAINS {
        for around in
            [["", ""], ["SELECT (", " LIMIT 1)"], ["SELECT (SELECT min(a) FROM (", ") q) FROM t"], ["EXPLAIN ", ""]]
        {
            let mut of = |n: usize| {
                let text = chain(*shape, n, around);
                let (looks, rows) = looks(|| super::run(&mut session, &text));
                let rows = rows.unwrap_or_else(|e| panic!("{e}: {}", &text[..text.len().min(300)]));
                assert!(around[0] == "EXPLAIN " || rows.iter().all(|row| row == "1" || row == "2"), "{rows:?}");
                (looks, rows.len())
            };
            let (small, large) = (of(20), of(60));
            assert!(
                large.0 <= 12 * small.0.max(4),
                "{shape:?} in {around:?}: {small:?} looks and rows of 20, {large:?} of 60"
            );
            assert!(large.1 <= 4 * small.1, "{shape:?} in {around:?}: {small:?} looks and rows of 20, {large:?} of 60");
        }
    }
}

/// Each of its queries reads a column of the row around the first.
#[test]
fn chains_of_correlated_queries_cost_what_they_are_long() {
    let mut session = super::session();
    super::run(&mut session, "INSERT INTO t VALUES (2, 3, 'd', '{}')").unwrap();
    let mut of = |n: usize| {
        let chain = chain(["SELECT o.a", "SELECT x.a FROM P x, P y WHERE x.a = o.a"], n, ["(", ")"]);
        let text = format!("SELECT {chain} FROM t o ORDER BY a");
        let (looks, rows) = looks(|| super::run(&mut session, &text));
        assert_eq!(rows.unwrap(), ["1", "2"]);
        looks
    };
    let (small, large) = (of(20), of(60));
    assert!(large <= 12 * small.max(4), "{small} looks for 20, {large} for 60");
}

/// A text of a column is one of the columns of the next query, which may name it twice.
#[test]
fn explained_columns_do_not_double() {
    let mut session = super::session();
    let [open, close] = ["(SELECT c || c AS c FROM ", " OFFSET 0) q"];
    let text = format!("EXPLAIN VERBOSE SELECT * FROM {}t{}", open.repeat(60), close.repeat(60));
    let rows = super::run(&mut session, &text).unwrap();
    assert!(rows.iter().all(|row| row.len() < 16_384), "{:?}", rows.iter().map(String::len).max());
}

/// A column that many joins merge is one call over all of them.
#[test]
fn full_joins_merge_their_columns_once() {
    let world = world();
    for join in ["NATURAL FULL JOIN u t{}", "FULL JOIN t t{} USING (a)", "FULL JOIN u t{} USING (a)"] {
        let of = |n: usize| {
            let joins: String = (1..n).map(|i| format!(" {}", join.replace("{}", &i.to_string()))).collect();
            let text = format!("SELECT a FROM {} t0{joins}", if join.contains("u t") { "u" } else { "t" });
            looks(|| plan(&text, &world.plan_context()).unwrap_or_else(|e| panic!("{e}: {join}"))).0
        };
        let (small, large) = (of(20), of(80));
        // Each join asks for the merged column, which is as long as there are joins: a square, and no more.
        assert!(large <= 24 * small.max(4), "{join}: {small} looks for 20, {large} for 80");
        // And it is counted: without that there would be nothing to end it by.
        assert!(large >= 8, "{join}: {large} looks for 80");
    }
}
