//! Too much: bodies above a megabyte however they are sent, batches above a hundred, heads above their bounds.

use std::time::Duration;

use serde_json::json;
use tollkeeper_testkit::Connection;

use crate::http2::{
    DATA, END_HEADERS, END_STREAM, Frame, HEADERS, Http2, Method, PING, RST_STREAM, asks_for, frame,
};
use crate::time::now;
use crate::world::{Answer, World, ask};

const HUGE: usize = 5_000_000;
const SILENCE: Duration = Duration::from_secs(2);

fn head(world: &World, framing: &str) -> String {
    format!(
        "POST /v2/ratelimit.limit HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\n{framing}\r\n",
        world.server.root_key()
    )
}

fn answer(connection: &mut Connection) -> Answer {
    let response = connection.receive().expect("readable").expect("an answer");
    let json = serde_json::from_slice(&response.body).expect("JSON");
    Answer { response, json }
}

#[test]
fn a_body_above_a_megabyte_is_413_with_and_without_a_declared_length() {
    let world = World::new();
    let filler = vec![b' '; HUGE];
    let declared = format!("content-length: {HUGE}\r\n");
    let chunk = format!("{:x}\r\n", filler.len());
    let small: Vec<u8> = (0..HUGE / 50_000)
        .flat_map(|_| [b"c350\r\n".as_slice(), &filler[..50_000], b"\r\n"].concat())
        .collect();
    for (framing, body) in [
        (&*declared, filler.clone()),
        ("transfer-encoding: chunked\r\n", [chunk.as_bytes(), &filler, b"\r\n0\r\n\r\n"].concat()),
        ("transfer-encoding: chunked\r\n", [&small[..], b"0\r\n\r\n"].concat()),
    ] {
        let mut connection = Connection::open(world.server.url()).unwrap();
        // The server may close before it has all of it: whether it was sent does not matter, the answer does.
        let _ =
            connection.send(head(&world, framing).as_bytes()).and_then(|()| connection.send(&body));
        let refused = answer(&mut connection);
        refused.assert_refused(framing);
        assert_eq!(
            (refused.status(), refused.code()),
            (413, "request_body_too_large"),
            "{framing}"
        );
    }
    let just_right = format!("{}{}", " ".repeat((1 << 20) - 200), ask("api", "ann", 5));
    let padded = format!("{just_right}{}", " ".repeat((1 << 20) - just_right.len()));
    let mut client = world.client();
    assert_eq!(client.post_bytes("ratelimit.limit", padded.as_bytes()).unwrap().status(), 200);
    let above = format!("{padded} ");
    assert_eq!(client.post_bytes("ratelimit.limit", above.as_bytes()).unwrap().status(), 413);
    assert_eq!(world.spends(), 1);
}

/// As Node's fetch and Python's http.client do.
fn sent_before_reading(world: &World, head: &str, body: &[u8]) -> (Connection, u16) {
    let mut connection = Connection::open(world.server.url()).unwrap();
    connection.send(head.as_bytes()).unwrap();
    for piece in body.chunks(64 << 10) {
        connection.send(piece).unwrap_or_else(|error| panic!("closed on: {error}: {head}"));
        crate::time::pause(Duration::from_millis(1));
    }
    let status = connection.receive().unwrap_or_else(|error| panic!("{error}: {head}"));
    (connection, status.expect("an answer").status)
}

#[test]
fn whoever_sends_everything_before_it_reads_learns_why_it_was_refused() {
    let world = World::new();
    let filler = vec![b' '; HUGE];
    let key = world.server.root_key();
    for (line, status) in [
        ("POST /v2/ratelimit.limit", 413),
        ("POST /v2/keys.createKey", 413),
        ("POST /v2/no.such", 404),
        ("PUT /v2/ratelimit.limit", 405),
        ("POST /livez", 405),
        ("POST /check/caddy", 403),
    ] {
        let head = format!(
            "{line} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {key}\r\ncontent-length: {HUGE}\r\n\r\n"
        );
        let (mut connection, got) = sent_before_reading(&world, &head, &filler);
        assert_eq!(got, status, "{line}");
        let response = connection.exchange("GET", "/livez", &[], b"").unwrap();
        assert_eq!(response.status, 200, "the connection is still good behind {line}");
    }
    assert_eq!(world.spends(), 0);
}

