//! Tokens: what they promise is there, or they are refused (design 4a.12, `catalog::seal`).

use super::{open, run, session, state_of};
use sql::transaction::Interrupt;
use sql::transaction::memory::MemoryKv;
use sql::{Database, Session, SqlError, Startup};
use std::sync::Arc;

fn token(session: &mut Session) -> String {
    run(session, "SHOW timeball.token").remove(0)
}

fn take(session: &mut Session, token: &str) -> Result<(), SqlError> {
    session.simple_query(&format!("SET timeball.token = '{token}'"), &mut super::Rows::default())
}

fn refused(session: &mut Session, token: &str) -> String {
    let error = take(session, token).expect_err(token);
    assert_eq!(error.state.as_str(), "22023");
    assert!(error.message.contains("timeball.token") && error.hint.is_some(), "{error:?}");
    error.detail.clone().expect("why")
}

#[test]
fn a_token_goes_from_session_to_session() {
    let db = open(MemoryKv::new());
    let (mut a, mut b) = (session(&db), session(&db));
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
    let given = token(&mut a);
    let (timestamp, _) = given.split_once('-').expect("it is signed");
    assert!(token(&mut b) < given);
    take(&mut b, &given).expect("of this cluster");
    assert_eq!(token(&mut b), given, "the same, as one key signs it");
    assert_eq!(run(&mut b, "SELECT current_setting('timeball.token')"), std::slice::from_ref(&given));
    let seen = token(&mut b);
    // What is lower than what the session has seen changes nothing.
    let low = token(&mut session(&db));
    take(&mut b, &low).expect("of this cluster");
    run(&mut b, "RESET timeball.token; SET timeball.token = DEFAULT");
    assert_eq!(token(&mut b), seen);
    let mut c = session(&db);
    run(&mut c, &format!("SELECT set_config('timeball.token', '{given}', false)"));
    assert!(token(&mut c) >= given);
    // The past is told by a token, or by its timestamp alone: that promises nothing.
    for at in [&given[..], timestamp] {
        assert_eq!(run(&mut c, &format!("SELECT count(*) FROM t AS OF SYSTEM TIME '{at}'")), ["1"]);
    }
}

/// A pool gives its connections what they begin with: `options=-c timeball.token=..`.
#[test]
fn a_session_begins_with_a_token() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
    let given = token(&mut a);
    let begin = |parameters: &[(&str, &str)]| {
        let parameters = parameters.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let startup = Startup { user: "root".into(), database: "postgres".into(), parameters, ..Startup::default() };
        Session::new(db.clone(), startup, Interrupt::default())
    };
    let mut b = begin(&[("Timeball.Token", &given), ("timezone", "Asia/Tokyo")]).expect("of this cluster");
    assert_eq!(token(&mut b), given);
    assert_eq!(run(&mut b, "SHOW timezone"), ["Asia/Tokyo"]);
    run(&mut b, "RESET ALL; DISCARD ALL");
    assert_eq!(token(&mut b), given, "what was seen stays seen");
    let error = begin(&[("timeball.token", "soon")]).map(drop).expect_err("not a token");
    assert_eq!(error.state.as_str(), "22023");
}

#[test]
fn what_a_client_calls_itself_goes_before_its_options() {
    let db = open(MemoryKv::new());
    for (own, shown) in [("psql", "psql"), ("", "from options")] {
        let startup = Startup {
            user: "root".into(),
            database: "postgres".into(),
            application_name: own.into(),
            parameters: vec![("application_name".into(), "from options".into())],
            client_addr: Some(([127, 0, 0, 1], 4711).into()),
            server_addr: Some(([127, 0, 0, 2], 26257).into()),
            ..Startup::default()
        };
        let mut a = Session::new(db.clone(), startup, Interrupt::default()).expect("session");
        assert_eq!(run(&mut a, "SHOW application_name"), [shown]);
        assert_eq!(run(&mut a, "SELECT inet_client_addr(), inet_client_port()"), ["127.0.0.1|4711"]);
        assert_eq!(run(&mut a, "SELECT inet_server_addr(), inet_server_port()"), ["127.0.0.2|26257"]);
    }
}

