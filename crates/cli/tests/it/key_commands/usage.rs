//! Help, and every way in which these commands end without having done their work.

use crate::program::Program;

const ROOT_KEY: &str = "root-key-of-sixteen-or-more";

const COMMANDS: &[(&str, &[&str])] = &[
    ("keys", &["create", "list", "get", "update", "reroll", "revoke", "verify", "import"]),
    ("projects", &["create", "list", "get", "update", "delete"]),
    ("identities", &["create", "list", "get", "update", "delete"]),
    ("root-keys", &["create", "list", "update", "reroll", "delete"]),
];

#[test]
fn every_command_teaches_by_example_and_names_its_exit_codes() {
    for (group, commands) in COMMANDS {
        let help = Program::new(&[group, "--help"]).run().stdout;
        assert!(help.contains("Examples:"), "{group}: {help}");
        for command in *commands {
            assert!(help.contains(&format!("\n  {command} ")), "{group}: {command}: {help}");
            let help = Program::new(&[group, command, "--help"]).run().stdout;
            for word in [
                &*format!("tollkeeper {group} "),
                "Examples:",
                "TOLLKEEPER_URL",
                "4  the server refused",
            ] {
                assert!(help.contains(word), "{group} {command}: {word}: {help}");
            }
        }
    }
}

#[test]
fn wrong_arguments_exit_2_and_say_what_is_expected() {
    let cases: &[(&[&str], &str)] = &[
        (&["keys", "create"], "PROJECT"),
        (&["keys", "create", "shop", "--limit", "requests=100"], "requests=100/1m"),
        (&["keys", "create", "shop", "--refill", "daily:5"], "--credits"),
        (&["keys", "create", "shop", "--credits", "5", "--refill", "weekly:5"], "monthly:1000:1"),
        (&["keys", "create", "shop", "--meta", "[1]"], "expected a JSON object"),
        (&["keys", "create", "shop", "--expires", "tomorrow"], "such as 12h or 30d"),
        (&["keys", "update", "key_1"], "--name"),
        (&["keys", "update", "key_1", "--name", "a", "--clear", "name"], "--clear name"),
        (&["keys", "update", "key_1", "--enable", "--disable"], "--disable"),
        (&["keys", "reroll", "key_1"], "--grace"),
        (&["keys", "revoke"], "KEY_ID"),
        (&["root-keys", "create", "--name", "any"], "--permission"),
        (&["projects", "update", "shop", "--protect", "maybe"], "expected on or off"),
        (&["keys", "list", "shop"], "TOLLKEEPER_ROOT_KEY is not set"),
    ];
    for (arguments, expected) in cases {
        let ran = Program::new(arguments).run();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn no_server_exits_3() {
    for arguments in [
        &["keys", "list", "api_1"][..],
        &["projects", "list"],
        &["identities", "list"],
        &["root-keys", "list"],
    ] {
        let ran = Program::new(arguments)
            .env("TOLLKEEPER_URL", "http://127.0.0.1:1")
            .env("TOLLKEEPER_ROOT_KEY", ROOT_KEY)
            .run();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{arguments:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("tollkeeper serve") && !ran.stderr.contains(ROOT_KEY),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn every_wrong_value_of_a_command_line_is_named_at_once() {
    let arguments =
        ["keys", "create", "shop", "--limit", "a=1/1x", "--credits", "x", "--expires=never"];
    let ran = Program::new(&arguments).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    for (value, flag) in [("a=1/1x", "--limit"), ("x", "--credits"), ("never", "--expires")] {
        let said = format!("invalid value '{value}' for '{flag}");
        assert_eq!(ran.stderr.matches(&said).count(), 1, "{flag}: {}", ran.stderr);
    }
    assert_eq!(ran.stderr.matches("For more information").count(), 1, "{}", ran.stderr);
}

#[test]
fn a_usage_line_asks_for_no_flag_that_the_environment_gives() {
    let ran = Program::new(&["keys", "create"]).env("TOLLKEEPER_URL", "http://127.0.0.1:1").run();
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("<PROJECT>") && !ran.stderr.contains("--url"), "{}", ran.stderr);
}

#[test]
fn what_is_not_there_comes_with_a_next_step() {
    let world = crate::world::World::new();
    let run = |arguments: &[&str]| {
        Program::new(arguments)
            .env("TOLLKEEPER_URL", world.server.url())
            .env("TOLLKEEPER_ROOT_KEY", world.server.root_key())
            .run()
    };
    for arguments in [
        &["keys", "get", "key_nobody"][..],
        &["projects", "get", "nowhere"],
        &["rules", "get", "none"],
        &["identities", "get", "nobody"],
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(4), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("\nnext:  "), "{arguments:?}: {}", ran.stderr);
    }
}
