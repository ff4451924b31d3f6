//! Keys from elsewhere: taken by their hash, each on its own, and never twice.

use tollkeeper_decide::{Directory, KeyHash, KeyHashes};
use tollkeeper_store::{HashKind, ImportFailure, ImportedKey, KeyTerms, NewRole};

use crate::{FIRST_KEY, Fresh, NOBODY, limit_named, texts};

on_both! {
    what_can_be_imported_is_and_the_rest_is_told_row_by_row,
    the_first_import_is_known_of_the_tenant,
}

fn row(byte: u8, terms: KeyTerms) -> ImportedKey {
    ImportedKey { hash: KeyHash([byte; 32]), terms }
}

async fn what_can_be_imported_is_and_the_rest_is_told_row_by_row(fresh: Fresh) {
    let project = fresh.project("p").await;
    let role = NewRole { name: "r".to_owned(), ..NewRole::default() };
    fresh.store.create_role(fresh.by(), role).await.unwrap();
    let with_roles = |roles: &[&str]| KeyTerms { roles: texts(roles), ..KeyTerms::default() };
    let twice =
        KeyTerms { limits: vec![limit_named("a", 1), limit_named("a", 2)], ..KeyTerms::default() };
    let full = KeyTerms {
        external_id: Some("u".to_owned()),
        permissions: texts(&["x"]),
        limits: vec![limit_named("a", 1)],
        ..with_roles(&["r"])
    };
    let rows = vec![
        row(1, full),
        row(2, with_roles(&["none"])),
        row(1, KeyTerms::default()),
        row(3, twice),
        row(4, KeyTerms::default()),
    ];
    let done = fresh.store.import_keys(fresh.by(), &project, "m", rows).await.unwrap().value;
    let migrated: Vec<_> = done.migrated.iter().map(|(hash, _)| hash.0[0]).collect();
    assert_eq!(migrated, [1, 4]);
    let failed: Vec<_> = done.failed.into_iter().map(|(hash, why)| (hash.0[0], why)).collect();
    let none = ImportFailure::NoSuchRole("none".to_owned());
    assert_eq!(failed, [(2, none), (1, ImportFailure::Known), (3, ImportFailure::LimitTwice)]);
    let hashes = KeyHashes { ours: NOBODY, imported: KeyHash([1; 32]) };
    let key = fresh.store.key(hashes).await.unwrap().unwrap();
    assert_eq!((&*key.id, key.limits.len()), (done.migrated[0].1.as_str(), 1));
    assert_eq!((*key.permissions).len(), 1);
    let view = fresh.store.key_view(&fresh.tenant_id, &key.id, crate::NOW).await.unwrap().unwrap();
    assert_eq!(view.hash.kind, HashKind::Sha256);
}

async fn the_first_import_is_known_of_the_tenant(fresh: Fresh) {
    let project = fresh.project("p").await;
    let imports =
        async || fresh.store.root_key(FIRST_KEY).await.unwrap().unwrap().tenant.has_imports;
    assert!(!imports().await);
    fresh.store.import_keys(fresh.by(), &project, "m", Vec::new()).await.unwrap();
    assert!(!imports().await);
    let rows = vec![row(9, KeyTerms::default())];
    fresh.store.import_keys(fresh.by(), &project, "m", rows).await.unwrap();
    assert!(imports().await);
}
