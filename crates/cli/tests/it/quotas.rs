//! Quotas and blocks of identities from outside, on both stores, by HTTP and by command.

use std::time::Duration;

use serde_json::{Value, json};

use crate::program::Program;
use crate::rules::{Home, on_both};
use crate::time::{eventually, now, pause};
use crate::world::{Client, World, keys};

on_both! {
    a_quota_is_set_field_by_field_and_null_clears,
    who_was_never_seen_is_made_by_set_and_block_and_not_found_by_get_and_unblock,
    a_block_ends_by_itself_or_by_hand_and_cannot_end_in_the_past,
    the_commands_do_the_same,
}

const DAY_MS: u64 = 86_400_000;

#[allow(clippy::disallowed_methods, reason = "a client names moments by its own clock")]
fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.expect("after 1970").as_millis()).expect("it fits")
}

fn get(client: &mut Client, name: &str) -> Value {
    client.data("quotas.get", &json!({"externalId": name}))
}

fn a_quota_is_set_field_by_field_and_null_clears(home: &Home) {
    let mut client = home.client();
    let body =
        json!({"externalId": "ann", "tier": "pro", "perMinute": 10, "perDay": 100, "burst": 5});
    let set = client.data("quotas.set", &body);
    assert_eq!(
        (&set["tier"], &set["limits"]),
        (&json!("pro"), &json!({"perMinute": 10, "perDay": 100, "burst": 5}))
    );
    assert_eq!((&set["blocked"], &set["exceededCount"]), (&json!(false), &json!(0)));
    assert_eq!(keys(&set), ["blocked", "exceededCount", "externalId", "limits", "resetAt", "tier"]);
    let reset = set["resetAt"].as_u64().expect("a moment");
    assert!(
        reset.is_multiple_of(DAY_MS) && reset > now_ms() - DAY_MS && reset <= now_ms() + DAY_MS
    );
    let body = json!({"externalId": "ann", "tier": null, "perDay": null, "perHour": 7});
    let set = client.data("quotas.set", &body);
    assert_eq!(
        (&set["tier"], &set["limits"]),
        (&json!("free"), &json!({"perMinute": 10, "perHour": 7, "burst": 5}))
    );
    let mut got = get(&mut client, "ann");
    let totals = got.as_object_mut().and_then(|got| got.remove("totals"));
    assert_eq!(totals, Some(json!({"today": 0, "month": 0})), "it has no keys yet");
    assert_eq!(got, set);
    let body = json!({"externalId": "ann", "perMinute": null, "perHour": null, "burst": null});
    assert_eq!(
        keys(&client.data("quotas.set", &body)),
        ["blocked", "exceededCount", "externalId", "limits", "tier"]
    );
    for body in [
        json!({"externalId": "ann", "perDay": 0}),
        json!({"externalId": "ann", "perYear": 1}),
        json!({}),
    ] {
        assert_eq!(client.post("quotas.set", &body).status(), 400, "{body}");
    }
}

fn who_was_never_seen_is_made_by_set_and_block_and_not_found_by_get_and_unblock(home: &Home) {
    let mut client = home.client();
    for method in ["quotas.get", "quotas.unblock"] {
        let nobody = client.post(method, &json!({"externalId": "nobody"}));
        assert_eq!((nobody.status(), nobody.code()), (404, "identity_not_found"), "{method}");
    }
    client.data("quotas.set", &json!({"externalId": "ann", "tier": "pro"}));
    client.data("quotas.block", &json!({"externalId": "bob"}));
    for name in ["ann", "bob"] {
        client.data("identities.getIdentity", &json!({"identity": name}));
    }
    let again = client.post_once("quotas.block", &json!({"externalId": "cid"}), "block-1");
    assert_eq!(
        client.post_once("quotas.block", &json!({"externalId": "cid"}), "block-1").json,
        again.json
    );
}

fn a_block_ends_by_itself_or_by_hand_and_cannot_end_in_the_past(home: &Home) {
    let mut client = home.client();
    let past =
        client.post("quotas.block", &json!({"externalId": "ann", "until": now_ms() - 1_000}));
    assert_eq!((past.status(), past.places()), (400, vec!["body.until"]));
    assert_eq!(
        client.post("quotas.get", &json!({"externalId": "ann"})).status(),
        404,
        "nobody was made"
    );
    let until = now_ms() + 1500;
    let body = json!({"externalId": "ann", "reason": "unpaid", "until": until});
    let blocked = client.data("quotas.block", &body);
    assert_eq!((&blocked["blocked"], &blocked["blockReason"]), (&json!(true), &json!("unpaid")));
    assert_eq!(blocked["blockedUntil"], until);
    eventually("the block runs out", || get(&mut client, "ann")["blocked"] == false);
    assert!(get(&mut client, "ann").get("blockReason").is_none());
    client.data("quotas.block", &json!({"externalId": "ann"}));
    assert_eq!(get(&mut client, "ann")["blocked"], true);
    assert_eq!(client.data("quotas.unblock", &json!({"externalId": "ann"}))["blocked"], false);
}