#[test]
fn tokens_are_renewed_outside_of_blocks() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, "BEGIN");
    assert_eq!(state_of(&mut a, "ALTER SYSTEM RENEW TOKENS"), "25001");
    run(&mut a, "ROLLBACK");
    assert_eq!(state_of(&mut a, "SELECT 1; ALTER SYSTEM RENEW TOKENS"), "25001");
    run(&mut a, "ALTER SYSTEM RENEW TOKENS");
}

#[test]
fn what_was_not_signed_here_is_refused() {
    let (db, other) = (open(MemoryKv::new()), open(MemoryKv::new()));
    let (mut a, mut b) = (session(&db), session(&other));
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY)");
    let given = token(&mut a);
    let (timestamp, rest) = given.split_once('-').expect("it is signed");
    assert!(refused(&mut a, timestamp).contains("without a signature"));
    assert!(refused(&mut a, "soon").contains("form"));
    assert!(refused(&mut b, &given).contains("of the cluster"));
    let later = format!("2{}-{rest}", &timestamp[1..]);
    assert!(refused(&mut a, &later).contains("signature is not that of this cluster"));
    assert_eq!(state_of(&mut a, &format!("SELECT set_config('timeball.token', '{later}', false)")), "22023");
    assert_eq!(state_of(&mut a, &format!("SELECT * FROM t AS OF SYSTEM TIME '{later}'")), "22023");
    assert_eq!(state_of(&mut b, &format!("SELECT * FROM t AS OF SYSTEM TIME '{given}'")), "22023");
    assert!(token(&mut a) < later, "nothing of it was taken");
    assert_eq!(state_of(&mut a, "ALTER SYSTEM RENEW"), "0A000");
}

#[test]
fn renewed_is_renewed_for_all_sessions() {
    let db = open(MemoryKv::new());
    let (mut a, mut b) = (session(&db), session(&db));
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY)");
    let before = token(&mut a);
    assert_eq!(state_of(&mut b, "BEGIN; ALTER SYSTEM RENEW TOKENS"), "25001");
    run(&mut b, "ROLLBACK");
    take(&mut a, &before).expect("nothing was changed");
    run(&mut b, "ALTER SYSTEM RENEW TOKENS");
    // This one has not looked at the catalog since.
    assert!(refused(&mut a, &before).contains("incarnation 1 of the cluster, and this is 2"));
    let after = token(&mut a);
    take(&mut b, &after).expect("of now");
    run(&mut b, "SET default_transaction_read_only = on");
    assert_eq!(state_of(&mut b, "ALTER SYSTEM RENEW TOKENS"), "25006");
    run(&mut b, "RESET default_transaction_read_only; BEGIN; SELECT 1 FROM t");
    run(&mut a, "ALTER SYSTEM RENEW TOKENS");
    run(&mut b, "COMMIT");
    run(&mut b, "ALTER SYSTEM RENEW TOKENS");
    assert!(refused(&mut b, &after).contains("incarnation 2 of the cluster, and this is 4"));
}

/// Keys are rotated without anybody being turned away, and not for ever.
#[test]
fn rotated_keys_are_taken_side_by_side() {
    let db = open(MemoryKv::new());
    let (mut a, mut b) = (session(&db), session(&db));
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
    let first = token(&mut a);
    assert_eq!(state_of(&mut a, "BEGIN; ALTER SYSTEM ROTATE TOKENS"), "25001");
    run(&mut a, "ROLLBACK; SELECT 1");
    run(&mut a, "ALTER SYSTEM ROTATE TOKENS");
    let second = token(&mut a);
    assert_ne!(first, second);
    // The other session has not looked at the catalog since: it asks for the key that it does not know.
    assert_eq!(run(&mut b, &format!("SELECT count(*) FROM t AS OF SYSTEM TIME '{second}'")), ["1"]);
    for session in [&mut a, &mut b] {
        take(session, &first).expect("on its way when keys were rotated");
        take(session, &second).expect("of now");
    }
    run(&mut b, "ALTER SYSTEM ROTATE TOKENS");
    take(&mut a, &second).expect("on its way when keys were rotated");
    assert!(refused(&mut a, &first).contains("out of use"));
    run(&mut b, "ALTER SYSTEM RENEW TOKENS");
    assert!(refused(&mut a, &second).contains("incarnation 1 of the cluster, and this is 2"));
}

