//! The rows of `permissions.*`: permissions, and roles, which hold them.

use tollkeeper_wire as wire;
use wire::{Described, Shape};

use super::{Answers, Endpoint, Route, change, post};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermissionCall {
    Create,
    Get,
    List,
    Update,
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoleCall {
    Create,
    Get,
    List,
    Update,
    Delete,
    SetPermissions,
}

pub const ROUTES: &[Route] = &[
    change::<wire::CreatePermissionRequest<'static>>(
        "/v2/permissions.createPermission",
        Endpoint::Permissions(PermissionCall::Create),
        "rbac.*.create_permission",
        "Make a permission that keys and roles can carry.",
        Answers::Data(wire::CreatePermissionReply::SHAPE),
    ),
    post::<wire::GetPermissionRequest<'static>>(
        "/v2/permissions.getPermission",
        Endpoint::Permissions(PermissionCall::Get),
        "rbac.*.read_permission",
        "One permission, by id or slug.",
        Answers::Data(wire::Permission::SHAPE),
    ),
    post::<wire::ListPermissionsRequest<'static>>(
        "/v2/permissions.listPermissions",
        Endpoint::Permissions(PermissionCall::List),
        "rbac.*.read_permission",
        "All permissions, page by page.",
        Answers::Page(wire::Permission::SHAPE),
    ),
    change::<wire::UpdatePermissionRequest<'static>>(
        "/v2/permissions.updatePermission",
        Endpoint::Permissions(PermissionCall::Update),
        "rbac.*.update_permission",
        "Change a permission; in force with the next verification.",
        Answers::Data(wire::Permission::SHAPE),
    ),
    change::<wire::DeletePermissionRequest<'static>>(
        "/v2/permissions.deletePermission",
        Endpoint::Permissions(PermissionCall::Delete),
        "rbac.*.delete_permission",
        "Delete a permission; keys and roles lose it.",
        Answers::Data(wire::Empty::SHAPE),
    ),
    change::<wire::CreateRoleRequest<'static>>(
        "/v2/permissions.createRole",
        Endpoint::Roles(RoleCall::Create),
        "rbac.*.create_role",
        "Make a role: permissions under one name.",
        Answers::Data(wire::CreateRoleReply::SHAPE),
    ),
    post::<wire::GetRoleRequest<'static>>(
        "/v2/permissions.getRole",
        Endpoint::Roles(RoleCall::Get),
        "rbac.*.read_role",
        "One role, by id or name.",
        Answers::Data(wire::Role::SHAPE),
    ),
    post::<wire::ListRolesRequest<'static>>(
        "/v2/permissions.listRoles",
        Endpoint::Roles(RoleCall::List),
        "rbac.*.read_role",
        "All roles, page by page.",
        Answers::Page(wire::Role::SHAPE),
    ),
    change::<wire::UpdateRoleRequest<'static>>(
        "/v2/permissions.updateRole",
        Endpoint::Roles(RoleCall::Update),
        "rbac.*.update_role",
        "Change a role's name or description.",
        Answers::Data(wire::Role::SHAPE),
    ),
    change::<wire::DeleteRoleRequest<'static>>(
        "/v2/permissions.deleteRole",
        Endpoint::Roles(RoleCall::Delete),
        "rbac.*.delete_role",
        "Delete a role; keys lose what it gave them.",
        Answers::Data(wire::Empty::SHAPE),
    ),
    change::<wire::SetRolePermissionsRequest<'static>>(
        "/v2/permissions.setRolePermissions",
        Endpoint::Roles(RoleCall::SetPermissions),
        "rbac.*.add_permission_to_role and rbac.*.remove_permission_from_role",
        "Give a role these permissions and no others.",
        Answers::Data(Shape::List { of: &wire::Permission::SHAPE, min: 0, max: 1_000 }),
    ),
];
