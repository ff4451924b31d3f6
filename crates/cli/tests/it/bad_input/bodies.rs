//! A table of bodies that no endpoint takes. Each is refused with 400 and its faults, and leaves no trace in a counter.

use serde_json::{Value, json};

use crate::world::{Client, LONG_MS, World, ask};

/// A good body with one field put in as raw text, so that it need not be valid JSON.
fn with(field: &str, raw: &str) -> Vec<u8> {
    let good = [
        ("namespace", "\"api\""),
        ("identifier", "\"victim\""),
        ("limit", "10"),
        ("duration", "2592000000"),
    ];
    let kept = good.iter().filter(|(name, _)| *name != field);
    let mut fields: Vec<_> = kept.map(|(name, value)| format!("\"{name}\":{value}")).collect();
    fields.push(format!("\"{field}\":{raw}"));
    format!("{{{}}}", fields.join(",")).into_bytes()
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// Numbers that are no whole number within bounds, wherever one is expected.
const NO_NUMBERS: [&str; 18] = [
    "-1",
    "1.5",
    "1.0",
    "-0",
    "1e400",
    "-1e400",
    "1e2",
    "9007199254740992",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999999",
    "NaN",
    "Infinity",
    "0x10",
    "\"10\"",
    "null",
    "true",
    "[10]",
];

/// Texts that are no JSON string of 1 to 512 characters.
const NO_TEXTS: [&str; 13] = [
    "\"\"",
    "null",
    "7",
    "true",
    "{}",
    "[\"a\"]",
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\"\\x41\"",
    "\"\\u00\"",
    "\"a\nb\"",
    "\"a\0b\"",
    "'victim'",
];

fn hostile() -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    for field in ["limit", "duration", "cost", "burst"] {
        all.extend(NO_NUMBERS.iter().map(|raw| (format!("{field} {raw}"), with(field, raw))));
    }
    for field in ["namespace", "identifier", "algorithm", "consistency", "onOutage"] {
        all.extend(NO_TEXTS.iter().map(|raw| (format!("{field} {raw}"), with(field, raw))));
    }
    for (what, field, raw) in [
        ("limit 0", "limit", "0"),
        ("burst 0", "burst", "0"),
        ("duration 999", "duration", "999"),
        ("duration above 30 days", "duration", "2592000001"),
        ("unknown algorithm", "algorithm", "\"magic\""),
        ("unknown consistency", "consistency", "\"Exact\""),
        ("unknown onOutage", "onOutage", "\"maybe\""),
        ("unknown field", "costs", "1"),
        ("unknown field in another case", "Limit", "10"),
        ("a field with a hostile name", "\\u0000\\r\\n\\u202e", "1"),
        ("a prototype", "__proto__", "{\"cost\":0}"),
        ("the same field twice", "cost", "1,\"cost\":0"),
        ("the same identifier twice", "cost", "1,\"identifier\":\"other\""),
        ("a comment", "cost", "1/**/"),
        ("a trailing comma", "cost", "1,"),
    ] {
        all.push((what.into(), with(field, raw)));
    }
    for (what, characters) in [("513 characters", "x"), ("513 characters of four bytes", "🦀")] {
        let text = format!("\"{}\"", characters.repeat(513));
        all.push((what.into(), with("identifier", &text)));
        all.push((format!("namespace of {what}"), with("namespace", &text)));
    }
    all.push((
        "900 KB of identifier".into(),
        with("identifier", &format!("\"{}\"", "y".repeat(900_000))),
    ));
    for levels in [2, 32, 33, 1_000, 100_000] {
        all.push((format!("{levels} lists"), nested(levels).into_bytes()));
        all.push((format!("{levels} lists in a field"), with("cost", &nested(levels))));
        let objects = "{\"a\":".repeat(levels) + "1" + &"}".repeat(levels);
        all.push((format!("{levels} objects"), objects.into_bytes()));
        all.push((format!("{levels} open brackets"), "[{\"a\":".repeat(levels / 2).into_bytes()));
    }
    let log = with("algorithm", "\"sliding_log\",\"limit\":10001");
    all.push((
        "a log of 10001".into(),
        String::from_utf8(log).unwrap().replacen("\"limit\":10,", "", 1).into(),
    ));
    let good = String::from_utf8(with("cost", "1")).unwrap();
    let broken: [(&str, Vec<u8>); 22] = [
        ("empty", Vec::new()),
        ("spaces", b"  \r\n\t ".to_vec()),
        ("null", b"null".to_vec()),
        ("true", b"true".to_vec()),
        ("a number", b"1".to_vec()),
        ("a string", b"\"x\"".to_vec()),
        ("an empty list", b"[]".to_vec()),
        ("an empty object", b"{}".to_vec()),
        ("a list of the values", b"[\"api\",\"victim\",10,60000]".to_vec()),
        ("a list of the object", format!("[{good}]").into_bytes()),
        ("truncated", good.as_bytes()[..good.len() - 1].to_vec()),
        ("half of it", good.as_bytes()[..good.len() / 2].to_vec()),
        ("trailing garbage", format!("{good}x").into_bytes()),
        ("two objects", format!("{good}{good}").into_bytes()),
        ("a byte order mark", [b"\xef\xbb\xbf", good.as_bytes()].concat()),
        ("UTF-16", good.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("a NUL before it", [b"\0", good.as_bytes()].concat()),
        ("a NUL behind it", [good.as_bytes(), b"\0"].concat()),
        ("a form", b"namespace=api&identifier=victim&limit=10&duration=60000".to_vec()),
        ("XML", b"<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY b \"b\">]><a>&b;</a>".to_vec()),
        ("gzip", vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xab, 0x56, 2, 0]),
        ("random bytes", (0..=255).collect()),
    ];
    all.extend(broken.map(|(what, body)| (what.to_owned(), body)));
    for invalid in [&b"\xff"[..], b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"] {
        let body = [&good.as_bytes()[..20], invalid, &good.as_bytes()[20..]].concat();
        all.push((format!("invalid UTF-8 {invalid:x?}"), body));
    }
    all
}

