//! `permissions.*Permission`: what a key may be permitted. A permission is named by its id or its slug.

use std::borrow::Cow;

use crate::page::{CURSOR_ABOUT, LIMIT_ABOUT, PAGE_LIMIT, PAGE_SEARCH, PERMISSION_CURSOR};
use crate::part::Text;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Chars, Shape};
use crate::spelling::{ID, PERMISSION_SLUG};

const NAME: Shape = Shape::Text(Chars { min: 1, max: 512 });
pub(crate) const DESCRIPTION: Shape = Shape::Text(Chars { min: 0, max: 512 });
const PERMISSION: Shape = Shape::Text(Chars { min: 1, max: 255 });
const PERMISSION_ABOUT: &str = "Its id or its slug.";
const NAME_ABOUT: &str = "For people.";
const SLUG_ABOUT: &str = "What keys carry and verifications ask for.";
pub(crate) const DESCRIPTION_ABOUT: &str = "What it is for.";

request! {
    /// Body of `permissions.createPermission`.
    CreatePermissionRequest<'a> {
        required name "name": Text<'a> = NAME, NAME_ABOUT;
        required slug "slug": Text<'a> = PERMISSION_SLUG, SLUG_ABOUT;
        optional description "description": Text<'a> = DESCRIPTION, DESCRIPTION_ABOUT;
    }
}

reply! {
    /// Answer of `permissions.createPermission`.
    CreatePermissionReply<'a> {
        required permission_id "permissionId": Cow<'a, str> = ID, "Id of the new permission.";
    }
}

request! {
    /// Body of `permissions.getPermission` and `permissions.deletePermission`, which ask alike.
    GetPermissionRequest<'a> {
        required permission "permission": Text<'a> = PERMISSION, PERMISSION_ABOUT;
    }
}

pub type DeletePermissionRequest<'a> = GetPermissionRequest<'a>;

request! {
    /// Body of `permissions.listPermissions`.
    ListPermissionsRequest<'a> {
        optional limit "limit": u64 = PAGE_LIMIT, LIMIT_ABOUT;
        optional cursor "cursor": Text<'a> = PERMISSION_CURSOR, CURSOR_ABOUT;
        optional search "search": Text<'a> = PAGE_SEARCH, "Only permissions whose name or slug holds this.";
    }
}

request! {
    /// Body of `permissions.updatePermission`.
    UpdatePermissionRequest<'a> {
        required permission "permission": Text<'a> = PERMISSION, PERMISSION_ABOUT;
        optional name "name": Text<'a> = NAME, NAME_ABOUT;
        optional slug "slug": Text<'a> = PERMISSION_SLUG, SLUG_ABOUT;
        patch description "description": Text<'a> = DESCRIPTION, DESCRIPTION_ABOUT;
    }
}

reply! {
    /// A permission, alone or in a list.
    Permission<'a> {
        required id "id": Cow<'a, str> = ID, "Its id.";
        required name "name": Cow<'a, str> = NAME, NAME_ABOUT;
        required slug "slug": Cow<'a, str> = PERMISSION_SLUG, SLUG_ABOUT;
        optional description "description": Cow<'a, str> = DESCRIPTION, DESCRIPTION_ABOUT;
    }
}
