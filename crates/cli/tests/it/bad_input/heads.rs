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
