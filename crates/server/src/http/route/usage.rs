//! The rows of `usage.*`.

use tollkeeper_wire as wire;
use wire::Described;

use super::{Answers, Endpoint, Route, post};

/// As a part is sent.
pub const CSV: &str = "text/csv; charset=utf-8";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UsageCall {
    Query,
    Export,
    Flush,
}

pub const ROUTES: &[Route] = &[
    post::<wire::QueryUsageRequest<'static>>(
        "/v2/usage.query",
        Endpoint::Usage(UsageCall::Query),
        "usage.*.query",
        "What keys were used for, by time and then key, page by page.",
        Answers::Page(wire::UsageRow::SHAPE),
    ),
    post::<wire::ExportUsageRequest<'static>>(
        "/v2/usage.export",
        Endpoint::Usage(UsageCall::Export),
        "usage.*.export",
        "The same as lines of JSON or as CSV, in parts that can be resumed where they broke off.",
        Answers::Plain(&["application/x-ndjson", CSV]),
    ),
    post::<wire::FlushUsageRequest>(
        "/v2/usage.flush",
        Endpoint::Usage(UsageCall::Flush),
        "usage.*.flush",
        "Bring everything that was recorded before this call to the database; answers when it is there.",
        Answers::Data(wire::FlushUsageReply::SHAPE),
    ),
];
