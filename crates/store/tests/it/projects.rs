//! Projects and tenants: found by id and by slug, one slug each, and protected where asked for.

use tollkeeper_core::HostPattern;
use tollkeeper_decide::Directory;
use tollkeeper_store::{NewProject, Patch, ProjectPatch, StoreError, TenantPatch, Thing};

use crate::{FIRST_KEY, Fresh, limit_named, new_root_key};

on_both! {
    a_project_is_found_by_id_by_slug_and_by_tenant_and_slug,
    a_slug_is_made_from_the_name_and_never_taken_twice,
    an_update_changes_what_is_given_and_keeps_the_rest,
    a_protected_project_is_not_deleted,
    a_deleted_project_gives_its_slug_free,
    pages_hold_every_project_once,
    a_new_tenant_has_a_root_key_of_its_own,
    a_disabled_tenant_is_told_as_disabled,
}

async fn a_project_is_found_by_id_by_slug_and_by_tenant_and_slug(fresh: Fresh) {
    let new = NewProject {
        name: "My API".to_owned(),
        slug: Some("mine".to_owned()),
        allowed_referers: vec![HostPattern::parse("*.a.org").unwrap()],
        default_limits: vec![limit_named("default_minute", 60)],
        ..NewProject::default()
    };
    let made = fresh.store.create_project(fresh.by(), new).await.unwrap().value;
    assert!(made.id.starts_with("api_"));
    for name in [made.id.as_str(), "mine", "default/mine"] {
        let found = fresh.store.project(&fresh.tenant_id, name).await.unwrap();
        assert_eq!(found.as_ref(), Some(&made), "{name}");
    }
    for name in ["My API", "other/mine", "mine/mine", ""] {
        assert!(fresh.store.project(&fresh.tenant_id, name).await.unwrap().is_none(), "{name}");
    }
}

async fn a_slug_is_made_from_the_name_and_never_taken_twice(fresh: Fresh) {
    let make = async |slug: Option<&str>| {
        let slug = slug.map(str::to_owned);
        let new = NewProject { name: "Pay (Test)".to_owned(), slug, ..NewProject::default() };
        fresh.store.create_project(fresh.by(), new).await.map(|made| made.value.slug)
    };
    assert_eq!(make(None).await.unwrap(), "pay-test");
    let second = make(None).await.unwrap();
    assert!(second.starts_with("pay-test-") && second.len() > 12, "{second}");
    let taken = make(Some("pay-test")).await;
    assert!(matches!(taken, Err(StoreError::Taken { what: Thing::Project })), "{taken:?}");
    let patch = ProjectPatch { slug: Some("pay-test".to_owned()), ..ProjectPatch::default() };
    let taken = fresh.store.update_project(fresh.by(), &second, patch).await;
    assert!(matches!(taken, Err(StoreError::Taken { what: Thing::Project })));
}

async fn an_update_changes_what_is_given_and_keeps_the_rest(fresh: Fresh) {
    let id = fresh.project("p").await;
    let before = fresh.store.project(&fresh.tenant_id, &id).await.unwrap().unwrap();
    let patch = ProjectPatch {
        slug: Some("q".to_owned()),
        allowed_sources: Some(vec![HostPattern::parse("b.org").unwrap()]),
        ..ProjectPatch::default()
    };
    let after = fresh.store.update_project(fresh.by(), "p", patch).await.unwrap().value;
    assert_eq!((after.slug.as_str(), &after.name), ("q", &before.name));
    assert_eq!((after.allowed_sources.len(), after.allowed_referers.len()), (1, 0));
    assert_eq!(fresh.store.project(&fresh.tenant_id, "q").await.unwrap(), Some(after));
    assert!(fresh.store.project(&fresh.tenant_id, "p").await.unwrap().is_none());
}

