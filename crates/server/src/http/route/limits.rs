//! The rows of `ratelimit.*` and `limits.*`.

use tollkeeper_wire as wire;
use wire::Described;

use super::{Answers, Endpoint, Route, change, post, spend};

pub const ROUTES: &[Route] = &[
    spend::<wire::LimitRequest<'static>>(
        "/v2/ratelimit.limit",
        Endpoint::Limit,
        "ratelimit.<namespace id|*>.limit",
        "Spend from one limit. A denial is 200 with `success: false`. Unknown namespaces are made.",
        Answers::Data(wire::LimitReply::SHAPE),
    ),
    spend::<wire::MultiLimitRequest<'static>>(
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
    change::<wire::ResetRequest<'static>>(
        "/v2/limits.reset",
        Endpoint::Reset,
        "limits.*.reset",
        "Set counters back: of one identifier or a whole namespace, of a key, or of an identity.",
        Answers::Data(wire::ResetReply::SHAPE),
    ),
    post::<wire::StatsRequest<'static>>(
        "/v2/limits.stats",
        Endpoint::Stats,
        "limits.*.stats",
        "How often limits were asked and said no: of a namespace, a rule or a key, or of all.",
        Answers::Data(wire::StatsReply::LIST),
    ),
    change::<wire::SetOverrideRequest<'static>>(
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
    change::<wire::DeleteOverrideRequest<'static>>(
        "/v2/ratelimit.deleteOverride",
        Endpoint::DeleteOverride,
        "ratelimit.<namespace id|*>.delete_override",
        "Delete the override of exactly this identifier.",
        Answers::Data(wire::Empty::SHAPE),
    ),
    change::<wire::DeleteNamespaceRequest<'static>>(
        "/v2/ratelimit.deleteNamespace",
        Endpoint::DeleteNamespace,
        "ratelimit.<namespace id|*>.delete_namespace",
        "Delete a namespace. Its name answers 410 from then on.",
        Answers::Data(wire::Empty::SHAPE),
    ),
];
