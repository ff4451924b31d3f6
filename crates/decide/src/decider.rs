//! The engine's front: warm what an ask needs (the only await), then decide without waiting.

mod records;

use std::sync::Arc;

use smallvec::SmallVec;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tollkeeper_core::Millis;

use crate::ask::{LimitAsk, Limited, Missing};
use crate::budget::Budget;
use crate::cells::{CellAsk, Cells, Returned};
use crate::counts::LimitCounts;
use crate::fleet::{Fleet, Mode};
use crate::loaded_key::{LoadedIdentity, LoadedKey};
use crate::namespace::{Namespace, NamespaceKey};
use crate::offstage::offstage;
use crate::overflow::Overflow;
use crate::ports::{Directory, KeyHash, OriginError, Ports, RootKey, Tenant, Which};
use crate::purse::Purse;
use crate::rule_books::RuleBooks;
use crate::sharing::{self, Joint, Routed, Shared};
use crate::swr::{Freshness, Lifetime, Swr};
use crate::warm::{Warm, WarmCheck, WarmError, permit};
use crate::{CellHasher, Decided, NamespaceTag};

/// Root keys and namespaces held in memory, at most. Some 500 bytes each: 50 MB when full.
const RECORDS_MAX: usize = 100_000;
/// Keys held in memory, at most: some 1 KiB each with a few permissions and limits.
const KEYS_MAX: usize = 1_000_000;
const KEYS_ABSENT_MAX: usize = 100_000;
/// Names known to be absent, at most: enough to absorb a flood of guesses, a tenth of the real ones.
const ABSENT_MAX: usize = 10_000;
/// Renewals under way at once, at most: enough for 100,000 records within their stale time at a database that answers in
/// 2 ms, and few enough that requests on the same core do not wait behind them. A record whose turn does not come is served
/// as it is, to the end of its life, and the next reader tries again.
const RENEWALS_MAX: usize = 4;
/// Limits alone decide.
pub(crate) const NO_CONDITION: Option<fn() -> bool> = None;

pub struct Decider {
    cells: Arc<Cells>,
    overflow: Overflow,
    hasher: CellHasher,
    directory: Arc<dyn Directory>,
    root_keys: Arc<Swr<KeyHash, Arc<RootKey>>>,
    namespaces: Arc<Swr<NamespaceKey, Arc<Namespace>>>,
    keys: Arc<Swr<KeyHash, Arc<LoadedKey>>>,
    /// Those that requests name; a key brings its own.
    identities: Arc<Swr<NamespaceKey, Arc<LoadedIdentity>>>,
    rules: RuleBooks,
    counts: Arc<LimitCounts>,
    /// Two, because anybody may guess root keys, and only callers with one may guess keys.
    root_key_loads: Budget,
    key_loads: Budget,
    renewals: Arc<Semaphore>,
    purse: Purse,
    fleet: Option<Arc<Fleet>>,
    /// Where loads run, so that storage never runs on a thread that answers requests.
    backstage: Handle,
}

/// Which cache was read, for whoever times it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheName {
    RootKey,
    Namespace,
    Key,
    Identity,
}

// === impl Decider ===

impl Decider {
    pub fn new(
        cells: Arc<Cells>,
        hasher: CellHasher,
        ports: Ports,
        lifetime: Lifetime,
        backstage: Handle,
    ) -> Self {
        let Ports { directory, shelf, bank, boot } = ports;
        let counts = Arc::<LimitCounts>::default();
        Self {
            overflow: Overflow::new(Arc::clone(&cells), shelf, backstage.clone()),
            purse: Purse::new(bank, boot, backstage.clone()),
            keys: Arc::new(Swr::new(KEYS_MAX, KEYS_ABSENT_MAX, lifetime)),
            identities: Arc::new(Swr::new(RECORDS_MAX, KEYS_ABSENT_MAX, lifetime)),
            rules: RuleBooks::new(hasher.clone(), Arc::clone(&counts)),
            counts,
            cells,
            hasher,
            directory,
            root_keys: Arc::new(Swr::new(RECORDS_MAX, ABSENT_MAX, lifetime)),
            namespaces: Arc::new(Swr::new(RECORDS_MAX, ABSENT_MAX, lifetime)),
            fleet: None,
            root_key_loads: Budget::default(),
            key_loads: Budget::default(),
            renewals: Arc::new(Semaphore::new(RENEWALS_MAX)),
            backstage,
        }
    }

    /// As one of a fleet that shares limits.
    #[must_use]
    pub fn sharing(self, fleet: Arc<Fleet>) -> Self {
        Self { fleet: Some(fleet), ..self }
    }

    pub fn fleet(&self) -> Option<&Arc<Fleet>> {
        self.fleet.as_ref()
    }

