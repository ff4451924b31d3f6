//! `tollkeeper keys verify`: the verdict is the exit code, and the key never stands in an argument.

use super::{done, json, key, program, verify};
use crate::world::World;

#[test]
fn the_verdict_is_the_exit_code_and_one_line() {
    let world = World::new();
    let (id, text) = key(&world, &["--name", "one", "--limit", "requests=2/30d"]);
    for left in [1, 0] {
        let ran = verify(&world, &text, &[]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let (verdict, limit) = ran.stdout.split_once('\n').expect("two lines");
        assert_eq!(verdict, format!("verdict=allowed code=VALID key_id={id} name=one"));
        assert!(
            limit.starts_with(&format!("limit=requests units=2 remaining={left} reset=")),
            "{limit}"
        );
    }
    let denied = verify(&world, &text, &[]);
    assert_eq!(denied.code, Some(1));
    assert!(denied.stdout.starts_with("verdict=denied code=RATE_LIMITED "), "{}", denied.stdout);
    let unknown = verify(&world, "no such key", &[]);
    assert_eq!(
        (unknown.code, unknown.stdout.as_str()),
        (Some(1), "verdict=denied code=NOT_FOUND\n")
    );
    for ran in [denied, unknown] {
        assert!(!ran.stdout.contains(&text) && ran.stderr.is_empty());
    }
}

#[test]
fn what_is_asked_for_is_asked() {
    let world = World::new();
    let (_, text) = key(
        &world,
        &[
            "--permission",
            "a",
            "--credits",
            "5",
            "--named-limit",
            "tokens=1/30d",
            "--allow-ip",
            "203.0.113.0/24",
        ],
    );
    let ip = ["--ip", "203.0.113.9"];
    let with = |more: &[&str]| verify(&world, &text, &[&ip, more].concat()).stdout;
    assert!(verify(&world, &text, &[]).stdout.contains("code=FORBIDDEN"));
    assert!(with(&["--permissions", "a AND b"]).contains("code=INSUFFICIENT_PERMISSIONS"));
    assert!(with(&["--cost", "6"]).contains("code=USAGE_EXCEEDED"));
    let spent = with(&["--cost", "2", "--limit", "tokens", "--limit", "spot=9/30d", "--tag", "t"]);
    assert!(spent.contains("code=VALID") && spent.contains("credits=3"), "{spent}");
    assert!(
        spent.contains("limit=tokens units=1 remaining=0")
            && spent.contains("limit=spot units=9 remaining=8"),
        "{spent}"
    );
    assert!(with(&["--limit", "tokens"]).contains("code=RATE_LIMITED"));
    assert!(with(&["--project", "api_another"]).contains("code=NOT_FOUND"));
}

#[test]
fn the_key_comes_from_the_environment_or_stdin_and_from_nowhere_else() {
    let world = World::new();
    let (_, text) = key(&world, &[]);
    let from_env = program(&world, &["keys", "verify"]).env("TOLLKEEPER_KEY", &text).run();
    assert_eq!(from_env.code, Some(0), "{}", from_env.stderr);
    let root_on_stdin = program(&world, &["keys", "verify", "--root-key-stdin"])
        .env("TOLLKEEPER_KEY", &text)
        .stdin(world.server.root_key())
        .run();
    assert_eq!(root_on_stdin.code, Some(0), "{}", root_on_stdin.stderr);
    let nowhere = program(&world, &["keys", "verify", "--root-key-stdin"])
        .stdin(world.server.root_key())
        .run();
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.stderr.contains("TOLLKEEPER_KEY"), "{}", nowhere.stderr);
    let none = program(&world, &["keys", "verify"]).run();
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("no key was given"), "{}", none.stderr);
    assert_eq!(program(&world, &["keys", "verify", "text"]).run().code, Some(2));
}

#[test]
fn json_is_the_data_of_the_answer() {
    let world = World::new();
    let (id, text) = key(&world, &[]);
    let ran = verify(&world, &text, &["--json"]);
    let data: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((&data["code"], &data["keyId"]), (&"VALID".into(), &id.as_str().into()));
    done(&world, &["keys", "update", &id, "--disable"]);
    assert_eq!(json(&world, &["keys", "get", &id])[0]["enabled"], false);
}
