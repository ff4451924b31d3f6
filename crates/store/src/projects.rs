//! Projects (the contract's apis): what keys are made for, who may use them from where, and limits for keys without any.

use serde_json::{Value, json};
use tollkeeper_core::{HostPattern, Millis};

use crate::announce::{KeysOf, announce_keys};
use crate::bind::{binds, moment, unsigned};
use crate::change::{By, Change, Written, as_json};
use crate::db::Purpose;
use crate::key_card::{hosts, texts_to_json};
use crate::limits::{list_from_json, list_to_json};
use crate::outbox::Changed;
use crate::slug::{slug_of, with_tail};
use crate::{AsOf, Fault, LimitTerms, Page, Store, StoreError, Thing, ids};

#[derive(Clone, Debug, Default)]
pub struct NewProject {
    pub name: String,
    /// Made from the name where none is given.
    pub slug: Option<String>,
    pub allowed_referers: Vec<HostPattern>,
    pub allowed_sources: Vec<HostPattern>,
    pub default_limits: Vec<LimitTerms>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    pub id: String,
    pub name: String,
    pub slug: String,
    pub allowed_referers: Vec<HostPattern>,
    pub allowed_sources: Vec<HostPattern>,
    pub default_limits: Vec<LimitTerms>,
    pub delete_protection: bool,
    pub created_at: Millis,
    pub updated_at: Option<Millis>,
    pub last_used_at: Option<Millis>,
}

/// What is not given stays.
#[derive(Clone, Debug, Default)]
pub struct ProjectPatch {
    pub name: Option<String>,
    pub slug: Option<String>,
    pub allowed_referers: Option<Vec<HostPattern>>,
    pub allowed_sources: Option<Vec<HostPattern>>,
    pub default_limits: Option<Vec<LimitTerms>>,
    pub delete_protection: Option<bool>,
}

#[derive(sqlx::FromRow)]
struct ProjectRow {
    id: String,
    name: String,
    slug: String,
    allowed_referers: String,
    allowed_sources: String,
    default_limits: String,
    delete_protection: bool,
    created_at: i64,
    updated_at: Option<i64>,
    last_used_at: Option<i64>,
}

/// By id, by slug, or by the tenant's slug and its own; an id goes first.
const FIND: &str = "SELECT p.id, p.name, p.slug, p.allowed_referers, p.allowed_sources,
        p.default_limits, p.delete_protection, p.created_at, p.updated_at, p.last_used_at
    FROM projects p JOIN tenants t ON t.id = p.tenant_id
    WHERE p.tenant_id = $1 AND p.deleted_at IS NULL
        AND (p.id = $2 OR p.slug = $2 OR t.slug || '/' || p.slug = $2)
    ORDER BY CASE WHEN p.id = $2 THEN 0 ELSE 1 END LIMIT 1";

// === impl Store ===

impl Store {
    pub async fn create_project(
        &self,
        by: By<'_>,
        new: NewProject,
    ) -> Result<Written<Project>, StoreError> {
        const MAKE: &str = "INSERT INTO projects (id, tenant_id, name, slug, allowed_referers,
                allowed_sources, default_limits, delete_protection, created_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, FALSE, $8)";
        let mut change = self.change(by.now).await?;
        let slug = match new.slug {
            Some(slug) => slug,
            None => free_slug(&mut change, by.tenant_id, &new.name).await?,
        };
        let project = Project {
            id: ids::fresh(ids::PROJECT)?,
            name: new.name,
            slug,
            allowed_referers: new.allowed_referers,
            allowed_sources: new.allowed_sources,
            default_limits: new.default_limits,
            delete_protection: false,
            created_at: by.now,
            updated_at: None,
            last_used_at: None,
        };
        let [referers, sources, limits] = project.lists();
        let Project { id, name, slug, .. } = &project;
        let binds = binds![id, by.tenant_id, name, slug, &referers, &sources, &limits, by.now];
        change.sql().run(MAKE, binds).await.map_err(|error| error.taken(Thing::Project))?;
        change.announce(by.tenant_id, project.changed());
        change.audit(by, "projects.create", &project.id, None, Some(project.audited())).await?;
        change.commit(project).await
    }

    /// By id, slug, or `tenant/slug`.
    pub async fn project(
        &self,
        tenant_id: &str,
        project: &str,
    ) -> Result<Option<Project>, StoreError> {
        let from = self.db.read(Purpose::Admin);
        let row: Option<ProjectRow> = from.optional(FIND, binds![tenant_id, project]).await?;
        Ok(row.map(Project::try_from).transpose()?)
    }

    /// The same, and how new that is.
    pub async fn project_as_of(
        &self,
        tenant_id: &str,
        project: &str,
    ) -> Result<AsOf<Option<Project>>, StoreError> {
        // Asked of the primary, so what was known before is in it at least.
        let revision = self.feed.newest();
        Ok(AsOf { revision, value: self.project(tenant_id, project).await? })
    }

    pub async fn list_projects(
        &self,
        tenant_id: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<Project>, StoreError> {
        const LIST: &str = "SELECT id, name, slug, allowed_referers, allowed_sources,
                default_limits, delete_protection, created_at, updated_at, last_used_at
            FROM projects WHERE tenant_id = $1 AND deleted_at IS NULL AND id >= $2
            ORDER BY id LIMIT $3";
        let binds = binds![tenant_id, cursor.unwrap_or_default(), i64::from(limit) + 1];
        let rows: Vec<ProjectRow> = self.lists().await.all(LIST, binds).await?;
        let page = Page::cut(rows, limit, |row| row.id.clone());
        Ok(page.try_map(Project::try_from)?)
    }

    pub async fn update_project(
        &self,
        by: By<'_>,
        project: &str,
        patch: ProjectPatch,
    ) -> Result<Written<Project>, StoreError> {
        const SET: &str = "UPDATE projects SET name = $2, slug = $3, allowed_referers = $4,
                allowed_sources = $5, default_limits = $6, delete_protection = $7, updated_at = $8
            WHERE id = $1";
        let mut change = self.change(by.now).await?;
        let before = find(&mut change, by.tenant_id, project).await?;
        let mut after = before.clone();
        after.take(patch);
        after.updated_at = Some(by.now);
        let [referers, sources, limits] = after.lists();
        let Project { id, name, slug, delete_protection, .. } = &after;
        let binds =
            binds![id, name, slug, &referers, &sources, &limits, *delete_protection, by.now];
        change.sql().run(SET, binds).await.map_err(|error| error.taken(Thing::Project))?;
        // Both slugs: the old one is free, and the new one is no longer unknown.
        change.announce(by.tenant_id, before.changed());
        if after.slug != before.slug {
            change.announce(by.tenant_id, after.changed());
        }
        announce_keys(&mut change, KeysOf::Project, &after.id).await?;
        let (old, new) = (Some(before.audited()), Some(after.audited()));
        change.audit(by, "projects.update", &after.id, old, new).await?;
        change.commit(after).await
    }

    /// Its keys are unknown from then on.
    pub async fn delete_project(
        &self,
        by: By<'_>,
        project: &str,
    ) -> Result<Written<Project>, StoreError> {
        const DELETE: &str = "UPDATE projects SET deleted_at = $2 WHERE id = $1";
        let mut change = self.change(by.now).await?;
        let before = find(&mut change, by.tenant_id, project).await?;
        if before.delete_protection {
            return Err(StoreError::Protected);
        }
        change.sql().run(DELETE, binds![&before.id, by.now]).await?;
        change.announce(by.tenant_id, before.changed());
        announce_keys(&mut change, KeysOf::Project, &before.id).await?;
        change.audit(by, "projects.delete", &before.id, Some(before.audited()), None).await?;
        change.commit(before).await
    }
}

