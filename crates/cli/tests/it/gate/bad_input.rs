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
