//! Keys as the admin makes, shows, changes, grants and rerolls them.

use tollkeeper_core::{CreditRefill, Millis, RefillEvery};
use tollkeeper_decide::KeyHashes;
use tollkeeper_store::{
    Credits, Deletion, Grant, KeyPatch, KeySecret, KeyTerms, NewKey, NewRole, Patch, Store,
    StoreError, Thing,
};

use crate::{Fresh, NOBODY, NOW, limit_named, secret, texts};

on_both! {
    a_key_is_shown_as_it_was_made,
    a_key_of_an_unknown_project_or_role_is_refused_and_leaves_nothing,
    a_hash_belongs_to_one_key,
    pages_hold_every_live_key_of_a_project_once,
    keys_can_be_listed_by_their_owner,
    an_update_changes_what_is_given_and_keeps_the_rest,
    limits_that_stay_keep_their_ids,
    permissions_are_added_removed_and_set_and_the_whole_set_comes_back,
    roles_are_added_removed_and_set_and_an_unknown_one_is_refused,
    a_rerolled_key_takes_everything_over_and_the_old_one_ends,
    a_ciphertext_comes_back_and_a_fresh_id_is_kept,
}

fn full_terms() -> KeyTerms {
    let refill = CreditRefill { every: RefillEvery::Day, amount: 10 };
    KeyTerms {
        name: Some("n".to_owned()),
        meta: Some(r#"{"plan":"x"}"#.to_owned()),
        expires: Some(Millis(NOW.0 + 1_000_000)),
        ip_allowlist: vec!["10.0.0.0/8".parse().unwrap()],
        tier: Some("pro".to_owned()),
        external_id: Some("u".to_owned()),
        credits: Some(Credits { remaining: 10, refill: Some(refill) }),
        limits: vec![limit_named("a", 1), limit_named("b", 2)],
        permissions: texts(&["p.read", "p.write"]),
        ..KeyTerms::default()
    }
}

async fn a_key_is_shown_as_it_was_made(fresh: Fresh) {
    let terms = full_terms();
    let (id, hash) = fresh.key(terms.clone()).await;
    let view = fresh.store.key_view(&fresh.tenant_id, &id, NOW).await.unwrap().unwrap();
    assert!(id.starts_with("key_") && view.project_id.starts_with("api_"));
    assert_eq!((&view.name, &view.meta, view.expires), (&terms.name, &terms.meta, terms.expires));
    assert_eq!((view.start.as_str(), view.prefix.as_deref()), ("sk_ab12", Some("sk")));
    assert_eq!((view.byte_length, view.created_at, view.updated_at), (Some(20), NOW, None));
    assert_eq!((view.ip_allowlist, view.tier), (terms.ip_allowlist, terms.tier));
    assert_eq!((view.credits, view.permissions), (terms.credits, terms.permissions));
    assert_eq!(view.identity.unwrap().external_id, "u");
    let limits: Vec<_> = view.limits.into_iter().map(|one| one.terms).collect();
    assert_eq!(limits, terms.limits);
    let hashes = KeyHashes { ours: hash, imported: NOBODY };
    let whoami = fresh.store.key_view_by_hash(&fresh.tenant_id, hashes, NOW).await.unwrap();
    assert_eq!(whoami.unwrap().id, id);
}

async fn a_key_of_an_unknown_project_or_role_is_refused_and_leaves_nothing(fresh: Fresh) {
    let project = fresh.project("p").await;
    let make = async |project_id: &str, roles: Vec<String>| {
        let terms = KeyTerms { roles, ..full_terms() };
        let (project_id, hash) = (project_id.to_owned(), fresh.fresh_hash());
        let new = NewKey { id: None, project_id, secret: secret(hash), terms };
        fresh.store.create_key(fresh.by(), new).await.map(drop).unwrap_err()
    };
    let refused = make("api_none", Vec::new()).await;
    assert!(matches!(refused, StoreError::NotFound { what: Thing::Project, .. }));
    let refused = make(&project, texts(&["none"])).await;
    assert!(
        matches!(&refused, StoreError::NotFound { what: Thing::Role, named } if named == "none")
    );
    fresh.store.delete_project(fresh.by(), &project).await.unwrap();
    let refused = make(&project, Vec::new()).await;
    assert!(matches!(refused, StoreError::NotFound { what: Thing::Project, .. }));
    for table in [
        "SELECT COUNT(*) FROM keys",
        "SELECT COUNT(*) FROM identities",
        "SELECT COUNT(*) FROM permissions",
        "SELECT COUNT(*) FROM limits",
    ] {
        assert_eq!(fresh.count(table).await, 0, "{table}");
    }
}

async fn a_hash_belongs_to_one_key(fresh: Fresh) {
    let project = fresh.project("p").await;
    let (_, hash) = fresh.key_in(&project, KeyTerms::default()).await;
    let terms = KeyTerms::default();
    let new = NewKey { id: None, project_id: project, secret: secret(hash), terms };
    let refused = fresh.store.create_key(fresh.by(), new).await;
    assert!(matches!(refused, Err(StoreError::Taken { what: Thing::Key })));
}

async fn pages_hold_every_live_key_of_a_project_once(fresh: Fresh) {
    let (project, other) = (fresh.project("p").await, fresh.project("q").await);
    fresh.key_in(&other, KeyTerms::default()).await;
    let mut ids = Vec::new();
    for _ in 0..7 {
        let terms = KeyTerms { permissions: texts(&["a"]), ..KeyTerms::default() };
        ids.push(fresh.key_in(&project, terms).await.0);
    }
    let gone = ids.swap_remove(3);
    fresh.store.delete_key(fresh.by(), &gone, Deletion::Soft).await.unwrap();
    ids.sort();
    let (mut seen, mut sizes, mut cursor) = (Vec::new(), Vec::new(), None::<String>);
    loop {
        let (tenant, from) = (&fresh.tenant_id, cursor.as_deref());
        let page = fresh.store.list_keys(tenant, &project, None, from, 4, NOW).await.unwrap();
        sizes.push(page.rows.len());
        assert!(page.rows.iter().all(|key| key.permissions == ["a"]));
        seen.extend(page.rows.into_iter().map(|key| key.id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((sizes, seen), (vec![4, 2], ids));
}

async fn keys_can_be_listed_by_their_owner(fresh: Fresh) {
    let project = fresh.project("p").await;
    let of = |name: &str| KeyTerms { external_id: Some(name.to_owned()), ..KeyTerms::default() };
    let (a, _) = fresh.key_in(&project, of("a")).await;
    fresh.key_in(&project, of("b")).await;
    fresh.key_in(&project, KeyTerms::default()).await;
    let list = async |owner| {
        let (tenant, store) = (&fresh.tenant_id, &fresh.store);
        let page = store.list_keys(tenant, &project, owner, None, 10, NOW).await.unwrap();
        page.rows.into_iter().map(|key| key.id).collect::<Vec<_>>()
    };
    assert_eq!(list(Some("a")).await, [a]);
    assert!(list(Some("nobody")).await.is_empty());
    assert_eq!(list(None).await.len(), 3);
}

async fn an_update_changes_what_is_given_and_keeps_the_rest(fresh: Fresh) {
    let (id, hash) = fresh.key(full_terms()).await;
    let (store, tenant) = (&fresh.store, fresh.tenant_id.as_str());
    let before = store.key_view(tenant, &id, NOW).await.unwrap().unwrap();
    let later = Millis(NOW.0 + 1);
    store.update_key(fresh.by_at(later), &id, KeyPatch::default()).await.unwrap();
    let mut kept = store.key_view(tenant, &id, NOW).await.unwrap().unwrap();
    assert_eq!(kept.updated_at.take(), Some(later));
    assert_eq!(kept, before);
    let patch = KeyPatch {
        name: Patch::Clear,
        external_id: Patch::Set("v".to_owned()),
        meta: Patch::Set("{}".to_owned()),
        expires: Patch::Clear,
        enabled: Some(false),
        tier: Patch::Clear,
        ip_allowlist: Some(Vec::new()),
        limits: Patch::Clear,
        permissions: Some(texts(&["only"])),
        ..KeyPatch::default()
    };
    store.update_key(fresh.by(), &id, patch).await.unwrap();
    let after = store.key_view(tenant, &id, NOW).await.unwrap().unwrap();
    assert_eq!((after.name, after.meta.as_deref(), after.expires), (None, Some("{}"), None));
    assert_eq!((after.enabled, after.tier, after.limits), (false, None, Vec::new()));
    assert_eq!((after.permissions, after.credits), (texts(&["only"]), before.credits));
    assert_eq!(after.identity.unwrap().external_id, "v");
    assert!(!fresh.verified(hash).await.unwrap().enabled);
    let patch = KeyPatch { external_id: Patch::Clear, ..KeyPatch::default() };
    store.update_key(fresh.by(), &id, patch).await.unwrap();
    assert!(store.key_view(tenant, &id, NOW).await.unwrap().unwrap().identity.is_none());
}

async fn limits_that_stay_keep_their_ids(fresh: Fresh) {
    let (id, _) = fresh.key(full_terms()).await;
    let (store, tenant) = (&fresh.store, fresh.tenant_id.as_str());
    let before = store.key_view(tenant, &id, NOW).await.unwrap().unwrap().limits;
    let limits = Patch::Set(vec![limit_named("b", 20), limit_named("c", 3)]);
    let patch = KeyPatch { limits, ..KeyPatch::default() };
    store.update_key(fresh.by(), &id, patch).await.unwrap();
    let after = store.key_view(tenant, &id, NOW).await.unwrap().unwrap().limits;
    let names: Vec<_> = after.iter().map(|one| one.terms.name.as_str()).collect();
    assert_eq!(names, ["b", "c"]);
    assert_eq!((&after[0].id, after[0].terms.clone()), (&before[1].id, limit_named("b", 20)));
    let twice = Patch::Set(vec![limit_named("b", 20), limit_named("b", 3)]);
    let patch = KeyPatch { limits: twice, ..KeyPatch::default() };
    let refused = store.update_key(fresh.by(), &id, patch).await;
    assert!(matches!(refused, Err(StoreError::Taken { what: Thing::Limit })));
}

async fn permissions_are_added_removed_and_set_and_the_whole_set_comes_back(fresh: Fresh) {
    let (id, _) = fresh.key(full_terms()).await;
    let change = async |grant, slugs: &[&str]| {
        let (store, by) = (&fresh.store, fresh.by());
        let set = store.change_key_permissions(by, &id, grant, &texts(slugs)).await.unwrap().value;
        assert!(set.iter().all(|one| one.id.starts_with("perm_")));
        set.into_iter().map(|one| one.slug).collect::<Vec<_>>()
    };
    assert_eq!(change(Grant::Add, &["x", "p.read", "x"]).await, ["p.read", "p.write", "x"]);
    assert_eq!(change(Grant::Remove, &["p.read", "unknown"]).await, ["p.write", "x"]);
    assert_eq!(change(Grant::Set, &["z", "y"]).await, ["y", "z"]);
    assert!(change(Grant::Set, &[]).await.is_empty());
    assert_eq!(fresh.count("SELECT COUNT(*) FROM permissions").await, 5);
}

async fn roles_are_added_removed_and_set_and_an_unknown_one_is_refused(fresh: Fresh) {
    for name in ["a", "b", "c"] {
        let permissions = texts(&[&format!("of_{name}")]);
        let role = NewRole { name: name.to_owned(), permissions, ..NewRole::default() };
        fresh.store.create_role(fresh.by(), role).await.unwrap();
    }
    let (id, hash) = fresh.key(KeyTerms::default()).await;
    let change = async |grant, names: &[&str]| {
        let (store, by) = (&fresh.store, fresh.by());
        let set = store.change_key_roles(by, &id, grant, &texts(names)).await?.value;
        Ok::<_, StoreError>(set.into_iter().map(|one| one.name).collect::<Vec<_>>())
    };
    assert_eq!(change(Grant::Add, &["b", "a"]).await.unwrap(), ["a", "b"]);
    assert_eq!(change(Grant::Remove, &["a"]).await.unwrap(), ["b"]);
    assert_eq!(change(Grant::Set, &["c", "a"]).await.unwrap(), ["a", "c"]);
    for grant in [Grant::Add, Grant::Remove, Grant::Set] {
        let refused = change(grant, &["a", "none"]).await;
        assert!(matches!(refused, Err(StoreError::NotFound { what: Thing::Role, .. })));
    }
    let key = fresh.verified(hash).await.unwrap();
    let names: Vec<_> = key.permissions.iter().map(AsRef::as_ref).collect();
    assert_eq!(names, ["of_a", "of_c"]);
}

async fn a_rerolled_key_takes_everything_over_and_the_old_one_ends(fresh: Fresh) {
    let role = NewRole { name: "r".to_owned(), ..NewRole::default() };
    fresh.store.create_role(fresh.by(), role).await.unwrap();
    let terms = KeyTerms { roles: texts(&["r"]), ..full_terms() };
    let (old, old_hash) = fresh.key(terms).await;
    let (store, tenant) = (&fresh.store, fresh.tenant_id.as_str());
    let hash = fresh.fresh_hash();
    let until = Millis(NOW.0 + 60_000);
    let secret = KeySecret { start: "sk_new1".to_owned(), ..secret(hash) };
    let reroll = crate::reroll(secret, until);
    let new = store.reroll_key(fresh.by(), &old, reroll).await.unwrap().value;
    let shown = async |id: &str| store.key_view(tenant, id, NOW).await.unwrap().unwrap();
    let (before, mut after) = (shown(&old).await, shown(&new).await);
    assert_eq!((before.expires, after.expires), (Some(until), full_terms().expires));
    assert_eq!((after.hash.hash, after.start.as_str()), (hash, "sk_new1"));
    let ids = |limits: &[tollkeeper_store::LimitRow]| {
        limits.iter().map(|one| one.id.clone()).collect::<std::collections::HashSet<_>>()
    };
    assert!(ids(&before.limits).is_disjoint(&ids(&after.limits)));
    for (limit, own) in after.limits.iter_mut().zip(&before.limits) {
        limit.id.clone_from(&own.id);
    }
    after.id.clone_from(&before.id);
    after.hash = before.hash;
    after.start.clone_from(&before.start);
    after.expires = before.expires;
    after.updated_at = before.updated_at;
    assert_eq!(after, before);
    assert_eq!(*fresh.verified(hash).await.unwrap().id, *new);
    assert_eq!(fresh.verified(old_hash).await.unwrap().expires, Some(until));
    // A key that ends sooner by itself is not given more time.
    let late = Millis(NOW.0 + 9_000_000);
    let secret = crate::secret(fresh.fresh_hash());
    let reroll = crate::reroll(secret, late);
    store.reroll_key(fresh.by(), &old, reroll).await.unwrap();
    assert_eq!(shown(&old).await.expires, Some(until));
}

async fn a_ciphertext_comes_back_and_a_fresh_id_is_kept(fresh: Fresh) {
    let project_id = fresh.project("p").await;
    let id = Store::fresh_key_id().unwrap();
    let recoverable = Some(vec![0, 255, 1]);
    let secret = KeySecret { recoverable: recoverable.clone(), ..secret(fresh.fresh_hash()) };
    let new = NewKey { id: Some(id.clone()), project_id, secret, terms: KeyTerms::default() };
    assert_eq!(fresh.store.create_key(fresh.by(), new).await.unwrap().value, id);
    let view = fresh.store.key_view(&fresh.tenant_id, &id, NOW).await.unwrap().unwrap();
    assert_eq!(view.recoverable, recoverable);
}
