use super::*;
use crate::identifier::keyword::KEYWORDS;
use crate::identifier::quote_identifier;

fn one(text: &str) -> Command {
    let mut all = parse(text).unwrap_or_else(|e| panic!("{text}: {e} {:?}", e.detail));
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0).command
}

fn error(text: &str) -> SqlError {
    match parse(text) {
        Ok(parsed) => panic!("{text} was read as {parsed:?}"),
        Err(e) => e,
    }
}

#[test]
fn texts_are_split_with_their_places() {
    let all = parse("select 1; ;\n -- c\n select 'a;b' ; update t set a = 1").expect("parse");
    let texts: Vec<_> = all.iter().map(|p| (&*p.text, p.offset)).collect();
    assert_eq!(texts, vec![("select 1", 0), ("select 'a;b'", 19), ("update t set a = 1", 34)]);
    assert!(parse(" ; -- nothing").expect("parse").is_empty());
}

/// What stood beyond the greatest number was left out without a word.
#[test]
fn a_text_has_so_many_statements_or_none_runs() {
    let many = "abort;".repeat(STATEMENTS_MAX);
    assert_eq!(parse(&format!("{many} ;;")).expect("as many as may be").len(), STATEMENTS_MAX);
    let e = error(&format!("{many} this is no sql"));
    assert_eq!(e.state, SqlState::PROGRAM_LIMIT_EXCEEDED);
    assert!(e.message.contains("100000 statements"), "{}", e.message);
}

#[test]
fn syntax_errors_name_the_token_and_its_place() {
    for (text, message, position) in [
        ("selec 1", "syntax error at or near \"selec\"", 1),
        ("select * from t where", "syntax error at end of input", 22),
        ("select 1 from t t2 t3", "syntax error at or near \"t3\"", 20),
        ("create table t (a int", "syntax error at end of input", 22),
        ("create table t (a int,)", "syntax error at or near \")\"", 23),
        ("begin foo", "syntax error at or near \"foo\"", 7),
        ("select 1;\nselect a b c", "syntax error at or near \"c\"", 22),
        ("insert into t values 1", "syntax error at or near \"1\"", 22),
        ("select 1 as \"\"", "zero-length delimited identifier at or near \"\"\"\"", 13),
        ("select \"a\0\"", "an identifier holds a zero character", 8),
    ] {
        let e = error(text);
        assert_eq!((e.message.as_str(), e.position), (message, Some(position)), "{text}: {:?}", e.detail);
        assert_eq!(e.state, SqlState::SYNTAX_ERROR);
    }
    assert_eq!(error("select 'abc").state, SqlState::SYNTAX_ERROR);
}

#[test]
fn nesting_is_bounded() {
    let deep = format!("select {}1{}", "(".repeat(5000), ")".repeat(5000));
    assert_eq!(error(&deep).state, SqlState::TOO_COMPLEX);
}

#[test]
fn what_the_library_cannot_read_is_taken_out() {
    let Command::Planned(p) = one("select * from t as of system time '-10s' where a = 1 for no key update") else {
        panic!()
    };
    assert_eq!(p.as_of, Some(AsOf::At(Moment::Text("-10s".into()))));
    // A mark stands for the words: see `key_lock`.
    assert_eq!(p.statement.to_string(), "SELECT * FROM t WHERE a = 1 FOR UPDATE OF \"\0key\"");
    let Command::Planned(p) = one("select * from t as of system time follower_read_timestamp()") else { panic!() };
    assert_eq!(p.as_of, Some(AsOf::FollowerRead));
    let Command::Planned(p) = one("insert into t (id) overriding system value values (1) returning id") else {
        panic!()
    };
    assert_eq!(p.overriding, Some(crate::Overriding::System));
    let Command::Planned(p) = one("table t order by a") else { panic!() };
    assert_eq!(p.statement.to_string(), "SELECT * FROM t ORDER BY a");
}

