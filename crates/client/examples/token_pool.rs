//! One token for a pool: what one connection has written any other sees, under `token`, though they do not know of each other. Any two nodes: two URLs.

use postgres::NoTls;
use std::error::Error as StdError;
use timeball_client::{Consistency, Error, How, Timeball, Token};

/// Writes at one node and reads at another, in turns; and what `postgres` and the cluster say to what is not right.
pub fn run(urls: &[String]) -> Result<(), Box<dyn StdError>> {
    let timeball = Timeball::new();
    let mut pool = Vec::new();
    for at in 0..2 {
        pool.push(postgres::Client::connect(&urls[at % urls.len()], NoTls)?);
    }
    pool[0].batch_execute("CREATE TABLE passed_on (id int PRIMARY KEY, v int)")?;
    let how = How::default().consistency(Consistency::Token);
    let first =
        timeball.run_blocking(&mut pool[0], &how, |db| Ok(db.execute("INSERT INTO passed_on VALUES (1, 0)", &[])?))?;
    let first = first.token.ok_or("a token")?;
    let mut last = first.clone();
    for n in 1..=100 {
        let (writer, reader) = (n % 2, 1 - n % 2);
        let v = i32::try_from(n)?;
        let wrote = timeball
            .run_blocking(&mut pool[writer], &how, |db| Ok(db.execute("UPDATE passed_on SET v = $1", &[&v])?))?;
        let token = wrote.token.ok_or("a token")?;
        assert!(token > last, "a commit is above all that was seen before it");
        last = token;
        let read = timeball.run_blocking(&mut pool[reader], &how.clone().read_only(), |db| {
            Ok(db.query_one("SELECT v FROM passed_on", &[])?.get::<_, i32>(0))
        })?;
        assert_eq!(read.value, v, "{v} was written");
    }

    // What was there when the first one committed, at any time later.
    let then = How::default().as_of(format!("'{first}'"));
    let value =
        |db: &mut timeball_client::Transaction<'_>| Ok(db.query_one("SELECT v FROM passed_on", &[])?.get::<_, i32>(0));
    assert_eq!(timeball.run_blocking(&mut pool[1], &then, value)?.value, 0);
    let agreed = How::default().as_of("with_negotiated_timestamp()").after_token();
    assert_eq!(timeball.run_blocking(&mut pool[0], &agreed, value)?.value, 100);

    // Whoever gives up has written nothing, and neither has one that went on after an error.
    let given_up = timeball.run_blocking(&mut pool[0], &how, |db| {
        db.execute("UPDATE passed_on SET v = -1", &[])?;
        Err::<(), Error>(Error::give_up("not enough"))
    });
    assert!(matches!(given_up, Err(Error::GivenUp(_))), "{given_up:?}");
    let failed = timeball.run_blocking(&mut pool[0], &how, |db| {
        db.execute("UPDATE passed_on SET v = -2", &[])?;
        drop(db.batch_execute("SELECT 1 / 0"));
        Ok(())
    });
    assert!(
        matches!(&failed, Err(Error::Failed(e)) if e.code().is_some_and(|code| code.code() == "25P02")),
        "{failed:?}"
    );
    assert_eq!(timeball.run_blocking(&mut pool[0], &how, value)?.value, 100);

    // Two that meet: the one that was too late runs again, as often as it may.
    let (mut meets, (one, other)) = (0, pool.split_at_mut(1));
    let again = timeball.run_blocking(&mut one[0], &how, |db| {
        let v: i32 = db.query_one("SELECT v FROM passed_on", &[])?.get(0);
        if meets < 2 {
            meets += 1;
            other[0].execute("UPDATE passed_on SET v = v + 1", &[])?;
        }
        Ok(db.execute("UPDATE passed_on SET v = $1", &[&(v * 2)])?)
    })?;
    assert_eq!(again.attempts, 3);
    let once = how.clone().attempts(1);
    let conflict = timeball.run_blocking(&mut one[0], &once, |db| {
        let v: i32 = db.query_one("SELECT v FROM passed_on", &[])?.get(0);
        assert_eq!(v, 204);
        other[0].execute("UPDATE passed_on SET v = v + 1", &[])?;
        Ok(db.execute("UPDATE passed_on SET v = $1", &[&(v * 2)])?)
    });
    assert!(matches!(conflict, Err(Error::Conflict { attempts: 1, .. })), "{conflict:?}");

    // What was not given out by this cluster is refused.
    timeball.heard(Token::new("9-forged").ok_or("a token")?);
    timeball.forget();
    timeball.heard(Token::new(last.as_str().replacen('1', "2", 1)).ok_or("a token")?);
    let forged = timeball.run_blocking(&mut one[0], &how, value);
    assert!(matches!(&forged, Err(e) if e.code().is_some_and(|code| code.code() == "22023")), "{forged:?}");
    timeball.forget();
    timeball.run_blocking(&mut one[0], &how, value)?;
    one[0].batch_execute("DROP TABLE passed_on")?;
    Ok(())
}

#[allow(dead_code, reason = "the tests run it by its function")]
fn main() -> Result<(), Box<dyn StdError>> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        return Err("give it the URLs of one or two nodes".into());
    }
    run(&urls)?;
    println!("all fine");
    Ok(())
}
