//! The store against real SQLite files, one module per part of its API. Nothing is mocked.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bootstrap;
mod directory;
mod interruption;
mod opening;
mod overrides;
mod shelf;

use std::path::PathBuf;

use tempfile::TempDir;
use tollkeeper_core::{Millis, Quota, Width};
use tollkeeper_decide::{Directory, KeyHash, NamespaceRecord};
use tollkeeper_store::{KeyOrigin, Store};

const NOW: Millis = Millis(1_700_000_000_000);
const FIRST_KEY: KeyHash = KeyHash([0xa1; 32]);

/// A bootstrapped store of its own for one test; its folder goes when it goes.
struct Fresh {
    folder: TempDir,
    store: Store,
    tenant_id: String,
}

impl Fresh {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("tollkeeper.db")).await.unwrap();
        let tenant_id =
            store.bootstrap(FIRST_KEY, 1, KeyOrigin::Generated, NOW).await.unwrap().tenant_id;
        Self { folder, store, tenant_id }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("tollkeeper.db")
    }

    /// A connection beside the store's own, as another process would have it.
    async fn beside(&self) -> sqlx::SqliteConnection {
        use sqlx::ConnectOptions;
        sqlx::sqlite::SqliteConnectOptions::new().filename(self.path()).connect().await.unwrap()
    }

    async fn second_tenant(&self) -> String {
        let mut beside = self.beside().await;
        sqlx::query(
            "INSERT INTO tenants (id, slug, name, created_at) VALUES ('ws_b', 'b', 'B', 1)",
        )
        .execute(&mut beside)
        .await
        .unwrap();
        "ws_b".to_owned()
    }

    async fn namespace(&self, name_or_id: &str) -> Option<NamespaceRecord> {
        self.store.namespace(&self.tenant_id, name_or_id).await.unwrap()
    }

    async fn make_namespace(&self, name: &str) -> NamespaceRecord {
        self.store.create_namespace(&self.tenant_id, name).await.unwrap();
        self.namespace(name).await.unwrap()
    }
}

fn quota(amount: u64) -> Quota {
    Quota::new(amount).unwrap()
}

fn width(ms: u64) -> Width {
    Width::from_millis(ms).unwrap()
}
