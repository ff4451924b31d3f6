//! Heads that are no HTTP, or do not say for which host: told so in the envelope, counted, and closed on.

use tollkeeper_testkit::{Connection, Response};

use crate::world::{Answer, World, ask};

/// The one answer to these bytes, behind which the connection ends.
fn only_answer(world: &World, bytes: &[u8]) -> Response {
    let mut connection = Connection::open(world.server.url()).unwrap();
    connection.send(bytes).unwrap();
    let response = connection.receive().unwrap().expect("an answer");
    assert!(!matches!(connection.receive(), Ok(Some(_))), "and closed");
    response
}

fn refused(world: &World, text: &str) -> Answer {
    let response = only_answer(world, text.as_bytes());
    let json = serde_json::from_slice(&response.body)
        .unwrap_or_else(|error| panic!("{error}: {text:?}: {response:?}"));
    let answer = Answer { response, json };
    answer.assert_refused(text);
    answer
}

fn bad_requests(world: &World) -> u64 {
    world.metric("tollkeeper_responses_total{status=\"400\"}")
}

#[test]
fn what_is_no_http_is_told_so_in_the_envelope_and_counted() {
    let world = World::new();
    let line = "POST /v2/ratelimit.limit HTTP/1.1\r\n";
    let garbled = [
        "POST /v2/ratelimit.limit HTTP/9.9\r\nhost: test\r\n\r\n",
        "POST /v2/rate limit.limit HTTP/1.1\r\nhost: test\r\n\r\n",
        "P\0ST /v2/ratelimit.limit HTTP/1.1\r\nhost: test\r\n\r\n",
        "\x16\x03\x01\x02\0\x01\0\x01 HTTP/1.1\r\n\r\n",
        &format!("{line}host: test\r\nbad name: a\r\n\r\n"),
        &format!("{line}host: test\r\na: b\r\n folded\r\n\r\n"),
        &format!("{line}host: test\r\nauthorization: Bearer \x01\r\n\r\n"),
    ];
    for text in garbled {
        assert_eq!(refused(&world, text).code(), "request_head_unreadable", "{text:?}");
    }
    assert_eq!(bad_requests(&world), garbled.len() as u64);
    assert_eq!(world.client().get("/livez").status, 200);
}

#[test]
fn a_request_over_http_1_1_names_one_host_and_an_older_one_need_not() {
    let world = World::new();
    let (key, body) = (world.server.root_key(), ask("api", "ann", 100).to_string());
    let (counted, chunked) = (
        format!("content-length: {}\r\n\r\n{body}", body.len()),
        format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
    );
    let of = |version: &str, hosts: &str, framed: &str| {
        let line = format!("POST /v2/ratelimit.limit HTTP/{version}\r\n{hosts}");
        format!("{line}authorization: Bearer {key}\r\n{framed}")
    };
    let mut told = 0;
    for hosts in ["", "host: a\r\nhost: a\r\n", "host: a\r\nHost: b\r\n"] {
        for framed in [&counted, &chunked] {
            assert_eq!(refused(&world, &of("1.1", hosts, framed)).code(), "host_unclear");
            told += 1;
        }
    }
    assert_eq!((bad_requests(&world), world.spends()), (told, 0));
    assert_eq!(only_answer(&world, of("1.0", "", &counted).as_bytes()).status, 200);
    let closing = of("1.1", "host: \r\nconnection: close\r\n", &counted);
    assert_eq!(only_answer(&world, closing.as_bytes()).status, 200);
}

/// What may come first on a connection: nothing, what is read at once, and what hyper reads.
fn beginnings(world: &World) -> [String; 3] {
    let (key, body) = (world.server.root_key(), ask("api", "ann", 1000).to_string());
    let head = format!(
        "POST /v2/ratelimit.limit HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {key}\r\n"
    );
    let chunks = format!("{:x};note=1\r\n{body}\r\n0\r\ntrailer: a\r\n\r\n", body.len());
    [
        String::new(),
        format!("{head}content-length: {}\r\n\r\n{body}", body.len()),
        format!("{head}transfer-encoding: chunked\r\n\r\n{chunks}"),
    ]
}

