//! A node with keys to verify, and words to say what they are.

use std::sync::Arc;

use tokio::runtime::Handle;
use tollkeeper_core::{
    Cost, CreditTerms, IdentityQuota, IdentityRecord, KeyRecord, Limit, Millis, ProjectRecord,
    Quota, Sharing, StoredLimit, Use, Width,
};
use tollkeeper_decide::{
    AskedLimit, CellHasher, Cells, Decider, KeyHash, KeyText, Lifetime, Purpose, Reach, RootKey,
    Told, Verified, VerifyAsk, WarmError, WarmKey,
};

use crate::bank::{MemoryBank, ports};
use crate::memory::{MemoryDirectory, MemoryShelf, root_key};

pub(crate) const NOW: Millis = Millis(1_700_000_000_000);

pub(crate) struct Node {
    pub(crate) directory: MemoryDirectory,
    pub(crate) shelf: MemoryShelf,
    pub(crate) bank: MemoryBank,
    pub(crate) decider: Arc<Decider>,
}

pub(crate) fn node() -> Node {
    let (directory, shelf) = (MemoryDirectory::default(), MemoryShelf::default());
    let bank = MemoryBank::default();
    let decider = Decider::new(
        Arc::new(Cells::new(1_000)),
        CellHasher::new([9; 16]),
        ports(&directory, &shelf, &bank),
        Lifetime { fresh_ms: 10_000, stale_ms: 60_000 },
        Handle::current(),
    );
    Node { directory, shelf, bank, decider: Arc::new(decider) }
}

/// Our hash of the key with this number. The hash of an import is another one.
pub(crate) fn ours(number: u8) -> KeyHash {
    KeyHash([number; 32])
}

pub(crate) fn imported(number: u8) -> KeyHash {
    KeyHash([!number; 32])
}

pub(crate) fn text(number: u8) -> KeyText {
    KeyText { ours: ours(number), imported: imported(number), intact: true }
}

/// Valid, without limits.
pub(crate) fn key(number: u8) -> KeyRecord {
    KeyRecord {
        id: format!("key_{number}").into(),
        tenant_id: "ws_1".into(),
        tenant_slug: "acme".into(),
        tenant_enabled: true,
        project: ProjectRecord {
            id: "api_1".into(),
            slug: "payments".into(),
            allowed_referers: Vec::new(),
            allowed_sources: Vec::new(),
            default_limits: Vec::new(),
        },
        name: None,
        meta: None,
        enabled: true,
        expires: None,
        revoked_at: None,
        ip_allowlist: Vec::new(),
        tier: None,
        signing: None,
        permissions: Vec::new(),
        roles: Vec::new(),
        limits: Vec::new(),
        identity: None,
        credits: None,
    }
}

pub(crate) fn identity(limits: Vec<StoredLimit>) -> IdentityRecord {
    let (id, external_id) = ("id_1".into(), "user_1".into());
    let quota = IdentityQuota::default();
    IdentityRecord { id, external_id, meta: None, tier: None, limits, quota, block: None }
}

pub(crate) fn per_minute(quota: u64) -> Limit {
    Limit::sliding_window(Quota::new(quota).unwrap(), Width::from_millis(60_000).unwrap())
}

/// Applies by itself.
pub(crate) fn auto(name: &str, quota: u64) -> StoredLimit {
    let id = format!("rl_{name}_{quota}").into();
    StoredLimit {
        id,
        name: name.into(),
        limit: per_minute(quota),
        auto_apply: true,
        sharing: Sharing::default(),
    }
}

/// Applies when it is named.
pub(crate) fn on_demand(name: &str, quota: u64) -> StoredLimit {
    StoredLimit { auto_apply: false, ..auto(name, quota) }
}

pub(crate) fn named(name: &str, cost: u64) -> AskedLimit<'_> {
    AskedLimit { name, cost: Cost::new(cost).unwrap(), own: None, sharing: Sharing::default() }
}

pub(crate) fn ad_hoc(name: &str, quota: u64, cost: u64) -> AskedLimit<'_> {
    AskedLimit { own: Some(per_minute(quota)), ..named(name, cost) }
}

/// One credit, no named limits, by a caller who may verify everything.
pub(crate) fn ask<'a>(number: u8) -> VerifyAsk<'a> {
    VerifyAsk {
        caller: root_key(&["api.*.verify_key"]),
        reach: Reach::Verify,
        key: Some(text(number)),
        wanted: Use::default(),
        told: Told::default(),
        projects: [].into_iter().collect(),
        limits: [].into_iter().collect(),
        cost: Cost::ONE,
        credits: 1,
        purpose: Purpose::Spend,
        bytes: 0,
        once: false,
        at: None,
        waiting: None,
    }
}

pub(crate) fn ask_naming<'a>(number: u8, limits: &[AskedLimit<'a>]) -> VerifyAsk<'a> {
    VerifyAsk { limits: limits.into(), ..ask(number) }
}

/// A caller whose tenant has imported keys.
pub(crate) fn importer() -> Arc<RootKey> {
    let mut caller = (*root_key(&["api.*.verify_key"])).clone();
    caller.tenant.has_imports = true;
    Arc::new(caller)
}

/// Name, limit, what remains and whether it had room, in order of names.
pub(crate) fn limits_of(verified: &Verified) -> Vec<(&str, u64, u64, bool)> {
    let one = verified.limits.iter().map(|one| {
        let outcome = &one.outcome;
        (&*one.terms.name, outcome.limit, outcome.remaining, outcome.admitted())
    });
    let mut limits: Vec<_> = one.collect();
    limits.sort_unstable();
    limits
}

// === impl Node ===

impl Node {
    pub(crate) fn add(&self, number: u8, change: impl FnOnce(&mut KeyRecord)) {
        let mut record = key(number);
        change(&mut record);
        self.directory.add_key(ours(number), record);
    }

    /// With credits, of which the bank has so many.
    pub(crate) fn add_paid(&self, number: u8, balance: u64, change: impl FnOnce(&mut KeyRecord)) {
        self.bank.add(&format!("key_{number}"), balance);
        self.add(number, |record| {
            record.credits = Some(CreditTerms { refill: None });
            change(record);
        });
    }

    pub(crate) async fn warm(&self, ask: &VerifyAsk<'_>) -> Result<WarmKey, WarmError> {
        self.decider.warm_key(ask, NOW, &mut |_, _| ()).await
    }

    pub(crate) async fn verify(&self, ask: &VerifyAsk<'_>) -> Verified {
        let warm = self.warm(ask).await.unwrap();
        *self.decider.verify(warm, NOW).open()
    }

    /// In hand and at the bank.
    pub(crate) fn balance(&self, key_id: &str) -> u64 {
        let row = self.bank.row(key_id).unwrap_or_default();
        let spent = self.decider.purse().look(key_id).spent;
        self.bank.balance(key_id) + row.0 - spent
    }
}
