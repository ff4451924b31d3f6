//! Keys whose requests have to be signed: who has the key alone does not pass, and neither does a request that is sent
//! again. The secret goes in and never comes out.

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tollkeeper_testkit::{Connection, Response};

use super::secrets::assert_nowhere_below;
use super::shared_cache::Fleet;
use super::{Made, api, create, get, text_of, verify, with};
use crate::fleet::PATIENT;
use crate::program::Program;
use crate::time::{eventually, now};
use crate::world::{Client, World, side_by_side};

const SECRET: &str = "canary signing secret 0123456789";
const OTHER: &str = "another signing secret 987654321";
/// SHA-256 of `hello`.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
const FIVE_MINUTES_MS: u64 = 300_000;

#[allow(clippy::disallowed_methods, reason = "a client signs by its own clock")]
fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("a time after 1970").as_millis().try_into().expect("a number")
}

fn value(secret: &str, text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any length");
    mac.update(text.as_bytes());
    hexadecimal(&mac.finalize().into_bytes())
}

/// A signature over a request without a body.
fn signature(secret: &str, at: u64, method: &str, path: &str) -> Value {
    let text = format!("tollkeeper-v1\n{at}\n{method}\n{path}\n");
    json!({"timestamp": at, "value": value(secret, &text)})
}

/// Over `GET /v1/a?b=c`.
fn signed(secret: &str, at: u64) -> Value {
    let signature = signature(secret, at, "GET", "/v1/a?b=c");
    json!({"method": "get", "path": "/v1/a?b=c", "signature": signature})
}

fn code(client: &mut Client, key: &Made, more: Value) -> String {
    text_of(&verify(client, &key.text, more)["code"])
}

fn signing_key(client: &mut Client, more: Value) -> Made {
    let api = api(client);
    create(client, &api, with(json!({"signing": SECRET}), more))
}

#[test]
fn a_key_with_a_secret_takes_its_own_signatures_in_time_and_once() {
    let world = World::new();
    let mut client = world.client();
    let limit = json!([{"name": "calls", "limit": 10, "duration": 60_000, "autoApply": true}]);
    let key = signing_key(&mut client, json!({"ratelimits": limit, "credits": {"remaining": 100}}));
    let at = unix_ms();
    let good = signed(SECRET, at);
    let answer = verify(&mut client, &key.text, good.clone());
    assert_eq!(answer["code"], "VALID", "{answer}");
    assert_eq!(answer["ratelimits"].as_array().map(Vec::len), Some(1), "{answer}");
    let refused = [
        ("absent", json!({"method": "GET", "path": "/v1/a?b=c"})),
        ("with another secret", signed(OTHER, at + 1)),
        ("of another path", with(signed(SECRET, at + 2), json!({"path": "/v1/a"}))),
        ("of another method", with(signed(SECRET, at + 3), json!({"method": "POST"}))),
        ("too old", signed(SECRET, at - FIVE_MINUTES_MS - 1_000)),
        ("too far ahead", signed(SECRET, at + FIVE_MINUTES_MS + 60_000)),
        ("repeated", good.clone()),
        ("repeated in capitals", {
            let mut shouted = good.clone();
            shouted["signature"]["value"] =
                json!(text_of(&good["signature"]["value"]).to_uppercase());
            shouted
        }),
    ];
    for (what, more) in refused {
        let answer = verify(&mut client, &key.text, more);
        assert_eq!(
            (&answer["code"], &answer["valid"]),
            (&json!("FORBIDDEN"), &json!(false)),
            "{what}"
        );
        assert!(answer.get("ratelimits").is_none() && answer.get("credits").is_none(), "{what}");
    }
    let edge = verify(&mut client, &key.text, signed(SECRET, at - FIVE_MINUTES_MS + 60_000));
    assert_eq!(
        (&edge["code"], &edge["credits"]),
        (&json!("VALID"), &json!(98)),
        "only two were paid"
    );
    assert_eq!(edge["ratelimits"][0]["remaining"], 8, "{edge}");
}

#[test]
fn a_signed_body_hash_counts_and_is_read_in_either_case() {
    let world = World::new();
    let mut client = world.client();
    let key = signing_key(&mut client, json!({}));
    let (at, body) = (unix_ms(), "ab".repeat(32));
    let value = value(SECRET, &format!("tollkeeper-v1\n{at}\n\n\n{body}"));
    let with_body =
        |body: &str| json!({"signature": {"timestamp": at, "value": value, "bodySha256": body}});
    assert_eq!(code(&mut client, &key, with_body(&"ac".repeat(32))), "FORBIDDEN");
    assert_eq!(code(&mut client, &key, with_body(&body.to_uppercase())), "VALID");
}

