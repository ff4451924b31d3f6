//! Whoever caches something hears of every change of it: once committed, in order, and after falling behind too.

use std::collections::BTreeSet;
use std::time::Duration;

use tollkeeper_core::Millis;
use tollkeeper_decide::Directory;
use tollkeeper_store::{
    Changed, Changes, CreditsChange, Deletion, Grant, IdentityPatch, KeyPatch, KeyTerms,
    NewIdentity, NewPermission, NewRole, OutboxEntry, Patch, PermissionPatch, ProjectPatch,
    RolePatch, RootKeyPatch, Store, TenantPatch,
};

use crate::{Fresh, NOW, limit_named, new_root_key, quota, secret, texts, width};

on_both! {
    every_change_that_can_touch_a_verdict_names_the_key,
    changes_arrive_in_order_and_each_once,
    a_listener_that_fell_behind_misses_nothing,
    a_failed_change_is_neither_told_nor_noted,
    many_writers_at_once_leave_no_gap_for_a_reader_to_miss,
    old_news_can_be_forgotten_and_the_revision_stays,
    every_change_is_noted_with_who_and_when,
}

async fn next(changes: &mut Changes) -> OutboxEntry {
    tokio::time::timeout(Duration::from_secs(10), changes.next()).await.unwrap().unwrap()
}

/// The keys that were named after this revision.
async fn keys_since(store: &Store, revision: u64) -> BTreeSet<String> {
    let entries = store.outbox_since(revision, 10_000).await.unwrap();
    let key = |entry: OutboxEntry| match entry.changed {
        Changed::Key { id, .. } => Some(id),
        _ => None,
    };
    entries.into_iter().filter_map(key).collect()
}

async fn every_change_that_can_touch_a_verdict_names_the_key(fresh: Fresh) {
    let (store, by) = (&fresh.store, fresh.by());
    let role = NewRole { name: "r".to_owned(), permissions: texts(&["via"]), ..NewRole::default() };
    store.create_role(by, role).await.unwrap();
    let terms = KeyTerms {
        external_id: Some("u".to_owned()),
        roles: texts(&["r"]),
        permissions: texts(&["own"]),
        ..KeyTerms::default()
    };
    let (key, _) = fresh.key(terms).await;
    let mut at = store.current_revision().await.unwrap();
    let mut named = async |what: &str| {
        assert!(keys_since(store, at).await.contains(&key), "{what}");
        at = store.current_revision().await.unwrap();
    };
    store
        .update_key(by, &key, KeyPatch { enabled: Some(true), ..KeyPatch::default() })
        .await
        .unwrap();
    named("key").await;
    store.update_credits(by, &key, CreditsChange::Set(Some(5))).await.unwrap();
    named("credits").await;
    store.change_key_permissions(by, &key, Grant::Add, &texts(&["more"])).await.unwrap();
    named("its permissions").await;
    store.change_key_roles(by, &key, Grant::Add, &texts(&["r"])).await.unwrap();
    named("its roles").await;
    let patch = PermissionPatch { slug: Some("own2".to_owned()), ..PermissionPatch::default() };
    store.update_permission(by, "own", patch).await.unwrap();
    named("a permission of its own").await;
    let patch = PermissionPatch { slug: Some("via2".to_owned()), ..PermissionPatch::default() };
    store.update_permission(by, "via", patch).await.unwrap();
    named("a permission of its role").await;
    store.set_role_permissions(by, "r", &texts(&["via2", "new"])).await.unwrap();
    named("the permissions of its role").await;
    store
        .update_role(by, "r", RolePatch { name: Some("r2".to_owned()), ..RolePatch::default() })
        .await
        .unwrap();
    named("its role's name").await;
    store.delete_permission(by, "new").await.unwrap();
    named("a deleted permission").await;
    store.delete_role(by, "r2").await.unwrap();
    named("a deleted role").await;
    let limits = Some(vec![limit_named("x", 1)]);
    store
        .update_identity(by, "u", IdentityPatch { limits, ..IdentityPatch::default() })
        .await
        .unwrap();
    named("its identity").await;
    store.delete_identity(by, "u").await.unwrap();
    named("its deleted identity").await;
    let patch = ProjectPatch { slug: Some("other".to_owned()), ..ProjectPatch::default() };
    store.update_project(by, "p", patch).await.unwrap();
    named("its project").await;
    let before_reroll = store.current_revision().await.unwrap();
    let reroll = crate::reroll(secret(fresh.fresh_hash()), NOW);
    let rerolled = store.reroll_key(by, &key, reroll).await.unwrap().value;
    assert!(keys_since(store, before_reroll).await.contains(&rerolled));
    named("reroll").await;
    store.revoke_key(by, &key, None).await.unwrap();
    named("revoke").await;
    store.delete_project(by, "other").await.unwrap();
    named("its deleted project").await;
    store.delete_key(by, &key, Deletion::Permanent).await.unwrap();
    named("delete").await;
}

