//! `permissions.*`: permissions, and roles that hold several.

use tollkeeper_wire::{
    CreatePermissionReply, CreatePermissionRequest, CreateRoleReply, CreateRoleRequest,
    DeletePermissionRequest, DeleteRoleRequest, GetPermissionRequest, GetRoleRequest,
    ListPermissionsRequest, ListRolesRequest, Permission, Role, SetRolePermissionsRequest,
    UpdatePermissionRequest, UpdateRoleRequest,
};

use crate::client::{Client, Page};
use crate::error::ClientError;

impl Client {
    pub async fn create_permission(
        &self,
        ask: &CreatePermissionRequest<'_>,
    ) -> Result<CreatePermissionReply<'static>, ClientError> {
        self.call("permissions.createPermission", ask).await
    }

    pub async fn get_permission(
        &self,
        ask: &GetPermissionRequest<'_>,
    ) -> Result<Permission<'static>, ClientError> {
        self.call("permissions.getPermission", ask).await
    }

    pub async fn list_permissions(
        &self,
        ask: &ListPermissionsRequest<'_>,
    ) -> Result<Page<Permission<'static>>, ClientError> {
        self.page("permissions.listPermissions", ask).await
    }

    pub async fn update_permission(
        &self,
        ask: &UpdatePermissionRequest<'_>,
    ) -> Result<Permission<'static>, ClientError> {
        self.call("permissions.updatePermission", ask).await
    }

    pub async fn delete_permission(
        &self,
        ask: &DeletePermissionRequest<'_>,
    ) -> Result<(), ClientError> {
        self.done("permissions.deletePermission", ask).await
    }

    pub async fn create_role(
        &self,
        ask: &CreateRoleRequest<'_>,
    ) -> Result<CreateRoleReply<'static>, ClientError> {
        self.call("permissions.createRole", ask).await
    }

    pub async fn get_role(&self, ask: &GetRoleRequest<'_>) -> Result<Role<'static>, ClientError> {
        self.call("permissions.getRole", ask).await
    }

    pub async fn list_roles(
        &self,
        ask: &ListRolesRequest<'_>,
    ) -> Result<Page<Role<'static>>, ClientError> {
        self.page("permissions.listRoles", ask).await
    }

    pub async fn update_role(
        &self,
        ask: &UpdateRoleRequest<'_>,
    ) -> Result<Role<'static>, ClientError> {
        self.call("permissions.updateRole", ask).await
    }

    /// Answers with all permissions of the role.
    pub async fn set_role_permissions(
        &self,
        ask: &SetRolePermissionsRequest<'_>,
    ) -> Result<Vec<Permission<'static>>, ClientError> {
        self.call("permissions.setRolePermissions", ask).await
    }

    pub async fn delete_role(&self, ask: &DeleteRoleRequest<'_>) -> Result<(), ClientError> {
        self.done("permissions.deleteRole", ask).await
    }
}
