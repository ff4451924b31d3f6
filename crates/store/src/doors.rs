//! Whose door a proxy stands at: the tenant, and the project where it named one. The only reads that know no tenant yet,
//! because finding it is what they are for.

use std::sync::Arc;

use tollkeeper_decide::{Loading, Tenant};

use crate::bind::{binds, unsigned};
use crate::bootstrap::TENANT_SLUG;
use crate::db::Purpose;
use crate::directory::{loading, to_a_living_one};
use crate::{Store, StoreError};

#[derive(Clone, Debug)]
pub struct Door {
    pub tenant: Tenant,
    /// Absent where no project was named: every one of the tenant's.
    pub project_id: Option<Arc<str>>,
}

/// What was found under a name, or without one.
#[derive(Clone, Debug)]
pub enum DoorFound {
    One(Door),
    None,
    /// Several tenants have one of that name, or there are several tenants and no name was given.
    Several,
}

#[derive(sqlx::FromRow)]
struct DoorRow {
    id: String,
    slug: String,
    enabled: bool,
    has_imports: bool,
    requests_per_minute: Option<i64>,
    project_id: Option<String>,
}

// === impl Store ===

impl Store {
    /// By a project's id, its slug, or `tenant/slug`. Two rows are enough to know that there are several.
    pub fn door_of_project(&self, named: &str) -> Loading<DoorFound> {
        let (store, named) = (self.clone(), named.to_owned());
        loading(async move { to_a_living_one(|| store.find_door_of_project(&named)).await })
    }

    /// The only tenant there is. One that is disabled is there all the same: that it was switched off must not turn its
    /// traffic into somebody else's.
    pub fn only_door(&self) -> Loading<DoorFound> {
        let store = self.clone();
        loading(async move { to_a_living_one(|| store.find_only_door()).await })
    }

    async fn find_door_of_project(&self, named: &str) -> Result<DoorFound, StoreError> {
        const FIND: &str = "SELECT t.id, t.slug, t.enabled, t.has_imports, t.requests_per_minute,
                p.id AS project_id
            FROM projects p JOIN tenants t ON t.id = p.tenant_id
            WHERE p.deleted_at IS NULL
                AND (p.id = $1 OR p.slug = $1 OR t.slug || '/' || p.slug = $1)
            ORDER BY CASE WHEN p.id = $1 THEN 0 WHEN t.slug = $2 THEN 1 ELSE 2 END LIMIT 2";
        let binds = binds![named, TENANT_SLUG];
        let rows: Vec<DoorRow> = self.db.read(Purpose::Miss).all(FIND, binds).await?;
        // An id is nobody else's, whatever somebody chose as a slug; and no other tenant can get into the operator's way
        // by choosing the same slug.
        let first_counts = rows
            .first()
            .is_some_and(|row| row.project_id.as_deref() == Some(named) || row.slug == TENANT_SLUG);
        Ok(found(rows, first_counts))
    }

    async fn find_only_door(&self) -> Result<DoorFound, StoreError> {
        const FIND: &str = "SELECT id, slug, enabled, has_imports, requests_per_minute,
                CAST(NULL AS TEXT) AS project_id FROM tenants ORDER BY id LIMIT 2";
        let rows: Vec<DoorRow> = self.db.read(Purpose::Miss).all(FIND, binds![]).await?;
        Ok(found(rows, false))
    }
}

fn found(rows: Vec<DoorRow>, first_counts: bool) -> DoorFound {
    let several = rows.len() > 1 && !first_counts;
    match rows.into_iter().next() {
        None => DoorFound::None,
        Some(_) if several => DoorFound::Several,
        Some(row) => DoorFound::One(row.into()),
    }
}

// === impl Door ===

impl From<DoorRow> for Door {
    fn from(row: DoorRow) -> Self {
        Self {
            tenant: Tenant {
                id: row.id.into(),
                slug: row.slug.into(),
                enabled: row.enabled,
                has_imports: row.has_imports,
                requests_per_minute: row.requests_per_minute.map(unsigned),
            },
            project_id: row.project_id.map(Into::into),
        }
    }
}
