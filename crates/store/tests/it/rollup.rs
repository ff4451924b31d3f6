//! Decisions added up: minutes by many nodes, hours and days made of them, and read by everything that is told apart.

use std::collections::BTreeMap;

use tollkeeper_core::{BUCKETS, Grain, Millis, RollupCounts, RollupKey};
use tollkeeper_store::{StatsFilter, StatsRow};

use crate::Fresh;

on_both!(
    what_two_nodes_report_of_one_minute_adds_up,
    hours_and_days_are_the_sums_of_their_minutes_however_often_they_are_made,
    a_late_minute_is_in_its_hour_after_the_next_round,
    sums_are_read_by_identity_endpoint_and_region_and_within_one_tenant,
    minutes_go_before_hours_and_hours_before_days,
    a_year_of_days_is_read_page_by_page,
);

/// The first of November 2023, at midnight.
const START: u64 = 1_698_796_800_000;
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

type Sums = BTreeMap<RollupKey, RollupCounts>;

fn key(tenant_id: &str, at: u64) -> RollupKey {
    RollupKey {
        time: Millis(START + at),
        tenant_id: tenant_id.into(),
        endpoint: "/v1/*".into(),
        external_id: "ann".into(),
        region: "eu".into(),
    }
}

/// `allowed` fast ones, and one that was refused slowly.
fn counts(allowed: u64) -> RollupCounts {
    let mut latency = [0; BUCKETS];
    (latency[3], latency[12]) = (allowed, 1);
    RollupCounts {
        allowed,
        throttled: 1,
        blocked: 0,
        cache_hits: allowed,
        cache_misses: 1,
        latency,
    }
}

async fn read(fresh: &Fresh, grain: Grain, filter: StatsFilter) -> Vec<StatsRow> {
    let page = fresh.store.query_stats(&fresh.tenant_id, grain, &filter, None, 10_000).await;
    page.unwrap().rows
}

fn whole() -> StatsFilter {
    StatsFilter { from: Millis(START), to: Millis(START + 1_000 * DAY), ..StatsFilter::default() }
}

fn allowed(rows: &[StatsRow]) -> Vec<(u64, u64)> {
    rows.iter().map(|row| (row.time.0 - START, row.counts.allowed)).collect()
}

async fn what_two_nodes_report_of_one_minute_adds_up(fresh: Fresh) {
    let sums: Sums = [(key(&fresh.tenant_id, 0), counts(5))].into();
    let other = fresh.another().await;
    for store in [&fresh.store, &other, &fresh.store] {
        store.add_minutes(&sums).await.unwrap();
    }
    let rows = read(&fresh, Grain::Minute, whole()).await;
    let mut expected = RollupCounts::default();
    (0..3).for_each(|_| expected.add(&counts(5)));
    assert_eq!(rows, [StatsRow { time: Millis(START), counts: expected }]);
}

async fn hours_and_days_are_the_sums_of_their_minutes_however_often_they_are_made(fresh: Fresh) {
    // Two and a half days, a minute in every seven, for two identities.
    let mut sums = Sums::new();
    for minute in (0..60 * 60).step_by(7) {
        let key = key(&fresh.tenant_id, minute * MINUTE);
        sums.insert(RollupKey { external_id: "bob".into(), ..key.clone() }, counts(1));
        sums.insert(key, counts(minute));
    }
    fresh.store.add_minutes(&sums).await.unwrap();
    let now = Millis(START + 60 * HOUR);
    let other = fresh.another().await;
    for _ in 0..2 {
        let (one, two) = tokio::join!(fresh.store.roll_up(now), other.roll_up(now));
        one.unwrap();
        two.unwrap();
    }
    fresh.store.roll_up(now).await.unwrap();
    for grain in [Grain::Hour, Grain::Day] {
        let mut expected: BTreeMap<Millis, RollupCounts> = BTreeMap::new();
        for (key, counts) in &sums {
            expected.entry(grain.start_of(key.time)).or_default().add(counts);
        }
        let rows = read(&fresh, grain, whole()).await;
        let found: BTreeMap<_, _> = rows.into_iter().map(|row| (row.time, row.counts)).collect();
        assert_eq!(found, expected, "{grain:?}");
    }
}

