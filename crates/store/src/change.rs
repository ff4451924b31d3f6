//! One admin change: a transaction that carries its own audit row and tells everybody what it touched.
//! Both are part of it, so a change that is visible was written down and announced, and one that failed was neither.

use serde_json::Value;
use tollkeeper_core::Millis;

use crate::admin_audit::{self, Note};
use crate::db::{Begun, Conn, Purpose};
use crate::outbox::{Changed, OutboxEntry, write_outbox};
use crate::{Store, StoreError};

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
    notes: Vec<Note>,
    said: Vec<(String, Changed)>,
}

// === impl Store ===

impl Store {
    pub(crate) async fn change(&self, now: Millis) -> Result<Change<'_>, StoreError> {
        let begun = self.db.begin(Purpose::Admin).await?;
        Ok(Change { store: self, begun, now, notes: Vec::new(), said: Vec::new() })
    }
}

// === impl Change ===

impl Change<'_> {
    pub(crate) fn sql(&mut self) -> Conn<'_> {
        self.begun.conn()
    }

    /// For a tenant that this change makes.
    pub(crate) async fn begin_chain(&mut self, tenant_id: &str) -> Result<(), StoreError> {
        admin_audit::begin(self.begun.conn(), tenant_id, self.store.seal.as_deref()).await
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

    /// For changes that come without a root key's name. Written with the commit: the end of the tenant's chain is
    /// locked from there on, and nobody may take other locks while holding it.
    #[allow(clippy::unused_async, reason = "a step of the change like every other")]
    pub(crate) async fn audit_of(
        &mut self,
        tenant_id: &str,
        root_key_id: Option<&str>,
        action: &str,
        target: &str,
        before: Option<Value>,
        after: Option<Value>,
    ) -> Result<(), StoreError> {
        self.notes.push(Note {
            tenant_id: tenant_id.to_owned(),
            root_key_id: root_key_id.map(str::to_owned),
            action: action.to_owned(),
            target: target.to_owned(),
            before: before.map(|value| value.to_string()),
            after: after.map(|value| value.to_string()),
        });
        Ok(())
    }

    /// The announcements go last: in PostgreSQL their order is kept by a lock, which is held from here to the end.
    pub(crate) async fn commit<T>(mut self, value: T) -> Result<Written<T>, StoreError> {
        let (notes, said) = (std::mem::take(&mut self.notes), std::mem::take(&mut self.said));
        let seal = self.store.seal.as_deref();
        admin_audit::append(self.begun.conn(), notes, self.now, seal).await?;
        let told: Vec<OutboxEntry> = write_outbox(self.begun.conn(), said, self.now).await?;
        self.begun.commit().await?;
        let revision = self.store.feed.committed(told);
        Ok(Written { value, revision })
    }
}

/// What is stored as a text of JSON, as the value it is; a text that is none stays one.
pub(crate) fn as_json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

// === impl Written ===

impl<T> Written<T> {
    pub(crate) fn map<U>(self, to: impl FnOnce(T) -> U) -> Written<U> {
        Written { value: to(self.value), revision: self.revision }
    }
}
