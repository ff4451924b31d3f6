//! Sums over threads, their bounds, and that nothing is left out of them silently.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use super::*;

fn sight<'a>(tenant_id: &'a Arc<str>, external_id: Option<&'a Arc<str>>) -> Sight<'a> {
    Sight {
        at: Millis(60_000),
        tenant_id,
        endpoint: None,
        whose: external_id.map(Whose::Stored),
        decision: Decision::Allowed,
        cache: Some(CacheSight::Hit),
        latency_ns: 1_500,
    }
}

fn total(sums: &BTreeMap<RollupKey, RollupCounts>) -> u64 {
    sums.values().map(RollupCounts::total).sum()
}

#[test]
fn what_two_threads_saw_of_one_minute_is_one_sum() {
    let rollups = Rollups::new(2, Some("eu"));
    // The same names twice, as a record that was loaded again has them.
    for page in 0..2 {
        let (tenant, ann): (Arc<str>, Arc<str>) = ("ws".into(), "ann".into());
        let page = rollups.at_page(page);
        page.note(&sight(&tenant, Some(&ann)));
        let (cache, decision) = (Some(CacheSight::Miss), Decision::Throttled);
        page.note(&Sight { decision, cache, ..sight(&tenant, Some(&ann)) });
        page.note(&Sight { at: Millis(119_999), ..sight(&tenant, Some(&ann)) });
        page.note(&Sight { at: Millis(120_000), cache: None, ..sight(&tenant, None) });
    }
    let sums = rollups.take();
    assert_eq!(sums.len(), 2);
    let (key, counts) = sums.first_key_value().expect("two");
    assert_eq!((key.time, &*key.external_id, &*key.region), (Millis(60_000), "ann", "eu"));
    let got = (counts.allowed, counts.throttled, counts.cache_hits, counts.cache_misses);
    assert_eq!(got, (4, 2, 4, 2));
    assert_eq!(counts.latency[1], 6, "all of them between one and two microseconds");
    assert!(rollups.take().is_empty());
}

#[test]
fn what_could_not_be_stored_is_in_the_next_sum() {
    let rollups = Rollups::new(1, None);
    let tenant: Arc<str> = "ws".into();
    (0..5).for_each(|_| rollups.note(&sight(&tenant, None)));
    let sums = rollups.take();
    rollups.give_back(sums.clone());
    rollups.note(&sight(&tenant, None));
    assert_eq!(total(&rollups.take()), 6);
    assert_eq!(total(&sums), 5);
}

#[test]
fn a_tenant_has_so_many_endpoints_and_then_others() {
    let rollups = Rollups::new(1, None);
    let tenant: Arc<str> = "ws".into();
    for number in 0..ENDPOINTS_MAX + 50 {
        let endpoint: Arc<str> = format!("/e{number}").into();
        rollups.note(&Sight { endpoint: Some(&endpoint), ..sight(&tenant, None) });
    }
    let sums = rollups.take();
    assert_eq!((sums.len(), total(&sums)), (ENDPOINTS_MAX + 1, ENDPOINTS_MAX as u64 + 50));
    let others: u64 =
        sums.iter().filter(|(key, _)| &*key.endpoint == "other").map(|(_, sum)| sum.total()).sum();
    assert_eq!(others, 50);
    // One that has its name keeps it.
    let known = sums.keys().find(|key| &*key.endpoint != "other").expect("one").endpoint.clone();
    rollups.note(&Sight { endpoint: Some(&known), ..sight(&tenant, None) });
    assert_eq!(&rollups.take().first_key_value().expect("one").0.endpoint, &known);
}

#[test]
fn the_busiest_identities_are_told_apart_and_nothing_is_left_out_of_the_sum() {
    let rollups = Rollups::new(1, None);
    let tenant: Arc<str> = "ws".into();
    let names: Vec<Arc<str>> = (0..20_000).map(|number| format!("u{number}").into()).collect();
    for _ in 0..3 {
        rollups.note(&sight(&tenant, names.first()));
    }
    for name in &names {
        rollups.note(&sight(&tenant, Some(name)));
    }
    let sums = rollups.take();
    assert!(sums.len() <= IDENTITIES_MAX + 1, "{}", sums.len());
    assert_eq!((total(&sums), rollups.dropped()), (20_003, 0));
    let of = |name: &str| {
        let sums = sums.iter().filter(|(key, _)| &*key.external_id == name);
        sums.map(|(_, sum)| sum.total()).sum::<u64>()
    };
    assert_eq!(of("u0"), 4);
    assert!(of(OTHER_IDENTITIES) >= 19_000);
}

#[test]
fn a_name_that_only_requests_tell_is_added_up_like_a_stored_one_and_takes_no_more_room() {
    let rollups = Rollups::new(1, None);
    let (tenant, ann): (Arc<str>, Arc<str>) = ("ws".into(), "ann".into());
    let note = |name: &str| {
        rollups.note(&Sight { whose: Some(Whose::Told(name)), ..sight(&tenant, None) });
    };
    for _ in 0..CELLS_LAST {
        note("bob");
    }
    note("ann");
    rollups.note(&sight(&tenant, Some(&ann)));
    let of = |name: &str, sums: &BTreeMap<RollupKey, RollupCounts>| {
        let sums = sums.iter().filter(|(key, _)| &*key.external_id == name);
        sums.map(|(_, sum)| sum.total()).sum::<u64>()
    };
    let sums = rollups.take();
    assert_eq!((sums.len(), of("bob", &sums), of("ann", &sums)), (2, CELLS_LAST as u64, 2));

    // However many names are told, what is stored keeps its own.
    rollups.note(&sight(&tenant, Some(&ann)));
    for number in 0..3 * CELLS_MAX {
        note(&number.to_string());
    }
    rollups.note(&sight(&tenant, Some(&ann)));
    let sums = rollups.take();
    assert_eq!((total(&sums), rollups.dropped()), (3 * CELLS_MAX as u64 + 2, 0));
    assert_eq!(of("ann", &sums), 2);
}

#[test]
fn what_is_beyond_every_bound_is_counted() {
    let rollups = Rollups::new(1, None);
    let tenants: Vec<Arc<str>> = (0..30_000).map(|number| format!("t{number}").into()).collect();
    for tenant in &tenants {
        rollups.note(&sight(tenant, None));
    }
    let sums = rollups.take();
    assert_eq!(sums.len(), CELLS_LAST);
    assert_eq!(total(&sums) + rollups.dropped(), 30_000);
}