/// Reads until the answer on this stream has ended; nobody is told to stop meanwhile.
fn read_answer(connection: &mut Http2, stream: u32) {
    let is_last = |frame: &Frame| frame.stream == stream && frame.flags & END_STREAM != 0;
    loop {
        let frame = connection.receive();
        assert_ne!(frame.kind, RST_STREAM, "{frame:?}");
        if [HEADERS, DATA].contains(&frame.kind) && is_last(&frame) {
            return;
        }
    }
}

/// nghttp2 (curl) and h2 of Python throw an answer away whose stream is reset before they have sent everything.
#[test]
fn over_http2_a_refusal_does_not_reset_the_stream_while_its_body_is_sent() {
    let world = World::new();
    let mut connection = Http2::open(world.server.url(), &[]);
    for (stream, path) in [(1, "/v2/nope"), (3, "/livez"), (5, "/v2/ratelimit.limit")] {
        connection.send(&frame(HEADERS, END_HEADERS, stream, &asks_for(Method::Post, path)));
        // Without a length the last one is too large, or not, only when it has ended.
        let early = path != "/v2/ratelimit.limit";
        if early {
            read_answer(&mut connection, stream);
        }
        connection.send(&frame(DATA, 0, stream, &[b' '; 10_000]));
        connection.send(&frame(DATA, END_STREAM, stream, b" "));
        if !early {
            read_answer(&mut connection, stream);
        }
        connection.send(&frame(PING, 0, 0, b"all read"));
        let told = std::iter::from_fn(|| Some(connection.receive()));
        let until_seen: Vec<_> = told.take_while(|frame| frame.kind != PING).collect();
        assert!(until_seen.iter().all(|frame| frame.kind != RST_STREAM), "{until_seen:?}");
    }
}

#[test]
fn over_http2_a_refused_body_that_never_ends_holds_its_stream_for_two_seconds() {
    let world = World::new();
    let mut connection = Http2::open(world.server.url(), &[]);
    connection.send(&frame(HEADERS, END_HEADERS, 1, &asks_for(Method::Post, "/v2/nope")));
    read_answer(&mut connection, 1);
    let begun = now();
    let told = std::iter::from_fn(|| Some(connection.receive()));
    let reset = told.into_iter().find(|frame| frame.kind == RST_STREAM).expect("an end");
    assert_eq!((reset.stream, &*reset.payload), (1, &[0; 4][..]), "without an error");
    let held = begun.elapsed();
    assert!((1..10).contains(&held.as_secs()), "{held:?}");
}

#[test]
fn a_refused_body_is_not_read_without_end() {
    let world = World::new();
    let mut connection = Connection::open(world.server.url()).unwrap();
    let declared = format!("content-length: {}\r\n", 1_u64 << 40);
    connection.send(head(&world, &declared).as_bytes()).unwrap();
    let piece = vec![b' '; 1 << 20];
    let taken = (0..256).take_while(|_| connection.send(&piece).is_ok()).count();
    assert!(taken < 64, "{taken} MiB were taken");
    // And slowly: it may be held for two seconds, and the looks at a connection.
    let mut connection = Connection::open(world.server.url()).unwrap();
    connection.send(head(&world, &declared).as_bytes()).unwrap();
    assert_eq!(answer(&mut connection).status(), 413);
    assert!(connection.receive().expect("an end in order").is_none());
}

