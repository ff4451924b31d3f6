//! The rows of `system.*`.

use tollkeeper_wire as wire;
use wire::Described;

use super::{Answers, Endpoint, Route, change, post};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SystemCall {
    SetMode,
    Status,
}

pub const ROUTES: &[Route] = &[
    change::<wire::SetModeRequest<'static>>(
        "/v2/system.setMode",
        Endpoint::System(SystemCall::SetMode),
        "system.*.setMode",
        "Say where limits are counted: for the whole fleet (the operator's root key only) or for one tenant.",
        Answers::Data(wire::Empty::SHAPE),
    ),
    post::<wire::StatusRequest>(
        "/v2/system.status",
        Endpoint::System(SystemCall::Status),
        "system.*.status",
        "How this server is doing.",
        Answers::Data(wire::StatusReply::SHAPE),
    ),
];
