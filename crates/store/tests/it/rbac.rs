//! Permissions and roles: one per name, found by id and by name, and felt by keys at once when they change.

use tollkeeper_store::{
    KeyTerms, NewPermission, NewRole, Patch, PermissionPatch, RolePatch, StoreError, Thing,
};

use crate::{Fresh, texts};

on_both! {
    a_permission_is_found_by_id_and_slug_and_its_slug_is_taken_once,
    a_renamed_permission_is_what_keys_carry_from_then_on,
    a_deleted_permission_is_gone_from_keys_and_roles,
    a_role_is_found_by_id_and_name_with_its_permissions,
    the_permissions_of_a_role_are_replaced_as_a_whole,
    a_deleted_role_takes_its_permissions_from_keys,
    lists_are_paged_and_searched,
}

fn permission(slug: &str) -> NewPermission {
    NewPermission { name: format!("Name of {slug}"), slug: slug.to_owned(), description: None }
}

fn role(name: &str, permissions: &[&str]) -> NewRole {
    NewRole { name: name.to_owned(), description: None, permissions: texts(permissions) }
}

async fn a_permission_is_found_by_id_and_slug_and_its_slug_is_taken_once(fresh: Fresh) {
    let made = fresh.store.create_permission(fresh.by(), permission("a.b")).await.unwrap().value;
    for name in [made.id.as_str(), "a.b"] {
        let found = fresh.store.permission(&fresh.tenant_id, name).await.unwrap();
        assert_eq!(found.as_ref(), Some(&made));
    }
    let taken = fresh.store.create_permission(fresh.by(), permission("a.b")).await;
    assert!(matches!(taken, Err(StoreError::Taken { what: Thing::Permission })));
    fresh.store.create_permission(fresh.by(), permission("c")).await.unwrap();
    let patch = PermissionPatch { slug: Some("c".to_owned()), ..PermissionPatch::default() };
    let taken = fresh.store.update_permission(fresh.by(), "a.b", patch).await;
    assert!(matches!(taken, Err(StoreError::Taken { what: Thing::Permission })));
}

async fn a_renamed_permission_is_what_keys_carry_from_then_on(fresh: Fresh) {
    let (_, hash) = fresh.key(KeyTerms { permissions: texts(&["a"]), ..KeyTerms::default() }).await;
    let patch = PermissionPatch {
        slug: Some("b".to_owned()),
        description: Patch::Set("d".to_owned()),
        ..PermissionPatch::default()
    };
    let after = fresh.store.update_permission(fresh.by(), "a", patch).await.unwrap().value;
    assert_eq!((after.name.as_str(), after.description.as_deref()), ("a", Some("d")));
    assert_eq!(*fresh.verified(hash).await.unwrap().permissions, ["b".into()]);
}

async fn a_deleted_permission_is_gone_from_keys_and_roles(fresh: Fresh) {
    fresh.store.create_role(fresh.by(), role("r", &["a", "b"])).await.unwrap();
    let terms =
        KeyTerms { permissions: texts(&["a"]), roles: texts(&["r"]), ..KeyTerms::default() };
    let (_, hash) = fresh.key(terms).await;
    fresh.store.delete_permission(fresh.by(), "a").await.unwrap();
    assert_eq!(*fresh.verified(hash).await.unwrap().permissions, ["b".into()]);
    let role = fresh.store.role(&fresh.tenant_id, "r").await.unwrap().unwrap();
    assert_eq!(role.permissions.len(), 1);
    let gone = fresh.store.delete_permission(fresh.by(), "a").await;
    assert!(matches!(gone, Err(StoreError::NotFound { what: Thing::Permission, .. })));
}

