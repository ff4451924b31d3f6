//! A rule without conditions and a request that gives nothing, for tests to add to.

use std::sync::Arc;

use super::{Action, Facts, Rule, RuleScope, ScopeList};
use crate::Sharing;

pub(super) fn rule(name: &str) -> Rule {
    Rule {
        name: Arc::from(name),
        scope: ScopeList::from(RuleScope::Global),
        tiers: Vec::new(),
        endpoints: Vec::new(),
        methods: Vec::new(),
        ip_ranges: Vec::new(),
        projects: Vec::new(),
        limits: Vec::new(),
        action: Action::Reject,
        response: None,
        sharing: Sharing::default(),
        priority: 100,
        enabled: true,
    }
}

pub(super) const NOTHING: Facts<'static> = Facts {
    tier: "free",
    method: None,
    path: None,
    ip: None,
    project_id: None,
    project_slug: None,
    key_id: None,
    user: None,
    tenant: "acme",
};
