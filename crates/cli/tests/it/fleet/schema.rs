//! What is in Redis: only documented names, everything with an end, and nothing secret.

use serde_json::json;

use super::{Asked, Fleet, body, heard};
use crate::world::{ALGORITHMS, LONG_MS};

const SCHEMA: &str = include_str!("../../../../../docs/REDIS_SCHEMA.md");

#[test]
fn every_key_in_redis_is_documented_and_has_an_end() {
    let fleet = Fleet::of(2);
    let mut clients = fleet.clients();
    for algorithm in ALGORITHMS {
        for identifier in ["plain", "{steered}", "a:b*c", "\u{e9}\n", &"long".repeat(60)] {
            let asked = Asked { body: body(identifier, 10, LONG_MS, algorithm), cost: 1 };
            heard(&mut clients[0], &asked);
            heard(&mut clients[1], &asked);
        }
    }
    let api = clients[0].data("apis.createApi", &json!({"name": "api"}));
    let limit = json!({"name": "calls", "limit": 10, "duration": 60_000, "autoApply": true});
    let made =
        clients[0].data("keys.createKey", &json!({"apiId": api["apiId"], "ratelimits": [limit]}));
    clients[0].data("keys.verifyKey", &json!({"key": made["key"]}));

    let text = made["key"].as_str().expect("a key");
    let documented: Vec<&str> = SCHEMA.split('`').skip(1).step_by(2).collect();
    let keys = fleet.redis.ask(&["KEYS", "*"]);
    let keys: Vec<&str> = keys.lines().filter_map(name).collect();
    assert!(keys.iter().filter(|key| key.starts_with("rl:")).count() >= 21, "{keys:?}");
    for key in keys {
        let known =
            documented.iter().any(|prefix| prefix.ends_with(':') && key.starts_with(prefix));
        assert!(known, "{key} is in Redis and not in docs/REDIS_SCHEMA.md");
        let ttl: i64 = number(&fleet.redis.ask(&["PTTL", key]));
        assert!(ttl > 0, "{key} has no end");
        assert!(!key.contains(text));
        assert!(!fleet.redis.ask(&["DUMP", key]).contains(text), "{key} holds a key's text");
    }
}

/// A line of a reply that is a name.
fn name(line: &str) -> Option<&str> {
    let line = line.trim();
    (line.starts_with("rl:") || line.starts_with("tk:") || line.contains(':')).then_some(line)
}

fn number(reply: &str) -> i64 {
    let digits = reply.trim().trim_start_matches(':').trim_start_matches("(integer) ");
    digits.parse().unwrap_or_else(|_| panic!("{reply:?} is no number"))
}
