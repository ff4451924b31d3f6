//! The verdict over a key before anything is spent: one ordered walk over all checks, pure.
//! What comes after it (limits and credits) is one bundle, decided elsewhere.

use std::net::IpAddr;

use crate::signature;
use crate::{HostPattern, KeyRecord, Millis, PermissionQuery, Signature, Unsigned, host_of};

/// What a key is used for, as far as the verdict depends on it.
#[derive(Clone, Debug, Default)]
pub struct Use<'a> {
    pub ip: Option<IpAddr>,
    pub referer: Option<&'a str>,
    pub source: Option<&'a str>,
    /// Only keys with a signing secret look at it.
    pub signature: Option<&'a dyn Signature>,
    pub permissions: Option<PermissionQuery<'a>>,
}

/// How a verification ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Valid,
    NotFound,
    Forbidden,
    /// Its key wants signed requests, and this is none. The contract's word is that of `Forbidden`.
    Unsigned(Unsigned),
    InsufficientPermissions,
    UsageExceeded,
    RateLimited,
    /// A limit's counters are out of reach, and its policy is to refuse then.
    Unavailable,
    Disabled,
    Revoked {
        at: Millis,
    },
    Expired,
    /// Its identity is blocked, or a rule refuses such requests.
    Blocked,
}

/// The first check that fails, in the order of the contract; [`Verdict::Valid`] when none does.
pub fn judge(key: &KeyRecord, wanted: &Use<'_>, now: Millis) -> Verdict {
    if !key.tenant_enabled {
        return Verdict::Forbidden;
    }
    if !key.enabled {
        return Verdict::Disabled;
    }
    if let Some(at) = key.revoked_at {
        return Verdict::Revoked { at };
    }
    if key.expires.is_some_and(|expires| expires <= now) {
        return Verdict::Expired;
    }
    if key.identity.as_ref().is_some_and(|identity| identity.is_blocked(now)) {
        return Verdict::Blocked;
    }
    if !address_allowed(key, wanted.ip) {
        return Verdict::Forbidden;
    }
    let project = &key.project;
    if !host_allowed(&project.allowed_referers, wanted.referer)
        || !host_allowed(&project.allowed_sources, wanted.source)
    {
        return Verdict::Forbidden;
    }
    if let Some(secret) = &key.signing
        && let Err(why) = signature::check(&key.id, secret, wanted.signature, now)
    {
        return Verdict::Unsigned(why);
    }
    let has = |permission: &str| {
        key.permissions.binary_search_by(|granted| granted.as_ref().cmp(permission)).is_ok()
    };
    if wanted.permissions.as_ref().is_some_and(|query| !query.holds(&has)) {
        return Verdict::InsufficientPermissions;
    }
    Verdict::Valid
}

/// A list, and no address given: refused, because the list could not be checked.
fn address_allowed(key: &KeyRecord, ip: Option<IpAddr>) -> bool {
    key.ip_allowlist.is_empty()
        || ip.is_some_and(|ip| key.ip_allowlist.iter().any(|range| range.contains(ip)))
}

fn host_allowed(patterns: &[HostPattern], value: Option<&str>) -> bool {
    patterns.is_empty()
        || value.is_some_and(|value| {
            let host = host_of(value);
            patterns.iter().any(|pattern| pattern.matches(host))
        })
}

// === impl Verdict ===

