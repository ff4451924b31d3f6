//! The first tenant and the operator's key: made once, kept, replaced, and never stored as text.

use tollkeeper_core::Millis;
use tollkeeper_decide::{Directory, KeyHash};
use tollkeeper_store::{BootstrapKey, Bootstrapped, KeyOrigin, Store, StoreError};

use crate::{FIRST_KEY, Fresh, NOW};

on_both! {
    the_bootstrap_key_may_do_everything_in_the_default_tenant,
    another_key_at_a_later_start_replaces_the_first_which_stops_working,
    of_several_first_starts_at_once_one_makes_the_key,
}

const SECOND_KEY: KeyHash = KeyHash([0xb2; 32]);

#[tokio::test]
async fn a_fresh_store_has_no_bootstrap_key_until_it_is_given_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("tollkeeper.db")).await.unwrap();
    let made = store.bootstrap(FIRST_KEY, 1, KeyOrigin::Generated, NOW).await.unwrap();
    assert_eq!(made.key, BootstrapKey::Made);
    assert!(made.tenant_id.starts_with("ws_"));
    let again = store.bootstrap(SECOND_KEY, 1, KeyOrigin::Generated, NOW).await.unwrap();
    assert_eq!(again, Bootstrapped { key: BootstrapKey::Kept, ..made });
    assert!(store.root_key(SECOND_KEY).await.unwrap().is_none(), "nobody was shown it");
}

async fn the_bootstrap_key_may_do_everything_in_the_default_tenant(fresh: Fresh) {
    let key = fresh.store.root_key(FIRST_KEY).await.unwrap().unwrap();
    assert!(key.enabled && key.tenant.enabled);
    assert_eq!(&*key.tenant.slug, "default");
    assert_eq!(*key.tenant.id, *fresh.tenant_id);
    assert!(key.permissions.allow("ratelimit", "rlns_any", "limit"));
}

#[tokio::test]
async fn the_same_key_at_a_later_start_changes_nothing() {
    let fresh = Fresh::new().await;
    let first = fresh.store.root_key(FIRST_KEY).await.unwrap().unwrap();
    fresh.store.close().await;
    let store = fresh.another().await;
    let again =
        store.bootstrap(FIRST_KEY, 1, KeyOrigin::Generated, Millis(NOW.0 + 1)).await.unwrap();
    assert_eq!(again.key, BootstrapKey::Kept);
    assert_eq!(again.tenant_id, fresh.tenant_id);
    assert_eq!(*again.root_key_id, *first.id);
    assert_eq!(count(&fresh, "SELECT COUNT(*) FROM root_keys").await, 1);
    let created_at = count(&fresh, "SELECT created_at FROM root_keys").await;
    assert_eq!(created_at, NOW.0.cast_signed());
}

async fn another_key_at_a_later_start_replaces_the_first_which_stops_working(fresh: Fresh) {
    let before = fresh.store.current_revision().await.unwrap();
    let replaced = fresh.store.bootstrap(SECOND_KEY, 2, KeyOrigin::Given, NOW).await.unwrap();
    assert_eq!(replaced.key, BootstrapKey::Replaced);
    assert!(fresh.store.root_key(FIRST_KEY).await.unwrap().is_none());
    assert!(fresh.store.root_key(SECOND_KEY).await.unwrap().is_some());
    assert_eq!(count(&fresh, "SELECT pepper_id FROM root_keys").await, 2);
    // Who was told that there is no such key has to forget that, as well as the one that is gone.
    let told = fresh.store.current_revision().await.unwrap() - before;
    assert_eq!(told, 2, "of both");
}

