//! Root keys and namespaces as the engine finds them: one per name, within one tenant.

use std::collections::HashSet;

use tollkeeper_core::Millis;
use tollkeeper_decide::{Directory, KeyHash};
use tollkeeper_store::{By, StoreError};

use crate::{Fresh, NOW, quota, width};

on_both! {
    an_unknown_root_key_is_not_there_and_no_error,
    a_namespace_is_found_by_name_and_by_id_with_its_overrides,
    an_id_wins_over_a_namespace_named_like_it,
    a_deleted_name_stays_deleted_and_cannot_be_made_again,
    a_tenant_finds_nothing_of_another_tenants_namespaces,
    a_namespace_of_no_tenant_is_refused,
    a_closed_store_says_so_instead_of_not_there,
}

async fn an_unknown_root_key_is_not_there_and_no_error(fresh: Fresh) {
    assert!(fresh.store.root_key(KeyHash([0; 32])).await.unwrap().is_none());
}

async fn a_namespace_is_found_by_name_and_by_id_with_its_overrides(fresh: Fresh) {
    assert!(fresh.namespace("email").await.is_none());
    let made = fresh.make_namespace("email").await;
    assert!(made.id.starts_with("rlns_"));
    assert!(made.overrides.is_empty() && !made.deleted);
    for identifier in ["a", "b*"] {
        let store = &fresh.store;
        store.set_override(fresh.by(), "email", identifier, quota(5), width(1000)).await.unwrap();
    }
    let by_id = fresh.namespace(&made.id).await.unwrap();
    assert_eq!((&by_id.id, &*by_id.name), (&made.id, "email"));
    let identifiers: HashSet<_> =
        by_id.overrides.iter().map(|one| one.identifier.as_str()).collect();
    assert_eq!(identifiers, HashSet::from(["a", "b*"]));
    let one = &by_id.overrides[0];
    assert_eq!((one.quota, one.width, one.created_at), (quota(5), width(1000), NOW));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_at_once_make_one_namespace() {
    let fresh = Fresh::new().await;
    let other = fresh.another().await;
    let asks = (0..32).map(|i| {
        let store = if i % 2 == 0 { &fresh.store } else { &other };
        tokio::spawn(store.create_namespace(&fresh.tenant_id, "busy"))
    });
    for ask in asks.collect::<Vec<_>>() {
        ask.await.unwrap().unwrap();
    }
    let made: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM namespaces")
        .fetch_one(&mut fresh.beside().await)
        .await
        .unwrap();
    assert_eq!(made, 1);
}

#[tokio::test]
async fn a_namespace_made_on_the_way_gets_the_time_it_was_made_at() {
    let fresh = Fresh::new().await;
    fresh.make_namespace("dated").await;
    let age_ms: i64 =
        sqlx::query_scalar("SELECT unixepoch() * 1000 + 1000 - created_at FROM namespaces")
            .fetch_one(&mut fresh.beside().await)
            .await
            .unwrap();
    assert!((0..60_000).contains(&age_ms), "{age_ms}");
}

async fn an_id_wins_over_a_namespace_named_like_it(fresh: Fresh) {
    let real = fresh.make_namespace("real").await;
    fresh.store.create_namespace(&fresh.tenant_id, &real.id).await.unwrap();
    assert_eq!(&*fresh.namespace(&real.id).await.unwrap().name, "real");
}

async fn a_deleted_name_stays_deleted_and_cannot_be_made_again(fresh: Fresh) {
    let made = fresh.make_namespace("old").await;
    fresh.store.set_override(fresh.by(), "old", "x", quota(1), width(1000)).await.unwrap();
    let deleted = fresh.store.delete_namespace(fresh.by(), "old").await.unwrap();
    assert_eq!((&*deleted.id, &*deleted.name), (&*made.id, "old"));
    fresh.store.create_namespace(&fresh.tenant_id, "old").await.unwrap();
    for name_or_id in ["old", &*made.id] {
        let found = fresh.namespace(name_or_id).await.unwrap();
        assert!(found.deleted && found.overrides.is_empty() && found.id == made.id);
    }
    let again = fresh.store.delete_namespace(fresh.by_at(Millis(NOW.0 + 1)), "old").await;
    assert!(matches!(again, Err(StoreError::NamespaceGone)));
}

async fn a_tenant_finds_nothing_of_another_tenants_namespaces(fresh: Fresh) {
    let other = fresh.second_tenant().await;
    let ours = fresh.make_namespace("shared-name").await;
    fresh.store.set_override(fresh.by(), "shared-name", "x", quota(1), width(1000)).await.unwrap();
    for name_or_id in ["shared-name", &*ours.id] {
        assert!(fresh.store.namespace(&other, name_or_id).await.unwrap().is_none());
        let by_them = By { tenant_id: &other, ..fresh.by() };
        let refused = fresh.store.delete_namespace(by_them, name_or_id).await;
        assert!(matches!(refused, Err(StoreError::NamespaceNotFound)));
    }
    fresh.store.create_namespace(&other, "shared-name").await.unwrap();
    let theirs = fresh.store.namespace(&other, "shared-name").await.unwrap().unwrap();
    assert_ne!(theirs.id, ours.id);
    assert!(theirs.overrides.is_empty());
}

async fn a_namespace_of_no_tenant_is_refused(fresh: Fresh) {
    assert!(fresh.store.create_namespace("ws_nobody", "x").await.is_err());
}

#[tokio::test]
async fn hostile_names_are_only_names() {
    let fresh = Fresh::new().await;
    for name in ["'; DROP TABLE namespaces; --", "%", "_", "\u{0}nul", "é\u{301}", &"x".repeat(512)]
    {
        let made = fresh.make_namespace(name).await;
        assert_eq!(&*made.name, name);
    }
}

async fn a_closed_store_says_so_instead_of_not_there(fresh: Fresh) {
    fresh.store.ping().await.unwrap();
    fresh.store.close().await;
    assert!(fresh.store.ping().await.is_err());
    let error = fresh.store.namespace(&fresh.tenant_id, "x").await.unwrap_err();
    assert!(error.to_string().contains("closed"), "{error}");
}
