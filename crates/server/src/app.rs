//! What every request of one worker thread needs at hand. Built once at start; nothing here is looked up per request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Handle;
use tollkeeper_account::{Health, Ledger};
use tollkeeper_decide::Decider;
use tollkeeper_store::Store;

use crate::clock::Clock;
use crate::follower::Followed;
use crate::http::{Idempotency, Throttles};
use crate::ids::RequestIds;
use crate::keyring::Keyring;
use crate::net::Gauges;

#[derive(Debug)]
pub struct App {
    pub clock: Clock,
    pub keyring: Arc<Keyring>,
    pub decider: Arc<Decider>,
    /// At this worker's page.
    pub ledger: Ledger,
    pub store: Store,
    /// Where storage runs, so that it never holds up a thread that answers.
    pub backstage: Handle,
    pub ids: RequestIds,
    /// One for all workers: a retry may come over another connection.
    pub idempotency: Arc<Idempotency>,
    /// One for all workers too.
    pub throttles: Arc<Throttles>,
    pub followed: Followed,
    pub readiness: Readiness,
    pub journal: Arc<Health>,
    pub gauges: Arc<Gauges>,
    pub node: Arc<str>,
}

/// May traffic be sent here?
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

// === impl Readiness ===

impl Readiness {
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }

    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
