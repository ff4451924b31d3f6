//! Usage: whatever is told, how often and in which order, the sums are those of the highest totals of every process.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, Connection, Executor};
use tollkeeper_core::{Component, Millis, Minute, Usage};
use tollkeeper_store::{KeyTerms, NewIdentity, USAGE_KEPT_MS, UsageBy, UsageQuery, UsageRow};

use crate::{Fresh, Home, NOW};

on_both! {
    totals_told_again_late_or_out_of_order_count_once,
    the_totals_of_two_processes_are_added,
    workers_that_tell_the_same_at_once_add_nothing_twice,
    a_late_component_adds_only_what_is_more,
    a_ledger_restored_from_before_is_whole_again_when_all_is_told_again,
    more_rows_than_one_statement_takes_are_all_applied,
    sums_are_told_by_minute_hour_day_and_month,
    pages_follow_each_other_without_a_gap_and_without_repeats,
    no_tenant_sees_anothers_usage,
    an_identity_is_told_today_and_this_month,
    what_is_older_than_the_ledger_remembers_is_refused_and_counted,
    usage_by_the_minute_goes_after_forty_days_and_days_stay,
    usage_of_many_keys_and_projects_goes_whole,
}

const A: [u8; 16] = [0xa; 16];
const B: [u8; 16] = [0xb; 16];
const DAY: u64 = 86_400_000;

pub(crate) fn told(boot: [u8; 16], at: u64, project: &str, key: &str, requests: u64) -> Component {
    Component {
        minute: Minute::of(Millis(at)),
        boot,
        project_id: Arc::from(project),
        key_id: Arc::from(key),
        usage: Usage {
            requests,
            denied: requests / 2,
            bytes: requests * 10,
            credits: requests / 3,
        },
    }
}

fn usage(requests: u64) -> Usage {
    told(A, 0, "", "", requests).usage
}

fn query(by: UsageBy) -> UsageQuery {
    UsageQuery {
        project_id: None,
        key_id: None,
        external_id: None,
        from: Millis(NOW.0 - DAY),
        to: Millis(NOW.0 + DAY),
        by,
        cursor: None,
        limit: 100,
    }
}

async fn rows(fresh: &Fresh, query: UsageQuery) -> Vec<UsageRow> {
    fresh.store.usage(&fresh.tenant_id, &query).await.unwrap().rows
}

async fn requests_of(fresh: &Fresh, by: UsageBy) -> u64 {
    rows(fresh, query(by)).await.iter().map(|row| row.usage.requests).sum()
}

async fn run(fresh: &Fresh, statements: &str) {
    match &fresh.home {
        Home::Folder(_) => {
            fresh.beside().await.execute(AssertSqlSafe(statements)).await.unwrap();
        }
        Home::Server(database) => {
            let mut beside = sqlx::PgConnection::connect(&database.url).await.unwrap();
            beside.execute(sqlx::raw_sql(AssertSqlSafe(statements))).await.unwrap();
        }
    }
}

/// A sequence that is the same in every run.
fn dice(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

async fn totals_told_again_late_or_out_of_order_count_once(fresh: Fresh) {
    let project = fresh.project("p").await;
    let mut roll = dice(7);
    let mut highest = std::collections::HashMap::new();
    let mut reports = Vec::new();
    for _ in 0..400 {
        let (boot, key) = ([A, B][usize::try_from(roll(2)).unwrap()], format!("key_{}", roll(5)));
        let (minute, requests) = (NOW.0 + roll(4) * 60_000, 1 + roll(1_000));
        let one = told(boot, minute, &project, &key, requests);
        let known: &mut Usage = highest.entry((boot, key, one.minute)).or_default();
        *known = known.max(one.usage);
        reports.push(one);
    }
    // Each one to five times, in any order, in batches of any size.
    let mut all: Vec<Component> = Vec::new();
    for one in &reports {
        (0..=roll(5)).for_each(|_| all.push(one.clone()));
    }
    for at in (1..all.len()).rev() {
        all.swap(at, usize::try_from(roll(at as u64 + 1)).unwrap());
    }
    let mut rest = &all[..];
    while !rest.is_empty() {
        let (some, others) = rest.split_at(usize::try_from(1 + roll(90)).unwrap().min(rest.len()));
        fresh.store.apply_usage(some, NOW).await.unwrap();
        rest = others;
    }
    let expected = highest.values().fold(Usage::default(), |sum, one| sum.plus(*one));
    for by in [UsageBy::Minute, UsageBy::Hour, UsageBy::Day, UsageBy::Month] {
        let sum = rows(&fresh, query(by))
            .await
            .iter()
            .fold(Usage::default(), |sum, row| sum.plus(row.usage));
        assert_eq!(sum, expected, "{by:?}");
    }
    let shown = fresh.store.shown_usage(&reports).await.unwrap();
    assert_eq!(shown.len(), highest.len());
    for one in shown {
        assert_eq!(one.usage, highest[&(one.boot, one.key_id.to_string(), one.minute)]);
    }
}

async fn the_totals_of_two_processes_are_added(fresh: Fresh) {
    let project = fresh.project("p").await;
    let both = [told(A, NOW.0, &project, "key_1", 30), told(B, NOW.0, &project, "key_1", 12)];
    fresh.store.apply_usage(&both, NOW).await.unwrap();
    let rows = rows(&fresh, query(UsageBy::Day)).await;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].usage, usage(30).plus(usage(12)));
}