#[tokio::test]
async fn a_given_key_is_nothing_that_a_start_on_a_file_without_it_could_go_on_with() {
    let fresh = Fresh::new().await;
    fresh.store.bootstrap(SECOND_KEY, 1, KeyOrigin::Given, NOW).await.unwrap();
    let new = fresh.store.bootstrap(FIRST_KEY, 1, KeyOrigin::Generated, NOW).await.unwrap();
    assert_eq!(new.key, BootstrapKey::Replaced);
    assert!(fresh.store.root_key(SECOND_KEY).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_on_a_server_without_a_key_leaves_the_one_that_others_were_given() {
    let fresh = Fresh::on_postgres().await;
    fresh.store.bootstrap(SECOND_KEY, 1, KeyOrigin::Given, NOW).await.unwrap();
    let kept = fresh.store.bootstrap(FIRST_KEY, 1, KeyOrigin::Generated, NOW).await.unwrap();
    assert_eq!(kept.key, BootstrapKey::Kept);
    assert!(fresh.store.root_key(SECOND_KEY).await.unwrap().is_some());
    assert!(fresh.store.root_key(FIRST_KEY).await.unwrap().is_none());
}

async fn of_several_first_starts_at_once_one_makes_the_key(fresh: Fresh) {
    assert_eq!(fresh.count("DELETE FROM root_keys RETURNING CAST(1 AS BIGINT)").await, 1);
    let mut starts = tokio::task::JoinSet::new();
    for at in 0..8_u8 {
        let (store, hash) = (fresh.another().await, KeyHash([at; 32]));
        starts.spawn(async move {
            let made = store.bootstrap(hash, 1, KeyOrigin::Generated, NOW).await.unwrap();
            (hash, made.key)
        });
    }
    let (mut shown, mut kept) = (Vec::new(), 0);
    for (hash, key) in starts.join_all().await {
        match key {
            BootstrapKey::Made => shown.push(hash),
            BootstrapKey::Kept => kept += 1,
            BootstrapKey::Replaced => panic!("somebody was shown a key that is dead already"),
        }
    }
    assert_eq!((shown.len(), kept), (1, 7));
    assert!(fresh.store.root_key(shown[0]).await.unwrap().is_some(), "the one that was shown");
}

#[tokio::test]
async fn two_starts_at_once_make_one_tenant_and_one_key() {
    let fresh = Fresh::new().await;
    let other = fresh.another().await;
    let (a, b) = tokio::join!(
        fresh.store.bootstrap(SECOND_KEY, 1, KeyOrigin::Generated, NOW),
        other.bootstrap(SECOND_KEY, 1, KeyOrigin::Generated, NOW)
    );
    assert_eq!(a.unwrap().root_key_id, b.unwrap().root_key_id);
    assert_eq!(count(&fresh, "SELECT COUNT(*) FROM tenants").await, 1);
    assert_eq!(count(&fresh, "SELECT COUNT(*) FROM root_keys").await, 1);
}

#[tokio::test]
async fn a_key_that_belongs_to_a_tenant_cannot_become_the_bootstrap_key() {
    let fresh = Fresh::new().await;
    let tenant = fresh.second_tenant().await;
    let mut beside = fresh.beside().await;
    sqlx::query(
        "INSERT INTO root_keys (id, tenant_id, hash, pepper_id, name, permissions, created_at)
         VALUES ('rk_b', $1, $2, 1, 'b', '[]', 1)",
    )
    .bind(tenant)
    .bind(SECOND_KEY.0.as_slice())
    .execute(&mut beside)
    .await
    .unwrap();
    let refused = fresh.store.bootstrap(SECOND_KEY, 1, KeyOrigin::Given, NOW).await;
    assert!(matches!(refused, Err(StoreError::RootKeyTaken)));
    assert!(fresh.store.root_key(FIRST_KEY).await.unwrap().is_some());
}

#[tokio::test]
async fn a_disabled_tenant_or_key_is_told_as_disabled_and_not_as_unknown() {
    let fresh = Fresh::new().await;
    let mut beside = fresh.beside().await;
    sqlx::query("UPDATE tenants SET enabled = FALSE").execute(&mut beside).await.unwrap();
    sqlx::query("UPDATE root_keys SET enabled = FALSE").execute(&mut beside).await.unwrap();
    let key = fresh.store.root_key(FIRST_KEY).await.unwrap().unwrap();
    assert!(!key.enabled && !key.tenant.enabled);
}

#[tokio::test]
async fn only_the_hash_of_a_root_key_is_in_the_files() {
    let fresh = Fresh::new().await;
    let files: Vec<u8> = std::fs::read_dir(fresh.folder().path())
        .unwrap()
        .flat_map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect();
    let found = |needle: &[u8]| files.windows(needle.len()).any(|bytes| bytes == needle);
    assert!(found(&FIRST_KEY.0), "the hash is where it is looked for");
    // All the store is ever given is the hash, so what a row holds beside it is known by name.
    let columns: Vec<String> =
        sqlx::query_scalar("SELECT name FROM pragma_table_info('root_keys') ORDER BY cid")
            .fetch_all(&mut fresh.beside().await)
            .await
            .unwrap();
    let expected = [
        "id",
        "tenant_id",
        "hash",
        "pepper_id",
        "name",
        "permissions",
        "operator",
        "enabled",
        "created_at",
        "shown_start",
        "shown_end",
        "expires",
        "last_used_at",
    ];
    assert_eq!(columns, expected);
}

async fn count(fresh: &Fresh, question: &'static str) -> i64 {
    fresh.count(question).await
}
