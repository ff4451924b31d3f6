//! The hand that prepares a measurement: makes keys, revokes them, asks one node about them. Never the load itself.

use serde_json::{Value, json};
use tollkeeper_testkit::{Connection, PostgresFailure, StartFailure};

use crate::failure::Failure;
use crate::limits::AMPLE;

const MINUTE_MS: u64 = 60_000;

/// One caller with one connection.
#[derive(Debug)]
pub(super) struct Admin {
    connection: Connection,
    authorization: String,
}

#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) id: String,
    pub(super) text: String,
}

// === impl Admin ===

impl Admin {
    pub(super) fn open(url: &str, root_key: &str) -> Result<Self, Failure> {
        let connection = Connection::open(url).map_err(Failure::io("a connection"))?;
        Ok(Self { connection, authorization: format!("Bearer {root_key}") })
    }

    /// The data of a success; anything else ends the measurement.
    pub(super) fn data(&mut self, method: &str, body: &Value) -> Result<Value, Failure> {
        let text = self.said(method, &body.to_string())?;
        let parsed: Result<Value, _> = serde_json::from_str(&text);
        parsed
            .map(|mut whole| whole["data"].take())
            .map_err(|_| Failure::unreadable("an answer", text))
    }

    /// The text of a success, for whoever has no time to read or write JSON.
    pub(super) fn said(&mut self, method: &str, body: &str) -> Result<String, Failure> {
        let path = format!("/v2/{method}");
        let headers =
            [("authorization", &*self.authorization), ("content-type", "application/json")];
        let answer = self
            .connection
            .exchange("POST", &path, &headers, body.as_bytes())
            .map_err(Failure::io(method))?;
        let text = answer.text();
        if answer.status == 200 {
            return Ok(text);
        }
        Err(Failure::Invalid(format!("{method} answered {}: {text}", answer.status)))
    }

    pub(super) fn api(&mut self) -> Result<String, Failure> {
        let made = self.data("apis.createApi", &json!({"name": "bench"}))?;
        text(&made["apiId"])
    }

    /// A key with one limit, which it never reaches.
    pub(super) fn key(&mut self, api: &str) -> Result<Key, Failure> {
        let limit =
            json!({"name": "requests", "limit": AMPLE, "duration": MINUTE_MS, "autoApply": true});
        let made = self.data("keys.createKey", &json!({"apiId": api, "ratelimits": [limit]}))?;
        Ok(Key { id: text(&made["keyId"])?, text: text(&made["key"])? })
    }

    pub(super) fn keys(&mut self, api: &str, count: usize) -> Result<Vec<Key>, Failure> {
        (0..count).map(|_| self.key(api)).collect()
    }

    pub(super) fn code(&mut self, key: &str) -> Result<String, Failure> {
        text(&self.data("keys.verifyKey", &json!({"key": key}))?["code"])
    }
}

fn text(value: &Value) -> Result<String, Failure> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| Failure::unreadable("an answer", value.to_string()))
}

#[allow(clippy::needless_pass_by_value, reason = "the shape of map_err")]
pub(super) fn postgres(failure: PostgresFailure) -> Failure {
    Failure::Child { what: "PostgreSQL".into(), said: failure.to_string() }
}

#[allow(clippy::needless_pass_by_value, reason = "the shape of map_err")]
pub(super) fn unstarted(failure: StartFailure) -> Failure {
    Failure::Child { what: "tollkeeper serve".into(), said: failure.to_string() }
}