#[test]
fn bytes_without_any_length_are_no_body() {
    let world = World::new();
    let mut connection = Connection::open(world.server.url()).unwrap();
    let body = ask("api", "victim", 5).to_string();
    connection.send(format!("{}{body}\r\n\r\n", head(&world, "")).as_bytes()).unwrap();
    let statuses: Vec<_> =
        connection.receive_all(SILENCE).unwrap().iter().map(|response| response.status).collect();
    assert!(statuses.iter().all(|status| *status == 400), "{statuses:?}");
    assert_eq!(world.spends(), 0);
}

#[test]
fn a_body_in_chunks_is_as_good_as_one_with_its_length() {
    let world = World::new();
    let mut connection = Connection::open(world.server.url()).unwrap();
    let chunk = |part: &str| format!("{:x};note=1\r\n{part}\r\n", part.len());
    let body = ask("api", "ann", 5).to_string();
    let (first, second) = body.split_at(20);
    let raw = format!(
        "{}{}{}0\r\n\r\n",
        head(&world, "Transfer-Encoding: Chunked\r\n"),
        chunk(first),
        chunk(second)
    );
    for left in [4, 3] {
        connection.send(raw.as_bytes()).unwrap();
        assert_eq!(answer(&mut connection).json["data"]["remaining"], left);
    }
}

#[test]
fn a_batch_holds_1_to_100_entries() {
    let world = World::new();
    let mut client = world.client();
    for (count, status) in [(0, 400), (1, 200), (100, 200), (101, 400), (5_000, 400)] {
        let entries: Vec<_> = (0..count)
            .map(|_| json!({"namespace": "a", "identifier": "x", "limit": 1000, "duration": 60000}))
            .collect();
        let answer = client.post("ratelimit.multiLimit", &json!(entries));
        assert_eq!(answer.status(), status, "{count}");
        if status == 400 {
            answer.assert_refused(&count.to_string());
            assert_eq!(answer.places(), ["body"]);
        }
    }
    assert_eq!(world.spends(), 2);
}

#[test]
fn heads_beyond_their_bounds_are_refused_and_the_server_goes_on() {
    let world = World::new();
    let many = "x-one-more: y\r\n".repeat(200);
    let long_header = format!("x-long: {}\r\n", "v".repeat(200_000));
    let long_path = format!("GET /{} HTTP/1.1\r\nhost: test\r\n\r\n", "p".repeat(100_000));
    for raw in [head(&world, &many), head(&world, &long_header), long_path] {
        let mut connection = Connection::open(world.server.url()).unwrap();
        let _ = connection.send(raw.as_bytes());
        let responses = connection.receive_all(SILENCE).unwrap();
        assert!(responses.len() <= 1, "{responses:?}");
        for response in &responses {
            assert!((400..500).contains(&response.status), "{response:?}");
        }
    }
    assert_eq!(world.client().get("/livez").status, 200);
    assert_eq!(world.spends(), 0);
}

#[test]
fn a_compressed_body_is_not_unpacked() {
    let world = World::new();
    let mut connection = Connection::open(world.server.url()).unwrap();
    let bomb = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xed, 0xc1, 1, 1, 0, 0];
    let headers = [("content-encoding", "gzip"), ("authorization", "Bearer x")];
    let response = connection.exchange("POST", "/v2/ratelimit.limit", &headers, &bomb).unwrap();
    assert_eq!(response.status, 415);
    assert!(response.text().contains("must come uncompressed"), "{}", response.text());
    let plain = ask("api", "ann", 5).to_string();
    let key = format!("Bearer {}", world.server.root_key());
    for (coding, status) in [("identity", 200), ("br", 415), ("gzip, identity", 415)] {
        let headers = [("content-encoding", coding), ("authorization", &*key)];
        let response =
            connection.exchange("POST", "/v2/ratelimit.limit", &headers, plain.as_bytes()).unwrap();
        assert_eq!(response.status, status, "{coding}");
    }
}
