//! Projects, identities and root keys by commands.

use super::{done, json, key, program};
use crate::program::Program;
use crate::world::World;

#[test]
fn a_project_is_made_shown_changed_protected_and_deleted() {
    let world = World::new();
    let made = json(
        &world,
        &["projects", "create", "The shop", "--slug", "shop", "--allow-referer", "*.example.com"],
    )
    .remove(0);
    assert_eq!(made["slug"], "shop");
    let id = made["apiId"].as_str().expect("an id");
    let shown = done(&world, &["projects", "get", "shop"]);
    for part in [
        id,
        "slug=shop",
        r#"name="The shop""#,
        "allowed_referers=*.example.com",
        "default_minute=60/60000ms",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    done(
        &world,
        &[
            "projects",
            "update",
            "shop",
            "--name",
            "Shop",
            "--protect",
            "on",
            "--default-limit",
            "hourly=9/1h",
        ],
    );
    let project = json(&world, &["projects", "get", id]).remove(0);
    assert_eq!((&project["name"], &project["deleteProtection"]), (&"Shop".into(), &true.into()));
    assert_eq!(
        project["defaultLimits"],
        serde_json::json!([{"name": "hourly", "limit": 9, "duration": 3_600_000}])
    );
    let refused = program(&world, &["projects", "delete", "shop", "--yes"]).run();
    assert_eq!(refused.code, Some(4), "{}", refused.stdout);
    done(&world, &["projects", "update", "shop", "--protect", "off"]);
    assert_eq!(
        program(&world, &["projects", "delete", "shop"]).run().code,
        Some(2),
        "without --yes"
    );
    assert_eq!(
        done(&world, &["projects", "delete", "shop", "--yes"]),
        format!("project_id={id} state=deleted\n")
    );
    assert!(!done(&world, &["projects", "list"]).contains(id));
    assert_eq!(program(&world, &["projects", "get", "shop"]).run().code, Some(4));
}

#[test]
fn an_identity_is_made_found_changed_and_deleted() {
    let world = World::new();
    let made = done(
        &world,
        &["identities", "create", "ann", "--limit", "requests=5/1m", "--meta", r#"{"plan":"pro"}"#],
    );
    assert!(made.starts_with("identity_id=id_") && made.ends_with("external_id=ann\n"), "{made}");
    done(&world, &["identities", "create", "bob"]);
    let found = done(&world, &["identities", "list", "--search", "ann"]);
    assert!(
        found.contains("external_id=ann limits=requests=5/60000ms") && found.lines().count() == 1,
        "{found}"
    );
    let changed =
        json(&world, &["identities", "update", "ann", "--clear-limits", "--meta", "{}"]).remove(0);
    assert!(changed.get("ratelimits").is_none(), "{changed}");
    assert!(done(&world, &["identities", "get", "bob"]).contains("external_id=bob"));
    assert_eq!(done(&world, &["identities", "delete", "bob"]), "identity=bob state=deleted\n");
    assert_eq!(program(&world, &["identities", "get", "bob"]).run().code, Some(4));
    assert_eq!(
        program(&world, &["identities", "create", "ann"]).run().code,
        Some(4),
        "there is one already"
    );
}

#[test]
fn a_root_key_may_do_what_it_was_given_until_it_is_switched_off_or_deleted() {
    let world = World::new();
    let ran = program(
        &world,
        &[
            "root-keys",
            "create",
            "--name",
            "reader",
            "--permission",
            "projects.*.list",
            "--key-only",
        ],
    )
    .run();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("not shown again"), "{}", ran.stderr);
    let text = ran.stdout.trim().to_owned();
    let list = |key: &str| {
        Program::new(&["projects", "list"])
            .env("TOLLKEEPER_URL", world.server.url())
            .env("TOLLKEEPER_ROOT_KEY", key)
            .run()
            .code
    };
    assert_eq!(list(&text), Some(0));
    let refused = Program::new(&["projects", "create", "any"])
        .env("TOLLKEEPER_URL", world.server.url())
        .env("TOLLKEEPER_ROOT_KEY", &text)
        .run();
    assert_eq!(refused.code, Some(4));
    assert!(
        refused.stderr.contains("next:  use a root key that has the permission"),
        "{}",
        refused.stderr
    );

    let row = json(&world, &["root-keys", "list"])
        .into_iter()
        .find(|row| row["name"] == "reader")
        .expect("listed");
    let id = row["keyId"].as_str().expect("an id");
    let shown = done(&world, &["root-keys", "list"]);
    assert!(
        shown.contains(id)
            && shown.contains("permissions=projects.*.list")
            && !shown.contains(&text),
        "{shown}"
    );
    done(&world, &["root-keys", "update", id, "--disable"]);
    crate::time::eventually("it is switched off", || list(&text) == Some(4));
    done(&world, &["root-keys", "update", id, "--enable"]);
    crate::time::eventually("it is switched on", || list(&text) == Some(0));
    let new = json(&world, &["root-keys", "reroll", id, "--grace", "0s"]).remove(0);
    assert_eq!(list(new["key"].as_str().expect("a key")), Some(0));
    crate::time::eventually("the old one has ended", || list(&text) == Some(4));
    done(&world, &["root-keys", "delete", new["keyId"].as_str().expect("an id")]);
    crate::time::eventually("the new one is deleted", || {
        list(new["key"].as_str().unwrap()) == Some(4)
    });
}

#[test]
fn what_changed_of_a_key_or_a_root_key_is_told_as_json_to_who_asks() {
    let world = World::new();
    let (id, _) = key(&world, &[]);
    let told = json(&world, &["keys", "update", &id, "--name", "desktop"]);
    assert_eq!(told, [serde_json::json!({"keyId": id, "state": "updated"})]);
    let made = json(&world, &["root-keys", "create", "--permission", "api.*.verify_key"]).remove(0);
    let root = made["keyId"].as_str().expect("an id");
    let told = json(&world, &["root-keys", "update", root, "--disable"]);
    assert_eq!(told, [serde_json::json!({"keyId": root, "state": "updated"})]);
    let told = json(&world, &["root-keys", "delete", root]);
    assert_eq!(told, [serde_json::json!({"keyId": root, "state": "deleted"})]);
}
