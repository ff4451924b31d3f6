//! A rule in its one spelling: what was left out and always counts is said, what says nothing is left out, windows and
//! ranges are written one way. Two texts differ exactly when something about the rule does.

use serde_json::{Map, Value, json};
use tollkeeper_core::{Action, PathPattern, Rule, RuleResponse};

use super::limits::{Counting, One};
use super::reading::Reading;

pub(super) fn canonical(
    reading: &Reading<'_>,
    rule: &Rule,
    counting: &Counting,
) -> Map<String, Value> {
    let mut text = Map::new();
    let mut put = |name: &str, value: Value| drop(text.insert(name.to_owned(), value));
    put("name", json!(&*rule.name));
    put("action", json!(rule.action.word()));
    put("priority", json!(rule.priority));
    put("enabled", json!(rule.enabled));
    let scopes: Vec<_> = rule.scope.as_slice().iter().map(|scope| scope.word()).collect();
    put("scope", if let [one] = scopes[..] { json!(one) } else { json!(scopes) });
    let endpoints: Vec<_> = rule.endpoints.iter().map(PathPattern::as_str).collect();
    let ranges: Vec<_> = rule.ip_ranges.iter().map(ToString::to_string).collect();
    for (name, list) in [
        ("tiers", json!(rule.tiers)),
        ("endpoints", json!(endpoints)),
        ("methods", json!(rule.methods)),
        ("ipRanges", json!(ranges)),
        ("projects", json!(rule.projects)),
        ("limits", counting.each.iter().map(limit).collect()),
    ] {
        if list.as_array().is_some_and(|list| !list.is_empty()) {
            put(name, list);
        }
    }
    let delay = match rule.action {
        Action::Throttle { max_delay_ms } => Some(max_delay_ms),
        _ => None,
    };
    for (name, value) in [
        ("algorithm", counting.algorithm.map(Value::from)),
        ("burst", counting.burst.map(Value::from)),
        ("refillRate", counting.refill.map(decimal)),
        ("maxDelayMs", delay.map(Value::from)),
        ("response", rule.response.as_ref().map(response)),
        ("consistency", reading.text("consistency").map(Value::from)),
        ("onOutage", reading.text("onOutage").map(Value::from)),
    ] {
        if let Some(value) = value {
            put(name, value);
        }
    }
    text
}

fn limit(one: &One) -> Value {
    let window = one.window.to_string();
    let mut limit = json!({ "limit": one.quota, "window": window });
    if one.name != window {
        limit["name"] = json!(one.name);
    }
    limit
}

fn response(response: &RuleResponse) -> Value {
    let mut text = Map::new();
    let RuleResponse { status, message, retry_after_seconds } = response;
    for (name, value) in [
        ("status", status.map(Value::from)),
        ("message", message.as_deref().map(Value::from)),
        ("retryAfterSeconds", retry_after_seconds.map(Value::from)),
    ] {
        if let Some(value) = value {
            text.insert(name.to_owned(), value);
        }
    }
    Value::Object(text)
}

#[allow(clippy::cast_precision_loss, reason = "below 2^53, and read back by the same rounding")]
fn decimal(thousandths: u64) -> Value {
    if thousandths.is_multiple_of(1000) {
        json!(thousandths / 1000)
    } else {
        json!(thousandths as f64 / 1000.0)
    }
}
