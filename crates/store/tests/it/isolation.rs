//! A tenant can neither see nor touch anything of another, by any method, under any name.

use tollkeeper_decide::KeyHashes;
use tollkeeper_store::{
    By, CreditsChange, Deletion, Grant, IdentityPatch, ImportedKey, KeyPatch, KeyTerms, NewKey,
    NewProject, NewRole, Patch, PermissionPatch, ProjectPatch, RolePatch, RootKeyPatch, StoreError,
};

use crate::{Fresh, NOBODY, NOW, new_root_key, secret, texts};

on_both! {
    nothing_of_another_tenant_can_be_read,
    nothing_of_another_tenant_can_be_changed,
    two_tenants_may_use_the_same_names,
}

/// One of everything, in the first tenant; and the second tenant.
async fn populated(fresh: &Fresh) -> (String, String, tollkeeper_decide::KeyHash, String) {
    let role = NewRole { name: "r".to_owned(), permissions: texts(&["a"]), ..NewRole::default() };
    fresh.store.create_role(fresh.by(), role).await.unwrap();
    let terms =
        KeyTerms { external_id: Some("u".to_owned()), roles: texts(&["r"]), ..KeyTerms::default() };
    let (key, hash) = fresh.key(terms).await;
    let root_key = new_root_key(fresh.fresh_hash());
    let root_key = fresh.store.create_root_key(fresh.by(), root_key).await.unwrap().value;
    (fresh.second_tenant().await, key, hash, root_key)
}

async fn nothing_of_another_tenant_can_be_read(fresh: Fresh) {
    let (other, key, hash, root_key) = populated(&fresh).await;
    let (store, tenant) = (&fresh.store, fresh.tenant_id.as_str());
    let project = store.project(tenant, "p").await.unwrap().unwrap();
    let identity = store.identity(tenant, "u").await.unwrap().unwrap();
    let role = store.role(tenant, "r").await.unwrap().unwrap();
    let permission = store.permission(tenant, "a").await.unwrap().unwrap();
    for name in [project.id.as_str(), "p", "default/p"] {
        assert!(store.project(&other, name).await.unwrap().is_none());
    }
    for name in [identity.id.as_str(), "u"] {
        assert!(store.identity(&other, name).await.unwrap().is_none());
    }
    for name in [role.id.as_str(), "r"] {
        assert!(store.role(&other, name).await.unwrap().is_none());
    }
    for name in [permission.id.as_str(), "a"] {
        assert!(store.permission(&other, name).await.unwrap().is_none());
    }
    assert!(store.key_view(&other, &key, NOW).await.unwrap().is_none());
    let hashes = KeyHashes { ours: hash, imported: NOBODY };
    assert!(store.key_view_by_hash(&other, hashes, NOW).await.unwrap().is_none());
    assert!(store.root_key_view(&other, &root_key).await.unwrap().is_none());
    let listed = store.list_keys(&other, &project.id, None, None, 10, NOW).await;
    assert!(matches!(listed, Err(StoreError::NotFound { .. })));
    assert!(store.list_projects(&other, None, 10).await.unwrap().rows.is_empty());
    assert!(store.list_identities(&other, None, None, 10).await.unwrap().rows.is_empty());
    assert!(store.list_roles(&other, None, None, 10).await.unwrap().rows.is_empty());
    assert!(store.list_permissions(&other, None, None, 10).await.unwrap().rows.is_empty());
    assert_eq!(store.list_root_keys(&other, None, 10).await.unwrap().rows.len(), 1);
}

