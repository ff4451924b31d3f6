//! Identities: one per name, found by either name, with limits of their own, and gone without their keys.

use tollkeeper_store::{IdentityPatch, KeyTerms, NewIdentity, Patch, StoreError, Thing};

use crate::{Fresh, limit_named};

on_both! {
    an_identity_is_found_by_id_and_by_the_tenants_name_for_it,
    a_name_is_taken_once,
    many_keys_made_at_once_for_one_owner_make_one_identity,
    an_update_changes_what_is_given_and_keeps_the_rest,
    a_deleted_identity_leaves_its_keys_without_an_owner,
    a_search_finds_a_text_anywhere_and_takes_its_signs_as_signs,
}

fn named(name: &str) -> NewIdentity {
    NewIdentity { external_id: name.to_owned(), ..NewIdentity::default() }
}

async fn an_identity_is_found_by_id_and_by_the_tenants_name_for_it(fresh: Fresh) {
    let new = NewIdentity {
        meta: Some("{}".to_owned()),
        tier: Some("pro".to_owned()),
        limits: vec![limit_named("b", 2), limit_named("a", 1)],
        ..named("user_1")
    };
    let made = fresh.store.create_identity(fresh.by(), new).await.unwrap().value;
    assert!(made.id.starts_with("id_"));
    let limits: Vec<_> = made.limits.iter().map(|one| one.terms.name.as_str()).collect();
    assert_eq!(limits, ["a", "b"]);
    for name in [made.id.as_str(), "user_1"] {
        let found = fresh.store.identity(&fresh.tenant_id, name).await.unwrap();
        assert_eq!(found.as_ref(), Some(&made));
    }
    assert!(fresh.store.identity(&fresh.tenant_id, "user_2").await.unwrap().is_none());
}

async fn a_name_is_taken_once(fresh: Fresh) {
    fresh.store.create_identity(fresh.by(), named("u")).await.unwrap();
    let taken = fresh.store.create_identity(fresh.by(), named("u")).await;
    assert!(matches!(taken, Err(StoreError::Taken { what: Thing::Identity })));
}

async fn many_keys_made_at_once_for_one_owner_make_one_identity(fresh: Fresh) {
    let project = fresh.project("p").await;
    let terms = || KeyTerms {
        external_id: Some("busy".to_owned()),
        permissions: vec!["same".to_owned()],
        ..KeyTerms::default()
    };
    let fresh = std::sync::Arc::new(fresh);
    let mut makers = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let (fresh, project, terms) = (std::sync::Arc::clone(&fresh), project.clone(), terms());
        makers.spawn(async move { fresh.key_in(&project, terms).await.0 });
    }
    let ids: std::collections::HashSet<_> = makers.join_all().await.into_iter().collect();
    assert_eq!(ids.len(), 6);
    assert_eq!(fresh.count("SELECT COUNT(*) FROM identities").await, 1);
    assert_eq!(fresh.count("SELECT COUNT(*) FROM permissions").await, 1);
}

async fn an_update_changes_what_is_given_and_keeps_the_rest(fresh: Fresh) {
    let new = NewIdentity {
        tier: Some("pro".to_owned()),
        limits: vec![limit_named("a", 1)],
        ..named("u")
    };
    let before = fresh.store.create_identity(fresh.by(), new).await.unwrap().value;
    let patch = IdentityPatch { meta: Patch::Set("{}".to_owned()), ..IdentityPatch::default() };
    let after = fresh.store.update_identity(fresh.by(), "u", patch).await.unwrap().value;
    assert_eq!(
        (after.meta.as_deref(), &after.tier, &after.limits),
        (Some("{}"), &before.tier, &before.limits)
    );
    let patch = IdentityPatch {
        tier: Patch::Clear,
        limits: Some(vec![limit_named("a", 9)]),
        ..IdentityPatch::default()
    };
    let after = fresh.store.update_identity(fresh.by(), &before.id, patch).await.unwrap().value;
    assert_eq!((after.tier, &after.limits[0].id), (None, &before.limits[0].id));
    assert_eq!(after.limits[0].terms, limit_named("a", 9));
}

async fn a_deleted_identity_leaves_its_keys_without_an_owner(fresh: Fresh) {
    let terms = KeyTerms { external_id: Some("u".to_owned()), ..KeyTerms::default() };
    let (_, hash) = fresh.key(terms).await;
    let patch =
        IdentityPatch { limits: Some(vec![limit_named("a", 1)]), ..IdentityPatch::default() };
    fresh.store.update_identity(fresh.by(), "u", patch).await.unwrap();
    assert_eq!(fresh.verified(hash).await.unwrap().identity.unwrap().limits.len(), 1);
    fresh.store.delete_identity(fresh.by(), "u").await.unwrap();
    assert!(fresh.verified(hash).await.unwrap().identity.is_none());
    assert_eq!(fresh.count("SELECT COUNT(*) FROM limits").await, 0);
    let gone = fresh.store.delete_identity(fresh.by(), "u").await;
    assert!(matches!(gone, Err(StoreError::NotFound { what: Thing::Identity, .. })));
}

async fn a_search_finds_a_text_anywhere_and_takes_its_signs_as_signs(fresh: Fresh) {
    for name in ["alice.Smith", "bob_smith", "carol100%", "dave!"] {
        fresh.store.create_identity(fresh.by(), named(name)).await.unwrap();
    }
    let search = async |text| {
        let (store, tenant) = (&fresh.store, &fresh.tenant_id);
        let page = store.list_identities(tenant, Some(text), None, 10).await.unwrap();
        let mut names: Vec<_> = page.rows.into_iter().map(|one| one.external_id).collect();
        names.sort();
        names
    };
    assert_eq!(search("SMITH").await, ["alice.Smith", "bob_smith"]);
    assert_eq!(search("_").await, ["bob_smith"]);
    assert_eq!(search("%").await, ["carol100%"]);
    assert_eq!(search("!").await, ["dave!"]);
    assert_eq!(search("").await.len(), 4);
    assert!(search("nobody").await.is_empty());
    let first = fresh.store.list_identities(&fresh.tenant_id, None, None, 3).await.unwrap();
    let cursor = first.next_cursor.as_deref();
    let rest = fresh.store.list_identities(&fresh.tenant_id, None, cursor, 3).await.unwrap();
    assert_eq!((first.rows.len(), rest.rows.len(), rest.next_cursor), (3, 1, None));
}
