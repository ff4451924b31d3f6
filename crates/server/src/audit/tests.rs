//! What becomes of a fact on its way into the audit.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tollkeeper_store::DecisionFilter;

use super::*;
use crate::ids::RequestIds;

fn moment(now: u64) -> Moment {
    let request_id = RequestIds::new().unwrap().next();
    Moment { request_id, now: Millis(now), start: Stamp::now() }
}

fn facts(tenant_id: &Arc<str>) -> Facts<'_> {
    Facts {
        tenant_id,
        decision: Decision::Blocked,
        code: "NOT_FOUND",
        status: 401,
        key_id: None,
        whose: None,
        key_text: Some("sk_secret"),
        ip: None,
        method: Some("GET"),
        path: Some("/x"),
        endpoint: None,
        rule: None,
        limit: None,
        cache: None,
        degraded: false,
    }
}

#[test]
fn the_key_is_struck_out_wherever_somebody_put_it() {
    let (tenant_id, auditor) = (Arc::from("ws"), Auditor::new(1, 0.0, "n".into(), None));
    let row = |path: &'static str, name: &'static str| {
        let limit = Some(LimitFacts { name, count: 1, retry_after_ms: None });
        let facts = Facts { path: Some(path), limit, ..facts(&tenant_id) };
        auditor.row(moment(1), &facts, 1_000)
    };
    let made = row("/files/sk_secret/sk_secret?key=sk_secret#sk_secret", "of sk_secret\0");
    assert_eq!(made.path.as_deref(), Some("/files/[key]/[key]"));
    assert_eq!(made.limit.as_deref(), Some("of [key]"));
    assert!(!format!("{made:?}").contains("sk_secret"));
}

#[test]
fn a_long_text_is_cut() {
    let long = "ä".repeat(5_000);
    assert_eq!(cleaned(&long, None).chars().count(), TEXT_CHARS_MAX);
}

#[tokio::test]
async fn what_was_noted_is_written_once_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("t.db")).await.unwrap();
    let (tenant_id, auditor) = (Arc::from("ws"), Auditor::new(2, 0.0, "n".into(), None));
    for now in 0..10 {
        auditor.at_page(now % 2).note(moment(now as u64), &facts(&tenant_id));
    }
    let allowed = Facts { decision: Decision::Allowed, ..facts(&tenant_id) };
    auditor.note(moment(11), &allowed);
    auditor.write_out(&store).await.unwrap();
    auditor.write_out(&store).await.unwrap();
    let all = DecisionFilter::default();
    let page = store.search_decisions("ws", &all, None, 100).await.unwrap();
    assert_eq!(page.rows.len(), 10);
    assert_eq!(auditor.counts(), AuditCounts { waiting: 0, written: 10, dropped: 0 });
}

#[tokio::test]
async fn what_no_database_takes_now_waits_and_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("t.db")).await.unwrap();
    let (tenant_id, auditor) = (Arc::from("ws"), Auditor::new(1, 0.0, "n".into(), None));
    auditor.note(moment(1), &facts(&tenant_id));
    store.close().await;
    auditor.write_out(&store).await.unwrap_err();
    assert_eq!(auditor.counts(), AuditCounts { waiting: 1, written: 0, dropped: 0 });
    let store = Store::open(&folder.path().join("t.db")).await.unwrap();
    auditor.write_out(&store).await.unwrap();
    assert_eq!(auditor.counts(), AuditCounts { waiting: 0, written: 1, dropped: 0 });
}

#[test]
fn a_month_is_forgotten_whole_and_a_week_after_it_may_be_archived() {
    let date = |text| tollkeeper_core::date_start(text).unwrap();
    let (july, august) = (date("2026-07-01"), date("2026-08-01"));
    // July is archived from 90 days after its end on.
    let forgotten = |days: u64| forgotten_before(Millis(august.0 + (90 + days) * DAY_MS), 90);
    assert_eq!((forgotten(0), forgotten(6), forgotten(7)), (july, july, august));
}
