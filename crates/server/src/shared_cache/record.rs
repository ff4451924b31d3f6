//! Keys and projects as they are written before they are sealed. Apart from the types that the engine and the store use,
//! so that a change of those cannot silently change what other nodes read: whoever adds a field is stopped here.

use serde::{Deserialize, Serialize};
use tollkeeper_core::{
    Block, CreditRefill, CreditTerms, HostPattern, IdentityQuota, IdentityRecord, KeyRecord,
    Millis, ProjectRecord, RefillEvery, SealedSecret, StoredLimit,
};
use tollkeeper_store::Project;

use super::limit::CachedLimit;

/// A key by all that its verdict depends on.
#[derive(Serialize, Deserialize)]
pub struct CachedKey {
    id: Box<str>,
    tenant_id: Box<str>,
    tenant_slug: Box<str>,
    tenant_enabled: bool,
    project_id: Box<str>,
    project_slug: Box<str>,
    referers: Vec<String>,
    sources: Vec<String>,
    default_limits: Vec<CachedLimit>,
    name: Option<Box<str>>,
    meta: Option<Box<str>>,
    enabled: bool,
    expires: Option<u64>,
    /// A revoked key is kept as revoked.
    revoked_at: Option<u64>,
    addresses: Vec<String>,
    tier: Option<Box<str>>,
    /// Sealed for its key, as in the database.
    signing: Option<Vec<u8>>,
    permissions: Vec<Box<str>>,
    roles: Vec<Box<str>>,
    limits: Vec<CachedLimit>,
    identity: Option<CachedIdentity>,
    credits: Option<CachedCredits>,
}

#[derive(Serialize, Deserialize)]
struct CachedIdentity {
    id: Box<str>,
    external_id: Box<str>,
    meta: Option<Box<str>>,
    tier: Option<Box<str>>,
    limits: Vec<CachedLimit>,
    quota: CachedQuota,
    block: Option<CachedBlock>,
}

