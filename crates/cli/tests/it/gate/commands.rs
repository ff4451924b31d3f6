//! `tollkeeper check` and `tollkeeper explain`: the verdict is the exit code, and every rule has a line with its reason.

use serde_json::{Value, json};

use super::{apply, key, project, rule};
use crate::program::{Program, Ran};
use crate::world::World;

fn run(world: &World, arguments: &[&str]) -> Ran {
    program(world, arguments).run()
}

fn program(world: &World, arguments: &[&str]) -> Program {
    Program::new(arguments)
        .env("TOLLKEEPER_URL", world.server.url())
        .env("TOLLKEEPER_ROOT_KEY", world.server.root_key())
}

fn ruled() -> World {
    let world = World::new();
    apply(
        &mut world.client(),
        &json!([
            rule("few", &json!("user"), 2, json!({"tiers": ["free"]})),
            rule("office", &json!("ip"), 9, json!({"ipRanges": ["10.0.0.0/8"]})),
            {"name": "shut", "scope": "global", "action": "block", "endpoints": ["/admin/**"]},
        ]),
    );
    world
}

#[test]
fn explain_shows_every_rule_with_its_reason_and_spends_nothing() {
    let world = ruled();
    let asked = ["explain", "--external-id", "ann", "--method", "GET", "--path", "/v1"];
    for _ in 0..3 {
        let ran = run(&world, &asked);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
        let lines: Vec<_> = ran.stdout.lines().collect();
        assert!(
            lines[0].starts_with("verdict=allowed code=VALID status=200 tier=free "),
            "{lines:?}"
        );
        assert_eq!(
            lines[1..],
            [
                "rule=few matches=yes action=reject limit=30d units=2 left=2 reason=\"has room: 2 of 2 left\"",
                "rule=office matches=no action= limit= units= left= \
                 reason=\"the rule has IP ranges and the request gives no address\"",
                "rule=shut matches=no action= limit= units= left= \
                 reason=\"the request's path matches none of the rule's endpoints\"",
            ]
        );
    }
    let denied = run(&world, &["explain", "--path", "/admin/x"]);
    assert_eq!(denied.code, Some(1), "{}", denied.stdout);
    assert!(
        denied.stdout.starts_with("verdict=denied code=BLOCKED status=403 tier=free rule=shut ")
    );
    let json: Value =
        serde_json::from_str(&run(&world, &[&asked[..], &["--json"]].concat()).stdout).unwrap();
    assert_eq!(
        (&json["allowed"], json["unmatched"].as_array().map(Vec::len)),
        (&json!(true), Some(2))
    );
}

#[test]
fn check_spends_and_says_so_by_its_exit_code() {
    let world = ruled();
    let ask = ["check", "--external-id", "ann"];
    assert_eq!(run(&world, &[&ask[..], &["--dry-run", "--cost", "2"]].concat()).code, Some(0));
    for left in [1, 0] {
        let ran = run(&world, &ask);
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
        let part = format!("limit=few/30d scope=user identifier=ann units=2 remaining={left} ");
        assert!(ran.stdout.contains(&part), "{}", ran.stdout);
    }
    let denied = run(&world, &ask);
    assert_eq!(denied.code, Some(1));
    assert!(
        denied
            .stdout
            .starts_with("verdict=denied code=RATE_LIMITED status=429 rule=few retry_after="),
        "{}",
        denied.stdout
    );
}

#[test]
fn the_key_comes_from_the_environment_or_stdin_and_is_never_shown() {
    let world = ruled();
    let mut client = world.client();
    let api = project(&mut client);
    let (id, text) = key(&mut client, &api, json!({"externalId": "ann"}));
    let from_env = program(&world, &["check"]).env("TOLLKEEPER_KEY", &text).run();
    let from_stdin = program(&world, &["check", "--key-stdin"]).stdin(&format!("{text}\n")).run();
    for ran in [from_env, from_stdin] {
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains(&format!("key_id={id} owner=ann")), "{}", ran.stdout);
        assert!(!ran.stdout.contains(&text));
    }
    for arguments in
        [&["check", "--key-stdin"][..], &["explain", "--key-stdin", "--root-key-stdin"]]
    {
        let ran = run(&world, arguments);
        assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
    }
    assert_eq!(run(&world, &["explain", "--ip", "nowhere"]).code, Some(4));
}

#[test]
fn a_key_that_is_piped_in_without_being_asked_for_is_not_passed_over_silently() {
    let world = ruled();
    let ask = ["check", "--external-id", "ann"];
    for command in ["check", "explain"] {
        let ran = program(&world, &[&[command], &ask[1..]].concat()).stdin("some-key").run();
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("--key-stdin"), "{command}: {}", ran.stderr);
    }
    let quiet = [
        program(&world, &["explain", "--external-id", "ann"]),
        program(&world, &["explain"]).stdin("some-key").env("TOLLKEEPER_KEY", "another-key"),
        program(&world, &["explain", "--key-stdin"]).stdin("some-key"),
    ];
    for ran in quiet.map(Program::run) {
        assert!(!ran.stderr.contains("note:"), "{}", ran.stderr);
    }
}
