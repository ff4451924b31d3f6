//! Everything that is wrong with a question is said at once, before anybody is asked who they are.

use serde_json::json;

use crate::world::World;

#[test]
fn every_wrong_field_is_named_at_once() {
    let world = World::new();
    let mut client = world.client();
    let body = json!({"key": 7, "externalId": "a b", "tier": "", "ip": "10.0.0.0/8", "method": "GET /", "path": "x".repeat(8_193),
        "referer": null, "source": [], "permissions": "", "cost": -1, "bytes": "many", "dryRun": 1,
        "ratelimits": [{"name": "ab", "duration": 5}], "credits": {"cost": -1}, "tags": ["", 1], "more": 1});
    let mut fields = vec![
        "key",
        "externalId",
        "tier",
        "ip",
        "method",
        "path",
        "referer",
        "source",
        "permissions",
        "cost",
        "bytes",
        "dryRun",
        "ratelimits[0].name",
        "ratelimits[0].duration",
        "credits.cost",
        "tags[0]",
        "tags[1]",
        "more",
    ];
    fields.sort_unstable();
    for method in ["gate.check", "gate.explain"] {
        let answer = client.post(method, &body);
        answer.assert_refused(method);
        let mut places: Vec<_> =
            answer.places().iter().filter_map(|place| place.strip_prefix("body.")).collect();
        places.sort_unstable();
        assert_eq!((answer.status(), &places), (400, &fields), "{method}: {}", answer.json);
    }
    let later = client.post("gate.check", &json!({"at": 1}));
    assert_eq!((later.status(), later.places()), (400, vec!["body.at"]));
    let query = client.post("gate.check", &json!({"permissions": "a AND"}));
    assert_eq!((query.status(), query.code()), (400, "permissions_query_syntax_error"));
    let limit = client.post("gate.check", &json!({"ratelimits": [{"name": "nobody_has_it"}]}));
    assert_eq!((limit.status(), limit.code()), (412, "precondition_failed"));
}

#[test]
fn a_bad_permission_query_is_named_beside_everything_else_that_is_wrong() {
    let world = World::new();
    let mut client = world.client();
    for method in ["keys.verifyKey", "gate.check", "gate.explain"] {
        let body = json!({"key": "some-key-text", "permissions": "a AND", "typo": 1});
        let answer = client.post(method, &body);
        answer.assert_refused(method);
        assert_eq!(answer.places(), ["body.typo", "body.permissions"], "{method}");
        let body = json!({"key": "some-key-text", "permissions": "a b"});
        let alone = client.post(method, &body);
        assert_eq!((alone.status(), alone.code()), (400, "permissions_query_syntax_error"));
        let detail = alone.json["error"]["detail"].as_str().unwrap();
        assert!(detail.contains("at character 3"), "counted from 1: {detail}");
    }
}

#[test]
fn the_past_is_not_explained_and_now_is_now_by_any_clock() {
    let world = World::new();
    let mut client = world.client();
    let now = crate::usage::now_ms();
    for past in [0, 1, now - 60_000] {
        let answer = client.post("gate.explain", &json!({"externalId": "ann", "at": past}));
        answer.assert_refused(&past.to_string());
        assert_eq!((answer.status(), answer.places()), (400, vec!["body.at"]), "{past}");
    }
    for at in [now - 500, now, now + 60_000] {
        let answer = client.post("gate.explain", &json!({"externalId": "ann", "at": at}));
        assert_eq!(answer.status(), 200, "{at}: {}", answer.json);
    }
}