async fn workers_that_tell_the_same_at_once_add_nothing_twice(fresh: Fresh) {
    let project = fresh.project("p").await;
    let other = fresh.another().await;
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..4_u64 {
        let store = if worker % 2 == 0 { fresh.store.clone() } else { other.clone() };
        let project = project.clone();
        workers.spawn(async move {
            let mut roll = dice(worker + 1);
            for round in 1..=10_u64 {
                let mut batch: Vec<_> = (0..50)
                    .map(|key| told(A, NOW.0, &project, &format!("key_{key}"), round * 10))
                    .collect();
                for at in (1..batch.len()).rev() {
                    batch.swap(at, usize::try_from(roll(at as u64 + 1)).unwrap());
                }
                // A lock that took too long, or met another in a ring, is tried again as the worker would.
                while let Err(error) = store.apply_usage(&batch, NOW).await {
                    assert!(error.is_transient(), "{error:?}");
                }
            }
        });
    }
    workers.join_all().await;
    assert_eq!(requests_of(&fresh, UsageBy::Minute).await, 50 * 100);
    assert_eq!(requests_of(&fresh, UsageBy::Day).await, 50 * 100);
}

async fn a_late_component_adds_only_what_is_more(fresh: Fresh) {
    let project = fresh.project("p").await;
    for requests in [10, 4, 10, 25, 24] {
        fresh.store.apply_usage(&[told(A, NOW.0, &project, "key_1", requests)], NOW).await.unwrap();
    }
    assert_eq!(rows(&fresh, query(UsageBy::Day)).await[0].usage, usage(25));
}

async fn a_ledger_restored_from_before_is_whole_again_when_all_is_told_again(fresh: Fresh) {
    let project = fresh.project("p").await;
    let early = told(A, NOW.0, &project, "key_1", 10);
    fresh.store.apply_usage(std::slice::from_ref(&early), NOW).await.unwrap();
    let tables = ["usage_ledger", "usage_minute", "usage_record"];
    for table in tables {
        run(&fresh, &format!("CREATE TABLE saved_{table} AS SELECT * FROM {table}")).await;
    }
    let later = [told(A, NOW.0, &project, "key_1", 17), told(B, NOW.0, &project, "key_2", 5)];
    fresh.store.apply_usage(&later, NOW).await.unwrap();
    assert_eq!(requests_of(&fresh, UsageBy::Day).await, 22);
    for table in tables {
        run(
            &fresh,
            &format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM saved_{table}"),
        )
        .await;
    }
    let shown = fresh.store.shown_usage(&later).await.unwrap();
    assert_eq!(shown, std::slice::from_ref(&early), "whoever asks sees that something is missing");
    for _ in 0..2 {
        fresh.store.apply_usage(&later, NOW).await.unwrap();
        fresh.store.apply_usage(std::slice::from_ref(&early), NOW).await.unwrap();
    }
    assert_eq!(requests_of(&fresh, UsageBy::Day).await, 22);
    assert_eq!(requests_of(&fresh, UsageBy::Minute).await, 22);
}

async fn more_rows_than_one_statement_takes_are_all_applied(fresh: Fresh) {
    let project = fresh.project("p").await;
    let many: Vec<_> =
        (0..5_001).map(|key| told(A, NOW.0, &project, &format!("key_{key}"), 1)).collect();
    fresh.store.apply_usage(&many, NOW).await.unwrap();
    assert_eq!(fresh.count("SELECT COUNT(*) FROM usage_record").await, 5_001);
    assert_eq!(fresh.count("SELECT CAST(SUM(requests) AS BIGINT) FROM usage_minute").await, 5_001);
    assert_eq!(fresh.store.shown_usage(&many).await.unwrap().len(), 5_001);
    fresh.store.apply_usage(&[], NOW).await.unwrap();
}

