//! `timeball start`.

use crate::args::StartOptions;
use crate::serving::Serving;
use crate::signals;

/// Serves until a signal comes.
pub fn run(options: &StartOptions) -> Result<(), String> {
    signals::block().map_err(|e| format!("cannot block signals: {e}"))?;
    let serving = Serving::start(&options.store, &options.node)?;
    crate::say(&format!("sql   {}\nhttp  {}\nStop with Ctrl-C or SIGTERM.\n", serving.url("postgres"), serving.http()));
    signals::wait();
    serving.stop();
    Ok(())
}