#[test]
fn a_time_holds_for_all_tables_or_is_refused() {
    let t = "as of system time '-1s'";
    for text in [
        "select * from a T",
        "select * from a T as x where a = 1",
        "select * from a, b join c on true T order by 1",
        "select * from a where a = (select max(b) from b) and a is distinct from 2 T limit 1",
        "select (select count(*) from b), extract(year from d) from a T",
        "select * from a T, b T join c T on true where true",
        "select (select count(*) from a T), (select count(*) from b T)",
        "select * from a T union select * from b T",
        "(select * from a T) union (select * from b T) union select 1",
        "with x as (select * from a) select * from x T",
        "with x as (select * from a T), y (n) as (select 1) select * from x, y",
        "select * from (select * from a T) s, generate_series(1, 2) g",
        "select * from (a join b on true) T for share",
        "table a T",
        "insert into a select * from b T",
    ] {
        one(&text.replace('T', t));
    }
    for text in [
        "select * from a T except select * from a",
        "select * from a except select * from a T",
        "select (select count(*) from a T), (select count(*) from a)",
        "select * from a T, b",
        "select * from a T join b on true",
        "select * from (a T join b on true)",
        "select * from a where a in (select a from b T)",
        "with x as (select * from a T) select * from b, x",
        "with x as (select * from a), y as (select * from b T) select * from x, y",
        "select * from a, lateral (select * from b T) s",
        "select * from public.a, (select 1 from b T) s",
    ] {
        let e = error(&text.replace('T', t));
        assert_eq!(e.state, SqlState::FEATURE_NOT_SUPPORTED, "{text}: {e}");
    }
}

#[test]
fn what_the_library_cannot_read_is_put_into_its_forms() {
    for (text, read) in [
        ("select 1 between symmetric 2 and 0", "SELECT (1 BETWEEN 2 AND 0 OR 1 BETWEEN 0 AND 2)"),
        ("select a from t for update skip locked limit 1", "SELECT a FROM t LIMIT 1 FOR UPDATE SKIP LOCKED"),
        (
            "select a from t for update of t for share nowait offset 1 limit 2",
            "SELECT a FROM t LIMIT 2 OFFSET 1 FOR UPDATE OF t FOR SHARE NOWAIT",
        ),
        ("(select a from t for share offset 1) limit 2", "(SELECT a FROM t OFFSET 1 FOR SHARE) LIMIT 2"),
        ("select a from t fetch first row only", "SELECT a FROM t LIMIT 1"),
        ("select * from a join b join c on x on y", "SELECT * FROM a JOIN (b JOIN c ON x) ON y"),
        ("select (values (1))", "SELECT (SELECT * FROM (VALUES (1)) AS v)"),
        ("insert into t select 5 on conflict do nothing", "INSERT INTO t SELECT 5 WHERE true ON CONFLICT DO NOTHING"),
        ("insert into t table u on conflict do nothing", "INSERT INTO t SELECT * FROM u ON CONFLICT DO NOTHING"),
    ] {
        let Command::Planned(p) = one(text) else { panic!("{text}") };
        assert_eq!(p.statement.to_string(), read);
    }
}

