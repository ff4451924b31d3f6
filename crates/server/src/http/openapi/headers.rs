//! The headers of responses, as the document describes them: what they hold, and which routes always send them.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::super::route::{Endpoint, Route};

const NUMBER: &str = "integer";
const TEXT: &str = "string";
/// Where the caller stands, in the customary form and in that of draft 11.
const STANDING: [(&str, &str, &str); 5] = [
    ("X-RateLimit-Limit", NUMBER, "What the limit allows; of a bucket, its capacity."),
    ("X-RateLimit-Remaining", NUMBER, "What is left of it."),
    ("X-RateLimit-Reset", NUMBER, "When it is whole again, in seconds of Unix time."),
    ("RateLimit-Policy", TEXT, "The limit by draft 11 of the IETF: `\"name\";q=100;w=60`."),
    (
        "RateLimit",
        TEXT,
        "What is left by the same draft, and for how many seconds: `\"name\";r=7;t=32`.",
    ),
];
const RETRY_AFTER: (&str, &str, &str) =
    ("Retry-After", NUMBER, "In how many seconds to come back, where time helps.");
const ALLOW: (&str, &str, &str) = ("Allow", TEXT, "What the path takes.");
const CHALLENGE: (&str, &str, &str) = ("WWW-Authenticate", TEXT, "`Bearer`.");

/// Of an answer; empty where nothing is said about a limit. That of several speaks of the one with the least left.
pub fn of_answers(route: &Route) -> Map<String, Value> {
    let always = match route.endpoint {
        Endpoint::Limit | Endpoint::MultiLimit | Endpoint::Peek => true,
        // A key may have none.
        Endpoint::VerifyKey | Endpoint::GateCheck | Endpoint::GateExplain | Endpoint::Check(_) => {
            false
        }
        _ => return Map::new(),
    };
    let denials = (route.endpoint != Endpoint::Peek).then(|| described(RETRY_AFTER, false));
    STANDING.into_iter().map(|header| described(header, always)).chain(denials).collect()
}

pub fn of_refusals(status: StatusCode) -> Map<String, Value> {
    let header = match status {
        StatusCode::UNAUTHORIZED => CHALLENGE,
        StatusCode::METHOD_NOT_ALLOWED => ALLOW,
        StatusCode::TOO_MANY_REQUESTS => RETRY_AFTER,
        _ => return Map::new(),
    };
    Map::from_iter([described(header, true)])
}

fn described((name, kind, text): (&str, &str, &str), always: bool) -> (String, Value) {
    let header = json!({ "required": always, "description": text, "schema": { "type": kind } });
    (name.to_owned(), header)
}
