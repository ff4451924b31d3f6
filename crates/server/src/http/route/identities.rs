//! The rows of `identities.*`.

use tollkeeper_wire as wire;
use wire::Described;

use super::{Answers, Endpoint, Route, change, post};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdentityCall {
    Create,
    Get,
    List,
    Update,
    Delete,
}

pub const ROUTES: &[Route] = &[
    change::<wire::CreateIdentityRequest<'static>>(
        "/v2/identities.createIdentity",
        Endpoint::Identities(IdentityCall::Create),
        "identity.*.create_identity",
        "Make an identity, whose limits all its keys share.",
        Answers::Data(wire::CreateIdentityReply::SHAPE),
    ),
    post::<wire::GetIdentityRequest<'static>>(
        "/v2/identities.getIdentity",
        Endpoint::Identities(IdentityCall::Get),
        "identity.*.read_identity",
        "One identity, by id or by your own name.",
        Answers::Data(wire::Identity::SHAPE),
    ),
    post::<wire::ListIdentitiesRequest<'static>>(
        "/v2/identities.listIdentities",
        Endpoint::Identities(IdentityCall::List),
        "identity.*.read_identity",
        "All identities, page by page.",
        Answers::Page(wire::Identity::SHAPE),
    ),
    change::<wire::UpdateIdentityRequest<'static>>(
        "/v2/identities.updateIdentity",
        Endpoint::Identities(IdentityCall::Update),
        "identity.*.update_identity",
        "Change an identity; in force with the next verification.",
        Answers::Data(wire::Identity::SHAPE),
    ),
    change::<wire::DeleteIdentityRequest<'static>>(
        "/v2/identities.deleteIdentity",
        Endpoint::Identities(IdentityCall::Delete),
        "identity.*.delete_identity",
        "Delete an identity; its keys stay and belong to nobody.",
        Answers::Done,
    ),
];