impl Verdict {
    /// The contract's word for it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Valid => "VALID",
            Self::NotFound => "NOT_FOUND",
            Self::Forbidden | Self::Unsigned(_) => "FORBIDDEN",
            Self::InsufficientPermissions => "INSUFFICIENT_PERMISSIONS",
            Self::UsageExceeded => "USAGE_EXCEEDED",
            Self::RateLimited => "RATE_LIMITED",
            Self::Unavailable => "UNAVAILABLE",
            Self::Disabled => "DISABLED",
            Self::Revoked { .. } => "REVOKED",
            Self::Expired => "EXPIRED",
            Self::Blocked => "BLOCKED",
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Block, IdentityQuota, IdentityRecord, ProjectRecord, SealedSecret};

    const NOW: Millis = Millis(1_000_000);

    /// Everything about it is wrong, so that each repair shows the next verdict.
    fn worst_key() -> KeyRecord {
        KeyRecord {
            id: Arc::from("key_1"),
            tenant_id: Arc::from("ws_1"),
            tenant_slug: Arc::from("default"),
            tenant_enabled: false,
            project: ProjectRecord {
                id: Arc::from("api_1"),
                slug: Arc::from("payments"),
                allowed_referers: vec![HostPattern::parse("example.com").unwrap()],
                allowed_sources: vec![HostPattern::parse("*.source.com").unwrap()],
                default_limits: Vec::new(),
            },
            name: None,
            meta: None,
            enabled: false,
            expires: Some(NOW),
            revoked_at: Some(Millis(5)),
            ip_allowlist: vec!["10.0.0.0/8".parse().unwrap()],
            tier: None,
            signing: Some(SealedSecret::new(*b"sealed")),
            permissions: vec!["a".into(), "b".into()],
            roles: Vec::new(),
            limits: Vec::new(),
            identity: Some(IdentityRecord {
                id: Arc::from("id_1"),
                external_id: Arc::from("somebody"),
                meta: None,
                tier: None,
                limits: Vec::new(),
                quota: IdentityQuota::default(),
                block: Some(Block { reason: None, until: Some(Millis(NOW.0 + 1)) }),
            }),
            credits: None,
        }
    }

    #[derive(Debug)]
    struct Signed {
        fits: bool,
    }

    impl Signature for Signed {
        fn made_at(&self) -> Millis {
            NOW
        }

        fn fits(&self, _: &str, _: &SealedSecret) -> bool {
            self.fits
        }

        fn value(&self) -> &'static str {
            "00"
        }
    }

    #[test]
    fn a_key_without_a_secret_looks_at_no_signature() {
        #[derive(Debug)]
        struct Untouchable;

        impl Signature for Untouchable {
            fn made_at(&self) -> Millis {
                unreachable!("nobody may ask")
            }

            fn fits(&self, _: &str, _: &SealedSecret) -> bool {
                unreachable!("nobody may ask")
            }

            fn value(&self) -> &'static str {
                unreachable!("nobody may ask")
            }
        }

        let key = KeyRecord {
            tenant_enabled: true,
            enabled: true,
            revoked_at: None,
            expires: None,
            identity: None,
            ip_allowlist: Vec::new(),
            signing: None,
            ..worst_key()
        };
        let wanted = Use {
            signature: Some(&Untouchable),
            referer: Some("example.com"),
            source: Some("a.source.com"),
            ..Use::default()
        };
        assert_eq!(judge(&key, &wanted, NOW), Verdict::Valid);
    }

    #[test]
    fn verdicts_come_in_the_order_of_the_contract() {
        let mut key = worst_key();
        let mut wanted =
            Use { permissions: Some(PermissionQuery::parse("c").unwrap()), ..Use::default() };
        assert_eq!(judge(&key, &wanted, NOW), Verdict::Forbidden);
        key.tenant_enabled = true;
        assert_eq!(judge(&key, &wanted, NOW), Verdict::Disabled);
        key.enabled = true;
        assert_eq!(judge(&key, &wanted, NOW), Verdict::Revoked { at: Millis(5) });
        key.revoked_at = None;
        assert_eq!(judge(&key, &wanted, NOW), Verdict::Expired);
        key.expires = Some(Millis(NOW.0 + 2));
        assert_eq!(judge(&key, &wanted, NOW), Verdict::Blocked);
        // A block that has run out is none.
        assert_eq!(judge(&key, &wanted, Millis(NOW.0 + 1)), Verdict::Forbidden);
        key.identity = None;
        assert_eq!(judge(&key, &wanted, NOW), Verdict::Forbidden);
        wanted.ip = Some("10.1.1.1".parse().unwrap());
        assert_eq!(judge(&key, &wanted, NOW), Verdict::Forbidden);
        wanted.referer = Some("https://example.com/page");
        assert_eq!(judge(&key, &wanted, NOW), Verdict::Forbidden);
        wanted.source = Some("a.source.com");
        assert_eq!(judge(&key, &wanted, NOW), Verdict::Unsigned(Unsigned::Absent));
        wanted.signature = Some(&Signed { fits: false });
        assert_eq!(judge(&key, &wanted, NOW), Verdict::Unsigned(Unsigned::Wrong));
        wanted.signature = Some(&Signed { fits: true });
        assert_eq!(judge(&key, &wanted, NOW), Verdict::InsufficientPermissions);
        wanted.permissions = Some(PermissionQuery::parse("a AND b").unwrap());
        assert_eq!(judge(&key, &wanted, NOW), Verdict::Valid);
    }
}