async fn a_role_is_found_by_id_and_name_with_its_permissions(fresh: Fresh) {
    let made =
        fresh.store.create_role(fresh.by(), role("r", &["b", "a", "b"])).await.unwrap().value;
    assert!(made.id.starts_with("role_"));
    let slugs: Vec<_> = made.permissions.iter().map(|one| one.slug.as_str()).collect();
    assert_eq!(slugs, ["a", "b"]);
    for name in [made.id.as_str(), "r"] {
        let found = fresh.store.role(&fresh.tenant_id, name).await.unwrap();
        assert_eq!(found.as_ref(), Some(&made));
    }
    let taken = fresh.store.create_role(fresh.by(), role("r", &[])).await;
    assert!(matches!(taken, Err(StoreError::Taken { what: Thing::Role })));
    let patch = RolePatch { name: Some("s".to_owned()), description: Patch::Set("d".to_owned()) };
    let after = fresh.store.update_role(fresh.by(), "r", patch).await.unwrap().value;
    assert_eq!((after.name.as_str(), after.permissions), ("s", made.permissions));
    assert!(fresh.store.role(&fresh.tenant_id, "r").await.unwrap().is_none());
}

async fn the_permissions_of_a_role_are_replaced_as_a_whole(fresh: Fresh) {
    let made = fresh.store.create_role(fresh.by(), role("r", &["a", "b"])).await.unwrap().value;
    let (_, hash) = fresh.key(KeyTerms { roles: texts(&["r"]), ..KeyTerms::default() }).await;
    let set = async |slugs: &[&str]| {
        let (store, by) = (&fresh.store, fresh.by());
        let set = store.set_role_permissions(by, &made.id, &texts(slugs)).await.unwrap().value;
        set.into_iter().map(|one| one.slug).collect::<Vec<_>>()
    };
    assert_eq!(set(&["c", "b"]).await, ["b", "c"]);
    assert_eq!(*fresh.verified(hash).await.unwrap().permissions, ["b".into(), "c".into()]);
    assert!(set(&[]).await.is_empty());
    assert!(fresh.verified(hash).await.unwrap().permissions.is_empty());
}

async fn a_deleted_role_takes_its_permissions_from_keys(fresh: Fresh) {
    fresh.store.create_role(fresh.by(), role("r", &["a"])).await.unwrap();
    let (_, hash) = fresh.key(KeyTerms { roles: texts(&["r"]), ..KeyTerms::default() }).await;
    fresh.store.delete_role(fresh.by(), "r").await.unwrap();
    let key = fresh.verified(hash).await.unwrap();
    assert!(key.permissions.is_empty() && key.roles.is_empty());
    let gone = fresh.store.delete_role(fresh.by(), "r").await;
    assert!(matches!(gone, Err(StoreError::NotFound { what: Thing::Role, .. })));
}

async fn lists_are_paged_and_searched(fresh: Fresh) {
    for i in 0..4 {
        fresh.store.create_role(fresh.by(), role(&format!("Role{i}"), &["same"])).await.unwrap();
        fresh.store.create_permission(fresh.by(), permission(&format!("p{i}"))).await.unwrap();
    }
    let tenant = &fresh.tenant_id;
    let roles = fresh.store.list_roles(tenant, None, None, 3).await.unwrap();
    let rest = fresh.store.list_roles(tenant, None, roles.next_cursor.as_deref(), 3).await.unwrap();
    assert_eq!((roles.rows.len(), rest.rows.len(), rest.next_cursor), (3, 1, None));
    assert!(roles.rows.iter().all(|role| role.permissions.len() == 1));
    let found = fresh.store.list_roles(tenant, Some("role2"), None, 10).await.unwrap().rows;
    assert_eq!((found.len(), found[0].name.as_str()), (1, "Role2"));
    let found = fresh.store.list_permissions(tenant, Some("NAME OF p3"), None, 10).await.unwrap();
    assert_eq!((found.rows.len(), found.rows[0].slug.as_str()), (1, "p3"));
    let all = fresh.store.list_permissions(tenant, None, None, 100).await.unwrap();
    assert_eq!(all.rows.len(), 5);
}
