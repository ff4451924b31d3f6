//! Reading the admin audit: newest first, page by page.

use tollkeeper_core::Millis;

use crate::bind::{moment, signed, unsigned};
use crate::filter::Filter;
use crate::{Bind, Page, Store, StoreError};

/// What to look for; everything that is absent matches all.
#[derive(Clone, Debug, Default)]
pub struct ChangeFilter {
    /// Inclusive.
    pub from: Option<Millis>,
    /// Exclusive.
    pub to: Option<Millis>,
    pub action: Option<String>,
    pub target: Option<String>,
    pub root_key_id: Option<String>,
}

/// One change. Before and after are JSON without hashes and secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminChange {
    /// Also the cursor: it rises with every change.
    pub seq: u64,
    /// Absent for rows from before there was a chain.
    pub position: Option<u64>,
    pub at: Millis,
    /// Absent for what the server did by itself.
    pub root_key_id: Option<String>,
    pub action: String,
    pub target: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

#[derive(sqlx::FromRow)]
struct ChangeRow {
    seq: i64,
    position: Option<i64>,
    at: i64,
    root_key_id: Option<String>,
    action: String,
    target: String,
    before: Option<String>,
    after: Option<String>,
}

// === impl Store ===

impl Store {
    /// `cursor` is the number of the row to start at.
    pub async fn list_changes(
        &self,
        tenant_id: &str,
        filter: &ChangeFilter,
        cursor: Option<u64>,
        limit: u32,
    ) -> Result<Page<AdminChange>, StoreError> {
        const COLUMNS: &str = "SELECT seq, position, at, root_key_id, action, target, before, after
            FROM admin_audit WHERE tenant_id = $1";
        let mut where_ = Filter::new(COLUMNS, tenant_id);
        where_.and("at >=", filter.from.map(Bind::from));
        where_.and("at <", filter.to.map(Bind::from));
        where_.and("action =", filter.action.as_ref().map(Bind::from));
        where_.and("target =", filter.target.as_ref().map(Bind::from));
        where_.and("root_key_id =", filter.root_key_id.as_ref().map(Bind::from));
        where_.and("seq <=", cursor.map(|seq| Bind::from(signed(seq))));
        let (sql, binds) = where_.ordered("seq DESC", limit);
        let rows: Vec<ChangeRow> = self.lists().await.all(sql, &binds).await?;
        let rows = rows.into_iter().map(AdminChange::from).collect();
        Ok(Page::cut(rows, limit, |row: &AdminChange| row.seq.to_string()))
    }
}

impl From<ChangeRow> for AdminChange {
    fn from(row: ChangeRow) -> Self {
        Self {
            seq: unsigned(row.seq),
            position: row.position.map(unsigned),
            at: moment(Some(row.at)).unwrap_or_default(),
            root_key_id: row.root_key_id,
            action: row.action,
            target: row.target,
            before: row.before,
            after: row.after,
        }
    }
}
