//! Rules, quotas and blocks as a verification meets them: what they add to the bundle, what they end, what they only watch.

use std::sync::Arc;

use tollkeeper_core::{
    Action, Block, Cost, IdentityQuota, Limit, Millis, PathPattern, Quota, RequestPath, Rule,
    RuleLimit, RuleScope, RuleSet, ScopeList, Sharing, Verdict, Width, Written,
};
use tollkeeper_decide::{
    Purpose, Reach, Source, Told, Verified, VerifyAsk, WaitingRoom, WarmError,
};

use crate::keys::{NOW, Node, ask, auto, identity, node};
use crate::memory::tenant;

fn limit(quota: u64, width_ms: u64) -> Limit {
    Limit::sliding_window(Quota::new(quota).unwrap(), Width::from_millis(width_ms).unwrap())
}

fn rule(name: &str, scope: RuleScope, limits: &[(&str, Limit)]) -> Rule {
    let limit = |(name, limit): &(&str, Limit)| RuleLimit::new(*name, *limit);
    Rule {
        name: name.into(),
        scope: ScopeList::from(scope),
        tiers: Vec::new(),
        endpoints: Vec::new(),
        methods: Vec::new(),
        ip_ranges: Vec::new(),
        projects: Vec::new(),
        limits: limits.iter().map(limit).collect(),
        action: Action::Reject,
        response: None,
        sharing: Sharing::default(),
        priority: 100,
        enabled: true,
    }
}

/// A node with these rules, and key 1 with a limit of its own.
fn node_with(rules: Vec<Rule>) -> Node {
    let node = node();
    put(&node, rules, 1);
    node.add(1, |record| record.limits = vec![auto("requests", 5)]);
    node
}

fn put(node: &Node, rules: Vec<Rule>, version: u64) {
    let set = RuleSet::compile(rules.into_iter().map(Arc::new).collect());
    node.decider.rules().swap(&tenant(), set, version);
}

/// A request without a key.
fn keyless<'a>() -> VerifyAsk<'a> {
    VerifyAsk { key: None, reach: Reach::Tenant, ..ask(1) }
}

fn of_user(external_id: &str) -> VerifyAsk<'_> {
    VerifyAsk { told: Told { external_id: Some(external_id), ..Told::default() }, ..keyless() }
}

fn dry(ask: VerifyAsk<'_>) -> VerifyAsk<'_> {
    VerifyAsk { purpose: Purpose::Look, ..ask }
}

/// What is left of this limit.
async fn left(node: &Node, ask: VerifyAsk<'_>, name: &str) -> u64 {
    let made = node.verify(&VerifyAsk { cost: Cost::PEEK, ..dry(ask) }).await;
    made.limits.iter().find(|one| *one.terms.name == *name).unwrap().outcome.remaining
}

fn named<'a>(made: &'a Verified, name: &str) -> &'a tollkeeper_decide::VerifiedLimit {
    made.limits.iter().find(|one| *one.terms.name == *name).unwrap()
}

#[tokio::test]
async fn a_rules_limits_are_spent_with_the_keys_own_or_not_at_all() {
    let node = node_with(vec![rule("fair", RuleScope::Key, &[("1m", limit(2, 60_000))])]);
    for left in [1, 0] {
        let made = node.verify(&ask(1)).await;
        assert_eq!(made.verdict, Verdict::Valid);
        assert_eq!(named(&made, "fair/1m").outcome.remaining, left);
    }
    let made = node.verify(&ask(1)).await;
    assert_eq!(made.verdict, Verdict::RateLimited);
    assert_eq!(made.rule.as_ref().map(|rule| &*rule.name), Some("fair"));
    assert!(made.retry_after_ms(NOW).is_some());
    assert_eq!(left(&node, ask(1), "requests").await, 3);
}

#[tokio::test]
async fn a_denial_by_the_keys_own_limit_spends_nothing_of_a_rule() {
    let node = node_with(vec![rule("fair", RuleScope::Key, &[("1m", limit(50, 60_000))])]);
    for _ in 0..8 {
        node.verify(&ask(1)).await;
    }
    assert_eq!(left(&node, ask(1), "fair/1m").await, 45);
}

