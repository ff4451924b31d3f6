//! When things were last used: written in batches, long after the request, and never backwards.

use tollkeeper_core::Millis;

use crate::db::Purpose;
use crate::{Bind, Store, StoreError};

/// Two values a row.
const BATCH: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Used {
    Key,
    Project,
    RootKey,
}

// === impl Store ===

impl Store {
    /// Ids that are not there any more are passed over.
    pub async fn touch_last_used(
        &self,
        what: Used,
        moments: &[(String, Millis)],
    ) -> Result<(), StoreError> {
        const KEYS: &str = "WITH used (id, at) AS (VALUES {}) UPDATE keys
            SET last_used_at = used.at FROM used WHERE keys.id = used.id
                AND (keys.last_used_at IS NULL OR keys.last_used_at < used.at)";
        const PROJECTS: &str = "WITH used (id, at) AS (VALUES {}) UPDATE projects
            SET last_used_at = used.at FROM used WHERE projects.id = used.id
                AND (projects.last_used_at IS NULL OR projects.last_used_at < used.at)";
        const ROOT_KEYS: &str = "WITH used (id, at) AS (VALUES {}) UPDATE root_keys
            SET last_used_at = used.at FROM used WHERE root_keys.id = used.id
                AND (root_keys.last_used_at IS NULL OR root_keys.last_used_at < used.at)";
        let template = match what {
            Used::Key => KEYS,
            Used::Project => PROJECTS,
            Used::RootKey => ROOT_KEYS,
        };
        // In one order everywhere: two nodes that touch the same rows never wait for each other in a ring.
        let mut moments: Vec<_> = moments.iter().collect();
        moments.sort_unstable();
        for chunk in moments.chunks(BATCH) {
            let binds: Vec<Bind<'_>> =
                chunk.iter().flat_map(|(id, at)| [Bind::from(id), Bind::from(*at)]).collect();
            self.db.write(Purpose::Background).run_rows(template, 2, &binds).await?;
        }
        Ok(())
    }
}
