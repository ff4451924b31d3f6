//! A node that knows every namespace and every key, and whose bank never runs out.

use std::sync::Arc;

use tokio::runtime::Runtime;
use tollkeeper_core::{
    Cost, CreditTerms, IdentityRecord, KeyRecord, Limit, Millis, Permissions, ProjectRecord, Quota,
    Sharing, Use, Width,
};
use tollkeeper_decide::{
    Bank, CellHasher, CellKey, Cells, CreditLease, Decided, Decider, Directory, Due, KeyHash,
    KeyHashes, KeyText, Lifetime, LimitAsk, LimitCheck, Limited, Loading, Missing, NamespaceRecord,
    ParkedCell, Ports, Purpose, Reach, RootKey, Shelf, Tenant, Told, Verified, VerifyAsk, Which,
};

use crate::changes::NOW;

struct Anything;

pub(crate) struct Node {
    runtime: Runtime,
    pub(crate) decider: Arc<Decider>,
    caller: Arc<RootKey>,
}

// === impl Anything ===

impl Directory for Anything {
    fn root_key(&self, _: KeyHash) -> Loading<Option<RootKey>> {
        Box::pin(async { Ok(None) })
    }

    /// Its first byte names it. From 100 on keys have no limit on credits, from 200 on there is none.
    fn key(&self, hashes: KeyHashes) -> Loading<Option<KeyRecord>> {
        let number = hashes.ours.0[0];
        Box::pin(async move { Ok((number < 200).then(|| key(number))) })
    }

    fn namespace(&self, _: &str, name: &str) -> Loading<Option<NamespaceRecord>> {
        let record = NamespaceRecord {
            id: name.into(),
            name: name.into(),
            deleted: false,
            overrides: Vec::new(),
        };
        Box::pin(async { Ok(Some(record)) })
    }

    fn identity(&self, _: &str, _: &str) -> Loading<Option<IdentityRecord>> {
        Box::pin(async { Ok(None) })
    }

    fn create_namespace(&self, _: &str, _: &str) -> Loading<()> {
        Box::pin(async { Ok(()) })
    }
}

fn key(number: u8) -> KeyRecord {
    KeyRecord {
        id: format!("key_{number}").into(),
        tenant_id: "ws".into(),
        tenant_slug: "ws".into(),
        tenant_enabled: true,
        project: ProjectRecord {
            id: "api".into(),
            slug: "api".into(),
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
        credits: (number < 100).then_some(CreditTerms { refill: None }),
    }
}

impl Bank for Anything {
    fn lease(
        &self,
        _: &str,
        _: [u8; 16],
        known: CreditLease,
        want: u64,
        _: Millis,
    ) -> Loading<Option<CreditLease>> {
        let lease = CreditLease { granted: known.granted + want, left: 10_000, ..known };
        Box::pin(async move { Ok(Some(lease)) })
    }

    fn report(&self, _: &str, _: [u8; 16], _: u64) -> Loading<()> {
        Box::pin(async { Ok(()) })
    }

    fn give_back(&self, _: &str, _: [u8; 16], _: u64) -> Loading<()> {
        Box::pin(async { Ok(()) })
    }
}

impl Shelf for Anything {
    fn put(&self, _: Vec<ParkedCell>) -> Loading<()> {
        Box::pin(async { Ok(()) })
    }

    fn find(&self, _: Vec<CellKey>) -> Loading<Vec<ParkedCell>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn remove(&self, _: Which) -> Loading<Vec<CellKey>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn sweep(&self, _: Millis) -> Loading<Vec<CellKey>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

// === impl Node ===

impl Node {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build()
            .unwrap();
        let ports = Ports {
            directory: Arc::new(Anything),
            shelf: Arc::new(Anything),
            bank: Arc::new(Anything),
            boot: [7; 16],
        };
        let decider = Decider::new(
            Arc::new(Cells::new(1000)),
            CellHasher::new([1; 16]),
            ports,
            Lifetime { fresh_ms: 1000, stale_ms: 2000 },
            runtime.handle().clone(),
        );
        let (id, slug) = ("ws".into(), "ws".into());
        let caller = Arc::new(RootKey {
            id: "rk".into(),
            tenant: Tenant {
                id,
                slug,
                enabled: true,
                has_imports: false,
                requests_per_minute: None,
            },
            permissions: Permissions::everything(),
            enabled: true,
            expires: None,
            operator: false,
            noted: Due::default(),
        });
        Self { runtime, decider: Arc::new(decider), caller }
    }

    pub(crate) fn decide(&self, identifier: &str, quota: u64) -> Decided<Limited> {
        let limit =
            Limit::sliding_window(Quota::new(quota).unwrap(), Width::from_millis(60_000).unwrap());
        let check = LimitCheck {
            namespace: "api",
            identifier,
            limit,
            cost: Cost::ONE,
            sharing: Sharing::default(),
        };
        let ask = LimitAsk {
            caller: Arc::clone(&self.caller),
            action: "limit",
            missing: Missing::Refuse,
            once: false,
            checks: [check].into_iter().collect(),
        };
        let warm = self.runtime.block_on(self.decider.warm(&ask, NOW, &mut |_, _| ())).unwrap();
        self.decider.limit(warm, NOW)
    }

    pub(crate) fn verify(&self, number: u8, credits: u64) -> Decided<Box<Verified>> {
        let hash = KeyHash([number; 32]);
        let ask = VerifyAsk {
            caller: Arc::clone(&self.caller),
            reach: Reach::Verify,
            key: Some(KeyText { ours: hash, imported: hash, intact: true }),
            wanted: Use::default(),
            told: Told::default(),
            projects: [].into_iter().collect(),
            limits: [].into_iter().collect(),
            cost: Cost::ONE,
            credits,
            purpose: Purpose::Spend,
            bytes: 0,
            once: false,
            at: None,
            waiting: None,
        };
        let warm = self.runtime.block_on(self.decider.warm_key(&ask, NOW, &mut |_, _| ())).unwrap();
        self.decider.verify(warm, NOW)
    }
}
