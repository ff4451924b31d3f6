//! SIGTERM under traffic: what has begun is finished and kept, nothing new is taken, and the end comes soon.

use std::thread;
use std::time::Duration;

use tollkeeper_testkit::Connection;

use crate::time::{eventually, now, pause};
use crate::world::{Client, World, ask};

#[test]
fn a_request_under_way_is_answered_and_kept_when_the_server_is_told_to_end() {
    let mut world = World::new();
    let body = ask("api", "ann", 10).to_string();
    let mut idle = world.client();
    idle.limit(&ask("api", "bob", 10));
    let mut under_way = Connection::open(world.server.url()).expect("open");
    let head = format!(
        "POST /v2/ratelimit.limit HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n",
        world.server.root_key(),
        body.len()
    );
    under_way.send(head.as_bytes()).expect("sent");
    // The server asks for the body, so it is in the middle of this request.
    assert_eq!(under_way.receive().expect("readable").expect("an answer").status, 100);

    let url = world.server.url().to_owned();
    let (told, status) = thread::scope(|scope| {
        let told = now();
        let ending = scope.spawn(|| world.server.terminate());
        eventually("nobody new is let in", || Connection::open(&url).is_err());
        // Connections are told once the door is closed, each by the thread that it is on.
        pause(Duration::from_millis(300));
        under_way.send(body.as_bytes()).expect("sent");
        let response = under_way.receive().expect("readable").expect("an answer");
        assert_eq!((response.status, response.header("connection")), (200, Some("close")));
        assert!(under_way.receive().expect("closed in order").is_none());
        (told, ending.join().expect("no panic").expect("it ends by itself"))
    });
    assert!(told.elapsed() < Duration::from_secs(5), "{:?}", told.elapsed());
    assert!(status.success(), "{status}: {}", world.server.stderr());
    assert!(idle.connection.receive().expect("closed in order").is_none());

    world.start_again();
    let mut client = world.client();
    for identifier in ["ann", "bob"] {
        let used = client.data("limits.peek", &ask("api", identifier, 10))["used"].take();
        assert_eq!(used, 1, "{identifier}");
    }
}

#[test]
fn a_server_that_is_told_to_end_says_so_to_load_balancers_before_it_closes_its_door() {
    let mut world = World::new();
    let url = world.server.url().to_owned();
    let ready = |expected: u16| {
        let probe =
            Connection::open(&url).and_then(|mut one| one.exchange("GET", "/readyz", &[], b""));
        probe.is_ok_and(|answer| answer.status == expected)
    };
    assert!(ready(200));
    let mut kept = Connection::open(&url).expect("a connection");
    let mut alive = || kept.exchange("GET", "/livez", &[], b"").expect("an answer");
    assert_eq!(alive().header("connection"), None);
    thread::scope(|scope| {
        let ending = scope.spawn(|| world.server.terminate());
        eventually("new probes are told not to come", || ready(503));
        assert_eq!(alive().header("connection"), Some("close"), "and clients to come no more");
        ending.join().expect("no panic").expect("it ends by itself");
    });
}

#[test]
fn every_answer_of_a_busy_server_that_is_told_to_end_is_kept() {
    let mut world = World::new();
    let clients: Vec<Client> = (0..8).map(|_| world.client()).collect();
    let answered: u64 = thread::scope(|scope| {
        let spenders: Vec<_> = clients
            .into_iter()
            .map(|mut client| {
                scope.spawn(move || {
                    let body = ask("api", "ann", 1_000_000);
                    let mut answered = 0;
                    while client.try_post("ratelimit.limit", &body).is_ok() {
                        answered += 1;
                    }
                    answered
                })
            })
            .collect();
        pause(Duration::from_millis(300));
        let status = world.server.terminate().expect("it ends by itself");
        assert!(status.success(), "{status}");
        spenders.into_iter().map(|spender| spender.join().expect("no panic")).sum()
    });
    world.start_again();
    let used = world.client().data("limits.peek", &ask("api", "ann", 1_000_000))["used"].as_u64();
    let used = used.expect("a count");
    // One request per client may have been carried out while its answer was lost on the way.
    assert!(answered > 0 && (answered..=answered + 8).contains(&used), "{used} of {answered}");
}

#[test]
fn a_client_that_never_finishes_does_not_hold_the_end_up_for_long() {
    let mut world = World::new();
    let mut stuck = Connection::open(world.server.url()).expect("open");
    stuck
        .send(b"POST /v2/ratelimit.limit HTTP/1.1\r\nhost: test\r\ncontent-length: 10\r\n\r\nx")
        .expect("sent");
    let mut silent = Connection::open(world.server.url()).expect("open");
    silent.send(b"GET /li").expect("sent");
    world.client().get("/livez");
    let told = now();
    let status = world.server.terminate().expect("it ends by itself");
    assert!(status.success(), "{status}");
    assert!(told.elapsed() < Duration::from_secs(20), "{:?}", told.elapsed());
}
