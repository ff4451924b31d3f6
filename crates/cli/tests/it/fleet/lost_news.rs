//! Nobody is told: neither Redis nor the database can pass on that a key was revoked. Then every node looks for itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tollkeeper_testkit::{Postgres, RedisServer};

use super::{clients, nodes_at};
use crate::time::{eventually, now, pause};
use crate::world::Client;

const LISTENERS: &str =
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";

fn code(client: &mut Client, key: &Value) -> String {
    let data = client.data("keys.verifyKey", &json!({"key": key}));
    data["code"].as_str().expect("a code").to_owned()
}

#[test]
fn a_revoked_key_is_refused_on_every_node_also_with_the_bus_and_the_notices_cut() {
    let postgres = Postgres::start().expect("a database server");
    let database = postgres.database().expect("a database");
    let mut redis = RedisServer::start().expect("a Redis");
    let env = [
        ("TOLLKEEPER_DATABASE_URL", database.url.as_str()),
        ("TOLLKEEPER_SECRET", "one secret for all nodes of a database"),
    ];
    let nodes = nodes_at(&redis.url(), 2, &env);
    let mut clients = clients(&nodes);
    let api = clients[0].data("apis.createApi", &json!({"name": "api"}));
    let keys: Vec<Value> = (0..5)
        .map(|_| clients[0].data("keys.createKey", &json!({"apiId": api["apiId"]})))
        .collect();
    redis.stop();
    let done = AtomicBool::new(false);
    let mut slowest = Duration::ZERO;
    let cut = std::thread::scope(|scope| {
        let cutting = scope.spawn(|| {
            let mut cut = 0_u64;
            while !done.load(Ordering::Relaxed) {
                let said = postgres.ask(&database.name, LISTENERS).expect("an answer");
                cut += said.trim().parse::<u64>().unwrap_or(0);
            }
            cut
        });
        for made in &keys {
            for client in &mut clients {
                assert_eq!(code(client, &made["key"]), "VALID");
            }
            clients[0].data("keys.revoke", &json!({"keyId": made["keyId"]}));
            let revoked = now();
            eventually("it is refused", || code(&mut clients[1], &made["key"]) == "REVOKED");
            slowest = slowest.max(revoked.elapsed());
            pause(Duration::from_millis(100));
        }
        done.store(true, Ordering::Relaxed);
        cutting.join().expect("it ends well")
    });
    assert!(cut > 5, "nobody was cut off: {cut}");
    // Two seconds is the promise; a loaded machine gets as much again.
    assert!(slowest < Duration::from_secs(4), "{slowest:?}");
}
