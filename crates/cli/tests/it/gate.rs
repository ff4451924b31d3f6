//! `gate.check` and `gate.explain` against the real binary: one answer about key, owner, rules, quotas, limits and credits.

mod actions;
mod bad_input;
mod codes;
mod commands;
mod later;
mod paths;
mod refill;
mod scopes;
mod spending;

use serde_json::{Value, json};

use crate::world::{Answer, Client};

/// Ends within a test once in a month, at midnight.
const LONG: &str = "30d";

/// Puts these rules into force, and no others.
pub(crate) fn apply(client: &mut Client, rules: &Value) {
    let applied = client.post("rules.apply", &json!({"rules": rules, "prune": true}));
    assert_eq!(applied.status(), 200, "{}", applied.json);
}

/// A rule that rejects what is over one limit in the longest window.
pub(crate) fn rule(name: &str, scope: &Value, limit: u64, more: Value) -> Value {
    let limits = json!([{"limit": limit, "window": LONG}]);
    with(json!({"name": name, "scope": scope, "limits": limits}), more)
}

fn check(client: &mut Client, body: &Value) -> Value {
    answered(client, body).json["data"].clone()
}

fn answered(client: &mut Client, body: &Value) -> Answer {
    let answer = client.post("gate.check", body);
    assert_eq!(answer.status(), 200, "{}", answer.json);
    answer
}

fn explain(client: &mut Client, body: &Value) -> Value {
    client.data("gate.explain", body)
}

/// Code and status of an answer.
fn verdict(data: &Value) -> (&str, u64) {
    assert_eq!(data["allowed"] == true, data["code"] == "VALID", "{data}");
    (data["code"].as_str().expect("a code"), data["status"].as_u64().expect("a status"))
}

/// What a limit of an answer has left, by its name.
fn left(data: &Value, name: &str) -> u64 {
    let limits = data["limits"].as_array().expect("limits");
    let found = limits.iter().find(|limit| limit["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no limit {name}: {data}"));
    found["remaining"].as_u64().expect("a count")
}

/// A project without limits of its own.
pub(crate) fn project(client: &mut Client) -> String {
    text_of(&client.data("apis.createApi", &json!({"name": "payments"}))["apiId"])
}

/// Id and text of a key, with `more` on top of its project.
pub(crate) fn key(client: &mut Client, project: &str, more: Value) -> (String, String) {
    let made = client.data("keys.createKey", &with(json!({"apiId": project}), more));
    (text_of(&made["keyId"]), text_of(&made["key"]))
}

pub(crate) fn with(mut body: Value, more: Value) -> Value {
    let (Value::Object(fields), Value::Object(more)) = (&mut body, more) else {
        panic!("two objects are joined")
    };
    fields.extend(more);
    body
}

pub(crate) fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}
