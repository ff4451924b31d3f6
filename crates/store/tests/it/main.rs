//! The store against real databases, one module per part of its API: SQLite files and a PostgreSQL server of our own.
//! What both must do alike is written once and run on both. Nothing is mocked.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

/// Runs each of these on a fresh store of either kind.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::Fresh::new().await).await;
            })*
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::Fresh::on_postgres().await).await;
            })*
        }
    };
}

mod admin_audit;
mod bootstrap;
mod cold_verify;
mod config_rows;
mod credits;
mod decision_audit;
mod directory;
mod disk;
mod doors;
mod feed;
mod identities;
mod import;
mod interruption;
mod isolation;
mod keys;
mod limit_stats;
mod memory;
mod modes;
mod opening;
mod overrides;
mod projects;
mod quotas;
mod rbac;
mod rollup;
mod root_keys;
mod rules;
mod secret;
mod server;
mod shelf;
mod signing;
mod torn;
mod usage;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};

use tempfile::TempDir;
use tollkeeper_core::{KeyRecord, Limit, Millis, Quota, Width};
use tollkeeper_decide::{Directory, KeyHash, KeyHashes, NamespaceRecord};
use tollkeeper_store::{
    By, KeyOrigin, KeySecret, KeyTerms, LimitTerms, NewKey, NewProject, NewRootKey, Reroll, Reseal,
    Store,
};
use tollkeeper_testkit::{Database, Postgres};

const NOW: Millis = Millis(1_700_000_000_000);
const FIRST_KEY: KeyHash = KeyHash([0xa1; 32]);
const NOBODY: KeyHash = KeyHash([0; 32]);

/// A bootstrapped store of its own for one test; what it lies in goes when it goes.
struct Fresh {
    home: Home,
    store: Store,
    tenant_id: String,
    root_key_id: String,
    hashes: AtomicU8,
}

enum Home {
    Folder(TempDir),
    Server(Database),
}

impl Fresh {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("tollkeeper.db")).await.unwrap();
        Self::on(Home::Folder(folder), store).await
    }

    async fn on_postgres() -> Self {
        let database = Postgres::shared().unwrap().database().unwrap();
        let store = Store::connect(&database.url, None).await.unwrap();
        Self::on(Home::Server(database), store).await
    }

    async fn on(home: Home, store: Store) -> Self {
        let made = store.bootstrap(FIRST_KEY, 1, KeyOrigin::Generated, NOW).await.unwrap();
        let (tenant_id, root_key_id) = (made.tenant_id, made.root_key_id);
        Self { home, store, tenant_id, root_key_id, hashes: AtomicU8::new(1) }
    }

    /// A second handle, as another node or process has it.
    async fn another(&self) -> Store {
        match &self.home {
            Home::Folder(_) => Store::open(&self.path()).await.unwrap(),
            Home::Server(database) => Store::connect(&database.url, None).await.unwrap(),
        }
    }

    fn folder(&self) -> &TempDir {
        match &self.home {
            Home::Folder(folder) => folder,
            Home::Server(_) => panic!("only a file has a folder"),
        }
    }

    fn url(&self) -> &str {
        match &self.home {
            Home::Folder(_) => panic!("only a server has a URL"),
            Home::Server(database) => &database.url,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder().path().join("tollkeeper.db")
    }

    /// A connection beside the store's own, as another process would have it.
    async fn beside(&self) -> sqlx::SqliteConnection {
        use sqlx::ConnectOptions;
        sqlx::sqlite::SqliteConnectOptions::new().filename(self.path()).connect().await.unwrap()
    }

    /// The one number that this asks for, whichever database it is.
    async fn count(&self, question: &'static str) -> i64 {
        match &self.home {
            Home::Folder(_) => {
                sqlx::query_scalar(question).fetch_one(&mut self.beside().await).await.unwrap()
            }
            Home::Server(database) => {
                use sqlx::Connection;
                let mut beside = sqlx::PgConnection::connect(&database.url).await.unwrap();
                sqlx::query_scalar(question).fetch_one(&mut beside).await.unwrap()
            }
        }
    }

    fn by(&self) -> By<'_> {
        By { tenant_id: &self.tenant_id, root_key_id: &self.root_key_id, now: NOW }
    }

    fn by_at(&self, now: Millis) -> By<'_> {
        By { now, ..self.by() }
    }

    async fn second_tenant(&self) -> String {
        let root_key = new_root_key(self.fresh_hash());
        let made = self.store.create_tenant(self.by(), "B", root_key).await.unwrap();
        made.value.0.id
    }

    async fn namespace(&self, name_or_id: &str) -> Option<NamespaceRecord> {
        self.store.namespace(&self.tenant_id, name_or_id).await.unwrap()
    }

    async fn make_namespace(&self, name: &str) -> NamespaceRecord {
        self.store.create_namespace(&self.tenant_id, name).await.unwrap();
        self.namespace(name).await.unwrap()
    }

    fn fresh_hash(&self) -> KeyHash {
        KeyHash([self.hashes.fetch_add(1, Ordering::Relaxed); 32])
    }

    async fn project(&self, name: &str) -> String {
        let new = NewProject { name: name.to_owned(), ..NewProject::default() };
        self.store.create_project(self.by(), new).await.unwrap().value.id
    }

    /// A key with these terms in a project of its own.
    async fn key(&self, terms: KeyTerms) -> (String, KeyHash) {
        let project = self.project("p").await;
        self.key_in(&project, terms).await
    }

    async fn key_in(&self, project_id: &str, terms: KeyTerms) -> (String, KeyHash) {
        let hash = self.fresh_hash();
        let new =
            NewKey { id: None, project_id: project_id.to_owned(), secret: secret(hash), terms };
        (self.store.create_key(self.by(), new).await.unwrap().value, hash)
    }

    async fn verified(&self, hash: KeyHash) -> Option<KeyRecord> {
        self.store.key(KeyHashes { ours: hash, imported: NOBODY }).await.unwrap()
    }
}

fn secret(hash: KeyHash) -> KeySecret {
    KeySecret {
        hash,
        pepper_id: 1,
        start: "sk_ab12".to_owned(),
        prefix: Some("sk".to_owned()),
        byte_length: Some(20),
        recoverable: None,
    }
}

/// Signing secrets go over to the new key as they are.
fn reroll(secret: KeySecret, old_expires: Millis) -> Reroll {
    let reseal = Reseal::new(|old| Some(old.clone()));
    Reroll { id: None, secret, old_expires: Some(old_expires), reseal }
}

fn new_root_key(hash: KeyHash) -> NewRootKey {
    NewRootKey {
        hash,
        pepper_id: 1,
        name: None,
        permissions: vec!["api.*.read_key".to_owned()],
        expires: None,
        start: None,
        end: None,
    }
}

fn limit_named(name: &str, amount: u64) -> LimitTerms {
    LimitTerms {
        name: name.to_owned(),
        limit: Limit::sliding_window(quota(amount), width(60_000)),
        auto_apply: true,
        consistency: None,
        on_outage: None,
    }
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn quota(amount: u64) -> Quota {
    Quota::new(amount).unwrap()
}

fn width(ms: u64) -> Width {
    Width::from_millis(ms).unwrap()
}