async fn sums_are_told_by_minute_hour_day_and_month(fresh: Fresh) {
    // 2023-11-14 22:13:20 UTC.
    let project = fresh.project("p").await;
    let moments =
        [NOW.0, NOW.0 + 60_000, NOW.0 + 3_600_000, NOW.0 + 2 * 3_600_000, NOW.0 + 20 * DAY];
    let told: Vec<_> = moments.iter().map(|at| told(A, *at, &project, "key_1", 6)).collect();
    fresh.store.apply_usage(&told, NOW).await.unwrap();
    let asked = |by, to| {
        let fresh = &fresh;
        async move {
            let query = UsageQuery { from: NOW, to: Millis(to), ..query(by) };
            let rows = rows(fresh, query).await;
            rows.iter().map(|row| (row.time.0, row.usage.requests)).collect::<Vec<_>>()
        }
    };
    let start = |at: u64, width: u64| at - at % width;
    let minute = start(NOW.0, 60_000);
    // The bucket that holds `from` is in it, the one that begins at `to` is not.
    assert_eq!(asked(UsageBy::Minute, minute + 60_000).await, [(minute, 6)]);
    assert_eq!(asked(UsageBy::Minute, minute + 60_001).await, [(minute, 6), (minute + 60_000, 6)]);
    let hour = start(NOW.0, 3_600_000);
    assert_eq!(asked(UsageBy::Hour, hour + 3_600_000).await, [(hour, 12)]);
    let day = start(NOW.0, DAY);
    assert_eq!(asked(UsageBy::Day, day + 1).await, [(day, 18)]);
    assert_eq!(asked(UsageBy::Day, day + DAY + 1).await, [(day, 18), (day + DAY, 6)]);
    let november = 1_698_796_800_000;
    assert_eq!(asked(UsageBy::Month, november + 1).await, [(november, 24)]);
    assert_eq!(
        asked(UsageBy::Month, november + 31 * DAY).await,
        [(november, 24), (november + 30 * DAY, 6)]
    );
}