/// A copy of this cluster ran on a machine whose clock was a day ahead, and signed with the same key.
#[test]
fn an_absurd_token_is_refused_and_the_session_goes_on() {
    let kv = MemoryKv::new();
    let db = open(kv.clone());
    run(&mut session(&db), "CREATE TABLE t (id int PRIMARY KEY)");
    let ahead = kv.copied();
    ahead.advance_us(86_400_000_000);
    let mut there = session(&open(ahead));
    run(&mut there, "INSERT INTO t VALUES (1)");
    let absurd = token(&mut there);
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE u (id int PRIMARY KEY)");
    let before = token(&mut a);
    assert!(refused(&mut a, &absurd).contains("future"));
    assert!(token(&mut a) < absurd && token(&mut a) >= before);
    run(&mut a, "INSERT INTO u VALUES (1)");
    assert_eq!(state_of(&mut a, &format!("SELECT * FROM u AS OF SYSTEM TIME '{absurd}'")), "22023");
}

/// An application whose services tell each other of rows that they wrote, with a token, while an operator puts copies back. Says what broke.
fn tell_each_other(seed: u64, signed: bool) -> Result<u32, String> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below
    };
    let mut kvs = [MemoryKv::new(), MemoryKv::new()];
    let mut dbs: Vec<Arc<Database>> = kvs.iter().map(|kv| open(kv.clone())).collect();
    for db in &dbs {
        run(&mut session(db), "CREATE TABLE t (id int PRIMARY KEY)");
    }
    let (mut copies, mut told, mut kept) = (kvs.clone().map(|kv| kv.copied()), Vec::new(), 0);
    for id in 0..60 {
        let at = draw(2);
        match draw(6) {
            0 => copies[at] = kvs[at].copied(),
            1 => {
                kvs[at] = copies[at].copied();
                // Time goes on while a copy is put back.
                kvs[at].advance_us(10_000);
                dbs[at] = open(kvs[at].clone());
                run(&mut session(&dbs[at]), "ALTER SYSTEM RENEW TOKENS");
            }
            2 | 3 => {
                let mut writer = session(&dbs[at]);
                run(&mut writer, &format!("INSERT INTO t VALUES ({id})"));
                told.push((token(&mut writer), id));
            }
            _ if told.is_empty() => {}
            _ => {
                let (token, id) = &told[draw(told.len())];
                let mut reader = session(&dbs[at]);
                // Without signatures whoever hears of a timestamp believes it.
                if signed && take(&mut reader, token).is_err() {
                    continue;
                }
                if run(&mut reader, &format!("SELECT count(*) FROM t WHERE id = {id}")) != ["1"] {
                    return Err(format!("seed {seed}: {token} was taken, and row {id} is not there"));
                }
                kept += 1;
            }
        }
    }
    Ok(kept)
}

#[test]
fn what_a_token_promises_is_there() {
    let kept: u32 = (1..=40).map(|seed| tell_each_other(seed, true).unwrap_or_else(|why| panic!("{why}"))).sum();
    assert!(kept > 40, "tokens are of use: {kept}");
}

/// The negative control: with bare timestamps the same application is lied to.
#[test]
fn bare_timestamps_promise_what_is_gone() {
    let broken = (1..=10).filter(|seed| tell_each_other(*seed, false).is_err()).count();
    assert!(broken >= 5, "only {broken} of 10 seeds show it");
}

/// A pool hears of each commit without a round trip, where it asks for that; what it hears is what SHOW would have said.
#[test]
fn who_wants_to_hear_of_his_token_does_so_after_each_transaction() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY)");
    assert_eq!(a.take_token_report(), None, "nobody asked");
    run(&mut a, "SET timeball.report_token = on");
    let first = a.take_token_report().expect("it has moved");
    assert_eq!(a.take_token_report(), None, "once");
    run(&mut a, "BEGIN; INSERT INTO t VALUES (1)");
    assert_eq!(a.take_token_report(), None, "not before the commit");
    run(&mut a, "COMMIT");
    let (name, second) = a.take_token_report().expect("it has moved");
    assert!(name == "timeball.token" && second > first.1, "{second}");
    let mut b = session(&db);
    take(&mut b, &second).expect("it is one");
    assert_eq!(token(&mut b), second);
}
