//! Who may ask: a missing, garbled or unknown root key, told apart.

use serde_json::json;
use tollkeeper_server::{Effect, routes};
use tollkeeper_testkit::Connection;

use crate::world::{Answer, World, ask};

fn asked(world: &World, authorization: Option<&str>, body: &str) -> Answer {
    let mut connection = Connection::open(world.server.url()).unwrap();
    let headers: Vec<_> = authorization.map(|value| ("authorization", value)).into_iter().collect();
    let sent = connection.exchange("POST", "/v2/ratelimit.limit", &headers, body.as_bytes());
    let response = sent.unwrap();
    let json = serde_json::from_slice(&response.body).unwrap();
    Answer { response, json }
}

#[test]
fn a_missing_key_is_a_mistake_of_the_request_and_a_garbled_one_is_named_so() {
    let world = World::new();
    let body = ask("api", "ann", 5).to_string();
    let missing = asked(&world, None, &body);
    missing.assert_refused("no Authorization");
    assert_eq!((missing.status(), missing.code()), (400, "invalid_input"));
    assert_eq!(missing.places(), ["header.Authorization"]);

    let key = world.server.root_key();
    let garbled =
        ["Basic x", "Bearer", "Bearer ", "Bearer\t", "", key, "bearerx", "Token abc", "é"];
    for value in garbled {
        let answer = asked(&world, Some(value), &body);
        answer.assert_refused(value);
        assert_eq!((answer.status(), answer.code()), (400, "malformed"), "{value:?}");
    }
    assert_eq!(world.spends(), 0);
}

#[test]
fn an_unknown_key_is_401_and_never_repeated_back() {
    let world = World::new();
    let body = ask("api", "ann", 5).to_string();
    let key = world.server.root_key();
    let long = "k".repeat(4000);
    for wrong in [
        "wrong-key-of-some-length",
        &key[1..],
        &format!("{key}x"),
        &key.to_uppercase(),
        &format!("{key}, {key}"),
        "' OR 1=1 --",
        "\u{202e}\u{fffd}",
        &long,
    ] {
        let answer = asked(&world, Some(&format!("Bearer {wrong}")), &body);
        answer.assert_refused(wrong);
        assert_eq!((answer.status(), answer.code()), (401, "key_not_found"), "{wrong}");
        assert_eq!(answer.response.header("www-authenticate"), Some("Bearer"));
        assert!(!answer.response.text().contains(wrong));
    }
    assert_eq!(world.spends(), 0);
}

/// Each round asks for as many unknown keys at the same moment: the third is beyond what is looked up, however slow the machine.
#[test]
fn who_guesses_faster_than_keys_are_looked_up_is_told_429_and_rings_no_alarm_of_5xx() {
    const AT_ONCE: usize = 500;
    const ROUNDS: usize = 4;
    let world = World::new();
    let mut known = world.client();
    known.limit(&ask("api", "ann", 5));
    let open = |_| Connection::open(world.server.url()).unwrap();
    let mut guessers: Vec<_> = (0..AT_ONCE).map(open).collect();
    let mut spared = 0;
    for round in 0..ROUNDS {
        for (at, guesser) in guessers.iter_mut().enumerate() {
            let body = ask("api", "ann", 5).to_string();
            let head = format!(
                "POST /v2/ratelimit.limit HTTP/1.1\r\nhost: test\r\nauthorization: Bearer guess-{round}-{at}\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            guesser.send((head + &body).as_bytes()).unwrap();
        }
        for guesser in &mut guessers {
            let told = guesser.receive().unwrap().expect("an answer");
            if told.status == 401 {
                continue;
            }
            let kind = told.header("content-type");
            let (again, text) = (told.header("retry-after"), told.text());
            assert_eq!((told.status, again), (429, Some("1")), "{text}");
            assert_eq!(kind, Some("application/problem+json"));
            assert!(text.contains("/errors/user/too_many_requests/unknown_keys\""), "{text}");
            spared += 1;
        }
    }
    let counted = world.metric("tollkeeper_cache_loads_refused_total{cache=\"root_key\"}");
    assert!(spared > 0 && spared == counted, "{spared} of {counted}");
    assert_eq!(world.metric("tollkeeper_responses_total{status=\"503\"}"), 0);
    assert_eq!(known.limit(&ask("api", "ann", 5))["success"], true);
}

#[test]
fn the_scheme_is_read_without_regard_to_case() {
    let world = World::new();
    let body = ask("api", "ann", 5).to_string();
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let answer = asked(&world, Some(&format!("{scheme} {}", world.server.root_key())), &body);
        assert_eq!(answer.status(), 200, "{scheme}");
    }
}