async fn pages_follow_each_other_without_a_gap_and_without_repeats(fresh: Fresh) {
    let projects = [fresh.project("p").await, fresh.project("q").await];
    let mut all = Vec::new();
    for minute in 0..5 {
        for key in 0..7 {
            let project = &projects[key % 2];
            all.push(told(A, NOW.0 + minute * 60_000, project, &format!("key_{key}"), 1));
        }
    }
    fresh.store.apply_usage(&all, NOW).await.unwrap();
    for (by, expected) in [(UsageBy::Minute, 35), (UsageBy::Day, 7)] {
        let whole = rows(&fresh, query(by)).await;
        assert_eq!(whole.len(), expected);
        let order = |row: &UsageRow| (row.time, row.key_id.clone(), row.project_id.clone());
        assert!(whole.is_sorted_by_key(order));
        let (mut paged, mut cursor) = (Vec::new(), None);
        loop {
            let asked = UsageQuery { cursor, limit: 3, ..query(by) };
            let page = fresh.store.usage(&fresh.tenant_id, &asked).await.unwrap();
            paged.extend(page.rows);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(paged, whole);
    }
    let one = UsageQuery { project_id: Some(projects[1].clone()), ..query(UsageBy::Day) };
    assert_eq!(rows(&fresh, one).await.len(), 3);
    let one = UsageQuery { key_id: Some("key_3".to_owned()), ..query(UsageBy::Minute) };
    assert_eq!(rows(&fresh, one).await.len(), 5);
}

async fn no_tenant_sees_anothers_usage(fresh: Fresh) {
    let project = fresh.project("p").await;
    let stranger = fresh.second_tenant().await;
    fresh.store.apply_usage(&[told(A, NOW.0, &project, "key_1", 5)], NOW).await.unwrap();
    for by in [UsageBy::Minute, UsageBy::Hour, UsageBy::Day, UsageBy::Month] {
        let mut asked = query(by);
        assert_eq!(fresh.store.usage(&stranger, &asked).await.unwrap().rows, []);
        asked.project_id = Some(project.clone());
        asked.key_id = Some("key_1".to_owned());
        assert_eq!(fresh.store.usage(&stranger, &asked).await.unwrap().rows, []);
    }
}

async fn an_identity_is_told_today_and_this_month(fresh: Fresh) {
    let new =
        NewIdentity { external_id: "ann".to_owned(), meta: None, tier: None, limits: Vec::new() };
    fresh.store.create_identity(fresh.by(), new).await.unwrap();
    let project = fresh.project("p").await;
    let of_ann = KeyTerms { external_id: Some("ann".to_owned()), ..KeyTerms::default() };
    let (hers, _) = fresh.key_in(&project, of_ann).await;
    let (others, _) = fresh.key_in(&project, KeyTerms::default()).await;
    let told = [
        told(A, NOW.0, &project, &hers, 6),
        told(B, NOW.0 - 3 * DAY, &project, &hers, 30),
        told(A, NOW.0 - 20 * DAY, &project, &hers, 100),
        told(A, NOW.0, &project, &others, 9),
    ];
    fresh.store.apply_usage(&told, NOW).await.unwrap();
    let totals = fresh.store.identity_totals(&fresh.tenant_id, "ann", NOW).await.unwrap().unwrap();
    assert_eq!((totals.today, totals.month), (usage(6), usage(6).plus(usage(30))));
    assert_eq!(totals.last_request_at, None);
    assert_eq!(fresh.store.identity_totals(&fresh.tenant_id, "bob", NOW).await.unwrap(), None);
    let stranger = fresh.second_tenant().await;
    assert_eq!(fresh.store.identity_totals(&stranger, "ann", NOW).await.unwrap(), None);
    let asked = UsageQuery { external_id: Some("ann".to_owned()), ..query(UsageBy::Day) };
    let rows = rows(&fresh, asked).await;
    assert_eq!(rows.iter().map(|row| row.usage.requests).sum::<u64>(), 6);
}

async fn what_is_older_than_the_ledger_remembers_is_refused_and_counted(fresh: Fresh) {
    let project = fresh.project("p").await;
    let old = told(A, NOW.0 - USAGE_KEPT_MS, &project, "key_1", 5);
    let young = told(A, NOW.0 - USAGE_KEPT_MS + 2 * DAY, &project, "key_1", 7);
    assert_eq!(fresh.store.apply_usage(&[old, young], NOW).await.unwrap(), 1);
    assert_eq!(fresh.count("SELECT CAST(SUM(requests) AS BIGINT) FROM usage_record").await, 7);
}

async fn usage_by_the_minute_goes_after_forty_days_and_days_stay(fresh: Fresh) {
    let project = fresh.project("p").await;
    let told =
        [told(A, NOW.0, &project, "key_1", 5), told(A, NOW.0 + 3 * DAY, &project, "key_1", 7)];
    fresh.store.apply_usage(&told, NOW).await.unwrap();
    let late = Millis(NOW.0 + USAGE_KEPT_MS + DAY);
    for _ in 0..2 {
        fresh.store.forget_usage(late).await.unwrap();
        assert_eq!(fresh.count("SELECT COUNT(*) FROM usage_minute").await, 1);
        assert_eq!(fresh.count("SELECT COUNT(*) FROM usage_ledger").await, 1);
        assert_eq!(fresh.count("SELECT COUNT(*) FROM usage_record").await, 2);
    }
    // What is told again of the day that is forgotten is refused, not counted twice.
    assert_eq!(fresh.store.apply_usage(&told, late).await.unwrap(), 1);
    assert_eq!(fresh.count("SELECT CAST(SUM(requests) AS BIGINT) FROM usage_record").await, 12);
}

/// More than one statement takes away, in the first project and behind it.
async fn usage_of_many_keys_and_projects_goes_whole(fresh: Fresh) {
    let projects = [fresh.project("p").await, fresh.project("q").await];
    let of_many = |project: &String| {
        let keys = (0..5_100).map(|key| told(A, NOW.0, project, &format!("key_{key}"), 1));
        keys.collect::<Vec<_>>()
    };
    for told in projects.iter().map(of_many) {
        fresh.store.apply_usage(&told, NOW).await.unwrap();
    }
    fresh.store.forget_usage(Millis(NOW.0 + USAGE_KEPT_MS + DAY)).await.unwrap();
    for left in ["SELECT COUNT(*) FROM usage_minute", "SELECT COUNT(*) FROM usage_ledger"] {
        assert_eq!(fresh.count(left).await, 0);
    }
}

/// `cargo test --release --package tollkeeper-store --test it a_million -- --ignored --nocapture`
async fn a_million(fresh: Fresh, name: &str) {
    const CELLS: u64 = 1_000_000;
    let project = fresh.project("p").await;
    let told: Vec<_> = (0..CELLS)
        .map(|cell| {
            let (minute, key) = (NOW.0 + cell % 10 * 60_000, format!("key_{}", cell / 10));
            told(A, minute, &project, &key, 1 + cell % 7)
        })
        .collect();
    #[allow(clippy::disallowed_methods, reason = "this measures")]
    let begun = std::time::Instant::now();
    fresh.store.apply_usage(&told, NOW).await.unwrap();
    let took = begun.elapsed();
    #[allow(clippy::print_stdout, reason = "the figure is what it is for")]
    {
        println!("{name}: a million pairs of key and minute applied in {took:?}");
    }
    assert_eq!(fresh.count("SELECT COUNT(*) FROM usage_minute").await, CELLS.cast_signed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures; takes up to a minute"]
async fn a_million_cells_on_sqlite() {
    a_million(Fresh::new().await, "SQLite").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures; takes up to a minute"]
async fn a_million_cells_on_postgres() {
    a_million(Fresh::on_postgres().await, "PostgreSQL").await;
}
