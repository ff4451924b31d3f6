//! Overrides as the admin writes and lists them: one per identifier text, paged, within one tenant.

use tollkeeper_core::{AMOUNT_MAX, Millis, WIDTH_MS_MAX};
use tollkeeper_decide::Directory;
use tollkeeper_store::{By, StoreError};

use crate::{Fresh, NOW, quota, width};

on_both! {
    setting_an_override_again_changes_it_and_keeps_its_id_and_age,
    the_largest_quota_and_width_come_back_exactly,
    pages_hold_every_override_once_in_the_order_of_ids,
    a_page_that_is_just_full_is_the_last_one,
    a_cursor_whose_row_was_deleted_goes_on_with_the_next,
    a_pattern_is_deleted_by_its_own_text_only,
    an_unknown_namespace_is_not_found_and_a_deleted_one_is_gone,
    a_tenant_can_neither_see_nor_touch_another_tenants_overrides,
}

async fn setting_an_override_again_changes_it_and_keeps_its_id_and_age(fresh: Fresh) {
    let (store, tenant) = (&fresh.store, fresh.tenant_id.as_str());
    let namespace = fresh.make_namespace("email").await;
    let first =
        store.set_override(fresh.by(), "email", "user_*", quota(5), width(1000)).await.unwrap();
    let later = Millis(NOW.0 + 5000);
    let second = store
        .set_override(fresh.by_at(later), &namespace.id, "user_*", quota(0), width(2000))
        .await
        .unwrap();
    assert!(first.override_id.starts_with("rlor_"));
    assert_eq!(first, second);
    assert_eq!((&*first.namespace.id, &*first.namespace.name), (&*namespace.id, "email"));
    let rows = store.list_overrides(tenant, "email", None, 10).await.unwrap().rows;
    let [one] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((one.quota, one.width, one.created_at), (quota(0), width(2000), NOW));
    assert_eq!(*one.id, *first.override_id);
}

async fn the_largest_quota_and_width_come_back_exactly(fresh: Fresh) {
    fresh.make_namespace("n").await;
    let (most, longest) = (quota(AMOUNT_MAX), width(WIDTH_MS_MAX));
    fresh.store.set_override(fresh.by(), "n", "x", most, longest).await.unwrap();
    let found = fresh.namespace("n").await.unwrap().overrides.remove(0);
    assert_eq!((found.quota, found.width), (most, longest));
}

#[tokio::test]
async fn identifiers_differ_by_case_and_by_every_byte() {
    let fresh = Fresh::new().await;
    fresh.make_namespace("n").await;
    for identifier in ["a", "A", "a ", "a\u{0}", "á", "a\u{301}"] {
        fresh.store.set_override(fresh.by(), "n", identifier, quota(1), width(1000)).await.unwrap();
    }
    assert_eq!(fresh.namespace("n").await.unwrap().overrides.len(), 6);
}

async fn pages_hold_every_override_once_in_the_order_of_ids(fresh: Fresh) {
    let (store, tenant) = (&fresh.store, fresh.tenant_id.as_str());
    fresh.make_namespace("n").await;
    let mut ids = Vec::new();
    for i in 0..7 {
        let identifier = format!("user_{i}");
        ids.push(
            store
                .set_override(fresh.by(), "n", &identifier, quota(i), width(1000))
                .await
                .unwrap()
                .override_id,
        );
    }
    ids.sort();
    let (mut seen, mut sizes, mut cursor) = (Vec::new(), Vec::new(), None::<String>);
    loop {
        let page = store.list_overrides(tenant, "n", cursor.as_deref(), 3).await.unwrap();
        sizes.push(page.rows.len());
        seen.extend(page.rows.into_iter().map(|one| one.id.to_string()));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [3, 3, 1]);
    assert_eq!(seen, ids);
}

