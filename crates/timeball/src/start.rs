//! `timeball start`.

use crate::args::StartOptions;
use crate::serving::Serving;
use crate::signals;
use std::io::Write as _;

/// Serves until a signal comes.
pub fn run(options: &StartOptions) -> Result<(), String> {
    signals::block().map_err(|e| format!("cannot block signals: {e}"))?;
    let serving = Serving::start(&options.store, &options.node)?;
    println!("sql   {}\nhttp  {}", serving.url("postgres"), serving.http());
    println!("Stop with Ctrl-C or SIGTERM.");
    let _ = std::io::stdout().flush();
    signals::wait();
    serving.stop();
    Ok(())
}