async fn a_protected_project_is_not_deleted(fresh: Fresh) {
    let id = fresh.project("p").await;
    let protect = |on| ProjectPatch { delete_protection: Some(on), ..ProjectPatch::default() };
    fresh.store.update_project(fresh.by(), &id, protect(true)).await.unwrap();
    let refused = fresh.store.delete_project(fresh.by(), &id).await;
    assert!(matches!(refused, Err(StoreError::Protected)));
    fresh.store.update_project(fresh.by(), &id, protect(false)).await.unwrap();
    fresh.store.delete_project(fresh.by(), &id).await.unwrap();
    assert!(fresh.store.project(&fresh.tenant_id, &id).await.unwrap().is_none());
}

async fn a_deleted_project_gives_its_slug_free(fresh: Fresh) {
    let first = fresh.project("p").await;
    fresh.store.delete_project(fresh.by(), "p").await.unwrap();
    let second = fresh.project("p").await;
    assert_ne!(first, second);
    assert_eq!(fresh.store.project(&fresh.tenant_id, "p").await.unwrap().unwrap().id, second);
    let gone = fresh.store.delete_project(fresh.by(), &first).await;
    assert!(matches!(gone, Err(StoreError::NotFound { what: Thing::Project, .. })));
}

async fn pages_hold_every_project_once(fresh: Fresh) {
    let mut ids = Vec::new();
    for i in 0..5 {
        ids.push(fresh.project(&format!("p{i}")).await);
    }
    ids.sort();
    let first = fresh.store.list_projects(&fresh.tenant_id, None, 3).await.unwrap();
    let cursor = first.next_cursor.as_deref();
    let rest = fresh.store.list_projects(&fresh.tenant_id, cursor, 3).await.unwrap();
    let seen: Vec<_> = first.rows.into_iter().chain(rest.rows).map(|one| one.id).collect();
    assert_eq!((seen, rest.next_cursor), (ids, None));
}

async fn a_new_tenant_has_a_root_key_of_its_own(fresh: Fresh) {
    let hash = fresh.fresh_hash();
    let made =
        fresh.store.create_tenant(fresh.by(), "Acme Inc.", new_root_key(hash)).await.unwrap();
    let (tenant, root_key_id) = made.value;
    assert_eq!(tenant.slug, "acme-inc");
    let key = fresh.store.root_key(hash).await.unwrap().unwrap();
    assert_eq!((&*key.id, &*key.tenant.id), (root_key_id.as_str(), tenant.id.as_str()));
    assert!(!key.operator && !key.tenant.has_imports && key.expires.is_none());
    assert!(fresh.store.root_key(FIRST_KEY).await.unwrap().unwrap().operator);
    let list = fresh.store.list_tenants(None, 10).await.unwrap().rows;
    assert!(list.len() == 2 && list.contains(&tenant));
    let hash = fresh.fresh_hash();
    let again =
        fresh.store.create_tenant(fresh.by(), "acme inc", new_root_key(hash)).await.unwrap();
    assert!(again.value.0.slug.starts_with("acme-inc-"));
}

async fn a_disabled_tenant_is_told_as_disabled(fresh: Fresh) {
    let (_, hash) = fresh.key(tollkeeper_store::KeyTerms::default()).await;
    let patch = TenantPatch { enabled: Some(false), requests_per_minute: Patch::Set(100) };
    let tenant =
        fresh.store.update_tenant(fresh.by(), &fresh.tenant_id, patch).await.unwrap().value;
    assert_eq!((tenant.enabled, tenant.requests_per_minute), (false, Some(100)));
    assert!(!fresh.verified(hash).await.unwrap().tenant_enabled);
    assert!(!fresh.store.root_key(FIRST_KEY).await.unwrap().unwrap().tenant.enabled);
    let patch = TenantPatch { enabled: Some(true), requests_per_minute: Patch::Clear };
    let tenant =
        fresh.store.update_tenant(fresh.by(), &fresh.tenant_id, patch).await.unwrap().value;
    assert_eq!((tenant.enabled, tenant.requests_per_minute), (true, None));
    let none = fresh.store.update_tenant(fresh.by(), "ws_none", TenantPatch::default()).await;
    assert!(matches!(none, Err(StoreError::NotFound { what: Thing::Tenant, .. })));
}