async fn nothing_of_another_tenant_can_be_changed(fresh: Fresh) {
    let (other, key, _, root_key) = populated(&fresh).await;
    let (store, tenant) = (&fresh.store, fresh.tenant_id.as_str());
    let by = By { tenant_id: &other, ..fresh.by() };
    let project = store.project(tenant, "p").await.unwrap().unwrap().id;
    let new_key = NewKey {
        id: None,
        project_id: project.clone(),
        secret: secret(fresh.fresh_hash()),
        terms: KeyTerms::default(),
    };
    let theirs = NewProject { name: "theirs".to_owned(), ..NewProject::default() };
    let theirs = store.create_project(by, theirs).await.unwrap().value.id;
    let with_our_role = NewKey {
        project_id: theirs,
        terms: KeyTerms { roles: texts(&["r"]), ..KeyTerms::default() },
        ..new_key.clone()
    };
    let imported = ImportedKey { id: None, hash: fresh.fresh_hash(), terms: KeyTerms::default() };
    let reroll = crate::reroll(secret(fresh.fresh_hash()), NOW);
    let off = KeyPatch { enabled: Some(false), ..KeyPatch::default() };
    let notes = fresh.count("SELECT COUNT(*) FROM admin_audit").await;
    let refusals = [
        ("create_key", store.create_key(by, new_key).await.map(drop)),
        ("create_key with our role", store.create_key(by, with_our_role).await.map(drop)),
        ("import", store.import_keys(by, &project, "m", vec![imported]).await.map(drop)),
        ("update_key", store.update_key(by, &key, off).await.map(drop)),
        ("credits", store.update_credits(by, &key, CreditsChange::Set(Some(1))).await.map(drop)),
        ("delete_key", store.delete_key(by, &key, Deletion::Permanent).await.map(drop)),
        ("revoke_key", store.revoke_key(by, &key, None).await.map(drop)),
        ("reroll_key", store.reroll_key(by, &key, reroll).await.map(drop)),
        ("permissions", store.change_key_permissions(by, &key, Grant::Set, &[]).await.map(drop)),
        ("roles", store.change_key_roles(by, &key, Grant::Set, &[]).await.map(drop)),
        (
            "update_project",
            store.update_project(by, &project, ProjectPatch::default()).await.map(drop),
        ),
        ("delete_project", store.delete_project(by, &project).await.map(drop)),
        (
            "update_identity",
            store.update_identity(by, "u", IdentityPatch::default()).await.map(drop),
        ),
        ("delete_identity", store.delete_identity(by, "u").await.map(drop)),
        (
            "update_permission",
            store.update_permission(by, "a", PermissionPatch::default()).await.map(drop),
        ),
        ("delete_permission", store.delete_permission(by, "a").await.map(drop)),
        ("update_role", store.update_role(by, "r", RolePatch::default()).await.map(drop)),
        ("delete_role", store.delete_role(by, "r").await.map(drop)),
        ("set_role_permissions", store.set_role_permissions(by, "r", &[]).await.map(drop)),
        (
            "update_root_key",
            store.update_root_key(by, &root_key, RootKeyPatch::default()).await.map(drop),
        ),
        ("delete_root_key", store.delete_root_key(by, &root_key).await.map(drop)),
        (
            "reroll_root_key",
            store
                .reroll_root_key(by, &root_key, new_root_key(fresh.fresh_hash()), None)
                .await
                .map(drop),
        ),
    ];
    for (what, refused) in refusals {
        assert!(matches!(refused, Err(StoreError::NotFound { .. })), "{what}: {refused:?}");
    }
    assert_eq!(fresh.count("SELECT COUNT(*) FROM admin_audit").await, notes);
    let view = store.key_view(tenant, &key, NOW).await.unwrap().unwrap();
    assert!(view.enabled && view.roles == ["r"] && view.permissions == ["a"]);
}

async fn two_tenants_may_use_the_same_names(fresh: Fresh) {
    let (other, key, hash, _) = populated(&fresh).await;
    let by = By { tenant_id: &other, ..fresh.by() };
    let store = &fresh.store;
    let role = NewRole { name: "r".to_owned(), permissions: texts(&["a"]), ..NewRole::default() };
    store.create_role(by, role).await.unwrap();
    let project = NewProject { name: "p".to_owned(), ..NewProject::default() };
    let project = store.create_project(by, project).await.unwrap().value;
    assert_eq!(project.slug, "p");
    let terms =
        KeyTerms { external_id: Some("u".to_owned()), roles: texts(&["r"]), ..KeyTerms::default() };
    let secret = secret(fresh.fresh_hash());
    let new = NewKey { id: None, project_id: project.id, secret, terms };
    store.create_key(by, new).await.unwrap();
    let patch = IdentityPatch { tier: Patch::Set("theirs".to_owned()), ..IdentityPatch::default() };
    store.update_identity(by, "u", patch).await.unwrap();
    store.delete_role(by, "r").await.unwrap();
    store.delete_permission(by, "a").await.unwrap();
    let ours = fresh.verified(hash).await.unwrap();
    assert_eq!((&*ours.id, ours.permissions.len(), ours.roles.len()), (key.as_str(), 1, 1));
    assert_eq!(ours.identity.unwrap().tier, None);
}