/// The refusal of this request, as the first of a connection and behind others; nothing of it is carried out.
fn refused_wherever(world: &World, text: &str, status: u16, code: &str) {
    let counted = || world.metric(&format!("tollkeeper_responses_total{{status=\"{status}\"}}"));
    for before in beginnings(world) {
        let (already, spent) = (counted(), world.spends());
        let what = format!("{:?} behind {before:?}", &text[..text.len().min(300)]);
        let mut connection = Connection::open(world.server.url()).unwrap();
        connection.send(format!("{before}{text}").as_bytes()).unwrap();
        if !before.is_empty() {
            assert_eq!(connection.receive().unwrap().expect("an answer").status, 200, "{what}");
        }
        let response = connection.receive().unwrap().unwrap_or_else(|| panic!("nothing: {what}"));
        let json = serde_json::from_slice(&response.body)
            .unwrap_or_else(|error| panic!("{error}: {what}: {response:?}"));
        let answer = Answer { response, json };
        answer.assert_refused(&what);
        assert_eq!((answer.status(), answer.code()), (status, code), "{what}");
        assert_eq!(answer.response.header("connection"), Some("close"), "{what}");
        assert!(connection.receive().unwrap().is_none(), "closed in order: {what}");
        let good = u64::from(!before.is_empty());
        assert_eq!((counted() - already, world.spends() - spent), (1, good), "{what}");
    }
}

#[test]
fn a_request_whose_end_is_in_doubt_is_told_so_in_the_envelope_and_counted() {
    let world = World::new();
    let (key, body) = (world.server.root_key(), ask("api", "ann", 1000).to_string());
    let length = body.len();
    let chunks = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    let sized = |value: &str| (format!("content-length: {value}\r\n"), &body);
    let coded = |value: &str| (format!("transfer-encoding: {value}\r\n"), &chunks);
    let (one, chunked) =
        (format!("content-length: {length}\r\n"), "transfer-encoding: chunked\r\n");
    for (framing, behind) in [
        (format!("{one}content-length: 3\r\n"), &body),
        (one.repeat(2), &body),
        sized(&format!("{length}, {length}")),
        sized(&format!("+{length}")),
        sized("-1"),
        sized(&format!("{length:#x}")),
        sized(""),
        sized("100000000000000000000000"),
        coded("xchunked"),
        coded("identity"),
        coded("chunked, chunked"),
        (format!("{one}{chunked}"), &chunks),
        (format!("{chunked}{one}"), &chunks),
    ] {
        let head = "POST /v2/ratelimit.limit HTTP/1.1\r\nhost: test\r\n";
        let text = format!("{head}authorization: Bearer {key}\r\n{framing}\r\n{behind}");
        refused_wherever(&world, &text, 400, "framing_unclear");
    }
    let old = format!(
        "POST /v2/ratelimit.limit HTTP/1.0\r\nauthorization: Bearer {key}\r\n{chunked}\r\n{chunks}"
    );
    refused_wherever(&world, &old, 400, "framing_unclear");
    assert_eq!(world.client().get("/livez").status, 200);
}

#[test]
fn a_head_beyond_its_bounds_is_told_431_in_the_envelope_and_counted() {
    let world = World::new();
    let long = "v".repeat(70_000);
    for text in [
        format!("GET /livez HTTP/1.1\r\nhost: test\r\nx-long: {long}\r\n\r\n"),
        format!("GET /{long} HTTP/1.1\r\nhost: test\r\n\r\n"),
        format!("GET /livez HTTP/1.1\r\nhost: test\r\n{}\r\n", "x-one-more: y\r\n".repeat(100)),
    ] {
        refused_wherever(&world, &text, 431, "request_head_too_large");
    }
    assert_eq!(world.client().get("/livez").status, 200);
}

#[test]
fn what_a_proxy_asks_is_answered_also_where_a_doubtful_request_stands_behind_it() {
    let world = World::new();
    // Not plain, so that hyper reads it, and from a proxy, of which it looks for an end while it answers.
    let asked = "GET /check/caddy?a=b HTTP/1.1\r\nhost: test\r\n\r\n";
    let doubtful = "POST /v2/ratelimit.limit HTTP/1.1\r\nhost: test\r\ncontent-length: +1\r\n\r\n1";
    let mut connection = Connection::open(world.server.url()).unwrap();
    connection.send([asked, doubtful].concat().as_bytes()).unwrap();
    let told = std::iter::from_fn(|| connection.receive().unwrap());
    let statuses: Vec<_> = told.map(|response| response.status).collect();
    assert_eq!(statuses, [401, 400]);
}
