//! Where limits are counted: what the first start says, what is set later, and that everybody is told.

use tollkeeper_core::Millis;
use tollkeeper_decide::Mode;
use tollkeeper_store::{By, Changed, StoreError, StoredModes, Thing};

use crate::{Fresh, NOW};

on_both! {
    the_first_start_says_the_mode_and_no_later_one_does,
    a_tenant_has_a_mode_of_its_own_until_it_is_like_the_fleet_again,
    every_change_of_a_mode_is_announced,
    a_rollback_takes_everybody_to_memory_and_happens_once,
}

async fn the_first_start_says_the_mode_and_no_later_one_does(fresh: Fresh) {
    let store = &fresh.store;
    assert_eq!(store.modes().await.unwrap(), StoredModes::default());
    assert_eq!(store.first_mode(Mode::Shadow, NOW).await.unwrap().fleet, Some(Mode::Shadow));
    assert_eq!(store.first_mode(Mode::Redis, NOW).await.unwrap().fleet, Some(Mode::Shadow));
    store.set_mode(fresh.by(), None, Some(Mode::Memory)).await.unwrap();
    assert_eq!(store.first_mode(Mode::Redis, NOW).await.unwrap().fleet, Some(Mode::Memory));
}

async fn a_tenant_has_a_mode_of_its_own_until_it_is_like_the_fleet_again(fresh: Fresh) {
    let (store, id) = (&fresh.store, fresh.tenant_id.as_str());
    store.first_mode(Mode::Memory, NOW).await.unwrap();
    store.set_mode(fresh.by(), Some(id), Some(Mode::Redis)).await.unwrap();
    let modes = store.modes().await.unwrap();
    assert_eq!((modes.fleet, modes.tenants.get(id)), (Some(Mode::Memory), Some(&Mode::Redis)));
    store.set_mode(fresh.by(), Some(id), None).await.unwrap();
    assert!(store.modes().await.unwrap().tenants.is_empty());
    let nobody = store.set_mode(fresh.by(), Some("ten_nobody"), Some(Mode::Redis)).await;
    assert!(matches!(nobody, Err(StoreError::NotFound { what: Thing::Tenant, .. })));
    assert!(store.modes().await.unwrap().tenants.is_empty());
}

async fn every_change_of_a_mode_is_announced(fresh: Fresh) {
    let store = &fresh.store;
    let before = store.current_revision().await.unwrap();
    let by = By { now: Millis(NOW.0 + 1), ..fresh.by() };
    let fleet = store.set_mode(by, None, Some(Mode::Redis)).await.unwrap().revision;
    let tenant =
        store.set_mode(by, Some(&fresh.tenant_id), Some(Mode::Shadow)).await.unwrap().revision;
    let back = store.roll_back("a", "redis_errors", by.now).await.unwrap().revision;
    let told = store.outbox_since(before, 10).await.unwrap();
    let revisions: Vec<_> = told.iter().map(|entry| entry.revision).collect();
    assert_eq!(revisions, [fleet, tenant, back]);
    assert!(told.iter().all(|entry| entry.changed == Changed::Modes));
}

async fn a_rollback_takes_everybody_to_memory_and_happens_once(fresh: Fresh) {
    let (store, id) = (&fresh.store, fresh.tenant_id.as_str());
    store.first_mode(Mode::Redis, NOW).await.unwrap();
    store.set_mode(fresh.by(), Some(id), Some(Mode::Shadow)).await.unwrap();
    assert!(store.roll_back("a", "redis_memory", NOW).await.unwrap().value);
    let modes = store.modes().await.unwrap();
    assert_eq!((modes.fleet, modes.tenants.get(id)), (Some(Mode::Memory), Some(&Mode::Memory)));
    assert!(!store.roll_back("b", "redis_memory", NOW).await.unwrap().value, "it is done");
}