async fn changes_arrive_in_order_and_each_once(fresh: Fresh) {
    let mut changes = fresh.store.changes(fresh.store.current_revision().await.unwrap());
    let other = fresh.another().await;
    let (key, hash) = fresh.key(KeyTerms::default()).await;
    // With a file every process hears of its own; with a server, of everybody's.
    let teller = if matches!(fresh.home, crate::Home::Server(_)) { &other } else { &fresh.store };
    let revoked = teller.revoke_key(fresh.by(), &key, None).await.unwrap();
    assert!(matches!(next(&mut changes).await.changed, Changed::Project { .. }));
    let made = next(&mut changes).await;
    let told = next(&mut changes).await;
    assert_eq!((&made.changed, &made.tenant_id), (&told.changed, &fresh.tenant_id));
    let Changed::Key { id, hash: stored } = told.changed else { panic!("{made:?}") };
    assert_eq!((id, stored.hash), (key, hash));
    assert_eq!((told.revision, told.at), (revoked.revision, NOW));
    fresh.make_namespace("n").await;
    let (tenant, store) = (&fresh.tenant_id, &fresh.store);
    store.set_override(fresh.by(), "n", "x", quota(1), width(1000)).await.unwrap();
    store.delete_override(fresh.by(), "n", "x").await.unwrap();
    for _ in 0..2 {
        let told = next(&mut changes).await.changed;
        assert!(matches!(told, Changed::Namespace { ref name, .. } if name == "n"), "{told:?}");
    }
    let root_key = new_root_key(fresh.fresh_hash());
    let id = store.create_root_key(fresh.by(), root_key).await.unwrap().value;
    let patch = RootKeyPatch { enabled: Some(false), ..RootKeyPatch::default() };
    store.update_root_key(fresh.by(), &id, patch).await.unwrap();
    for _ in 0..2 {
        let told = next(&mut changes).await.changed;
        assert!(matches!(told, Changed::RootKey { id: ref named, .. } if *named == id), "{told:?}");
    }
    let patch = TenantPatch { requests_per_minute: Patch::Set(9), ..TenantPatch::default() };
    store.update_tenant(fresh.by(), tenant, patch).await.unwrap();
    assert_eq!(next(&mut changes).await.changed, Changed::Tenant);
}

async fn a_listener_that_fell_behind_misses_nothing(fresh: Fresh) {
    let (store, by) = (&fresh.store, fresh.by());
    let project = fresh.project("p").await;
    let (key, _) = fresh.key_in(&project, KeyTerms::default()).await;
    let from = store.current_revision().await.unwrap();
    let mut changes = store.changes(from);
    // More than the queue holds; one change of many keys each.
    for _ in 1..3 {
        fresh.key_in(&project, KeyTerms::default()).await;
    }
    for _ in 0..420 {
        store.update_project(by, &project, ProjectPatch::default()).await.unwrap();
    }
    let newest = store.current_revision().await.unwrap();
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| *last < newest) {
        seen.push(next(&mut changes).await.revision);
    }
    let expected: Vec<_> =
        store.outbox_since(from, 10_000).await.unwrap().iter().map(|one| one.revision).collect();
    assert!(expected.len() > 1024, "{}", expected.len());
    assert_eq!(seen, expected);
    store.revoke_key(by, &key, None).await.unwrap();
    assert!(next(&mut changes).await.revision > newest);
}