async fn find(
    change: &mut Change<'_>,
    tenant_id: &str,
    project: &str,
) -> Result<Project, StoreError> {
    let row: Option<ProjectRow> = change.sql().optional(FIND, binds![tenant_id, project]).await?;
    let row = row.ok_or_else(|| StoreError::no(Thing::Project, project))?;
    Ok(row.try_into()?)
}

async fn free_slug(
    change: &mut Change<'_>,
    tenant_id: &str,
    name: &str,
) -> Result<String, StoreError> {
    const TAKEN: &str = "SELECT id FROM projects
        WHERE tenant_id = $1 AND slug = $2 AND deleted_at IS NULL";
    let slug = slug_of(name);
    let taken: Option<(String,)> = change.sql().optional(TAKEN, binds![tenant_id, &slug]).await?;
    Ok(if taken.is_some() { with_tail(&slug)? } else { slug })
}

// === impl Project ===

impl Project {
    fn take(&mut self, patch: ProjectPatch) {
        let put = |place: &mut Vec<HostPattern>, new: Option<Vec<HostPattern>>| {
            if let Some(new) = new {
                *place = new;
            }
        };
        put(&mut self.allowed_referers, patch.allowed_referers);
        put(&mut self.allowed_sources, patch.allowed_sources);
        self.name = patch.name.unwrap_or_else(|| self.name.clone());
        self.slug = patch.slug.unwrap_or_else(|| self.slug.clone());
        if let Some(limits) = patch.default_limits {
            self.default_limits = limits;
        }
        self.delete_protection = patch.delete_protection.unwrap_or(self.delete_protection);
    }

    fn lists(&self) -> [String; 3] {
        [
            texts_to_json(&self.allowed_referers),
            texts_to_json(&self.allowed_sources),
            list_to_json(&self.default_limits).to_string(),
        ]
    }

    fn changed(&self) -> Changed {
        Changed::Project { id: self.id.clone(), slug: self.slug.clone() }
    }

    fn audited(&self) -> Value {
        let [referers, sources, _] = self.lists();
        json!({
            "name": self.name, "slug": self.slug, "allowedReferers": as_json(&referers),
            "allowedSources": as_json(&sources), "defaultLimits": list_to_json(&self.default_limits),
            "deleteProtection": self.delete_protection,
        })
    }
}

impl TryFrom<ProjectRow> for Project {
    type Error = Fault;

    fn try_from(row: ProjectRow) -> Result<Self, Fault> {
        let unreadable = || Fault::Unreadable("project");
        Ok(Self {
            allowed_referers: hosts(&row.allowed_referers).ok_or_else(unreadable)?,
            allowed_sources: hosts(&row.allowed_sources).ok_or_else(unreadable)?,
            default_limits: list_from_json(&row.default_limits)?,
            id: row.id,
            name: row.name,
            slug: row.slug,
            delete_protection: row.delete_protection,
            created_at: Millis(unsigned(row.created_at)),
            updated_at: moment(row.updated_at),
            last_used_at: moment(row.last_used_at),
        })
    }
}
