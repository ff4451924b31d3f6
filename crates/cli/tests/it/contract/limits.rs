//! `limits.peek` and `limits.reset`: looking spends nothing, and a counter set back really starts again.

use serde_json::json;

use crate::world::{ALGORITHMS, LONG_MS, World, ask, keys};

#[test]
fn a_peek_shows_what_is_used_and_spends_nothing() {
    let world = World::new();
    let mut client = world.client();
    for algorithm in ALGORITHMS {
        let mut body = ask("api", algorithm, 10);
        body["algorithm"] = json!(algorithm);
        let mut spend = body.clone();
        spend["cost"] = json!(4);
        client.limit(&spend);
        for _ in 0..3 {
            let data = client.data("limits.peek", &body);
            assert_eq!(keys(&data), ["limit", "remaining", "reset", "used"]);
            assert_eq!(
                (&data["limit"], &data["used"], &data["remaining"]),
                (&json!(10), &json!(4), &json!(6)),
                "{algorithm}"
            );
            assert!(data["reset"].is_u64());
        }
    }
}

#[test]
fn a_peek_without_a_limit_takes_the_overrides_or_names_what_is_missing() {
    let world = World::new();
    let mut client = world.client();
    client.limit(&ask("api", "ann", 10));
    let bare = json!({"namespace": "api", "identifier": "ann"});
    let refused = client.post("limits.peek", &bare);
    refused.assert_refused("peek without a limit");
    assert_eq!((refused.status(), refused.places()), (400, vec!["body.limit", "body.duration"]));
    let half = json!({"namespace": "api", "identifier": "ann", "limit": 5});
    assert_eq!(client.post("limits.peek", &half).places(), ["body.duration"]);

    let over = json!({"namespace": "api", "identifier": "a*", "limit": 8, "duration": LONG_MS});
    client.data("ratelimit.setOverride", &over);
    let data = client.data("limits.peek", &bare);
    assert_eq!(
        (&data["limit"], &data["used"], &data["remaining"]),
        (&json!(8), &json!(1), &json!(7))
    );
}

#[test]
fn resetting_an_identifier_starts_all_its_counters_again_and_no_others() {
    let world = World::new();
    let mut client = world.client();
    for identifier in ["ann", "bob"] {
        for algorithm in ALGORITHMS {
            client.spend(identifier, algorithm, 5);
        }
    }
    client.limit(&ask("other", "ann", 10));
    let reset = json!({"namespace": "api", "identifier": "ann"});
    assert_eq!(client.data("limits.reset", &reset), json!({"cells": 4}));
    for algorithm in ALGORITHMS {
        assert_eq!((client.used("ann", algorithm), client.used("bob", algorithm)), (0, 5));
    }
    assert_eq!(client.data("limits.peek", &ask("other", "ann", 10))["used"], 1);
    assert_eq!(client.data("limits.reset", &reset), json!({"cells": 0}));
}

#[test]
fn resetting_a_namespace_lets_every_denied_caller_in_again() {
    let world = World::new();
    let mut client = world.client();
    let identifiers: Vec<String> = (0..20).map(|at| format!("user-{at}")).collect();
    for identifier in &identifiers {
        client.limit(&ask("api", identifier, 1));
        assert_eq!(client.limit(&ask("api", identifier, 1))["success"], false);
    }
    client.limit(&ask("other", "user-0", 1));
    assert_eq!(client.data("limits.reset", &json!({"namespace": "api"})), json!({"cells": 20}));
    for identifier in &identifiers {
        assert_eq!(client.limit(&ask("api", identifier, 1))["success"], true, "{identifier}");
    }
    assert_eq!(client.limit(&ask("other", "user-0", 1))["success"], false);
}

#[test]
fn the_limits_of_a_key_and_those_of_its_owner_are_set_back_apart() {
    let world = World::new();
    let mut client = world.client();
    let limit =
        |name: &str| json!([{"name": name, "limit": 1, "duration": 600_000, "autoApply": true}]);
    let owner = json!({"externalId": "ann", "ratelimits": limit("shared")});
    client.data("identities.createIdentity", &owner);
    let api = client.data("apis.createApi", &json!({"name": "payments"}))["apiId"].clone();
    let made = client.data(
        "keys.createKey",
        &json!({"apiId": api, "externalId": "ann", "ratelimits": limit("own")}),
    );
    let mut exceeded = || -> Vec<String> {
        let verified = client.data("keys.verifyKey", &json!({"key": made["key"]}));
        let over =
            verified["ratelimits"].as_array().unwrap().iter().filter(|one| one["exceeded"] == true);
        over.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(exceeded().is_empty());
    assert_eq!(exceeded().len(), 2);
    let mut admin = world.client();
    assert_eq!(admin.data("limits.reset", &json!({"keyId": made["keyId"]})), json!({"cells": 1}));
    assert_eq!(exceeded(), ["shared"]);
    assert_eq!(admin.data("limits.reset", &json!({"externalId": "ann"})), json!({"cells": 1}));
    assert!(exceeded().is_empty());
}

#[test]
fn a_reset_names_exactly_one_owner_and_one_that_is_there() {
    let world = World::new();
    let mut client = world.client();
    let wrong = [
        json!({}),
        json!({"namespace": "api", "keyId": "key_1"}),
        json!({"keyId": "key_1", "externalId": "ann"}),
        json!({"keyId": "key_1", "identifier": "ann"}),
    ];
    for body in wrong {
        assert_eq!(client.post("limits.reset", &body).status(), 400, "{body}");
    }
    for body in [json!({"keyId": "key_none"}), json!({"externalId": "nobody"})] {
        assert_eq!(client.post("limits.reset", &body).status(), 404, "{body}");
    }
}

#[test]
fn a_reset_outlives_a_restart() {
    let mut world = World::new();
    let mut client = world.client();
    for identifier in ["ann", "bob"] {
        client.spend(identifier, "sliding_window", 5);
    }
    world.restart();
    let mut client = world.client();
    client.data("limits.reset", &json!({"namespace": "api", "identifier": "ann"}));
    world.restart();
    let mut client = world.client();
    assert_eq!(client.used("ann", "sliding_window"), 0);
    assert_eq!(client.used("bob", "sliding_window"), 5);
}

#[test]
fn a_peek_at_another_rate_refills_no_bucket() {
    let world = World::new();
    let mut client = world.client();
    let bucket = |limit: u64, cost: u64| {
        json!({"namespace": "api", "identifier": "ann", "limit": limit, "duration": 2_592_000_000_u64,
            "cost": cost, "algorithm": "token_bucket"})
    };
    assert_eq!(client.limit(&bucket(2, 2))["success"], true);
    let mut peek = bucket(9_007_199_254_740_991, 0);
    peek.as_object_mut().expect("an object").remove("cost");
    client.data("limits.peek", &peek);
    assert_eq!(client.limit(&bucket(2, 1))["success"], false);
}

#[test]
fn a_peek_by_an_override_is_answered_for_every_algorithm() {
    let world = World::new();
    let mut client = world.client();
    client.limit(&ask("api", "ann", 10));
    let limit =
        json!({"namespace": "api", "identifier": "ann", "limit": 20_000, "duration": 60_000});
    client.data("ratelimit.setOverride", &limit);
    for algorithm in ["sliding_window", "fixed_window", "token_bucket", "sliding_log"] {
        let peek = json!({"namespace": "api", "identifier": "ann", "algorithm": algorithm});
        assert_eq!(client.data("limits.peek", &peek)["limit"], 20_000, "{algorithm}");
    }
}
