//! `/health` and `/metrics`: what a node says of itself by HTTP, from the first moment of its process on.
//!
//! Two questions, as those that watch over processes ask them. *Is it alive?* (`/health/live`): if not, it is to be started again; a node that waits for
//! others is alive. *Is it ready?* (`/health`, `/health/ready`): if not, no clients are to be sent to it; the answer says why.

use crate::connection::Shared;
use crate::http::{self, Page};
use crate::log;
use crate::metrics::MetricsText;
use crate::server::{NodeView, Options, StartError, bind, wake};
use parking_lot::RwLock;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What there is to tell of so far.
#[derive(Default)]
struct Stage {
    node: Option<Arc<dyn NodeView>>,
    shared: Option<Arc<Shared>>,
}

/// The socket for HTTP, and what answers there.
pub struct Health {
    stage: Arc<RwLock<Stage>>,
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Health {
    /// Binds the socket and begins to answer: that nothing is served yet.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn open(options: &Options) -> Result<Health, StartError> {
        let (listener, address) = bind(&options.http_addr, "--http-addr", options.insecure)?;
        log::info("http_answers", &[("address", &address)]);
        let (stage, stop) = (Arc::new(RwLock::new(Stage::default())), Arc::new(AtomicBool::new(false)));
        let answering = stage.clone();
        let handler = Arc::new(move |path: &str| answering.read().page(path));
        http::serve(listener, handler, stop.clone()).map_err(StartError::Thread)?;
        Ok(Health { stage, address, stop })
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// There is a node; its clients are not served yet.
    pub fn has_node(&self, node: Arc<dyn NodeView>) {
        self.stage.write().node = Some(node);
    }

    /// Clients are served.
    pub(crate) fn serves(&self, shared: Arc<Shared>) {
        self.stage.write().shared = Some(shared);
    }

    /// Answers no more.
    pub(crate) fn close(&self) {
        self.stop.store(true, Ordering::SeqCst);
        wake(self.address);
    }
}

impl Drop for Health {
    fn drop(&mut self) {
        self.close();
    }
}

impl Stage {
    fn page(&self, path: &str) -> Option<Page> {
        match path {
            "/health" | "/health/ready" => Some(self.ready()),
            "/health/live" => {
                let failed = self.node.as_ref().is_some_and(|node| !node.is_healthy());
                let status = if failed { ("503 Service Unavailable", "failed") } else { ("200 OK", "alive") };
                Some(json(status.0, &[("status", format!("\"{}\"", status.1))]))
            }
            "/metrics" => {
                let mut text = MetricsText::default();
                if let Some(shared) = &self.shared {
                    shared.metrics.render(&mut text);
                }
                if let Some(node) = &self.node {
                    node.render(&mut text);
                }
                let ready = u64::from(self.unready().is_none());
                text.gauge("ready", "1: clients may be sent here, as /health says", ready);
                let body = text.finish();
                Some(Page { status: "200 OK", media_type: "text/plain; version=0.0.4", body })
            }
            _ => None,
        }
    }

    /// Why no clients are to be sent here: a word, and more of it.
    fn unready(&self) -> Option<(&'static str, String)> {
        let Some(node) = &self.node else {
            return Some(("starting", "it opens its store, or waits until it is in a cluster".into()));
        };
        if let Some(why) = node.removed() {
            return Some(("removed", why));
        }
        if !node.is_healthy() {
            return Some(("failed", "its storage failed: it serves nothing until a restart".into()));
        }
        match (&self.shared, node.not_ready()) {
            (Some(shared), _) if shared.registry.is_draining() => Some(("draining", "it is stopping".into())),
            (Some(_), why) => why.map(|why| ("not ready", why)),
            (None, why) => Some(("starting", why.unwrap_or_else(|| "it is about to serve".into()))),
        }
    }

    fn ready(&self) -> Page {
        let unready = self.unready();
        let mut fields = match &self.node {
            Some(node) => node.health(),
            None => vec![("status", String::new())],
        };
        if let Some((word, why)) = &unready {
            if let Some(status) = fields.first_mut() {
                status.1 = format!("\"{word}\"");
            }
            fields.push(("reason", format!("{why:?}")));
        }
        json(if unready.is_none() { "200 OK" } else { "503 Service Unavailable" }, &fields)
    }
}

fn json(status: &'static str, fields: &[(&'static str, String)]) -> Page {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    Page { status, media_type: "application/json", body: format!("{{{}}}\n", fields.join(",")) }
}
