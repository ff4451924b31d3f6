//! What the shared limits would have said, beside what was decided: counted per limit, never answered.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::cells::Cells;
use crate::fleet::untold::Arrears;
use crate::fleet::{Fleet, SharedAsk};
use crate::lease::Scope;

/// Comparisons under way; beyond it a request is not compared, and that is counted, like one that Redis did not answer.
const UNDER_WAY_MAX: u64 = 1_024;

/// Limits that are told apart; the rest is counted together.
const LIMITS_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub struct Shadowed {
    under_way: AtomicU64,
    skipped: AtomicU64,
    limits: Mutex<HashMap<String, Agreement>>,
}

/// What was decided here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// By this limit.
    pub admitted: bool,
    /// By all of the request.
    pub passed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    pub compared: u64,
    /// Redis would have refused what was admitted.
    pub stricter: u64,
    /// Redis would have admitted what was refused.
    pub looser: u64,
}

// === impl Shadowed ===

impl Shadowed {
    /// Per limit, by tenant and name.
    pub fn read(&self) -> Vec<(String, Agreement)> {
        let limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> =
            limits.iter().map(|(name, agreement)| (name.clone(), *agreement)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    fn count(&self, scope: &Scope, admitted: bool, would: bool) {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("{}/{}", scope.tenant, scope.space);
        let known = limits.len() < LIMITS_MAX || limits.contains_key(&name);
        let agreement = limits.entry(if known { name } else { "other".to_owned() }).or_default();
        agreement.compared += 1;
        agreement.stricter += u64::from(admitted && !would);
        agreement.looser += u64::from(!admitted && would);
    }
}

// === impl Fleet ===

impl Fleet {
    /// Asks the origin what it would have said, behind the answer. What was admitted here, as part of a request that
    /// passed, is spent there too, and before it what the origin has not heard of.
    pub(crate) fn compare(
        self: &Arc<Self>,
        cells: &Cells,
        asked: SharedAsk<'_>,
        beside: Beside,
        arrears: Option<Arrears>,
    ) {
        let Beside { admitted, passed } = beside;
        let ask = asked.ask;
        let cost = if passed { ask.cost.get() } else { 0 };
        if self.shadowed.under_way.fetch_add(1, Ordering::Relaxed) >= UNDER_WAY_MAX {
            self.shadowed.under_way.fetch_sub(1, Ordering::Relaxed);
            self.shadowed.skipped.fetch_add(1, Ordering::Relaxed);
            self.owe(arrears.as_ref(), cost);
            return;
        }
        let owed = arrears.as_ref().map_or(0, |arrears| self.owed(arrears, cells, cost));
        let (fleet, scope, identifier) =
            (Arc::clone(self), Arc::clone(asked.scope), asked.identifier.to_owned());
        self.backstage.spawn(async move {
            let asked = SharedAsk { ask, scope: &scope, identifier: &identifier };
            if owed > 0 && !fleet.charge(asked, owed).await {
                fleet.owe(arrears.as_ref(), owed);
            }
            let gathered = fleet.obtain(&[asked]).await;
            let (would, degraded) =
                (gathered.passed, gathered.dealt.iter().any(|one| one.degraded));
            let now = fleet.now();
            let rest = gathered.dealt.first().map_or(0, |one| one.outcome.remaining).min(cost);
            let spent = passed && would && gathered.spend(now);
            if would || degraded {
                fleet.owe(arrears.as_ref(), if spent { 0 } else { cost });
            } else if rest > 0 && !fleet.charge(asked, rest).await {
                // Admitted here all the same: what is left there of such a cost is not left.
                fleet.owe(arrears.as_ref(), rest);
            }
            if degraded {
                // What Redis would have said is not known.
                fleet.shadowed.skipped.fetch_add(1, Ordering::Relaxed);
            } else {
                fleet.shadowed.count(&scope, admitted, would && (spent || !passed));
            }
            fleet.shadowed.under_way.fetch_sub(1, Ordering::Relaxed);
        });
    }
}
