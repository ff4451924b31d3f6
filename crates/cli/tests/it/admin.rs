//! What admins manage, from making to deleting: each kind of object, what its changes do to verifications, and retries.

mod identities;
mod projects;
mod rbac;
mod retries;
mod root_keys;
mod tenants;

use serde_json::{Value, json};

use crate::world::{Client, keys};

/// A new key of a project, and its text.
fn new_key(client: &mut Client, api_id: &str, mut terms: Value) -> String {
    terms["apiId"] = json!(api_id);
    let made = client.data("keys.createKey", &terms);
    made["key"].as_str().expect("a key").to_owned()
}

fn new_api(client: &mut Client) -> String {
    let made = client.data("apis.createApi", &json!({"name": "payments"}));
    made["apiId"].as_str().expect("an id").to_owned()
}

fn verify(client: &mut Client, key: &str) -> Value {
    client.data("keys.verifyKey", &json!({"key": key}))
}

/// What a verification that needs this permission answers.
fn code_for(client: &mut Client, key: &str, permission: &str) -> String {
    let body = json!({"key": key, "permissions": permission});
    let verified = client.data("keys.verifyKey", &body);
    verified["code"].as_str().expect("a code").to_owned()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// Status and last part of the error's type.
fn refusal(client: &mut Client, method: &str, body: &Value) -> (u16, String) {
    let answer = client.post(method, body);
    answer.assert_refused(method);
    (answer.status(), answer.code().to_owned())
}

/// All rows of a list, page by page, by this field.
fn walked(client: &mut Client, method: &str, field: &str, rows: u64) -> Vec<String> {
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let mut body = json!({"limit": rows});
        if !cursor.is_null() {
            body["cursor"] = cursor;
        }
        let answer = client.post(method, &body);
        assert_eq!(keys(&answer.json), ["data", "meta", "pagination"], "{method}");
        let page = answer.json["data"].as_array().expect("rows");
        seen.extend(page.iter().map(|row| text(&row[field]).to_owned()));
        let pagination = &answer.json["pagination"];
        if pagination["hasMore"] == false {
            assert_eq!(keys(pagination), ["hasMore"]);
            return seen;
        }
        assert_eq!(page.len() as u64, rows, "{method}");
        cursor = pagination["cursor"].clone();
    }
}

/// Twelve of them on pages of five: every one once.
fn assert_pages(
    client: &mut Client,
    list: &str,
    field: &str,
    make: impl Fn(&mut Client, usize) -> String,
) {
    let mut made: Vec<String> = (0..12).map(|at| make(client, at)).collect();
    let before = walked(client, list, field, 100);
    let mut seen = walked(client, list, field, 5);
    assert_eq!(seen, before, "{list}");
    seen.retain(|one| made.contains(one));
    made.sort();
    seen.sort();
    assert_eq!(seen, made, "{list}");
}
