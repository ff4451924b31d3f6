//! One admin change: a transaction that carries its own audit row and tells everybody what it touched.
//! Both are part of it, so a change that is visible was written down and announced, and one that failed was neither.

use serde_json::Value;
use tollkeeper_core::Millis;

use crate::bind::{binds, unsigned};
use crate::db::{Begun, Conn, Purpose};
use crate::outbox::{Changed, OutboxEntry, write_outbox};
use crate::{Each, Store, StoreError};

/// Who changes something, in which tenant, and when.
#[derive(Clone, Copy, Debug)]
pub struct By<'a> {
    pub tenant_id: &'a str,
    pub root_key_id: &'a str,
    pub now: Millis,
}

/// What a change made, and the revision from which on everybody knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<T> {
    pub value: T,
    pub revision: u64,
}

#[derive(Debug)]
pub(crate) struct Change<'s> {
    store: &'s Store,
    begun: Begun,
    now: Millis,
    said: Vec<(String, Changed)>,
}

// === impl Store ===

impl Store {
    pub(crate) async fn change(&self, now: Millis) -> Result<Change<'_>, StoreError> {
        let begun = self.db.begin(Purpose::Admin).await?;
        Ok(Change { store: self, begun, now, said: Vec::new() })
    }

    /// By the database's clock, where nobody hands one in.
    pub(crate) async fn change_now(&self) -> Result<Change<'_>, StoreError> {
        const LITE: &str = "SELECT CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)";
        const PG: &str = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)";
        let mut change = self.change(Millis(0)).await?;
        let clock = if matches!(change.begun, Each::Lite(_)) { LITE } else { PG };
        let (now,): (i64,) = change.sql().one(clock, &[]).await?;
        change.now = Millis(unsigned(now));
        Ok(change)
    }
}

// === impl Change ===

impl Change<'_> {
    pub(crate) fn sql(&mut self) -> Conn<'_> {
        self.begun.conn()
    }

    /// Told when the change is committed, to every node.
    pub(crate) fn announce(&mut self, tenant_id: &str, changed: Changed) {
        self.said.push((tenant_id.to_owned(), changed));
    }

    pub(crate) async fn audit(
        &mut self,
        by: By<'_>,
        action: &str,
        target: &str,
        before: Option<Value>,
        after: Option<Value>,
    ) -> Result<(), StoreError> {
        let root_key_id = Some(by.root_key_id).filter(|id| !id.is_empty());
        self.audit_of(by.tenant_id, root_key_id, action, target, before, after).await
    }

    /// For changes that come without a root key's name.
    pub(crate) async fn audit_of(
        &mut self,
        tenant_id: &str,
        root_key_id: Option<&str>,
        action: &str,
        target: &str,
        before: Option<Value>,
        after: Option<Value>,
    ) -> Result<(), StoreError> {
        const NOTE: &str = "INSERT INTO admin_audit
                (at, tenant_id, root_key_id, action, target, before, after)
            VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let (before, after) = (before.map(|v| v.to_string()), after.map(|v| v.to_string()));
        let now = self.now;
        self.sql()
            .run(NOTE, binds![now, tenant_id, root_key_id, action, target, &before, &after])
            .await?;
        Ok(())
    }

    /// The announcements go last: in PostgreSQL their order is kept by a lock, which is held from here to the end.
    pub(crate) async fn commit<T>(mut self, value: T) -> Result<Written<T>, StoreError> {
        let said = std::mem::take(&mut self.said);
        let told: Vec<OutboxEntry> = write_outbox(self.begun.conn(), said, self.now).await?;
        self.begun.commit().await?;
        let revision = self.store.feed.committed(told);
        Ok(Written { value, revision })
    }
}

// === impl Written ===

impl<T> Written<T> {
    pub(crate) fn map<U>(self, to: impl FnOnce(T) -> U) -> Written<U> {
        Written { value: to(self.value), revision: self.revision }
    }
}