#[derive(Serialize, Deserialize)]
struct CachedQuota {
    per_second: Option<u64>,
    per_minute: Option<u64>,
    per_hour: Option<u64>,
    per_day: Option<u64>,
    burst: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct CachedBlock {
    reason: Option<Box<str>>,
    until: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct CachedCredits {
    refill: Option<CachedRefill>,
}

#[derive(Serialize, Deserialize)]
struct CachedRefill {
    /// Of the month; `None` for every day.
    on: Option<u8>,
    amount: u64,
}

#[derive(Serialize, Deserialize)]
pub struct CachedProject {
    id: String,
    name: String,
    slug: String,
    referers: Vec<String>,
    sources: Vec<String>,
    default_limits: Vec<CachedLimit>,
    delete_protection: bool,
    created_at: u64,
    updated_at: Option<u64>,
    last_used_at: Option<u64>,
}

// === impl CachedKey ===

impl From<&KeyRecord> for CachedKey {
    fn from(key: &KeyRecord) -> Self {
        let KeyRecord {
            id,
            tenant_id,
            tenant_slug,
            tenant_enabled,
            project:
                ProjectRecord {
                    id: project_id,
                    slug: project_slug,
                    allowed_referers,
                    allowed_sources,
                    default_limits,
                },
            name,
            meta,
            enabled,
            expires,
            revoked_at,
            ip_allowlist,
            tier,
            signing,
            permissions,
            roles,
            limits,
            identity,
            credits,
        } = key;
        Self {
            id: (&**id).into(),
            tenant_id: (&**tenant_id).into(),
            tenant_slug: (&**tenant_slug).into(),
            tenant_enabled: *tenant_enabled,
            project_id: (&**project_id).into(),
            project_slug: (&**project_slug).into(),
            referers: spelled(allowed_referers),
            sources: spelled(allowed_sources),
            default_limits: default_limits.iter().map(CachedLimit::from).collect(),
            name: name.clone(),
            meta: meta.clone(),
            enabled: *enabled,
            expires: expires.map(|at| at.0),
            revoked_at: revoked_at.map(|at| at.0),
            addresses: spelled(ip_allowlist),
            tier: tier.clone(),
            signing: signing.as_ref().map(|secret| secret.bytes().to_vec()),
            permissions: permissions.clone(),
            roles: roles.clone(),
            limits: limits.iter().map(CachedLimit::from).collect(),
            identity: identity.as_ref().map(CachedIdentity::from),
            credits: credits.as_ref().map(CachedCredits::from),
        }
    }
}

impl CachedKey {
    /// `None` where a part is not what any node of this version writes.
    pub fn read(self) -> Option<KeyRecord> {
        Some(KeyRecord {
            id: self.id.into(),
            tenant_id: self.tenant_id.into(),
            tenant_slug: self.tenant_slug.into(),
            tenant_enabled: self.tenant_enabled,
            project: ProjectRecord {
                id: self.project_id.into(),
                slug: self.project_slug.into(),
                allowed_referers: hosts(&self.referers)?,
                allowed_sources: hosts(&self.sources)?,
                default_limits: limits(self.default_limits)?,
            },
            name: self.name,
            meta: self.meta,
            enabled: self.enabled,
            expires: self.expires.map(Millis),
            revoked_at: self.revoked_at.map(Millis),
            ip_allowlist: self
                .addresses
                .iter()
                .map(|text| text.parse().ok())
                .collect::<Option<_>>()?,
            tier: self.tier,
            signing: self.signing.map(SealedSecret::new),
            permissions: self.permissions,
            roles: self.roles,
            limits: limits(self.limits)?,
            identity: match self.identity {
                Some(identity) => Some(identity.read()?),
                None => None,
            },
            credits: self.credits.map(CachedCredits::read),
        })
    }
}

fn spelled<T: ToString>(list: &[T]) -> Vec<String> {
    list.iter().map(T::to_string).collect()
}

fn hosts(texts: &[String]) -> Option<Vec<HostPattern>> {
    texts.iter().map(|text| HostPattern::parse(text)).collect()
}

fn limits(cached: Vec<CachedLimit>) -> Option<Vec<StoredLimit>> {
    cached.into_iter().map(CachedLimit::read).collect()
}

// === impl CachedIdentity ===

impl From<&IdentityRecord> for CachedIdentity {
    fn from(identity: &IdentityRecord) -> Self {
        let IdentityRecord { id, external_id, meta, tier, limits, quota, block } = identity;
        Self {
            id: (&**id).into(),
            external_id: (&**external_id).into(),
            meta: meta.clone(),
            tier: tier.clone(),
            limits: limits.iter().map(CachedLimit::from).collect(),
            quota: CachedQuota::from(quota),
            block: block.as_ref().map(CachedBlock::from),
        }
    }
}

impl CachedIdentity {
    fn read(self) -> Option<IdentityRecord> {
        let (id, external_id) = (self.id.into(), self.external_id.into());
        let limits = limits(self.limits)?;
        Some(IdentityRecord {
            id,
            external_id,
            meta: self.meta,
            tier: self.tier,
            limits,
            quota: self.quota.read(),
            block: self.block.map(CachedBlock::read),
        })
    }
}

// === impl CachedQuota, CachedBlock ===

impl From<&IdentityQuota> for CachedQuota {
    fn from(quota: &IdentityQuota) -> Self {
        let IdentityQuota { per_second, per_minute, per_hour, per_day, burst } = *quota;
        Self { per_second, per_minute, per_hour, per_day, burst }
    }
}

impl CachedQuota {
    fn read(self) -> IdentityQuota {
        let Self { per_second, per_minute, per_hour, per_day, burst } = self;
        IdentityQuota { per_second, per_minute, per_hour, per_day, burst }
    }
}

impl From<&Block> for CachedBlock {
    fn from(block: &Block) -> Self {
        Self { reason: block.reason.as_deref().map(Into::into), until: block.until.map(|at| at.0) }
    }
}

impl CachedBlock {
    fn read(self) -> Block {
        Block { reason: self.reason.map(Into::into), until: self.until.map(Millis) }
    }
}

// === impl CachedCredits ===

impl From<&CreditTerms> for CachedCredits {
    fn from(terms: &CreditTerms) -> Self {
        let refill = terms.refill.map(|CreditRefill { every, amount }| {
            let on = match every {
                RefillEvery::Day => None,
                RefillEvery::Month { on } => Some(on),
            };
            CachedRefill { on, amount }
        });
        Self { refill }
    }
}

impl CachedCredits {
    fn read(self) -> CreditTerms {
        let refill = self.refill.map(|CachedRefill { on, amount }| {
            let every = on.map_or(RefillEvery::Day, |on| RefillEvery::Month { on });
            CreditRefill { every, amount }
        });
        CreditTerms { refill }
    }
}

// === impl CachedProject ===

impl From<&Project> for CachedProject {
    fn from(project: &Project) -> Self {
        let Project {
            id,
            name,
            slug,
            allowed_referers,
            allowed_sources,
            default_limits,
            delete_protection,
            created_at,
            updated_at,
            last_used_at,
        } = project;
        Self {
            id: id.clone(),
            name: name.clone(),
            slug: slug.clone(),
            referers: spelled(allowed_referers),
            sources: spelled(allowed_sources),
            default_limits: default_limits.iter().map(CachedLimit::from).collect(),
            delete_protection: *delete_protection,
            created_at: created_at.0,
            updated_at: updated_at.map(|at| at.0),
            last_used_at: last_used_at.map(|at| at.0),
        }
    }
}

impl CachedProject {
    pub fn read(self) -> Option<Project> {
        let default_limits = self.default_limits.into_iter().map(CachedLimit::read_terms);
        Some(Project {
            id: self.id,
            name: self.name,
            slug: self.slug,
            allowed_referers: hosts(&self.referers)?,
            allowed_sources: hosts(&self.sources)?,
            default_limits: default_limits.collect::<Option<_>>()?,
            delete_protection: self.delete_protection,
            created_at: Millis(self.created_at),
            updated_at: self.updated_at.map(Millis),
            last_used_at: self.last_used_at.map(Millis),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tollkeeper_core::{Consistency, Limit, OnOutage, Quota, Sharing, Width, Window};
    use tollkeeper_store::LimitTerms;

    use super::*;

    fn every_limit() -> Vec<StoredLimit> {
        let (quota, width) = (Quota::new(7).unwrap(), Width::from_millis(1500).unwrap());
        let sharing = [
            Sharing::default(),
            Sharing { consistency: Some(Consistency::Exact), on_outage: Some(OnOutage::Share) },
            Sharing { consistency: Some(Consistency::Fast), on_outage: Some(OnOutage::Allow) },
            Sharing { consistency: Some(Consistency::Local), on_outage: Some(OnOutage::Deny) },
        ];
        let limits = [
            Limit::fixed_window(quota, Window::Aligned(width)),
            Limit::fixed_window(quota, Window::Day),
            Limit::fixed_window(quota, Window::Month),
            Limit::sliding_window(quota, width),
            Limit::sliding_log(quota, width).unwrap(),
            Limit::token_bucket(quota, width, Quota::new(70)),
        ];
        let limit = |(at, limit): (usize, Limit)| StoredLimit {
            id: format!("rl_{at}").into(),
            name: "calls".into(),
            limit,
            auto_apply: at % 2 == 0,
            sharing: sharing[at % 4],
        };
        limits.into_iter().enumerate().map(limit).collect()
    }

    fn full() -> KeyRecord {
        KeyRecord {
            id: "key_1".into(),
            tenant_id: "ws_1".into(),
            tenant_slug: "acme".into(),
            tenant_enabled: true,
            project: ProjectRecord {
                id: "api_1".into(),
                slug: "pay".into(),
                allowed_referers: vec![HostPattern::parse("*.example.com").unwrap()],
                allowed_sources: vec![HostPattern::parse("example.org").unwrap()],
                default_limits: every_limit(),
            },
            name: Some("a name".into()),
            meta: Some(r#"{"plan":"\"é"}"#.into()),
            enabled: false,
            expires: Some(Millis(5)),
            revoked_at: Some(Millis(6)),
            ip_allowlist: vec!["10.0.0.0/8".parse().unwrap(), "2001:db8::/32".parse().unwrap()],
            tier: Some("gold".into()),
            signing: Some(SealedSecret::new([0, 255, 1])),
            permissions: vec!["a".into(), "b.c".into()],
            roles: vec!["editor".into()],
            limits: every_limit(),
            identity: Some(IdentityRecord {
                id: "id_1".into(),
                external_id: "ann".into(),
                meta: Some("{}".into()),
                tier: None,
                limits: every_limit(),
                quota: IdentityQuota {
                    per_second: Some(1),
                    per_minute: Some(2),
                    per_hour: None,
                    per_day: Some(4),
                    burst: Some(5),
                },
                block: Some(Block { reason: Some("abuse".into()), until: Some(Millis(7)) }),
            }),
            credits: Some(CreditTerms {
                refill: Some(CreditRefill { every: RefillEvery::Month { on: 31 }, amount: 9 }),
            }),
        }
    }

    fn again(key: &KeyRecord) -> KeyRecord {
        let text = serde_json::to_vec(&CachedKey::from(key)).unwrap();
        serde_json::from_slice::<CachedKey>(&text).unwrap().read().unwrap()
    }

    #[test]
    fn a_key_is_read_exactly_as_it_was_written() {
        let full = full();
        assert_eq!(format!("{:?}", again(&full)), format!("{full:?}"));
        assert_eq!(again(&full).signing, full.signing);
        let bare = KeyRecord {
            name: None,
            meta: None,
            expires: None,
            revoked_at: None,
            tier: None,
            signing: None,
            identity: None,
            credits: Some(CreditTerms {
                refill: Some(CreditRefill { every: RefillEvery::Day, amount: 1 }),
            }),
            ..full
        };
        assert_eq!(format!("{:?}", again(&bare)), format!("{bare:?}"));
    }

    #[test]
    fn a_project_is_read_exactly_as_it_was_written() {
        let terms = |stored: StoredLimit| LimitTerms {
            name: stored.name.to_string(),
            limit: stored.limit,
            auto_apply: stored.auto_apply,
            consistency: Some("fast".to_owned()),
            on_outage: None,
        };
        let project = Project {
            id: "api_1".to_owned(),
            name: "payments".to_owned(),
            slug: "pay".to_owned(),
            allowed_referers: vec![HostPattern::parse("*.example.com").unwrap()],
            allowed_sources: Vec::new(),
            default_limits: every_limit().into_iter().map(terms).collect(),
            delete_protection: true,
            created_at: Millis(1),
            updated_at: Some(Millis(2)),
            last_used_at: None,
        };
        let text = serde_json::to_vec(&CachedProject::from(&project)).unwrap();
        let read = serde_json::from_slice::<CachedProject>(&text).unwrap().read().unwrap();
        assert_eq!(read, project);
    }
}
