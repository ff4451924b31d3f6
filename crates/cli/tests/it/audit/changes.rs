//! What the audit of changes says of each: who, what it was before, and what it is now. Never a key.

use serde_json::{Value, json};

use super::{key, lines, run, text};
use crate::world::{Client, World};

/// What was written down of this action last.
fn last(client: &mut Client, action: &str) -> Value {
    let rows = client.data("audit.changes", &json!({"action": action, "limit": 1}));
    let row = rows[0].clone();
    assert!(row["rootKeyId"].is_string(), "somebody did {action}: {row}");
    row
}

#[test]
fn a_change_of_overrides_says_who_made_it_and_what_was_there_before() {
    let world = World::new();
    let mut client = world.client();
    let limit = json!({"namespace": "mail", "identifier": "ann", "limit": 5, "duration": 60_000});
    client.data("ratelimit.limit", &limit);
    let shown = |limit: u64| json!({"namespace": "mail", "identifier": "ann", "limit": limit, "duration": 60_000});
    let set = client.data("ratelimit.setOverride", &shown(7));
    let row = last(&mut client, "ratelimit.setOverride");
    assert_eq!((row.get("before"), &row["after"]), (None, &shown(7)));
    assert_eq!(row["target"], set["overrideId"]);
    client.data("ratelimit.setOverride", &shown(9));
    let row = last(&mut client, "ratelimit.setOverride");
    assert_eq!((&row["before"], &row["after"]), (&shown(7), &shown(9)));
    client.data("ratelimit.deleteOverride", &json!({"namespace": "mail", "identifier": "ann"}));
    let row = last(&mut client, "ratelimit.deleteOverride");
    assert_eq!((&row["before"], row.get("after")), (&shown(9), None));
    assert_eq!(row["target"], set["overrideId"]);
    client.data("ratelimit.setOverride", &shown(1));
    client.data("ratelimit.deleteNamespace", &json!({"namespace": "mail"}));
    let row = last(&mut client, "ratelimit.deleteNamespace");
    let before = json!({"namespace": "mail", "overrides": 1, "deletedAt": null});
    assert_eq!(row["before"], before, "{row}");
    assert_eq!(row["after"]["deletedAt"], row["at"], "{row}");
    assert_eq!(run(&world, &["audit", "verify"]).code, Some(0));
}

#[test]
fn a_change_of_rules_tells_what_each_said_before_and_says_since_and_covers_the_whole_set() {
    let world = World::new();
    let mut client = world.client();
    let rule = |name: &str, limit: u64| json!({"name": name, "scope": "user", "limits": [{"limit": limit, "window": "1m"}]});
    client.data("rules.apply", &json!({"rules": [rule("kept", 1), rule("gone", 5)]}));
    let first = last(&mut client, "rules.apply");
    assert_eq!(first["before"]["rules"], json!({}), "{first}");
    assert_eq!(first["after"]["rules"]["kept"]["limits"][0]["limit"], 1, "{first}");

    client.data("rules.apply", &json!({"rules": [rule("kept", 9), rule("new", 3)], "prune": true}));
    let row = last(&mut client, "rules.apply");
    let (before, after) = (&row["before"], &row["after"]);
    let limits = |limit: u64| json!([{"limit": limit, "window": "1m"}]);
    assert_eq!(before["rules"]["kept"], json!({"limits": limits(1)}), "{row}");
    assert_eq!(after["rules"]["kept"], json!({"limits": limits(9)}), "{row}");
    assert_eq!(before["rules"]["gone"]["limits"], limits(5), "{row}");
    assert_eq!(after["rules"]["new"]["limits"], limits(3), "{row}");
    assert!(after["rules"].get("gone").is_none() && before["rules"].get("new").is_none(), "{row}");
    assert_eq!((&before["version"], &after["version"]), (&json!(1), &json!(2)));
    assert_eq!(before["sha256"], first["after"]["sha256"]);
    assert_ne!(before["sha256"], after["sha256"]);

    client.data("rules.rollback", &json!({"version": 1}));
    let back = last(&mut client, "rules.rollback");
    assert_eq!(back["after"]["sha256"], first["after"]["sha256"], "the same set, the same hash");
    client.data("rules.delete", &json!({"name": "gone"}));
    let deleted = last(&mut client, "rules.delete");
    assert_eq!(deleted["before"]["rules"]["gone"]["limits"], limits(5), "{deleted}");
    assert_eq!(run(&world, &["audit", "verify"]).code, Some(0));
}

