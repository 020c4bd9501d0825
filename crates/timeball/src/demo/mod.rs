//! `timeball demo`: a node on temporary storage, or a cluster of them, with the data of posts and likes.

mod cluster;

use crate::args::{DemoOptions, Format};
use crate::serving::Serving;
use crate::{shell, signals};
use cluster::Cluster;
use lab::bench::{self, PostsAndLikes};
use lab::client::{Client, Url};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Seed of the data: the same at every start.
const SEED: u64 = 1;

/// So often a demo without a shell looks after its nodes.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A directory that is removed when the value goes.
struct Temporary(PathBuf);
impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What serves.
enum Running {
    Node(Serving),
    Cluster(Cluster),
}

impl Running {
    fn url(&self, database: &str) -> String {
        match self {
            Running::Node(serving) => serving.url(database),
            Running::Cluster(cluster) => cluster.url(database),
        }
    }
}

/// Serves until the shell is left or a signal comes.
pub fn run(options: &DemoOptions) -> Result<(), String> {
    signals::block().map_err(|e| format!("cannot block signals: {e}"))?;
    let store = Temporary(std::env::temp_dir().join(format!("timeball-demo-{}", std::process::id())));
    let mut running = match options.nodes {
        1 => Running::Node(Serving::start(&store.0, &options.node)?),
        nodes => Running::Cluster(Cluster::start(&store.0, nodes, &options.node)?),
    };
    load(&running).map_err(|e| format!("cannot load the demo's data: {e}"))?;
    let url = running.url("demo");
    let interactive = std::io::stdin().is_terminal() && !options.no_shell;
    let stop = if interactive { "\\q leaves the shell and stops it." } else { "Stop with Ctrl-C or SIGTERM." };
    let what = match &mut running {
        Running::Node(serving) => {
            let http = serving.http();
            format!(
                "A Timeball node{DATA}\n\n  sql   {url}\n  psql  psql \"{url}\"\n  http  {http}/health  {http}/metrics\n"
            )
        }
        Running::Cluster(cluster) => {
            let kill = if interactive {
                "\\kill 2 kills a node, \\start 2 starts it again, \\nodes shows them.\n"
            } else {
                ""
            };
            let nodes = options.nodes;
            format!(
                "{nodes} Timeball nodes, each range on three of them{DATA}\n\n{}\n  psql  psql \"{url}\"\n{kill}",
                cluster.describe()
            )
        }
    };
    crate::say(&format!("{what}\n{stop}\n"));
    if interactive {
        leave_on_terminate(&store.0);
        let url = Url::parse(&url).map_err(|e| e.to_string())?;
        let mut more = |name: &str, arguments: &[&str]| match &mut running {
            Running::Node(_) => None,
            Running::Cluster(cluster) => cluster.command(name, arguments),
        };
        shell::interactive(&url, Format::Table, &[], &mut more).map_err(|ended| ended.status().1)?;
    } else {
        match &mut running {
            Running::Node(_) => drop(signals::wait()),
            Running::Cluster(cluster) => watch(cluster),
        }
    }
    match running {
        Running::Node(serving) => serving.stop(),
        Running::Cluster(cluster) => drop(cluster),
    }
    Ok(())
}

/// Until a signal comes: says which nodes have ended.
fn watch(cluster: &mut Cluster) {
    while signals::wait_for(LOOK_EVERY).is_none() {
        for told in cluster.ended() {
            crate::say(&told);
        }
    }
}

/// What is in it, and where.
const DATA: &str = ", with 100 posts and 1000 likes in the database `demo` (on temporary storage).";

fn load(running: &Running) -> Result<(), Box<dyn std::error::Error>> {
    Client::connect(&Url::parse(&running.url("postgres"))?)?.query("CREATE DATABASE demo")?;
    let mut client = Client::connect(&Url::parse(&running.url("demo"))?)?;
    bench::load(&PostsAndLikes { read_fraction: 1.0 }, &mut client, SEED)?;
    Ok(())
}

/// While the shell has the terminal, SIGTERM ends the process; nothing of a demo outlives it anyway.
fn leave_on_terminate(store: &Path) {
    let store = store.to_owned();
    let waiting = std::thread::Builder::new().name("signals".into()).spawn(move || {
        while signals::wait() != signals::Signal::Terminate {
            shell::cancel_running();
        }
        let _ = std::fs::remove_dir_all(&store);
        std::process::exit(0);
    });
    if let Err(e) = waiting {
        eprintln!("cannot start the thread that takes signals: {e}");
    }
}
