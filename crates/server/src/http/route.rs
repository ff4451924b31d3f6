//! The table of routes: what there is, what it takes, what it answers, and which permission it needs.
//! Dispatch, the OpenAPI document and the tests of access all read this one table.

use http::Method;
use tollkeeper_wire as wire;
use wire::{Described, Shape};

#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub path: &'static str,
    pub endpoint: Endpoint,
    /// What a root key must be allowed to do; `None` for routes without authentication.
    pub permission: Option<&'static str>,
    pub about: &'static str,
    pub takes: Takes,
    pub answers: Answers,
}

#[derive(Clone, Copy, Debug)]
pub enum Takes {
    Nothing,
    Body(Shape),
}

#[derive(Clone, Copy, Debug)]
pub enum Answers {
    Data(Shape),
    /// A list, with pagination beside it.
    Page(Shape),
    /// Something that is not in the envelope.
    Plain(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    Limit,
    MultiLimit,
    SetOverride,
    GetOverride,
    ListOverrides,
    DeleteOverride,
    DeleteNamespace,
    Peek,
    Reset,
    Liveness,
    Livez,
    Readyz,
    Metrics,
    OpenApi,
}

/// In the order of how often they are asked for: dispatch walks from the top.
pub const ROUTES: &[Route] = &[
    post::<wire::LimitRequest<'static>>(
        "/v2/ratelimit.limit",
        Endpoint::Limit,
        "ratelimit.<namespace id|*>.limit",
        "Spend from one limit. A denial is 200 with `success: false`. Unknown namespaces are made.",
        Answers::Data(wire::LimitReply::SHAPE),
    ),
    post::<wire::MultiLimitRequest<'static>>(
        "/v2/ratelimit.multiLimit",
        Endpoint::MultiLimit,
        "ratelimit.<namespace id|*>.limit",
        "Spend from many limits, all or nothing.",
        Answers::Data(wire::MultiLimitReply::SHAPE),
    ),
    post::<wire::PeekRequest<'static>>(
        "/v2/limits.peek",
        Endpoint::Peek,
        "limits.*.peek",
        "Look at a counter without spending.",
        Answers::Data(wire::PeekReply::SHAPE),
    ),
    post::<wire::ResetRequest<'static>>(
        "/v2/limits.reset",
        Endpoint::Reset,
        "limits.*.reset",
        "Set the counters of one identifier, or of a whole namespace, back.",
        Answers::Data(wire::ResetReply::SHAPE),
    ),
    post::<wire::SetOverrideRequest<'static>>(
        "/v2/ratelimit.setOverride",
        Endpoint::SetOverride,
        "ratelimit.<namespace id|*>.set_override",
        "Set a limit over the one that callers send, for an identifier or a pattern.",
        Answers::Data(wire::SetOverrideReply::SHAPE),
    ),
    post::<wire::GetOverrideRequest<'static>>(
        "/v2/ratelimit.getOverride",
        Endpoint::GetOverride,
        "ratelimit.<namespace id|*>.read_override",
        "The override that counts for an identifier.",
        Answers::Data(wire::OverrideReply::SHAPE),
    ),
    post::<wire::ListOverridesRequest<'static>>(
        "/v2/ratelimit.listOverrides",
        Endpoint::ListOverrides,
        "ratelimit.<namespace id|*>.read_override",
        "All overrides of a namespace, page by page.",
        Answers::Page(wire::OverrideReply::SHAPE),
    ),
    post::<wire::DeleteOverrideRequest<'static>>(
        "/v2/ratelimit.deleteOverride",
        Endpoint::DeleteOverride,
        "ratelimit.<namespace id|*>.delete_override",
        "Delete the override of exactly this identifier.",
        Answers::Data(wire::Empty::SHAPE),
    ),
    post::<wire::DeleteNamespaceRequest<'static>>(
        "/v2/ratelimit.deleteNamespace",
        Endpoint::DeleteNamespace,
        "ratelimit.<namespace id|*>.delete_namespace",
        "Delete a namespace. Its name answers 410 from then on.",
        Answers::Data(wire::Empty::SHAPE),
    ),
    get(
        "/v2/liveness",
        Endpoint::Liveness,
        "Is the server there?",
        Answers::Data(wire::LivenessReply::SHAPE),
    ),
    get(
        "/livez",
        Endpoint::Livez,
        "Is the process alive? Never asks a dependency.",
        Answers::Plain("text/plain"),
    ),
    get(
        "/readyz",
        Endpoint::Readyz,
        "May traffic be sent here? 503 while starting and while draining.",
        Answers::Plain("text/plain"),
    ),
    get(
        "/metrics",
        Endpoint::Metrics,
        "Metrics in the OpenMetrics text format.",
        Answers::Plain(METRICS_TYPE),
    ),
    get("/openapi.json", Endpoint::OpenApi, "This document.", Answers::Plain("application/json")),
];

pub const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

// === impl Route ===

impl Route {
    pub fn find(path: &str) -> Option<&'static Self> {
        ROUTES.iter().find(|route| route.path == path)
    }

    pub fn method(&self) -> Method {
        match self.takes {
            Takes::Nothing => Method::GET,
            Takes::Body(_) => Method::POST,
        }
    }

    /// HEAD is answered wherever GET is, as probes expect.
    pub fn accepts(&self, method: &Method) -> bool {
        *method == self.method() || (*method == Method::HEAD && self.method() == Method::GET)
    }

    pub fn allowed(&self) -> &'static str {
        match self.takes {
            Takes::Nothing => "GET, HEAD",
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
    }
}

const fn get(
    path: &'static str,
    endpoint: Endpoint,
    about: &'static str,
    answers: Answers,
) -> Route {
    Route { path, endpoint, permission: None, about, takes: Takes::Nothing, answers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_stands_in_the_table_once() {
        for (at, route) in ROUTES.iter().enumerate() {
            assert!(
                ROUTES[at + 1..].iter().all(|other| other.path != route.path),
                "{}",
                route.path
            );
        }
    }

    #[test]
    fn every_route_with_a_body_needs_a_permission() {
        for route in ROUTES {
            assert_eq!(
                matches!(route.takes, Takes::Body(_)),
                route.permission.is_some(),
                "{}",
                route.path
            );
        }
    }
}
