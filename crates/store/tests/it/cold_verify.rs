//! A key as verification loads it: whole, in one statement, and never one that is gone.

use tollkeeper_core::{
    CreditRefill, CreditTerms, HostPattern, Limit, Millis, RefillEvery, SealedSecret, Window,
};
use tollkeeper_decide::{Directory, KeyHash, KeyHashes};
use tollkeeper_store::{
    Credits, Deletion, IdentityPatch, KeyTerms, LimitTerms, NewProject, NewRole, Patch,
    ProjectPatch, Used,
};

use crate::{Fresh, NOBODY, NOW, limit_named, quota, texts, width};

on_both! {
    a_key_comes_with_everything_its_verdict_depends_on,
    a_plain_key_comes_without_anything,
    an_unknown_key_is_not_there,
    a_key_is_found_as_ever_among_many_that_are_not_there,
    a_deleted_key_and_a_key_of_a_deleted_project_are_not_there,
    a_revoked_key_is_found_as_revoked_and_keeps_its_first_moment,
    every_algorithm_of_a_limit_comes_back_as_it_was_set,
    permissions_of_roles_and_its_own_come_sorted_and_each_once,
    of_an_imported_and_an_own_key_with_the_same_text_the_own_one_counts,
    the_keys_used_last_come_newest_first_and_whole,
}

fn hosts(list: &[&str]) -> Vec<HostPattern> {
    list.iter().map(|text| HostPattern::parse(text).unwrap()).collect()
}

