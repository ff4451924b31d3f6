//! Whether the disk under the database takes writes. Whoever was refused one says so here; from then on this process tries
//! by itself, and the first write that succeeds takes it back. While all is well nothing is tried.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::bind::binds;
use crate::db::Purpose;
use crate::{Store, StoreError};

#[derive(Clone, Debug, Default)]
pub(crate) struct Room(Arc<AtomicBool>);

// === impl Store ===

impl Store {
    /// To be told of every write that failed; what was not the disk's doing changes nothing. True: it is news.
    pub fn note_failure(&self, error: &StoreError) -> bool {
        error.is_of_the_disk() && !self.room.0.swap(true, Ordering::Relaxed)
    }

    /// A write found no room, and none has succeeded since.
    pub fn refuses_writes(&self) -> bool {
        self.room.0.load(Ordering::Relaxed)
    }

    /// Writes something that is gone again when it is committed. Success means that there is room again.
    pub async fn try_to_write(&self) -> Result<(), StoreError> {
        const PUT: &str = "INSERT INTO modes (scope, mode, updated_at) VALUES ($1, $1, 0)";
        const TAKE: &str = "DELETE FROM modes WHERE scope = $1";
        // No tenant is called this.
        let scope = format!("room/{}", crate::ids::fresh("try")?);
        let mut begun = self.db.begin(Purpose::Background).await?;
        begun.conn().run(PUT, binds![&scope]).await?;
        begun.conn().run(TAKE, binds![&scope]).await?;
        begun.commit().await?;
        self.room.0.store(false, Ordering::Relaxed);
        Ok(())
    }
}