#[test]
fn a_key_without_a_secret_ignores_signatures() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let key = create(&mut client, &api, json!({}));
    let twice = signed(OTHER, 1);
    for _ in 0..2 {
        assert_eq!(code(&mut client, &key, twice.clone()), "VALID");
    }
    assert!(get(&mut client, &key.id).get("signing").is_none());
}

#[test]
fn a_bad_signature_or_secret_is_400_with_every_fault() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let wrong = json!({"timestamp": "now", "value": "f", "bodySha256": 1});
    let places = ["body.signature.timestamp", "body.signature.value", "body.signature.bodySha256"];
    for method in ["keys.verifyKey", "gate.check", "gate.explain"] {
        let answer = client.post(method, &json!({"key": "k", "signature": wrong}));
        answer.assert_refused(method);
        assert_eq!(answer.places(), places, "{method}");
    }
    let answer =
        client.post("keys.createKey", &json!({"apiId": api, "tier": "", "signing": "short"}));
    answer.assert_refused("a short secret");
    assert_eq!(answer.places(), ["body.tier", "body.signing"]);
}

#[test]
fn a_secret_is_shown_only_as_being_there_and_goes_with_null() {
    let world = World::new();
    let mut client = world.client();
    let key = signing_key(&mut client, json!({}));
    let api = api(&mut client);
    let second = create(&mut client, &api, json!({"signing": SECRET}));
    let whoami = client.data("keys.whoami", &json!({"key": key.text}));
    let listed = client.data("apis.listKeys", &json!({"apiId": api}))[0].take();
    assert_eq!((&whoami["keyId"], &listed["keyId"]), (&json!(key.id), &json!(second.id)));
    for shown in [get(&mut client, &key.id), whoami, listed] {
        assert_eq!(shown["signing"], true, "{shown}");
        assert!(!shown.to_string().contains(SECRET));
    }
    client.data("keys.updateKey", &json!({"keyId": key.id, "name": "n"}));
    assert_eq!(code(&mut client, &key, json!({})), "FORBIDDEN", "another change keeps it");
    client.data("keys.updateKey", &json!({"keyId": key.id, "signing": OTHER}));
    assert_eq!(code(&mut client, &key, signed(SECRET, unix_ms())), "FORBIDDEN");
    assert_eq!(code(&mut client, &key, signed(OTHER, unix_ms())), "VALID");
    client.data("keys.updateKey", &json!({"keyId": key.id, "signing": null}));
    assert_eq!(code(&mut client, &key, json!({})), "VALID");
    assert!(get(&mut client, &key.id).get("signing").is_none());
}

#[test]
fn a_rerolled_and_an_imported_key_want_signatures_too() {
    let world = World::new();
    let mut client = world.client();
    let key = signing_key(&mut client, json!({}));
    let new = client.data("keys.rerollKey", &json!({"keyId": key.id, "expiration": 0}));
    let new = Made { id: text_of(&new["keyId"]), text: text_of(&new["key"]) };
    assert_eq!(code(&mut client, &new, json!({})), "FORBIDDEN");
    assert_eq!(code(&mut client, &new, signed(SECRET, unix_ms())), "VALID");

    let api = api(&mut client);
    let keys = json!([{"hash": HELLO, "signing": SECRET}]);
    let migrated =
        client.data("keys.migrateKeys", &json!({"migrationId": "m", "apiId": api, "keys": keys}));
    let imported =
        Made { id: text_of(&migrated["migrated"][0]["keyId"]), text: "hello".to_owned() };
    assert_eq!(code(&mut client, &imported, json!({})), "FORBIDDEN");
    assert_eq!(code(&mut client, &imported, signed(SECRET, unix_ms())), "VALID");
}

#[test]
fn the_gate_asks_for_a_signature_and_explains_which_fault_it_has() {
    let world = World::new();
    let mut client = world.client();
    let key = signing_key(&mut client, json!({}));
    let about = |more: Value| with(json!({"key": key.text}), more);
    let at = unix_ms();
    let explained = |client: &mut Client, more: Value| {
        let data = client.data("gate.explain", &about(more));
        (text_of(&data["code"]), text_of(&data["reason"]))
    };
    for (more, said) in [
        (json!({}), "has no signature"),
        (signed(OTHER, at), "does not fit"),
        (signed(SECRET, 1), "five minutes"),
    ] {
        let (code, reason) = explained(&mut client, more.clone());
        assert!(code == "FORBIDDEN" && reason.contains(said), "{code} {reason}");
        let data = client.data("gate.check", &about(more));
        assert_eq!((&data["code"], &data["status"]), (&json!("FORBIDDEN"), &json!(403)), "{data}");
    }
    // A look uses nothing up.
    assert_eq!(explained(&mut client, signed(SECRET, at)).0, "VALID");
    let data = client.data("gate.check", &about(signed(SECRET, at)));
    assert_eq!((&data["allowed"], &data["limits"]), (&json!(true), &json!([])), "{data}");
    let (code, reason) = explained(&mut client, signed(SECRET, at));
    assert!(code == "FORBIDDEN" && reason.contains("used before"), "{code} {reason}");
    let data = client.data("gate.check", &about(signed(SECRET, at)));
    assert_eq!((&data["code"], data.get("retryAfterMs")), (&json!("FORBIDDEN"), None), "{data}");
}

