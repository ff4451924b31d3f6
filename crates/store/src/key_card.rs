//! A key with all that its verdict depends on, in one statement: the key's row, then one row per limit, permission and role.
//! Whatever cannot be parsed is an error here, once, and not at every request.

use std::sync::Arc;

use tollkeeper_core::{
    Cidr, CreditTerms, HostPattern, IdentityRecord, KeyRecord, ProjectRecord, SealedSecret,
    Sharing, StoredLimit,
};
use tollkeeper_decide::KeyHashes;

use crate::bind::{binds, moment, unsigned};
use crate::credits::refill_of;
use crate::db::{Pools, Purpose};
use crate::limits::{Columns, LimitTerms, list_from_json};
use crate::outbox::{HashKind, StoredHash, hash_of};
use crate::quotas::{QuotaColumns, block_of};
use crate::{AsOf, Bind, Fault, Store, StoreError};

/// Keys loaded at a time when a start brings the last used ones near.
const WARM_KEYS: u32 = 500;

/// The statement around a choice of keys. Of the two halves of its answer each fills its own columns. The limits go
/// first among the parts: they tell PostgreSQL the types of columns that the others leave empty. Joins are written as
/// `CROSS JOIN` because SQLite takes those in the order they stand in, from the chosen keys on; left to itself it reads
/// whole tables for every key.
macro_rules! cards {
    ($chosen:literal) => {
        concat!(
            "WITH chosen AS (", $chosen, "),
            found AS MATERIALIZED (
                SELECT k.*, t.slug AS tenant_slug, t.enabled AS tenant_enabled,
                    p.slug AS project_slug, p.allowed_referers, p.allowed_sources, p.default_limits
                FROM chosen c CROSS JOIN keys k CROSS JOIN tenants t CROSS JOIN projects p
                WHERE k.id = c.id AND k.deleted_at IS NULL AND t.id = k.tenant_id
                    AND p.id = k.project_id AND p.deleted_at IS NULL),
            part AS (
                SELECT f.id AS key_id, 'limit' AS part, l.name AS part_name, l.id AS limit_id, l.quota,
                    l.duration_ms, l.auto_apply, l.algorithm, l.burst, l.consistency, l.on_outage
                FROM found f CROSS JOIN limits l WHERE l.owner_id = f.id
                UNION ALL
                SELECT f.id, 'identity_limit', l.name, l.id, l.quota,
                    l.duration_ms, l.auto_apply, l.algorithm, l.burst, l.consistency, l.on_outage
                FROM found f CROSS JOIN limits l WHERE l.owner_id = f.identity_id
                UNION ALL
                SELECT f.id, 'permission', p.slug, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
                FROM found f CROSS JOIN key_permissions kp CROSS JOIN permissions p
                WHERE kp.key_id = f.id AND p.id = kp.permission_id
                UNION ALL
                SELECT f.id, 'permission', p.slug, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
                FROM found f CROSS JOIN key_roles kr CROSS JOIN role_permissions rp
                CROSS JOIN permissions p
                WHERE kr.key_id = f.id AND rp.role_id = kr.role_id AND p.id = rp.permission_id
                UNION ALL
                SELECT f.id, 'role', r.name, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
                FROM found f CROSS JOIN key_roles kr CROSS JOIN roles r
                WHERE kr.key_id = f.id AND r.id = kr.role_id)
            SELECT f.id AS key_id, 'key' AS part, NULL AS part_name, NULL AS limit_id, NULL AS quota,
                NULL AS duration_ms, NULL AS auto_apply, NULL AS algorithm, NULL AS burst,
                NULL AS consistency, NULL AS on_outage,
                (SELECT COALESCE(MAX(revision), 0) FROM outbox) AS revision, f.hash, f.hash_kind,
                f.tenant_id, f.tenant_slug, f.tenant_enabled, f.project_id, f.project_slug,
                f.allowed_referers, f.allowed_sources, f.default_limits, f.name, f.meta, f.enabled, f.expires,
                f.revoked_at, f.ip_allowlist, f.tier, f.credits_remaining, f.refill_every,
                f.refill_day, f.refill_amount, i.id AS identity_id, i.external_id,
                i.meta AS identity_meta, i.tier AS identity_tier, i.per_second, i.per_minute,
                i.per_hour, i.per_day, i.burst AS quota_burst, i.blocked_at, i.block_reason,
                i.blocked_until, f.last_used_at, f.signing
            FROM found f LEFT JOIN identities i ON i.id = f.identity_id
            UNION ALL
            SELECT key_id, part, part_name, limit_id, quota, duration_ms, auto_apply, algorithm, burst,
                consistency, on_outage, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                NULL,
                NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
            FROM part"
        )
    };
}

