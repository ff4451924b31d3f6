//! A configuration on its way into another store: what cannot go there is named, with where it stands.

use serde_json::{Value, json};
use tollkeeper_store::{ConfigError, Store};
use tollkeeper_testkit::Postgres;

use crate::Fresh;

#[tokio::test]
async fn a_text_that_postgres_cannot_store_is_named_with_its_table_row_and_column() {
    let database = Postgres::shared().unwrap().database().unwrap();
    let store = Store::connect(&database.url, None).await.unwrap();
    let mut import = store.import_config().await.unwrap();
    let Value::Object(row) = json!({"id": "key_1", "name": "a\0b"}) else { panic!("an object") };
    let refused = import.put("keys", &row).await;
    let error = refused.unwrap_err();
    assert!(matches!(error, ConfigError::NulText { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("the name of \"key_1\" in keys holds the character U+0000"), "{text}");
}

#[tokio::test]
async fn a_text_with_nul_still_comes_back_into_sqlite() {
    let fresh = Fresh::new().await;
    let exported = |store: Store| async move {
        let mut rows = Vec::new();
        let mut sink = |table: &str, row: &str| {
            rows.push((table.to_owned(), row.to_owned()));
            Ok(())
        };
        store.export_config(&mut sink).await.unwrap().unwrap();
        rows
    };
    fresh.project("a\0b").await;
    let rows = exported(fresh.another().await).await;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("tollkeeper.db")).await.unwrap();
    let mut import = store.import_config().await.unwrap();
    for (table, text) in &rows {
        import.put(table, &serde_json::from_str(text).unwrap()).await.unwrap();
    }
    import.commit().await.unwrap();
    assert_eq!(exported(store).await, rows);
}
