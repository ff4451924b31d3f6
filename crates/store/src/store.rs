//! The handle everything else in this crate hangs on: opened once, cloned freely, closed at the end.

use std::path::Path;

use sqlx::sqlite::{Sqlite, SqlitePool};
use sqlx::{Executor, Transaction};

use crate::{Fault, StoreError, sqlite};

/// A clone is a second handle on the same connections.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) read: SqlitePool,
    pub(crate) write: SqlitePool,
}

// === impl Store ===

impl Store {
    /// Opens the database file, makes it where there is none, and brings its schema up to date.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let opened = Self::connect(path).await;
        opened.map_err(|fault| StoreError::Unopenable { path: path.to_owned(), fault })
    }

    /// Does the database still answer? Reads a page of the file, so that a file gone bad shows.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.read.execute("SELECT id FROM tenants LIMIT 1").await?;
        Ok(())
    }

    /// Waits for what is under way, then closes. The last handle folds the write-ahead log into
    /// the file, so the readers go first.
    pub async fn close(&self) {
        self.read.close().await;
        self.write.close().await;
    }

    /// Dropped without a commit, it leaves no trace.
    pub(crate) async fn change(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        Ok(self.write.begin_with(sqlite::BEGIN).await?)
    }

    async fn connect(path: &Path) -> Result<Self, Fault> {
        sqlite::make_file(path)?;
        let write = sqlite::writer(path).await?;
        if let Err(fault) = sqlite::migrate(&write).await {
            write.close().await;
            return Err(fault);
        }
        Ok(Self { read: sqlite::readers(path), write })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use sqlx::Row;
    use tollkeeper_core::{FixedWindow, Millis, State};
    use tollkeeper_decide::{CellKey, KeyHash, ParkedCell, Shelf};

    use super::*;
    use crate::KeyOrigin;

    async fn opened() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("tollkeeper.db")).await.unwrap();
        (folder, store)
    }

    #[tokio::test]
    async fn the_writer_is_durable_and_the_readers_cannot_write() {
        let (_folder, store) = opened().await;
        for (pragma, expected) in [
            ("PRAGMA synchronous", "2"),
            ("PRAGMA foreign_keys", "1"),
            ("PRAGMA busy_timeout", "5000"),
        ] {
            let row = store.write.fetch_one(pragma).await.unwrap();
            assert_eq!(row.get_unchecked::<i64, _>(0).to_string(), expected, "{pragma}");
        }
        let mode: String =
            sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&store.write).await.unwrap();
        assert_eq!(mode, "wal");
        assert!(store.read.execute("DELETE FROM tenants").await.is_err());
    }

    #[tokio::test]
    async fn a_change_that_is_dropped_leaves_no_trace_and_frees_the_writer() {
        let (_folder, store) = opened().await;
        let mut change = store.change().await.unwrap();
        change
            .execute("INSERT INTO tenants (id, slug, name, created_at) VALUES ('a', 'a', 'a', 1)")
            .await
            .unwrap();
        drop(change);
        store.bootstrap(KeyHash([1; 32]), 1, KeyOrigin::Generated, Millis(1)).await.unwrap();
        let tenants: Vec<String> =
            sqlx::query_scalar("SELECT slug FROM tenants").fetch_all(&store.read).await.unwrap();
        assert_eq!(tenants, ["default"]);
        let check: String =
            sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&store.read).await.unwrap();
        assert_eq!(check, "ok");
    }

    #[tokio::test]
    async fn a_full_disk_is_told_keeps_nothing_by_halves_and_is_over_when_there_is_room_again() {
        let (_folder, store) = opened().await;
        let cells: Vec<_> = (0..2000).map(cell).collect();
        // A file that may not grow fails exactly as a disk without room does.
        store.write.execute("PRAGMA max_page_count = 1").await.unwrap();
        let full = store.put(cells.clone()).await.unwrap_err();
        assert!(full.to_string().contains("disk is full"), "{full}");
        store.ping().await.unwrap();
        assert_eq!(store.sweep(Millis(0)).await.unwrap(), []);
        store.write.execute("PRAGMA max_page_count = 4294967294").await.unwrap();
        store.put(cells).await.unwrap();
        assert_eq!(store.sweep(Millis(0)).await.unwrap().len(), 2000);
    }

    fn cell(subject: u64) -> ParkedCell {
        ParkedCell {
            key: CellKey { subject, exact: 1 },
            namespace: 1,
            idle_at_s: u32::MAX,
            fill: 1,
            state: State::Fixed(FixedWindow::default()),
        }
    }
}
