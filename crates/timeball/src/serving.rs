//! A node that serves: what `start` and `demo` have in common.

use crate::args::NodeOptions;
use clocksource::{Clock, ClockSource, Poller};
use server::metrics::MetricsText;
use server::{NodeView, Server, StoreDir, log};
use sql::transaction::Kv;
use sql::transaction::memory::MemoryKv;
use sql::{Database, DatabaseOptions};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A stop that takes longer than this is cut off, in seconds: the promise is ten.
const STOP_SECONDS_MAX: u64 = 9;

/// A running node.
pub struct Serving {
    server: Server,
    _poller: Option<Poller>,
    _store: StoreDir,
}

impl Serving {
    /// Opens the store and begins to serve.
    pub fn start(store: &Path, options: &NodeOptions) -> Result<Serving, String> {
        log::set_format(options.log);
        std::panic::set_hook(Box::new(|panic| log::error("panic", &[("what", panic)])));
        let store = StoreDir::open(store).map_err(|e| e.to_string())?;
        let clock = Clock::open(&options.clock).map_err(|e| e.to_string())?;
        let poller =
            clock.needs_polling().then(|| clock.start_poller(|event| log::warning("clock", &[("event", event)])));
        let poller = poller.transpose().map_err(|e| e.to_string())?;
        log_clock(&clock);
        let kv: Arc<dyn Kv> = Arc::new(MemoryKv::new());
        let db = Database::open(kv, DatabaseOptions::default()).map_err(|e| e.to_string())?;
        let server = Server::start(&options.server, db, Arc::new(View { clock })).map_err(|e| e.to_string())?;
        Ok(Serving { server, _poller: poller, _store: store })
    }

    /// A URL for clients.
    pub fn url(&self, database: &str) -> String {
        format!("postgresql://root@{}/{database}", self.server.sql_addr())
    }
    /// Address of `/health` and `/metrics`.
    pub fn http(&self) -> String {
        format!("http://{}", self.server.http_addr())
    }

    /// Stops within ten seconds.
    pub fn stop(self) {
        let cut_off = std::thread::Builder::new().name("stop-limit".into()).spawn(|| {
            std::thread::sleep(Duration::from_secs(STOP_SECONDS_MAX));
            log::error("stop_cut_off", &[("seconds", &STOP_SECONDS_MAX)]);
            std::process::exit(1);
        });
        if let Err(e) = cut_off {
            log::warning("stop_has_no_limit", &[("error", &e)]);
        }
        self.server.drain();
        log::info("stopped", &[]);
    }
}

fn log_clock(clock: &Clock) {
    let (reading, report) = (clock.read(), clock.report());
    let bound = reading.interval.error_ns();
    log::info(
        "clock",
        &[("source", &report.source), ("status", &reading.status), ("bound_ns", &bound), ("detail", &report.detail)],
    );
}

struct View {
    clock: Arc<Clock>,
}

impl NodeView for View {
    fn health(&self) -> Vec<(&'static str, String)> {
        let (reading, report) = (self.clock.read(), self.clock.report());
        let clock = format!(
            "{{\"source\":{},\"status\":\"{}\",\"bound_ns\":{}}}",
            log::quoted(&report.source),
            reading.status,
            reading.interval.error_ns()
        );
        vec![("status", "\"serving\"".into()), ("clock", clock)]
    }
    fn is_healthy(&self) -> bool {
        true
    }
    fn render(&self, text: &mut MetricsText) {
        let reading = self.clock.read();
        text.gauge("clock_bound_nanos", "Half the width of the clock's interval", reading.interval.error_ns());
        let states = ["unknown", "synchronized", "free_running", "disrupted"];
        text.state(
            "clock_status",
            "What the clock source says of itself",
            "status",
            &states,
            &reading.status.to_string(),
        );
    }
}
