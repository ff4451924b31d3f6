//! Which limits a verification spends from, and how much of each.

use tollkeeper_core::{Admission, Cost, Sharing, Verdict, Width};
use tollkeeper_decide::{AskedLimit, VerifyAsk, WarmError, owner};

use crate::keys::{
    Node, ad_hoc, ask, ask_naming, auto, identity, limits_of, named, node, on_demand, per_minute,
};

async fn limits(node: &Node, ask: &VerifyAsk<'_>) -> Vec<(String, u64, u64, bool)> {
    let verified = node.verify(ask).await;
    let limits = limits_of(&verified).into_iter();
    limits.map(|(name, limit, left, passed)| (name.to_owned(), limit, left, passed)).collect()
}

fn left(name: &str, limit: u64, left: u64) -> (String, u64, u64, bool) {
    (name.to_owned(), limit, left, true)
}

#[tokio::test]
async fn limits_that_apply_by_themselves_cost_one_and_named_ones_their_own_cost_never_both() {
    let node = node();
    node.add(1, |record| {
        record.limits = vec![auto("always", 10), on_demand("asked", 100), on_demand("never", 5)];
    });
    assert_eq!(limits(&node, &ask(1)).await, [left("always", 10, 9)]);
    let one = ask_naming(1, &[named("asked", 7)]);
    assert_eq!(limits(&node, &one).await, [left("always", 10, 8), left("asked", 100, 93)]);
    let both = ask_naming(1, &[named("always", 3), named("asked", 1)]);
    assert_eq!(limits(&node, &both).await, [left("always", 10, 5), left("asked", 100, 92)]);
    let nothing = ask_naming(1, &[named("always", 0)]);
    assert_eq!(limits(&node, &nothing).await, [left("always", 10, 5)]);
    let twice = ask_naming(1, &[named("always", 2), named("always", 3)]);
    assert_eq!(limits(&node, &twice).await, [left("always", 10, 0)]);
}

#[tokio::test]
async fn each_limit_says_where_it_comes_from() {
    let node = node();
    node.add(1, |record| record.limits = vec![auto("always", 10), on_demand("asked", 100)]);
    let asked = [named("asked", 1), ad_hoc("mine", 3, 1)];
    let verified = node.verify(&ask_naming(1, &asked)).await;
    let said: Vec<_> = verified
        .limits
        .iter()
        .map(|one| (&*one.terms.id, &*one.terms.name, one.terms.auto_apply))
        .collect();
    let expected = [("rl_always_10", "always", true), ("rl_asked_100", "asked", false)];
    assert_eq!(said[..2], expected);
    assert_eq!(said[2..], [("", "mine", false)]);
    assert_eq!(verified.limits[2].limit, per_minute(3));
}

#[tokio::test]
async fn the_keys_own_limit_beats_its_identitys_of_the_same_name() {
    let node = node();
    let shared = || identity(vec![auto("requests", 100), auto("other", 50)]);
    node.add(1, |record| {
        record.limits = vec![auto("requests", 5)];
        record.identity = Some(shared());
    });
    node.add(2, |record| record.identity = Some(shared()));
    assert_eq!(limits(&node, &ask(1)).await, [left("other", 50, 49), left("requests", 5, 4)]);
    assert_eq!(limits(&node, &ask(2)).await, [left("other", 50, 48), left("requests", 100, 99)]);
}

#[tokio::test]
async fn the_keys_own_limit_beats_its_identitys_even_where_it_does_not_apply_by_itself() {
    let node = node();
    node.add(1, |record| {
        record.limits = vec![on_demand("requests", 5)];
        record.identity = Some(identity(vec![auto("requests", 100)]));
    });
    assert_eq!(limits(&node, &ask(1)).await, []);
    assert_eq!(
        limits(&node, &ask_naming(1, &[named("requests", 1)])).await,
        [left("requests", 5, 4)]
    );
}

#[tokio::test]
async fn keys_of_one_identity_share_its_limits_and_not_their_own() {
    let node = node();
    for number in [1, 2] {
        node.add(number, |record| {
            record.limits = vec![auto("own", 3)];
            record.identity = Some(identity(vec![auto("shared", 4)]));
        });
    }
    for (number, own, shared) in [(1, 2, 3), (2, 2, 2), (1, 1, 1), (2, 1, 0)] {
        assert_eq!(
            limits(&node, &ask(number)).await,
            [left("own", 3, own), left("shared", 4, shared)]
        );
    }
    let denied = node.verify(&ask(1)).await;
    assert_eq!(denied.verdict, Verdict::RateLimited);
    assert_eq!(limits_of(&denied), [("own", 3, 1, true), ("shared", 4, 0, false)]);
}

#[tokio::test]
async fn a_limit_of_the_requests_own_replaces_a_stored_one_of_that_name() {
    let node = node();
    node.add(1, |record| {
        record.limits = vec![auto("requests", 2)];
        record.identity = Some(identity(vec![auto("shared", 2)]));
    });
    let own = [ad_hoc("requests", 20, 5), ad_hoc("shared", 30, 5)];
    let expected = [left("requests", 20, 15), left("shared", 30, 25)];
    assert_eq!(limits(&node, &ask_naming(1, &own)).await, expected);
    // The numeric limit is no part of a counter: the key's own now has five spent of two.
    let denied = node.verify(&ask(1)).await;
    assert_eq!(limits_of(&denied), [("requests", 2, 0, false), ("shared", 2, 2, true)]);
}

