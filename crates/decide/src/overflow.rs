//! Traffic between the table and the shelf: cells that had to leave go there in rounds,
//! and come back before the next decision that touches them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Mutex, Notify};
use tollkeeper_core::Millis;

use crate::CellKey;
use crate::cells::{Cells, Far, Returned};
use crate::offstage::offstage;
use crate::ports::{OriginError, Shelf, Which};

/// How long an ask for a new cell waits while the shelf is behind. A request that must be slowed
/// down is slowed by what a person does not notice; after it the ask goes on, and loss is counted.
const CROWDED_WAIT: Duration = Duration::from_millis(20);

/// How long an ask waits for a cell from the shelf; then it is refused, never answered from nothing.
const SHELF_DEADLINE: Duration = Duration::from_millis(200);

/// How far apart the beginnings of two rounds must be at least: longer than an ask takes from looking
/// for its cells to deciding, so that at most one round begins in between.
pub const ROUND: Duration = Duration::from_millis(250);

pub struct Overflow {
    cells: Arc<Cells>,
    shelf: Arc<dyn Shelf>,
    /// Held by a round and by a reset: a reset must not overtake states that are on their way.
    rounds: Arc<Mutex<()>>,
    relieved: Arc<Notify>,
    backstage: Handle,
}

// === impl Overflow ===

impl Overflow {
    pub(crate) fn new(cells: Arc<Cells>, shelf: Arc<dyn Shelf>, backstage: Handle) -> Self {
        Self { cells, shelf, rounds: Arc::default(), relieved: Arc::default(), backstage }
    }

    /// Brings back those of `keys` that were parked.
    pub(crate) async fn fetch(
        &self,
        keys: impl Iterator<Item = CellKey>,
    ) -> Result<Vec<Returned>, OriginError> {
        let far = self.cells.far(keys);
        if far.keys.is_empty() && !far.crowded {
            return Ok(Vec::new());
        }
        Box::pin(self.fetch_far(far)).await
    }

    async fn fetch_far(&self, far: Far) -> Result<Vec<Returned>, OriginError> {
        if far.crowded {
            // Either way the ask goes on: a first ask is never denied for lack of room.
            let _ = tokio::time::timeout(CROWDED_WAIT, self.relieved.notified()).await;
        }
        if far.keys.is_empty() {
            return Ok(Vec::new());
        }
        let keys = far.keys.iter().map(|(key, _)| *key).collect();
        let finding = offstage(&self.backstage, self.shelf.find(keys));
        let late = |_| OriginError::new("the shelf took too long");
        let cells = tokio::time::timeout(SHELF_DEADLINE, finding).await.map_err(late)??;
        let with_resets = cells.into_iter().filter_map(|cell| {
            let (_, resets) = far.keys.iter().find(|(key, _)| *key == cell.key)?;
            Some(Returned { resets: *resets, cell })
        });
        Ok(with_resets.collect())
    }

    /// One round: what the table parked goes onto the shelf. Returns how many cells went. Runs to its end
    /// even if whoever asked is gone: states that arrive late must not replace those of the next round.
    pub async fn shelve(&self) -> Result<usize, OriginError> {
        let (rounds, relieved) = (Arc::clone(&self.rounds), Arc::clone(&self.relieved));
        let (shelf, cells) = (Arc::clone(&self.shelf), Arc::clone(&self.cells));
        let backstage = self.backstage.clone();
        let round = async move {
            let _round = rounds.lock().await;
            let leaving = cells.hand_over();
            if leaving.is_empty() {
                return Ok(0);
            }
            let keys: Vec<CellKey> = leaving.iter().map(|cell| cell.key).collect();
            // A task of its own, so that a panic in there is a failure here.
            let put = offstage(&backstage, shelf.put(leaving)).await;
            match put {
                Ok(()) => cells.shelved(&keys),
                Err(_) => cells.take_back(),
            }
            relieved.notify_waiters();
            put.map(|()| keys.len())
        };
        offstage(&self.backstage, Box::pin(round)).await
    }

    /// Forgets what is idle on the shelf, and learns anew what is there.
    pub async fn tidy(&self, now: Millis) -> Result<(), OriginError> {
        // First without the lock: deleting many rows must not hold up rounds and resets.
        offstage(&self.backstage, self.shelf.sweep(now)).await?;
        let _round = self.rounds.lock().await;
        self.cells.renew_filter();
        let keys = offstage(&self.backstage, self.shelf.sweep(now)).await?;
        self.cells.adopt_filter(&keys);
        Ok(())
    }

    /// Runs to its end even if whoever asked is gone: half a reset would be none.
    pub(crate) async fn reset(&self, which: Which) -> Result<u64, OriginError> {
        let (rounds, shelf, cells) =
            (Arc::clone(&self.rounds), Arc::clone(&self.shelf), Arc::clone(&self.cells));
        let resetting = async move {
            let _round = rounds.lock().await;
            // The shelf first: what leaves the table meanwhile waits in the parking, where the table's reset finds it.
            let mut gone: HashSet<CellKey> = shelf.remove(which).await?.into_iter().collect();
            // A cell that came back has its old row on the shelf still; it is one counter.
            gone.extend(cells.reset(which));
            Ok(gone.len() as u64)
        };
        offstage(&self.backstage, Box::pin(resetting)).await
    }
}

impl std::fmt::Debug for Overflow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Overflow").field("cells", &self.cells).finish_non_exhaustive()
    }
}
