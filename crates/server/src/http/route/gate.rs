//! The rows of `gate.*`, and of `/check/*` for proxies.

use tollkeeper_wire as wire;
use wire::Described;

use super::{Answers, BODY_MAX, Effect, Endpoint, Route, Takes, post, spend};
use crate::forward_auth::Dialect;

pub const ROUTES: &[Route] = &[
    spend::<wire::CheckRequest<'static>>(
        "/v2/gate.check",
        Endpoint::GateCheck,
        "gate.*.check",
        "May this request pass? Key, owner, rules, quotas, limits and credits in one. A denial is 200 with `allowed: false`.",
        Answers::Data(wire::CheckReply::SHAPE),
    ),
    post::<wire::ExplainRequest<'static>>(
        "/v2/gate.explain",
        Endpoint::GateExplain,
        "gate.*.explain",
        "What every rule thinks of a request, and why. Spends nothing.",
        Answers::Data(wire::ExplainReply::SHAPE),
    ),
    Route {
        path: "/check/caddy",
        endpoint: Endpoint::Check(Dialect::Caddy),
        permission: None,
        about: "May this request pass? For Caddy's `forward_auth`: any method, no body; the end user's own key, and no root key.",
        takes: Takes::AnyMethod,
        answers: Answers::Proxy,
        effect: Effect::Asks,
        body_max: BODY_MAX,
    },
];
