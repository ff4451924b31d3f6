//! As many connections as there are places, and not one more.

use serde_json::{Value, json};
use tollkeeper_testkit::Connection;

use crate::time::eventually;
use crate::world::{Client, World, ask, keys};

#[test]
fn the_seventeenth_of_sixteen_places_is_refused_and_counted_and_the_others_go_on() {
    let world = World::with(&[("TOLLKEEPER_MAX_CONNECTIONS", "16")]);
    let mut clients: Vec<Client> = (0..16).map(|_| world.client()).collect();
    for client in &mut clients {
        client.limit(&ask("api", "ann", 1000));
    }
    for _ in 0..3 {
        let mut one_more = Connection::open(world.server.url()).expect("the kernel accepts");
        // Told to come back before it has said anything.
        let answer = one_more.receive();
        let told = answer.expect("readable").expect("an answer");
        assert_eq!((told.status, told.header("retry-after")), (503, Some("1")));
        let json: Value = serde_json::from_slice(&told.body).expect("JSON");
        assert_eq!((keys(&json), &json["error"]["status"]), (vec!["error", "meta"], &json!(503)));
    }
    for client in &mut clients {
        assert_eq!(client.limit(&ask("api", "ann", 1000))["success"], true);
    }
    let metrics = clients[0].get("/metrics").text();
    for line in ["tollkeeper_connections 16", "tollkeeper_connections_refused_total 3"] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
    clients.truncate(15);
    eventually("a place is free", || {
        let opened = Connection::open(world.server.url());
        let answer = opened.and_then(|mut one| one.exchange("GET", "/livez", &[], b""));
        answer.is_ok_and(|told| told.status == 200)
    });
}
