//! What dead processes of this data directory held of shared limits: the journal knows how far they may have spent it, and
//! the rest goes back in their name. What cannot be told in time stays granted, and nobody can spend it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tollkeeper_account::{BootId, LeaseLeft, Recovered};
use tollkeeper_core::{Algorithm, Limit, Millis, Window};
use tollkeeper_decide::{CellName, Fleet, LeaseMark};

use crate::clock::{Clock, Stamp};
use crate::fleet::boot_of;

/// Between two tries while Redis is away.
const RETRY: Duration = Duration::from_millis(500);

/// Nobody waits for an answer but those who could use the units.
const PATIENCE: Duration = Duration::from_millis(250);

/// Calls at once.
const AT_ONCE: usize = 64;

#[derive(Debug)]
pub struct LeaseEstate {
    clock: Clock,
    dead: Mutex<Dead>,
}

type Dead = HashMap<LeaseOf, LeaseLeft>;

/// Totals are of a boot and a record: the same limit with another quota is counted in the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LeaseOf {
    boot: BootId,
    name: Arc<CellName>,
    shape: (&'static str, u64),
    win: u64,
}

/// Tries until everything is given back, or too late.
pub async fn settle_in_the_end(estate: Arc<LeaseEstate>, fleet: Arc<Fleet>) {
    loop {
        estate.settle(&fleet).await;
        if estate.lock().is_empty() {
            return;
        }
        pause().await;
    }
}

// === impl LeaseEstate ===

impl LeaseEstate {
    pub fn new(clock: Clock) -> Self {
        Self { clock, dead: Mutex::default() }
    }

    pub fn add(&self, left: LeaseLeft) {
        let mark = &left.mark;
        let (name, shape) = (Arc::clone(&mark.name), shape(&mark.limit));
        let of = LeaseOf { boot: left.boot, name, shape, win: mark.win };
        self.lock().entry(of).and_modify(|known| known.merge(&left)).or_insert(left);
    }

    /// A journal that is not surely the last word of those who wrote it says nothing about what they did not spend.
    pub fn judge(&self, recovered: &Recovered) {
        let mut dead = self.lock();
        let trusted = recovered.whole && !recovered.moved;
        if !trusted && !dead.is_empty() {
            tracing::warn!(
                "the journal has gaps, is a copy, or is older than the last start of this machine: \
                 units of shared limits that were leased by then count as spent"
            );
            dead.clear();
        }
    }

    /// What the journal must go on keeping.
    pub fn unsettled(&self) -> Vec<LeaseLeft> {
        let mut dead = self.lock();
        self.forget_late(&mut dead);
        dead.values().cloned().collect()
    }

    /// Gives back what can be; where nobody answers, the next try begins anew.
    async fn settle(&self, fleet: &Arc<Fleet>) {
        let due: Vec<_> = {
            let mut dead = self.lock();
            self.forget_late(&mut dead);
            dead.iter().map(|(of, left)| (of.clone(), left.clone())).collect()
        };
        let mut leases = 0;
        for some in due.chunks(AT_ONCE) {
            let mut asking = JoinSet::new();
            for (of, left) in some {
                asking.spawn(give_back(Arc::clone(fleet), of.clone(), left.mark.clone()));
            }
            let mut heard = false;
            while let Some(told) = asking.join_next().await {
                let Ok(Some(of)) = told else { continue };
                self.lock().remove(&of);
                (heard, leases) = (true, leases + 1);
            }
            if !heard {
                break;
            }
        }
        if leases > 0 {
            tracing::info!("settled {leases} leases of an ended process");
        }
    }

    fn forget_late(&self, dead: &mut Dead) {
        let (now, machine) = (self.clock.now(), Millis(Stamp::now().machine_ms()));
        dead.retain(|_, left| !left.is_late(now, machine));
    }

    fn lock(&self) -> MutexGuard<'_, Dead> {
        self.dead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says what is left of a lease, and then what only the answer told: what it lent and nobody heard of.
async fn give_back(fleet: Arc<Fleet>, of: LeaseOf, mut mark: LeaseMark) -> Option<LeaseOf> {
    loop {
        let take = mark.last_words(boot_of(of.boot), fleet.table().nodes());
        let taken = fleet.origin().take(&of.name, &take, PATIENCE).await.ok()?;
        if !mark.hear(&taken) {
            return Some(of);
        }
    }
}

/// What makes two limits of one name two records.
fn shape(limit: &Limit) -> (&'static str, u64) {
    match limit.algorithm {
        Algorithm::FixedWindow(Window::Aligned(width)) => ("fixed", width.millis()),
        Algorithm::FixedWindow(Window::Day) => ("day", 0),
        Algorithm::FixedWindow(Window::Month) => ("month", 0),
        Algorithm::SlidingWindow(width) => ("sliding", width.millis()),
        Algorithm::SlidingLog(width) => ("log", width.millis()),
        Algorithm::TokenBucket { width, .. } => ("bucket", width.millis()),
    }
}

#[allow(clippy::disallowed_methods, reason = "a server that is away comes back by itself")]
async fn pause() {
    tokio::time::sleep(RETRY).await;
}
