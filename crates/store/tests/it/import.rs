//! Keys from elsewhere: taken by their hash, each on its own, and never twice.

use tollkeeper_decide::{Directory, KeyHash, KeyHashes};
use tollkeeper_store::{
    By, HashKind, ImportFailure, ImportedKey, KeyTerms, NewProject, NewRole, imported_hash,
};

use crate::{FIRST_KEY, Fresh, Home, NOBODY, limit_named, texts};

on_both! {
    what_can_be_imported_is_and_the_rest_is_told_row_by_row,
    the_first_import_is_known_of_the_tenant,
    tenants_that_import_one_hash_have_a_key_each_and_fail_only_by_their_own,
    keys_imported_before_they_were_bound_to_tenants_are_found_after_the_next_opening,
}

/// What the key with this hash is found by, once this tenant has imported it.
fn bound_to(tenant_id: &str, byte: u8) -> KeyHashes {
    KeyHashes { ours: NOBODY, imported: imported_hash(tenant_id, KeyHash([byte; 32])) }
}

fn row(byte: u8, terms: KeyTerms) -> ImportedKey {
    ImportedKey { id: None, hash: KeyHash([byte; 32]), terms }
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
    let hashes = bound_to(&fresh.tenant_id, 1);
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

async fn tenants_that_import_one_hash_have_a_key_each_and_fail_only_by_their_own(fresh: Fresh) {
    let other = fresh.second_tenant().await;
    let theirs = By { tenant_id: &other, ..fresh.by() };
    let new = NewProject { name: "q".to_owned(), ..NewProject::default() };
    let their_project = fresh.store.create_project(theirs, new).await.unwrap().value.id;
    let our_project = fresh.project("p").await;
    let mut ids = Vec::new();
    for (by, project) in [(theirs, &their_project), (fresh.by(), &our_project)] {
        let import = async || {
            let rows = vec![row(7, KeyTerms::default())];
            fresh.store.import_keys(by, project, "m", rows).await.unwrap().value
        };
        let done = import().await;
        assert_eq!((done.migrated.len(), done.failed), (1, Vec::new()));
        assert_eq!(import().await.failed, [(KeyHash([7; 32]), ImportFailure::Known)]);
        let found = fresh.store.key(bound_to(by.tenant_id, 7)).await.unwrap().unwrap();
        assert_eq!((&*found.id, &*found.tenant_id), (&*done.migrated[0].1, by.tenant_id));
        ids.push(done.migrated[0].1.clone());
    }
    assert_ne!(ids[0], ids[1]);
    let plain = KeyHashes { ours: NOBODY, imported: KeyHash([7; 32]) };
    assert!(fresh.store.key(plain).await.unwrap().is_none(), "without a tenant it is nobody's");
}

async fn keys_imported_before_they_were_bound_to_tenants_are_found_after_the_next_opening(
    fresh: Fresh,
) {
    let project = fresh.project("p").await;
    let rows = vec![row(5, KeyTerms::default()), row(6, KeyTerms::default())];
    fresh.store.import_keys(fresh.by(), &project, "m", rows).await.unwrap();
    let (five, six) = (bound_to(&fresh.tenant_id, 5), bound_to(&fresh.tenant_id, 6));
    for (plain, bound) in [(5, five), (6, six)] {
        unbind(&fresh, [plain; 32], bound.imported).await;
        assert!(fresh.store.key(bound).await.unwrap().is_none());
    }
    let again = fresh.another().await;
    for hashes in [five, six] {
        assert!(again.key(hashes).await.unwrap().is_some());
    }
    again.close().await;
    let left = "SELECT COUNT(*) FROM keys WHERE hash_kind = 'sha256'";
    assert_eq!(fresh.count(left).await, 0);
}

/// Puts a row back to how it was kept before.
async fn unbind(fresh: &Fresh, plain: [u8; 32], bound: KeyHash) {
    const UNBIND: &str = "UPDATE keys SET hash = $1, hash_kind = 'sha256' WHERE hash = $2";
    let (plain, bound) = (plain.to_vec(), bound.0.to_vec());
    let touched = match &fresh.home {
        Home::Folder(_) => {
            let unbind = sqlx::query(UNBIND).bind(plain).bind(bound);
            unbind.execute(&mut fresh.beside().await).await.unwrap().rows_affected()
        }
        Home::Server(database) => {
            use sqlx::Connection;
            let mut beside = sqlx::PgConnection::connect(&database.url).await.unwrap();
            let unbind = sqlx::query(UNBIND).bind(plain).bind(bound);
            unbind.execute(&mut beside).await.unwrap().rows_affected()
        }
    };
    assert_eq!(touched, 1);
}
