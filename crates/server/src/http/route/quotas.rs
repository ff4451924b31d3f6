//! The rows of `quotas.*`.

use tollkeeper_wire as wire;
use wire::Described;

use super::{Answers, Endpoint, Route, change, post};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuotaCall {
    Get,
    Set,
    Block,
    Unblock,
}

pub const ROUTES: &[Route] = &[
    post::<wire::GetQuotaRequest<'static>>(
        "/v2/quotas.get",
        Endpoint::Quotas(QuotaCall::Get),
        "quotas.*.get",
        "What one identity may do.",
        Answers::Data(wire::QuotaReply::SHAPE),
    ),
    change::<wire::SetQuotaRequest<'static>>(
        "/v2/quotas.set",
        Endpoint::Quotas(QuotaCall::Set),
        "quotas.*.set",
        "Set an identity's tier and limits of its own; null clears.",
        Answers::Data(wire::QuotaReply::SHAPE),
    ),
    change::<wire::BlockRequest<'static>>(
        "/v2/quotas.block",
        Endpoint::Quotas(QuotaCall::Block),
        "quotas.*.block",
        "Refuse everything to an identity, whatever its keys say.",
        Answers::Data(wire::QuotaReply::SHAPE),
    ),
    change::<wire::UnblockRequest<'static>>(
        "/v2/quotas.unblock",
        Endpoint::Quotas(QuotaCall::Unblock),
        "quotas.*.unblock",
        "Lift a block.",
        Answers::Data(wire::QuotaReply::SHAPE),
    ),
];
