//! What the headers of a limit's answer say, and that they never contradict the body.

use serde_json::json;
use tollkeeper_testkit::Response;

use crate::world::{LONG_MS, World, ask};

fn number(response: &Response, name: &str) -> u64 {
    let value =
        response.header(name).unwrap_or_else(|| panic!("no {name}: {:?}", response.headers));
    value.parse().unwrap_or_else(|_| panic!("{name}: {value}"))
}

/// `"name";key=1;key=2` as name and numbers, or nothing.
fn item<'a>(value: &'a str, keys: &[&str]) -> Option<(&'a str, Vec<u64>)> {
    let (name, rest) = value.strip_prefix('"')?.rsplit_once('"')?;
    let parts: Vec<_> = rest.strip_prefix(';')?.split(';').collect();
    let numbers = parts
        .iter()
        .zip(keys)
        .map(|(part, key)| part.strip_prefix(key)?.strip_prefix('=')?.parse().ok());
    let numbers: Option<Vec<_>> = numbers.collect();
    numbers.filter(|numbers| numbers.len() == parts.len()).map(|numbers| (name, numbers))
}

/// `cache_swr{cache=C,status=S}=1.56us`
fn is_timing(value: &str) -> bool {
    let parsed = || {
        let (labels, took) = value.strip_prefix("cache_swr{")?.split_once("}=")?;
        let (cache, status) = labels.strip_prefix("cache=")?.split_once(",status=")?;
        let number = took.strip_suffix("us")?;
        let digits = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let known = ["key", "root_key", "tenant", "namespace"].contains(&cache)
            && ["fresh", "stale", "miss"].contains(&status);
        Some(known && digits && number.parse::<f64>().is_ok())
    };
    parsed().unwrap_or(false)
}

#[test]
fn every_limit_answer_says_where_the_caller_stands_in_both_dialects() {
    let world = World::new();
    let mut client = world.client();
    for (name, cost) in [("ann", 1), ("bob", 3)] {
        let mut body = ask("api", name, 3);
        body["cost"] = json!(cost);
        let answer = client.post("ratelimit.limit", &body);
        let (response, data) = (&answer.response, &answer.json["data"]);
        assert_eq!(data["limit"], number(response, "x-ratelimit-limit"));
        assert_eq!(data["remaining"], number(response, "x-ratelimit-remaining"));
        let reset_ms = data["reset"].as_u64().unwrap();
        assert_eq!(number(response, "x-ratelimit-reset"), reset_ms.div_ceil(1000));
        let policy = item(response.header("ratelimit-policy").unwrap(), &["q", "w"]);
        assert_eq!(policy, Some(("api", vec![3, LONG_MS / 1000])));
        let (policy, state) = item(response.header("ratelimit").unwrap(), &["r", "t"]).unwrap();
        assert_eq!((policy, state[0]), ("api", data["remaining"].as_u64().unwrap()));
        assert!(state[1] > 0 && state[1] <= LONG_MS / 1000);
        assert_eq!(response.header("retry-after"), None);
        assert_eq!(response.header("content-type"), Some("application/json"));
    }
}

#[test]
fn a_denial_adds_retry_after_in_whole_seconds_never_too_short() {
    let world = World::new();
    let mut client = world.client();
    client.limit(&ask("api", "ann", 1));
    let answer = client.post("ratelimit.limit", &ask("api", "ann", 1));
    assert_eq!(answer.status(), 200);
    let seconds = number(&answer.response, "retry-after");
    assert_eq!(seconds, answer.json["data"]["retryAfterMs"].as_u64().unwrap().div_ceil(1000));
    let state = item(answer.response.header("ratelimit").unwrap(), &["r", "t"]);
    assert_eq!(state, Some(("api", vec![0, seconds])));
}

#[test]
fn a_bundle_speaks_of_the_limit_with_least_remaining() {
    let world = World::new();
    let bundle = json!([ask("wide", "x", 100), ask("tight", "x", 3), ask("wide", "y", 50)]);
    let answer = world.client().post("ratelimit.multiLimit", &bundle);
    assert_eq!(number(&answer.response, "x-ratelimit-limit"), 3);
    assert_eq!(number(&answer.response, "x-ratelimit-remaining"), 2);
    assert!(answer.response.header("ratelimit").unwrap().starts_with("\"tight\";r=2;"));
}

#[test]
fn a_bundle_that_names_one_cell_twice_says_what_the_next_request_will_find() {
    let world = World::new();
    let mut client = world.client();
    let mut twice = [ask("api", "ann", 3), ask("api", "ann", 5)];
    twice[1]["cost"] = json!(2);
    let answer = client.post("ratelimit.multiLimit", &json!(twice));
    let left: Vec<_> = (0..2).map(|at| &answer.json["data"]["limits"][at]["remaining"]).collect();
    assert_eq!(left, [0, 2], "{}", answer.json);
    assert_eq!(number(&answer.response, "x-ratelimit-limit"), 3);
    assert_eq!(number(&answer.response, "x-ratelimit-remaining"), 0);
    assert_eq!(client.limit(&ask("api", "ann", 3))["remaining"], 0);
}

