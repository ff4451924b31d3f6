//! The question as Caddy asks it, asked by hand: who is let through, what is said on the way, and whose door it is.

use std::time::Duration;

use serde_json::{Value, json};
use tollkeeper_testkit::{Connection, Response};

use super::problem;
use crate::gate::{apply, key, project, rule, text_of};
use crate::time::now;
use crate::world::{Client, World};

/// What Caddy says of every request.
const ASKED: [(&str, &str); 3] = [
    ("x-forwarded-method", "GET"),
    ("x-forwarded-uri", "/v1/users?page=2"),
    ("x-forwarded-for", "203.0.113.9"),
];

fn ask(world: &World, more: &[(&str, &str)]) -> Response {
    send(world, "GET", &[&ASKED[..], more].concat())
}

fn send(world: &World, method: &str, headers: &[(&str, &str)]) -> Response {
    let mut connection = Connection::open(world.server.url()).expect("the server listens");
    connection.exchange(method, "/check/caddy?ignored=1", headers, b"").expect("an answer")
}

fn told(response: &Response) -> [&str; 3] {
    ["x-tollkeeper-key-id", "x-tollkeeper-identity", "x-tollkeeper-tier"].map(|name| {
        assert_eq!(response.all(name).count(), 1, "{name} is always said, once: {response:?}");
        response.header(name).unwrap_or_default()
    })
}

#[test]
fn a_good_key_is_let_through_and_its_owner_named_whatever_the_method() {
    let world = World::new();
    let mut client = world.client();
    let api = project(&mut client);
    let (id, text) = key(&mut client, &api, json!({"externalId": "ann", "tier": "pro"}));
    let (bare_id, bare) = key(&mut client, &api, json!({}));
    for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND"] {
        let response = send(&world, method, &[&ASKED[..], &[("x-api-key", &text)]].concat());
        assert_eq!((response.status, response.body.as_slice()), (200, &b""[..]), "{method}");
        assert_eq!(told(&response), [&*id, "ann", "pro"], "{method}");
    }
    let bearer = format!("Bearer {bare}");
    let response = ask(&world, &[("authorization", &bearer), ("x-tollkeeper-identity", "root")]);
    assert_eq!((response.status, told(&response)), (200, [&*bare_id, "", "free"]));
    let counted = world.metric("tollkeeper_checks_total{kind=\"check\",outcome=\"valid\"}");
    assert_eq!(counted, 9);
}

#[test]
fn without_one_key_that_is_known_nobody_passes() {
    let world = World::new();
    let mut client = world.client();
    let api = project(&mut client);
    let (_, text) = key(&mut client, &api, json!({}));
    let bearer = format!("Bearer {text}");
    for (what, headers, kind) in [
        ("no key", &[][..], "key_missing"),
        ("another scheme", &[("authorization", "Basic dXNlcjpwYXNz")], "key_missing"),
        ("an unknown key", &[("x-api-key", "nobody's")], "not_found"),
        ("two keys", &[("authorization", &bearer), ("x-api-key", "other")], "keys_differ"),
        ("a root key", &[("x-api-key", world.server.root_key())], "not_found"),
    ] {
        let response = ask(&world, headers);
        assert_eq!(response.status, 401, "{what}");
        assert_eq!(response.header("www-authenticate"), Some("Bearer"), "{what}");
        let problem = problem(&response);
        assert!(text_of(&problem["type"]).ends_with(&format!("/{kind}")), "{what}: {problem}");
        assert!(!problem.to_string().contains(&text), "{what}");
    }
    let both = ask(&world, &[("authorization", &bearer), ("x-api-key", &text)]);
    assert_eq!(both.status, 200, "the same key twice is one");
}

#[test]
fn a_proxy_that_does_not_say_what_was_asked_for_is_refused() {
    let world = World::new();
    let mut client = world.client();
    let api = project(&mut client);
    let (_, text) = key(&mut client, &api, json!({}));
    for at in 0..ASKED.len() {
        let mut headers = ASKED.to_vec();
        let (missing, _) = headers.remove(at);
        headers.push(("x-api-key", &text));
        let response = send(&world, "GET", &headers);
        assert_eq!(response.status, 403, "{missing}");
        assert!(text_of(&problem(&response)["detail"]).contains(missing));
    }
    let twice = ask(&world, &[("x-api-key", &text), ("x-forwarded-uri", "/other")]);
    assert_eq!(twice.status, 403, "a client must not be able to add one of its own");
}