async fn a_late_minute_is_in_its_hour_after_the_next_round(fresh: Fresh) {
    let store = &fresh.store;
    let sums = |at, allowed| -> Sums { [(key(&fresh.tenant_id, at), counts(allowed))].into() };
    store.add_minutes(&sums(0, 1)).await.unwrap();
    store.roll_up(Millis(START + 10 * MINUTE)).await.unwrap();
    store.add_minutes(&sums(HOUR + MINUTE, 2)).await.unwrap();
    store.add_minutes(&sums(59 * MINUTE, 4)).await.unwrap();
    store.roll_up(Millis(START + HOUR + 5 * MINUTE)).await.unwrap();
    assert_eq!(allowed(&read(&fresh, Grain::Hour, whole()).await), [(0, 5), (HOUR, 2)]);
    assert_eq!(allowed(&read(&fresh, Grain::Day, whole()).await), [(0, 7)]);
}

async fn sums_are_read_by_identity_endpoint_and_region_and_within_one_tenant(fresh: Fresh) {
    let one = key(&fresh.tenant_id, 0);
    let sums: Sums = [
        (one.clone(), counts(1)),
        (RollupKey { external_id: "bob".into(), ..one.clone() }, counts(2)),
        (RollupKey { endpoint: "other".into(), ..one.clone() }, counts(4)),
        (RollupKey { region: "".into(), external_id: "".into(), ..one.clone() }, counts(8)),
        (RollupKey { tenant_id: "ws_other".into(), ..one.clone() }, counts(16)),
        (RollupKey { time: Millis(START + MINUTE), ..one }, counts(32)),
    ]
    .into();
    fresh.store.add_minutes(&sums).await.unwrap();
    let text = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (whole(), vec![(0, 15), (MINUTE, 32)]),
        (StatsFilter { external_id: text("bob"), ..whole() }, vec![(0, 2)]),
        (StatsFilter { endpoint: text("other"), ..whole() }, vec![(0, 4)]),
        (StatsFilter { region: text("eu"), ..whole() }, vec![(0, 7), (MINUTE, 32)]),
        (StatsFilter { to: Millis(START + MINUTE), ..whole() }, vec![(0, 15)]),
        // The minute that holds this moment is the first.
        (StatsFilter { from: Millis(START + MINUTE - 1), ..whole() }, vec![(0, 15), (MINUTE, 32)]),
        (StatsFilter { from: Millis(START + MINUTE), ..whole() }, vec![(MINUTE, 32)]),
    ] {
        let rows = read(&fresh, Grain::Minute, filter.clone()).await;
        assert_eq!(allowed(&rows), expected, "{filter:?}");
    }
}

async fn minutes_go_before_hours_and_hours_before_days(fresh: Fresh) {
    let store = &fresh.store;
    store.prepare_months(Millis(START)).await.unwrap();
    let sums: Sums = [(key(&fresh.tenant_id, 0), counts(3))].into();
    store.add_minutes(&sums).await.unwrap();
    store.roll_up(Millis(START + MINUTE)).await.unwrap();
    let left = async || {
        let mut left = Vec::new();
        for grain in [Grain::Minute, Grain::Hour, Grain::Day] {
            left.push(read(&fresh, grain, whole()).await.len());
        }
        left
    };
    for (days, expected) in
        [(6, [1, 1, 1]), (38, [0, 1, 1]), (90, [0, 1, 1]), (123, [0, 0, 1]), (1_861, [0, 0, 0])]
    {
        store.prune_rollups(Millis(START + days * DAY)).await.unwrap();
        assert_eq!(left().await, expected, "after {days} days");
        // What was forgotten is not made again, and what is left is not made smaller.
        store.roll_up(Millis(START + DAY)).await.unwrap();
        assert_eq!(left().await, expected, "after {days} days and another round");
    }
}

async fn a_year_of_days_is_read_page_by_page(fresh: Fresh) {
    let sums: Sums = (0..5).map(|at| (key(&fresh.tenant_id, at * MINUTE), counts(at))).collect();
    fresh.store.add_minutes(&sums).await.unwrap();
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let filter = whole();
        let page = fresh.store.query_stats(&fresh.tenant_id, Grain::Minute, &filter, cursor, 2);
        let page = page.await.unwrap();
        assert!(page.rows.len() <= 2);
        seen.extend(allowed(&page.rows));
        let Some(next) = page.next_cursor else { break };
        cursor = Some(Millis(next.parse().unwrap()));
    }
    assert_eq!(seen, (0..5).map(|at| (at * MINUTE, at)).collect::<Vec<_>>());
}
