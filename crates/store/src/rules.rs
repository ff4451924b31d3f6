//! Rules of a tenant: one set, changed as a whole, with its last versions kept as they were.
//! What a rule says is text here; nobody but the server's own reader gives it a meaning.

pub(crate) mod apply;
mod audited;

use tollkeeper_core::Millis;
use tollkeeper_decide::Tenant;

use crate::bind::{binds, moment, unsigned};
use crate::db::Purpose;
use crate::{Page, Store, StoreError};

/// Matching is measured up to here, and a person has lost the thread long before.
pub const RULES_MAX: usize = 10_000;
/// What one request may carry, so that any set can be applied again as a whole.
pub const RULES_BYTES_MAX: usize = 16 << 20;

/// A rule with what is known of its making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleRow {
    pub id: String,
    pub name: String,
    /// A JSON object.
    pub body: String,
    /// The version that made it what it is.
    pub version: u64,
    pub created_at: Millis,
    pub updated_at: Option<Millis>,
    pub created_by: String,
}

/// A tenant's whole set at one version.
#[derive(Clone, Debug)]
pub struct StoredRules {
    pub tenant: Tenant,
    pub version: u64,
    /// A JSON list of objects.
    pub text: String,
}

#[derive(sqlx::FromRow)]
struct Row {
    rule_id: String,
    name: String,
    body: String,
    version: i64,
    created_at: i64,
    updated_at: Option<i64>,
    created_by: String,
}

#[derive(sqlx::FromRow)]
struct SetRow {
    version: i64,
    rules: String,
    id: String,
    slug: String,
    enabled: bool,
    has_imports: bool,
    requests_per_minute: Option<i64>,
}

// === impl Store ===

impl Store {
    pub async fn rule(&self, tenant_id: &str, name: &str) -> Result<Option<RuleRow>, StoreError> {
        const FIND: &str = "SELECT rule_id, name, body, version, created_at, updated_at, created_by
            FROM rules WHERE tenant_id = $1 AND name = $2";
        let from = self.db.read(Purpose::Admin);
        let row: Option<Row> = from.optional(FIND, binds![tenant_id, name]).await?;
        Ok(row.map(RuleRow::from))
    }

    /// In the order of their names.
    pub async fn list_rules(
        &self,
        tenant_id: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Page<RuleRow>, StoreError> {
        const LIST: &str = "SELECT rule_id, name, body, version, created_at, updated_at, created_by
            FROM rules WHERE tenant_id = $1 AND name >= $2 ORDER BY name LIMIT $3";
        let binds = binds![tenant_id, cursor.unwrap_or_default(), i64::from(limit) + 1];
        let rows: Vec<Row> = self.lists().await.all(LIST, binds).await?;
        let rows = rows.into_iter().map(RuleRow::from).collect();
        Ok(Page::cut(rows, limit, |rule: &RuleRow| rule.name.clone()))
    }

    /// The set as it is now; `None` for a tenant that never had rules. Never from a replica, which may not have heard
    /// of the change that made somebody ask.
    pub async fn rules_of(&self, tenant_id: &str) -> Result<Option<StoredRules>, StoreError> {
        const NOW: &str = "SELECT b.version, v.rules, t.id, t.slug, t.enabled, t.has_imports,
                t.requests_per_minute
            FROM rule_books b JOIN tenants t ON t.id = b.tenant_id JOIN rule_versions v
                ON v.tenant_id = b.tenant_id AND v.version = b.version WHERE b.tenant_id = $1";
        let from = self.db.read(Purpose::Background);
        let row: Option<SetRow> = from.optional(NOW, binds![tenant_id]).await?;
        Ok(row.map(StoredRules::from))
    }

    /// Who has rules, and at which version: what a node compares with what it has loaded.
    pub async fn rule_versions(&self) -> Result<Vec<(String, u64)>, StoreError> {
        const ALL: &str = "SELECT tenant_id, version FROM rule_books WHERE version > 0";
        let rows: Vec<(String, i64)> = self.db.read(Purpose::Background).all(ALL, &[]).await?;
        Ok(rows.into_iter().map(|(tenant, version)| (tenant, unsigned(version))).collect())
    }
}

// === impl RuleRow ===

impl From<Row> for RuleRow {
    fn from(row: Row) -> Self {
        Self {
            id: row.rule_id,
            name: row.name,
            body: row.body,
            version: unsigned(row.version),
            created_at: Millis(unsigned(row.created_at)),
            updated_at: moment(row.updated_at),
            created_by: row.created_by,
        }
    }
}

// === impl StoredRules ===

impl From<SetRow> for StoredRules {
    fn from(row: SetRow) -> Self {
        let tenant = Tenant {
            id: row.id.into(),
            slug: row.slug.into(),
            enabled: row.enabled,
            has_imports: row.has_imports,
            requests_per_minute: row.requests_per_minute.map(unsigned),
        };
        Self { tenant, version: unsigned(row.version), text: row.rules }
    }
}
