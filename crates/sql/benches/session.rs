//! Nanoseconds that a session spends on one statement over the in-memory database, whose own cost is in the figure:
//! `cargo bench -p timeball-sql --bench session`.
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use sql::output::Nowhere;
use sql::transaction::Interrupt;
use sql::transaction::memory::MemoryKv;
use sql::{Database, DatabaseOptions, Session, SqlError, Startup};
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<(), SqlError> {
    let db = Database::open(Arc::new(MemoryKv::new()), DatabaseOptions::default())?;
    let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
    let mut s = Session::new(db, startup, Interrupt::default())?;
    let mut out = Nowhere;
    s.simple_query("CREATE TABLE t (id int PRIMARY KEY, v int, f char(84))", &mut out)?;
    for i in 0..10_000 {
        s.simple_query(&format!("INSERT INTO t VALUES ({i}, 0, '')"), &mut out)?;
    }
    s.parse("q", "SELECT v FROM t WHERE id = $1", &[])?;
    s.parse("u", "UPDATE t SET v = v + $1 WHERE id = $2", &[])?;
    s.sync()?;
    for round in 0..3 {
        const N: u32 = 200_000;
        let start = Instant::now();
        for i in 0..N {
            let id = (i * 7919 % 10_000).to_string();
            s.bind("", "q", &[Some(id.as_bytes())], &[], &[])?;
            let (fields, _) = s.describe_portal("", true)?;
            std::hint::black_box(fields.map(<[_]>::len));
            s.execute("", 0, true, &mut out)?;
            s.sync()?;
        }
        println!("round {round}: point select {} ns", start.elapsed().as_nanos() / u128::from(N));
        let start = Instant::now();
        for i in 0..N / 4 {
            let id = (i * 7919 % 10_000).to_string();
            s.bind("", "u", &[Some(b"1"), Some(id.as_bytes())], &[], &[])?;
            s.execute("", 0, true, &mut out)?;
            s.sync()?;
        }
        println!("round {round}: update {} ns", start.elapsed().as_nanos() / u128::from(N / 4));
        let start = Instant::now();
        for i in 0..N / 4 {
            let text = format!("SELECT v FROM t WHERE id = {}", i * 7919 % 10_000);
            s.simple_query(&text, &mut out)?;
        }
        println!("round {round}: simple select, 10,000 texts {} ns", start.elapsed().as_nanos() / u128::from(N / 4));
    }
    Ok(())
}
