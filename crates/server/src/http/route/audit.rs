//! The rows of `audit.*`.

use tollkeeper_wire as wire;
use wire::Described;

use super::{Answers, Endpoint, Route, post};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuditCall {
    Search,
    Changes,
    Verify,
}

pub const ROUTES: &[Route] = &[
    post::<wire::SearchAuditRequest<'static>>(
        "/v2/audit.search",
        Endpoint::Audit(AuditCall::Search),
        "audit.*.search",
        "What was decided, newest first: every denial, and a share of what was allowed.",
        Answers::Page(wire::AuditedDecision::SHAPE),
    ),
    post::<wire::ListChangesRequest<'static>>(
        "/v2/audit.changes",
        Endpoint::Audit(AuditCall::Changes),
        "audit.*.changes",
        "Who changed what, newest first, with what it was before and after.",
        Answers::Page(wire::AdminChange::SHAPE),
    ),
    post::<wire::VerifyAuditRequest>(
        "/v2/audit.verify",
        Endpoint::Audit(AuditCall::Verify),
        "audit.*.verify",
        "Whether the record of changes is whole.",
        Answers::Data(wire::VerifyAuditReply::SHAPE),
    ),
];
