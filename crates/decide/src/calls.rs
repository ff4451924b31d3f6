//! Calls of a tenant in a minute: a limit like any other, counted over the whole fleet and through a restart.

use smallvec::SmallVec;
use tollkeeper_core::{Limit, Millis, Quota, Width};

use crate::Decider;
use crate::ports::Tenant;
use crate::warm::{Warm, WarmCheck, WarmError};

/// No id of a key or an identity, and no name that a request gives itself, ends like this.
const OWNER: &str = "tenant:";
const NAME: &str = "calls";
const MINUTE_MS: u64 = 60_000;

// === impl Decider ===

impl Decider {
    /// Brings near what counting one call of this tenant needs, if so many in a minute are a bound.
    pub async fn warm_call(
        &self,
        tenant: &Tenant,
        per_minute: u64,
        now: Millis,
    ) -> Result<Option<Warm>, WarmError> {
        let Some((quota, width)) = Quota::new(per_minute).zip(Width::from_millis(MINUTE_MS)) else {
            return Ok(None);
        };
        let tag = self.hasher().owner(&tenant.slug, OWNER);
        let check = WarmCheck::of_owner(&tag, NAME, Limit::sliding_window(quota, width));
        self.bring_checks(&tenant.id, SmallVec::from_iter([check]), &[NAME], false, now)
            .await
            .map(Some)
    }
}