async fn a_key_comes_with_everything_its_verdict_depends_on(fresh: Fresh) {
    let new = NewProject {
        name: "P".to_owned(),
        allowed_referers: hosts(&["*.example.com"]),
        allowed_sources: hosts(&["a.org", "b.org"]),
        default_limits: vec![limit_named("default_minute", 60)],
        ..NewProject::default()
    };
    let project = fresh.store.create_project(fresh.by(), new).await.unwrap().value;
    let role =
        NewRole { name: "r".to_owned(), permissions: texts(&["z", "b"]), ..NewRole::default() };
    fresh.store.create_role(fresh.by(), role).await.unwrap();
    let refill = CreditRefill { every: RefillEvery::Month { on: 31 }, amount: 100 };
    let terms = KeyTerms {
        name: Some("n".to_owned()),
        meta: Some(r#"{"a":1}"#.to_owned()),
        enabled: false,
        expires: Some(Millis(NOW.0 + 5)),
        ip_allowlist: vec!["10.0.0.0/8".parse().unwrap(), "2001:db8::/32".parse().unwrap()],
        tier: Some("pro".to_owned()),
        signing: Some(SealedSecret::new(*b"sealed")),
        external_id: Some("user_1".to_owned()),
        credits: Some(Credits { remaining: 7, refill: Some(refill) }),
        limits: vec![limit_named("requests", 5), limit_named("tokens", 9)],
        permissions: texts(&["a", "b"]),
        roles: texts(&["r"]),
    };
    let (key_id, hash) = fresh.key_in(&project.id, terms).await;
    let patch = IdentityPatch {
        meta: Patch::Set("{}".to_owned()),
        tier: Patch::Set("gold".to_owned()),
        limits: Some(vec![limit_named("shared", 3)]),
    };
    fresh.store.update_identity(fresh.by(), "user_1", patch).await.unwrap();
    let key = fresh.verified(hash).await.unwrap();
    assert_eq!((&*key.id, &*key.tenant_id), (key_id.as_str(), fresh.tenant_id.as_str()));
    assert_eq!((&*key.tenant_slug, key.tenant_enabled), ("default", true));
    assert_eq!(*key.project.id, *project.id);
    assert_eq!(key.project.allowed_referers, hosts(&["*.example.com"]));
    assert_eq!(key.project.allowed_sources, hosts(&["a.org", "b.org"]));
    let defaults: Vec<_> = key.project.default_limits.iter().map(|one| &*one.name).collect();
    assert_eq!(defaults, ["default_minute"]);
    assert_eq!((key.name.as_deref(), key.meta.as_deref()), (Some("n"), Some(r#"{"a":1}"#)));
    assert_eq!((key.enabled, key.expires), (false, Some(Millis(NOW.0 + 5))));
    assert_eq!(key.ip_allowlist.len(), 2);
    assert_eq!(key.tier.as_deref(), Some("pro"));
    assert_eq!(key.signing, Some(SealedSecret::new(*b"sealed")));
    let names = |list: &[Box<str>]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&key.permissions), ["a", "b", "z"]);
    assert_eq!(names(&key.roles), ["r"]);
    let mut limits: Vec<_> = key.limits.iter().map(|one| (&*one.name, one.limit.quota)).collect();
    limits.sort_unstable();
    assert_eq!(limits, [("requests", quota(5)), ("tokens", quota(9))]);
    assert!(key.limits.iter().all(|one| one.id.starts_with("rl_") && one.auto_apply));
    let identity = key.identity.unwrap();
    assert!(identity.id.starts_with("id_"));
    assert_eq!((&*identity.external_id, identity.tier.as_deref()), ("user_1", Some("gold")));
    assert_eq!((identity.meta.as_deref(), &*identity.limits[0].name), (Some("{}"), "shared"));
    assert_eq!(key.credits, Some(CreditTerms { refill: Some(refill) }));
}

async fn a_plain_key_comes_without_anything(fresh: Fresh) {
    let (_, hash) = fresh.key(KeyTerms::default()).await;
    let key = fresh.verified(hash).await.unwrap();
    assert!(key.enabled && key.expires.is_none() && key.revoked_at.is_none());
    assert!(key.permissions.is_empty() && key.roles.is_empty() && key.limits.is_empty());
    assert!(key.identity.is_none() && key.credits.is_none() && key.ip_allowlist.is_empty());
}

async fn an_unknown_key_is_not_there(fresh: Fresh) {
    assert!(fresh.verified(NOBODY).await.is_none());
}

async fn a_deleted_key_and_a_key_of_a_deleted_project_are_not_there(fresh: Fresh) {
    let project = fresh.project("p").await;
    let (soft, soft_hash) = fresh.key_in(&project, KeyTerms::default()).await;
    let terms = KeyTerms { limits: vec![limit_named("x", 1)], ..KeyTerms::default() };
    let (gone, gone_hash) = fresh.key_in(&project, terms).await;
    let (_, left_hash) = fresh.key_in(&project, KeyTerms::default()).await;
    fresh.store.delete_key(fresh.by(), &soft, Deletion::Soft).await.unwrap();
    fresh.store.delete_key(fresh.by(), &gone, Deletion::Permanent).await.unwrap();
    assert!(fresh.verified(soft_hash).await.is_none());
    assert!(fresh.verified(gone_hash).await.is_none());
    assert!(fresh.verified(left_hash).await.is_some());
    assert_eq!(fresh.count("SELECT COUNT(*) FROM keys").await, 2);
    assert_eq!(fresh.count("SELECT COUNT(*) FROM limits").await, 0);
    fresh.store.delete_key(fresh.by(), &soft, Deletion::Permanent).await.unwrap();
    fresh.store.delete_project(fresh.by(), &project).await.unwrap();
    assert!(fresh.verified(left_hash).await.is_none());
}

async fn a_revoked_key_is_found_as_revoked_and_keeps_its_first_moment(fresh: Fresh) {
    let (id, hash) = fresh.key(KeyTerms::default()).await;
    fresh.store.revoke_key(fresh.by(), &id, Some("leaked")).await.unwrap();
    let later = fresh.by_at(Millis(NOW.0 + 9));
    fresh.store.revoke_key(later, &id, Some("again")).await.unwrap();
    assert_eq!(fresh.verified(hash).await.unwrap().revoked_at, Some(NOW));
    let view = fresh.store.key_view(&fresh.tenant_id, &id, NOW).await.unwrap().unwrap();
    assert_eq!((view.revoked_at, view.revoked_reason.as_deref()), (Some(NOW), Some("leaked")));
}

async fn every_algorithm_of_a_limit_comes_back_as_it_was_set(fresh: Fresh) {
    let limits = [
        Limit::sliding_window(quota(1), width(1000)),
        Limit::fixed_window(quota(2), Window::Aligned(width(2000))),
        Limit::fixed_window(quota(3), Window::Day),
        Limit::fixed_window(quota(4), Window::Month),
        Limit::sliding_log(quota(5), width(5000)).unwrap(),
        Limit::token_bucket(quota(6), width(6000), Some(quota(60))),
    ];
    let named = |(at, limit): (usize, &Limit)| LimitTerms {
        limit: *limit,
        ..limit_named(&format!("limit_{at}"), 1)
    };
    let terms: Vec<_> = limits.iter().enumerate().map(named).collect();
    let (id, hash) = fresh.key(KeyTerms { limits: terms.clone(), ..KeyTerms::default() }).await;
    let patch = ProjectPatch { default_limits: Some(terms), ..ProjectPatch::default() };
    fresh.store.update_project(fresh.by(), "p", patch).await.unwrap();
    let mut key = fresh.verified(hash).await.unwrap();
    key.limits.sort_by(|a, b| a.name.cmp(&b.name));
    let own: Vec<_> = key.limits.iter().map(|one| one.limit).collect();
    let default: Vec<_> = key.project.default_limits.iter().map(|one| one.limit).collect();
    let view = fresh.store.key_view(&fresh.tenant_id, &id, NOW).await.unwrap().unwrap();
    let shown: Vec<_> = view.limits.iter().map(|one| one.terms.limit).collect();
    assert_eq!((own.as_slice(), default.as_slice()), (limits.as_slice(), limits.as_slice()));
    assert_eq!(shown, limits);
}

async fn permissions_of_roles_and_its_own_come_sorted_and_each_once(fresh: Fresh) {
    for (name, permissions) in [("r1", texts(&["x", "m"])), ("r2", texts(&["m", "B"]))] {
        let role = NewRole { name: name.to_owned(), permissions, ..NewRole::default() };
        fresh.store.create_role(fresh.by(), role).await.unwrap();
    }
    let terms = KeyTerms {
        permissions: texts(&["m", "a"]),
        roles: texts(&["r2", "r1"]),
        ..KeyTerms::default()
    };
    let (_, hash) = fresh.key(terms).await;
    let key = fresh.verified(hash).await.unwrap();
    let names: Vec<_> = key.permissions.iter().map(AsRef::as_ref).collect();
    assert_eq!(names, ["B", "a", "m", "x"]);
    let roles: Vec<_> = key.roles.iter().map(AsRef::as_ref).collect();
    assert_eq!(roles, ["r1", "r2"]);
}

async fn of_an_imported_and_an_own_key_with_the_same_text_the_own_one_counts(fresh: Fresh) {
    use tollkeeper_store::{ImportedKey, imported_hash};
    let project = fresh.project("p").await;
    let sha256 = KeyHash([0x77; 32]);
    let row = ImportedKey { id: None, hash: sha256, terms: KeyTerms::default() };
    let imported = imported_hash(&fresh.tenant_id, sha256);
    fresh.store.import_keys(fresh.by(), &project, "m", vec![row]).await.unwrap();
    let both = |ours| KeyHashes { ours, imported };
    let found = fresh.store.key(both(NOBODY)).await.unwrap().unwrap();
    let (own, hash) = fresh.key_in(&project, KeyTerms::default()).await;
    assert_ne!(*found.id, *own);
    assert_eq!(*fresh.store.key(both(hash)).await.unwrap().unwrap().id, *own);
    // The other kind of hash with the same bytes is another key.
    assert!(fresh.verified(imported).await.is_none());
}

async fn the_keys_used_last_come_newest_first_and_whole(fresh: Fresh) {
    let terms = || KeyTerms { permissions: texts(&["a"]), ..KeyTerms::default() };
    let project = fresh.project("p").await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(fresh.key_in(&project, terms()).await);
    }
    let moments: Vec<_> = [(0, 10), (1, 30), (2, 20)]
        .map(|(at, ms): (usize, u64)| (ids[at].0.clone(), Millis(ms)))
        .into();
    fresh.store.touch_last_used(Used::Key, &moments).await.unwrap();
    // Never backwards, and what is gone is passed over.
    let late = [(ids[1].0.clone(), Millis(5)), ("key_gone".to_owned(), Millis(5))];
    fresh.store.touch_last_used(Used::Key, &late).await.unwrap();
    let used = fresh.store.most_recently_used(None, 10).await.unwrap().0;
    let found: Vec<_> = used.iter().map(|(hash, key)| (hash.hash, key.id.to_string())).collect();
    let expected: Vec<_> = [1, 2, 0].map(|at: usize| (ids[at].1, ids[at].0.clone())).into();
    assert_eq!(found, expected);
    assert!(used.iter().all(|(_, key)| key.permissions.len() == 1));
    let (two, last) = fresh.store.most_recently_used(None, 2).await.unwrap();
    assert_eq!(two.len(), 2);
    let (rest, _) = fresh.store.most_recently_used(last.as_ref(), 10).await.unwrap();
    assert_eq!(two.len() + rest.len(), used.len(), "a page goes on where the last one ended");
}

async fn a_key_is_found_as_ever_among_many_that_are_not_there(fresh: Fresh) {
    let (key_id, hash) = fresh.key(KeyTerms::default()).await;
    let stranger = |n: u8| {
        let hash = KeyHash([0x80 | n; 32]);
        fresh.store.key(KeyHashes { ours: hash, imported: hash })
    };
    let own = || fresh.store.key(KeyHashes { ours: hash, imported: hash });
    for n in 1..40 {
        assert!(stranger(n).await.unwrap().is_none());
    }
    assert_eq!(own().await.unwrap().map(|key| key.id.to_string()), Some(key_id.clone()));
    // One that is deleted among strangers is not there either.
    for n in 40..80 {
        assert!(stranger(n).await.unwrap().is_none());
    }
    fresh.store.delete_key(fresh.by(), &key_id, Deletion::Permanent).await.unwrap();
    assert!(own().await.unwrap().is_none());
}
