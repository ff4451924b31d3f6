//! What was decided: written in batches, found again by everything one may ask for, and forgotten in time.

use std::sync::Arc;

use sqlx::Connection;
use tollkeeper_core::{AuditRow, Decision, Millis, Month};
use tollkeeper_store::DecisionFilter;

use crate::{Fresh, Home, NOW};

on_both!(
    a_decision_comes_back_as_it_was_written,
    a_batch_that_is_written_twice_counts_once,
    a_search_finds_by_each_field_and_by_all_together,
    a_search_goes_through_all_rows_page_by_page_newest_first,
    signs_of_patterns_are_only_signs,
    another_tenants_decisions_are_never_found,
    a_batch_of_many_months_finds_room,
    months_are_made_ahead_and_go_when_they_are_old,
);

fn bare(tenant_id: &str, number: u64) -> AuditRow {
    AuditRow {
        at: Millis(NOW.0 + number),
        tenant_id: tenant_id.into(),
        request_id: format!("req_{number:05}").into(),
        decision: Decision::Blocked,
        code: "NOT_FOUND".into(),
        status: 401,
        key_id: None,
        external_id: None,
        ip: None,
        method: None,
        endpoint: None,
        path: None,
        rule: None,
        limit: None,
        count: None,
        retry_after_ms: None,
        node: "n1".into(),
        region: None,
        latency_us: 7,
        degraded: false,
    }
}

fn full(tenant_id: &str, number: u64) -> AuditRow {
    AuditRow {
        decision: Decision::Throttled,
        code: "RATE_LIMITED".into(),
        status: 429,
        key_id: Some("key_1".into()),
        external_id: Some("ann".into()),
        ip: Some("2001:db8::1".into()),
        method: Some("GET".into()),
        endpoint: Some("/users/{id}".into()),
        path: Some("/users/7".into()),
        rule: Some("free-tier".into()),
        limit: Some("requests".into()),
        count: Some(60),
        retry_after_ms: Some(1_234),
        region: Some("eu-1".into()),
        degraded: true,
        ..bare(tenant_id, number)
    }
}

async fn found(fresh: &Fresh, filter: DecisionFilter) -> Vec<u64> {
    let page = fresh.store.search_decisions(&fresh.tenant_id, &filter, None, 100).await.unwrap();
    page.rows.iter().map(|row| row.at.0 - NOW.0).collect()
}

async fn a_decision_comes_back_as_it_was_written(fresh: Fresh) {
    let rows = [full(&fresh.tenant_id, 2), bare(&fresh.tenant_id, 1)];
    assert_eq!(fresh.store.write_decisions(&rows).await.unwrap(), 2);
    let all = DecisionFilter::default();
    let page = fresh.store.search_decisions(&fresh.tenant_id, &all, None, 10).await.unwrap();
    assert_eq!(page.rows, rows);
    assert_eq!(page.next_cursor, None);
}

async fn a_batch_that_is_written_twice_counts_once(fresh: Fresh) {
    let rows: Vec<_> = (0..2_500).map(|number| bare(&fresh.tenant_id, number)).collect();
    assert_eq!(fresh.store.write_decisions(&rows[..1_700]).await.unwrap(), 1_700);
    assert_eq!(fresh.store.write_decisions(&rows).await.unwrap(), 800);
    assert_eq!(fresh.count("SELECT COUNT(*) FROM decision_audit").await, 2_500);
    assert_eq!(fresh.store.write_decisions(&[]).await.unwrap(), 0);
}

async fn a_search_finds_by_each_field_and_by_all_together(fresh: Fresh) {
    let tenant = &fresh.tenant_id;
    let allowed = AuditRow { decision: Decision::Allowed, status: 200, ..full(tenant, 3) };
    let other = AuditRow {
        key_id: Some("key_2".into()),
        external_id: Some("bob".into()),
        path: Some("/users".into()),
        ..full(tenant, 4)
    };
    fresh.store.write_decisions(&[bare(tenant, 1), full(tenant, 2), allowed, other]).await.unwrap();
    let none = DecisionFilter::default;
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (none(), vec![4, 3, 2, 1]),
        (DecisionFilter { from: Some(Millis(NOW.0 + 2)), ..none() }, vec![4, 3, 2]),
        (DecisionFilter { to: Some(Millis(NOW.0 + 2)), ..none() }, vec![1]),
        (DecisionFilter { key_id: text("key_1"), ..none() }, vec![3, 2]),
        (DecisionFilter { external_id: text("bob"), ..none() }, vec![4]),
        (DecisionFilter { decision: Some(Decision::Blocked), ..none() }, vec![1]),
        (DecisionFilter { path: text("/users"), ..none() }, vec![4]),
        (DecisionFilter { path: text("/users*"), ..none() }, vec![4, 3, 2]),
        (DecisionFilter { path: text("/users/*"), ..none() }, vec![3, 2]),
        (DecisionFilter { text: text("rate_LIM"), ..none() }, vec![4, 3, 2]),
        (DecisionFilter { text: text("DB8::"), ..none() }, vec![4, 3, 2]),
        (DecisionFilter { text: text("req_00001"), ..none() }, vec![1]),
        (DecisionFilter { text: text("nowhere"), ..none() }, vec![]),
        (
            DecisionFilter {
                from: Some(NOW),
                to: Some(Millis(NOW.0 + 3)),
                key_id: text("key_1"),
                external_id: text("ann"),
                decision: Some(Decision::Throttled),
                path: text("/users/7"),
                text: text("free-tier"),
            },
            vec![2],
        ),
    ];
    for (filter, expected) in cases {
        assert_eq!(found(&fresh, filter.clone()).await, expected, "{filter:?}");
    }
}