#[tokio::test]
async fn a_counter_that_a_request_names_twice_shows_what_both_leave() {
    let node = node();
    node.add(1, |_| ());
    let own = [ad_hoc("requests", 10, 5), ad_hoc("requests", 6, 0), ad_hoc("requests", 20, 2)];
    assert_eq!(
        limits(&node, &ask_naming(1, &own)).await,
        [left("requests", 6, 0), left("requests", 10, 3), left("requests", 20, 13)]
    );
}

#[tokio::test]
async fn counters_of_different_durations_are_apart() {
    let node = node();
    node.add(1, |_| ());
    let hourly = tollkeeper_core::Limit::sliding_window(
        per_minute(10).quota,
        Width::from_millis(3_600_000).unwrap(),
    );
    let asked = [
        ad_hoc("requests", 10, 4),
        AskedLimit {
            name: "requests",
            cost: Cost::ONE,
            own: Some(hourly),
            sharing: Sharing::default(),
        },
    ];
    assert_eq!(
        limits(&node, &ask_naming(1, &asked)).await,
        [left("requests", 10, 6), left("requests", 10, 9)]
    );
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_an_error_and_spends_nothing() {
    let node = node();
    node.add_paid(1, 10, |record| record.limits = vec![auto("requests", 10)]);
    let unknown = ask_naming(1, &[named("requests", 1), named("typo", 1)]);
    let error = node.warm(&unknown).await.unwrap_err();
    assert!(matches!(&error, WarmError::LimitUnknown(name) if name == "typo"), "{error}");
    assert_eq!((node.bank.leases(), node.decider.cells().stats().live), (0, 0));
}

#[tokio::test]
async fn default_limits_count_only_where_no_other_limit_applies_by_itself() {
    let node = node();
    let defaults = || vec![auto("default_minute", 60), auto("default_day", 10_000)];
    node.add(1, |record| record.project.default_limits = defaults());
    node.add(2, |record| {
        record.project.default_limits = defaults();
        record.limits = vec![on_demand("asked", 5)];
    });
    node.add(3, |record| {
        record.project.default_limits = defaults();
        record.limits = vec![auto("own", 5)];
    });
    node.add(4, |record| {
        record.project.default_limits = defaults();
        record.identity = Some(identity(vec![auto("shared", 5)]));
    });
    let both = [left("default_day", 10_000, 9_999), left("default_minute", 60, 59)];
    assert_eq!(limits(&node, &ask(1)).await, both);
    assert_eq!(limits(&node, &ask(2)).await, both);
    assert_eq!(limits(&node, &ask(3)).await, [left("own", 5, 4)]);
    assert_eq!(limits(&node, &ask(4)).await, [left("shared", 5, 4)]);
}

#[tokio::test]
async fn a_limit_of_zero_denies_and_a_cost_of_zero_never_does() {
    let node = node();
    node.add(1, |record| record.limits = vec![on_demand("blocked", 0), on_demand("small", 2)]);
    for asked in [named("blocked", 1), ad_hoc("mine", 0, 1)] {
        let denied = node.verify(&ask_naming(1, &[asked])).await;
        assert_eq!(denied.verdict, Verdict::RateLimited);
        assert_eq!(denied.limits[0].outcome.admission, Admission::Never);
    }
    let spent = node.verify(&ask_naming(1, &[named("small", 2)])).await;
    assert_eq!(spent.verdict, Verdict::Valid);
    let free = [named("blocked", 0), named("small", 0), ad_hoc("mine", 0, 0)];
    let verified = node.verify(&ask_naming(1, &free)).await;
    assert_eq!(verified.verdict, Verdict::Valid);
    assert!(verified.limits.iter().all(|one| one.outcome.remaining == 0));
}

#[tokio::test]
async fn what_remains_on_a_denial_is_what_a_smaller_cost_could_still_spend() {
    let node = node();
    node.add(1, |record| record.limits = vec![on_demand("requests", 10)]);
    let denied = node.verify(&ask_naming(1, &[named("requests", 11)])).await;
    assert_eq!(limits_of(&denied), [("requests", 10, 10, false)]);
    assert_eq!(node.verify(&ask_naming(1, &[named("requests", 10)])).await.verdict, Verdict::Valid);
}

#[tokio::test]
async fn all_counters_of_a_key_are_reset_together_and_nobody_elses() {
    let node = node();
    for number in [1, 2] {
        node.add(number, |record| {
            record.limits = vec![auto("a", 5), auto("b", 5)];
            record.identity = Some(identity(vec![auto("shared", 9)]));
        });
        node.verify(&ask(number)).await;
    }
    let tag = owner(node.decider.hasher(), "acme", "key_1");
    assert_eq!(node.decider.reset(&crate::memory::tenant().id, &tag, None).await.unwrap(), 2);
    let expected = [left("a", 5, 4), left("b", 5, 4), left("shared", 9, 6)];
    assert_eq!(limits(&node, &ask(1)).await, expected);
    let expected = [left("a", 5, 3), left("b", 5, 3), left("shared", 9, 5)];
    assert_eq!(limits(&node, &ask(2)).await, expected);
}

#[tokio::test]
async fn counters_that_left_the_table_come_back_before_a_verification_is_decided() {
    let node = node();
    for number in 1..=250 {
        node.add(number, |record| {
            record.limits = (0..8).map(|at| auto(&format!("l{at}"), 5)).collect();
        });
        assert_eq!(node.verify(&ask(number)).await.verdict, Verdict::Valid);
    }
    for _ in 0..3 {
        node.decider.overflow().shelve().await.unwrap();
    }
    assert!(node.shelf.len() > 0);
    for number in 1..=250 {
        let verified = node.verify(&ask(number)).await;
        assert!(verified.limits.iter().all(|one| one.outcome.remaining == 3), "{number}");
    }
}
