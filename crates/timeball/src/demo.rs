//! `timeball demo`: a node on temporary storage, with the data of posts and likes.

use crate::args::{DemoOptions, Format};
use crate::serving::Serving;
use crate::{shell, signals};
use lab::bench::{self, PostsAndLikes};
use lab::client::{Client, Url};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Seed of the data: the same at every start.
const SEED: u64 = 1;

/// A directory that is removed when the value goes.
struct Temporary(PathBuf);
impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Serves until the shell is left or a signal comes.
pub fn run(options: &DemoOptions) -> Result<(), String> {
    signals::block().map_err(|e| format!("cannot block signals: {e}"))?;
    let store = Temporary(std::env::temp_dir().join(format!("timeball-demo-{}", std::process::id())));
    let serving = Serving::start(&store.0, &options.node)?;
    load(&serving).map_err(|e| format!("cannot load the demo's data: {e}"))?;
    let url = serving.url("demo");
    let interactive = std::io::stdin().is_terminal() && !options.no_shell;
    let stop = if interactive { "\\q leaves the shell and stops the node." } else { "Stop with Ctrl-C or SIGTERM." };
    let http = serving.http();
    crate::say(&format!(
        "A Timeball node, with 100 posts and 1000 likes in the database `demo` (on temporary storage).\n\n  \
         sql   {url}\n  psql  psql \"{url}\"\n  http  {http}/health  {http}/metrics\n\n{stop}\n",
    ));
    if interactive {
        leave_on_terminate(&store.0);
        shell::interactive(&Url::parse(&url).map_err(|e| e.to_string())?, Format::Table)?;
    } else {
        signals::wait();
    }
    serving.stop();
    Ok(())
}

fn load(serving: &Serving) -> Result<(), Box<dyn std::error::Error>> {
    Client::connect(&Url::parse(&serving.url("postgres"))?)?.query("CREATE DATABASE demo")?;
    let mut client = Client::connect(&Url::parse(&serving.url("demo"))?)?;
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
