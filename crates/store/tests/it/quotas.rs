//! Quotas and blocks: set by name, seen with every key of the identity and by everybody who looks it up.

use tollkeeper_core::{Block, IdentityQuota, Millis};
use tollkeeper_decide::Directory;
use tollkeeper_store::{
    BlockView, Changed, IdentityUse, KeyTerms, Patch, QuotaPatch, StoreError, Thing,
};

use crate::{Fresh, NOW, limit_named};

on_both! {
    a_quota_is_set_field_by_field_and_null_clears,
    who_was_never_seen_is_made_by_set_and_by_block_and_by_nothing_else,
    a_block_is_seen_with_every_key_and_by_name_until_it_is_lifted,
    a_change_of_a_quota_drops_the_keys_and_the_name,
    uses_add_up_and_never_go_back,
}

async fn a_quota_is_set_field_by_field_and_null_clears(fresh: Fresh) {
    let set = async |patch| fresh.store.set_quota(fresh.by(), "ann", patch).await.unwrap().value;
    let patch = QuotaPatch {
        tier: Patch::Set("pro".to_owned()),
        per_second: Patch::Set(5),
        per_day: Patch::Set(1000),
        burst: Patch::Set(50),
        ..QuotaPatch::default()
    };
    let quota = IdentityQuota {
        per_second: Some(5),
        per_day: Some(1000),
        burst: Some(50),
        ..IdentityQuota::default()
    };
    assert_eq!(set(patch).await.quota, quota);
    let patch = QuotaPatch {
        per_second: Patch::Clear,
        per_minute: Patch::Set(7),
        per_hour: Patch::Set(8),
        ..QuotaPatch::default()
    };
    let after = set(patch).await;
    let quota = IdentityQuota { per_second: None, per_minute: Some(7), per_hour: Some(8), ..quota };
    assert_eq!((after.quota, after.tier.as_deref()), (quota, Some("pro")));
    let found = fresh.store.quota(&fresh.tenant_id, "ann").await.unwrap();
    assert_eq!(found.as_ref(), Some(&after));
    let cleared = set(QuotaPatch { tier: Patch::Clear, ..QuotaPatch::default() }).await;
    assert_eq!((cleared.tier, cleared.quota), (None, quota));
}

async fn who_was_never_seen_is_made_by_set_and_by_block_and_by_nothing_else(fresh: Fresh) {
    let (store, tenant, by) = (&fresh.store, fresh.tenant_id.as_str(), fresh.by());
    assert!(store.quota(tenant, "ann").await.unwrap().is_none());
    let nobody = store.unblock_identity(by, "ann").await;
    assert!(matches!(nobody, Err(StoreError::NotFound { what: Thing::Identity, .. })));
    let set = store.set_quota(by, "ann", QuotaPatch::default()).await.unwrap().value;
    let blocked = store.block_identity(by, "bob", None, None).await.unwrap().value;
    assert!(set.block.is_none() && blocked.block.is_some());
    for name in ["ann", "bob"] {
        assert!(store.identity(tenant, name).await.unwrap().is_some(), "{name}");
    }
    let other = fresh.second_tenant().await;
    assert!(store.quota(&other, "ann").await.unwrap().is_none());
}

async fn a_block_is_seen_with_every_key_and_by_name_until_it_is_lifted(fresh: Fresh) {
    let terms = KeyTerms { external_id: Some("ann".to_owned()), ..KeyTerms::default() };
    let (_, hash) = fresh.key(terms).await;
    let (store, by) = (&fresh.store, fresh.by());
    let until = Some(Millis(NOW.0 + 1000));
    let view = store.block_identity(by, "ann", Some("unpaid"), until).await.unwrap().value;
    let expected = BlockView { at: NOW, reason: Some("unpaid".to_owned()), until };
    assert_eq!(view.block, Some(expected));
    let patch = QuotaPatch { per_hour: Patch::Set(9), ..QuotaPatch::default() };
    store.set_quota(by, "ann", patch).await.unwrap();
    let limits = Some(vec![limit_named("calls", 3)]);
    let patch = tollkeeper_store::IdentityPatch { limits, ..Default::default() };
    store.update_identity(by, "ann", patch).await.unwrap();
    let by_key = fresh.verified(hash).await.unwrap().identity.unwrap();
    let by_name = Directory::identity(store, &fresh.tenant_id, "ann").await.unwrap().unwrap();
    for seen in [by_key, by_name] {
        assert_eq!(seen.block, Some(Block { reason: Some("unpaid".into()), until }));
        assert_eq!((seen.quota.per_hour, seen.limits.len()), (Some(9), 1));
        assert!(seen.is_blocked(NOW) && !seen.is_blocked(Millis(NOW.0 + 1000)));
    }
    assert!(Directory::identity(store, &fresh.tenant_id, "bob").await.unwrap().is_none());
    store.unblock_identity(by, "ann").await.unwrap();
    assert!(fresh.verified(hash).await.unwrap().identity.unwrap().block.is_none());
    let again = store.unblock_identity(by, "ann").await.unwrap().value;
    assert!(again.block.is_none(), "who is not blocked is left as it is");
}

async fn a_change_of_a_quota_drops_the_keys_and_the_name(fresh: Fresh) {
    let terms = KeyTerms { external_id: Some("ann".to_owned()), ..KeyTerms::default() };
    let (key_id, _) = fresh.key(terms).await;
    let (store, by) = (&fresh.store, fresh.by());
    for action in ["set", "block", "unblock"] {
        let before = store.current_revision().await.unwrap();
        match action {
            "set" => drop(store.set_quota(by, "ann", QuotaPatch::default()).await.unwrap()),
            "block" => drop(store.block_identity(by, "ann", None, None).await.unwrap()),
            _ => drop(store.unblock_identity(by, "ann").await.unwrap()),
        }
        let told = store.outbox_since(before, 10).await.unwrap();
        let of_key = |one: &Changed| matches!(one, Changed::Key { id, .. } if *id == key_id);
        let of_name = |one: &Changed| matches!(one, Changed::Identity { external_id, .. } if external_id == "ann");
        assert!(told.iter().any(|entry| of_key(&entry.changed)), "{action}");
        assert!(told.iter().any(|entry| of_name(&entry.changed)), "{action}");
    }
    let audited = "SELECT COUNT(*) FROM admin_audit WHERE action LIKE 'quotas.%'";
    assert_eq!(fresh.count(audited).await, 3);
}

async fn uses_add_up_and_never_go_back(fresh: Fresh) {
    let store = &fresh.store;
    let id =
        store.set_quota(fresh.by(), "ann", QuotaPatch::default()).await.unwrap().value.identity_id;
    let used = |exceeded, at| IdentityUse {
        identity_id: id.clone(),
        exceeded,
        last_request_at: Millis(at),
    };
    let nobody = IdentityUse { identity_id: "id_nobody".to_owned(), ..used(1, 1) };
    store.note_identity_uses(&[used(2, 50), nobody, used(1, 40)]).await.unwrap();
    store.note_identity_uses(&[used(4, 30)]).await.unwrap();
    store.note_identity_uses(&[]).await.unwrap();
    let seen = store.quota(&fresh.tenant_id, "ann").await.unwrap().unwrap();
    assert_eq!((seen.exceeded_count, seen.last_request_at), (7, Some(Millis(50))));
}
