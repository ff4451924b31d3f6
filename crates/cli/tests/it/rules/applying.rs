//! What an apply changes and says, what is shown of a rule, and the way back.

use serde_json::{Value, json};

use super::{Home, in_force, rule};
use crate::world::keys;

on_both! {
    a_set_is_created_updated_kept_and_pruned_and_the_answer_says_which,
    a_dry_run_tells_and_changes_nothing,
    a_rule_is_shown_with_its_making_and_listed_as_it_can_be_applied,
    a_version_is_brought_back_as_a_new_one,
    a_retry_with_the_same_idempotency_key_applies_once,
}

#[test]
fn rules_are_in_force_from_the_first_request_after_a_restart() {
    rules_outlive_a_restart(&mut Home::on_sqlite());
    rules_outlive_a_restart(&mut Home::on_postgres());
}

fn turns(reply: &Value) -> Vec<String> {
    let turn = |one: &Value| {
        format!("{} {}", one["change"].as_str().unwrap(), one["rule"].as_str().unwrap())
    };
    reply["diff"].as_array().expect("a list").iter().map(turn).collect()
}

fn counts(reply: &Value) -> [u64; 5] {
    ["version", "created", "updated", "deleted", "unchanged"]
        .map(|name| reply[name].as_u64().expect("a number"))
}

fn a_set_is_created_updated_kept_and_pruned_and_the_answer_says_which(home: &Home) {
    let mut client = home.client();
    let first = client.data("rules.apply", &json!({"rules": [rule("b", 1), rule("a", 1)]}));
    assert_eq!(
        (counts(&first), turns(&first)),
        ([1, 2, 0, 0, 0], vec!["created a".into(), "created b".into()])
    );
    assert_eq!(in_force(home), 2, "in force before the answer");
    let mut other = rule("b", 2);
    other["tiers"] = json!(["pro"]);
    let second = client.data("rules.apply", &json!({"rules": [other, rule("c", 1)]}));
    assert_eq!(
        (counts(&second), turns(&second)),
        ([2, 1, 1, 0, 0], vec!["updated b".into(), "created c".into()])
    );
    let fields = json!([
        {"field": "limits", "before": [{"limit": 1, "window": "1m"}], "after": [{"limit": 2, "window": "1m"}]},
        {"field": "tiers", "after": ["pro"]},
    ]);
    assert_eq!(second["diff"][0]["fields"], fields);
    let third = client.data("rules.apply", &json!({"rules": [rule("c", 1)], "prune": true}));
    assert_eq!(
        (counts(&third), turns(&third)),
        ([3, 0, 0, 2, 1], vec!["deleted a".into(), "deleted b".into()])
    );
    let again = client.data("rules.apply", &json!({"rules": [rule("c", 1)], "prune": true}));
    assert_eq!((counts(&again), again["diff"].clone()), ([3, 0, 0, 0, 1], json!([])));
    assert_eq!(keys(&again), ["created", "deleted", "diff", "unchanged", "updated", "version"]);
    assert_eq!(client.data("rules.delete", &json!({"name": "c"})), json!({"version": 4}));
    assert_eq!(in_force(home), 0);
}

fn a_dry_run_tells_and_changes_nothing(home: &Home) {
    let mut client = home.client();
    client.data("rules.apply", &json!({"rules": [rule("a", 1)]}));
    let body = json!({"rules": [rule("a", 2), rule("b", 1)], "dryRun": true});
    let dry = client.data("rules.apply", &body);
    assert_eq!(
        (counts(&dry), turns(&dry)),
        ([1, 1, 1, 0, 0], vec!["updated a".into(), "created b".into()])
    );
    assert_eq!(client.post("rules.get", &json!({"name": "b"})).status(), 404);
    assert_eq!(client.data("rules.get", &json!({"name": "a"}))["limits"][0]["limit"], 1);
}

