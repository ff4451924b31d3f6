//! A request is answered alike whichever way it comes in: counted or in chunks, in one piece or in many, alone or in a row.

use std::time::Duration;

use serde_json::{Value, json};
use tollkeeper_testkit::{Connection, Response};

use crate::time::pause;
use crate::world::{World, ask};

type Headers = Vec<(&'static str, String)>;

/// Requests of every kind of answer: one that is admitted, refused, bad, unauthorized, unknown, or by a wrong method; a proxy's.
fn kinds(world: &World) -> Vec<(&'static str, String, Headers)> {
    let bearer = || vec![("authorization", format!("Bearer {}", world.server.root_key()))];
    let twice = |name| [bearer(), vec![("idempotency-key", name)]].concat();
    let proxied = || {
        [("x-forwarded-method", "GET"), ("x-forwarded-uri", "/a"), ("x-forwarded-for", "10.0.0.1")]
            .map(|(name, value)| (name, value.to_owned()))
            .to_vec()
    };
    let body = ask("api", "ann", 3).to_string();
    let mut never = ask("api", "bob", 3);
    never["cost"] = json!(5);
    vec![
        ("POST /v2/ratelimit.limit", body.clone(), bearer()),
        ("POST /v2/ratelimit.limit", never.to_string(), bearer()),
        ("POST /v2/ratelimit.limit", body.clone(), twice("once".into())),
        ("POST /v2/ratelimit.limit", body.clone(), twice("x".repeat(1_000))),
        ("POST /v2/ratelimit.limit", "{\"nonsense\":1}".into(), bearer()),
        ("POST /v2/ratelimit.limit", String::new(), bearer()),
        ("POST /v2/ratelimit.limit", body.clone(), Vec::new()),
        ("POST /v2/ratelimit.limit", body.clone(), [bearer(), bearer()].concat()),
        (
            "POST /v2/ratelimit.limit",
            body.clone(),
            [bearer(), vec![("authorization", "Bearer other".to_owned())]].concat(),
        ),
        ("POST /v2/keys.verifyKey", json!({ "key": "nobody" }).to_string(), bearer()),
        ("POST /v2/permissions.updateRole", json!({ "roleId": "none" }).to_string(), bearer()),
        ("POST /v2/nothing.here", body.clone(), bearer()),
        ("POST /livez", body, bearer()),
        ("POST /check/caddy", String::new(), proxied()),
        ("POST /check/caddy", String::new(), Vec::new()),
    ]
}

/// The head of a request up to its framing.
fn head(line: &str, headers: &[(&str, String)]) -> String {
    let lines: String =
        headers.iter().map(|(name, value)| [name, ": ", value, "\r\n"].concat()).collect();
    format!("{line} HTTP/1.1\r\nhost: test\r\n{lines}")
}

fn counted(line: &str, body: &str, headers: &[(&str, String)]) -> String {
    format!("{}content-length: {}\r\n\r\n{body}", head(line, headers), body.len())
}

fn in_chunks(line: &str, body: &str, headers: &[(&str, String)]) -> String {
    let chunk =
        if body.is_empty() { String::new() } else { format!("{:x}\r\n{body}\r\n", body.len()) };
    format!("{}transfer-encoding: chunked\r\n\r\n{chunk}0\r\n\r\n", head(line, headers))
}

/// Status, names of headers, and an error, where it is one: what does not differ from one time to the next.
type Essence = (u16, Vec<String>, Value);

fn essence(response: &Response) -> Essence {
    let mut names: Vec<_> = response.headers.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    let body: Value = serde_json::from_str(&response.text()).unwrap_or(Value::Null);
    let error = body.get("error").or_else(|| body.get("detail")).cloned();
    (response.status, names, error.unwrap_or(Value::Null))
}

/// The answers to every kind, on one connection to a server of their own, and what they spent there.
fn answers(frame: fn(&str, &str, &[(&str, String)]) -> String) -> (Vec<Essence>, u64) {
    let world = World::new();
    let mut connection = Connection::open(world.server.url()).unwrap();
    let answers = kinds(&world).into_iter().map(|(line, body, headers)| {
        connection.send(frame(line, &body, &headers).as_bytes()).unwrap();
        essence(&connection.receive().unwrap().expect("an answer"))
    });
    (answers.collect(), world.spends())
}

#[test]
fn a_body_is_answered_alike_whether_it_is_counted_or_in_chunks() {
    let (counted, spent) = answers(counted);
    let (in_chunks, spent_in_chunks) = answers(in_chunks);
    for (at, (one, other)) in counted.iter().zip(&in_chunks).enumerate() {
        assert_eq!(one, other, "request {at}");
    }
    assert_eq!((counted.len(), spent), (in_chunks.len(), spent_in_chunks));
}

#[test]
fn a_request_in_pieces_is_one_request() {
    let world = World::new();
    let bearer = [("authorization", format!("Bearer {}", world.server.root_key()))];
    let whole = counted("POST /v2/ratelimit.limit", &ask("api", "ann", 100).to_string(), &bearer);
    let head = whole.find("\r\n\r\n").unwrap();
    let mut asked = 0;
    let cuts: [&[usize]; 6] = [
        &[1],
        &[head],
        &[head + 4],
        &[10, head + 2, head + 9],
        &[2, 4, 6, 8, 10],
        &[whole.len() - 1],
    ];
    let mut connection = Connection::open(world.server.url()).unwrap();
    for cut in cuts {
        let mut from = 0;
        for to in cut.iter().copied().chain([whole.len()]) {
            connection.send(&whole.as_bytes()[from..to]).unwrap();
            pause(Duration::from_millis(20));
            from = to;
        }
        asked += 1;
        let answer = connection.receive().unwrap().expect("an answer");
        let left = (100 - asked).to_string();
        assert_eq!(answer.header("x-ratelimit-remaining"), Some(&*left), "{cut:?}");
    }
    assert_eq!(world.spends(), asked);
}

#[test]
fn a_connection_goes_on_behind_whatever_is_not_plain() {
    let world = World::new();
    let bearer = [("authorization", format!("Bearer {}", world.server.root_key()))];
    let (line, body) = ("POST /v2/ratelimit.limit", ask("api", "ann", 100).to_string());
    let (plain, odd) = (counted(line, &body, &bearer), in_chunks(line, &body, &bearer));
    let mut connection = Connection::open(world.server.url()).unwrap();
    // One by one, and all at once.
    for requests in [&[&plain, &plain, &odd, &plain][..], &[&plain, &odd, &odd]] {
        for request in requests {
            connection.send(request.as_bytes()).unwrap();
            assert_eq!(connection.receive().unwrap().expect("an answer").status, 200);
        }
    }
    let mut connection = Connection::open(world.server.url()).unwrap();
    connection.send([&*plain, &plain, &odd, &plain, &odd].concat().as_bytes()).unwrap();
    for _ in 0..5 {
        assert_eq!(connection.receive().unwrap().expect("an answer").status, 200);
    }
    assert_eq!(world.spends(), 12);
}

#[test]
fn who_says_that_this_is_the_last_request_is_answered_and_closed_on() {
    let world = World::new();
    let bearer = format!("Bearer {}", world.server.root_key());
    let headers = [("authorization", bearer), ("connection", "close".to_owned())];
    let request = counted("POST /v2/ratelimit.limit", &ask("api", "ann", 9).to_string(), &headers);
    let mut connection = Connection::open(world.server.url()).unwrap();
    connection.send(request.as_bytes()).unwrap();
    assert_eq!(connection.receive().unwrap().expect("an answer").status, 200);
    assert!(connection.receive().expect("closed in order").is_none());
}

/// Changes are answered from another task, so that each of these waits for a moment and more can come meanwhile.
#[test]
fn who_sends_faster_than_it_is_answered_waits_and_is_answered_in_order() {
    const REQUESTS: usize = 2_000;
    let world = World::new();
    let one = "POST /v2/apis.createApi HTTP/1.1\r\nhost: test\r\ncontent-length: 0\r\n\r\n";
    let last = "GET /livez HTTP/1.1\r\nhost: test\r\n\r\n";
    let mut connection = Connection::open(world.server.url()).unwrap();
    connection.send((one.repeat(REQUESTS) + last).as_bytes()).unwrap();
    for _ in 0..REQUESTS {
        assert_eq!(connection.receive().unwrap().expect("an answer").status, 400);
    }
    assert_eq!(connection.receive().unwrap().expect("an answer").status, 200);
}

#[test]
fn who_has_sent_everything_and_says_so_is_answered_all_the_same() {
    let world = World::new();
    let change = "POST /v2/apis.createApi HTTP/1.1\r\nhost: test\r\ncontent-length: 0\r\n\r\n";
    let probe = "GET /livez HTTP/1.1\r\nhost: test\r\n\r\n";
    let mut connection = Connection::open(world.server.url()).unwrap();
    connection.send([change, probe].concat().as_bytes()).unwrap();
    connection.end().unwrap();
    let statuses = [400, 200].map(|_| connection.receive().unwrap().map(|answer| answer.status));
    assert_eq!(statuses, [Some(400), Some(200)]);
}

#[test]
fn a_change_that_was_sent_whole_is_answered_also_when_nothing_more_will_come() {
    let world = World::new();
    let bearer = [("authorization", format!("Bearer {}", world.server.root_key()))];
    let (line, probe) = ("POST /v2/apis.createApi", "GET /livez HTTP/1.0\r\n\r\n");
    let of = |name: &str| json!({ "name": name }).to_string();
    let requests = [
        ("counted", counted(line, &of("counted"), &bearer)),
        ("in chunks", in_chunks(line, &of("chunks"), &bearer)),
        ("old", counted(line, &of("old"), &bearer).replace("HTTP/1.1", "HTTP/1.0")),
        ("with a query", counted(&format!("{line}?a=b"), &of("query"), &bearer)),
        ("an old probe", probe.to_owned()),
    ];
    for (way, request) in requests {
        let mut connection = Connection::open(world.server.url()).unwrap();
        connection.send(request.as_bytes()).unwrap();
        connection.end().unwrap();
        let answer = connection.receive().unwrap_or_else(|error| panic!("{way}: {error}"));
        assert_eq!(answer.map(|answer| answer.status), Some(200), "{way}");
        assert!(!matches!(connection.receive(), Ok(Some(_))), "and closed: {way}");
    }
}
