//! What an ask needs, brought near: the limits that count for it, and cells that had left the table.
//! An ask that is not warm cannot be decided.

use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::{Cost, Outcome};

use crate::ask::{LimitCheck, LimitedOne};
use crate::cells::{CellAsk, Returned};
use crate::ports::{OriginError, RootKey};
use crate::{Decider, Namespace};

/// All that an ask needs, near.
#[derive(Debug)]
pub struct Warm {
    pub(crate) checks: SmallVec<[WarmCheck; 1]>,
    pub(crate) returned: Vec<Returned>,
}

#[derive(Debug)]
pub(crate) struct WarmCheck {
    pub(crate) cell: CellAsk,
    override_id: Option<Arc<str>>,
}

/// Why an ask could not be made ready. Nothing was spent.
#[derive(Debug, thiserror::Error)]
pub enum WarmError {
    #[error("namespace {0:?} does not exist")]
    NamespaceMissing(String),
    #[error("namespace {0:?} was deleted")]
    NamespaceGone(String),
    #[error("the root key may not {action} on {resource} {id:?}")]
    Forbidden { resource: &'static str, id: String, action: &'static str },
    #[error("the key has no limit {0:?}, and the request does not say one")]
    LimitUnknown(String),
    #[error(transparent)]
    Origin(#[from] OriginError),
}

/// May the caller do this on the namespace with this id?
pub(crate) fn permit(caller: &RootKey, id: &str, action: &'static str) -> Result<(), WarmError> {
    let resource = "ratelimit";
    if caller.permissions.allow(resource, id, action) {
        return Ok(());
    }
    Err(WarmError::Forbidden { resource, id: id.to_owned(), action })
}

// === impl WarmCheck ===

impl WarmCheck {
    pub(crate) fn new(namespace: &Namespace, check: &LimitCheck<'_>) -> Self {
        let (limit, override_id) = namespace.limit_for(check.identifier, check.limit);
        let key = namespace.tag.cell(check.identifier, &limit);
        let cell = CellAsk { key, namespace: namespace.tag.tag, limit, cost: check.cost };
        Self { cell, override_id }
    }

    pub(crate) fn answer(self, outcome: Outcome) -> LimitedOne {
        LimitedOne { outcome, limit: self.cell.limit, override_id: self.override_id }
    }
}

// === impl Warm ===

impl Warm {
    /// One cell of a known namespace, to be looked at without spending.
    pub async fn peek(
        decider: &Decider,
        namespace: &Namespace,
        check: &LimitCheck<'_>,
    ) -> Result<Self, WarmError> {
        let peek = LimitCheck { cost: Cost::PEEK, ..*check };
        let warm = WarmCheck::new(namespace, &peek);
        let returned = decider.overflow().fetch(std::iter::once(warm.cell.key)).await?;
        Ok(Self { checks: SmallVec::from_iter([warm]), returned })
    }
}