    /// Brings near all that this ask needs: its namespaces, and cells that were parked. The only await.
    pub async fn warm(
        &self,
        ask: &LimitAsk<'_>,
        now: Millis,
        see: &mut (dyn FnMut(CacheName, Freshness) + Send),
    ) -> Result<Warm, WarmError> {
        let checks = match self.line_up(ask, now, see).await {
            Err(WarmError::NamespaceMissing(_)) if ask.missing == Missing::Create => {
                // Boxed, like all that is rare: every request carries the room of whatever it might await.
                Box::pin(self.make_missing(ask, now, see)).await?;
                Box::pin(self.line_up(ask, now, see)).await?
            }
            lined_up => lined_up?,
        };
        let identifiers: SmallVec<[&str; 1]> =
            ask.checks.iter().map(|one| one.identifier).collect();
        self.bring_checks(&ask.caller.tenant.id, checks, &identifiers, ask.once, now).await
    }

    /// Of limits that are known: what the fleet lends for them, and cells that were parked.
    pub(crate) async fn bring_checks(
        &self,
        tenant_id: &str,
        checks: SmallVec<[WarmCheck; 1]>,
        identifiers: &[&str],
        once: bool,
        now: Millis,
    ) -> Result<Warm, WarmError> {
        let Some(fleet) = &self.fleet else {
            let keys = checks.iter().map(|check: &WarmCheck| check.cell.key);
            let returned = self.overflow.fetch(keys).await?;
            return Ok(Warm { checks, returned, shared: None, compared: Vec::new() });
        };
        let routed: SmallVec<[Routed<'_>; 1]> =
            checks.iter().zip(identifiers).map(|(warm, one)| warm.routed(one)).collect();
        sharing::carry(fleet, &self.cells, tenant_id, &routed, now).await;
        // Boxed: a node alone never waits for it, and would carry its room all the same.
        let gathering = Box::pin(sharing::gather(fleet, tenant_id, &routed, once));
        let shared = gathering.await.map(Box::new);
        let compared = sharing::compared(fleet, tenant_id, &routed, now);
        let is_shared = |place| shared.as_ref().is_some_and(|shared| shared.covers(place));
        let ours = checks.iter().enumerate().filter(|(place, _)| !is_shared(*place));
        let returned = self.overflow.fetch(ours.map(|(_, check)| check.cell.key)).await?;
        if returned.is_empty() {
            sharing::inherit(fleet, &self.cells, tenant_id, &routed, now);
        }
        drop(routed);
        Ok(Warm { checks, returned, shared, compared })
    }

    /// Decides: all limits of the ask are spent, or none. Pure arithmetic under the table's locks.
    pub fn limit(&self, warm: Warm, now: Millis) -> Decided<Limited> {
        if warm.shared.is_some() || !warm.compared.is_empty() {
            return self.limit_shared(warm, now);
        }
        let Warm { checks, returned, .. } = warm;
        if let [check] = &checks[..] {
            let outcome = self.cells.spend(&check.cell, returned, now);
            let passed = outcome.admitted();
            let limits = checks.into_iter().map(|check| check.answer(outcome, false)).collect();
            return Decided::new(Limited { passed, limits }, now);
        }
        let asks: Vec<CellAsk> = checks.iter().map(|check| check.cell).collect();
        let settled = self.cells.spend_all(&asks, returned, now);
        let answered = checks.into_iter().zip(settled.outcomes);
        let limits = answered.map(|(check, outcome)| check.answer(outcome, false));
        Decided::new(Limited { passed: settled.passed, limits: limits.collect() }, now)
    }

    /// The same where the fleet has a part in it.
    #[cold]
    fn limit_shared(&self, warm: Warm, now: Millis) -> Decided<Limited> {
        let Warm { checks, returned, shared, compared } = warm;
        let asks: SmallVec<[CellAsk; 1]> = checks.iter().map(|check| check.cell).collect();
        let joint = self.settle_shared(shared, &asks, returned, now, NO_CONDITION);
        if let Some(fleet) = &self.fleet {
            for one in compared {
                one.run(fleet, &self.cells, &joint.settled, now);
            }
        }
        let answered = checks.into_iter().zip(joint.settled.outcomes).zip(joint.degraded);
        let limits = answered.map(|((check, outcome), degraded)| check.answer(outcome, degraded));
        let passed = joint.settled.passed;
        Decided::new(Limited { passed, limits: limits.collect() }, joint.at)
    }

    /// All asks of a request, those that are counted here and those that the fleet lent for, on one more condition if
    /// there is one.
    pub(crate) fn settle_shared(
        &self,
        shared: Option<Box<Shared>>,
        asks: &[CellAsk],
        returned: Vec<Returned>,
        now: Millis,
        condition: Option<impl FnOnce() -> bool>,
    ) -> Joint {
        if let (Some(shared), Some(fleet)) = (shared, &self.fleet) {
            let holds = || condition.is_none_or(|condition| condition());
            return shared.settle(&self.cells, asks, returned, (now, fleet.now()), holds);
        }
        let settled = match condition {
            Some(condition) => self.cells.spend_all_if(asks, returned, now, condition),
            None => self.cells.spend_all(asks, returned, now),
        };
        let degraded = asks.iter().map(|_| false).collect();
        Joint { settled, degraded, unavailable: false, at: now }
    }

    /// Sets the counters of one identifier of a tenant's namespace back, or of all. Returns how many cells there were.
    pub async fn reset(
        &self,
        tenant_id: &str,
        tag: &NamespaceTag,
        identifier: Option<&str>,
    ) -> Result<u64, OriginError> {
        self.reset_all(tenant_id, &[(tag, identifier)]).await
    }

    /// The same of several, for which the other nodes are called once.
    pub async fn reset_all(
        &self,
        tenant_id: &str,
        counters: &[(&NamespaceTag, Option<&str>)],
    ) -> Result<u64, OriginError> {
        let named: Vec<_> = counters.iter().map(|(tag, one)| (&tag.scope, *one)).collect();
        if let Some(fleet) = &self.fleet {
            fleet.call_in_all(&named).await;
        }
        let mut reset = 0;
        for (tag, identifier) in counters {
            reset += self.reset_here(tag, *identifier).await?;
        }
        let Some(fleet) = &self.fleet else { return Ok(reset) };
        match fleet.reset(&named).await {
            Ok(shared) => Ok(reset + shared),
            // Whether it answers or not, this tenant's limits are not decided there.
            Err(_) if fleet.modes.of(tenant_id) != Mode::Redis => {
                fleet.forget_these(&named);
                Ok(reset)
            }
            Err(error) => Err(error),
        }
    }

    /// The same of what this node counts by itself.
    pub async fn reset_here(
        &self,
        tag: &NamespaceTag,
        identifier: Option<&str>,
    ) -> Result<u64, OriginError> {
        let which = match identifier {
            Some(identifier) => Which::Subject(tag.subject(identifier)),
            None => Which::Namespace(tag.tag),
        };
        if let Some(fleet) = &self.fleet {
            fleet.inherited.forget(which);
            fleet.untold.forget(which);
        }
        self.overflow.reset(which).await
    }

    pub fn purse(&self) -> &Purse {
        &self.purse
    }

    pub fn rules(&self) -> &RuleBooks {
        &self.rules
    }

    pub fn counts(&self) -> &LimitCounts {
        &self.counts
    }

    pub fn hasher(&self) -> &CellHasher {
        &self.hasher
    }

    pub fn cells(&self) -> &Arc<Cells> {
        &self.cells
    }

    pub fn overflow(&self) -> &Overflow {
        &self.overflow
    }

    async fn line_up(
        &self,
        ask: &LimitAsk<'_>,
        now: Millis,
        see: &mut (dyn FnMut(CacheName, Freshness) + Send),
    ) -> Result<SmallVec<[WarmCheck; 1]>, WarmError> {
        let mut checks = SmallVec::with_capacity(ask.checks.len());
        let mut last: Option<(&str, Arc<Namespace>)> = None;
        for check in &ask.checks {
            let namespace = match &last {
                Some((called, namespace)) if *called == check.namespace => Arc::clone(namespace),
                _ => {
                    let found = self.permitted(ask, check.namespace, now, see).await?;
                    found.ok_or_else(|| WarmError::NamespaceMissing(check.namespace.to_owned()))?
                }
            };
            checks.push(WarmCheck::new(&namespace, check));
            last = Some((check.namespace, namespace));
        }
        Ok(checks)
    }

    /// The namespace, if it is there and the caller may do this on it.
    async fn permitted(
        &self,
        ask: &LimitAsk<'_>,
        called: &str,
        now: Millis,
        see: &mut (dyn FnMut(CacheName, Freshness) + Send),
    ) -> Result<Option<Arc<Namespace>>, WarmError> {
        let Some(namespace) = self.namespace(&ask.caller.tenant, called, now, see).await? else {
            return Ok(None);
        };
        permit(&ask.caller, &namespace.id, ask.action)?;
        if namespace.deleted {
            return Err(WarmError::NamespaceGone(called.to_owned()));
        }
        Ok(Some(namespace))
    }

    /// Makes the namespaces that are missing, but only once nothing stands against the whole ask.
    async fn make_missing(
        &self,
        ask: &LimitAsk<'_>,
        now: Millis,
        see: &mut (dyn FnMut(CacheName, Freshness) + Send),
    ) -> Result<(), WarmError> {
        let mut missing: Vec<&str> = Vec::new();
        for check in &ask.checks {
            let known = missing.contains(&check.namespace);
            if !known && self.permitted(ask, check.namespace, now, see).await?.is_none() {
                missing.push(check.namespace);
            }
        }
        // Its id is not known yet, so only a permission on all of them can cover it.
        permit(&ask.caller, "*", "create_namespace")?;
        permit(&ask.caller, "*", ask.action)?;
        for name in missing {
            self.make_namespace(&ask.caller.tenant, name).await?;
        }
        Ok(())
    }

    async fn make_namespace(&self, tenant: &Tenant, name: &str) -> Result<(), OriginError> {
        let making = self.directory.create_namespace(&tenant.id, name);
        offstage(&self.backstage, making).await?;
        self.forget_namespace(&tenant.id, &[name]);
        Ok(())
    }
}

impl std::fmt::Debug for Decider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decider").field("cells", &self.cells).finish_non_exhaustive()
    }
}