async fn a_search_goes_through_all_rows_page_by_page_newest_first(fresh: Fresh) {
    // Many rows of one millisecond: their order is the request's.
    let rows: Vec<_> = (0..25)
        .map(|number| AuditRow {
            at: Millis(NOW.0 + number / 10),
            ..bare(&fresh.tenant_id, number)
        })
        .collect();
    fresh.store.write_decisions(&rows).await.unwrap();
    let (all, mut seen, mut cursor) = (DecisionFilter::default(), Vec::new(), None);
    loop {
        let at = cursor.as_ref().map(|(at, request_id): &(Millis, String)| (*at, &**request_id));
        let page = fresh.store.search_decisions(&fresh.tenant_id, &all, at, 4).await.unwrap();
        assert!(page.rows.len() <= 4);
        seen.extend(page.rows);
        let Some(next) = page.next_cursor else { break };
        let (at, request_id) = next.split_once('.').unwrap();
        cursor = Some((Millis(at.parse().unwrap()), request_id.to_owned()));
    }
    let newest_first: Vec<_> = rows.into_iter().rev().collect();
    assert_eq!(seen, newest_first);
}

async fn signs_of_patterns_are_only_signs(fresh: Fresh) {
    let path =
        |number, path: &str| AuditRow { path: Some(path.into()), ..bare(&fresh.tenant_id, number) };
    let rows = [path(1, "/100%"), path(2, "/100x"), path(3, "/a_b!c"), path(4, "/axb")];
    fresh.store.write_decisions(&rows).await.unwrap();
    let text = |text: &str| DecisionFilter { text: Some(text.into()), ..DecisionFilter::default() };
    assert_eq!(found(&fresh, text("100%")).await, [1]);
    assert_eq!(found(&fresh, text("a_b")).await, [3]);
    assert_eq!(found(&fresh, text("b!c")).await, [3]);
    let quote = DecisionFilter { path: Some("' OR 1=1 --*".into()), ..DecisionFilter::default() };
    assert_eq!(found(&fresh, quote).await, Vec::<u64>::new());
}

async fn another_tenants_decisions_are_never_found(fresh: Fresh) {
    let theirs: Vec<_> = (0..10).map(|number| full("ws_other", number)).collect();
    fresh.store.write_decisions(&theirs).await.unwrap();
    assert_eq!(found(&fresh, DecisionFilter::default()).await, Vec::<u64>::new());
    let key = DecisionFilter { key_id: Some("key_1".into()), ..DecisionFilter::default() };
    assert_eq!(found(&fresh, key).await, Vec::<u64>::new());
}

const DAY_MS: u64 = 86_400_000;

async fn a_batch_of_many_months_finds_room(fresh: Fresh) {
    let rows: Vec<_> = (0..400)
        .map(|day| AuditRow { at: Millis(NOW.0 + day * DAY_MS), ..bare(&fresh.tenant_id, day) })
        .collect();
    assert_eq!(fresh.store.write_decisions(&rows).await.unwrap(), 400);
    let months = fresh.store.decision_months().await.unwrap();
    let expected = if matches!(fresh.home, Home::Server(_)) { 14 } else { 0 };
    assert_eq!(months.len(), expected);
}