fn assert_untouched(world: &World, client: &mut Client, spends: u64) {
    for identifier in ["victim", "other"] {
        let peeked = client.data("limits.peek", &ask("api", identifier, 10));
        assert_eq!(peeked["used"], 0, "{identifier}");
    }
    assert_eq!(world.spends(), spends, "nothing was counted as a decision");
    assert_eq!(world.metric("tollkeeper_responses_total{status=\"500\"}"), 0);
}

#[test]
fn no_hostile_body_is_answered_by_anything_but_a_400_that_explains_itself() {
    let world = World::new();
    let mut client = world.client();
    client.limit(&json!({"namespace": "api", "identifier": "victim", "limit": 10, "duration": LONG_MS, "cost": 0}));
    let (spends, table) = (world.spends(), hostile());
    assert!(table.len() >= 150, "{}", table.len());
    for (what, body) in &table {
        // The same connection throughout: a bad body must not cost the caller its connection.
        let answer = client
            .post_bytes("ratelimit.limit", body)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        answer.assert_refused(what);
        assert_eq!((answer.status(), answer.code()), (400, "invalid_input"), "{what}");
        assert!(!answer.places().is_empty(), "{what}");
        assert!(
            answer.response.body.len() < 20_000,
            "{what}: {} bytes",
            answer.response.body.len()
        );
        let wrapped = [b"[", &body[..], b"]"].concat();
        let bundle = client.post_bytes("ratelimit.multiLimit", &wrapped).unwrap();
        bundle.assert_refused(what);
    }
    assert_untouched(&world, &mut client, spends);
}