#[test]
fn session_statements() {
    use crate::transaction::Isolation;
    let Command::Begin(m) = one("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY DEFERRABLE") else { panic!() };
    assert_eq!((m.isolation, m.read_only, m.deferrable), (Some(Isolation::RepeatableRead), Some(true), Some(true)));
    assert!(matches!(one("rollback to savepoint a"), Command::RollbackTo(n) if n == "a"));
    assert!(matches!(one("abort work"), Command::Rollback { chain: false }));
    assert!(matches!(one("set timeball.consistency = 'strict'"),
        Command::Set { local: false, name, value: Some(v) } if name == "timeball.consistency" && v == "strict"));
    assert!(
        matches!(one("SET search_path TO \"A\", public"), Command::Set { value: Some(v), .. } if v == "\"A\", public")
    );
    assert!(matches!(one("set time zone 'Europe/Paris'"), Command::Set { name, .. } if name == "timezone"));
    assert!(matches!(one("set session characteristics as transaction isolation level read committed"),
        Command::SetCharacteristics(m) if m.isolation == Some(Isolation::ReadCommitted)));
    assert!(matches!(one("show transaction isolation level"), Command::Show(n) if n == "transaction_isolation"));
    assert!(matches!(one("reset all"), Command::ResetAll));
    assert!(matches!(one("fetch 10 from c"), Command::Fetch { movement: Move::By(10), skip: false, .. }));
    assert!(matches!(one("fetch forward all in c"), Command::Fetch { movement: Move::ToEnd, .. }));
    assert!(matches!(one("declare c no scroll cursor with hold for select 1"), Command::Declare { hold: true, .. }));
    let Command::Explain { options, .. } = one("explain (analyze, verbose off, costs false) select 1") else {
        panic!()
    };
    assert!(options.analyze && !options.verbose && !options.costs && options.timing);
    assert!(matches!(one("vacuum (full) t"), Command::Nothing { tag: "VACUUM", outside_block: true, .. }));
    let analyzed = |text| match one(text) {
        Command::Analyze { tag, outside_block, tables } => (tag, outside_block, tables.len()),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(analyzed("vacuum (verbose, analyze) t"), ("VACUUM", true, 1));
    assert_eq!(analyzed("vacuum full verbose analyze"), ("VACUUM", true, 0));
    assert_eq!(analyzed("analyse t (a, b), s.u"), ("ANALYZE", false, 2));
    assert_eq!(error("do $$ begin end $$").state, SqlState::FEATURE_NOT_SUPPORTED);
    assert!(
        matches!(one("prepare p (int, text) as select $1, $2"), Command::Prepare { types, .. } if types.len() == 2)
    );
    assert!(
        matches!(one("execute p (1 + 1, 'a')"), Command::Execute { arguments, .. } if arguments == ["1 + 1", "'a'"])
    );
}

#[test]
fn copy_old_and_new() {
    let Command::Copy(c) = one("copy pgbench_accounts from stdin with (freeze on)") else { panic!() };
    assert!(c.from && c.options.freeze);
    let Command::Copy(c) = one("COPY (select 1) TO STDOUT WITH CSV HEADER DELIMITER ';'") else { panic!() };
    assert!(!c.from && c.options.layout == CopyLayout::Csv && c.options.header && c.options.delimiter == Some(';'));
    assert_eq!(error("copy t from '/etc/passwd'").state, SqlState::FEATURE_NOT_SUPPORTED);
}

#[test]
fn tables_of_the_seed_and_of_pgbench() {
    let Command::Ddl(d) = one(
        "CREATE TABLE likes( id SERIAL PRIMARY KEY, post_id INTEGER, FOREIGN KEY (post_id) REFERENCES posts (id), INDEX (post_id) )",
    ) else {
        panic!()
    };
    let Ddl::CreateTable(t) = *d else { panic!() };
    assert_eq!((t.columns.len(), t.constraints.len(), t.indexes.len()), (2, 1, 1));
    assert!(matches!(
        one(
            "create table pgbench_history(tid int,bid int,aid    int,delta int,mtime timestamp,filler char(22)) tablespace pg_default"
        ),
        Command::Ddl(_)
    ));
    assert!(matches!(
        one("create table a(aid int not null,bid int,filler char(84)) with (fillfactor=100)"),
        Command::Ddl(_)
    ));
    assert!(matches!(one("alter table pgbench_branches add primary key (bid)"), Command::Ddl(_)));
    assert!(
        matches!(one("create table x as select 1 as a with no data"), Command::Ddl(d) if matches!(*d, Ddl::CreateTableAs { no_data: true, .. }))
    );
    assert!(matches!(
        one("create table t (a numeric(10,2) default 1 not null check (a > 0), b timestamptz default now(), \
        c int generated by default as identity (start 5) unique, d int references p on delete set null on update cascade, \
        constraint k unique (a, b), check (a < 3))"),
        Command::Ddl(_)
    ));
    assert!(matches!(one("alter table t split at values (1), (2)"), Command::Ddl(_)));
    assert!(matches!(
        one("alter table t alter column a type bigint using a + 1, drop column if exists b cascade, add c int"),
        Command::Ddl(_)
    ));
    assert!(matches!(
        one("create unique index concurrently if not exists i on s.t using btree (a desc, b) with (fillfactor=90)"),
        Command::Ddl(_)
    ));
    assert!(matches!(one("create index on t (a nulls first)"), Command::Ddl(_)));
    for text in [
        "create index on t using gist (a)",
        "create unique index on t (a) nulls not distinct",
        "create table t (like u)",
        "create temp table t (a int)",
    ] {
        assert_eq!(error(text).state, SqlState::FEATURE_NOT_SUPPORTED, "{text}");
    }
}

/// Our own parser reads texts that we write: it must take every name that we leave bare.
#[test]
fn every_bare_name_is_read_back() {
    let library = sqlparser::keywords::ALL_KEYWORDS.iter().map(|word| word.to_ascii_lowercase());
    let words: Vec<String> = KEYWORDS.iter().map(|keyword| keyword.word.to_owned()).chain(library).collect();
    let mut unread = Vec::new();
    for name in words.iter().map(|word| quote_identifier(word)) {
        for text in [
            format!("SELECT {name}, a.{name} FROM {name} AS a"),
            format!("SELECT {name} FROM {name}.{name}"),
            format!("SELECT {name}::int4 FROM {name} WHERE {name} = 1 AND 1 = {name} ORDER BY {name}"),
        ] {
            if let Err(error) = crate::parse(&text) {
                unread.push(format!("{text}: {}", error.message));
            }
        }
    }
    assert!(unread.is_empty(), "{}", unread.join("\n"));
}

/// More rows than are read each by its tree.
fn many_rows() -> String {
    (1..1500).map(|n| format!(", ({n})")).collect()
}

#[test]
fn rows_are_kept_wherever_values_begins_them() {
    let rows = many_rows();
    for before in [
        "insert into t values (0)",
        "insert into ärger values (0)",
        "insert into t /* x */ values (0)",
        "insert into t values -- x\n (0)",
        "insert into t -- values\n values/* (0) *//* x */(0)",
        "insert into t (a)/**/values\x0c(0)",
        "insert into values (values) values (0)",
        "insert into \"values\" values (0)",
        "select * from (/* x */ values\n(0)",
        "with é as (values (0)",
        "select 1.union values (0)",
    ] {
        assert_eq!(literal_rows::find(&format!("{before}{rows}")).len(), 1, "{before}");
    }
    // A function of that name in a schema may be called, and a column may have it.
    for before in [
        "select s.values (0)",
        "select s . /* x */ values\n(0)",
        "select t.values",
        "select values",
        "select \"values\"(0)",
    ] {
        assert_eq!(literal_rows::find(&format!("{before}{rows}")), [], "{before}");
    }
    assert_eq!(error(&format!("select s.values (0){rows} from")).message, "syntax error at end of input");
}

/// What we printed is read with all its rows: whoever changes a part of it prints it again.
#[test]
fn what_was_printed_is_read_with_all_its_rows() {
    let text = format!("VALUES (0){}", many_rows());
    let rows = |query: &sqlparser::ast::Query| match query.body.as_ref() {
        sqlparser::ast::SetExpr::Values(values) => values.rows.len(),
        other => panic!("{other}"),
    };
    let planned = |mut parsed: Vec<Parsed>| match parsed.remove(0).command {
        Command::Planned(Planned { statement: sqlparser::ast::Statement::Query(query), .. }) => query,
        other => panic!("{other:?}"),
    };
    assert_eq!(rows(&planned(parse(&text).expect("parse"))), 2, "the first, and those that are kept");
    assert_eq!(rows(&planned(parse_printed(&text).expect("parse"))), 1500);
    assert_eq!(rows(&parse_query(&text, &Pace::default()).expect("parse").0), 1500);
    assert_eq!(rows(&view::query_of(&text).expect("parse").expect("a query")), 1500);
}

/// Rows that are kept are printed, each for itself, of a query and of a part of one.
#[test]
fn rows_that_are_kept_are_printed() {
    let text = format!("VALUES (0){}", many_rows());
    let Some(Command::Planned(planned)) = parse(&text).expect("parse").pop().map(|parsed| parsed.command) else {
        panic!("a query")
    };
    let sqlparser::ast::Statement::Query(query) = planned.statement else { panic!("a query") };
    assert_eq!(marks::written_body(query.body.as_ref().clone()).expect("a text"), text);
    assert_eq!(marks::written(query).expect("a text"), text);
}
