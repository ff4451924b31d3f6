//! The character U+0000, which PostgreSQL cannot store: refused in every text that is stored or looked for, whatever the
//! store is. What end users send is only hashed or compared, and answered; an object of the caller's own is kept as JSON.

use serde_json::{Value, json};
use tollkeeper_testkit::Postgres;

use crate::world::{Client, start};

const NUL: &str = "a\0b";

/// A call, its body, and the places that have to be named.
fn calls(api_id: &str, key_id: &str) -> Vec<(&'static str, Value, Vec<&'static str>)> {
    let span = |field: &str| json!({"from": 0, "to": 1_000, field: NUL});
    let asked = |field: &str| {
        let mut body = json!({"namespace": "n", "identifier": "i", "limit": 5, "duration": 60_000});
        body[field] = json!(NUL);
        body
    };
    let limit = json!({"name": "e\0f", "limit": 5, "duration": 60_000});
    vec![
        (
            "audit.search",
            json!({"path": NUL, "text": "\0", "to": 1_000}),
            vec!["body.path", "body.text"],
        ),
        (
            "audit.changes",
            json!({"action": NUL, "target": NUL}),
            vec!["body.action", "body.target"],
        ),
        ("stats.query", span("endpoint"), vec!["body.endpoint"]),
        ("stats.query", span("region"), vec!["body.region"]),
        ("stats.query", span("externalId"), vec!["body.externalId"]),
        ("keys.revoke", json!({"keyId": key_id, "reason": NUL}), vec!["body.reason"]),
        ("keys.updateKey", json!({"keyId": key_id, "name": NUL}), vec!["body.name"]),
        (
            "keys.createKey",
            json!({"apiId": api_id, "ratelimits": [&limit]}),
            vec!["body.ratelimits[0].name"],
        ),
        ("ratelimit.setOverride", asked("identifier"), vec!["body.identifier"]),
        ("tenants.create", json!({"name": NUL}), vec!["body.name"]),
        ("permissions.createPermission", json!({"name": NUL, "slug": "s"}), vec!["body.name"]),
        ("rootKeys.createKey", json!({"name": NUL, "permissions": ["*"]}), vec!["body.name"]),
        ("ratelimit.limit", asked("namespace"), vec!["body.namespace"]),
        ("ratelimit.multiLimit", json!([asked("namespace")]), vec!["body[0].namespace"]),
        ("limits.peek", json!({"namespace": NUL, "identifier": "i"}), vec!["body.namespace"]),
        ("limits.reset", json!({"namespace": NUL}), vec!["body.namespace"]),
        ("limits.stats", span("namespace"), vec!["body.namespace"]),
        ("gate.check", json!({"ratelimits": [limit]}), vec!["body.ratelimits[0].name"]),
        (
            "rules.apply",
            json!({"rules": [{"name": "r", "scope": "global", "endpoints": [NUL], "limits": [{"limit": 1, "window": "1m"}]}]}),
            vec!["body.rules[0].endpoints[0]"],
        ),
    ]
}

fn refuses_it_everywhere(client: &mut Client) {
    let api = client.data("apis.createApi", &json!({"name": "payments"}));
    let api_id = api["apiId"].as_str().expect("an id");
    let key = client.data("keys.createKey", &json!({"apiId": api_id}));
    for (method, body, places) in calls(api_id, key["keyId"].as_str().expect("an id")) {
        let answer = client.post(method, &body);
        assert_eq!(answer.response.status, 400, "{method} {body}: {}", answer.json);
        let errors = answer.json["error"]["errors"].as_array().cloned().unwrap_or_default();
        let of_it = errors.iter().filter(|one| one["message"].to_string().contains("U+0000"));
        let named: Vec<_> = of_it.filter_map(|one| one["location"].as_str()).collect();
        assert_eq!(named, places, "{method} {body}: {}", answer.json);
    }
    for (method, body) in [
        (
            "ratelimit.limit",
            json!({"namespace": "n", "identifier": NUL, "limit": 5, "duration": 60_000}),
        ),
        (
            "limits.peek",
            json!({"namespace": "n", "identifier": NUL, "limit": 5, "duration": 60_000}),
        ),
        ("limits.reset", json!({"namespace": "n", "identifier": NUL})),
        ("gate.check", json!({"path": NUL})),
        ("keys.verifyKey", json!({"key": NUL})),
        ("keys.whoami", json!({"key": NUL})),
        ("audit.search", json!({"externalId": NUL})),
    ] {
        let answer = client.post(method, &body);
        assert!([200, 404].contains(&answer.response.status), "{method}: {}", answer.json);
    }
    let meta = json!({"meta\0": ["a\0b"]});
    let kept = client.data("keys.createKey", &json!({"apiId": api_id, "meta": meta}));
    assert_eq!(client.data("keys.getKey", &json!({"keyId": kept["keyId"]}))["meta"], meta);
}

#[test]
fn the_character_nul_is_refused_where_it_would_be_stored_and_answered_where_it_would_not_on_sqlite()
{
    let folder = tempfile::tempdir().expect("a folder");
    let server = start(folder.path(), &[]).expect("the server starts");
    refuses_it_everywhere(&mut Client::new(server.url(), server.root_key()));
}

#[test]
fn the_character_nul_is_refused_where_it_would_be_stored_and_answered_where_it_would_not_on_postgres()
 {
    let folder = tempfile::tempdir().expect("a folder");
    let database = Postgres::shared().unwrap().database().unwrap();
    let secret = "a secret of no value for this one test";
    let env = [("TOLLKEEPER_DATABASE_URL", &*database.url), ("TOLLKEEPER_SECRET", secret)];
    let server = start(folder.path(), &env).expect("the server starts");
    refuses_it_everywhere(&mut Client::new(server.url(), server.root_key()));
}
