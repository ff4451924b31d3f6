//! Keys from their making to their end, against the real binary: what an admin does is in force with the next verification.

mod bad_input;
mod credits;
mod fleet;
mod grants;
mod kill;
mod lifecycle;
mod limits;
mod lost_leases;
mod migrate;
mod origin;
mod outage;
mod reading;
mod replica;
mod secrets;
mod shared_cache;
mod signing;

use serde_json::{Value, json};

use crate::world::Client;

/// A key as its maker got it.
struct Made {
    id: String,
    text: String,
}

fn api(client: &mut Client) -> String {
    text_of(&client.data("apis.createApi", &json!({"name": "payments"}))["apiId"])
}

/// With `more` on top of the project's id.
fn create(client: &mut Client, api: &str, more: Value) -> Made {
    let data = client.data("keys.createKey", &with(json!({"apiId": api}), more));
    Made { id: text_of(&data["keyId"]), text: text_of(&data["key"]) }
}

fn verify(client: &mut Client, key: &str, more: Value) -> Value {
    client.data("keys.verifyKey", &with(json!({"key": key}), more))
}

fn code(client: &mut Client, key: &str) -> String {
    text_of(&verify(client, key, json!({}))["code"])
}

fn get(client: &mut Client, key_id: &str) -> Value {
    client.data("keys.getKey", &json!({"keyId": key_id}))
}

fn with(mut body: Value, more: Value) -> Value {
    let (Value::Object(fields), Value::Object(more)) = (&mut body, more) else {
        panic!("two objects are joined")
    };
    fields.extend(more);
    body
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}