#[test]
fn a_denial_names_the_limit_and_the_rule_and_when_to_come_back() {
    let world = World::new();
    let mut client = world.client();
    let api = project(&mut client);
    let own = json!({"status": 418, "message": "No coffee.", "retryAfterSeconds": 9});
    apply(
        &mut client,
        &json!([
            rule("few", &json!(["key", "endpoint"]), 1, json!({"endpoints": ["/v1/**"]})),
            {"name": "teapot", "scope": "global", "action": "block", "methods": ["BREW"], "response": own},
        ]),
    );
    let (id, text) = key(&mut client, &api, json!({"externalId": "ann"}));
    let first = ask(&world, &[("x-api-key", &text)]);
    assert_eq!(first.status, 200);
    assert!(first.header("ratelimit").is_some_and(|state| state.starts_with("\"few/30d\";r=0;t=")));
    let denied = ask(&world, &[("x-api-key", &text)]);
    assert_eq!(denied.status, 429);
    let seconds: u64 = denied.header("retry-after").expect("a time").parse().expect("seconds");
    assert!(seconds > 0);
    assert_eq!(denied.header("ratelimit-policy"), Some("\"few/30d\";q=1;w=2592000"));
    let told = problem(&denied);
    assert_eq!(
        (&told["code"], &told["rule"], &told["limit"]),
        (&json!("RATE_LIMITED"), &json!("few"), &json!("few/30d"))
    );
    assert_eq!(told["violated-policies"], json!(["few/30d"]));
    assert_eq!(told["retryAfterMs"].as_u64().map(|ms| ms.div_ceil(1_000)), Some(seconds));
    assert!(text_of(&told["detail"]).contains("`few/30d`"), "{told}");
    assert!(!told.to_string().contains(&id) && !told.to_string().contains("ann"), "{told}");

    let brew = [("x-forwarded-method", "BREW"), ASKED[1], ASKED[2], ("x-api-key", &*text)];
    let teapot = send(&world, "GET", &brew);
    assert_eq!((teapot.status, teapot.header("retry-after")), (418, Some("9")));
    let told = problem(&teapot);
    assert_eq!(
        (&told["code"], &told["detail"], &told["rule"]),
        (&json!("BLOCKED"), &json!("No coffee."), &json!("teapot"))
    );
}

#[test]
fn only_the_last_address_that_the_proxy_names_is_the_clients() {
    let world = World::new();
    let mut client = world.client();
    let api = project(&mut client);
    apply(&mut client, &json!([rule("ip", &json!("ip"), 2, json!({}))]));
    let (_, text) = key(&mut client, &api, json!({}));
    let from = |addresses: &str| {
        send(
            &world,
            "GET",
            &[ASKED[0], ASKED[1], ("x-forwarded-for", addresses), ("x-api-key", &text)],
        )
        .status
    };
    assert_eq!(from("203.0.113.9"), 200);
    assert_eq!(from("1.1.1.1, 203.0.113.9"), 200);
    assert_eq!(from("2.2.2.2,3.3.3.3,203.0.113.9"), 429, "what a client claims moves nothing");
    assert_eq!(from("203.0.113.9, 198.51.100.7"), 200);
}

#[test]
fn where_there_are_several_tenants_the_proxy_has_to_say_whose_it_is() {
    let world = World::new();
    let mut operator = world.client();
    let api = project(&mut operator);
    let (_, ours) = key(&mut operator, &api, json!({}));
    assert_eq!(ask(&world, &[("x-api-key", &ours)]).status, 200, "one tenant needs no name");

    let made = operator.data("tenants.create", &json!({"name": "Other"}));
    let mut other = Client::new(world.server.url(), made["rootKey"].as_str().expect("a key"));
    let theirs_api = project(&mut other);
    let (_, theirs) = key(&mut other, &theirs_api, json!({}));
    // What was found out before holds for a moment only.
    crate::time::eventually("a name is wanted", || {
        ask(&world, &[("x-api-key", &ours)]).status == 403
    });
    let unnamed = ask(&world, &[("x-api-key", &ours)]);
    assert!(text_of(&problem(&unnamed)["detail"]).contains("`X-Tollkeeper-Project`"));

    let at =
        |door: &str, key: &str| ask(&world, &[("x-api-key", key), ("x-tollkeeper-project", door)]);
    for (door, opens) in [
        (&*api, &ours),
        ("default/payments", &ours),
        // Nobody gets into the operator's way by choosing the same slug.
        ("payments", &ours),
        (&*theirs_api, &theirs),
        ("other/payments", &theirs),
    ] {
        for key in [&ours, &theirs] {
            let expected = if key == opens { 200 } else { 401 };
            assert_eq!(at(door, key).status, expected, "{door}");
        }
    }
    let made = operator.data("tenants.create", &json!({"name": "Third"}));
    let mut third = Client::new(world.server.url(), made["rootKey"].as_str().expect("a key"));
    for client in [&mut other, &mut third] {
        client.data("projects.create", &json!({"name": "Search", "slug": "search"}));
    }
    for (door, kind) in [
        ("search", "project_ambiguous"),
        ("nowhere", "project_unknown"),
        ("other/nowhere", "project_unknown"),
    ] {
        let response = at(door, &ours);
        assert_eq!(response.status, 403, "{door}");
        assert!(text_of(&problem(&response)["type"]).ends_with(kind), "{door}");
    }
    let second = text_of(
        &operator.data("projects.create", &json!({"name": "Second", "slug": "second"}))["apiId"],
    );
    for door in ["second", &second] {
        assert_eq!(
            at(door, &ours).status,
            401,
            "a key of another project of the same tenant: {door}"
        );
    }
    let twice = [
        ("x-api-key", &*ours),
        ("x-tollkeeper-project", &*api),
        ("x-tollkeeper-project", "other/payments"),
    ];
    assert_eq!(ask(&world, &twice).status, 403, "a client must not be able to add one of its own");
}

