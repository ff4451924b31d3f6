//! `ratelimit.limit`: the shape of an answer, and that every number in it is true.

use std::time::Duration;

use serde_json::{Value, json};

use crate::time::{now, pause};
use crate::world::{ALGORITHMS, Client, World, ask, keys, side_by_side};

fn with(mut body: Value, fields: &[(&str, Value)]) -> Value {
    for (name, value) in fields {
        body[*name] = value.clone();
    }
    body
}

fn assert_whole_numbers(data: &Value) {
    for name in ["limit", "remaining", "reset"] {
        assert!(data[name].is_u64(), "{name} in {data}");
    }
    assert!(!data.to_string().contains("null"), "{data}");
}

#[test]
fn answers_have_exactly_the_fields_of_the_contract_for_every_algorithm() {
    let world = World::new();
    let mut client = world.client();
    for algorithm in ALGORITHMS {
        let body = with(ask("api", algorithm, 2), &[("algorithm", json!(algorithm))]);
        for remaining in [1, 0] {
            let answer = client.post("ratelimit.limit", &body);
            assert_eq!(keys(&answer.json), ["data", "meta"]);
            assert_eq!(keys(&answer.json["meta"]), ["requestId"]);
            assert!(answer.json["meta"]["requestId"].as_str().unwrap().starts_with("req_"));
            let data = &answer.json["data"];
            assert_eq!(keys(data), ["limit", "remaining", "reset", "success"], "{algorithm}");
            assert_whole_numbers(data);
            assert_eq!(
                (&data["success"], &data["limit"], &data["remaining"]),
                (&json!(true), &json!(2), &json!(remaining)),
                "{algorithm}"
            );
        }
        let denied = client.limit(&body);
        assert_eq!(keys(&denied), ["limit", "remaining", "reset", "retryAfterMs", "success"]);
        assert_whole_numbers(&denied);
        assert_eq!((&denied["success"], &denied["remaining"]), (&json!(false), &json!(0)));
        assert!(denied["retryAfterMs"].as_u64().unwrap() > 0, "{algorithm}: {denied}");
    }
}

/// Asks until the time that the denial named: nothing fits before it, and it fits then.
fn assert_retry_after_is_true(client: &mut Client, algorithm: &str) {
    let one = json!({"namespace": "short", "identifier": algorithm, "limit": 5, "duration": 1000,
        "algorithm": algorithm, "cost": 1});
    client.limit(&with(one.clone(), &[("cost", json!(5))]));
    let sent = now();
    let denied = client.limit(&one);
    let answered = now();
    if denied["success"] == true {
        // The window ended between the two asks; another attempt has a whole one before it.
        return assert_retry_after_is_true(client, algorithm);
    }
    let wait = Duration::from_millis(denied["retryAfterMs"].as_u64().expect("a time to wait"));
    assert!(wait <= Duration::from_secs(2), "{algorithm}: {wait:?}");
    while sent.elapsed() + Duration::from_millis(50) < wait {
        let early = client.limit(&one);
        // The server decided after we sent, so an answer that is back by now was decided before its time.
        let before_its_time = sent.elapsed() + Duration::from_millis(2) < wait;
        if early["success"] == true {
            assert!(!before_its_time, "{algorithm}: after {:?} of {wait:?}", sent.elapsed());
            return;
        }
        pause(Duration::from_millis(20));
    }
    // The server's clock may be working off a difference to the system's, by 10 ms in a second.
    pause((wait + Duration::from_millis(20)).saturating_sub(answered.elapsed()));
    let due = client.limit(&one);
    assert_eq!(due["success"], true, "{algorithm}: {denied}, then {due}");
}

#[test]
fn waiting_as_long_as_a_denial_says_is_enough_and_less_is_not() {
    let world = World::new();
    side_by_side(ALGORITHMS.len(), |at| {
        assert_retry_after_is_true(&mut world.client(), ALGORITHMS[at]);
    });
}

#[test]
fn cost_0_reports_and_neither_spends_nor_denies() {
    let world = World::new();
    let mut client = world.client();
    for algorithm in ALGORITHMS {
        let one = with(ask("api", algorithm, 3), &[("algorithm", json!(algorithm))]);
        let look = with(one.clone(), &[("cost", json!(0))]);
        for left in [3, 2, 1, 0] {
            for _ in 0..3 {
                let looked = client.limit(&look);
                assert_eq!(
                    (&looked["success"], &looked["remaining"]),
                    (&json!(true), &json!(left))
                );
            }
            client.limit(&one);
        }
    }
}

