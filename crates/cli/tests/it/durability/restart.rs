//! SIGTERM and a new start: every counter, override and namespace is as it was.

use serde_json::json;

use crate::world::{ALGORITHMS, LONG_MS, World, ask, start};

#[test]
fn an_orderly_restart_changes_no_counter_of_any_algorithm() {
    let mut world = World::new();
    for round in 1..=3 {
        let mut client = world.client();
        for algorithm in ALGORITHMS {
            client.spend("ann", algorithm, 3);
            (0..4).for_each(|_| client.spend("bob", algorithm, 1));
        }
        world.restart();
        let mut client = world.client();
        for algorithm in ALGORITHMS {
            let used = (client.used("ann", algorithm), client.used("bob", algorithm));
            assert_eq!(used, (3 * round, 4 * round), "{algorithm}, restart {round}");
        }
    }
    assert!(!world.server.stderr().contains("WARN"), "{}", world.server.stderr());
}

#[test]
fn a_denied_caller_stays_denied_until_the_same_moment() {
    let mut world = World::new();
    let mut client = world.client();
    client.limit(&ask("api", "ann", 1));
    let before = client.limit(&ask("api", "ann", 1));
    world.restart();
    let after = world.client().limit(&ask("api", "ann", 1));
    assert_eq!((&before["success"], &after["success"]), (&json!(false), &json!(false)));
    assert_eq!(before["reset"], after["reset"]);
}

#[test]
fn overrides_and_namespaces_are_kept_with_their_ids() {
    let mut world = World::new();
    let mut client = world.client();
    for namespace in ["api", "gone"] {
        client.limit(&ask(namespace, "ann", 5));
    }
    let over = json!({"namespace": "api", "identifier": "a*", "limit": 8, "duration": LONG_MS});
    let id = client.data("ratelimit.setOverride", &over)["overrideId"].take();
    client.data("ratelimit.deleteNamespace", &json!({"namespace": "gone"}));
    for end in [World::restart, World::crash] {
        end(&mut world);
        let mut client = world.client();
        let limited = client.limit(&json!({"namespace": "api", "identifier": "ann", "limit": 5, "duration": LONG_MS, "cost": 0}));
        assert_eq!((&limited["limit"], &limited["overrideId"]), (&json!(8), &id));
        assert_eq!(client.post("ratelimit.limit", &ask("gone", "ann", 5)).status(), 410);
    }
}

#[test]
fn a_second_server_on_the_same_folder_ends_with_a_clear_message_and_harms_nothing() {
    let world = World::new();
    let mut client = world.client();
    client.spend("ann", "sliding_window", 3);
    let refused = start(world.data_dir(), &[]).expect_err("the folder is taken");
    assert_eq!(refused.status.and_then(|status| status.code()), Some(2), "{refused}");
    let folder = world.data_dir().display().to_string();
    for words in [&*folder, "in use by another server", "TOLLKEEPER_DATA_DIR"] {
        assert!(refused.stderr.contains(words), "{words}: {refused}");
    }
    client.spend("ann", "sliding_window", 3);
    assert_eq!(client.used("ann", "sliding_window"), 6);
}
