//! Requests whose end is a matter of opinion, each with a second request hidden behind the doubt.
//! The server answers at most once and closes; the hidden request is never carried out.

use std::time::Duration;

use tollkeeper_testkit::Connection;

use crate::world::{World, ask};

/// Silence after which nothing more is expected. A late answer is still found by the counters.
const SILENCE: Duration = Duration::from_millis(300);

/// A request that would be carried out if the server took it for one.
fn hidden(world: &World) -> String {
    let body = ask("api", "smuggled", 10).to_string();
    format!(
        "POST /v2/ratelimit.limit HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
        world.server.root_key(),
        body.len()
    )
}

/// Framing headers, and what stands before the hidden request; `{n}` is the length of everything behind the head.
const DOUBTFUL: [(&str, &str); 63] = [
    // Both lengths at once, in either order and spelling.
    ("content-length: {n}\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
    ("transfer-encoding: chunked\r\ncontent-length: {n}\r\n", "0\r\n\r\n"),
    ("content-length: 5\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
    ("transfer-encoding: chunked\r\ncontent-length: 5\r\n", "0\r\n\r\n"),
    ("content-length: 0\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding: Chunked\r\nContent-Length: 0\r\n", "0\r\n\r\n"),
    ("transfer-encoding: identity, chunked\r\ncontent-length: {n}\r\n", "0\r\n\r\n"),
    ("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
    ("transfer-encoding: gzip, chunked\r\n", "0\r\n\r\n"),
    // Transfer encodings that are not what they look like.
    ("transfer-encoding: xchunked\r\n", "0\r\n\r\n"),
    ("transfer-encoding: chunkedx\r\n", "0\r\n\r\n"),
    ("transfer-encoding: chunked, identity\r\n", "0\r\n\r\n"),
    ("transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n", "0\r\n\r\n"),
    ("transfer-encoding: identity\r\n", "0\r\n\r\n"),
    ("transfer-encoding: gzip\r\n", "0\r\n\r\n"),
    ("transfer-encoding: \"chunked\"\r\n", "0\r\n\r\n"),
    ("transfer-encoding: chunked;q=1\r\n", "0\r\n\r\n"),
    ("transfer-encoding:\r\n", "0\r\n\r\n"),
    ("transfer-encoding: \x0bchunked\r\n", "0\r\n\r\n"),
    ("transfer-encoding: chunked\x0b\r\n", "0\r\n\r\n"),
    ("transfer-encoding\x0b: chunked\r\n", "0\r\n\r\n"),
    ("transfer-encoding : chunked\r\n", "0\r\n\r\n"),
    ("transfer-encoding\t: chunked\r\n", "0\r\n\r\n"),
    (" transfer-encoding: chunked\r\n", "0\r\n\r\n"),
    ("x: y\r\n transfer-encoding: chunked\r\n", "0\r\n\r\n"),
    ("transfer-encoding:\r\n chunked\r\n", "0\r\n\r\n"),
    ("x: y\rtransfer-encoding: chunked\r\n", "0\r\n\r\n"),
    ("x: y\0\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
    // Lengths that disagree or are none.
    ("content-length: 5\r\ncontent-length: 6\r\n", "12345"),
    ("content-length: 0\r\ncontent-length: {n}\r\n", ""),
    ("content-length: {n}\r\ncontent-length: 0\r\n", ""),
    ("content-length: 5, 5\r\n", "12345"),
    ("content-length: 5, 6\r\n", "12345"),
    ("content-length: +5\r\n", "12345"),
    ("content-length: -5\r\n", "12345"),
    ("content-length: 0x5\r\n", "12345"),
    ("content-length: 5.0\r\n", "12345"),
    ("content-length: 5 5\r\n", "12345"),
    ("content-length: 5;\r\n", "12345"),
    ("content-length: \"5\"\r\n", "12345"),
    ("content-length: five\r\n", "12345"),
    ("content-length:\r\n", "12345"),
    ("content-length: 18446744073709551616\r\n", "12345"),
    ("content-length: 18446744073709551621\r\n", "12345"),
    ("content-length : 5\r\n", "12345"),
    (" content-length: 5\r\n", "12345"),
    ("content-length: 5\r\n 6\r\n", "12345"),
    ("x: y\r\n\tcontent-length: 5\r\n", "12345"),
    ("content-length\0: 5\r\n", "12345"),
    ("content-length: \x0b5\r\n", "12345"),
    // Chunks whose size is no size, or whose end is not where it should be.
    ("transfer-encoding: chunked\r\n", "+0\r\n\r\n"),
    ("transfer-encoding: chunked\r\n", "-1\r\n\r\n"),
    ("transfer-encoding: chunked\r\n", "0x0\r\n\r\n"),
    ("transfer-encoding: chunked\r\n", "\r\n\r\n"),
    ("transfer-encoding: chunked\r\n", "g\r\n\r\n"),
    ("transfer-encoding: chunked\r\n", " 0\r\n\r\n"),
    ("transfer-encoding: chunked\r\n", "0 0\r\n\r\n"),
    ("transfer-encoding: chunked\r\n", "0\n\n"),
    ("transfer-encoding: chunked\r\n", "0\r\r\n\r\n"),
    ("transfer-encoding: chunked\r\n", "1\r\nab\r\n0\r\n\r\n"),
    ("transfer-encoding: chunked\r\n", "ffffffffffffffff\r\n"),
    ("transfer-encoding: chunked\r\n", "10000000000000000\r\n\r\n"),
    ("transfer-encoding: chunked\r\n", "0;\x0bx=\"\n\"\r\n\r\n"),
];

/// Sends one request with another hidden behind it, and says what came back.
fn answers(world: &World, line: &str, framing: &str, behind: &str) -> Vec<u16> {
    let mut connection = Connection::open(world.server.url()).unwrap();
    let key = world.server.root_key();
    let raw =
        format!("{line}\r\nhost: test\r\nauthorization: Bearer {key}\r\n{framing}\r\n{behind}");
    // The server may close at the first doubtful byte.
    let _ = connection.send(raw.as_bytes());
    let responses = connection.receive_all(SILENCE).unwrap();
    responses.iter().map(|response| response.status).collect()
}

#[test]
fn no_request_of_doubtful_length_carries_a_second_one_in() {
    let world = World::new();
    world.client().limit(&ask("api", "seen", 10));
    let (spends, hidden) = (world.spends(), hidden(&world));
    for (framing, before) in DOUBTFUL {
        let behind = format!("{before}{hidden}");
        let framing = framing.replace("{n}", &behind.len().to_string());
        let statuses = answers(&world, "POST /v2/ratelimit.limit HTTP/1.1", &framing, &behind);
        let refused = statuses.iter().all(|status| (400..500).contains(status));
        assert!(statuses.len() <= 1 && refused, "{framing:?} {before:?}: {statuses:?}");
        // A path that takes no body must not be an easier way in.
        let statuses = answers(&world, "GET /livez HTTP/1.1", &framing, &behind);
        assert!(statuses.len() <= 1, "{framing:?} {before:?}: {statuses:?}");
        assert_eq!(world.spends(), spends, "carried out: {framing:?} {before:?}");
    }
    let smuggled = world.client().data("limits.peek", &ask("api", "smuggled", 10));
    assert_eq!(smuggled["used"], 0);
}

#[test]
fn a_body_that_nobody_reads_is_skipped_and_not_taken_for_a_request() {
    let world = World::new();
    let hidden = hidden(&world);
    let framing = format!("content-length: {}\r\n", hidden.len());
    let chunked = format!("{:x}\r\n{hidden}\r\n0\r\n\r\n", hidden.len());
    for line in ["GET /livez HTTP/1.1", "POST /nope HTTP/1.1", "GET /v2/ratelimit.limit HTTP/1.1"] {
        assert_eq!(answers(&world, line, &framing, &hidden).len(), 1, "{line}");
        let statuses = answers(&world, line, "transfer-encoding: chunked\r\n", &chunked);
        assert_eq!(statuses.len(), 1, "{line}");
    }
    assert_eq!(world.spends(), 0);
}

#[test]
fn request_lines_and_versions_that_are_none_are_refused() {
    let world = World::new();
    let rest = format!("host: test\r\nauthorization: Bearer {}\r\n", world.server.root_key());
    let body = ask("api", "smuggled", 10).to_string();
    let framed = format!("{rest}content-length: {}\r\n\r\n{body}", body.len());
    for line in [
        "POST /v2/ratelimit.limit\r\n",
        "POST /v2/ratelimit.limit HTTP/9.9\r\n",
        "POST  /v2/ratelimit.limit HTTP/1.1\r\n",
        "POST /v2/ratelimit.limit  HTTP/1.1\r\n",
        "POST /v2/ratelimit.limit HTTP/1.1 \r\n",
        "POST /v2/rate limit.limit HTTP/1.1\r\n",
        "P\0ST /v2/ratelimit.limit HTTP/1.1\r\n",
        "POST\t/v2/ratelimit.limit HTTP/1.1\r\n",
        "POST v2/ratelimit.limit HTTP/1.1\r\n",
        "\x16\x03\x01\x02\0\x01\0\x01\r\n",
    ] {
        let mut connection = Connection::open(world.server.url()).unwrap();
        let _ = connection.send(format!("{line}{framed}").as_bytes());
        for response in connection.receive_all(SILENCE).unwrap() {
            assert!((400..500).contains(&response.status), "{line:?}: {response:?}");
        }
    }
    assert_eq!(world.spends(), 0);
}

#[test]
fn lines_that_end_in_a_bare_line_feed_are_one_request_and_no_more() {
    let world = World::new();
    let body = ask("api", "ann", 10).to_string();
    let raw = format!(
        "POST /v2/ratelimit.limit HTTP/1.1\nhost: test\nauthorization: Bearer {}\ncontent-length: {}\n\n{body}",
        world.server.root_key(),
        body.len()
    );
    let mut connection = Connection::open(world.server.url()).unwrap();
    connection.send(raw.as_bytes()).unwrap();
    let responses = connection.receive_all(SILENCE).unwrap();
    assert_eq!(responses.len(), 1);
    assert!(world.spends() <= 1);
}

#[test]
fn requests_sent_ahead_are_answered_one_by_one_in_order() {
    let world = World::new();
    let one = hidden(&world);
    let mut connection = Connection::open(world.server.url()).unwrap();
    connection.send(one.repeat(20).as_bytes()).unwrap();
    for left in (0..10).rev() {
        let response = connection.receive().unwrap().expect("an answer");
        assert_eq!(response.header("x-ratelimit-remaining"), Some(&*left.to_string()));
    }
    for _ in 0..10 {
        assert!(
            connection.receive().unwrap().expect("an answer").text().contains("\"success\":false")
        );
    }
    assert_eq!(world.spends(), 20);
}