#[test]
fn a_cost_above_the_limit_is_denied_without_a_time_to_wait_and_spends_nothing() {
    let world = World::new();
    let mut client = world.client();
    for algorithm in ALGORITHMS {
        let one = with(ask("api", algorithm, 3), &[("algorithm", json!(algorithm))]);
        let answer = client.post("ratelimit.limit", &with(one.clone(), &[("cost", json!(4))]));
        assert_eq!(answer.status(), 200);
        assert_eq!(keys(&answer.json["data"]), ["limit", "remaining", "reset", "success"]);
        assert_eq!(answer.json["data"]["success"], false);
        assert_eq!(answer.json["data"]["remaining"], 3);
        assert_eq!(answer.response.header("retry-after"), None);
        assert_eq!(client.limit(&with(one, &[("cost", json!(3))]))["success"], true);
    }
}

#[test]
fn remaining_on_a_denial_is_what_a_smaller_cost_can_still_spend() {
    let world = World::new();
    let mut client = world.client();
    for algorithm in ALGORITHMS {
        let of = |cost: u64| {
            with(
                ask("api", algorithm, 10),
                &[("algorithm", json!(algorithm)), ("cost", json!(cost))],
            )
        };
        client.limit(&of(6));
        let denied = client.limit(&of(5));
        assert_eq!((&denied["success"], &denied["remaining"]), (&json!(false), &json!(4)));
        assert_eq!(client.limit(&of(4))["success"], true, "{algorithm}");
        assert_eq!(client.limit(&of(1))["remaining"], 0, "{algorithm}");
    }
}

#[test]
fn a_token_bucket_holds_its_burst() {
    let world = World::new();
    let mut client = world.client();
    let fields = [("algorithm", json!("token_bucket")), ("burst", json!(7))];
    let body = with(ask("api", "bucket", 2), &fields);
    let admitted = (0..10).filter(|_| client.limit(&body)["success"] == true).count();
    assert_eq!(admitted, 7);
}

#[test]
fn the_limit_that_is_asked_with_counts_and_every_algorithm_and_duration_has_its_own_counter() {
    let world = World::new();
    let mut client = world.client();
    let body = ask("api", "ann", 10);
    for left in (6..10).rev() {
        assert_eq!(client.limit(&body)["remaining"], left);
    }
    assert_eq!(client.limit(&ask("api", "ann", 3))["success"], false);
    assert_eq!(client.limit(&ask("api", "ann", 5))["remaining"], 0);
    assert_eq!(
        client.limit(&with(body.clone(), &[("algorithm", json!("fixed_window"))]))["remaining"],
        9
    );
    assert_eq!(client.limit(&with(body, &[("duration", json!(1_296_000_000))]))["remaining"], 9);
}

#[test]
fn the_largest_numbers_are_counted_exactly() {
    const MAX: u64 = (1 << 53) - 1;
    let world = World::new();
    let mut client = world.client();
    for algorithm in ["sliding_window", "fixed_window", "token_bucket"] {
        let of = |cost: u64| {
            with(
                ask("api", algorithm, MAX),
                &[("algorithm", json!(algorithm)), ("cost", json!(cost))],
            )
        };
        assert_eq!(client.limit(&of(MAX - 1))["remaining"], 1, "{algorithm}");
        // A bucket of this size refills millions per millisecond, so only the others stay full.
        if algorithm != "token_bucket" {
            assert_eq!(client.limit(&of(2))["success"], false, "{algorithm}");
            assert_eq!(client.limit(&of(1))["remaining"], 0, "{algorithm}");
            assert_eq!(client.limit(&of(MAX))["success"], false, "{algorithm}");
        }
    }
}

#[test]
fn no_answer_holds_a_number_that_json_does_not_carry_exactly() {
    const MAX: u64 = (1 << 53) - 1;
    let world = World::new();
    let mut client = world.client();
    let fields =
        [("algorithm", json!("token_bucket")), ("burst", json!(MAX)), ("cost", json!(MAX))];
    let body = with(ask("api", "slowest", 1), &fields);
    for success in [true, false] {
        let answer = client.limit(&body);
        assert_eq!(answer["success"], success);
        let numbers = ["limit", "remaining", "reset", "retryAfterMs"];
        for number in numbers.iter().filter_map(|name| answer[name].as_u64()) {
            assert!(number <= MAX, "{answer}");
        }
        assert_eq!(answer["retryAfterMs"].is_u64(), !success, "{answer}");
    }
}