async fn months_are_made_ahead_and_go_when_they_are_old(fresh: Fresh) {
    let store = &fresh.store;
    let named = async || -> Vec<String> {
        store.decision_months().await.unwrap().iter().map(Month::to_string).collect()
    };
    // The middle of November 2023.
    store.prepare_months(NOW).await.unwrap();
    store.prepare_months(NOW).await.unwrap();
    let rows: Vec<_> = (0..60)
        .map(|day| AuditRow { at: Millis(NOW.0 + day * DAY_MS), ..bare(&fresh.tenant_id, day) })
        .collect();
    store.write_decisions(&rows).await.unwrap();
    let left = async || fresh.count("SELECT COUNT(*) FROM decision_audit").await;
    if matches!(fresh.home, Home::Folder(_)) {
        assert_eq!(store.prune_decisions(NOW).await.unwrap(), 0);
        assert_eq!(store.prune_decisions(Millis(NOW.0 + 20 * DAY_MS)).await.unwrap(), 20);
        assert_eq!(left().await, 40);
        return;
    }
    assert_eq!(named().await, ["202311", "202312", "202401"]);
    // A month goes only when its last row is old enough.
    let december = Month::parse("202312").unwrap();
    assert_eq!(store.prune_decisions(Millis(december.start().0 - 1)).await.unwrap(), 0);
    assert_eq!(left().await, 60);
    assert_eq!(store.prune_decisions(december.start()).await.unwrap(), 1);
    assert_eq!(named().await, ["202312", "202401"]);
    let kept = rows.iter().filter(|row| row.at >= december.start()).count();
    assert_eq!(usize::try_from(left().await).unwrap(), kept);
    // Time goes on, and room is made again; a late row of a month that is gone finds some too.
    store.prepare_months(december.start()).await.unwrap();
    assert_eq!(named().await, ["202312", "202401", "202402"]);
    store.write_decisions(&rows[..1]).await.unwrap();
    assert_eq!(named().await[0], "202311");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_make_the_same_months_at_once_do_not_meet() {
    let fresh = Fresh::on_postgres().await;
    let stores = [fresh.store.clone(), fresh.another().await, fresh.another().await];
    let mut tasks = tokio::task::JoinSet::new();
    for (number, store) in (0..).zip(stores.into_iter().cycle().take(9)) {
        let row = full(&fresh.tenant_id, number);
        tasks.spawn(async move {
            store.prepare_months(NOW).await.unwrap();
            store.write_decisions(&[row]).await.unwrap();
        });
    }
    tasks.join_all().await;
    assert_eq!(fresh.count("SELECT COUNT(*) FROM decision_audit").await, 9);
    assert_eq!(fresh.store.decision_months().await.unwrap().len(), 3);
}

/// An index must serve the searches that people make: a table of a month has a billion rows.
#[tokio::test]
async fn a_search_by_key_uses_its_index() {
    let fresh = Fresh::on_postgres().await;
    let rows: Vec<_> = (0..5_000)
        .map(|number| {
            let key: Arc<str> = format!("key_{}", number % 500).into();
            AuditRow { key_id: Some(key), ..full(&fresh.tenant_id, number) }
        })
        .collect();
    fresh.store.write_decisions(&rows).await.unwrap();
    let mut beside = sqlx::PgConnection::connect(fresh.url()).await.unwrap();
    sqlx::query("ANALYZE decision_audit").execute(&mut beside).await.unwrap();
    let plan = format!(
        "EXPLAIN SELECT at FROM decision_audit WHERE tenant_id = '{}' AND key_id = 'key_7'
            ORDER BY at DESC, request_id DESC LIMIT 11",
        fresh.tenant_id
    );
    let lines: Vec<String> =
        sqlx::query_scalar(sqlx::AssertSqlSafe(plan)).fetch_all(&mut beside).await.unwrap();
    assert!(lines.iter().any(|line| line.contains("key_id")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("Seq Scan")), "{lines:?}");
}

/// Clock ticks that a process has used, of which there are a hundred in a second.
fn ticks(process: &str) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// As a node writes them, four times a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement of ten seconds, for a machine that has nothing else to do"]
async fn ten_thousand_rows_a_second_take_less_than_a_third_of_a_core() {
    const BATCH: u64 = 2_500;
    const BATCHES: u64 = 40;
    let fresh = Fresh::on_postgres().await;
    fresh.store.prepare_months(NOW).await.unwrap();
    let mut beats = tokio::time::interval(std::time::Duration::from_millis(250));
    let servers = "SELECT CAST(pid AS TEXT) FROM pg_stat_activity
        WHERE application_name = 'tollkeeper' AND datname = current_database()";
    let mut beside = sqlx::PgConnection::connect(fresh.url()).await.unwrap();
    let (mut used, mut late) = (0, 0_u32);
    for batch in 0..BATCHES {
        let numbers = batch * BATCH..(batch + 1) * BATCH;
        let rows: Vec<_> = numbers.map(|number| full(&fresh.tenant_id, number)).collect();
        let moment = beats.tick().await;
        let before = ticks("self");
        assert_eq!(fresh.store.write_decisions(&rows).await.unwrap(), BATCH);
        used += ticks("self") - before;
        late += u32::from(moment.elapsed().as_millis() > 250);
    }
    let servers: Vec<String> = sqlx::query_scalar(servers).fetch_all(&mut beside).await.unwrap();
    let theirs = servers.iter().map(|server| ticks(server)).sum::<u64>() / (BATCHES / 4);
    let (seconds, share) = (BATCHES / 4, used * 100 / (BATCHES / 4 * 100));
    eprintln!(
        "{} rows in {seconds} s, {share} % of a core here and {theirs} % there, {late} late",
        BATCH * BATCHES
    );
    assert!(share < 30 && late < 4, "{share} % of a core, {late} late");
}