#[test]
fn a_throttled_request_is_answered_when_its_turn_has_come() {
    /// A request's turn comes every two seconds; what is left is for clocks that differ.
    const TURN: Duration = Duration::from_millis(1_950);
    let world = World::new();
    let mut client = world.client();
    let api = project(&mut client);
    let slow = json!({"name": "slow", "scope": "key", "action": "throttle", "maxDelayMs": 2_000,
        "limits": [{"limit": 1, "window": "2s"}]});
    apply(&mut client, &json!([slow]));
    let (_, text) = key(&mut client, &api, json!({}));
    let begun = now();
    assert_eq!(ask(&world, &[("x-api-key", &text)]).status, 200);
    let second = ask(&world, &[("x-api-key", &text)]);
    assert_eq!(second.status, 200, "{}", second.text());
    assert!(begun.elapsed() >= TURN, "{:?}", begun.elapsed());
}

/// By the short way and by hyper's, over which the query leads.
#[test]
fn whoever_leaves_frees_the_place_of_the_answer_that_is_held_back() {
    let world = World::new();
    let mut client = world.client();
    let api = project(&mut client);
    let slow = json!({"name": "slow", "scope": "key", "action": "throttle", "maxDelayMs": 60_000,
        "limits": [{"limit": 1, "window": "50s"}]});
    apply(&mut client, &json!([slow]));
    for path in ["/check/caddy", "/check/caddy?by=hyper"] {
        let (_, text) = key(&mut client, &api, json!({}));
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: test\r\nx-forwarded-method: GET\r\nx-forwarded-uri: /a\r\n\
             x-forwarded-for: 10.0.0.1\r\nx-api-key: {text}\r\n\r\n"
        );
        let mut proxy = Connection::open(world.server.url()).unwrap();
        proxy.send(request.as_bytes()).unwrap();
        assert_eq!(proxy.receive().unwrap().expect("an answer").status, 200, "{path}");
        proxy.send(request.as_bytes()).unwrap();
        crate::time::eventually("one waits", || world.metric("tollkeeper_held") == 1);
        drop(proxy);
        crate::time::eventually("none waits", || world.metric("tollkeeper_held") == 0);
    }
}

#[test]
fn a_tenant_over_its_calls_is_told_so_in_the_same_words() {
    let world = World::new();
    let mut operator = world.client();
    let api = project(&mut operator);
    let (_, text) = key(&mut operator, &api, json!({}));
    let tenants = operator.data("tenants.list", &json!({}));
    let id = tenants[0]["tenantId"].clone();
    operator.data("tenants.update", &json!({"tenantId": id, "requestsPerMinute": 3}));
    let mut refused: Option<Value> = None;
    crate::time::eventually("the minute is used up", || {
        let response = ask(&world, &[("x-api-key", &text)]);
        if response.status == 429 {
            assert!(response.header("retry-after").is_some());
            refused = Some(problem(&response));
        }
        refused.is_some()
    });
    assert!(text_of(&refused.expect("a problem")["type"]).ends_with("workspace_rate_limited"));
}

#[test]
fn a_key_of_an_account_that_is_switched_off_is_told_so() {
    let world = World::new();
    let made = world.client().data("tenants.create", &json!({"name": "Acme"}));
    let mut tenant = Client::new(world.server.url(), &text_of(&made["rootKey"]));
    let api = project(&mut tenant);
    let (_, text) = key(&mut tenant, &api, json!({}));
    let headers = [("x-api-key", &*text), ("x-tollkeeper-project", &*api)];
    assert_eq!(ask(&world, &headers).status, 200);
    let off = json!({"tenantId": made["tenantId"], "enabled": false});
    world.client().data("tenants.update", &off);
    let response = ask(&world, &headers);
    let said = problem(&response);
    assert_eq!((response.status, &said["code"]), (403, &json!("FORBIDDEN")));
    assert!(text_of(&said["detail"]).contains("is switched off"), "{said}");
}