async fn a_page_that_is_just_full_is_the_last_one(fresh: Fresh) {
    let (store, tenant) = (&fresh.store, fresh.tenant_id.as_str());
    fresh.make_namespace("n").await;
    for identifier in ["a", "b", "c"] {
        store.set_override(fresh.by(), "n", identifier, quota(1), width(1000)).await.unwrap();
    }
    let page = store.list_overrides(tenant, "n", None, 3).await.unwrap();
    assert_eq!((page.rows.len(), page.next_cursor), (3, None));
}

async fn a_cursor_whose_row_was_deleted_goes_on_with_the_next(fresh: Fresh) {
    let (store, tenant) = (&fresh.store, fresh.tenant_id.as_str());
    fresh.make_namespace("n").await;
    for identifier in ["a", "b", "c"] {
        store.set_override(fresh.by(), "n", identifier, quota(1), width(1000)).await.unwrap();
    }
    let all = store.list_overrides(tenant, "n", None, 3).await.unwrap().rows;
    let cursor = store.list_overrides(tenant, "n", None, 1).await.unwrap().next_cursor.unwrap();
    store.delete_override(fresh.by(), "n", &all[1].identifier).await.unwrap();
    let rest = store.list_overrides(tenant, "n", Some(&cursor), 3).await.unwrap();
    assert_eq!(rest.rows, [all[2].clone()]);
}

async fn a_pattern_is_deleted_by_its_own_text_only(fresh: Fresh) {
    let store = &fresh.store;
    let namespace = fresh.make_namespace("n").await;
    store.set_override(fresh.by(), "n", "user_*", quota(1), width(1000)).await.unwrap();
    for identifier in ["user_1", "user_", "*"] {
        let missed = store.delete_override(fresh.by(), "n", identifier).await;
        assert!(matches!(missed, Err(StoreError::OverrideNotFound)), "{identifier}");
    }
    let touched = store.delete_override(fresh.by(), "n", "user_*").await.unwrap();
    assert_eq!((&*touched.id, &*touched.name), (&*namespace.id, "n"));
    assert!(fresh.namespace("n").await.unwrap().overrides.is_empty());
}

async fn an_unknown_namespace_is_not_found_and_a_deleted_one_is_gone(fresh: Fresh) {
    let (store, tenant) = (&fresh.store, fresh.tenant_id.as_str());
    fresh.make_namespace("old").await;
    store.delete_namespace(fresh.by(), "old").await.unwrap();
    for (namespace, expected) in [("none", "NamespaceNotFound"), ("old", "NamespaceGone")] {
        let told = [
            store.set_override(fresh.by(), namespace, "x", quota(1), width(1000)).await.map(drop),
            store.list_overrides(tenant, namespace, None, 10).await.map(drop),
            store.delete_override(fresh.by(), namespace, "x").await.map(drop),
        ];
        for error in told.map(Result::unwrap_err) {
            assert_eq!(format!("{error:?}"), expected);
            assert!(!error.is_transient());
        }
    }
}

async fn a_tenant_can_neither_see_nor_touch_another_tenants_overrides(fresh: Fresh) {
    let store = &fresh.store;
    let other = fresh.second_tenant().await;
    let theirs = By { tenant_id: &other, ..fresh.by() };
    let ours = fresh.make_namespace("n").await;
    store.set_override(fresh.by(), "n", "x", quota(1), width(1000)).await.unwrap();
    for namespace in ["n", &*ours.id] {
        let told = [
            store.set_override(theirs, namespace, "x", quota(9), width(1000)).await.map(drop),
            store.list_overrides(&other, namespace, None, 10).await.map(drop),
            store.delete_override(theirs, namespace, "x").await.map(drop),
        ];
        for error in told.map(Result::unwrap_err) {
            assert!(matches!(error, StoreError::NamespaceNotFound), "{error:?}");
        }
    }
    store.create_namespace(&other, "n").await.unwrap();
    store.set_override(theirs, "n", "x", quota(9), width(1000)).await.unwrap();
    store.delete_override(theirs, "n", "x").await.unwrap();
    assert_eq!(fresh.namespace("n").await.unwrap().overrides[0].quota, quota(1));
}
