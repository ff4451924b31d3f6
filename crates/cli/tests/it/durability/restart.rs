//! SIGTERM and a new start: every counter, override and namespace is as it was.

use std::time::Duration;

use serde_json::json;

use crate::time::pause;
use crate::world::{ALGORITHMS, Client, LONG_MS, World, ask, start, start_behind};

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
fn a_terminal_that_is_closed_ends_the_server_as_orderly_as_sigterm_does() {
    let folder = tempfile::tempdir().expect("a folder");
    // What is written to a terminal that is gone fails, as it does here.
    let mut server = start_behind("exec 2>/dev/full", folder.path(), &[]).expect("it starts");
    Client::new(server.url(), server.root_key()).spend("ann", "sliding_window", 3);
    server.hang_up().expect("told");
    let status = server.end().expect("it ends by itself");
    assert!(status.success(), "{status}");
    let server = start(folder.path(), &[]).expect("it starts again");
    let used = Client::new(server.url(), server.root_key()).used("ann", "sliding_window");
    assert_eq!(used, 3);
}

#[test]
fn a_server_that_is_started_by_nohup_outlives_its_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = start_behind("trap '' HUP", folder.path(), &[]).expect("it starts");
    server.hang_up().expect("told");
    pause(Duration::from_millis(300));
    let limited = Client::new(server.url(), server.root_key()).limit(&ask("api", "ann", 5));
    assert_eq!(limited["success"], true);
    assert!(server.terminate().expect("it ends by itself").success());
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
