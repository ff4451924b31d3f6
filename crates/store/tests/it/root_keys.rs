//! Root keys: what each may do and until when, and that the operator's own is out of reach.

use tollkeeper_core::Millis;
use tollkeeper_decide::Directory;
use tollkeeper_store::{NewRootKey, Patch, RootKeyPatch, StoreError, Thing, Used};

use crate::{Fresh, NOW, new_root_key, texts};

on_both! {
    a_root_key_has_the_permissions_and_the_expiry_it_was_given,
    an_update_changes_what_is_given_and_a_deleted_one_is_unknown,
    a_rerolled_root_key_keeps_its_permissions_and_the_old_one_ends,
    the_operators_key_can_be_seen_and_not_touched,
}

async fn a_root_key_has_the_permissions_and_the_expiry_it_was_given(fresh: Fresh) {
    let hash = fresh.fresh_hash();
    let new = NewRootKey {
        name: Some("ci".to_owned()),
        expires: Some(Millis(5)),
        start: Some("tk_ab".to_owned()),
        end: Some("yz".to_owned()),
        ..new_root_key(hash)
    };
    let id = fresh.store.create_root_key(fresh.by(), new.clone()).await.unwrap().value;
    let key = fresh.store.root_key(hash).await.unwrap().unwrap();
    assert!(key.permissions.allow("api", "api_1", "read_key"));
    assert!(!key.permissions.allow("api", "api_1", "create_key") && !key.operator);
    assert_eq!((&*key.id, key.expires), (id.as_str(), Some(Millis(5))));
    fresh.store.touch_last_used(Used::RootKey, &[(id.clone(), Millis(9))]).await.unwrap();
    let view = fresh.store.root_key_view(&fresh.tenant_id, &id).await.unwrap().unwrap();
    assert_eq!((view.name.as_deref(), view.last_used_at), (Some("ci"), Some(Millis(9))));
    assert_eq!((view.start.as_deref(), view.end.as_deref()), (Some("tk_ab"), Some("yz")));
    assert_eq!((view.permissions, view.created_at), (texts(&["api.*.read_key"]), NOW));
    let taken = fresh.store.create_root_key(fresh.by(), new).await;
    assert!(matches!(taken, Err(StoreError::Taken { what: Thing::RootKey })));
    assert_eq!(fresh.store.list_root_keys(&fresh.tenant_id, None, 10).await.unwrap().rows.len(), 2);
}

async fn an_update_changes_what_is_given_and_a_deleted_one_is_unknown(fresh: Fresh) {
    let hash = fresh.fresh_hash();
    let id = fresh.store.create_root_key(fresh.by(), new_root_key(hash)).await.unwrap().value;
    let patch = RootKeyPatch {
        name: Patch::Set("n".to_owned()),
        permissions: Some(texts(&["api.*.create_key"])),
        enabled: Some(false),
        expires: Patch::Set(Millis(7)),
    };
    let view = fresh.store.update_root_key(fresh.by(), &id, patch).await.unwrap().value;
    assert_eq!((view.name.as_deref(), view.enabled), (Some("n"), false));
    let key = fresh.store.root_key(hash).await.unwrap().unwrap();
    assert!(!key.enabled && key.permissions.allow("api", "x", "create_key"));
    assert!(!key.permissions.allow("api", "x", "read_key"));
    assert_eq!(key.expires, Some(Millis(7)));
    fresh.store.delete_root_key(fresh.by(), &id).await.unwrap();
    assert!(fresh.store.root_key(hash).await.unwrap().is_none());
    let gone = fresh.store.delete_root_key(fresh.by(), &id).await;
    assert!(matches!(gone, Err(StoreError::NotFound { what: Thing::RootKey, .. })));
}

async fn a_rerolled_root_key_keeps_its_permissions_and_the_old_one_ends(fresh: Fresh) {
    let (old_hash, hash) = (fresh.fresh_hash(), fresh.fresh_hash());
    let old = fresh.store.create_root_key(fresh.by(), new_root_key(old_hash)).await.unwrap().value;
    let wider = NewRootKey { permissions: texts(&["*"]), ..new_root_key(hash) };
    let until = Some(Millis(NOW.0 + 1));
    let new = fresh.store.reroll_root_key(fresh.by(), &old, wider, until).await.unwrap().value;
    let key = fresh.store.root_key(hash).await.unwrap().unwrap();
    assert_eq!(*key.id, *new);
    assert!(key.permissions.allow("api", "x", "read_key"));
    assert!(!key.permissions.allow("api", "x", "delete_api"), "a reroll does not widen");
    assert_eq!(fresh.store.root_key(old_hash).await.unwrap().unwrap().expires, until);
}

async fn the_operators_key_can_be_seen_and_not_touched(fresh: Fresh) {
    let (store, by, id) = (&fresh.store, fresh.by(), fresh.root_key_id.as_str());
    assert!(store.root_key_view(&fresh.tenant_id, id).await.unwrap().unwrap().operator);
    let refusals = [
        store.update_root_key(by, id, RootKeyPatch::default()).await.map(drop),
        store.delete_root_key(by, id).await.map(drop),
        store.reroll_root_key(by, id, new_root_key(fresh.fresh_hash()), None).await.map(drop),
    ];
    for refused in refusals {
        assert!(matches!(refused, Err(StoreError::OperatorKey)));
    }
}
