//! Cells that the engine's table has no room for. Their keys are hashes that hold tenant, namespace
//! and identifier already, so no name and no tenant is ever stored with them.

use std::collections::HashMap;

use tollkeeper_core::Millis;
use tollkeeper_decide::{CellKey, Loading, ParkedCell, Shelf, Which};

use crate::bind::binds;
use crate::db::{Conn, Purpose};
use crate::directory::loading;
use crate::each::{listed, places};
use crate::parked::{ParkedRow, key_bytes, key_of};
use crate::{Bind, Store, StoreError};

/// Six values a row: well under the 32,766 that one statement of SQLite may bind.
const PUT_ROWS: usize = 500;

const FIND_KEYS: usize = 1000;

/// So many rows are some ten milliseconds of deleting, after which other writers get their turn.
const SWEEP_ROWS: u64 = 10_000;

/// A page of keys: 160 kB at a time, however many cells are parked.
const LIST_KEYS: usize = 10_000;

// === impl Shelf ===

impl Shelf for Store {
    fn put(&self, cells: Vec<ParkedCell>) -> Loading<()> {
        let store = self.clone();
        loading(async move { store.park(&cells).await })
    }

    fn find(&self, keys: Vec<CellKey>) -> Loading<Vec<ParkedCell>> {
        let store = self.clone();
        loading(async move { store.find_parked(&keys).await })
    }

    fn remove(&self, which: Which) -> Loading<Vec<CellKey>> {
        let store = self.clone();
        loading(async move { store.remove_parked(which).await })
    }

    fn sweep(&self, now: Millis) -> Loading<Vec<CellKey>> {
        let store = self.clone();
        loading(async move {
            store.forget_idle(now).await?;
            store.parked_keys().await
        })
    }
}

// === impl Store ===

impl Store {
    async fn park(&self, cells: &[ParkedCell]) -> Result<(), StoreError> {
        if cells.is_empty() {
            return Ok(());
        }
        let newest = newest_of_each(cells);
        let mut begun = self.db.begin(Purpose::Background).await?;
        for chunk in newest.chunks(PUT_ROWS) {
            upsert(begun.conn(), chunk).await?;
        }
        begun.commit().await
    }

    async fn find_parked(&self, keys: &[CellKey]) -> Result<Vec<ParkedCell>, StoreError> {
        let mut cells = Vec::new();
        for chunk in keys.chunks(FIND_KEYS) {
            let keys: Vec<_> = chunk.iter().map(|key| key_bytes(*key)).collect();
            let binds: Vec<_> = keys.iter().map(Bind::from).collect();
            let find = listed(
                "SELECT key, namespace, idle_at_s, fill, state FROM parked_cells WHERE key IN ({})",
                &places(0, binds.len()),
            );
            let rows: Vec<ParkedRow> = self.db.read(Purpose::Miss).all(find, &binds).await?;
            for row in rows {
                cells.push(row.try_into()?);
            }
        }
        Ok(cells)
    }

    async fn remove_parked(&self, which: Which) -> Result<Vec<CellKey>, StoreError> {
        const OF_SUBJECT: &str = "DELETE FROM parked_cells WHERE subject = $1 RETURNING key";
        const OF_NAMESPACE: &str = "DELETE FROM parked_cells WHERE namespace = $1 RETURNING key";
        let (delete, tag) = match which {
            Which::Subject(subject) => (OF_SUBJECT, subject),
            Which::Namespace(namespace) => (OF_NAMESPACE, namespace),
        };
        let removed: Vec<(Vec<u8>,)> =
            self.db.write(Purpose::Background).all(delete, binds![tag.cast_signed()]).await?;
        Ok(removed.iter().map(|(key,)| key_of(key)).collect::<Result<_, _>>()?)
    }

    /// A cell is idle from the start of its second on.
    async fn forget_idle(&self, now: Millis) -> Result<(), StoreError> {
        const FORGET: &str = "DELETE FROM parked_cells WHERE key IN
            (SELECT key FROM parked_cells WHERE idle_at_s <= $1 LIMIT $2)";
        let now_s = (now.0 / 1000).cast_signed();
        loop {
            let binds = binds![now_s, SWEEP_ROWS.cast_signed()];
            let forgotten = self.db.write(Purpose::Background).run(FORGET, binds).await?;
            if forgotten < SWEEP_ROWS {
                return Ok(());
            }
        }
    }

    /// Page by page in the order of keys: a cell that is put meanwhile may be missing, but none that was there.
    async fn parked_keys(&self) -> Result<Vec<CellKey>, StoreError> {
        const LIST: &str = "SELECT key FROM parked_cells WHERE key > $1 ORDER BY key LIMIT $2";
        let mut keys = Vec::new();
        let mut after = Vec::new();
        loop {
            let most = i64::try_from(LIST_KEYS).unwrap_or(i64::MAX);
            let from = self.db.read(Purpose::Background);
            let page: Vec<(Vec<u8>,)> = from.all(LIST, binds![&after, most]).await?;
            for (key,) in &page {
                keys.push(key_of(key)?);
            }
            match page.into_iter().nth(LIST_KEYS - 1) {
                Some((last,)) => after = last,
                None => return Ok(keys),
            }
        }
    }
}

/// One statement must not write one row twice; of two states of a cell the later one counts.
fn newest_of_each(cells: &[ParkedCell]) -> Vec<&ParkedCell> {
    let newest: HashMap<CellKey, &ParkedCell> = cells.iter().map(|cell| (cell.key, cell)).collect();
    newest.into_values().collect()
}

async fn upsert(conn: Conn<'_>, cells: &[&ParkedCell]) -> Result<(), StoreError> {
    const PUT: &str = "INSERT INTO parked_cells (key, subject, namespace, idle_at_s, fill, state)
        VALUES {} ON CONFLICT (key) DO UPDATE SET namespace = excluded.namespace,
        idle_at_s = excluded.idle_at_s, fill = excluded.fill, state = excluded.state";
    let rows: Vec<_> =
        cells.iter().map(|cell| (ParkedRow::from(*cell), cell.key.subject)).collect();
    let mut binds: Vec<Bind<'_>> = Vec::with_capacity(rows.len() * 6);
    for (row, subject) in &rows {
        binds.extend_from_slice(binds![
            &row.key,
            subject.cast_signed(),
            row.namespace,
            row.idle_at_s,
            row.fill,
            &row.state,
        ]);
    }
    conn.run_rows(PUT, 6, &binds).await?;
    Ok(())
}