#[test]
fn every_other_endpoint_refuses_the_same_nonsense() {
    let world = World::new();
    let mut client = world.client();
    client.limit(&ask("api", "kept", 10));
    let methods = [
        "limits.peek",
        "limits.reset",
        "ratelimit.setOverride",
        "ratelimit.getOverride",
        "ratelimit.listOverrides",
        "ratelimit.deleteOverride",
        "ratelimit.deleteNamespace",
    ];
    let bodies: [&[u8]; 9] = [
        b"",
        b"[]",
        b"{}",
        b"null",
        b"{\"namespace\":null}",
        b"{\"namespace\":7}",
        b"{\"namespace\":\"api\",\"unknown\":1}",
        b"{\"namespace\":\"api\"",
        b"{\"namespace\":\"api\",\"namespace\":\"api\"}",
    ];
    for method in methods {
        for body in bodies {
            let what = format!("{method} {}", String::from_utf8_lossy(body));
            let answer = client.post_bytes(method, body).unwrap();
            answer.assert_refused(&what);
            assert_eq!(answer.status(), 400, "{what}: {}", answer.json);
        }
    }
    let over = |limit: Value, duration: Value| json!({"namespace": "api", "identifier": "kept", "limit": limit, "duration": duration});
    for (limit, duration) in [
        (json!(-1), json!(1000)),
        (json!(1), json!(999)),
        (json!(1.5), json!(1000)),
        (json!("1"), json!(1000)),
    ] {
        client.post("ratelimit.setOverride", &over(limit, duration)).assert_refused("setOverride");
    }
    for page in [json!(0), json!(101), json!(-1), json!("10")] {
        let answer =
            client.post("ratelimit.listOverrides", &json!({"namespace": "api", "limit": page}));
        answer.assert_refused("listOverrides");
    }
    assert_eq!(client.data("limits.peek", &ask("api", "kept", 10))["used"], 1);
}

#[test]
fn all_mistakes_of_a_body_are_named_at_once_with_what_to_do() {
    let world = World::new();
    let mut client = world.client();
    let body = json!({"identifier": 7, "limit": 0, "duration": 1.5, "cost": -1, "algorithm": "magic", "lmiit": 3});
    let answer = client.post("ratelimit.limit", &body);
    let mut places = answer.places();
    places.sort_unstable();
    let expected = [
        "body.algorithm",
        "body.cost",
        "body.duration",
        "body.identifier",
        "body.limit",
        "body.lmiit",
        "body.namespace",
    ];
    assert_eq!(places, expected);
    for error in answer.json["error"]["errors"].as_array().unwrap() {
        assert!(
            !error["message"].as_str().unwrap().is_empty()
                && !error["fix"].as_str().unwrap().is_empty()
        );
    }
    let bundle = json!([ask("a", "x", 1), {"namespace": "a"}, ask("a", "x", 0)]);
    let answer = client.post("ratelimit.multiLimit", &bundle);
    let places = answer.places();
    assert_eq!(
        places,
        ["body[1].identifier", "body[1].limit", "body[1].duration", "body[2].limit"]
    );
}

#[test]
fn identifiers_are_taken_up_to_512_characters_whatever_is_in_them() {
    let world = World::new();
    let mut client = world.client();
    let texts = [
        "x".repeat(512),
        "🦀".repeat(512),
        "\0".into(),
        "a\r\nset-cookie: b".into(),
        "\u{202e}olleh".into(),
        "*".into(),
        "{}".into(),
        "../../etc/passwd".into(),
        "'; DROP TABLE overrides; --".into(),
        "\u{feff}".into(),
        "e\u{301}".into(),
        "\u{e9}".into(),
        " ".into(),
        "%00".into(),
        "\u{fffd}".into(),
        "\u{10ffff}".into(),
    ];
    for _ in 0..2 {
        for text in &texts {
            client.limit(&ask("api", text, 10));
        }
    }
    for text in &texts {
        assert_eq!(client.data("limits.peek", &ask("api", text, 10))["used"], 2, "{text:?}");
    }
}
