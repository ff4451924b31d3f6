//! When a key was last used, across a fleet: written once in half a minute, whoever was asked, and never by a request.

use serde_json::json;

use super::Keys;
use super::fleet::Fleet;
use crate::time::pause;

#[test]
fn when_a_key_was_last_used_is_written_by_the_first_node_alone_in_half_a_minute() {
    let mut fleet = Fleet::of(2, "0");
    let keys = Keys::make(&mut fleet.client(0), 1);
    let verified = |fleet: &Fleet, node: usize| {
        fleet.client(node).data("keys.verifyKey", &json!({"key": keys.good[0]}))["code"].take()
    };
    let noted = |fleet: &Fleet| fleet.sql("SELECT MAX(last_used_at) FROM keys").expect("an answer");
    for node in 0..2 {
        assert_eq!(verified(&fleet, node), "VALID");
        pause(std::time::Duration::from_millis(20));
    }
    assert_eq!(noted(&fleet), "", "no request has waited for that");
    // What is not written yet is at the end.
    assert!(fleet.nodes[0].0.terminate().expect("it ends").success());
    let first = noted(&fleet);
    assert_ne!(first, "");
    assert_eq!(fleet.redis.ask(&["KEYS", "usage:apikey:*"]).lines().count(), 1);
    assert_eq!(fleet.redis.ask(&["KEYS", "usage:project:*"]).lines().count(), 1);
    assert!(fleet.nodes[1].0.terminate().expect("it ends").success());
    assert_eq!(noted(&fleet), first, "the second would have written a later moment");
    fleet.nodes[0].0 = fleet.start(&fleet.nodes[0].1);
    // Without Redis' word everybody writes, which is never wrong.
    fleet.redis.flushall();
    assert_eq!(verified(&fleet, 0), "VALID");
    assert!(fleet.nodes[0].0.terminate().expect("it ends").success());
    assert!(noted(&fleet) > first);
}