#[tokio::test]
async fn keys_of_one_owner_share_the_budget_of_a_rule_by_user() {
    let node = node_with(vec![rule("plan", RuleScope::User, &[("1m", limit(3, 60_000))])]);
    for number in [2, 3] {
        node.add(number, |record| record.identity = Some(identity(Vec::new())));
    }
    for (number, verdict) in
        [(2, Verdict::Valid), (3, Verdict::Valid), (2, Verdict::Valid), (3, Verdict::RateLimited)]
    {
        assert_eq!(node.verify(&ask(number)).await.verdict, verdict);
    }
    // Without an identity there is nothing to count by.
    assert!(node.verify(&ask(1)).await.limits.iter().all(|one| one.rule().is_none()));
    // A request that only names that user counts in the same place, though nobody stored it.
    assert_eq!(node.verify(&of_user("user_1")).await.verdict, Verdict::RateLimited);
    assert_eq!(node.verify(&of_user("user_2")).await.verdict, Verdict::Valid);
}

#[tokio::test]
async fn the_first_allow_or_block_ends_the_walk() {
    let ended = |action| {
        vec![
            Rule { priority: 1, ..rule("early", RuleScope::Key, &[("1m", limit(9, 60_000))]) },
            Rule { priority: 2, action, ..rule("end", RuleScope::Global, &[]) },
            Rule { priority: 3, ..rule("late", RuleScope::Key, &[("1m", limit(0, 60_000))]) },
        ]
    };
    let node = node_with(ended(Action::Allow));
    let made = node.verify(&ask(1)).await;
    assert_eq!(made.verdict, Verdict::Valid);
    assert_eq!(named(&made, "early/1m").outcome.remaining, 8);
    put(&node, ended(Action::Block), 2);
    let made = node.verify(&ask(1)).await;
    assert_eq!((made.verdict, made.limits.len()), (Verdict::Blocked, 0));
    assert_eq!(made.rule.map(|rule| rule.name.to_string()), Some("end".to_owned()));
    put(&node, ended(Action::Allow), 3);
    assert_eq!(left(&node, ask(1), "early/1m").await, 8);
}

#[tokio::test]
async fn an_older_set_of_rules_never_replaces_a_newer_one() {
    let node = node_with(Vec::new());
    put(&node, vec![Rule { action: Action::Block, ..rule("stop", RuleScope::Global, &[]) }], 7);
    put(&node, Vec::new(), 6);
    assert_eq!(node.verify(&ask(1)).await.verdict, Verdict::Blocked);
    put(&node, Vec::new(), 8);
    assert_eq!(node.verify(&ask(1)).await.verdict, Verdict::Valid);
}

#[tokio::test]
async fn a_rule_that_only_watches_counts_reports_and_never_denies() {
    let watch = Rule {
        action: Action::LogOnly,
        ..rule("watch", RuleScope::Key, &[("1m", limit(2, 60_000))])
    };
    let node = node_with(vec![watch]);
    let mut over = 0;
    for _ in 0..5 {
        let made = node.verify(&ask(1)).await;
        assert_eq!((made.verdict, made.rule.is_none()), (Verdict::Valid, true));
        let line = named(&made, "watch/1m");
        assert!(line.is_shadow() && !line.denies());
        over += usize::from(!line.outcome.admitted());
    }
    assert_eq!(over, 3);
}

#[tokio::test]
async fn what_was_refused_is_not_counted_by_a_rule_that_only_watches() {
    let watch = Rule {
        action: Action::LogOnly,
        ..rule("watch", RuleScope::Key, &[("1m", limit(100, 60_000))])
    };
    let node = node_with(vec![watch]);
    for _ in 0..9 {
        node.verify(&ask(1)).await;
    }
    assert_eq!(left(&node, ask(1), "watch/1m").await, 95);
}

