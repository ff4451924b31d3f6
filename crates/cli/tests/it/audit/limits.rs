//! What `ratelimit.limit` and `ratelimit.multiLimit` decided is in the audit like every other decision.

use serde_json::{Value, json};

use super::{key, lines, run, search, text};
use crate::fleet::Fleet;
use crate::time::eventually;
use crate::world::{Client, World, ask};

/// Everything that the audit has on an identifier.
fn of(client: &mut Client, identifier: &str) -> Vec<Value> {
    search(client, &json!({"externalId": identifier}))
}

fn cost(mut body: Value, cost: u64) -> Value {
    body["cost"] = json!(cost);
    body
}

#[test]
fn a_denied_limit_is_found_by_its_identifier_and_an_allowed_one_only_by_its_share() {
    let world = World::with(&[("TOLLKEEPER_AUDIT_SAMPLE", "0"), ("TOLLKEEPER_REGION", "eu-1")]);
    let mut client = world.client();
    let body = ask("sms", "user 7/ä", 2);
    for _ in 0..2 {
        assert_eq!(client.limit(&body)["success"], true);
    }
    assert_eq!(of(&mut client, "user 7/ä"), Vec::<Value>::new(), "none of the allowed");
    let denied = client.post("ratelimit.limit", &body).json;
    assert_eq!(denied["data"]["success"], false);
    let rows = of(&mut client, "user 7/ä");
    assert_eq!(rows.len(), 1, "{rows:?}");
    for (field, expected) in [
        ("decision", json!("throttled")),
        ("code", json!("RATE_LIMITED")),
        ("status", json!(429)),
        ("externalId", json!("user 7/ä")),
        ("limit", json!("sms")),
        ("count", json!(2)),
        ("retryAfterMs", denied["data"]["retryAfterMs"].clone()),
        ("requestId", denied["meta"]["requestId"].clone()),
        ("region", json!("eu-1")),
    ] {
        assert_eq!(rows[0][field], expected, "{field} of {}", rows[0]);
    }
    assert!(rows[0]["at"].is_u64() && rows[0]["latencyUs"].is_u64(), "{}", rows[0]);
    for absent in ["keyId", "ip", "method", "path", "endpoint", "rule", "degraded"] {
        assert!(rows[0].get(absent).is_none(), "{absent} of {}", rows[0]);
    }
    for filter in [json!({"text": "sms"}), json!({"decision": "throttled"})] {
        assert_eq!(search(&mut client, &filter), rows, "{filter}");
    }
    let found = lines(&run(&world, &["audit", "search", "--owner", "user 7/ä", "--json"]));
    assert_eq!(found, rows);
    let told = run(&world, &["audit", "search", "--text", "sms"]).stdout;
    assert!(told.contains("decision=throttled code=RATE_LIMITED"), "{told}");
    // What could never fit is a denial too, and has no time after which it would.
    assert_eq!(client.limit(&cost(ask("sms", "greedy", 2), 3))["success"], false);
    let greedy = of(&mut client, "greedy");
    assert_eq!(greedy.len(), 1);
    assert_eq!((&greedy[0]["count"], greedy[0].get("retryAfterMs")), (&json!(0), None));
}

#[test]
fn a_denied_bundle_is_one_row_that_names_the_limit_that_denied() {
    let world = World::with(&[("TOLLKEEPER_AUDIT_SAMPLE", "0")]);
    let mut client = world.client();
    let bundle =
        json!([ask("by-address", "203.0.113.9", 50), ask("by-user", "ann", 1), ask("all", "x", 9)]);
    assert_eq!(client.data("ratelimit.multiLimit", &bundle)["passed"], true);
    assert_eq!(client.data("ratelimit.multiLimit", &bundle)["passed"], false);
    let rows = search(&mut client, &json!({}));
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = &rows[0];
    assert_eq!((&row["externalId"], &row["limit"]), (&json!("ann"), &json!("by-user")), "{row}");
    assert_eq!((&row["code"], &row["count"]), (&json!("RATE_LIMITED"), &json!(1)), "{row}");
    assert_eq!(lines(&run(&world, &["audit", "search", "--owner", "ann", "--json"])), rows);
}

