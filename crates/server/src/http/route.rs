//! The table of routes: what there is, what it takes, what it answers, and which permission it needs.
//! Dispatch, the OpenAPI document and the tests of access all read this one table.

mod apis;
mod audit;
mod gate;
mod identities;
mod keys;
mod limits;
mod permissions;
mod probes;
mod projects;
mod quotas;
mod root_keys;
mod rules;
mod stats;
mod system;
mod tenants;
mod usage;

use http::{Method, StatusCode};
use tollkeeper_wire::{Described, Shape};

use super::body::BODY_MAX;
use super::reply::{JSON, PROBLEM_JSON};
use crate::forward_auth::Dialect;

pub use apis::ApiCall;
pub use audit::AuditCall;
pub use identities::IdentityCall;
pub use keys::KeyCall;
pub use permissions::{PermissionCall, RoleCall};
pub use projects::ProjectCall;
pub use quotas::QuotaCall;
pub use root_keys::RootKeyCall;
pub use rules::RuleCall;
pub use system::SystemCall;
pub use tenants::{OPERATOR, TenantCall};
pub use usage::{CSV, UsageCall};

#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub path: &'static str,
    pub endpoint: Endpoint,
    /// What a root key must be allowed to do; `None` for routes without authentication.
    pub permission: Option<&'static str>,
    pub about: &'static str,
    pub takes: Takes,
    pub answers: Answers,
    pub effect: Effect,
    /// Bytes of a body, at most.
    pub body_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Reads or decides.
    Asks,
    /// Spends, and remembers its own retries.
    Spends,
    /// Changes what is stored: limited per root key, and done once per `Idempotency-Key`.
    Changes,
}

#[derive(Clone, Copy, Debug)]
pub enum Takes {
    Nothing,
    /// Nothing either, by whatever method: a proxy hands on its client's.
    AnyMethod,
    Body(Shape),
}

#[derive(Clone, Copy, Debug)]
pub enum Answers {
    Data(Shape),
    /// A list, with pagination beside it.
    Page(Shape),
    /// Something that is not in the envelope, of one of these types.
    Plain(&'static [&'static str]),
    /// `meta` alone.
    Done,
    /// What a proxy understands: headers on success, a bare problem else.
    Proxy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    Limit,
    VerifyKey,
    GateCheck,
    GateExplain,
    Check(Dialect),
    MultiLimit,
    SetOverride,
    GetOverride,
    ListOverrides,
    DeleteOverride,
    DeleteNamespace,
    Peek,
    Reset,
    Stats,
    Keys(KeyCall),
    Apis(ApiCall),
    Projects(ProjectCall),
    Tenants(TenantCall),
    Identities(IdentityCall),
    Permissions(PermissionCall),
    Roles(RoleCall),
    RootKeys(RootKeyCall),
    System(SystemCall),
    Rules(RuleCall),
    Quotas(QuotaCall),
    Usage(UsageCall),
    Audit(AuditCall),
    Rollups,
    Liveness,
    Livez,
    Readyz,
    Metrics,
    OpenApi,
}

/// In the order of how often they are asked for: dispatch walks from the top.
const GROUPS: &[&[Route]] = &[
    limits::ROUTES,
    keys::ROUTES,
    gate::ROUTES,
    apis::ROUTES,
    identities::ROUTES,
    permissions::ROUTES,
    projects::ROUTES,
    rules::ROUTES,
    quotas::ROUTES,
    root_keys::ROUTES,
    tenants::ROUTES,
    system::ROUTES,
    usage::ROUTES,
    audit::ROUTES,
    stats::ROUTES,
    probes::ROUTES,
];

pub fn routes() -> impl Iterator<Item = &'static Route> {
    GROUPS.iter().copied().flatten()
}

/// The two calls whose clients know every refusal, a 429 too, by plain JSON.
const PLAIN_PROBLEMS: [&str; 2] =
    ["/v2/permissions.updatePermission", "/v2/permissions.updateRole"];

pub const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

// === impl Route ===

impl Route {
    pub fn find(path: &str) -> Option<&'static Self> {
        routes().find(|route| route.path == path)
    }

    pub fn method(&self) -> Method {
        match self.takes {
            Takes::Nothing | Takes::AnyMethod => Method::GET,
            Takes::Body(_) => Method::POST,
        }
    }

    /// HEAD is answered wherever GET is, as probes expect.
    pub fn accepts(&self, method: &Method) -> bool {
        matches!(self.takes, Takes::AnyMethod)
            || *method == self.method()
            || (*method == Method::HEAD && self.method() == Method::GET)
    }

    /// By which type its clients know a refusal.
    pub fn kind_of_refusal(&self, status: StatusCode) -> &'static str {
        let is_problem =
            status == StatusCode::TOO_MANY_REQUESTS || matches!(self.answers, Answers::Done);
        if is_problem && !PLAIN_PROBLEMS.contains(&self.path) { PROBLEM_JSON } else { JSON }
    }

    pub fn allowed(&self) -> &'static str {
        match self.takes {
            Takes::Nothing | Takes::AnyMethod => "GET, HEAD",
            Takes::Body(_) => "POST",
        }
    }
}

const fn post<T: Described>(
    path: &'static str,
    endpoint: Endpoint,
    permission: &'static str,
    about: &'static str,
    answers: Answers,
) -> Route {
    Route {
        path,
        endpoint,
        permission: Some(permission),
        about,
        takes: Takes::Body(T::SHAPE),
        answers,
        effect: Effect::Asks,
        body_max: BODY_MAX,
    }
}

/// A call that spends.
const fn spend<T: Described>(
    path: &'static str,
    endpoint: Endpoint,
    permission: &'static str,
    about: &'static str,
    answers: Answers,
) -> Route {
    Route { effect: Effect::Spends, ..post::<T>(path, endpoint, permission, about, answers) }
}

/// A call that changes what is stored.
const fn change<T: Described>(
    path: &'static str,
    endpoint: Endpoint,
    permission: &'static str,
    about: &'static str,
    answers: Answers,
) -> Route {
    Route { effect: Effect::Changes, ..post::<T>(path, endpoint, permission, about, answers) }
}

const fn get(
    path: &'static str,
    endpoint: Endpoint,
    about: &'static str,
    answers: Answers,
) -> Route {
    Route {
        path,
        endpoint,
        permission: None,
        about,
        takes: Takes::Nothing,
        answers,
        effect: Effect::Asks,
        body_max: BODY_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_stands_in_the_table_once() {
        let mut seen = std::collections::HashSet::new();
        assert_eq!(routes().find(|route| !seen.insert(route.path)).map(|route| route.path), None);
    }

    #[test]
    fn every_route_with_a_body_needs_a_permission() {
        for route in routes() {
            assert_eq!(
                matches!(route.takes, Takes::Body(_)),
                route.permission.is_some(),
                "{}",
                route.path
            );
        }
    }
}
