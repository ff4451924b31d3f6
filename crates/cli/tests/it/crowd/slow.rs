//! Clients that take their time: they are cut, counted, and felt by nobody else.

use std::time::Duration;

use tollkeeper_testkit::{Connection, SlowSockets};

use crate::time::{eventually, now, pause};
use crate::world::{World, ask, side_by_side};

const SLOW: usize = 5_000;

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