#[test]
fn allowed_limits_are_kept_by_the_share_that_is_set_and_looks_never() {
    let world = World::with(&[("TOLLKEEPER_AUDIT_SAMPLE", "1")]);
    let mut client = world.client();
    let body = ask("sms", "bob", 1);
    assert_eq!(client.limit(&body)["success"], true);
    // With nothing left, a look is still answered, and none is a decision.
    assert_eq!(client.limit(&cost(body.clone(), 0))["success"], true);
    client.data("limits.peek", &body);
    let looks = json!([cost(body.clone(), 0), cost(body.clone(), 0)]);
    assert_eq!(client.data("ratelimit.multiLimit", &looks)["passed"], true);
    let rows = of(&mut client, "bob");
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&rows[0]["decision"], &rows[0]["code"]), (&json!("allowed"), &json!("VALID")));
    assert_eq!((&rows[0]["status"], &rows[0]["count"]), (&json!(200), &json!(1)));
    // A bundle that looks at one limit and spends from another spends.
    let mixed = json!([cost(body.clone(), 0), ask("sms", "eve", 5)]);
    assert_eq!(client.data("ratelimit.multiLimit", &mixed)["passed"], true);
    assert_eq!(search(&mut client, &json!({"decision": "allowed"})).len(), 2);
}

#[test]
fn a_retry_that_gets_its_first_answer_again_is_not_a_second_decision() {
    let world = World::with(&[("TOLLKEEPER_AUDIT_SAMPLE", "0")]);
    let mut client = world.client();
    let body = cost(ask("sms", "ann", 1), 2);
    for _ in 0..3 {
        let answer = client.post_once("ratelimit.limit", &body, "again");
        assert_eq!(answer.json["data"]["success"], false);
    }
    assert_eq!(of(&mut client, "ann").len(), 1);
}

#[test]
fn limits_are_in_no_sum_of_requests() {
    let world = World::new();
    let mut client = world.client();
    for _ in 0..3 {
        client.limit(&ask("sms", "ann", 1));
    }
    let range = json!({"from": 0, "to": 9_000_000_000_000_u64});
    assert_eq!(client.data("stats.query", &range), json!([]));
    let mut of_limit = range;
    of_limit["namespace"] = json!("sms");
    eventually("they are counted with their namespace", || {
        let stats = client.data("limits.stats", &of_limit);
        (&stats[0]["hits"], &stats[0]["denied"]) == (&json!(3), &json!(2))
    });
}

#[test]
fn an_identifier_that_is_a_key_or_that_no_database_stores_is_kept_without() {
    let world = World::with(&[("TOLLKEEPER_AUDIT_SAMPLE", "0")]);
    let mut client = world.client();
    let key = key(&mut client, &json!({}));
    for identifier in [&*key.text, "nul\0nul"] {
        client.limit(&cost(ask("sms", identifier, 1), 2));
    }
    let mut kept: Vec<_> =
        search(&mut client, &json!({})).iter().map(|row| text(&row["externalId"])).collect();
    kept.sort();
    assert_eq!(kept, ["[key]", "nulnul"]);
    assert_eq!(of(&mut client, "nul\0nul").len(), 1, "found by what was asked");
}

#[test]
fn a_limit_that_denies_because_redis_is_away_says_so_in_the_audit() {
    let mut fleet = Fleet::with(1, &[("TOLLKEEPER_AUDIT_SAMPLE", "0")]);
    let mut client = fleet.clients().remove(0);
    fleet.redis.kill();
    let mut body = ask("sms", "ann", 5);
    body["onOutage"] = json!("deny");
    eventually("the node knows that Redis is away", || client.limit(&body)["degraded"] == true);
    let rows = of(&mut client, "ann");
    let row = rows.first().expect("a denial");
    assert_eq!((&row["code"], &row["degraded"]), (&json!("RATE_LIMITED"), &json!(true)), "{row}");
}
