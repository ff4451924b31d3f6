//! Bad sets: everything wrong is named at once, with rule and place, and nothing of them is applied.

use serde_json::json;

use super::{Home, in_force, rule, rules};
use crate::world::Answer;

on_both! {
    everything_wrong_is_named_at_once_and_nothing_is_applied,
    the_ten_thousand_and_first_rule_of_a_tenant_is_refused,
    a_limit_of_zero_is_taken_and_said_to_block,
}

fn messages(answer: &Answer) -> String {
    answer.json["error"]["errors"].to_string()
}

fn everything_wrong_is_named_at_once_and_nothing_is_applied(home: &Home) {
    let mut client = home.client();
    client.data("rules.apply", &json!({"rules": [rule("good", 1)]}));
    let mut typo = rule("typo", 1);
    typo["prioritty"] = json!(5);
    let mut range = rule("range", 1);
    range["ipRanges"] = json!(["10.0.0.0/40"]);
    let mut pattern = rule("pattern", 1);
    pattern["endpoints"] = json!(["/a", "b/c", "/x?y"]);
    let mut window = rule("window", 1);
    window["limits"] = json!([{"limit": 1, "window": "1y"}, {"limit": 1, "window": "1mo"}]);
    let mut action = rule("action", 1);
    action["action"] = json!("throttle");
    let mut adapt = rule("adapt", 1);
    adapt["adapt"] = json!({"floor": 0.5});
    let set = json!({"rules": [rule("twice", 1), typo, range, pattern, window, action, adapt, rule("twice", 2)], "prune": true});
    let refused = client.post("rules.apply", &set);
    refused.assert_refused("a bad set");
    assert_eq!(refused.status(), 400);
    let places = refused.places();
    for place in [
        "body.rules[1].prioritty",
        "body.rules[2].ipRanges[0]",
        "body.rules[3].endpoints[1]",
        "body.rules[3].endpoints[2]",
        "body.rules[4].limits[0].window",
        "body.rules[4].limits",
        "body.rules[5].maxDelayMs",
        "body.rules[6].adapt",
        "body.rules[7].name",
    ] {
        assert!(places.contains(&place), "{place}: {places:?}");
    }
    assert_eq!(places.len(), 9, "{places:?}");
    for name in ["typo", "range", "pattern", "window", "action", "adapt", "twice"] {
        assert!(messages(&refused).contains(&format!("Rule \\\"{name}\\\"")), "{name}");
    }
    assert!(messages(&refused).contains("Did you mean `priority`?"));
    let rows = client.data("rules.list", &json!({}));
    assert_eq!((rows.as_array().unwrap().len(), &rows[0]["name"]), (1, &json!("good")));
    assert_eq!(in_force(home), 1);
}

fn the_ten_thousand_and_first_rule_of_a_tenant_is_refused(home: &Home) {
    let mut client = home.client();
    let mut set = rules(10_001);
    let all = client.post("rules.apply", &json!({"rules": set}));
    assert_eq!((all.status(), all.places()), (400, vec!["body.rules"]));
    set.pop();
    client.data("rules.apply", &json!({"rules": set}));
    let one = client.post("rules.apply", &json!({"rules": [rule("one-more", 1)]}));
    assert_eq!((one.status(), one.places()), (400, vec!["body.rules"]), "{}", one.json);
    assert!(messages(&one).contains("10001 rules in all"), "{}", one.json);
    assert_eq!(in_force(home), 10_000);
    assert_eq!(client.post("rules.get", &json!({"name": "one-more"})).status(), 404);
}

fn a_limit_of_zero_is_taken_and_said_to_block(home: &Home) {
    let reply = home.client().data("rules.apply", &json!({"rules": [rule("closed", 0)]}));
    let note = reply["notes"][0].as_str().expect("a note");
    assert!(note.contains("closed") && note.contains("blocks every request"), "{note}");
}

#[test]
fn a_set_may_have_sixteen_mebibytes_and_every_other_body_one() {
    let home = Home::on_sqlite();
    let mut client = home.client();
    let message = "x".repeat(1000);
    let long = |name: usize| {
        let mut long = rule(&format!("r{name}"), 1);
        long["response"] = json!({"message": message});
        long
    };
    // Two megabytes, which no other route takes.
    let set = json!({"rules": (0..2000).map(long).collect::<Vec<_>>()});
    assert!(set.to_string().len() > 2 << 20);
    assert_eq!(client.data("rules.apply", &set)["created"], 2000);
    let elsewhere = client.post("rules.list", &json!({"cursor": "x".repeat(2 << 20)}));
    assert_eq!(elsewhere.status(), 413);
    let mut client = home.client();
    let padded = format!("{{\"rules\":[]{}}}", " ".repeat(16 << 20));
    let refused = client.post_bytes("rules.apply", padded.as_bytes()).expect("an answer");
    assert_eq!(refused.status(), 413, "{}", refused.json);
}

#[test]
fn who_may_not_apply_is_told_before_the_body_is_read() {
    let home = Home::on_sqlite();
    let mut operator = home.client();
    let key = operator.data("rootKeys.createKey", &json!({"permissions": ["rules.*.list"]}));
    let mut reader = crate::world::Client::new(home.server.url(), key["key"].as_str().unwrap());
    let refused = reader.post_bytes("rules.apply", b"{ this is no JSON").expect("an answer");
    assert_eq!(refused.status(), 403);
    assert_eq!(reader.post("rules.list", &json!({})).status(), 200);
    let large = format!("{{\"rules\":[]{}}}", " ".repeat(3 << 20));
    let mut stranger = crate::world::Client::new(home.server.url(), "tk_root_nobody_has_this_key");
    let refused = stranger.post_bytes("rules.apply", large.as_bytes()).expect("an answer");
    assert_eq!(refused.status(), 401);
    assert_eq!(
        operator.post_bytes("rules.apply", large.as_bytes()).expect("an answer").status(),
        200
    );
}
