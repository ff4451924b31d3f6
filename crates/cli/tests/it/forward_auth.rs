//! `/check/caddy`: first as Caddy asks it, then behind a real Caddy with the Caddyfile that is given to users.

mod behind_caddy;
mod questions;
mod upstream;

use serde_json::Value;
use tollkeeper_testkit::Response;

/// A refusal as it is handed to the end user: a bare problem, whole, and without anything of ours inside.
fn problem(response: &Response) -> Value {
    assert_eq!(response.header("content-type"), Some("application/problem+json"));
    let problem: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(problem["status"], response.status, "{problem}");
    for member in ["type", "title", "detail", "requestId"] {
        assert!(
            problem[member].as_str().is_some_and(|text| !text.is_empty()),
            "{member}: {problem}"
        );
    }
    for (name, value) in &response.headers {
        assert!(!name.starts_with("x-tollkeeper"), "a client sees {name}: {value}");
    }
    problem
}
