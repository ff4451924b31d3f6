//! What a caller decides about the transport. The defaults are for servers in the same region.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::fresh::{Checking, Fresh, OnVetted};

#[derive(Clone)]
pub struct Options {
    /// Loaded on every vetted connection; [`crate::ScriptId`] is the place in this list. In each text `RUN` is the run
    /// id of the process that executes it.
    pub scripts: Vec<&'static str>,
    /// Must have finished before any script runs on a new connection.
    pub on_vetted: Option<Arc<dyn OnVetted>>,
    /// For address, TCP, TLS and greeting together.
    pub connect_deadline: Duration,
    /// For what is asked of a new connection before it is used, and the same again for `on_vetted`.
    pub vetting_deadline: Duration,
    /// How often an idle connection is asked whether it is still there and still a primary; half of it is the deadline.
    pub heartbeat: Duration,
    /// More calls than this waiting for one server are refused as `Busy`: at 100,000 calls a second it is 40 ms of work,
    /// more than any deadline in the request path.
    pub in_flight_max: usize,
}

// === impl Options ===

impl Options {
    /// With a closure that is asked about every new connection; here its lifetimes are found by the compiler.
    #[must_use]
    pub fn checked_by<F>(mut self, check: F) -> Self
    where
        F: for<'a> Fn(&'a Fresh) -> Checking<'a> + Send + Sync + 'static,
    {
        self.on_vetted = Some(Arc::new(check));
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            scripts: Vec::new(),
            on_vetted: None,
            connect_deadline: Duration::from_millis(500),
            vetting_deadline: Duration::from_secs(1),
            heartbeat: Duration::from_secs(1),
            in_flight_max: 4096,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("scripts", &self.scripts.len())
            .field("on_vetted", &self.on_vetted.is_some())
            .field("connect_deadline", &self.connect_deadline)
            .field("vetting_deadline", &self.vetting_deadline)
            .field("heartbeat", &self.heartbeat)
            .field("in_flight_max", &self.in_flight_max)
            .finish()
    }
}
