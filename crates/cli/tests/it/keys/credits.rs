//! Credits: exact however many ask at once, changed by hand, refilled by rule.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::{api, code, create, get, verify};
use crate::world::{World, side_by_side};

#[test]
fn credits_are_exact_under_64_concurrent_callers() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({"credits": {"remaining": 500}}));
    let valid: usize = side_by_side(64, |_| {
        let mut client = world.client();
        (0..16).filter(|_| code(&mut client, &key.text) == "VALID").count()
    })
    .into_iter()
    .sum();
    assert_eq!(valid, 500);
    let spent = verify(&mut client, &key.text, json!({}));
    assert_eq!((&spent["code"], &spent["credits"]), (&json!("USAGE_EXCEEDED"), &json!(0)));
    assert_eq!(get(&mut client, &key.id)["credits"], json!({"remaining": 0}));
}

#[test]
fn the_balance_is_true_wherever_it_is_shown() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({"credits": {"remaining": 100}}));
    for left in (90..100).rev() {
        assert_eq!(verify(&mut client, &key.text, json!({}))["credits"], left);
        assert_eq!(get(&mut client, &key.id)["credits"]["remaining"], left);
        let me = client.data("keys.whoami", &json!({"key": key.text}));
        assert_eq!(me["credits"]["remaining"], left);
    }
    let dear = verify(&mut client, &key.text, json!({"credits": {"cost": 91}}));
    assert_eq!((&dear["code"], &dear["credits"]), (&json!("USAGE_EXCEEDED"), &json!(90)));
    let free = verify(&mut client, &key.text, json!({"credits": {"cost": 0}}));
    assert_eq!((&free["code"], &free["credits"]), (&json!("VALID"), &json!(90)));
    let all = verify(&mut client, &key.text, json!({"credits": {"cost": 90}}));
    assert_eq!((&all["code"], &all["credits"]), (&json!("VALID"), &json!(0)));
}

#[test]
fn update_credits_sets_raises_and_lowers_what_is_really_left() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({"credits": {"remaining": 100}}));
    let change = |operation: &str, value: Value| {
        let mut client = world.client();
        let body = json!({"keyId": key.id, "operation": operation, "value": value});
        let after = client.data("keys.updateCredits", &body);
        if after["remaining"].as_u64().is_none_or(|left| left > 0) {
            assert_eq!(code(&mut client, &key.text), "VALID", "{operation} {after}");
        }
        after
    };
    assert_eq!(change("increment", json!(50)), json!({"remaining": 150}));
    assert_eq!(change("decrement", json!(9)), json!({"remaining": 140}), "one was spent");
    assert_eq!(change("set", json!(7)), json!({"remaining": 7}));
    assert_eq!(change("decrement", json!(1_000)), json!({"remaining": 0}), "never below zero");
    assert_eq!(code(&mut client, &key.text), "USAGE_EXCEEDED");
    assert_eq!(change("increment", json!(1)), json!({"remaining": 1}));
    assert_eq!(code(&mut client, &key.text), "USAGE_EXCEEDED");
    assert_eq!(change("set", json!(2)), json!({"remaining": 2}));
    assert_eq!(code(&mut client, &key.text), "VALID");
    assert_eq!(code(&mut client, &key.text), "USAGE_EXCEEDED");
    assert_eq!(change("set", Value::Null), json!({"remaining": null}));
    assert!(verify(&mut client, &key.text, json!({})).get("credits").is_none());
    for operation in ["increment", "decrement"] {
        let body = json!({"keyId": key.id, "operation": operation, "value": 1});
        let answer = client.post("keys.updateCredits", &body);
        answer.assert_refused("credits without end");
        assert_eq!(answer.status(), 400);
    }
}

#[test]
fn credits_never_pass_the_largest_number_that_every_client_can_read() {
    const MOST: u64 = 9_007_199_254_740_991;
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({"credits": {"remaining": MOST - 1}}));
    let more = |value: u64| json!({"keyId": key.id, "operation": "increment", "value": value});
    for value in [2, MOST] {
        let refused = client.post("keys.updateCredits", &more(value));
        assert_eq!((refused.status(), refused.places()), (400, vec!["body.value"]));
        assert!(refused.json.to_string().contains(&MOST.to_string()), "{}", refused.json);
        assert_eq!(get(&mut client, &key.id)["credits"], json!({"remaining": MOST - 1}));
    }
    assert_eq!(client.data("keys.updateCredits", &more(1)), json!({"remaining": MOST}));
}