#[test]
fn peeks_say_where_the_caller_stands_too() {
    let world = World::new();
    let mut client = world.client();
    client.limit(&ask("api", "ann", 4));
    let answer = client.post("limits.peek", &ask("api", "ann", 4));
    assert_eq!(number(&answer.response, "x-ratelimit-remaining"), 3);
}

#[test]
fn every_cache_read_is_timed_in_a_field_line_of_its_own() {
    let world = World::new();
    let mut client = world.client();
    client.limit(&ask("api", "ann", 5));
    for method in ["ratelimit.limit", "limits.peek"] {
        let answer = client.post(method, &ask("api", "ann", 5));
        let lines: Vec<_> = answer.response.all("x-tollkeeper-timing").collect();
        assert!(lines.iter().all(|line| is_timing(line)), "{lines:?}");
        for cache in ["root_key", "namespace"] {
            let fresh = format!("cache_swr{{cache={cache},status=fresh}}=");
            assert!(lines.iter().any(|line| line.starts_with(&fresh)), "{method}: {lines:?}");
        }
    }
    let listed = client.post("ratelimit.listOverrides", &json!({"namespace": "api"}));
    assert!(listed.response.all("x-tollkeeper-timing").all(is_timing));
    assert!(listed.response.header("x-tollkeeper-timing").is_some());
    let refused = client.post("limits.peek", &ask("nowhere", "ann", 5));
    assert_eq!(refused.status(), 404);
    assert!(refused.response.all("x-tollkeeper-timing").all(is_timing));
    assert_eq!(refused.response.all("x-tollkeeper-timing").count(), 2);
}

#[test]
fn no_namespace_and_no_identifier_can_break_out_of_a_header() {
    let world = World::new();
    let mut client = world.client();
    for hostile in ["a\r\nx-evil: 1", "quo\"te\\", "\u{202e}rtl", "nul\0", "é☃🦀", ";q=1,"] {
        // No namespace is called so: it could not be stored.
        let namespace = hostile.replace('\0', "\u{1}");
        let answer = client.post("ratelimit.limit", &ask(&namespace, hostile, 5));
        assert_eq!(answer.status(), 200, "{hostile:?}: {}", answer.json);
        assert_eq!(answer.response.header("x-evil"), None);
        let policy = answer.response.header("ratelimit-policy").unwrap();
        assert!(item(policy, &["q", "w"]).is_some(), "{policy}");
        assert!(policy.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{policy}");
    }
}

#[test]
fn every_answer_about_a_bucket_shows_its_capacity_as_the_limit() {
    let world = World::new();
    let mut client = world.client();
    let bucket = json!({"limit": 5, "duration": LONG_MS, "algorithm": "token_bucket", "burst": 10});
    let with = |more: &[(&str, serde_json::Value)]| {
        let mut body = bucket.clone();
        for (name, value) in more {
            body[*name] = value.clone();
        }
        body
    };
    let api = client.data("apis.createApi", &json!({"name": "payments"}))["apiId"].clone();
    let key = client.data("keys.createKey", &json!({"apiId": api}))["key"].clone();
    let named = with(&[("name", json!("bucket"))]);
    let spent = with(&[("namespace", json!("api")), ("identifier", json!("ann"))]);
    let rule = json!({"name": "slow", "scope": "global", "algorithm": "token_bucket", "burst": 10,
        "limits": [{"limit": 5, "window": "30d", "name": "month"}]});
    client.data("rules.apply", &json!({"rules": [rule]}));
    for (method, body, lines) in [
        ("ratelimit.limit", spent.clone(), None),
        ("limits.peek", spent, None),
        ("keys.verifyKey", json!({"key": key, "ratelimits": [named]}), Some("ratelimits")),
        ("gate.check", json!({"key": key, "ratelimits": [named]}), Some("limits")),
    ] {
        let answer = client.post(method, &body);
        let data = &answer.json["data"];
        let lines =
            lines.map_or_else(|| vec![data], |of| data[of].as_array().unwrap().iter().collect());
        for line in &lines {
            assert_eq!(line["limit"], 10, "{method}: {data}");
            assert!(line["remaining"].as_u64().unwrap() < 10, "{method}: {data}");
        }
        assert_eq!(number(&answer.response, "x-ratelimit-limit"), 10, "{method}");
        let policy =
            item(answer.response.header("ratelimit-policy").unwrap(), &["q", "w"]).unwrap();
        assert_eq!(policy.1, [10, LONG_MS / 500], "{method}");
        let state = item(answer.response.header("ratelimit").unwrap(), &["r", "t"]).unwrap();
        assert_eq!(state.1[0], number(&answer.response, "x-ratelimit-remaining"), "{method}");
    }
}