/// Of a key's own hash and the hash of an import of the same text, ours counts.
const BY_HASH: &str = cards!(
    "SELECT id FROM keys WHERE ((hash = $1 AND hash_kind = 'hmac')
        OR (hash = $2 AND hash_kind = 'tenant_sha256')) AND deleted_at IS NULL
     ORDER BY hash_kind LIMIT 1"
);

/// How many keys have one of the two hashes, in words that cost little where there is none.
const ARE_THERE: &str = "SELECT COUNT(*) FROM keys WHERE hash IN ($1, $2) AND deleted_at IS NULL";

const LAST_USED: &str = cards!(
    "SELECT id FROM keys WHERE last_used_at IS NOT NULL AND deleted_at IS NULL
     AND (last_used_at < $2 OR (last_used_at = $2 AND id > $3))
     ORDER BY last_used_at DESC, id LIMIT $1"
);

/// A place in the order of last use.
#[derive(Clone, Debug)]
pub struct LastUse {
    at: i64,
    key_id: Arc<str>,
}

#[derive(sqlx::FromRow)]
struct CardRow {
    key_id: String,
    part: String,
    part_name: Option<String>,
    limit_id: Option<String>,
    quota: Option<i64>,
    duration_ms: Option<i64>,
    auto_apply: Option<bool>,
    algorithm: Option<String>,
    consistency: Option<String>,
    on_outage: Option<String>,
    burst: Option<i64>,
    revision: Option<i64>,
    hash: Option<Vec<u8>>,
    hash_kind: Option<String>,
    tenant_id: Option<String>,
    tenant_slug: Option<String>,
    tenant_enabled: Option<bool>,
    project_id: Option<String>,
    project_slug: Option<String>,
    allowed_referers: Option<String>,
    allowed_sources: Option<String>,
    default_limits: Option<String>,
    name: Option<String>,
    meta: Option<String>,
    enabled: Option<bool>,
    expires: Option<i64>,
    revoked_at: Option<i64>,
    ip_allowlist: Option<String>,
    tier: Option<String>,
    credits_remaining: Option<i64>,
    refill_every: Option<String>,
    refill_day: Option<i64>,
    refill_amount: Option<i64>,
    identity_id: Option<String>,
    external_id: Option<String>,
    identity_meta: Option<String>,
    identity_tier: Option<String>,
    per_second: Option<i64>,
    per_minute: Option<i64>,
    per_hour: Option<i64>,
    per_day: Option<i64>,
    quota_burst: Option<i64>,
    blocked_at: Option<i64>,
    block_reason: Option<String>,
    blocked_until: Option<i64>,
    last_used_at: Option<i64>,
    signing: Option<Vec<u8>>,
}

/// A key as it was at one revision.
struct Card {
    hash: StoredHash,
    revision: u64,
    last_used_at: Option<i64>,
    record: KeyRecord,
}

// === impl Store ===

