//! Clients that take their time: they are cut, counted, and felt by nobody else.

use std::time::Duration;

use serde_json::Value;
use tollkeeper_testkit::{Connection, SlowSockets};

use crate::http2::{END_HEADERS, END_STREAM, HEADERS, Http2, Method, asks_for, frame};
use crate::time::{eventually, now, pause};
use crate::world::{World, ask, side_by_side};

const SLOW: usize = 5_000;
const MIB: u64 = 1 << 20;

/// The most memory that a process has ever held.
fn most_held(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    let kib: u64 = line.trim_end_matches("kB").trim().parse().expect("a number");
    kib << 10
}

#[test]
fn five_thousand_slow_sockets_hurt_nobody_and_are_cut() {
    let world = World::new();
    let mut idle = world.client();
    idle.limit(&ask("api", "idle", 10));
    let address = world.server.url().trim_start_matches("http://").parse().expect("an address");
    let mut slow = SlowSockets::open(address, SLOW).expect("room for as many sockets");
    assert_eq!(slow.trickle(), SLOW);
    eventually("all are accepted", || world.metric("tollkeeper_connections") >= SLOW as u64);

    let begun = now();
    let answered: usize = side_by_side(4, |thread| {
        let mut client = world.client();
        let body = ask("api", &format!("ordinary-{thread}"), 10_000);
        (0..500).filter(|_| client.limit(&body)["success"] == true).count()
    })
    .into_iter()
    .sum();
    assert_eq!(answered, 2_000);
    // Otherwise the ordinary requests would not have been beside the slow ones.
    if begun.elapsed() < Duration::from_secs(5) {
        assert_eq!(slow.trickle(), SLOW, "all were held meanwhile");
    }
    eventually("all are cut", || {
        pause(Duration::from_millis(100));
        slow.trickle() == 0
    });
    assert!(begun.elapsed() > Duration::from_secs(5), "nobody is cut at once");
    let cut = "tollkeeper_connections_timed_out_total";
    eventually("all are counted", || world.metric(cut) >= SLOW as u64);
    assert_eq!(world.metric(cut), SLOW as u64);
    eventually("their places are free", || world.metric("tollkeeper_connections") < 10);
    // Being idle for as long is not being slow.
    assert_eq!(idle.limit(&ask("api", "idle", 10))["remaining"], 8);
}

#[test]
fn half_a_body_is_answered_408_or_cut_and_never_counted() {
    let world = World::new();
    let body = ask("api", "ann", 10).to_string();
    let head = format!(
        "POST /v2/ratelimit.limit HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\n",
        world.server.root_key()
    );
    let (half, _) = body.split_at(body.len() / 2);
    let declared = format!("{head}content-length: {}\r\n\r\n", body.len());
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n", body.len());
    let beginnings = [format!("{declared}{half}"), declared, format!("{chunked}{half}"), chunked];
    side_by_side(beginnings.len(), |at| {
        let mut connection = Connection::open(world.server.url()).expect("open");
        connection.send(beginnings[at].as_bytes()).expect("sent");
        let answer = connection.receive();
        if let Ok(Some(response)) = answer {
            assert_eq!(response.status, 408, "{}", response.text());
            assert!(response.text().contains("request_timeout"));
            assert!(!matches!(connection.receive(), Ok(Some(_))), "and closed");
        }
    });
    // A client that gives up half way is no spend either.
    drop(Connection::open(world.server.url()).map(|mut one| one.send(beginnings[0].as_bytes())));
    assert_eq!(world.spends(), 0);
    assert_eq!(world.client().get("/livez").status, 200);
}

#[test]
fn who_takes_no_byte_of_its_answers_holds_no_copies_of_them() {
    const STREAMS: u32 = 256;
    let world = World::new();
    let size = world.client().get("/openapi.json").body.len() as u64;
    let before = most_held(world.server.pid());
    // A window of nothing for every stream.
    let mut connection = Http2::open(world.server.url(), &[0, 4, 0, 0, 0, 0]);
    let asks = asks_for(Method::Get, "/openapi.json");
    let ask = |at| frame(HEADERS, END_HEADERS | END_STREAM, 2 * at + 1, &asks);
    connection.send(&(0..STREAMS).flat_map(ask).collect::<Vec<_>>());
    let answered = "tollkeeper_responses_total{status=\"200\"}";
    eventually("all are answered", || world.metric(answered) >= u64::from(STREAMS));
    let copies = u64::from(STREAMS) * size;
    assert!(copies > 24 * MIB, "the document is large enough to be seen: {size}");
    let grown = most_held(world.server.pid()) - before;
    assert!(grown < copies / 4, "{grown} of {copies} bytes");
}

#[test]
fn bodies_that_never_end_take_a_bounded_part_of_the_memory_and_small_ones_do_not_wait_for_them() {
    const BODIES: usize = 160;
    let world = World::new();
    world.client().limit(&ask("api", "ann", 10));
    let before = most_held(world.server.pid());
    let head =
        format!("POST /v2/ratelimit.limit HTTP/1.1\r\nhost: test\r\ncontent-length: {MIB}\r\n\r\n");
    let begun = [head.into_bytes(), vec![b' '; (1 << 20) - 1]].concat();
    let mut endless: Vec<_> = (0..BODIES)
        .map(|_| {
            let mut one = Connection::open(world.server.url()).expect("open");
            one.send(&begun).expect("sent, or kept by the kernel");
            one
        })
        .collect();
    let mut ordinary = world.client();
    let waited = now();
    assert_eq!(ordinary.limit(&ask("api", "ann", 10))["remaining"], 8);
    assert!(waited.elapsed() < Duration::from_secs(5));
    let (mut slow, mut crowded) = (0, 0);
    for one in &mut endless {
        let told = one.receive().expect("readable").expect("an answer");
        let json: Value = serde_json::from_slice(&told.body).expect("JSON");
        let kind = json["error"]["type"].as_str().expect("a type");
        match told.status {
            408 => slow += 1,
            429 if kind.ends_with("/user/too_many_requests/large_bodies") => crowded += 1,
            other => panic!("{other}: {json}"),
        }
    }
    assert!(slow > 0 && crowded > 0, "{slow} were slow and {crowded} found no room");
    assert_eq!(world.metric("tollkeeper_bodies_crowded_out_total"), crowded);
    let grown = most_held(world.server.pid()) - before;
    // What every connection has anyway comes on top: together they would hold twice of it.
    assert!(grown < 200 * MIB, "{} MiB", grown / MIB);
}
