//! The handle everything else in this crate hangs on: opened once, cloned freely, closed at the end.

use std::path::Path;
use std::sync::Arc;

use crate::db::{Db, Pools, Purpose};
use crate::feed::Feed;
use crate::outbox::NEWEST;
use crate::room::Room;
use crate::strangers::Strangers;
use crate::{Fault, SealKey, StoreError, postgres, sqlite};

/// What was read, and how new it is: all changes up to this revision are in it, and maybe later ones.
#[derive(Clone, Debug)]
pub struct AsOf<T> {
    pub revision: u64,
    pub value: T,
}

/// A clone is a second handle on the same connections.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) db: Db,
    pub(crate) feed: Feed,
    pub(crate) room: Room,
    pub(crate) strangers: Strangers,
    /// Who writes without it leaves ends of chains that a server with a secret does not trust.
    pub(crate) seal: Option<Arc<SealKey>>,
}

// === impl Store ===

impl Store {
    /// Opens the database file, makes it where there is none, and brings its schema up to date.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let opened = Self::open_file(path).await;
        let opened =
            opened.map_err(|fault| StoreError::Unopenable { path: path.to_owned(), fault })?;
        opened.bind_imports().await?;
        Ok(opened)
    }

    /// Connects to PostgreSQL at `postgres://…` and brings its schema up to date. What may be a moment old is then
    /// read from the replica.
    pub async fn connect(url: &str, replica: Option<&str>) -> Result<Self, StoreError> {
        let connected = Self::connect_server(url, replica).await;
        let connected = connected
            .map_err(|fault| StoreError::Unreachable { at: postgres::address(url), fault })?;
        connected.bind_imports().await?;
        Ok(connected)
    }

    /// Where a PostgreSQL is and which release it is, found out without changing anything there.
    pub async fn look_at(url: &str) -> Result<(String, String), StoreError> {
        let at = postgres::address(url);
        match postgres::look(url).await {
            Ok(version) => Ok((at, version)),
            Err(fault) => Err(StoreError::Unreachable { at, fault }),
        }
    }

    /// The same store; what it adds to the admin audit is sealed with this key, and verified by it.
    #[must_use]
    pub fn sealing(self, key: SealKey) -> Self {
        Self { seal: Some(Arc::new(key)), ..self }
    }

    /// Does the database still answer? Reads a page of it, so that a file gone bad shows.
    pub async fn ping(&self) -> Result<(), StoreError> {
        const ANY: &str = "SELECT id FROM tenants LIMIT 1";
        self.db.read(Purpose::Background).optional::<(String,)>(ANY, &[]).await?;
        Ok(())
    }

    /// Tells this database from every other, its restored copies too, where several nodes may use it. `None` for a
    /// file, which is one node's own.
    pub async fn lineage(&self) -> Result<Option<String>, StoreError> {
        const LINEAGE: &str = "SELECT CAST(s.system_identifier AS TEXT) || '/' || CAST(d.oid AS TEXT)
            FROM pg_control_system() s CROSS JOIN pg_database d WHERE d.datname = current_database()";
        if matches!(self.db, Db::Lite { .. }) {
            return Ok(None);
        }
        let (lineage,): (String,) = self.db.read(Purpose::Background).one(LINEAGE, &[]).await?;
        Ok(Some(lineage))
    }

    /// Waits for what is under way, then closes.
    pub async fn close(&self) {
        self.feed.stop();
        self.db.close().await;
    }

    /// For lists: the replica, unless it does not know yet what this process knows to be committed.
    pub(crate) async fn lists(&self) -> Pools<'_> {
        if let Some(replica) = self.db.replica()
            && let Ok((revision,)) = replica.one::<(i64,)>(NEWEST, &[]).await
            && u64::try_from(revision).is_ok_and(|revision| revision >= self.feed.newest())
        {
            return replica;
        }
        self.db.read(Purpose::Admin)
    }

    async fn open_file(path: &Path) -> Result<Self, Fault> {
        sqlite::make_file(path)?;
        let write = sqlite::writer(path).await?;
        if let Err(fault) = sqlite::migrate(&write).await {
            write.close().await;
            return Err(fault);
        }
        let db = Db::Lite { read: sqlite::readers(path), write };
        let (room, strangers) = (Room::default(), Strangers::default());
        Ok(Self { db, feed: Feed::in_process(), seal: None, room, strangers })
    }

    async fn connect_server(url: &str, replica: Option<&str>) -> Result<Self, Fault> {
        let pools = postgres::connect(url, replica).await?;
        let (revision,): (i64,) =
            sqlx::query_as(NEWEST).fetch_one(&pools.background).await.map_err(Fault::from)?;
        let feed = Feed::listening(pools.background.clone(), crate::bind::unsigned(revision));
        let (room, strangers) = (Room::default(), Strangers::default());
        Ok(Self { db: Db::Pg(Box::new(pools)), feed, seal: None, room, strangers })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use sqlx::sqlite::SqlitePool;
    use sqlx::{Executor, Row};
    use tollkeeper_core::{FixedWindow, Millis, State};
    use tollkeeper_decide::{CellKey, KeyHash, ParkedCell, Shelf};

    use super::*;
    use crate::KeyOrigin;

    async fn opened() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("tollkeeper.db")).await.unwrap();
        (folder, store)
    }

    fn pools(store: &Store) -> (&SqlitePool, &SqlitePool) {
        match &store.db {
            Db::Lite { read, write } => (read, write),
            Db::Pg(_) => panic!("opened from a file"),
        }
    }

    #[tokio::test]
    async fn the_writer_is_durable_and_the_readers_cannot_write() {
        let (_folder, store) = opened().await;
        let (read, write) = pools(&store);
        for (pragma, expected) in [
            ("PRAGMA synchronous", "2"),
            ("PRAGMA foreign_keys", "1"),
            ("PRAGMA busy_timeout", "5000"),
        ] {
            let row = write.fetch_one(pragma).await.unwrap();
            assert_eq!(row.get_unchecked::<i64, _>(0).to_string(), expected, "{pragma}");
        }
        let mode: String =
            sqlx::query_scalar("PRAGMA journal_mode").fetch_one(write).await.unwrap();
        assert_eq!(mode, "wal");
        assert!(read.execute("DELETE FROM tenants").await.is_err());
    }

    #[tokio::test]
    async fn a_change_that_is_dropped_leaves_no_trace_and_frees_the_writer() {
        let (_folder, store) = opened().await;
        let (read, _) = pools(&store);
        let mut change = store.change(Millis(1)).await.unwrap();
        change
            .sql()
            .run("INSERT INTO tenants (id, slug, name, created_at) VALUES ('a', 'a', 'a', 1)", &[])
            .await
            .unwrap();
        drop(change);
        store.bootstrap(KeyHash([1; 32]), 1, KeyOrigin::Generated, Millis(1)).await.unwrap();
        let tenants: Vec<String> =
            sqlx::query_scalar("SELECT slug FROM tenants").fetch_all(read).await.unwrap();
        assert_eq!(tenants, ["default"]);
        let check: String =
            sqlx::query_scalar("PRAGMA integrity_check").fetch_one(read).await.unwrap();
        assert_eq!(check, "ok");
    }

    #[tokio::test]
    async fn a_full_disk_is_told_keeps_nothing_by_halves_and_is_over_when_there_is_room_again() {
        let (_folder, store) = opened().await;
        let (_, write) = pools(&store);
        let cells: Vec<_> = (0..2000).map(cell).collect();
        // A file that may not grow fails exactly as a disk without room does.
        write.execute("PRAGMA max_page_count = 1").await.unwrap();
        let full = store.put(cells.clone()).await.unwrap_err();
        assert!(full.to_string().contains("disk is full"), "{full}");
        store.ping().await.unwrap();
        assert_eq!(store.sweep(Millis(0)).await.unwrap(), []);
        write.execute("PRAGMA max_page_count = 4294967294").await.unwrap();
        store.put(cells).await.unwrap();
        assert_eq!(store.sweep(Millis(0)).await.unwrap().len(), 2000);
    }

    #[tokio::test]
    async fn a_connection_that_rolled_back_by_itself_is_not_used_again() {
        let (_folder, store) = opened().await;
        for _ in 0..3 {
            let mut change = store.change(Millis(1)).await.unwrap();
            // As SQLite does it where the disk fails a write.
            change.sql().run("ROLLBACK", &[]).await.unwrap();
            drop(change);
            store.bootstrap(KeyHash([1; 32]), 1, KeyOrigin::Generated, Millis(1)).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_disk_without_room_is_known_until_a_write_succeeds() {
        let (_folder, store) = opened().await;
        let (_, write) = pools(&store);
        assert!(!store.note_failure(&StoreError::Fault(Fault::Busy)) && !store.refuses_writes());
        assert!(store.note_failure(&StoreError::Fault(Fault::Full)) && store.refuses_writes());
        assert!(!store.note_failure(&StoreError::Fault(Fault::Full)), "it is known already");
        write.execute("PRAGMA query_only = 1").await.unwrap();
        store.try_to_write().await.unwrap_err();
        assert!(store.refuses_writes());
        write.execute("PRAGMA query_only = 0").await.unwrap();
        store.try_to_write().await.unwrap();
        assert!(!store.refuses_writes());
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
