//! Counts of limits: what nodes write adds up, and is read back by minute ranges and by name.

use tollkeeper_core::Millis;
use tollkeeper_decide::{Counted, WHOLE_RULE};
use tollkeeper_store::{LimitStat, StatSum, StatsOf};

use crate::Fresh;

on_both! {
    counts_of_many_nodes_add_up_by_minute_and_name,
    a_range_takes_its_first_minute_and_not_its_last,
    all_rules_and_namespaces_are_shown_by_their_own_names,
    a_decision_counts_once_for_its_rule_however_many_limits_it_has,
    old_counts_are_forgotten,
}

const MINUTE: u64 = 60_000;

fn stat(fresh: &Fresh, minute: u64, kind: Counted, subject: &str, name: &str) -> LimitStat {
    LimitStat {
        tenant_id: fresh.tenant_id.clone(),
        minute: Millis(minute * MINUTE + 7),
        kind,
        subject: subject.to_owned(),
        name: name.to_owned(),
        hits: 10,
        denied: 2,
        shadow: 1,
    }
}

fn sum(kind: Counted, name: &str, times: u64) -> StatSum {
    let (hits, denied, shadow) = (10 * times, 2 * times, times);
    StatSum { kind, name: name.to_owned(), hits, denied, shadow }
}

async fn read(fresh: &Fresh, of: StatsOf<'_>, from: u64, to: u64) -> Vec<StatSum> {
    let (from, to) = (Millis(from * MINUTE), Millis(to * MINUTE));
    fresh.store.limit_stats(&fresh.tenant_id, of, from, to).await.unwrap()
}

async fn counts_of_many_nodes_add_up_by_minute_and_name(fresh: Fresh) {
    let other = fresh.another().await;
    let of = |minute, name| stat(&fresh, minute, Counted::Rule, "api", name);
    let batch = [of(5, "1m"), of(5, "1m"), of(6, "1m"), of(5, "1d")];
    fresh.store.add_limit_stats(&batch).await.unwrap();
    other.add_limit_stats(&batch).await.unwrap();
    fresh.store.add_limit_stats(&[]).await.unwrap();
    let seen = read(&fresh, StatsOf::One(Counted::Rule, "api"), 0, 100).await;
    assert_eq!(seen, [sum(Counted::Rule, "1d", 2), sum(Counted::Rule, "1m", 6)]);
    assert_eq!(fresh.count("SELECT COUNT(*) FROM limit_stats").await, 3);
    assert!(read(&fresh, StatsOf::One(Counted::Key, "api"), 0, 100).await.is_empty());
    let theirs = fresh.second_tenant().await;
    let range = (Millis(0), Millis(100 * MINUTE));
    let seen = fresh.store.limit_stats(&theirs, StatsOf::All, range.0, range.1).await.unwrap();
    assert!(seen.is_empty(), "another tenant sees its own");
}

async fn a_range_takes_its_first_minute_and_not_its_last(fresh: Fresh) {
    let of = |minute| stat(&fresh, minute, Counted::Key, "key_1", "calls");
    fresh.store.add_limit_stats(&[of(4), of(5), of(6)]).await.unwrap();
    let seen = read(&fresh, StatsOf::One(Counted::Key, "key_1"), 4, 6).await;
    assert_eq!(seen, [sum(Counted::Key, "calls", 2)]);
}

async fn all_rules_and_namespaces_are_shown_by_their_own_names(fresh: Fresh) {
    let batch = [
        stat(&fresh, 1, Counted::Rule, "burst", "1s"),
        stat(&fresh, 1, Counted::Rule, "burst", "1m"),
        stat(&fresh, 1, Counted::Namespace, "rlns_1", "emails"),
        stat(&fresh, 1, Counted::Key, "key_1", "calls"),
    ];
    fresh.store.add_limit_stats(&batch).await.unwrap();
    let seen = read(&fresh, StatsOf::All, 0, 9).await;
    assert_eq!(seen, [sum(Counted::Rule, "burst", 2), sum(Counted::Namespace, "emails", 1)]);
}

async fn a_decision_counts_once_for_its_rule_however_many_limits_it_has(fresh: Fresh) {
    let of = |minute, subject, name| stat(&fresh, minute, Counted::Rule, subject, name);
    let batch = [
        of(1, "two", "1s"),
        of(1, "two", "1m"),
        of(1, "two", WHOLE_RULE),
        of(2, "two", "1s"),
        of(2, "two", "1m"),
        of(2, "two", WHOLE_RULE),
        of(1, "one", "1m"),
        of(1, "block", WHOLE_RULE),
    ];
    fresh.store.add_limit_stats(&batch).await.unwrap();
    let rule = |name, times| sum(Counted::Rule, name, times);
    let all = read(&fresh, StatsOf::All, 0, 9).await;
    assert_eq!(all, [rule("block", 1), rule("one", 1), rule("two", 2)]);
    let two = read(&fresh, StatsOf::One(Counted::Rule, "two"), 0, 9).await;
    assert_eq!(two, [rule("1m", 2), rule("1s", 2)], "by its limits, and not the whole beside them");
    let block = read(&fresh, StatsOf::One(Counted::Rule, "block"), 0, 9).await;
    assert_eq!(block, [rule("block", 1)], "by its own name, since it has no limits");
}

async fn old_counts_are_forgotten(fresh: Fresh) {
    let of = |minute| stat(&fresh, minute, Counted::Rule, "api", "1m");
    fresh.store.add_limit_stats(&[of(1), of(2), of(3)]).await.unwrap();
    assert_eq!(fresh.store.forget_limit_stats(Millis(3 * MINUTE)).await.unwrap(), 2);
    assert_eq!(
        read(&fresh, StatsOf::One(Counted::Rule, "api"), 0, 9).await,
        [sum(Counted::Rule, "1m", 1)]
    );
}
