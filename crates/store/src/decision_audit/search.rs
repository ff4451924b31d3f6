//! Searching what was decided: newest first, page by page, within one tenant.

use tollkeeper_core::{AuditRow, Decision, Millis};

use crate::bind::{signed, unsigned};
use crate::db::Purpose;
use crate::filter::Filter;
use crate::page::anywhere;
use crate::{Bind, Fault, Page, Store, StoreError};

/// What to look for; everything that is absent matches all.
#[derive(Clone, Debug, Default)]
pub struct DecisionFilter {
    /// Inclusive.
    pub from: Option<Millis>,
    /// Exclusive.
    pub to: Option<Millis>,
    pub key_id: Option<String>,
    pub external_id: Option<String>,
    pub decision: Option<Decision>,
    /// Exactly this path; with a star at its end, everything below what stands before it.
    pub path: Option<String>,
    /// Anywhere in code, path, endpoint, rule, limit, address or request id, whatever its case.
    pub text: Option<String>,
}

#[derive(sqlx::FromRow)]
struct DecisionRow {
    at: i64,
    tenant_id: String,
    request_id: String,
    decision: String,
    code: String,
    status: i64,
    key_id: Option<String>,
    external_id: Option<String>,
    ip: Option<String>,
    method: Option<String>,
    endpoint: Option<String>,
    path: Option<String>,
    rule: Option<String>,
    limit_name: Option<String>,
    count: Option<i64>,
    retry_after_ms: Option<i64>,
    node: String,
    region: Option<String>,
    latency_us: i64,
    degraded: bool,
}

// === impl Store ===

impl Store {
    /// `cursor` is moment and request of the row to start at.
    pub async fn search_decisions(
        &self,
        tenant_id: &str,
        filter: &DecisionFilter,
        cursor: Option<(Millis, &str)>,
        limit: u32,
    ) -> Result<Page<AuditRow>, StoreError> {
        const COLUMNS: &str = "SELECT at, tenant_id, request_id, decision, code, status, key_id,
                external_id, ip, method, endpoint, path, rule, limit_name, count, retry_after_ms,
                node, region, latency_us, degraded
            FROM decision_audit WHERE tenant_id = $1";
        const TEXT: &str = "LOWER(code) LIKE {} ESCAPE '!' OR LOWER(path) LIKE {} ESCAPE '!'
            OR LOWER(endpoint) LIKE {} ESCAPE '!' OR LOWER(rule) LIKE {} ESCAPE '!'
            OR LOWER(limit_name) LIKE {} ESCAPE '!' OR LOWER(ip) LIKE {} ESCAPE '!'
            OR LOWER(request_id) LIKE {} ESCAPE '!'";
        let (text, below) = (anywhere(filter.text.as_deref()), filter.below());
        let exact = filter.path.as_ref().filter(|_| below.is_none());
        let mut search = Filter::new(COLUMNS, tenant_id);
        search.and("at >=", filter.from.map(Bind::from));
        search.and("at <", filter.to.map(Bind::from));
        search.and("key_id =", filter.key_id.as_ref().map(Bind::from));
        search.and("external_id =", filter.external_id.as_ref().map(Bind::from));
        search.and("decision =", filter.decision.map(|decision| Bind::from(decision.word())));
        search.and("path =", exact.map(Bind::from));
        search.and_pair("SUBSTR(path, 1, CAST({1} AS INTEGER)) = {2}", below_binds(below));
        search.and_with(TEXT, text.as_ref().map(Bind::from));
        search.and_pair(
            "(at, request_id) <= ({1}, {2})",
            cursor.map(|(at, request_id)| [Bind::from(at), Bind::from(request_id)]),
        );
        let (sql, binds) = search.ordered("at DESC, request_id DESC", limit);
        // Not a replica: what was decided a moment ago is looked for too.
        let rows: Vec<DecisionRow> = self.db.read(Purpose::Admin).all(sql, &binds).await?;
        let rows = rows.into_iter().map(AuditRow::try_from).collect::<Result<_, _>>()?;
        Ok(Page::cut(rows, limit, cursor_of))
    }
}

/// Split again by whoever reads it: digits, a dot, and the rest.
fn cursor_of(row: &AuditRow) -> String {
    format!("{}.{}", row.at.0, row.request_id)
}

/// Characters are what both databases count by.
fn below_binds(below: Option<&str>) -> Option<[Bind<'_>; 2]> {
    below.map(|start| [Bind::from(signed(start.chars().count() as u64)), Bind::from(start)])
}

// === impl DecisionFilter ===

impl DecisionFilter {
    fn below(&self) -> Option<&str> {
        self.path.as_ref()?.strip_suffix('*')
    }
}

impl TryFrom<DecisionRow> for AuditRow {
    type Error = Fault;

    fn try_from(row: DecisionRow) -> Result<Self, Fault> {
        let unreadable = || Fault::Unreadable("decision");
        Ok(Self {
            at: Millis(unsigned(row.at)),
            tenant_id: row.tenant_id.into(),
            request_id: row.request_id.into(),
            decision: Decision::of_word(&row.decision).ok_or_else(unreadable)?,
            code: row.code.into(),
            status: u16::try_from(row.status).map_err(|_| unreadable())?,
            key_id: row.key_id.map(Into::into),
            external_id: row.external_id.map(Into::into),
            ip: row.ip.map(Into::into),
            method: row.method.map(Into::into),
            endpoint: row.endpoint.map(Into::into),
            path: row.path.map(Into::into),
            rule: row.rule.map(Into::into),
            limit: row.limit_name.map(Into::into),
            count: row.count.map(unsigned),
            retry_after_ms: row.retry_after_ms.map(unsigned),
            node: row.node.into(),
            region: row.region.map(Into::into),
            latency_us: unsigned(row.latency_us),
            degraded: row.degraded,
        })
    }
}
