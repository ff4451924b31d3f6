//! The secret of a database: the first one is its own, and every other one is refused.

use tollkeeper_store::StoreError;

use crate::Fresh;

on_both! { a_database_holds_to_the_first_secret_it_was_opened_with }

async fn a_database_holds_to_the_first_secret_it_was_opened_with(fresh: Fresh) {
    let other = fresh.another().await;
    fresh.store.hold_to_secret([1; 16]).await.unwrap();
    for store in [&fresh.store, &other] {
        store.hold_to_secret([1; 16]).await.unwrap();
        let refused = store.hold_to_secret([2; 16]).await;
        assert!(matches!(refused, Err(StoreError::OtherSecret)));
    }
}