fn the_commands_do_the_same(home: &Home) {
    let run = |arguments: &[&str]| {
        Program::new(arguments)
            .env("TOLLKEEPER_URL", home.server.url())
            .env("TOLLKEEPER_ROOT_KEY", home.server.root_key())
            .run()
    };
    let set = run(&["quotas", "set", "ann", "--tier", "pro", "--per-day", "100", "--burst", "9"]);
    assert_eq!(set.code, Some(0), "{}", set.stderr);
    for part in ["external_id=ann", "tier=pro", "per_day=100", "burst=9", "blocked=false"] {
        assert!(set.stdout.contains(part), "{part}: {}", set.stdout);
    }
    let cleared = run(&["quotas", "set", "ann", "--clear", "per-day", "--clear", "tier", "--json"]);
    let cleared: Value = serde_json::from_str(&cleared.stdout).expect("JSON");
    assert_eq!((&cleared["tier"], &cleared["limits"]), (&json!("free"), &json!({"burst": 9})));
    assert_eq!(run(&["quotas", "set", "ann", "--burst", "1", "--clear", "burst"]).code, Some(2));
    let blocked = run(&["quotas", "block", "ann", "--reason", "unpaid", "--until", "30d"]);
    assert!(
        blocked.stdout.contains("blocked=true block_reason=unpaid blocked_until=1"),
        "{}",
        blocked.stdout
    );
    assert!(run(&["quotas", "unblock", "ann"]).stdout.contains("blocked=false"));
    let got = run(&["quotas", "get", "ann"]).stdout;
    assert!(got.contains("external_id=ann"), "{got}");
    assert!(got.contains("today=0") && got.contains("month=0"), "what its keys did: {got}");
    let nobody = run(&["quotas", "get", "nobody"]);
    assert_eq!(nobody.code, Some(4));
    assert!(nobody.stderr.contains("`tollkeeper identities list` shows"), "{}", nobody.stderr);
    let version = run(&["rules", "rollback", "99"]);
    assert_eq!(version.code, Some(4));
    let shows = "`tollkeeper audit changes --action rules.apply` shows";
    assert!(version.stderr.contains(shows), "{}", version.stderr);
}

#[test]
fn a_blocked_identity_is_refused_on_every_node_within_a_second_or_so() {
    let nodes = crate::rules::nodes::Nodes::two();
    let (mut first, mut second) = (nodes.client(0), nodes.client(1));
    let api = first.data("apis.createApi", &json!({"name": "shop"}))["apiId"].clone();
    let key =
        first.data("keys.createKey", &json!({"apiId": api, "externalId": "ann"}))["key"].clone();
    let by_key =
        |client: &mut Client| client.data("keys.verifyKey", &json!({"key": key}))["code"].clone();
    let by_name = |client: &mut Client| {
        client.data("gate.check", &json!({"externalId": "ann"}))["code"].clone()
    };
    for client in [&mut first, &mut second] {
        assert_eq!((by_key(client), by_name(client)), (json!("VALID"), json!("VALID")));
    }
    first.data("quotas.block", &json!({"externalId": "ann", "reason": "unpaid"}));
    let blocked = now();
    assert_eq!((by_key(&mut first), by_name(&mut first)), (json!("BLOCKED"), json!("BLOCKED")));
    eventually("the other node refuses", || {
        by_key(&mut second) == "BLOCKED" && by_name(&mut second) == "BLOCKED"
    });
    let took = blocked.elapsed();
    eprintln!("refused on the other node {took:?} after the answer");
    assert!(took.as_secs() < 5, "{took:?}");
    second.data("quotas.unblock", &json!({"externalId": "ann"}));
    eventually("both let it pass", || {
        by_key(&mut first) == "VALID" && by_key(&mut second) == "VALID"
    });
}

#[test]
fn the_last_request_is_told_by_its_own_moment_and_not_by_that_of_its_writing() {
    let world = World::new();
    let mut client = world.client();
    client.data("quotas.set", &json!({"externalId": "ann", "perDay": 100}));
    // Until the first writing is over, so that the next one comes well after the request.
    pause(Duration::from_millis(500));
    let before = now_ms();
    let checked = client.data("gate.check", &json!({"externalId": "ann"}));
    let after = now_ms();
    assert_eq!(checked["allowed"], true, "{checked}");
    eventually("it is written", || get(&mut client, "ann").get("lastRequestAt").is_some());
    let shown = get(&mut client, "ann");
    let told = shown["lastRequestAt"].as_u64().expect("a moment");
    // The server's clock goes on from what the system's was at its start: the two may be a few milliseconds apart.
    assert!((before - 5..=after + 5).contains(&told), "{before} {told} {after}");
    assert_eq!(shown["totals"]["today"], 0, "usage is of keys");
}
