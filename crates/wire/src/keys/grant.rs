//! Giving permissions and roles to a key and taking them away. Every call answers with the whole resulting set.

use crate::keys::{PERMISSIONS, ROLES};
use crate::part::Text;
use crate::request::request;
use crate::roles::ROLE;
use crate::schema::Shape;
use crate::spelling::{ID, PERMISSION_SLUG};

const SOME_PERMISSIONS: Shape = Shape::List { of: &PERMISSION_SLUG, min: 1, max: 1_000 };
const SOME_ROLES: Shape = Shape::List { of: &ROLE, min: 1, max: 100 };

request! {
    /// Body of `keys.addPermissions` and `keys.removePermissions`, which ask alike.
    AddPermissionsRequest<'a> {
        required key_id "keyId": Text<'a> = ID, "Id of the key.";
        required permissions "permissions": Vec<Text<'a>> = SOME_PERMISSIONS, "Permissions to add or remove.";
    }
}

pub type RemovePermissionsRequest<'a> = AddPermissionsRequest<'a>;

request! {
    /// Body of `keys.setPermissions`.
    SetPermissionsRequest<'a> {
        required key_id "keyId": Text<'a> = ID, "Id of the key.";
        required permissions "permissions": Vec<Text<'a>> = PERMISSIONS, "All its direct permissions from now on.";
    }
}

request! {
    /// Body of `keys.addRoles` and `keys.removeRoles`, which ask alike.
    AddRolesRequest<'a> {
        required key_id "keyId": Text<'a> = ID, "Id of the key.";
        required roles "roles": Vec<Text<'a>> = SOME_ROLES, "Names of roles to add or remove.";
    }
}

pub type RemoveRolesRequest<'a> = AddRolesRequest<'a>;

request! {
    /// Body of `keys.setRoles`.
    SetRolesRequest<'a> {
        required key_id "keyId": Text<'a> = ID, "Id of the key.";
        required roles "roles": Vec<Text<'a>> = ROLES, "Names of all its roles from now on.";
    }
}