fn a_rule_is_shown_with_its_making_and_listed_as_it_can_be_applied(home: &Home) {
    let mut client = home.client();
    let written = json!({
        "name": "logins", "scope": ["ip", "endpoint"], "endpoints": ["/login"], "methods": ["post"],
        "limits": [{"limit": 5, "window": "60s"}, {"limit": 20, "window": "1mo", "name": "monthly"}],
        "algorithm": "fixed_window", "response": {"status": 423, "message": "Later."}, "priority": 5,
    });
    let applied =
        client.data("rules.apply", &json!({"rules": [written, rule("z", 1), rule("y", 1)]}));
    let shown = client.data("rules.get", &json!({"name": "logins"}));
    assert_eq!(
        (&shown["keyPattern"], &shown["version"]),
        (&json!("ip+endpoint"), &applied["version"])
    );
    assert!(shown["ruleId"].as_str().unwrap().starts_with("rule_"), "{shown}");
    assert!(shown["createdAt"].is_u64() && shown["createdBy"].as_str().unwrap().starts_with("rk_"));
    assert_eq!(
        (&shown["methods"], &shown["limits"][0]["window"]),
        (&json!(["POST"]), &json!("1m"))
    );
    assert_eq!((&shown["action"], &shown["enabled"]), (&json!("reject"), &json!(true)));
    let first = client.post("rules.list", &json!({"limit": 2}));
    assert_eq!(first.json["pagination"]["hasMore"], true, "{}", first.json);
    let body = json!({"limit": 2, "cursor": first.json["pagination"]["cursor"]});
    let rest = client.post("rules.list", &body);
    assert_eq!(rest.json["pagination"], json!({"hasMore": false}));
    let rows = |answer: &Value| answer["data"].as_array().unwrap().clone();
    let all: Vec<_> = rows(&first.json).into_iter().chain(rows(&rest.json)).collect();
    let names: Vec<_> = all.iter().map(|rule| rule["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["logins", "y", "z"]);
    let again = client.data("rules.apply", &json!({"rules": all, "prune": true}));
    assert_eq!(counts(&again)[1..], [0, 0, 0, 3], "what is listed is what is there: {again}");
}

fn a_version_is_brought_back_as_a_new_one(home: &Home) {
    let mut client = home.client();
    client.data("rules.apply", &json!({"rules": [rule("a", 1), rule("b", 1)]}));
    client.data("rules.apply", &json!({"rules": [rule("a", 2)], "prune": true}));
    let back = client.data("rules.rollback", &json!({"version": 1}));
    assert_eq!(
        (counts(&back), turns(&back)),
        ([3, 1, 1, 0, 0], vec!["updated a".into(), "created b".into()])
    );
    assert_eq!(in_force(home), 2);
    assert_eq!(client.data("rules.get", &json!({"name": "a"}))["limits"][0]["limit"], 1);
    let nobody = client.post("rules.rollback", &json!({"version": 9}));
    assert_eq!((nobody.status(), nobody.code()), (404, "rule_version_not_found"));
}

fn a_retry_with_the_same_idempotency_key_applies_once(home: &Home) {
    let mut client = home.client();
    let body = json!({"rules": [rule("a", 1)]});
    let first = client.post_once("rules.apply", &body, "turn-1");
    client.data("rules.delete", &json!({"name": "a"}));
    let again = client.post_once("rules.apply", &body, "turn-1");
    assert_eq!((again.status(), &again.json), (200, &first.json));
    assert_eq!(
        client.post("rules.get", &json!({"name": "a"})).status(),
        404,
        "it was not done again"
    );
    let other = client.post_once("rules.apply", &json!({"rules": []}), "turn-1");
    assert_eq!(other.status(), 409);
}

fn rules_outlive_a_restart(home: &mut Home) {
    home.client().data("rules.apply", &json!({"rules": super::rules(7)}));
    home.world.restart();
    assert_eq!(in_force(home), 7);
    home.world.crash();
    assert_eq!(in_force(home), 7);
}
