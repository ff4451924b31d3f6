//! A key as verification sees it: everything a verdict depends on, parsed once when it is loaded.

use std::sync::Arc;

use crate::{Cidr, CreditRefill, HostPattern, Limit, Millis, SealedSecret, Sharing};

#[derive(Clone, Debug)]
pub struct KeyRecord {
    pub id: Arc<str>,
    pub tenant_id: Arc<str>,
    /// Names the tenant inside cell keys.
    pub tenant_slug: Arc<str>,
    pub tenant_enabled: bool,
    pub project: ProjectRecord,
    pub name: Option<Box<str>>,
    /// A JSON object as it was given.
    pub meta: Option<Box<str>>,
    pub enabled: bool,
    pub expires: Option<Millis>,
    pub revoked_at: Option<Millis>,
    /// Empty: every address.
    pub ip_allowlist: Vec<Cidr>,
    pub tier: Option<Box<str>>,
    /// Requests have to be signed with it.
    pub signing: Option<SealedSecret>,
    /// Direct ones and those of roles, sorted, each once.
    pub permissions: Vec<Box<str>>,
    /// Names, sorted.
    pub roles: Vec<Box<str>>,
    pub limits: Vec<StoredLimit>,
    pub identity: Option<IdentityRecord>,
    /// `None`: unlimited. The balance itself is not here: it changes with every request.
    pub credits: Option<CreditTerms>,
}

#[derive(Clone, Debug)]
pub struct ProjectRecord {
    pub id: Arc<str>,
    pub slug: Arc<str>,
    pub allowed_referers: Vec<HostPattern>,
    pub allowed_sources: Vec<HostPattern>,
    /// For keys to which no stored limit applies by itself.
    pub default_limits: Vec<StoredLimit>,
}

#[derive(Clone, Debug)]
pub struct IdentityRecord {
    pub id: Arc<str>,
    pub external_id: Arc<str>,
    pub meta: Option<Box<str>>,
    pub tier: Option<Box<str>>,
    pub limits: Vec<StoredLimit>,
    pub quota: IdentityQuota,
    pub block: Option<Block>,
}

/// An identity's own limits, over those of its tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdentityQuota {
    pub per_second: Option<u64>,
    pub per_minute: Option<u64>,
    pub per_hour: Option<u64>,
    pub per_day: Option<u64>,
    /// What a token bucket of a rule holds for this identity.
    pub burst: Option<u64>,
}

/// An identity that is refused whatever its keys say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub reason: Option<Arc<str>>,
    /// Absent: until somebody lifts it.
    pub until: Option<Millis>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLimit {
    /// Empty for default limits.
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub limit: Limit,
    pub auto_apply: bool,
    pub sharing: Sharing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditTerms {
    pub refill: Option<CreditRefill>,
}

// === impl IdentityRecord ===

impl IdentityRecord {
    pub fn is_blocked(&self, now: Millis) -> bool {
        self.block.as_ref().is_some_and(|block| block.until.is_none_or(|until| now < until))
    }
}