#[test]
fn what_is_wrong_with_the_body_comes_before_who_asks() {
    let world = World::new();
    let answer = asked(&world, None, &json!({"limit": 0}).to_string());
    let places = answer.places();
    assert_eq!(places[0], "header.Authorization");
    assert_eq!(places.len(), 5, "{places:?}");
    let answer = asked(&world, Some("Bearer wrong"), "{}");
    assert_eq!((answer.status(), answer.code()), (400, "invalid_input"));
    assert_eq!(answer.places().len(), 4);
}

#[test]
fn every_route_names_a_missing_key_and_a_bad_idempotency_key_beside_what_is_wrong_with_the_body() {
    let world = World::new();
    let mut client = world.client();
    let bearer = format!("Bearer {}", world.server.root_key());
    let body = json!({"nonsense": 1}).to_string();
    for route in routes().filter(|route| route.permission.is_some()) {
        let (path, mut places_of) = (route.path, |headers: &[(&str, &str)]| {
            let sent = client.connection.exchange("POST", route.path, headers, body.as_bytes());
            let response = sent.unwrap();
            let json = serde_json::from_slice(&response.body).unwrap();
            let answer = Answer { response, json };
            assert_eq!((answer.status(), answer.code()), (400, "invalid_input"), "{}", route.path);
            answer.places().into_iter().map(str::to_owned).collect::<Vec<_>>()
        });
        assert_eq!(places_of(&[])[0], "header.Authorization", "{path}");
        if route.effect != Effect::Asks {
            let places = places_of(&[("authorization", &bearer), ("idempotency-key", "é")]);
            assert!(places.contains(&"header.Idempotency-Key".to_owned()), "{path}: {places:?}");
            assert!(places.len() > 1, "{path}: {places:?}");
        }
    }
}

#[test]
fn two_different_keys_are_refused_whichever_comes_first() {
    let world = World::new();
    let body = ask("api", "ann", 5).to_string();
    let (good, bad) = (format!("Bearer {}", world.server.root_key()), "Bearer another".to_owned());
    for (lines, status) in [([&good, &bad], 400), ([&bad, &good], 400), ([&good, &good], 200)] {
        let headers = lines.map(|line| ("authorization", &**line));
        let mut connection = Connection::open(world.server.url()).unwrap();
        let path = "/v2/ratelimit.limit";
        let response = connection.exchange("POST", path, &headers, body.as_bytes()).unwrap();
        assert_eq!(response.status, status, "{}", response.text());
        let named = response.text().contains("two different Authorization headers");
        assert_eq!(named, status == 400, "{}", response.text());
    }
    assert_eq!(world.spends(), 1);
}

#[test]
fn two_different_idempotency_keys_are_refused_whichever_way_the_request_comes() {
    let world = World::new();
    let bearer = format!("Bearer {}", world.server.root_key());
    let limit = ask("api", "ann", 5).to_string();
    let project = json!({"name": "payments"}).to_string();
    for (path, body) in [("/v2/ratelimit.limit", &limit), ("/v2/apis.createApi", &project)] {
        for (keys, status) in [(["a", "b"], 400), (["b", "a"], 400), (["a", "a"], 200)] {
            let headers = [
                ("authorization", &*bearer),
                ("idempotency-key", keys[0]),
                ("idempotency-key", keys[1]),
                // hyper reads those that ask to close.
                ("connection", if keys[0] == "b" { "close" } else { "keep-alive" }),
            ];
            let mut connection = Connection::open(world.server.url()).unwrap();
            let response = connection.exchange("POST", path, &headers, body.as_bytes()).unwrap();
            let json = serde_json::from_slice(&response.body).unwrap();
            let answer = Answer { response, json };
            assert_eq!(answer.status(), status, "{path} {keys:?}: {}", answer.json);
            if status == 400 {
                answer.assert_refused(path);
                assert_eq!(answer.places(), ["header.Idempotency-Key"]);
            }
        }
    }
    assert_eq!(world.spends(), 1);
}
