//! The rows of `keys.*`.

use tollkeeper_wire as wire;
use wire::{Described, Shape};

use super::{Answers, Endpoint, Route, change, post, spend};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyCall {
    Create,
    Get,
    Whoami,
    Update,
    UpdateCredits,
    Delete,
    Revoke,
    Reroll,
    AddPermissions,
    RemovePermissions,
    SetPermissions,
    AddRoles,
    RemoveRoles,
    SetRoles,
    Migrate,
}

const PERMISSIONS: Shape = Shape::List { of: &wire::Permission::SHAPE, min: 0, max: 1_000 };
const ROLES: Shape = Shape::List { of: &wire::Role::SHAPE, min: 0, max: 100 };

pub const ROUTES: &[Route] = &[
    spend::<wire::VerifyKeyRequest<'static>>(
        "/v2/keys.verifyKey",
        Endpoint::VerifyKey,
        "api.<api id|*>.verify_key",
        "May this key do this now? Permissions, limits and credits in one decision, all or nothing.",
        Answers::Data(wire::VerifyKeyReply::SHAPE),
    ),
    change::<wire::CreateKeyRequest<'static>>(
        "/v2/keys.createKey",
        Endpoint::Keys(KeyCall::Create),
        "api.<api id|*>.create_key",
        "Make a key. Its text is in the answer and, unless it is recoverable, never again.",
        Answers::Data(wire::KeyReply::SHAPE),
    ),
    post::<wire::GetKeyRequest<'static>>(
        "/v2/keys.getKey",
        Endpoint::Keys(KeyCall::Get),
        "api.<api id|*>.read_key",
        "One key; with `decrypt`, and the permission `decrypt_key`, its text if it is recoverable.",
        Answers::Data(wire::Key::SHAPE),
    ),
    post::<wire::WhoamiRequest<'static>>(
        "/v2/keys.whoami",
        Endpoint::Keys(KeyCall::Whoami),
        "api.<api id|*>.read_key",
        "One key, by its text.",
        Answers::Data(wire::Key::SHAPE),
    ),
    change::<wire::UpdateKeyRequest<'static>>(
        "/v2/keys.updateKey",
        Endpoint::Keys(KeyCall::Update),
        "api.<api id|*>.update_key",
        "Change a key: absent keeps, null clears.",
        Answers::Data(wire::Empty::SHAPE),
    ),
    change::<wire::UpdateCreditsRequest<'static>>(
        "/v2/keys.updateCredits",
        Endpoint::Keys(KeyCall::UpdateCredits),
        "api.<api id|*>.update_key",
        "Set, raise or lower a key's credits.",
        Answers::Data(wire::CreditsReply::SHAPE),
    ),
    change::<wire::DeleteKeyRequest<'static>>(
        "/v2/keys.deleteKey",
        Endpoint::Keys(KeyCall::Delete),
        "api.<api id|*>.delete_key",
        "Delete a key. It is unknown from then on.",
        Answers::Data(wire::Empty::SHAPE),
    ),
    change::<wire::RevokeKeyRequest<'static>>(
        "/v2/keys.revoke",
        Endpoint::Keys(KeyCall::Revoke),
        "keys.*.revoke",
        "Revoke a key for good. It is known as revoked from then on.",
        Answers::Data(wire::RevokeKeyReply::SHAPE),
    ),
    change::<wire::RerollKeyRequest<'static>>(
        "/v2/keys.rerollKey",
        Endpoint::Keys(KeyCall::Reroll),
        "api.<api id|*>.create_key",
        "Put a new key in the place of an old one, which still works for a while.",
        Answers::Data(wire::KeyReply::SHAPE),
    ),
    change::<wire::AddPermissionsRequest<'static>>(
        "/v2/keys.addPermissions",
        Endpoint::Keys(KeyCall::AddPermissions),
        "rbac.*.add_permission_to_key",
        "Give a key permissions. Also needs `api.<api id|*>.update_key`.",
        Answers::Data(PERMISSIONS),
    ),
    change::<wire::RemovePermissionsRequest<'static>>(
        "/v2/keys.removePermissions",
        Endpoint::Keys(KeyCall::RemovePermissions),
        "rbac.*.remove_permission_from_key",
        "Take permissions from a key. Also needs `api.<api id|*>.update_key`.",
        Answers::Data(PERMISSIONS),
    ),
    change::<wire::SetPermissionsRequest<'static>>(
        "/v2/keys.setPermissions",
        Endpoint::Keys(KeyCall::SetPermissions),
        "rbac.*.add_permission_to_key",
        "Set a key's direct permissions. Also needs `rbac.*.remove_permission_from_key` and `api.<api id|*>.update_key`.",
        Answers::Data(PERMISSIONS),
    ),
    change::<wire::AddRolesRequest<'static>>(
        "/v2/keys.addRoles",
        Endpoint::Keys(KeyCall::AddRoles),
        "rbac.*.add_role_to_key",
        "Give a key roles. Also needs `api.<api id|*>.update_key`.",
        Answers::Data(ROLES),
    ),
    change::<wire::RemoveRolesRequest<'static>>(
        "/v2/keys.removeRoles",
        Endpoint::Keys(KeyCall::RemoveRoles),
        "rbac.*.remove_role_from_key",
        "Take roles from a key. Also needs `api.<api id|*>.update_key`.",
        Answers::Data(ROLES),
    ),
    change::<wire::SetRolesRequest<'static>>(
        "/v2/keys.setRoles",
        Endpoint::Keys(KeyCall::SetRoles),
        "rbac.*.add_role_to_key",
        "Set a key's roles. Also needs `rbac.*.remove_role_from_key` and `api.<api id|*>.update_key`.",
        Answers::Data(ROLES),
    ),
    change::<wire::MigrateKeysRequest<'static>>(
        "/v2/keys.migrateKeys",
        Endpoint::Keys(KeyCall::Migrate),
        "api.<api id|*>.create_key",
        "Bring in keys from elsewhere by their hashes.",
        Answers::Data(wire::MigrateKeysReply::SHAPE),
    ),
];
