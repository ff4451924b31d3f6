//! `permissions.*Role`: permissions under one name. A role is named by its id or its name.

use std::borrow::Cow;

use crate::keys::PERMISSIONS;
use crate::page::{CURSOR_ABOUT, LIMIT_ABOUT, PAGE_LIMIT, PAGE_SEARCH, ROLE_CURSOR};
use crate::part::Text;
use crate::permissions::{DESCRIPTION, DESCRIPTION_ABOUT, Permission};
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Breach, Chars, Rule, Shape};
use crate::spelling::ID;

const NAME: Shape = Shape::Text(Chars { min: 1, max: 128 });
/// A role where it is named: an id is longer than a name may be.
pub(crate) const ROLE: Shape = Shape::Text(Chars { min: 1, max: 255 });
const ROLE_ABOUT: &str = "Its id or its name.";
const NAME_ABOUT: &str = "Unique; keys are given roles by it.";

request! {
    /// Body of `permissions.createRole`.
    CreateRoleRequest<'a> {
        required name "name": Text<'a> = NAME, NAME_ABOUT;
        optional description "description": Text<'a> = DESCRIPTION, DESCRIPTION_ABOUT;
        optional permissions "permissions": Vec<Text<'a>> = PERMISSIONS, "Slugs of its permissions; new ones are made.";
    }
}

reply! {
    /// Answer of `permissions.createRole`.
    CreateRoleReply<'a> {
        required role_id "roleId": Cow<'a, str> = ID, "Id of the new role.";
    }
}

request! {
    /// Body of `permissions.getRole` and `permissions.deleteRole`, which ask alike.
    GetRoleRequest<'a> {
        required role "role": Text<'a> = ROLE, ROLE_ABOUT;
    }
}

pub type DeleteRoleRequest<'a> = GetRoleRequest<'a>;

request! {
    /// Body of `permissions.listRoles`.
    ListRolesRequest<'a> {
        optional limit "limit": u64 = PAGE_LIMIT, LIMIT_ABOUT;
        optional cursor "cursor": Text<'a> = ROLE_CURSOR, CURSOR_ABOUT;
        optional search "search": Text<'a> = PAGE_SEARCH, "Only roles whose name or id holds this.";
    }
}

request! {
    /// Body of `permissions.updateRole`.
    UpdateRoleRequest<'a> {
        required role "role": Text<'a> = ROLE, ROLE_ABOUT;
        optional name "name": Text<'a> = NAME, NAME_ABOUT;
        patch description "description": Text<'a> = DESCRIPTION, DESCRIPTION_ABOUT;
    }
}

request! {
    /// Body of `permissions.setRolePermissions`.
    SetRolePermissionsRequest<'a> {
        optional role "role": Text<'a> = ROLE, ROLE_ABOUT;
        optional role_id "roleId": Text<'a> = ROLE, "The older spelling of `role`.";
        required permissions "permissions": Vec<Text<'a>> = PERMISSIONS, "Slugs of all its permissions from now on.";
    }
    rules {
        ROLE_IS_NAMED => |it| it.role.is_some() || it.role_id.is_some();
    }
}

impl SetRolePermissionsRequest<'_> {
    /// The role that is meant; `role` wins where both are sent.
    pub fn role(&self) -> &str {
        self.role.as_deref().or(self.role_id.as_deref()).unwrap_or_default()
    }
}

const ROLE_IS_NAMED: Rule = Rule {
    about: "Either `role` or `roleId` is required.",
    breach: |given| {
        let named = given.contains_key("role") || given.contains_key("roleId");
        (!named).then(|| Breach {
            field: "role",
            message: "Is required and missing.".into(),
            fix: "Send the role's id or name.".into(),
        })
    },
};

reply! {
    /// A role, alone or in a list.
    Role<'a> {
        required id "id": Cow<'a, str> = ID, "Its id.";
        required name "name": Cow<'a, str> = NAME, NAME_ABOUT;
        optional description "description": Cow<'a, str> = DESCRIPTION, DESCRIPTION_ABOUT;
        listed permissions "permissions": Vec<Permission<'a>> =
            Shape::List { of: &Permission::SHAPE, min: 0, max: 1_000 }, "What it permits.";
    }
}
