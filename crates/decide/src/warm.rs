//! What an ask needs, brought near: the limits that count for it, and cells that had left the table.
//! An ask that is not warm cannot be decided.

use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::{Consistency, Cost, Limit, Outcome, Sharing};

use crate::ask::{LimitCheck, LimitedOne};
use crate::cells::{CellAsk, Returned};
use crate::counts::LimitCount;
use crate::lease::Scope;
use crate::ports::{OriginError, RootKey};
use crate::sharing::{self, Compared, Routed, Shared};
use crate::{Decider, Namespace, NamespaceTag};

/// All that an ask needs, near.
#[derive(Debug)]
pub struct Warm {
    pub(crate) checks: SmallVec<[WarmCheck; 1]>,
    pub(crate) returned: Vec<Returned>,
    /// What the fleet lent for it. Boxed: a node alone has none.
    pub(crate) shared: Option<Box<Shared>>,
    pub(crate) compared: Vec<Compared>,
}

#[derive(Debug)]
pub(crate) struct WarmCheck {
    pub(crate) cell: CellAsk,
    pub(crate) sharing: Sharing,
    pub(crate) scope: Arc<Scope>,
    override_id: Option<Arc<str>>,
    count: Arc<LimitCount>,
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
    #[error("more than {most} limits of rules apply to one request")]
    TooManyLimits { most: usize },
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
        let scope = Arc::clone(&namespace.tag.scope);
        let count = Arc::clone(&namespace.count);
        Self { cell, sharing: check.sharing, scope, override_id, count }
    }

    /// A limit that belongs to its owner and is shared as the fleet shares by default. Nobody asks how often it was hit.
    pub(crate) fn of_owner(tag: &NamespaceTag, name: &str, limit: Limit) -> Self {
        let cell =
            CellAsk { key: tag.cell(name, &limit), namespace: tag.tag, limit, cost: Cost::ONE };
        let (scope, count) = (Arc::clone(&tag.scope), Arc::default());
        Self { cell, sharing: Sharing::default(), scope, override_id: None, count }
    }

    pub(crate) fn routed<'a>(&'a self, identifier: &'a str) -> Routed<'a> {
        Routed { cell: self.cell, sharing: self.sharing, scope: &self.scope, identifier }
    }

    pub(crate) fn answer(self, outcome: Outcome, degraded: bool) -> LimitedOne {
        let (limit, override_id, count) = (self.cell.limit, self.override_id, self.count);
        LimitedOne { outcome, limit, override_id, degraded, count }
    }
}

// === impl Warm ===

impl Warm {
    /// One cell of a known namespace, to be looked at without spending.
    pub async fn peek(
        decider: &Decider,
        tenant_id: &str,
        namespace: &Namespace,
        check: &LimitCheck<'_>,
    ) -> Result<Self, WarmError> {
        let peek = LimitCheck { cost: Cost::PEEK, ..*check };
        let warm = WarmCheck::new(namespace, &peek);
        if let Some(fleet) = decider.fleet() {
            let routed = [warm.routed(check.identifier)];
            if fleet.modes.consistency(tenant_id, check.sharing.consistency) != Consistency::Local {
                fleet.call_in(&warm.scope, check.identifier, &warm.cell).await;
            }
            if let Some(mut shared) = sharing::gather(fleet, tenant_id, &routed, false).await {
                shared.leave_what_is_lent(fleet, &warm.cell);
                let (checks, returned) = (SmallVec::from_iter([warm]), Vec::new());
                let shared = Some(Box::new(shared));
                return Ok(Self { checks, returned, shared, compared: Vec::new() });
            }
        }
        let returned = decider.overflow().fetch(std::iter::once(warm.cell.key)).await?;
        let checks = SmallVec::from_iter([warm]);
        Ok(Self { checks, returned, shared: None, compared: Vec::new() })
    }
}
