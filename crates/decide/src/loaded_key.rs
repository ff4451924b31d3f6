//! A key made ready for verification when it is loaded: which limits can apply to it, and where each is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollkeeper_core::{KeyRecord, Limit, Millis, StoredLimit};

use crate::lease::Scope;
use crate::{CellHasher, CellKey, NamespaceTag};

#[derive(Debug)]
pub struct LoadedKey {
    pub record: KeyRecord,
    /// Where this key's own counters are; ad-hoc limits count here too.
    pub tag: NamespaceTag,
    /// Of equal names the key's own beats its identity's. Default limits are among them only
    /// where none of the others applies by itself.
    pub limits: Vec<LoadedLimit>,
    /// When its use was last noted.
    noted_at: AtomicU64,
}

#[derive(Clone, Debug)]
pub struct LoadedLimit {
    pub stored: StoredLimit,
    pub cell: CellKey,
    /// Whose counter it is: the key's or the identity's.
    pub owner: u64,
    pub scope: Arc<Scope>,
}

// === impl LoadedKey ===

impl LoadedKey {
    pub fn new(hasher: &CellHasher, record: KeyRecord) -> Self {
        let tag = owner(hasher, &record.tenant_slug, &record.id);
        let mut limits: Vec<LoadedLimit> =
            record.limits.iter().map(|stored| LoadedLimit::new(&tag, stored)).collect();
        if let Some(identity) = &record.identity {
            let shared = owner(hasher, &record.tenant_slug, &identity.id);
            let unshadowed =
                identity.limits.iter().filter(|limit| named(&record.limits, &limit.name).is_none());
            limits.extend(unshadowed.map(|stored| LoadedLimit::new(&shared, stored)));
        }
        if !limits.iter().any(|limit| limit.stored.auto_apply) {
            let defaults = record.project.default_limits.iter();
            let unnamed =
                defaults.filter(|limit| limits.iter().all(|own| own.stored.name != limit.name));
            let unnamed: Vec<_> = unnamed.map(|stored| LoadedLimit::new(&tag, stored)).collect();
            limits.extend(unnamed);
        }
        Self { record, tag, limits, noted_at: AtomicU64::new(0) }
    }

    /// Is it time to note that it is used? True for one caller in 30 seconds.
    pub fn is_due(&self, now: Millis) -> bool {
        const NOTED_MS: u64 = 30_000;
        let noted = self.noted_at.load(Ordering::Relaxed);
        now.since(Millis(noted)) >= NOTED_MS
            && self
                .noted_at
                .compare_exchange(noted, now.0, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

impl LoadedLimit {
    fn new(tag: &NamespaceTag, stored: &StoredLimit) -> Self {
        Self {
            stored: stored.clone(),
            cell: cell(tag, &stored.name, &stored.limit),
            owner: tag.tag,
            scope: Arc::clone(&tag.scope),
        }
    }
}

/// Where a limit of this name is counted for this owner.
pub(crate) fn cell(tag: &NamespaceTag, name: &str, limit: &Limit) -> CellKey {
    tag.cell(name, limit)
}

/// All counters of a key or an identity share this tag.
pub fn owner(hasher: &CellHasher, tenant_slug: &str, owner_id: &str) -> NamespaceTag {
    hasher.owner(tenant_slug, owner_id)
}

fn named<'a>(limits: &'a [StoredLimit], name: &str) -> Option<&'a StoredLimit> {
    limits.iter().find(|limit| *limit.name == *name)
}