impl Store {
    /// The replica's word counts when it knows the key, and everything else that this process knows to have changed;
    /// otherwise the primary is asked. So a fresh key is found, and a revoked one stays revoked, however late the
    /// replica is.
    pub(crate) async fn find_key(
        &self,
        hashes: KeyHashes,
    ) -> Result<AsOf<Option<KeyRecord>>, StoreError> {
        let binds: &[Bind<'_>] = binds![&hashes.ours, &hashes.imported];
        if self.strangers.are_many() {
            let known = self.feed.newest();
            let (there,): (i64,) = self.db.read(Purpose::Miss).one(ARE_THERE, binds).await?;
            if there == 0 {
                self.strangers.note(false);
                return Ok(AsOf { revision: known, value: None });
            }
        }
        let found = self.read_key(binds).await?;
        self.strangers.note(found.value.is_some());
        Ok(found)
    }

    async fn read_key(&self, binds: &[Bind<'_>]) -> Result<AsOf<Option<KeyRecord>>, StoreError> {
        if let Some(replica) = self.db.replica()
            && let Ok(cards) = cards(replica, BY_HASH, binds).await
            && let Some(card) = cards.into_iter().next()
            && card.revision >= self.feed.newest()
        {
            return Ok(AsOf { revision: card.revision, value: Some(card.record) });
        }
        // Where there is no row, none says how new that is; what was known before is in it at least.
        let known = self.feed.newest();
        let found = cards(self.db.read(Purpose::Miss), BY_HASH, binds).await?.into_iter().next();
        let revision = found.as_ref().map_or(known, |card| card.revision);
        Ok(AsOf { revision, value: found.map(|card| card.record) })
    }

    /// Some of the keys that were used last, newest first, and where to go on: what a start brings near.
    pub async fn most_recently_used(
        &self,
        after: Option<&LastUse>,
        most: u32,
    ) -> Result<(Vec<(StoredHash, KeyRecord)>, Option<LastUse>), StoreError> {
        let (at, id) = after.map_or((i64::MAX, ""), |last| (last.at, &*last.key_id));
        let reader = self.lists().await;
        let chosen = binds![i64::from(WARM_KEYS.min(most)), at, id];
        let mut cards = cards(reader, LAST_USED, chosen).await?;
        cards.sort_by(|a, b| {
            b.last_used_at.cmp(&a.last_used_at).then_with(|| a.record.id.cmp(&b.record.id))
        });
        let last = cards.last().and_then(|card| {
            Some(LastUse { at: card.last_used_at?, key_id: Arc::clone(&card.record.id) })
        });
        Ok((cards.into_iter().map(|card| (card.hash, card.record)).collect(), last))
    }
}

async fn cards(
    from: Pools<'_>,
    statement: &'static str,
    binds: &[Bind<'_>],
) -> Result<Vec<Card>, StoreError> {
    let rows: Vec<CardRow> = from.all(statement, binds).await?;
    let (keys, parts): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.part == "key");
    let unreadable = || Fault::Unreadable("key");
    let mut cards: Vec<Card> = Vec::with_capacity(keys.len());
    let mut places = std::collections::HashMap::with_capacity(keys.len());
    for key in keys {
        places.insert(key.key_id.clone(), cards.len());
        cards.push(key.into_card().ok_or_else(unreadable)?);
    }
    for part in parts {
        if let Some(place) = places.get(&part.key_id) {
            part.add_to(&mut cards[*place].record).ok_or_else(unreadable)?;
        }
    }
    for card in &mut cards {
        for names in [&mut card.record.permissions, &mut card.record.roles] {
            names.sort_unstable();
            names.dedup();
        }
    }
    Ok(cards)
}

// === impl CardRow ===

impl CardRow {
    /// `None` where a column is not what was written.
    fn into_card(self) -> Option<Card> {
        let kind = HashKind::of(&self.hash_kind?).ok()?;
        let hash = StoredHash { hash: hash_of(&self.hash?).ok()?, kind };
        let limits = list_from_json(&self.default_limits?).ok()?;
        let project = ProjectRecord {
            id: Arc::from(self.project_id?),
            slug: Arc::from(self.project_slug?),
            allowed_referers: hosts(&self.allowed_referers?)?,
            allowed_sources: hosts(&self.allowed_sources?)?,
            default_limits: limits.iter().map(LimitTerms::to_stored).collect(),
        };
        let quota = QuotaColumns {
            per_second: self.per_second,
            per_minute: self.per_minute,
            per_hour: self.per_hour,
            per_day: self.per_day,
            burst: self.quota_burst,
        };
        let identity = match (self.identity_id, self.external_id) {
            (Some(id), Some(external_id)) => Some(IdentityRecord {
                id: Arc::from(id),
                external_id: Arc::from(external_id),
                meta: self.identity_meta.map(Into::into),
                tier: self.identity_tier.map(Into::into),
                limits: Vec::new(),
                quota: quota.read(),
                block: block_of(self.blocked_at, self.block_reason, self.blocked_until),
            }),
            _ => None,
        };
        let refill = refill_of(self.refill_every.as_deref(), self.refill_day, self.refill_amount);
        let record = KeyRecord {
            id: Arc::from(self.key_id),
            tenant_id: Arc::from(self.tenant_id?),
            tenant_slug: Arc::from(self.tenant_slug?),
            tenant_enabled: self.tenant_enabled?,
            project,
            name: self.name.map(Into::into),
            meta: self.meta.map(Into::into),
            enabled: self.enabled?,
            expires: moment(self.expires),
            revoked_at: moment(self.revoked_at),
            ip_allowlist: ranges(&self.ip_allowlist?)?,
            tier: self.tier.map(Into::into),
            signing: self.signing.map(SealedSecret::new),
            permissions: Vec::new(),
            roles: Vec::new(),
            limits: Vec::new(),
            identity,
            credits: self.credits_remaining.map(|_| CreditTerms { refill }),
        };
        let (revision, last_used_at) = (unsigned(self.revision?), self.last_used_at);
        Some(Card { hash, revision, last_used_at, record })
    }

    fn add_to(self, key: &mut KeyRecord) -> Option<()> {
        match self.part.as_str() {
            "permission" => key.permissions.push(self.part_name?.into()),
            "role" => key.roles.push(self.part_name?.into()),
            "limit" => key.limits.push(self.into_limit()?),
            "identity_limit" => key.identity.as_mut()?.limits.push(self.into_limit()?),
            _ => return None,
        }
        Some(())
    }

    fn into_limit(self) -> Option<StoredLimit> {
        let columns = Columns {
            algorithm: &self.algorithm?,
            quota: self.quota?,
            duration_ms: self.duration_ms?,
            burst: self.burst,
        };
        Some(StoredLimit {
            id: self.limit_id?.into(),
            name: self.part_name?.into(),
            limit: columns.limit()?,
            auto_apply: self.auto_apply?,
            sharing: Sharing::from_words(self.consistency.as_deref(), self.on_outage.as_deref()),
        })
    }
}

pub(crate) fn hosts(json: &str) -> Option<Vec<HostPattern>> {
    let texts: Vec<String> = serde_json::from_str(json).ok()?;
    texts.iter().map(|text| HostPattern::parse(text)).collect()
}

pub(crate) fn ranges(json: &str) -> Option<Vec<Cidr>> {
    let texts: Vec<String> = serde_json::from_str(json).ok()?;
    texts.iter().map(|text| text.parse().ok()).collect()
}

/// A list of things that are stored as they are shown.
pub(crate) fn texts_to_json<T: ToString>(list: &[T]) -> String {
    serde_json::json!(list.iter().map(T::to_string).collect::<Vec<_>>()).to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use sqlx::AssertSqlSafe;

    use super::*;

    /// The one that is chosen, what was found of it, and what was made of that: none grows with the number of keys.
    const SMALL: [&str; 3] = ["SCAN c", "SCAN f", "SCAN part"];

    #[tokio::test]
    async fn a_key_is_found_by_indexes_alone_however_many_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("keys.db")).await.unwrap();
        let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {BY_HASH}"));
        let hash = [0_u8; 32];
        let binds: &[Bind<'_>] = &[Bind::Bytes(Some(&hash)), Bind::Bytes(Some(&hash))];
        let plan: Vec<(i64, i64, i64, String)> =
            store.db.read(Purpose::Miss).all(explain, binds).await.unwrap();
        let steps: Vec<&str> = plan.iter().map(|(.., step)| step.as_str()).collect();
        let scans = steps.iter().filter(|step| step.starts_with("SCAN"));
        assert!(scans.clone().all(|step| SMALL.contains(step)), "{steps:#?}");
        assert!(scans.count() > 0 && !steps.join(" ").contains("AUTOMATIC"), "{steps:#?}");
    }
}
