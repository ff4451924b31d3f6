//! Counters are not in the database; that somebody set them back is.

use serde_json::Value;

use crate::change::By;
use crate::{Store, StoreError};

// === impl Store ===

impl Store {
    /// Written before the counters are touched, so that none is ever set back by nobody. What it was about goes into
    /// `what`; the counters themselves are many, and have no state before that would mean anything afterwards.
    pub async fn note_reset(
        &self,
        by: By<'_>,
        target: &str,
        what: Value,
    ) -> Result<(), StoreError> {
        let mut change = self.change(by.now).await?;
        change.audit(by, "limits.reset", target, None, Some(what)).await?;
        change.commit(()).await?;
        Ok(())
    }
}
