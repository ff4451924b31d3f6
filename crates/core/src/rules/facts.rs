//! What is known of a request, as far as rules depend on it. What was not given is absent, never guessed.

use std::net::IpAddr;

use super::{RequestPath, RuleScope};

#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub tier: &'a str,
    /// In upper case, as HTTP has it: methods are case-sensitive.
    pub method: Option<&'a str>,
    pub path: Option<&'a RequestPath<'a>>,
    pub ip: Option<IpAddr>,
    pub project_id: Option<&'a str>,
    pub project_slug: Option<&'a str>,
    pub key_id: Option<&'a str>,
    /// The identity's external id.
    pub user: Option<&'a str>,
    /// The tenant's slug.
    pub tenant: &'a str,
}

// === impl Facts ===

impl Facts<'_> {
    /// Does the request itself have a value for this scope? An endpoint is known by the pattern that matched,
    /// so the path alone decides nothing about it.
    pub(super) fn has(&self, scope: RuleScope) -> bool {
        match scope {
            RuleScope::Global | RuleScope::Tenant => true,
            RuleScope::Project => self.project_id.is_some(),
            RuleScope::User => self.user.is_some(),
            RuleScope::Key => self.key_id.is_some(),
            RuleScope::Ip => self.ip.is_some(),
            RuleScope::Endpoint => self.path.is_some(),
        }
    }

    pub(super) fn in_project(&self, project: &str) -> bool {
        self.project_id == Some(project) || self.project_slug == Some(project)
    }
}