#[test]
fn a_change_of_a_key_tells_all_of_it_before_and_after_as_plain_json() {
    let world = World::new();
    let mut client = world.client();
    client.data("permissions.createRole", &json!({"name": "editor"}));
    let limits = |limit: u64| json!([{"name": "requests", "limit": limit, "duration": 60_000, "autoApply": true}]);
    let key = key(
        &mut client,
        &json!({
            "name": "first", "externalId": "ann", "meta": {"a": {"b": [1, "x"]}}, "tier": "pro",
            "credits": {"remaining": 9, "refill": {"interval": "daily", "amount": 9}},
            "ratelimits": limits(5), "permissions": ["docs.read"], "roles": ["editor"],
            "ipAllowlist": ["10.0.0.0/8"],
        }),
    );
    let made = last(&mut client, "keys.create")["after"].clone();
    for (field, expected) in [
        ("name", json!("first")),
        ("externalId", json!("ann")),
        ("meta", json!({"a": {"b": [1, "x"]}})),
        ("tier", json!("pro")),
        ("credits", json!(9)),
        ("refillEvery", json!("daily")),
        ("refillAmount", json!(9)),
        ("permissions", json!(["docs.read"])),
        ("roles", json!(["editor"])),
        ("ipAllowlist", json!(["10.0.0.0/8"])),
    ] {
        assert_eq!(made[field], expected, "{field}: {made}");
    }
    assert_eq!(
        (&made["ratelimits"][0]["name"], &made["ratelimits"][0]["limit"]),
        (&json!("requests"), &json!(5))
    );
    let patch = json!({
        "keyId": key.id, "ratelimits": limits(6), "permissions": ["docs.write"], "roles": [],
        "meta": null, "ipAllowlist": [], "credits": {"remaining": 3},
    });
    client.data("keys.updateKey", &patch);
    let row = last(&mut client, "keys.update");
    assert_eq!(row["before"], made, "what was made is what was changed");
    let after = &row["after"];
    assert_eq!(after["ratelimits"][0]["limit"], 6, "{after}");
    assert_eq!((&after["permissions"], &after["roles"]), (&json!(["docs.write"]), &json!([])));
    assert_eq!((&after["meta"], &after["ipAllowlist"]), (&Value::Null, &json!([])));
    assert_eq!((&after["credits"], &after["name"]), (&json!(3), &json!("first")));
    client.data("keys.deleteKey", &json!({"keyId": key.id, "permanent": true}));
    let mut gone = last(&mut client, "keys.delete")["before"].clone();
    assert_eq!(gone.as_object_mut().and_then(|gone| gone.remove("permanent")), Some(json!(true)));
    assert_eq!(gone, *after);
    let all = format!("{:?}", lines(&run(&world, &["audit", "changes", "--json"])));
    assert!(!all.contains(&key.text) && !all.contains("hash"), "{all}");
    assert_eq!(run(&world, &["audit", "verify"]).code, Some(0));
}

#[test]
fn a_change_of_an_identity_or_a_project_tells_its_lists_as_plain_json() {
    let world = World::new();
    let mut client = world.client();
    let limits = |limit: u64| json!([{"name": "requests", "limit": limit, "duration": 1_000, "autoApply": false}]);
    let new = json!({"externalId": "ann", "meta": {"plan": 1}, "ratelimits": limits(1)});
    client.data("identities.createIdentity", &new);
    let made = last(&mut client, "identities.create")["after"].clone();
    assert_eq!(made["meta"], json!({"plan": 1}), "{made}");
    client.data("identities.updateIdentity", &json!({"identity": "ann", "ratelimits": limits(2)}));
    let row = last(&mut client, "identities.update");
    assert_eq!(row["before"], made);
    assert_eq!(row["after"]["ratelimits"][0]["limit"], 2, "{row}");
    let project = json!({"name": "shop", "allowedReferers": ["a.example"]});
    client.data("projects.create", &project);
    let made = last(&mut client, "projects.create");
    assert_eq!(made["after"]["allowedReferers"], json!(["a.example"]), "{made}");
    assert_eq!(made["after"]["allowedSources"], json!([]), "{made}");
}

#[test]
fn setting_counters_back_is_written_down_with_who_and_what() {
    let world = World::new();
    let mut client = world.client();
    let key = key(&mut client, &json!({"externalId": "ann"}));
    let limit = json!({"namespace": "mail", "identifier": "bob", "limit": 5, "duration": 60_000});
    client.data("ratelimit.limit", &limit);
    for (asked, told) in [
        (json!({"namespace": "mail", "identifier": "bob"}), None),
        (json!({"namespace": "mail"}), None),
        (json!({"keyId": key.id}), Some(&key.id)),
        (json!({"externalId": "ann"}), None),
    ] {
        client.data("limits.reset", &asked);
        let row = last(&mut client, "limits.reset");
        assert_eq!(row["after"], asked, "{row}");
        assert!(told.is_none_or(|target| text(&row["target"]) == *target), "{row}");
    }
    assert_eq!(client.post("limits.reset", &json!({"externalId": "nobody"})).status(), 404);
    let rows = client.data("audit.changes", &json!({"action": "limits.reset"}));
    assert_eq!(rows.as_array().map(Vec::len), Some(4), "a refused one is none");
    assert_eq!(run(&world, &["audit", "verify"]).code, Some(0));
}
