//! A key made ready for verification when it is loaded: which limits can apply to it, and where each is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollkeeper_core::{IdentityRecord, KeyRecord, Minute, StoredLimit};

use crate::counts::{CountOf, Counted, LimitCount, LimitCounts};
use crate::due::Due;
use crate::limit_terms::{LimitTerms, Source};
use crate::ports::Tenant;
use crate::whereabouts::fetch_ahead;
use crate::{CellHasher, CellKey, NamespaceTag};

#[derive(Debug)]
pub struct LoadedKey {
    pub record: KeyRecord,
    /// Where this key's own counters are; ad-hoc limits count here too.
    pub tag: NamespaceTag,
    /// Of equal names the key's own beats its identity's. Default limits are among them only
    /// where none of the others applies by itself.
    pub limits: Vec<LoadedLimit>,
    /// All that is asked for its identity.
    pub owner_count: Option<Arc<LimitCount>>,
    /// When its use was last noted.
    pub noted: Due,
    /// Where its usage of one minute is counted: the minute above, the place below.
    counted_at: AtomicU64,
}

/// An identity made ready in the same way, for requests that name it.
#[derive(Debug)]
pub struct LoadedIdentity {
    pub tenant_id: Arc<str>,
    pub record: IdentityRecord,
    pub tag: NamespaceTag,
    pub limits: Vec<LoadedLimit>,
    pub owner_count: Arc<LimitCount>,
}

#[derive(Clone, Debug)]
pub struct LoadedLimit {
    pub stored: StoredLimit,
    pub cell: CellKey,
    /// Whose counter it is: the key's or the identity's.
    pub owner: u64,
    pub terms: Arc<LimitTerms>,
}

// === impl LoadedKey, LoadedLimit ===

impl LoadedKey {
    pub fn new(hasher: &CellHasher, counts: &LimitCounts, record: KeyRecord) -> Self {
        let tag = owner(hasher, &record.tenant_slug, &record.id);
        let count = |name: &str| {
            Some(counts.of(CountOf {
                tenant_id: Arc::clone(&record.tenant_id),
                kind: Counted::Key,
                subject: Arc::clone(&record.id),
                name: name.into(),
            }))
        };
        let of_key =
            |stored: &StoredLimit| LoadedLimit::new(&tag, stored, Source::Key, count(&stored.name));
        let mut limits: Vec<LoadedLimit> = record.limits.iter().map(of_key).collect();
        if let Some(identity) = &record.identity {
            let shared = owner(hasher, &record.tenant_slug, &identity.id);
            let unshadowed =
                identity.limits.iter().filter(|limit| named(&record.limits, &limit.name).is_none());
            limits.extend(unshadowed.map(|stored| {
                LoadedLimit::new(&shared, stored, Source::Identity, count(&stored.name))
            }));
        }
        if !limits.iter().any(|limit| limit.stored.auto_apply) {
            let defaults = record.project.default_limits.iter();
            let unnamed =
                defaults.filter(|limit| limits.iter().all(|own| own.stored.name != limit.name));
            let unnamed: Vec<_> = unnamed.map(of_key).collect();
            limits.extend(unnamed);
        }
        let owned = record.identity.as_ref();
        let owner_count = owned.map(|identity| of_owner(counts, &record.tenant_id, identity));
        Self {
            record,
            tag,
            limits,
            owner_count,
            noted: Due::default(),
            counted_at: AtomicU64::new(0),
        }
    }

    /// Has fetched what every verification reads of it, and what lies elsewhere: all at once, and not one after the other.
    pub(crate) fn fetch(&self) {
        fetch_ahead(&self.limits);
        fetch_ahead(&self.counted_at);
        fetch_ahead(&*self.record.id);
        if let Some(identity) = &self.record.identity {
            fetch_ahead(&identity.quota);
            fetch_ahead(&*identity.external_id);
            fetch_ahead(&*identity.id);
        }
        if let Some(count) = &self.owner_count {
            fetch_ahead(&**count);
        }
    }

    /// Where its usage of this minute is counted, if somebody has found that out.
    pub fn counted_in(&self, minute: Minute) -> Option<u32> {
        let at = self.counted_at.load(Ordering::Relaxed);
        let place = u32::try_from(at & u64::from(u32::MAX)).ok()?;
        (at >> 32 == u64::from(minute.0) && place > 0).then_some(place)
    }

    /// Remembers it for the rest of the minute.
    pub fn count_in(&self, minute: Minute, place: u32) {
        self.counted_at.store(u64::from(minute.0) << 32 | u64::from(place), Ordering::Relaxed);
    }
}

impl LoadedLimit {
    fn new(
        tag: &NamespaceTag,
        stored: &StoredLimit,
        source: Source,
        count: Option<Arc<LimitCount>>,
    ) -> Self {
        let terms = LimitTerms {
            id: Arc::clone(&stored.id),
            name: Arc::clone(&stored.name),
            auto_apply: stored.auto_apply,
            source,
            count,
            sharing: stored.sharing,
            scope: Arc::clone(&tag.scope),
        };
        Self {
            stored: stored.clone(),
            cell: tag.cell(&stored.name, &stored.limit),
            owner: tag.tag,
            terms: Arc::new(terms),
        }
    }
}

// === impl LoadedIdentity ===

impl LoadedIdentity {
    pub fn new(
        hasher: &CellHasher,
        counts: &LimitCounts,
        tenant: &Tenant,
        record: IdentityRecord,
    ) -> Self {
        let tag = owner(hasher, &tenant.slug, &record.id);
        let of_identity = |stored| LoadedLimit::new(&tag, stored, Source::Identity, None);
        let limits = record.limits.iter().map(of_identity);
        Self {
            tenant_id: Arc::clone(&tenant.id),
            limits: limits.collect(),
            owner_count: of_owner(counts, &tenant.id, &record),
            tag,
            record,
        }
    }
}

fn of_owner(
    counts: &LimitCounts,
    tenant_id: &Arc<str>,
    identity: &IdentityRecord,
) -> Arc<LimitCount> {
    counts.of(CountOf {
        tenant_id: Arc::clone(tenant_id),
        kind: Counted::Identity,
        subject: Arc::clone(&identity.id),
        name: Arc::default(),
    })
}

/// All counters of a key or an identity share this tag.
pub fn owner(hasher: &CellHasher, tenant_slug: &str, owner_id: &str) -> NamespaceTag {
    hasher.owner(tenant_slug, owner_id)
}

fn named<'a>(limits: &'a [StoredLimit], name: &str) -> Option<&'a StoredLimit> {
    limits.iter().find(|limit| *limit.name == *name)
}