#[test]
fn refills_are_shown_kept_and_cleared_as_they_are_told() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let monthly = json!({"interval": "monthly", "amount": 10, "refillDay": 31});
    let key = create(&mut client, &api, json!({"credits": {"remaining": 5, "refill": monthly}}));
    assert_eq!(get(&mut client, &key.id)["credits"], json!({"remaining": 5, "refill": monthly}));
    let set = client
        .data("keys.updateCredits", &json!({"keyId": key.id, "operation": "set", "value": 6}));
    assert_eq!(set, json!({"remaining": 6, "refill": monthly}), "a new balance keeps the refill");
    let daily = json!({"interval": "daily", "amount": 3});
    let mut update = |credits: Value| {
        client.data("keys.updateKey", &json!({"keyId": key.id, "credits": credits}));
        get(&mut client, &key.id).get("credits").cloned()
    };
    let kept = update(json!({"refill": daily}));
    assert_eq!(kept, Some(json!({"remaining": 6, "refill": daily})));
    assert_eq!(update(json!({"refill": null})), Some(json!({"remaining": 6})));
    assert_eq!(update(json!({"remaining": 4})), Some(json!({"remaining": 4})));
    assert!(update(json!({"remaining": 4, "refill": daily})).is_some());
    assert_eq!(update(json!({"remaining": null})), None, "without end, and never refilled");
    assert_eq!(update(json!({"remaining": 1})), Some(json!({"remaining": 1})));
    assert_eq!(update(Value::Null), None);
    let endless =
        client.post("keys.updateKey", &json!({"keyId": key.id, "credits": {"refill": daily}}));
    assert_eq!(endless.status(), 400, "{}", endless.json);
}

#[test]
fn credits_that_are_raised_while_they_are_spent_are_neither_lost_nor_doubled() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({"credits": {"remaining": 5_000}}));
    let raise = json!({"keyId": key.id, "operation": "increment", "value": 10});
    let spent: usize = side_by_side(8, |at| {
        let mut client = world.client();
        if at == 0 {
            (0..40).for_each(|_| drop(client.data("keys.updateCredits", &raise)));
            return 0;
        }
        let codes = (0..200).map(|_| code(&mut client, &key.text));
        codes.inspect(|code| assert_eq!(code, "VALID", "there are plenty")).count()
    })
    .into_iter()
    .sum();
    let left = get(&mut client, &key.id)["credits"]["remaining"].as_u64().unwrap();
    assert_eq!(left + spent as u64, 5_400);
}

#[test]
fn credits_that_are_lowered_while_they_are_spent_are_neither_lost_nor_doubled() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({"credits": {"remaining": 5_000}}));
    let lower = json!({"keyId": key.id, "operation": "decrement", "value": 10});
    let spent: usize = side_by_side(8, |at| {
        let mut client = world.client();
        if at == 0 {
            (0..40).for_each(|_| drop(client.data("keys.updateCredits", &lower)));
            return 0;
        }
        let codes = (0..200).map(|_| code(&mut client, &key.text));
        codes.inspect(|code| assert_eq!(code, "VALID", "there are plenty")).count()
    })
    .into_iter()
    .sum();
    let left = get(&mut client, &key.id)["credits"]["remaining"].as_u64().unwrap();
    assert_eq!(left + spent as u64 + 400, 5_000);
}

/// Every spend is known to be before the last set, after it, or at the same time: then it may count as either.
#[test]
fn credits_that_are_set_while_they_are_spent_are_what_was_set_less_what_was_spent_since() {
    const SETS: u64 = 20;
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({"credits": {"remaining": 3_000}}));
    let set = json!({"keyId": key.id, "operation": "set", "value": 3_000});
    // Odd while a set is under way.
    let moment = AtomicU64::new(0);
    let counts = side_by_side(8, |at| {
        let mut client = world.client();
        if at == 0 {
            for _ in 0..SETS {
                moment.fetch_add(1, Ordering::SeqCst);
                client.data("keys.updateCredits", &set);
                moment.fetch_add(1, Ordering::SeqCst);
            }
        }
        let (mut surely, mut perhaps) = (0, 0);
        // Until some time after the last set, and never to the end of the balance.
        for _ in 0..20 + 400 * u64::from(at > 0) {
            let before = moment.load(Ordering::SeqCst);
            assert_eq!(code(&mut client, &key.text), "VALID", "there are plenty");
            let after = moment.load(Ordering::SeqCst);
            surely += u64::from(before == 2 * SETS);
            perhaps += u64::from(before < 2 * SETS && after >= 2 * SETS - 1);
        }
        (surely, perhaps)
    });
    let (surely, perhaps) =
        counts.into_iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(surely >= 20);
    let left = get(&mut client, &key.id)["credits"]["remaining"].as_u64().unwrap();
    assert!((surely..=surely + perhaps).contains(&(3_000 - left)), "{left} {surely} {perhaps}");
}
