//! Everything around the API itself: probes, metrics, the OpenAPI document, HTTP/2, and paths that are not there.

use std::collections::BTreeSet;

use serde_json::Value;
use tollkeeper_server::routes;

use crate::world::{World, ask, keys};

#[test]
fn probes_answer_without_a_key() {
    let world = World::new();
    let mut client = world.client();
    for (path, text) in [("/livez", "ok\n"), ("/readyz", "ready\n")] {
        let response = client.get(path);
        assert_eq!((response.status, response.text().as_str()), (200, text));
        let head = client.connection.exchange("HEAD", path, &[], b"").unwrap();
        assert_eq!(
            (head.status, head.header("content-length")),
            (200, Some(&*text.len().to_string()))
        );
    }
    let live: Value = serde_json::from_slice(&client.get("/v2/liveness").body).unwrap();
    assert_eq!(
        (keys(&live), &live["data"]["message"]),
        (vec!["data", "meta"], &Value::from("we're cooking"))
    );
}

#[test]
fn metrics_are_valid_open_metrics_and_count_what_happened() {
    let world = World::new();
    let mut client = world.client();
    client.limit(&ask("api", "ann", 1));
    client.limit(&ask("api", "ann", 1));
    client.post("ratelimit.multiLimit", &serde_json::json!([ask("api", "bob", 5)]));
    client.data("limits.peek", &ask("api", "bob", 5));
    let response = client.get("/metrics");
    let kind = response.header("content-type").unwrap();
    assert!(kind.starts_with("application/openmetrics-text; version=1.0.0"), "{kind}");
    let text = response.text();
    assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1);
    assert!(!text.contains("\n\n"), "OpenMetrics has no empty lines");

    let typed: BTreeSet<_> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let mut series = BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name_and_labels, value) = line.rsplit_once(' ').expect("a value");
        assert!(value.parse::<f64>().is_ok(), "{line}");
        assert!(series.insert(name_and_labels), "twice: {line}");
        let name = name_and_labels.split('{').next().unwrap();
        let family = ["_total", "_bucket", "_count", "_sum"]
            .iter()
            .find_map(|ending| name.strip_suffix(ending).filter(|family| typed.contains(family)));
        assert!(typed.contains(family.unwrap_or(name)), "no type: {line}");
    }
    for known in [
        "tollkeeper_checks_total{kind=\"limit\",outcome=\"valid\"} 1",
        "tollkeeper_checks_total{kind=\"limit\",outcome=\"rate_limited\"} 1",
        "tollkeeper_checks_total{kind=\"multi_limit\",outcome=\"valid\"} 1",
        "tollkeeper_checks_total{kind=\"peek\",outcome=\"valid\"} 1",
        "tollkeeper_responses_total{status=\"200\"} 4",
        "tollkeeper_decision_seconds_count 4",
        "tollkeeper_decision_seconds_bucket{le=\"+Inf\"} 4",
        "tollkeeper_cells 2",
        "tollkeeper_degraded 0",
    ] {
        assert!(text.lines().any(|line| line == known), "{known}\n{text}");
    }
    assert!(text.contains("tollkeeper_cache_reads_total{cache=\"root_key\",status=\"miss\"} 1\n"));
}

/// An alarm on a series that nobody writes never rings.
#[test]
fn the_alarms_that_are_shipped_are_about_series_that_are_there() {
    let world = World::new();
    let mut client = world.client();
    // Answers are counted by status, and none has any before the first.
    client.limit(&ask("api", "ann", 1));
    let text = client.get("/metrics").text();
    let rules = include_str!("../../../../../deploy/prometheus/alerts.yml");
    let expressions = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    let name = |expression: &str| {
        let from = &expression[expression.find("tollkeeper_").expect("a series of ours")..];
        let end = from.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(from.len());
        from[..end].to_owned()
    };
    let names: Vec<String> = expressions.map(name).collect();
    assert!(names.len() >= 10);
    for name in names {
        let starts =
            |line: &str| line.strip_prefix(&name).is_some_and(|rest| rest.starts_with(['{', ' ']));
        assert!(text.lines().any(starts), "{name}\n{text}");
    }
}

#[test]
fn the_openapi_document_names_every_route_and_every_route_is_there() {
    let world = World::new();
    let mut client = world.client();
    let response = client.get("/openapi.json");
    assert_eq!(response.header("content-type"), Some("application/json"));
    let document: Value = serde_json::from_slice(&response.body).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let described: BTreeSet<_> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| keys(item).into_iter().map(move |method| (method, &**path)))
        .collect();
    let table: BTreeSet<_> = routes()
        .map(|route| {
            (
                if route.path.starts_with("/v2/") && route.path != "/v2/liveness" {
                    "post"
                } else {
                    "get"
                },
                route.path,
            )
        })
        .collect();
    assert_eq!(described, table);
    for (method, path) in table {
        let response = client.connection.exchange(&method.to_uppercase(), path, &[], b"").unwrap();
        let expected = match method {
            "post" => 400,
            // A proxy that brings nobody's key.
            _ if path.starts_with("/check/") => 401,
            _ => 200,
        };
        assert_eq!(response.status, expected, "{path}");
    }
}

#[test]
fn a_path_that_is_not_there_and_a_wrong_method_are_refused_in_the_envelope() {
    let world = World::new();
    let mut client = world.client();
    let cases = [
        ("GET", "/v2/ratelimit.limit", 405),
        ("POST", "/livez", 405),
        ("GET", "/nope", 404),
        ("POST", "/v2/ratelimit.limit/", 404),
        ("GET", "/", 404),
        ("DELETE", "/v2/limits.reset", 405),
        ("OPTIONS", "/v2/limits.peek", 405),
        ("GET", "/..%2f..%2fetc/passwd", 404),
    ];
    for (method, path, status) in cases {
        let response = client.connection.exchange(method, path, &[], b"").unwrap();
        let json = serde_json::from_slice(&response.body).unwrap();
        let answer = crate::world::Answer { response, json };
        answer.assert_refused(path);
        assert_eq!(answer.status(), status, "{method} {path}");
        if status == 405 {
            let allowed = if path == "/livez" { "GET, HEAD" } else { "POST" };
            assert_eq!(answer.response.header("allow"), Some(allowed));
        }
    }
}

#[test]
fn http2_with_prior_knowledge_gets_the_same_answers() {
    let world = World::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let url = format!("{}/v2/ratelimit.limit", world.server.url());
    let one = || async {
        let request = client.post(&url).bearer_auth(world.server.root_key());
        let response = request.json(&ask("api", "ann", 30)).send().await.unwrap();
        assert_eq!(
            (response.status(), response.version()),
            (reqwest::StatusCode::OK, reqwest::Version::HTTP_2)
        );
        assert!(response.headers().contains_key("ratelimit"));
        response.json::<Value>().await.unwrap()
    };
    let admitted = runtime.block_on(async {
        // Many streams of one connection at once.
        let mut streams = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let sending = client
                .post(&url)
                .bearer_auth(world.server.root_key())
                .json(&ask("api", "ann", 30))
                .send();
            streams.spawn(async move { sending.await.unwrap().json::<Value>().await.unwrap() });
        }
        let answers = streams.join_all().await;
        assert_eq!(keys(&one().await), ["data", "meta"]);
        answers.iter().filter(|answer| answer["data"]["success"] == true).count()
    });
    assert_eq!(admitted, 30);
}