#[test]
fn a_proxy_hands_the_signature_on_in_a_header() {
    let world = World::new();
    let mut client = world.client();
    let key = signing_key(&mut client, json!({}));
    let ask = |signature: Option<&str>| -> Response {
        let mut headers = vec![
            ("x-forwarded-method", "DELETE"),
            ("x-forwarded-uri", "/v1/users?page=2"),
            ("x-forwarded-for", "203.0.113.9"),
            ("x-api-key", &*key.text),
        ];
        headers.extend(signature.map(|signature| ("x-tollkeeper-signature", signature)));
        let mut connection = Connection::open(world.server.url()).expect("the server listens");
        connection.exchange("GET", "/check/caddy", &headers, b"").expect("an answer")
    };
    let line = |secret: &str, at: u64, body: &str| {
        let text = format!("tollkeeper-v1\n{at}\nDELETE\n/v1/users?page=2\n{body}");
        format!("t={at},v1={}", value(secret, &text))
    };
    let (at, body) = (unix_ms(), "cd".repeat(32));
    let good = line(SECRET, at, "");
    let with_body = format!("{},body={body}", line(SECRET, at, &body));
    for (header, said) in [
        (None, "has no signature"),
        (Some("v1=1"), "has no signature"),
        (Some(&*line(OTHER, at, "")), "does not fit"),
        (Some(&*line(SECRET, at - FIVE_MINUTES_MS - 1_000, "")), "five minutes"),
    ] {
        let refused = ask(header);
        let problem: Value = serde_json::from_slice(&refused.body).expect("JSON");
        assert_eq!((refused.status, &problem["code"]), (403, &json!("FORBIDDEN")), "{problem}");
        assert!(text_of(&problem["detail"]).contains(said), "{problem}");
        assert_eq!(refused.header("x-ratelimit-limit"), None);
    }
    for header in [good.as_str(), &with_body] {
        let passed = ask(Some(header));
        assert_eq!(passed.status, 200, "{}", passed.text());
        assert_eq!(passed.header("x-ratelimit-limit"), None, "its counter is nobody's business");
        let again = ask(Some(header));
        assert!(again.status == 403 && again.text().contains("used before"), "{}", again.text());
    }
}

#[test]
fn a_signature_counts_once_in_the_whole_fleet_and_a_secret_goes_everywhere_within_a_second() {
    let fleet = Fleet::with(2, &[PATIENT]);
    let mut clients = fleet.clients();
    let key = signing_key(&mut clients[0], json!({}));
    for round in 0..20_u64 {
        let asked = signed(SECRET, unix_ms() + round);
        let codes = [0, 1, 0, 1].map(|node| code(&mut clients[node], &key, asked.clone()));
        assert_eq!(codes, ["VALID", "FORBIDDEN", "FORBIDDEN", "FORBIDDEN"], "round {round}");
    }
    for round in 0..10_u64 {
        let asked = signed(SECRET, unix_ms() + 1_000 + round);
        let codes = side_by_side(6, |at| {
            let mut client = fleet.clients().remove(at % 2);
            code(&mut client, &key, asked.clone())
        });
        let passed = codes.iter().filter(|code| *code == "VALID").count();
        assert_eq!(passed, 1, "round {round}: {codes:?}");
    }
    // Of all that Redis holds, nothing shows the secret.
    let names = fleet.redis.ask(&["KEYS", "*"]);
    assert!(names.lines().count() > 1, "{names}");
    for name in names.lines() {
        for shown in [fleet.redis.ask(&["DUMP", name]), name.to_owned()] {
            assert!(!shown.contains(SECRET) && !shown.contains("canary"), "{name}");
        }
    }
    let dump = fleet.dump();
    assert!(
        !dump.contains(SECRET) && !dump.contains(&hexadecimal(SECRET.as_bytes())),
        "in the database"
    );

    clients[0].data("keys.updateKey", &json!({"keyId": key.id, "signing": null}));
    let cleared = now();
    eventually("it is cleared on the other node", || {
        code(&mut clients[1], &key, json!({})) == "VALID"
    });
    // The bound is a second; a loaded machine gets as much again.
    assert!(cleared.elapsed() < Duration::from_secs(2), "{:?}", cleared.elapsed());
}

