//! Rows for the tests beside the code.

use tollkeeper_store::PastDecision;

pub(crate) fn row(tenant_id: &str, at: i64, request_id: &str) -> PastDecision {
    PastDecision {
        tenant_id: tenant_id.to_owned(),
        at,
        request_id: request_id.to_owned(),
        decision: "throttled".to_owned(),
        code: "RATE_LIMITED".to_owned(),
        status: 429,
        key_id: Some("key_1".to_owned()),
        external_id: None,
        ip: Some("::1".to_owned()),
        method: Some("GET".to_owned()),
        endpoint: None,
        path: Some("/a/ü".to_owned()),
        rule: None,
        limit_name: Some("requests".to_owned()),
        count: Some(7),
        retry_after_ms: Some(900),
        node: "a".to_owned(),
        region: None,
        latency_us: 12,
        degraded: false,
    }
}
