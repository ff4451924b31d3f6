//! `keys.*`: making keys, verifying them, and everything that can happen to one.

use tollkeeper_wire::{
    AddPermissionsRequest, AddRolesRequest, CreateKeyRequest, CreditsReply, DeleteKeyRequest,
    GetKeyRequest, Key, KeyReply, MigrateKeysReply, MigrateKeysRequest, Permission,
    RemovePermissionsRequest, RemoveRolesRequest, RerollKeyRequest, RevokeKeyReply,
    RevokeKeyRequest, Role, SetPermissionsRequest, SetRolesRequest, UpdateCreditsRequest,
    UpdateKeyRequest, VerifyKeyReply, VerifyKeyRequest, WhoamiRequest,
};

use crate::client::Client;
use crate::error::ClientError;

impl Client {
    /// The answer is the only place where the key is shown.
    pub async fn create_key(
        &self,
        ask: &CreateKeyRequest<'_>,
    ) -> Result<KeyReply<'static>, ClientError> {
        self.call("keys.createKey", ask).await
    }

    /// A refusal of the key is an answer with `valid: false`.
    pub async fn verify_key(
        &self,
        ask: &VerifyKeyRequest<'_>,
    ) -> Result<VerifyKeyReply<'static>, ClientError> {
        self.call("keys.verifyKey", ask).await
    }

    pub async fn get_key(&self, ask: &GetKeyRequest<'_>) -> Result<Key<'static>, ClientError> {
        self.call("keys.getKey", ask).await
    }

    pub async fn whoami(&self, ask: &WhoamiRequest<'_>) -> Result<Key<'static>, ClientError> {
        self.call("keys.whoami", ask).await
    }

    pub async fn update_key(&self, ask: &UpdateKeyRequest<'_>) -> Result<(), ClientError> {
        self.done("keys.updateKey", ask).await
    }

    pub async fn update_credits(
        &self,
        ask: &UpdateCreditsRequest<'_>,
    ) -> Result<CreditsReply, ClientError> {
        self.call("keys.updateCredits", ask).await
    }

    /// The key is unknown from then on.
    pub async fn delete_key(&self, ask: &DeleteKeyRequest<'_>) -> Result<(), ClientError> {
        self.done("keys.deleteKey", ask).await
    }

    /// The key is refused from then on, and known to be revoked.
    pub async fn revoke_key(
        &self,
        ask: &RevokeKeyRequest<'_>,
    ) -> Result<RevokeKeyReply, ClientError> {
        self.call("keys.revoke", ask).await
    }

    /// A new key with everything that the old one had.
    pub async fn reroll_key(
        &self,
        ask: &RerollKeyRequest<'_>,
    ) -> Result<KeyReply<'static>, ClientError> {
        self.call("keys.rerollKey", ask).await
    }

    /// Answers with all direct permissions of the key.
    pub async fn add_permissions(
        &self,
        ask: &AddPermissionsRequest<'_>,
    ) -> Result<Vec<Permission<'static>>, ClientError> {
        self.call("keys.addPermissions", ask).await
    }

    /// Answers with all direct permissions of the key.
    pub async fn remove_permissions(
        &self,
        ask: &RemovePermissionsRequest<'_>,
    ) -> Result<Vec<Permission<'static>>, ClientError> {
        self.call("keys.removePermissions", ask).await
    }

    pub async fn set_permissions(
        &self,
        ask: &SetPermissionsRequest<'_>,
    ) -> Result<Vec<Permission<'static>>, ClientError> {
        self.call("keys.setPermissions", ask).await
    }

    /// Answers with all roles of the key.
    pub async fn add_roles(
        &self,
        ask: &AddRolesRequest<'_>,
    ) -> Result<Vec<Role<'static>>, ClientError> {
        self.call("keys.addRoles", ask).await
    }

    /// Answers with all roles of the key.
    pub async fn remove_roles(
        &self,
        ask: &RemoveRolesRequest<'_>,
    ) -> Result<Vec<Role<'static>>, ClientError> {
        self.call("keys.removeRoles", ask).await
    }

    pub async fn set_roles(
        &self,
        ask: &SetRolesRequest<'_>,
    ) -> Result<Vec<Role<'static>>, ClientError> {
        self.call("keys.setRoles", ask).await
    }

    /// Brings in keys that were made elsewhere.
    pub async fn migrate_keys(
        &self,
        ask: &MigrateKeysRequest<'_>,
    ) -> Result<MigrateKeysReply<'static>, ClientError> {
        self.call("keys.migrateKeys", ask).await
    }
}
