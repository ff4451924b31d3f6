//! A namespace as the engine uses it: its part of every cell key, and its overrides, made ready once at load.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use quick_cache::Equivalent;
use tollkeeper_core::{Limit, Overrides};

use crate::counts::{CountOf, Counted, LimitCount, LimitCounts};
use crate::ports::{NamespaceRecord, Tenant};
use crate::{CellHasher, NamespaceTag};

#[derive(Debug)]
pub struct Namespace {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub deleted: bool,
    pub tag: NamespaceTag,
    pub overrides: Overrides,
    pub count: Arc<LimitCount>,
}

/// What a caller called it (name or id), within its tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamespaceKey {
    tenant_id: Arc<str>,
    called: Box<str>,
}

/// The same, borrowed from a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamespaceRef<'a> {
    pub(crate) tenant_id: &'a str,
    pub(crate) called: &'a str,
}

// === impl Namespace ===

impl Namespace {
    pub(crate) fn new(
        hasher: &CellHasher,
        counts: &LimitCounts,
        tenant: &Tenant,
        record: NamespaceRecord,
    ) -> Self {
        Self {
            count: counts.of(CountOf {
                tenant_id: Arc::clone(&tenant.id),
                kind: Counted::Namespace,
                subject: Arc::clone(&record.id),
                name: Arc::clone(&record.name),
            }),
            tag: hasher.namespace(&tenant.slug, &record.name),
            id: record.id,
            name: record.name,
            deleted: record.deleted,
            overrides: record.overrides.into_iter().collect(),
        }
    }

    /// The limit that counts for this identifier, and the override that says so, if any.
    pub fn limit_for(&self, identifier: &str, asked: Limit) -> (Limit, Option<Arc<str>>) {
        match self.overrides.find(identifier) {
            Some(found) => {
                (asked.overridden(found.quota, found.width), Some(Arc::clone(&found.id)))
            }
            None => (asked, None),
        }
    }
}

// === impl NamespaceKey ===

impl NamespaceKey {
    pub(crate) fn new(tenant: &Tenant, called: &str) -> Self {
        Self { tenant_id: Arc::clone(&tenant.id), called: called.into() }
    }
}

impl Hash for NamespaceKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        NamespaceRef { tenant_id: &self.tenant_id, called: &self.called }.hash(state);
    }
}

// === impl NamespaceRef ===

impl Hash for NamespaceRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.tenant_id.hash(state);
        self.called.hash(state);
    }
}

impl Equivalent<NamespaceKey> for NamespaceRef<'_> {
    fn equivalent(&self, key: &NamespaceKey) -> bool {
        *self.called == *key.called && *self.tenant_id == *key.tenant_id
    }
}