async fn a_failed_change_is_neither_told_nor_noted(fresh: Fresh) {
    let (store, by) = (&fresh.store, fresh.by());
    let (key, _) = fresh.key(KeyTerms::default()).await;
    let at = store.current_revision().await.unwrap();
    let notes = fresh.count("SELECT COUNT(*) FROM admin_audit").await;
    let patch =
        KeyPatch { enabled: Some(false), roles: Some(texts(&["none"])), ..KeyPatch::default() };
    store.update_key(by, &key, patch).await.unwrap_err();
    let view = store.key_view(&fresh.tenant_id, &key, NOW).await.unwrap().unwrap();
    assert!(view.enabled && view.updated_at.is_none());
    assert_eq!(store.current_revision().await.unwrap(), at);
    assert_eq!(fresh.count("SELECT COUNT(*) FROM admin_audit").await, notes);
}

/// A reader that saw a number never finds a lower one later.
async fn many_writers_at_once_leave_no_gap_for_a_reader_to_miss(fresh: Fresh) {
    let (key, _) = fresh.key(KeyTerms::default()).await;
    let other = fresh.another().await;
    let from = fresh.store.current_revision().await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for node in 0..8 {
        let store = if node % 2 == 0 { fresh.store.clone() } else { other.clone() };
        let (key, tenant, root) = (key.clone(), fresh.tenant_id.clone(), fresh.root_key_id.clone());
        writers.spawn(async move {
            let by = tollkeeper_store::By { tenant_id: &tenant, root_key_id: &root, now: NOW };
            for i in 0..10 {
                let slug = format!("p{node}_{i}");
                store.change_key_permissions(by, &key, Grant::Add, &[slug]).await.unwrap();
            }
        });
    }
    let (mut last, mut read) = (from, 0);
    while read < 80 {
        let entries = fresh.store.outbox_since(last, 7).await.unwrap();
        for entry in entries {
            assert!(entry.revision > last);
            last = entry.revision;
            read += 1;
        }
        tokio::task::yield_now().await;
    }
    writers.join_all().await;
    assert_eq!(fresh.store.outbox_since(from, 1000).await.unwrap().len(), 80);
}

async fn old_news_can_be_forgotten_and_the_revision_stays(fresh: Fresh) {
    fresh.key(KeyTerms::default()).await;
    let at = fresh.store.current_revision().await.unwrap();
    assert!(fresh.store.trim_outbox(Millis(NOW.0 + 1)).await.unwrap() > 0);
    assert_eq!(fresh.store.current_revision().await.unwrap(), at);
    assert_eq!(fresh.store.outbox_since(0, 10).await.unwrap().len(), 1);
}

async fn every_change_is_noted_with_who_and_when(fresh: Fresh) {
    let (store, by) = (&fresh.store, fresh.by_at(Millis(77)));
    let notes = async || fresh.count("SELECT COUNT(*) FROM admin_audit WHERE at = 77").await;
    store
        .create_identity(by, NewIdentity { external_id: "u".to_owned(), ..NewIdentity::default() })
        .await
        .unwrap();
    assert_eq!(notes().await, 1);
    let new = NewPermission { name: "n".to_owned(), slug: "s".to_owned(), description: None };
    store.create_permission(by, new).await.unwrap();
    assert_eq!(notes().await, 2);
    store.delete_permission(by, "s").await.unwrap();
    assert_eq!(notes().await, 3);
    let whose = "SELECT COUNT(*) FROM admin_audit a JOIN root_keys k ON k.id = a.root_key_id
        WHERE a.at = 77 AND k.operator AND a.tenant_id = k.tenant_id";
    assert_eq!(fresh.count(whose).await, 3);
    assert!(store.root_key(crate::FIRST_KEY).await.unwrap().unwrap().operator);
}
