//! As `token_pool`, with `tokio-postgres`: tasks that take turns at two connections share what they have seen.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;
use timeball_client::{Consistency, Error, How, Timeball};
use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls};

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move {
        if let Err(why) = connection.await {
            eprintln!("connection lost: {why}");
        }
    });
    Ok(client)
}

async fn add(timeball: &Timeball, client: &Mutex<Client>, n: i32) -> Result<(), Error> {
    let how = How::default().consistency(Consistency::Token).attempts(30);
    timeball
        .run(&mut *client.lock().await, &how, |db| {
            Box::pin(async move {
                let v: i32 = db.query_one("SELECT v FROM taken_on", &[]).await?.get(0);
                Ok(db.execute("UPDATE taken_on SET v = $1", &[&(v + n)]).await?)
            })
        })
        .await?;
    Ok(())
}

async fn all(urls: Vec<String>) -> Result<(), Box<dyn StdError + Send + Sync>> {
    let timeball = Timeball::new();
    let mut pool = Vec::new();
    for at in 0..2 {
        pool.push(Arc::new(Mutex::new(connect(&urls[at % urls.len()]).await?)));
    }
    pool[0].lock().await.batch_execute("CREATE TABLE taken_on (v int); INSERT INTO taken_on VALUES (0)").await?;
    let mut tasks = Vec::new();
    for n in 1..=20 {
        let (timeball, client) = (timeball.clone(), pool[n as usize % 2].clone());
        tasks.push(tokio::spawn(async move { add(&timeball, &client, n).await }));
    }
    for task in tasks {
        task.await??;
    }
    let how = How::default().consistency(Consistency::Token).read_only();
    let value = async |client: &Arc<Mutex<Client>>| {
        let mut client = client.lock().await;
        let select = "SELECT v FROM taken_on";
        let read = timeball.run(&mut client, &how, |db| Box::pin(async { Ok(db.query_one(select, &[]).await?) }));
        read.await.map(|done| done.value.get::<_, i32>(0))
    };
    assert_eq!(value(&pool[0]).await?, 210);

    // One that nobody waits for any more is rolled back before its connection does anything else.
    let left = async {
        let mut client = pool[1].lock().await;
        let how = How::default();
        let forever = timeball.run(&mut client, &how, |db| {
            Box::pin(async {
                db.execute("UPDATE taken_on SET v = -1", &[]).await?;
                std::future::pending::<Result<(), Error>>().await
            })
        });
        // It has to be begun, and no more: how far it came is the same to whoever comes next.
        tokio::time::timeout(Duration::from_millis(200), forever).await
    };
    assert!(left.await.is_err());
    assert_eq!(value(&pool[1]).await?, 210);
    pool[1].lock().await.batch_execute("DROP TABLE taken_on").await?;
    Ok(())
}

/// On one thread.
pub fn run(urls: &[String]) -> Result<(), Box<dyn StdError + Send + Sync>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(all(urls.to_vec()))
}

#[allow(dead_code, reason = "the tests run it by its function")]
fn main() -> Result<(), Box<dyn StdError + Send + Sync>> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        return Err("give it the URLs of one or two nodes".into());
    }
    run(&urls)?;
    println!("all fine");
    Ok(())
}
