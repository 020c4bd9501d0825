//! `timeball start`.

use crate::args::StartOptions;
use crate::serving::Serving;
use crate::signals;
use server::cluster::identity;
use std::sync::mpsc::channel;

/// Serves until a signal comes.
pub fn run(options: &StartOptions) -> Result<(), String> {
    signals::block().map_err(|e| format!("cannot block signals: {e}"))?;
    let join = &options.join;
    let joined = join.peer_addr.is_some() || join.peer_listen_addr.is_some() || !join.join.is_empty();
    if joined || identity::load(&options.store)?.is_some() {
        return run_member(options);
    }
    let serving = Serving::start(&options.store, &options.node)?;
    say_where(&serving);
    signals::wait();
    serving.stop();
    Ok(())
}

fn say_where(serving: &Serving) {
    crate::say(&format!("sql   {}\nhttp  {}\nStop with Ctrl-C or SIGTERM.\n", serving.url("postgres"), serving.http()));
}

/// A member waits for others before it serves: signals are heard meanwhile.
fn run_member(options: &StartOptions) -> Result<(), String> {
    let (started, serving) = channel();
    std::thread::scope(|scope| {
        let starting = std::thread::Builder::new().name("start".into()).spawn_scoped(scope, move || {
            match Serving::start_member(&options.store, &options.node, &options.join) {
                Ok(serving) => {
                    say_where(&serving);
                    // Nobody listens after a signal.
                    if let Err(unheard) = started.send(serving) {
                        unheard.0.stop();
                    }
                }
                Err(e) => {
                    eprintln!("timeball: {e}");
                    std::process::exit(1);
                }
            }
        });
        starting.map_err(|e| format!("cannot start a thread: {e}"))?;
        signals::wait();
        match serving.try_recv() {
            Ok(serving) => serving.stop(),
            // It has not served yet: nothing was acknowledged that its log does not hold.
            Err(_) => std::process::exit(0),
        }
        Ok(())
    })
}
