//! Among strangers, keys are looked for together: whoever comes within a moment is asked for in one statement. A flood of
//! guessed keys then costs the database a few looks into an index in a second, and wakes it no more often than that.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tollkeeper_decide::KeyHashes;

use crate::db::{Db, Purpose};
use crate::each::{listed, places};
use crate::{Bind, StoreError};

/// How long the first waits for others. A key that is there waits so much longer, once and only among strangers; who has to
/// wait for a place in the budget of unknown keys waits longer than that.
const MOMENT: Duration = Duration::from_millis(20);
/// Keys in one statement. Fewer are made up to it, so that there is one statement and the database plans it once.
const AT_ONCE: usize = 16;

const WHICH_ARE_THERE: &str = "SELECT hash FROM keys WHERE hash IN ({}) AND deleted_at IS NULL";

/// A clone is a second handle on the same call.
#[derive(Clone, Debug, Default)]
pub(crate) struct RollCall(Arc<Mutex<Vec<Waiting>>>);

#[derive(Debug)]
struct Waiting {
    hashes: KeyHashes,
    tell: oneshot::Sender<bool>,
}

// === impl RollCall ===

impl RollCall {
    /// Is there a key with either hash? `None` where nobody could find out.
    pub(crate) async fn is_there(&self, db: &Db, hashes: KeyHashes) -> Option<bool> {
        let (tell, told) = oneshot::channel();
        if self.join(Waiting { hashes, tell }) {
            let (call, db) = (self.clone(), db.clone());
            // A task of its own: the others must be told although the client of the first has left.
            tokio::spawn(async move { call.make(&db).await });
        }
        told.await.ok()
    }

    /// True for the first: it has the call made.
    fn join(&self, waiting: Waiting) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(waiting);
        all.len() == 1
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "time is what is waited for: others come meanwhile"
    )]
    async fn make(&self, db: &Db) {
        tokio::time::sleep(MOMENT).await;
        let mut all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        while !all.is_empty() {
            let some = all.split_off(all.len().saturating_sub(AT_ONCE));
            // Whoever is not told asks for itself, and learns what is wrong with the database.
            let Ok(there) = which_are_there(db, &some).await else { continue };
            for Waiting { hashes, tell } in some {
                let is_there =
                    [hashes.ours, hashes.imported].iter().any(|hash| there.contains(&hash.0[..]));
                // Who has left does not hear it.
                let _ = tell.send(is_there);
            }
        }
    }
}

async fn which_are_there(db: &Db, some: &[Waiting]) -> Result<HashSet<Vec<u8>>, StoreError> {
    let hashes = some.iter().flat_map(|one| [&one.hashes.ours, &one.hashes.imported]);
    let binds: Vec<Bind<'_>> = hashes.cycle().take(2 * AT_ONCE).map(Bind::from).collect();
    let sql = listed(WHICH_ARE_THERE, &places(0, binds.len()));
    let found: Vec<(Vec<u8>,)> = db.read(Purpose::Miss).all(sql, &binds).await?;
    Ok(found.into_iter().map(|(hash,)| hash).collect())
}
