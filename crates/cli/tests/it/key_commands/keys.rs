//! The life of a key by commands.

use super::{done, json, key, program, verify};
use crate::start::terminal::on_a_terminal;
use crate::world::World;

#[test]
fn a_new_key_stands_on_stdout_and_the_warning_that_it_is_shown_once_on_stderr() {
    let world = World::new();
    done(&world, &["projects", "create", "The shop", "--slug", "shop"]);
    let ran = program(&world, &["keys", "create", "shop", "--prefix", "prod"]).run();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with("key_id=key_") && ran.stdout.contains(" key=prod_"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("not shown again"), "{}", ran.stderr);
    let text = ran.stdout.trim().rsplit_once("key=").expect("a key").1;
    assert!(!ran.stderr.contains(text));
    let shown_later = done(&world, &["keys", "list", "shop"])
        + &done(&world, &["keys", "list", "shop", "--json"]);
    assert!(!shown_later.contains(text));

    let alone = done(&world, &["keys", "create", "shop", "--key-only"]);
    assert_eq!(alone.lines().count(), 1);
    assert_eq!(verify(&world, alone.trim(), &[]).code, Some(0));
}

#[test]
fn every_flag_of_create_reaches_the_key() {
    let world = World::new();
    done(&world, &["identities", "create", "ann"]);
    let (id, _) = key(
        &world,
        &[
            "--name",
            "Ann's laptop",
            "--owner",
            "ann",
            "--meta",
            r#"{"plan":"pro"}"#,
            "--permission",
            "a.read",
            "--permission",
            "a.write",
            "--expires",
            "4102444800000",
            "--credits",
            "10",
            "--refill",
            "monthly:10:31",
            "--limit",
            "requests=100/1m",
            "--named-limit",
            "tokens=5/1h",
            "--tier",
            "gold",
            "--allow-ip",
            "203.0.113.0/24",
            "--disabled",
        ],
    );
    let key = json(&world, &["keys", "get", &id]).remove(0);
    assert_eq!(key["name"], "Ann's laptop");
    assert_eq!(key["identity"]["externalId"], "ann");
    assert_eq!(key["meta"]["plan"], "pro");
    assert_eq!(key["permissions"], serde_json::json!(["a.read", "a.write"]));
    assert_eq!(key["expires"], 4_102_444_800_000_u64);
    assert_eq!(key["credits"]["remaining"], 10);
    assert_eq!(
        key["credits"]["refill"],
        serde_json::json!({"interval": "monthly", "amount": 10, "refillDay": 31})
    );
    assert_eq!(key["tier"], "gold");
    assert_eq!(key["ipAllowlist"], serde_json::json!(["203.0.113.0/24"]));
    assert_eq!(key["enabled"], false);
    let limits: Vec<_> = key["ratelimits"]
        .as_array()
        .expect("limits")
        .iter()
        .map(|limit| {
            (
                limit["name"].as_str().unwrap(),
                limit["limit"].as_u64().unwrap(),
                limit["duration"].as_u64().unwrap(),
                limit["autoApply"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(limits, [("requests", 100, 60_000, true), ("tokens", 5, 3_600_000, false)]);
    let line = done(&world, &["keys", "get", &id]);
    assert!(line.contains(r#"name="Ann's laptop" owner=ann state=disabled credits=10"#), "{line}");
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn an_update_changes_what_is_named_clears_what_is_told_and_keeps_the_rest() {
    let world = World::new();
    let (id, _) = key(
        &world,
        &["--name", "before", "--owner", "ann", "--limit", "requests=5/1m", "--credits", "3"],
    );
    done(&world, &["keys", "update", &id, "--name", "after", "--disable"]);
    let key = json(&world, &["keys", "get", &id]).remove(0);
    assert_eq!((&key["name"], &key["enabled"]), (&"after".into(), &false.into()));
    assert_eq!(
        (&key["identity"]["externalId"], &key["credits"]["remaining"]),
        (&"ann".into(), &3.into())
    );
    assert_eq!(key["ratelimits"][0]["limit"], 5);
    done(
        &world,
        &[
            "keys", "update", &id, "--clear", "limits", "--clear", "credits", "--clear", "owner",
            "--enable",
        ],
    );
    let key = json(&world, &["keys", "get", &id]).remove(0);
    for gone in ["ratelimits", "credits", "identity"] {
        assert!(key.get(gone).is_none(), "{gone}: {key}");
    }
    assert_eq!((&key["name"], &key["enabled"]), (&"after".into(), &true.into()));
}

#[test]
fn a_rerolled_key_lives_on_and_a_revoked_one_is_denied_with_its_reason_on_record() {
    let world = World::new();
    let (id, text) = key(&world, &["--name", "server"]);
    let new = json(&world, &["keys", "reroll", &id, "--grace", "1h"]).remove(0);
    let new_text = new["key"].as_str().expect("a key");
    for works in [&*text, new_text] {
        assert_eq!(verify(&world, works, &[]).code, Some(0));
    }
    let told = done(&world, &["keys", "revoke", &id, "--reason", "leaked"]);
    assert!(told.starts_with(&format!("key_id={id} revoked=")), "{told}");
    crate::time::eventually("the old key is revoked", || {
        verify(&world, &text, &[]).stdout.contains("code=REVOKED")
    });
    assert_eq!(verify(&world, &text, &[]).code, Some(1));
    assert_eq!(verify(&world, new_text, &[]).code, Some(0));
    assert!(done(&world, &["keys", "get", &id]).contains("state=revoked"));
    assert!(done(&world, &["keys", "get", &id]).contains("revoked_reason=leaked"));
}

#[test]
fn a_list_is_a_table_for_people_and_a_line_per_key_for_scripts() {
    let world = World::new();
    let (first, _) = key(&world, &["--name", "one", "--owner", "ann"]);
    let (second, _) = key(&world, &["--name", "two"]);
    let lines = done(&world, &["keys", "list", "shop"]);
    assert_eq!(lines.lines().count(), 2);
    assert!(lines.contains(&first) && lines.contains(&second), "{lines}");
    let mine = done(&world, &["keys", "list", "shop", "--owner", "ann"]);
    assert!(mine.contains("name=one owner=ann state=enabled") && !mine.contains("two"), "{mine}");
    assert_eq!(json(&world, &["keys", "list", "shop"]).len(), 2);

    let env = [
        ("TOLLKEEPER_URL", world.server.url()),
        ("TOLLKEEPER_ROOT_KEY", world.server.root_key()),
        ("NO_COLOR", "1"),
    ];
    let (code, screen) = on_a_terminal(&["keys", "list", "shop"], &env);
    assert_eq!(code, Some(0), "{screen}");
    let heads: Vec<_> = screen.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(
        heads,
        ["KEY_ID", "START", "NAME", "OWNER", "STATE", "CREDITS", "EXPIRES", "LAST_USED"]
    );
    assert_eq!(screen.lines().count(), 3, "{screen}");
}
