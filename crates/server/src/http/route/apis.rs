//! The rows of `apis.*`.

use tollkeeper_wire as wire;
use wire::Described;

use super::{Answers, Endpoint, Route, change, post};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApiCall {
    Create,
    Get,
    Delete,
    ListKeys,
}

pub const ROUTES: &[Route] = &[
    change::<wire::CreateApiRequest<'static>>(
        "/v2/apis.createApi",
        Endpoint::Apis(ApiCall::Create),
        "api.*.create_api",
        "Make a project, without default limits.",
        Answers::Data(wire::CreateApiReply::SHAPE),
    ),
    post::<wire::GetApiRequest<'static>>(
        "/v2/apis.getApi",
        Endpoint::Apis(ApiCall::Get),
        "api.<api id|*>.read_api",
        "One project, by its id.",
        Answers::Data(wire::Api::SHAPE),
    ),
    change::<wire::DeleteApiRequest<'static>>(
        "/v2/apis.deleteApi",
        Endpoint::Apis(ApiCall::Delete),
        "api.<api id|*>.delete_api",
        "Delete a project. Its keys are unknown from then on.",
        Answers::Data(wire::Empty::SHAPE),
    ),
    post::<wire::ListKeysRequest<'static>>(
        "/v2/apis.listKeys",
        Endpoint::Apis(ApiCall::ListKeys),
        "api.<api id|*>.read_key",
        "The keys of a project, page by page. Also needs `api.<api id|*>.read_api`, and `decrypt_key` to see their texts.",
        Answers::Page(wire::Key::SHAPE),
    ),
];
