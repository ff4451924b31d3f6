//! What every request of one worker thread needs at hand. Built once at start; nothing here is looked up per request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Handle;
use tollkeeper_account::{Health, Ledger};
use tollkeeper_core::Millis;
use tollkeeper_decide::{Decider, News, Origin};
use tollkeeper_store::Store;
use tollkeeper_wire::DatabaseKind;

use crate::audit::Auditor;
use crate::clock::Clock;
use crate::fleet::Shared;
use crate::follower::Followed;
use crate::forward_auth::ForwardAuth;
use crate::http::{Idempotency, Throttles};
use crate::ids::RequestIds;
use crate::keyring::Keyring;
use crate::net::Gauges;
use crate::rollback::Rollback;
use crate::rule_books::RuleKeeper;
use crate::shared_cache::SharedCache;
use crate::usage::UsageFlow;

#[derive(Debug)]
pub struct App {
    pub clock: Clock,
    pub keyring: Arc<Keyring>,
    pub decider: Arc<Decider>,
    /// At this worker's page.
    pub ledger: Ledger,
    /// At this worker's page too.
    pub auditor: Auditor,
    pub store: Store,
    pub database: DatabaseKind,
    /// Where storage runs, so that it never holds up a thread that answers.
    pub backstage: Handle,
    pub ids: RequestIds,
    /// One for all workers: a retry may come over another connection.
    pub idempotency: Arc<Idempotency>,
    /// One for all workers too.
    pub throttles: Arc<Throttles>,
    /// And so is this.
    pub forward_auth: Arc<ForwardAuth>,
    pub followed: Followed,
    /// How old a cached record may be that is used at all.
    pub cache_stale_ms: u64,
    /// Absent on a node alone.
    pub shared: Option<Shared>,
    /// Absent on a node alone, and where each node has a database of its own.
    pub cache: Option<SharedCache>,
    pub rollback: Arc<Rollback>,
    pub rules: RuleKeeper,
    pub usage: Arc<UsageFlow>,
    pub readiness: Readiness,
    pub journal: Arc<Health>,
    pub gauges: Arc<Gauges>,
    pub node: Arc<str>,
}

// === impl App ===

impl App {
    /// Waits until this node has forgotten what a change made stale, and has the other nodes look for it too.
    pub async fn follow(&self, revision: u64) {
        if let Some(shared) = &self.shared {
            shared.origin.announce(&News::Changed);
        }
        self.followed.reach(revision).await;
    }

    /// The database has been away for longer than anything that was read from it may be used, root keys above all: there is
    /// no call left that could be answered.
    pub fn is_cut_off(&self, now: Millis) -> bool {
        self.followed.silence_ms(now) > self.cache_stale_ms
    }

    /// Something that limits or their durability depend on is out of reach. Redis is not, where nobody counts in it.
    pub fn is_degraded(&self, now: Millis) -> bool {
        let alone =
            |shared: &Shared| shared.fleet.is_degraded() && !shared.fleet.modes.are_all_memory();
        self.journal.failing()
            || self.journal.is_late(now)
            || self.usage.is_at_risk()
            || self.store.refuses_writes()
            || self.shared.as_ref().is_some_and(alone)
    }
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