#[tokio::test]
async fn a_throttled_request_is_told_to_wait_longer_and_longer_and_then_refused() {
    let slow = Rule {
        action: Action::Throttle { max_delay_ms: 2_000 },
        ..rule("slow", RuleScope::Key, &[("1s", limit(2, 1_000))])
    };
    let node = node_with(vec![slow]);
    node.add(2, |_| ());
    let mut delays = Vec::new();
    let refused = loop {
        let made = node.verify(&ask(2)).await;
        if !made.passed() {
            break made;
        }
        delays.push(made.delay_ms);
    };
    assert_eq!(delays, [0, 0, 500, 1_000, 1_500, 2_000]);
    assert_eq!((refused.verdict, refused.delay_ms), (Verdict::RateLimited, 0));
    assert_eq!(refused.rule.map(|rule| rule.name.to_string()), Some("slow".to_owned()));
}

/// With or without a place to wait in.
#[derive(Debug)]
struct Room(bool);

impl WaitingRoom for Room {
    fn has_place(&self) -> bool {
        self.0
    }
}

#[tokio::test]
async fn who_has_nowhere_to_wait_is_refused_and_not_counted() {
    let slow = Rule {
        action: Action::Throttle { max_delay_ms: 2_000 },
        ..rule("slow", RuleScope::Key, &[("1s", limit(2, 1_000))])
    };
    let node = node_with(vec![slow]);
    node.add(2, |_| ());
    let (some, none) = (Room(true), Room(false));
    let within = |room| VerifyAsk { waiting: Some(room), ..ask(2) };
    let mut seen = Vec::new();
    for room in [&none, &some, &none, &some, &none, &none, &some] {
        let made = node.verify(&within(room)).await;
        seen.push((made.passed(), made.delay_ms));
        if !made.passed() {
            assert_eq!(made.rule.as_ref().map(|rule| &*rule.name), Some("slow"));
            assert!(made.retry_after_ms(NOW).is_some_and(|ms| ms > 0), "{made:?}");
        }
    }
    let expected =
        [(true, 0), (true, 0), (false, 0), (true, 500), (false, 0), (false, 0), (true, 1_000)];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_bucket_with_a_refill_of_its_own_is_shown_and_replaced_by_its_own_window() {
    let terms = |quota, ms| (Quota::new(quota).unwrap(), Width::from_millis(ms).unwrap());
    let ((tokens, second), (quota, minute)) = (terms(5, 1_000), terms(20, 60_000));
    let refilled = RuleLimit {
        written: Some(Written { quota, width: minute }),
        ..RuleLimit::new("1m", Limit::token_bucket(tokens, second, Some(quota)))
    };
    let plan = Rule {
        tiers: vec!["free".into()],
        limits: vec![refilled],
        ..rule("plan", RuleScope::User, &[])
    };
    let node = node_with(vec![plan]);
    let mut owner = identity(Vec::new());
    owner.quota =
        IdentityQuota { per_second: Some(1_000), per_minute: Some(3), ..IdentityQuota::default() };
    node.directory.add_identity(owner);
    let made = node.verify(&of_user("user_2")).await;
    let one = named(&made, "plan/1m");
    assert_eq!(one.written.map(|written| (written.quota, written.width)), Some((quota, minute)));
    assert_eq!((one.outcome.limit, one.outcome.remaining), (20, 19));
    let made = node.verify(&of_user("user_1")).await;
    let one = named(&made, "plan/1m");
    assert_eq!(one.written.map(|written| written.quota.get()), Some(3), "by the minute");
    assert_eq!((one.outcome.limit, one.outcome.remaining), (3, 2));
    assert_eq!(one.limit.quota, tokens, "and is refilled as before");
    assert!(made.limits.iter().any(|one| &*one.terms.name == "quota_second"), "not by the second");
}

#[tokio::test]
async fn a_look_spends_nothing_and_says_what_would_happen() {
    let node = node_with(vec![rule("fair", RuleScope::Key, &[("1m", limit(2, 60_000))])]);
    node.add_paid(2, 1, |_| ());
    for _ in 0..5 {
        assert_eq!(node.verify(&dry(ask(1))).await.verdict, Verdict::Valid);
        assert_eq!(node.verify(&dry(ask(2))).await.verdict, Verdict::Valid);
    }
    assert_eq!(left(&node, ask(1), "fair/1m").await, 2);
    assert_eq!(node.balance("key_2"), 1);
    let made = node.verify(&ask(2)).await;
    assert_eq!((made.verdict, made.credits_spent), (Verdict::Valid, 1));
    assert_eq!(node.verify(&dry(ask(2))).await.verdict, Verdict::UsageExceeded);
    let all = VerifyAsk { cost: Cost::new(3).unwrap(), ..dry(ask(1)) };
    assert_eq!(node.verify(&all).await.verdict, Verdict::RateLimited);
}

#[tokio::test]
async fn every_rule_is_explained_and_nothing_is_spent() {
    let path = RequestPath::new("/admin/users");
    let node = node_with(vec![
        rule("fair", RuleScope::Key, &[("1m", limit(2, 60_000))]),
        Rule {
            endpoints: vec![PathPattern::parse("/public/**").unwrap()],
            ..rule("public", RuleScope::Global, &[("1m", limit(2, 60_000))])
        },
    ]);
    let told = Told { path: Some(path), ..Told::default() };
    let made = node.verify(&VerifyAsk { told, purpose: Purpose::Explain, ..ask(1) }).await;
    let reasons: Vec<_> =
        made.reasons.iter().map(|one| (&*one.rule.name, one.unmet.is_none())).collect();
    assert_eq!(reasons, [("fair", true), ("public", false)]);
    assert_eq!(left(&node, ask(1), "fair/1m").await, 2);
}

#[tokio::test]
async fn an_identitys_own_quota_counts_in_place_of_its_tiers_and_else_stands_alone() {
    let tiered = Rule {
        tiers: vec!["pro".into()],
        ..rule("pro", RuleScope::User, &[("1m", limit(100, 60_000)), ("1h", limit(9, 3_600_000))])
    };
    let node = node_with(vec![tiered]);
    let quota = IdentityQuota { per_minute: Some(2), per_day: Some(7), ..IdentityQuota::default() };
    node.add(2, |record| {
        record.tier = Some("pro".into());
        record.identity = Some(tollkeeper_core::IdentityRecord { quota, ..identity(Vec::new()) });
    });
    let made = node.verify(&ask(2)).await;
    let limits: Vec<_> =
        made.limits.iter().map(|one| (&*one.terms.name, one.outcome.limit)).collect();
    assert_eq!(limits, [("pro/1m", 2), ("pro/1h", 9), ("quota_day", 7)]);
    assert!(matches!(named(&made, "quota_day").terms.source, Source::Quota));
    // Another tier has no such rule: then both stand alone.
    node.add(3, |record| {
        record.identity = Some(tollkeeper_core::IdentityRecord { quota, ..identity(Vec::new()) });
    });
    let made = node.verify(&ask(3)).await;
    let limits: Vec<_> =
        made.limits.iter().map(|one| (&*one.terms.name, one.outcome.limit)).collect();
    assert_eq!(limits, [("quota_minute", 2), ("quota_day", 7)]);
    // The day is one budget, whichever tier spends from it.
    assert_eq!(named(&made, "quota_day").outcome.remaining, 5);
}

#[tokio::test]
async fn a_quota_stays_one_budget_where_its_tiers_rule_only_watches_or_counts_by_key() {
    let of_tier = |name: &str, scope, action| Rule {
        tiers: vec!["free".into()],
        action,
        ..rule(name, scope, &[("1m", limit(100, 60_000))])
    };
    let quota = IdentityQuota { per_minute: Some(2), ..IdentityQuota::default() };
    let owned = tollkeeper_core::IdentityRecord { quota, ..identity(Vec::new()) };
    for other in [
        of_tier("watch", RuleScope::User, Action::LogOnly),
        of_tier("each", RuleScope::Key, Action::Reject),
    ] {
        let node = node_with(vec![other]);
        for number in [2, 3] {
            node.add(number, |record| record.identity = Some(owned.clone()));
        }
        for (number, verdict) in
            [(2, Verdict::Valid), (3, Verdict::Valid), (2, Verdict::RateLimited)]
        {
            assert_eq!(node.verify(&ask(number)).await.verdict, verdict);
        }
    }
}

#[tokio::test]
async fn a_request_that_meets_too_many_limits_is_refused_explained_and_spends_nothing() {
    let many = |count: usize| {
        (0..count).map(|n| rule(&format!("r{n}"), RuleScope::Global, &[("1m", limit(9, 60_000))]))
    };
    let node = node_with(many(256).collect());
    assert_eq!(node.verify(&ask(1)).await.verdict, Verdict::Valid);
    put(&node, many(257).collect(), 2);
    assert!(matches!(node.warm(&ask(1)).await, Err(WarmError::TooManyLimits { most: 256 })));
    let explain = VerifyAsk { purpose: Purpose::Explain, ..ask(1) };
    assert_eq!(node.verify(&explain).await.reasons.len(), 257);
    put(&node, many(2).collect(), 3);
    assert_eq!(left(&node, ask(1), "r0/1m").await, 8);
}

#[tokio::test]
async fn a_look_at_a_throttled_limit_tells_the_wait_that_the_request_would_have() {
    let slow = Rule {
        action: Action::Throttle { max_delay_ms: 40_000 },
        ..rule("slow", RuleScope::Key, &[("20s", limit(1, 20_000))])
    };
    let node = node_with(vec![slow]);
    node.add(2, |_| ());
    for _ in 0..3 {
        let told = node.verify(&dry(ask(2))).await;
        let real = node.verify(&ask(2)).await;
        assert_eq!((told.verdict, told.delay_ms), (real.verdict, real.delay_ms));
    }
}

#[tokio::test]
async fn a_blocked_identity_is_refused_with_its_key_and_by_its_name_until_the_block_ends() {
    let node = node_with(Vec::new());
    let until = Some(Millis(NOW.0 + 1));
    let blocked = tollkeeper_core::IdentityRecord {
        block: Some(Block { reason: Some("abuse".into()), until }),
        ..identity(Vec::new())
    };
    node.directory.add_identity(blocked.clone());
    node.add(2, |record| record.identity = Some(blocked));
    assert_eq!(node.verify(&ask(2)).await.verdict, Verdict::Blocked);
    let made = node.verify(&of_user("user_1")).await;
    assert_eq!(made.verdict, Verdict::Blocked);
    let block = made.identity().and_then(|identity| identity.block.clone());
    assert_eq!(block.and_then(|block| block.reason).as_deref(), Some("abuse"));
    let warm = node.decider.warm_key(&ask(2), Millis(NOW.0 + 1), &mut |_, _| ()).await.unwrap();
    assert_eq!(node.decider.verify(warm, NOW).open().verdict, Verdict::Valid);
}

#[tokio::test]
async fn counts_know_hits_denials_and_what_a_watching_rule_would_have_denied() {
    let watch = Rule {
        action: Action::LogOnly,
        ..rule("watch", RuleScope::Key, &[("1m", limit(1, 60_000))])
    };
    let node = node_with(vec![watch, rule("fair", RuleScope::Key, &[("1m", limit(2, 60_000))])]);
    let made = node.verify(&ask(1)).await;
    assert!(made.limits.iter().all(|one| one.terms.count.is_some()));
    let first = Arc::clone(named(&made, "fair/1m").terms.count.as_ref().unwrap());
    put(&node, vec![rule("fair", RuleScope::Key, &[("1m", limit(2, 60_000))])], 2);
    let made = node.verify(&ask(1)).await;
    let second = named(&made, "fair/1m").terms.count.as_ref().unwrap();
    assert!(
        Arc::ptr_eq(&first, second),
        "a new set of rules goes on counting where the old one did"
    );
}
