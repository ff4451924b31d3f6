//! The rows of `rootKeys.*`.

use tollkeeper_wire as wire;
use wire::Described;

use super::{Answers, Endpoint, Route, change, post};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RootKeyCall {
    Create,
    List,
    Update,
    Delete,
    Reroll,
}

pub const ROUTES: &[Route] = &[
    change::<wire::CreateRootKeyRequest<'static>>(
        "/v2/rootKeys.createKey",
        Endpoint::RootKeys(RootKeyCall::Create),
        "rootKeys.*.createKey",
        "Make a root key that may do no more than the one that asks.",
        Answers::Data(wire::KeyReply::SHAPE),
    ),
    post::<wire::ListRootKeysRequest<'static>>(
        "/v2/rootKeys.listKeys",
        Endpoint::RootKeys(RootKeyCall::List),
        "rootKeys.*.listKeys",
        "All root keys, page by page.",
        Answers::Page(wire::RootKey::SHAPE),
    ),
    change::<wire::UpdateRootKeyRequest<'static>>(
        "/v2/rootKeys.updateKey",
        Endpoint::RootKeys(RootKeyCall::Update),
        "rootKeys.*.updateKey",
        "Change a root key, never to more than the one that asks may do.",
        Answers::Data(wire::Empty::SHAPE),
    ),
    change::<wire::DeleteRootKeyRequest<'static>>(
        "/v2/rootKeys.deleteKey",
        Endpoint::RootKeys(RootKeyCall::Delete),
        "rootKeys.*.deleteKey",
        "Delete a root key; it is refused from then on.",
        Answers::Data(wire::Empty::SHAPE),
    ),
    change::<wire::RerollRootKeyRequest<'static>>(
        "/v2/rootKeys.rerollKey",
        Endpoint::RootKeys(RootKeyCall::Reroll),
        "rootKeys.*.rerollKey",
        "Replace a root key by a new one with the same permissions.",
        Answers::Data(wire::KeyReply::SHAPE),
    ),
];
