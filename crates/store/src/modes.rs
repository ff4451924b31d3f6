//! Where limits are counted, for the fleet and for tenants that differ from it. The settings say it at the first start
//! only: from then on it is what is stored here, the same for every node of this database.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;
use tollkeeper_core::Millis;
use tollkeeper_decide::Mode;

use crate::bind::binds;
use crate::change::{By, Change, Written};
use crate::db::Purpose;
use crate::outbox::Changed;
use crate::{Fault, Store, StoreError, Thing};

/// The scope of the row that counts for everybody without one of its own.
const FLEET: &str = "";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredModes {
    /// `None` until somebody said it.
    pub fleet: Option<Mode>,
    /// By tenant id, where it is not simply the fleet's.
    pub tenants: HashMap<Arc<str>, Mode>,
}

// === impl Store ===

impl Store {
    /// As they are now. Never from a replica, which may not have heard of the change that made somebody ask.
    pub async fn modes(&self) -> Result<StoredModes, StoreError> {
        const ALL: &str = "SELECT scope, mode FROM modes";
        let rows: Vec<(String, String)> = self.db.write(Purpose::Background).all(ALL, &[]).await?;
        let mut modes = StoredModes::default();
        for (scope, word) in rows {
            let mode = read(&word)?;
            if scope == FLEET {
                modes.fleet = Some(mode);
            } else {
                modes.tenants.insert(scope.into(), mode);
            }
        }
        Ok(modes)
    }

    /// Stores the mode of the first start, unless there was one before; answers what counts.
    pub async fn first_mode(&self, mode: Mode, now: Millis) -> Result<StoredModes, StoreError> {
        const FIRST: &str = "INSERT INTO modes (scope, mode, updated_at) VALUES ($1, $2, $3)
            ON CONFLICT (scope) DO NOTHING";
        let purpose = Purpose::Background;
        self.db.write(purpose).run(FIRST, binds![FLEET, mode.word(), now]).await?;
        self.modes().await
    }

    /// Of one tenant, or of everybody without a mode of its own. A tenant with `None` is like the fleet again.
    pub async fn set_mode(
        &self,
        by: By<'_>,
        tenant_id: Option<&str>,
        mode: Option<Mode>,
    ) -> Result<Written<()>, StoreError> {
        const TENANT: &str = "SELECT id FROM tenants WHERE id = $1";
        const UNSET: &str = "DELETE FROM modes WHERE scope = $1";
        let mut change = self.change(by.now).await?;
        if let Some(tenant_id) = tenant_id {
            let found: Option<(String,)> = change.sql().optional(TENANT, binds![tenant_id]).await?;
            found.ok_or_else(|| StoreError::no(Thing::Tenant, tenant_id))?;
        }
        let scope = tenant_id.unwrap_or(FLEET);
        let before = change.mode_of(scope).await?;
        match mode {
            Some(mode) => change.put_mode(scope, mode, by.now).await?,
            None => drop(change.sql().run(UNSET, binds![scope]).await?),
        }
        let target = tenant_id.unwrap_or("fleet");
        let after = json!({ "mode": mode.map(Mode::word) });
        let before = before.map(|word| json!({ "mode": word }));
        change.audit(by, "system.setMode", target, before, Some(after)).await?;
        change.announce(tenant_id.unwrap_or(by.tenant_id), Changed::Modes);
        change.commit(()).await
    }

    /// Everybody to memory, tenants with a mode of their own too: for a node that found Redis to be the trouble.
    /// False where nobody was elsewhere any more.
    pub async fn roll_back(
        &self,
        node: &str,
        reason: &str,
        now: Millis,
    ) -> Result<Written<bool>, StoreError> {
        const OPERATOR: &str = "SELECT tenant_id FROM root_keys WHERE operator";
        const SET: &str =
            "UPDATE modes SET mode = $1, updated_at = $2 WHERE mode <> $1 RETURNING scope";
        let mut change = self.change(now).await?;
        let memory = Mode::Memory.word();
        let moved: Vec<(String,)> = change.sql().all(SET, binds![memory, now]).await?;
        if moved.is_empty() {
            return change.commit(false).await;
        }
        let tenant: Option<(String,)> = change.sql().optional(OPERATOR, &[]).await?;
        let (tenant_id,) = tenant.unwrap_or_default();
        let after = json!({ "mode": memory, "reason": reason, "node": node });
        change.audit_of(&tenant_id, None, "system.rollback", "fleet", None, Some(after)).await?;
        change.announce(&tenant_id, Changed::Modes);
        change.commit(true).await
    }
}

// === impl Change ===

impl Change<'_> {
    async fn mode_of(&mut self, scope: &str) -> Result<Option<String>, StoreError> {
        const FIND: &str = "SELECT mode FROM modes WHERE scope = $1";
        let found: Option<(String,)> = self.sql().optional(FIND, binds![scope]).await?;
        Ok(found.map(|(word,)| word))
    }

    async fn put_mode(&mut self, scope: &str, mode: Mode, now: Millis) -> Result<(), StoreError> {
        const PUT: &str = "INSERT INTO modes (scope, mode, updated_at) VALUES ($1, $2, $3)
            ON CONFLICT (scope) DO UPDATE SET mode = excluded.mode, updated_at = excluded.updated_at";
        self.sql().run(PUT, binds![scope, mode.word(), now]).await?;
        Ok(())
    }
}

fn read(word: &str) -> Result<Mode, Fault> {
    Mode::from_word(word).ok_or(Fault::Unreadable("mode"))
}
