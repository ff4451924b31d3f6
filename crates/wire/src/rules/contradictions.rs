//! Fields of a rule that fit each for itself and not together: each contradiction once, for the document and for faults.

use serde_json::{Map, Value};

use super::MONTH;
use crate::ratelimit::SLIDING_LOG_LIMIT_MAX;
use crate::schema::{Breach, Rule};

type Given = Map<String, Value>;

pub(super) const CONTRADICTIONS: [Rule; 11] = [
    Rule {
        about: "`reject`, `throttle` and `log_only` need at least one limit.",
        breach: |given| {
            let missing = counts(given) && list(given, "limits").is_none_or(<[Value]>::is_empty);
            // A `limits` of the wrong kind is told as such.
            let absent = given.get("limits").is_none_or(Value::is_array);
            (missing && absent).then(|| Breach {
                field: "limits",
                message: format!(
                    "The action `{}` counts, and there is nothing to count.",
                    action(given)
                ),
                fix: "Give at least one limit, or make the action `allow` or `block`.".into(),
            })
        },
    },
    Rule {
        about: "`allow` and `block` have no limits.",
        breach: |given| {
            let idle =
                !counts(given) && list(given, "limits").is_some_and(|limits| !limits.is_empty());
            idle.then(|| Breach {
                field: "limits",
                message: format!("The action `{}` counts nothing.", action(given)),
                fix: "Leave the limits out, or make the action `reject`, `throttle` or `log_only`."
                    .into(),
            })
        },
    },
    Rule {
        about: "`throttle` needs `maxDelayMs`.",
        breach: |given| {
            let missing = throttles(given) && !given.contains_key("maxDelayMs");
            missing.then(|| {
                breach(
                    "maxDelayMs",
                    "Is missing: `throttle` has to know how long a request may wait.",
                    "Send it, or make the action `reject`.",
                )
            })
        },
    },
    Rule {
        about: "`maxDelayMs` belongs to `throttle`.",
        breach: |given| {
            let idle = !throttles(given) && given.contains_key("maxDelayMs");
            idle.then(|| {
                breach(
                    "maxDelayMs",
                    "Means nothing unless the action is `throttle`.",
                    "Leave it out, or make the action `throttle`.",
                )
            })
        },
    },
    Rule {
        about: "`burst` belongs to `token_bucket` and `throttle`.",
        breach: |given| {
            let idle = !is_bucket(given) && given.contains_key("burst");
            idle.then(|| {
                breach(
                    "burst",
                    "Only a token bucket has a capacity of its own.",
                    "Leave it out, or make the algorithm `token_bucket`.",
                )
            })
        },
    },
    Rule {
        about: "`refillRate` belongs to `token_bucket` and `throttle`.",
        breach: |given| {
            let idle = !is_bucket(given) && given.contains_key("refillRate");
            idle.then(|| {
                breach(
                    "refillRate",
                    "Only a token bucket is refilled.",
                    "Leave it out, or make the algorithm `token_bucket`.",
                )
            })
        },
    },
    Rule {
        about: "`1mo` is counted by `fixed_window` only.",
        breach: |given| {
            let fixed = text(given, "algorithm") == Some("fixed_window") && !throttles(given);
            let months = limits(given).any(|limit| text(limit, "window") == Some(MONTH));
            (months && !fixed).then(|| breach("limits", "A calendar month has no fixed length: only `fixed_window` counts it, and `throttle` cannot.", "Make the algorithm `fixed_window`, or the window `30d`."))
        },
    },
    Rule {
        about: "A `sliding_log` admits at most 10000 units per window.",
        breach: |given| {
            let log = text(given, "algorithm") == Some("sliding_log") && !throttles(given);
            let large = limits(given)
                .filter_map(|limit| limit.get("limit")?.as_u64())
                .find(|limit| *limit > SLIDING_LOG_LIMIT_MAX);
            large.filter(|_| log).map(|limit| Breach {
                field: "limits",
                message: format!("A sliding log keeps every admission, and {limit} are too many."),
                fix: format!("Send at most {SLIDING_LOG_LIMIT_MAX}, or another algorithm."),
            })
        },
    },
    Rule {
        about: "`throttle` needs limits above 0.",
        breach: |given| {
            let never =
                limits(given).any(|limit| limit.get("limit").and_then(Value::as_u64) == Some(0));
            (throttles(given) && never).then(|| {
                breach(
                    "limits",
                    "Nobody can wait for a limit of 0.",
                    "Send at least 1, or make the action `block`.",
                )
            })
        },
    },
    Rule {
        about: "The scope `endpoint` counts by pattern and needs `endpoints`.",
        breach: |given| {
            let by_endpoint = match given.get("scope") {
                Some(Value::String(word)) => word == "endpoint",
                Some(Value::Array(words)) => words.iter().any(|word| word == "endpoint"),
                _ => false,
            };
            let none = list(given, "endpoints").is_none_or(<[Value]>::is_empty);
            (by_endpoint && none).then(|| breach("scope", "`endpoint` counts by the pattern that matched, and there is none: the rule could never match.", "Give `endpoints`, such as `/**`."))
        },
    },
    Rule {
        about: "`adapt` is not supported yet.",
        breach: |given| {
            let adapts = given.contains_key("adapt");
            adapts.then(|| breach("adapt", "Is not supported yet.", "Leave it out."))
        },
    },
];

fn breach(field: &'static str, message: &str, fix: &str) -> Breach {
    Breach { field, message: message.into(), fix: fix.into() }
}

fn text<'g>(given: &'g Given, field: &str) -> Option<&'g str> {
    given.get(field)?.as_str()
}

fn list<'g>(given: &'g Given, field: &str) -> Option<&'g [Value]> {
    given.get(field)?.as_array().map(Vec::as_slice)
}

fn limits(given: &Given) -> impl Iterator<Item = &Given> {
    list(given, "limits").unwrap_or_default().iter().filter_map(Value::as_object)
}

fn action(given: &Given) -> &str {
    text(given, "action").unwrap_or("reject")
}

fn counts(given: &Given) -> bool {
    !matches!(action(given), "allow" | "block")
}

fn throttles(given: &Given) -> bool {
    action(given) == "throttle"
}

/// A throttle is one, whatever its algorithm says.
fn is_bucket(given: &Given) -> bool {
    throttles(given) || text(given, "algorithm") == Some("token_bucket")
}
