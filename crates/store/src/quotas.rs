//! Quotas of identities: their tier, limits of their own, and whether they are blocked. By the tenant's own name for
//! them; whoever is set or blocked before anybody has seen it is made on the way.

use std::sync::Arc;

use serde_json::{Value, json};
use tollkeeper_core::{Block, IdentityQuota, IdentityRecord, Millis, StoredLimit};

use crate::announce::announce_identity;
use crate::bind::{binds, moment, signed, unsigned};
use crate::change::{By, Change, Written};
use crate::db::Purpose;
use crate::identities::ensure_identity;
use crate::limits::limits_of;
use crate::{Patch, Store, StoreError, Thing};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaView {
    pub identity_id: String,
    pub external_id: String,
    pub tier: Option<String>,
    pub quota: IdentityQuota,
    /// Also one that has run out.
    pub block: Option<BlockView>,
    /// How often one of its limits said no.
    pub exceeded_count: u64,
    pub last_request_at: Option<Millis>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockView {
    pub at: Millis,
    pub reason: Option<String>,
    /// `None`: until somebody takes it away.
    pub until: Option<Millis>,
}

#[derive(Clone, Debug, Default)]
pub struct QuotaPatch {
    pub tier: Patch<String>,
    pub per_second: Patch<u64>,
    pub per_minute: Patch<u64>,
    pub per_hour: Patch<u64>,
    pub per_day: Patch<u64>,
    pub burst: Patch<u64>,
}

/// A quota and a block as columns, here and beside a key.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub(crate) struct QuotaColumns {
    pub(crate) per_second: Option<i64>,
    pub(crate) per_minute: Option<i64>,
    pub(crate) per_hour: Option<i64>,
    pub(crate) per_day: Option<i64>,
    pub(crate) burst: Option<i64>,
}

#[derive(sqlx::FromRow)]
struct QuotaRow {
    id: String,
    external_id: String,
    tier: Option<String>,
    #[sqlx(flatten)]
    quota: QuotaColumns,
    blocked_at: Option<i64>,
    block_reason: Option<String>,
    blocked_until: Option<i64>,
    exceeded_count: i64,
    last_request_at: Option<i64>,
}

#[derive(sqlx::FromRow)]
struct RecordRow {
    id: String,
    external_id: String,
    meta: Option<String>,
    tier: Option<String>,
    #[sqlx(flatten)]
    quota: QuotaColumns,
    blocked_at: Option<i64>,
    block_reason: Option<String>,
    blocked_until: Option<i64>,
}

macro_rules! quota_columns {
    () => {
        "id, external_id, tier, per_second, per_minute, per_hour, per_day, burst, blocked_at,
        block_reason, blocked_until, exceeded_count, last_request_at"
    };
}

// === impl Store ===

impl Store {
    pub async fn quota(
        &self,
        tenant_id: &str,
        external_id: &str,
    ) -> Result<Option<QuotaView>, StoreError> {
        const FIND: &str = concat!(
            "SELECT ",
            quota_columns!(),
            " FROM identities WHERE tenant_id = $1 AND external_id = $2"
        );
        let from = self.db.read(Purpose::Admin);
        let row: Option<QuotaRow> = from.optional(FIND, binds![tenant_id, external_id]).await?;
        Ok(row.map(QuotaView::from))
    }

    /// With its limits, as a request that names it needs it.
    pub(crate) async fn find_identity(
        &self,
        tenant_id: &str,
        external_id: &str,
    ) -> Result<Option<IdentityRecord>, StoreError> {
        const FIND: &str = "SELECT id, external_id, meta, tier, per_second, per_minute, per_hour,
                per_day, burst, blocked_at, block_reason, blocked_until
            FROM identities WHERE tenant_id = $1 AND external_id = $2";
        let from = self.db.read(Purpose::Miss);
        let row: Option<RecordRow> = from.optional(FIND, binds![tenant_id, external_id]).await?;
        let Some(row) = row else { return Ok(None) };
        let limits = limits_of(from, &[&row.id]).await?;
        let limits = limits.into_iter().map(|(_, limit)| limit.into_stored()).collect();
        Ok(Some(row.into_record(limits)))
    }

    pub async fn set_quota(
        &self,
        by: By<'_>,
        external_id: &str,
        patch: QuotaPatch,
    ) -> Result<Written<QuotaView>, StoreError> {
        const SET: &str = "UPDATE identities SET tier = $2, per_second = $3, per_minute = $4,
            per_hour = $5, per_day = $6, burst = $7 WHERE id = $1";
        let mut change = self.change(by.now).await?;
        ensure_identity(&mut change, by, external_id).await?;
        let before = lock_identity(&mut change, by, external_id).await?;
        let mut after = before.clone();
        after.take(patch);
        let IdentityQuota { per_second, per_minute, per_hour, per_day, burst } = after.quota;
        let number = |number: Option<u64>| number.map(signed);
        let binds = binds![
            &after.identity_id,
            &after.tier,
            number(per_second),
            number(per_minute),
            number(per_hour),
            number(per_day),
            number(burst),
        ];
        change.sql().run(SET, binds).await?;
        finish(change, by, "quotas.set", &before, after).await
    }