#[test]
fn a_used_signature_is_remembered_over_a_restart() {
    let mut world = World::new();
    let mut client = world.client();
    let key = signing_key(&mut client, json!({}));
    let used = signed(SECRET, unix_ms());
    assert_eq!(code(&mut client, &key, used.clone()), "VALID");
    world.restart();
    let mut client = world.client();
    assert_eq!(code(&mut client, &key, used), "FORBIDDEN");
    assert_eq!(code(&mut client, &key, signed(SECRET, unix_ms())), "VALID");
}

#[test]
fn without_redis_a_node_still_takes_new_signatures_and_each_of_them_once() {
    let mut fleet = Fleet::with(1, &[PATIENT]);
    let mut client = fleet.clients().remove(0);
    let key = signing_key(&mut client, json!({}));
    let before = signed(SECRET, unix_ms());
    assert_eq!(code(&mut client, &key, before.clone()), "VALID");
    fleet.redis.stop();
    let mut taken = json!(null);
    eventually("a new one is taken", || {
        taken = signed(SECRET, unix_ms());
        code(&mut client, &key, taken.clone()) == "VALID"
    });
    for _ in 0..3 {
        assert_eq!(code(&mut client, &key, taken.clone()), "UNAVAILABLE");
        assert_eq!(code(&mut client, &key, before.clone()), "UNAVAILABLE");
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

#[test]
fn a_signing_secret_leaves_no_trace_even_in_the_most_talkative_log() {
    let mut world = World::with(&[("TOLLKEEPER_LOG", "trace")]);
    let mut client = world.client();
    let key = signing_key(&mut client, json!({}));
    client.data("keys.updateKey", &json!({"keyId": key.id, "signing": format!("{SECRET} two")}));
    client.data("keys.rerollKey", &json!({"keyId": key.id, "expiration": 60_000}));
    let mut refusals = String::new();
    for (method, wrong) in [
        ("keys.createKey", json!({"apiId": "none", "signing": SECRET})),
        ("keys.createKey", json!({"apiId": "api_1", "signing": format!("{SECRET}\u{7f}")})),
        ("keys.updateKey", json!({"keyId": key.id, "signing": SECRET, "more": 1})),
        ("keys.updateKey", json!({"keyId": key.id, "signing": [SECRET]})),
    ] {
        let answer = client.post(method, &wrong);
        assert!(answer.status() >= 400, "{method} {wrong}: {}", answer.json);
        refusals += &answer.json.to_string();
    }
    assert_eq!(code(&mut client, &key, signed(SECRET, unix_ms())), "FORBIDDEN");
    let once = client.post_once(
        "keys.updateKey",
        &json!({"keyId": key.id, "signing": SECRET}),
        "the same change",
    );
    assert_eq!(once.status(), 200);
    assert_eq!(code(&mut client, &key, signed(SECRET, unix_ms())), "VALID");
    let shown = [
        refusals,
        client.get("/metrics").text(),
        client.data("audit.changes", &json!({})).to_string(),
    ];
    world.server.terminate().expect("it ends");
    for text in shown.iter().chain([&world.server.stderr(), &world.server.stdout()]) {
        assert!(!text.contains("canary"), "{text}");
    }
    assert!(shown[2].contains("\"signing\":true"), "the audit says that there is one");
    assert_nowhere_below(world.data_dir(), "canary signing");
}

#[test]
fn commands_read_the_secret_from_stdin_or_the_environment_and_never_show_it() {
    let world = World::new();
    let mut client = world.client();
    let api = api(&mut client);
    let run = |args: &[&str]| {
        Program::new(args)
            .env("TOLLKEEPER_URL", world.server.url())
            .env("TOLLKEEPER_ROOT_KEY", world.server.root_key())
    };
    let made = run(&["keys", "create", &api, "--signing", "--json"]).stdin(SECRET).run();
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let made: Value = serde_json::from_str(&made.stdout).expect("JSON");
    let key = Made { id: text_of(&made["keyId"]), text: text_of(&made["key"]) };
    assert_eq!(code(&mut client, &key, signed(SECRET, unix_ms())), "VALID");
    let shown = run(&["keys", "get", &key.id]).run();
    assert!(shown.stdout.contains("signing=required") && !shown.stdout.contains(SECRET));
    let changed =
        run(&["keys", "update", &key.id, "--signing"]).env("TOLLKEEPER_SIGNING", OTHER).run();
    assert_eq!(changed.code, Some(0), "{}", changed.stderr);
    assert_eq!(code(&mut client, &key, signed(OTHER, unix_ms())), "VALID");
    let empty = run(&["keys", "update", &key.id, "--signing"]).stdin("").run();
    assert!(
        empty.code == Some(2) && empty.stderr.contains("no signing secret"),
        "{}",
        empty.stderr
    );
    let cleared = run(&["keys", "update", &key.id, "--clear", "signing"]).run();
    assert_eq!(cleared.code, Some(0), "{}", cleared.stderr);
    assert_eq!(code(&mut client, &key, json!({})), "VALID");
}
