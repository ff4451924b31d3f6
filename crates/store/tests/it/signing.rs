//! Signing secrets of keys: sealed bytes that go in, come out where a verdict needs them, and are told of nowhere else.

use tollkeeper_core::{Millis, SealedSecret};
use tollkeeper_store::{ImportedKey, KeyPatch, KeyTerms, Patch, Reroll, Reseal, Store};

use crate::{Fresh, NOW, secret};

on_both! {
    a_signing_secret_is_kept_changed_and_taken_away,
    other_changes_leave_a_signing_secret_alone,
    a_rerolled_key_keeps_its_signing_secret_sealed_anew,
    a_signing_secret_that_cannot_be_opened_stops_the_reroll,
    an_imported_key_brings_its_signing_secret_under_its_own_id,
    the_audit_says_that_there_is_a_signing_secret_and_never_which,
}

fn sealed(text: &str) -> SealedSecret {
    SealedSecret::new(text.as_bytes())
}

fn terms(text: &str) -> KeyTerms {
    KeyTerms { signing: Some(sealed(text)), ..KeyTerms::default() }
}

async fn change(fresh: &Fresh, id: &str, signing: Patch<SealedSecret>) {
    let patch = KeyPatch { signing, ..KeyPatch::default() };
    fresh.store.update_key(fresh.by(), id, patch).await.unwrap();
}

async fn a_signing_secret_is_kept_changed_and_taken_away(fresh: Fresh) {
    let (id, hash) = fresh.key(terms("one")).await;
    let kept = async || {
        let view = fresh.store.key_view(&fresh.tenant_id, &id, NOW).await.unwrap().unwrap();
        let verified = fresh.verified(hash).await.unwrap().signing;
        assert_eq!(view.signing, verified);
        verified
    };
    assert_eq!(kept().await, Some(sealed("one")));
    change(&fresh, &id, Patch::Set(sealed("two"))).await;
    assert_eq!(kept().await, Some(sealed("two")));
    change(&fresh, &id, Patch::Clear).await;
    assert_eq!(kept().await, None);
}

async fn other_changes_leave_a_signing_secret_alone(fresh: Fresh) {
    let (id, hash) = fresh.key(terms("one")).await;
    let patch = KeyPatch { name: Patch::Set("n".to_owned()), ..KeyPatch::default() };
    fresh.store.update_key(fresh.by(), &id, patch).await.unwrap();
    assert_eq!(fresh.verified(hash).await.unwrap().signing, Some(sealed("one")));
}

async fn a_rerolled_key_keeps_its_signing_secret_sealed_anew(fresh: Fresh) {
    let (old, old_hash) = fresh.key(terms("one")).await;
    let hash = fresh.fresh_hash();
    let reseal = Reseal::new(|old| {
        assert_eq!(*old, sealed("one"));
        Some(sealed("one for the new key"))
    });
    let old_expires = Some(Millis(NOW.0 + 60_000));
    let reroll = Reroll { id: None, secret: secret(hash), old_expires, reseal };
    fresh.store.reroll_key(fresh.by(), &old, reroll).await.unwrap();
    assert_eq!(fresh.verified(hash).await.unwrap().signing, Some(sealed("one for the new key")));
    assert_eq!(fresh.verified(old_hash).await.unwrap().signing, Some(sealed("one")));
}

async fn a_signing_secret_that_cannot_be_opened_stops_the_reroll(fresh: Fresh) {
    let (old, old_hash) = fresh.key(terms("one")).await;
    let hash = fresh.fresh_hash();
    let reseal = Reseal::new(|_| None);
    let reroll = Reroll { id: None, secret: secret(hash), old_expires: Some(NOW), reseal };
    assert!(fresh.store.reroll_key(fresh.by(), &old, reroll).await.is_err());
    assert_eq!(fresh.verified(old_hash).await.unwrap().expires, None);
}

async fn an_imported_key_brings_its_signing_secret_under_its_own_id(fresh: Fresh) {
    let project = fresh.project("p").await;
    let (id, hash) = (Store::fresh_key_id().unwrap(), fresh.fresh_hash());
    let key = ImportedKey { id: Some(id.clone()), hash, terms: terms("one") };
    let imported = fresh.store.import_keys(fresh.by(), &project, "m", vec![key]).await.unwrap();
    assert_eq!(imported.value.migrated, [(hash, id.clone())]);
    let view = fresh.store.key_view(&fresh.tenant_id, &id, NOW).await.unwrap().unwrap();
    assert_eq!(view.signing, Some(sealed("one")));
}

async fn the_audit_says_that_there_is_a_signing_secret_and_never_which(fresh: Fresh) {
    const TRUE: &str = "SELECT COUNT(*) FROM admin_audit WHERE after LIKE '%\"signing\":true%'";
    const FALSE: &str = "SELECT COUNT(*) FROM admin_audit WHERE after LIKE '%\"signing\":false%'";
    const WHICH: &str = "SELECT COUNT(*) FROM admin_audit WHERE after LIKE '%canary%'";
    let (id, _) = fresh.key(terms("sealed-canary")).await;
    change(&fresh, &id, Patch::Clear).await;
    assert_eq!((fresh.count(TRUE).await, fresh.count(FALSE).await), (1, 1));
    assert_eq!(fresh.count(WHICH).await, 0);
}