    /// In the place of the block that was there, if any.
    pub async fn block_identity(
        &self,
        by: By<'_>,
        external_id: &str,
        reason: Option<&str>,
        until: Option<Millis>,
    ) -> Result<Written<QuotaView>, StoreError> {
        let mut change = self.change(by.now).await?;
        ensure_identity(&mut change, by, external_id).await?;
        let before = lock_identity(&mut change, by, external_id).await?;
        let mut after = before.clone();
        after.block = Some(BlockView { at: by.now, reason: reason.map(str::to_owned), until });
        put_block(&mut change, &after).await?;
        finish(change, by, "quotas.block", &before, after).await
    }

    /// Whoever is not blocked is left as it is.
    pub async fn unblock_identity(
        &self,
        by: By<'_>,
        external_id: &str,
    ) -> Result<Written<QuotaView>, StoreError> {
        let mut change = self.change(by.now).await?;
        let before = lock_identity(&mut change, by, external_id).await?;
        let after = QuotaView { block: None, ..before.clone() };
        put_block(&mut change, &after).await?;
        finish(change, by, "quotas.unblock", &before, after).await
    }
}

async fn lock_identity(
    change: &mut Change<'_>,
    by: By<'_>,
    external_id: &str,
) -> Result<QuotaView, StoreError> {
    const LOCK: &str = concat!(
        "UPDATE identities SET updated_at = $3 WHERE tenant_id = $1 AND external_id = $2 RETURNING ",
        quota_columns!()
    );
    let row: Option<QuotaRow> =
        change.sql().optional(LOCK, binds![by.tenant_id, external_id, by.now]).await?;
    row.map(QuotaView::from).ok_or_else(|| StoreError::no(Thing::Identity, external_id))
}

async fn put_block(change: &mut Change<'_>, view: &QuotaView) -> Result<(), StoreError> {
    const PUT: &str = "UPDATE identities SET blocked_at = $2, block_reason = $3, blocked_until = $4
        WHERE id = $1";
    let block = view.block.as_ref();
    let reason = block.and_then(|block| block.reason.as_deref());
    let (at, until) = (block.map(|block| block.at), block.and_then(|block| block.until));
    change.sql().run(PUT, binds![&view.identity_id, at, reason, until]).await?;
    Ok(())
}

/// Every node forgets the identity's keys, and with them what its quota was.
async fn finish(
    mut change: Change<'_>,
    by: By<'_>,
    action: &str,
    before: &QuotaView,
    after: QuotaView,
) -> Result<Written<QuotaView>, StoreError> {
    let QuotaView { identity_id, external_id, .. } = &after;
    announce_identity(&mut change, by.tenant_id, identity_id, external_id).await?;
    let (old, new) = (Some(before.audited()), Some(after.audited()));
    change.audit(by, action, &after.identity_id, old, new).await?;
    change.commit(after).await
}

// === impl QuotaView ===

impl QuotaView {
    fn take(&mut self, patch: QuotaPatch) {
        let quota = &mut self.quota;
        quota.per_second = patch.per_second.over(quota.per_second);
        quota.per_minute = patch.per_minute.over(quota.per_minute);
        quota.per_hour = patch.per_hour.over(quota.per_hour);
        quota.per_day = patch.per_day.over(quota.per_day);
        quota.burst = patch.burst.over(quota.burst);
        self.tier = patch.tier.over(self.tier.take());
    }

    fn audited(&self) -> Value {
        let IdentityQuota { per_second, per_minute, per_hour, per_day, burst } = self.quota;
        let block = self.block.as_ref().map(
            |block| json!({ "reason": block.reason, "until": block.until.map(|until| until.0) }),
        );
        json!({
            "externalId": self.external_id, "tier": self.tier, "perSecond": per_second,
            "perMinute": per_minute, "perHour": per_hour, "perDay": per_day, "burst": burst,
            "block": block,
        })
    }
}

impl From<QuotaRow> for QuotaView {
    fn from(row: QuotaRow) -> Self {
        let block = moment(row.blocked_at).map(|at| BlockView {
            at,
            reason: row.block_reason,
            until: moment(row.blocked_until),
        });
        Self {
            identity_id: row.id,
            external_id: row.external_id,
            tier: row.tier,
            quota: row.quota.read(),
            block,
            exceeded_count: unsigned(row.exceeded_count),
            last_request_at: moment(row.last_request_at),
        }
    }
}

// === impl RecordRow ===

impl RecordRow {
    fn into_record(self, limits: Vec<StoredLimit>) -> IdentityRecord {
        IdentityRecord {
            id: self.id.into(),
            external_id: self.external_id.into(),
            meta: self.meta.map(Into::into),
            tier: self.tier.map(Into::into),
            limits,
            quota: self.quota.read(),
            block: block_of(self.blocked_at, self.block_reason, self.blocked_until),
        }
    }
}

// === impl QuotaColumns ===

impl QuotaColumns {
    pub(crate) fn read(self) -> IdentityQuota {
        let number = |number: Option<i64>| number.map(unsigned);
        IdentityQuota {
            per_second: number(self.per_second),
            per_minute: number(self.per_minute),
            per_hour: number(self.per_hour),
            per_day: number(self.per_day),
            burst: number(self.burst),
        }
    }
}

/// As a verdict sees it.
pub(crate) fn block_of(
    at: Option<i64>,
    reason: Option<String>,
    until: Option<i64>,
) -> Option<Block> {
    at.map(|_| Block { reason: reason.map(Arc::from), until: moment(until) })
}
